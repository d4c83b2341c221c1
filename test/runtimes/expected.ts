/** The expected result of `features` of the kit in every runtime. */
import { createHash } from "node:crypto"

export const expected = {
  counts: [2, 2],
  refused: "ArchiveError",
  layered: { alpha: ["mounted/b.md", "notes/a.md"], below: "alpha\n", changes: ["Added mounted", "Modified notes/a.md"] },
  isSmaller: true,
  same: true,
  edited: "beta\n",
  restored: "alpha\n",
  version: createHash("sha256").update("alpha\n").digest("hex"),
  found: ["notes/a.md"],
  isRefused: false
}
