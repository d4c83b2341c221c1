/**
 * A filesystem in a temporary directory of one session: its contents are on disk, and the facts about its files in a slice. It behaves like
 * a host directory, with these differences:
 *
 * - Paths are ASCII, without `.` and `..`, unless another policy is set.
 * - A directory that becomes empty by a removal or a move is removed, and so are its empty parents. A directory that was created empty stays.
 *   So the root of a `subdirectory` is removed with its last file.
 * - There are no links. A link that another program creates leads nowhere. Directories cannot be watched; use the session's changes.
 * - A snapshot of the session copies the directory. A rollback creates a new directory from that copy, under another path.
 *
 * Another program, such as a container, may use the directory at the same time, as on a host. Its files can be read and listed, and a file
 * that it removes is NotFound. The slice describes a file from the first write through this filesystem on.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { tmpdir } from "../runtime/node.ts"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { type BackendError, type FsError, promote } from "../model/FsError.ts"
import { Limits } from "../model/Limits.ts"
import type { SessionError } from "../model/sessionError.ts"
import { type CommonOptions, fromOptions } from "../port/Rules.ts"
import type { Slices } from "../port/slices.ts"
import type { HostMount, MountError, Preview } from "./HostMount.ts"
import { Session } from "./Session.ts"
import { joinState } from "./vfs/share.ts"
import type { MountSet } from "./vfs/state.ts"

export {
  /** @since 0.1.0 */
  VfsFile,
  /** @since 0.1.0 */
  VfsPath,
  /** @since 0.1.0 */
  VirtualFileSystem
} from "./vfs/value.ts"

/**
 * The mounts, the directory and the rules of a filesystem in a session.
 *
 * @since 0.1.0
 */
export interface Options extends Omit<CommonOptions, "policy"> {
  /**
   * The mounts to copy in before the first call, and again after a reset. They are copied whatever else the options forbid. @default none
   */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** The absolute directories in which sources of mounts may lie. @default none, so that every mount is refused */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
  /** The time at which the directory is created and filled: at once, or at the first call. @default "eager" */
  readonly start?: "eager" | "lazy" | undefined
  /** The parent of the directories. If a session has several filesystems, the option of the first one counts. @default os.tmpdir() */
  readonly directory?: string | undefined
  /** @default "vfs" */
  readonly policy?: CommonOptions["policy"]
}

/**
 * A filesystem that is part of a session.
 *
 * @since 0.1.0
 */
export interface VfsState {
  readonly filesystem: Algebra
  /**
   * The absolute path of the current directory on the machine. The directory is created if there is none. A rollback and a reset change the
   * path. Fails with Unavailable if the directory cannot be created.
   */
  readonly rootPath: Effect.Effect<string, BackendError>
  /** The entries that were last copied for the mounts of these options; empty before that. */
  readonly previews: Effect.Effect<ReadonlyArray<Preview>>
}

/**
 * Returns the filesystem of the session. All callers on one session share it, and the last of their scopes removes it with all its copies.
 * Fails with MountError, with SessionError `duplicateSlice` if another slice has its name, and as a host directory does if `directory` is
 * unusable. Removes leftovers of dead processes from `directory`. A loaded or cloned session begins without files, and its record of an
 * earlier directory is removed.
 *
 * If a call must create the directory and fails to create or fill it, the call fails with Unavailable, and the next call tries again.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options & { readonly session: Slices }
): Effect.fn.Return<VfsState, MountError | FsError | SessionError, Scope.Scope> {
  const { allowedRoots = [], mounts = [], policy = "vfs" } = options
  const state = yield* joinState(options.session, options.directory ?? tmpdir())
  const mounted: MountSet = {
    mounts: [...mounts],
    allowedRoots: [...allowedRoots],
    policy,
    limits: yield* Limits,
    previews: []
  }
  yield* state.mount(mounted, options.start !== "lazy")
  return {
    filesystem: makeAlgebra(state.port(fromOptions({ ...options, policy }))),
    rootPath: Effect.mapError(state.rootPath, (fault) => promote(fault, "rootPath", ".") as BackendError),
    previews: Effect.sync(() => mounted.previews)
  }
})

/**
 * Provides the filesystem of the session in the options, otherwise of the session in the context.
 *
 * @example
 * ```ts
 * const session = yield* Session.make()
 * const write = Filesystem.Filesystem.use((fs) => fs.write("a.txt", "one"))
 * yield* Effect.provide(write, VfsState.layer({ session }))
 * ```
 * @category layers
 * @since 0.1.0
 */
export function layer(
  options: Options & { readonly session: Slices }
): Layer.Layer<Filesystem, MountError | FsError | SessionError>
export function layer(options?: Options): Layer.Layer<Filesystem, MountError | FsError | SessionError, Session>
export function layer(
  options: Options & { readonly session?: Slices } = {}
): Layer.Layer<Filesystem, MountError | FsError | SessionError, Session> {
  const { session } = options
  const made: Effect.Effect<VfsState, MountError | FsError | SessionError, Scope.Scope | Session> =
    session === undefined ? Effect.flatMap(Session, (session) => make({ ...options, session })) : make({ ...options, session })
  return Layer.effect(
    Filesystem,
    Effect.map(made, ({ filesystem }) => filesystem)
  )
}
