import * as Schema from "effect/Schema"
import { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { Complaint, exitCodeOf, systemErrorCode } from "./exit.ts"
import type { CommandLine } from "./shell.ts"

export type HistoryError = SnapshotError | SnapshotRestoreError | ArchiveError

interface Advice {
  readonly code: number
  readonly hint: string | ((line: CommandLine) => string)
}

const unknownSnapshot: Advice = { code: exitCodeOf("NotFound"), hint: (line) => `List them: ${line("snapshots")}` }
const storeUnavailable: Advice = {
  code: systemErrorCode,
  hint: "Check that the store and its disk exist and no other process holds the store, then try again."
}
const systemFailure: Advice = { code: systemErrorCode, hint: "Check the disk and the permissions, then try again." }
const storeDamaged: Advice = {
  code: systemErrorCode,
  hint: "Find the damage with git --git-dir STORE fsck; snapshots of another store are reached with --store DIR."
}

const snapshotAdvice: Readonly<Record<SnapshotError["reason"], Advice>> = {
  gitMissing: {
    code: systemErrorCode,
    hint: (line) => `Install git, as by apt-get install git. An archive needs no git: ${line("export", "backup.zip")}`
  },
  unknown: unknownSnapshot,
  corrupt: storeDamaged,
  budget: { code: exitCodeOf("LimitExceeded"), hint: "Make room, or choose a --root further down." },
  refused: {
    code: exitCodeOf("AccessDenied"),
    hint: "Choose another --root or --store; --any-root allows a snapshot even of a home directory."
  },
  unavailable: storeUnavailable,
  io: systemFailure
}

const restoreAdvice: Readonly<Record<SnapshotRestoreError["reason"], Advice>> = {
  unknown: unknownSnapshot,
  incompatible: { code: exitCodeOf("NotAFile"), hint: "Restore it with the --root and the --store that it was taken with." },
  corrupt: storeDamaged,
  readOnly: { code: exitCodeOf("AccessDenied"), hint: "This filesystem is read-only; nothing in it can be changed." },
  unavailable: storeUnavailable,
  io: systemFailure
}

const archiveAdvice: Readonly<Record<ArchiveError["reason"], string>> = {
  corrupt: "Get or make the archive again.",
  encrypted: "Archives with a password cannot be read: unpack it elsewhere and pack it without one.",
  unsupported: "An archive holds files, directories and links, stored or deflated, and nothing else.",
  name: "Rename that entry: a name must be valid on every system and stay below the root.",
  duplicate: "Rename one of them: on some systems both are the same name.",
  link: "A link in an archive must lead to an entry of the archive.",
  tooLarge: "Choose a part of the tree, or a --root further down.",
  version: "Use the program that made it, or a newer fs-algebra."
}

const adviceFor = (error: HistoryError): Advice => {
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
