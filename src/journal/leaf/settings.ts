/** The validation of a leaf's options and settings. All durations of the result are in milliseconds. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { parseRoot } from "../../backends/windows/names.ts"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { InvalidArgument, promote } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Limits from "../../model/Limits.ts"

const trueByDefault = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true)))
const falseByDefault = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))

const commonSettings = {
  /** True if all changes except deletions are allowed. If not, such changes fail with AccessDenied. @default true */
  allowWrite: trueByDefault,
  /** True if deletions are allowed. A move also needs `allowWrite`. Replacing a file counts as writing. @default true */
  allowDelete: trueByDefault,
  /** The size of a chunk in bytes. @default 65,536 */
  chunkSize: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).pipe(Schema.withDecodingDefaultKey(Effect.succeed(65_536))),
  /** The largest size, in bytes, of a content that is sent as one entry. @default 1,048,576 */
  streamingThreshold: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(1_048_576))
  )
}

const posixRoot = Schema.String.check(
  Schema.makeFilter((path: string) => (path.startsWith("/") && !path.includes("\0")) || "the root must be an absolute path")
)
const windowsRoot = Schema.String.check(
  Schema.makeFilter((path: string) => {
    const root = parseRoot(path)
    return !("_tag" in root) || `the root must be an absolute Windows path: ${String(root["detail"])}`
  })
)

/**
 * The settings of a leaf over a directory on a POSIX system.
 *
 * @since 0.1.0
 */
export const PosixFS = Schema.Struct({
  /** The absolute path of the root directory. The leaf never accesses entries outside the root. */
  rootPath: posixRoot,
  ...commonSettings,
  /**
   * True if FileStat follows a symlink. If false, FileStat describes the link itself, with `isSymlink`. FileRead reads the
   * target of the link in both cases.
   * @default true
   */
  followSymlinks: trueByDefault,
  /** True if a copy keeps permission bits. @default false */
  preservePermissions: falseByDefault
})
/** @since 0.1.0 */
export type PosixFS = typeof PosixFS.Type

/**
 * The settings of a leaf over a directory on Windows.
 *
 * @since 0.1.0
 */
export const WindowsFS = Schema.Struct({
  /** The root directory, as `C:\directory` or `\\server\share\directory`. The leaf never accesses entries outside the root. */
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
  /** True if names that differ only in case are the same, as on Windows. @default false */
  caseInsensitive: falseByDefault
})
/** @since 0.1.0 */
export type MockFS = typeof MockFS.Type

const linkSettings = {
  /** True if FileStat follows a symlink, as in `PosixFS`. @default true */
  followSymlinks: trueByDefault,
  /** True if a copy keeps permission bits, as in `PosixFS`. @default false */
  preservePermissions: falseByDefault
}

/**
 * The settings of a leaf over a bucket. The secrets are options of `s3FS`.
 *
 * @since 0.1.0
 */
export const S3FS = Schema.Struct({
  bucket: Schema.String,
  /** The keys of the files begin with this prefix. The leaf never accesses other objects. @default "" */
  keyPrefix: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  /** The address of the store, such as `http://127.0.0.1:9000`. @default AWS S3 in the region */
  endpoint: Schema.optionalKey(Schema.String),
  /** @default "us-east-1" */
  region: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("us-east-1"))),
  ...commonSettings,
  ...linkSettings,
  /** True to keep permission bits, times and symlinks as metadata of the objects, as in `Bucket`. @default false */
  metadata: falseByDefault,
  /** True to refuse a store that ignores the conditions of writes, as in `Bucket`. @default true */
  conditional: trueByDefault
})
/** @since 0.1.0 */
export type S3FS = typeof S3FS.Type

/**
 * The settings of a leaf over a directory of an SSH server. The secrets are options of `sftpFS`.
 *
 * @since 0.1.0
 */
