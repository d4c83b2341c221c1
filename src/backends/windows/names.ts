/**
 * Converts paths to the paths of a Windows disk, with pure functions that can be tested on any machine.
 *
 * Windows reinterprets some names: devices, streams, truncated names, and short names of files. The port refuses these
 * names before it touches the disk, because a later check could not detect the reinterpretation.
 */
import { invalidPath, pathTooLong } from "../../model/Fault.ts"
import { invalidName } from "../../runtime/host.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, segments } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import { escapeName } from "../../runtime/escapedName.ts"

// Finds names that Windows does not allow or would reinterpret.
//
// The rules are the same for every disk and version. Newer versions allow more (`NUL.txt`), but a name that is a device
// on some machine is unsafe for a file.

/**
 * The part of a name that decides whether the name is a device: the text before the first dot or colon, without spaces
 * at its end.
 */
const stem = /^[^.:]*?(?= *(?:[.:]|$))/

const device = /^(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³]|conin\$|conout\$|clock\$)$/i

const forbidden = /[<>"/\\|?*\u0000-\u001f]/

/**
 * The form of the short names that Windows assigns to files in addition to their long names, such as `PROGRA~1.TXT`.
 */
const short = /^(?=[^.]{1,8}(?:\.|$))[^.]{1,6}~[0-9]{1,6}(?:\.[^.]{1,3})?$/

const maxUnits = 255

/**
 * Returns the reason why Windows does not allow this name or would reinterpret it.
 *
 * A short name from a caller is refused, because it may be a second name of a file that rules protect by its long name.
 * So a file whose real name has this form is listed as not addressable. `shortNames: "take"` is for the root, and for the
 * targets of links.
 */
export const nameFault = (name: string, shortNames: "refuse" | "take" = "refuse"): Fault | undefined => {
  if (name === "") return invalidPath("a name in it is empty")
  if (!name.isWellFormed()) return invalidPath("it contains a lone surrogate, which no file name can contain")
  if (device.test(stem.exec(name)![0])) return invalidPath("a name in it is reserved by Windows for a device")
  if (name.includes(":"))
    return invalidPath("a name in it has a colon, which Windows reserves for drives and alternate data streams")
  if (forbidden.test(name)) return invalidPath("a name in it has a character that Windows does not permit")
  if (name.endsWith(".") || name.endsWith(" "))
    return invalidPath("a name in it ends in a dot or a space, which Windows removes")
  if (name.length > maxUnits) {
    return pathTooLong(`a name in it has more than ${maxUnits} UTF-16 units, the Windows limit`)
  }
  return shortNames === "refuse" && short.test(name)
    ? invalidPath("a name in it has the form of a Windows short name, such as PROGRA~1")
    : undefined
}

// Converts names on an NTFS disk that no path can express.
//
// Other systems, and Windows itself with `\\?\`, can create names such as `CON`, `a.`, lone surrogates and control
// characters. Such a name gets a key: NUL followed by its UTF-16 units in hexadecimal. So the entry can be listed,
// moved and removed, and is never confused with another entry.
//
// Node represents names as text, which loses lone surrogates. Bytes in WTF-8 preserve them, because WTF-8 encodes a
// lone surrogate in three bytes.

const mark = "\u0000"
const control = /[\u0000-\u001f\u007f]/

const isExpressible = (name: string): boolean => !control.test(name) && nameFault(name) === undefined

const keyOf = (name: string): string => mark + Buffer.from(name, "utf16le").toString("hex")

/** The names that no directory can contain: the empty name, `.`, `..`, and names with a separator or NUL. */
const misleadingNames = /^\.{0,2}$|[\\/\u0000]/

const nameOf = (key: string): string | Fault => {
  const name = Buffer.from(key.slice(1), "hex").toString("utf16le")
  return keyOf(name) === key && !isExpressible(name) && !misleadingNames.test(name) ? name : invalidName
}

/** Returns the path with each key replaced by its name, or the reason why Windows does not allow the path. */
export const diskPathOf = (path: FsPath): FsPath | Fault => {
  const names: Array<string> = []
  for (const segment of segments(path)) {
    const name = segment.startsWith(mark) ? nameOf(segment) : (nameFault(segment) ?? segment)
    if (typeof name !== "string") return name
    names.push(name)
  }
  return (names.length === 0 ? path : names.join("/")) as FsPath
}

export const childOf = (name: string, kind: Kind): Child =>
  isExpressible(name)
    ? { name, kind, addressable: true }
    : { name: escapeName(toBytes(name)), kind, addressable: false, key: keyOf(name) }

export const toBytes = (text: string): Buffer => {
  if (text.isWellFormed()) return Buffer.from(text)
  const parts: Array<Buffer> = []
  for (const character of text) {
    const unit = character.charCodeAt(0)
    parts.push(
      character.length === 1 && (unit & 0xf800) === 0xd800
        ? Buffer.from([0xed, 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)])
        : Buffer.from(character)
    )
  }
  return Buffer.concat(parts)
}

