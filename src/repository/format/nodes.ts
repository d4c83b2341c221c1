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
  /** The entries, sorted by the bytes of their names. */
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
  /** The root of the previous commit. The first commit has none. */
  readonly parent: string | undefined
  /** The id of the history, which changes if a workspace is deleted and created again. The first commit has none. */
  readonly origin: string | undefined
  /** A commit that the store of heads confirmed and then lost. */
  readonly lost: { readonly sequence: number; readonly root: string } | undefined
  /** The author, message and time of the previous commit. The first commit and a root of version 2 have none. */
  readonly replaced?: Replaced
}

export interface Root {
  readonly kind: "root"
  readonly files: DirectoryEntry
  readonly snapshots: DirectoryEntry
  /** The ids of the last commits, the latest first. */
  readonly recent: ReadonlyArray<string>
  /** The place of the commit in its history. A root of version 1 has none. */
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

// Decoding. The functions below read the next value of a node, and throw a `Malformed`, which `decode` converts.

type Reader = Cbor.Reader

const { refuse } = Cbor

const wrongForm = "a list has the wrong form"

const expectList = (reader: Reader, length: number): void => {
  if (reader.list() !== length) refuse(wrongForm)
}

const listOf = <A>(reader: Reader, read: (reader: Reader) => A): Array<A> => {
  const out: Array<A> = []
  for (let left = reader.list(); left > 0; left--) out.push(read(reader))
  return out
}

const intOf = (reader: Reader, min: number, max: number): number => {
  const value = reader.int()
  return value >= min && value <= max ? value : refuse("a number is out of range")
}

const hashOf = (reader: Reader): string => reader.hex(32)

const maxMillis = 8.64e15

const timeOf = (reader: Reader): number => intOf(reader, -maxMillis, maxMillis)

const isName = (name: string): boolean =>
  /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name) ||
  (name !== "" && !name.includes("/") && parsePath(name) === name && name !== ".")

const nameOf = (reader: Reader): string => {
  const name = reader.text(maxNameBytes)
  return isName(name) ? name : refuse("an entry has an invalid name")
}

const targetOf = (reader: Reader): string => {
  const target = reader.text(maxTargetBytes)
  return target !== "" && !target.includes("\0") ? target : refuse("a link has an invalid target")
}

const chunksOf = (reader: Reader): Content => {
  const size = intOf(reader, maxInlineBytes + 1, Number.MAX_SAFE_INTEGER)
  const sha256 = hashOf(reader)
  const level = intOf(reader, 0, maxIndexLevel)
  const hash = hashOf(reader)
  if (level === 0 && (hash !== sha256 || size > maxChunkBytes)) refuse("a file of one chunk has the wrong hash or size")
  return { _tag: "Chunks", size, sha256, level, hash }
}

const entryOf = (reader: Reader, isTop: boolean): Entry => {
  const length = reader.list()
  const name = !isTop ? nameOf(reader) : reader.text(0)
  const kind = intOf(reader, 0, 3)
  if (length !== (kind === kinds.chunked ? 9 : 6)) refuse(wrongForm)
  const mode = intOf(reader, 0, 0o7777)
  const createdAt = timeOf(reader)
  const modifiedAt = timeOf(reader)
  switch (kind) {
    case kinds.directory:
      return { kind: "directory", name, mode, createdAt, modifiedAt, tree: reader.isNull() ? undefined : hashOf(reader) }
    case kinds.symlink:
      return { kind: "symlink", name, mode, createdAt, modifiedAt, target: targetOf(reader) }
    case kinds.chunked:
      return { kind: "file", name, mode, createdAt, modifiedAt, content: chunksOf(reader) }
    default: {
      const content: Content = { _tag: "Inline", bytes: reader.bytes(maxInlineBytes) }
      return { kind: "file", name, mode, createdAt, modifiedAt, content }
    }
  }
}

const directoryOf = (reader: Reader): DirectoryEntry => {
  const entry = entryOf(reader, true)
  return entry.kind === "directory" ? entry : refuse("a root is not a directory")
}

const prefixOf = (reader: Reader): string => {
  const prefix = reader.text(maxDepth)
  return /^[0-9a-f]*$/.test(prefix) ? prefix : refuse("a prefix has the wrong form")
}

/** Compares names by their UTF-8 bytes, whose order is that of the code points. */
export const compareNames: (self: string, that: string) => number = compare

const leafOf = (reader: Reader): Leaf => {
  const prefix = prefixOf(reader)
  let weight = 0
  let last: string | undefined
  const entries = listOf(reader, (reader) => {
    const entry = entryOf(reader, false)
    weight += weightOf(entry)
    if (last !== undefined && compareNames(last, entry.name) >= 0) refuse("its names are not in order, or not unique")
    if (prefix !== "" && !nameHash(entry.name).startsWith(prefix)) refuse("a name is in the wrong leaf")
    last = entry.name
    return entry
  })
  if (entries.length === 0) refuse("a leaf is empty")
  if (weight > maxLeafWeight && prefix.length < maxDepth) refuse("a leaf is too large")
  return { kind: "leaf", prefix, entries, weight }
}

const branchOf = (reader: Reader): Branch => {
  const prefix = prefixOf(reader)
  if (prefix.length >= maxDepth) refuse("a branch is too deep")
  const children: Array<Child | undefined> = Array.from({ length: 16 }, () => undefined)
  let weight = 0
  let last = -1
  for (let left = reader.list(); left > 0; left--) {
    expectList(reader, 3)
    last = intOf(reader, last + 1, 15)
    const child = { tree: hashOf(reader), weight: intOf(reader, 1, Number.MAX_SAFE_INTEGER) }
    weight += child.weight
    children[last] = child
  }
  if (weight <= maxLeafWeight || !Number.isSafeInteger(weight)) refuse("a branch has the wrong weight")
  return { kind: "branch", prefix, children, weight }
}

