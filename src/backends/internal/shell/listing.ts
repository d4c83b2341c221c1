import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isUtf8 } from "../../../runtime/node.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, join } from "../../../model/FsPath.ts"
import { type Child, keyOf } from "../../../port/Backend.ts"
import { changed } from "../../../port/explorer.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { childOf, fromBytes } from "../hostNames.ts"
import { errorMessages, faultOf } from "./faults.ts"
import { isFault, nameOf, type ShellRoot, succeedOrUnexpected } from "./place.ts"
import { kindOf } from "./stat.ts"
import * as Writing from "./writing.ts"

/**
 * Accepts only a single path component, whatever the tools print, because callers append the name to paths on other
 * disks.
 */
const record = /^([0-9a-f]+) (\d+) (-?\d+) \.\/(?!\.{1,2}$)([^/]+)$/

const childFrom = (text: string, isText: boolean): Child | undefined => {
  const [, mode, size, , name] = record.exec(text) ?? []
  if (name === undefined) return undefined
  const kind = kindOf(Number.parseInt(mode!, 16))
  const child = childOf(isText ? name : fromBytes(Buffer.from(name, "latin1")), kind)
  const sizeBytes = kind === "file" || kind === "symlink" ? Number(size) : 0
  return { ...child, sizeBytes }
}

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

const withoutLeftovers = Effect.fnUntraced(function* (place: ShellRoot, path: FsPath, children: ReadonlyArray<Child>) {
  const left = children.filter(({ kind, name }) => kind === "file" && TemporaryNames.isLeftover(name))
  if (left.length === 0) return children
  const gone = new Set<Child>()
  for (const child of left) {
    const removed = yield* Effect.exit(Writing.changed(place, "discard", [join(path, child.name)]))
    if (Exit.isSuccess(removed)) gone.add(child)
  }
  return children.filter((child) => !gone.has(child))
})

const isGone = (complaint: string): boolean => complaint.endsWith("No such file or directory")

const maxLooks = 3

/**
 * Lists the names for which `stat` always fails, although the disk lists them. Fails with Unavailable unless there are
 * `missed` such names.
 */
const listUnstatable = Effect.fnUntraced(function* (
  place: ShellRoot,
  name: Uint8Array,
  found: ReadonlyArray<Child>,
  missed: number
) {
  const { output } = yield* place.sendRequest({ call: "names", arguments: [name], repeats: true })
  const names = new Set(found.map(keyOf))
  const all = [...output.toString("latin1").matchAll(/([dfo])\.\/(?!\.{1,2}\/)([^/]+)\/\/\n/g)].map(
    ([, kind, text]): Child => ({
      ...childOf(fromBytes(Buffer.from(text!, "latin1")), kind === "d" ? "directory" : kind === "f" ? "file" : "other"),
      sizeBytes: 0
    })
  )
  const others = all.filter((child) => !names.has(keyOf(child)))
  return others.length === missed ? others : yield* Effect.fail(changed)
})

/**
 * Lists a directory until all its entries are found, within a limited number of attempts.
 *
 * An entry that is missing once was removed or temporarily absent. Fails with Unavailable if the same entry is missing
 * repeatedly, unless no attempt ever finds it.
 */
const listStable = Effect.fnUntraced(function* (
  place: ShellRoot,
  name: Uint8Array
): Effect.fn.Return<ReadonlyArray<Child>, Fault> {
  const missed = new Map<string, number>()
  for (let left = maxLooks; ; left--) {
    const reply = yield* place.sendRequest({ call: "list", arguments: [name], repeats: true })
    const messages = errorMessages(reply.errors)
    if (reply.status !== 0 && (reply.status >= 20 || !messages.every(isGone))) return yield* Effect.fail(faultOf(reply))
    const gone = messages.filter(isGone)
    if (gone.length === 0 || left === 0) {
      const found = yield* succeedOrUnexpected(entriesOf(reply.output))
      const again = gone.filter((complaint) => missed.has(complaint))
      if (again.length === 0) return found
      if (again.some((complaint) => missed.get(complaint) !== maxLooks)) return yield* Effect.fail(changed)
      return [...found, ...(yield* listUnstatable(place, name, found, again.length))]
    }
    for (const complaint of gone) missed.set(complaint, (missed.get(complaint) ?? 0) + 1)
  }
})

export const list = (place: ShellRoot, path: FsPath, sweeps: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.gen(function* () {
    const name = nameOf(path)
    if (isFault(name)) return yield* Effect.fail(name)
    const entries = yield* listStable(place, name)
    return sweeps ? yield* withoutLeftovers(place, path, entries) : entries
  })
