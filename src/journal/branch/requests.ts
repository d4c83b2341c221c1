import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { InvalidArgument, Timeout } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import {
  type Afferent,
  type FileContentChunk,
  type FileFault,
  type FileRead,
  FileWriteChunk,
  type FileWritten,
  isAfferent,
  isTerminal,
  type Terminal
} from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { kinds } from "../entries/kinds.ts"
import { sizeOf } from "../entries/values.ts"
import { JournalError } from "../errors.ts"
import type { Answer, RequestError, RequestOptions, Requests, Sending, SendOptions, Single } from "./model.ts"
import * as Pieces from "./answers.ts"

/**
 * Passes full chunks of `size` bytes to `put`, and returns the last chunk. The last chunk may be shorter, and is empty only if
 * the stream is empty. One chunk is kept in memory. `put` must not use the array after its effect ends.
 */
const splitIntoChunks = <E, R, E2, R2>(
  content: Stream.Stream<Uint8Array, E, R>,
  size: number,
  put: (chunk: Uint8Array) => Effect.Effect<unknown, E2, R2>
): Effect.Effect<Uint8Array, E | E2, R | R2> =>
  Effect.suspend(() => {
    const buffer = new Uint8Array(size)
    let length = 0
    const take = (arrays: ReadonlyArray<Uint8Array>, index: number, from: number): Effect.Effect<void, E2, R2> =>
      Effect.suspend(() => {
        for (let i = index, at = from; i < arrays.length; i++, at = 0) {
          const bytes = arrays[i]!
          while (at < bytes.length) {
            if (length === size) {
              length = 0
              const resumeOffset = at
              return Effect.flatMap(put(buffer), () => take(arrays, i, resumeOffset))
            }
            const copiedBytes = Math.min(size - length, bytes.length - at)
            buffer.set(bytes.subarray(at, at + copiedBytes), length)
            length += copiedBytes
            at += copiedBytes
          }
        }
        return Effect.void
      })
    return Effect.map(
      Stream.runForEachArray(content, (arrays) => take(arrays, 0, 0)),
      () => buffer.subarray(0, length)
    )
  })

const corrupt = (detail: string): JournalError => new JournalError({ operation: "request", reason: "corrupt", detail })

const unexpectedAnswer = (tag: string, end: Terminal): JournalError =>
  corrupt(`the answer to the ${tag} with the id ${JSON.stringify(end.correlationId)} is an unexpected ${end._tag}`)

interface SendContext {
  readonly journal: Scrivener<Entry>
  readonly waiting: Waiting
  readonly extended: boolean
}

interface ChunkedSend<E, R, A, E2, R2> {
  readonly waiter: Waiter
  readonly write: Sending
  readonly content: Stream.Stream<Uint8Array, E, R>
  readonly finish: (publish: Effect.Effect<FileWritten | FileFault, RequestError>) => Effect.Effect<A, E2, R2>
  readonly timeout: Duration.Duration
  readonly chunkSize: number
}

class EarlyAnswer {
  readonly _tag = "Early"
}

const earlyAnswer = new EarlyAnswer()
const isEarlyAnswer = (error: unknown): error is EarlyAnswer => error === earlyAnswer

const noBytes = new Uint8Array(0)

export const firstChunkFields = ({
  createMode = "overwrite",
  createParents,
  ifMatch,
  links,
  path,
  version
}: Omit<Sending, "correlationId">) => ({
  path,
  createMode,
  ...(ifMatch !== undefined && { ifMatch }),
  ...(createParents === false && { createParents }),
  ...(version === true && { version }),
  ...(links !== undefined && { links })
})

