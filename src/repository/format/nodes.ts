/**
 * The nodes of a repository and their encoding. The guide `repository-format.md` specifies the bytes.
 *
 * The decoder accepts exactly the bytes that the encoder writes. The decoder trusts nothing: a blob may be forged.
 */
import { compare, parse as parsePath } from "../../model/FsPath.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import { StoreError } from "../errors.ts"
import * as Cbor from "./cbor.ts"

/** The newest version of the format. The library writes the roots of all commits but the first in this version. */
export const formatVersion = 3
/** The version of the roots of first commits, and of nodes with answers. Leaves, branches and indexes have version 1. */
const secondVersion = 2
const firstVersion = 1

/** The maximum size of a file that is stored in the leaf of its directory, in bytes. */
export const maxInlineBytes = 2048
/** The maximum weight of a leaf. A heavier tree is a branch. */
export const maxLeafWeight = 32_768
/** The maximum size of an encoded node, in bytes. */
export const maxNodeBytes = 65_536
const entryWeight = 96
/** The number of hexadecimal digits of a hash, and so the maximum depth of a tree. */
export const maxDepth = 64
/** The maximum number of references in an index of chunks. */
export const maxIndexSize = 1024
const maxIndexLevel = 5
export const maxChunkBytes = 1024 * 1024
export const maxNameBytes = 4096
export const maxTargetBytes = 16_384
/** The number of recent commit ids that a root node keeps. */
export const maxRecent = 32
/** The number of bytes of the id of a commit, a change or a request. */
const idBytes = 16
/** The maximum size of the author and of the message of the previous commit, in bytes. */
export const maxReplacedBytes = 1024

/** A reference to one chunk, or to an index of chunks. */
export interface ChunkRef {
  readonly hash: string
  readonly size: number
}

export type Content =
  | { readonly _tag: "Inline"; readonly bytes: Uint8Array }
  | { readonly _tag: "Chunks"; readonly size: number; readonly sha256: string; readonly level: number; readonly hash: string }

interface EntryFields {
  readonly name: string
  readonly mode: number
  /** The time in milliseconds since 1970, as for `modifiedAt`. */
  readonly createdAt: number
  readonly modifiedAt: number
}

/** A tree of entries: the hash of a stored node, a node that is not stored yet, or `undefined` for an empty directory. */
export type Tree = string | TreeNode | undefined

export interface DirectoryEntry extends EntryFields {
  readonly kind: "directory"
  readonly tree: Tree
}

export interface FileEntry extends EntryFields {
  readonly kind: "file"
  readonly content: Content
}

export interface LinkEntry extends EntryFields {
  readonly kind: "symlink"
  readonly target: string
}

export type Entry = DirectoryEntry | FileEntry | LinkEntry

export interface Leaf {
  readonly kind: "leaf"
  /** The hexadecimal digits with which the hash of each name in the node begins: one digit for each branch above. */
  readonly prefix: string
  /** Sorted by the bytes of the name. */
  readonly entries: ReadonlyArray<Entry>
  readonly weight: number
}

export interface Child {
  readonly tree: string | TreeNode
  readonly weight: number
}

export interface Branch {
  readonly kind: "branch"
  readonly prefix: string
  /** One child for each of the 16 next digits. */
  readonly children: ReadonlyArray<Child | undefined>
  readonly weight: number
}

export type TreeNode = Leaf | Branch

export interface Index {
  readonly kind: "index"
  readonly level: number
  readonly children: ReadonlyArray<ChunkRef>
}

/** The answer to a change. If the change is sent again, it gets the same answer. */
export interface Answer {
  /** The first 16 bytes of the SHA-256 of the change's id, in hexadecimal. `request` is the same for the request. */
  readonly id: string
  readonly request: string
  readonly at: number
  /** The text of the answer. Absent if the text was too long to be kept. */
  readonly text: string | undefined
}

export interface AnswerList {
  readonly kind: "answers"
  /** The newest first. */
  readonly answers: ReadonlyArray<Answer>
}

/** A reference to a node with answers. */
export interface AnswersRef {
  readonly hash: string
  /** The number of bytes of the node. */
  readonly size: number
  /** The time of the newest answer in the node. */
  readonly at: number
}

