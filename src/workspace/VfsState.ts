/**
 * A filesystem in a temporary directory of one session: the contents on disk, what is known of them in a slice. It is the filesystem that
 * a host directory is, but that:
 *
 * - paths are ASCII, without `.` and `..`, unless another policy is asked for
 * - a directory that is left empty by a removal or a move goes, and so do those above it; one that was made empty stays. So the root of
 *   a `subdirectory` of it goes with its last file
 * - there are no links; one that somebody else puts into the directory leads nowhere. Nothing can be watched: the session's changes tell
 * - a snapshot of the session copies the directory, and a rollback makes a new one of that copy, under another path
 *
 * Whoever else works in the directory (a container) is met as on a host: the files are there to be read and listed, and one that has
 * vanished is NotFound. The slice tells of a file from its first write here on.
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
import { join } from "./vfs/share.ts"
import type { Mounted } from "./vfs/state.ts"

export {
  /** @since 0.1.0 */
  VfsFile,
  /** @since 0.1.0 */
  VfsPath,
  /** @since 0.1.0 */
  VirtualFileSystem
} from "./vfs/value.ts"

/**
 * What a filesystem in a session begins with, and which rules it keeps.
 *
 * @since 0.1.0
 */
export interface Options extends Omit<CommonOptions, "policy"> {
  /** Copied in before the first call, and again after a reset, whatever else the options forbid. @default none */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** Where mounts may come from: absolute directories. @default none, so that every mount is refused */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
  /** Whether the directory is made, and filled, at once or at the first call. @default "eager" */
  readonly start?: "eager" | "lazy" | undefined
  /** In which the directories are made; of several filesystems of one session that of the first counts. @default os.tmpdir() */
  readonly directory?: string | undefined
  /** @default "vfs" */
  readonly policy?: CommonOptions["policy"]
}

/**
 * A filesystem that lives in a session.
 *
 * @since 0.1.0
 */
export interface VfsState {
  readonly filesystem: Algebra
  /**
   * Of the directory at this moment, which is made where there is none: absolute, on the machine. A rollback and a reset make it another.
   * Fails with Unavailable where it cannot be made.
   */
  readonly rootPath: Effect.Effect<string, BackendError>
  /** What was copied in when the mounts of these options were last; none before. */
  readonly previews: Effect.Effect<ReadonlyArray<Preview>>
}

/**
 * The filesystem of the session, the same one for all who make it on that session; the last of their scopes removes it, and all its
 * copies. Fails with MountError, with what a host directory fails with where `directory` cannot be one, and with SessionError
 * `duplicateSlice` where another slice has its name. What a killed process has left in `directory` is removed, and so is what the session
 * says of a directory that is nobody's: one that was loaded, or a clone, begins without files.
 *
 * Where the directory has to be made at a call and cannot be, or cannot be filled, that call fails with Unavailable, and the next one
 * tries again.
 *
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options & { readonly session: Slices }
): Effect.fn.Return<VfsState, MountError | FsError | SessionError, Scope.Scope> {
  const { allowedRoots = [], mounts = [], policy = "vfs" } = options
  const state = yield* join(options.session, options.directory ?? tmpdir())
  const mounted: Mounted = { mounts: [...mounts], allowedRoots: [...allowedRoots], policy, limits: yield* Limits, previews: [] }
  yield* state.mount(mounted, options.start !== "lazy")
  return {
    filesystem: makeAlgebra(state.port(fromOptions({ ...options, policy }))),
    rootPath: Effect.mapError(state.rootPath, (fault) => promote(fault, "rootPath", ".") as BackendError),
    previews: Effect.sync(() => mounted.previews)
  }
})

/**
 * The same as a layer, on the session of the options or else of the context.
 *
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
