/**
 * Combines many operations in one request.
 *
 * The shell omits unusual cases from its answer. The caller then requests these cases one by one, with the same results
 * as without this module.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { FileStat } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { fromSegments, type FsPath, isTemporaryName, segments } from "../../../model/FsPath.ts"
import { type Backend, type Child, keyOf, type Seen, type Whole } from "../../../port/Backend.ts"
import type { Handlers } from "../../../port/Request.ts"
import { type DirectoryReading, type Explore, type Explorer, inWalkOrder, type Visit } from "../../../port/explorer.ts"
import { isUtf8, randomBytes } from "../../../runtime/node.ts"
import { childOf, fromBytes } from "../../posix/place.ts"
import { quoted } from "./operations.ts"
import type { Reply, Request } from "./session.ts"
import { isFault, kindOf, nameOf as onDisk, type ShellRoot, toStat } from "./shellRoot.ts"

interface BulkOptions {
  readonly place: ShellRoot
  readonly list: Backend["list"]
  readonly caseSensitive: boolean
}

const maxDirectories = 256
const maxFiles = 256
const maxContent = 16 * 1024 * 1024
/** The maximum total length of the paths in one request, in bytes. The system limits the arguments of a program. */
const maxNames = 96 * 1024
const maxLineArguments = 512
/** The size of a directory in bytes above which it is listed alone, because its listing may be too large to combine. */
const largeListingBytes = 8192

const nameOf = (path: FsPath): Uint8Array | undefined => {
  const name = onDisk(path)
  return isFault(name) ? undefined : name
}

const latin1Of = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")

const requestOf = (call: string, args: ReadonlyArray<Uint8Array>): Request =>
  args.reduce((sum, { length }) => sum + length + 3, 0) <= maxLineArguments
    ? { call, arguments: args, repeats: true }
    : {
        call: "bulk_taken",
        arguments: [call],
        input: Buffer.from(args.map((argument) => quoted(latin1Of(argument))).join(" "), "latin1"),
        repeats: true
      }

const findFittingEnd = (names: ReadonlyArray<Uint8Array>, start: number, most: number): number => {
  let bytes = 0
  let end = start
  while (end < names.length && end - start < most) {
    bytes += names[end]!.length
    if (bytes > maxNames && end > start) break
    end++
  }
  return end
}

interface ListedEntry {
  readonly child: Child
  readonly sizeBytes: number
}

const parseListing = (output: Buffer): Map<string, Array<ListedEntry>> | undefined => {
  const found = new Map<string, Array<ListedEntry>>()
  const all = output.toString("latin1").split("//\n")
  if (all.pop() !== "") return undefined
  for (const record of all) {
    const parts = /^([0-9a-f]+) (\d+) ([^]*)\/([^/]+)$/.exec(record)
    if (parts === null || parts[4] === "." || parts[4] === "..") return undefined
    const [, mode = "", size = "", directory = "", name = ""] = parts
    const kind = kindOf(Number.parseInt(mode, 16))
    const sizeBytes = Number(size)
    const child = {
      ...childOf(fromBytes(Buffer.from(name, "latin1")), kind),
      sizeBytes: kind === "file" || kind === "symlink" ? sizeBytes : 0
    }
    const others = found.get(directory)
    if (others === undefined) found.set(directory, [{ child, sizeBytes }])
    else others.push({ child, sizeBytes })
  }
  return found
}

const hasError = (errors: string): boolean => /[^\n]/.test(errors)

const isGone = (errors: string): boolean =>
  hasError(errors) && errors.split("\n").every((line) => line === "" || line.endsWith(": No such file or directory"))

/**
 * Tests whether a fault affects all requests, for example because the container does not answer. After such a fault,
 * requests for single paths would only multiply the delay.
 */
export const affectsAllRequests = ({ _tag }: Fault): boolean => _tag === "Unavailable" || _tag === "Timeout"

