/**
 * Limits the space of a filesystem. A write reserves its space first, in one synchronous step, so that concurrent writers
 * together cannot exceed the limit.
 *
 * The reservation of a stream grows with its bytes. When the write is published, under the path's lock, the size of the
 * replaced file is subtracted and unused space is released.
 */
import { diskFull } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/realms.ts"
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

const noUsage: Usage = { bytes: 0, files: 0 }

/**
 * Returns the usage of an entry. Every entry except a directory counts as one file, and a regular file also counts its
 * bytes. An entry with a temporary name counts only its bytes.
 */
const usageOf = (path: FsPath.FsPath, stat: FileStat | undefined): Usage =>
  stat === undefined || stat.kind === "directory"
    ? noUsage
    : { bytes: stat.kind === "file" ? stat.sizeBytes : 0, files: countsAsFile(path) ? 1 : 0 }

const countsAsFile = (path: FsPath.FsPath): boolean => !TemporaryNames.isOwnName(FsPath.name(path))

export const measure = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Usage, Fault> {
  let bytes = 0
  let files = 0
  const stack = [FsPath.root]
  while (stack.length > 0) {
    const currentPath = stack.pop()!
    const children = yield* Effect.mapError(port.list(currentPath), (fault) => located(fault, currentPath))
    for (const child of children) {
      if (TemporaryNames.isInProgress(child.name)) continue
      const path = FsPath.join(currentPath, keyOf(child))
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

/**
 * A function that adds to the usage. If the sum would exceed a limit, the function changes nothing and returns false.
 */
type AddUsage = (bytes: number, files: number) => boolean

const makeLedger = (bounds: Bounds, initial: Usage): AddUsage => {
  let { bytes, files } = initial
  return (moreBytes, moreFiles) => {
    if (moreBytes > 0 && bytes + moreBytes > bounds.maxBytes) return false
    if (moreFiles > 0 && files + moreFiles > bounds.maxFiles) return false
    bytes += moreBytes
    files += moreFiles
    return true
  }
}

const makeReservation = (addUsage: AddUsage) => {
  let reservedUsage = noUsage
  const reserveUsage = ({ bytes, files }: Usage): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      if (!addUsage(bytes - reservedUsage.bytes, files - reservedUsage.files)) return Effect.fail(diskFull)
      reservedUsage = { bytes, files }
      return Effect.void
    })
  const release = Effect.sync(() => {
    addUsage(-reservedUsage.bytes, -reservedUsage.files)
    reservedUsage = noUsage
  })
  const settle = ({ bytes, files }: Usage) =>
    Effect.sync(() => {
      reservedUsage = noUsage
      addUsage(-bytes, -files)
    })
  return { reserveUsage, release, settle }
}

type Mode = "create" | "replace" | "append"

interface WriteTarget {
  readonly old: FileStat | undefined
  /** True if the backend will refuse the write anyway. If so, the backend's fault is reported instead of DiskFull. */
  readonly willFail: boolean
}

const publishAtOnce: Commit = (publish) => publish

export const around = (self: Backend, bounds: Bounds, usage: Usage): Backend => {
  const addUsage = makeLedger(bounds, usage)
  const { links } = self
  const nameOf = (path: FsPath.FsPath): FsPath.FsPath => (self.info.caseSensitive ? path : FsPath.fold(path))

  const writeTargetAt = (path: FsPath.FsPath, mode: Mode) =>
    Effect.flatMap(self.stat(path), (old): Effect.Effect<WriteTarget, Fault> =>
      old === undefined
        ? Effect.map(self.stat(FsPath.parent(path)), (above) => ({ old, willFail: above?.kind !== "directory" }))
        : Effect.succeed({ old, willFail: mode === "create" || old.kind !== "file" })
    )

  const growth = (path: FsPath.FsPath, mode: Mode, size: number, { willFail, old }: WriteTarget): Usage =>
    willFail
      ? noUsage
      : {
          bytes: mode === "replace" ? size - usageOf(path, old).bytes : size,
          files: old === undefined && countsAsFile(path) ? 1 : 0
        }

  const growthOnly = ({ bytes, files }: Usage): Usage => ({ bytes: Math.max(0, bytes), files: Math.max(0, files) })
  const shrinkageOnly = ({ bytes, files }: Usage): Usage => ({ bytes: Math.max(0, -bytes), files: Math.max(0, -files) })

  const write = <E, R>(
    path: FsPath.FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(writeTargetAt(path, mode), (place) => {
      const reservation = makeReservation(addUsage)
      let size = isBytes(content) ? content.length : 0
      const reserve = Effect.suspend(() => reservation.reserveUsage(growthOnly(growth(path, mode, size, place))))
      const countedContent = isBytes(content)
        ? content
        : Stream.mapArrayEffect(content, (chunks) => {
            for (const chunk of chunks) size += chunk.length
            return Effect.as(reserve, chunks)
          })
      const commit = how?.commit ?? publishAtOnce
      const settleOnPublish: Commit = (publish) =>
        Effect.uninterruptible(
          Effect.flatMap(writeTargetAt(path, mode), (now) => {
            const change = growth(path, mode, size, now)
            return Effect.andThen(
              reservation.reserveUsage(growthOnly(change)),
              Effect.tap(publish, () => reservation.settle(shrinkageOnly(change)))
            )
          })
        )
      const written = self.write(path, countedContent, mode, { commit: (publish) => commit(settleOnPublish(publish)) })
      return Effect.ensuring(Effect.andThen(reserve, written), reservation.release)
    })

  const withReservation = (change: Usage, run: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> => {
    const reservation = makeReservation(addUsage)
    return Effect.ensuring(
      Effect.andThen(
        reservation.reserveUsage(growthOnly(change)),
        Effect.tap(run, () => reservation.settle(shrinkageOnly(change)))
      ),
      reservation.release
    )
  }

  const rename: Backend["rename"] = (from, to, options) =>
    nameOf(from) === nameOf(to)
      ? self.rename(from, to, options)
      : Effect.uninterruptible(
          Effect.flatMap(Effect.all([self.stat(from), self.stat(to)]), ([source, target]) => {
            const [before, after] = [usageOf(from, source), usageOf(to, source)]
            const replaced = usageOf(to, target)
            const change = { bytes: -replaced.bytes, files: after.files - before.files - replaced.files }
            return withReservation(options.replace || target === undefined ? change : noUsage, self.rename(from, to, options))
          })
        )

  return {
    ...self,
    history: undefined,
    write,
    remove: (path) =>
      Effect.uninterruptible(
        Effect.flatMap(self.stat(path), (found) => {
          const { bytes, files } = usageOf(path, found)
          return withReservation({ bytes: -bytes, files: -files }, self.remove(path))
        })
      ),
    rename,
    links: links && {
      read: links.read,
      follow: links.follow,
      relative: links.relative,
      make: (path, target) =>
        Effect.uninterruptible(
          Effect.flatMap(writeTargetAt(path, "create"), (place) =>
            withReservation({ bytes: 0, files: growth(path, "create", 0, place).files }, links.make(path, target))
          )
        )
    }
  }
}
