/** What to do next about journals, for every reason there is, and the exit code that each ends with. */
import type { JournalError } from "../../journal/errors.ts"
import type { NotRecorded } from "../../journal/Replay.ts"
import { Complaint, exitCodeOf, systemFailed, wrongUsage } from "../exit.ts"

export type JournalFailure = JournalError | NotRecorded

const unsound = exitCodeOf("NotAFile")

const next: Readonly<Record<JournalError["reason"], readonly [code: number, hint: string]>> = {
  corrupt: [unsound, "Give a file that is a journal, as --journal FILE makes one."],
  busy: [exitCodeOf("AccessDenied"), "End the program that writes it, or give another FILE; looking at it needs neither."],
  closed: [systemFailed, "Try again."],
  readOnly: [exitCodeOf("AccessDenied"), "Look at the permissions of the file and its directory."],
  invalid: [wrongUsage, "Give a file that is a journal, or one that is not there yet."],
  tooLarge: [exitCodeOf("LimitExceeded"), "Do it in smaller parts."],
  unavailable: [systemFailed, "Start what it is on, then try again."],
  version: [unsound, "Use a newer fs-algebra."],
  io: [systemFailed, "Check the disk and what may be read and written, then try again."]
}

/** The first line is no entry, so that this many lines end before it. */
export const soundPart = (position: number): string =>
  `What is before it is sound: head -n ${position} of the file is a journal of that.`

export const complaintOf = (error: JournalFailure, command: string): Complaint => {
  if (error._tag === "NotRecorded") {
    const { _tag, detail, message, operation, path } = error
    return new Complaint({
      error: { _tag, operation, path, detail },
      message,
      hint: "A journal knows what was done through it: choose another position, or other paths with --path.",
      code: exitCodeOf("NotFound")
    })
  }
  const { _tag, detail, operation, position, reason } = error
  const [code, advice] = next[reason]
  const hint = reason === "corrupt" && position !== undefined ? soundPart(position) : advice
  return new Complaint({
    error: { _tag, operation, reason, detail, ...(position !== undefined && { position }) },
    message: `${command}: ${position === undefined ? "" : `entry ${position}: `}${detail}`,
    hint,
    code
  })
}
