/**
 * The advice for the errors of filesystems, snapshots, archives and journals. The message of an error describes the failure,
 * and the advice describes the next step.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import type { NotRecorded } from "../journal/Replay.ts"
import type { JournalError } from "../journal/errors.ts"
import type * as FsError from "../model/FsError.ts"
import { Complaint, exitCodeOf, systemErrorCode, usageErrorCode } from "./exit.ts"
import type { CommandLine } from "./look.ts"

export type HistoryError = SnapshotError | SnapshotRestoreError | ArchiveError

interface HistoryAdvice {
  readonly code: number
  readonly hint: string | ((line: CommandLine) => string)
}

const unknownSnapshot: HistoryAdvice = {
  code: exitCodeOf("NotFound"),
  hint: (line) => `List the snapshots: ${line("snapshots")}`
}
const storeUnavailable: HistoryAdvice = {
  code: systemErrorCode,
  hint: "Check that this user may write to the store, and that no other process uses it. Then try again."
}
const systemFailure: HistoryAdvice = {
  code: systemErrorCode,
  hint: "Try again. If it fails once more, check the disk and the permissions."
}
const storeDamaged: HistoryAdvice = {
  code: systemErrorCode,
  hint: "Find the damage with git --git-dir STORE fsck, or in a workspace with workspaces verify. To use another store, give --store."
}

const snapshotAdvice: Readonly<Record<SnapshotError["reason"], HistoryAdvice>> = {
  gitMissing: {
    code: systemErrorCode,
    hint: (line) =>
      `Install git, for example with apt-get install git. An export does not need git: ${line("export", "backup.zip")}`
  },
  unknown: unknownSnapshot,
  corrupt: storeDamaged,
  budget: { code: exitCodeOf("LimitExceeded"), hint: "Remove large files, or choose a --root further down." },
  refused: {
    code: exitCodeOf("AccessDenied"),
    hint: "Correct the cause, or choose another --root or --store; --any-root allows a snapshot even of a home directory."
  },
  unavailable: storeUnavailable,
  io: systemFailure
}

const restoreAdvice: Readonly<Record<SnapshotRestoreError["reason"], HistoryAdvice>> = {
  unknown: unknownSnapshot,
  incompatible: {
    code: exitCodeOf("NotAFile"),
    hint: "Restore the snapshot with the --root and --store with which it was taken."
  },
  corrupt: storeDamaged,
  readOnly: { code: exitCodeOf("AccessDenied"), hint: "This filesystem is read-only; nothing in it can be changed." },
  unavailable: storeUnavailable,
  io: systemFailure
}

const archiveAdvice: Readonly<Record<ArchiveError["reason"], string>> = {
  corrupt: "Create or download the archive again.",
  encrypted: "Use an archive without a password: unpack this archive with another program, and pack the files again.",
  unsupported: "Use an archive that contains only files, directories and links, stored or deflated.",
  name: "Rename that entry: its name must be valid on every system, and must not lead out of the root.",
  duplicate: "Rename one of the two entries: on some systems their names are equal.",
  link: "Leave out the link: it must lead to an entry of the archive, and the filesystem must support links.",
  tooLarge: "Use a smaller archive, or choose a --root further down.",
  version: "Read the archive with the program that made it, or with a newer fs-algebra."
}

const adviceFor = (error: HistoryError): HistoryAdvice => {
  switch (error._tag) {
    case "SnapshotError":
      return snapshotAdvice[error.reason]
    case "SnapshotRestoreError":
      return restoreAdvice[error.reason]
    case "ArchiveError":
      return {
        code: exitCodeOf(error.reason === "tooLarge" ? "LimitExceeded" : "NotAFile"),
        hint: `Nothing has changed. ${archiveAdvice[error.reason]}`
      }
  }
}

const encode = Schema.encodeSync(Schema.toCodecJson(Schema.Union([SnapshotError, SnapshotRestoreError, ArchiveError])))

const messageOf = (error: HistoryError, command: string): string =>
  error._tag === "SnapshotError" ? `${command}: ${error.detail}` : error.message

export const complaintOf = (error: HistoryError, command: string, line: CommandLine): Complaint => {
  const { code, hint } = adviceFor(error)
  return new Complaint({
    error: encode(error) as Complaint["error"],
    message: messageOf(error, command),
    hint: typeof hint === "string" ? hint : hint(line),
    code
  })
}

const unsoundCode = exitCodeOf("NotAFile")

const adviceByReason: Readonly<Record<JournalError["reason"], readonly [code: number, hint: string]>> = {
  corrupt: [unsoundCode, "Give a journal that --journal FILE recorded."],
  busy: [
    exitCodeOf("AccessDenied"),
    "End the program that writes the journal, or give another FILE. Commands that only read the journal still work."
  ],
  closed: [systemErrorCode, "Try again."],
  readOnly: [exitCodeOf("AccessDenied"), "Check the permissions of the file and its directory."],
  invalid: [usageErrorCode, "Give a journal, or a file that does not exist yet."],
  tooLarge: [exitCodeOf("LimitExceeded"), "Split the work into smaller parts."],
  unavailable: [systemErrorCode, "Check that the server of the journal runs and accepts this user, then try again."],
  version: [unsoundCode, "Use a newer fs-algebra."],
  compacted: [usageErrorCode, "Give a later position, or omit the position; journal verify shows the first position."],
  io: [systemErrorCode, "Check the disk and the permissions, then try again."]
}

/**
 * Returns advice on how to keep the undamaged entries. The first line of the file is a header, so the first `position` lines
 * contain the entries before the position.
 */
