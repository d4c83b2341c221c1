/**
 * Provides the interface of `node:fs` over any Filesystem, for programs that take an `fs` object: isomorphic-git, fast-glob, webpack.
 *
 * "/" is the root of the filesystem, and also the current directory. Errors have the code, errno, syscall, path and message
 * of Node's errors. The `cause` of such an error is the error of this library. A path that leads above the root fails with EACCES.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Node from "node:fs"
import type * as NodePromises from "node:fs/promises"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import { build } from "./nodeFs/facade.ts"
import type { AdapterSupport } from "./support.ts"

/**
 * The options of `make`, `promises` and `sync`.
 *
 * @since 0.1.0
 */
export interface NodeFsOptions {
  /**
   * The meaning of an absolute symlink target. `backend`: the backend decides, and most refuse it with EACCES. `root`:
   * the "/" of the target is the root of this filesystem.
   * @default "backend"
   */
  readonly absoluteLinks?: "backend" | "root" | undefined
}

type Name =
  | "access"
  | "appendFile"
  | "chmod"
  | "chown"
  | "copyFile"
  | "cp"
  | "lchown"
  | "link"
  | "lstat"
  | "lutimes"
  | "mkdir"
  | "mkdtemp"
  | "opendir"
  | "open"
  | "readdir"
  | "readFile"
  | "readlink"
  | "realpath"
  | "rename"
  | "rm"
  | "rmdir"
  | "stat"
  | "statfs"
  | "symlink"
  | "truncate"
  | "unlink"
  | "utimes"
  | "writeFile"
type FdName =
  | "close"
  | "fchmod"
  | "fchown"
  | "fdatasync"
  | "fstat"
  | "fsync"
  | "ftruncate"
  | "futimes"
  | "read"
  | "readv"
  | "write"
  | "writev"

/**
 * The promises of `node:fs/promises`.
 *
 * @since 0.1.0
 */
export type Promises = Pick<typeof NodePromises, Name | "constants" | "watch">

/**
 * The synchronous calls of `node:fs`.
 *
 * @since 0.1.0
 */
export type Sync = Pick<typeof Node, `${Name | FdName}Sync` | "existsSync">

/**
 * The part of `node:fs` that this adapter offers.
 *
 * @since 0.1.0
 */
export type NodeFs = Pick<
  typeof Node,
  Name | FdName | "constants" | "createReadStream" | "createWriteStream" | "exists" | "watch" | "Dir" | "Dirent" | "Stats"
> &
  Sync & { readonly promises: Promises }

/**
 * Returns an object with the interface of `node:fs` over the current Filesystem.
 *
 * Descriptors collect their writes in memory, and write the file when they are closed or synced, or when another call of
 * the same object uses the file. So no other program sees a half-written file. Descriptors that append write at once.
 *
 * @example
 * ```ts
 * const node = yield* NodeFs.make()
 * yield* Effect.promise(() => node.promises.appendFile("/notes/todo.md", "- [ ] milk\n"))
 * node.readFileSync("/notes/todo.md", "utf8") // => "- [ ] tea\n- [ ] bread\n- [ ] milk\n"
 * const error = yield* Effect.flip(Effect.tryPromise(() => node.promises.stat("/missing")))
 * String(error.cause) // => "Error: ENOENT: no such file or directory, stat '/missing'"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: NodeFsOptions): Effect.Effect<NodeFs, never, Filesystem> =>
  // The calls check their arguments at run time, and the tests compare each call with that of Node.
  build(options?.absoluteLinks === "root") as Effect.Effect<unknown, never, Filesystem> as Effect.Effect<
    NodeFs,
    never,
    Filesystem
  >

/**
 * Returns an object with the interface of `node:fs/promises`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const promises = (options?: NodeFsOptions): Effect.Effect<Promises, never, Filesystem> =>
  Effect.map(make(options), (fs) => fs.promises)

/**
 * Returns the synchronous calls of `node:fs`. The calls work on backends that answer at once, such as InMemory. On
 * other backends the calls fail with ENOSYS. On a recorded backend in memory, a change that fails with ENOSYS may still take
 * effect.
 *
 * @category constructors
 * @since 0.1.0
 */
export const sync = (options?: NodeFsOptions): Effect.Effect<Sync, never, Filesystem> => make(options)

/**
 * The tested version of Node, and its features that the adapter supports or does not support.
 *
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "NodeFs",
  package: "node:fs",
  version: "24.21.0",
  maps: [
    "promises, callbacks and, on backends that answer at once, synchronous calls",
    "FileHandle, descriptors, Dir, Dirent, Stats (also with bigint)",
    "createReadStream, createWriteStream, watch",
    "errors with code, errno, syscall, path, dest and Node's message"
  ],
  missing: [
    "link and chown to another owner (EPERM); statfs, and utimes of a symlink (ENOSYS); set-user-ID bits (EPERM)",
    "glob, openAsBlob, watchFile, mkdtempDisposable",
    "stat has no owners, devices, link counts, access times and change times",
    "cp keeps the target text of a symlink; absolute targets need absoluteLinks",
    "watch reports a missing path as an error event",
    "a descriptor that writes keeps the whole file in memory until it is closed; appending does not",
    "a synchronous change of a recorded backend in memory fails with ENOSYS, but may still take effect",
    "a copy of a directory onto a file fails and keeps the file, which Node removes",
    "error numbers are those of Linux"
  ]
}
