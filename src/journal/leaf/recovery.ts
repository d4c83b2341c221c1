/**
 * Decides whether an earlier leaf made an unanswered change. The current state is compared with the state that the earlier
 * leaf recorded, and with the result of the change. If neither matches, the request fails, and the change is not made again.
 */
import * as Effect from "effect/Effect"
import * as DateTime from "effect/DateTime"
import { compare as comparePaths, fold } from "../../model/FsPath.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import { make } from "../entries/kinds.ts"
import { digestOf } from "../entries/values.ts"
import type { JournalError } from "../errors.ts"
import {
  type FileDelete,
  type FileEdit,
  FileEdited,
  type FileMakeDirectory,
  type FileMakeLink,
  type FileMove,
  type FileSetAttributes,
  type FileStarted,
  type FileWrite,
  type FileWriteChunk,
  type Terminal
} from "../FileSystemEntry.ts"
import * as Changing from "./changes.ts"
import { type AnswerEffect, type EarlierWork, ioError, type LeafContext, type Work } from "./model.ts"

/** The result of a comparison: the answer of a change that was made, `notMade`, or `unclear`. */
type Verdict = Terminal | "notMade" | "unclear"

export type Finding = Effect.Effect<Verdict, FsError | JournalError>

const unclear: Finding = Effect.succeed("unclear")
const notMade: Finding = Effect.succeed("notMade")

const isFile = (stat: FileStat | null): stat is FileStat => stat?.kind === "file"

const isVersion = (self: LeafContext, work: Work, sha256: string): Effect.Effect<boolean, FsError> =>
  Effect.map(self.fs.version(work.path), (version) => version === sha256)

const isTail = (self: LeafContext, work: Work, offset: number, bytes: Effect.Effect<string, JournalError>, size: number) =>
  Effect.flatMap(bytes, (sha256) =>
    Effect.map(digestOf(self.fs.stream(work.path, { offset, length: size })), (found) => found.sha256 === sha256)
  )

export const judgeWrite = (
  self: LeafContext,
  work: Work,
  intent: FileWrite | FileWriteChunk,
  started: FileStarted
): Finding => {
  const { size: before } = started
  if (before === undefined) return unclear
  const { createMode: mode = "overwrite", version } = Changing.firstEntryOf(work, intent)
  const incoming = Changing.contentOf(self, work, intent)
  const madeAnswer: Finding = Effect.flatMap(
    version === true ? self.fs.version(work.path) : Effect.succeed(undefined),
    (version) => Changing.writtenAnswer(self, work, incoming.size, version)
  )
  const appends = mode === "append" || mode === "appendExisting"
  // The change could not succeed in the recorded state, so it was not made.
  if (before === null ? mode === "replace" || mode === "appendExisting" : mode === "create") return notMade
  return Effect.flatMap(Changing.statThroughLinks(self, work.path), (now): Finding => {
    if (now === undefined) return unclear
    if (now === null) return before === null ? notMade : unclear
    if (!isFile(now)) return unclear
    const unchangedFinding: Finding = now.sizeBytes === before ? notMade : unclear
    const expectedSize = appends ? (before ?? 0) + incoming.size : incoming.size
    if (now.sizeBytes !== expectedSize) return unchangedFinding
    const isWritten = appends
      ? isTail(self, work, before ?? 0, incoming.sha256, incoming.size)
      : Effect.flatMap(incoming.sha256, (sha256) => isVersion(self, work, sha256))
    return Effect.flatMap(isWritten, (isWritten) => (isWritten ? madeAnswer : unchangedFinding))
  })
}

export const judgeEdit = (self: LeafContext, work: Work, intent: FileEdit, { after, edits, size }: FileStarted): Finding => {
  if (after === undefined || edits === undefined) return unclear
  return Effect.flatMap(Changing.statThroughLinks(self, work.path), (now): Finding => {
    if (now === undefined || !isFile(now)) return unclear
    return Effect.map(isVersion(self, work, after), (isMade): Verdict =>
      isMade
        ? make(FileEdited, {
            correlationId: intent.correlationId,
            path: work.givenPath,
            ...edits,
            version: intent.version === true ? after : undefined
          })
        : now.sizeBytes === size
          ? "notMade"
          : "unclear"
    )
  })
}