export const SftpFS = Schema.Struct({
  host: Schema.String,
  /** @default 22 */
  port: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65_535 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(22))
  ),
  username: Schema.String,
  /** The directory on the server, absolute or relative to the login directory. */
  rootPath: Schema.String.check(
    Schema.makeFilter((path: string) => (path !== "" && !path.includes("\0")) || "the root must be a directory on the server")
  ),
  /** The socket of an SSH agent, such as the value of SSH_AUTH_SOCK. */
  agent: Schema.optionalKey(Schema.String),
  /** The known_hosts file with the keys of the server. A server with another key is refused. */
  knownHosts: Schema.optionalKey(Schema.String),
  /** SHA-256 fingerprints of the server's keys, instead of `knownHosts`. Without both, every server is refused. @default none */
  hostKeys: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  ...commonSettings,
  ...linkSettings,
  /** True if a completed write is on the server's disk, as `durability: "file"` of `Sftp`. @default true */
  durable: trueByDefault,
  /** True to replace a file in two steps on servers that cannot replace it atomically, as in `Sftp`. @default false */
  unsafeReplace: falseByDefault
})
/** @since 0.1.0 */
export type SftpFS = typeof SftpFS.Type

/**
 * The options of a leaf.
 *
 * @since 0.1.0
 */
export interface LeafOptions {
  /**
   * The name of the leaf, which must be the same after a restart.
   * @default the name of the backend or of the settings, such as "PosixFS", with the prefix if there is one
   */
  readonly name?: string | undefined
  /** The prefix of the paths that this leaf claims. Paths stay relative to the root of the filesystem. @default all paths */
  readonly prefix?: string | undefined
  /** True if all changes except deletions are allowed. If not, such changes fail with AccessDenied. @default true */
  readonly allowWrite?: boolean | undefined
  /**
   * True if deletions are allowed. If not, deletions fail with AccessDenied. A move needs `allowDelete` and `allowWrite`.
   * Replacing a file needs only `allowWrite`.
   * @default true
   */
  readonly allowDelete?: boolean | undefined
  /** The size of a chunk in bytes. Only the last chunk may be shorter. @default 65,536 */
  readonly chunkSize?: number | undefined
  /** The largest size, in bytes, of a content that is sent as one entry. @default 1,048,576 */
  readonly streamingThreshold?: number | undefined
  /**
   * True if FileStat follows a symlink. If false, FileStat describes the link itself. FileRead reads the target of the link in
   * both cases.
   * @default the setting of the filesystem, usually true
   */
  readonly followSymlinks?: boolean | undefined
  /**
   * True if a copy through a branch keeps its permission bits. Needs `extended`. @default false, unless the filesystem's layer
   * sets it
   */
  readonly preservePermissions?: boolean | undefined
  /**
   * The rules for names. With `windows`, names that Windows does not support fail with InvalidPath on any disk.
   * @default "posix"
   */
  readonly names?: "posix" | "windows" | undefined
  /** The largest number of requests that run at the same time. @default 16 */
  readonly concurrency?: number | undefined
  /** The timeout of a request. For a large content, the longest time without progress. @default 30 seconds */
  readonly timeout?: Duration.Input | undefined
  /** The longest wait for the next chunk of a write. @default 60 seconds */
  readonly idle?: Duration.Input | undefined
  /**
   * The longest wait of a request for a leaf that serves its path. After this wait, the request fails with Unavailable.
   * @default 5 seconds
   */
  readonly grace?: Duration.Input | undefined
  /**
   * The treatment of changes that an earlier leaf left unanswered. With `reads`, a change that was not made fails with IoError
   * "not executed". With `all`, the leaf makes such a change. In both cases, a change that was made gets its normal answer, and a
   * change fails if its state is unclear.
   * @default "reads"
   */
  readonly resume?: "reads" | "all" | undefined
  /**
   * True if the leaf supports the `Extended` entries. If so, answers contain complete errors and metadata, and the leaf records
   * the existing state before each change.
   * @default false
   */
  readonly extended?: boolean | undefined
  /** @default Limits.standard */
  readonly limits?: Limits.LimitsShape | undefined
  /**
   * The largest number of retries of a read, a write or an edit while another program has the file open. The first delay is
   * about 50 ms.
   * @default 5
   */
  readonly lockedRetries?: number | undefined
}

export interface Settings {
  readonly name: string
  readonly prefix: FsPath.FsPath
  readonly allowWrite: boolean
  readonly allowDelete: boolean
  readonly chunkSize: number
  readonly streamingThreshold: number
  readonly windowsNames: boolean
  readonly concurrency: number
  readonly timeoutMillis: number
  readonly idleMillis: number
  readonly graceMillis: number
  readonly resumesChanges: boolean
  readonly extended: boolean
  readonly limits: Limits.LimitsShape
  readonly lockedRetries: number
}

export const defaultGraceMillis = 5_000

