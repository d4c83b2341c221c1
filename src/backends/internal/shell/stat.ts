/** What `stat` says of a file, in the format of `script.ts`, as the port tells it. */
import type * as DateTime from "effect/DateTime"
import type { FileStat, Kind } from "../../../model/Entry.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import { toTime } from "../hostFile.ts"

const permissionBits = 0o777
const kinds: Readonly<Record<number, Kind>> = { 0o100000: "file", 0o040000: "directory", 0o120000: "symlink" }

/** Of a mode as the system has it. */
export const kindOf = (mode: number): Kind => kinds[mode & 0o170000] ?? "other"

/** Size, permissions, owner, mode, seconds of the last change and of birth, and the same two with a fraction. */
const line = /^(\d+) \d+ \d+:\d+ ([0-9a-f]+) (-?\d+) (\S+) ([^/]*)\/([^/]*)\s*$/

/** Characters. Anything may be said inside, and the expression takes the longer the more spaces there are. */
const longest = 400

/** Milliseconds of a second; a time is told to the second at least. */
const fraction = (time: string): number => Number((/\.(\d{1,3})/.exec(time)?.[1] ?? "0").padEnd(3, "0"))

const timeOf = (seconds: number, time: string): DateTime.Utc => toTime(seconds * 1000 + fraction(time))

/** `undefined` for what `stat` does not say. */
export const toStat = (path: FsPath, text: string): FileStat | undefined => {
  const found = text.length > longest ? null : line.exec(text)
  if (found === null) return undefined
  const [, size, hex, modified, born, modifiedAt, createdAt] = found as unknown as ReadonlyArray<string>
  const mode = Number.parseInt(hex!, 16)
  const kind = kindOf(mode)
  const birth = Number(born)
  return {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: kind === "file" || kind === "symlink" ? Number(size) : 0,
    // Disks that do not know it say 0, and a stat that does not ask for it says something else.
    ...(birth > 0 ? { createdAt: timeOf(birth, createdAt!) } : undefined),
    modifiedAt: timeOf(Number(modified), modifiedAt!),
    mode: mode & permissionBits,
    ...(kind === "symlink" ? { isSymlink: true } : undefined)
  }
}
