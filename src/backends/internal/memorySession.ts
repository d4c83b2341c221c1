/**
 * Keeps a tree in memory in a session.
 *
 * Each change of the tree also sets the slice, in the same step. Any other change of the slice (a rollback, a reset,
 * another filesystem on the session) replaces the tree.
 *
 * Filesystems on one session share their locks and their initial tree.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Fault, InvalidArgument } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import type { SessionError } from "../../model/sessionError.ts"
import type { Backend } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import type { Cell, Slices } from "../../port/slices.ts"
import * as Locks from "../../runtime/locks.ts"
import { capturedIn, slice, TreeState } from "./memoryState.ts"
import { isFault, type MemoryTree } from "./memoryTree.ts"

interface SessionTree {
  /** The locks for participants of the session; `locks` also lock the session. */
  readonly participantLocks: Locks.Locks
  readonly locks: Locks.Locks
  readonly caseSensitive: boolean
  readonly first: TreeState
  members: number
  participantCount: number
}

const sessionTrees = new WeakMap<Slices, SessionTree>()

const otherCaseDetail = "the session keeps a tree with other rules of case"

const mismatch = new InvalidArgument({
  operation: "InMemory.makeSession",
  path: root,
  argument: "caseInsensitive",
  detail: otherCaseDetail
})

const notShown: Fault = Object.freeze({ _tag: "Unavailable", detail: otherCaseDetail })
const ended: Fault = Object.freeze({ _tag: "Unavailable", detail: "this filesystem has been closed" })

const joinSessionTree = (session: Slices, first: TreeState): Effect.Effect<SessionTree, InvalidArgument, Scope.Scope> => {
  const { caseSensitive } = first
  const entered = Effect.suspend(() => {
    let sessionTree = sessionTrees.get(session)
    if (sessionTree === undefined) {
      const participantLocks = Locks.make({ caseSensitive })
      sessionTree = {
        participantLocks,
        locks: Locks.nestLocks(session.exclusively, participantLocks),
        caseSensitive,
        first,
        members: 0,
        participantCount: 0
      }
      sessionTrees.set(session, sessionTree)
    }
    if (sessionTree.caseSensitive !== caseSensitive) return Effect.fail(mismatch)
    sessionTree.members++
    return Effect.succeed(sessionTree)
  })
  return Effect.acquireRelease(entered, (sessionTree) =>
    Effect.sync(() => {
      if (--sessionTree.members === 0) sessionTrees.delete(session)
    })
  )
}

/** Keeps each change of the tree in the session. Refuses changes while `why` returns a fault. */
const persistChanges = (tree: MemoryTree, keep: () => void, findFault: () => Fault | undefined): MemoryTree => {
  const kept = <A extends object | undefined>(change: () => A): A | Fault => {
    const refused = findFault()
    if (refused !== undefined) return refused
    const result = change()
    if (result === undefined || !isFault(result)) keep()
    return result
  }
  return {
    ...tree,
    write: (path, content, mode, now) => kept(() => tree.write(path, content, mode, now)),
    makeDirectory: (path, now) => kept(() => tree.makeDirectory(path, now)),
    makeLink: (path, target, now) => kept(() => tree.makeLink(path, target, now)),
    remove: (path, now) => kept(() => tree.remove(path, now)),
    removeTree: (path, now) => kept(() => tree.removeTree(path, now)),
    rename: (from, to, replace, now) => kept(() => tree.rename(from, to, replace, now)),
    setAttributes: (path, attributes) => kept(() => tree.setAttributes(path, attributes)),
    restore: (captured) => {
      tree.restore(captured)
      keep()
    },
    restorePaths: (captured, paths, now) => {
      tree.restorePaths(captured, paths, now)
      keep()
    }
  }
}

const failWhile = (port: Backend, findFault: () => Fault | undefined): Backend => {
  const guardRead =
    <Args extends ReadonlyArray<unknown>, A, R>(read: (...args: Args) => Effect.Effect<A, Fault, R>) =>
    (...args: Args): Effect.Effect<A, Fault, R> => {
      const refused = findFault()
      return refused === undefined ? read(...args) : Effect.fail(refused)
    }
  const { history, links } = port
  return {
    ...port,
    stat: guardRead(port.stat),
    list: guardRead(port.list),
    open: guardRead(port.open),
    links: links && { ...links, read: guardRead(links.read) },
    perform: Request.override(port.perform, (perform) => ({
      Stat: guardRead((request) => perform(request)),
      Read: guardRead((request) => perform(request))
    })),
    history: history?._tag === "Memory" ? { ...history, restore: guardRead(history.restore) } : history
  }
}

export interface Options {
  readonly caseInsensitive: boolean
  readonly port: (tree: MemoryTree, locks: Locks.Locks) => Backend
}

export const make = (
  session: Slices,
  tree: MemoryTree,
  { caseInsensitive, port }: Options
): Effect.Effect<Backend, SessionError | InvalidArgument, Scope.Scope> =>
  Effect.gen(function* () {
    const caseSensitive = !caseInsensitive
    const captured = (): TreeState => new TreeState(tree.capture(), caseSensitive)
    const sessionTree = yield* joinSessionTree(session, captured())
    let refused: Fault | undefined
    let isEnded = false
    const findFault = () => (isEnded ? ended : refused)
    const showTree = (state: TreeState): void => {
      refused = state.caseSensitive === caseSensitive ? undefined : notShown
      if (refused === undefined) tree.restore(capturedIn(state))
    }
    const changed = (latest: TreeState | undefined): void => {
      if (latest === undefined) cell.set(sessionTree.first)
      showTree(latest ?? sessionTree.first)
    }
    const cell: Cell<TreeState> = yield* session.cell(slice, changed)
    const storedTree = cell.get()
    if (storedTree !== undefined && storedTree.caseSensitive !== caseSensitive) return yield* Effect.fail(mismatch)
    changed(storedTree)
    yield* Effect.addFinalizer(() => Effect.sync(() => void (isEnded = true)))
    yield* session.addParticipant({
      name: `InMemory ${++sessionTree.participantCount}`,
      exclusively: (effect) => sessionTree.participantLocks.alone([root], effect)
    })
    return failWhile(
      port(
        persistChanges(tree, () => cell.set(captured()), findFault),
        sessionTree.locks
      ),
      findFault
    )
  })
