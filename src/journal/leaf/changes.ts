import { invalidArgument } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { withResolvedLock } from "../../engine/directories.ts"
import { placeFault, resolve, type Resolved, resolveLink } from "../../engine/resolve.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Call from "../../filesystem/operations/call.ts"
import type { FileStat, WriteResult } from "../../model/Entry.ts"
import type { Fault, FsError, ListError } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import { sha256 } from "../../runtime/hash.ts"
import {
  type Content,
  FileAttributesSet,
  type FileDelete,
  FileDeleted,
  FileDirectoryMade,
  type FileEdit,
  FileEdited,
  FileLinkMade,
  type FileMakeDirectory,
  type FileMakeLink,
  type FileMove,
  FileMoved,
  type FileSetAttributes,
  FileStarted,
  type FileWrite,
  type FileWriteChunk,
  FileWritten,
  type Terminal
} from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../model.ts"
import { make } from "../entries/kinds.ts"
import { digestOf, invalidTargetReason, sizeOf, streamOf } from "../entries/values.ts"
import { concatenate } from "../../runtime/buffer.ts"
import type { JournalError } from "../errors.ts"
import { type AnswerEffect, type IncomingContent, type LeafContext, retryWhileBusy, type Transfer, type Work } from "./model.ts"

const fromContent = (journal: Scrivener<Entry>, content: Content): IncomingContent => ({
  size: sizeOf(content),
  stream: streamOf(journal.contents, content),
  bytes: isBytes(content) ? Effect.succeed(content) : journal.bytes(content),
  sha256: isBytes(content) ? Effect.sync(() => sha256(content)) : Effect.succeed(content.sha256)
})

const fromTransfer = (
  journal: Scrivener<Entry>,
  { first, nextOffset: size, position }: Transfer,
  last: number
): IncomingContent => {
  const isPart = ({ entry }: Recorded<Entry>): boolean =>
    entry._tag === "FileWriteChunk" && entry.correlationId === first.correlationId
  const between = Stream.takeWhile(journal.stored(position - 1), (recorded) => recorded.position <= last)
  const stream = Stream.flatMap(Stream.filter(between, isPart), ({ entry }) =>
    entry._tag === "FileWriteChunk" ? streamOf(journal.contents, entry.data) : Stream.empty
  )
  return {
    size,
    stream,
    bytes: Effect.map(Stream.runCollect(stream), concatenate),
    sha256: Effect.map(digestOf(stream), ({ sha256 }) => sha256)
  }
}

type FoundState = Pick<FileStarted, "size" | "after" | "removes" | "edits">

/** Looks up the path with `find`. Returns `null` if the path is missing, and `undefined` if the lookup fails. */
const lookUp = (
  self: LeafContext,
  path: FsPath,
  find: (port: Algebra["port"], path: FsPath) => Effect.Effect<Resolved, Fault>
): Effect.Effect<FileStat | null | undefined> =>
  Effect.match(find(self.fs.port, path), { onSuccess: ({ stat }) => stat ?? null, onFailure: () => undefined })

export const statThroughLinks = (self: LeafContext, path: FsPath) => lookUp(self, path, resolve)
export const statLinkItself = (self: LeafContext, path: FsPath) => lookUp(self, path, resolveLink)

const contentSizeOf = (stat: FileStat | null | undefined): FoundState =>
  stat === undefined ? {} : { size: stat === null ? null : stat.sizeBytes }

const after = <E, E2>(
  self: LeafContext,
  work: Work,
  foundState: Effect.Effect<FoundState, E2>,
  change: Effect.Effect<Terminal, E>
) =>
  self.settings.extended
    ? Effect.flatMap(foundState, (foundState) =>
        Effect.andThen(
          self.tell(work, [
            make(FileStarted, { correlationId: work.intent.correlationId, instance: self.instance, ...foundState })
          ]),
          change
        )
      )
    : change

export const contentOf = (self: LeafContext, work: Work, intent: FileWrite | FileWriteChunk) =>
  intent._tag === "FileWrite"
    ? fromContent(self.journal, intent.content)
    : fromTransfer(self.journal, work.transfer!, work.position)

export const firstEntryOf = (work: Work, intent: FileWrite | FileWriteChunk): FileWrite | FileWriteChunk =>
  intent._tag === "FileWrite" ? intent : work.transfer!.first

export const writtenAnswer = (
  self: LeafContext,
  work: Work,
  bytesWritten: number,
  version: string | undefined
): Effect.Effect<FileWritten> => {
  const answer = (stat?: FileStat): FileWritten =>
    make(FileWritten, { correlationId: work.intent.correlationId, path: work.givenPath, bytesWritten, version, stat })
  return self.settings.extended
    ? Effect.match(self.fs.stat(work.path), { onSuccess: answer, onFailure: () => answer() })
    : Effect.succeed(answer())
}

