/**
 * A filesystem in a temporary directory of one session. Its contents are on disk, and the facts about its files are in a slice.
 * The filesystem behaves like a host directory, with these differences:
 *
 * - Paths are ASCII, without `.` and `..`, unless another policy is set.
 * - A directory that becomes empty by a removal or a move is removed, and so are its empty parents. The root of a
 *   `subdirectory` is therefore removed with its last file. A directory that was created empty stays.
 * - Links are not supported. A link that another program creates leads nowhere. Directories cannot be watched; use the
 *   session's changes instead.
 * - A snapshot of the session copies the directory. A rollback creates a new directory from that copy, under another path.
 *
 * Another program, such as a container, may use the directory at the same time, like a host directory. Calls can read and list
 * the program's files. A call for a file that the program has removed fails with NotFound. The slice describes a file only after
 * the first write through this filesystem.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { type BackendError, type Fault, type FsError, promote, toFault } from "../model/FsError.ts"
import { type PathPolicy, root } from "../model/FsPath.ts"
import { Limits, type LimitsShape } from "../model/Limits.ts"
import { SessionError } from "../model/sessionError.ts"
import type { Backend, Rules } from "../port/Backend.ts"
import { type CommonOptions, fromOptions, isReadOnly } from "../port/Rules.ts"
import { type Kept, type Participant, type Slices, Unmasking } from "../port/slices.ts"
import * as Locks from "../runtime/locks.ts"
import { tmpdir } from "../runtime/node.ts"
import { type HostMount, hydrate, type MountError, type Preview } from "./HostMount.ts"
import { Session } from "./Session.ts"
import * as Temporary from "./temporary.ts"
import * as Files from "./vfs/files.ts"
import { VirtualFileSystem } from "./vfs/files.ts"
import * as Port from "./vfs/port.ts"
import * as Tree from "./vfs/tree.ts"

// The option `start` or the first call creates the directory, and after a reset the next call creates a new directory. This
// module uses only directories that it created, and never the path in the session's slice.

interface MountSet {
  readonly mounts: ReadonlyArray<HostMount>
  readonly allowedRoots: ReadonlyArray<string>
  readonly policy: PathPolicy
  /** The limits of the call that requested the mounts, which also apply when a later call copies the mounts again. */
  readonly limits: LimitsShape
  previews: ReadonlyArray<Preview>
}

type Failure = MountError | FsError

interface State {
  readonly port: (rules: Rules) => Backend
  /**
   * Adds mounts until the scope ends. Files that were copied stay. Copies the files immediately if a directory exists, or if
   * `now` is true.
   */
  readonly mount: (mounted: MountSet, now: boolean) => Effect.Effect<void, Failure, Scope.Scope>
  readonly rootPath: Effect.Effect<string, Fault>
}

const name = "VfsState"

const asError = (fault: Fault): FsError => promote(fault, name, ".")

const outsideError =
  (operation: string) =>
  (fault: Fault): SessionError =>
    new SessionError({
      operation,
      reason: "outside",
      detail: `the files of ${VirtualFileSystem.name} were not copied: ${asError(fault).message}`
    })

const closedFault: Fault = { _tag: "Unavailable", detail: "this filesystem has been closed" }

/** Converts a failure to a fault for callers. Omits the path of a mount's source on the machine. */
const unavailableFault = (failure: Failure): Fault =>
  failure._tag === "Unavailable"
    ? toFault(failure)
    : {
        _tag: "Unavailable",
        detail:
          failure._tag === "MountError"
            ? `a mount could not be copied (${failure.reason})`
            : `the files could not be copied into the directory of the filesystem (${failure._tag})`,
        cause: failure
      }

