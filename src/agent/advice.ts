import * as Effect from "effect/Effect"
import { findCommonBlocks, type Lines, makeLineNumbering } from "../engine/diff.ts"
import type { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import type { AccessDenied, InvalidArgument, NotFound } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { listed, whole } from "../model/words.ts"
import { runInSlices, type Steps } from "../runtime/steps.ts"
import type { Call, ToolFailure } from "./definition.ts"
import { deepestExistingDirectory, suggestPaths, toolArgumentName } from "./toolPath.ts"

/**
 * The step budget of a comparison. The steps are the number of lines times the number of differences. Beyond the budget, the
 * comparison also reports some unchanged lines as changed.
 */
const maxSteps = 4_000_000
const maxEdits = 2000
const maxRanges = 3

interface Range {
  readonly from: number
  readonly to: number
}

/**
 * Returns the changed ranges of the new text, 1-based and inclusive. If lines were only removed, the range is the line after the
 * removed lines, or the last line.
 */
const rangesOf = function* (before: string, after: string): Steps<ReadonlyArray<Range>> {
  const number = makeLineNumbering()
  const oldLines: Lines = yield* number(before)
  const newLines: Lines = yield* number(after)
  const last = newLines.ids.length
  const maxDifferences = Math.min(maxEdits, Math.ceil(maxSteps / (oldLines.ids.length + last + 1)))
  const common = yield* findCommonBlocks(oldLines.ids, newLines.ids, maxDifferences)
  const ranges: Array<Range> = []
  let [oldLine, line] = [0, 0]
  for (const block of [...common, { before: oldLines.ids.length, after: last, length: 0 }]) {
    if (block.after > line) ranges.push({ from: line + 1, to: block.after })
    else if (block.before > oldLine) {
      const from = Math.min(line + 1, Math.max(1, last))
      ranges.push({ from, to: from })
    }
    oldLine = block.before + block.length
    line = block.after + block.length
  }
  return ranges
}

export const changedLines = function* (before: string, after: string): Steps<string | undefined> {
  const ranges = yield* rangesOf(before, after)
  if (ranges.length === 0) return undefined
  const shown = ranges.length > maxRanges ? [{ from: ranges[0]!.from, to: ranges.at(-1)!.to }] : ranges
  const words = shown.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`))
  const isOne = shown.length === 1 && shown[0]!.from === shown[0]!.to
  return `${isOne ? "line" : "lines"} ${listed(words)} changed`
}

interface FailureText {
  readonly happened: string
  readonly advice: string
}

type Table = {
  readonly [Tag in ToolFailure["_tag"]]: (
    failure: Extract<ToolFailure, { readonly _tag: Tag }>,
    call: Call
  ) => FailureText | Effect.Effect<FailureText>
}

const maxPathLength = 300
const maxDetailLength = 8000

const truncate = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength)}… (${text.length} characters)`

export const quotePath = (path: string): string =>
  path === FsPath.root || path === "" ? "the root" : JSON.stringify(truncate(path, maxPathLength))

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Replaces the path of the root in a backend's message, so that the model does not see this directory of the machine. */
const withoutRoot = (detail: string, { filesystem: { root } }: Call): string =>
  truncate(root.length > 1 && /^(?:\/|[A-Za-z]:)/.test(root) ? detail.replaceAll(root, ".") : detail, maxDetailLength)

const fourKitTools: ReadonlySet<string> = new Set(["list_directory", "delete_file"])
const toolsOfBothKits: ReadonlySet<string> = new Set(["read_file", "write_file"])

/** Returns the advice to list a directory. If the called tool is in both kits, the advice names no tool. */
const adviseListing = ({ tool }: Call, directory: string): string =>
  fourKitTools.has(tool)
    ? `Call list_directory with ${quotePath(directory)} to see its entries.`
    : toolsOfBothKits.has(tool)
      ? `List ${quotePath(directory)} to see its entries.`
      : `Call ls with ${quotePath(directory)} to see its entries, or find a file by name with glob.`

const isOther = (path: string, { filesystem }: Call): Effect.Effect<boolean> =>
  Effect.match(filesystem.stat(path), { onFailure: () => false, onSuccess: ({ kind }) => kind === "other" })

const notFound = Effect.fnUntraced(function* (failure: NotFound, call: Call): Effect.fn.Return<FailureText> {
  const { path } = failure
  const happened = `There is no file or directory ${quotePath(path)}.`
  const similar = yield* suggestPaths(call.filesystem, failure)
  if (similar.length > 0) {
    const names = similar.map(quotePath)
    return { happened, advice: `Did you mean ${listed(names, "or")}?` }
  }
  return { happened, advice: adviseListing(call, yield* deepestExistingDirectory(call.filesystem, path)) }
})

const deniedTexts: Readonly<Record<AccessDenied["why"], (path: string) => FailureText>> = {
  readOnly: (path) => ({
    happened: `${capitalize(path)} may be read but not changed: this filesystem is read-only.`,
    advice: "Do not try to change files here; report what you would have changed instead."
  }),
  policy: (path) => ({
    happened: `Access to ${path} is denied by a policy.`,
    advice: "Go on without this path, or ask the user; other tools cannot access it either."
  }),
  escape: (path) => ({
    happened: `${capitalize(path)} leads out of the root through a link, which is refused.`,
    advice: "Use only paths inside the root; the target of the link cannot be reached from here."
  }),
  root: (path) => ({
    happened: `${capitalize(path)} cannot be removed, moved or replaced: it is the root, or something is mounted there.`,
    advice: "Name the files or directories below this path instead."
  }),
  link: (path) => ({
    happened: `${capitalize(path)} goes through a symbolic link, or is a file with several hard links; this filesystem refuses both.`,
    advice: "Use the path of the symbolic link's target instead; leave a file with several hard links alone."
  }),
  permission: (path) => ({
    happened: `Permission for this operation on ${path} is denied.`,
    advice: "Choose another path, or ask the user to change the permissions."
  }),
  busy: (path) => ({
    happened: `${capitalize(path)} is still in use by another process after several attempts.`,
    advice: "Try again in a moment; if it fails once more, go on without this path and tell the user."
  })
}

const limitAdvice: ReadonlyMap<string, (allowed: string) => string> = new Map([
  [
    "maxFileSize",
    (allowed: string) =>
      `Send at most ${allowed} characters or bytes at a time: write the first part, then add the rest by smaller edits or appends.`
  ],
  ["maxReadBytes", () => "Search it with grep for the part that matters; it is too large to be read or edited as a whole."],
  ["maxListEntries", (allowed: string) => `Use glob with a narrower pattern: a listing has at most ${allowed} entries.`]
])

const argumentAdvice: ReadonlyMap<string, string> = new Map([
  ["new_string", "Change new_string and call the tool again."],
  ["if_match", "Omit if_match, or give the version that read_file returned last."],
  ["after", "Set `after` to exactly the value that the previous result named."],
  ["to", "Choose a destination that is neither the source nor inside it."]
])

const adviseOnOldString = (detail: string): string | undefined => {
  if (detail.startsWith("it occurs "))
    return "Give more of the surrounding text, so that it occurs only once, or set replace_all."
  if (!detail.startsWith("it does not occur")) return undefined
  return detail.endsWith("which is empty")
    ? "Write the text with write_file."
    : "Read the file again and copy old_string exactly, without line numbers."
}

const adviseOnArgument = (name: string, detail: string, tool: string): string => {
  if (name === "pattern" && tool === "grep")
    return "Correct the pattern; to find plain text, search with `literal` set to true."
  const last = name.slice(name.lastIndexOf(".") + 1)
  const known = last === "old_string" ? adviseOnOldString(detail) : argumentAdvice.get(last)
  const advice = detail === "it must not be blank" ? undefined : known
  return advice ?? `Correct ${name} and call the tool again.`
}

const invalidArgument = ({ argument, detail, path }: InvalidArgument, tool: string): FailureText => {
  const name = toolArgumentName(argument)
  const where = path.trim() === "" || path === FsPath.root || argument === "path" ? "" : ` (for ${quotePath(path)})`
  return {
    happened: `The argument ${name} is invalid${where}: ${truncate(detail, maxDetailLength)}.`,
    advice: adviseOnArgument(name, detail, tool)
  }
}

type Conflict = Extract<ToolFailure, { readonly _tag: "Conflict" }>

type CallKnowledge = Pick<Call, "filesystem" | "memory">

const describeChangedLines = ({ expected, path }: Conflict, { filesystem, memory }: CallKnowledge): Effect.Effect<string> => {
  const before = expected === null ? undefined : memory.textOf(expected)
  if (before === undefined) return Effect.succeed("")
  return filesystem.readString(path).pipe(
    Effect.flatMap((after) => runInSlices(() => changedLines(before, after))),
    Effect.map((lines) => (lines === undefined ? "" : `; ${lines}`)),
    Effect.orElseSucceed(() => "")
  )
}

/** Tests whether a tool of this session has read or written the version. The model may have invented any other version. */
const isKnown = (version: string, input: string, { memory }: CallKnowledge): boolean => {
  const path = FsPath.parse(input)
  return memory.textOf(version) !== undefined || (typeof path === "string" && memory.seen(path) === version)
}

export const describeConflict = (failure: Conflict, call: CallKnowledge): Effect.Effect<FailureText> => {
  const { actual, expected } = failure
  const path = quotePath(failure.path)
  const wasSeen = expected !== null && isKnown(expected, failure.path, call)
  if (actual === null)
    return Effect.succeed({
      happened: `${capitalize(path)} ${wasSeen ? "no longer exists" : "does not exist"}.`,
      advice: "If the file is still needed, write it again with write_file."
    })
  const version = actual === undefined ? "" : `: its current version is ${actual}`
  if (expected === null)
    return Effect.succeed({
      happened: `${capitalize(path)} exists already${version}.`,
      advice: "Read the file with read_file first, then change it."
    })
  return Effect.map(describeChangedLines(failure, call), (lines) => ({
    happened: `${capitalize(path)} ${wasSeen ? "has changed since it was read" : "does not have the version that was given"}${version}${lines}.`,
    advice: "Read the file again with read_file, then make the changes that are still needed."
  }))
}

const snapshotAdvice: Readonly<Record<SnapshotError["reason"], string>> = {
  gitMissing: "Ask the user to install git; the file tools work without it.",
  unknown: "List the snapshots with the tool snapshots.",
  corrupt: "Use another snapshot.",
  budget: "Ask the user for a larger budget, or work without snapshots.",
  refused: "Work without snapshots, and tell the user the reason.",
  unavailable: "Try again in a moment; if it fails once more, work without snapshots and tell the user.",
  io: "Try again; if it fails once more, tell the user."
}

const restoreAdvice: Readonly<Record<SnapshotRestoreError["reason"], string>> = {
  unknown: "List the snapshots with the tool snapshots.",
  incompatible: "Restore a snapshot of this filesystem; the tool snapshots lists these snapshots.",
  corrupt: "Use another snapshot.",
  readOnly: "Do not try to change files here; this filesystem is read-only.",
  unavailable: "Try again in a moment; if it fails once more, go on without the restore and tell the user.",
  io: "Try again; if it fails once more, tell the user."
}

const archiveAdvice: Readonly<Record<ArchiveError["reason"], string>> = {
  corrupt: "Create or download the archive again.",
  encrypted: "Use an archive without a password.",
  unsupported: "Use an archive of files, directories and links, stored or deflated.",
  name: "Rename that entry to a name that every system allows.",
  duplicate: "Rename one of the two entries.",
  link: "Leave out the link, or replace it by the file to which it leads.",
  tooLarge: "Choose a smaller part of the tree, or a smaller archive.",
  version: "Use an archive that this version can read."
}

const failureTable: Table = {
  NotFound: notFound,
  AlreadyExists: ({ path }, { tool }) => ({
    happened: `${capitalize(quotePath(path))} exists already.`,
    advice:
      tool === "move" || tool === "copy"
        ? "Choose another destination, or set `overwrite` to replace the existing one."
        : tool === "mkdir"
          ? "Use the existing directory, or choose another name."
          : "Change the file with edit_file, or choose another name."
  }),
  AccessDenied: ({ path, why }) => deniedTexts[why](quotePath(path)),
  InvalidPath: ({ detail, path }) => ({
    happened: `${capitalize(quotePath(path))} is not a valid path: ${truncate(detail, maxDetailLength)}.`,
    advice: 'Give a path relative to the root, such as "src/main.ts", that stays inside the root.'
  }),
  PathTooLong: ({ detail, path }) => ({
    happened: `The path ${quotePath(path)} is too long: ${detail}.`,
    advice: "Choose shorter names or fewer directories."
  }),
  NotADirectory: ({ path }, { tool }) => ({
    happened: `${capitalize(quotePath(path))} is not a directory, or one of its parents is not a directory.`,
    advice:
      tool === "ls" || tool === "list_directory" || tool === "tree"
        ? "Use read_file to read a file, or list the directory that contains it."
        : "Choose a path whose parents are directories."
  }),
  NotAFile: ({ path }, call) =>
    Effect.map(isOther(path, call), (isOther) => ({
      happened: `${capitalize(quotePath(path))} is not a regular file.`,
      advice:
        path === FsPath.root
          ? "Name a file below the root."
          : isOther
            ? "Leave this entry alone: it is neither a file nor a directory, so it has no content to read."
            : adviseListing(call, path)
    })),
  DirectoryNotEmpty: ({ path }) => ({
    happened: `The directory ${quotePath(path)} is not empty.`,
    advice: "Remove or move the directory's entries first, or choose another destination."
  }),
  DiskFull: ({ path }) => ({
    happened: `There is no space left for ${quotePath(path)}, or the quota is used up; nothing was written.`,
    advice: "Remove files that are no longer needed, or write less."
  }),
  Timeout: ({ detail, path }, call) => ({
    happened: `The call for ${quotePath(path)} took too long: ${withoutRoot(detail, call)}.`,
    advice: detail.startsWith("the pattern")
      ? "Make the pattern simpler or the search narrower, or search with `literal` set to true."
      : "Look at the current state, then try again; if it fails once more, tell the user."
  }),
  IoError: ({ code, detail, path }, call) => ({
    happened: `The filesystem reported an error for ${quotePath(path)}: ${withoutRoot(detail, call)}${code === undefined ? "" : ` (${code})`}.`,
    advice: "Try again; if it fails once more, tell the user."
  }),
  NotText: ({ encoding, offset, path }, { tool }) => ({
    happened: `${capitalize(quotePath(path))} is not ${encoding} text: the first invalid byte is at offset ${offset}.`,
    advice:
      tool === "edit_file"
        ? "Leave the file alone: only UTF-8 and UTF-16 text can be edited."
        : 'Read the file with encoding "base64", or leave it alone.'
  }),
  LimitExceeded: ({ actual, allowed, limit, path }) => ({
    happened: `${capitalize(quotePath(path))} exceeds the limit ${limit}: ${actual} is more than ${allowed}.`,
    advice: limitAdvice.get(limit)?.(whole(allowed)) ?? "Split the work into smaller parts."
  }),
  InvalidArgument: (failure, { tool }) => invalidArgument(failure, tool),
  Conflict: describeConflict,
  Unsupported: ({ feature }) => ({
    happened: `This filesystem does not support ${feature}.`,
    advice: "Complete the task without this feature; another path does not help."
  }),
  Unavailable: ({ detail, hint, operation }, call) =>
    operation === "exec" || operation === "eval"
      ? {
          happened: `The command did not run: ${withoutRoot(detail, call)}.`,
          advice: hint === undefined ? "Tell the user; the file tools may still work." : `Tell the user: ${hint}`
        }
      : {
          happened: `The filesystem is not available: ${withoutRoot(detail, call)}.`,
          advice: "Try once more; if it fails again, stop working on files and tell the user."
        },
  SnapshotError: ({ detail, reason }, call) => ({
    happened: `The snapshot could not be taken or read: ${withoutRoot(detail, call)}.`,
    advice: snapshotAdvice[reason]
  }),
  SnapshotRestoreError: ({ detail, reason }, call) => ({
    happened: `The snapshot could not be restored: ${withoutRoot(detail, call)}.`,
    advice: restoreAdvice[reason]
  }),
  ArchiveError: ({ detail, entry, reason }, call) => ({
    happened: `The archive cannot be used${entry === undefined ? "" : `, because of ${quotePath(entry)}`}: ${withoutRoot(detail, call)}.`,
    advice: archiveAdvice[reason]
  }),
  SessionError: ({ detail }, call) => ({
    happened: `The session could not be changed or read: ${withoutRoot(detail, call)}.`,
    advice: "Complete the task without this call, or tell the user."
  }),
  Refused: ({ advice, happened }) => ({
    happened: truncate(happened, maxDetailLength),
    advice: truncate(advice, maxDetailLength)
  })
}

const endWithFullStop = (text: string): string => text.replace(/\.+$/, ".").replace(/([!?…])\.$/, "$1")

/** Describes a failure with an unknown tag, from an untyped tool or a tool for another version of this package. */
const unknown = (failure: unknown, call: Call): FailureText => {
  const { message } = Object(failure) as { readonly message?: unknown }
  const reason = typeof message === "string" && message.trim() !== "" ? message : "it gave no reason"
  return {
    happened: `${call.tool} failed: ${withoutRoot(reason, call)}.`,
    advice: "Complete the task without this call, or tell the user."
  }
}

const textOfFailure = (failure: ToolFailure, call: Call): FailureText | Effect.Effect<FailureText> => {
  const { _tag: tag } = Object(failure) as Partial<ToolFailure>
  return tag !== undefined && Object.hasOwn(failureTable, tag)
    ? (failureTable[tag] as (failure: ToolFailure, call: Call) => FailureText | Effect.Effect<FailureText>)(failure, call)
    : unknown(failure, call)
}

export const describe = (failure: ToolFailure, call: Call): Effect.Effect<string> => {
  const failureText = textOfFailure(failure, call)
  const joinText = ({ advice, happened }: FailureText): string => `${endWithFullStop(happened)} ${advice}`
  return Effect.isEffect(failureText) ? Effect.map(failureText, joinText) : Effect.succeed(joinText(failureText))
}
