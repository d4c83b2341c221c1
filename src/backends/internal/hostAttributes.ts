/** Symlinks, permission bits and modification times. Attributes are never set through a symlink. */
import type * as DateTime from "effect/DateTime"
import { Fs, isUtf8, readLinkBytes } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import { isFault } from "./attempt.ts"
import { type Confined, giveAway, look, O_PATH, type Place, unstable } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { closeQuietly } from "../../runtime/host.ts"
import { absent, type Hardlinks, inside, isRefused } from "./hostFile.ts"
import type { HostPath } from "./hostNames.ts"

const notFound: Fault = { _tag: "NotFound" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }
const linked: Fault = { _tag: "AccessDenied", why: "link" }
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
const isFollowed = (place: Place, link: Fs.Stats): boolean =>
  (place.stats.mode & 0o1002) !== 0o1002 || link.uid === process.geteuid?.() || link.uid === place.stats.uid

const textAt = (at: HostPath): Buffer | undefined => {
  try {
    return readLinkBytes(at)
  } catch (error) {
    if (codeOf(error) === "EINVAL") return undefined
    throw error
  }
}

export const readLink = (confined: Confined, path: FsPath, follows = false): string | Fault => {
  if (path === root) return notALink
  const text = inside(confined, path, (place, segment): string | Fault => {
    const found = look(place.at(segment))
    if (found === undefined) return notFound
    if (!found.isSymbolicLink()) return notALink
    if (follows && !isFollowed(place, found)) return notFollowed
    const bytes = textAt(place.at(segment))
    return bytes === undefined ? notALink : isUtf8(bytes) ? bytes.toString() : undecodable
  })
  return isFault(text) ? absent(text) : text
}

export const makeLink = (confined: Confined, path: FsPath, target: string): Fault | undefined =>
  path === root
    ? alreadyExists
    : inside(confined, path, (place, segment) => {
        const at = place.at(segment)
        Fs.symlinkSync(target, at)
        return giveAway(confined, at, Fs.unlinkSync)
      })

export interface Values {
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

const refusal = (stats: Fs.Stats, { mode }: Values, hardlinks: Hardlinks): Fault | undefined =>
  stats.isSymbolicLink() && mode !== undefined ? linkMode : isRefused(stats, hardlinks) ? linked : undefined

/** Sets attributes through the name. Only macOS has a call for the mode that does not follow symlinks. */
const setNamed = (at: HostPath, stats: Fs.Stats, { mode, modifiedAt }: Values): undefined => {
  if (mode !== undefined) {
    const change = (Fs.lchmodSync as typeof Fs.lchmodSync | undefined) ?? Fs.chmodSync
    change(at, mode | specialBits(stats))
  }
  if (modifiedAt !== undefined) Fs.lutimesSync(at, ...times(stats, modifiedAt))
}

const setHeld = (alias: HostPath, stats: Fs.Stats, { mode, modifiedAt }: Values): undefined => {
  if (mode !== undefined) Fs.chmodSync(alias, mode | specialBits(stats))
  if (modifiedAt !== undefined) Fs.utimesSync(alias, ...times(stats, modifiedAt))
}

/**
 * Sets the attributes of exactly the entry that was checked, even if its name changes meanwhile.
 *
 * A symlink is set by name, as is every entry if the system has no paths of descriptors.
 */
const setAt = (confined: Confined, at: HostPath, values: Values, hardlinks: Hardlinks): Fault | undefined => {
  const found = look(at)
  if (found === undefined) return notFound
  if (confined.alias === undefined || found.isSymbolicLink()) {
    return refusal(found, values, hardlinks) ?? setNamed(at, found, values)
  }
  const descriptor = Fs.openSync(at, O_PATH | Fs.constants.O_NOFOLLOW)
  try {
    const stats = Fs.fstatSync(descriptor)
    if (stats.isSymbolicLink()) return unstable
    return refusal(stats, values, hardlinks) ?? setHeld(confined.alias(descriptor), stats, values)
  } finally {
    closeQuietly(descriptor)
  }
}

const setRoot = (confined: Confined, values: Values): Fault | undefined => {
  const place = confined.directory(root)
  if (isFault(place)) return place
  try {
    return setHeld(place.directory, place.stats, values)
  } finally {
    place.release()
  }
}

export const setAttributes = (confined: Confined, path: FsPath, values: Values, hardlinks: Hardlinks): Fault | undefined => {
  if (path === root) return setRoot(confined, values)
  const fault = inside(confined, path, (place, segment) => setAt(confined, place.at(segment), values, hardlinks))
  return fault && absent(fault)
}