const send = <E, R, A, E2, R2>(
  { extended, journal, waiting }: SendContext,
  { chunkSize, content, finish, timeout, waiter, write }: ChunkedSend<E, R, A, E2, R2>
): Effect.Effect<A | FileFault, RequestError | E | E2, R | R2> =>
  Effect.suspend(() => {
    const { correlationId } = write
    let sentBytes = 0
    let hasBegun = false
    let isComplete = false
    const appendChunk = (data: Uint8Array, isFinal: boolean): Effect.Effect<number, JournalError | EarlyAnswer> =>
      Effect.suspend((): Effect.Effect<number, JournalError | EarlyAnswer> => {
        if (waiter.end !== undefined) return Effect.fail(earlyAnswer)
        const head = hasBegun ? undefined : firstChunkFields(write)
        const offset = sentBytes
        hasBegun = true
        isComplete = isFinal
        sentBytes += data.length
        return journal.append(new FileWriteChunk({ correlationId, offset, data, isFinal, ...head }))
      })
    const awaitAnswer = waiting.awaitEnd(waiter, timeout)
    const awaitWritten = Effect.flatMap(awaitAnswer, (end): Effect.Effect<FileWritten | FileFault, JournalError> =>
      end._tag === "FileWritten" || end._tag === "FileFault"
        ? Effect.succeed(end)
        : Effect.fail(unexpectedAnswer("FileWriteChunk", end))
    )
    const awaitFault = Effect.flatMap(awaitAnswer, (end): Effect.Effect<FileFault, JournalError> =>
      end._tag === "FileFault" ? Effect.succeed(end) : Effect.fail(unexpectedAnswer("FileWriteChunk", end))
    )
    // The append is uninterruptible, because the last chunk cannot be discarded after its append has begun.
    const publish = (rest: Uint8Array): Effect.Effect<FileWritten | FileFault, RequestError> =>
      Effect.andThen(
        Effect.catchIf(Effect.uninterruptible(appendChunk(rest, true)), isEarlyAnswer, () => Effect.void),
        awaitWritten
      )
    /**
     * Tells an extended leaf to drop the chunks so far. Sends nothing to any other leaf, which would take the entry for the
     * end of the write. Such a leaf drops the chunks when the next chunk does not arrive in time.
     */
    const discard = Effect.suspend(() =>
      extended && hasBegun && !isComplete && waiter.end === undefined
        ? Effect.ignore(
            journal.append(
              new FileWriteChunk({ correlationId, offset: sentBytes, data: noBytes, isFinal: true, discard: true })
            )
          )
        : Effect.void
    )
    const sendAll = Effect.flatMap(
      splitIntoChunks(content, chunkSize, (chunk) => appendChunk(chunk, false)),
      (rest) => finish(publish(rest))
    )
    return Effect.onExit(
      Effect.catchIf(sendAll, isEarlyAnswer, () => awaitFault),
      (exit) => (Exit.isSuccess(exit) ? Effect.void : discard)
    )
  })

// Waits for answers. All requests share one tail of the journal, which delivers each answer by its correlation id. One fiber
// watches all timeouts, because one timer for each request would be expensive.

type RequestExit = Exit.Exit<Terminal, JournalError | Timeout>

interface Waiter {
  readonly id: string
  readonly path: string
  /** Receives every entry of the answer, including the last one. */
  readonly onChunk: ((entry: Afferent) => void) | undefined
  /** True if an entry has arrived for the request since its deadline was set. */
  hasProgress: boolean
  /** The longest time without any entry for the request, in milliseconds. */
  timeout: number
  /** The deadline in milliseconds since 1970, set when the wait begins. */
  deadline: number
  end: RequestExit | undefined
  resume: ((end: RequestExit) => void) | undefined
}

interface Waiting {
  /**
   * Registers a waiter for the correlation id. The waiter receives all later entries with this id. Fails if the id already has
   * a waiter, or if the scope has closed.
   */
  readonly register: (
    id: string,
    path: string,
    onChunk: ((entry: Afferent) => void) | undefined
  ) => Effect.Effect<Waiter, JournalError | InvalidArgument>
  /** Waits for the end of the answer. Each entry of the answer extends the wait. */
  readonly awaitEnd: (waiter: Waiter, timeout: Duration.Duration) => Effect.Effect<Terminal, JournalError | Timeout>
  readonly unregister: (waiter: Waiter) => void
  readonly size: () => number
}

const closedError = new JournalError({ operation: "Branch", reason: "closed", detail: "the scope of the branch has closed" })

