/**
 * Lists a directory as it is at one moment, with the sizes of its files, and removes the leftovers of killed writers in it.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isUtf8 } from "node:buffer"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, join } from "../../../model/FsPath.ts"
import type { Child } from "../../../port/Backend.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { childOf, fromBytes } from "../hostNames.ts"
import { complaints, faultOf } from "./faults.ts"
import { isFault, nameOf, type Place, understood } from "./place.ts"
import { kindOf } from "./stat.ts"
import { changed } from "./writing.ts"

/** A name is one component and leads nowhere else, whatever the tools inside say: others join it to paths on other disks. */
const record = /^([0-9a-f]+) (\d+) (-?\d+) \.\/(?!\.{1,2}$)([^/]+)$/

const childFrom = (text: string, isText: boolean): Child | undefined => {
  const [, mode, size, , name] = record.exec(text) ?? []
  if (name === undefined) return undefined
  const kind = kindOf(Number.parseInt(mode!, 16))
  const child = childOf(isText ? name : fromBytes(Buffer.from(name, "latin1")), kind)
  const sizeBytes = kind === "file" || kind === "symlink" ? Number(size) : 0
  return { ...child, sizeBytes }
}

/** `undefined` for what is no listing. */
const entriesOf = (output: Buffer): ReadonlyArray<Child> | undefined => {
  const isText = isUtf8(output)
  const records = output.toString(isText ? "utf8" : "latin1").split("//\n")
  if (records.pop() !== "") return undefined
  const entries: Array<Child> = []
  for (const text of records) {
    const entry = childFrom(text, isText)
    if (entry === undefined) return undefined
    entries.push(entry)
  }
  return entries
}

/** Removes the leftovers, and returns the children without them. */
const swept = Effect.fnUntraced(function* (place: Place, path: FsPath, children: ReadonlyArray<Child>) {
  const left = children.filter(({ kind, name }) => kind === "file" && TemporaryNames.isLeftover(name))
  if (left.length === 0) return children
  const gone = new Set<Child>()
  for (const child of left) {
    const removed = yield* Effect.exit(changed(place, "discard", [join(path, child.name)]))
    if (Exit.isSuccess(removed)) gone.add(child)
  }
  return children.filter((child) => !gone.has(child))
})

/** What has gone while it was listed is told by no more than that. */
const isOnlyGone = (errors: string): boolean => complaints(errors).every((line) => line.endsWith("No such file or directory"))

/** Lists a directory. `sweeps`: remove the leftovers of killed writers in it, which are not listed then. */
export const list = (place: Place, path: FsPath, sweeps: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.gen(function* () {
    const name = nameOf(path)
    if (isFault(name)) return yield* Effect.fail(name)
    const reply = yield* place.ask({ call: "list", arguments: [name], repeats: true })
    if (reply.status !== 0 && (reply.status >= 20 || !isOnlyGone(reply.errors))) return yield* Effect.fail(faultOf(reply))
    const entries = yield* understood(entriesOf(reply.output))
    return sweeps ? yield* swept(place, path, entries) : entries
  })
