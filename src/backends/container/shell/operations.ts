/** The operations on the files of a container: reading, writing, listing and bulk creation. */
import { fileClosed, rootWriteFault } from "../../faults.ts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../../model/Entry.ts"
import { notAFile, notFound } from "../../../model/Fault.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, join, parent, root } from "../../../model/FsPath.ts"
import { isBytes } from "../../../model/realms.ts"
import { type Backend, type Child, type Commit, type Handle, keyOf, type NewEntry, type Whole } from "../../../port/Backend.ts"
import type { Handlers } from "../../../port/Request.ts"
import { changed as changedExplorer } from "../../../port/explorer.ts"
import { isUtf8 } from "../../../runtime/node.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { childOf, fromBytes } from "../../posix/place.ts"
import { type Content, type Mode, runCommit } from "../../writing.ts"
import type { Reply } from "./session.ts"
import { errorMessages, faultOf, isFault, kindOf, nameOf, type ShellRoot, succeedOrUnexpected, toStat } from "./shellRoot.ts"

// Reads files in the container.
//
// The content of a small file arrives together with its stat and is kept in memory. A process inside the container
// keeps a large file open. So all pieces come from the same file, even if another program renames or replaces it.

const maxAnswerBytes = 1024 * 1024

/** The size of one piece of a large file, in bytes. Small pieces keep other requests from waiting long. */
const pieceBytes = 4 * 1024 * 1024

export const requestRead = (
  place: ShellRoot,
  call: string,
  path: FsPath,
  ...args: ReadonlyArray<string>
): Effect.Effect<Reply, Fault> => {
  const name = nameOf(path)
  if (isFault(name)) return Effect.fail(name)
  return Effect.flatMap(place.sendRequest({ call, arguments: [name, ...args], repeats: true }), (reply) =>
    reply.status === 0 ? Effect.succeed(reply) : Effect.fail(faultOf(reply))
  )
}

export const stat = (place: ShellRoot, path: FsPath): Effect.Effect<FileStat | undefined, Fault> =>
  Effect.matchEffect(requestRead(place, "look", path), {
    onFailure: (fault) => (fault._tag === "NotFound" ? Effect.succeed(undefined) : Effect.fail(fault)),
    onSuccess: ({ output }) => succeedOrUnexpected(toStat(path, output.toString("latin1")))
  })

interface Loaded {
  readonly stat: FileStat
  readonly bytes: Uint8Array | undefined
}

const loadedOf = (path: FsPath, output: Buffer, most: number): Loaded | undefined => {
  const end = output.indexOf("\n")
  const stat = toStat(path, output.toString("latin1", 0, Math.max(0, end)))
  if (stat === undefined) return undefined
  if (stat.sizeBytes > most) return { stat, bytes: undefined }
  const bytes = output.subarray(end + 1, end + 1 + stat.sizeBytes)
  return { stat: bytes.length === stat.sizeBytes ? stat : { ...stat, sizeBytes: bytes.length }, bytes }
}

const load = (place: ShellRoot, path: FsPath, most: number): Effect.Effect<Loaded, Fault> =>
  path === root
    ? Effect.fail(notAFile)
    : Effect.flatMap(requestRead(place, "load", path, String(most)), ({ output }) =>
        succeedOrUnexpected(loadedOf(path, output, most))
      )

export const whole = (place: ShellRoot, path: FsPath, maxBytes: number): Effect.Effect<Whole | undefined, Fault> =>
  Effect.map(load(place, path, Math.min(maxBytes, maxAnswerBytes)), ({ bytes, stat }) => bytes && { stat, bytes })

const readPiece = (
  place: ShellRoot,
  holder: string,
  born: string,
  offset: number,
  count: number
): Effect.Effect<Uint8Array, Fault> =>
  Effect.flatMap(
    place.sendRequest({
      call: "piece",
      arguments: [holder, born, String(offset), String(count)],
      expectedBytes: count,
      repeats: true
    }),
    (reply) =>
      reply.status === 0 && reply.output.length <= count
        ? Effect.succeed(new Uint8Array(reply.output.buffer, reply.output.byteOffset, reply.output.length))
        : Effect.fail(reply.status === 0 ? notFound : faultOf(reply))
  )

const noBytes = new Uint8Array(0)

