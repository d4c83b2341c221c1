import * as Effect from "effect/Effect"
import { isBytes } from "../../model/bytes.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { JournalError } from "../errors.ts"
import type { Content, FileMetadata, Removed } from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../Journal.ts"

export type Metadata = NonNullable<FileMetadata["way"]>[number]

type NamedContent = readonly [name: string, content: Content]

const contentOfRemoved = (name: string, { content, path }: Removed): ReadonlyArray<NamedContent> =>
  content === undefined ? [] : [[`${name} ${path}`, content]]

export const contentsOf = (entry: Entry): ReadonlyArray<NamedContent> => {
  switch (entry._tag) {
    case "FileWrite":
    case "FileContent":
      return [["content", entry.content]]
    case "FileWriteChunk":
    case "FileContentChunk":
      return [["data", entry.data]]
    case "FileWritten":
      return entry.previous === undefined || entry.previous === null ? [] : [["previous", entry.previous]]
    case "FileDeleted":
      return (entry.removed ?? []).flatMap((removed) => contentOfRemoved("removed", removed))
    case "FileMoved":
      return entry.replaced === undefined ? [] : contentOfRemoved("replaced", entry.replaced)
    default:
      return []
  }
}

/** Returns the metadata of a stat, as FileMetadata has it. */
export const metadataOf = ({ createdAt, isDirectory, isSymlink, kind, mode, modifiedAt, sizeBytes }: FileStat): Metadata => ({
  size: sizeBytes,
  isDirectory,
  kind,
  ...(modifiedAt !== undefined && { modified: modifiedAt }),
  ...(createdAt !== undefined && { created: createdAt }),
  ...(mode !== undefined && { permissions: mode }),
  ...(isSymlink !== undefined && { isSymlink })
})

export const sizeOf = (content: Content): number => (isBytes(content) ? content.length : content.size)

/** Returns the value with known contents replaced by their bytes, at any depth of plain records. */
const withBytes = (value: unknown, known: ReadonlyMap<unknown, Uint8Array>): unknown => {
  const bytes = known.get(value)
  if (bytes !== undefined) return bytes
  if (Array.isArray(value)) return value.map((item) => withBytes(item, known))
  return typeof value === "object" && value !== null && "content" in value
    ? { ...value, content: withBytes(value.content, known) }
    : value
}

export const loadContents =
  (journal: Scrivener<Entry>) =>
  (recorded: Recorded<Entry>): Effect.Effect<Recorded<Entry>, JournalError> =>
    Effect.map(
      Effect.forEach(contentsOf(recorded.entry), ([, content]) =>
        Effect.map(journal.bytes(content), (bytes) => [content, bytes] as const)
      ),
      (contents) => {
        const known = new Map<unknown, Uint8Array>(contents)
        const fields = Object.entries(recorded.entry).map(([field, value]) => [field, withBytes(value, known)] as const)
        const prototype = Object.getPrototypeOf(recorded.entry) as object
        return { ...recorded, entry: Object.assign(Object.create(prototype), Object.fromEntries(fields)) as Entry }
      }
    )
