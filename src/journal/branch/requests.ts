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

export interface Asking extends Requests {
  readonly journal: Scrivener<Entry>
  readonly pieces: (entry: FileRead, options?: RequestOptions) => Effect.Effect<Pieces.Pieces | FileFault, RequestError>
  /** Sends a content in chunks. `finish` receives the step that makes the content visible, and runs it. */
  readonly sending: <E, R, A, E2, R2>(
    write: Write,
    content: Stream.Stream<Uint8Array, E, R>,
    finish: (publish: Effect.Effect<FileWritten | FileFault, RequestError>) => Effect.Effect<A, E2, R2>,
    options?: SendOptions
  ) => Effect.Effect<A | FileFault, RequestError | E | E2, R | R2>
  readonly waiting: () => number
}

const answersTo = (tag: Single["_tag"], { _tag }: Terminal): boolean =>
  _tag === "FileFault" || kinds[tag].answers.some((answer) => answer === _tag)

const disordered = (path: string): JournalError =>
  Sending.corrupt(`the chunks that were answered for ${JSON.stringify(path)} do not follow one another`)

const invalid = (operation: string, argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: FsPath.root, argument, detail })

/** Returns the timeout as a duration, or InvalidArgument if it is shorter than a millisecond. */
export const timeoutOf = (timeout: Duration.Input, operation: string): Duration.Duration | InvalidArgument => {
  const duration = Option.getOrUndefined(Duration.fromInput(timeout))
  return duration !== undefined && Duration.toMillis(duration) >= 1
    ? duration
    : invalid(operation, "timeout", "it must be a duration of at least a millisecond")
}

export const wholeOf = (argument: string, value: number, least: number, operation: string): number | InvalidArgument =>
  Number.isSafeInteger(value) && value >= least
    ? value
    : invalid(operation, argument, `it must be a whole number of at least ${least}`)

export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  settings: Settings
): Effect.fn.Return<Asking, JournalError, Scope.Scope> {
  const waiting = yield* Waiting.make(journal)
  const patience = (options: RequestOptions | undefined): Duration.Duration | InvalidArgument =>
    options?.timeout === undefined ? settings.timeout : timeoutOf(options.timeout, "request")

  const means = { journal, waiting, extended: settings.extended }

  const joined = <A, E, R>(
    id: string,
    path: string,
    part: ((entry: Afferent) => void) | undefined,
    use: (waiter: Waiting.Waiter) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | RequestError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(waiting.join(id, path, part), (waiter) =>
        Effect.onExit(restore(use(waiter)), () => {
          waiting.leave(waiter)
          return Effect.void
        })
      )
    )

  const asked = (
    entry: Single,
    part: ((entry: Afferent) => void) | undefined,
    options: RequestOptions | undefined
  ): Effect.Effect<Terminal, RequestError> => {
    const timeout = patience(options)
    if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
    return joined(entry.correlationId, entry.path, part, (waiter) =>
      Effect.flatMap(
        Effect.flatMap(journal.append(entry), () => waiting.ended(waiter, timeout)),
        (end) => (answersTo(entry._tag, end) ? Effect.succeed(end) : Effect.fail(Sending.misfit(entry._tag, end)))
      )
    )
  }

  const pieces: Asking["pieces"] = (entry, options) =>
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
        if (isDisordered) return Effect.fail(disordered(entry.path))
        const isPartial = start > 0 || entry.length !== undefined
        return Effect.succeed({ size, totalSize: stat?.sizeBytes ?? start + size, isPartial, stat, all })
      }
      return Effect.flatMap(asked(entry, take, options), found)
    })

  const sending: Asking["sending"] = (write, content, finish, options) => {
    const timeout = patience(options)
    if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
    const chunkSize = wholeOf("chunkSize", options?.chunkSize ?? settings.chunkSize, 1, "send")
    if (chunkSize instanceof InvalidArgument) return Effect.fail(chunkSize)
    return joined(write.correlationId, write.path, undefined, (waiter) =>
      Sending.send(means, { waiter, write, content, finish, timeout, chunkSize })
    )
  }

  return {
    journal,
    pieces,
    sending,
    waiting: waiting.size,
    request: <E extends Single>(entry: E, options?: RequestOptions) =>
      asked(entry, undefined, options) as Effect.Effect<Answer<E>, RequestError>,
    stream: (entry, options) =>
      Stream.unwrap(
        Effect.flatMap(pieces(entry, options), (found) =>
          "_tag" in found ? Effect.fail(found) : Effect.succeed(Pieces.stream(journal, found))
        )
      ),
    send: (write, content, options) => sending(write, content, (publish) => publish, options),
    waitFor: (correlationId, options) => {
      const timeout = patience(options)
      if (timeout instanceof InvalidArgument) return Effect.fail(timeout)
      const isEnd = (entry: Entry): entry is Terminal => isTerminal(entry) && entry.correlationId === correlationId
      return Effect.timeoutOrElse(
        Effect.map(journal.waitFor(options?.after ?? 0, isEnd), ({ entry }) => entry),
        { duration: timeout, orElse: () => Effect.fail(Waiting.silence(correlationId, timeout)) }
      )
    }
  }
})
