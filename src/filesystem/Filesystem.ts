/**
 * The filesystem service. Paths are strings, and each kind of failure is a tagged error.
 *
 * The service adds the operation and the path to a fault. Every operation checks in the same order: permissions,
 * path, arguments, limits, precondition, existence and kind.
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
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Locks } from "../port/Backend.ts"
import { make as makeLocks } from "../runtime/locks.ts"
import * as Caller from "./operations/call.ts"
import { contentOperations, entryOperations, searchOperations } from "./operations/reading.ts"
import { nameOperations, writeOperations } from "./operations/writing.ts"

const deriveAlgebra = (port: Backend): Algebra => {
  const self = Caller.make(port)
  return {
    root: port.info.root,
    readOnly: !self.isPermitted("write") && !self.isPermitted("delete"),
    name: port.info.name,
    port,
    ...entryOperations(self),
    ...searchOperations(self),
    ...contentOperations(self),
    ...writeOperations(self),
    ...nameOperations(self)
  }
}

export type { Edit } from "../engine/edit.ts"

export type { GlobOptions, GrepOptions, SearchOptions, WalkOptions } from "../engine/options.ts"

/**
 * A condition that a file must meet before it is changed.
 *
 * @since 0.1.0
 */
export interface Precondition {
  /**
   * The version that the file must have, or `null` if the file must not exist. Otherwise the call fails with
   * `Conflict`.
   *
   * The value `undefined` fails with InvalidArgument, because it would protect nothing. Omit the key instead.
   */
  readonly ifMatch?: string | null
}

/**
 * The option to return the content version: the SHA-256 of the bytes, in hex.
 *
 * @since 0.1.0
 */
export interface Versioned {
  /** True if the result contains the content version. If so, the call computes a hash of the whole file. @default false */
  readonly version?: boolean | undefined
}

/**
 * The result of a call with `version: true`.
 *
 * @since 0.1.0
 */
export interface VersionedResult {
  /** The SHA-256 of the file's bytes after the call, in hex. */
  readonly version: string
}

/**
 * A call whose result type has a version only if the option `version: true` is given. The compiler therefore rejects an absent
 * version as `ifMatch`.
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

export {
  /**
   * Gives a function the type `Versioning`, for the `read`, `write` and similar functions of decorators.
   *
   * @since 0.1.0
   */
  versioning
} from "./operations/call.ts"

/**
 * The type of `sink`, with the same guarantee as `Versioning`.
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
 * The options of `write`, `writeBytes` and `sink`.
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
 * The window of lines for `read`, and the encoding.
 *
 * @since 0.1.0
 */
export interface ReadOptions extends Versioned {
  /** The 0-based first line. @default 0 */
  readonly offset?: number | undefined
  /** The number of lines; -1 means all, and 0 means none. @default Limits.defaultReadLimit */
  readonly limit?: number | undefined
  /** An encoding label of TextDecoder. @default "utf-8" */
  readonly encoding?: string | undefined
}

/**
 * The range of bytes for `readBytes`.
 *
 * @since 0.1.0
 */
export interface ReadBytesOptions extends Versioned {
  /** The 0-based first byte. A position beyond the end of the file means the end. @default 0 */
  readonly offset?: number | undefined
  /** The number of bytes. @default all */
  readonly limit?: number | undefined
}

/**
 * The range of bytes for `stream`, and the chunk size.
 *
 * @since 0.1.0
 */
export interface StreamOptions {
  /** The 0-based first byte. @default 0 */
  readonly offset?: number | undefined
  /** The number of bytes. @default all */
  readonly length?: number | undefined
  /** The number of bytes per chunk; only the last chunk may be shorter. @default 65,536 */
  readonly chunkSize?: number | undefined
}

/**
 * The options of `edit`.
 *
 * @since 0.1.0
 */
