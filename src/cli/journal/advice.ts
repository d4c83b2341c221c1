import * as Effect from "effect/Effect"
import type { JournalError } from "../../journal/errors.ts"
import type { NotRecorded } from "../../journal/Replay.ts"
import { Complaint, exitCodeOf, systemErrorCode, usageErrorCode } from "../exit.ts"

const unsoundCode = exitCodeOf("NotAFile")

const adviceByReason: Readonly<Record<JournalError["reason"], readonly [code: number, hint: string]>> = {
  corrupt: [unsoundCode, "Give a journal that --journal FILE recorded."],
  busy: [
    exitCodeOf("AccessDenied"),
    "End the program that writes it, or give another FILE; commands that only read it work meanwhile."
  ],
  closed: [systemErrorCode, "Try again."],
  readOnly: [exitCodeOf("AccessDenied"), "Check the permissions of the file and its directory."],
  invalid: [usageErrorCode, "Give a journal, or a file that does not exist yet."],
  tooLarge: [exitCodeOf("LimitExceeded"), "Do it in smaller parts."],
  unavailable: [systemErrorCode, "Start the server that holds it, then try again."],
  version: [unsoundCode, "Use a newer fs-algebra."],
  compacted: [usageErrorCode, "Give a later position, or none; journal verify shows the first position."],
  io: [systemErrorCode, "Check the disk and the permissions, then try again."]
}

/**
 * Advises how to keep the sound part. The first line of the file is a header, so this number of lines ends before the position.
 */
export const soundPartHint = (position: number): string =>
  `The entries before it are undamaged: head -n ${position} of the file is a journal of them.`

const hintOf = ({ operation, position, reason }: JournalError, file: string): string => {
  if (reason !== "corrupt") return adviceByReason[reason][1]
  if (operation.startsWith("ContentStore"))
    return `Restore the missing files in ${file}.contents, which holds the contents over 4 KiB.`
  return position === undefined ? adviceByReason.corrupt[1] : soundPartHint(position)
}

export const complaintOf = (error: JournalError, file: string): Complaint => {
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
      error._tag === "JournalError" ? complaintOf(error as unknown as JournalError, file) : (error as Exclude<E, JournalError>)
    )

export const notRecorded = ({ _tag, detail, message, operation, path }: NotRecorded): Complaint =>
  new Complaint({
    error: { _tag, operation, path, detail },
    message,
    hint: "A journal knows only the changes made through it: choose another position, or other paths with --path.",
    code: exitCodeOf("NotFound")
  })
