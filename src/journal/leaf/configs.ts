import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { parseRoot } from "../../backends/windows/names.ts"

const trueByDefault = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true)))
const falseByDefault = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))

const commonSettings = {
  /** True if writes are allowed; otherwise they fail with AccessDenied. @default true */
  allowWrite: trueByDefault,
  /** True if deletions are allowed. Overwriting counts as writing. @default true */
  allowDelete: trueByDefault,
  /** The size of a chunk in bytes. @default 65,536 */
  chunkSize: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).pipe(Schema.withDecodingDefaultKey(Effect.succeed(65_536))),
  /** The largest size in bytes of a content that is one entry. @default 1,048,576 */
  streamingThreshold: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(1_048_576))
  )
}

const posixRoot = Schema.String.check(
  Schema.makeFilter((path: string) => (path.startsWith("/") && !path.includes("\0")) || "must be an absolute path")
)
const windowsRoot = Schema.String.check(
  Schema.makeFilter((path: string) => {
    const root = parseRoot(path)
    return !("_tag" in root) || `must be an absolute path of Windows: ${String(root["detail"])}`
  })
)

/**
 * The settings of a leaf over a directory of a POSIX machine.
 *
 * @since 0.1.0
 */
export const PosixFS = Schema.Struct({
  /** The absolute path of the root directory. Nothing outside it is ever accessed. */
  rootPath: posixRoot,
  ...commonSettings,
  /**
   * True if FileStat follows a symlink. With `false` it describes the link itself, with `isSymlink`, and FileRead still reads the link's
   * target. @default true
   */
  followSymlinks: trueByDefault,
  /** True if a copy keeps permission bits. @default false */
  preservePermissions: falseByDefault
})
/** @since 0.1.0 */
export type PosixFS = typeof PosixFS.Type

/**
 * The settings of a leaf over a directory of a Windows machine.
 *
 * @since 0.1.0
 */
export const WindowsFS = Schema.Struct({
  /** The root directory, as `C:\directory` or `\\server\share\directory`. Nothing outside it is ever accessed. */
  rootPath: windowsRoot,
  ...commonSettings,
  /** True if paths may have more than 260 characters. @default true */
  useLongPaths: trueByDefault
})
/** @since 0.1.0 */
export type WindowsFS = typeof WindowsFS.Type

/**
 * The settings of a leaf over a tree in memory.
 *
 * @since 0.1.0
 */
export const MockFS = Schema.Struct({
  ...commonSettings,
  /** True if FileStat follows a symlink, as in `PosixFS`. @default true */
  followSymlinks: trueByDefault,
  /** True if names are compared without case, as Windows does. @default false */
  caseInsensitive: falseByDefault
})
/** @since 0.1.0 */
export type MockFS = typeof MockFS.Type