export interface EditOptions extends Precondition, Versioned {
  /** True if the call returns the result without making the change. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * The options of `delete`.
 *
 * @since 0.1.0
 */
export interface DeleteOptions extends Precondition {
  /** True if the call may delete a directory with everything in it. @default false */
  readonly recursive?: boolean | undefined
  /** The result for a missing path: `fail` fails with NotFound, `ignore` returns a count of 0. @default "fail" */
  readonly missing?: "fail" | "ignore" | undefined
}

/**
 * The options of `mkdir`.
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
 * The options of `copy` and `move`.
 *
 * @since 0.1.0
 */
export interface TransferOptions {
  /** True if a file may replace a file, and a directory may replace an empty directory. @default false */
  readonly overwrite?: boolean | undefined
}

/**
 * The attributes for `setAttributes`. Absent attributes stay unchanged.
 *
 * @since 0.1.0
 */
export interface AttributeValues {
  /** POSIX permission bits, at most 0o777. */
  readonly mode?: number | undefined
  readonly modifiedAt?: DateTime.Utc | undefined
}

/**
 * The operations of a filesystem, which programs call. Combinators take and return an `Algebra`.
 *
 * The examples of all operations begin with the same two files.
 *
 * @example
 * ```ts
 * const { matches } = yield* fs.glob("**")
 * matches.map(({ path }) => path) // => ["notes/todo.md", "src/main.ts"]
 * yield* fs.readString("notes/todo.md") // => "- [ ] tea\n- [ ] bread\n"
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Algebra {
  /** A description of the root for people. Programs must not parse this text. */
  readonly root: string
  readonly readOnly: boolean
  readonly name: string
  /** The port of the backend, which combinators and capabilities use. Programs do not need the port. */
  readonly port: Backend

  /**
   * Tests whether a path exists and is reachable. Returns false for an invalid path. Fails only if the backend fails.
   * @example
   * ```ts
   * yield* fs.exists("notes/todo.md") // => true
   * yield* fs.exists("notes/done.md") // => false
   * ```
   */
  readonly exists: (path: string) => Effect.Effect<boolean, BackendError>
  /**
   * Returns the metadata of an entry.
   * @example
   * ```ts
   * const { kind, sizeBytes } = yield* fs.stat("notes/todo.md")
   * kind // => "file"
   * sizeBytes // => 22
   * ```
   */
  readonly stat: (path: string) => Effect.Effect<FileStat, StatError>
  /**
   * Returns the metadata of an entry. If the path is a symlink, describes the symlink itself.
   * @example
   * ```ts
   * yield* fs.symlink("today.md", "notes/todo.md")
   * const { kind } = yield* fs.lstat("today.md")
   * kind // => "symlink"
   * ```
   */
  readonly lstat: (path: string) => Effect.Effect<FileStat, StatError>
  /**
   * Returns the path of an existing entry with all symlinks resolved. On a case-insensitive filesystem, the names have
   * the case in which they are stored.
   * @example
   * ```ts
   * yield* fs.symlink("today.md", "notes/todo.md")
   * yield* fs.realPath("today.md") // => "notes/todo.md"
   * ```
   */
  readonly realPath: (path: string) => Effect.Effect<FsPath, StatError>
  /**
   * Returns the entries of a directory, by default of the root, sorted by name.
   * @example
   * ```ts
   * const entries = yield* fs.list()
   * entries.map(({ name, kind }) => `${name} ${kind}`) // => ["notes directory", "src directory"]
   * ```
   */
  readonly list: (path?: string) => Effect.Effect<ReadonlyArray<FileEntry>, ListError>
  /**
   * Walks everything below a directory. Every stream of entries or matches is in path order.
   * @example
   * ```ts
   * const entries = yield* Stream.runCollect(fs.walk("notes"))
   * entries.map(({ path }) => path) // => ["notes/todo.md"]
   * ```
   */
  readonly walk: (path?: string, options?: WalkOptions) => Stream.Stream<FileEntry, ListError>
  /**
   * Returns the entries whose paths match a pattern, in path order, one page at a time.
   * @example
   * ```ts
   * const { matches } = yield* fs.glob(["src/*.ts", "docs/*.md"])
   * matches.map(({ path }) => path) // => ["src/main.ts"]
   * ```
   */
  readonly glob: (pattern: string | ReadonlyArray<string>, options?: GlobOptions) => Effect.Effect<GlobResult, GlobError>
  /**
   * Streams the entries whose paths match a pattern.
   * @example
   * ```ts
   * const matches = yield* Stream.runCollect(fs.globStream("*.md"))
   * matches.map(({ path }) => path) // => ["notes/todo.md"]
   * ```
   */
  readonly globStream: (pattern: string | ReadonlyArray<string>, options?: GlobOptions) => Stream.Stream<GlobMatch, GlobError>
  /**
   * Returns the lines that match a pattern, by path and line, one page at a time.
   * @example
   * ```ts
   * const { matches } = yield* fs.grep(/\[ \] \w+/, { glob: "*.md" })
   * matches.map(({ path, lineNumber }) => `${path}:${lineNumber}`) // => ["notes/todo.md:1", "notes/todo.md:2"]
   * ```
   */
  readonly grep: (pattern: string | RegExp, options?: GrepOptions) => Effect.Effect<GrepResult, GrepError>
  /**
   * Streams the lines that match a pattern.
   * @example
   * ```ts
   * const first = yield* Stream.runCollect(fs.grepStream("bread").pipe(Stream.take(1)))
   * first.map(({ lineContent }) => lineContent) // => ["- [ ] bread"]
   * ```
   */
  readonly grepStream: (pattern: string | RegExp, options?: GrepOptions) => Stream.Stream<GrepMatch, GrepError>