const open = (
  session: Slices,
  participantName: string,
  parentDirectory: Tree.ParentDirectory
): Effect.Effect<State, SessionError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const ownLocks = Locks.make({ caseSensitive: parentDirectory.info.caseSensitive })
    const locks = Locks.nestLocks(session.exclusively, ownLocks)
    /** The lock for creating a directory. A caller that needs this lock and `locks` must take `locks` first. */
    const creationLock = Locks.make()
    const mounted: Array<MountSet> = []
    let current: Tree.Tree | undefined
    let isClosed = false

    const cell = yield* session.cell(VirtualFileSystem, () => {})
    const updateSlice = (): void => {
      if (isClosed) return
      if (current === undefined) cell.clear()
      else cell.set(Files.valueOf(current.files, current.path))
    }
    // Replace the item of a loaded or cloned slice, because it describes the directory of another session.
    updateSlice()
    const publish = (tree: Tree.Tree): void => {
      if (tree === current) updateSlice()
    }
    const setCurrent = (tree: Tree.Tree | undefined): void => {
      current = tree
      updateSlice()
    }
    const replaceCurrent = (tree: Tree.Tree | undefined): Effect.Effect<void> =>
      Effect.suspend(() => {
        const before = current
        setCurrent(tree)
        return before === undefined ? Effect.void : Tree.retire(before)
      })

    const info = { ...parentDirectory.info, name, readOnly: false }
    const portOver = (source: Port.TreeSource, rules: Rules, locks: Locks.Locks): Backend =>
      Port.make(source, { ...info, readOnly: isReadOnly(rules) }, rules, locks, parentDirectory.hasAttributes)

    const copyMounts = (fs: (rules: Rules) => Algebra, each: MountSet): Effect.Effect<void, Failure> =>
      Effect.suspend(() =>
        each.mounts.length === 0
          ? Effect.void
          : hydrate(fs({ policy: each.policy }), each.mounts, { allowedRoots: each.allowedRoots }).pipe(
              Effect.provideService(Limits, each.limits),
              Effect.map((previews) => void (each.previews = previews))
            )
      )
    /** Copies the mounts into a new directory, before the directory becomes visible. */
    const copyAllMounts = (tree: Tree.Tree): Effect.Effect<void, Failure> =>
      Effect.forEach(
        [...mounted],
        (each) => {
          const source: Port.TreeSource = { current: () => tree, createDirectory: Effect.void, changed: () => {} }
          return copyMounts((rules) => makeAlgebra(portOver(source, rules, Locks.make())), each)
        },
        { discard: true }
      )

    const createDirectory: Effect.Effect<void, Failure> = creationLock.exclusive(
      [root],
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend((): Effect.Effect<void, Failure> => {
          if (current !== undefined) return Effect.void
          if (isClosed) return Effect.fail(asError(closedFault))
          return Tree.make(scope, parentDirectory, Files.noFiles(info.caseSensitive), () => Effect.void).pipe(
            Effect.mapError(asError),
            Effect.tap((tree) => Effect.onError(restore(copyAllMounts(tree)), () => tree.dispose)),
            Effect.map(setCurrent)
          )
        })
      )
    )
    const source: Port.TreeSource = {
      current: () => current,
      createDirectory: Effect.mapError(createDirectory, unavailableFault),
      changed: publish
    }
    const port = (rules: Rules): Backend => portOver(source, rules, locks)

    const copyTreeFrom = (from: string) => (to: string) =>
      Effect.flatMap(Effect.service(Unmasking), (unmask) => unmask(Tree.copyTree(from, to)))
    const capturedState = (copiedDirectory: Temporary.Directory | undefined, files: Files.Files): Kept => ({
      prepare:
        copiedDirectory === undefined
          ? Effect.succeed({ commit: replaceCurrent(undefined), discard: Effect.void })
          : Tree.make(scope, parentDirectory, files, copyTreeFrom(copiedDirectory.path)).pipe(
              Effect.mapError(outsideError("restore")),
              Effect.map((tree) => ({ commit: replaceCurrent(tree), discard: tree.dispose }))
            ),
      release: copiedDirectory?.remove ?? Effect.void
    })
    const participant: Participant = {
      name: participantName,
      exclusively: (effect) => ownLocks.alone([root], creationLock.alone([root], effect)),
      capture: Effect.suspend(() => {
        const tree = current
        if (tree === undefined) return Effect.succeed(capturedState(undefined, Files.noFiles(info.caseSensitive)))
        return Temporary.makeFilled(scope, parentDirectory.path, "vfs", copyTreeFrom(tree.path)).pipe(
          Effect.mapError(outsideError("snapshot")),
          Effect.map((copiedDirectory) => capturedState(copiedDirectory, tree.files))
        )
      }),
      reset: replaceCurrent(undefined)
    }
    yield* session.addParticipant(participant)
    yield* Effect.forkIn(Temporary.removeLeftovers(parentDirectory.path), scope)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        current = undefined
      })
    )

    return {
      port,
      mount: (each, now) =>
        Effect.andThen(
          Effect.acquireRelease(
            Effect.sync(() => void mounted.push(each)),
            () => Effect.sync(() => void mounted.splice(mounted.indexOf(each), 1))
          ),
          locks.alone(
            [root],
            Effect.suspend(() => {
              if (current !== undefined) return copyMounts((rules) => makeAlgebra(port(rules)), each)
              return now ? createDirectory : Effect.void
            })
          )
        ),
      rootPath: Effect.flatMap(source.createDirectory, () =>
        Effect.suspend(() => (current === undefined ? Effect.fail(closedFault) : Effect.succeed(current.path)))
      )
    }
  })

