import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { fold } from "../../model/FsPath.ts"
import { Buffer } from "../../runtime/buffer.ts"
import type { DirectoryNode, FileNode, Node } from "../tree.ts"
import { refuse } from "./names.ts"
import type { Item } from "./survey.ts"

// Verbatim entries store entries that an import rejects: names that are not text, names that collide on other disks, and
// symlinks that leave the tree.
//
// In the archive, verbatim entries are ordinary files outside `files/`, whose names contain the path in hexadecimal. The
// manifest counts the verbatim entries. Only a filesystem of the same backend restores them. Other imports check and ignore
// them.
// The archive is not trusted: unsafe names, parents that are not directories, and duplicates are refused.

export const verbatimPrefix = "verbatim/"

const kindLetters = { file: "f", symlink: "l", directory: "d" } as const

export const nameOf = ({ kind, path }: Item): string =>
  `${verbatimPrefix}${kindLetters[kind]}/${Buffer.from(path).toString("hex")}`

export interface VerbatimEntry {
  readonly name: string
  readonly file: FileNode
  readonly text?: string | undefined
}

const maxPathSegments = 4096

/** The form of a name that is not text: a NUL, then the bytes in hexadecimal. The bytes are checked separately. */
const keyPattern = /^\0(?:[0-9a-f]{2})+$/

const isUnfit = (segment: string): boolean => {
  if (segment === "" || segment === "." || segment === "..") return true
  if (!segment.includes("\0")) return false
  if (!keyPattern.test(segment)) return true
  const name = Buffer.from(segment.slice(1), "hex")
  return name.includes(0x2f) || name.toString("utf16le").includes("/") || [".", ".."].includes(name.toString("latin1"))
}

const verbatimNamePattern = /^verbatim\/([fld])\/((?:[0-9a-f]{2})+)$/

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (hex: string): string | undefined => {
  try {
    return utf8.decode(Buffer.from(hex, "hex"))
  } catch {
    return undefined
  }
}

interface PlacedEntry {
  readonly names: ReadonlyArray<string>
  readonly node: Node
  readonly entry: string
}

const parseEntry = ({ file, name, text }: VerbatimEntry): PlacedEntry => {
  const [, letter, hex] = verbatimNamePattern.exec(name) ?? []
  const names = textOf(hex ?? "")?.split("/")
  if (names === undefined || names.length > maxPathSegments || names.some(isUnfit)) {
    throw refuse("name", "the name does not encode a path", name)
  }
  if (letter === "f") return { names, node: file, entry: name }
  if (letter === "d") {
    if (file.sizeBytes > 0) throw refuse("corrupt", "the entry is a directory, but it has content", name)
    const node: DirectoryNode = { kind: "directory", entries: new Map(), ...(file.mode !== undefined && { mode: file.mode }) }
    return { names, node, entry: name }
  }
  if (text === undefined || text === "" || text.includes("\0"))
    throw refuse("link", "the content is not a valid link target", name)
  return { names, node: { kind: "symlink", target: text }, entry: name }
}

export const isLink = (name: string): boolean => name.startsWith(`${verbatimPrefix}${kindLetters.symlink}/`)

/** Returns the directory in which an entry belongs. The caller may change the directory, because it owns the tree. */
const parentOf = (tree: DirectoryNode, { entry, names }: PlacedEntry): Map<string, Node> => {
  let here: Node | undefined = tree
  for (const name of names.slice(0, -1)) here = here?.kind === "directory" ? here.entries.get(name) : undefined
  if (here?.kind !== "directory") throw refuse("corrupt", "the parent directory is missing", entry)
  return here.entries as Map<string, Node>
}

/** Adds the entries to a tree that no other code uses. Throws an ArchiveError if an entry has an invalid path. */
export const merge = (tree: DirectoryNode, found: ReadonlyArray<VerbatimEntry>, caseSensitive: boolean): void => {
  const folded = new Map<Map<string, Node>, Set<string>>()
  // Sort by depth, so that a directory comes before its contents.
  for (const one of found.map(parseEntry).sort((a, b) => a.names.length - b.names.length)) {
    const entries = parentOf(tree, one)
    const name = one.names.at(-1)!
    if (!folded.has(entries)) folded.set(entries, new Set(caseSensitive ? [] : [...entries.keys()].map(fold)))
    const foldedNames = folded.get(entries)!
    if (entries.has(name) || (!caseSensitive && foldedNames.has(fold(name))))
      throw refuse("duplicate", "another entry has the same path", one.entry)
    foldedNames.add(fold(name))
    entries.set(name, one.node)
  }
}