export const judgeRemove = (
  self: LeafContext,
  work: Work,
  _intent: FileDelete,
  { removes, size: before }: FileStarted
): Finding => {
  if (before === null) return notMade
  return Effect.flatMap(Changing.statLinkItself(self, work.path), (now): Finding => {
    if (now === undefined || removes === undefined) return unclear
    if (now === null) return Effect.succeed(Changing.deleted(work, removes, self.settings.extended))
    return Effect.map(Changing.count(self, work.path, now), (all): Verdict => {
      const remainingCount = Changing.removes(all)
      return remainingCount.deleted === removes.deleted && remainingCount.directories === removes.directories
        ? "notMade"
        : "unclear"
    })
  })
}

export const judgeMakeDirectory = (
  self: LeafContext,
  work: Work,
  _intent: FileMakeDirectory,
  { size: before }: FileStarted
): Finding =>
  Effect.map(Changing.statThroughLinks(self, work.path), (now): Verdict =>
    before === undefined || now === undefined
      ? "unclear"
      : now === null || before !== null
        ? "notMade"
        : now.kind === "directory"
          ? Changing.directoryMadeAnswer(work)
          : "unclear"
  )

export const judgeMove = (self: LeafContext, work: Work, intent: FileMove, { size: before }: FileStarted): Finding => {
  const to = work.to!
  if (before === null) return notMade
  // If the filesystem ignores case and both names differ only in case, the states before and after the move look the same.
  if (!self.fs.port.info.caseSensitive && comparePaths(fold(work.path), fold(to)) === 0) return unclear
  return Effect.flatMap(
    Effect.all([Changing.statLinkItself(self, work.path), Changing.statLinkItself(self, to)]),
    ([source, target]): Finding => {
      if (source === undefined || target === undefined) return unclear
      if (source !== null) return source.sizeBytes === before ? notMade : unclear
      if (target === null || target.sizeBytes !== before) return unclear
      return Effect.map(Changing.count(self, to, target), ({ bytes, deleted, directories }) =>
        Changing.movedAnswer(work, intent, { files: deleted, directories, bytes })
      )
    }
  )
}

export const judgeMakeLink = (self: LeafContext, work: Work, intent: FileMakeLink, { size: before }: FileStarted): Finding => {
  if (before === undefined) return unclear
  if (before !== null) return notMade
  return Effect.flatMap(Changing.statLinkItself(self, work.path), (now): Finding => {
    if (now === null) return notMade
    if (now?.kind !== "symlink") return unclear
    const read: Effect.Effect<string, Fault | FsError> = self.links?.read(work.path) ?? self.fs.readLink(work.path)
    return Effect.map(
      Effect.orElseSucceed(read, () => undefined),
      (target) => (target === intent.target ? Changing.linkMadeAnswer(work) : "unclear")
    )
  })
}

/**
 * Compares the current attributes with the requested attributes. If the attributes differ, the change counts as not made, because
 * setting the attributes again does no harm.
 */
export const judgeSetAttributes = (self: LeafContext, work: Work, intent: FileSetAttributes): Finding =>
  Effect.map(self.fs.stat(work.path), ({ mode, modifiedAt }): Verdict => {
    const requestedMode = Changing.modeOf(self, intent)
    const isModeSame = requestedMode === undefined || requestedMode === mode
    const isTimeSame =
      intent.modified === undefined ||
      (modifiedAt !== undefined && DateTime.toEpochMillis(modifiedAt) === DateTime.toEpochMillis(intent.modified))
    return isModeSame && isTimeSame ? Changing.attributesSetAnswer(self, work, intent) : "notMade"
  })

const refusalTexts = {
  notMade: "not executed: the previous leaf ended before it made the change; send the request again",
  notBegun: "not executed: no leaf has begun the change, and this leaf does not resume changes; send the request again",
  uncertain: "not executed by this leaf: the previous leaf ended without an answer and may have made the change",
  unclear:
    "not executed by this leaf: the previous leaf had begun the change, and the current state matches neither the old state nor the new state"
} as const

export const recover = (
  self: LeafContext,
  work: Work,
  { isUncertain, started }: EarlierWork,
  judge: (started: FileStarted) => Finding,
  execute: AnswerEffect
): AnswerEffect => {
  const refuse = (why: keyof typeof refusalTexts): AnswerEffect =>
    Effect.fail(ioError(refusalTexts[why], work.intent, work.givenPath))
  const executeIfResuming = (why: keyof typeof refusalTexts): AnswerEffect =>
    self.settings.resumesChanges ? execute : refuse(why)
  if (started === undefined) return isUncertain ? refuse("uncertain") : executeIfResuming("notBegun")
  const verdict = Effect.catch(judge(started), () => unclear)
  return Effect.flatMap(verdict, (verdict) =>
    verdict === "notMade" ? executeIfResuming("notMade") : verdict === "unclear" ? refuse("unclear") : Effect.succeed(verdict)
  )
}