/** The answers to the last changes, the newest first. */
export interface KeptAnswers {
  /** Answers up to this time may have been forgotten. */
  readonly forgottenUntil: number
  readonly lists: ReadonlyArray<AnswersRef>
}

export const noAnswers: KeptAnswers = { forgottenUntil: 0, lists: [] }

/** The maximum number of nodes with answers to which a root refers. */
export const maxAnswerLists = 128

/** The fields of the previous head beside its root. */
export interface Replaced {
  readonly author: string
  readonly message: string
  /** The time in milliseconds since 1970. */
  readonly committedAt: number
}

/** The place of a commit in the history of its workspace. */
export interface Past {
  /** The number of the commit. The first root of a fork still has the number from the original workspace. */
  readonly sequence: number
  /** The root of the previous commit. Absent in the first commit. */
  readonly parent: string | undefined
  /** The id of the history, which changes if a workspace is deleted and created again. Absent in the first commit. */
  readonly origin: string | undefined
  /** A commit that the store of heads confirmed and then lost. */
  readonly lost: { readonly sequence: number; readonly root: string } | undefined
  /** Absent in the first commit, and in a root of version 2. */
  readonly replaced?: Replaced
}

export interface Root {
  readonly kind: "root"
  readonly files: DirectoryEntry
  readonly snapshots: DirectoryEntry
  /** The ids of the last commits, the latest first. */
  readonly recent: ReadonlyArray<string>
  /** Absent in a root of version 1. */
  readonly past: Past | undefined
  readonly answers: KeptAnswers
}

export type Node = TreeNode | Index | Root | AnswerList

export const nameHash = (name: string): string => sha256(Buffer.from(name))

export const sizeOf = (content: Content): number => (content._tag === "Inline" ? content.bytes.length : content.size)

export const areContentsEqual = (self: Content, that: Content): boolean =>
  self === that ||
  (self._tag === "Inline"
    ? that._tag === "Inline" && Buffer.compare(self.bytes, that.bytes) === 0
    : that._tag === "Chunks" && self.level === that.level && self.hash === that.hash && self.size === that.size)

/** Tests whether two entries are equal. A tree that is not stored equals only itself. */
export const areEntriesEqual = (self: Entry, that: Entry): boolean =>
  self === that ||
  (self.name === that.name &&
    self.mode === that.mode &&
    self.createdAt === that.createdAt &&
    self.modifiedAt === that.modifiedAt &&
    (self.kind === "directory"
      ? that.kind === "directory" && self.tree === that.tree
      : self.kind === "symlink"
        ? that.kind === "symlink" && self.target === that.target
        : that.kind === "file" && areContentsEqual(self.content, that.content)))

export const weightOf = (entry: Entry): number =>
  entryWeight +
  Buffer.byteLength(entry.name) +
  (entry.kind === "symlink"
    ? Buffer.byteLength(entry.target)
    : entry.kind === "file" && entry.content._tag === "Inline"
      ? entry.content.bytes.length
      : 0)

const kinds = { directory: 0, file: 1, chunked: 2, symlink: 3 } as const

const bytesOf = (hash: string): Uint8Array => Buffer.from(hash, "hex")

const storedHash = (tree: Tree): Uint8Array | null => {
  if (tree === undefined) return null
  if (typeof tree !== "string") throw new Error("cannot encode a node: a node below it is not stored yet")
  return bytesOf(tree)
}

const fieldsOf = (entry: Entry): ReadonlyArray<Cbor.Value> => {
  const { createdAt, mode, modifiedAt, name } = entry
  const common = (kind: number): Array<Cbor.Value> => [name, kind, mode, createdAt, modifiedAt]
  switch (entry.kind) {
    case "directory":
      return [...common(kinds.directory), storedHash(entry.tree)]
    case "symlink":
      return [...common(kinds.symlink), entry.target]
    case "file": {
      const { content } = entry
      return content._tag === "Inline"
        ? [...common(kinds.file), content.bytes]
        : [...common(kinds.chunked), content.size, bytesOf(content.sha256), content.level, bytesOf(content.hash)]
    }
  }
}

const orNull = (hash: string | undefined): Uint8Array | null => (hash === undefined ? null : bytesOf(hash))

