/**
 * The records of transactions that are under way, and of those that wait for their turn: one file each, in the private directory of this
 * installation and outside every root. Recovery acts on these records alone; nothing that lies in a root tells it what to do.
 *
 * A file is named `<id>.<state>`. Its first line says which process made it and which roots it is about; what follows the first line is
 * the business of those who write it. A file is complete when it has its name, and a rename gives it another state.
 */
import * as Effect from "effect/Effect"
import { Fs, join, randomBytes } from "./node.ts"
import type { Fault } from "../model/FsError.ts"
import { makeDirectories } from "./directories.ts"
import * as Installation from "./installation.ts"
import { isInside } from "./openRoots.ts"
import * as Identity from "./processIdentity.ts"

/**
 * `turn`: waits for its turn, or has it. `preparing`: nothing in the tree has changed. `forward`: names are being exchanged. `back`: they
 * are being put back. `done`: only staged files are left to remove.
 */
export type State = "turn" | "preparing" | "forward" | "back" | "done"

/** A directory of the machine, known by what it is and not by what its path says. */
export interface Root {
  /** All links resolved. */
  readonly path: string
  readonly device: string
  readonly inode: string
}

export interface Header {
  readonly version: 1
  /** The identity of the process. */
  readonly owner: string
  readonly boot?: Identity.Boot
  /** The name of the staging directories; empty for a turn. */
  readonly token: string
  readonly roots: ReadonlyArray<Root>
}

export interface Entry {
  readonly id: string
  readonly state: State
  readonly header: Header
  readonly file: string
  /** Milliseconds since 1970, by the clock of the private directory. */
  readonly modified: number
}

/** The ids of this process that are at work, and those that it could not finish. */
export const inUse = new Set<string>()
export const abandoned = new Set<string>()

const named = /^([0-9a-f]{18})\.(turn|preparing|forward|back|done)$/
const drafted = /^[0-9a-f]{18}\.draft$/

export const makeId = (): string => randomBytes(9).toString("hex")

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined)

/** The directory of the records; `undefined` where this user can have no private directory. It need not be there. */
export const directory = (): string | undefined => {
  const top = Installation.directory()
  return top === undefined ? undefined : join(top, "transactions")
}

export const fileOf = (directory: string, id: string, state: State): string => join(directory, `${id}.${state}`)

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = Fs.constants

/** A record that names more roots than fit into this is none of ours. */
const longestHeader = 256 * 1024

/** A record is read whole when it is finished. */
export const largest = 256 * 1024 * 1024

const isOwn = (stats: Fs.Stats): boolean => process.geteuid === undefined || stats.uid === process.geteuid()

const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 8192

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

const isRoot = (value: unknown): value is Root =>
  isRecord(value) && isText(value["path"]) && isText(value["device"]) && isText(value["inode"])

const isBoot = (value: unknown): value is Identity.Boot => isRecord(value) && isText(value["machine"]) && isText(value["boot"])

const isHeader = (value: unknown): value is Header =>
  isRecord(value) &&
  value["version"] === 1 &&
  isText(value["owner"]) &&
  Identity.isIdentity(value["owner"]) &&
  isText(value["token"]) &&
  (value["boot"] === undefined || isBoot(value["boot"])) &&
  Array.isArray(value["roots"]) &&
  value["roots"].length > 0 &&
  value["roots"].every(isRoot)

const parseHeader = (line: string): Header | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isHeader(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Errors that say nothing about a file: the next attempt may succeed. */
const passing: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"])

/** Runs `use` with the opened record; `undefined` where it is no regular file of this user. Throws a passing error of the system. */
const opened = <A>(file: string, use: (descriptor: number, stats: Fs.Stats) => A): A | "gone" | undefined => {
  let descriptor: number | undefined
  try {
    descriptor = Fs.openSync(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0))
    const stats = Fs.fstatSync(descriptor)
    return stats.isFile() && isOwn(stats) && stats.size <= largest ? use(descriptor, stats) : undefined
  } catch (error) {
    const code = codeOf(error)
    if (passing.has(code)) throw error
    return code === "ENOENT" ? "gone" : undefined
  } finally {
    if (descriptor !== undefined) Fs.closeSync(descriptor)
  }
}

