/**
 * Encodes a directory as a git tree, plus one extra entry for modes that git cannot store.
 *
 * The decoder accepts only what the encoder writes, so a tree of another program has a harmless meaning or none.
 */
import * as Result from "effect/Result"
import { storeFault, type StoreFault } from "../errors.ts"
import { decodeName, modesName, storedName } from "./names.ts"
import { idOf } from "./objects.ts"

export interface TreeEntry {
  readonly kind: "file" | "directory" | "symlink"
  /** POSIX permission bits of a file. The mode of a directory is in its own tree. */
  readonly mode?: number | undefined
  /** The id of the content blob, of the blob with the symlink's target in UTF-8, or of the tree. */
  readonly id: string
}

export interface EncodedTree {
  readonly body: Buffer
  /** The blob with the modes, which must be stored together with the tree. */
  readonly modes: Buffer | undefined
}

export interface DecodedTree {
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
  /** The sort key: one character per byte, as git sorts; a directory ends with a slash. */
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

/** Decodes a tree. Fails with "corrupt" for a tree that `encodeTree` would not write. */
export const decodeTree = (body: Buffer): Result.Result<DecodedTree, StoreFault> => {
  const entries = new Map<string, TreeEntry>()
  let modes: string | undefined
  let before = ""
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(32, at)
    const end = body.indexOf(0, at)
    if (space === -1 || end < space || end + 21 > body.length) return corrupt("a tree is cut off")
    const gitMode = body.toString("latin1", at, Math.min(space, at + 7))
    const meaning = kindByGitMode.get(gitMode)
    const name = body.subarray(space + 1, end)
    if (meaning === undefined) return corrupt(`${quoteName(name)} has the mode ${JSON.stringify(gitMode)} in a tree`)
    const key = gitMode === gitDirectory ? `${name.toString("latin1")}/` : name.toString("latin1")
    if (key <= before) return corrupt(`${quoteName(name)} is not at its place in a tree`)
    const id = body.toString("hex", end + 1, end + 21)
    if (key === modesName) {
      if (gitMode !== gitFile) return corrupt("the modes of a tree are no file")
      modes = id
    } else {
      const segment = decodeName(name)
      if (segment === undefined) return corrupt(`a tree has the name ${quoteName(name)}`)
      if (entries.has(segment)) return corrupt(`a tree has ${quoteName(name)} twice`)
      entries.set(segment, { ...meaning, id })
    }
    before = key
    at = end + 21
  }
  return Result.succeed({ entries, modes })
}

export interface TreeWithModes {
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
      return corrupt(`the modes of a tree have the line ${JSON.stringify(line)}`)
    const mode = Number.parseInt(digits, 8)
    if (stored === ".") {
      own = mode
      continue
    }
    const segment = decodeName(Buffer.from(stored, "latin1"))
    const entry = segment === undefined ? undefined : entries.get(segment)
    if (segment === undefined || entry?.kind !== "file" || gitModeOf(entry) !== gitModeOf({ ...entry, mode })) {
      return corrupt(`the modes of a tree have ${JSON.stringify(stored)}, which is no such file in it`)
    }
    all.set(segment, { ...entry, mode })
  }
  // Encoding again detects duplicate, unsorted, redundant and truncated lines.
  return encodeTree(all, own).modes?.equals(modes) === true
    ? Result.succeed({ mode: own, entries: all })
    : corrupt("the modes of a tree are not in the form that this library writes")
}
