/**
 * Reports failures. A failure is written to standard error, either as a message with a hint or as one JSON document. The exit
 * code gives the kind of failure.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { NotRecorded } from "../journal/Replay.ts"
import * as FsError from "../model/FsError.ts"
import { adviceOn, complaintOf, type HistoryError, notRecorded, openOperation } from "./advice.ts"
import { Complaint, exitCodeOf, Quit } from "./exit.ts"
import { type CommandLine, commandLine, errorStyle, quote } from "./look.ts"
import { toPathInRoot } from "./paths.ts"
import { deepestExistingDirectory, suggestPaths } from "../agent/toolPath.ts"
import { isDirectoryRoot } from "./root.ts"
import { type OutputFailed, Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

export type Failure = FsError.FsError | HistoryError | NotRecorded | Complaint | OutputFailed | Quit

const formatSuggestion = (paths: ReadonlyArray<string>): string =>
  `Did you mean ${paths.map(quote).join(paths.length === 2 ? " or " : ", ")}?`

const adviseMissingPath = Effect.fnUntraced(function* (fs: Algebra, error: FsError.NotFound, line: CommandLine) {
  const { path } = error
  if (/^~(?:\/|$)/.test(path))
    return "The shell replaces ~ by the home directory only at the beginning of a word without quotes."
  const paths = yield* suggestPaths(fs, error)
  if (paths.length > 0) return formatSuggestion(paths)
  return `List the directory: ${line("ls", yield* deepestExistingDirectory(fs, path))}`
})

const adviseNext = Effect.fnUntraced(function* (error: FsError.FsError) {
  const { root } = yield* Settings
  const { program } = yield* Screen
  const line = commandLine(program, root)
  const fs = yield* Effect.serviceOption(Filesystem)
  if (Option.isSome(fs) && error.operation !== openOperation) {
    if (error._tag === "NotFound") return yield* adviseMissingPath(fs.value, error, line)
    // Some users write a leading slash for the root of the filesystem.
    if (error._tag === "InvalidPath" && error.path.startsWith("/")) {
      const path = error.path.replace(/^\/+/, "") || "."
      const { directory } = yield* Screen
      if (!isDirectoryRoot(root, directory)) return `Give the path relative to the root, such as ${quote(path)}.`
      if (yield* fs.value.exists(error.path))
        return `${formatSuggestion([path])} A path that begins with / is a path on the machine; --root / holds all of them.`
    }
  }
  return adviceOn(error, line)
})

const reportComplaint = Effect.fnUntraced(function* (complaint: Complaint) {
  const screen = yield* Screen
  const { json } = yield* Settings
  const { code, error, hint, message } = complaint
  const { bold, dim, red, text } = errorStyle(screen)
  yield* screen.warn(
    json ? JSON.stringify({ error, message, hint }) : `${red(bold("error:"))} ${text(message)}\n${dim("hint:")}  ${hint}`
  )
  return code
})

const report = Effect.fnUntraced(function* (error: FsError.FsError) {
  const { command, json } = yield* Settings
  const { nearest: _, ...fault } = FsError.toFault(error)
  const shown = json || error.operation === openOperation ? error : FsError.promote(fault, command, error.path)
  return yield* reportComplaint(
    new Complaint({
      error: Schema.encodeSync(Schema.toCodecJson(FsError.FsError))(error) as Complaint["error"],
      message: shown.message,
      hint: yield* adviseNext(error),
      code: exitCodeOf(error._tag)
    })
  )
})

const reportAny = Effect.fnUntraced(function* (error: FsError.FsError | HistoryError | NotRecorded | Complaint) {
  switch (error._tag) {
    case "Complaint":
      return yield* reportComplaint(error)
    case "SnapshotError":
    case "SnapshotRestoreError":
    case "ArchiveError": {
      const { command, root } = yield* Settings
      const { program } = yield* Screen
      return yield* reportComplaint(complaintOf(error, command, commandLine(program, root)))
    }
    case "NotRecorded":
      return yield* reportComplaint(notRecorded(error))
    default:
      return yield* report(error)
  }
})

/**
 * Reports a failure and then fails with its exit code. Passes on a `Quit`, and a failed write to standard output, without a
 * report. The filesystem must still be open, because the report suggests similar names.
 */
export const reported = <A, E extends Failure, R>(self: Effect.Effect<A, E, R>) =>
  Effect.catch(self, (error: Failure) =>
    error._tag === "OutputFailed" || error._tag === "Quit"
      ? Effect.fail<OutputFailed | Quit>(error)
      : Effect.flatMap(reportAny(error), (code) => Effect.fail<OutputFailed | Quit>(new Quit({ code })))
  )

export const reportedLayer = <A, R>(layer: Layer.Layer<A, FsError.FsError | Complaint, R>) =>
  Layer.catch(layer, (error) =>
    Layer.effectContext(Effect.flatMap(reportAny(error), (code) => Effect.fail(new Quit({ code }))))
  )

/**
 * Runs the body for each item. Reports a failure, and continues with the next item. The first failure determines the exit code.
 * A failed write to standard output ends the loop.
 */
export const forEachItem = Effect.fnUntraced(function* <A, E extends Failure, R>(
  items: ReadonlyArray<A>,
  body: (item: A) => Effect.Effect<void, E, R>
) {
  let failed: Quit | undefined
  for (const item of items) {
    yield* Effect.catchTag(reported(body(item)), "Quit", (quit) => Effect.sync(() => void (failed ??= quit)))
  }
  if (failed !== undefined) yield* Effect.fail(failed)
})

/** Makes each path relative to the root, and runs the body for the path as `forEachItem` does. */
export const forEachPath = <E extends Failure, R>(
  paths: ReadonlyArray<string>,
  body: (path: string) => Effect.Effect<void, E, R>
) => forEachItem(paths, (path) => Effect.flatMap(toPathInRoot(path), body))
