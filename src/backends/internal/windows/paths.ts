/**
 * Where a path of ours is on a Windows disk: pure functions, so that every rule can be checked on any machine. What Windows would read
 * as something else than it says (a device, a stream, a name cut at its end, another name of a file) is refused here, before the disk
 * is touched, because nothing afterwards could tell that it happened.
 */
import type { Fault } from "../../../model/FsError.ts"
import { fold, type FsPath, segments } from "../../../model/FsPath.ts"
import { nameFault } from "./names.ts"

export { nameFault } from "./names.ts"

const invalid = (detail: string): Fault => ({ _tag: "InvalidPath", detail })
const tooLong = (detail: string): Fault => ({ _tag: "PathTooLong", detail })

/** An absolute directory, in the one form that all spellings of it have here. */
export interface WindowsRoot {
  readonly kind: "drive" | "unc"
  /** `C:` in upper case, or `\\server\share`. */
  readonly volume: string
  /** Below the volume. */
  readonly names: ReadonlyArray<string>
  /** `C:\a\b` or `\\server\share\a`: backslashes, and none at the end but that of `C:\`. */
  readonly path: string
}

interface Absolute {
  readonly kind: "drive" | "unc"
  readonly volume: string
  readonly names: ReadonlyArray<string>
}

const drive = /^([a-z]):\\(.*)$/is
const share = /^\\\\([^\\]+)\\([^\\]+)(?:\\(.*))?$/s

const namesOf = (rest: string | undefined): ReadonlyArray<string> => (rest ?? "").split("\\").filter((name) => name !== "")

const prefix = /^\\(?:\\\?|\?\?)\\(UNC\\)?/i

/** Without the prefix that turns Windows' own reading off; `undefined` where something else than a disk is behind it. */
const withoutPrefix = (text: string): string | undefined => {
  const found = prefix.exec(text)
  if (found === null) return text
  const rest = text.slice(found[0].length)
  return found[1] === undefined ? (drive.test(rest) ? rest : undefined) : `\\\\${rest}`
}

/** What an absolute path with backslashes names; `undefined` for what is not one. */
const absolute = (text: string): Absolute | undefined => {
  const plain = withoutPrefix(text)
  if (plain === undefined) return undefined
  const onDrive = drive.exec(plain)
  if (onDrive !== null) return { kind: "drive", volume: `${onDrive[1]!.toUpperCase()}:`, names: namesOf(onDrive[2]) }
  const onShare = share.exec(plain)
  if (onShare === null) return undefined
  return { kind: "unc", volume: `\\\\${onShare[1]}\\${onShare[2]}`, names: namesOf(onShare[3]) }
}

const join = ({ kind, names, volume }: Absolute): string =>
  names.length === 0 ? (kind === "drive" ? `${volume}\\` : volume) : [volume, ...names].join("\\")

/** Shares that are no disks. */
const pipes = /^(?:pipe|mailslot|ipc\$)$/i

/** `\\.` and `\\?` are no servers, as they are no names. */
const volumeFault = ({ kind, volume }: Absolute): Fault | undefined => {
  if (kind === "drive") return undefined
  const [server, disk] = volume.slice(2).split("\\") as [string, string]
  return pipes.test(disk) ? invalid("this share is no disk") : (nameFault(server, "take") ?? nameFault(disk, "take"))
}

/**
 * Reads the root that an option gives: `C:\x`, `C:/x`, `\\server\share\x`, and these behind `\\?\`. InvalidPath for everything else:
 * what depends on a current directory or drive, other namespaces of devices, `.` and `..`, and names that Windows cannot have. Short
 * names (`RUNNER~1`) are taken here, where a directory for temporary files is often given by one: the program says what its root is.
 */
export const parseRoot = (root: string): WindowsRoot | Fault => {
  if (typeof root !== "string") return invalid("it is not a string")
  const text = root.replaceAll("/", "\\")
  // The prefix counts only as it is written: it is what turns the reading of slashes off.
  const found = root.startsWith("\\\\?\\") ? absolute(root) : prefix.test(text) ? undefined : absolute(text)
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
  /** With the prefix that lifts the limit of 260 and turns Windows' own reading of names off. */
  readonly useLongPaths: boolean
  /** The path is to be made a directory, for which the limit without the prefix is lower. @default false */
  readonly makesDirectory?: boolean | undefined
}

/** In UTF-16 units, without the NUL that ends a path. */
const limits = { plain: 259, directory: 247, long: 32_766 }

const verbatim = ({ kind, path }: WindowsRoot): string => (kind === "drive" ? `\\\\?\\${path}` : `\\\\?\\UNC${path.slice(1)}`)

/** The path for the system. PathTooLong where it takes none of that length. The names are taken as they are: `spelt` of `keys.ts` has judged them. */
export const toNative = (root: WindowsRoot, path: FsPath, options: NativeOptions): string | Fault => {
  const top = options.useLongPaths ? verbatim(root) : root.path
  const names = segments(path)
  const native = names.length === 0 ? top : top + (top.endsWith("\\") ? "" : "\\") + names.join("\\")
  const limit = options.useLongPaths ? limits.long : options.makesDirectory === true ? limits.directory : limits.plain
  if (native.length <= limit) return native
  return tooLong(`with its root it has ${native.length} UTF-16 units where Windows takes ${limit}`)
}

/** Windows folds unit by unit and never to two, and less than Unicode does: the Kelvin sign is no k to it. */
const isSameUnit = (self: string, that: string): boolean =>
  self === that || (fold(self) === fold(that) && self.toUpperCase() === that.toUpperCase())

/** Whether two names are surely the same to Windows. */
const isSameName = (self: string, that: string): boolean => {
  if (self.length !== that.length) return false
  for (let at = 0; at < self.length; at++) if (!isSameUnit(self[at]!, that[at]!)) return false
  return true
}

/** The names below the root; `undefined` for what is not in it. */
const within = (root: WindowsRoot, found: Absolute | undefined): ReadonlyArray<string> | undefined => {
  if (found === undefined || !isSameName(root.volume, found.volume)) return undefined
  if (found.names.includes("..") || found.names.includes(".")) return undefined
  return root.names.every((name, at) => isSameName(name, found.names[at] ?? ""))
    ? found.names.slice(root.names.length)
    : undefined
}

/** Whether an absolute path of the system, as `realpath` answers it, is the root or lies below it. */
export const isWithinRoot = (root: WindowsRoot, native: string): boolean => within(root, absolute(native)) !== undefined

/** From a directory in the root to what these names lead to from the root. */
const relative = (directory: FsPath, names: ReadonlyArray<string>): string => {
  const from = segments(directory)
  let shared = 0
  while (shared < from.length && shared < names.length && isSameName(from[shared]!, names[shared]!)) shared++
  return [...from.slice(shared).map(() => ".."), ...names.slice(shared)].join("/") || "."
}

/**
 * The text of a link in `directory`, as the port knows it: relative and with slashes. Windows writes the targets of junctions absolute,
 * so one that leads to a place in the root is told as the way there. What leads elsewhere begins with a slash, as what leads out of
 * the root does on every system; so does what depends on a current drive.
 */
export const linkTarget = (root: WindowsRoot, directory: FsPath, text: string): string => {
  const target = text.replaceAll("/", "\\")
  const onDrive = /^\\(?![\\?])/.test(target) && root.kind === "drive" ? root.volume + target : target
  const names = within(root, absolute(onDrive))
  if (names !== undefined) return relative(directory, names)
  const slashed = target.replaceAll("\\", "/")
  return /^[a-z]:/i.test(slashed) ? `/${slashed}` : slashed
}
