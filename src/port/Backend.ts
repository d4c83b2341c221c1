/**
 * The interface of a backend: seven primitive operations on validated paths.
 *
 * A primitive operation follows no symlink, does not recurse, and does not see the options of the call. The operation fails with
 * a plain `Fault`. The engine derives all other operations, once for all backends.
 *
 * The port laws check this contract:
 *
 * - The root exists, is a directory, and can be neither removed nor renamed (`AccessDenied` `root`).
 * - No operation follows a symlink: nothing exists below a symlink, just as nothing exists below a file.
 * - `open` pins the file: the bytes belong to the returned stat, even if the name is removed or replaced meanwhile.
 * - `write` with `replace` is all or nothing, even if it is interrupted; `create` never overwrites, not even a symlink.
 * - A missing parent causes `NotFound`. An entry of the wrong kind causes `NotAFile` or `NotADirectory`. No operation
 *   reports success without doing its work.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as DateTime from "effect/DateTime"
import { isBytes } from "../model/realms.ts"
import type { FileStat, Kind, WatchEvent } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath, PathPolicy } from "../model/FsPath.ts"
import type { Explore } from "./explorer.ts"
import type { History } from "./history.ts"
import type { HostRoots } from "./hostRoots.ts"
import type { Call, Operation } from "./Operation.ts"
import * as Request from "./Request.ts"
import type { Perform } from "./Request.ts"

export type {
  /**
   * @since 0.1.0
   */
  Fault
} from "../model/FsError.ts"
export type {
  /** @since 0.1.0 */
  Edited,
  /** @since 0.1.0 */
  EditPlan,
  /** @since 0.1.0 */
  MakeDirectoryPlan,
  /** @since 0.1.0 */
  MovePlan,
  /** @since 0.1.0 */
  NewEntry,
  /** @since 0.1.0 */
  RemovePlan,
  /** @since 0.1.0 */
  WritePlan
} from "./changes.ts"
export type {
  /** @since 0.1.0 */
  Seen,
  /** @since 0.1.0 */
  Whole
} from "./Request.ts"

/**
 * The properties of a backend.
 *
 * @since 0.1.0
 */
export interface Info {
  readonly name: string
  /** A description of the root for people. Programs must not parse this text. */
  readonly root: string
  readonly caseSensitive: boolean
  readonly readOnly: boolean
  /** The level of confinement that the backend provides on this machine. */
  readonly confinement: "virtual" | "race-free" | "race-free-open" | "best-effort"
  /** `copy` if the backend cannot rename: every rename fails with IoError `EXDEV`, and a move copies and deletes. */
  readonly rename?: "atomic" | "copy" | undefined
  /** The guarantees that the storage cannot keep while other programs change it, as text for people. */
  readonly bestEffort?: ReadonlyArray<string> | undefined
}

/**
 * An entry of a directory, as a backend lists it.
 *
 * @since 0.1.0
 */
export interface Child {
  readonly name: string
  readonly kind: Kind
  readonly addressable: boolean
  /**
   * The path segment with which this backend addresses an entry whose `addressable` is false. A caller's path can never
   * contain this segment.
   */
  readonly key?: string
  /** The size in bytes, if the listing provides it at no cost; otherwise the engine calls `stat`. */
  readonly sizeBytes?: number
}

/**
 * Returns the path segment with which the backend addresses an entry: its `key` if it has one, otherwise its name.
 *
 * @since 0.1.0
 */
export const keyOf = (child: Child): string => child.key ?? child.name

/**
 * A file that is open for reading.
 *
 * @since 0.1.0
 */
export interface Handle {
  /** The stat of the open file, to which the bytes from `read` belong. */
  readonly stat: FileStat
  /** Reads up to `length` bytes from `offset`. An empty result means the end of the file. The caller owns the array. */
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, Fault>
  /** The SHA-256 of the content in hex, if the backend stores it. */
  readonly version?: Effect.Effect<string, Fault>
}

/**
 * A function that wraps the step in which a write becomes visible.
 *
 * The backend does all slow work before it runs this step inside `commit`. So `commit` locks the path and checks the
 * precondition as late as possible.
 *
 * @since 0.1.0
 */