/** Runs a step that reads records. Fails with Unavailable where the system fails with a passing error. */
const reading = <A>(read: () => A): Effect.Effect<A, Fault> =>
  Effect.try({
    try: read,
    catch: (cause) => ({
      _tag: "Unavailable",
      detail: `the records of unfinished changes cannot be read (${String(codeOf(cause) ?? cause)}); close open files, or try again`,
      cause
    })
  })

const readEntry = (file: string, id: string, state: State): Entry | "gone" | undefined =>
  opened(file, (descriptor, stats): Entry | undefined => {
    const bytes = Buffer.alloc(Math.min(longestHeader, stats.size))
    const length = Fs.readSync(descriptor, bytes, 0, bytes.length, 0)
    const end = bytes.subarray(0, length).indexOf(10)
    const header = end === -1 ? undefined : parseHeader(bytes.toString("utf8", 0, end))
    return header === undefined ? undefined : { id, state, header: asItIs(header), file, modified: stats.mtimeMs }
  })

/** Returns what follows the header of a record; `undefined` where it cannot be read any more. */
export const bodyOf = ({ file }: Entry): Effect.Effect<string | undefined, Fault> =>
  reading(() => {
    const text = opened(file, (descriptor) => Fs.readFileSync(descriptor, "utf8"))
    return text === undefined || text === "gone" ? undefined : text.slice(text.indexOf("\n") + 1)
  })

export interface Listing {
  readonly entries: ReadonlyArray<Entry>
  /** Files that have the name of a record and are none. They have been put aside, under another name. */
  readonly broken: ReadonlyArray<string>
}

const none: Listing = { entries: [], broken: [] }

/** Keeps a record that cannot be used under a name that is not read again, and returns that name. */
export const putAside = (file: string): string => {
  const kept = `${file}.broken`
  try {
    Fs.renameSync(file, kept)
  } catch {
    // Another process was first, or the disk permits nothing; then it is met again.
  }
  return kept
}

/** Milliseconds after which a draft belongs to a process that was killed while it wrote it. */
const draftStaleAfter = 60 * 60 * 1000

const sweepDraft = (file: string, now: number): void => {
  try {
    if (now - Fs.lstatSync(file).mtimeMs > draftStaleAfter) Fs.unlinkSync(file)
  } catch {
    // The next one tries again.
  }
}

/** How often the records are listed while others come, go and change their states. */
const maxLists = 8

/** A record that is gone may have another state by now, and another name, so that all are listed again. */
const readAll = (now: number | undefined, left = maxLists): Listing => {
  const top = directory()
  if (top === undefined) return none
  let names: ReadonlyArray<string>
  try {
    names = Fs.readdirSync(top)
  } catch (error) {
    if (passing.has(codeOf(error))) throw error
    return none
  }
  const entries: Array<Entry> = []
  const broken: Array<string> = []
  let isWhole = true
  for (const name of names) {
    const found = named.exec(name)
    if (found === null) {
      if (now !== undefined && drafted.test(name)) sweepDraft(join(top, name), now)
      continue
    }
    const file = join(top, name)
    const entry = readEntry(file, found[1]!, found[2] as State)
    if (entry === undefined) broken.push(putAside(file))
    else if (entry === "gone") isWhole = false
    else entries.push(entry)
  }
  return isWhole || left === 0 ? { entries, broken } : readAll(now, left - 1)
}

/**
 * Returns all records. Where there are none this is one call of the system, which finds no directory or an empty one. `now`: remove drafts
 * that are older than an hour.
 */
export const list = (now?: number): Effect.Effect<Listing, Fault> => reading(() => readAll(now))

/** Whether two roots have files in common. */
export const isRelated = (one: Root, other: Root): boolean =>
  isSame(one, other) || (one.path !== other.path && (isInside(one.path, other.path) || isInside(other.path, one.path)))

export const isSame = (one: Root, other: Root): boolean => one.device === other.device && one.inode === other.inode

const token = /^\.~fsa-[0-9a-z-]+\.tmp$/

/** Returns whether a record may call its staging directories by this name. */
export const isToken = (name: string): boolean => token.test(name)

