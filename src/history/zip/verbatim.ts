/**
 * Entries that an archive carries verbatim: names that are not text, names that collide elsewhere, symlinks that leave
 * the tree.
 *
 * They are ordinary files outside `files/`, whose names spell the path in hexadecimal; the manifest counts them. A
 * generic import checks and ignores them. Only a filesystem that restores its own archive puts them in place. The
 * archive is not trusted: unsafe names, parents that are not directories, and duplicates are refused.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { fold } from "../../model/FsPath.ts"
import type { DirectoryNode, FileNode, Node } from "../tree.ts"
import { refuse } from "./names.ts"
import type { Item } from "./survey.ts"

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

/** The form of a name that is not text: a NUL, then the bytes in hexadecimal. The decoded name must be safe too. */
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
    throw refuse("name", "it stands for no path", name)
  }
  if (letter === "f") return { names, node: file, entry: name }
  if (letter === "d") {
    if (file.sizeBytes > 0) throw refuse("corrupt", "a directory has no content", name)
    const node: DirectoryNode = { kind: "directory", entries: new Map(), ...(file.mode !== undefined && { mode: file.mode }) }
    return { names, node, entry: name }
  }
  if (text === undefined || text === "" || text.includes("\0")) throw refuse("link", "it is no text of a link", name)
  return { names, node: { kind: "symlink", target: text }, entry: name }
}

export const isLink = (name: string): boolean => name.startsWith(`${verbatimPrefix}${kindLetters.symlink}/`)

/** Returns the directory of an entry for modification. The caller owns the tree. */
const parentOf = (tree: DirectoryNode, { entry, names }: PlacedEntry): Map<string, Node> => {
  let here: Node | undefined = tree
  for (const name of names.slice(0, -1)) here = here?.kind === "directory" ? here.entries.get(name) : undefined
  if (here?.kind !== "directory") throw refuse("corrupt", "there is no directory for it", entry)
  return here.entries as Map<string, Node>
}

/** Adds the entries to a tree that nobody else uses. Throws an ArchiveError for an entry that has no valid place. */
export const merge = (tree: DirectoryNode, found: ReadonlyArray<VerbatimEntry>, caseSensitive: boolean): void => {
  const folded = new Map<Map<string, Node>, Set<string>>()
  // A directory comes before its contents.
  for (const one of found.map(parseEntry).sort((a, b) => a.names.length - b.names.length)) {
    const entries = parentOf(tree, one)
    const name = one.names.at(-1)!
    if (!folded.has(entries)) folded.set(entries, new Set(caseSensitive ? [] : [...entries.keys()].map(fold)))
    const foldedNames = folded.get(entries)!
    if (entries.has(name) || (!caseSensitive && foldedNames.has(fold(name))))
      throw refuse("duplicate", "its place is taken", one.entry)
    foldedNames.add(fold(name))
    entries.set(name, one.node)
  }
}
