/** Parses a mount strictly, without any access to a disk. */
import { isAbsolute, platform } from "../../runtime/node.ts"
import { list } from "../../engine/options.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type HostMount, MountError } from "./model.ts"

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
  return isOfDrive ? "hostPath is relative to what is open on a drive" : undefined
}

const isSegment = (segment: unknown): boolean =>
  typeof segment === "string" && isNamedSegment(segment) && segment !== ".." && !segment.includes("/")

/** Parses the target. The policy of the target filesystem is checked later. */
const targetOf = (mountPath: HostMount["mountPath"]): FsPath.FsPath | undefined | { readonly detail: string } => {
  if (mountPath === undefined) return undefined
  if (typeof mountPath !== "string") {
    const isPath = Array.isArray(mountPath) && mountPath.every(isSegment)
    if (!isPath) return { detail: 'mountPath: a segment is a name, without "/", and neither "." nor ".."' }
  }
  const path = FsPath.parse(typeof mountPath === "string" ? mountPath : mountPath.join("/"))
  return typeof path === "string" ? path : { detail: `mountPath: ${String(path["detail"])}` }
}

const isByteLimit = (value: unknown): boolean =>
  typeof value === "number" && value >= 0 && (Number.isSafeInteger(value) || value === Number.POSITIVE_INFINITY)

/** Returns the globs without blank ones. The compiler of globs rejects values that are not strings. */
const globs = (patterns: HostMount["include"]): ReadonlyArray<string> =>
  list(patterns).filter((pattern) => typeof pattern !== "string" || pattern.trim() !== "")

export const parseMount = (mount: HostMount): Request | MountError => {
  const { exclude, followSymlinks, hostPath, include, maxBytes } = mount
  const wrong = hostPathFault(hostPath)
  if (wrong !== undefined) return invalid(hostPath, wrong)
  const mountPath = targetOf(mount.mountPath)
  if (typeof mountPath === "object") return invalid(hostPath, mountPath.detail)
  if (maxBytes !== undefined && !isByteLimit(maxBytes)) return invalid(hostPath, "maxBytes must be a whole number, 0 or more")
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
