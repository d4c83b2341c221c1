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
export interface Mounted {
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
  readonly mount: (mounted: Mounted, now: boolean) => Effect.Effect<void, Failure, Scope.Scope>
  readonly rootPath: Effect.Effect<string, Fault>
}

const name = "VfsState"

const asError = (fault: Fault): FsError => promote(fault, name, ".")

const outside =
  (operation: string) =>
  (fault: Fault): SessionError =>
    new SessionError({
      operation,
      reason: "outside",
      detail: `the files of ${VirtualFileSystem.name} were not copied: ${asError(fault).message}`
    })

const closed: Fault = { _tag: "Unavailable", detail: "this filesystem has been closed" }

/** Turns a failure into a fault for callers, without the source path of a mount on the machine. */
const unavailable = (failure: Failure): Fault =>
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
  place: Tree.Ground
): Effect.Effect<State, SessionError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const own = Locks.make({ caseSensitive: place.info.caseSensitive })
    const locks = Locks.within(session.exclusively, own)
    /** The lock for creating a directory. A caller that needs both must take `locks` first. */
    const making = Locks.make()
    const mounted: Array<Mounted> = []
    let current: Tree.Tree | undefined
    let isClosed = false

    const cell = yield* session.cell(VirtualFileSystem, () => {})
    const show = (): void => {
      if (isClosed) return
      if (current === undefined) cell.clear()
      else cell.set(Files.valueOf(current.files, current.path))
    }
    // Replace the item of a loaded or cloned slice: it describes the directory of another session.
    show()
    const publish = (tree: Tree.Tree): void => {
      if (tree === current) show()
    }
    const become = (tree: Tree.Tree | undefined): void => {
      current = tree
      show()
    }
    const exchange = (tree: Tree.Tree | undefined): Effect.Effect<void> =>
      Effect.suspend(() => {
        const before = current
        become(tree)
        return before === undefined ? Effect.void : Tree.retire(before)
      })

    const info = { ...place.info, name, readOnly: false }
    const portOver = (source: Port.Source, rules: Rules, locks: Locks.Locks): Backend =>
      Port.make(source, { ...info, readOnly: isReadOnly(rules) }, rules, locks, place.hasAttributes)

    const hydrated = (fs: (rules: Rules) => Algebra, each: Mounted): Effect.Effect<void, Failure> =>
      Effect.suspend(() =>
        each.mounts.length === 0
          ? Effect.void
          : hydrate(fs({ policy: each.policy }), each.mounts, { allowedRoots: each.allowedRoots }).pipe(
              Effect.provideService(Limits, each.limits),
              Effect.map((previews) => void (each.previews = previews))
            )
      )
    /** Copies the mounts into a directory that is not visible yet. */
    const replay = (tree: Tree.Tree): Effect.Effect<void, Failure> =>
      Effect.forEach(
        [...mounted],
        (each) => {
          const source: Port.Source = { current: () => tree, provide: Effect.void, changed: () => {} }
          return hydrated((rules) => makeAlgebra(portOver(source, rules, Locks.make())), each)
        },
        { discard: true }
      )

    const provide: Effect.Effect<void, Failure> = making.exclusive(
      [root],
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend((): Effect.Effect<void, Failure> => {
          if (current !== undefined) return Effect.void
          if (isClosed) return Effect.fail(asError(closed))
          return Tree.make(scope, place, Files.none(info.caseSensitive), () => Effect.void).pipe(
            Effect.mapError(asError),
            Effect.tap((tree) => Effect.onError(restore(replay(tree)), () => tree.dispose)),
            Effect.map(become)
          )
        })
      )
    )
    const source: Port.Source = {
      current: () => current,
      provide: Effect.mapError(provide, unavailable),
      changed: publish
    }
    const port = (rules: Rules): Backend => portOver(source, rules, locks)

    const copying = (from: string) => (to: string) =>
      Effect.flatMap(Effect.service(Unmasking), (unmask) => unmask(Copy.copyTree(from, to)))
    const keeping = (artifact: Temporary.Directory | undefined, files: Files.Files): Kept => ({
      prepare:
        artifact === undefined
          ? Effect.succeed({ commit: exchange(undefined), discard: Effect.void })
          : Tree.make(scope, place, files, copying(artifact.path)).pipe(
              Effect.mapError(outside("restore")),
              Effect.map((tree) => ({ commit: exchange(tree), discard: tree.dispose }))
            ),
      release: artifact?.remove ?? Effect.void
    })
    const participant: Participant = {
      name: participantName,
      exclusively: (effect) => own.alone([root], making.alone([root], effect)),
      capture: Effect.suspend(() => {
        const tree = current
        if (tree === undefined) return Effect.succeed(keeping(undefined, Files.none(info.caseSensitive)))
        return Temporary.filled(scope, place.path, "vfs", copying(tree.path)).pipe(
          Effect.mapError(outside("snapshot")),
          Effect.map((artifact) => keeping(artifact, tree.files))
        )
      }),
      reset: exchange(undefined)
    }
    yield* session.join(participant)
    yield* Effect.forkIn(Temporary.sweep(place.path), scope)
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
              if (current !== undefined) return hydrated((rules) => makeAlgebra(port(rules)), each)
              return now ? provide : Effect.void
            })
          )
        ),
      rootPath: Effect.flatMap(source.provide, () =>
        Effect.suspend(() => (current === undefined ? Effect.fail(closed) : Effect.succeed(current.path)))
      )
    }
  })
