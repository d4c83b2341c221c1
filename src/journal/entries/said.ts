import * as DateTime from "effect/DateTime"
import * as humanise from "../../model/words.ts"
import type { Content } from "../FileSystemEntry.ts"
import type { Entry } from "../Journal.ts"
import { sizeOf } from "./contents.ts"

const sizeText = (content: Content): string => humanise.bytes(sizeOf(content))

const version = (version: string | undefined): string => (version === undefined ? "" : `version ${version.slice(0, 12)}`)

const joinWords = (...all: ReadonlyArray<string | false | undefined>): string =>
  all.filter((word) => typeof word === "string" && word !== "").join(", ")

type Said = readonly [subject: string, detail: string]

const pathOnly = ({ path }: { readonly path: string }): Said => [path, ""]

const rows: { readonly [K in Entry["_tag"]]: (entry: Extract<Entry, { readonly _tag: K }>) => Said } = {
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
      entry.discard === true ? "given up" : entry.isFinal && "the last"
    )
  ],
  FileList: (entry) => [entry.path, joinWords(entry.pattern, entry.recursive === true && "recursive")],
  FileDelete: (entry) => [entry.path, joinWords(entry.recursive === true && "recursive")],
  FileStat: pathOnly,
  FileContent: (entry) => ["", joinWords(sizeText(entry.content), entry.isPartial && `of ${humanise.bytes(entry.totalSize)}`)],
  FileContentChunk: (entry) => [
    "",
    joinWords(`${sizeText(entry.data)} at ${humanise.whole(entry.offset)}`, entry.isFinal && "the last")
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

export const describeEntry = (entry: Entry): Said => (rows[entry._tag] as (entry: Entry) => Said)(entry)
