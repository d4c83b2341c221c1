/**
 * File operations as data: thirteen kinds of entry, of which some ask (efferent: towards the disk) and some answer (afferent: back from
 * it). An answer carries the correlation id of what it answers, so one journal holds everything in the order in which it was said.
 *
 * Paths are relative to the branch's root, separated by "/", without ".." and without empty segments; a leading "/" is that root too.
 * Contents are bytes, whatever they may mean. Beyond 4 KiB an entry holds them by their hash (`ContentRef`), and the bytes lie in the
 * journal's content store.
 *
 * Fields that are optional, and the kinds in `Extended`, say what the thirteen cannot: preconditions, whole errors, links, directories made,
 * moves, edits in place. Leaves and branches use them where both are told to (`extended: true`).
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import {
  FileRead,
  FileWrite,
  FileWriteChunk,
  FileList,
  FileDelete,
  FileStat,
  FileContent,
  FileContentChunk,
  FileWritten,
  FileListing,
  FileDeleted,
  FileMetadata,
  FileFault,
  FileMakeDirectory,
  FileDirectoryMade,
  FileMove,
  FileMoved,
  FileEdit,
  FileEdited,
  FileMakeLink,
  FileLinkMade,
  FileSetAttributes,
  FileAttributesSet,
  FileStarted
} from "./entries/files.ts"

export {
  /** @since 0.1.0 */
  ContentRef,
  /** @since 0.1.0 */
  Content,
  /** @since 0.1.0 */
  CreateMode,
  /** @since 0.1.0 */
  FileRead,
  /** @since 0.1.0 */
  FileWrite,
  /** @since 0.1.0 */
  FileWriteChunk,
  /** @since 0.1.0 */
  FileList,
  /** @since 0.1.0 */
  FileDelete,
  /** @since 0.1.0 */
  FileStat,
  /** @since 0.1.0 */
  FileContent,
  /** @since 0.1.0 */
  FileContentChunk,
  /** @since 0.1.0 */
  FileWritten,
  /** @since 0.1.0 */
  FileListing,
  /** @since 0.1.0 */
  Removed,
  /** @since 0.1.0 */
  FileDeleted,
  /** @since 0.1.0 */
  FileMetadata,
  /** @since 0.1.0 */
  FaultKind,
  /** @since 0.1.0 */
  FileFault,
  /** @since 0.1.0 */
  FileMakeDirectory,
  /** @since 0.1.0 */
  FileDirectoryMade,
  /** @since 0.1.0 */
  FileMove,
  /** @since 0.1.0 */
  FileMoved,
  /** @since 0.1.0 */
  Edit,
  /** @since 0.1.0 */
  FileEdit,
  /** @since 0.1.0 */
  FileEdited,
  /** @since 0.1.0 */
  FileMakeLink,
  /** @since 0.1.0 */
  FileLinkMade,
  /** @since 0.1.0 */
  FileSetAttributes,
  /** @since 0.1.0 */
  FileAttributesSet,
  /** @since 0.1.0 */
  FileStarted
} from "./entries/files.ts"

const thirteen = [
  FileRead,
  FileContent,
  FileContentChunk,
  FileWrite,
  FileWriteChunk,
  FileWritten,
  FileList,
  FileListing,
  FileDelete,
  FileDeleted,
  FileStat,
  FileMetadata,
  FileFault
] as const

const extension = [
  FileMakeDirectory,
  FileDirectoryMade,
  FileMove,
  FileMoved,
  FileEdit,
  FileEdited,
  FileMakeLink,
  FileLinkMade,
  FileSetAttributes,
  FileAttributesSet,
  FileStarted
] as const

/**
 * The thirteen.
 *
 * @since 0.1.0
 */
export const Thirteen = Schema.Union(thirteen)
/** @since 0.1.0 */
export type Thirteen = typeof Thirteen.Type

/**
 * What the thirteen cannot say.
 *
 * @since 0.1.0
 */
export const Extended = Schema.Union(extension)
/** @since 0.1.0 */
export type Extended = typeof Extended.Type

/**
 * Every entry of a journal of files.
 *
 * @since 0.1.0
 */
export const FileSystemEntry = Schema.Union([...thirteen, ...extension])
/** @since 0.1.0 */
export type FileSystemEntry = Thirteen | Extended

/**
 * An entry that asks for something to be done.
 *
 * @since 0.1.0
 */
export type Efferent =
  | FileRead
  | FileWrite
  | FileWriteChunk
  | FileList
  | FileDelete
  | FileStat
  | FileMakeDirectory
  | FileMove
  | FileEdit
  | FileMakeLink
  | FileSetAttributes
/**
 * An entry that answers.
 *
 * @since 0.1.0
 */
export type Afferent = Exclude<FileSystemEntry, Efferent>
/**
 * What ends an answer: after it nothing more comes for its correlation id.
 *
 * @since 0.1.0
 */
export type Terminal = Exclude<Afferent, FileStarted>

const efferent: ReadonlySet<string> = new Set<Efferent["_tag"]>([
  "FileRead",
  "FileWrite",
  "FileWriteChunk",
  "FileList",
  "FileDelete",
  "FileStat",
  "FileMakeDirectory",
  "FileMove",
  "FileEdit",
  "FileMakeLink",
  "FileSetAttributes"
])

const files: ReadonlySet<string> = new Set([...thirteen, ...extension].map((entry) => entry.fields._tag.schema.literal))

/**
 * Whether a value is an entry of a journal of files.
 *
 * @since 0.1.0
 */
export const isFileSystemEntry = (entry: unknown): entry is FileSystemEntry =>
  Predicate.hasProperty(entry, "_tag") && files.has(String(entry._tag))

/**
 * It asks: spells write it, leaves read it.
 *
 * @since 0.1.0
 */
export const isEfferent = (entry: unknown): entry is Efferent =>
  Predicate.hasProperty(entry, "_tag") && efferent.has(String(entry._tag))

/**
 * It answers: leaves write it, spells read it.
 *
 * @since 0.1.0
 */
export const isAfferent = (entry: unknown): entry is Afferent => isFileSystemEntry(entry) && !efferent.has(entry._tag)

/**
 * It ends an answer. A FileContentChunk does only where it is final.
 *
 * @since 0.1.0
 */
export const isTerminal = (entry: unknown): entry is Terminal =>
  isAfferent(entry) && entry._tag !== "FileStarted" && (entry._tag !== "FileContentChunk" || entry.isFinal)

/**
 * It changes something where it succeeds.
 *
 * @since 0.1.0
 */
export const isMutation = (entry: Efferent): boolean =>
  entry._tag !== "FileRead" && entry._tag !== "FileList" && entry._tag !== "FileStat"

/**
 * It answers the entry with this correlation id.
 *
 * @since 0.1.0
 */
export const answers =
  (correlationId: string) =>
  (entry: unknown): entry is Afferent =>
    isAfferent(entry) && entry.correlationId === correlationId
