/**
 * Links on a Windows disk: symbolic links, which not every user may make, and junctions, which are links to directories by their whole
 * path. Neither is ever followed here; their texts are told as the port knows texts, relative and with slashes, and the engine goes on
 * from there.
 */
import type { Fault } from "../../../model/FsError.ts"
import * as FsPath from "../../../model/FsPath.ts"
import { isFault } from "../attempt.ts"
import { notFound } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import { absent } from "../hostFile.ts"
import { nameFault } from "./names.ts"
import { linkTarget } from "./paths.ts"
import { spotOf, stably, type Walker } from "./walk.ts"

const alreadyExists: Fault = { _tag: "AlreadyExists" }
const notALink: Fault = { _tag: "InvalidArgument", argument: "path", detail: "it is not a symbolic link" }

/** `undefined` where the link has become something else since it was looked at. */
const textAt = ({ disk }: Walker, at: string): string | undefined => {
  try {
    return disk.readlinkSync(at)
  } catch (error) {
    if (codeOf(error) === "EINVAL" || codeOf(error) === "UNKNOWN") return undefined
    throw error
  }
}

export const readLink = (walker: Walker, path: FsPath.FsPath): string | Fault => {
  if (path === FsPath.root) return notALink
  return stably(() => {
    const spot = spotOf(walker, path)
    if (isFault(spot)) return absent(spot)
    if (spot.stats === undefined) return notFound
    const text = spot.stats.isSymbolicLink() ? textAt(walker, spot.at) : undefined
    if (text === undefined) return notALink
    return spot.place.isSame() ? linkTarget(walker.root, FsPath.parent(path), text) : undefined
  })
}

/** How links that lead out are told: a drive, behind a slash. */
const onDrive = /^\/(?=[a-z]:(?:\/|$))/i

/** The text for the system. A name that Windows would read otherwise could lead elsewhere than the engine has found. */
const nativeText = (target: string): string | Fault => {
  const bare = target.replace(onDrive, "")
  const names = bare.split("/").slice(bare === target ? 0 : 1)
  for (const name of names) {
    const fault = name === "" || name === "." || name === ".." ? undefined : nameFault(name, "take")
    if (fault !== undefined) return fault
  }
  return bare.replaceAll("/", "\\")
}

/** Windows wants to know what a link leads to. What is outside is not looked at, and where nothing is a file may come. */
const typeOf = (walker: Walker, path: FsPath.FsPath, target: string): "file" | "dir" => {
  if (target.startsWith("/")) return "file"
  const led = FsPath.parse(`${FsPath.parent(path)}/${target}`)
  return typeof led === "string" && !isFault(walker.directory(led)) ? "dir" : "file"
}

export const makeLink = (walker: Walker, path: FsPath.FsPath, target: string): Fault | undefined => {
  if (path === FsPath.root) return alreadyExists
  const at = walker.native(path)
  if (isFault(at)) return at
  // Before the place is looked at, after which nothing else should be asked of the disk.
  const type = typeOf(walker, path, target)
  const spot = spotOf(walker, path)
  if (isFault(spot)) return spot
  if (spot.stats !== undefined) return alreadyExists
  const text = nativeText(target)
  return typeof text === "string" ? void walker.disk.symlinkSync(text, spot.at, type) : text
}
