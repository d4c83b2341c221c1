/**
 * The port over a directory of a Windows disk.
 *
 * The port cannot set attributes: Windows stores only one bit of a mode, and the port must not claim to set the other
 * bits.
 */
import { notALink, notFoundBelowFile, rootWriteFault } from "../faults.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { alreadyExists, is as isFault, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { root } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import type { Backend, Links, Rules } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { fromOptions, isReadOnly } from "../../port/Rules.ts"
import * as Locks from "../../runtime/locks.ts"
import type { WindowsHostOptions } from "../hostRoot.ts"
import { attempt } from "./errors.ts"
import * as File from "./handles.ts"
import { linkTarget, nameFault } from "./names.ts"
import * as Naming from "./naming.ts"
import { inspectPath, type Walker } from "./walk.ts"
import { retryChanged } from "../posix/place.ts"
import { append, replaceFile } from "./write.ts"

// Reads and creates links on a Windows disk. A link is a symbolic link or a junction. Not every user may create symbolic
// links. A junction leads to a directory by its absolute path.
//
// Links are never followed here. Their targets are converted to the form of the port, relative and with slashes, and
// the engine resolves them.

const readLinkAt = ({ disk }: Walker, at: string): string | undefined => {
  try {
    return disk.readlinkSync(at)
  } catch (error) {
    if (codeOf(error) === "EINVAL" || codeOf(error) === "UNKNOWN") return undefined
    throw error
  }
}

const readLink = (walker: Walker, path: FsPath.FsPath): string | Fault => {
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

/** The beginning of a target outside the root: a slash and a drive. */
const drivePattern = /^\/(?=[a-z]:(?:\/|$))/i

/**
 * Converts an absolute target in the form of the port to a relative target. Returns `undefined` for a target outside the
 * root.
 */
const relative =
  ({ names }: Walker): NonNullable<Links["relative"]> =>
  (path, target) => {
    const text = linkTarget(names, FsPath.parent(path), target.replace(drivePattern, ""))
    return text.startsWith("/") ? undefined : text
  }

/**
 * Converts a target to the system's form. Refuses names that Windows would reinterpret, because they could lead to
 * another path than the engine has checked.
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
 * Returns the type that Windows requires for a link. A target that is missing or outside the root counts as a file; a
 * target outside the root is not inspected.
 */
const typeOf = (walker: Walker, path: FsPath.FsPath, text: string): "file" | "dir" => {
  const target = text.startsWith("/") ? (relative(walker)(path, text) ?? text) : text
  if (target.startsWith("/")) return "file"
  const targetPath = FsPath.parse(`${FsPath.parent(path)}/${target}`)
  return typeof targetPath === "string" && !isFault(walker.directory(targetPath)) ? "dir" : "file"
}

const makeLink = (walker: Walker, path: FsPath.FsPath, target: string): Fault | undefined => {
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

export const backend = (walker: Walker, options: WindowsHostOptions): Backend => {
  const rules: Rules = fromOptions(options)
  const maySweep = rules.permits?.("delete") !== false
  const handles = File.make(walker)
  const writer = { walker, handles, durability: options.durability ?? "none" }
  return {
    info: {
      name: "WindowsHost",
      root: options.root,
      caseSensitive: false,
      readOnly: isReadOnly(rules),
      confinement: "best-effort"
    },
    stat: (path) => attempt(() => File.stat(walker, path)),
    list: (path) => File.list(walker, path, maySweep),
    open: handles.open,
    write: (path, content, mode, how) =>
      path === root
        ? Effect.fail(rootWriteFault(mode))
        : mode === "append"
          ? append(writer, path, content, how?.commit)
          : replaceFile(writer, path, content, mode, how?.commit),
    makeDirectory: (path) => Naming.makeDirectory(walker, path),
    remove: (path) => Naming.remove(walker, handles, path),
    rename: (from, to, { replace }) => Naming.rename(walker, handles, from, to, replace),
    links: {
      read: (path) => attempt(() => readLink(walker, path)),
      relative: relative(walker),
      make: (path, target) => attempt(() => makeLink(walker, path, target))
    },
    rules,
    locks: Locks.make({ caseSensitive: false }),
    perform: Request.handlers({
      Read: ({ maxBytes, path }) => Effect.map(File.readSmall(walker, path, maxBytes), Option.fromUndefinedOr)
    })
  }
}
