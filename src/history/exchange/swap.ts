/**
 * The visible part of a transaction: renames in order, undone in reverse order if one fails. Undoing needs no disk
 * space.
 *
 * The hidden entries show which steps, and which undo steps, are done. So a crash at any point is recoverable.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { at as locate } from "../../engine/directories.ts"
import * as Read from "../../engine/read.ts"
import { removeTree } from "../../engine/remove.ts"
import type { FileStat } from "../../model/Entry.ts"
import { alreadyExists, notFound } from "../../model/Fault.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { isUnwritable, type ModeChange, type Move, type Region, slotPath, type SlotSide, withOwnerBits } from "./plan.ts"

// Renames on ports that fail every rename with EXDEV: copies the entry and then removes the original.
//
// A failure keeps the original and removes the copy. Unlike a rename, a killed copy can leave a partial directory.

const cannotCopy: Fault = {
  _tag: "IoError",
  code: "ENOTSUP",
  detail: "it is neither a file, a link nor a directory, and cannot be copied"
}

const chunkBytes = 64 * 1024

const isCrossDeviceFault = (fault: Fault): boolean => fault._tag === "IoError" && fault["code"] === "EXDEV"

const setAttributes = (port: Backend, path: FsPath.FsPath, { kind, mode, modifiedAt }: FileStat): Effect.Effect<void, Fault> =>
  port.attributes === undefined
    ? Effect.void
    : port.attributes.set(path, { ...(kind !== "symlink" && mode !== undefined && { mode }), modifiedAt })

const copyFile = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean): Effect.Effect<void, Fault> =>
  Effect.scoped(
    Effect.flatMap(port.open(from), (handle) => {
      const content = Read.chunks(handle, 0, handle.stat.sizeBytes, chunkBytes)
      return Effect.andThen(port.write(to, content, replace ? "replace" : "create"), setAttributes(port, to, handle.stat))
    })
  )

const copyLink = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath): Effect.Effect<void, Fault> => {
  const { links } = port
  return links === undefined ? Effect.fail(cannotCopy) : Effect.flatMap(links.read(from), (target) => links.make(to, target))
}

const copyEntry = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, stat: FileStat): Effect.Effect<void, Fault> => {
  if (stat.kind === "file") return copyFile(port, from, to, false)
  if (stat.kind === "symlink") return Effect.andThen(copyLink(port, from, to), setAttributes(port, to, stat))
  return stat.kind === "directory" ? port.makeDirectory(to) : Effect.fail(cannotCopy)
}

/** Copies the entries of `from` that `to` lacks. Sets modes and times of directories at the end. */
const copyMissingEntries = Effect.fnUntraced(function* (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath
): Effect.fn.Return<void, Fault> {
  const filled: Array<readonly [to: FsPath.FsPath, stat: FileStat]> = []
  const pending: Array<readonly [from: FsPath.FsPath, to: FsPath.FsPath]> = [[from, to]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [source, target] = next
    const stat = yield* port.stat(source)
    if (stat === undefined) return yield* Effect.fail(notFound)
    if ((yield* port.stat(target)) === undefined) yield* copyEntry(port, source, target, stat)
    if (stat.kind !== "directory") continue
    filled.push([target, stat])
    for (const child of yield* port.list(source)) {
      pending.push([FsPath.join(source, keyOf(child)), FsPath.join(target, keyOf(child))])
    }
  }
  for (const [path, stat] of filled.reverse()) yield* setAttributes(port, path, stat)
})

const removeWhole = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(port.stat(path), (stat) => {
    if (stat === undefined) return Effect.void
    return stat.kind === "directory" ? Effect.asVoid(removeTree(port, path)) : port.remove(path)
  })

/** Tries a step up to three times, because a failed undo leaves a mixture. Returns whether it succeeded. */
export const withRetries = (step: Effect.Effect<void, Fault>): Effect.Effect<boolean> =>
  Effect.map(Effect.exit(Effect.retry(Effect.sandbox(step), { times: 2 })), Exit.isSuccess)

const makeWritable = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath): Effect.fn.Return<void, Fault> {
  const { attributes } = port
  if (attributes === undefined || (yield* port.stat(top))?.kind !== "directory") return
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    yield* attributes.set(path, { mode: 0o700 })
    for (const child of yield* port.list(path)) if (child.kind === "directory") pending.push(FsPath.join(path, keyOf(child)))
  }
})

