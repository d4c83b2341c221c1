/**
 * Encodes the trees and commits of snapshots as git objects. A commit has no parents.
 *
 * The decoders accept only what the encoders write, so they reject most objects of other programs.
 */
import * as Result from "effect/Result"
import { isUtf8 } from "../../runtime/node.ts"
import { storeFault, type StoreFault } from "../errors.ts"
import { idOf } from "./objects.ts"

// Each entry name of a port is mapped to a name in a git tree.
//
// A name that git or a disk could reject or misread gets a prefix. All other names stay unchanged, so that people recognise
// them.

const namePrefix = "%fs-algebra%"

/** The name of the entry that contains the modes that git cannot store. No other entry gets this name. */
const modesName = `${namePrefix}modes`

/** The prefix of a name that is not text. The bytes of the name follow in hexadecimal. All ports use this prefix. */
const keyPrefix = "\u0000"

const plainNamePattern = /^[\w+,=@#()[\]-][\w .+,=@#()[\]-]*$/

const controlPattern = /[\u0000-\u001f\u007f]/

/** The characters that HFS+ ignores when it compares names. */
const ignorableCharacters = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

/** The rest of a name from its first U+FFFE or U+FFFF on. Git's check for HFS+ ignores this rest. */
const noncharacterTail = /[\ufffe\uffff][^]*/

/**
 * The name `.git` and the names of files that configure git, in every spelling that NTFS accepts: any case, trailing dots and
 * spaces, streams and short names.
 *
 * The pattern matches more short names than git's own check.
 */
const specialNamePattern = /^(?:\.git|\.gitmodules|\.gitattributes|\.mailmap|(?:[gm][^~]{0,5})?~\d+)[ .]*(?::|$)/i

/** Removes the characters that HFS+ ignores, and the tail of the name that git's check for HFS+ ignores. */
export const plainSpelling = (name: string): string => name.replace(ignorableCharacters, "").replace(noncharacterTail, "")

const needsPrefix = (name: string): boolean => name.startsWith(namePrefix) || specialNamePattern.test(plainSpelling(name))

/**
 * Tests whether a name contains a backslash. Git's check for NTFS splits a name at each backslash, even after the prefix. So
 * a name with a backslash is stored in hexadecimal.
 */
const hasBackslash = (name: string): boolean => name.includes("\\")

const isText = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && !name.includes("/") && !controlPattern.test(name) && name.isWellFormed()

const needsKey = (name: Buffer): boolean =>
  !name.includes(0) && !name.includes("/") && (!isUtf8(name) || controlPattern.test(name.toString()))

const hexadecimalPattern = /^(?:[0-9a-f]{2})+$/

const fromHexadecimal = (digits: string): string | undefined => {
  if (!hexadecimalPattern.test(digits)) return undefined
  const bytes = Buffer.from(digits, "hex")
  if (needsKey(bytes)) return keyPrefix + digits
  const name = bytes.toString()
  return isText(name) && hasBackslash(name) ? name : undefined
}

const hexadecimalOf = (segment: string): string | undefined => {
  const digits = segment.startsWith(keyPrefix)
    ? segment.slice(1)
    : hasBackslash(segment)
      ? Buffer.from(segment).toString("hex")
      : ""
  return fromHexadecimal(digits) === segment ? digits : undefined
}

/**
 * Returns the name of a segment in a git tree, as a string with one character per byte. Throws a RangeError if no entry of
 * a port can have this segment.
 */
const storedName = (segment: string): string => {
  if (plainNamePattern.test(segment)) return segment
  const digits = hexadecimalOf(segment)
  if (digits !== undefined) return `${namePrefix}~${digits}`
  if (!isText(segment)) throw new RangeError(`${JSON.stringify(segment)} is not a segment of a path`)
  return Buffer.from(needsPrefix(segment) ? `${namePrefix}=${segment}` : segment).toString("latin1")
}

export const encodeName = (segment: string): Buffer => Buffer.from(storedName(segment), "latin1")

/** Returns the segment of a stored name. Returns `undefined` for a name that `encodeName` never returns. */
export const decodeName = (stored: Buffer): string | undefined => {
  const bytes = stored.toString("latin1")
  if (plainNamePattern.test(bytes)) return bytes
  if (!isUtf8(stored)) return undefined
  const name = stored.toString()
  if (!isText(name) || hasBackslash(name)) return undefined
  if (!name.startsWith(namePrefix)) return needsPrefix(name) ? undefined : name
  const rest = name.slice(namePrefix.length + 1)
  if (name[namePrefix.length] === "~") return fromHexadecimal(rest)
  return name[namePrefix.length] === "=" && isText(rest) && needsPrefix(rest) ? rest : undefined
}

// A directory is encoded as a git tree, with one additional entry for modes that git cannot store.

export interface TreeEntry {
  readonly kind: "file" | "directory" | "symlink"
  /** The POSIX permission bits of a file. The mode of a directory is stored in the directory's own tree. */
  readonly mode?: number | undefined
  /**
   * The id of the object: a blob with the content, a blob with the target of the symlink in UTF-8, or the tree of the
   * directory.
   */
  readonly id: string
}

interface EncodedTree {
  readonly body: Buffer
  /** The content of the blob of the modes, which the caller must store too. `undefined` if the tree needs no such blob. */
  readonly modes: Buffer | undefined
}

interface DecodedTree {
  readonly entries: ReadonlyMap<string, TreeEntry>
  readonly modes: string | undefined
}

export const emptyTreeId = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

const directoryMode = 0o755
const fileMode = 0o644
const programMode = 0o755
const permissionBits = 0o777

const gitDirectory = "40000"
const gitFile = "100644"
const gitProgram = "100755"
const gitLink = "120000"

interface TreeRow {
  /** The key by which git sorts: the name, with one character per byte and a slash after the name of a directory. */
  readonly key: string
  readonly gitMode: string
  readonly id: string
}

const gitModeOf = ({ kind, mode }: TreeEntry): string => {
  if (kind === "directory") return gitDirectory
  if (kind === "symlink") return gitLink
  return mode !== undefined && (mode & 0o100) !== 0 ? gitProgram : gitFile
}

const byKey = (a: TreeRow, b: TreeRow): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)