export const fromBytes = (bytes: Buffer): string => {
  let out = ""
  let start = 0
  for (let at = bytes.indexOf(0xed); at !== -1; at = bytes.indexOf(0xed, at + 1)) {
    if (bytes[at + 1]! < 0xa0) continue
    out += bytes.toString("utf8", start, at)
    out += String.fromCharCode(0xd000 | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f))
    start = at + 3
  }
  return out + bytes.toString("utf8", start)
}

export interface WindowsRoot {
  readonly kind: "drive" | "unc"
  /** The volume: `C:` in upper case, or `\\server\share`. */
  readonly volume: string
  readonly names: ReadonlyArray<string>
  /** The path, such as `C:\a\b` or `\\server\share\a`. The path has backslashes, and none at the end except in `C:\`. */
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

/**
 * Removes the prefix `\\?\`, which disables the interpretation of a path by Windows. Returns `undefined` if no drive or
 * share follows the prefix.
 */
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
  return pipeShares.test(disk)
    ? invalidPath("the share in it is not a disk")
    : (nameFault(server, "take") ?? nameFault(disk, "take"))
}

/**
 * Parses the option `root`: `C:\x`, `C:/x` or `\\server\share\x`, each with or without the prefix `\\?\`.
 *
 * Returns InvalidPath for all other texts: paths that depend on a current directory or drive, other device namespaces,
 * `.` and `..`, and names that Windows does not allow.
 *
 * Short names (`RUNNER~1`) are accepted, because directories for temporary files often have short names, and the program
 * itself chooses its root.
 */
export const parseRoot = (root: string): WindowsRoot | Fault => {
  if (typeof root !== "string") return invalidPath("it is not a string")
  const text = root.replaceAll("/", "\\")
  // The prefix is recognized only with backslashes, because Windows does not interpret slashes in such a path.
  const found = root.startsWith("\\\\?\\") ? parseAbsolute(root) : longPrefix.test(text) ? undefined : parseAbsolute(text)
  if (found === undefined)
    return invalidPath("the root must be an absolute path, such as C:\\directory or \\\\server\\share\\directory")
  const fault = volumeFault(found)
  if (fault !== undefined) return fault
  for (const name of found.names) {
    const fault = nameFault(name, "take")
    if (fault !== undefined) return fault
  }
  return { ...found, path: join(found) }
}

interface NativeOptions {
  /**
   * True to use the prefix `\\?\`, which lifts the limit of 260 characters and disables the interpretation of names by
   * Windows.
   */
  readonly useLongPaths: boolean
  /**
   * True for the path of a directory to create. Without the prefix `\\?\`, Windows limits such a path to 247 UTF-16 units
   * instead of 259. @default false
   */
  readonly makesDirectory?: boolean | undefined
}

/** The maximum lengths of a path in UTF-16 units, without the terminating NUL. */
const limits = { plain: 259, directory: 247, long: 32_766 }

const prefixedRoot = ({ kind, path }: WindowsRoot): string =>
  kind === "drive" ? `\\\\?\\${path}` : `\\\\?\\UNC${path.slice(1)}`

/** Returns the system path, or PathTooLong. The caller must check the names first, with `diskPathOf`. */
export const toNative = (root: WindowsRoot, path: FsPath, options: NativeOptions): string | Fault => {
  const top = options.useLongPaths ? prefixedRoot(root) : root.path
  const names = segments(path)
  const native = names.length === 0 ? top : top + (top.endsWith("\\") ? "" : "\\") + names.join("\\")
  const limit = options.useLongPaths ? limits.long : options.makesDirectory === true ? limits.directory : limits.plain
  if (native.length <= limit) return native
  return pathTooLong(`together with the root, it has ${native.length} UTF-16 units; the Windows limit is ${limit}`)
}

/**
 * Compares two code units as Windows does. Windows folds each unit to one unit, and folds fewer characters than
 * Unicode: the Kelvin sign is not a k.
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
 * Windows stores the targets of junctions as absolute paths. A target in the root becomes a relative path, and a relative
 * target stays relative. Every other target, even one that depends on a current drive, gets a slash at its beginning,
 * which marks targets outside the root on every system.
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
