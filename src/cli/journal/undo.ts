/**
 * Shows the drift between a journal and the files, and undoes the changes after a position. The undo is recorded in the same
 * journal, so the journal remains complete and the undo can be undone too.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type { Entry, Scrivener } from "../../journal/Journal.ts"
import * as Replay from "../../journal/Replay.ts"
import type { Conflict } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { listLines, withProgress, writeDocument } from "../answer.ts"
import { Complaint, exitCodeOf, usage } from "../exit.ts"
import * as humanise from "../humanise.ts"
import {
  Change,
  commandLine,
  errorStyle,
  formatChangeCounts,
  formatPath,
  formatSomeChanges,
  quote,
  type TextStyle
} from "../look.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { checkPosition, existingJournal, openForReading } from "./file.ts"
import { pathsOf } from "./filters.ts"
import { startRecording } from "./recording.ts"

const Mode = Schema.optionalKey(Schema.Int)

const State = Schema.Union([
  Schema.Struct({ kind: Schema.Literals(["nothing", "other"]) }),
  Schema.Struct({ kind: Schema.Literal("file"), sizeBytes: Schema.Int, version: Schema.String, mode: Mode }),
  Schema.Struct({ kind: Schema.Literals(["directory", "unknown"]), mode: Mode }),
  Schema.Struct({ kind: Schema.Literal("symlink"), target: Schema.String })
])

const Drift = Schema.Struct({ path: Schema.String, expected: State, actual: State })

type Shown = typeof Drift.Type

export interface DriftOptions {
  readonly file: string
  readonly to: number | undefined
  readonly paths: ReadonlyArray<string>
  readonly all: boolean
}

const modeOf = (state: Shown["actual"]): string =>
  "mode" in state && state.mode !== undefined ? `, mode ${state.mode.toString(8).padStart(4, "0")}` : ""

const formatState = (look: TextStyle, state: Shown["actual"]): string => {
  switch (state.kind) {
    case "file":
      return `file of ${humanise.bytes(state.sizeBytes)}, version ${state.version.slice(0, 12)}${modeOf(state)}`
    case "symlink":
      return `link to ${look.name(state.target)}`
    case "other":
      return "FIFO, socket or device"
    case "unknown":
      return `entry of unknown kind${modeOf(state)}`
    default:
      return `${state.kind}${modeOf(state)}`
  }
}

const formatDifference = (look: TextStyle, { actual, expected }: Shown): string => {
  if (actual.kind === "nothing") return `${look.red("removed")}, was ${formatState(look, expected)}`
  if (expected.kind === "nothing") return `${look.green("added")}, ${formatState(look, actual)}`
  // An expected state of unknown kind without a mode means that the journal has no information about the entry.
  if (expected.kind === "unknown" && expected.mode === undefined) return `not in the journal, ${formatState(look, actual)}`
  return `${look.yellow("changed")}, was ${formatState(look, expected)}, is ${formatState(look, actual)}`
}

const formatDrift = (look: TextStyle, drift: Shown): string =>
  `${look.name(formatPath(drift.path))}: ${formatDifference(look, drift)}\n`

export const drift = Effect.fnUntraced(function* ({ all, file, paths: given, to }: DriftOptions) {
  const paths = yield* pathsOf(given)
  const fs = yield* Filesystem
  const journal = yield* openForReading(file)
  yield* checkPosition(journal, to ?? 0)
  const found: ReadonlyArray<Shown> = yield* Replay.drift(journal, fs, { until: to, paths, all }).pipe(
    withProgress("Comparing")
  )
  yield* listLines(Drift, Stream.fromIterable(found), formatDrift)
}, Effect.scoped)

const Answer = Schema.Struct({ position: Schema.Int, dryRun: Schema.Boolean, changes: Schema.Array(Change) })

export interface UndoOptions {
  readonly file: string
  readonly to: number
  readonly paths: ReadonlyArray<string>
  readonly dryRun: boolean
}

const maxShownPaths = 5

const findConflictingPaths = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  fs: Algebra,
  { paths, to }: { readonly to: number; readonly paths: ReadonlyArray<string> | undefined }
) {
  const changes = yield* Replay.changes(journal).pipe(
    Stream.filter(({ answered, position }) => (answered ?? position) > to),
    Stream.runCollect
  )
  const changedPaths = changes.flatMap(({ path, to }) => (to === undefined ? [path] : [path, to]))
  const drifted = yield* Replay.drift(journal, fs, { paths })
  return drifted.map(({ path }) => path).filter((path) => changedPaths.some((base) => FsPath.isWithin(base, path)))
})

const complaintOf = (conflict: Conflict, paths: ReadonlyArray<string>): Complaint => {
  const all = paths.length === 0 ? [conflict.path] : paths
  const some = all.slice(0, maxShownPaths).map(quote).join(", ")
  const rest = all.length > maxShownPaths ? ` and ${humanise.whole(all.length - maxShownPaths)} more` : ""
  const { _tag, actual, expected, operation, path } = conflict
  return new Complaint({
    error: { _tag, operation, path, expected, ...(actual !== undefined && { actual }), paths: all },
    message: `undo changed nothing, because these paths were changed without the journal: ${some}${rest}`,
    hint: "Move the current files away, or undo only other paths with --path.",
    code: exitCodeOf("Conflict")
  })
}

const openJournal = Effect.fnUntraced(function* (file: string, dryRun: boolean) {
  const fs = yield* Filesystem
  if (dryRun) return { fs, journal: yield* openForReading(file) }
  yield* existingJournal(file)
  return yield* startRecording(fs, file)
})

export const undo = Effect.fnUntraced(function* ({ dryRun, file, paths: given, to }: UndoOptions) {
  const screen = yield* Screen
  const { backend, json, root } = yield* Settings
  if (backend === "memory") {
    const why = "changes of a copy do not belong in the journal of the directory"
    return yield* usage(`journal undo cannot be combined with --backend memory: ${why}`, "Preview the undo with --dry-run.")
  }
  const paths = yield* pathsOf(given)
  const { fs, journal } = yield* openJournal(file, dryRun)
  const before = yield* checkPosition(journal, to)
  const changes = yield* Replay.undo(journal, fs, { to, paths, dryRun }).pipe(
    withProgress(dryRun ? "Comparing" : "Undoing"),
    Effect.catchTag("Conflict", (conflict) =>
      Effect.flatMap(findConflictingPaths(journal, fs, { to, paths }), (paths) => Effect.fail(complaintOf(conflict, paths)))
    )
  )
  yield* writeDocument(
    Answer,
    { position: to, dryRun, changes },
    (look) =>
      `${formatSomeChanges(look, changes, dryRun)}${
        changes.length === 0
          ? `The files are already as at position ${look.yellow(`${to}`)}`
          : `${dryRun ? "Would undo" : "Undid"} the changes after position ${look.yellow(`${to}`)}, ${formatChangeCounts(changes)}`
      }\n`
  )
  if (json || changes.length === 0) return
  const { dim } = errorStyle(screen)
  const line = commandLine(screen.program, root)
  const undoCommand = line("journal", "undo", file, "--to", `${before}`, ...given.flatMap((path) => ["--path", path]))
  yield* screen.warn(dim(dryRun ? "nothing has changed" : `undo this with ${undoCommand}`))
}, Effect.scoped)
