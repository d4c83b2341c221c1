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
import { isSlotName, type Region, sideDirectory, stagingDirectory } from "./places.ts"
import { isUnwritable, withOwnerBits } from "./plan.ts"

const whileWritable = <A, E>(port: Backend, path: FsPath.FsPath, effect: Effect.Effect<A, E>): Effect.Effect<A, E | Fault> => {
  const { attributes } = port
  if (attributes === undefined) return effect
  return Effect.flatMap(locate(path, port.stat(path)), (stat): Effect.Effect<A, E | Fault> => {
    const mode = stat?.mode
    return isUnwritable(mode)
      ? Effect.acquireUseRelease(
          Effect.ignore(attributes.set(path, { mode: withOwnerBits(mode) })),
          () => effect,
          () => Effect.ignore(attributes.set(path, { mode }))
        )
      : effect
  })
}

const makeStagingDirectory = Effect.fnUntraced(function* (
  port: Backend,
  region: Region,
  token: string
): Effect.fn.Return<void, Fault> {
  const staging = stagingDirectory(region, token)
  yield* locate(region.path, whileWritable(port, region.path, port.makeDirectory(staging)))
  if (port.attributes !== undefined) yield* locate(region.path, port.attributes.set(staging, { mode: 0o700 }))
  yield* locate(region.path, port.makeDirectory(sideDirectory(region, token, "new")))
  yield* locate(region.path, port.makeDirectory(sideDirectory(region, token, "old")))
})

export const make = (port: Backend, regions: ReadonlyArray<Region>, token: string): Effect.Effect<void, Fault> =>
  Effect.forEach(regions, (region) => (region.isFlat ? Effect.void : makeStagingDirectory(port, region, token)), {
    discard: true
  })

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

const ignoreNotFound = (fault: Fault): Effect.Effect<void, Fault> =>
  fault._tag === "NotFound" ? Effect.void : Effect.fail(fault)

/** Makes directories writable, because they cannot be emptied otherwise. */
const makeWritable = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath): Effect.fn.Return<void, Fault> {
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
    fault._tag === "AccessDenied" ? Effect.andThen(makeWritable(port, path), removed) : ignoreNotFound(fault)
  )
}

const removeSlots = Effect.fnUntraced(function* (
  port: Backend,
  { path }: Region,
  token: string
): Effect.fn.Return<void, Fault> {
  const children = yield* Effect.catchIf(port.list(path), isGone, () => Effect.succeed([]))
  for (const { kind, name } of children) {
    if (!isSlotName(token, name)) continue
    const at = FsPath.join(path, name)
    yield* kind === "directory" ? removeWhole(port, at) : Effect.catch(port.remove(at), ignoreNotFound)
  }
})

const removeStagingDirectory = Effect.fnUntraced(function* (
  port: Backend,
  region: Region,
  token: string
): Effect.fn.Return<void, Fault> {
  const staging = stagingDirectory(region, token)
  if (region.isFlat) return yield* removeSlots(port, region, token)
  if ((yield* port.stat(staging)) === undefined) return
  yield* removeWhole(port, sideDirectory(region, token, "new"))
  yield* removeWhole(port, sideDirectory(region, token, "old"))
  yield* whileWritable(port, region.path, removeWhole(port, staging))
})

export const remove = (port: Backend, regions: ReadonlyArray<Region>, token: string): Effect.Effect<void, Fault> =>
  Effect.provideService(
    Effect.forEach([...regions].reverse(), (region) => locate(region.path, removeStagingDirectory(port, region, token)), {
      discard: true
    }),
    TakingBack,
    true
  )
