import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as FsPath from "../../model/FsPath.ts"
import * as Slice from "../../model/Slice.ts"

const segmentsOf = (path: string): ReadonlyArray<string> => FsPath.segments(path as FsPath.FsPath)

const isPath = (segments: ReadonlyArray<string>, policy: FsPath.PathPolicy): boolean => {
  const path = FsPath.fromSegments(segments)
  return FsPath.parse(path, policy) === path && segmentsOf(path).length === segments.length
}

const pathOf = (policy: FsPath.PathPolicy): Schema.Codec<ReadonlyArray<string>, string> =>
  Schema.String.check(
    Schema.makeFilter((input: string) => typeof FsPath.parse(input, policy) === "string" || "must be a path in the root")
  ).pipe(
    Schema.decodeTo(
      Schema.Array(Schema.String).check(
        Schema.makeFilter((segments: ReadonlyArray<string>) => isPath(segments, policy) || "must be the segments of a path")
      ),
      SchemaTransformation.transform({
        decode: (input: string) => segmentsOf(FsPath.parse(input, policy) as string),
        encode: (segments: ReadonlyArray<string>): string => FsPath.fromSegments(segments)
      })
    )
  )

/**
 * The segments of a path. As text, a path is ASCII without `.` and `..`; repeated, leading and trailing slashes are dropped. The root has
 * no segments.
 *
 * @since 0.1.0
 */
export const VfsPath: Schema.Codec<ReadonlyArray<string>, string> = pathOf("vfs")
/** @since 0.1.0 */
export type VfsPath = typeof VfsPath.Type

/**
 * The facts about one file: its path, encoding, size, version and times.
 *
 * @since 0.1.0
 */
export const VfsFile = Schema.Struct({
  /** The segments of the relative path. */
  path: pathOf("standard"),
  /** `utf-8` for text without NUL, `binary` otherwise; `null` after an append to a file of unknown encoding. */
  encoding: Schema.NullOr(Schema.String),
  sizeBytes: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  /** The version: 1 for a new file, one more with each write. */
  version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  createdAt: Schema.DateTimeUtcFromString,
  updatedAt: Schema.DateTimeUtcFromString
})
/** @since 0.1.0 */
export type VfsFile = typeof VfsFile.Type

const Value = Schema.Struct({
  /** The absolute path on the machine. */
  rootPath: Schema.String,
  /** The files, ordered by their segments in code point order. */
  files: Schema.Array(VfsFile)
})

/** @since 0.1.0 */
export type VirtualFileSystem = typeof Value.Type

/**
 * The slice with the state of the filesystem. An empty slice stands for an empty filesystem without a directory. The slice only describes
 * the filesystem: a change of the slice changes no file, and the next file change overwrites the slice.
 *
 * @since 0.1.0
 */
export const VirtualFileSystem: Slice.Slice<VirtualFileSystem> = Slice.make("VirtualFileSystem", Value, {
  reduce: Slice.replaceLatest
})
