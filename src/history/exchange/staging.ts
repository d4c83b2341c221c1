/**
 * The staging directories: created first, private to this user, and removed at the end of every transaction.
 *
 * They stay only if they contain an entry that could not be put back.
 */
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import { removeWithContent } from "../../engine/remove.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { isSlotOf, type Region, sideIn, stagingIn } from "./places.ts"
import { isShut, opened } from "./plan.ts"

const writable = <A, E>(port: Backend, path: FsPath.FsPath, effect: Effect.Effect<A, E>): Effect.Effect<A, E | Fault> => {
  const { attributes } = port
  if (attributes === undefined) return effect
  return Effect.flatMap(locate(path, port.stat(path)), (stat): Effect.Effect<A, E | Fault> => {
    const mode = stat?.mode
    return isShut(mode)
      ? Effect.acquireUseRelease(
          Effect.ignore(attributes.set(path, { mode: opened(mode) })),
          () => effect,
          () => Effect.ignore(attributes.set(path, { mode }))
        )
      : effect
  })
}

const makeIn = Effect.fnUntraced(function* (port: Backend, region: Region, token: string): Effect.fn.Return<void, Fault> {
  const staging = stagingIn(region, token)
  yield* locate(region.path, writable(port, region.path, port.makeDirectory(staging)))
  if (port.attributes !== undefined) yield* locate(region.path, port.attributes.set(staging, { mode: 0o700 }))
  yield* locate(region.path, port.makeDirectory(sideIn(region, token, "new")))
  yield* locate(region.path, port.makeDirectory(sideIn(region, token, "old")))
})

export const make = (port: Backend, regions: ReadonlyArray<Region>, token: string): Effect.Effect<void, Fault> =>
  Effect.forEach(regions, (region) => (region.isFlat ? Effect.void : makeIn(port, region, token)), { discard: true })

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

const nothingIfGone = (fault: Fault): Effect.Effect<void, Fault> =>
  fault._tag === "NotFound" ? Effect.void : Effect.fail(fault)

/** Makes directories writable, because they cannot be emptied otherwise. */
const loosen = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath): Effect.fn.Return<void, Fault> {
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    yield* Effect.ignore(port.attributes?.set(path, { mode: 0o700 }) ?? Effect.void)
    for (const child of yield* port.list(path)) {
      if (child.kind === "directory") pending.push(FsPath.join(path, keyOf(child)))
    }
  }
})

const removeWhole = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> => {
  const removed = Effect.suspend(() => Effect.asVoid(removeWithContent(port, path)))
  return Effect.catch(removed, (fault) =>
    fault._tag === "AccessDenied" ? Effect.andThen(loosen(port, path), removed) : nothingIfGone(fault)
  )
}

const removeSlots = Effect.fnUntraced(function* (
  port: Backend,
  { path }: Region,
  token: string
): Effect.fn.Return<void, Fault> {
  const children = yield* Effect.catchIf(port.list(path), isGone, () => Effect.succeed([]))
  for (const { kind, name } of children) {
    if (!isSlotOf(token, name)) continue
    const at = FsPath.join(path, name)
    yield* kind === "directory" ? removeWhole(port, at) : Effect.catch(port.remove(at), nothingIfGone)
  }
})

const removeIn = Effect.fnUntraced(function* (port: Backend, region: Region, token: string): Effect.fn.Return<void, Fault> {
  const staging = stagingIn(region, token)
  if (region.isFlat) return yield* removeSlots(port, region, token)
  if ((yield* port.stat(staging)) === undefined) return
  yield* removeWhole(port, sideIn(region, token, "new"))
  yield* removeWhole(port, sideIn(region, token, "old"))
  yield* writable(port, region.path, removeWhole(port, staging))
})

export const remove = (port: Backend, regions: ReadonlyArray<Region>, token: string): Effect.Effect<void, Fault> =>
  Effect.provideService(
    Effect.forEach([...regions].reverse(), (region) => locate(region.path, removeIn(port, region, token)), { discard: true }),
    TakingBack,
    true
  )
