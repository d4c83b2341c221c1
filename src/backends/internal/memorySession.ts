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

interface Common {
  /** The locks for participants of the session; `locks` also lock the session. */
  readonly own: Locks.Locks
  readonly locks: Locks.Locks
  readonly caseSensitive: boolean
  readonly first: TreeState
  members: number
  joined: number
}

const commons = new WeakMap<Slices, Common>()

const otherCase = "the session keeps a tree with other rules of case"

const mismatch = new InvalidArgument({
  operation: "InMemory.makeSession",
  path: root,
  argument: "caseInsensitive",
  detail: otherCase
})

const notShown: Fault = Object.freeze({ _tag: "Unavailable", detail: otherCase })
const ended: Fault = Object.freeze({ _tag: "Unavailable", detail: "this filesystem has been closed" })

const enter = (session: Slices, first: TreeState): Effect.Effect<Common, InvalidArgument, Scope.Scope> => {
  const { caseSensitive } = first
  const entered = Effect.suspend(() => {
    let common = commons.get(session)
    if (common === undefined) {
      const own = Locks.make({ caseSensitive })
      common = { own, locks: Locks.within(session.exclusively, own), caseSensitive, first, members: 0, joined: 0 }
      commons.set(session, common)
    }
    if (common.caseSensitive !== caseSensitive) return Effect.fail(mismatch)
    common.members++
    return Effect.succeed(common)
  })
  return Effect.acquireRelease(entered, (common) =>
    Effect.sync(() => {
      if (--common.members === 0) commons.delete(session)
    })
  )
}

/** Keeps each change of the tree in the session. Refuses changes while `why` returns a fault. */
const keeping = (tree: MemoryTree, keep: () => void, why: () => Fault | undefined): MemoryTree => {
  const kept = <A extends object | undefined>(change: () => A): A | Fault => {
    const refused = why()
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
    graft: (captured, paths, now) => {
      tree.graft(captured, paths, now)
      keep()
    }
  }
}

const showing = (port: Backend, why: () => Fault | undefined): Backend => {
  const unless =
    <Args extends ReadonlyArray<unknown>, A, R>(read: (...args: Args) => Effect.Effect<A, Fault, R>) =>
    (...args: Args): Effect.Effect<A, Fault, R> => {
      const refused = why()
      return refused === undefined ? read(...args) : Effect.fail(refused)
    }
  const { history, links } = port
  return {
    ...port,
    stat: unless(port.stat),
    list: unless(port.list),
    open: unless(port.open),
    links: links && { ...links, read: unless(links.read) },
    perform: Request.override(port.perform, (perform) => ({
      Stat: unless((request) => perform(request)),
      Read: unless((request) => perform(request))
    })),
    history: history?._tag === "Memory" ? { ...history, restore: unless(history.restore) } : history
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
    const common = yield* enter(session, captured())
    let refused: Fault | undefined
    let isEnded = false
    const why = () => (isEnded ? ended : refused)
    const show = (state: TreeState): void => {
      refused = state.caseSensitive === caseSensitive ? undefined : notShown
      if (refused === undefined) tree.restore(capturedIn(state))
    }
    const changed = (latest: TreeState | undefined): void => {
      if (latest === undefined) cell.set(common.first)
      show(latest ?? common.first)
    }
    const cell: Cell<TreeState> = yield* session.cell(slice, changed)
    const there = cell.get()
    if (there !== undefined && there.caseSensitive !== caseSensitive) return yield* Effect.fail(mismatch)
    changed(there)
    yield* Effect.addFinalizer(() => Effect.sync(() => void (isEnded = true)))
    yield* session.join({
      name: `InMemory ${++common.joined}`,
      exclusively: (effect) => common.own.alone([root], effect)
    })
    return showing(
      port(
        keeping(tree, () => cell.set(captured()), why),
        common.locks
      ),
      why
    )
  })
