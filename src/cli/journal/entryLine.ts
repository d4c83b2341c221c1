/** One line for each entry: where it stands, when it was, what it is, and the id by which answers are told. */
import * as DateTime from "effect/DateTime"
import type { Content } from "../../journal/FileSystemEntry.ts"
import type { Entry, Recorded } from "../../journal/Journal.ts"
import * as humanise from "../humanise.ts"
import type { Look } from "../look.ts"

const sizeOf = (content: Content): number => (content instanceof Uint8Array ? content.length : content.size)

const bytes = (content: Content): string => humanise.bytes(sizeOf(content))

const version = (version: string | undefined): string => (version === undefined ? "" : `version ${version.slice(0, 12)}`)

const words = (...all: ReadonlyArray<string | false | undefined>): string =>
  all.filter((word) => typeof word === "string" && word !== "").join(", ")

/** What it is about, and what it says of that. */
const said = (entry: Entry): readonly [subject: string, detail: string] => {
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
    case "DaemonChanged":
      return [entry.daemon, words(entry.status, entry.failure)]
  }
}

const widestTag = "FileMakeDirectory".length

const position = (look: Look, position: number): string => look.yellow(`${position}`.padStart(6))

/** `2026-01-31 23:59:00.123` in UTC; a time that no calendar has is shown as the number it is. */
export const time = (at: number): string => {
  try {
    return DateTime.formatIso(DateTime.makeUnsafe(at)).replace("T", " ").replace("Z", "")
  } catch {
    return `${at}`
  }
}

/** What ends a line is shown where there is room for it. */
export const row = (look: Look, at: number, millis: number, cells: ReadonlyArray<string>): string =>
  `${[position(look, at), look.dim(time(millis)), ...cells].join("  ").trimEnd()}\n`

const isFault = (entry: Entry): boolean =>
  entry._tag === "FileFault" || (entry._tag === "DaemonChanged" && entry.failure !== undefined)

export const line = (look: Look, { at, entry, position }: Recorded<Entry>): string => {
  const [subject, detail] = said(entry)
  const paint = isFault(entry) ? look.red : look.cyan
  const id = "correlationId" in entry ? look.dim(look.name(entry.correlationId)) : ""
  const cells = [paint(entry._tag.padEnd(widestTag)), look.name(subject), look.name(detail), id]
  return row(
    look,
    position,
    at,
    cells.filter((cell) => cell !== "")
  )
}
