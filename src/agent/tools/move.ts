/** Moves a file or directory, in one step if the disk can rename; a failed move has then changed nothing. */
import { define } from "../definition.ts"
import { parameters, touchesWith, makeTransferHandler, value } from "../changes/transferring.ts"

export const move = define({
  name: "move",
  description: "Move or rename a file or directory. Refuses an existing target unless overwrite is true.",
  parameters,
  value,
  does: "changes",
  idempotent: false,
  examples: [
    { from: "src/old.ts", to: "src/new.ts" },
    { from: "draft.md", to: "docs/final.md", overwrite: true }
  ],
  touches: touchesWith("delete"),
  handle: makeTransferHandler({
    pastVerb: "moved",
    forgetsSource: true,
    run: ({ filesystem }, from, to, overwrite) => filesystem.move(from, to, { overwrite })
  })
})