const moveByCopy = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean): Effect.Effect<void, Fault> =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const [source, target] = [yield* port.stat(from), yield* port.stat(to)]
      if (source === undefined) return yield* Effect.fail(notFound)
      if (target !== undefined && !replace) return yield* Effect.fail(alreadyExists)
      const isFile = source.kind === "file" && target?.kind === "file"
      if (target !== undefined && !isFile) yield* port.remove(to)
      const removeCopy = withRetries(Effect.andThen(Effect.ignore(makeWritable(port, to)), removeWhole(port, to)))
      const copied = isFile ? copyFile(port, from, to, true) : copyMissingEntries(port, from, to)
      yield* Effect.onError(restore(copied), () => removeCopy)
      const makeSourceWritable = source.kind === "directory" ? Effect.ignore(makeWritable(port, from)) : Effect.void
      const removalExit = yield* Effect.exit(restore(Effect.andThen(makeSourceWritable, removeWhole(port, from))))
      // Complete the original again before removing the copy. If that fails, the copy is the only complete version, so
      // keep it.
      if (Exit.isSuccess(removalExit) || !(yield* withRetries(copyMissingEntries(port, to, from)))) return
      yield* removeCopy
      return yield* Effect.failCause(removalExit.cause)
    })
  )

export const withCopyingRenames = (port: Backend): Backend => ({
  ...port,
  rename: (from, to, options) =>
    Effect.catch(port.rename(from, to, options), (fault) =>
      isCrossDeviceFault(fault) ? moveByCopy(port, from, to, options.replace) : Effect.fail(fault)
    )
})

export interface CrossDeviceRename {
  readonly _tag: "Crossing"
  readonly directory: FsPath.FsPath
  readonly fault: Fault
}

interface Moves {
  readonly regions: ReadonlyArray<Region>
  readonly steps: ReadonlyArray<Move>
  readonly modes: ReadonlyArray<ModeChange>
}

const slotOf = ({ regions }: Moves, token: string, move: Move, side: SlotSide): FsPath.FsPath =>
  slotPath(regions[move.region]!, token, side, move.slot)

export const setMode = (port: Backend, path: FsPath.FsPath, mode: number): Effect.Effect<void, Fault> =>
  port.attributes === undefined ? Effect.void : locate(path, port.attributes.set(path, { mode }))

const renameEntry = (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  { path }: Move,
  replace: boolean
): Effect.Effect<void, Fault | CrossDeviceRename> =>
  Effect.mapError(port.rename(from, to, { replace }), (fault): Fault | CrossDeviceRename =>
    isCrossDeviceFault(fault)
      ? { _tag: "Crossing", directory: FsPath.parent(path), fault: located(fault, path) }
      : located(fault, path)
  )

export const moveAside = (port: Backend, move: Move, aside: FsPath.FsPath): Effect.Effect<void, Fault | CrossDeviceRename> => {
  const gone = renameEntry(port, move.path, aside, move, false)
  // The rename may work even without the new mode.
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
  const aside = move.was === undefined || move.keeps ? undefined : moveAside(port, move, slotOf(moves, token, move, "old"))
  const placement = move.next === undefined ? undefined : putInPlace(port, move, slotOf(moves, token, move, "new"))
  if (aside === undefined) return placement ?? Effect.void
  return placement === undefined ? aside : Effect.andThen(aside, placement)
}

export const openDirectories = (port: Backend, { modes }: Pick<Moves, "modes">): Effect.Effect<void> =>
  Effect.forEach(
    modes,
    ({ opens, path, was }) => (opens ? Effect.ignore(setMode(port, path, withOwnerBits(was))) : Effect.void),
    {
      discard: true
    }
  )

const setFinalModes = Effect.fnUntraced(function* (port: Backend, { modes }: Moves): Effect.fn.Return<void, Fault> {
  for (let i = modes.length - 1; i >= 0; i--) yield* setMode(port, modes[i]!.path, modes[i]!.becomes)
})

const undoStep = Effect.fnUntraced(function* (
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

const reopenDirectories = (port: Backend, { modes }: Moves): Effect.Effect<void> =>
  Effect.forEach(
    modes,
    (change) => (wasOpened(change) ? withRetries(setMode(port, change.path, withOwnerBits(change.was))) : Effect.void),
    { discard: true }
  )

/** Tests whether the directory was made writable during the steps or their undoing. */
const wasOpened = ({ becomes, kind, was }: ModeChange): boolean =>
  kind === "directory" && (isUnwritable(was) || isUnwritable(becomes))

const undo = Effect.fnUntraced(function* (
  port: Backend,
  moves: Moves,
  token: string,
  progress: SwapProgress
): Effect.fn.Return<boolean> {
  const { modes, steps } = moves
  let isFullyUndone = true
  yield* reopenDirectories(port, moves)
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

const applyAll = Effect.fnUntraced(function* (
  port: Backend,
  moves: Moves,
  token: string,
  progress: SwapProgress
): Effect.fn.Return<void, Fault | CrossDeviceRename> {
  yield* openDirectories(port, moves)
  for (const step of moves.steps) {
    progress.steps++
    yield* applyStep(port, moves, token, step)
  }
  progress.modes = true
  yield* setFinalModes(port, moves)
})

const incompleteRollback = (cause: Cause.Cause<Fault | CrossDeviceRename>): Fault => ({
  _tag: "IoError",
  detail: "it failed halfway, and so did putting back what was there; the next start finishes it",
  cause
})

/** Runs all steps, and undoes them on failure. `turning` runs before the undoing, `onStuck` if it is incomplete. */
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
