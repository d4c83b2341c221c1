/**
 * Finds the journal of a command: a file of the machine, relative to the working directory and not to the root. Commands that
 * only read open it beside a writer, and never create one.
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import { statSync } from "node:fs"
import { resolve } from "node:path"
import type { Entry, Scrivener } from "../../journal/Journal.ts"
import { Complaint, exitCodeOf, usage } from "../exit.ts"
import * as humanise from "../humanise.ts"
import { Screen } from "../screen.ts"

/** Refuses a position beyond the end, because it is probably mistyped. */
export const checkPosition = Effect.fnUntraced(function* (journal: Scrivener<Entry>, position: number) {
  const last = yield* journal.last
  if (position <= last) return last
  return yield* usage(
    `there is no position ${position}: the journal has ${humanise.count(last, "entry")}`,
    "List them with journal show; 0 is before the first."
  )
})

export const file: Argument.Argument<string> = Argument.Path("file").pipe(
  Argument.withDescription("The journal, relative to the current directory")
)

const wrongFile = (tag: "NotFound" | "NotAFile", file: string, what: string, hint: string): Complaint =>
  new Complaint({
    error: { _tag: tag, operation: "journal", path: file },
    message: `"${file}" ${what}`,
    hint,
    code: exitCodeOf(tag)
  })

const absolutePathOf = (file: string): Effect.Effect<string, Complaint, Screen> =>
  Effect.flatMap(Screen, ({ directory }) =>
    file.trim() === ""
      ? Effect.fail(usage("the name of the journal is blank", "Name a file, such as ../work.journal."))
      : Effect.succeed(resolve(directory, file))
  )

const kindAt = (place: string): "nothing" | "file" | "other" => {
  try {
    const stat = statSync(place, { throwIfNoEntry: false })
    return stat === undefined ? "nothing" : stat.isFile() ? "file" : "other"
  } catch {
    // The later opening reports the error.
    return "file"
  }
}

const notAJournalError = (file: string) =>
  wrongFile("NotAFile", file, "is not a file", "Name a journal that --journal FILE recorded.")

export const existingJournal = Effect.fnUntraced(function* (file: string) {
  const place = yield* absolutePathOf(file)
  const kind = kindAt(place)
  if (kind === "nothing") {
    return yield* wrongFile(
      "NotFound",
      file,
      "is not there",
      "Name a file of the machine, relative to the current directory and not to the root; --journal FILE records a journal."
    )
  }
  return kind === "file" ? place : yield* notAJournalError(file)
})

export const journalToWrite = Effect.fnUntraced(function* (file: string) {
  const place = yield* absolutePathOf(file)
  return kindAt(place) === "other" ? yield* notAJournalError(file) : place
})

/** Tests whether the journal has content; only a new journal can be made chained. */
export const hasContent = (place: string): boolean => (statSync(place, { throwIfNoEntry: false })?.size ?? 0) > 0

export const openForReading = Effect.fnUntraced(function* (file: string) {
  const path = yield* existingJournal(file)
  const { Entry, makeFile } = yield* Effect.promise(() => import("../../journal/Journal.ts"))
  return yield* makeFile(Entry, { path, readOnly: true })
})