const pastOf = ({ lost, origin, parent, replaced, sequence }: Past): ReadonlyArray<Cbor.Value> => [
  sequence,
  orNull(parent),
  orNull(origin),
  lost === undefined ? null : [lost.sequence, bytesOf(lost.root)],
  ...(replaced === undefined ? [] : [[replaced.author, replaced.message, replaced.committedAt]])
]

const keptAnswersOf = ({ forgottenUntil, lists }: KeptAnswers): ReadonlyArray<Cbor.Value> => [
  forgottenUntil,
  lists.map(({ at, hash, size }) => [bytesOf(hash), size, at])
]

const structureOf = (node: Node): ReadonlyArray<Cbor.Value> => {
  switch (node.kind) {
    case "leaf":
      return ["leaf", node.prefix, node.entries.map(fieldsOf)]
    case "branch":
      return [
        "branch",
        node.prefix,
        node.children.flatMap((child, digit) => (child === undefined ? [] : [[digit, storedHash(child.tree), child.weight]]))
      ]
    case "index":
      return ["index", node.level, node.children.map(({ hash, size }) => [bytesOf(hash), size])]
    case "answers":
      return ["answers", node.answers.map(({ at, id, request, text }) => [bytesOf(id), bytesOf(request), at, text ?? null])]
    case "root": {
      const { answers, files, past, recent, snapshots } = node
      const first = ["root", fieldsOf(files), fieldsOf(snapshots), recent.map(bytesOf)]
      return past === undefined ? first : [...first, pastOf(past), keptAnswersOf(answers)]
    }
  }
}

const versionOf = (node: Node): number => {
  if (node.kind === "answers") return secondVersion
  if (node.kind !== "root" || node.past === undefined) return firstVersion
  return node.past.replaced === undefined ? secondVersion : formatVersion
}

/** Encodes a node. All nodes below must be stored. */
export const encode = (node: Node): Uint8Array => Cbor.encode([versionOf(node), ...structureOf(node)])

// Decoding. The functions below throw a `Malformed`, which `decode` converts.

class Malformed extends Error {}

const refuse = (detail: string): never => {
  throw new Malformed(detail)
}

const arrayOf = (value: unknown, length?: number): ReadonlyArray<unknown> =>
  Array.isArray(value) && (length === undefined || value.length === length) ? value : refuse("a list has the wrong form")

const intOf = (value: unknown, min: number, max: number): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max
    ? value
    : refuse("a number is out of range")

const textOf = (value: unknown, maxBytes: number): string =>
  typeof value === "string" && Buffer.byteLength(value) <= maxBytes ? value : refuse("a text has the wrong form")

const hexOf = (value: unknown, length: number): string =>
  value instanceof Uint8Array && value.length === length
    ? Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex")
    : refuse("a hash has the wrong form")

const hashOf = (value: unknown): string => hexOf(value, 32)

const maxMillis = 8.64e15

const isName = (name: string): boolean =>
  /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name) ||
  (name !== "" && !name.includes("/") && parsePath(name) === name && name !== ".")

const nameOf = (value: unknown): string => {
  const name = textOf(value, maxNameBytes)
  return isName(name) ? name : refuse("an entry has an invalid name")
}

const targetOf = (value: unknown): string => {
  const target = textOf(value, maxTargetBytes)
  return target !== "" && !target.includes("\0") ? target : refuse("a link has an invalid target")
}

const contentOf = (kind: number, rest: ReadonlyArray<unknown>): Content => {
  if (kind === kinds.file) {
    const bytes = rest[0]
    return bytes instanceof Uint8Array && bytes.length <= maxInlineBytes
      ? { _tag: "Inline", bytes }
      : refuse("a file has the wrong form")
  }
  const size = intOf(rest[0], maxInlineBytes + 1, Number.MAX_SAFE_INTEGER)
  const sha256 = hashOf(rest[1])
  const level = intOf(rest[2], 0, maxIndexLevel)
  const hash = hashOf(rest[3])
  if (level === 0 && (hash !== sha256 || size > maxChunkBytes)) refuse("a file of one chunk has the wrong hash or size")
  return { _tag: "Chunks", size, sha256, level, hash }
}

const lengths = { [kinds.directory]: 6, [kinds.file]: 6, [kinds.chunked]: 9, [kinds.symlink]: 6 } as const

