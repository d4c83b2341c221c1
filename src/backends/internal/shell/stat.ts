/** What `stat` says of a file, in the format of `script.ts`, as the port tells it. */
import type { FileStat, Kind } from "../../../model/Entry.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import { statOf } from "../hostFile.ts"

const kinds: Readonly<Record<number, Kind>> = { 0o100000: "file", 0o040000: "directory", 0o120000: "symlink" }

/** Of a mode as the system has it. */
export const kindOf = (mode: number): Kind => kinds[mode & 0o170000] ?? "other"

/** Size, permissions, owner, mode, seconds of the last change and of birth, and the same two with a fraction. */
const line = /^(\d+) \d+ \d+:\d+ ([0-9a-f]+) (-?\d+) (\S+) ([^/]*)\/([^/]*)\s*$/

/** Characters. Anything may be said inside, and the expression takes the longer the more spaces there are. */
const longest = 400

/** Milliseconds of a second; a time is told to the second at least. */
const fraction = (time: string): number => Number((/\.(\d{1,3})/.exec(time)?.[1] ?? "0").padEnd(3, "0"))

const millisOf = (seconds: string, time: string): number => Number(seconds) * 1000 + fraction(time)

/** `undefined` for what `stat` does not say. A stat that does not ask for the birth says no number of it. */
export const toStat = (path: FsPath, text: string): FileStat | undefined => {
  const found = text.length > longest ? null : line.exec(text)
  if (found === null) return undefined
  const [, size = "", hex = "", modified = "", born = "", modifiedAt = "", createdAt = ""] = found
  const mode = Number.parseInt(hex, 16)
  return statOf(path, kindOf(mode), Number(size), millisOf(born, createdAt), millisOf(modified, modifiedAt), mode)
}
