import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { InvalidArgument } from "../../../model/FsError.ts"
import { root } from "../../../model/FsPath.ts"
import { define } from "../../definition.ts"
import { requireSnapshots } from "./choosing.ts"
import { changed, snapshotWithDetails, Snapshot } from "./shown.ts"
import { plural } from "../../text/words.ts"

const maxTagLength = 1000

// oxlint-disable-next-line no-control-regex
const isValidTag = (tag: string): boolean =>
  tag.length <= maxTagLength && tag.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(tag)

const invalidTag = (tool: string): InvalidArgument =>
  new InvalidArgument({
    operation: tool,
    path: root,
    argument: "tag",
    detail: "it must be one line of at most 1,000 characters"
  })

export const snapshot = define({
  name: "snapshot",
  description: "Keep all files as they are now, for restore to bring back. Take one before a risky change.",
  parameters: Schema.Struct({
    tag: Schema.optionalKey(Schema.String.annotate({ description: "One line of text that names it" }))
  }),
  value: Snapshot,
  does: "adds",
  past: "keeps",
  idempotent: false,
  examples: [{ tag: "tests pass" }, {}],
  touches: () => Effect.succeed([]),
  handle: Effect.fnUntraced(function* ({ tag }, { callId, tool }) {
    const snapshots = yield* requireSnapshots
    const label = tag?.trim() === "" ? undefined : tag?.trim()
    if (label !== undefined && !isValidTag(label)) return yield* Effect.fail(invalidTag(tool))
    const taken = yield* snapshots.snapshot({ tag: label, tool, callId })
    const value = snapshotWithDetails(yield* snapshots.details(taken))
    const changesSince = changed(value)
    return {
      message: `Took snapshot ${taken.snapshotId}: ${plural(value.files ?? 0, "file")}${changesSince === "" ? "" : `; ${changesSince}`}`,
      value
    }
  })
})
