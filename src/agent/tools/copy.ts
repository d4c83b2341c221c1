/** A failed copy of a directory removes the part it has made. */
import { define } from "../definition.ts"
import { parameters, touchesWith, makeTransferHandler, value } from "../changes/transferring.ts"

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
  touches: touchesWith("read"),
  handle: makeTransferHandler({
    pastVerb: "copied",
    forgetsSource: false,
    run: ({ filesystem }, from, to, overwrite) => filesystem.copy(from, to, { overwrite })
  })
})
