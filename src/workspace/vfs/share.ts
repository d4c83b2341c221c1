/** Shares one state per session, as long as it has users. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { FsError } from "../../model/FsError.ts"
import type { SessionError } from "../../model/sessionError.ts"
import type { Slices } from "../../port/slices.ts"
import * as Locks from "../../runtime/locks.ts"
import { open, type State } from "./state.ts"
import * as Tree from "./tree.ts"

interface SharedState {
  readonly lock: Semaphore.Semaphore
  users: number
  /** The number of states so far, because names of participants must be unique. */
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

/** Joins the session's state. `parent` counts only for the first user. */
export const joinState = (session: Slices, parent: string): Effect.Effect<State, FsError | SessionError, Scope.Scope> =>
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
    // Closing waits until the session is free, and its current holder may be about to join.
    const close = Effect.flatMap(share.lock.withPermit(removeUser), (opened) =>
      opened === undefined ? Effect.void : Scope.close(opened.scope, Exit.void)
    )
    return Locks.withoutHolder(Effect.acquireRelease(share.lock.withPermit(addUser), () => close))
  })