  /**
   * Returns a window of lines of a text file.
   * @example
   * ```ts
   * const page = yield* fs.read("notes/todo.md", { offset: 1, limit: 1, version: true })
   * page.content // => "- [ ] bread"
   * yield* fs.write("notes/todo.md", "", { ifMatch: page.version }) // fails with Conflict if the file changed
   * ```
   */
  readonly read: Versioning<[path: string], ReadOptions, ReadResult, ReadError>
  /**
   * Reads the whole text of a file. Keeps line endings, and keeps a byte order mark as U+FEFF.
   * @example
   * ```ts
   * yield* fs.readString("src/main.ts") // => "export const answer = 42\n"
   * ```
   */
  readonly readString: (path: string, encoding?: string) => Effect.Effect<string, ReadError>
  /**
   * Returns a range of bytes of a file.
   * @example
   * ```ts
   * const { content } = yield* fs.readBytes("notes/todo.md", { offset: 0, limit: 3 })
   * content // => Uint8Array.of(0x2d, 0x20, 0x5b)
   * ```
   */
  readonly readBytes: Versioning<[path: string], ReadBytesOptions, ReadBytesResult, ReadBytesError>
  /**
   * Returns the SHA-256 of the file's bytes, in hex.
   * @example
   * ```ts
   * const before = yield* fs.version("src/main.ts")
   * const { version } = yield* fs.write("src/main.ts", "export {}\n", { ifMatch: before, version: true })
   * version === before // => false
   * ```
   */
  readonly version: (path: string) => Effect.Effect<string, StreamError>
  /**
   * Streams the bytes of a file in chunks.
   * @example
   * ```ts
   * const chunks = yield* Stream.runCollect(fs.stream("notes/todo.md", { chunkSize: 8 }))
   * chunks.map(({ length }) => length) // => [8, 8, 6]
   * ```
   */
  readonly stream: (path: string, options?: StreamOptions) => Stream.Stream<Uint8Array, StreamError>
  /**
   * Streams the lines of a text file, without terminators.
   * @example
   * ```ts
   * yield* Stream.runCollect(fs.lines("notes/todo.md")) // => ["- [ ] tea", "- [ ] bread"]
   * ```
   */
  readonly lines: (path: string) => Stream.Stream<string, StreamError | NotText>

