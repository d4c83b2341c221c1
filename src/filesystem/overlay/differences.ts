/**
 * Finds the differences between the lower tree and the overlay.
 *
 * Only paths with an upper entry, and hidden paths, can differ, so all others are skipped. Entries of both trees are
 * compared, because a file that was copied up may be unchanged.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import * as Read from "../../engine/read.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Layers } from "./layers.ts"

export interface Difference {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath.FsPath
  /**
   * The most significant difference. `kind` includes entries of one tree only; `mode` includes the spelling of a name.
   */
  readonly extent: "kind" | "content" | "mode" | "time"
}

const compareBlockBytes = 512 * 1024

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && Buffer.compare(a, b) === 0

const sameContent = (self: Backend, that: Backend, path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
  Effect.scoped(
    Effect.flatMap(Effect.all([self.open(path), that.open(path)]), ([a, b]) => {
      const size = a.stat.sizeBytes
      const from = (offset: number): Effect.Effect<boolean, Fault> =>
        offset >= size
          ? Effect.succeed(true)
          : Effect.flatMap(
              Effect.zip(
                Read.range(a, offset, Math.min(compareBlockBytes, size - offset)),
                Read.range(b, offset, Math.min(compareBlockBytes, size - offset))
              ),
              ([left, right]) => (sameBytes(left, right) ? from(offset + compareBlockBytes) : Effect.succeed(false))
            )
      return size === b.stat.sizeBytes ? from(0) : Effect.succeed(false)
    })
  )

const sameLink = (self: Backend, that: Backend, path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
  self.links === undefined || that.links === undefined
    ? Effect.succeed(false)
    : Effect.zipWith(self.links.read(path), that.links.read(path), (a, b) => a === b)

/** Compares modes. Modes count only if both sides can set them. */
const sameMode = (layers: Layers, a: FileStat, b: FileStat): boolean =>
  layers.upper.attributes === undefined ||
  layers.lower.attributes === undefined ||
  a.mode === undefined ||
  b.mode === undefined ||
  (a.mode & 0o777) === (b.mode & 0o777)

const sameTime = (layers: Layers, a: FileStat, b: FileStat): boolean =>
  layers.upper.attributes === undefined ||
  layers.lower.attributes === undefined ||
  a.modifiedAt === undefined ||
  b.modifiedAt === undefined ||
  a.modifiedAt.epochMilliseconds === b.modifiedAt.epochMilliseconds

interface Place {
  readonly path: FsPath.FsPath
  readonly inUpper: boolean
  readonly inLower: boolean
  /** True if no entry of the lower tree shows here. */
  readonly isLowerHidden: boolean
}

export const differences = Effect.fnUntraced(function* (layers: Layers): Effect.fn.Return<ReadonlyArray<Difference>, Fault> {
  const { hidden, keyOf: pathKey, lower, upper } = layers
  const hiddenAncestors = hidden.ancestors()
  const isCaseSensitive = upper.info.caseSensitive
  const out: Array<Difference> = []
  const stack: Array<Place> = [{ path: FsPath.root, inUpper: true, inLower: true, isLowerHidden: false }]

  const children = Effect.fnUntraced(function* (
    port: Backend,
    path: FsPath.FsPath,
    exists: boolean
  ): Effect.fn.Return<Map<string, Child>, Fault> {
    const byName = new Map<string, Child>()
    for (const child of exists ? yield* port.list(path) : []) {
      if (!TemporaryNames.isInProgress(child.name)) byName.set(isCaseSensitive ? child.name : FsPath.fold(child.name), child)
    }
    return byName
  })

  const compare = Effect.fnUntraced(function* (
    path: FsPath.FsPath,
    above: Child,
    under: Child
  ): Effect.fn.Return<Difference["extent"] | undefined, Fault> {
    const [a, b] = yield* Effect.all([upper.stat(path), lower.stat(path)])
    if (a === undefined || b === undefined) return undefined
    if (a.kind !== b.kind) return "kind"
    if (a.kind === "file" && !(yield* sameContent(upper, lower, path))) return "content"
    if (a.kind === "symlink" && !(yield* sameLink(upper, lower, path))) return "content"
    if (above.name !== under.name || (a.kind !== "symlink" && !sameMode(layers, a, b))) return "mode"
    return a.kind === "file" && !sameTime(layers, a, b) ? "time" : undefined
  })

  while (stack.length > 0) {
    const currentPlace = stack.pop()!
    const above = yield* children(upper, currentPlace.path, currentPlace.inUpper)
    const under = yield* children(lower, currentPlace.path, currentPlace.inLower)
    for (const [name, child] of above) {
      const path = FsPath.join(currentPlace.path, keyOf(child))
      const other = under.get(name)
      if (other === undefined) out.push({ _tag: "Added", path, extent: "kind" })
      else {
        const extent = yield* compare(path, child, other)
        if (extent !== undefined) out.push({ _tag: "Modified", path, extent })
      }
      const inLower = other?.kind === "directory"
      if (child.kind === "directory") stack.push({ path, inUpper: true, inLower, isLowerHidden: hidden.covers(path) })
      else if (inLower) stack.push({ path, inUpper: false, inLower, isLowerHidden: true })
    }
    for (const [name, child] of under) {
      if (above.has(name)) continue
      const path = FsPath.join(currentPlace.path, keyOf(child))
      const isLowerHidden = currentPlace.isLowerHidden || hidden.covers(path)
      if (isLowerHidden) out.push({ _tag: "Removed", path, extent: "kind" })
      if (child.kind === "directory" && (isLowerHidden || hiddenAncestors.has(pathKey(path)))) {
        stack.push({ path, inUpper: false, inLower: true, isLowerHidden })
      }
    }
  }
  return isCaseSensitive
    ? out.sort((a, b) => FsPath.compare(a.path, b.path))
    : out.sort((a, b) => FsPath.compare(FsPath.fold(a.path), FsPath.fold(b.path)) || FsPath.compare(a.path, b.path))
})