const nameOf = ({ gitMode, key }: TreeRow): string => (gitMode === gitDirectory ? key.slice(0, -1) : key)

const lineOf = (mode: number, name: string): string => `${(mode & permissionBits).toString(8).padStart(4, "0")} ${name}\n`

const needsModeLine = ({ kind, mode }: TreeEntry): boolean =>
  kind === "file" && mode !== undefined && (mode & permissionBits) !== fileMode && (mode & permissionBits) !== programMode

const bodyOf = (rows: ReadonlyArray<TreeRow>): Buffer => {
  let size = 0
  for (const row of rows) size += row.gitMode.length + nameOf(row).length + 22
  const body = Buffer.allocUnsafe(size)
  let at = 0
  for (const row of rows) {
    at += body.write(`${row.gitMode} ${nameOf(row)}\0`, at, "latin1")
    at += body.write(row.id, at, "hex")
  }
  return body
}

export const encodeTree = (entries: ReadonlyMap<string, TreeEntry>, mode?: number): EncodedTree => {
  const rows: Array<TreeRow> = []
  const lines: Array<string> = []
  for (const [segment, entry] of entries) {
    const name = storedName(segment)
    const key = entry.kind === "directory" ? `${name}/` : name
    rows.push({ key, gitMode: gitModeOf(entry), id: entry.id })
    if (needsModeLine(entry)) lines.push(lineOf(entry.mode!, name))
  }
  const own = mode === undefined || (mode & permissionBits) === directoryMode ? "" : lineOf(mode, ".")
  if (own === "" && lines.length === 0) return { body: bodyOf(rows.sort(byKey)), modes: undefined }
  lines.sort((a, b) => (a.slice(5) < b.slice(5) ? -1 : 1))
  const modes = Buffer.from(own + lines.join(""), "latin1")
  rows.push({ key: modesName, gitMode: gitFile, id: idOf("blob", modes) })
  return { body: bodyOf(rows.sort(byKey)), modes }
}

const kindByGitMode: ReadonlyMap<string, Omit<TreeEntry, "id">> = new Map([
  [gitDirectory, { kind: "directory" }],
  [gitFile, { kind: "file", mode: fileMode }],
  [gitProgram, { kind: "file", mode: programMode }],
  [gitLink, { kind: "symlink" }]
])

const corrupt = (detail: string): Result.Result<never, StoreFault> => Result.fail(storeFault("corrupt", detail))

const quoteName = (name: Buffer): string => JSON.stringify(name.toString())

