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

export interface StoredDirectory {
  readonly mode: number
  readonly entries: ReadonlyMap<string, TreeEntry>
}

export const readDirectory = (reader: Reader, id: string): Effect.Effect<StoredDirectory, StoreFault> =>
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

interface UnsizedFile {
  readonly into: Map<string, Node>
  readonly segment: string
  readonly entry: TreeEntry
}

const addSizes = Effect.fnUntraced(function* (
  reader: Reader,
  files: ReadonlyArray<UnsizedFile>
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
  readonly onLoaded: (directory: DirectoryNode) => void
}

const maxDepth = 4096
const maxUnsizedFiles = 2000

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
  let entryCount = 0
  const unsizedFiles: Array<UnsizedFile> = []
  const pending: Array<Pending> = [{ id, known, depth: 0, onLoaded: (directory) => void (top = directory) }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { depth, id, known, onLoaded } = next
    if (known?.id === id) {
      onLoaded(known)
      continue
    }
    if (depth > maxDepth) return yield* Effect.fail(storeFault("corrupt", "its directories are too deep"))
    const { entries, mode } = yield* readDirectory(reader, id)
    // A few objects that refer to each other can expand to millions of entries.
    entryCount += entries.size
    if (entryCount > maxEntries) return yield* Effect.fail(storeFault("budget", `it has more than ${maxEntries} entries`))
    const nodes = new Map<string, Node>()
    for (const [segment, entry] of entries) {
      const before = known?.entries.get(segment)
      if (entry.kind === "directory") {
        const below = before?.kind === "directory" ? before : undefined
        pending.push({
          id: entry.id,
          known: below,
          depth: depth + 1,
          onLoaded: (directory) => void nodes.set(segment, directory)
        })
      } else if (entry.kind === "symlink") nodes.set(segment, yield* linkOf(reader, entry))
      else if (before?.kind === "file" && before.id === entry.id) {
        nodes.set(segment, { kind: "file", id: entry.id, mode: entry.mode, sizeBytes: before.sizeBytes })
      } else {
        unsizedFiles.push({ into: nodes, segment, entry })
        if (unsizedFiles.length >= maxUnsizedFiles) yield* addSizes(reader, unsizedFiles.splice(0))
      }
    }
    onLoaded({ kind: "directory", mode, entries: nodes, id })
  }
  yield* addSizes(reader, unsizedFiles)
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
export const readNodes = Effect.fnUntraced(function* (reader: Reader, id: string): Effect.fn.Return<Directory, StoreFault> {
  const { entries, mode } = yield* readDirectory(reader, id)
  const nodes = new Map<string, Node>()
  const unsizedFiles: Array<UnsizedFile> = []
  for (const [segment, entry] of entries) {
    if (entry.kind === "directory") nodes.set(segment, { kind: "directory", id: entry.id, entries: new Map() })
    else if (entry.kind === "symlink") nodes.set(segment, yield* linkOf(reader, entry))
    else unsizedFiles.push({ into: nodes, segment, entry })
  }
  yield* addSizes(reader, unsizedFiles)
  return { mode, entries: nodes }
})
