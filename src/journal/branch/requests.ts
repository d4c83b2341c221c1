import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { InvalidArgument } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { kinds } from "../entries/kinds.ts"
import type { JournalError } from "../errors.ts"
import {
  type Afferent,
  type FileContentChunk,
  type FileFault,
  type FileRead,
  type FileWritten,
  isTerminal,
  type Terminal
} from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import type { Answer, RequestError, RequestOptions, Requests, SendOptions, Sending as Write, Single } from "./model.ts"
import * as Pieces from "./pieces.ts"
import * as Sending from "./sending.ts"
import * as Waiting from "./waiting.ts"

export interface Settings {
  readonly timeout: Duration.Duration
  readonly chunkSize: number
  readonly extended: boolean
}

export interface RequestClient extends Requests {
  readonly journal: Scrivener<Entry>
  readonly readPieces: (entry: FileRead, options?: RequestOptions) => Effect.Effect<Pieces.Pieces | FileFault, RequestError>
  /** Sends a content in chunks. `finish` receives the step that makes the content visible, and runs it. */
  readonly sendChunks: <E, R, A, E2, R2>(
    write: Write,
    content: Stream.Stream<Uint8Array, E, R>,
    finish: (publish: Effect.Effect<FileWritten | FileFault, RequestError>) => Effect.Effect<A, E2, R2>,
    options?: SendOptions
  ) => Effect.Effect<A | FileFault, RequestError | E | E2, R | R2>
  readonly waiting: () => number
}

const isAnswerTo = (tag: Single["_tag"], { _tag }: Terminal): boolean =>
  _tag === "FileFault" || kinds[tag].answers.some((answer) => answer === _tag)

const chunkOrderError = (path: string): JournalError =>
  Sending.corrupt(`the chunks that were answered for ${JSON.stringify(path)} do not follow one another`)

const invalid = (operation: string, argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: FsPath.root, argument, detail })

/** Returns the timeout as a duration, or InvalidArgument if it is shorter than a millisecond. */
export const parseTimeout = (timeout: Duration.Input, operation: string): Duration.Duration | InvalidArgument => {
  const duration = Option.getOrUndefined(Duration.fromInput(timeout))
  return duration !== undefined && Duration.toMillis(duration) >= 1
    ? duration
    : invalid(operation, "timeout", "it must be a duration of at least a millisecond")
}

export const parseWholeNumber = (
  argument: string,
  value: number,
  minimum: number,
  operation: string
): number | InvalidArgument =>
  Number.isSafeInteger(value) && value >= minimum
    ? value
    : invalid(operation, argument, `it must be a whole number of at least ${minimum}`)

export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  settings: Settings
): Effect.fn.Return<RequestClient, JournalError, Scope.Scope> {
  const waiting = yield* Waiting.make(journal)
  const timeoutFor = (options: RequestOptions | undefined): Duration.Duration | InvalidArgument =>
    options?.timeout === undefined ? settings.timeout : parseTimeout(options.timeout, "request")

  const sendContext = { journal, waiting, extended: settings.extended }

  const withWaiter = <A, E, R>(
    id: string,
    path: string,
    part: ((entry: Afferent) => void) | undefined,
    use: (waiter: Waiting.Waiter) => Effect.Effect<A, E, R>
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
        (end) => (isAnswerTo(entry._tag, end) ? Effect.succeed(end) : Effect.fail(Sending.unexpectedAnswer(entry._tag, end)))
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
        size += Pieces.sizeOf(part.data)
      }
      const found = (end: Terminal): Effect.Effect<Pieces.Pieces | FileFault, JournalError> => {
        if (end._tag === "FileFault") return Effect.succeed(end)
        if (end._tag === "FileContent") {
          const { content, isPartial, stat, totalSize } = end
          return Effect.succeed({ size: Pieces.sizeOf(content), totalSize, isPartial, stat, all: [{ offset: 0, content }] })
        }
        if (isDisordered) return Effect.fail(chunkOrderError(entry.path))
        const isPartial = start > 0 || entry.length !== undefined
        return Effect.succeed({ size, totalSize: stat?.sizeBytes ?? start + size, isPartial, stat, all })
      }
      return Effect.flatMap(askAndWait(entry, take, options), found)
    })

  const sendChunks: RequestClient["sendChunks"] = (write, content, finish, options) => {
    const timeout = timeoutFor(options)
    if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
    const chunkSize = parseWholeNumber("chunkSize", options?.chunkSize ?? settings.chunkSize, 1, "send")
    if (chunkSize instanceof InvalidArgument) return Effect.fail(chunkSize)
    return withWaiter(write.correlationId, write.path, undefined, (waiter) =>
      Sending.send(sendContext, { waiter, write, content, finish, timeout, chunkSize })
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
        { duration: timeout, orElse: () => Effect.fail(Waiting.noAnswerError(correlationId, timeout)) }
      )
    }
  }
})
