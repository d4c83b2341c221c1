/**
 * Standard input and output as a server needs them: only whole messages come in, no faster than they are worked on, and it is known
 * when the client has gone, by either end.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { Flow } from "./flow.ts"
import * as Lines from "./lines.ts"

export interface Guarded {
  readonly stdio: Stdio.Stdio
  /** Done when no more can be asked, or no more be answered. */
  readonly gone: Effect.Effect<void>
}

/** How long those who ask and hang up, as in a pipeline, are still worked for. */
const grace = "1 second"

export const guard = Effect.fnUntraced(function* (
  base: Stdio.Stdio,
  flow: Flow,
  onMethod: (method: string) => Effect.Effect<void>
) {
  const scope = yield* Effect.scope
  const gone = yield* Deferred.make<void>()
  const hangUp = Effect.asVoid(Deferred.succeed(gone, undefined))
  const lines = Lines.make()
  const open = { requests: 0, ended: false }
  const hangUpIfDone = Effect.suspend(() => (open.ended && open.requests <= 0 ? hangUp : Effect.void))
  /** To try again is of no use: who does not read any more is not there any more. */
  const write = (text: string | Uint8Array) =>
    flow.write(Stream.run(Stream.succeed(text), base.stdout())).pipe(Effect.catchCause(() => hangUp))
  const answer = (text: string | Uint8Array) =>
    Effect.suspend(() => {
      if (isAnswer(text)) open.requests--
      return Effect.andThen(write(text), hangUpIfDone)
    })
  const taken = Effect.fnUntraced(function* (line: Lines.Line) {
    if (line._tag === "Bad") {
      yield* write(line.answer)
      return []
    }
    yield* flow.room
    flow.took(line.bytes)
    if (line.isRequest) open.requests++
    if (line.method !== undefined) yield* onMethod(line.method)
    return [encoder.encode(line.text)]
  })
  const ended = Effect.suspend(() => {
    open.ended = true
    const later = Effect.andThen(Effect.sleep(grace), hangUp)
    return Effect.andThen(hangUpIfDone, Effect.forkIn(later, scope))
  })
  const stdin = base.stdin.pipe(
    Stream.map(lines.push),
    Stream.flattenIterable,
    Stream.mapEffect(taken),
    Stream.flattenIterable,
    Stream.catchCause(() => Stream.empty),
    Stream.onEnd(ended)
  )
  const stdout = () => Sink.forEach(answer)
  return { gone: Deferred.await(gone), stdio: Stdio.make({ ...base, stdin, stdout }) } satisfies Guarded
})

/** Not a notice of progress or of a change. */
const isAnswer = (text: string | Uint8Array): boolean =>
  typeof text === "string" && (text.startsWith('{"jsonrpc":"2.0","id":') || text.startsWith("["))

const encoder = new TextEncoder()
