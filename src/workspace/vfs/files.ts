/**
 * The facts about the files are an immutable map that shares its structure with earlier versions, so a write costs the same
 * for any number of files. The sorted list in the session is computed on first access.
 */
import type * as DateTime from "effect/DateTime"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as FsPath from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { VfsFile, VirtualFileSystem } from "./value.ts"

/** The facts by path. The path is folded if the filesystem is not case-sensitive. */
export interface Files {
  readonly byPath: HashMap.HashMap<string, VfsFile>
  readonly caseSensitive: boolean
}

export const noFiles = (caseSensitive: boolean): Files => ({ byPath: HashMap.empty(), caseSensitive })

const keyOf = (self: Files, path: FsPath.FsPath): string => (self.caseSensitive ? path : FsPath.fold(path))

const pathOf = (file: VfsFile): FsPath.FsPath => FsPath.fromSegments(file.path)

const fileOf = (path: FsPath.FsPath, facts: Omit<VfsFile, "path">): VfsFile =>
  Object.freeze({ path: Object.freeze(FsPath.segments(path)), ...facts })

export const get = (self: Files, path: FsPath.FsPath): VfsFile | undefined =>
  Option.getOrUndefined(HashMap.get(self.byPath, keyOf(self, path)))

/** Returns the path itself if it is a file, otherwise the files below it. */
export const filesWithin = (self: Files, path: FsPath.FsPath): ReadonlyArray<FsPath.FsPath> => {
  if (get(self, path) !== undefined) return [path]
  const key = keyOf(self, path) as FsPath.FsPath
  return [...HashMap.values(self.byPath)].map(pathOf).filter((each) => FsPath.isWithin(key, keyOf(self, each) as FsPath.FsPath))
}

export interface WriteFacts {
  readonly path: FsPath.FsPath
  readonly mode: "create" | "replace" | "append"
  readonly encoding: string | null
  readonly sizeBytes: number
  readonly at: DateTime.Utc
  readonly created: DateTime.Utc
}

/** Records a write. A created file gets version 1, even if its name was used before. */
export const recordWrite = (self: Files, { at, created, encoding, mode, path, sizeBytes }: WriteFacts): Files => {
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

export const recordRemoval = (self: Files, path: FsPath.FsPath): Files => {
  const removedKeys = filesWithin(self, path).map((each) => keyOf(self, each))
  return removedKeys.length === 0 ? self : { ...self, byPath: HashMap.removeMany(self.byPath, removedKeys) }
}

/** Records a move. Facts move along. A file that replaces another gets a version that the replaced file never had. */
export const recordMove = (self: Files, from: FsPath.FsPath, to: FsPath.FsPath): Files => {
  const replaced = get(self, to)
  // A file cannot have entries below it, and searching for them would cost time for every file.
  const isFile = get(self, from) !== undefined
  const rest = isFile ? { ...self, byPath: HashMap.remove(self.byPath, keyOf(self, to)) } : recordRemoval(self, to)
  let { byPath } = recordRemoval(rest, from)
  for (const old of filesWithin(self, from)) {
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

/** Tests whether the path is temporary, and will be renamed when it is complete. */
export const isHidden: (path: FsPath.FsPath) => boolean = TemporaryNames.hasOwnName

const visibleFiles = (self: Files): ReadonlyArray<VfsFile> =>
  [...HashMap.values(self.byPath)].filter((file) => !isHidden(pathOf(file))).sort(bySegments)

export const valueOf = (self: Files, rootPath: string): VirtualFileSystem => {
  let sorted: ReadonlyArray<VfsFile> | undefined
  return Object.freeze({
    rootPath,
    get files() {
      return (sorted ??= Object.freeze(visibleFiles(self)))
    }
  })
}