const noAnswerError = (path: string, timeout: Duration.Duration): Timeout =>
  new Timeout({
    operation: "request",
    path,
    detail: `no leaf has answered within ${Duration.format(timeout)}; check that a leaf serves the journal`
  })

const duplicateIdError = (path: string): InvalidArgument => {
  const detail = "another caller is waiting for the answer to this correlation id; give each request a new id"
  return new InvalidArgument({ operation: "request", path, argument: "correlationId", detail })
}

const reason = (cause: Cause.Cause<JournalError>): JournalError =>
  Option.getOrElse(Cause.findErrorOption(cause), () =>
    Cause.hasInterruptsOnly(cause)
      ? closedError
      : new JournalError({ operation: "Branch", reason: "io", detail: Cause.pretty(cause) })
  )

const noDeadline = Number.POSITIVE_INFINITY

/** Delivers answers until the scope ends. Ignores answers that are already in the journal. */
const makeWaitingList = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>
): Effect.fn.Return<Waiting, JournalError, Scope.Scope> {
  const scope = yield* Effect.scope
  const waiters = new Map<string, Waiter>()
  let lastPosition = yield* journal.last
  let isTailing = false
  let isClosed = false

  const finish = (waiter: Waiter, end: RequestExit): void => {
    waiters.delete(waiter.id)
    waiter.end = end
    waiter.resume?.(end)
  }
  /** Fails all waiters. Copies the list first, because a resumed waiter may immediately register again. */
  const finishAll = (error: JournalError): void => {
    const all = [...waiters.values()]
    for (const waiter of all) finish(waiter, Exit.fail(error))
  }
  const deliver = (entry: Entry): void => {
    if (waiters.size === 0 || !("correlationId" in entry)) return
    const waiter = waiters.get(entry.correlationId)
    if (waiter === undefined || !isAfferent(entry)) return
    waiter.hasProgress = true
    waiter.onChunk?.(entry)
    if (isTerminal(entry)) finish(waiter, Exit.succeed(entry))
  }
  /** Tails the journal. When the tail ends, all waiters fail. The next request starts a new tail. */
  const tail = Effect.suspend(() =>
    Effect.onExit(
      Stream.runForEachArray(journal.tail(lastPosition), (recorded) =>
        Effect.sync(() => {
          for (const { entry, position } of recorded) {
            lastPosition = position
            deliver(entry)
          }
        })
      ),
      (exit) =>
        Effect.sync(() => {
          isTailing = false
          finishAll(Exit.isFailure(exit) ? reason(exit.cause) : closedError)
        })
    )
  )
  const startTail = Effect.suspend(() => {
    isTailing = true
    return Effect.forkIn(Effect.exit(tail), scope, { startImmediately: true })
  })

  let watcher: Fiber.Fiber<void> | undefined
  /** The time of the next check of deadlines, in milliseconds since 1970. */
  let nextCheckAt = noDeadline
  const checkDeadlines = (now: number): void => {
    const expired: Array<Waiter> = []
    nextCheckAt = noDeadline
    for (const waiter of waiters.values()) {
      if (waiter.deadline <= now && !waiter.hasProgress) {
        expired.push(waiter)
        continue
      }
      if (waiter.deadline <= now) {
        waiter.hasProgress = false
        waiter.deadline = now + waiter.timeout
      }
      nextCheckAt = Math.min(nextCheckAt, waiter.deadline)
    }
    for (const waiter of expired) finish(waiter, Exit.fail(noAnswerError(waiter.path, Duration.millis(waiter.timeout))))
  }
  const watchDeadlines = (clock: Clock.Clock): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (nextCheckAt === noDeadline) {
        watcher = undefined
        return Effect.void
      }
      return Effect.flatMap(Effect.sleep(Math.max(0, nextCheckAt - clock.currentTimeMillisUnsafe())), () => {
        checkDeadlines(clock.currentTimeMillisUnsafe())
        return watchDeadlines(clock)
      })
    })
  /**
   * Ensures that the deadlines are checked no later than `deadline`. The effect is uninterruptible, because other waiters need
   * the check too.
   */
  const ensureWatcher = (clock: Clock.Clock, deadline: number): Effect.Effect<unknown> =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (watcher !== undefined && nextCheckAt <= deadline) return Effect.void
        watcher?.interruptUnsafe()
        nextCheckAt = Math.min(nextCheckAt, deadline)
        return Effect.map(Effect.forkIn(watchDeadlines(clock), scope), (fiber) => {
          watcher = fiber
        })
      })
    )

  const waitForEnd = (waiter: Waiter): Effect.Effect<Terminal, JournalError | Timeout> =>
    Effect.callback((resume) => {
      if (waiter.end !== undefined) return resume(waiter.end)
      waiter.resume = resume
      return Effect.sync(() => {
        waiter.resume = undefined
      })
    })

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      finishAll(closedError)
    })
  )
  yield* startTail

  return {
    register: (id, path, onChunk) =>
      Effect.suspend((): Effect.Effect<Waiter, JournalError | InvalidArgument> => {
        if (isClosed) return Effect.fail(closedError)
        if (waiters.has(id)) return Effect.fail(duplicateIdError(path))
        const waiter: Waiter = {
          id,
          path,
          onChunk,
          hasProgress: false,
          timeout: noDeadline,
          deadline: noDeadline,
          end: undefined,
          resume: undefined
        }
        waiters.set(id, waiter)
        return isTailing ? Effect.succeed(waiter) : Effect.as(startTail, waiter)
      }),
    awaitEnd: (waiter, timeout) =>
      Effect.withFiber((fiber) => {
        if (waiter.end !== undefined) return waiter.end
        const clock = fiber.getRef(Clock.Clock)
        waiter.hasProgress = false
        waiter.timeout = Duration.toMillis(timeout)
        waiter.deadline = clock.currentTimeMillisUnsafe() + waiter.timeout
        return waiter.deadline < nextCheckAt || watcher === undefined
          ? Effect.andThen(ensureWatcher(clock, waiter.deadline), waitForEnd(waiter))
          : waitForEnd(waiter)
      }),
    unregister: (waiter) => {
      if (waiters.get(waiter.id) === waiter) waiters.delete(waiter.id)
    },
    size: () => waiters.size
  }
})

