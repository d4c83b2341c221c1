import * as Schema from "effect/Schema"
import { list } from "../../engine/options.ts"
import * as FsPath from "../../model/FsPath.ts"
import { isAbsolute, platform } from "../../runtime/node.ts"

/**
 * The failure of a mount. Its reasons are:
 *
 * - `outside`: the source is in no allowed root, or in a snapshot store
 * - `missing`: the source does not exist, or was removed
 * - `invalid`: a path, pattern or number is invalid
 * - `budget`: the files exceed `maxBytes`, or there are too many links to follow
 * - `unreadable`: a file or directory cannot be read, or is of another kind
 * - `changed`: a file changed during the copy
 *
 * @since 0.1.0
 */
export class MountError extends Schema.TaggedError<MountError>("fs-algebra/MountError")("MountError", {
  /** The source path as given, or the path of the allowed root that caused the error. */
  hostPath: Schema.String,
  reason: Schema.Literals(["outside", "missing", "invalid", "budget", "unreadable", "changed"]),
  /** The path of the file below the source, if one file is the problem. */
  path: Schema.optionalKey(Schema.String),
  detail: Schema.String
}) {
  override get message(): string {
    return `${JSON.stringify(this.hostPath)} cannot be mounted: ${this.detail}`
  }
}

/**
 * A file or directory on the machine to copy into a workspace.
 *
 * @since 0.1.0
 */
export interface HostMount {
  /**
   * The source: an absolute path, or a path relative to an allowed root. A relative path is tried in each root in turn. Control
   * characters, `..` and blank paths are invalid. Names in the source may contain non-ASCII characters even if the target
   * accepts only ASCII.
   */
  readonly hostPath: string
  /**
   * The target, as a path or as its segments. The files of a source directory are copied below the target. A source file is
   * copied into the target under its own name.
   *
   * @default `hostPath` if relative, otherwise its last name; for a file, that is the path of the copy
   */
  readonly mountPath?: string | ReadonlyArray<string> | undefined
  /**
   * The globs of the files to copy, as for `Filesystem.glob`, relative to the source. If the source is a file, the globs match
   * its name. Blank globs are ignored, and ambiguous globs are rejected.
   *
   * @default everything
   */
  readonly include?: ReadonlyArray<string> | undefined
  /**
   * The globs of the files to exclude, as for `exclude` of `Filesystem.glob`. A file that matches both `include` and `exclude`
   * is excluded. If links are followed, the target of each link is checked too.
   *
   * @default nothing
   */
  readonly exclude?: ReadonlyArray<string> | undefined
  /** The largest total size of all files in bytes. 0 allows only empty files. @default no bound */
  readonly maxBytes?: number | undefined
  /** True if the mount copies the target of a link that leads inside the allowed root. @default false: links are skipped */
  readonly followSymlinks?: boolean | undefined
}

/**
 * The options of mounts.
 *
 * @since 0.1.0
 */
export interface Options {
  /**
   * The absolute paths of the directories that may contain sources. All directories must exist. An empty list refuses every
   * mount.
   */
  readonly allowedRoots: ReadonlyArray<string>
}

/**
 * An entry that matches the globs but is not copied. The reason is one of:
 *
 * - `link`: links are not followed
 * - `outside`: the link leads out of the allowed root, or into a snapshot store
 * - `dangling`: the target of the link does not exist
 * - `loop`: the link leads to a directory that contains the link
 * - `other`: the entry is a FIFO, a socket or a device, which is never opened
 *
 * @since 0.1.0
 */
export interface LeftOut {
  /** The path below the source, or the name of the source if it is a file. */
  readonly path: string
  readonly why: "link" | "outside" | "dangling" | "loop" | "other"
}

/**
 * The entries that a mount has copied, or would copy.
 *
 * @since 0.1.0
 */
