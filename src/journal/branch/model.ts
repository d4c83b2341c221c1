import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { InvalidArgument, Timeout } from "../../model/FsError.ts"
import type { JournalError } from "../errors.ts"
import type { kinds } from "../entries/kinds.ts"
import type { CreateMode, Efferent, FileFault, FileRead, FileWriteChunk, FileWritten, Terminal } from "../FileSystemEntry.ts"

/**
 * A request that is a single entry. A write in chunks is sent with `send` instead.
 *
 * @since 0.1.0
 */
export type Single = Exclude<Efferent, FileWriteChunk>

/**
 * The entry that ends the answer to a request. The entry may be a fault. If the leaf sends a file in chunks, the entry is the
 * last chunk.
 *
 * @since 0.1.0
 */
export type Answer<E extends Single> =
  | Extract<Terminal, { readonly _tag: (typeof kinds)[E["_tag"]]["answers"][number] }>
  | FileFault

/**
 * The options of one request.
 *
 * @since 0.1.0
 */
export interface RequestOptions {
  /** The longest time without any response. @default the timeout of the branch */
  readonly timeout?: Duration.Input | undefined
}

/**
 * The options of waiting for an answer.
 *
 * @since 0.1.0
 */
export interface WaitOptions {
  /** The longest wait for the end of the answer. @default the timeout of the branch */
  readonly timeout?: Duration.Input | undefined
  /** A position before the request. The search for the answer starts after this position. @default 0 */
  readonly after?: number | undefined
}

/**
 * The options of sending a content.
 *
 * @since 0.1.0
 */
export interface SendOptions extends RequestOptions {
  /** The size of a chunk in bytes. Only the last chunk may be shorter. @default the chunk size of the branch */
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
  /**
   * The required version of the existing file. `null` requires that no file exists. `ifMatch`, `createParents` and `version`
   * need `extended`.
   */
  readonly ifMatch?: string | null | undefined
  /** @default true */
  readonly createParents?: boolean | undefined
  /** @default false */
  readonly version?: boolean | undefined
  /** The treatment of links on the path. Needs `extended`. @default the leaf's filesystem decides */
  readonly links?: "refuse" | "leave" | undefined
}

/**
 * The errors of a request.
 *
 * - `Timeout`: no leaf has answered
 * - `InvalidArgument`: another caller waits for the same `correlationId`, or an option is invalid
 * - `JournalError`: the journal cannot be written or read, the scope has closed, or the answer does not match the request
 *
 * @since 0.1.0
 */
export type RequestError = JournalError | Timeout | InvalidArgument

/**
 * Sends requests to a leaf through the journal.
 *
 * @since 0.1.0
 */
export interface Requests {
  /**
   * Appends the entry and returns the entry that ends its answer. The correlation id must be new (`Correlation.generate`),
   * because a leaf answers each id once. Use `waitFor` to find an earlier answer.
   */
  readonly request: <E extends Single>(entry: E, options?: RequestOptions) => Effect.Effect<Answer<E>, RequestError>
  /**
   * Emits the requested content, with constant memory use. Emits nothing before the whole answer has arrived. So after a
   * fault, the stream fails without having emitted bytes.
   */
  readonly stream: (entry: FileRead, options?: RequestOptions) => Stream.Stream<Uint8Array, RequestError | FileFault>
  /** Sends the bytes of a stream, with constant memory use. Writes nothing if the stream fails or is interrupted. */
  readonly send: <E, R>(
    write: Sending,
    content: Stream.Stream<Uint8Array, E, R>,
    options?: SendOptions
  ) => Effect.Effect<FileWritten | FileFault, RequestError | E, R>
  /**
   * Waits for the entry that ends the answer to an earlier request, and returns this entry. The request may come from another
   * process.
   */
  readonly waitFor: (correlationId: string, options?: WaitOptions) => Effect.Effect<Terminal, RequestError>
}
