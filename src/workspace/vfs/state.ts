/**
 * A directory is created at the first call, and again at the first call after a reset. A path in the session's slice is never
 * used; every directory was created by this module.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { type Fault, type FsError, promote, toFault } from "../../model/FsError.ts"
import { type PathPolicy, root } from "../../model/FsPath.ts"
import { Limits, type LimitsShape } from "../../model/Limits.ts"
import { SessionError } from "../../model/sessionError.ts"
import type { Backend, Rules } from "../../port/Backend.ts"
import { isReadOnly } from "../../port/Rules.ts"
import { type Kept, type Participant, type Slices, Unmasking } from "../../port/slices.ts"
import * as Locks from "../../runtime/locks.ts"
import { type HostMount, hydrate, type MountError, type Preview } from "../HostMount.ts"
import * as Temporary from "../temporary.ts"
import * as Copy from "./copy.ts"
import * as Files from "./files.ts"
import * as Port from "./port.ts"
import * as Tree from "./tree.ts"
import { VirtualFileSystem } from "./value.ts"

/** A set of mounts, which are copied in now and after each reset. */
export interface MountSet {
  readonly mounts: ReadonlyArray<HostMount>
  readonly allowedRoots: ReadonlyArray<string>
  readonly policy: PathPolicy
  /** The limits where the mounts were requested. They also apply when another caller's call copies the mounts again. */
  readonly limits: LimitsShape
  previews: ReadonlyArray<Preview>
}

export type Failure = MountError | FsError

export interface State {
  readonly port: (rules: Rules) => Backend
  /** Adds mounts until the scope ends. Files that were copied in stay. Copies immediately if there is a directory, or if `now` is true. */
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

/** Turns a failure into a fault for callers, without the source path of a mount on the machine. */
const unavailableFault = (failure: Failure): Fault =>
  failure._tag === "Unavailable"
    ? toFault(failure)
    : {
        _tag: "Unavailable",
        detail:
          failure._tag === "MountError"
            ? `what is mounted could not be copied in (${failure.reason})`
            : `its directory could not be filled (${failure._tag})`,
        cause: failure
      }

export const open = (
  session: Slices,
  participantName: string,
  parentDirectory: Tree.ParentDirectory
): Effect.Effect<State, SessionError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const ownLocks = Locks.make({ caseSensitive: parentDirectory.info.caseSensitive })
    const locks = Locks.nestLocks(session.exclusively, ownLocks)
    /** The lock for creating a directory. A caller that needs both must take `locks` first. */
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
    // Replace the item of a loaded or cloned slice: it describes the directory of another session.
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
    /** Copies the mounts into a directory that is not visible yet. */
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
      Effect.flatMap(Effect.service(Unmasking), (unmask) => unmask(Copy.copyTree(from, to)))
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