export interface Settings {
  readonly timeout: Duration.Duration
  readonly chunkSize: number
  readonly extended: boolean
}

export interface RequestClient extends Requests {
  readonly journal: Scrivener<Entry>
  readonly readPieces: (entry: FileRead, options?: RequestOptions) => Effect.Effect<Pieces.Pieces | FileFault, RequestError>
  /** Sends a content in chunks. Passes the step that makes the content visible to `finish`, which must run the step. */
  readonly sendChunks: <E, R, A, E2, R2>(
    write: Sending,
    content: Stream.Stream<Uint8Array, E, R>,
    finish: (publish: Effect.Effect<FileWritten | FileFault, RequestError>) => Effect.Effect<A, E2, R2>,
    options?: SendOptions
  ) => Effect.Effect<A | FileFault, RequestError | E | E2, R | R2>
  readonly waiting: () => number
}

const isAnswerTo = (tag: Single["_tag"], { _tag }: Terminal): boolean =>
  _tag === "FileFault" || kinds[tag].answers.some((answer) => answer === _tag)

const chunkOrderError = (path: string): JournalError =>
  corrupt(`the chunks of the file ${JSON.stringify(path)} in the answer are not in order`)

const invalid = (operation: string, argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: FsPath.root, argument, detail })

export const parseTimeout = (timeout: Duration.Input, operation: string): Duration.Duration | InvalidArgument => {
  const duration = Option.getOrUndefined(Duration.fromInput(timeout))
  return duration !== undefined && Duration.toMillis(duration) >= 1
    ? duration
    : invalid(operation, "timeout", "the timeout must be a duration of at least 1 millisecond")
}

export const parseWholeNumber = (
  argument: string,
  value: number,
  minimum: number,
  operation: string
): number | InvalidArgument =>
  Number.isSafeInteger(value) && value >= minimum
    ? value
    : invalid(operation, argument, `${argument} must be a whole number of at least ${minimum}`)

