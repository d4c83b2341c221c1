/**
 * A checkpoint of session and filesystem before each tool that may change something, and both as they were when the tool fails, dies
 * or is interrupted. Those of calls that went well stay, by the name `pre:<tool>:<call id>`.
 */
import * as Effect from "effect/Effect"
import { createHash } from "../../runtime/node.ts"
import { alone } from "../../history/replace.ts"
import type * as Checkpoint from "../../workspace/Checkpoint.ts"
import type { Options } from "../Adapter.ts"
import { checkpointTag, labelled } from "../checkpointTag.ts"
import { isKept } from "../policy/checkpoint.ts"
import type { Invocation, Policy } from "../policy/core.ts"
import { type Keeping, takingBack } from "../policy/takingBack.ts"
import * as Result from "../ToolResult.ts"
import { underWay } from "./refusals.ts"

const longestId = 100

/** The id of a checkpoint can be the name of a file, and the id of a call is whatever a provider sends. */
const idOf = ({ callId, tool }: Invocation): string => {
  const label = labelled(callId).replaceAll(/[/\\\u0080-\u009f]/g, "_")
  if (label === callId && label.length <= longestId) return checkpointTag(tool, callId)
  const digest = createHash("sha256").update(callId).digest("hex").slice(0, 16)
  return checkpointTag(tool, `${label.slice(0, longestId).toWellFormed()}-${digest}`)
}

type Around = NonNullable<Policy["around"]>

const without: Around = (_, call) => call

const keeping = (checkpoint: Checkpoint.Operations, id: string, room: Effect.Effect<void>): Keeping<string> => ({
  take: Effect.andThen(room, Effect.as(checkpoint.take(id), id)),
  back: () => Effect.andThen(checkpoint.rollback(id), Effect.ignore(checkpoint.forget(id))),
  called: () => `checkpoint ${id}`
})

/** Nobody else changes session or files meanwhile, or what they did would be taken back too. */
const undisturbed = <A, E, R>(
  checkpoint: Checkpoint.Operations,
  { filesystem }: Invocation,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => checkpoint.exclusively(alone(filesystem.port, call))

/** Around the calls of one run. `isElsewhere`: whoever does the work has to get at the files, and cannot wait for us. */
export const taking = ({ checkpoint, keep = 100 }: Options): ((isElsewhere: boolean) => Around) => {
  if (checkpoint === undefined) return () => without
  const working = new Set<string>()
  const staying = new Set<string>()
  // Before the next one is taken, so that nothing is left to do when a call has gone well.
  const room = Effect.suspend(() => {
    const old = [...staying].slice(0, Math.max(0, staying.size + 1 - keep))
    for (const id of old) staying.delete(id)
    return Effect.forEach(old, (id) => Effect.ignore(checkpoint.forget(id)), { discard: true })
  })
  return (isElsewhere) => (invocation, call) =>
    Effect.suspend(() => {
      if (!isKept(invocation)) return call
      const id = idOf(invocation)
      if (working.has(id)) {
        const { advice, happened } = underWay(invocation.callId)
        return Effect.succeed(Result.error(`${happened} ${advice}`))
      }
      working.add(id)
      staying.delete(id)
      const whole = Effect.map(takingBack(keeping(checkpoint, id, room), call), (result) => {
        if (result.success) staying.add(id)
        return result
      })
      return Effect.ensuring(
        isElsewhere ? whole : undisturbed(checkpoint, invocation, whole),
        Effect.sync(() => working.delete(id))
      )
    })
}
