import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Stream from "effect/Stream"
import { JournalError } from "../errors.ts"
import { type FileFault, FileWriteChunk, type FileWritten, type Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import * as Chunks from "./chunks.ts"
import type { RequestError, Sending } from "./model.ts"
import type { Waiter, Waiting } from "./waiting.ts"

export const corrupt = (detail: string): JournalError => new JournalError({ operation: "request", reason: "corrupt", detail })

export const unexpectedAnswer = (tag: string, end: Terminal): JournalError =>
  corrupt(`${tag} ${JSON.stringify(end.correlationId)} has been answered by ${end._tag}`)

export interface SendContext {
  readonly journal: Scrivener<Entry>
  readonly waiting: Waiting
  readonly extended: boolean
}

export interface ChunkedSend<E, R, A, E2, R2> {
  readonly waiter: Waiter
  readonly write: Sending
  readonly content: Stream.Stream<Uint8Array, E, R>
  readonly finish: (publish: Effect.Effect<FileWritten | FileFault, RequestError>) => Effect.Effect<A, E2, R2>
  readonly timeout: Duration.Duration
  readonly chunkSize: number
}

/** The signal that the leaf has answered before the last chunk was sent. */
class EarlyAnswer {
  readonly _tag = "Early"
}

const earlyAnswer = new EarlyAnswer()
const isEarlyAnswer = (error: unknown): error is EarlyAnswer => error === earlyAnswer

const noBytes = new Uint8Array(0)

/** Returns the fields of a write without its content. Options with their default value are left out. */
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

export const send = <E, R, A, E2, R2>(
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
      end._tag === "FileFault" ? Effect.succeed(end) : Effect.fail(unexpectedAnswer("a part of a FileWriteChunk", end))
    )
    // The last chunk cannot be taken back once it is being appended.
    const publish = (rest: Uint8Array): Effect.Effect<FileWritten | FileFault, RequestError> =>
      Effect.andThen(
        Effect.catchIf(Effect.uninterruptible(appendChunk(rest, true)), isEarlyAnswer, () => Effect.void),
        awaitWritten
      )
    /**
     * Tells the leaf to drop the chunks that it has. An older leaf would take this entry for the end of the write, so it gets none; it
     * drops the chunks after its idle time.
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
      Chunks.splitIntoChunks(content, chunkSize, (chunk) => appendChunk(chunk, false)),
      (rest) => finish(publish(rest))
    )
    return Effect.onExit(
      Effect.catchIf(sendAll, isEarlyAnswer, () => awaitFault),
      (exit) => (Exit.isSuccess(exit) ? Effect.void : discard)
    )
  })