interface Piece {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** A piece that is fetched while the caller still uses the previous piece. */
interface PieceAhead {
  readonly offset: number
  readonly fiber: Fiber.Fiber<Uint8Array, Fault>
}

/**
 * Opens a file, which a process in the container then keeps open.
 *
 * A request takes milliseconds. So a read that begins at the end of the last read fetches a large piece, and the next
 * piece in advance.
 */
const openHeld = Effect.fnUntraced(function* (place: ShellRoot, path: FsPath): Effect.fn.Return<Handle, Fault, Scope.Scope> {
  let isClosed = false
  /** The offset at which the last read ended, in bytes, or -1. */
  let next = -1
  let last: Piece = { offset: 0, bytes: noBytes }
  let ahead: PieceAhead | undefined
  const { born, holder, stat } = yield* Effect.acquireRelease(
    Effect.flatMap(requestRead(place, "pin", path), ({ output }) => {
      const [, holder = "", born = "", statText = ""] = /^(\d+) (\d+) ([^]*)$/.exec(output.toString("latin1")) ?? []
      const stat = toStat(path, statText)
      return succeedOrUnexpected(stat && { holder, born, stat })
    }),
    ({ holder }) =>
      Effect.ignore(
        Effect.suspend(() => {
          isClosed = true
          return place.sendRequest({ call: "unpin", arguments: [holder], repeats: true })
        })
      )
  )
  const scope = yield* Effect.scope

  const fetch = (offset: number, count: number) => readPiece(place, holder, born, offset, count)
  const pieceLength = (offset: number): number => Math.min(pieceBytes, stat.sizeBytes - offset)

  const fetchAhead = Effect.fnUntraced(function* (offset: number): Effect.fn.Return<void> {
    ahead = undefined
    if (offset >= stat.sizeBytes) return
    ahead = { offset, fiber: yield* Effect.forkIn(fetch(offset, pieceLength(offset)), scope) }
  })

  const read = Effect.fnUntraced(function* (offset: number, length: number): Effect.fn.Return<Uint8Array, Fault> {
    if (isClosed) return yield* Effect.fail(fileClosed)
    // Bytes appended since the file was opened are not part of the handle's content.
    const count = Math.min(length, maxAnswerBytes, stat.sizeBytes - offset)
    if (!(count > 0)) return new Uint8Array(0)
    const isSequential = offset === next
    next = offset + count
    const at = offset - last.offset
    if (at >= 0 && at < last.bytes.length) {
      const bytes = last.bytes.slice(at, at + count)
      next = offset + bytes.length
      return bytes
    }
    if (!isSequential) return (yield* fetch(offset, count)).slice()
    const bytes = yield* ahead?.offset === offset ? Fiber.join(ahead.fiber) : fetch(offset, pieceLength(offset))
    last = { offset, bytes }
    yield* fetchAhead(offset + bytes.length)
    return bytes.slice(0, count)
  })
  return { stat, read }
})

const handleOf = (stat: FileStat, bytes: Uint8Array): Effect.Effect<Handle, never, Scope.Scope> => {
  let isClosed = false
  const handle: Handle = {
    stat,
    read: (offset, length) =>
      Effect.suspend(() =>
        isClosed ? Effect.fail(fileClosed) : Effect.succeed(new Uint8Array(bytes.subarray(offset, offset + length)))
      )
  }
  return Effect.acquireRelease(Effect.succeed(handle), () => Effect.sync(() => (isClosed = true)))
}

export const open = (place: ShellRoot, path: FsPath): Effect.Effect<Handle, Fault, Scope.Scope> =>
  Effect.flatMap(load(place, path, maxAnswerBytes), ({ bytes, stat }) =>
    bytes === undefined ? openHeld(place, path) : handleOf(stat, bytes)
  )

// Publishes files atomically in the container.
//
// Content is written to a file with a hidden name in the directory of the target. Then one step gives the file its final
// name. A small file takes one request. A large file or a stream is first sent in blocks.

const withTemporary = <A, E, R>(path: FsPath, use: (temporary: FsPath) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  TemporaryNames.withName((name) => use(join(parent(path), name)))

export const changed = (
  place: ShellRoot,
  call: string,
  paths: ReadonlyArray<FsPath>,
  args: ReadonlyArray<string> = [],
  input?: Uint8Array
): Effect.Effect<Reply, Fault> =>
  Effect.suspend(() => {
    const names: Array<Uint8Array> = []
    for (const path of paths) {
      const name = nameOf(path)
      if (isFault(name)) return Effect.fail(name)
      names.push(name)
    }
    return Effect.flatMap(place.sendRequest({ call, arguments: [...names, ...args], input, repeats: false }), (reply) =>
      reply.status === 0 ? Effect.succeed(reply) : Effect.fail(faultOf(reply))
    )
  })

const statOf = (path: FsPath, { output }: Reply): Effect.Effect<FileStat, Fault> =>
  succeedOrUnexpected(toStat(path, output.toString("latin1")))

const putSmall = (place: ShellRoot, path: FsPath, bytes: Uint8Array, mode: Mode): Effect.Effect<FileStat, Fault> =>
  Effect.flatMap(
    mode === "append"
      ? changed(place, "append", [path], [], bytes)
      : withTemporary(path, (temporary) => changed(place, "put", [path, temporary], [mode, String(bytes.length)], bytes)),
    (reply) => statOf(path, reply)
  )

interface Pending {
  readonly chunks: Array<Uint8Array>
  size: number
}

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))

