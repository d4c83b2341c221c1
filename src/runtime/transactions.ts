/**
 * The records of transactions: one file each, in the private directory of this installation and outside every root.
 *
 * Transactions that run or wait for the lock have records. Recovery trusts only these records and nothing inside a
 * root.
 *
 * A record is a file named `<id>.<state>`. Its first line gives the process and the roots; the writer of the record
 * defines the other lines. A file gets such a name only when it is complete. Renaming the file changes the state.
 */
import * as Effect from "effect/Effect"
import { Fs, join, randomBytes } from "./node.ts"
import type { Fault } from "../model/FsError.ts"
import { openDraft } from "./atomicFile.ts"
import { makeDirectories } from "./directories.ts"
import * as Installation from "./installation.ts"
import { isInside } from "./openRoots.ts"
import { throwIfTransient } from "./privateDirectory.ts"
import * as Identity from "./processIdentity.ts"
import { codeOf } from "../model/realms.ts"

/**
 * The state of a transaction.
 *
 * - `turn`: waits for the lock or holds it
 * - `preparing`: nothing in the tree has changed
 * - `forward`: entries are being renamed into place
 * - `back`: entries are being renamed back
 * - `done`: only staged files remain to be removed
 */
export type State = "turn" | "preparing" | "forward" | "back" | "done"

export interface Root {
  readonly path: string
  readonly device: string
  readonly inode: string
}

export interface Header {
  readonly version: 1
  readonly owner: string
  readonly boot?: Identity.Boot
  /** The name that all staging directories have; empty in the state `turn`. */
  readonly token: string
  readonly roots: ReadonlyArray<Root>
}

export interface Entry {
  readonly id: string
  readonly state: State
  readonly header: Header
  readonly file: string
  readonly modified: number
}

/** The ids of this process's running transactions. */
export const runningIds = new Set<string>()
/** The ids of the transactions that this process could not finish. */
export const unfinishedIds = new Set<string>()

const recordPattern = /^([0-9a-f]{18})\.(turn|preparing|forward|back|done)$/
const draftPattern = /^[0-9a-f]{18}\.draft$/

export const makeId = (): string => randomBytes(9).toString("hex")

export const directory = (): string | undefined => {
  const top = Installation.directory()
  return top === undefined ? undefined : join(top, "transactions")
}

export const fileOf = (directory: string, id: string, state: State): string => join(directory, `${id}.${state}`)

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants

const maxHeaderBytes = 256 * 1024

/** The maximum size of a record in bytes, because recovery reads a whole record into memory. */
export const maxRecordBytes = 256 * 1024 * 1024

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

/**
 * Runs `use` with the opened record. Returns "gone" if the file is missing. Returns `undefined` if the file is no
 * regular file of this user, is too large or cannot be read. Throws temporary errors.
 */
const withRecord = <A>(file: string, use: (descriptor: number, stats: Fs.Stats) => A): A | "gone" | undefined => {
  let descriptor: number | undefined
  try {
    descriptor = Fs.openSync(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0))
    const stats = Fs.fstatSync(descriptor)
    return stats.isFile() && isOwn(stats) && stats.size <= maxRecordBytes ? use(descriptor, stats) : undefined
  } catch (error) {
    throwIfTransient(error)
    return codeOf(error) === "ENOENT" ? "gone" : undefined
  } finally {
    if (descriptor !== undefined) Fs.closeSync(descriptor)
  }
}

const readRecords = <A>(read: () => A): Effect.Effect<A, Fault> =>
  Effect.try({
    try: read,
    catch: (cause) => ({
      _tag: "Unavailable",
      detail: `the records of unfinished changes cannot be read (${String(codeOf(cause) ?? cause)}); close open files, or try again`,
      cause
    })
  })

const readEntry = (file: string, id: string, state: State): Entry | "gone" | undefined =>
  withRecord(file, (descriptor, stats): Entry | undefined => {
    const bytes = Buffer.alloc(Math.min(maxHeaderBytes, stats.size))
    const length = Fs.readSync(descriptor, bytes, 0, bytes.length, 0)
    const end = bytes.subarray(0, length).indexOf(10)
    const header = end === -1 ? undefined : parseHeader(bytes.toString("utf8", 0, end))
    return header === undefined ? undefined : { id, state, header: withCurrentRoots(header), file, modified: stats.mtimeMs }
  })

export const bodyOf = ({ file }: Entry): Effect.Effect<string | undefined, Fault> =>
  readRecords(() => {
    const text = withRecord(file, (descriptor) => Fs.readFileSync(descriptor, "utf8"))
    return text === undefined || text === "gone" ? undefined : text.slice(text.indexOf("\n") + 1)
  })

export interface Listing {
  readonly entries: ReadonlyArray<Entry>
  /** The new paths of files with the name of a record but invalid content. `markBroken` has renamed these files. */
  readonly broken: ReadonlyArray<string>
}

const emptyListing: Listing = { entries: [], broken: [] }

export const markBroken = (file: string): string => {
  const kept = `${file}.broken`
  try {
    Fs.renameSync(file, kept)
  } catch {
    // Another process renamed the file first, or the disk is read-only. On a read-only disk, the next call finds the
    // file again.
  }
  return kept
}

