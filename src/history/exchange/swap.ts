/**
 * The visible part of a transaction: renames in order, undone in reverse order if one fails. Undoing needs no disk
 * space.
 *
 * The hidden entries show which steps, and which undo steps, are done. So a crash at any point is recoverable.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { isCrossing, withRetries } from "./copying.ts"
import { type Region, type Side, slotIn } from "./places.ts"
import { isShut, type ModeChange, type Move, opened } from "./plan.ts"

export interface Crossing {
  readonly _tag: "Crossing"
  readonly directory: FsPath.FsPath
  readonly fault: Fault
}

export interface Moves {
  readonly regions: ReadonlyArray<Region>
  readonly steps: ReadonlyArray<Move>
  readonly modes: ReadonlyArray<ModeChange>
}

const slotOf = ({ regions }: Moves, token: string, move: Move, side: Side): FsPath.FsPath =>
  slotIn(regions[move.region]!, token, side, move.slot)

export const setMode = (port: Backend, path: FsPath.FsPath, mode: number): Effect.Effect<void, Fault> =>
  port.attributes === undefined ? Effect.void : locate(path, port.attributes.set(path, { mode }))

const renamed = (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  { path }: Move,
  replace: boolean
): Effect.Effect<void, Fault | Crossing> =>
  Effect.mapError(port.rename(from, to, { replace }), (fault): Fault | Crossing =>
    isCrossing(fault) ? { _tag: "Crossing", directory: FsPath.parent(path), fault: located(fault, path) } : located(fault, path)
  )

export const putAside = (port: Backend, move: Move, aside: FsPath.FsPath): Effect.Effect<void, Fault | Crossing> => {
  const gone = renamed(port, move.path, aside, move, false)
  // The rename may work even without the new mode.
  return move.opens === undefined ? gone : Effect.andThen(Effect.ignore(setMode(port, move.path, opened(move.opens))), gone)
}

export const putInPlace = (port: Backend, move: Move, staged: FsPath.FsPath): Effect.Effect<void, Fault | Crossing> => {
  const placed = renamed(port, staged, move.path, move, move.keeps)
  return move.shuts === undefined ? placed : Effect.andThen(placed, setMode(port, move.path, move.shuts))
}

const forward = (port: Backend, moves: Moves, token: string, move: Move): Effect.Effect<void, Fault | Crossing> => {
  const aside = move.was === undefined || move.keeps ? undefined : putAside(port, move, slotOf(moves, token, move, "old"))
  const placed = move.next === undefined ? undefined : putInPlace(port, move, slotOf(moves, token, move, "new"))
  if (aside === undefined) return placed ?? Effect.void
  return placed === undefined ? aside : Effect.andThen(aside, placed)
}

export const open = (port: Backend, { modes }: Pick<Moves, "modes">): Effect.Effect<void> =>
  Effect.forEach(modes, ({ opens, path, was }) => (opens ? Effect.ignore(setMode(port, path, opened(was))) : Effect.void), {
    discard: true
  })

const settle = Effect.fnUntraced(function* (port: Backend, { modes }: Moves): Effect.fn.Return<void, Fault> {
  for (let i = modes.length - 1; i >= 0; i--) yield* setMode(port, modes[i]!.path, modes[i]!.becomes)
})

const inTheWay: Fault = { _tag: "AlreadyExists" }

const back = Effect.fnUntraced(function* (
  port: Backend,
  moves: Moves,
  token: string,
  move: Move
): Effect.fn.Return<void, Fault> {
  const { next, path, shuts, was } = move
  const staged = slotOf(moves, token, move, "new")
  const aside = slotOf(moves, token, move, "old")
  const isPlaced = next !== undefined && (yield* port.stat(staged)) === undefined
  if (isPlaced && (yield* port.stat(path))?.kind === next) {
    if (shuts !== undefined) yield* Effect.ignore(setMode(port, path, opened(shuts)))
    yield* port.rename(path, staged, { replace: false })
  }
  if (was === undefined) return
  if ((yield* port.stat(aside)) !== undefined) {
    if ((yield* port.stat(path)) === undefined) yield* port.rename(aside, path, { replace: false })
    else if (!move.keeps) return yield* Effect.fail(inTheWay)
  }
  if (move.opens !== undefined) yield* setMode(port, path, move.opens)
})

const reopen = (port: Backend, { modes }: Moves): Effect.Effect<void> =>
  Effect.forEach(
    modes,
    (change) => (wasOpened(change) ? withRetries(setMode(port, change.path, opened(change.was))) : Effect.void),
    { discard: true }
  )

/** Tests whether the directory was made writable during the steps or their undoing. */
const wasOpened = ({ becomes, kind, was }: ModeChange): boolean => kind === "directory" && (isShut(was) || isShut(becomes))

const undo = Effect.fnUntraced(function* (
  port: Backend,
  moves: Moves,
  token: string,
  reached: Reached
): Effect.fn.Return<boolean> {
  const { modes, steps } = moves
  let isWhole = true
  yield* reopen(port, moves)
  for (let i = reached.steps - 1; i >= 0; i--) {
    const isBack = yield* withRetries(Effect.suspend(() => back(port, moves, token, steps[i]!)))
    isWhole = isBack && isWhole
  }
  for (let i = modes.length - 1; i >= 0; i--) {
    const change = modes[i]!
    if (!reached.modes && !wasOpened(change)) continue
    const isBack = yield* withRetries(setMode(port, change.path, change.was))
    isWhole = isBack && isWhole
  }
  return isWhole
})

interface Reached {
  steps: number
  modes: boolean
}

const swapAll = Effect.fnUntraced(function* (
  port: Backend,
  moves: Moves,
  token: string,
  reached: Reached
): Effect.fn.Return<void, Fault | Crossing> {
  yield* open(port, moves)
  for (const step of moves.steps) {
    reached.steps++
    yield* forward(port, moves, token, step)
  }
  reached.modes = true
  yield* settle(port, moves)
})

const stuck = (cause: Cause.Cause<Fault | Crossing>): Fault => ({
  _tag: "IoError",
  detail: "it failed halfway, and so did putting back what was there; the next start finishes it",
  cause
})

/** Runs all steps, and undoes them on failure. `turning` runs before the undoing, `onStuck` if it is incomplete. */
export const swap = (
  port: Backend,
  moves: Moves,
  token: string,
  hooks: { readonly turning: Effect.Effect<void>; readonly onStuck: Effect.Effect<void> }
): Effect.Effect<void, Fault | Crossing> =>
  Effect.uninterruptibleMask((restore) => {
    const reached: Reached = { steps: 0, modes: false }
    return Effect.catchCause(restore(swapAll(port, moves, token, reached)), (cause) =>
      Effect.flatMap(
        Effect.andThen(hooks.turning, Effect.provideService(undo(port, moves, token, reached), TakingBack, true)),
        (isWhole) =>
          isWhole
            ? Effect.failCause(cause)
            : Effect.andThen(hooks.onStuck, Cause.hasInterrupts(cause) ? Effect.failCause(cause) : Effect.fail(stuck(cause)))
      )
    )
  })