export interface Commit {
  <A, E, R>(publish: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R>
}

/**
 * The options of a primitive write.
 *
 * @since 0.1.0
 */
export interface WriteHow {
  /** The wrapper of the step that publishes the file. If absent, the backend publishes immediately. */
  readonly commit?: Commit | undefined
}

/**
 * The operations on symlinks, which cannot be derived from other operations.
 *
 * @since 0.1.0
 */
export interface Links {
  /**
   * Reads the target of a symlink. Fails with NotFound if the path is absent, and with InvalidArgument if it is not a
   * symlink.
   */
  readonly read: (path: FsPath) => Effect.Effect<string, Fault>
  /**
   * Reads the target of a symlink in order to follow the symlink. Fails with AccessDenied if the system forbids this.
   *
   * @default read
   */
  readonly follow?: ((path: FsPath) => Effect.Effect<string, Fault>) | undefined
  /**
   * Converts an absolute target below this root to the relative target that a link at `path` needs. Returns `undefined`
   * if the target lies elsewhere. The result depends only on the two strings.
   *
   * @default no absolute target leads below the root
   */
  readonly relative?: ((path: FsPath, target: string) => string | undefined) | undefined
  /**
   * Creates a symlink whose target the engine has checked. Fails with AlreadyExists if the path exists, and with NotFound or
   * NotADirectory if the parent is missing or is not a directory.
   */
  readonly make: (path: FsPath, target: string) => Effect.Effect<void, Fault>
}

/**
 * The operation that sets permission bits and times.
 *
 * @since 0.1.0
 */
export interface Attributes {
  readonly set: (
    path: FsPath,
    attributes: {
      readonly mode?: number | undefined
      readonly modifiedAt?: DateTime.Utc | undefined
      /**
       * True if `mode` comes from the original of a copy. A backend that lets another program set modes passes this
       * flag on.
       */
      readonly isCopy?: boolean | undefined
    }
  ) => Effect.Effect<void, Fault>
}

/**
 * The locks for writes. All combinators over a backend share the locks of the backend.
 *
 * @since 0.1.0
 */
export interface Locks {
  /** Runs the effect with an exclusive lock on the paths and everything below them. */
  readonly exclusive: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Runs the effect with an exclusive lock on the paths and everything below them. Calls inside the effect may lock these
   * paths again, and wait only for each other.
   *
   * @default runs the effect without a lock
   */
  readonly alone?:
    | (<A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>)
    | undefined
  /**
   * Runs the effect with a claim on the file. The claim excludes other processes that claim the same file. A store with
   * conditional writes excludes no process, but runs the effect again if another process changed the file.
   *
   * A claim is taken after the path's lock, for one file at a time. The claim covers only the check of a precondition and
   * the write that depends on this check. A write without a precondition neither takes a claim nor waits for one. Fails
   * with AccessDenied `busy` if the claim is not free in time.
   */
  readonly claim?: (<A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Fault, R>) | undefined
}

/**
 * The options of a layer that apply to every call. Combinators keep these options.
 *
 * @since 0.1.0
 */
export interface Rules {
  /**
   * Tests whether an action is permitted on a path. Without a path, tests whether the action is permitted on at least
   * one path.
   *
   * @default everything is permitted
   */
  readonly permits?: ((action: "write" | "delete", path?: FsPath) => boolean) | undefined
  /**
   * Returns a fault if a policy protects the path from removal, else `undefined`. Called before an entry is moved away
   * instead of removed.
   */
  readonly keeps?: ((path: FsPath) => Fault | undefined) | undefined
  /**
   * Tests whether a path is a mount point or a parent of a mount point. Like the root, such a directory cannot be
   * removed, moved or replaced.
   */
  readonly pinned?: ((path: FsPath) => boolean) | undefined
  /** @default "standard" */
  readonly policy?: PathPolicy | undefined
  /** @default "follow" */
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
  /** True if a copy keeps permission bits. @default true */
  readonly preservePermissions?: boolean | undefined
  /**
   * True if `attributes.set` receives the permission bits of every copy (`isCopy`) and decides about them.
   *
   * @default false
   */
  readonly decidesModeOfCopies?: boolean | undefined
}

/**
 * The wrappers around whole calls of the service, streams included. Combinators keep these wrappers.
 *
 * @since 0.1.0
 */
export interface Calls {
  readonly effect: <A, E, R>(call: Call, self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly stream: <A, E, R>(call: Call, self: Stream.Stream<A, E, R>) => Stream.Stream<A, E, R>
}

/**
 * A backend: the seven primitive operations and optional capabilities.
 *
 * @category models
 * @since 0.1.0
 */
export interface Backend {
  readonly info: Info
  /**
   * Returns the stat of a path, without following a symlink. Returns `undefined` if the path is absent or leads through
   * a file or symlink.
   */
  readonly stat: (path: FsPath) => Effect.Effect<FileStat | undefined, Fault>
  /** Lists a directory in any order. Fails with NotFound or NotADirectory. */
  readonly list: (path: FsPath) => Effect.Effect<ReadonlyArray<Child>, Fault>
  /** Opens a file. Fails with NotFound, and with NotAFile for directories, symlinks and entries of kind `other`. */
  readonly open: (path: FsPath) => Effect.Effect<Handle, Fault, Scope.Scope>
  /**
   * Writes a file and returns the stat of the published file.
   *
   * `create` fails with AlreadyExists for any existing entry. `replace` and `append` create a missing file, and fail
   * with NotAFile on any other entry, including a symlink. If the parent is missing or not a directory, the write fails
   * with NotFound or NotADirectory.
   */
  readonly write: <E = never, R = never>(
    path: FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: "create" | "replace" | "append",
    how?: WriteHow
  ) => Effect.Effect<FileStat, Fault | E, R>
  /**
   * Creates a directory. Fails with AlreadyExists if the path exists, and with NotFound or NotADirectory if the parent is
   * missing or is not a directory.
   */
  readonly makeDirectory: (path: FsPath) => Effect.Effect<void, Fault>
  /** Removes a file, a symlink, an entry of kind `other`, or an empty directory. Fails with NotFound or DirectoryNotEmpty. */
  readonly remove: (path: FsPath) => Effect.Effect<void, Fault>
  /**
   * Renames an entry. Fails with NotFound if the source or the parent of the target is missing. Without `replace`,
   * fails with AlreadyExists if the target exists.
   *
   * With `replace` a file or symlink replaces a file or symlink, and a directory replaces an empty directory. Fails
   * with IoError and the code EXDEV if the entry must be copied instead, as between two disks.
   */
  readonly rename: (from: FsPath, to: FsPath, options: { readonly replace: boolean }) => Effect.Effect<void, Fault>