const entryOf = (value: unknown, isTop = false): Entry => {
  const all = arrayOf(value)
  const kind = intOf(all[1], 0, 3) as keyof typeof lengths
  arrayOf(all, lengths[kind])
  const fields: EntryFields = {
    name: isTop ? (all[0] === "" ? "" : refuse("a root has a name")) : nameOf(all[0]),
    mode: intOf(all[2], 0, 0o7777),
    createdAt: intOf(all[3], -maxMillis, maxMillis),
    modifiedAt: intOf(all[4], -maxMillis, maxMillis)
  }
  if (kind === kinds.directory) {
    return { kind: "directory", ...fields, tree: all[5] === null ? undefined : hashOf(all[5]) }
  }
  if (kind === kinds.symlink) return { kind: "symlink", ...fields, target: targetOf(all[5]) }
  return { kind: "file", ...fields, content: contentOf(kind, all.slice(5)) }
}

const directoryOf = (value: unknown): DirectoryEntry => {
  const entry = entryOf(value, true)
  return entry.kind === "directory" ? entry : refuse("a root is not a directory")
}

const prefixOf = (value: unknown): string =>
  typeof value === "string" && /^[0-9a-f]{0,64}$/.test(value) ? value : refuse("a prefix has the wrong form")

/** Compares names by their UTF-8 bytes, whose order is that of the code points. */
export const compareNames: (self: string, that: string) => number = compare

const leafOf = (all: ReadonlyArray<unknown>): Leaf => {
  arrayOf(all, 4)
  const prefix = prefixOf(all[2])
  const entries = arrayOf(all[3]).map((value) => entryOf(value))
  if (entries.length === 0) refuse("a leaf is empty")
  let weight = 0
  entries.forEach((entry, i) => {
    weight += weightOf(entry)
    if (i > 0 && compareNames(entries[i - 1]!.name, entry.name) >= 0) refuse("its names are not in order, or not unique")
    if (prefix !== "" && !nameHash(entry.name).startsWith(prefix)) refuse("a name is in the wrong leaf")
  })
  if (weight > maxLeafWeight && prefix.length < maxDepth) refuse("a leaf is too large")
  return { kind: "leaf", prefix, entries, weight }
}

const branchOf = (all: ReadonlyArray<unknown>): Branch => {
  arrayOf(all, 4)
  const prefix = prefixOf(all[2])
  if (prefix.length >= maxDepth) refuse("a branch is too deep")
  const children: Array<Child | undefined> = Array.from({ length: 16 }, () => undefined)
  let weight = 0
  let last = -1
  for (const item of arrayOf(all[3])) {
    const [digitValue, hash, weightValue] = arrayOf(item, 3)
    const digit = intOf(digitValue, last + 1, 15)
    const child = { tree: hashOf(hash), weight: intOf(weightValue, 1, Number.MAX_SAFE_INTEGER) }
    weight += child.weight
    children[(last = digit)] = child
  }
  if (weight <= maxLeafWeight || !Number.isSafeInteger(weight)) refuse("a branch has the wrong weight")
  return { kind: "branch", prefix, children, weight }
}

const indexOf = (all: ReadonlyArray<unknown>): Index => {
  arrayOf(all, 4)
  const level = intOf(all[2], 1, maxIndexLevel)
  const items = arrayOf(all[3])
  if (items.length < 2 || items.length > maxIndexSize) {
    // Only the last index of a level may have one reference.
    if (items.length !== 1) refuse("an index has the wrong size")
  }
  const children = items.map((item) => {
    const [hash, size] = arrayOf(item, 2)
    return { hash: hashOf(hash), size: intOf(size, 1, level === 1 ? maxChunkBytes : Number.MAX_SAFE_INTEGER) }
  })
  return { kind: "index", level, children }
}

const optionalHash = (value: unknown, length: number): string | undefined => (value === null ? undefined : hexOf(value, length))

const maxSequence = Number.MAX_SAFE_INTEGER

const decodeReplaced = (value: unknown): Replaced => {
  const [author, message, committedAt] = arrayOf(value, 3)
  return {
    author: textOf(author, maxReplacedBytes),
    message: textOf(message, maxReplacedBytes),
    committedAt: intOf(committedAt, -maxMillis, maxMillis)
  }
}

