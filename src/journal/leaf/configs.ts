/** The leaves of the seed by their settings. What is missing gets its default, what is wrong is told when a leaf is built. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { parseRoot } from "../../backends/internal/windows/paths.ts"

const on = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true)))
const off = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))

const common = {
  /** Whether anything may be written; AccessDenied where not. @default true */
  allowWrite: on,
  /** Whether anything may be deleted; overwriting is writing. @default true */
  allowDelete: on,
  /** Bytes of a chunk. @default 65,536 */
  chunkSize: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).pipe(Schema.withDecodingDefaultKey(Effect.succeed(65_536))),
  /** Bytes up to which a content is one entry. @default 1,048,576 */
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
 * A directory of a POSIX machine.
 *
 * @since 0.1.0
 */
export const PosixFS = Schema.Struct({
  /** Absolute; nothing outside is ever touched. */
  rootPath: posixRoot,
  ...common,
  /** `false`: FileStat tells of the link itself, with `isSymlink`; FileRead reads what it leads to all the same. @default true */
  followSymlinks: on,
  /** Whether a copy keeps permission bits. @default false */
  preservePermissions: off
})
/** @since 0.1.0 */
export type PosixFS = typeof PosixFS.Type

/**
 * A directory of a Windows machine.
 *
 * @since 0.1.0
 */
export const WindowsFS = Schema.Struct({
  /** `C:\directory` or `\\server\share\directory`; nothing outside is ever touched. */
  rootPath: windowsRoot,
  ...common,
  /** Take paths of more than 260 characters. @default true */
  useLongPaths: on
})
/** @since 0.1.0 */
export type WindowsFS = typeof WindowsFS.Type

/**
 * A tree in memory.
 *
 * @since 0.1.0
 */
export const MockFS = Schema.Struct({
  ...common,
  /** As `PosixFS`. @default true */
  followSymlinks: on,
  /** Compare names as Windows does. @default false */
  caseInsensitive: off
})
/** @since 0.1.0 */
export type MockFS = typeof MockFS.Type