  /**
   * Creates, replaces or appends to a text file, as `mode` says. Creates missing parent directories by default.
   * @example
   * ```ts
   * yield* fs.write("docs/guide.md", "# Guide\n")
   * yield* fs.write("docs/guide.md", "Read it.\n", { mode: "append" })
   * yield* fs.readString("docs/guide.md") // => "# Guide\nRead it.\n"
   * ```
   */
  readonly write: Versioning<[path: string, content: string], WriteOptions, WriteResult, WriteError>
  /**
   * Creates, replaces or appends to a file of bytes, as `mode` says. Creates missing parent directories by default.
   * @example
   * ```ts
   * const { bytesWritten } = yield* fs.writeBytes("logo.png", Uint8Array.of(0x89, 0x50, 0x4e, 0x47))
   * bytesWritten // => 4
   * ```
   */
  readonly writeBytes: Versioning<[path: string, content: Uint8Array], WriteOptions, WriteResult, WriteError>
  /**
   * Writes a stream to a file. The new content is visible only after the end of the stream. If the stream fails or is
   * interrupted, the file keeps its old content.
   * @example
   * ```ts
   * const bytes = Stream.make("one\n", "two\n").pipe(Stream.encodeText)
   * yield* Stream.run(bytes, fs.sink("log.txt"))
   * yield* fs.readString("log.txt") // => "one\ntwo\n"
   * ```
   */
  readonly sink: VersioningSink
  /**
   * Replaces texts in a file: applies all edits or none. Every byte outside a match is unchanged.
   * @example
   * ```ts
   * const { replacements } = yield* fs.edit("notes/todo.md", { oldText: "[ ] tea", newText: "[x] tea" })
   * replacements // => 1
   * yield* fs.readString("notes/todo.md") // => "- [x] tea\n- [ ] bread\n"
   * ```
   */
  readonly edit: Versioning<[path: string, edits: Edit | ReadonlyArray<Edit>], EditOptions, EditResult, EditError>
  /**
   * Deletes an entry. Deletes a directory that is not empty only with `recursive: true`.
   * @example
   * ```ts
   * const { deleted } = yield* fs.delete("notes", { recursive: true })
   * deleted // => 1
   * yield* fs.exists("notes") // => false
   * ```
   */
  readonly delete: (path: string, options?: DeleteOptions) => Effect.Effect<DeleteResult, DeleteError>
  /**
   * Creates a directory and its missing parents.
   * @example
   * ```ts
   * yield* fs.mkdir("build/cache")
   * const { kind } = yield* fs.stat("build")
   * kind // => "directory"
   * ```
   */
  readonly mkdir: (path: string, options?: MkdirOptions) => Effect.Effect<void, MkdirError>
  /**
   * Copies an entry and creates missing parents of the target. Copies a symlink itself, not the file behind it. Keeps
   * permission bits unless `preservePermissions` is false.
   * @example
   * ```ts
   * const { files, bytes } = yield* fs.copy("notes", "backup/notes")
   * files // => 1
   * bytes // => 22
   * ```
   */
  readonly copy: (from: string, to: string, options?: TransferOptions) => Effect.Effect<TransferResult, TransferError>
  /**
   * Moves an entry, atomically if the backend can rename.
   * @example
   * ```ts
   * yield* fs.move("notes/todo.md", "todo.md")
   * yield* fs.exists("notes/todo.md") // => false
   * yield* fs.exists("todo.md") // => true
   * ```
   */
  readonly move: (from: string, to: string, options?: TransferOptions) => Effect.Effect<TransferResult, TransferError>

