/** Adapts standard input and output for a server: only whole messages come in, at the speed of the work on them. */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { Flow } from "./flow.ts"
import * as Lines from "./lines.ts"
import * as Turns from "./turns.ts"

type Message = Extract<Lines.Line, { readonly _tag: "Message" }>

export interface Pipe {
  readonly input: Stream.Stream<Uint8Array, unknown>
  readonly write: (text: string | Uint8Array) => Effect.Effect<void, unknown>
}

export const pipeOf = (stdio: Stdio.Stdio): Pipe => ({
  input: stdio.stdin,
  write: (text) => Stream.run(Stream.succeed(text), stdio.stdout())
})

export interface GuardOptions {
  readonly flow: Flow
  /** Inspects every message before anything waits; a message that it takes is not passed on. */
  readonly takes: (message: Message) => boolean
  readonly onMethod: (method: string) => Effect.Effect<void>
  /** Completes when messages after the greeting may proceed. */
  readonly ready: Effect.Effect<void>
}

export interface GuardedStdio {
  readonly stdio: Stdio.Stdio
  readonly answered: Effect.Effect<void>
  /** Completes when no more requests can come in, or no more answers go out. */
  readonly gone: Effect.Effect<void>
}

/** The time to finish requests after the input ends, as in a pipeline. */
const inputEndGracePeriod = "1 second"

/** The amount of input to read ahead of waiting messages, so that answers to our own questions are found behind them. */
const readAheadLimits = { lines: 1024, bytes: 64 * 1024 * 1024 }

/** Makes the queue of lines from the client to the server, in order. Adding a line waits while the queue is full. */
const makeReadAhead = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<Lines.Line, Cause.Done>()
  const roomLatch = yield* Latch.make(true)
  let bytes = 0
  const sizeOf = (line: Lines.Line): number => (line._tag === "Message" ? line.bytes : 0)
  const isFull = (): boolean => Queue.sizeUnsafe(queue) > readAheadLimits.lines || bytes > readAheadLimits.bytes
  return {
    add: (line: Lines.Line) =>
      Effect.suspend(() => {
        Queue.offerUnsafe(queue, line)
        bytes += sizeOf(line)
        if (isFull()) roomLatch.closeUnsafe()
        return roomLatch.await
      }),
    end: Effect.asVoid(Queue.end(queue)),
    each: (work: (line: Lines.Line) => Effect.Effect<void>) =>
      Stream.runForEach(Stream.fromQueue(queue), (line) => {
        bytes -= sizeOf(line)
        if (!isFull()) roomLatch.openUnsafe()
        return work(line)
      })
  }
})

export const guard = Effect.fnUntraced(function* (
  ends: Pipe,
  { flow, onMethod, ready, takes }: GuardOptions
): Effect.fn.Return<GuardedStdio, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const [gone, firstAnswer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const disconnect = Effect.asVoid(Deferred.succeed(gone, undefined))
  const lines = Lines.make()
  const open = { requests: 0, ended: false }
  /** The ids of requests that are running. A second request with the same id would be taken for the first. */
  const runningIds = new Set<unknown>()
  /** The ids of requests in batches. If batches are refused, the answer has no ids. */
  const batchedIds = new Set<unknown>()
  const serverInput = yield* Queue.unbounded<Uint8Array>()
  const turns = yield* Turns.make(flow, (text) => Effect.asVoid(Queue.offer(serverInput, encoder.encode(text))))
  yield* Effect.forkScoped(turns.pass)
  const disconnectIfDone = Effect.suspend(() => (open.ended && open.requests <= 0 ? disconnect : Effect.void))
  /** Writes an answer. A failed write is not retried, because the client no longer reads. */
  const write = (text: string | Uint8Array) => Effect.catchCause(flow.whileWriting(ends.write(text)), () => disconnect)
  const answer = (text: string | Uint8Array) =>
    Effect.suspend(() => {
      const answered = answerIds(text)
      if (answered === undefined) return write(text)
      open.requests--
      for (const id of answered.includes(null) ? [...answered, ...batchedIds] : answered) {
        runningIds.delete(id)
        batchedIds.delete(id)
      }
      const writeAnswer = Effect.andThen(write(text), Deferred.succeed(firstAnswer, undefined))
      return Effect.andThen(writeAnswer, disconnectIfDone)
    })
  const isDuplicate = (message: Message): boolean =>
    new Set(message.ids).size < message.ids.length || message.ids.some((id) => runningIds.has(id))
  const passed = Effect.fnUntraced(function* (line: Lines.Line) {
    if (line._tag === "Bad") return yield* write(line.answer)
    // Everything but the greeting waits until the server is ready.
    if (line.method !== "initialize") yield* ready
    if (isDuplicate(line)) {
      const refusal = Lines.badLine(-32600, "Invalid Request: a request with this id is still running", line.ids[0])
      return yield* write(refusal.answer)
    }
    if (line.isRequest) open.requests++
    for (const id of line.ids) runningIds.add(id)
    if (line.isRequest && line.method === undefined) for (const id of line.ids) batchedIds.add(id)
    if (line.method !== undefined) yield* onMethod(line.method)
    yield* turns.take(line)
  })
  const ahead = yield* makeReadAhead
  const read = Effect.fnUntraced(function* (chunk: Uint8Array) {
    for (const line of lines.push(chunk)) if (line._tag === "Bad" || !takes(line)) yield* ahead.add(line)
  })
  const ended = Effect.suspend(() => {
    open.ended = true
    const disconnectLater = Effect.andThen(Effect.sleep(inputEndGracePeriod), disconnect)
    return Effect.andThen(disconnectIfDone, Effect.forkIn(disconnectLater, scope))
  })
  yield* Effect.forkScoped(Stream.runForEach(ends.input, read).pipe(Effect.ignoreCause, Effect.andThen(ahead.end)))
  yield* Effect.forkScoped(Effect.andThen(ahead.each(passed), ended))
  return {
    answered: Deferred.await(firstAnswer),
    gone: Deferred.await(gone),
    stdio: Stdio.make({
      args: Effect.succeed([]),
      // The input never ends: outstanding requests are answered, and then the server is interrupted.
      stdin: Stream.fromQueue(serverInput),
      stdout: () => Sink.forEach(answer),
      stderr: () => Sink.drain
    })
  }
})

const answerStart = /^\{"jsonrpc":"2\.0","id":(-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|null)[,}]/

const answerIds = (text: string | Uint8Array): ReadonlyArray<unknown> | undefined => {
  if (typeof text !== "string") return undefined
  if (text.startsWith("[")) return (JSON.parse(text) as ReadonlyArray<{ readonly id?: unknown }>).map(({ id }) => id)
  const [, id] = answerStart.exec(text) ?? []
  return id === undefined ? undefined : [JSON.parse(id) as unknown]
}

const encoder = new TextEncoder()