/** The age in milliseconds after which a draft counts as the leftover of a killed process. */
const draftStaleAfter = 60 * 60 * 1000

const sweepDraft = (file: string, now: number): void => {
  try {
    if (now - Fs.lstatSync(file).mtimeMs > draftStaleAfter) Fs.unlinkSync(file)
  } catch {
    // Ignore the error, because the next call tries again.
  }
}

const maxLists = 8

const readAll = (now: number | undefined, left = maxLists): Listing => {
  const top = directory()
  if (top === undefined) return emptyListing
  let names: ReadonlyArray<string>
  try {
    names = Fs.readdirSync(top)
  } catch (error) {
    throwIfTransient(error)
    return emptyListing
  }
  const entries: Array<Entry> = []
  const broken: Array<string> = []
  let isWhole = true
  for (const name of names) {
    const found = recordPattern.exec(name)
    if (found === null) {
      if (now !== undefined && draftPattern.test(name)) sweepDraft(join(top, name), now)
      continue
    }
    const file = join(top, name)
    const entry = readEntry(file, found[1]!, found[2] as State)
    if (entry === undefined) broken.push(markBroken(file))
    else if (entry === "gone") isWhole = false
    else entries.push(entry)
  }
  return isWhole || left === 0 ? { entries, broken } : readAll(now, left - 1)
}

/**
 * Returns all records. Makes only one system call if there are none. With `now` (milliseconds since the epoch), removes
 * drafts that are older than an hour.
 */
export const list = (now?: number): Effect.Effect<Listing, Fault> => readRecords(() => readAll(now))

export const isRelated = (one: Root, other: Root): boolean =>
  isSame(one, other) || (one.path !== other.path && (isInside(one.path, other.path) || isInside(other.path, one.path)))

export const isSame = (one: Root, other: Root): boolean => one.device === other.device && one.inode === other.inode

const token = /^\.~fsa-[0-9a-z-]+\.tmp$/

export const isToken = (name: string): boolean => token.test(name)

const isDirectory = (path: string): boolean => {
  try {
    return Fs.lstatSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * Returns the current identity of a recorded root.
 *
 * A disk may get another device number after a reboot or a remount. A directory is the same root if its path and its
 * inode are the same and the directory contains the staging directory of the transaction.
 */
const currentRoot = (root: Root, name: string): Root => {
  const there = rootAt(root.path)
  const isOther = there === undefined || there.device === root.device || there.inode !== root.inode
  return !isOther && isDirectory(join(root.path, name)) ? there : root
}

const withCurrentRoots = (header: Header): Header =>
  isToken(header.token) ? { ...header, roots: header.roots.map((root) => currentRoot(root, header.token)) } : header

export const rootAt = (path: string): Root | undefined => {
  try {
    const stats = Fs.statSync(path, { bigint: true })
    return stats.isDirectory() ? { path, device: String(stats.dev), inode: String(stats.ino) } : undefined
  } catch {
    return undefined
  }
}

/**
 * Tests whether the process of a record still works on the transaction. Returns `undefined` if the state of the process
 * is unknown.
 */
export const isAlive = ({ header, id }: Entry): boolean | undefined => {
  if (runningIds.has(id)) return true
  if (unfinishedIds.has(id)) return false
  const isDead = Identity.isDead(header.owner)
  if (isDead !== undefined) return !isDead
  const here = Identity.boot()
  const there = header.boot
  return here !== undefined && there !== undefined && here.machine === there.machine && here.boot !== there.boot
    ? false
    : undefined
}

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

export interface Draft {
  readonly write: (text: string) => void
  /** Gives the record its final name, which makes it complete. */
  readonly publish: (state: State) => void
  readonly discard: () => void
}

export const draft = (id: string, header: Header, isDurable: boolean): Draft | undefined => {
  const top = makeDirectory()
  if (top === undefined) return undefined
  const file = openDraft(join(top, `${id}.draft`))
  const orDiscard = (run: () => void): void => {
    try {
      run()
    } catch (error) {
      file.discard()
      throw error
    }
  }
  orDiscard(() => file.write(`${JSON.stringify(header)}\n`))
  return {
    write: file.write,
    discard: file.discard,
    publish: (state) => orDiscard(() => void file.publish(fileOf(top, id, state), { durability: isDurable ? "full" : "none" }))
  }
}

export const ownHeader = (token: string, roots: ReadonlyArray<Root>): Header => {
  const boot = Identity.boot()
  return { version: 1, owner: Identity.self(), ...(boot && { boot }), token, roots }
}

export const renameState = (id: string, from: State, to: State): void => {
  const top = directory()
  if (top !== undefined) Fs.renameSync(fileOf(top, id, from), fileOf(top, id, to))
}

export const removeRecord = (id: string, state: State): void => {
  const top = directory()
  if (top !== undefined) Fs.rmSync(fileOf(top, id, state), { force: true })
}

export const removeFile = (file: string): void => Fs.rmSync(file, { force: true })
