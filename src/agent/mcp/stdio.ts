/**
 * Adapts standard input and output for a server. The server receives only whole messages, no faster than it can process them.
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { isReadonlyObject as isRecord } from "effect/Predicate"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

// Limits the pending work of a client, so that a flood of messages does not fill the memory. At the limit, the next message waits
// until there is room again. No message is refused.

export interface Flow {
  readonly hasRoom: () => boolean
  readonly awaitRoom: Effect.Effect<void>
  readonly awaitReader: Effect.Effect<void>
  readonly countMessage: (bytes: number) => void
  readonly whileCalling: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly whileWriting: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const maxConcurrentCalls = 256
const maxMessagesWhileWriting = 1024
const maxBytesWhileWriting = 64 * 1024 * 1024

export const makeFlow = (): Flow => {
  let calls = 0
  let writes = 0
  let messages = 0
  let bytes = 0
  let waiters: Array<{ readonly canResume: () => boolean; readonly resume: () => void }> = []
  const isReaderKeepingUp = () => writes === 0 || (messages <= maxMessagesWhileWriting && bytes <= maxBytesWhileWriting)
  const hasRoom = () => calls < maxConcurrentCalls && isReaderKeepingUp()
  const changed = (): void => {
    if (waiters.length === 0) return
    const resumable = new Set(waiters.filter(({ canResume }) => canResume()))
    waiters = waiters.filter((one) => !resumable.has(one))
    for (const { resume } of resumable) resume()
  }
  const waitUntil = (canResume: () => boolean): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      if (canResume()) return resume(Effect.void)
      waiters.push({ canResume, resume: () => resume(Effect.void) })
    })
  const countWhileRunning =
    (add: (n: 1 | -1) => void) =>
    <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        add(1)
        return Effect.ensuring(
          self,
          Effect.sync(() => {
            add(-1)
            changed()
          })
        )
      })
  return {
    hasRoom,
    awaitRoom: waitUntil(hasRoom),
    awaitReader: waitUntil(isReaderKeepingUp),
    countMessage: (size) => {
      messages++
      bytes += size
    },
    whileCalling: countWhileRunning((n) => {
      calls += n
    }),
    whileWriting: countWhileRunning((n) => {
      writes += n
      messages = 0
      bytes = 0
    })
  }
}

// Splits standard input into messages, one per line. A line that is too long or not a message is answered with an error and not
// passed on, because the server must survive any input.

interface Lines {
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Line>
}

export interface Message {
  readonly _tag: "Message"
  readonly text: string
  readonly bytes: number
  readonly method: string | undefined
  readonly isRequest: boolean
  readonly ids: ReadonlyArray<string | number>
  readonly cancelledId?: string | number | undefined
}

export type Line = Message | { readonly _tag: "Bad"; readonly answer: string }

/** The largest line, in bytes. In JSON an escaped character needs up to six bytes, so even a call with 8 MB of text fits. */
export const maxLineBytes = 48 * 1024 * 1024

const newlineByte = 10

type Id = string | number | null

/**
 * The deepest allowed nesting of a message. Valid messages are less deep, and recursion over a deeper message could overflow
 * the stack.
 */
const maxNestingDepth = 200

const isTooDeep = (value: unknown): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxNestingDepth) return true
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item as object) : []))
  }
  return false
}

const badLine = (code: number, message: string, id: Id = null) => ({
  _tag: "Bad" as const,
  answer: `${JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })}\n`
})

const isId = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number"

const protocolFault = (message: Readonly<Record<string, unknown>>): string | undefined => {
  const { id, jsonrpc, method, params } = message
  if (jsonrpc !== "2.0") return 'jsonrpc must be "2.0"'
  if (method === undefined) {
    return "result" in message !== "error" in message && (isId(id) || id === null) ? undefined : "the method is missing"
  }
  if (typeof method !== "string") return "method must be a string"
  if ("id" in message && !isId(id)) return "id must be a string or a number"
  if (params !== undefined && (typeof params !== "object" || params === null)) return "params must be an object"
  return undefined
}

const parse = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const idOf = (value: unknown): Id => (isRecord(value) && isId(value["id"]) ? value["id"] : null)

const requestId = (value: unknown): ReadonlyArray<string | number> =>
  isRecord(value) && typeof value["method"] === "string" && isId(value["id"]) ? [value["id"]] : []

const cancelledBy = (value: unknown): string | number | undefined => {
  if (!isRecord(value) || value["method"] !== "notifications/cancelled" || !isRecord(value["params"])) return undefined
  const id = value["params"]["requestId"]
  return isId(id) ? id : undefined
}

