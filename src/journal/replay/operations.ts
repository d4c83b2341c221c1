/** Pairs requests with their answers. The pairs are in the order of the answers. The unanswered requests follow. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { FsPath } from "../../model/FsPath.ts"
import * as FileSystemEntry from "../FileSystemEntry.ts"
import type { Content, ContentRef, Efferent, FileContentChunk, FileStarted, Terminal } from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../model.ts"
import { digestOf, isRef, streamOfParts } from "../entries/values.ts"
import type { JournalError } from "../errors.ts"
import { kindOf } from "./filter.ts"
import { normalizePath } from "./paths.ts"

export interface Operation {
  /** The position of the request. For a chunked write, the position of its first chunk. */
  readonly position: number
  readonly kind: Exclude<Efferent["_tag"], "FileWriteChunk">
  /** The request. For a chunked write, the first chunk, which has the path and the mode. */
  readonly asked: Efferent
  readonly path: FsPath
  readonly to: FsPath | undefined
  readonly parts: ReadonlyArray<Content>
  /** True if the journal contains all parts of the content. */
  readonly isWhole: boolean
  readonly started: FileStarted | undefined
  readonly chunks: ReadonlyArray<FileContentChunk>
  /** The time of the answer, or of an unanswered request, in milliseconds since 1970. */
  readonly at: number
  readonly answered?: { readonly position: number; readonly answer: Terminal }
}

interface OpenRequest {
  readonly first: Recorded<Efferent>
  readonly parts: Array<Content>
  readonly chunks: Array<FileContentChunk>
  isWhole: boolean
  started: FileStarted | undefined
}

const pathOf = (asked: Efferent): FsPath => normalizePath(asked.path ?? "")

const operationOf = ({ chunks, first, isWhole, parts, started }: OpenRequest, answer?: Recorded<Entry>): Operation => {
  const { at, entry: asked, position } = first
  const operation = {
    position,
    kind: kindOf(asked) as Operation["kind"],
    asked,
    path: pathOf(asked),
    to: asked._tag === "FileMove" ? normalizePath(asked.to) : undefined,
    parts,
    isWhole,
    started,
    chunks,
    at: answer?.at ?? at
  }
  return answer === undefined
    ? operation
    : { ...operation, answered: { position: answer.position, answer: answer.entry as Terminal } }
}

class RequestPairing {
  /** The open requests by correlation id. An id has several open requests if a caller has reused the id. */
  readonly #open = new Map<string, Array<OpenRequest>>()

  take(recorded: Recorded<Entry>): Operation | undefined {
    const { entry } = recorded
    if (FileSystemEntry.isEfferent(entry)) {
      this.#ask(recorded as Recorded<Efferent>)
      return undefined
    }
    if (!FileSystemEntry.isAfferent(entry)) return undefined
    const all = this.#open.get(entry.correlationId)
    const open = all?.[0]
    if (all === undefined || open === undefined) return undefined
    if (entry._tag === "FileStarted") open.started = entry
    if (entry._tag === "FileContentChunk") open.chunks.push(entry)
    if (!FileSystemEntry.isTerminal(entry)) return undefined
    // A fault answers the latest request with this id, because a leaf refuses a request whose id has an open request.
    const answeredRequest = entry._tag === "FileFault" ? all.pop()! : all.shift()!
    if (all.length === 0) this.#open.delete(entry.correlationId)
    return operationOf(answeredRequest, recorded)
  }

  takeUnanswered(): ReadonlyArray<Operation> {
    return [...this.#open.values()]
      .flat()
      .map((open) => operationOf(open))
      .sort((a, b) => a.position - b.position)
  }

  #ask(recorded: Recorded<Efferent>): void {
    const { entry } = recorded
    const { correlationId } = entry
    const all = this.#open.get(correlationId)
    if (entry._tag === "FileWriteChunk") {
      const open = all?.find(({ first, isWhole }) => first.entry._tag === "FileWriteChunk" && !isWhole)
      if (entry.discard === true) {
        const remainingRequests = (all ?? []).filter((other) => other !== open)
        if (remainingRequests.length === 0) this.#open.delete(correlationId)
        else this.#open.set(correlationId, remainingRequests)
        return
      }
      if (open !== undefined) {
        open.parts.push(entry.data)
        open.isWhole = entry.isFinal
        return
      }
    }
    const parts = entry._tag === "FileWrite" ? [entry.content] : entry._tag === "FileWriteChunk" ? [entry.data] : []
    const isWhole = entry._tag !== "FileWriteChunk" || entry.isFinal
    const open: OpenRequest = { first: recorded, parts, chunks: [], isWhole, started: undefined }
    if (all === undefined) this.#open.set(correlationId, [open])
    else all.push(open)
  }
}

/** Emits the operations up to the position `until`, or all stored operations. */
export const operations = (
  journal: Scrivener<Entry>,
  until = Number.POSITIVE_INFINITY
): Stream.Stream<Operation, JournalError> =>
  Stream.suspend(() => {
    const pairing = new RequestPairing()
    const entriesUpTo = Stream.takeWhile(journal.stored(), ({ position }) => position <= until)
    return Stream.concat(
      Stream.filterMap(entriesUpTo, (recorded) => Result.fromNullishOr(pairing.take(recorded), () => undefined)),
      Stream.suspend(() => Stream.fromIterable(pairing.takeUnanswered()))
    )
  })

// Extracts the fields of an answer that a replay compares. Times, permissions, ids and fields that only a recorder adds are
// omitted.

export type AnswerFields = { readonly [field: string]: unknown }

export const digestFieldsOf = (
  journal: Scrivener<Entry>,
  parts: ReadonlyArray<Content>
): Effect.Effect<{ readonly bytes: number; readonly sha256: string }, JournalError> => {
  const [only] = parts
  const digest: Effect.Effect<ContentRef, JournalError> =
    only !== undefined && parts.length === 1 && isRef(only)
      ? Effect.succeed(only)
      : digestOf(streamOfParts(journal.contents, parts))
  return Effect.map(digest, ({ sha256, size }) => ({ bytes: size, sha256 }))
}

/** Returns the fields to compare. For a content in several chunks, `chunks` contains all chunks, including `answer`. */
export const fieldsOf = (
  journal: Scrivener<Entry>,
  answer: Terminal,
  chunks: ReadonlyArray<FileContentChunk> = []
): Effect.Effect<AnswerFields, JournalError> => {
  switch (answer._tag) {
    case "FileContent":
      return Effect.map(digestFieldsOf(journal, [answer.content]), (digest) => ({ answer: "content", ...digest }))
    case "FileContentChunk":
      return Effect.map(
        digestFieldsOf(
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