export interface Preview {
  /** The source as given. */
  readonly source: string
  /** The target in the filesystem, or the path of the copy if the source is a file. */
  readonly target: string
  /** The paths of at most 20 entries in the filesystem, in path order. */
  readonly entries: ReadonlyArray<string>
  readonly files: number
  readonly bytes: number
  /** The number of skipped entries, and at most 20 of them in path order. */
  readonly leftOut: { readonly count: number; readonly entries: ReadonlyArray<LeftOut> }
}

// Parses a mount strictly, without access to the disk.

export interface Request {
  readonly hostPath: string
  readonly isAbsolute: boolean
  readonly names: ReadonlyArray<string>
  readonly mountPath: FsPath.FsPath | undefined
  readonly include: ReadonlyArray<string>
  readonly exclude: ReadonlyArray<string>
  readonly maxBytes: number | undefined
  readonly followSymlinks: boolean
}

const separators = platform === "win32" ? /[\\/]/ : /\//

const invalid = (hostPath: unknown, detail: string): MountError =>
  new MountError({ hostPath: String(hostPath), reason: "invalid", detail })

const isNamedSegment = (name: string): boolean => name !== "" && name !== "."

const hostPathFault = (hostPath: unknown): string | undefined => {
  if (typeof hostPath !== "string") return "hostPath is not a string"
  if (hostPath.trim() === "") return "hostPath is blank"
  const names = hostPath.split(separators)
  const fault = FsPath.unfit(names.join("/"))
  if (fault !== undefined) return `hostPath: ${String(fault["detail"])}`
  if (names.includes("..")) return 'hostPath has a ".." segment'
  const isOfDrive = process.platform === "win32" && /^[a-z]:/i.test(hostPath) && !isAbsolute(hostPath)
  return isOfDrive ? "hostPath is relative to the current directory of a drive" : undefined
}

const isSegment = (segment: unknown): boolean =>
  typeof segment === "string" && isNamedSegment(segment) && segment !== ".." && !segment.includes("/")

/** Parses the target. The policy of the target filesystem is checked later. */
const targetOf = (mountPath: HostMount["mountPath"]): FsPath.FsPath | undefined | { readonly detail: string } => {
  if (mountPath === undefined) return undefined
  if (typeof mountPath !== "string") {
    const isPath = Array.isArray(mountPath) && mountPath.every(isSegment)
    if (!isPath) return { detail: 'mountPath: each segment must be a name without "/", and not "." or ".."' }
  }
  const path = FsPath.parse(typeof mountPath === "string" ? mountPath : mountPath.join("/"))
  return typeof path === "string" ? path : { detail: `mountPath: ${String(path["detail"])}` }
}

const isByteLimit = (value: unknown): boolean =>
  typeof value === "number" && value >= 0 && (Number.isSafeInteger(value) || value === Number.POSITIVE_INFINITY)

/** Returns the globs that are not blank. Keeps values that are not strings, which the glob compiler rejects. */
const globs = (patterns: HostMount["include"]): ReadonlyArray<string> =>
  list(patterns).filter((pattern) => typeof pattern !== "string" || pattern.trim() !== "")

export const parseMount = (mount: HostMount): Request | MountError => {
  const { exclude, followSymlinks, hostPath, include, maxBytes } = mount
  const wrong = hostPathFault(hostPath)
  if (wrong !== undefined) return invalid(hostPath, wrong)
  const mountPath = targetOf(mount.mountPath)
  if (typeof mountPath === "object") return invalid(hostPath, mountPath.detail)
  if (maxBytes !== undefined && !isByteLimit(maxBytes))
    return invalid(hostPath, "maxBytes must be a whole number of at least 0")
  return {
    hostPath,
    isAbsolute: isAbsolute(hostPath),
    names: hostPath.split(separators).filter(isNamedSegment),
    mountPath,
    include: globs(include),
    exclude: globs(exclude),
    maxBytes: maxBytes === Number.POSITIVE_INFINITY ? undefined : maxBytes,
    followSymlinks: followSymlinks === true
  }
}