const isDirectory = (path: string): boolean => {
  try {
    return Fs.lstatSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * Returns the root of a record as it is known now. A disk may get another number when the machine starts anew or the disk is mounted
 * again; the directory is still the same one where path and inode are, and what the transaction has staged lies in it.
 */
const renumbered = (root: Root, name: string): Root => {
  const there = rootAt(root.path)
  const isOther = there === undefined || there.device === root.device || there.inode !== root.inode
  return !isOther && isDirectory(join(root.path, name)) ? there : root
}

const asItIs = (header: Header): Header =>
  isToken(header.token) ? { ...header, roots: header.roots.map((root) => renumbered(root, header.token)) } : header

/** Returns the directory that a path leads to; `undefined` where there is none. */
export const rootAt = (path: string): Root | undefined => {
  try {
    const stats = Fs.statSync(path, { bigint: true })
    return stats.isDirectory() ? { path, device: String(stats.dev), inode: String(stats.ino) } : undefined
  } catch {
    return undefined
  }
}

/** Whether the process that made a record works on it. `undefined` where that cannot be told. */
export const isAlive = ({ header, id }: Entry): boolean | undefined => {
  if (inUse.has(id)) return true
  if (abandoned.has(id)) return false
  const isDead = Identity.isDead(header.owner)
  if (isDead !== undefined) return !isDead
  const here = Identity.boot()
  const there = header.boot
  return here !== undefined && there !== undefined && here.machine === there.machine && here.boot !== there.boot
    ? false
    : undefined
}

const syncDirectory = (path: string): void => {
  if (process.platform === "win32") return
  const descriptor = Fs.openSync(path, O_RDONLY)
  try {
    Fs.fsyncSync(descriptor)
  } finally {
    Fs.closeSync(descriptor)
  }
}

/** Makes the directory of the records; `undefined` where it cannot be made. Fails as the system does. */
const makeDirectory = (): string | undefined => {
  const top = directory()
  if (top === undefined) return undefined
  try {
    makeDirectories(top, 0o700)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  }
  const stats = Fs.lstatSync(top)
  return stats.isDirectory() && isOwn(stats) ? top : undefined
}

/** A record that is being written. */
export interface Draft {
  readonly write: (text: string) => void
  /** Gives the record its name; then it is complete. */
  readonly publish: (state: State) => void
  readonly discard: () => void
}

/** Begins a record; `undefined` where this user can have no private directory. Throws what the system fails with. */
export const draft = (id: string, header: Header, isDurable: boolean): Draft | undefined => {
  const top = makeDirectory()
  if (top === undefined) return undefined
  const path = join(top, `${id}.draft`)
  const descriptor = Fs.openSync(path, O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), 0o600)
  let isOpen = true
  const close = (): void => {
    if (isOpen) Fs.closeSync(descriptor)
    isOpen = false
  }
  const write = (text: string): void => {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length;) at += Fs.writeSync(descriptor, bytes, at)
  }
  const discard = (): void => {
    close()
    Fs.rmSync(path, { force: true })
  }
  try {
    write(`${JSON.stringify(header)}\n`)
  } catch (error) {
    discard()
    throw error
  }
  return {
    write,
    discard,
    publish: (state) => {
      try {
        if (isDurable) Fs.fsyncSync(descriptor)
        close()
        Fs.renameSync(path, fileOf(top, id, state))
        if (isDurable) syncDirectory(top)
      } catch (error) {
        discard()
        throw error
      }
    }
  }
}

/** Returns the header of a record of this process. */
export const ownHeader = (token: string, roots: ReadonlyArray<Root>): Header => {
  const boot = Identity.boot()
  return { version: 1, owner: Identity.self(), ...(boot && { boot }), token, roots }
}

/** Gives a record another state. */
export const advance = (id: string, from: State, to: State): void => {
  const top = directory()
  if (top !== undefined) Fs.renameSync(fileOf(top, id, from), fileOf(top, id, to))
}

/** Removes a record, if it is still there. */
export const drop = (id: string, state: State): void => {
  const top = directory()
  if (top !== undefined) Fs.rmSync(fileOf(top, id, state), { force: true })
}

/** Removes the file of a record, if it is still there. */
export const dropFile = (file: string): void => Fs.rmSync(file, { force: true })