const makeExplorer = <V extends Visit>(
  { caseSensitive, list, place }: BulkOptions,
  pathOf: (visit: V) => FsPath
): Explorer<V> => {
  let asked: Array<V> = []
  let done: Array<DirectoryReading<V>> = []
  const large = new WeakMap<Visit, ReadonlySet<string>>()

  const isLarge = ({ above, segment }: V): boolean => above !== undefined && large.get(above)?.has(segment) === true

  const take = (visit: V, records: ReadonlyArray<ListedEntry>): ReadonlyArray<Child> => {
    const largeDirectories = records.filter(
      ({ child, sizeBytes }) => child.kind === "directory" && sizeBytes > largeListingBytes
    )
    if (largeDirectories.length > 0) large.set(visit, new Set(largeDirectories.map(({ child }) => keyOf(child))))
    return inWalkOrder(
      records.map(({ child }) => child),
      caseSensitive
    )
  }

  const listAlone = (visit: V): Effect.Effect<DirectoryReading<V>> =>
    Effect.match(list(pathOf(visit)), {
      onSuccess: (children) => ({ visit, children: inWalkOrder(children, caseSensitive) }),
      onFailure: (fault) => ({ visit, children: fault })
    })

  const parseReply = (visits: ReadonlyArray<V>, names: ReadonlyArray<Uint8Array>, { errors, output }: Reply) => {
    const end = output.indexOf(10)
    const listedDigits = output.toString("latin1", 0, end)
    const found =
      !hasError(errors) && listedDigits.length === visits.length ? parseListing(output.subarray(end + 1)) : undefined
    return visits.map((visit, index): DirectoryReading<V> | undefined => {
      if (found === undefined || listedDigits[index] !== "1") return undefined
      const records = found.get(latin1Of(names[index]!)) ?? []
      // A listing of this directory alone decides whether the entry is hidden, a leftover, or an ordinary file.
      if (records.some(({ child }) => isTemporaryName(child.name))) return undefined
      return { visit, children: take(visit, records) }
    })
  }

  /**
   * Lists several directories in one request.
   *
   * If a listed entry no longer exists, it was removed, or its directory was moved or replaced. The two halves of the
   * directories are then requested separately, until the affected directory is requested alone.
   */
  const askFor = (
    visits: ReadonlyArray<V>,
    names: ReadonlyArray<Uint8Array>
  ): Effect.Effect<ReadonlyArray<DirectoryReading<V> | undefined>> =>
    Effect.matchEffect(place.sendRequest(requestOf("bulk_lists", names)), {
      onSuccess: (reply) => {
        if (visits.length === 1 || !isGone(reply.errors)) return Effect.succeed(parseReply(visits, names, reply))
        const middle = visits.length >> 1
        return Effect.zipWith(
          askFor(visits.slice(0, middle), names.slice(0, middle)),
          askFor(visits.slice(middle), names.slice(middle)),
          (first, second) => [...first, ...second]
        )
      },
      onFailure: (fault) =>
        Effect.succeed(visits.map((visit) => (affectsAllRequests(fault) ? { visit, children: fault } : undefined)))
    })

  const listTogether = Effect.fnUntraced(function* (visits: ReadonlyArray<V>, names: ReadonlyArray<Uint8Array>) {
    const out: Array<DirectoryReading<V>> = []
    for (let at = 0; at < visits.length;) {
      const end = findFittingEnd(names, at, maxDirectories)
      const some = visits.slice(at, end)
      const readings = yield* askFor(some, names.slice(at, end))
      for (const [index, visit] of some.entries()) out.push(readings[index] ?? (yield* listAlone(visit)))
      at = end
    }
    return out
  })

  return {
    // Requests are collected until the walk waits for them.
    availableReads: () => (done.length === 0 ? maxDirectories - asked.length : 0),
    read: (visits) => {
      asked.push(...visits)
    },
    take: () => {
      const taken = done
      done = []
      return taken
    },
    waitForReading: Effect.gen(function* () {
      const visits: Array<V> = []
      const names: Array<Uint8Array> = []
      const others: Array<V> = []
      for (const visit of asked) {
        const name = isLarge(visit) ? undefined : nameOf(pathOf(visit))
        if (name === undefined) others.push(visit)
        else {
          visits.push(visit)
          names.push(name)
        }
      }
      const readings = yield* listTogether(visits, names)
      for (const visit of others) readings.push(yield* listAlone(visit))
      asked = []
      done = readings
    }),
    keepOpen: () => {},
    release: () => {}
  }
}

export const explore =
  (means: BulkOptions): Explore =>
  <V extends Visit>(pathOf: (visit: V) => FsPath) =>
    Effect.sync(() => makeExplorer(means, pathOf))

/**
 * Creates an unpredictable prefix of `.` and `/`, which does not change the meaning of a path. So no file contains a
 * header line of `head` with this prefix.
 */
const makeMark = (): string => {
  let mark = "."
  for (const byte of randomBytes(6)) for (let bit = 0; bit < 8; bit++) mark += (byte >> bit) & 1 ? "/." : "/"
  return `${mark}/`
}

interface Contents {
  /**
   * The number of the first path that needs another request, as do all later paths. Paths count from 1, and the first path never
   * needs another request. `undefined` if the answer covers all paths.
   */
  readonly left: number | undefined
  readonly wholes: ReadonlyMap<number, Whole>
}

