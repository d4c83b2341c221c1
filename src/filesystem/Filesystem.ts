/**
 * The service: strings in, `FsPath` out, each failure its own tagged error. Operation and path are added to a fault here and nowhere
 * else, and checks come in one order for every operation: permissions, path, arguments, limits, precondition, existence and kind.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Sink from "effect/Sink"
import type * as Stream from "effect/Stream"
import type { Edit } from "../engine/edit.ts"
import type { GlobOptions, GrepOptions, WalkOptions } from "../engine/options.ts"
import type {
  DeleteResult,
  EditResult,
  FileEntry,
  FileStat,
  GlobMatch,
  GlobResult,
  GrepMatch,
  GrepResult,
  ReadBytesResult,
  ReadResult,
  TransferResult,
  WatchEvent,
  WriteMode,
  WriteResult
} from "../model/Entry.ts"
import type {
  BackendError,
  DeleteError,
  EditError,
  GlobError,
  GrepError,
  InvalidArgument,
  LinkError,
  ListError,
  MkdirError,
  NotADirectory,
  NotText,
  ReadBytesError,
  ReadError,
  StatError,
  StreamError,
  TransferError,
  Unsupported,
  WriteError
} from "../model/FsError.ts"
import type { Backend, Locks } from "../port/Backend.ts"
import { make as makeLocks } from "../runtime/locks.ts"
import { derive } from "./derive.ts"

export type {
  /** @since 0.1.0 */
  Edit
} from "../engine/edit.ts"
export type {
  /** @since 0.1.0 */
  GlobOptions,
  /** @since 0.1.0 */
  GrepOptions,
  /** @since 0.1.0 */
  SearchOptions,
  /** @since 0.1.0 */
  WalkOptions
} from "../engine/options.ts"

/**
 * What must be true of a file for it to be changed.
 *
 * @since 0.1.0
 */
export interface Precondition {
  /**
   * Fail with `Conflict` unless the file's version is this; `null`: unless there is no such file. `undefined` would guard nothing, so it
   * is InvalidArgument: leave the key out instead.
   */
  readonly ifMatch?: string | null
}

/**
 * Whether the answer holds the content version, the SHA-256 of the bytes in hex.
 *
 * @since 0.1.0
 */
export interface Versioned {
  /** Answer the content version too; costs a hash of the whole file. @default false */
  readonly version?: boolean | undefined
}

/**
 * An answer to a call with `version: true`.
 *
 * @since 0.1.0
 */
export interface VersionedResult {
  /** The SHA-256 of the file's bytes after the call, in hex. */
  readonly version: string
}

/**
 * A call whose answer has a version exactly where `version: true` asks for one: `ifMatch` cannot get one that is absent by mistake.
 *
 * @since 0.1.0
 */
export interface Versioning<Arguments extends ReadonlyArray<unknown>, Options, Result, Error> {
  (...args: [...Arguments, options: Options & { readonly version: true }]): Effect.Effect<Result & VersionedResult, Error>
  (
    ...args: [...Arguments, options?: Options & { readonly version?: false | undefined }]
  ): Effect.Effect<Omit<Result, "version">, Error>
  (...args: [...Arguments, options?: Options]): Effect.Effect<Result, Error>
}

/**
 * Types a function that answers a version only when asked as such a call. Decorators wrap their `read`, `write` and the like in it.
 *
 * @since 0.1.0
 */
export const versioning = <Arguments extends ReadonlyArray<unknown>, Options, Result, Error>(
  call: (...args: [...Arguments, options?: Options]) => Effect.Effect<Result, Error>
): Versioning<Arguments, Options, Result, Error> => call as Versioning<Arguments, Options, Result, Error>

/**
 * The same for `sink`.
 *
 * @since 0.1.0
 */
export interface VersioningSink {
  (
    path: string,
    options: WriteOptions & { readonly version: true }
  ): Sink.Sink<WriteResult & VersionedResult, Uint8Array, never, WriteError>
  (
    path: string,
    options?: WriteOptions & { readonly version?: false | undefined }
  ): Sink.Sink<Omit<WriteResult, "version">, Uint8Array, never, WriteError>
  (path: string, options?: WriteOptions): Sink.Sink<WriteResult, Uint8Array, never, WriteError>
}

/**
 * How `write`, `writeBytes` and `sink` go about it.
 *
 * @since 0.1.0
 */
export interface WriteOptions extends Precondition, Versioned {
  /** @default "overwrite" */
  readonly mode?: WriteMode | undefined
  /** @default true */
  readonly createParents?: boolean | undefined
}