const lineOf = (text: string, bytes: number): Line => {
  const parsed = parse(text)
  if (parsed === undefined) return badLine(-32700, "Parse error: a line must be one JSON-RPC message")
  const { value } = parsed
  if (isTooDeep(value))
    return badLine(-32600, `Invalid Request: the message is nested deeper than ${maxNestingDepth} levels`, idOf(value))
  // The version of the protocol determines whether batches are allowed. The items of a batch are always checked here.
  const fault = Array.isArray(value)
    ? value
        .map((item: unknown) => (isRecord(item) ? protocolFault(item) : "the message is not an object"))
        .find((why) => why !== undefined)
    : isRecord(value)
      ? protocolFault(value)
      : "the message is not an object"
  if (fault !== undefined) {
    return badLine(-32600, `Invalid Request: ${fault}`, idOf(value))
  }
  const method = isRecord(value) && typeof value["method"] === "string" ? value["method"] : undefined
  const isRequest = !isRecord(value) || (method !== undefined && "id" in value)
  const ids = (Array.isArray(value) ? (value as ReadonlyArray<unknown>) : [value]).flatMap(requestId)
  return { _tag: "Message", text: `${text}\n`, bytes, method, isRequest, ids, cancelledId: cancelledBy(value) }
}

const decoder = new TextDecoder("utf-8", { fatal: true })

const decoded = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

export const make = (maxBytes: number = maxLineBytes): Lines => {
  let parts: Array<Uint8Array> = []
  let lineBytes = 0
  const addPart = (part: Uint8Array): void => {
    lineBytes += part.length
    if (lineBytes > maxBytes) parts = []
    else if (part.length > 0) parts.push(part)
  }
  const endLine = (): Line | undefined => {
    const [lineParts, bytes] = [parts, lineBytes]
    parts = []
    lineBytes = 0
    if (bytes > maxBytes) return badLine(-32600, `Invalid Request: a message has at most ${maxBytes} bytes`)
    const text = decoded(lineParts.length === 1 ? lineParts[0]! : Buffer.concat(lineParts))?.trim()
    if (text === undefined) return badLine(-32700, "Parse error: a message must be UTF-8")
    return text === "" ? undefined : lineOf(text, bytes)
  }
  return {
    push: (chunk) => {
      const lines: Array<Line> = []
      let from = 0
      for (let at = chunk.indexOf(newlineByte); at !== -1; at = chunk.indexOf(newlineByte, from)) {
        addPart(chunk.subarray(from, at))
        from = at + 1
        const line = endLine()
        if (line !== undefined) lines.push(line)
      }
      addPart(chunk.subarray(from))
      return lines
    }
  }
}

// Orders the messages to the server. Cancellations and other notifications do not wait behind requests. Otherwise a client that
// floods the server could not cancel a request.

const maxWaitingMessages = 1024

/**
 * The methods that do not wait behind other requests: the handshake comes first, and a ping tests whether the server is alive.
 */
const immediateMethods: ReadonlySet<string | undefined> = new Set(["initialize", "ping"])

const singleId = ({ ids }: Message): string | number | undefined => (ids.length === 1 ? ids[0] : undefined)

interface TurnsOptions {
  readonly flow: Flow
  readonly forward: (text: string) => Effect.Effect<void>
  /** Runs for a request that is cancelled while it waits. The request is not passed on. */
  readonly onDropped: (message: Message) => Effect.Effect<void>
  /** Runs after a cancellation has been passed on. */
  readonly onCancelled: (id: string | number) => Effect.Effect<void>
}

const makeTurns = Effect.fnUntraced(function* ({ flow, forward, onCancelled, onDropped }: TurnsOptions) {
  const waiting = yield* Queue.bounded<Message>(maxWaitingMessages)
  let waitingCount = 0
  const ids = new Set<string | number>()
  const cancelledIds = new Set<string | number>()
  const forwardNow = (message: Message): Effect.Effect<void> => {
    flow.countMessage(message.bytes)
    return forward(message.text)
  }
  const take = (message: Message): Effect.Effect<void> => {
    const { cancelledId: cancels, isRequest, method } = message
    if (!isRequest || immediateMethods.has(method)) {
      if (cancels !== undefined && ids.has(cancels)) {
        cancelledIds.add(cancels)
        return Effect.void
      }
      const forwarded = Effect.andThen(flow.awaitReader, forwardNow(message))
      return cancels === undefined ? forwarded : Effect.andThen(forwarded, onCancelled(cancels))
    }
    if (waitingCount === 0 && flow.hasRoom()) return forwardNow(message)
    const id = singleId(message)
    if (id !== undefined) ids.add(id)
    waitingCount++
    return Effect.asVoid(Queue.offer(waiting, message))
  }
  const pass = Effect.gen(function* () {
    const message = yield* Queue.take(waiting)
    yield* flow.awaitRoom
    const id = singleId(message)
    if (id !== undefined) ids.delete(id)
    if (id !== undefined && cancelledIds.delete(id)) yield* onDropped(message)
    else yield* forwardNow(message)
    waitingCount--
  }).pipe(Effect.forever)
  return { take, pass }
})

