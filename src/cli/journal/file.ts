/**
 * Resolves the journal of a command: a file on the machine, relative to the working directory and not to the root. Commands
 * that only read a journal never create it, and work while another process writes it.
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import { statSync } from "node:fs"
import type { Entry, Scrivener } from "../../journal/Journal.ts"
import { type Complaint, hostPathError, usage } from "../exit.ts"
import { hostPathOf, kindOfHostPath } from "../paths.ts"
import type { Screen } from "../screen.ts"

/** Refuses a position beyond the end, because it is probably mistyped. */
export const checkPosition = Effect.fnUntraced(function* (journal: Scrivener<Entry>, position: number) {
  const last = yield* journal.last
  if (position <= last) return last
  return yield* usage(
    `there is no position ${position}: the last position of the journal is ${last}`,
    "List the entries with journal show; position 0 is before the first entry."
  )
})

export const file: Argument.Argument<string> = Argument.Path("file").pipe(
  Argument.withDescription("The journal, relative to the current directory")
)

const absolutePathOf = (file: string): Effect.Effect<string, Complaint, Screen> =>
  file.trim() === ""
    ? Effect.fail(usage("the name of the journal is blank", "Name a file, such as ../work.journal."))
    : hostPathOf(file)

const notAJournalError = (file: string) =>
  hostPathError("NotAFile", "journal", file, "is not a file", "Name a journal that --journal FILE recorded.")

/** Returns the absolute path of a journal, which need not exist yet. */
export const journalToWrite = Effect.fnUntraced(function* (file: string) {
  const path = yield* absolutePathOf(file)
  const kind = kindOfHostPath(path)
  return kind === undefined || kind === "file" ? path : yield* notAJournalError(file)
})

export const existingJournal = Effect.fnUntraced(function* (file: string) {
  const path = yield* journalToWrite(file)
  if (kindOfHostPath(path) !== undefined) return path
  return yield* hostPathError(
    "NotFound",
    "journal",
    file,
    "does not exist",
    "Name a file on the machine, relative to the current directory and not to the root; --journal FILE records a journal."
  )
})

/** Tests whether the journal exists and has content. Only a new journal can get a hash chain. */
export const hasContent = (place: string): boolean => (statSync(place, { throwIfNoEntry: false })?.size ?? 0) > 0

export const openForReading = Effect.fnUntraced(function* (file: string) {
  const path = yield* existingJournal(file)
  const { Entry, makeFile } = yield* Effect.promise(() => import("../../journal/Journal.ts"))
  return yield* makeFile(Entry, { path, readOnly: true })
})
