import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import { hasher, sha256 } from "../../runtime/hash.ts"
import { sizeOf } from "../entries/contents.ts"
import type { JournalError } from "../errors.ts"
import type { Content } from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../Journal.ts"
import type { IncomingContent, Transfer } from "./model.ts"

const streamOf = (journal: Scrivener<Entry>, content: Content): Stream.Stream<Uint8Array, JournalError> =>
  isBytes(content) ? Stream.succeed(content) : journal.contents.stream(content)

export const fromContent = (journal: Scrivener<Entry>, content: Content): IncomingContent => ({
  size: sizeOf(content),
  stream: streamOf(journal, content),
  bytes: isBytes(content) ? Effect.succeed(content) : journal.bytes(content),
  sha256: isBytes(content) ? Effect.sync(() => sha256(content)) : Effect.succeed(content.sha256)
})

export const digestOf = <E>(stream: Stream.Stream<Uint8Array, E>): Effect.Effect<string, E> =>
  Effect.suspend(() => {
    const hash = hasher()
    return Effect.map(
      Stream.runForEachArray(stream, (chunks) => Effect.sync(() => chunks.forEach(hash.update))),
      hash.digest
    )
  })

const readAll = (stream: Stream.Stream<Uint8Array, JournalError>, size: number): Effect.Effect<Uint8Array, JournalError> =>
  Effect.suspend(() => {
    const out = new Uint8Array(size)
    let at = 0
    const put = (chunk: Uint8Array): void => {
      out.set(chunk, at)
      at += chunk.length
    }
    return Effect.as(
      Stream.runForEachArray(stream, (chunks) => Effect.sync(() => chunks.forEach(put))),
      out
    )
  })

export const fromTransfer = (
  journal: Scrivener<Entry>,
  { first, nextOffset: size, position }: Transfer,
  last: number
): IncomingContent => {
  const isPart = ({ entry }: Recorded<Entry>): boolean =>
    entry._tag === "FileWriteChunk" && entry.correlationId === first.correlationId
  const between = Stream.takeWhile(journal.stored(position - 1), (recorded) => recorded.position <= last)
  const stream = Stream.flatMap(Stream.filter(between, isPart), ({ entry }) =>
    entry._tag === "FileWriteChunk" ? streamOf(journal, entry.data) : Stream.empty
  )
  return { size, stream, bytes: readAll(stream, size), sha256: digestOf(stream) }
}