const operation = "Leaf.make"

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: FsPath.root, argument, detail })

const isWholeNumber = (value: unknown, minimum: number): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= minimum

/** Returns the number or its default. Throws InvalidArgument for an invalid number; `parseOptions` catches this error. */
const wholeNumber = (argument: string, value: number | undefined, defaultValue: number, minimum: number): number => {
  if (value === undefined) return defaultValue
  if (isWholeNumber(value, minimum)) return value
  throw invalid(argument, `${argument} must be a whole number of at least ${minimum}`)
}

const millis = (argument: string, value: Duration.Input | undefined, defaultValue: number, minimum: number): number => {
  if (value === undefined) return defaultValue
  let time: number
  try {
    time = Duration.toMillis(Duration.fromInputUnsafe(value))
  } catch {
    throw invalid(argument, `${argument} must be a duration`)
  }
  if (time >= minimum) return time
  throw invalid(argument, `${argument} must be at least ${minimum} ms`)
}

const flag = (argument: string, value: boolean | undefined, defaultValue: boolean): boolean => {
  if (value === undefined) return defaultValue
  if (typeof value === "boolean") return value
  throw invalid(argument, `${argument} must be true or false`)
}

const choice = <Value extends string>(argument: string, value: Value | undefined, values: readonly [Value, Value]): Value => {
  if (value === undefined) return values[0]
  if (values.includes(value)) return value
  throw invalid(argument, `${argument} must be ${values[0]} or ${values[1]}`)
}

const prefixOf = (input: string | undefined): FsPath.FsPath => {
  if (input === undefined) return FsPath.root
  const prefix = FsPath.parse(input, "branch")
  if (typeof prefix === "string") return prefix
  throw invalid("prefix", promote(prefix, operation, input).message)
}

const nameOf = (fs: Algebra, prefix: FsPath.FsPath, name: string | undefined): string => {
  if (name === undefined) return prefix === FsPath.root ? fs.name : `${fs.name}:${prefix}`
  if (typeof name === "string" && name !== "") return name
  throw invalid("name", "the name of the leaf must be text that is not empty")
}

const readOptions = (fs: Algebra, options: LeafOptions): Settings => {
  const prefix = prefixOf(options.prefix)
  return {
    name: nameOf(fs, prefix, options.name),
    prefix,
    allowWrite: flag("allowWrite", options.allowWrite, true),
    allowDelete: flag("allowDelete", options.allowDelete, true),
    chunkSize: wholeNumber("chunkSize", options.chunkSize, 65_536, 1),
    streamingThreshold: wholeNumber("streamingThreshold", options.streamingThreshold, 1_048_576, 0),
    windowsNames: choice("names", options.names, ["posix", "windows"]) === "windows",
    concurrency: wholeNumber("concurrency", options.concurrency, 16, 1),
    timeoutMillis: millis("timeout", options.timeout, 30_000, 1),
    idleMillis: millis("idle", options.idle, 60_000, 1),
    // Round up, because the journal accepts only whole numbers for the announced grace.
    graceMillis: Math.min(Math.ceil(millis("grace", options.grace, defaultGraceMillis, 0)), Number.MAX_SAFE_INTEGER),
    resumesChanges: choice("resume", options.resume, ["reads", "all"]) === "all",
    extended: flag("extended", options.extended, false),
    limits: options.limits ?? Limits.standard,
    lockedRetries: wholeNumber("lockedRetries", options.lockedRetries, 5, 0)
  }
}

export const parseOptions = (fs: Algebra, options: LeafOptions): Settings | InvalidArgument => {
  try {
    return readOptions(fs, options)
  } catch (error) {
    if (error instanceof InvalidArgument) return error
    throw error
  }
}

/** Returns the filesystem with these options applied. A filesystem that refuses links still refuses links. */
export const applyOptions = (fs: Algebra, { followSymlinks, preservePermissions }: LeafOptions): Algebra => {
  const { rules } = fs.port
  const showsLinks = followSymlinks === false && rules?.symlinks !== "refuse" && rules?.symlinks !== "report"
  if (!showsLinks && preservePermissions === undefined) return fs
  return makeAlgebra({
    ...fs.port,
    rules: {
      ...rules,
      ...(showsLinks && { symlinks: "report" as const }),
      ...(preservePermissions !== undefined && { preservePermissions })
    }
  })
}
