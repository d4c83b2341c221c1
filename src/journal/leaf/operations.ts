import { is as isFault } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import { nameFault } from "../../backends/windows/names.ts"
import * as Matcher from "../../engine/matcher.ts"
import { make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import type { FileEntry } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPaths from "../../model/FsPath.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, Links } from "../../port/Backend.ts"
import { type Efferent, type FileList, FileListing, FileMetadata, type FileStarted } from "../FileSystemEntry.ts"
import { type Intents, kinds, make as makeKinds } from "../entries/kinds.ts"
import * as Changing from "./changes.ts"
import { directoryMadeAnswer } from "./changes.ts"
import * as Looking from "./reading.ts"
import { type AnswerEffect, errorOf, type LeafContext, type Work } from "./model.ts"
import * as Recovery from "./recovery.ts"
import type { Settings } from "./settings.ts"

// Views of a leaf's filesystem for a branch that follows links itself. The branch resolves links in the whole tree, but this
// leaf may serve only a part of the tree. So the leaf follows no link. The leaf refuses a link, or treats the link as an entry
// of its own.

interface Views {
  readonly viewFor: (intent: Efferent) => LeafContext
}

const contextOver = (self: LeafContext, port: Backend): LeafContext => ({
  ...self,
  fs: makeAlgebra(port),
  caller: Caller.make(port)
})

const refuseLinks = (self: LeafContext): LeafContext =>
  contextOver(self, { ...self.fs.port, rules: { ...self.fs.port.rules, symlinks: "refuse" } })

const showLinks = (self: LeafContext): LeafContext => {
  const { links, rules } = self.fs.port
  const follow: Links["follow"] =
    rules?.symlinks === "refuse" ? () => Effect.fail({ _tag: "AccessDenied", why: "link" }) : links?.follow
  return { ...contextOver(self, { ...self.fs.port, links: undefined }), showsLinks: true, links: links && { ...links, follow } }
}

export const make = (self: LeafContext): Views => {
  let refusingView: LeafContext | undefined
  let leavingView: LeafContext | undefined
  return {
    viewFor: (intent) => {
      if (!self.settings.extended || intent.links === undefined) return self
      return intent.links === "refuse" ? (refusingView ??= refuseLinks(self)) : (leavingView ??= showLinks(self))
    }
  }
}

// Directories that contain the prefixes of leaves, like the parents of mount points. Such a directory exists even if no leaf
// has it. Its listing has the prefixes and the entries of the owner.

const directoryMetadata = ({ intent }: Work): FileMetadata =>
  makeKinds(FileMetadata, { correlationId: intent.correlationId, size: 0, isDirectory: true, kind: "directory" })

const entryOf = (name: string): FileEntry => ({
  name,
  path: name as FsPath,
  kind: "directory",
  isFile: false,
  isDirectory: true,
  addressable: true
})

const fail = (work: Work, fault: Fault): AnswerEffect => Effect.fail(errorOf(fault, work.intent, work.givenPath))

/**
 * Returns the answer of this leaf's filesystem. Returns the fallback if this leaf does not own the path, or if the answer is
 * NotFound or NotADirectory.
 */
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
    return fail(work, {
      _tag: "IoError",
      detail: "a recursive list cannot cross the prefixes of leaves below this directory; list each directory separately"
    })
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
    return makeKinds(FileListing, { correlationId, entries })
  })
}

/** Answers a stat or a list of the leaf's prefix as for an empty directory if the leaf has no entry there. */
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

/**
 * Answers a request for a directory that leads to prefixes, or for the prefix of this leaf. Carries out any other request. If
 * the request needs an existing parent, first creates the directory of the prefix.
 */
const answerWithMounts = (self: LeafContext, work: Work, execute: AnswerEffect): AnswerEffect => {
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

const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

export const settingsFault = (settings: Settings, intent: Efferent): Fault | undefined => {
  const requirements: ReadonlyArray<string> = kinds[intent._tag].needs
  if (requirements.includes("extended") && !settings.extended) {
    return { _tag: "IoError", detail: `this leaf does not accept ${intent._tag}; start it with \`extended: true\`` }
  }
  return (requirements.includes("write") && !settings.allowWrite) || (requirements.includes("remove") && !settings.allowDelete)
    ? readOnly
    : undefined
}

/**
 * Returns the fault of a path that cannot exist here. A path that is too long must be rejected before it is locked, because
 * locking a long path is slow.
 */
export const pathFault = (settings: Settings, path: FsPaths.FsPath): Fault | undefined => {
  const tooLong = FsPaths.checkLimits(path, settings.limits)
  if (tooLong !== undefined || !settings.windowsNames) return tooLong
  for (const name of FsPaths.segments(path)) {
    const fault = nameFault(name)
    if (fault !== undefined) return fault
  }
  return undefined
}

interface Row<E> {
  readonly execute: (self: LeafContext, work: Work, intent: E) => AnswerEffect
  /** Decides whether an earlier leaf has made the change. Absent if the request changes nothing. */
  readonly judge?: (self: LeafContext, work: Work, intent: E, started: FileStarted) => Recovery.Finding
}

const rows: { readonly [K in keyof Intents]: Row<Intents[K]> } = {
  FileRead: { execute: Looking.read },
  FileStat: { execute: Looking.stat },
  FileList: { execute: Looking.list },
  FileWrite: { execute: Changing.write, judge: Recovery.judgeWrite },
  FileWriteChunk: { execute: Changing.write, judge: Recovery.judgeWrite },
  FileDelete: { execute: Changing.remove, judge: Recovery.judgeRemove },
  FileMakeDirectory: { execute: Changing.makeDirectory, judge: Recovery.judgeMakeDirectory },
  FileMove: { execute: Changing.move, judge: Recovery.judgeMove },
  FileEdit: { execute: Changing.edit, judge: Recovery.judgeEdit },
  FileMakeLink: { execute: Changing.makeLink, judge: Recovery.judgeMakeLink },
  FileSetAttributes: { execute: Changing.setAttributes, judge: Recovery.judgeSetAttributes }
}

export const performRequest = (self: LeafContext, work: Work): AnswerEffect => {
  const { intent, earlierWork: left } = work
  const { execute, judge } = rows[intent._tag] as Row<Efferent>
  const executed = Effect.suspend(() => answerWithMounts(self, work, execute(self, work, intent)))
  return left === undefined || judge === undefined
    ? executed
    : Recovery.recover(self, work, left, (started) => judge(self, work, intent, started), executed)
}
