/**
 * Recovers the transaction of a killed process: discards it if nothing was visible yet, and otherwise completes it.
 *
 * A place that has changed since then is later work of another program and stays. Every entry is compared with the record
 * before it is put in place; if one differs, nothing is changed.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { isStagedEntry } from "./digest.ts"
import { hasEntryState } from "./inspect.ts"
import { probeName, type Region, slotPath, stagingDirectory } from "./places.ts"
import { type ModeChange, type Move, withOwnerBits } from "./plan.ts"
import type { RecordPart } from "./record.ts"
import * as Staging from "./staging.ts"
import { type CrossDeviceRename, openDirectories, moveAside, putInPlace, setMode } from "./swap.ts"

const modifiedMillis = (stat: FileStat | undefined): number => stat?.modifiedAt?.epochMilliseconds ?? 0

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

const statOf = (port: Backend, path: FsPath.FsPath): Effect.Effect<FileStat | undefined, Fault> =>
  Effect.catchIf(locate(path, port.stat(path)), isGone, () => Effect.succeed(undefined))

/** Tests whether anything in a directory has changed since the start of the transaction. Times in the future do not count. */
const hasChangedSince = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  since: number
): Effect.fn.Return<boolean, Fault> {
  const now = yield* Clock.currentTimeMillis
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stat = yield* locate(path, port.stat(path))
    const changed = modifiedMillis(stat)
    if (changed > since && changed <= now) return true
    if (stat?.kind !== "directory") continue
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPath.join(path, keyOf(child)))
  }
  return false
})

interface UnfinishedTransaction {
  readonly port: Backend
  readonly part: RecordPart
  readonly token: string
  readonly isRollingBack: boolean
}

const slotOf = ({ part, token }: UnfinishedTransaction, move: Move, side: "new" | "old"): FsPath.FsPath =>
  slotPath(part.regions[move.region]!, token, side, move.slot)

const setFinalMode = (port: Backend, { path, shuts }: Move, current: FileStat | undefined): Effect.Effect<void, Fault> =>
  shuts !== undefined && current?.kind === "directory" && current.mode === withOwnerBits(shuts)
    ? setMode(port, path, shuts)
    : Effect.void

const finishStep = Effect.fnUntraced(function* (
  self: UnfinishedTransaction,
  move: Move
): Effect.fn.Return<void, Fault | CrossDeviceRename> {
  const { isRollingBack, part, port } = self
  const { keeps, next, path, was } = move
  const [staged, aside] = [slotOf(self, move, "new"), slotOf(self, move, "old")]
  const current = yield* statOf(port, path)
  const hasStaged = next !== undefined && (yield* port.stat(staged)) !== undefined
  if (next !== undefined && !hasStaged) return yield* setFinalMode(port, move, current)
  const isAside = was !== undefined && (yield* port.stat(aside)) !== undefined
  const isVacant = current === undefined && (was === undefined || (isAside && (!keeps || isRollingBack)))
  if (isVacant) return yield* hasStaged ? putInPlace(port, move, staged) : Effect.void
  if (was === undefined || current === undefined || (isAside && !keeps) || !hasEntryState(current, was)) return
  if (!keeps) {
    if (was.kind === "directory" && (yield* hasChangedSince(port, path, part.since ?? 0))) return
    yield* moveAside(port, move, aside)
  }
  if (hasStaged) yield* putInPlace(port, move, staged)
})

const finishMode = Effect.fnUntraced(function* (port: Backend, change: ModeChange): Effect.fn.Return<void, Fault> {
  const { becomes, kind, path, was } = change
  const current = yield* statOf(port, path)
  if (current?.kind === kind && (current.mode === was || current.mode === withOwnerBits(was)))
    yield* setMode(port, path, becomes)
})

const regionsOf = ({ regions }: RecordPart): ReadonlyArray<Region> =>
  regions.flatMap((region) => (region === undefined ? [] : [region]))

/**
 * Returns the reason why a transaction cannot be completed, or `undefined`. Changes nothing.
 *
 * If a directory is absent, the entry staged for it may be the only copy: another program may have renamed the
 * directory for a moment.
 */
const findRefusal = Effect.fnUntraced(function* (self: UnfinishedTransaction): Effect.fn.Return<string | undefined, Fault> {
  const { part, port, token } = self
  for (const region of regionsOf(part)) {
    if (region.isFlat) continue
    const staging = stagingDirectory(region, token)
    const current = yield* locate(staging, port.stat(staging))
    if (current?.kind !== "directory") return `its staging directory ${JSON.stringify(staging)} is not there any more`
  }
  for (const move of part.steps) {
    if (move.next === undefined) continue
    const staged = slotOf(self, move, "new")
    const current = yield* locate(staged, port.stat(staged))
    if (current !== undefined && !(yield* isStagedEntry(port, staged, move, current))) {
      return `what is staged for ${JSON.stringify(move.path)} is not what was staged`
    }
    const above = FsPath.parent(move.path)
    if (current !== undefined && (yield* statOf(port, above))?.kind !== "directory") {
      return `the directory ${JSON.stringify(above)} is not there any more; once it is back, the change is finished`
    }
  }
  return undefined
})

/**
 * Completes the part of a transaction in this port's root.
 *
 * Returns `undefined` on success. Otherwise returns the reason why the part cannot be completed, and has changed
 * nothing.
 */
export const completeTransaction = Effect.fnUntraced(
  function* (self: UnfinishedTransaction): Effect.fn.Return<string | undefined, Fault> {
    const { part, port } = self
    const refused = yield* findRefusal(self)
    if (refused !== undefined) return refused
    yield* openDirectories(port, {
      modes: yield* Effect.filter(part.modes, ({ path, was }) => Effect.map(statOf(port, path), (stat) => stat?.mode === was))
    })
    for (const step of part.steps) {
      yield* Effect.mapError(finishStep(self, step), (failed) => (failed._tag === "Crossing" ? failed.fault : failed))
    }
    for (let i = part.modes.length - 1; i >= 0; i--) yield* finishMode(port, part.modes[i]!)
    return undefined
  },
  Effect.provideService(TakingBack, true)
)

const removeProbe = Effect.fnUntraced(function* (
  port: Backend,
  token: string,
  at: FsPath.FsPath
): Effect.fn.Return<void, Fault> {
  for (let here = at; ; here = FsPath.parent(here)) {
    yield* Effect.catchIf(port.remove(FsPath.join(here, probeName(token))), isGone, () => Effect.void)
    if (here === FsPath.root) return
  }
})

const restoreMode = (port: Backend, { opens, path, was }: ModeChange): Effect.Effect<void, Fault> =>
  opens
    ? Effect.flatMap(statOf(port, path), (current) =>
        current?.kind === "directory" && current.mode === withOwnerBits(was) ? setMode(port, path, was) : Effect.void
      )
    : Effect.void

/**
 * Removes the staged entries of a transaction in this port's root, and its probes. `isUnchanged` means that nothing was
 * put in place.
 */
export const removeStaged = (
  port: Backend,
  part: RecordPart,
  token: string,
  isUnchanged: boolean
): Effect.Effect<void, Fault> =>
  Effect.provideService(
    Effect.gen(function* () {
      yield* Effect.forEach(part.probes, (at) => removeProbe(port, token, at), { discard: true })
      yield* Staging.remove(port, regionsOf(part), token)
      if (isUnchanged) yield* Effect.forEach(part.modes, (change) => restoreMode(port, change), { discard: true })
    }),
    TakingBack,
    true
  )
