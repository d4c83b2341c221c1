/**
 * The facts about the files of a VfsState, as an immutable map that shares its structure with earlier versions. The cost of a
 * write therefore does not depend on the number of files. The sorted list for the session is computed on first access.
 */
import type * as DateTime from "effect/DateTime"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { Mode } from "../../backends/writing.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Slice from "../../model/Slice.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

const segmentsOf = (path: string): ReadonlyArray<string> => FsPath.segments(path as FsPath.FsPath)

const isPath = (segments: ReadonlyArray<string>, policy: FsPath.PathPolicy): boolean => {
  const path = FsPath.fromSegments(segments)
  return FsPath.parse(path, policy) === path && segmentsOf(path).length === segments.length
}

const valuePath = (policy: FsPath.PathPolicy): Schema.Codec<ReadonlyArray<string>, string> =>
  Schema.String.check(
    Schema.makeFilter(
      (input: string) => typeof FsPath.parse(input, policy) === "string" || "the text must be a path inside the root"
    )
  ).pipe(
    Schema.decodeTo(
      Schema.Array(Schema.String).check(
        Schema.makeFilter(
          (segments: ReadonlyArray<string>) => isPath(segments, policy) || "the array must be the segments of a path"
        )
      ),
      SchemaTransformation.transform({
        decode: (input: string) => segmentsOf(FsPath.parse(input, policy) as string),
        encode: (segments: ReadonlyArray<string>): string => FsPath.fromSegments(segments)
      })
    )
  )

/**
 * The segments of a path. The text form is ASCII without `.` and `..`. Repeated, leading and trailing slashes are dropped. The
 * root has no segments.
 *
 * @since 0.1.0
 */
export const VfsPath: Schema.Codec<ReadonlyArray<string>, string> = valuePath("vfs")
/** @since 0.1.0 */
export type VfsPath = typeof VfsPath.Type

/**
 * The facts about one file: its path, encoding, size, version and times.
 *
 * @since 0.1.0
 */
export const VfsFile = Schema.Struct({
  /** The segments of the path, relative to the root. */
  path: valuePath("standard"),
  /**
   * The encoding: `utf-8` for text without NUL, `binary` for other contents, or `null` after an append to a file of unknown
   * encoding.
   */
  encoding: Schema.NullOr(Schema.String),
  sizeBytes: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  /** The version: 1 for a new file, and one more after each write. A move that replaces a file increases the version too. */
  version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  createdAt: Schema.DateTimeUtcFromString,
  updatedAt: Schema.DateTimeUtcFromString
})
/** @since 0.1.0 */
export type VfsFile = typeof VfsFile.Type

const Value = Schema.Struct({
  /** The absolute path on the machine. */
  rootPath: Schema.String,
  /** The files, sorted by the code points of their segments. */
  files: Schema.Array(VfsFile)
})

/** @since 0.1.0 */
export type VirtualFileSystem = typeof Value.Type

/**
 * The slice that describes the files of the filesystem. The slice is empty while the filesystem has no directory. A change of
 * the slice changes no file, and the next change of a file overwrites the slice.
 *
 * @since 0.1.0
 */
export const VirtualFileSystem: Slice.Slice<VirtualFileSystem> = Slice.make("VirtualFileSystem", Value, {
  reduce: Slice.replaceLatest
})

/** The facts about all files by path. The keys are case-folded if the filesystem is not case-sensitive. */
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

/** Returns the path itself if it is a file. Otherwise returns the files below the path. */
export const filesWithin = (self: Files, path: FsPath.FsPath): ReadonlyArray<FsPath.FsPath> => {
  if (get(self, path) !== undefined) return [path]
  const key = keyOf(self, path) as FsPath.FsPath
  return [...HashMap.values(self.byPath)].map(pathOf).filter((each) => FsPath.isWithin(key, keyOf(self, each) as FsPath.FsPath))
}

interface WriteFacts {
  readonly path: FsPath.FsPath
  readonly mode: Mode
  readonly encoding: string | null
  readonly sizeBytes: number
  readonly at: DateTime.Utc
  readonly created: DateTime.Utc
}

/** Records a write. A new file gets version 1, even if an earlier file had the same path. */
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

/**
 * Records a move. The facts move with the files. If a file replaces another file, its new version is higher than the versions
 * of both.
 */
export const recordMove = (self: Files, from: FsPath.FsPath, to: FsPath.FsPath): Files => {
  const replaced = get(self, to)
  // Do not search below a file, because the search would visit every file.
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

/** Tests whether the path is temporary. A temporary file is renamed when its content is complete. */
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