export interface Pipe {
  readonly input: Stream.Stream<Uint8Array, unknown>
  readonly write: (text: string | Uint8Array) => Effect.Effect<void, unknown>
}

export const pipeOf = (stdio: Stdio.Stdio): Pipe => ({
  input: stdio.stdin,
  write: (text) => Stream.run(Stream.succeed(text), stdio.stdout())
})

interface GuardOptions {
  readonly flow: Flow
  /** Inspects each message before it is queued. Returns true if the message must not be passed on. */
  readonly takes: (message: Message) => boolean
  readonly onMethod: (method: string) => Effect.Effect<void>
  readonly ready: Effect.Effect<void>
}

interface GuardedStdio {
  readonly stdio: Stdio.Stdio
  readonly answered: Effect.Effect<void>
  readonly gone: Effect.Effect<void>
}

const inputEndGracePeriod = "1 second"

/**
 * The limits on the input that is read while earlier messages wait. Reading must go on, because the client's answer to a request
 * of the server may come after the waiting messages.
 */
const readAheadLimits = { lines: 1024, bytes: 64 * 1024 * 1024 }

const makeReadAhead = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<Line, Cause.Done>()
  const roomLatch = yield* Latch.make(true)
  let bytes = 0
  const sizeOf = (line: Line): number => (line._tag === "Message" ? line.bytes : 0)
  const isFull = (): boolean => Queue.sizeUnsafe(queue) > readAheadLimits.lines || bytes > readAheadLimits.bytes
  return {
    add: (line: Line) =>
      Effect.suspend(() => {
        Queue.offerUnsafe(queue, line)
        bytes += sizeOf(line)
        if (isFull()) roomLatch.closeUnsafe()
        return roomLatch.await
      }),
    end: Effect.asVoid(Queue.end(queue)),
    each: (work: (line: Line) => Effect.Effect<void>) =>
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
  const lines = make()
  const open = { requests: 0, ended: false }
  /**
   * The ids of running requests. A second request with a running id is refused, because the answers would be indistinguishable.
   */
  const runningIds = new Set<unknown>()
  /**
   * The ids of running requests that arrived in batches. The refusal of a batch contains no ids, so it frees all these ids.
   */
  const batchedIds = new Set<unknown>()
  const disconnectIfDone = Effect.suspend(() => (open.ended && open.requests <= 0 ? disconnect : Effect.void))
  /**
   * The ids of running requests that were cancelled. The server does not answer a cancelled request, except one that ends just
   * before its cancellation arrives. Cancelled requests therefore no longer count as open.
   */
  const cancelledIds = new Set<unknown>()
  /** Records that a request or a batch is done, and frees its ids. */
  const closeRequest = (ids: ReadonlyArray<unknown>): void => {
    if (!ids.some((id) => cancelledIds.delete(id))) open.requests--
    for (const id of ids) {
      runningIds.delete(id)
      batchedIds.delete(id)
    }
  }
  const serverInput = yield* Queue.unbounded<Uint8Array>()
  const turns = yield* makeTurns({
    flow,
    forward: (text) => Effect.asVoid(Queue.offer(serverInput, encoder.encode(text))),
    onDropped: ({ ids }) =>
      Effect.suspend(() => {
        closeRequest(ids)
        return disconnectIfDone
      }),
    onCancelled: (id) =>
      Effect.sync(() => {
        // A batch is answered even if some of its requests are cancelled.
        if (!runningIds.has(id) || batchedIds.has(id) || cancelledIds.has(id)) return
        cancelledIds.add(id)
        open.requests--
      })
  })
  yield* Effect.forkScoped(turns.pass)
  /** Writes a message. After a failed write the server disconnects, because the client no longer reads. */
  const write = (text: string | Uint8Array) => Effect.catchCause(flow.whileWriting(ends.write(text)), () => disconnect)
  const answer = (text: string | Uint8Array) =>
    Effect.suspend(() => {
      const answered = answerIds(text)
      if (answered === undefined) return write(text)
      closeRequest(answered.includes(null) ? [...answered, ...batchedIds] : answered)
      const writeAnswer = Effect.andThen(write(text), Deferred.succeed(firstAnswer, undefined))
      return Effect.andThen(writeAnswer, disconnectIfDone)
    })
  const isDuplicate = (message: Message): boolean =>
    new Set(message.ids).size < message.ids.length || message.ids.some((id) => runningIds.has(id))
  const passed = Effect.fnUntraced(function* (line: Line) {
    if (line._tag === "Bad") return yield* write(line.answer)
    if (line.method !== "initialize") yield* ready
    if (isDuplicate(line)) {
      const refusal = badLine(
        -32600,
        "Invalid Request: another request has this id, in the same batch or still running",
        line.ids[0]
      )
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
      // This stream does not end with the client's input. The server first answers open requests, and is then interrupted.
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