  /**
   * Returns the target of a symlink, as it was written.
   * @example
   * ```ts
   * yield* fs.symlink("latest.md", "notes/todo.md")
   * yield* fs.readLink("latest.md") // => "notes/todo.md"
   * ```
   */
  readonly readLink: (path: string) => Effect.Effect<string, StatError | InvalidArgument | Unsupported>
  /**
   * Creates a symlink. The target is relative to the symlink's directory and must not leave the root.
   * @example
   * ```ts
   * yield* fs.symlink("src/todo.md", "../notes/todo.md")
   * yield* fs.readString("src/todo.md") // => "- [ ] tea\n- [ ] bread\n"
   * ```
   */
  readonly symlink: (path: string, target: string) => Effect.Effect<void, LinkError>
  /**
   * Sets the permission bits, the modification time, or both, of an entry.
   * @example
   * ```ts
   * yield* fs.setAttributes("src/main.ts", { mode: 0o600 })
   * const { mode } = yield* fs.stat("src/main.ts")
   * mode // => 0o600
   * ```
   */
  readonly setAttributes: (
    path: string,
    attributes: AttributeValues
  ) => Effect.Effect<void, StatError | InvalidArgument | Unsupported>
  /**
   * Streams the changes below a directory, at any depth, from the first pull on. Fails with NotFound when the directory itself
   * is removed, moved or replaced.
   * @example
   * ```ts
   * const changes = yield* Effect.forkChild(Stream.runCollect(fs.watch("notes").pipe(Stream.take(1))), { startImmediately: true })
   * yield* fs.write("notes/done.md", "")
   * yield* Fiber.join(changes) // => [{ _tag: "Created", path: "notes/done.md" }]
   * ```
   */
  readonly watch: (path?: string) => Stream.Stream<WatchEvent, StatError | NotADirectory | Unsupported>
}

/**
 * The service key for programs: `yield* Filesystem.Filesystem`.
 *
 * The key is a class, because a structural type would also accept any other service that has these operations.
 *
 * @category services
 * @since 0.1.0
 */
export class Filesystem extends Context.Service<Filesystem, Algebra>()("fs-algebra/Filesystem") {}

/**
 * Returns the filesystem of a port, with all its operations.
 *
 * @example
 * ```ts
 * const scratch = Filesystem.make(yield* InMemory.make())
 * yield* scratch.write("a.txt", "one")
 * yield* scratch.readString("a.txt") // => "one"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make: (backend: Backend) => Algebra = deriveAlgebra

/**
 * Creates locks for a backend without its own locks.
 *
 * Writes to one path run one after another, in order of arrival. Writes to different paths run at the same time. A lock on a
 * directory waits for all paths below the directory. Create the locks once for each backend, as the value of its `locks`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const locks = (options?: {
  /** False if names that differ only in case are the same path. @default true */
  readonly caseSensitive?: boolean | undefined
}): Locks => makeLocks(options)

/**
 * Creates a layer from an effect that builds a backend.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(backend: Effect.Effect<Backend, E, R>): Layer.Layer<Filesystem, E, Exclude<R, Scope.Scope>> =>
  Layer.effect(Filesystem, Effect.map(backend, make))

/**
 * Returns a function that applies a decorator to the Filesystem of a layer. The decorator returns an `Algebra`, or an effect
 * that succeeds with an `Algebra`. Other services of the layer are unchanged.
 *
 * @example
 * ```ts
 * const layer = InMemory.layer().pipe(Filesystem.decorate(Decorator.readOnly))
 * const readOnly = Filesystem.Filesystem.useSync((fs) => fs.readOnly)
 * yield* Effect.provide(readOnly, layer) // => true
 * ```
 * @category combinators
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
    // The parameter's type has checked that the layer provides Filesystem.
    return Layer.provideMerge(decorated, layer as Layer.Layer<A | Filesystem, E, R>) as Layer.Layer<
      A,
      E | E2,
      R | Exclude<R2, Scope.Scope>
    >
  }
