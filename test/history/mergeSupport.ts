/** Small trees written as maps of paths, which git can import, and random lines from a seed. */
import * as Effect from "effect/Effect"
import type { Source } from "../../src/history/merge.ts"
import { blobId, type DirectoryNode, type FileNode, type Node } from "../../src/history/tree.ts"

export type Random = (below: number) => number

/** Returns a mulberry32 generator. */
export const random = (seed: number): Random => {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

export const pick = <A>(random: Random, from: ReadonlyArray<A>): A => from[random(from.length)]!

export const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "latin1"))
export const latin1 = (content: Uint8Array): string => Buffer.from(content).toString("latin1")

/** Returns lines that were edited in a few places: inserted, removed, replaced or doubled. */
export const mutated = (
  random: Random,
  lines: ReadonlyArray<string>,
  edits: number,
  line: () => string,
  doubles = true
): Array<string> => {
  const out = [...lines]
  for (let i = random(edits + 1); i > 0; i--) {
    const at = random(out.length + 1)
    const how = random(doubles ? 4 : 3)
    if (how === 0) out.splice(at, 0, line())
    else if (how === 1) out.splice(at, random(3))
    else if (how === 2) out.splice(at, 1, line())
    else out.splice(at, 0, ...out.slice(at, at + 1 + random(2)))
  }
  return out
}

export interface Blob {
  readonly mode: number
  /** The content, or the target of a link, in Latin-1. */
  readonly text: string
  readonly link?: boolean
}

/** Files and links by path. Directories have mode 0755. A path that ends with "/" is a directory whose mode is the value. */
export type Flat = ReadonlyMap<string, Blob>

const f = (text: string, mode = 0o644): Blob => ({ text, mode })

/** Builds a flat tree: `{ "a/b": "text", "run": ["text", 0o755], "l": { link: "target" }, "d/": 0o700 }` */
export const flat = (entries: Record<string, string | readonly [string, number] | number | { readonly link: string }>): Flat =>
  new Map(
    Object.entries(entries).map(([path, entry]) => [
      path,
      typeof entry === "string"
        ? f(entry)
        : typeof entry === "number"
          ? f("", entry)
          : "link" in entry
            ? { text: entry.link, mode: 0, link: true }
            : f(entry[0], entry[1])
    ])
  )

interface Draft {
  kind: "directory"
  mode: number
  entries: Map<string, Node>
}

export const fileNode = (text: string, mode = 0o644): FileNode => {
  const content = bytes(text)
  return { kind: "file", mode, sizeBytes: content.length, id: blobId(content) }
}

export const treeOf = (entries: Flat): DirectoryNode => {
  const top: Draft = { kind: "directory", mode: 0o755, entries: new Map() }
  for (const [path, { link, mode, text }] of entries) {
    const isDirectory = path.endsWith("/")
    const names = path.split("/").filter((name) => name !== "")
    let parent = top
    const last = isDirectory ? undefined : names.pop()
    for (const name of names) {
      let next = parent.entries.get(name)
      if (next === undefined) parent.entries.set(name, (next = { kind: "directory", mode: 0o755, entries: new Map() } as Draft))
      parent = next as Draft
    }
    if (last === undefined) parent.mode = mode
    else parent.entries.set(last, link ? { kind: "symlink", target: text } : fileNode(text, mode))
  }
  return top
}

/** Returns a tree as a flat record with one line per entry, for comparison. */
export const shown = (top: DirectoryNode, directories = true): Record<string, string> => {
  const out: Record<string, string> = {}
  const show = (node: DirectoryNode, prefix: string): void => {
    for (const name of [...node.entries.keys()].sort()) {
      const child = node.entries.get(name)!
      const path = prefix + name
      if (child.kind === "symlink") out[path] = `-> ${child.target}`
      else if (child.kind === "file") out[path] = `${child.mode?.toString(8)} ${child.id}`
      else {
        if (directories) out[`${path}/`] = `${child.mode?.toString(8)}`
        show(child, `${path}/`)
      }
    }
  }
  if (directories) out["/"] = `${top.mode?.toString(8)}`
  show(top, "")
  return out
}

/** Returns a source that fails for a path or file outside its tree. */
export const sourceOf = (entries: Flat, tree = treeOf(entries)): Source<string> => ({
  tree,
  read: (path, file) => {
    const blob = entries.get(path)
    if (blob === undefined || blob.link || blobId(bytes(blob.text)) !== file.id) return Effect.fail(`not here: ${path}`)
    return Effect.succeed(bytes(blob.text))
  }
})
