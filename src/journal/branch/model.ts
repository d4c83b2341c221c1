/** What is asked through a branch, and what each kind of entry is answered by. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { InvalidArgument, Timeout } from "../../model/FsError.ts"
import type { JournalError } from "../errors.ts"
import type {
  CreateMode,
  Efferent,
  FileAttributesSet,
  FileContent,
  FileContentChunk,
  FileDeleted,
  FileDirectoryMade,
  FileEdited,
  FileFault,
  FileLinkMade,
  FileListing,
  FileMetadata,
  FileMoved,
  FileRead,
  FileWriteChunk,
  FileWritten,
  Terminal
} from "../FileSystemEntry.ts"

/**
 * What asks by itself. Chunks are sent by `send`.
 *
 * @since 0.1.0
 */
export type Single = Exclude<Efferent, FileWriteChunk>

interface Answers {
  /** A file that is answered in chunks ends with the last of them. */
  readonly FileRead: FileContent | FileContentChunk
  readonly FileWrite: FileWritten
  readonly FileList: FileListing
  readonly FileDelete: FileDeleted
  readonly FileStat: FileMetadata
  readonly FileMakeDirectory: FileDirectoryMade
  readonly FileMove: FileMoved
  readonly FileEdit: FileEdited
  readonly FileMakeLink: FileLinkMade
  readonly FileSetAttributes: FileAttributesSet
}

/**
 * What ends the answer to an entry. A fault is an answer too.
 *
 * @since 0.1.0
 */
export type Answer<E extends Single> = Answers[E["_tag"]] | FileFault

/**
 * How long one request waits.
 *
 * @since 0.1.0
 */
export interface RequestOptions {
  /** How long nothing may be heard of it. @default that of the branch */
  readonly timeout?: Duration.Input | undefined
}

/**
 * From where in the journal an answer is waited for, and how long.
 *
 * @since 0.1.0
 */
export interface WaitOptions extends RequestOptions {
  /** The position after which it was asked. @default 0 */
  readonly after?: number | undefined
}

/**
 * How a content is sent.
 *
 * @since 0.1.0
 */
export interface SendOptions extends RequestOptions {
  /** Bytes of a chunk; only the last is shorter. @default that of the branch */
  readonly chunkSize?: number | undefined
}

/**
 * A write whose content is sent in chunks.
 *
 * @since 0.1.0
 */
export interface Sending {
  readonly correlationId: string
  readonly path: string
  /** @default "overwrite" */
  readonly createMode?: CreateMode | undefined
  /** Beyond the thirteen, as are the next two. */
  readonly ifMatch?: string | null | undefined
  /** @default true */
  readonly createParents?: boolean | undefined
  /** @default false */
  readonly version?: boolean | undefined
  /** The way in which the leaf takes links on the path; beyond the thirteen. @default as its filesystem follows them */
  readonly links?: "refuse" | "leave" | undefined
}

/**
 * Timeout: no leaf has answered. InvalidArgument `correlationId`: somebody waits for this id already; or
 * an option that can never work. JournalError: the journal cannot be
 * written or read, or what is in it is no answer to what was asked.
 *
 * @since 0.1.0
 */
export type RequestError = JournalError | Timeout | InvalidArgument

/**
 * Asking a leaf by way of the journal.
 *
 * @since 0.1.0
 */
export interface Requests {
  /**
   * Appends the entry, and answers what ends its answer. The correlation id is to be a new one (`Correlation.generate`): what has been
   * answered is not answered again, and `waitFor` finds it.
   */
  readonly request: <E extends Single>(entry: E, options?: RequestOptions) => Effect.Effect<Answer<E>, RequestError>
  /**
   * The content that is asked for, however it is answered, in constant memory. Nothing comes before the whole answer has: a fault after
   * some chunks is a failure before the first byte.
   */
  readonly stream: (entry: FileRead, options?: RequestOptions) => Stream.Stream<Uint8Array, RequestError | FileFault>
  /** Sends what the stream brings, in constant memory. Where it fails or is interrupted, nothing is written. */
  readonly send: <E, R>(
    write: Sending,
    content: Stream.Stream<Uint8Array, E, R>,
    options?: SendOptions
  ) => Effect.Effect<FileWritten | FileFault, RequestError | E, R>
  /** What ends the answer to an id that was asked before, also by another process: stored, or to come. */
  readonly waitFor: (correlationId: string, options?: WaitOptions) => Effect.Effect<Terminal, RequestError>
}
