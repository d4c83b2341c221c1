import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as humanise from "../../model/words.ts"
import type { Content, Removed } from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../model.ts"
import type { JournalError } from "../errors.ts"
import { sizeOf } from "./values.ts"

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

const sizeText = (content: Content): string => humanise.bytes(sizeOf(content))

const version = (version: string | undefined): string => (version === undefined ? "" : `version ${version.slice(0, 12)}`)

const joinWords = (...all: ReadonlyArray<string | false | undefined>): string =>
  all.filter((word) => typeof word === "string" && word !== "").join(", ")

type Description = readonly [subject: string, detail: string]

const pathOnly = ({ path }: { readonly path: string }): Description => [path, ""]

const rows: { readonly [K in Entry["_tag"]]: (entry: Extract<Entry, { readonly _tag: K }>) => Description } = {
  FileRead: (entry) => [
    entry.path,
    joinWords(
      entry.offset !== undefined && `from byte ${entry.offset}`,
      entry.length !== undefined && `${humanise.count(entry.length, "byte")} at most`
    )
  ],
  FileWrite: (entry) => [entry.path, joinWords(entry.createMode, sizeText(entry.content))],
  FileWriteChunk: (entry) => [
    entry.path ?? "",
    joinWords(
      entry.createMode,
      `${sizeText(entry.data)} at ${humanise.whole(entry.offset)}`,
      entry.discard === true ? "cancelled" : entry.isFinal && "last chunk"
    )
  ],
  FileList: (entry) => [entry.path, joinWords(entry.pattern, entry.recursive === true && "recursive")],
  FileDelete: (entry) => [entry.path, joinWords(entry.recursive === true && "recursive")],
  FileStat: pathOnly,
  FileContent: (entry) => ["", joinWords(sizeText(entry.content), entry.isPartial && `of ${humanise.bytes(entry.totalSize)}`)],
  FileContentChunk: (entry) => [
    "",
    joinWords(`${sizeText(entry.data)} at ${humanise.whole(entry.offset)}`, entry.isFinal && "last chunk")
  ],
  FileWritten: (entry) => [entry.path, joinWords(humanise.bytes(entry.bytesWritten), version(entry.version))],
  FileListing: (entry) => ["", humanise.count(entry.entries.length, "entry")],
  FileDeleted: (entry) => [
    entry.path,
    joinWords(
      humanise.count(entry.deletedCount, "file"),
      entry.directories !== undefined && entry.directories > 0 && humanise.count(entry.directories, "directory")
    )
  ],
  FileMetadata: (entry) => [
    "",
    joinWords(entry.kind ?? (entry.isDirectory ? "directory" : "file"), humanise.bytes(entry.size))
  ],
  FileFault: (entry) => [entry.path, `${entry.faultKind}: ${entry.message}`],
  FileMakeDirectory: pathOnly,
  FileDirectoryMade: pathOnly,
  FileLinkMade: pathOnly,
  FileAttributesSet: pathOnly,
  FileMove: (entry) => [`${entry.path} -> ${entry.to}`, joinWords(entry.overwrite === true && "overwrite")],
  FileMoved: (entry) => [
    `${entry.path} -> ${entry.to}`,
    joinWords(
      humanise.count(entry.files, "file"),
      entry.directories > 0 && humanise.count(entry.directories, "directory"),
      humanise.bytes(entry.bytes)
    )
  ],
  FileEdit: (entry) => [entry.path, humanise.count(entry.edits.length, "edit")],
  FileEdited: (entry) => [entry.path, joinWords(humanise.count(entry.replacements, "replacement"), version(entry.version))],
  FileMakeLink: (entry) => [`${entry.path} -> ${entry.target}`, ""],
  FileSetAttributes: (entry) => [
    entry.path,
    joinWords(
      entry.mode !== undefined && `mode ${entry.mode.toString(8).padStart(4, "0")}`,
      entry.modified !== undefined && `modified ${DateTime.formatIso(entry.modified)}`
    )
  ],
  FileStarted: (entry) => ["", `by ${entry.instance}`],
  LeafCheckpoint: (entry) => ["", `all answered up to ${entry.through}`],
  DaemonChanged: (entry) => [entry.daemon, joinWords(entry.status, entry.failure)]
}

export const describeEntry = (entry: Entry): Description => (rows[entry._tag] as (entry: Entry) => Description)(entry)
