/**
 * Runs the visible part of a transaction: renames entries in order, and undoes the renames in reverse order if a rename
 * fails. The undo needs no disk space.
 *
 * The entries in the staging directories show which renames were done or undone. So a later process can recover from a crash
 * at any point.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { alreadyExists, ioError } from "../../model/Fault.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { isCrossDeviceFault, setMode, withRetries } from "./entries.ts"
import { isUnwritable, type ModeChange, type Move, type Region, slotOf, withOwnerBits } from "./plan.ts"

export interface CrossDeviceRename {
  readonly _tag: "CrossDeviceRename"
  readonly directory: FsPath.FsPath
  readonly fault: Fault
}

interface Moves {
  readonly regions: ReadonlyArray<Region>
  readonly steps: ReadonlyArray<Move>
  readonly modes: ReadonlyArray<ModeChange>
}

const renameEntry = (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  { path }: Move,
  replace: boolean
): Effect.Effect<void, Fault | CrossDeviceRename> =>
  Effect.mapError(port.rename(from, to, { replace }), (fault): Fault | CrossDeviceRename =>
    isCrossDeviceFault(fault)
      ? { _tag: "CrossDeviceRename", directory: FsPath.parent(path), fault: located(fault, path) }
      : located(fault, path)
  )

export const moveAside = (port: Backend, move: Move, aside: FsPath.FsPath): Effect.Effect<void, Fault | CrossDeviceRename> => {
  const gone = renameEntry(port, move.path, aside, move, false)
  // Ignore a failure to change the mode, because the rename may work without the change.
  return move.opens === undefined
    ? gone
    : Effect.andThen(Effect.ignore(setMode(port, move.path, withOwnerBits(move.opens))), gone)
}

export const putInPlace = (
  port: Backend,
  move: Move,
  staged: FsPath.FsPath
): Effect.Effect<void, Fault | CrossDeviceRename> => {
  const placement = renameEntry(port, staged, move.path, move, move.keeps)
  return move.shuts === undefined ? placement : Effect.andThen(placement, setMode(port, move.path, move.shuts))
}

const applyStep = (port: Backend, moves: Moves, token: string, move: Move): Effect.Effect<void, Fault | CrossDeviceRename> => {
  const aside =
    move.was === undefined || move.keeps ? undefined : moveAside(port, move, slotOf(moves.regions, token, move, "old"))
  const placement = move.next === undefined ? undefined : putInPlace(port, move, slotOf(moves.regions, token, move, "new"))
  if (aside === undefined) return placement ?? Effect.void
  return placement === undefined ? aside : Effect.andThen(aside, placement)
}

export const openDirectories = (port: Backend, { modes }: Pick<Moves, "modes">): Effect.Effect<void> =>
  Effect.forEach(
    modes.filter(({ opens }) => opens),
    ({ path, was }) => Effect.ignore(setMode(port, path, withOwnerBits(was))),
    { discard: true }
  )

const setFinalModes = Effect.fnUntraced(function* (port: Backend, { modes }: Moves): Effect.fn.Return<void, Fault> {
  for (let i = modes.length - 1; i >= 0; i--) yield* setMode(port, modes[i]!.path, modes[i]!.becomes)
})

const undoStep = Effect.fnUntraced(function* (port: Backend, moves: Moves, token: string, move: Move) {
  const { next, path, shuts, was } = move
  const staged = slotOf(moves.regions, token, move, "new")
  const aside = slotOf(moves.regions, token, move, "old")
  const isPlaced = next !== undefined && (yield* port.stat(staged)) === undefined
  if (isPlaced && (yield* port.stat(path))?.kind === next) {
    if (shuts !== undefined) yield* Effect.ignore(setMode(port, path, withOwnerBits(shuts)))
    yield* port.rename(path, staged, { replace: false })
  }
  if (was === undefined) return
  if ((yield* port.stat(aside)) !== undefined) {
    if ((yield* port.stat(path)) === undefined) yield* port.rename(aside, path, { replace: false })
    else if (!move.keeps) return yield* Effect.fail(alreadyExists)
  }
  if (move.opens !== undefined) yield* setMode(port, path, move.opens)
})

/** Tests whether the renames, or their undo, had to make the directory writable. */
const wasOpened = ({ becomes, kind, was }: ModeChange): boolean =>
  kind === "directory" && (isUnwritable(was) || isUnwritable(becomes))

const undo = Effect.fnUntraced(function* (port: Backend, moves: Moves, token: string, progress: SwapProgress) {
  const { modes, steps } = moves
  let isFullyUndone = true
  for (const { path, was } of modes.filter(wasOpened)) yield* withRetries(setMode(port, path, withOwnerBits(was)))
  for (let i = progress.steps - 1; i >= 0; i--) {
    const isUndone = yield* withRetries(Effect.suspend(() => undoStep(port, moves, token, steps[i]!)))
    isFullyUndone = isUndone && isFullyUndone
  }
  for (let i = modes.length - 1; i >= 0; i--) {
    const change = modes[i]!
    if (!progress.modes && !wasOpened(change)) continue
    const isUndone = yield* withRetries(setMode(port, change.path, change.was))
    isFullyUndone = isUndone && isFullyUndone
  }
  return isFullyUndone
})

interface SwapProgress {
  steps: number
  modes: boolean
}

const applyAll = Effect.fnUntraced(function* (port: Backend, moves: Moves, token: string, progress: SwapProgress) {
  yield* openDirectories(port, moves)
  for (const step of moves.steps) {
    progress.steps++
    yield* applyStep(port, moves, token, step)
  }
  progress.modes = true
  yield* setFinalModes(port, moves)
})

const incompleteRollback = (cause: Cause.Cause<Fault | CrossDeviceRename>): Fault => ({
  ...ioError(
    "the change failed, and its rollback is incomplete; if the root is on a disk of this host, open it again to complete the change"
  ),
  cause
})

/**
 * Runs all steps, and undoes them after a failure. `onRollback` runs before the undo. `onIncompleteRollback` runs after an undo
 * that failed.
 */
export const swap = (
  port: Backend,
  moves: Moves,
  token: string,
  hooks: { readonly onRollback: Effect.Effect<void>; readonly onIncompleteRollback: Effect.Effect<void> }
): Effect.Effect<void, Fault | CrossDeviceRename> =>
  Effect.uninterruptibleMask((restore) => {
    const progress: SwapProgress = { steps: 0, modes: false }
    return Effect.catchCause(restore(applyAll(port, moves, token, progress)), (cause) =>
      Effect.flatMap(
        Effect.andThen(hooks.onRollback, Effect.provideService(undo(port, moves, token, progress), TakingBack, true)),
        (isFullyUndone) =>
          isFullyUndone
            ? Effect.failCause(cause)
            : Effect.andThen(
                hooks.onIncompleteRollback,
                Cause.hasInterrupts(cause) ? Effect.failCause(cause) : Effect.fail(incompleteRollback(cause))
              )
      )
    )
  })
