/**
 * A quota. Space is reserved before a write, in one synchronous step, so concurrent writers cannot exceed the limit
 * together.
 *
 * A reservation grows with the stream. When the write is published, under the path's lock, it is settled against the
 * file that is really replaced, and the rest is released.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/bytes.ts"
import type { FileStat } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Commit, keyOf, type WriteHow } from "../port/Backend.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"

export interface Bounds {
  readonly maxBytes: number
  readonly maxFiles: number
}

export interface Usage {
  readonly bytes: number
  readonly files: number
}

const none: Usage = { bytes: 0, files: 0 }
const full: Effect.Effect<never, Fault> = Effect.fail({ _tag: "DiskFull" })

/**
 * Returns what an entry counts: everything but directories counts as a file, except under a temporary name; only
 * regular files have bytes.
 */
const worth = (path: FsPath.FsPath, stat: FileStat | undefined): Usage =>
  stat === undefined || stat.kind === "directory"
    ? none
    : { bytes: stat.kind === "file" ? stat.sizeBytes : 0, files: isNamed(path) ? 1 : 0 }

const isNamed = (path: FsPath.FsPath): boolean => !TemporaryNames.isOurs(FsPath.name(path))

export const measure = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Usage, Fault> {
  let bytes = 0
  let files = 0
  const stack = [FsPath.root]
  while (stack.length > 0) {
    const here = stack.pop()!
    const children = yield* Effect.mapError(port.list(here), (fault) => located(fault, here))
    for (const child of children) {
      if (TemporaryNames.isInProgress(child.name)) continue
      const path = FsPath.join(here, keyOf(child))
      if (child.kind === "directory") {
        stack.push(path)
        continue
      }
      files++
      if (child.kind !== "file") continue
      bytes += child.sizeBytes ?? (yield* Effect.mapError(port.stat(path), (fault) => located(fault, path)))?.sizeBytes ?? 0
    }
  }
  return { bytes, files }
})

/** A function that adds to the usage. It returns false, and changes nothing, if growth would exceed a limit. */
type Count = (bytes: number, files: number) => boolean

const ledger = (bounds: Bounds, initial: Usage): Count => {
  let { bytes, files } = initial
  return (moreBytes, moreFiles) => {
    if (moreBytes > 0 && bytes + moreBytes > bounds.maxBytes) return false
    if (moreFiles > 0 && files + moreFiles > bounds.maxFiles) return false
    bytes += moreBytes
    files += moreFiles
    return true
  }
}

const makeClaim = (count: Count) => {
  let held = none
  const raise = ({ bytes, files }: Usage): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      if (!count(bytes - held.bytes, files - held.files)) return full
      held = { bytes, files }
      return Effect.void
    })
  const release = Effect.sync(() => {
    count(-held.bytes, -held.files)
    held = none
  })
  /** Turns the reservation into usage and subtracts the freed amount. */
  const settle = ({ bytes, files }: Usage) =>
    Effect.sync(() => {
      held = none
      count(-bytes, -files)
    })
  return { raise, release, settle }
}

type Mode = "create" | "replace" | "append"

interface Place {
  readonly old: FileStat | undefined
  /** True if the backend will refuse the write. The backend's own fault is then reported instead of DiskFull. */
  readonly isDoomed: boolean
}

const publishAtOnce: Commit = (publish) => publish

const sizeOf = (chunks: ReadonlyArray<Uint8Array>): number => chunks.reduce((bytes, chunk) => bytes + chunk.length, 0)

export const around = (self: Backend, bounds: Bounds, usage: Usage): Backend => {
  const count = ledger(bounds, usage)
  const { links } = self
  const nameOf = (path: FsPath.FsPath): FsPath.FsPath => (self.info.caseSensitive ? path : FsPath.fold(path))

  const placeAt = (path: FsPath.FsPath, mode: Mode) =>
    Effect.flatMap(self.stat(path), (old): Effect.Effect<Place, Fault> =>
      old === undefined
        ? Effect.map(self.stat(FsPath.parent(path)), (above) => ({ old, isDoomed: above?.kind !== "directory" }))
        : Effect.succeed({ old, isDoomed: mode === "create" || old.kind !== "file" })
    )

  const growth = (path: FsPath.FsPath, mode: Mode, size: number, { isDoomed, old }: Place): Usage =>
    isDoomed
      ? none
      : {
          bytes: mode === "replace" ? size - worth(path, old).bytes : size,
          files: old === undefined && isNamed(path) ? 1 : 0
        }

  const more = ({ bytes, files }: Usage): Usage => ({ bytes: Math.max(0, bytes), files: Math.max(0, files) })
  const less = ({ bytes, files }: Usage): Usage => ({ bytes: Math.max(0, -bytes), files: Math.max(0, -files) })

  const write = <E, R>(
    path: FsPath.FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(placeAt(path, mode), (place) => {
      const claim = makeClaim(count)
      let size = isBytes(content) ? content.length : 0
      const reserve = Effect.suspend(() => claim.raise(more(growth(path, mode, size, place))))
      const counted = isBytes(content)
        ? content
        : Stream.mapArrayEffect(content, (chunks) => {
            size += sizeOf(chunks)
            return Effect.as(reserve, chunks)
          })
      const commit = how?.commit ?? publishAtOnce
      const settled: Commit = (publish) =>
        Effect.uninterruptible(
          Effect.flatMap(placeAt(path, mode), (now) => {
            const change = growth(path, mode, size, now)
            return Effect.andThen(
              claim.raise(more(change)),
              Effect.tap(publish, () => claim.settle(less(change)))
            )
          })
        )
      const written = self.write(path, counted, mode, { commit: (publish) => commit(settled(publish)) })
      return Effect.ensuring(Effect.andThen(reserve, written), claim.release)
    })

  const step = (change: Usage, run: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> => {
    const claim = makeClaim(count)
    return Effect.ensuring(
      Effect.andThen(
        claim.raise(more(change)),
        Effect.tap(run, () => claim.settle(less(change)))
      ),
      claim.release
    )
  }

  const rename: Backend["rename"] = (from, to, options) =>
    nameOf(from) === nameOf(to)
      ? self.rename(from, to, options)
      : Effect.uninterruptible(
          Effect.flatMap(Effect.all([self.stat(from), self.stat(to)]), ([source, target]) => {
            const [before, after] = [worth(from, source), worth(to, source)]
            const replaced = worth(to, target)
            const change = { bytes: -replaced.bytes, files: after.files - before.files - replaced.files }
            return step(options.replace || target === undefined ? change : none, self.rename(from, to, options))
          })
        )

  return {
    ...self,
    history: undefined,
    write,
    remove: (path) =>
      Effect.uninterruptible(
        Effect.flatMap(self.stat(path), (found) => {
          const { bytes, files } = worth(path, found)
          return step({ bytes: -bytes, files: -files }, self.remove(path))
        })
      ),
    rename,
    links: links && {
      read: links.read,
      follow: links.follow,
      relative: links.relative,
      make: (path, target) =>
        Effect.uninterruptible(
          Effect.flatMap(placeAt(path, "create"), (place) =>
            step({ bytes: 0, files: growth(path, "create", 0, place).files }, links.make(path, target))
          )
        )
    }
  }
}