export const write = (self: LeafContext, work: Work, intent: FileWrite | FileWriteChunk): AnswerEffect => {
  const { fs, settings } = self
  const incoming = contentOf(self, work, intent)
  const { createMode: mode, createParents, ifMatch, version } = firstEntryOf(work, intent)
  const options = { mode, createParents, version, ...(ifMatch !== undefined && { ifMatch }) }
  const put: Effect.Effect<WriteResult, FsError | JournalError> =
    incoming.size <= settings.streamingThreshold
      ? Effect.flatMap(incoming.bytes, (bytes) =>
          retryWhileBusy(settings.lockedRetries, fs.writeBytes(work.path, bytes, options))
        )
      : retryWhileBusy(
          settings.lockedRetries,
          Stream.run(renewDeadlineOnChunks(self, work, incoming.stream), fs.sink(work.path, options))
        )
  return after(
    self,
    work,
    Effect.map(statThroughLinks(self, work.path), contentSizeOf),
    Effect.flatMap(put, ({ bytesWritten, version }) => writtenAnswer(self, work, bytesWritten, version))
  )
}

/** Extends the deadline of the request with each chunk, so that a large write times out only without progress. */
const renewDeadlineOnChunks = <E>(
  self: LeafContext,
  work: Work,
  stream: Stream.Stream<Uint8Array, E>
): Stream.Stream<Uint8Array, E> => Stream.mapArrayEffect(stream, (chunks) => Effect.as(self.tell(work, []), chunks))

export const edit = (self: LeafContext, work: Work, intent: FileEdit): Effect.Effect<Terminal, FsError> => {
  const { fs, settings } = self
  const { edits, ifMatch, version } = intent
  const before = Effect.flatMap(statThroughLinks(self, work.path), (stat) =>
    Effect.map(
      fs.edit(work.path, edits, { ...(ifMatch !== undefined && { ifMatch }), version: true, dryRun: true }),
      ({ bytesWritten, diff, replacements, version }): FoundState => ({
        ...contentSizeOf(stat),
        ...(version === undefined ? {} : { after: version }),
        edits: { bytesWritten, replacements, diff }
      })
    )
  )
  const change = Effect.map(
    retryWhileBusy(settings.lockedRetries, fs.edit(work.path, edits, { version, ...(ifMatch !== undefined && { ifMatch }) })),
    ({ bytesWritten, diff, replacements, version }) =>
      make(FileEdited, { correlationId: intent.correlationId, path: work.givenPath, bytesWritten, replacements, diff, version })
  )
  return after(self, work, before, change)
}

interface TreeCount {
  readonly deleted: number
  readonly directories: number
  readonly bytes: number
}

export const count = (self: LeafContext, path: FsPath, stat: FileStat): Effect.Effect<TreeCount, ListError> => {
  if (stat.kind !== "directory") return Effect.succeed({ deleted: 1, directories: 0, bytes: stat.sizeBytes })
  return Stream.runFold(
    self.fs.walk(path, { sizes: true }),
    (): TreeCount => ({ deleted: 0, directories: 1, bytes: 0 }),
    ({ deleted, directories, bytes }, { isDirectory, isFile, sizeBytes = 0 }) =>
      isDirectory
        ? { deleted, directories: directories + 1, bytes }
        : { deleted: deleted + 1, directories, bytes: bytes + (isFile ? sizeBytes : 0) }
  )
}

export const deleted = (work: Work, removed: Pick<TreeCount, "deleted" | "directories">, extended: boolean): FileDeleted =>
  make(FileDeleted, {
    correlationId: work.intent.correlationId,
    path: work.givenPath,
    deletedCount: removed.deleted,
    directories: extended ? removed.directories : undefined
  })

/** Returns the counts for the answer to a delete. `deleted` is at least 1, as in the result of `Filesystem.delete`. */
export const removes = ({ deleted, directories }: TreeCount): Pick<TreeCount, "deleted" | "directories"> => ({
  deleted: Math.max(deleted, 1),
  directories
})

const stateBeforeRemove = (self: LeafContext, work: Work): Effect.Effect<FoundState> =>
  Effect.flatMap(statLinkItself(self, work.path), (stat) =>
    stat === undefined || stat === null
      ? Effect.succeed(contentSizeOf(stat))
      : Effect.match(count(self, work.path, stat), {
          onSuccess: (count) => ({ ...contentSizeOf(stat), removes: removes(count) }),
          onFailure: () => contentSizeOf(stat)
        })
  )

export const remove = (self: LeafContext, work: Work, intent: FileDelete): Effect.Effect<Terminal, FsError> =>
  after(
    self,
    work,
    stateBeforeRemove(self, work),
    Effect.map(
      self.fs.delete(work.path, {
        recursive: intent.recursive,
        ...(intent.ifMatch !== undefined && { ifMatch: intent.ifMatch })
      }),
      (removed) => deleted(work, removed, self.settings.extended)
    )
  )