export const soundPartHint = (position: number): string =>
  `The entries before this position are undamaged; head -n ${position} FILE prints a journal of these entries.`

const hintOf = ({ operation, position, reason }: JournalError, file: string): string => {
  if (reason !== "corrupt") return adviceByReason[reason][1]
  if (operation.startsWith("ContentStore"))
    return `Restore the missing files in ${file}.contents, which holds the contents over 4 KiB.`
  return position === undefined ? adviceByReason.corrupt[1] : soundPartHint(position)
}

const complaintOfAdvice = (error: JournalError, file: string): Complaint => {
  const { _tag, detail, operation, position, reason } = error
  return new Complaint({
    error: { _tag, operation, reason, detail, ...(position !== undefined && { position }) },
    message: `journal "${file}": ${detail}`,
    hint: hintOf(error, file),
    code: adviceByReason[reason][0]
  })
}

export const withJournalComplaints =
  (file: string) =>
  <A, E extends { readonly _tag: string }, R>(
    self: Effect.Effect<A, E, R>
  ): Effect.Effect<A, Exclude<E, JournalError> | Complaint, R> =>
    Effect.mapError(self, (error) =>
      error._tag === "JournalError"
        ? complaintOfAdvice(error as unknown as JournalError, file)
        : (error as Exclude<E, JournalError>)
    )

export const notRecorded = ({ _tag, detail, message, operation, path }: NotRecorded): Complaint =>
  new Complaint({
    error: { _tag, operation, path, detail },
    message,
    hint: "A journal contains only the changes that it recorded: choose another position, or other paths with --path.",
    code: exitCodeOf("NotFound")
  })

/** The name of the operation in errors about the root directory. These errors occur before the filesystem is open. */
export const openOperation = "open"

const accessDeniedAdvice: Readonly<Record<FsError.AccessDenied["why"], string>> = {
  permission: "Check the permissions of the file and its directory, or run as a user who has access.",
  readOnly: "This filesystem is read-only; nothing in it can be changed.",
  escape: "Choose a --root that contains the target of the link.",
  root: "Give a path below the root or the mount point instead.",
  link: "Give the path of the link's target instead. For a file with several hard links, omit --hardlinks reject.",
  policy: "Ask the person who set the policy.",
  busy: "Close the program that uses the file or directory, then try again."
}

const argumentAdvice: ReadonlyMap<string, string> = new Map([
  ["pattern", "Quote the pattern for your shell; to find plain text use grep --literal."],
  [
    "oldText",
    "Give --old exactly as the file has it. If it occurs several times, give more of the text, or use --first or --all."
  ],
  ["ifMatch", "Leave out either --if-match or --mode create."],
  ["to", "Choose a destination that is neither the source nor inside it."],
  ["image", "Give the image or the root filesystem of the container: --image IMAGE, or --rootfs DIR."],
  ["after", "Give --after exactly the value that the previous result printed."]
])

