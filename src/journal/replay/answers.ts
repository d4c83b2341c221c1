/** Extracts the fields of an answer that count in a comparison: no times, permissions, ids, or fields that only a recorder adds. */
import * as Effect from "effect/Effect"
import { isBytes } from "../../model/bytes.ts"
import { hasher } from "../../runtime/hash.ts"
import type { JournalError } from "../errors.ts"
import type { Content, FileContentChunk, Terminal } from "../FileSystemEntry.ts"
import type { Scrivener, Entry } from "../Journal.ts"
import * as Stream from "effect/Stream"

export type AnswerFields = { readonly [field: string]: unknown }

export const digestOf = (
  journal: Scrivener<Entry>,
  parts: ReadonlyArray<Content>
): Effect.Effect<{ readonly bytes: number; readonly sha256: string }, JournalError> =>
  Effect.suspend(() => {
    const [only] = parts
    if (only !== undefined && parts.length === 1 && !isBytes(only)) {
      return Effect.succeed({ bytes: only.size, sha256: only.sha256 })
    }
    const hash = hasher()
    let bytes = 0
    const take = (chunk: Uint8Array): void => {
      hash.update(chunk)
      bytes += chunk.length
    }
    const hashed = Effect.forEach(
      parts,
      (part) =>
        isBytes(part)
          ? Effect.sync(() => take(part))
          : Stream.runForEach(journal.contents.stream(part), (chunk) => Effect.sync(() => take(chunk))),
      { discard: true }
    )
    return Effect.map(hashed, () => ({ bytes, sha256: hash.digest() }))
  })

/** Returns the fields to compare. `chunks` are all chunks of a content that was answered in several, including the last. */
export const fieldsOf = (
  journal: Scrivener<Entry>,
  answer: Terminal,
  chunks: ReadonlyArray<FileContentChunk> = []
): Effect.Effect<AnswerFields, JournalError> => {
  switch (answer._tag) {
    case "FileContent":
      return Effect.map(digestOf(journal, [answer.content]), (digest) => ({ answer: "content", ...digest }))
    case "FileContentChunk":
      return Effect.map(
        digestOf(
          journal,
          chunks.map(({ data }) => data)
        ),
        (digest) => ({ answer: "content", ...digest })
      )
    case "FileWritten":
      return Effect.succeed({ answer: "written", bytes: answer.bytesWritten })
    case "FileListing":
      return Effect.succeed({
        answer: "listing",
        entries: answer.entries.map(({ kind, path }) => `${path} ${kind}`).sort()
      })
    case "FileMetadata": {
      const kind = answer.kind ?? (answer.isDirectory ? "directory" : "file")
      return Effect.succeed({ answer: "metadata", kind, ...(kind === "directory" ? {} : { bytes: answer.size }) })
    }
    case "FileDeleted":
      return Effect.succeed({ answer: "deleted", files: answer.deletedCount })
    case "FileEdited":
      return Effect.succeed({ answer: "edited", bytes: answer.bytesWritten, replacements: answer.replacements })
    case "FileFault":
      return Effect.succeed({ answer: "fault", kind: answer.error?._tag ?? answer.faultKind })
    default:
      return Effect.succeed({ answer: "done" })
  }
}
