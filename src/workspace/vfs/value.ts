/** What a session holds of a virtual filesystem: where it is, and of each file what its disk does not know. */
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
 * The segments of a path, which as text is one: ASCII, without `.` and `..`; repeated slashes, a leading and a trailing one are dropped.
 * No segments are the root.
 *
 * @since 0.1.0
 */
export const VfsPath: Schema.Codec<ReadonlyArray<string>, string> = pathOf("vfs")
/** @since 0.1.0 */
export type VfsPath = typeof VfsPath.Type

/**
 * A file of the state, with its content and its version.
 *
 * @since 0.1.0
 */
export const VfsFile = Schema.Struct({
  /** Relative, its segments. */
  path: pathOf("standard"),
  /** `utf-8` for text without NUL, `binary` for what is none; `null` where something was appended to what nobody had looked at. */
  encoding: Schema.NullOr(Schema.String),
  sizeBytes: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  /** 1 when it is made, one more with each write. */
  version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  createdAt: Schema.DateTimeUtcFromString,
  updatedAt: Schema.DateTimeUtcFromString
})
/** @since 0.1.0 */
export type VfsFile = typeof VfsFile.Type

const Value = Schema.Struct({
  /** Absolute, on the machine. */
  rootPath: Schema.String,
  /** In the order of their segments, by code point. */
  files: Schema.Array(VfsFile)
})

/** @since 0.1.0 */
export type VirtualFileSystem = typeof Value.Type

/**
 * The slice; none in it is an empty filesystem that has no directory yet. It tells what is there, and changes nothing there: what others
 * put into it is overruled by the next change of a file.
 *
 * @since 0.1.0
 */
export const VirtualFileSystem: Slice.Slice<VirtualFileSystem> = Slice.make("VirtualFileSystem", Value, {
  reduce: Slice.replaceLatest
})