export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  settings: Settings
): Effect.fn.Return<RequestClient, JournalError, Scope.Scope> {
  const waiting = yield* makeWaitingList(journal)
  const timeoutFor = (options: RequestOptions | undefined): Duration.Duration | InvalidArgument =>
    options?.timeout === undefined ? settings.timeout : parseTimeout(options.timeout, "request")

  const sendContext = { journal, waiting, extended: settings.extended }

  const withWaiter = <A, E, R>(
    id: string,
    path: string,
    part: ((entry: Afferent) => void) | undefined,
    use: (waiter: Waiter) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | RequestError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(waiting.register(id, path, part), (waiter) =>
        Effect.onExit(restore(use(waiter)), () => {
          waiting.unregister(waiter)
          return Effect.void
        })
      )
    )

  const askAndWait = (
    entry: Single,
    part: ((entry: Afferent) => void) | undefined,
    options: RequestOptions | undefined
  ): Effect.Effect<Terminal, RequestError> => {
    const timeout = timeoutFor(options)
    if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
    return withWaiter(entry.correlationId, entry.path, part, (waiter) =>
      Effect.flatMap(
        Effect.flatMap(journal.append(entry), () => waiting.awaitEnd(waiter, timeout)),
        (end) => (isAnswerTo(entry._tag, end) ? Effect.succeed(end) : Effect.fail(unexpectedAnswer(entry._tag, end)))
      )
    )
  }

  const readPieces: RequestClient["readPieces"] = (entry, options) =>
    Effect.suspend(() => {
      const all: Array<Pieces.Piece> = []
      const start = entry.offset ?? 0
      let stat: FileContentChunk["stat"]
      let size = 0
      let isDisordered = false
      const take = (part: Afferent): void => {
        if (part._tag !== "FileContentChunk") return
        if (part.offset !== start + size) isDisordered = true
        stat ??= part.stat
        all.push({ offset: size, content: part.data })
        size += sizeOf(part.data)
      }
      const found = (end: Terminal): Effect.Effect<Pieces.Pieces | FileFault, JournalError> => {
        if (end._tag === "FileFault") return Effect.succeed(end)
        if (end._tag === "FileContent") {
          const { content, isPartial, stat } = end
          return Effect.succeed({ size: sizeOf(content), isPartial, stat, all: [{ offset: 0, content }] })
        }
        if (isDisordered) return Effect.fail(chunkOrderError(entry.path))
        const isPartial = start > 0 || entry.length !== undefined
        return Effect.succeed({ size, isPartial, stat, all })
      }
      return Effect.flatMap(askAndWait(entry, take, options), found)
    })

  const sendChunks: RequestClient["sendChunks"] = (write, content, finish, options) => {
    const timeout = timeoutFor(options)
    if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
    const chunkSize = parseWholeNumber("chunkSize", options?.chunkSize ?? settings.chunkSize, 1, "send")
    if (chunkSize instanceof InvalidArgument) return Effect.fail(chunkSize)
    return withWaiter(write.correlationId, write.path, undefined, (waiter) =>
      send(sendContext, { waiter, write, content, finish, timeout, chunkSize })
    )
  }

  return {
    journal,
    readPieces,
    sendChunks,
    waiting: waiting.size,
    request: <E extends Single>(entry: E, options?: RequestOptions) =>
      askAndWait(entry, undefined, options) as Effect.Effect<Answer<E>, RequestError>,
    stream: (entry, options) =>
      Stream.unwrap(
        Effect.flatMap(readPieces(entry, options), (found) =>
          "_tag" in found ? Effect.fail(found) : Effect.succeed(Pieces.streamPieces(journal, found))
        )
      ),
    send: (write, content, options) => sendChunks(write, content, (publish) => publish, options),
    waitFor: (correlationId, options) => {
      const timeout = timeoutFor(options)
      if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
      const isEnd = (entry: Entry): entry is Terminal => isTerminal(entry) && entry.correlationId === correlationId
      return Effect.timeoutOrElse(
        Effect.map(journal.waitFor(options?.after ?? 0, isEnd), ({ entry }) => entry),
        { duration: timeout, orElse: () => Effect.fail(noAnswerError(correlationId, timeout)) }
      )
    }
  }
})
