/**
 * File operations as data, in thirteen basic kinds of entry. Efferent entries are requests to a filesystem, and afferent
 * entries are its answers. An answer has the correlation id of its request, so one journal contains all requests and answers
 * in order.
 *
 * Paths are relative to the branch's root, separated by "/", without ".." and without empty segments. A leading "/" also means
 * the branch's root. Contents are bytes. For a content above 4 KiB, an entry contains a hash (`ContentRef`), and the bytes are
 * in the content store of the journal.
 *
 * The optional fields and the `Extended` kinds add preconditions, complete errors, links, directory creation, moves and edits
 * in place. Leaves and branches use them if both have the option `extended: true`.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import { type Afferent, type Efferent, FileSystemEntry, type Terminal } from "./entries/files.ts"
import { kinds } from "./entries/kinds.ts"

/** @since 0.1.0 */
export * from "./entries/files.ts"

const entryTags: ReadonlySet<string> = new Set(FileSystemEntry.members.map((entry) => entry.fields._tag.schema.literal))

/**
 * Tests whether a value is a request, an answer or the notice FileStarted.
 *
 * @category guards
 * @since 0.1.0
 */
export const isFileSystemEntry = (entry: unknown): entry is FileSystemEntry =>
  Predicate.hasProperty(entry, "_tag") && entryTags.has(String(entry._tag))

/**
 * Tests whether the entry is a request. Branches append requests, and leaves read them.
 *
 * @example
 * ```ts
 * const request = new FileSystemEntry.FileRead({ correlationId: "1", path: "notes/todo.md" })
 * FileSystemEntry.isEfferent(request) // => true
 * FileSystemEntry.isMutation(request) // => false
 * ```
 * @category guards
 * @since 0.1.0
 */
export const isEfferent = (entry: unknown): entry is Efferent =>
  Predicate.hasProperty(entry, "_tag") && Object.hasOwn(kinds, String(entry._tag))

/**
 * Tests whether the entry is an answer or the notice FileStarted. Leaves append answers, and branches read them.
 *
 * @category guards
 * @since 0.1.0
 */
export const isAfferent = (entry: unknown): entry is Afferent => isFileSystemEntry(entry) && !Object.hasOwn(kinds, entry._tag)

/**
 * Tests whether the entry ends an answer. A FileContentChunk ends an answer only if it is final.
 *
 * @category guards
 * @since 0.1.0
 */
export const isTerminal = (entry: unknown): entry is Terminal =>
  isAfferent(entry) && entry._tag !== "FileStarted" && (entry._tag !== "FileContentChunk" || entry.isFinal)

/**
 * Tests whether a request changes something when it succeeds.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMutation = (entry: Efferent): boolean => kinds[entry._tag].needs.length > 0

/**
 * Returns a predicate for answers to the request with this correlation id.
 *
 * @since 0.1.0
 */
export const answers =
  (correlationId: string) =>
  (entry: unknown): entry is Afferent =>
    isAfferent(entry) && entry.correlationId === correlationId
