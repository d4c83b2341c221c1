/**
 * Takes a checkpoint of session and filesystem before each tool that may change something, and rolls back failed, dying and
 * interrupted calls. Checkpoints of successful calls stay, named `pre:<tool>:<call id>`.
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

/** Returns an id that is safe as a file name, because model providers may send any text as the id of a call. */
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

/** Runs the call while no other call changes the session or the files, because a rollback would undo those changes too. */
const undisturbed = <A, E, R>(
  checkpoint: Checkpoint.Operations,
  { filesystem }: Invocation,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => checkpoint.exclusively(alone(filesystem.port, call))

/**
 * Returns the wrapper of the calls of one run. With `isElsewhere` it takes no locks: the program that does the work needs the
 * files and cannot wait for our locks.
 */
export const taking = ({ checkpoint, keep = 100 }: Options): ((isElsewhere: boolean) => Around) => {
  if (checkpoint === undefined) return () => without
  const working = new Set<string>()
  const staying = new Set<string>()
  // Make room before the next checkpoint, so that a successful call has nothing left to do.
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
