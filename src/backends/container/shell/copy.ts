/**
 * Copies a tree inside the container, so that its contents do not pass through this program.
 *
 * The copy is built under a hidden name next to the target, compared with the original, and renamed to the target. If an
 * entry is unusual or a command fails, the result is `None`, and the engine of this library copies entry by entry.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type { TransferResult } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, join, parent } from "../../../model/FsPath.ts"
import type { Handlers } from "../../../port/Request.ts"
import { isUtf8 } from "../../../runtime/node.ts"
import { runInSlices, type Steps } from "../../../runtime/steps.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { affectsAllRequests } from "./bulk.ts"
import { changed, quoted } from "./operations.ts"
import type { Reply } from "./session.ts"
import { isFault, kindOf, nameOf, type ShellRoot } from "./shellRoot.ts"

/** An entry of a tree in the container. Its path is decoded as Latin-1, one character per byte. */
interface Entry {
  /** The path below the copied directory, with a leading slash; empty for the directory itself. */
  readonly below: string
  readonly kind: "file" | "directory" | "symlink"
  readonly bits: number
  readonly links: number
  readonly sizeBytes: number
}

const maxSurveyBytes = 4 * 1024 * 1024

/**
 * Returns the maximum size of the copy's list, in bytes. The list may be longer than the list of the original, because each
 * path begins with the name of the copy.
 */
const maxCopySurveyBytesOf = (entries: ReadonlyArray<Entry>, to: Uint8Array): number =>
  Math.min(64 * 1024 * 1024, maxSurveyBytes + entries.length * to.length)

/** The work for one entry, in the units of `runInSlices`. */
const unitsPerEntry = 128

const isOrdinary = (below: string, mode: number): boolean =>
  // A name that begins with ".~fsa-" may be a hidden temporary name, which only the engine can recognize.
  !below.includes("/.~fsa-") && !below.includes("//") && (kindOf(mode) === "symlink" || (mode & 0o7000) === 0)

const entryOf = (top: string, record: string): Entry | undefined => {
  const [, hex = "", links, size, path = ""] = /^([0-9a-f]{1,8}) (\d{1,10}) (\d{1,16}) ([^]*)$/.exec(record) ?? []
  const mode = Number.parseInt(hex, 16)
  const kind = kindOf(mode)
  const below = path.slice(top.length)
  const isBelow = path.startsWith(top) && (below === "" || below.startsWith("/"))
  if (!isBelow || kind === "other" || !isOrdinary(below, mode)) return undefined
  return { below, kind, bits: mode & 0o777, links: Number(links), sizeBytes: Number(size) }
}

/**
 * Returns the entries of a tree, each directory before its contents. Returns `undefined` if the command failed, its output is
 * too long, or an entry is unusual.
 */
const entriesOf = function* (
  top: string,
  { errors, output, status }: Reply,
  maxOutputBytes: number
): Steps<ReadonlyArray<Entry> | undefined> {
  if (status !== 0 || errors.trim() !== "" || output.length >= maxOutputBytes) return undefined
  const text = output.toString("latin1")
  const directories = new Set<string>()
  const entries: Array<Entry> = []
  for (let at = 0; at < text.length;) {
    yield unitsPerEntry
    const end = text.indexOf("//\n", at)
    const entry = end === -1 ? undefined : entryOf(top, text.slice(at, end))
    if (entry === undefined) return undefined
    at = end + 3
    const { below, kind } = entry
    const isInOrder = below === "" ? entries.length === 0 && kind === "directory" : directories.has(parentOf(below))
    if (!isInOrder) return undefined
    if (kind === "directory") directories.add(below)
    entries.push(entry)
  }
  return entries.length === 0 ? undefined : entries
}

const parentOf = (below: string): string => below.slice(0, below.lastIndexOf("/"))

const isSame = (entry: Entry, copy: Entry | undefined): boolean =>
  copy !== undefined &&
  copy.kind === entry.kind &&
  (entry.kind === "symlink" || copy.bits === entry.bits) &&
  (entry.kind === "directory" || copy.links === 1)

const compare = function* (entries: ReadonlyArray<Entry>, copies: ReadonlyArray<Entry>): Steps<TransferResult | undefined> {
  if (copies.length !== entries.length) return undefined
  const byPath = new Map<string, Entry>()
  let [directories, bytes] = [0, 0]
  for (const copy of copies) {
    yield unitsPerEntry
    byPath.set(copy.below, copy)
    if (copy.kind === "directory") directories++
    else if (copy.kind === "file") bytes += copy.sizeBytes
  }
  for (const entry of entries) {
    yield unitsPerEntry
    if (!isSame(entry, byPath.get(entry.below))) return undefined
  }
  return { files: copies.length - directories, directories, bytes }
}

// The commands of a copy. Each request is small, so that other requests wait only briefly.

const maxArguments = 1024
const maxArgumentBytes = 96 * 1024
const maxBytes = 64 * 1024 * 1024

interface Step {
  readonly argument: string
  readonly sizeBytes: number
}

/** Divides steps into groups of limited size. A step that exceeds the limit forms a separate group. */
const groupsOf = (steps: ReadonlyArray<Step>): ReadonlyArray<ReadonlyArray<Step>> => {
  const groups: Array<Array<Step>> = []
  let [bytes, length] = [0, 0]
  for (const step of steps) {
    const last = groups.at(-1)
    bytes += step.sizeBytes
    length += step.argument.length
    if (last !== undefined && last.length < maxArguments && bytes <= maxBytes && length <= maxArgumentBytes) last.push(step)
    else {
      groups.push([step])
      bytes = step.sizeBytes
      length = step.argument.length
    }
  }
  return groups
}