/** The description of an archive's contents. */
export interface Manifest {
  readonly createdAt: DateTime.Utc
  /** The number of files and symlinks. */
  readonly fileCount: number
  /** The total size of all files and symlink targets, in bytes. */
  readonly totalBytes: number
  /** The counts of the verbatim entries, which `fileCount` and `totalBytes` do not include. */
  readonly verbatim?: Verbatim | undefined
}

/** The counts of the entries that only the original filesystem can restore. */
interface Verbatim {
  readonly backend: string
  /** The number of files, symlinks and directories. */
  readonly entries: number
  readonly fileCount: number
  readonly totalBytes: number
}

export const manifestName = "manifest.json"
export const filesPrefix = "files/"

const version = "1"

const verbatimVersion = 1

/** Encodes a manifest. The time has a numeric UTC offset, which every ISO 8601 parser accepts. */
export const write = ({ createdAt, fileCount, totalBytes, verbatim }: Manifest): Uint8Array =>
  Buffer.from(
    `${JSON.stringify(
      {
        version,
        created_at: DateTime.formatIso(createdAt).replace("Z", "+00:00"),
        file_count: fileCount,
        total_bytes: totalBytes,
        ...(verbatim && {
          verbatim: {
            version: verbatimVersion,
            backend: verbatim.backend,
            entries: verbatim.entries,
            file_count: verbatim.fileCount,
            total_bytes: verbatim.totalBytes
          }
        })
      },
      undefined,
      2
    )}\n`
  )

/** The archive comment that marks a plain layout whose entries alone do not show the layout. */
export const plainComment = "fs-algebra: plain"

export const maxManifestBytes = 1024 * 1024

/**
 * Tests whether the bytes are a manifest of this library, in any version. A manifest of this library has the fields
 * `file_count` and `total_bytes`; a `manifest.json` of another program does not.
 */
export const isManifest = (bytes: Uint8Array): boolean => {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    if (typeof value !== "object" || value === null) return false
    return Object.hasOwn(value, "file_count") && Object.hasOwn(value, "total_bytes")
  } catch {
    return false
  }
}

const parseJson = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    throw refuse("corrupt", "the manifest is not JSON", manifestName)
  }
}

const parseCount = (value: unknown, name: string): number => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw refuse("corrupt", `the manifest's ${name} is not a count`, manifestName)
}

const verbatimIn = (value: unknown): Verbatim | undefined => {
  if (value === undefined) return undefined
  const fields = (typeof value === "object" && value !== null ? value : {}) as { readonly [name: string]: unknown }
  const { backend, version } = fields
  if (version !== verbatimVersion)
    throw refuse("version", "the verbatim entries in the manifest have an unknown version", manifestName)
  if (typeof backend !== "string") throw refuse("corrupt", "the manifest's backend is not a string", manifestName)
  return {
    backend,
    entries: parseCount(fields["entries"], "entries"),
    fileCount: parseCount(fields["file_count"], "file_count"),
    totalBytes: parseCount(fields["total_bytes"], "total_bytes")
  }
}

export const read = (bytes: Uint8Array): Manifest => {
  const value = parseJson(bytes)
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse("corrupt", "the manifest is not an object", manifestName)
  }
  const fields = value as { readonly [name: string]: unknown }
  if (fields["version"] !== version) {
    const found = JSON.stringify(fields["version"] ?? null).slice(0, 40)
    throw refuse(
      "version",
      `the archive has version ${found}; this library reads only ${JSON.stringify(version)}`,
      manifestName
    )
  }
  const fileCount = parseCount(fields["file_count"], "file_count")
  const totalBytes = parseCount(fields["total_bytes"], "total_bytes")
  const at = fields["created_at"]
  const createdAt = typeof at === "string" ? DateTime.make(at) : Option.none()
  if (Option.isNone(createdAt)) throw refuse("corrupt", "the manifest's created_at is not a time", manifestName)
  const verbatim = verbatimIn(fields["verbatim"])
  return { createdAt: DateTime.toUtc(createdAt.value), fileCount, totalBytes, ...(verbatim && { verbatim }) }
}
