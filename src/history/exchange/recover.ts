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
import { isAsStaged } from "./digest.ts"
import { isMarked } from "./inspect.ts"
import { probeOf, type Region, slotIn, stagingIn } from "./places.ts"
import { type ModeChange, type Move, opened } from "./plan.ts"
import type { Part } from "./record.ts"
import * as Staging from "./staging.ts"
import { type Crossing, open, putAside, putInPlace, setMode } from "./swap.ts"

const time = (stat: FileStat | undefined): number => stat?.modifiedAt?.epochMilliseconds ?? 0

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

const statOf = (port: Backend, path: FsPath.FsPath): Effect.Effect<FileStat | undefined, Fault> =>
  Effect.catchIf(locate(path, port.stat(path)), isGone, () => Effect.succeed(undefined))

/** Tests whether anything in a directory has changed since the start of the transaction. Times in the future do not count. */
const isTouched = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  since: number
): Effect.fn.Return<boolean, Fault> {
  const now = yield* Clock.currentTimeMillis
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stat = yield* locate(path, port.stat(path))
    const changed = time(stat)
    if (changed > since && changed <= now) return true
    if (stat?.kind !== "directory") continue
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPath.join(path, keyOf(child)))
  }
  return false
})

interface Unfinished {
  readonly port: Backend
  readonly part: Part
  readonly token: string
  readonly isBack: boolean
}

const slotOf = ({ part, token }: Unfinished, move: Move, side: "new" | "old"): FsPath.FsPath =>
  slotIn(part.regions[move.region]!, token, side, move.slot)

const shut = (port: Backend, { path, shuts }: Move, there: FileStat | undefined): Effect.Effect<void, Fault> =>
  shuts !== undefined && there?.kind === "directory" && there.mode === opened(shuts) ? setMode(port, path, shuts) : Effect.void

const finishStep = Effect.fnUntraced(function* (self: Unfinished, move: Move): Effect.fn.Return<void, Fault | Crossing> {
  const { isBack, part, port } = self
  const { keeps, next, path, was } = move
  const [staged, aside] = [slotOf(self, move, "new"), slotOf(self, move, "old")]
  const there = yield* statOf(port, path)
  const comes = next !== undefined && (yield* port.stat(staged)) !== undefined
  if (next !== undefined && !comes) return yield* shut(port, move, there)
  const isAside = was !== undefined && (yield* port.stat(aside)) !== undefined
  const isVacant = there === undefined && (was === undefined || (isAside && (!keeps || isBack)))
  if (isVacant) return yield* comes ? putInPlace(port, move, staged) : Effect.void
  if (was === undefined || there === undefined || (isAside && !keeps) || !isMarked(there, was)) return
  if (!keeps) {
    if (was.kind === "directory" && (yield* isTouched(port, path, part.since ?? 0))) return
    yield* putAside(port, move, aside)
  }
  if (comes) yield* putInPlace(port, move, staged)
})

const finishMode = Effect.fnUntraced(function* (port: Backend, change: ModeChange): Effect.fn.Return<void, Fault> {
  const { becomes, kind, path, was } = change
  const there = yield* statOf(port, path)
  if (there?.kind === kind && (there.mode === was || there.mode === opened(was))) yield* setMode(port, path, becomes)
})

const regionsOf = ({ regions }: Part): ReadonlyArray<Region> =>
  regions.flatMap((region) => (region === undefined ? [] : [region]))

/**
 * Returns the reason why a transaction cannot be completed, or `undefined`. Changes nothing.
 *
 * If a directory is absent, the entry staged for it may be the only copy: another program may have renamed the
 * directory for a moment.
 */
const refusal = Effect.fnUntraced(function* (self: Unfinished): Effect.fn.Return<string | undefined, Fault> {
  const { part, port, token } = self
  for (const region of regionsOf(part)) {
    if (region.isFlat) continue
    const staging = stagingIn(region, token)
    const there = yield* locate(staging, port.stat(staging))
    if (there?.kind !== "directory") return `its staging directory ${JSON.stringify(staging)} is not there any more`
  }
  for (const move of part.steps) {
    if (move.next === undefined) continue
    const staged = slotOf(self, move, "new")
    const there = yield* locate(staged, port.stat(staged))
    if (there !== undefined && !(yield* isAsStaged(port, staged, move, there))) {
      return `what is staged for ${JSON.stringify(move.path)} is not what was staged`
    }
    const above = FsPath.parent(move.path)
    if (there !== undefined && (yield* statOf(port, above))?.kind !== "directory") {
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
export const finish = Effect.fnUntraced(
  function* (self: Unfinished): Effect.fn.Return<string | undefined, Fault> {
    const { part, port } = self
    const refused = yield* refusal(self)
    if (refused !== undefined) return refused
    yield* open(port, {
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
    yield* Effect.catchIf(port.remove(FsPath.join(here, probeOf(token))), isGone, () => Effect.void)
    if (here === FsPath.root) return
  }
})

const close = (port: Backend, { opens, path, was }: ModeChange): Effect.Effect<void, Fault> =>
  opens
    ? Effect.flatMap(statOf(port, path), (there) =>
        there?.kind === "directory" && there.mode === opened(was) ? setMode(port, path, was) : Effect.void
      )
    : Effect.void

/**
 * Removes the staged entries of a transaction in this port's root, and its probes. `isUnchanged` means that nothing was
 * put in place.
 */
export const clear = (port: Backend, part: Part, token: string, isUnchanged: boolean): Effect.Effect<void, Fault> =>
  Effect.provideService(
    Effect.gen(function* () {
      yield* Effect.forEach(part.probes, (at) => removeProbe(port, token, at), { discard: true })
      yield* Staging.remove(port, regionsOf(part), token)
      if (isUnchanged) yield* Effect.forEach(part.modes, (change) => close(port, change), { discard: true })
    }),
    TakingBack,
    true
  )
