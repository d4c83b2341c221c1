/**
 * Lists directories through the thread pool.
 *
 * A large directory, recognized by its own size, is read in slices, so that the program never stalls. Names are read as
 * text, which is fast. If a name may not be valid text, all names are read again as bytes.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import { isBytes } from "../../model/bytes.ts"
import type { Fault } from "../../model/FsError.ts"
import type { Child } from "../../port/Backend.ts"
import { attempt, awaitCall, retryTransient } from "./attempt.ts"
import { lstatEntry, type HostDirectory } from "./confined.ts"
import { kindOf } from "./hostFile.ts"
import { childOf, fromBytes, mayBeLossy } from "./hostNames.ts"

/** Larger directories are read in slices: bytes as the disk counts them, for some thousand entries. */
const largeDirectoryBytes = 64 * 1024
const entriesPerSlice = 1000

/** Bun returns only names, without kinds, if names are requested as bytes (oven-sh/bun#27914). */
type Entry = Fs.Dirent | Fs.Dirent<Buffer> | Buffer

const readInSlices = (place: HostDirectory, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  Effect.acquireUseRelease(
    attempt(() =>
      Fs.opendirSync(place.directory as string, { encoding: encoding as BufferEncoding, bufferSize: entriesPerSlice })
    ),
    (directory) => {
      const entries: Array<Entry> = []
      const next: Effect.Effect<ReadonlyArray<Entry>, Fault> = Effect.flatMap(
        attempt(() => {
          for (let left = entriesPerSlice; left > 0; left--) {
            const entry = directory.readSync()
            if (entry === null) return false
            entries.push(entry)
          }
          return true
        }),
        (more) => (more ? Effect.andThen(Effect.yieldNow, next) : Effect.succeed(entries))
      )
      return next
    },
    (directory) => Effect.sync(() => directory.closeSync())
  )

const readAtOnce = (place: HostDirectory, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  retryTransient(
    awaitCall<Array<Entry>>((end) =>
      Fs.readdir(place.directory, { withFileTypes: true, encoding: encoding as "utf8" }, end as (error: Error | null) => void)
    )
  )

const entriesOf = (place: HostDirectory, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  Effect.flatMap(
    attempt(() => place.stats.size > largeDirectoryBytes),
    (isLarge) => (isLarge ? readInSlices(place, encoding) : readAtOnce(place, encoding))
  )

const childAt = (place: HostDirectory, name: Buffer): Child | undefined => {
  const child = childOf(fromBytes(name), "other")
  const stats = lstatEntry(place.at(child.key ?? child.name))
  return stats && { ...child, kind: kindOf(stats) }
}

const toChildren = (place: HostDirectory, entries: ReadonlyArray<Entry>): Array<Child> | undefined => {
  const children: Array<Child> = []
  for (const entry of entries) {
    if (isBytes(entry)) {
      const child = childAt(place, entry)
      if (child !== undefined) children.push(child)
      continue
    }
    const name = typeof entry.name === "string" ? entry.name : fromBytes(entry.name)
    if (typeof entry.name === "string" && mayBeLossy(entry.name)) return undefined
    children.push(childOf(name, kindOf(entry)))
  }
  return children
}

export const children = (place: HostDirectory): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.flatMap(entriesOf(place, "utf8"), (entries) => {
    const children = toChildren(place, entries)
    return children === undefined
      ? Effect.flatMap(entriesOf(place, "buffer"), (entries) => attempt(() => toChildren(place, entries) ?? []))
      : Effect.succeed(children)
  })

/** Tests whether a walk may read the directory without the thread pool: some hundred entries. */
export const isSmall = (place: HostDirectory): boolean => {
  try {
    return place.stats.size <= 16 * 1024
  } catch {
    // Ignore the error: the read itself reports it.
    return false
  }
}

/**
 * Lists a directory without the thread pool: three times as fast if it is small, but a large one blocks the program.
 */
export const listSync = (place: HostDirectory): ReadonlyArray<Child> => {
  const read = (encoding: "utf8" | "buffer") =>
    toChildren(place, Fs.readdirSync(place.directory, { withFileTypes: true, encoding: encoding as "utf8" }))
  return read("utf8") ?? read("buffer") ?? []
}