const decodePast = (value: unknown, version: unknown): Past => {
  const [sequence, parent, origin, lost, replaced] = arrayOf(value, version === formatVersion ? 5 : 4)
  const past = {
    sequence: intOf(sequence, 1, maxSequence),
    parent: optionalHash(parent, 32),
    origin: optionalHash(origin, idBytes),
    lost: undefined,
    ...(version === formatVersion && { replaced: decodeReplaced(replaced) })
  }
  const isFirst = past.sequence === 1
  if (isFirst && version === formatVersion) refuse("the root of a first commit has a previous commit")
  if ((past.parent === undefined) !== isFirst || (past.origin === undefined) !== isFirst) {
    refuse("the parent and the origin of a root do not fit its sequence number")
  }
  if (lost === null) return past
  const [lostSequence, root] = arrayOf(lost, 2)
  return { ...past, lost: { sequence: intOf(lostSequence, 1, maxSequence), root: hashOf(root) } }
}

const decodeKeptAnswers = (value: unknown): KeptAnswers => {
  const [forgottenUntil, lists] = arrayOf(value, 2)
  const all = arrayOf(lists)
  if (all.length > maxAnswerLists) refuse("a root has too many lists of answers")
  return {
    forgottenUntil: intOf(forgottenUntil, 0, maxMillis),
    lists: all.map((item) => {
      const [hash, size, at] = arrayOf(item, 3)
      return { hash: hashOf(hash), size: intOf(size, 1, maxNodeBytes), at: intOf(at, 0, maxMillis) }
    })
  }
}

const rootOf = (all: ReadonlyArray<unknown>): Root => {
  arrayOf(all, all[0] === firstVersion ? 5 : 7)
  const recent = arrayOf(all[4])
  if (recent.length > maxRecent) refuse("a root has too many commit ids")
  return {
    kind: "root",
    files: directoryOf(all[2]),
    snapshots: directoryOf(all[3]),
    recent: recent.map((id) => hexOf(id, idBytes)),
    past: all[0] === firstVersion ? undefined : decodePast(all[5], all[0]),
    answers: all[0] === firstVersion ? noAnswers : decodeKeptAnswers(all[6])
  }
}

const answersOf = (all: ReadonlyArray<unknown>): AnswerList => {
  const items = arrayOf(arrayOf(all, 3)[2])
  if (items.length === 0) refuse("a list of answers is empty")
  return {
    kind: "answers",
    answers: items.map((item) => {
      const [id, request, at, text] = arrayOf(item, 4)
      return {
        id: hexOf(id, idBytes),
        request: hexOf(request, idBytes),
        at: intOf(at, 0, maxMillis),
        text: text === null ? undefined : textOf(text, maxNodeBytes)
      }
    })
  }
}

const structure = (bytes: Uint8Array): Node => {
  if (bytes.length > maxNodeBytes) return refuse(`it has ${bytes.length} bytes, but a node has at most ${maxNodeBytes}`)
  const all = arrayOf(Cbor.decode(bytes) ?? refuse("it is not deterministic CBOR"))
  const [version, kind] = all
  if (typeof version === "number" && version > formatVersion) {
    return refuse(`it has the format version ${version}; open the repository with the version of fs-algebra that wrote it`)
  }
  if (version === formatVersion) return kind === "root" ? rootOf(all) : refuse("it is a node of an unknown kind")
  if (version === secondVersion) {
    if (kind === "root") return rootOf(all)
    return kind === "answers" ? answersOf(all) : refuse("it is a node of an unknown kind")
  }
  if (version !== firstVersion) return refuse("it is not a node")
  switch (kind) {
    case "leaf":
      return leafOf(all)
    case "branch":
      return branchOf(all)
    case "index":
      return indexOf(all)
    case "root":
      return rootOf(all)
    default:
      return refuse("it is a node of an unknown kind")
  }
}

export const corruptNode = (hash: string, detail: string): StoreError =>
  new StoreError({ reason: "corrupt", detail: `the node ${hash} is corrupt: ${detail}` })

/** Decodes a node. For bytes that `encode` does not write, returns a StoreError that names the node. */
export const decode = (hash: string, bytes: Uint8Array): Node | StoreError => {
  try {
    return structure(bytes)
  } catch (error) {
    if (error instanceof Malformed) return corruptNode(hash, error.message)
    throw error
  }
}
