/**
 * What is known of the files, as a map that shares all but what changes with the one before, so that a write costs the same however
 * many there are. The sorted list that a session shows of it is made when somebody looks.
 */
import type * as DateTime from "effect/DateTime"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as FsPath from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { VfsFile, VirtualFileSystem } from "./value.ts"

/** By path, folded where case does not distinguish. Nothing changes it. */
export interface Files {
  readonly byPath: HashMap.HashMap<string, VfsFile>
  readonly caseSensitive: boolean
}

export const none = (caseSensitive: boolean): Files => ({ byPath: HashMap.empty(), caseSensitive })

const keyOf = (self: Files, path: FsPath.FsPath): string => (self.caseSensitive ? path : FsPath.fold(path))

const pathOf = (file: VfsFile): FsPath.FsPath => FsPath.fromSegments(file.path)

const fileOf = (path: FsPath.FsPath, facts: Omit<VfsFile, "path">): VfsFile =>
  Object.freeze({ path: Object.freeze(FsPath.segments(path)), ...facts })

export const get = (self: Files, path: FsPath.FsPath): VfsFile | undefined =>
  Option.getOrUndefined(HashMap.get(self.byPath, keyOf(self, path)))

/** Of the path itself, and of all below it. */
export const within = (self: Files, path: FsPath.FsPath): ReadonlyArray<FsPath.FsPath> => {
  if (get(self, path) !== undefined) return [path]
  const key = keyOf(self, path) as FsPath.FsPath
  return [...HashMap.values(self.byPath)].map(pathOf).filter((each) => FsPath.isWithin(key, keyOf(self, each) as FsPath.FsPath))
}

export interface Written {
  readonly path: FsPath.FsPath
  readonly mode: "create" | "replace" | "append"
  readonly encoding: string | null
  readonly sizeBytes: number
  readonly at: DateTime.Utc
  /** Counts where the file is new. */
  readonly created: DateTime.Utc
}

/** What was created is new, whatever had the name before. */
export const written = (self: Files, { at, created, encoding, mode, path, sizeBytes }: Written): Files => {
  const before = mode === "create" ? undefined : get(self, path)
  const file = fileOf(path, {
    encoding,
    sizeBytes,
    version: (before?.version ?? 0) + 1,
    createdAt: before?.createdAt ?? created,
    updatedAt: at
  })
  return { ...self, byPath: HashMap.set(self.byPath, keyOf(self, path), file) }
}

/** A file, or all that is below a directory. */
export const removed = (self: Files, path: FsPath.FsPath): Files => {
  const gone = within(self, path).map((each) => keyOf(self, each))
  return gone.length === 0 ? self : { ...self, byPath: HashMap.removeMany(self.byPath, gone) }
}

/** Everything goes along, but that a file which takes the place of another has a version that this one never had. */
export const moved = (self: Files, from: FsPath.FsPath, to: FsPath.FsPath): Files => {
  const replaced = get(self, to)
  // A file takes the place of a file, and of nothing below: looking for that would cost as much as there are files.
  const isFile = get(self, from) !== undefined
  const rest = isFile ? { ...self, byPath: HashMap.remove(self.byPath, keyOf(self, to)) } : removed(self, to)
  let { byPath } = removed(rest, from)
  for (const old of within(self, from)) {
    const path = FsPath.below(to, FsPath.relative(from, old))
    const { path: _, ...facts } = get(self, old)!
    const version = replaced === undefined ? facts.version : Math.max(facts.version, replaced.version) + 1
    byPath = HashMap.set(byPath, keyOf(self, path), fileOf(path, { ...facts, version }))
  }
  return { ...self, byPath }
}

const bySegments = (self: VfsFile, that: VfsFile): number => {
  const length = Math.min(self.path.length, that.path.length)
  for (let i = 0; i < length; i++) {
    const order = FsPath.compare(self.path[i]!, that.path[i]!)
    if (order !== 0) return order
  }
  return self.path.length - that.path.length
}

/** What is in the making, and moves to where it belongs when it is done. */
export const isHidden: (path: FsPath.FsPath) => boolean = TemporaryNames.isPathOfOurs

const shown = (self: Files): ReadonlyArray<VfsFile> =>
  [...HashMap.values(self.byPath)].filter((file) => !isHidden(pathOf(file))).sort(bySegments)

/** As a session holds it. */
export const valueOf = (self: Files, rootPath: string): VirtualFileSystem => {
  let sorted: ReadonlyArray<VfsFile> | undefined
  return Object.freeze({
    rootPath,
    get files() {
      return (sorted ??= Object.freeze(shown(self)))
    }
  })
}
