import * as Schema from "effect/Schema"
import { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { Complaint, exitCodeOf, systemFailed } from "./exit.ts"
import type { CommandLine } from "./shell.ts"

export type HistoryError = SnapshotError | SnapshotRestoreError | ArchiveError

interface Next {
  readonly code: number
  readonly hint: string | ((line: CommandLine) => string)
}

const unknown: Next = { code: exitCodeOf("NotFound"), hint: (line) => `List them: ${line("snapshots")}` }
const gone: Next = {
  code: systemFailed,
  hint: "Check that the store and its disk exist and no other process holds the store, then try again."
}
const system: Next = { code: systemFailed, hint: "Check the disk and the permissions, then try again." }
const damaged: Next = {
  code: systemFailed,
  hint: "Find the damage with git --git-dir STORE fsck; snapshots of another store are reached with --store DIR."
}

const ofSnapshots: Readonly<Record<SnapshotError["reason"], Next>> = {
  gitMissing: {
    code: systemFailed,
    hint: (line) => `Install git, as by apt-get install git. An archive needs no git: ${line("export", "backup.zip")}`
  },
  unknown,
  corrupt: damaged,
  budget: { code: exitCodeOf("LimitExceeded"), hint: "Make room, or choose a --root further down." },
  refused: {
    code: exitCodeOf("AccessDenied"),
    hint: "Choose another --root or --store; --any-root allows a snapshot even of a home directory."
  },
  unavailable: gone,
  io: system
}

const ofRestores: Readonly<Record<SnapshotRestoreError["reason"], Next>> = {
  unknown,
  incompatible: { code: exitCodeOf("NotAFile"), hint: "Restore it with the --root and the --store that it was taken with." },
  corrupt: damaged,
  readOnly: { code: exitCodeOf("AccessDenied"), hint: "This filesystem is read-only; nothing in it can be changed." },
  unavailable: gone,
  io: system
}

const ofArchives: Readonly<Record<ArchiveError["reason"], string>> = {
  corrupt: "Get or make the archive again.",
  encrypted: "Archives with a password cannot be read: unpack it elsewhere and pack it without one.",
  unsupported: "An archive holds files, directories and links, stored or deflated, and nothing else.",
  name: "Rename that entry: a name must be valid on every system and stay below the root.",
  duplicate: "Rename one of them: on some systems both are the same name.",
  link: "A link in an archive must lead to an entry of the archive.",
  tooLarge: "Choose a part of the tree, or a --root further down.",
  version: "Use the program that made it, or a newer fs-algebra."
}

const nextOf = (error: HistoryError): Next => {
  switch (error._tag) {
    case "SnapshotError":
      return ofSnapshots[error.reason]
    case "SnapshotRestoreError":
      return ofRestores[error.reason]
    case "ArchiveError":
      return {
        code: exitCodeOf(error.reason === "tooLarge" ? "LimitExceeded" : "NotAFile"),
        hint: `Nothing has changed. ${ofArchives[error.reason]}`
      }
  }
}

const encode = Schema.encodeSync(Schema.toCodecJson(Schema.Union([SnapshotError, SnapshotRestoreError, ArchiveError])))

const messageOf = (error: HistoryError, command: string): string =>
  error._tag === "SnapshotError" ? `${command}: ${error.detail}` : error.message

export const complaintOf = (error: HistoryError, command: string, line: CommandLine): Complaint => {
  const { code, hint } = nextOf(error)
  return new Complaint({
    error: encode(error) as Complaint["error"],
    message: messageOf(error, command),
    hint: typeof hint === "string" ? hint : hint(line),
    code
  })
}