interface SharedState {
  readonly lock: Semaphore.Semaphore
  users: number
  /** The number of states created so far, which makes the names of participants unique. */
  states: number
  opened: { readonly state: State; readonly scope: Scope.Closeable } | undefined
}

const shares = new WeakMap<Slices, SharedState>()

const shareOf = (session: Slices): SharedState => {
  let share = shares.get(session)
  if (share === undefined)
    shares.set(session, (share = { lock: Semaphore.makeUnsafe(1), users: 0, states: 0, opened: undefined }))
  return share
}

const openState = Effect.fnUntraced(function* (session: Slices, name: string, parent: string) {
  const scope = yield* Scope.make()
  const state = yield* Effect.onError(
    Scope.provide(
      Effect.flatMap(Tree.readParentDirectory(parent), (place) => open(session, name, place)),
      scope
    ),
    (cause) => Scope.close(scope, Exit.failCause(cause))
  )
  return { state, scope }
})

/** Returns the state of the session and registers a user of it. Only the first user's `parent` is used. */
const joinState = (session: Slices, parent: string): Effect.Effect<State, FsError | SessionError, Scope.Scope> =>
  Effect.suspend(() => {
    const share = shareOf(session)
    const addUser = Effect.gen(function* () {
      share.opened ??= yield* openState(session, `VfsState ${++share.states}`, parent)
      share.users++
      return share.opened.state
    })
    const removeUser = Effect.sync(() => {
      const { opened } = share
      if (--share.users > 0) return undefined
      share.opened = undefined
      return opened
    })
    // Close outside the lock, to avoid a deadlock. Closing waits for the lock of the session, whose holder may be waiting for
    // this lock.
    const close = Effect.flatMap(share.lock.withPermit(removeUser), (opened) =>
      opened === undefined ? Effect.void : Scope.close(opened.scope, Exit.void)
    )
    return Locks.withoutHolder(Effect.acquireRelease(share.lock.withPermit(addUser), () => close))
  })

export { VfsFile, VfsPath, VirtualFileSystem } from "./vfs/files.ts"

/**
 * The options of a VfsState.
 *
 * @since 0.1.0
 */
export interface Options extends Omit<CommonOptions, "policy"> {
  /**
   * The mounts to copy before the first call and after each reset, even if other options forbid writing.
   *
   * @default none
   */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** The absolute paths of the directories that may contain sources of mounts. @default none, so that every mount is refused */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
  /**
   * The time at which the directory is created and filled: `eager` immediately, `lazy` at the first call. @default "eager"
   */
  readonly start?: "eager" | "lazy" | undefined
  /**
   * The directory on the machine in which the temporary directories are created. If a session has several filesystems, only the
   * option of the first filesystem is used.
   *
   * @default os.tmpdir()
   */
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
   * The absolute path of the current directory on the machine. The directory is created if it does not exist. A rollback or a
   * reset changes the path. Fails with Unavailable if the directory cannot be created or filled.
   */
  readonly rootPath: Effect.Effect<string, BackendError>
  /** The entries of the latest copy of these mounts, or an empty list before the first copy. */
  readonly previews: Effect.Effect<ReadonlyArray<Preview>>
}

/**
 * Returns the filesystem of the session. All callers on one session share the filesystem. The filesystem and its copies are
 * removed when the last caller's scope closes.
 *
 * Fails with MountError. Fails with SessionError `duplicateSlice` if the session has another slice of the same name. If
 * `directory` is unusable, fails as PosixHost does for its root.
 *
 * Removes leftovers of dead processes from `directory`. A loaded or cloned session begins without files, and the slice's
 * description of an earlier directory is removed.
 *
 * If a call cannot create or fill the directory, the call fails with Unavailable, and the next call tries again.
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
 * Provides the filesystem of a session: of the session in the options, or else of the session in the context.
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