  readonly links?: Links | undefined
  readonly attributes?: Attributes | undefined
  /** Streams the changes below the directory, at any depth. Fails with NotFound when the directory itself disappears. */
  readonly watch?: ((path: FsPath) => Stream.Stream<WatchEvent, Fault>) | undefined

  readonly rules?: Rules | undefined
  readonly locks?: Locks | undefined
  /**
   * Answers requests in one step. Each answer must equal the answer that the engine would derive from the primitives.
   * Without `perform`, the engine derives every answer.
   */
  readonly perform?: Perform | undefined
  /** Reads the directories of a walk ahead, and searches the files in them. */
  readonly explore?: Explore | undefined
  /** The access for snapshots. A combinator that shows another tree drops the access. */
  readonly history?: History | undefined
  readonly calls?: Calls | undefined
  /**
   * The host directories that contain the files, for transaction records that outlive the process. Absent for files in
   * memory.
   */
  readonly hostRoots?: HostRoots | undefined
}

/**
 * Returns the target of a symlink in order to follow it.
 *
 * @since 0.1.0
 */
export const follow = (links: Links, path: FsPath): Effect.Effect<string, Fault> => (links.follow ?? links.read)(path)

/**
 * A function that receives each primitive operation and the effect that runs it.
 *
 * @since 0.1.0
 */
export interface Advice {
  <A, E, R>(operation: Operation, next: Effect.Effect<A, E | Fault, R>): Effect.Effect<A, E | Fault, R>
}

/**
 * A function that receives each request and the effect that answers it. If the function returns `Request.declined`
 * instead, the engine runs the primitive operations.
 *
 * @since 0.1.0
 */
export interface RequestAdvice {
  <A, E, R>(
    request: Request.Request,
    next: Effect.Effect<Option.Option<A>, E | Fault, R>
  ): Effect.Effect<Option.Option<A>, E | Fault, R>
}

/**
 * The functions that `around` runs around operations and requests.
 *
 * @since 0.1.0
 */
export interface Interceptor {
  /** Runs around each primitive operation. */
  readonly operation?: Advice | undefined
  /**
   * Runs around each request. If `operation` is given without `request`, the engine sends no requests and runs
   * primitive operations instead.
   */
  readonly request?: RequestAdvice | undefined
  /**
   * Receives the bytes that operations and requests read and write. The function runs after a read, after a write of
   * bytes, and for each chunk of a written stream. The function must not modify the bytes.
   */
  readonly bytes?: ((direction: "read" | "written", path: FsPath, bytes: Uint8Array) => Effect.Effect<void>) | undefined
}

const withOperationAdvice = (self: Backend, advice: Advice): Backend => {
  const { attributes, links, watch } = self
  return {
    ...self,
    stat: (path) => advice({ _tag: "Stat", path }, self.stat(path)),
    list: (path) => advice({ _tag: "List", path }, self.list(path)),
    open: (path) => advice({ _tag: "Open", path }, self.open(path)),
    write: (path, bytes, mode, how) =>
      advice(
        isBytes(bytes) ? { _tag: "Write", path, mode, size: bytes.length } : { _tag: "Write", path, mode },
        self.write(path, bytes, mode, how)
      ),
    makeDirectory: (path) => advice({ _tag: "MakeDirectory", path }, self.makeDirectory(path)),
    remove: (path) => advice({ _tag: "Remove", path }, self.remove(path)),
    rename: (path, to, options) =>
      advice({ _tag: "Rename", path, to, replace: options.replace }, self.rename(path, to, options)),
    links: links && {
      read: (path) => advice({ _tag: "ReadLink", path }, links.read(path)),
      follow: (path) => advice({ _tag: "ReadLink", path }, follow(links, path)),
      relative: links.relative,
      make: (path, target) => advice({ _tag: "MakeLink", path, target }, links.make(path, target))
    },
    attributes: attributes && {
      set: (path, values) => advice({ _tag: "SetAttributes", path }, attributes.set(path, values))
    },
    watch: watch && ((path) => Stream.unwrap(advice({ _tag: "Watch", path }, Effect.succeed(watch(path)))))
  }
}

/** The requests that read and write no file contents, or only contents that the caller passes or receives. */
const visibleRequests: ReadonlySet<Request.Tag> = new Set<Request.Tag>([
  ...Request.reading,
  "RemoveTree",
  "MakeMany",
  "Write",
  "Remove",
  "MakeDirectory",
  "Move"
])

const withObservedBytes = (self: Backend, observe: NonNullable<Interceptor["bytes"]>): Backend => {
  /** Runs a write and passes its bytes to `observe`. A declined request has written nothing and has not run the stream. */
  const observeWrite = <A, E, R, E2, R2>(
    path: FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    write: (content: Uint8Array | Stream.Stream<Uint8Array, E, R>) => Effect.Effect<A, E2, R2>,
    isWritten: (answer: A) => boolean
  ): Effect.Effect<A, E2, R2> =>
    isBytes(content)
      ? Effect.tap(write(content), (answer) => (isWritten(answer) ? observe("written", path, content) : Effect.void))
      : write(
          Stream.mapArrayEffect(content, (chunks) =>
            Effect.as(
              Effect.forEach(chunks, (chunk) => observe("written", path, chunk), { discard: true }),
              chunks
            )
          )
        )
  return {
    ...self,
    open: (path) =>
      Effect.map(self.open(path), (handle) => ({
        ...handle,
        read: (offset, length) => Effect.tap(handle.read(offset, length), (bytes) => observe("read", path, bytes))
      })),
    write: (path, content, mode, how) =>
      observeWrite(
        path,
        content,
        (content) => self.write(path, content, mode, how),
        () => true
      ),
    perform: Request.override(Request.only(self.perform, visibleRequests), (perform) => ({
      Read: (request) =>
        Effect.tap(perform(request), (answer) =>
          Option.isSome(answer) ? observe("read", request.path, answer.value.bytes) : Effect.void
        ),
      ReadMany: (request) =>
        Effect.tap(perform(request), (answer) =>
          Effect.forEach(
            Option.getOrElse(answer, () => []),
            (whole, index) => (whole === undefined ? Effect.void : observe("read", request.paths[index]!, whole.bytes)),
            { discard: true }
          )
        ),
      MakeMany: (request) =>
        Effect.tap(perform(request), (answer) =>
          Effect.forEach(
            Option.getOrElse(answer, () => []),
            (isMade, index) => {
              const { bytes, path } = request.entries[index]!
              return isMade && bytes !== undefined ? observe("written", path, bytes) : Effect.void
            },
            { discard: true }
          )
        ),
      Write: <E, R>(request: Request.Write<E, R>) =>
        observeWrite(request.path, request.bytes, (bytes) => perform<E, R>({ ...request, bytes }), Option.isSome)
    }))
  }
}

/**
 * Returns a backend that runs the given functions around each operation or request. A function instead of an
 * `Interceptor` runs around each operation.
 *
 * The backend keeps its locks, rules, links, attributes and `watch`, but loses `explore` and `history`, which would
 * bypass the functions.
 *
 * If `operation` is given without `request`, the backend also loses `perform`, so that the engine runs every operation.
 * If `bytes` is given, the backend answers no `Edit`, `CopyTree` and `CopyFile` request, because the bytes of the files would
 * not be visible.
 *
 * @example
 * ```ts
 * const steps: Array<string> = []
 * const port = Backend.around(fs.port, (operation, next) => {
 *   steps.push(`${operation._tag} ${operation.path}`)
 *   return next
 * })
 * yield* Filesystem.make(port).delete("notes/todo.md")
 * steps.at(-1) // => "Remove notes/todo.md"
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const around = (self: Backend, advice: Advice | Interceptor): Backend => {
  const { bytes, operation, request }: Interceptor = typeof advice === "function" ? { operation: advice } : advice
  const observed = bytes === undefined ? self : withObservedBytes(self, bytes)
  return {
    ...(operation === undefined ? observed : withOperationAdvice(observed, operation)),
    perform:
      request !== undefined
        ? Request.around(observed.perform, request)
        : operation === undefined
          ? observed.perform
          : undefined,
    explore: undefined,
    history: undefined
  }
}

/**
 * Returns the backend with mapped paths. `into` maps each caller's path to a backend path, and `out` maps the paths that
 * the backend reports to caller's paths.
 *
 * @since 0.1.0
 */
export const mapPath = (self: Backend, into: (path: FsPath) => FsPath, out: (path: FsPath) => FsPath): Backend => {
  const { attributes, explore, hostRoots, links, locks, rules, watch } = self
  const permits = rules?.permits
  const pinned = rules?.pinned
  const keeps = rules?.keeps
  return {
    ...self,
    history: undefined,
    hostRoots: hostRoots && {
      all: hostRoots.all,
      hostPathOf: (path) => hostRoots.hostPathOf(into(path)),
      // Paths that the caller cannot see are permitted, because the caller cannot refuse them.
      settleTransactions: (permits) => hostRoots.settleTransactions((path) => into(out(path)) !== path || permits(out(path)))
    },
    stat: (path) => self.stat(into(path)),
    list: (path) => self.list(into(path)),
    open: (path) => self.open(into(path)),
    write: (path, bytes, mode, how) => self.write(into(path), bytes, mode, how),
    makeDirectory: (path) => self.makeDirectory(into(path)),
    remove: (path) => self.remove(into(path)),
    rename: (from, to, options) => self.rename(into(from), into(to), options),
    links: links && {
      read: (path) => links.read(into(path)),
      follow: (path) => follow(links, into(path)),
      relative: links.relative && ((path, target) => links.relative!(into(path), target)),
      make: (path, target) => links.make(into(path), target)
    },
    attributes: attributes && { set: (path, values) => attributes.set(into(path), values) },
    watch:
      watch && ((path) => Stream.map(watch(into(path)), (event): WatchEvent => ({ _tag: event._tag, path: out(event.path) }))),
    rules: rules && {
      ...rules,
      permits: permits && ((action, path) => permits(action, path === undefined ? undefined : into(path))),
      pinned: pinned && ((path) => pinned(into(path))),
      keeps: keeps && ((path) => keeps(into(path)))
    },
    locks: locks && {
      exclusive: (paths, effect) => locks.exclusive(paths.map(into), effect),
      ...(locks.alone && {
        alone: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => locks.alone!(paths.map(into), effect)
      }),
      ...(locks.claim && {
        claim: <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) => locks.claim!(into(path), effect)
      })
    },
    perform: Request.mapped(self.perform, into, (fault) => {
      const path = fault["path"]
      return typeof path === "string" ? { ...fault, path: out(path as FsPath) } : fault
    }),
    explore: explore && ((pathOf, searches) => explore((visit) => into(pathOf(visit)), searches))
  }
}

/**
 * Returns the backend without `perform` and `explore`, so that the engine derives every answer from the primitive
 * operations.
 *
 * @category combinators
 * @since 0.1.0
 */
export const portable = (self: Backend): Backend => ({ ...self, perform: undefined, explore: undefined })