/**
 * Returns the arguments of `bulk_copy` for all files and symlinks. A file with several hard links has a separate call,
 * because some tools would otherwise reproduce the hard links in the copy.
 */
const copyCalls = function* (from: string, to: string, entries: ReadonlyArray<Entry>): Steps<ReadonlyArray<Step>> {
  const inside = new Map<string, Array<Step>>()
  const calls: Array<Step> = []
  const callOf = (directory: string, steps: ReadonlyArray<Step>): Step => ({
    argument: [quoted(to + directory), ...steps.map(({ argument }) => argument)].join(" "),
    sizeBytes: steps.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  })
  for (const { below, kind, links, sizeBytes } of entries) {
    yield unitsPerEntry
    if (kind === "directory") continue
    const directory = parentOf(below)
    const step = { argument: quoted(from + below), sizeBytes }
    const siblings = inside.get(directory)
    if (links > 1) calls.push(callOf(directory, [step]))
    else if (siblings === undefined) inside.set(directory, [step])
    else siblings.push(step)
  }
  for (const [directory, steps] of inside) {
    for (const group of groupsOf(steps)) {
      calls.push(callOf(directory, group))
      yield group.length * unitsPerEntry
    }
  }
  return calls
}

/** The mode of a directory that `mkdir` creates with the shell's umask. */
const usualBits = 0o755

const argumentsOf = function* (
  entries: ReadonlyArray<Entry>,
  argumentOf: (entry: Entry) => string
): Steps<ReadonlyArray<Step>> {
  const steps: Array<Step> = []
  for (const entry of entries) {
    yield unitsPerEntry
    steps.push({ argument: argumentOf(entry), sizeBytes: 0 })
  }
  return steps
}

const copyTo = Effect.fnUntraced(function* (
  place: ShellRoot,
  from: Uint8Array,
  to: Uint8Array
): Effect.fn.Return<TransferResult | undefined, Fault> {
  const textOf = (name: Uint8Array): string => Buffer.from(name).toString("latin1")
  const [source, target] = [textOf(from), textOf(to)]

  const survey = (name: Uint8Array, maxOutputBytes: number) =>
    Effect.flatMap(
      place.sendRequest({ call: "bulk_survey", arguments: [name, String(maxOutputBytes)], repeats: true }),
      (reply) => runInSlices(() => entriesOf(textOf(name), reply, maxOutputBytes))
    )
  /** Runs `command` with the arguments of the steps, which `separator` joins. Returns false if a command failed. */
  const run = Effect.fnUntraced(function* (command: string, steps: () => Steps<ReadonlyArray<Step>>, separator: string) {
    for (const group of groupsOf(yield* runInSlices(steps))) {
      const input = Buffer.from(group.map(({ argument }) => argument).join(separator), "latin1")
      const { errors, status } = yield* place.sendRequest({
        call: "bulk_taken",
        arguments: [command],
        input,
        repeats: false
      })
      if (status !== 0 || errors.trim() !== "") return false
    }
    return true
  })

  const entries = yield* survey(from, maxSurveyBytes)
  // A program prints nothing while it copies a large file, so the session could mistake the shell for a stopped shell.
  if (entries === undefined || entries.some(({ kind, sizeBytes }) => kind === "file" && sizeBytes > maxBytes)) return undefined
  if (entries.some(({ kind }) => kind === "symlink")) {
    const { output, status } = yield* place.sendRequest({ call: "bulk_targets", arguments: [from], repeats: true })
    if (status !== 0 || !isUtf8(output)) return undefined
  }
  const directories = entries.filter(({ kind }) => kind === "directory")
  // Set the modes of the deepest directories first, because a mode may forbid changes inside the directory.
  const unusualDirectories = directories.filter(({ bits }) => bits !== usualBits).reverse()
  const isCopied =
    (yield* run("mkdir --", () => argumentsOf(directories, ({ below }) => quoted(target + below)), " ")) &&
    (yield* run("bulk_copy", () => copyCalls(source, target, entries), " || return\nbulk_copy ")) &&
    (yield* run(
      "chmod",
      () => argumentsOf(unusualDirectories, ({ below, bits }) => `${bits.toString(8)} ${quoted(target + below)}`),
      " || return\nchmod "
    ))
  const copies = isCopied ? yield* survey(to, maxCopySurveyBytesOf(entries, to)) : undefined
  return copies && (yield* runInSlices(() => compare(entries, copies)))
})

/** The retries of the removal. After a restart of the shell, a tool of the old shell may still write for a moment. */
const removalRetries = { times: 4, schedule: Schedule.spaced("1 second") } as const

export const copyTree =
  (place: ShellRoot): NonNullable<Handlers["CopyTree"]> =>
  ({ path, to }) => {
    const copyBeside = (temporary: FsPath): Effect.Effect<Option.Option<TransferResult>, Fault> => {
      const [from, staged] = [nameOf(path), nameOf(temporary)]
      if (isFault(from) || isFault(staged)) return Effect.succeedNone
      const copied = Effect.flatMap(copyTo(place, from, staged), (copied) =>
        copied === undefined
          ? Effect.succeedNone
          : Effect.matchEffect(changed(place, "rename", [temporary, to], ["0"]), {
              onSuccess: () => Effect.succeedSome(copied),
              // The engine then copies entry by entry, and reports the reason.
              onFailure: (fault) => (affectsAllRequests(fault) ? Effect.fail(fault) : Effect.succeedNone)
            })
      )
      return Effect.onExit(copied, (exit) =>
        Exit.isSuccess(exit) && Option.isSome(exit.value)
          ? Effect.void
          : Effect.ignore(Effect.retry(changed(place, "bulk_discard", [temporary]), removalRetries))
      )
    }
    return TemporaryNames.withName((name) => copyBeside(join(parent(to), name)))
  }