export const directoryMadeAnswer = (work: Work): FileDirectoryMade =>
  make(FileDirectoryMade, { correlationId: work.intent.correlationId, path: work.givenPath })

export const makeDirectory = (self: LeafContext, work: Work, intent: FileMakeDirectory): Effect.Effect<Terminal, FsError> =>
  after(
    self,
    work,
    Effect.map(statThroughLinks(self, work.path), contentSizeOf),
    Effect.map(self.fs.mkdir(work.path, { parents: intent.parents, existOk: intent.existOk }), () => directoryMadeAnswer(work))
  )

export const movedAnswer = (
  work: Work,
  intent: FileMove,
  { bytes, directories, files }: { readonly files: number; readonly directories: number; readonly bytes: number }
): FileMoved =>
  make(FileMoved, { correlationId: intent.correlationId, path: work.givenPath, to: intent.to, files, directories, bytes })

const requireParent = (self: LeafContext, work: Work, intent: FileMove): Effect.Effect<unknown, FsError> => {
  const at = work.to!.lastIndexOf("/")
  return intent.createParents !== false || at === -1 ? Effect.void : self.fs.stat(work.to!.slice(0, at))
}

export const move = (self: LeafContext, work: Work, intent: FileMove): Effect.Effect<Terminal, FsError> =>
  Effect.andThen(
    requireParent(self, work, intent),
    after(
      self,
      work,
      Effect.map(statLinkItself(self, work.path), contentSizeOf),
      Effect.map(self.fs.move(work.path, work.to!, { overwrite: intent.overwrite }), (result) =>
        movedAnswer(work, intent, result)
      )
    )
  )

export const linkMadeAnswer = (work: Work): FileLinkMade =>
  make(FileLinkMade, { correlationId: work.intent.correlationId, path: work.givenPath })

const linksUnsupported: Fault = { _tag: "Unsupported", feature: "symbolic links" }

/**
 * Creates a link whose target may lead out of the root, so that a branch can restore such a link. No leaf follows such a link,
 * and the branch has checked the targets from its callers.
 */
const makeUncheckedLink = (self: LeafContext, work: Work, target: string): Effect.Effect<void, FsError> => {
  const { fs, links } = self
  return self.caller.call<void, FsError>("symlink", work.path, Call.errorTags.link, Call.createActions, (path) => {
    if (links === undefined) return Effect.fail(linksUnsupported)
    const unfit = invalidTargetReason(target)
    if (unfit !== undefined) return Effect.fail(invalidArgument("target", unfit))
    return withResolvedLock(fs.port, path, resolveLink(fs.port, path), (found): Effect.Effect<void, Fault> => {
      const fault: Fault | undefined = found.stat === undefined ? placeFault(found) : { _tag: "AlreadyExists" }
      return fault === undefined ? links.make(path, target) : Effect.fail(fault)
    })
  })
}

export const makeLink = (self: LeafContext, work: Work, intent: FileMakeLink): Effect.Effect<Terminal, FsError> =>
  after(
    self,
    work,
    Effect.map(statLinkItself(self, work.path), contentSizeOf),
    Effect.map(
      self.showsLinks === true ? makeUncheckedLink(self, work, intent.target) : self.fs.symlink(work.path, intent.target),
      () => linkMadeAnswer(work)
    )
  )

export const attributesSetAnswer = (self: LeafContext, work: Work, intent: FileSetAttributes): FileAttributesSet =>
  make(FileAttributesSet, {
    correlationId: intent.correlationId,
    path: work.givenPath,
    skippedMode: modeOf(self, intent) === intent.mode ? undefined : true
  })

/** Returns the permission bits to set. Returns `undefined` for a copy if the leaf does not preserve permissions. */
export const modeOf = ({ fs: { port } }: LeafContext, { isCopy, mode }: FileSetAttributes): number | undefined =>
  isCopy === true && !(port.rules?.preservePermissions === true && port.attributes !== undefined) ? undefined : mode

const applyAttributes = (self: LeafContext, work: Work, intent: FileSetAttributes): Effect.Effect<unknown, FsError> => {
  const mode = modeOf(self, intent)
  const { modified } = intent
  return intent.isCopy === true && mode === undefined && modified === undefined
    ? self.fs.stat(work.path)
    : self.fs.setAttributes(work.path, { mode, modifiedAt: modified })
}

export const setAttributes = (self: LeafContext, work: Work, intent: FileSetAttributes): Effect.Effect<Terminal, FsError> =>
  after(
    self,
    work,
    Effect.map(statThroughLinks(self, work.path), contentSizeOf),
    Effect.map(applyAttributes(self, work, intent), () => attributesSetAnswer(self, work, intent))
  )