/** Divides a stream into blocks of `pieceBytes` bytes. The last block may be smaller. */
const inBlocks = <E, R>(content: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E, R> =>
  Stream.mapAccum(
    content,
    (): Pending => ({ chunks: [], size: 0 }),
    (pending, bytes) => {
      const blocks: Array<Uint8Array> = []
      for (let at = 0; at < bytes.length;) {
        const piece = bytes.subarray(at, at + pieceBytes - pending.size)
        at += piece.length
        pending.chunks.push(piece)
        pending.size += piece.length
        if (pending.size < pieceBytes) continue
        blocks.push(joined(pending.chunks.splice(0)))
        pending.size = 0
      }
      return [pending, blocks]
    },
    { onHalt: ({ chunks, size }) => (size === 0 ? [] : [joined(chunks)]) }
  )

/** Sends content in blocks, and produces a block while the previous block is sent. Returns the number of bytes. */
const sendBlocks = <E, R>(place: ShellRoot, temporary: FsPath, content: Content<E, R>): Effect.Effect<number, Fault | E, R> =>
  Effect.suspend(() => {
    let sent = 0
    const blocks = Stream.buffer(inBlocks(isBytes(content) ? Stream.succeed(content) : content), { capacity: 1 })
    const send = (bytes: Uint8Array) =>
      Effect.map(changed(place, "more", [temporary], [], bytes), () => {
        sent += bytes.length
      })
    return Effect.map(Stream.runForEach(blocks, send), () => sent)
  })

const putLarge = <E, R>(
  place: ShellRoot,
  path: FsPath,
  content: Content<E, R>,
  mode: Mode,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  withTemporary(path, (temporary) => {
    let isPublished = false
    return Effect.acquireUseRelease(
      // Fail before the stream is read if the publication would fail anyway.
      changed(place, "stage", [path, temporary], [mode]),
      () =>
        Effect.flatMap(sendBlocks(place, temporary, content), (size) =>
          runCommit(
            commit,
            Effect.flatMap(changed(place, "publish", [path, temporary], [mode, String(size)]), (reply) => {
              isPublished = true
              return statOf(path, reply)
            })
          )
        ),
      () => (isPublished ? Effect.void : Effect.ignore(changed(place, "discard", [temporary])))
    )
  })

export const write =
  (place: ShellRoot): Backend["write"] =>
  (path, content, mode, how) =>
    path === root
      ? Effect.fail(rootWriteFault(mode))
      : isBytes(content) && content.length <= maxAnswerBytes
        ? runCommit(how?.commit, putSmall(place, path, content, mode))
        : putLarge(place, path, content, mode, how?.commit)

/**
 * The form of a listed entry. The name must be a single path component, because callers append it to paths on other
 * disks and the tools may print anything.
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
    const removed = yield* Effect.exit(changed(place, "discard", [join(path, child.name)]))
    if (Exit.isSuccess(removed)) gone.add(child)
  }
  return children.filter((child) => !gone.has(child))
})

const isGone = (complaint: string): boolean => complaint.endsWith("No such file or directory")

const maxLooks = 3

/**
 * Lists the names for which `stat` always fails, although the disk lists them. Fails with Unavailable if the number of
 * these names is not `missed`.
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
  return others.length === missed ? others : yield* Effect.fail(changedExplorer)
})

/**
 * Lists a directory. Repeats the listing, a limited number of times, if `stat` does not find a listed entry.
 *
 * An entry that is missing in only one attempt was removed during this attempt. An entry that is missing in every
 * attempt is listed without a stat. Fails with Unavailable if an entry is missing in several attempts, but not in all.
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
      if (again.some((complaint) => missed.get(complaint) !== maxLooks)) return yield* Effect.fail(changedExplorer)
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

// Creates many new entries in one request. The shell itself writes the files, so no file costs a process.
//
// Unusual entries are declined: the engine then creates them with the plain operations, which report any failure.

/**
 * The limits of one request: the number of entries, and the length of their paths in bytes. The system limits a
 * program's arguments.
 */
const maxEntries = 1024
const maxNames = 96 * 1024
const maxInput = 1024 * 1024
const maxFile = 64 * 1024

const [fileMode, directoryMode] = [0o644, 0o755]

const special: Readonly<Record<string, string>> = { "\n": "\\n", "%": "%%", "\\": "\\\\" }

/** The text for each byte in a format of `printf`. All shells interpret these texts in the same way. */
const printfTexts: ReadonlyArray<string> = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  return special[character] ?? (/[ -&(-~]/.test(character) ? character : `\\${byte.toString(8).padStart(3, "0")}`)
})

/**
 * Returns the format with which `printf` prints the bytes. Escapes a leading hyphen, because it would begin an option.
 */
const formatOf = (bytes: Uint8Array): string => {
  let format = bytes[0] === 0x2d ? "\\055" : ""
  for (let at = format === "" ? 0 : 1; at < bytes.length; at++) format += printfTexts[bytes[at]!]!
  return format
}

/** Quotes an argument for the shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

interface EntryRequest {
  readonly index: number
  readonly mode: number
  readonly isFile: boolean
  readonly nameLength: number
  readonly text: string
}

const entryRequestOf = ({ bytes, mode, path }: NewEntry, index: number): EntryRequest | undefined => {
  const name = nameOf(path)
  if (isFault(name) || (bytes !== undefined && bytes.length > maxFile)) return undefined
  const isFile = bytes !== undefined
  const bits = (mode ?? (isFile ? fileMode : directoryMode)) & 0o777
  const shown = quoted(Buffer.from(name).toString("latin1"))
  const text = isFile ? `${shown} ${bytes.length} ${quoted(formatOf(bytes))}` : `${shown} d ${bits.toString(8)}`
  return { index, mode: bits, isFile, nameLength: name.length, text }
}

const findFittingEnd = (all: ReadonlyArray<EntryRequest>, start: number): number => {
  let [names, input] = [0, 0]
  let end = start
  let mode: number | undefined
  for (; end < all.length && end - start < maxEntries; end++) {
    const next = all[end]!
    names += next.nameLength
    input += next.text.length + 1
    if (end > start && (names > maxNames || input > maxInput)) break
    if (!next.isFile) continue
    if (mode !== undefined && mode !== next.mode) break
    mode = next.mode
  }
  return end
}

/**
 * The position of the first path among the request's arguments, and the distance to the next path. The reply names a
 * removed entry by the position of its path.
 */
const [firstArgument, argumentsPerEntry] = [4, 3]

const parseCreated = (count: number, { output }: Reply): ReadonlyArray<boolean> | undefined => {
  const [, digits = "", removed = ""] = /^([01]*)\n((?:[0-9]+ )*)\n$/.exec(output.toString("latin1")) ?? []
  if (digits.length !== count) return undefined
  const gone = new Set(removed.split(" ").map(Number))
  return Array.from(digits, (digit, at) => digit === "1" && !gone.has(firstArgument + argumentsPerEntry * at))
}

const sendRequest = (place: ShellRoot, some: ReadonlyArray<EntryRequest>): Effect.Effect<ReadonlyArray<boolean>, Fault> => {
  const mode = some.find(({ isFile }) => isFile)?.mode ?? fileMode
  // A redirection never creates an executable file, so an executable mode needs a `chmod`.
  const chmods = (mode & 0o111) !== 0 ? "1" : "''"
  const head = `${mode.toString(8)} ${(~mode & 0o777).toString(8)} ${chmods}`
  const input = Buffer.from([head, ...some.map(({ text }) => text)].join(" "), "latin1")
  return Effect.flatMap(place.sendRequest({ call: "bulk_taken", arguments: ["bulk_make"], input, repeats: false }), (reply) =>
    reply.status === 0 ? succeedOrUnexpected(parseCreated(some.length, reply)) : Effect.fail(faultOf(reply))
  )
}

export const makeMany =
  (place: ShellRoot): NonNullable<Handlers["MakeMany"]> =>
  ({ entries }) =>
    Effect.gen(function* () {
      const out: Array<boolean> = entries.map(() => false)
      const entryRequests = entries.flatMap((entry, index) => entryRequestOf(entry, index) ?? [])
      const files = entryRequests.filter(({ isFile }) => isFile).sort((one, other) => one.mode - other.mode)
      const all = [...entryRequests.filter(({ isFile }) => !isFile), ...files]
      for (let at = 0; at < all.length;) {
        const end = findFittingEnd(all, at)
        const some = all.slice(at, end)
        const made = yield* sendRequest(place, some)
        for (const [place, { index }] of some.entries()) out[index] = made[place]!
        at = end
      }
      return Option.some(out)
    })
