import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Change, DirectoryNode, Node } from "../history/tree.ts"
import type { FileStat, Kind } from "../model/Entry.ts"
import type { DirectoryHistory } from "../port/history.ts"
import { promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { type DebugError, toUnreadableError } from "./errors.ts"
import type { DiffEntry, TreeFile, TreeNode } from "./model.ts"

export type Tree = ReadonlyArray<TreeFile>

const inOrder = (files: Array<TreeFile>): Tree => files.sort((a, b) => FsPath.compare(a.path, b.path))

const sizeOf = (node: Node): number =>
  node.kind === "file" ? node.sizeBytes : node.kind === "symlink" ? Buffer.byteLength(node.target) : 0

export const ofNode = (top: DirectoryNode): Tree => {
  const files: Array<TreeFile> = []
  const pending: Array<readonly [FsPath.FsPath, DirectoryNode]> = [[FsPath.root, top]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [here, { entries }] = next
    for (const [name, node] of entries) {
      const path = FsPath.join(here, name)
      if (node.kind === "directory" && node.entries.size > 0) pending.push([path, node])
      else files.push({ path, size_bytes: sizeOf(node), ...(node.kind === "file" ? undefined : { kind: node.kind }) })
    }
  }
  return inOrder(files)
}

class Collector {
  readonly #files: Array<TreeFile> = []
  readonly #directories: Array<string> = []
  readonly #filled = new Set<string>()

  add(path: FsPath.FsPath, kind: Kind, size: number): void {
    this.#filled.add(FsPath.parent(path))
    if (kind === "directory") this.#directories.push(path)
    else this.#files.push({ path, size_bytes: size, ...(kind === "file" ? undefined : { kind }) })
  }

  tree(): Tree {
    for (const path of this.#directories) {
      if (!this.#filled.has(path)) this.#files.push({ path, size_bytes: 0, kind: "directory" })
    }
    return inOrder(this.#files)
  }
}

const collectByWalk = (fs: Algebra, collector: Collector): Effect.Effect<void, DebugError> =>
  Stream.runForEachArray(fs.walk(".", { sizes: true }), (entries) =>
    Effect.sync(() => {
      for (const { kind, path, sizeBytes } of entries) collector.add(path, kind, sizeBytes ?? 0)
    })
  ).pipe(Effect.mapError(toUnreadableError), Effect.provideService(Limits, unlimited))

const concurrentDirectories = 8

/** Collects the tree of a host directory with `listStamped`, which returns the sizes too and is faster than a walk. */
const collectByStamps = Effect.fnUntraced(function* (history: DirectoryHistory, collector: Collector) {
  let level: ReadonlyArray<FsPath.FsPath> = [FsPath.root]
  while (level.length > 0) {
    const found = yield* Effect.forEach(
      level,
      (here) =>
        Effect.matchEffect(history.listStamped(here), {
          // If a directory is unreadable, or was removed during the walk, list its name without its entries.
          onFailure: (fault) =>
            here === FsPath.root ? Effect.fail(toUnreadableError(promote(fault, "debug", here))) : Effect.succeed([]),
          onSuccess: (children) =>
            Effect.sync(() => {
              const below: Array<FsPath.FsPath> = []
              for (const { addressable, kind, name, sizeBytes } of children) {
                const path = FsPath.join(here, name)
                collector.add(path, kind, sizeBytes)
                if (kind === "directory" && addressable) below.push(path)
              }
              return below
            })
        }),
      { concurrency: concurrentDirectories }
    )
    level = found.flat()
  }
})

export const ofFilesystem = (fs: Algebra): Effect.Effect<Tree, DebugError> =>
  Effect.suspend(() => {
    const collector = new Collector()
    const { history } = fs.port
    const collected = history?._tag === "Directory" ? collectByStamps(history, collector) : collectByWalk(fs, collector)
    return Effect.map(collected, () => collector.tree())
  })

interface Draft {
  readonly name: string
  readonly path: string
  readonly kind: Kind
  size_bytes: number
  readonly children?: Array<Draft>
}

/** Nests the list by directory. The size of a directory is the sum of the sizes of all files below it. */
export const nested = (tree: Tree): ReadonlyArray<TreeNode> => {
  const top: Array<Draft> = []
  const known = new Map<string, Draft & { readonly children: Array<Draft> }>()
  const childrenOf = (path: FsPath.FsPath): Array<Draft> => (path === FsPath.root ? top : directoryAt(path).children)
  const directoryAt = (path: FsPath.FsPath): Draft & { readonly children: Array<Draft> } => {
    const found = known.get(path)
    if (found !== undefined) return found
    const made = { name: FsPath.name(path), path, kind: "directory" as const, size_bytes: 0, children: [] }
    known.set(path, made)
    childrenOf(FsPath.parent(path)).push(made)
    return made
  }
  for (const { kind = "file", path, size_bytes: size } of tree) {
    const at = path as FsPath.FsPath
    if (kind === "directory") {
      directoryAt(at)
      continue
    }
    for (let above = FsPath.parent(at); above !== FsPath.root; above = FsPath.parent(above))
      directoryAt(above).size_bytes += size
    childrenOf(FsPath.parent(at)).push({ name: FsPath.name(at), path, kind, size_bytes: size })
  }
  return top
}

export const count = (tree: Tree): { readonly files: number; readonly bytes: number } => {
  let [files, bytes] = [0, 0]
  for (const { kind, size_bytes: size } of tree) {
    if (kind === "directory") continue
    files++
    bytes += size
  }
  return { files, bytes }
}

const statAt = (fs: Algebra, path: FsPath.FsPath): Effect.Effect<FileStat | undefined> =>
  Effect.catch(fs.port.stat(path), () => Effect.succeed(undefined))

type Side = readonly [path: FsPath.FsPath, stat: FileStat]

interface ComparedPath {
  readonly path: FsPath.FsPath
  readonly before: FileStat | undefined
  readonly after: FileStat | undefined
}

const entryOf = ({ after, before, path }: ComparedPath): DiffEntry => ({
  change: before === undefined ? "added" : after === undefined ? "deleted" : "modified",
  path,
  kind: (after ?? before)?.kind ?? "other",
  ...(before === undefined ? undefined : { size_before: before.sizeBytes }),
  ...(after === undefined ? undefined : { size_after: after.sizeBytes })
})

const maxRenameCandidates = 500
const maxRenameBytes = 32 * 1024 * 1024

const isMovable = ({ kind, sizeBytes }: FileStat): boolean => kind === "file" && sizeBytes > 0 && sizeBytes <= maxRenameBytes

const versions = Effect.fnUntraced(function* (fs: Algebra, sides: ReadonlyArray<Side>) {
  const known = new Map<string, FsPath.FsPath>()
  for (const [path] of sides) {
    const version = yield* Effect.catch(fs.version(path), () => Effect.succeed(undefined))
    if (version !== undefined && !known.has(version)) known.set(version, path)
  }
  return known
})

/** Maps the new paths of renamed files to their old paths. A file counts as renamed only if its content is unchanged. */
const findRenames = Effect.fnUntraced(function* (before: Algebra, after: Algebra, comparedPaths: ReadonlyArray<ComparedPath>) {
  const removedFiles: Array<Side> = []
  const addedFiles: Array<Side> = []
  for (const { after, before, path } of comparedPaths) {
    if (before !== undefined && after === undefined && isMovable(before)) removedFiles.push([path, before])
    if (after !== undefined && before === undefined && isMovable(after)) addedFiles.push([path, after])
  }
  const [removedSizes, addedSizes] = [removedFiles, addedFiles].map(
    (sides) => new Set(sides.map(([, { sizeBytes }]) => sizeBytes))
  )
  const [from, to] = [
    removedFiles.filter(([, { sizeBytes }]) => addedSizes!.has(sizeBytes)),
    addedFiles.filter(([, { sizeBytes }]) => removedSizes!.has(sizeBytes))
  ]
  const out = new Map<FsPath.FsPath, FsPath.FsPath>()
  if (from.length === 0 || to.length === 0 || from.length + to.length > maxRenameCandidates) return out
  const [was, is] = [yield* versions(before, from), yield* versions(after, to)]
  for (const [version, path] of is) {
    const old = was.get(version)
    if (old !== undefined) out.set(path, old)
  }
  return out
})

/** Omits a changed directory if it contains other changed entries. */
const withoutFilled = (comparedPaths: ReadonlyArray<ComparedPath>): ReadonlyArray<ComparedPath> => {
  const filled = new Set<string>()
  for (const { path } of comparedPaths) {
    for (let above = path; above !== FsPath.root;) {
      above = FsPath.parent(above)
      if (filled.has(above)) break
      filled.add(above)
    }
  }
  return comparedPaths.filter(({ after, before, path }) => (after ?? before)?.kind !== "directory" || !filled.has(path))
}

export const entriesOf = Effect.fnUntraced(
  function* (changes: ReadonlyArray<Change>, before: Algebra, after: Algebra) {
    const comparedPaths = withoutFilled(
      yield* Effect.forEach(
        changes,
        ({ path }) =>
          Effect.map(Effect.all([statAt(before, path), statAt(after, path)]), ([before, after]): ComparedPath => ({
            path,
            before,
            after
          })),
        { concurrency: 16 }
      )
    )
    const from = yield* findRenames(before, after, comparedPaths)
    const renamedSources = new Set(from.values())
    const entries: Array<DiffEntry> = []
    for (const one of comparedPaths) {
      const was = from.get(one.path)
      if (was !== undefined) {
        entries.push({ ...entryOf(one), change: "renamed", from_path: was, size_before: one.after!.sizeBytes })
      } else if (!renamedSources.has(one.path)) entries.push(entryOf(one))
    }
    return entries
  },
  Effect.provideService(Limits, unlimited)
)
