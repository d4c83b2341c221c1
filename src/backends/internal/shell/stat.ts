import type { FileStat, Kind } from "../../../model/Entry.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import { statOf } from "../hostFile.ts"

const kinds: Readonly<Record<number, Kind>> = { 0o100000: "file", 0o040000: "directory", 0o120000: "symlink" }

export const kindOf = (mode: number): Kind => kinds[mode & 0o170000] ?? "other"

/** Size, permissions, owner, mode, seconds of last change and birth, and both times with fractions. */
const statPattern = /^(\d+) \d+ \d+:\d+ ([0-9a-f]+) (-?\d+) (\S+) ([^/]*)\/([^/]*)\s*$/

/** Programs inside may print anything, and the expression takes longer the more spaces it contains. */
const maxLineLength = 400

const millisWithinSecond = (time: string): number => Number((/\.(\d{1,3})/.exec(time)?.[1] ?? "0").padEnd(3, "0"))

const millisOf = (seconds: string, time: string): number => Number(seconds) * 1000 + millisWithinSecond(time)

/** Parses a stat. Returns `undefined` for invalid output. The field of an unknown birth contains no number. */
export const toStat = (path: FsPath, text: string): FileStat | undefined => {
  const found = text.length > maxLineLength ? null : statPattern.exec(text)
  if (found === null) return undefined
  const [, size = "", hex = "", modified = "", born = "", modifiedAt = "", createdAt = ""] = found
  const mode = Number.parseInt(hex, 16)
  return statOf(path, kindOf(mode), Number(size), millisOf(born, createdAt), millisOf(modified, modifiedAt), mode)
}