const adviseMissingRoot = (root: string): string =>
  /^(?:localhost|[\d.]+|[a-z\d-]+(?:\.[a-z\d-]+)+):\d+$/i.test(root)
    ? `Give a directory that exists: --root DIR. For a server, give --root http://${root}`
    : "Give a directory that exists: --root DIR."

type Advice = {
  readonly [Tag in FsError.FsError["_tag"]]: (
    error: Extract<FsError.FsError, { readonly _tag: Tag }>,
    line: CommandLine
  ) => string
}

const adviceByTag: Advice = {
  NotFound: ({ operation, path }, line) =>
    operation === openOperation ? adviseMissingRoot(path) : `Show the files: ${line("tree")}`,
  AlreadyExists: ({ operation, path }, line) =>
    operation === "copy" || operation === "move"
      ? "Use --overwrite to replace the existing entry, or choose another name."
      : operation === "mkdir"
        ? `Choose another name, or look at the existing entry: ${line("stat", path)}; without --no-exist-ok an existing directory is accepted.`
        : `Use --mode overwrite to replace the file, or change a part of the file: ${line("edit", path)}`,
  AccessDenied: ({ why }) => accessDeniedAdvice[why],
  InvalidPath: () =>
    "Correct the path; it must stay below the root, without a cycle of links. For files outside the root, choose another --root.",
  PathTooLong: () => "Choose a --root further down, or shorter names.",
  NotADirectory: ({ operation, path }, line) =>
    operation === openOperation ? "Give a directory: --root DIR." : `Look at the entry: ${line("stat", path)}`,
  NotAFile: ({ operation, path }, line) =>
    operation === "copy" || operation === "move"
      ? `Look at the entry: ${line("stat", path)}; to put something inside a directory end the destination with /.`
      : `Look at the entry: ${line("stat", path)}`,
  DirectoryNotEmpty: ({ operation, path }, line) =>
    operation === "delete"
      ? `Remove the directory with all its content: ${line("rm", "--recursive", path)}`
      : "Choose another destination, or remove that directory first.",
  DiskFull: () => "Free some space, then try again; the old content is unchanged.",
  Timeout: ({ detail, path }, line) =>
    detail.startsWith("the pattern")
      ? "Make the pattern simpler, or search for plain text with --literal."
      : `Look at the current state, then try again: ${line("stat", path)}`,
  IoError: () => "Check the disk or the connection to the server, then try again.",
  NotText: ({ path }, line) => `Read the file as bytes: ${line("cat", "--bytes", "0:256", path)} | xxd`,
  LimitExceeded: ({ limit, path }, line) =>
    limit === "maxReadBytes" || limit === "maxStringLength"
      ? `Read a part of the file: ${line("cat", "--bytes", "0:65536", path)}`
      : "Split the work into smaller parts.",
  InvalidArgument: ({ argument, operation }) =>
    argument === "pattern" && operation.startsWith("glob")
      ? String.raw`Quote the pattern for your shell; write \ before a special character to match the character itself.`
      : (argumentAdvice.get(argument) ?? "See --help for the allowed values."),
  Conflict: ({ actual, path }, line) =>
    actual === undefined || actual === null
      ? `Look at the entry again: ${line("stat", path)}`
      : `Read the file again with ${line("cat", path)}, then give --if-match ${actual}`,
  Unsupported: () => "Use a --root or a --backend that supports it, such as a directory of this machine.",
  Unavailable: ({ hint, operation }) =>
    hint ??
    (operation === "exec" || operation === "Container"
      ? "Check that the engine runs and has the container's image; podman pull IMAGE fetches an image."
      : operation === openOperation
        ? "Check the address, and that the server runs; fs-algebra serve starts one."
        : "Start the system that stores the files, then try again.")
}

export const adviceOn = (error: FsError.FsError, line: CommandLine): string =>
  (adviceByTag[error._tag] as (error: FsError.FsError, line: CommandLine) => string)(error, line)
