/** Formats the entries of a listing: a directory ends in "/", a file shows its size, any other entry shows its kind. */
import type { Kind } from "../../model/Entry.ts"
import { plural, size } from "./words.ts"

export interface ListedEntry {
  readonly name: string
  readonly kind: Kind
  readonly sizeBytes?: number | undefined
  /** @default true */
  readonly addressable?: boolean | undefined
}

const notesOf = ({ kind, sizeBytes }: ListedEntry): ReadonlyArray<string> =>
  kind === "directory"
    ? []
    : kind === "file"
      ? sizeBytes === undefined
        ? []
        : [size(sizeBytes)]
      : [kind === "symlink" ? "link" : "neither file nor directory"]

export const formatEntry = (entry: ListedEntry): string => {
  const notes = [...notesOf(entry), ...(entry.addressable === false ? ["escaped: no path can name it"] : [])]
  return `${entry.name}${entry.kind === "directory" ? "/" : ""}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`
}

export interface Counts {
  readonly files: number
  readonly directories: number
  readonly others: number
}

export const countsOf = (entries: ReadonlyArray<{ readonly kind: Kind }>): Counts => {
  const count = (kind: Kind): number => entries.reduce((sum, entry) => (entry.kind === kind ? sum + 1 : sum), 0)
  const files = count("file")
  const directories = count("directory")
  return { files, directories, others: entries.length - files - directories }
}

/** Formats counts as in `2 directories, 1 file`, with other entries if there are any. */
export const formatCounts = ({ directories, files, others }: Counts): string =>
  [
    plural(directories, "directory", "directories"),
    plural(files, "file"),
    ...(others > 0 ? [plural(others, "other")] : [])
  ].join(", ")