/**
 * Which lines `read` answers, and in which encoding.
 *
 * @since 0.1.0
 */
export interface ReadOptions extends Versioned {
  /** 0-based line of the first one answered. @default 0 */
  readonly offset?: number | undefined
  /** Lines; -1 is all, 0 none. @default Limits.defaultReadLimit */
  readonly limit?: number | undefined
  /** A label that TextDecoder knows. @default "utf-8" */
  readonly encoding?: string | undefined
}

/**
 * Which bytes `readBytes` answers.
 *
 * @since 0.1.0
 */
export interface ReadBytesOptions extends Versioned {
  /** 0-based byte; past the end is the end. @default 0 */
  readonly offset?: number | undefined
  /** Bytes. @default all */
  readonly limit?: number | undefined
}

/**
 * Which bytes `stream` brings, and in what portions.
 *
 * @since 0.1.0
 */
export interface StreamOptions {
  /** 0-based byte. @default 0 */
  readonly offset?: number | undefined
  /** Bytes. @default all */
  readonly length?: number | undefined
  /** Bytes of a chunk; only the last is shorter. @default 65,536 */
  readonly chunkSize?: number | undefined
}

/**
 * How `edit` goes about it.
 *
 * @since 0.1.0
 */
export interface EditOptions extends Precondition, Versioned {
  /** Answer what would happen, and change nothing. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * What `delete` may take, and what it needs.
 *
 * @since 0.1.0
 */
export interface DeleteOptions extends Precondition {
  /** A directory with all that is in it. @default false */
  readonly recursive?: boolean | undefined
  /** Whether deleting nothing is NotFound or answers 0. @default "fail" */
  readonly missing?: "fail" | "ignore" | undefined
}

/**
 * What `mkdir` makes on the way, and whether the directory may be there.
 *
 * @since 0.1.0
 */
export interface MkdirOptions {
  /** @default true */
  readonly parents?: boolean | undefined
  /** @default true */
  readonly existOk?: boolean | undefined
}

/**
 * How `copy` and `move` treat what is at the target.
 *
 * @since 0.1.0
 */
export interface TransferOptions {
  /** A file takes the place of a file, a directory that of an empty directory. @default false */
  readonly overwrite?: boolean | undefined
}

/**
 * What `setAttributes` sets; what is left out stays.
 *
 * @since 0.1.0
 */
export interface AttributeValues {
  /** POSIX permission bits, at most 0o777. */
  readonly mode?: number | undefined
  readonly modifiedAt?: DateTime.Utc | undefined
}

/**
 * The operations: what a program has in its hands, and what combinators take and give.
 *
 * @since 0.1.0
 */
export interface Algebra {
  /** For people, never for parsing. */
  readonly root: string
  readonly readOnly: boolean
  /** The backend's name. */
  readonly name: string
  /** For combinators and capabilities; programs do not need it. */
  readonly port: Backend

  /** False for whatever cannot be reached, also for an invalid path; fails only when the backend is gone. */
  readonly exists: (path: string) => Effect.Effect<boolean, BackendError>
  readonly stat: (path: string) => Effect.Effect<FileStat, StatError>
  /** The entries of one directory, by name. */
  readonly list: (path?: string) => Effect.Effect<ReadonlyArray<FileEntry>, ListError>
  /** Everything below a directory. Every stream of entries or matches is in path order. */
  readonly walk: (path?: string, options?: WalkOptions) => Stream.Stream<FileEntry, ListError>
  readonly glob: (pattern: string | ReadonlyArray<string>, options?: GlobOptions) => Effect.Effect<GlobResult, GlobError>
  readonly globStream: (pattern: string | ReadonlyArray<string>, options?: GlobOptions) => Stream.Stream<GlobMatch, GlobError>
  readonly grep: (pattern: string | RegExp, options?: GrepOptions) => Effect.Effect<GrepResult, GrepError>
  readonly grepStream: (pattern: string | RegExp, options?: GrepOptions) => Stream.Stream<GrepMatch, GrepError>

  /** A page of lines. */
  readonly read: Versioning<[path: string], ReadOptions, ReadResult, ReadError>
  /** The whole text, exactly: a byte order mark is U+FEFF, line endings are as they are. */
  readonly readString: (path: string, encoding?: string) => Effect.Effect<string, ReadError>
  readonly readBytes: Versioning<[path: string], ReadBytesOptions, ReadBytesResult, ReadBytesError>
  /** The SHA-256 of the file's bytes, in hex. */
  readonly version: (path: string) => Effect.Effect<string, StreamError>
  readonly stream: (path: string, options?: StreamOptions) => Stream.Stream<Uint8Array, StreamError>
  /** Without their terminators. */
  readonly lines: (path: string) => Stream.Stream<string, StreamError | NotText>

