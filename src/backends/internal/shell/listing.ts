/**
 * A directory is listed as it is at one moment, with the sizes of its files, and what killed writers have left in it is taken away on
 * the way: that of processes that have ended, and what is older than an hour, since who wrote in another container cannot be told.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isUtf8 } from "node:buffer"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, isTemporaryName, join } from "../../../model/FsPath.ts"
import type { Child } from "../../../port/Backend.ts"
import { childOf, fromBytes } from "../hostNames.ts"
import { isOrphan, staleAfter } from "../leftovers.ts"
import { complaints, faultOf } from "./faults.ts"
import { isFault, nameOf, type Place, understood } from "./place.ts"
import { kindOf } from "./stat.ts"
import { changed } from "./writing.ts"

interface Entry {
  readonly child: Child
  /** Seconds since 1970. */
  readonly modified: number
}

/** A name is one component and leads nowhere else, whatever the tools inside say: others join it to paths on other disks. */
const record = /^([0-9a-f]+) (\d+) (-?\d+) \.\/(?!\.{1,2}$)([^/]+)$/

const entryOf = (text: string, isText: boolean): Entry | undefined => {
  const [, mode, size, modified, name] = record.exec(text) ?? []
  if (name === undefined) return undefined
  const kind = kindOf(Number.parseInt(mode!, 16))
  const child = childOf(isText ? name : fromBytes(Buffer.from(name, "latin1")), kind)
  const sizeBytes = kind === "file" || kind === "symlink" ? Number(size) : 0
  return { child: { ...child, sizeBytes }, modified: Number(modified) }
}

/** `undefined` for what is no listing. */
const entriesOf = (output: Buffer): ReadonlyArray<Entry> | undefined => {
  const isText = isUtf8(output)
  const records = output.toString(isText ? "utf8" : "latin1").split("//\n")
  if (records.pop() !== "") return undefined
  const entries: Array<Entry> = []
  for (const text of records) {
    const entry = entryOf(text, isText)
    if (entry === undefined) return undefined
    entries.push(entry)
  }
  return entries
}

/** `now`, in milliseconds. */
const isStale = ({ child: { kind, name }, modified }: Entry, now: number): boolean =>
  kind === "file" && (isOrphan(name) ?? now - modified * 1000 > staleAfter)

const sweep = (place: Place, path: FsPath, temporary: ReadonlyArray<Entry>): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.forEach(
      temporary.filter((entry) => isStale(entry, now)),
      // Those that stay are hidden, and whoever lists the directory next tries again.
      ({ child }) => Effect.ignore(changed(place, "discard", [join(path, child.name)])),
      { discard: true }
    )
  )

/** What has gone while it was listed is told by no more than that. */
const isOnlyGone = (errors: string): boolean => complaints(errors).every((line) => line.endsWith("No such file or directory"))

/** `sweeps`: take away what killed writers have left in it. */
export const list = (place: Place, path: FsPath, sweeps: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.gen(function* () {
    const name = nameOf(path)
    if (isFault(name)) return yield* Effect.fail(name)
    const reply = yield* place.ask({ call: "list", arguments: [name], repeats: true })
    if (reply.status !== 0 && (reply.status >= 20 || !isOnlyGone(reply.errors))) return yield* Effect.fail(faultOf(reply))
    const entries = yield* understood(entriesOf(reply.output))
    if (sweeps) {
      const temporary = entries.filter(({ child }) => isTemporaryName(child.name))
      if (temporary.length > 0) yield* sweep(place, path, temporary)
    }
    return entries.map(({ child }) => child)
  })
