import type { FileEntry, FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Content } from "../FileSystemEntry.ts"
import { invalidTargetReason, isRef, type Metadata } from "../entries/values.ts"
import { concatenate } from "../../runtime/buffer.ts"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { JournalError } from "../errors.ts"
import type { Entry, Scrivener } from "../model.ts"

// Maps the names of temporary files. A leaf rejects temporary names from a caller. So the branch gives its temporary files
// other names in the leaf's filesystem, and hides them in listings. All other names are unchanged.

const temporaryPrefix = ".~fsa-"
const leafTemporaryPrefix = ".~branch-"

const toLeafName = (name: string): string =>
  TemporaryNames.isOwnName(name) ? leafTemporaryPrefix + name.slice(temporaryPrefix.length) : name

const fromLeafName = (name: string): string => {
  const callerName = name.startsWith(leafTemporaryPrefix) ? temporaryPrefix + name.slice(leafTemporaryPrefix.length) : name
  return TemporaryNames.isOwnName(callerName) ? callerName : name
}

export const toLeafPath = (path: FsPath): FsPath =>
  path.includes(temporaryPrefix) ? (path.split("/").map(toLeafName).join("/") as FsPath) : path

export const fromLeafPath = <Path extends string>(path: Path): Path =>
  path.includes(leafTemporaryPrefix) ? (path.split("/").map(fromLeafName).join("/") as Path) : path

/** Returns the metadata of the link itself. Leaves of older versions describe the link's target, even with `links: "leave"`. */
export const describeLinkItself = (found: Metadata): Metadata =>
  found.isSymlink === true && found.kind !== "symlink" ? { ...found, kind: "symlink", isDirectory: false } : found

const unknownTarget: Fault = {
  _tag: "IoError",
  code: "ENOTSUP",
  detail: "the leaf does not report the target of the link; run a leaf of this version of fs-algebra, with `extended`"
}
const notALink: Fault = { _tag: "InvalidArgument", argument: "path", detail: "the path is not a symbolic link" }

const checkTarget = (text: string): string | Fault => {
  const invalidReason = invalidTargetReason(text)
  return invalidReason === undefined
    ? text
    : { _tag: "IoError", detail: `the leaf reported an invalid link target: ${invalidReason}` }
}

export const targetOf = (found: Metadata): string | Fault =>
  describeLinkItself(found).kind !== "symlink"
    ? notALink
    : found.target === undefined
      ? unknownTarget
      : checkTarget(found.target)

export const resolutionTargetOf = (found: Metadata): string | Fault => {
  const target = targetOf(found)
  return typeof target === "string" && found.relativeTarget !== undefined ? checkTarget(found.relativeTarget) : target
}

export const childOf = ({ addressable, kind, name, sizeBytes }: FileEntry): Child => ({
  name: fromLeafPath(name),
  kind,
  addressable,
  ...(sizeBytes !== undefined && { sizeBytes })
})

// The answer to a read, as one or more contents in order. Each content is in the content store or, if it is small, in memory.
// So later writes do not change the content of the answer.

export interface Piece {
  readonly offset: number
  readonly content: Content
}

export interface Pieces {
  readonly size: number
  readonly isPartial: boolean
  readonly stat: FileStat | undefined
  readonly all: ReadonlyArray<Piece>
}

export const versionOf = ({ all, isPartial }: Pieces): string | undefined => {
  const only = all.length === 1 && !isPartial ? all[0]!.content : undefined
  return only !== undefined && isRef(only) ? only.sha256 : undefined
}

const pieceAt = (all: ReadonlyArray<Piece>, offset: number): Piece => {
  let low = 0
  let high = all.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (all[middle]!.offset <= offset) low = middle
    else high = middle - 1
  }
  return all[low]!
}

const noBytes = Effect.sync(() => new Uint8Array(0))

/** Returns a function that reads a range within one piece. The latest piece is cached for the next small read. */
export const makeReader = (journal: Scrivener<Entry>, { all, size }: Pieces) => {
  let latest: { readonly piece: Piece; readonly bytes: Uint8Array } | undefined
  const bytesOf = (piece: Piece): Effect.Effect<Uint8Array, JournalError> =>
    latest?.piece === piece
      ? Effect.succeed(latest.bytes)
      : Effect.map(journal.bytes(piece.content), (bytes) => {
          latest = { piece, bytes }
          return bytes
        })
  /** Reads at most `length` bytes, and fewer at the end of a piece. */
  return (offset: number, length: number): Effect.Effect<Uint8Array, JournalError> =>
    Effect.suspend(() => {
      if (offset >= size || length <= 0) return noBytes
      const piece = pieceAt(all, offset)
      const from = offset - piece.offset
      return Effect.map(bytesOf(piece), (bytes) => bytes.slice(from, from + length))
    })
}

export const readWhole = (journal: Scrivener<Entry>, { all }: Pieces): Effect.Effect<Uint8Array, JournalError> =>
  Effect.map(
    Effect.forEach(all, ({ content }) => journal.bytes(content)),
    concatenate
  )

export const streamPieces = (journal: Scrivener<Entry>, { all }: Pieces): Stream.Stream<Uint8Array, JournalError> =>
  Stream.fromPull(
    Effect.sync(() => {
      let next = 0
      return Effect.suspend((): Effect.Effect<[Uint8Array, ...Array<Uint8Array>], JournalError | Cause.Done<void>> => {
        const piece = all[next++]
        return piece === undefined ? Cause.done() : Effect.map(journal.bytes(piece.content), (bytes) => [bytes])
      })
    })
  )
