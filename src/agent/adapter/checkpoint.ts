/**
 * Takes a checkpoint of session and filesystem before each tool that may change something, and rolls back failed, dying and
 * interrupted calls. Checkpoints of successful calls stay, named `pre:<tool>:<call id>`.
 */
import * as Effect from "effect/Effect"
import { createHash } from "../../runtime/node.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import type * as Checkpoint from "../../workspace/Checkpoint.ts"
import type { Options } from "../Adapter.ts"
import { checkpointTag, asLabel } from "../checkpointTag.ts"
import { needsCheckpoint } from "../policy/checkpoint.ts"
import type { Invocation, Policy } from "../policy/core.ts"
import { type StateKeeper, rollBackOnFailure } from "../policy/takingBack.ts"
import * as Result from "../ToolResult.ts"
import { callIsUnderWay } from "./refusals.ts"

const maxIdLength = 100

/** Returns an id that is safe as a file name, because model providers may send any text as the id of a call. */
const idOf = ({ callId, tool }: Invocation): string => {
  const label = asLabel(callId).replaceAll(/[/\\\u0080-\u009f]/g, "_")
  if (label === callId && label.length <= maxIdLength) return checkpointTag(tool, callId)
  const digest = createHash("sha256").update(callId).digest("hex").slice(0, 16)
  return checkpointTag(tool, `${label.slice(0, maxIdLength).toWellFormed()}-${digest}`)
}

type Around = NonNullable<Policy["around"]>

const withoutCheckpoint: Around = (_, call) => call

const keeperOf = (checkpoint: Checkpoint.Operations, id: string, makeRoom: Effect.Effect<void>): StateKeeper<string> => ({
  take: Effect.andThen(makeRoom, Effect.as(checkpoint.take(id), id)),
  restoreState: () => Effect.andThen(checkpoint.rollback(id), Effect.ignore(checkpoint.forget(id))),
  describeState: () => `checkpoint ${id}`
})

/** Runs the call while no other call changes the session or the files, because a rollback would undo those changes too. */
const withoutOtherChanges = <A, E, R>(
  checkpoint: Checkpoint.Operations,
  { filesystem }: Invocation,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => checkpoint.exclusively(withExclusiveLock(filesystem.port, call))

/**
 * Returns the wrapper of the calls of one run. With `isElsewhere` it takes no locks: the program that does the work needs the
 * files and cannot wait for our locks.
 */
export const checkpointCalls = ({ checkpoint, keep = 100 }: Options): ((isElsewhere: boolean) => Around) => {
  if (checkpoint === undefined) return () => withoutCheckpoint
  const runningIds = new Set<string>()
  const keptIds = new Set<string>()
  // Make room before the next checkpoint, so that a successful call has nothing left to do.
  const makeRoom = Effect.suspend(() => {
    const old = [...keptIds].slice(0, Math.max(0, keptIds.size + 1 - keep))
    for (const id of old) keptIds.delete(id)
    return Effect.forEach(old, (id) => Effect.ignore(checkpoint.forget(id)), { discard: true })
  })
  return (isElsewhere) => (invocation, call) =>
    Effect.suspend(() => {
      if (!needsCheckpoint(invocation)) return call
      const id = idOf(invocation)
      if (runningIds.has(id)) {
        const { advice, happened } = callIsUnderWay(invocation.callId)
        return Effect.succeed(Result.error(`${happened} ${advice}`))
      }
      runningIds.add(id)
      keptIds.delete(id)
      const rolledBackCall = Effect.map(rollBackOnFailure(keeperOf(checkpoint, id, makeRoom), call), (result) => {
        if (result.success) keptIds.add(id)
        return result
      })
      return Effect.ensuring(
        isElsewhere ? rolledBackCall : withoutOtherChanges(checkpoint, invocation, rolledBackCall),
        Effect.sync(() => runningIds.delete(id))
      )
    })
}
