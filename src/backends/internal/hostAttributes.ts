/** Symlinks, permission bits and modification times. Attributes are never set through a symlink. */
import type * as DateTime from "effect/DateTime"
import { Fs, isUtf8, readLinkBytes } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import { isFault } from "./attempt.ts"
import { type Confined, changeOwner, lstatEntry, O_PATH, type HostDirectory, directoriesKeepChanging } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { closeQuietly } from "../../runtime/host.ts"
import { notFoundBelowFile, type Hardlinks, inParent, isRefusedHardLink } from "./hostFile.ts"
import type { HostPath } from "./hostNames.ts"

const notFound: Fault = { _tag: "NotFound" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }
const hardLinkRefused: Fault = { _tag: "AccessDenied", why: "link" }
const notALink: Fault = { _tag: "InvalidArgument", argument: "path", detail: "it is not a symbolic link" }
const notFollowed: Fault = { _tag: "AccessDenied", why: "permission" }
const linkMode: Fault = { _tag: "InvalidArgument", argument: "mode", detail: "a link has no permission bits of its own" }
const undecodable: Fault = { _tag: "InvalidPath", detail: "the text of a link on this path is not UTF-8" }

/**
 * Tests whether a symlink may be followed.
 *
 * In a sticky directory that everybody may write to, Linux follows only symlinks of the own user and of the directory's
 * owner. This resolution follows the same rule.
 */
const mayFollow = (place: HostDirectory, link: Fs.Stats): boolean =>
  (place.stats.mode & 0o1002) !== 0o1002 || link.uid === process.geteuid?.() || link.uid === place.stats.uid

const readLinkAt = (at: HostPath): Buffer | undefined => {
  try {
    return readLinkBytes(at)
  } catch (error) {
    if (codeOf(error) === "EINVAL") return undefined
    throw error
  }
}

export const readLink = (confined: Confined, path: FsPath, follows = false): string | Fault => {
  if (path === root) return notALink
  const text = inParent(confined, path, (place, segment): string | Fault => {
    const found = lstatEntry(place.at(segment))
    if (found === undefined) return notFound
    if (!found.isSymbolicLink()) return notALink
    if (follows && !mayFollow(place, found)) return notFollowed
    const bytes = readLinkAt(place.at(segment))
    return bytes === undefined ? notALink : isUtf8(bytes) ? bytes.toString() : undecodable
  })
  return isFault(text) ? notFoundBelowFile(text) : text
}

export const makeLink = (confined: Confined, path: FsPath, target: string): Fault | undefined =>
  path === root
    ? alreadyExists
    : inParent(confined, path, (place, segment) => {
        const at = place.at(segment)
        Fs.symlinkSync(target, at)
        return changeOwner(confined, at, Fs.unlinkSync)
      })

export interface AttributeValues {
  readonly mode?: number | undefined
  readonly modifiedAt?: DateTime.Utc | undefined
}

/**
 * Converts a time to seconds, as text, because Node interprets negative numbers as "now".
 *
 * The system truncates fractions, and most milliseconds have no exact representation. Half a microsecond more preserves
 * them.
 */
const toSeconds = (millis: number): string => String(Number.isInteger(millis / 1000) ? millis / 1000 : millis / 1000 + 5e-7)

const specialBits = (stats: Fs.Stats): number => (stats.isDirectory() ? stats.mode & 0o7000 : 0)

const times = (stats: Fs.Stats, modifiedAt: DateTime.Utc): [accessed: string, modified: string] => [
  toSeconds(stats.atimeMs),
  toSeconds(modifiedAt.epochMilliseconds)
]

const refusal = (stats: Fs.Stats, { mode }: AttributeValues, hardlinks: Hardlinks): Fault | undefined =>
  stats.isSymbolicLink() && mode !== undefined ? linkMode : isRefusedHardLink(stats, hardlinks) ? hardLinkRefused : undefined

/** Sets attributes through the name. Only macOS has a call for the mode that does not follow symlinks. */
const setByName = (at: HostPath, stats: Fs.Stats, { mode, modifiedAt }: AttributeValues): undefined => {
  if (mode !== undefined) {
    const change = (Fs.lchmodSync as typeof Fs.lchmodSync | undefined) ?? Fs.chmodSync
    change(at, mode | specialBits(stats))
  }
  if (modifiedAt !== undefined) Fs.lutimesSync(at, ...times(stats, modifiedAt))
}

const setByAlias = (alias: HostPath, stats: Fs.Stats, { mode, modifiedAt }: AttributeValues): undefined => {
  if (mode !== undefined) Fs.chmodSync(alias, mode | specialBits(stats))
  if (modifiedAt !== undefined) Fs.utimesSync(alias, ...times(stats, modifiedAt))
}

/**
 * Sets the attributes of exactly the entry that was checked, even if its name changes meanwhile.
 *
 * A symlink is set by name, as is every entry if the system has no paths of descriptors.
 */
const setAt = (confined: Confined, at: HostPath, values: AttributeValues, hardlinks: Hardlinks): Fault | undefined => {
  const found = lstatEntry(at)
  if (found === undefined) return notFound
  if (confined.descriptorPath === undefined || found.isSymbolicLink()) {
    return refusal(found, values, hardlinks) ?? setByName(at, found, values)
  }
  const descriptor = Fs.openSync(at, O_PATH | Fs.constants.O_NOFOLLOW)
  try {
    const stats = Fs.fstatSync(descriptor)
    if (stats.isSymbolicLink()) return directoriesKeepChanging
    return refusal(stats, values, hardlinks) ?? setByAlias(confined.descriptorPath(descriptor), stats, values)
  } finally {
    closeQuietly(descriptor)
  }
}

const setRoot = (confined: Confined, values: AttributeValues): Fault | undefined => {
  const place = confined.directory(root)
  if (isFault(place)) return place
  try {
    return setByAlias(place.directory, place.stats, values)
  } finally {
    place.release()
  }
}

export const setAttributes = (
  confined: Confined,
  path: FsPath,
  values: AttributeValues,
  hardlinks: Hardlinks
): Fault | undefined => {
  if (path === root) return setRoot(confined, values)
  const fault = inParent(confined, path, (place, segment) => setAt(confined, place.at(segment), values, hardlinks))
  return fault && notFoundBelowFile(fault)
}
