/**
 * Converts paths to the paths of a Windows disk, with pure functions that can be tested on any machine.
 *
 * Windows reinterprets some names: devices, streams, truncated names, second names of a file. These are refused before
 * the disk is touched, because nothing later could detect the reinterpretation.
 */
import type { Fault } from "../../../model/FsError.ts"
import { fold, type FsPath, segments } from "../../../model/FsPath.ts"
import { nameFault } from "./names.ts"

export { nameFault } from "./names.ts"

const invalid = (detail: string): Fault => ({ _tag: "InvalidPath", detail })
const tooLong = (detail: string): Fault => ({ _tag: "PathTooLong", detail })

export interface WindowsRoot {
  readonly kind: "drive" | "unc"
  /** `C:` in upper case, or `\\server\share`. */
  readonly volume: string
  readonly names: ReadonlyArray<string>
  /** `C:\a\b` or `\\server\share\a`: backslashes, and none at the end except in `C:\`. */
  readonly path: string
}

interface Absolute {
  readonly kind: "drive" | "unc"
  readonly volume: string
  readonly names: ReadonlyArray<string>
}

const drivePattern = /^([a-z]):\\(.*)$/is
const sharePattern = /^\\\\([^\\]+)\\([^\\]+)(?:\\(.*))?$/s

const namesOf = (rest: string | undefined): ReadonlyArray<string> => (rest ?? "").split("\\").filter((name) => name !== "")

const longPrefix = /^\\(?:\\\?|\?\?)\\(UNC\\)?/i

/** Removes the prefix that disables Windows' interpretation of a path. Returns `undefined` if no disk follows. */
const withoutPrefix = (text: string): string | undefined => {
  const found = longPrefix.exec(text)
  if (found === null) return text
  const rest = text.slice(found[0].length)
  return found[1] === undefined ? (drivePattern.test(rest) ? rest : undefined) : `\\\\${rest}`
}

const parseAbsolute = (text: string): Absolute | undefined => {
  const plain = withoutPrefix(text)
  if (plain === undefined) return undefined
  const onDrive = drivePattern.exec(plain)
  if (onDrive !== null) return { kind: "drive", volume: `${onDrive[1]!.toUpperCase()}:`, names: namesOf(onDrive[2]) }
  const onShare = sharePattern.exec(plain)
  if (onShare === null) return undefined
  return { kind: "unc", volume: `\\\\${onShare[1]}\\${onShare[2]}`, names: namesOf(onShare[3]) }
}

const join = ({ kind, names, volume }: Absolute): string =>
  names.length === 0 ? (kind === "drive" ? `${volume}\\` : volume) : [volume, ...names].join("\\")

const pipeShares = /^(?:pipe|mailslot|ipc\$)$/i

/**
 * Returns the fault of a volume that cannot be a disk. `\\.` and `\\?` are not servers, because they are not valid
 * names.
 */
const volumeFault = ({ kind, volume }: Absolute): Fault | undefined => {
  if (kind === "drive") return undefined
  const [server, disk] = volume.slice(2).split("\\") as [string, string]
  return pipeShares.test(disk) ? invalid("this share is no disk") : (nameFault(server, "take") ?? nameFault(disk, "take"))
}

/**
 * Parses the root of the options: `C:\x`, `C:/x`, `\\server\share\x`, and these with the prefix `\\?\`.
 *
 * Returns InvalidPath for everything else: paths that depend on a current directory or drive, other device namespaces,
 * `.` and `..`, and names that Windows cannot have.
 *
 * Short names (`RUNNER~1`) are accepted, because directories for temporary files often have one, and the program itself
 * chooses its root.
 */
