import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { shortIds } from "../../../history/snapshots/choice.ts"
import { define } from "../../definition.ts"
import { fitted } from "../../text/fit.ts"
import { plural } from "../../text/words.ts"
import { service } from "./choosing.ts"
import { detailed, Snapshot, snapshotLine, snapshotOf } from "./shown.ts"

/** The number of snapshots whose changes are counted; each costs a comparison. */
const maxCounted = 100

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
    const history = yield* service
    const all = yield* history.list
    const short = shortIds(all)
    const found = yield* Effect.forEach([...all].reverse(), (one, index) =>
      index < maxCounted
        ? Effect.map(history.details(one), (details) => ({ short: short(one), value: detailed(details) }))
        : Effect.succeed({ short: short(one), value: snapshotOf(one) })
    )
    const lines = found.map(({ short: id, value }) => snapshotLine(value, id))
    return {
      message:
        lines.length === 0
          ? "There is no snapshot yet. Call snapshot to keep the current files."
          : fitted(lines, call.settings, (shown) => `[cut: the newest ${shown} of ${plural(lines.length, "snapshot")}]`),
      value: { snapshots: found.map(({ value }) => value) }
    }
  })
})
