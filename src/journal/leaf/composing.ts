/**
 * Directories that lead to the prefixes of leaves. They exist as if the leaves were mounted there, whatever the owner of the path has. They
 * appear in their parents' listings, and show the prefixes together with the owner's entries.
 */
import * as Effect from "effect/Effect"
import * as Matcher from "../../engine/matcher.ts"
import { isFault } from "../../engine/options.ts"
import type { FileEntry } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import * as FsPaths from "../../model/FsPath.ts"
import { make } from "../entries/kinds.ts"
import { FileListing, FileMetadata, type FileList } from "../FileSystemEntry.ts"
import { directoryMadeAnswer } from "./changing.ts"
import { errorOf } from "./faults.ts"
import type { AnswerEffect, LeafContext, Work } from "./model.ts"

const directoryMetadata = ({ intent }: Work): FileMetadata =>
  make(FileMetadata, { correlationId: intent.correlationId, size: 0, isDirectory: true, kind: "directory" })

const entryOf = (name: string): FileEntry => ({
  name,
  path: name as FsPath,
  kind: "directory",
  isFile: false,
  isDirectory: true,
  addressable: true
})

const fail = (work: Work, fault: Fault): AnswerEffect => Effect.fail(errorOf(fault, work.intent, work.givenPath))

/** Returns the owner's answer for the path; the fallback if this leaf does not own the path, or has no directory there. */
const ownAnswerOr = <A>(
  work: Work,
  execute: AnswerEffect,
  fallback: A
): Effect.Effect<Effect.Success<AnswerEffect> | A, Effect.Error<AnswerEffect>> =>
  work.isOwn
    ? Effect.catch(execute, (error) =>
        error._tag === "NotFound" || error._tag === "NotADirectory" ? Effect.succeed(fallback) : Effect.fail(error)
      )
    : Effect.succeed(fallback)

const list = (
  self: LeafContext,
  work: Work,
  { correlationId, pattern, recursive }: FileList,
  execute: AnswerEffect
): AnswerEffect => {
  if (recursive === true && work.mounts.length > 0) {
    return fail(work, { _tag: "IoError", detail: "several leaves serve what is below it; list each directory by itself" })
  }
  const matcher =
    pattern === undefined
      ? undefined
      : Matcher.compile(
          [pattern],
          { argument: "pattern" },
          { limits: self.settings.limits, caseSensitive: self.fs.port.info.caseSensitive }
        )
  if (matcher !== undefined && isFault(matcher)) return fail(work, matcher)
  const mountEntries = work.mounts.filter((name) => matcher === undefined || Matcher.test(matcher, name, true)).map(entryOf)
  return Effect.map(ownAnswerOr(work, execute, undefined), (listing) => {
    const ownEntries = listing?._tag === "FileListing" ? listing.entries.filter(({ name }) => !work.mounts.includes(name)) : []
    const entries = [...ownEntries, ...mountEntries].sort((one, other) => FsPaths.compare(one.path, other.path))
    return make(FileListing, { correlationId, entries })
  })
}

/** Treats the leaf's prefix as an existing directory if the leaf has nothing there. */
const orPrefixDirectory = (self: LeafContext, work: Work, execute: AnswerEffect): AnswerEffect => {
  const { intent } = work
  if (intent._tag !== "FileStat" && intent._tag !== "FileList") return execute
  return Effect.catch(execute, (error) =>
    error._tag !== "NotFound"
      ? Effect.fail(error)
      : intent._tag === "FileStat"
        ? Effect.succeed(directoryMetadata(work))
        : list(self, work, intent, Effect.fail(error))
  )
}

/** Answers a request at a directory that leads to prefixes, or at this leaf's own prefix. Any other request is carried out unchanged. */
export const answerWithMounts = (self: LeafContext, work: Work, execute: AnswerEffect): AnswerEffect => {
  const { intent, mounts, path } = work
  const { prefix } = self.settings
  if (mounts.length === 0) {
    if (prefix === FsPaths.root) return execute
    if (path === prefix) return orPrefixDirectory(self, work, execute)
    const needsParent =
      ("createParents" in intent && intent.createParents === false) || ("parents" in intent && intent.parents === false)
    return needsParent && self.settings.allowWrite
      ? Effect.andThen(Effect.ignore(self.fs.mkdir(prefix, { parents: true, existOk: true })), execute)
      : execute
  }
  switch (intent._tag) {
    case "FileStat":
      return Effect.map(ownAnswerOr(work, execute, directoryMetadata(work)), (found) =>
        found._tag === "FileMetadata" && found.isDirectory ? found : directoryMetadata(work)
      )
    case "FileList":
      return list(self, work, intent, execute)
    case "FileMakeDirectory":
      return intent.existOk === false ? fail(work, { _tag: "AlreadyExists" }) : Effect.succeed(directoryMadeAnswer(work))
    case "FileSetAttributes":
      return work.isOwn ? execute : fail(work, { _tag: "AccessDenied", why: "root" })
    case "FileMakeLink":
      return fail(work, { _tag: "AlreadyExists" })
    default:
      return fail(work, { _tag: "NotAFile" })
  }
}
