/**
 * What is in a directory. It is read through the thread pool, in parallel with others, and a large one (told by its own size) in
 * slices, so that the program is never held up by it. Names come as text, which is fast; only where a name may not be text all are
 * asked for again as bytes.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import type { Child } from "../../port/Backend.ts"
import { attempt, awaited, patiently } from "./attempt.ts"
import type { Place } from "./confined.ts"
import { kindOf } from "./hostFile.ts"
import { childOf, fromBytes, isDoubtful } from "./hostNames.ts"

/** Bytes of the directory itself, whatever its disk counts in them: some thousand entries. */
const large = 64 * 1024
const slice = 1000

type Entry = Fs.Dirent | Fs.Dirent<Buffer>

const inSlices = (place: Place, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  Effect.acquireUseRelease(
    attempt(() => Fs.opendirSync(place.directory as string, { encoding: encoding as BufferEncoding, bufferSize: slice })),
    (directory) => {
      const entries: Array<Entry> = []
      const next: Effect.Effect<ReadonlyArray<Entry>, Fault> = Effect.flatMap(
        attempt(() => {
          for (let left = slice; left > 0; left--) {
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

const atOnce = (place: Place, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  patiently(
    awaited<Array<Entry>>((end) =>
      Fs.readdir(place.directory, { withFileTypes: true, encoding: encoding as "utf8" }, end as (error: Error | null) => void)
    )
  )

const entriesOf = (place: Place, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  Effect.flatMap(
    attempt(() => place.stats.size > large),
    (isLarge) => (isLarge ? inSlices(place, encoding) : atOnce(place, encoding))
  )

const toChildren = (entries: ReadonlyArray<Entry>): Array<Child> | undefined => {
  const children: Array<Child> = []
  for (const entry of entries) {
    const name = typeof entry.name === "string" ? entry.name : fromBytes(entry.name)
    if (typeof entry.name === "string" && isDoubtful(entry.name)) return undefined
    children.push(childOf(name, kindOf(entry)))
  }
  return children
}

/** Everything in the directory, temporary files too. */
export const children = (place: Place): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.flatMap(entriesOf(place, "utf8"), (entries) => {
    const children = toChildren(entries)
    return children === undefined
      ? Effect.map(entriesOf(place, "buffer"), (entries) => toChildren(entries) ?? [])
      : Effect.succeed(children)
  })

/** Whether it is read without the thread pool by those who read one directory after another: some hundred entries. */
export const isSmall = (place: Place): boolean => {
  try {
    return place.stats.size <= 16 * 1024
  } catch {
    // Why not, the reading itself will say.
    return false
  }
}

/** Without the thread pool, which is three times as fast for a small directory and holds the program up for a large one. */
export const childrenNow = (place: Place): ReadonlyArray<Child> => {
  const read = (encoding: "utf8" | "buffer") =>
    toChildren(Fs.readdirSync(place.directory, { withFileTypes: true, encoding: encoding as "utf8" }))
  return read("utf8") ?? read("buffer") ?? []
}
