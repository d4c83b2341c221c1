/**
 * Reads and creates links on a Windows disk: symbolic links, which not every user may create, and junctions, which link
 * to directories by absolute path.
 *
 * Links are never followed here. Their targets are converted to the form of the port, relative and with slashes, and
 * the engine resolves them.
 */
import type { Fault } from "../../../model/FsError.ts"
import * as FsPath from "../../../model/FsPath.ts"
import type { Links } from "../../../port/Backend.ts"
import { isFault } from "../attempt.ts"
import { notFound } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import { notFoundBelowFile } from "../hostFile.ts"
import { nameFault } from "./names.ts"
import { linkTarget } from "./paths.ts"
import { inspectPath, retryChanged, type Walker } from "./walk.ts"

const alreadyExists: Fault = { _tag: "AlreadyExists" }
const notALink: Fault = { _tag: "InvalidArgument", argument: "path", detail: "it is not a symbolic link" }

const readLinkAt = ({ disk }: Walker, at: string): string | undefined => {
  try {
    return disk.readlinkSync(at)
  } catch (error) {
    if (codeOf(error) === "EINVAL" || codeOf(error) === "UNKNOWN") return undefined
    throw error
  }
}

export const readLink = (walker: Walker, path: FsPath.FsPath): string | Fault => {
  if (path === FsPath.root) return notALink
  return retryChanged(() => {
    const spot = inspectPath(walker, path)
    if (isFault(spot)) return notFoundBelowFile(spot)
    if (spot.stats === undefined) return notFound
    const text = spot.stats.isSymbolicLink() ? readLinkAt(walker, spot.at) : undefined
    if (text === undefined) return notALink
    return spot.place.isSame() ? linkTarget(walker.names, FsPath.parent(path), text) : undefined
  })
}

/** A target outside the root has a drive after a slash. */
const drivePattern = /^\/(?=[a-z]:(?:\/|$))/i

/**
 * Converts an absolute target in the form of the port to a relative one. Returns `undefined` for a target outside the
 * root.
 */
export const relative =
  ({ names }: Walker): NonNullable<Links["relative"]> =>
  (path, target) => {
    const text = linkTarget(names, FsPath.parent(path), target.replace(drivePattern, ""))
    return text.startsWith("/") ? undefined : text
  }

/**
 * Converts a target to the system's form. Refuses names that Windows would reinterpret, because they could lead
 * elsewhere than the engine has found.
 */
const nativeText = (target: string): string | Fault => {
  const bare = target.replace(drivePattern, "")
  const names = bare.split("/").slice(bare === target ? 0 : 1)
  for (const name of names) {
    const fault = name === "" || name === "." || name === ".." ? undefined : nameFault(name, "take")
    if (fault !== undefined) return fault
  }
  return bare.replaceAll("/", "\\")
}

/**
 * Returns the type that Windows requires for a link. Does not inspect a target outside the root; a missing one counts
 * as a file.
 */
const typeOf = (walker: Walker, path: FsPath.FsPath, text: string): "file" | "dir" => {
  const target = text.startsWith("/") ? (relative(walker)(path, text) ?? text) : text
  if (target.startsWith("/")) return "file"
  const targetPath = FsPath.parse(`${FsPath.parent(path)}/${target}`)
  return typeof targetPath === "string" && !isFault(walker.directory(targetPath)) ? "dir" : "file"
}

export const makeLink = (walker: Walker, path: FsPath.FsPath, target: string): Fault | undefined => {
  if (path === FsPath.root) return alreadyExists
  const at = walker.native(path)
  if (isFault(at)) return at
  // Determine the type first, because no other call should come between the inspection and the change.
  const type = typeOf(walker, path, target)
  const spot = inspectPath(walker, path)
  if (isFault(spot)) return spot
  if (spot.stats !== undefined) return alreadyExists
  const text = nativeText(target)
  return typeof text === "string" ? void walker.disk.symlinkSync(text, spot.at, type) : text
}
