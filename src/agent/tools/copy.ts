/** A failed copy of a directory removes the part it has made. */
import { define } from "../definition.ts"
import { parameters, touching, transferring, value } from "../changes/transferring.ts"

export const copy = define({
  name: "copy",
  description: "Copy a file, or a directory with everything in it. Refuses an existing target unless overwrite is true.",
  parameters,
  value,
  does: "changes",
  idempotent: false,
  examples: [
    { from: "template", to: "packages/new" },
    { from: "a.txt", to: "b.txt", overwrite: true }
  ],
  touches: touching("read"),
  handle: transferring({
    done: "copied",
    forgets: false,
    run: ({ filesystem }, from, to, overwrite) => filesystem.copy(from, to, { overwrite })
  })
})