  readonly write: Versioning<[path: string, content: string], WriteOptions, WriteResult, WriteError>
  readonly writeBytes: Versioning<[path: string, content: Uint8Array], WriteOptions, WriteResult, WriteError>
  /** Nothing is visible until the stream has ended; a failed or interrupted stream leaves the old content. */
  readonly sink: VersioningSink
  /** All edits or none, spliced into the bytes: everything outside a match stays as it was. */
  readonly edit: Versioning<[path: string, edits: Edit | ReadonlyArray<Edit>], EditOptions, EditResult, EditError>
  readonly delete: (path: string, options?: DeleteOptions) => Effect.Effect<DeleteResult, DeleteError>
  readonly mkdir: (path: string, options?: MkdirOptions) => Effect.Effect<void, MkdirError>
  /** Acts on a link itself. Parents are made. Permission bits are kept, unless `preservePermissions` is false. */
  readonly copy: (from: string, to: string, options?: TransferOptions) => Effect.Effect<TransferResult, TransferError>
  /** Atomic where the backend can rename. */
  readonly move: (from: string, to: string, options?: TransferOptions) => Effect.Effect<TransferResult, TransferError>

  readonly readLink: (path: string) => Effect.Effect<string, StatError | InvalidArgument | Unsupported>
  /** The target is relative to the link's directory and may not leave the root. */
  readonly symlink: (path: string, target: string) => Effect.Effect<void, LinkError>
  readonly setAttributes: (
    path: string,
    attributes: AttributeValues
  ) => Effect.Effect<void, StatError | InvalidArgument | Unsupported>
  /** Changes below a directory, at any depth, from now on. */
  readonly watch: (path?: string) => Stream.Stream<WatchEvent, StatError | NotADirectory | Unsupported>
}

/**
 * The tag that programs ask for: `yield* Filesystem.Filesystem`. The identifier is a class apart from the operations, since structural
 * services would let any larger service stand in for this one unnoticed.
 *
 * @since 0.1.0
 */
export class Filesystem extends Context.Service<Filesystem, Algebra>()("fs-algebra/Filesystem") {}

/**
 * The whole algebra from one small port.
 *
 * @since 0.1.0
 */
export const make: (backend: Backend) => Algebra = derive

/**
 * The order of writes for a backend that has none of its own: to one path one after another, in order of arrival, while other paths go
 * on; who takes a directory waits for all below it. Made once for each backend, whose `locks` they are.
 *
 * @since 0.1.0
 */
export const locks = (options?: {
  /** Whether names that differ in case alone are different paths. @default true */
  readonly caseSensitive?: boolean | undefined
}): Locks => makeLocks(options)

/**
 * A layer from an effect that builds a backend.
 *
 * @since 0.1.0
 */
export const layer = <E, R>(backend: Effect.Effect<Backend, E, R>): Layer.Layer<Filesystem, E, Exclude<R, Scope.Scope>> =>
  Layer.effect(Filesystem, Effect.map(backend, make))

/**
 * Turns `Algebra → Algebra` (or `→ Effect<Algebra>`) into a layer combinator; other services of the layer pass through.
 *
 * @since 0.1.0
 */
export const decorate: {
  (
    f: (self: Algebra) => Algebra
  ): <A, E, R>(layer: Layer.Layer<A, E, R> & ([Filesystem] extends [A] ? unknown : never)) => Layer.Layer<A, E, R>
  <E2, R2>(
    f: (self: Algebra) => Effect.Effect<Algebra, E2, R2>
  ): <A, E, R>(
    layer: Layer.Layer<A, E, R> & ([Filesystem] extends [A] ? unknown : never)
  ) => Layer.Layer<A, E | E2, R | Exclude<R2, Scope.Scope>>
} =
  <E2, R2>(f: (self: Algebra) => Algebra | Effect.Effect<Algebra, E2, R2>) =>
  <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E | E2, R | Exclude<R2, Scope.Scope>> => {
    const decorated = Layer.effect(
      Filesystem,
      Effect.flatMap(Filesystem, (self) => {
        const out = f(self)
        return Effect.isEffect(out) ? out : Effect.succeed(out)
      })
    )
    // The layer's type says that it provides Filesystem, which the parameter's type has checked.
    return Layer.provideMerge(decorated, layer as Layer.Layer<A | Filesystem, E, R>) as Layer.Layer<
      A,
      E | E2,
      R | Exclude<R2, Scope.Scope>
    >
  }
