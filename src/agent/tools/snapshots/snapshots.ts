import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeShortIds } from "../../../history/snapshots/choice.ts"
import { define } from "../../definition.ts"
import { joinFitting } from "../../text/fit.ts"
import { plural } from "../../text/words.ts"
import { requireSnapshots } from "./choosing.ts"
import { snapshotWithDetails, Snapshot, snapshotLine, snapshotOf } from "./shown.ts"

/** The number of snapshots whose changes are counted; each costs a comparison. */
const maxDetailedSnapshots = 100

export const snapshots = define({
  name: "snapshots",
  description: "List the snapshots, newest first: id, tag, time, and what changed.",
  parameters: Schema.Struct({}),
  value: Schema.Struct({ snapshots: Schema.Array(Snapshot) }),
  does: "reads",
  past: "shows",
  idempotent: true,
  examples: [{}],
  touches: () => Effect.succeed([]),
  handle: Effect.fnUntraced(function* (_params, call) {
    const history = yield* requireSnapshots
    const all = yield* history.list
    const short = makeShortIds(all)
    const found = yield* Effect.forEach([...all].reverse(), (one, index) =>
      index < maxDetailedSnapshots
        ? Effect.map(history.details(one), (details) => ({ short: short(one), value: snapshotWithDetails(details) }))
        : Effect.succeed({ short: short(one), value: snapshotOf(one) })
    )
    const lines = found.map(({ short: id, value }) => snapshotLine(value, id))
    return {
      message:
        lines.length === 0
          ? "There is no snapshot yet. Call snapshot to keep the current files."
          : joinFitting(lines, call.settings, (shown) => `[cut: the newest ${shown} of ${plural(lines.length, "snapshot")}]`),
      value: { snapshots: found.map(({ value }) => value) }
    }
  })
})
