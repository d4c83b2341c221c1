/**
 * Loads trees from the store. A directory whose id is already known is not read again, so comparing similar trees reads
 * little.
 */
import * as Effect from "effect/Effect"
import type { StoreFault } from "../errors.ts"
import { storeFault } from "../errors.ts"
import type { DirectoryNode, FileNode, LinkNode, Node } from "../tree.ts"
import type { Reader } from "./reader.ts"
import { decodeTree, emptyTreeId, type TreeEntry, withModes } from "./treeObject.ts"

const bodyOf = (reader: Reader, id: string, kind: "blob" | "tree"): Effect.Effect<Buffer, StoreFault> =>
  Effect.flatMap(reader.object(id), (found) =>
    found.kind === kind
      ? Effect.succeed(found.body)
      : Effect.fail(storeFault("corrupt", `${id} is a ${found.kind}, where a ${kind} should be`))
  )

/** Reads the target of a symlink. Rejects targets that this library cannot have written, such as invalid UTF-8. */
const targetOf = (reader: Reader, id: string): Effect.Effect<string, StoreFault> =>
  Effect.flatMap(bodyOf(reader, id, "blob"), (body) => {
    const target = body.toString()
    return Buffer.from(target).equals(body) && !target.includes("\0") && target !== ""
      ? Effect.succeed(target)
      : Effect.fail(storeFault("corrupt", `${id} is no target of a link`))
  })

export interface Shallow {
  readonly mode: number
  readonly entries: ReadonlyMap<string, TreeEntry>
}

export const readDirectory = (reader: Reader, id: string): Effect.Effect<Shallow, StoreFault> =>
  id === emptyTreeId
    ? Effect.succeed({ mode: 0o755, entries: new Map() })
    : Effect.flatMap(bodyOf(reader, id, "tree"), (body) =>
        Effect.flatMap(Effect.fromResult(decodeTree(body)), (decoded) =>
          decoded.modes === undefined
            ? Effect.fromResult(withModes(decoded, undefined))
            : Effect.flatMap(bodyOf(reader, decoded.modes, "blob"), (modes) => Effect.fromResult(withModes(decoded, modes)))
        )
      )

const linkOf = (reader: Reader, { id }: TreeEntry): Effect.Effect<LinkNode, StoreFault> =>
  Effect.map(targetOf(reader, id), (target) => ({ kind: "symlink", target }))

interface Unsized {
  readonly into: Map<string, Node>
  readonly segment: string
  readonly entry: TreeEntry
}

const giveSizes = Effect.fnUntraced(function* (
  reader: Reader,
  files: ReadonlyArray<Unsized>
): Effect.fn.Return<void, StoreFault> {
  const sizes = yield* reader.sizes(files.map(({ entry }) => entry.id))
  for (const [i, { entry, into, segment }] of files.entries()) {
    const found = sizes[i]
    if (found?.kind !== "blob") return yield* Effect.fail(storeFault("corrupt", `the store lacks the content ${entry.id}`))
    const file: FileNode = { kind: "file", id: entry.id, mode: entry.mode, sizeBytes: found.size }
    into.set(segment, file)
  }
})

interface Pending {
  readonly id: string
  readonly known: DirectoryNode | undefined
  readonly depth: number
  readonly put: (directory: DirectoryNode) => void
}

const maxDepth = 4096
const batch = 2000

/**
 * Loads the whole tree below an id. `known` is a similar tree with valid ids. Fails with "budget" beyond `maxEntries`.
 */
export const load = Effect.fnUntraced(function* (
  reader: Reader,
  id: string,
  known: DirectoryNode | undefined,
  maxEntries: number
): Effect.fn.Return<DirectoryNode, StoreFault> {
  let top: DirectoryNode | undefined
  let seen = 0
  const unsized: Array<Unsized> = []
  const pending: Array<Pending> = [{ id, known, depth: 0, put: (directory) => void (top = directory) }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { depth, id, known, put } = next
    if (known?.id === id) {
      put(known)
      continue
    }
    if (depth > maxDepth) return yield* Effect.fail(storeFault("corrupt", "its directories are too deep"))
    const { entries, mode } = yield* readDirectory(reader, id)
    // A few objects that refer to each other can expand to millions of entries.
    seen += entries.size
    if (seen > maxEntries) return yield* Effect.fail(storeFault("budget", `it has more than ${maxEntries} entries`))
    const nodes = new Map<string, Node>()
    for (const [segment, entry] of entries) {
      const before = known?.entries.get(segment)
      if (entry.kind === "directory") {
        const below = before?.kind === "directory" ? before : undefined
        pending.push({ id: entry.id, known: below, depth: depth + 1, put: (directory) => void nodes.set(segment, directory) })
      } else if (entry.kind === "symlink") nodes.set(segment, yield* linkOf(reader, entry))
      else if (before?.kind === "file" && before.id === entry.id) {
        nodes.set(segment, { kind: "file", id: entry.id, mode: entry.mode, sizeBytes: before.sizeBytes })
      } else {
        unsized.push({ into: nodes, segment, entry })
        if (unsized.length >= batch) yield* giveSizes(reader, unsized.splice(0))
      }
    }
    put({ kind: "directory", mode, entries: nodes, id })
  }
  yield* giveSizes(reader, unsized)
  return top!
})

export interface Directory {
  readonly mode: number
  readonly entries: ReadonlyMap<string, Node>
}

/**
 * Reads one directory, so that a caller can look into a tree without loading it. Subdirectories have ids, but neither
 * modes nor entries.
 */
export const directoryOf = Effect.fnUntraced(function* (reader: Reader, id: string): Effect.fn.Return<Directory, StoreFault> {
  const { entries, mode } = yield* readDirectory(reader, id)
  const nodes = new Map<string, Node>()
  const unsized: Array<Unsized> = []
  for (const [segment, entry] of entries) {
    if (entry.kind === "directory") nodes.set(segment, { kind: "directory", id: entry.id, entries: new Map() })
    else if (entry.kind === "symlink") nodes.set(segment, yield* linkOf(reader, entry))
    else unsized.push({ into: nodes, segment, entry })
  }
  yield* giveSizes(reader, unsized)
  return { mode, entries: nodes }
})
