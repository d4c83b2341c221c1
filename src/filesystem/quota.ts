/**
 * What a write may take is reserved before it is taken, in one synchronous step, so that many writers together cannot pass a bound that
 * each alone would keep; what was not needed in the end is given back. Reservations grow as a stream comes, and are settled against
 * the file that is really replaced when the write is published, under the path's lock.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileStat } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Commit, keyOf } from "../port/Backend.ts"

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

/** What an entry counts for: all but directories are files, only regular ones have bytes. */
const worth = (stat: FileStat | undefined): Usage =>
  stat === undefined || stat.kind === "directory" ? none : { bytes: stat.kind === "file" ? stat.sizeBytes : 0, files: 1 }

/** Everything there is, but writes in progress. */
export const measure = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Usage, Fault> {
  let bytes = 0
  let files = 0
  const stack = [FsPath.root]
  while (stack.length > 0) {
    const here = stack.pop()!
    const children = yield* Effect.mapError(port.list(here), (fault) => located(fault, here))
    for (const child of children) {
      if (FsPath.isTemporaryName(child.name)) continue
      const path = FsPath.join(here, keyOf(child))
      if (child.kind === "directory") {
        stack.push(path)
        continue
      }
      files++
      if (child.kind !== "file") continue
      bytes += child.sizeBytes ?? worth(yield* Effect.mapError(port.stat(path), (fault) => located(fault, path))).bytes
    }
  }
  return { bytes, files }
})

/** Adds to what is counted. Growth beyond a bound is refused, and then nothing has changed. */
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

/** What one write holds until it is settled. */
const makeClaim = (count: Count) => {
  let held = none
  const raise = (bytes: number, files: number): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      if (!count(bytes - held.bytes, files - held.files)) return full
      held = { bytes, files }
      return Effect.void
    })
  const release = Effect.sync(() => {
    count(-held.bytes, -held.files)
    held = none
  })
  /** What is held has become what is there, less what the file has shrunk by. */
  const settle = (shrunk: number) =>
    Effect.sync(() => {
      held = none
      count(-shrunk, 0)
    })
  return { raise, release, settle }
}

type Mode = "create" | "replace" | "append"

/** How much larger the file becomes. */
const growth = (mode: Mode, size: number, old: FileStat | undefined): number =>
  mode === "replace" ? size - worth(old).bytes : size

const publishAtOnce: Commit = (publish) => publish

export const around = (self: Backend, bounds: Bounds, usage: Usage): Backend => {
  const count = ledger(bounds, usage)
  const { accelerations, links } = self
  const nameOf = (path: FsPath.FsPath): FsPath.FsPath => (self.info.caseSensitive ? path : FsPath.fold(path))

  const write: Backend["write"] = <E, R>(
    path: FsPath.FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how: Parameters<Backend["write"]>[3]
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(self.stat(path), (found) => {
      const claim = makeClaim(count)
      const files = found === undefined ? 1 : 0
      let size = 0
      const grow = (bytes: number): Effect.Effect<void, Fault> => {
        size += bytes
        return claim.raise(Math.max(0, growth(mode, size, found)), files)
      }
      const settled: Commit = (publish) =>
        Effect.uninterruptible(
          Effect.flatMap(self.stat(path), (old) => {
            const bytes = growth(mode, size, old)
            const files = old === undefined ? 1 : 0
            return Effect.andThen(
              claim.raise(Math.max(0, bytes), files),
              Effect.tap(publish, () => claim.settle(Math.max(0, -bytes)))
            )
          })
        )
      const commit = how?.commit ?? publishAtOnce
      const counted =
        content instanceof Uint8Array
          ? content
          : Stream.mapArrayEffect(content, (chunks) =>
              Effect.as(grow(chunks.reduce((bytes, chunk) => bytes + chunk.length, 0)), chunks)
            )
      return Effect.ensuring(
        Effect.andThen(
          grow(content instanceof Uint8Array ? content.length : 0),
          self.write<E | Fault, R>(path, counted, mode, { commit: (publish) => commit(settled(publish)) })
        ),
        claim.release
      )
    })

  return {
    ...self,
    write,
    /** What goes is counted when it has gone. */
    remove: (path) =>
      Effect.uninterruptible(
        Effect.flatMap(self.stat(path), (found) => Effect.tap(self.remove(path), () => forget(count, worth(found))))
      ),
    rename: (from, to, options) =>
      nameOf(from) === nameOf(to)
        ? self.rename(from, to, options)
        : Effect.uninterruptible(
            Effect.flatMap(self.stat(to), (replaced) =>
              Effect.tap(self.rename(from, to, options), () => forget(count, worth(replaced)))
            )
          ),
    links: links && {
      read: links.read,
      make: (path, target) =>
        Effect.uninterruptible(
          Effect.suspend(() =>
            count(0, 1) ? Effect.onError(links.make(path, target), () => forget(count, { bytes: 0, files: 1 })) : full
          )
        )
    },
    accelerations: accelerations?.read && { read: accelerations.read }
  }
}

const forget = (count: Count, { bytes, files }: Usage): Effect.Effect<void> => Effect.sync(() => void count(-bytes, -files))