const indexOf = (reader: Reader): Index => {
  const level = intOf(reader, 1, maxIndexLevel)
  const children = listOf(reader, (reader) => {
    expectList(reader, 2)
    return { hash: hashOf(reader), size: intOf(reader, 1, level === 1 ? maxChunkBytes : Number.MAX_SAFE_INTEGER) }
  })
  // Only the last index of a level may have one reference.
  if (children.length === 0 || children.length > maxIndexSize) refuse("an index has the wrong size")
  return { kind: "index", level, children }
}

const optionalHash = (reader: Reader, length: number): string | undefined => (reader.isNull() ? undefined : reader.hex(length))

const maxSequence = Number.MAX_SAFE_INTEGER

const decodeReplaced = (reader: Reader): Replaced => {
  expectList(reader, 3)
  return { author: reader.text(maxReplacedBytes), message: reader.text(maxReplacedBytes), committedAt: timeOf(reader) }
}

const decodeLost = (reader: Reader): Past["lost"] => {
  if (reader.isNull()) return undefined
  expectList(reader, 2)
  return { sequence: intOf(reader, 1, maxSequence), root: hashOf(reader) }
}

const decodePast = (reader: Reader, version: number): Past => {
  expectList(reader, version === formatVersion ? 5 : 4)
  const past: Past = {
    sequence: intOf(reader, 1, maxSequence),
    parent: optionalHash(reader, 32),
    origin: optionalHash(reader, idBytes),
    lost: decodeLost(reader),
    ...(version === formatVersion && { replaced: decodeReplaced(reader) })
  }
  const isFirst = past.sequence === 1
  if (isFirst && version === formatVersion) refuse("the root of a first commit has a previous commit")
  if ((past.parent === undefined) !== isFirst || (past.origin === undefined) !== isFirst) {
    refuse("the parent and the origin of a root do not fit its sequence number")
  }
  return past
}

const decodeKeptAnswers = (reader: Reader): KeptAnswers => {
  expectList(reader, 2)
  const forgottenUntil = intOf(reader, 0, maxMillis)
  const lists = listOf(reader, (reader) => {
    expectList(reader, 3)
    return { hash: hashOf(reader), size: intOf(reader, 1, maxNodeBytes), at: intOf(reader, 0, maxMillis) }
  })
  if (lists.length > maxAnswerLists) refuse("a root has too many lists of answers")
  return { forgottenUntil, lists }
}

const rootOf = (reader: Reader, version: number): Root => {
  const files = directoryOf(reader)
  const snapshots = directoryOf(reader)
  const recent = listOf(reader, (reader) => reader.hex(idBytes))
  if (recent.length > maxRecent) refuse("a root has too many commit ids")
  return {
    kind: "root",
    files,
    snapshots,
    recent,
    past: version === firstVersion ? undefined : decodePast(reader, version),
    answers: version === firstVersion ? noAnswers : decodeKeptAnswers(reader)
  }
}

const answersOf = (reader: Reader): AnswerList => {
  const answers = listOf(reader, (reader) => {
    expectList(reader, 4)
    return {
      id: reader.hex(idBytes),
      request: reader.hex(idBytes),
      at: intOf(reader, 0, maxMillis),
      text: reader.isNull() ? undefined : reader.text(maxNodeBytes)
    }
  })
  if (answers.length === 0) refuse("a list of answers is empty")
  return { kind: "answers", answers }
}

/** The number of values of each kind of node, by version. */
const lengths: Readonly<Record<number, ReadonlyMap<string, number>>> = {
  [firstVersion]: new Map([
    ["leaf", 4],
    ["branch", 4],
    ["index", 4],
    ["root", 5]
  ]),
  [secondVersion]: new Map([
    ["root", 7],
    ["answers", 3]
  ]),
  [formatVersion]: new Map([["root", 7]])
}

const maxKindBytes = 16

const structure = (bytes: Uint8Array): Node => {
  if (bytes.length > maxNodeBytes) return refuse(`it has ${bytes.length} bytes, but a node has at most ${maxNodeBytes}`)
  const reader = new Cbor.Reader(bytes)
  const length = reader.list()
  const version = intOf(reader, firstVersion, Number.MAX_SAFE_INTEGER)
  if (version > formatVersion) {
    return refuse(`it has the format version ${version}; open the repository with the version of fs-algebra that wrote it`)
  }
  const kind = reader.text(maxKindBytes)
  const expected = lengths[version]?.get(kind)
  if (expected === undefined) return refuse("it is a node of an unknown kind")
  if (expected !== length) return refuse(wrongForm)
  const node = nodeOf(reader, kind, version)
  return reader.isAtEnd ? node : refuse("it has bytes after its end")
}

const nodeOf = (reader: Reader, kind: string, version: number): Node => {
  switch (kind) {
    case "leaf":
      return leafOf(reader)
    case "branch":
      return branchOf(reader)
    case "index":
      return indexOf(reader)
    case "answers":
      return answersOf(reader)
    default:
      return rootOf(reader, version)
  }
}

export const corruptNode = (hash: string, detail: string): StoreError =>
  new StoreError({ reason: "corrupt", detail: `the node ${hash} is corrupt: ${detail}` })

/** Decodes a node. For bytes that `encode` does not write, returns a StoreError that names the node. */
export const decode = (hash: string, bytes: Uint8Array): Node | StoreError => {
  try {
    return structure(bytes)
  } catch (error) {
    if (error instanceof Cbor.Malformed) return corruptNode(hash, error.message)
    throw error
  }
}