export const parseRoot = (root: string): WindowsRoot | Fault => {
  if (typeof root !== "string") return invalid("it is not a string")
  const text = root.replaceAll("/", "\\")
  // The prefix counts only if it is written exactly, because it disables the interpretation of slashes.
  const found = root.startsWith("\\\\?\\") ? parseAbsolute(root) : longPrefix.test(text) ? undefined : parseAbsolute(text)
  if (found === undefined) return invalid("the root must be an absolute path, as C:\\directory or \\\\server\\share\\directory")
  const fault = volumeFault(found)
  if (fault !== undefined) return fault
  for (const name of found.names) {
    const fault = nameFault(name, "take")
    if (fault !== undefined) return fault
  }
  return { ...found, path: join(found) }
}

export interface NativeOptions {
  /** Uses the prefix that lifts the limit of 260 and disables Windows' interpretation of names. */
  readonly useLongPaths: boolean
  /** Set for a new directory, whose path has a lower limit without the prefix. @default false */
  readonly makesDirectory?: boolean | undefined
}

/** UTF-16 units, without the terminating NUL. */
const limits = { plain: 259, directory: 247, long: 32_766 }

const prefixedRoot = ({ kind, path }: WindowsRoot): string =>
  kind === "drive" ? `\\\\?\\${path}` : `\\\\?\\UNC${path.slice(1)}`

/** Returns the system path, or PathTooLong. `spelt` of `keys.ts` must have checked the names. */
export const toNative = (root: WindowsRoot, path: FsPath, options: NativeOptions): string | Fault => {
  const top = options.useLongPaths ? prefixedRoot(root) : root.path
  const names = segments(path)
  const native = names.length === 0 ? top : top + (top.endsWith("\\") ? "" : "\\") + names.join("\\")
  const limit = options.useLongPaths ? limits.long : options.makesDirectory === true ? limits.directory : limits.plain
  if (native.length <= limit) return native
  return tooLong(`with its root it has ${native.length} UTF-16 units where Windows takes ${limit}`)
}

/**
 * Compares two units like Windows, which folds each unit to a single one and fewer than Unicode: the Kelvin sign is not
 * a k.
 */
const isSameUnit = (self: string, that: string): boolean =>
  self === that || (fold(self) === fold(that) && self.toUpperCase() === that.toUpperCase())

const isSameName = (self: string, that: string): boolean => {
  if (self.length !== that.length) return false
  for (let at = 0; at < self.length; at++) if (!isSameUnit(self[at]!, that[at]!)) return false
  return true
}

const namesBelow = (root: WindowsRoot, found: Absolute | undefined): ReadonlyArray<string> | undefined => {
  if (found === undefined || !isSameName(root.volume, found.volume)) return undefined
  if (found.names.includes("..") || found.names.includes(".")) return undefined
  return root.names.every((name, at) => isSameName(name, found.names[at] ?? ""))
    ? found.names.slice(root.names.length)
    : undefined
}

export const isWithinRoot = (root: WindowsRoot, native: string): boolean =>
  namesBelow(root, parseAbsolute(native)) !== undefined

const relative = (directory: FsPath, names: ReadonlyArray<string>): string => {
  const from = segments(directory)
  let shared = 0
  while (shared < from.length && shared < names.length && isSameName(from[shared]!, names[shared]!)) shared++
  return [...from.slice(shared).map(() => ".."), ...names.slice(shared)].join("/") || "."
}

/**
 * Converts the target of a link in `directory` to the form of the port: relative and with slashes.
 *
 * Windows stores the targets of junctions as absolute paths. A target in the root becomes a relative path. Any other
 * target begins with a slash, as targets outside the root do on every system; also a target that depends on a current
 * drive.
 */
export const linkTarget = (roots: ReadonlyArray<WindowsRoot>, directory: FsPath, text: string): string => {
  const target = text.replaceAll("/", "\\")
  for (const root of roots) {
    const onDrive = /^\\(?![\\?])/.test(target) && root.kind === "drive" ? root.volume + target : target
    const names = namesBelow(root, parseAbsolute(onDrive))
    if (names !== undefined) return relative(directory, names)
  }
  const slashed = target.replaceAll("\\", "/")
  return /^[a-z]:/i.test(slashed) ? `/${slashed}` : slashed
}