const contentsOf = (
  paths: ReadonlyArray<FsPath>,
  names: ReadonlyArray<Uint8Array>,
  mark: string,
  output: Buffer
): Contents | undefined => {
  const stats = new Map<number, FileStat>()
  let at = 0
  let left: number | undefined
  while (left === undefined) {
    const end = output.indexOf(10, at)
    if (end === -1) return undefined
    const line = output.toString("latin1", at, end)
    const space = line.indexOf(" ")
    const place = Number(space === -1 ? line : line.slice(0, space))
    if (space === -1) left = place
    else {
      const path = paths[place - 1]
      const stat = path && toStat(path, line.slice(space + 1))
      if (stat === undefined) return undefined
      stats.set(place, stat)
    }
    at = end + 1
  }
  const wholes = new Map<number, Whole>()
  const begins = `\n==> ${mark}`
  let next = output.indexOf(begins, at)
  for (const [place, stat] of stats) {
    const header = Buffer.from(`${begins}${latin1Of(names[place - 1]!)} <==\n`, "latin1")
    // If the file could not be opened, it has no header, and the next header belongs to a later file.
    if (next === -1 || !output.subarray(next, next + header.length).equals(header)) continue
    const start = next + header.length
    next = output.indexOf(begins, start)
    const bytes = new Uint8Array(output.subarray(start, next === -1 ? output.length : next))
    if (bytes.length === stat.sizeBytes) wholes.set(place, { stat, bytes })
  }
  return { left: left > 1 && left <= paths.length ? left : undefined, wholes }
}

/** Reads many files with few requests. Omits files that cannot be read, are too large, or changed between stat and read. */
const readMany =
  (place: ShellRoot): NonNullable<Handlers["ReadMany"]> =>
  ({ maxBytes, paths: all }) =>
    Effect.gen(function* () {
      const out: Array<Whole | undefined> = all.map(() => undefined)
      const places: Array<number> = []
      const names: Array<Uint8Array> = []
      for (const [place, path] of all.entries()) {
        const name = nameOf(path)
        if (name === undefined) continue
        places.push(place)
        names.push(name)
      }
      const most = Buffer.from(String(Math.min(maxBytes, maxContent)))
      for (let at = 0; at < names.length;) {
        const end = findFittingEnd(names, at, maxFiles)
        const mark = makeMark()
        const some = names.slice(at, end)
        const args = [most, Buffer.from(String(maxContent)), Buffer.from(mark), ...some]
        const { output } = yield* place.sendRequest(requestOf("bulk_files", args))
        const paths = places.slice(at, end).map((place) => all[place]!)
        const contents = contentsOf(paths, some, mark, output)
        for (const [place, whole] of contents?.wholes ?? []) out[places[at + place - 1]!] = whole
        at = contents?.left === undefined ? end : at + contents.left - 1
      }
      return Option.some(out)
    })

const isMissing = (errors: string): boolean => /^[^\n]*: No such file or directory\n*$/.test(errors)

const parseLook = (path: FsPath, { errors, output }: Reply): ReadonlyArray<Seen> | undefined => {
  const names = segments(path)
  const end = output.indexOf("\n\n")
  const [count, ...lines] = output.toString("latin1", 0, Math.max(end, 0)).split("\n")
  const isWhole = lines.length === Number(count)
  if (isWhole ? errors !== "" : lines.length !== Number(count) - 1 || !isMissing(errors)) return undefined
  const seen: Array<Seen> = []
  for (const [depth, line] of lines.entries()) {
    const stat = toStat(fromSegments(names.slice(0, depth)), line)
    if (stat === undefined) return undefined
    const isEnd = isWhole && depth === lines.length - 1
    // If an entry has changed during the request, the inspected components do not describe the path.
    if (!isEnd && stat.kind !== "directory") return undefined
    if (stat.kind !== "symlink") seen.push({ stat })
    else {
      const text = output.subarray(end + 2)
      if (text.length === 0 || !isUtf8(text)) return undefined
      seen.push({ stat, target: text.toString() })
    }
  }
  return seen.length === 0 ? undefined : seen
}

const look =
  (place: ShellRoot): NonNullable<Handlers["Look"]> =>
  ({ path }) => {
    const name = nameOf(path)
    return name === undefined
      ? Effect.succeedNone
      : Effect.map(place.sendRequest(requestOf("bulk_look", [name])), (reply) => Option.fromUndefinedOr(parseLook(path, reply)))
  }

export const handlers = (place: ShellRoot): Handlers => ({ ReadMany: readMany(place), Look: look(place) })