/** Decodes a tree without its blob of modes. Fails with "corrupt" for a row or an order that `encodeTree` never writes. */
export const decodeTree = (body: Buffer): Result.Result<DecodedTree, StoreFault> => {
  const entries = new Map<string, TreeEntry>()
  let modes: string | undefined
  let before = ""
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(32, at)
    const end = body.indexOf(0, at)
    if (space === -1 || end < space || end + 21 > body.length) return corrupt("a tree is truncated")
    const gitMode = body.toString("latin1", at, Math.min(space, at + 7))
    const meaning = kindByGitMode.get(gitMode)
    const name = body.subarray(space + 1, end)
    if (meaning === undefined) return corrupt(`a tree has ${quoteName(name)} with the unknown mode ${JSON.stringify(gitMode)}`)
    const key = gitMode === gitDirectory ? `${name.toString("latin1")}/` : name.toString("latin1")
    if (key <= before) return corrupt(`a tree has ${quoteName(name)} in the wrong order`)
    const id = body.toString("hex", end + 1, end + 21)
    if (key === modesName) {
      if (gitMode !== gitFile) return corrupt("the entry for the modes of a tree is not a file")
      modes = id
    } else {
      const segment = decodeName(name)
      if (segment === undefined) return corrupt(`a tree has the invalid name ${quoteName(name)}`)
      if (entries.has(segment)) return corrupt(`a tree has ${quoteName(name)} twice`)
      entries.set(segment, { ...meaning, id })
    }
    before = key
    at = end + 21
  }
  return Result.succeed({ entries, modes })
}

interface TreeWithModes {
  readonly mode: number
  readonly entries: ReadonlyMap<string, TreeEntry>
}

const modeLinePattern = /^(0[0-7]{3}) (.+)$/

export const withModes = ({ entries }: DecodedTree, modes: Buffer | undefined): Result.Result<TreeWithModes, StoreFault> => {
  if (modes === undefined) return Result.succeed({ mode: directoryMode, entries })
  const all = new Map(entries)
  let own = directoryMode
  for (const line of modes.toString("latin1").split("\n").slice(0, -1)) {
    const [, digits, stored] = modeLinePattern.exec(line) ?? []
    if (digits === undefined || stored === undefined)
      return corrupt(`the modes of a tree have the invalid line ${JSON.stringify(line)}`)
    const mode = Number.parseInt(digits, 8)
    if (stored === ".") {
      own = mode
      continue
    }
    const segment = decodeName(Buffer.from(stored, "latin1"))
    const entry = segment === undefined ? undefined : entries.get(segment)
    if (segment === undefined || entry?.kind !== "file" || gitModeOf(entry) !== gitModeOf({ ...entry, mode })) {
      return corrupt(
        `the modes of a tree list ${JSON.stringify(stored)}, but the tree has no file with this name and a compatible mode`
      )
    }
    all.set(segment, { ...entry, mode })
  }
  // Encode the modes again to detect duplicate, unsorted, redundant and truncated lines.
  return encodeTree(all, own).modes?.equals(modes) === true
    ? Result.succeed({ mode: own, entries: all })
    : corrupt("the modes of a tree were not written by this library")
}

export interface Commit {
  readonly tree: string
  /** The creation time in whole milliseconds since 1970. */
  readonly createdAt: number
  /** The message. `encodeCommit` replaces NUL by U+FFFD, because git ends a message at NUL. */
  readonly message: string
}

const author = "fs-algebra <fs-algebra@localhost>"

/**
 * The header for the milliseconds of the creation time. Git stores whole seconds, but preserves headers that it does not know.
 */
const millisecondsHeader = "fs-algebra-milliseconds"

const commitPattern = new RegExp(
  `^tree ([0-9a-f]{40})\nauthor ${author} (\\d{1,13}) \\+0000\ncommitter ${author} \\2 \\+0000\n(?:${millisecondsHeader} (\\d{3})\n)?\n`
)

export const encodeCommit = ({ createdAt, message, tree }: Commit): Buffer => {
  const time = Math.max(0, Math.floor(createdAt))
  const rest = time % 1000
  const signature = `${author} ${Math.floor(time / 1000)} +0000`
  const millisecondsLine = rest === 0 ? "" : `${millisecondsHeader} ${String(rest).padStart(3, "0")}\n`
  return Buffer.from(
    `tree ${tree}\nauthor ${signature}\ncommitter ${signature}\n${millisecondsLine}\n${message.replaceAll("\0", "\ufffd")}`
  )
}

const corruptCommit: Result.Result<never, StoreFault> = Result.fail(
  storeFault("corrupt", "the commit was not written by this library")
)

export const decodeCommit = (body: Buffer): Result.Result<Commit, StoreFault> => {
  if (!isUtf8(body) || body.includes(0)) return corruptCommit
  const text = body.toString()
  const match = commitPattern.exec(text)
  if (match === null) return corruptCommit
  const [header, tree, seconds, milliseconds = "0"] = match
  const createdAt = Number(seconds) * 1000 + Number(milliseconds)
  return createdAt > 8.64e15 ? corruptCommit : Result.succeed({ tree: tree!, createdAt, message: text.slice(header.length) })
}
