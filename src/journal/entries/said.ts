import * as DateTime from "effect/DateTime"
import * as humanise from "../../model/words.ts"
import type { Content } from "../FileSystemEntry.ts"
import type { Entry } from "../Journal.ts"
import { sizeOf } from "./contents.ts"

const bytes = (content: Content): string => humanise.bytes(sizeOf(content))

const version = (version: string | undefined): string => (version === undefined ? "" : `version ${version.slice(0, 12)}`)

const words = (...all: ReadonlyArray<string | false | undefined>): string =>
  all.filter((word) => typeof word === "string" && word !== "").join(", ")

export const said = (entry: Entry): readonly [subject: string, detail: string] => {
  switch (entry._tag) {
    case "FileRead":
      return [
        entry.path,
        words(
          entry.offset !== undefined && `from byte ${entry.offset}`,
          entry.length !== undefined && `${humanise.count(entry.length, "byte")} at most`
        )
      ]
    case "FileWrite":
      return [entry.path, words(entry.createMode, bytes(entry.content))]
    case "FileWriteChunk":
      return [
        entry.path ?? "",
        words(
          entry.createMode,
          `${bytes(entry.data)} at ${humanise.whole(entry.offset)}`,
          entry.discard === true ? "given up" : entry.isFinal && "the last"
        )
      ]
    case "FileList":
      return [entry.path, words(entry.pattern, entry.recursive === true && "recursive")]
    case "FileDelete":
      return [entry.path, words(entry.recursive === true && "recursive")]
    case "FileStat":
      return [entry.path, ""]
    case "FileContent":
      return ["", words(bytes(entry.content), entry.isPartial && `of ${humanise.bytes(entry.totalSize)}`)]
    case "FileContentChunk":
      return ["", words(`${bytes(entry.data)} at ${humanise.whole(entry.offset)}`, entry.isFinal && "the last")]
    case "FileWritten":
      return [entry.path, words(humanise.bytes(entry.bytesWritten), version(entry.version))]
    case "FileListing":
      return ["", humanise.count(entry.entries.length, "entry")]
    case "FileDeleted":
      return [
        entry.path,
        words(
          humanise.count(entry.deletedCount, "file"),
          entry.directories !== undefined && entry.directories > 0 && humanise.count(entry.directories, "directory")
        )
      ]
    case "FileMetadata":
      return ["", words(entry.kind ?? (entry.isDirectory ? "directory" : "file"), humanise.bytes(entry.size))]
    case "FileFault":
      return [entry.path, `${entry.faultKind}: ${entry.message}`]
    case "FileMakeDirectory":
    case "FileDirectoryMade":
    case "FileLinkMade":
    case "FileAttributesSet":
      return [entry.path, ""]
    case "FileMove":
      return [`${entry.path} -> ${entry.to}`, words(entry.overwrite === true && "overwrite")]
    case "FileMoved":
      return [
        `${entry.path} -> ${entry.to}`,
        words(
          humanise.count(entry.files, "file"),
          entry.directories > 0 && humanise.count(entry.directories, "directory"),
          humanise.bytes(entry.bytes)
        )
      ]
    case "FileEdit":
      return [entry.path, humanise.count(entry.edits.length, "edit")]
    case "FileEdited":
      return [entry.path, words(humanise.count(entry.replacements, "replacement"), version(entry.version))]
    case "FileMakeLink":
      return [`${entry.path} -> ${entry.target}`, ""]
    case "FileSetAttributes":
      return [
        entry.path,
        words(
          entry.mode !== undefined && `mode ${entry.mode.toString(8).padStart(4, "0")}`,
          entry.modified !== undefined && `modified ${DateTime.formatIso(entry.modified)}`
        )
      ]
    case "FileStarted":
      return ["", `by ${entry.instance}`]
    case "LeafCheckpoint":
      return ["", `all answered up to ${entry.through}`]
    case "DaemonChanged":
      return [entry.daemon, words(entry.status, entry.failure)]
  }
}
