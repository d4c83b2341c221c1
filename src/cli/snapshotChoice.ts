import * as Effect from "effect/Effect"
import { findCandidates, latest, safetyTag, makeShortIds } from "../history/snapshots/choice.ts"
import type { FilesystemSnapshot } from "../history/snapshots/value.ts"
import { Complaint, exitCodeOf, usage } from "./exit.ts"
import * as humanise from "./humanise.ts"
import { printableName } from "./printable.ts"
import type { CommandLine } from "./shell.ts"
import { lineFor, type Store } from "./snapshotStore.ts"

export { latest, safetyTag, makeShortIds as shortIds }

type All = ReadonlyArray<FilesystemSnapshot>

/** Makes the error, for programs the same as the snapshot service's own. */
const unknownError = (detail: string, hint: string): Complaint =>
  new Complaint({
    error: { _tag: "SnapshotError", operation: "find", reason: "unknown", detail },
    message: detail,
    hint,
    code: exitCodeOf("NotFound")
  })

const ambiguousError = (all: All, found: All, text: string): Complaint => {
  const short = makeShortIds(all)
  const shown = found
    .slice(-5)
    .map(
      (snapshot) =>
        `${short(snapshot)}${snapshot.tag === undefined ? "" : ` (${snapshot.tag})`}, ${humanise.time(snapshot.createdAt)}`
    )
  const message = `"${text}" matches ${found.length} snapshots`
  const hint = `Say which: ${found.length > shown.length ? "…; " : ""}${shown.map(printableName).join("; ")}`
  return usage(message, hint)
}

export const noSnapshots = (store: string | undefined) =>
  Effect.flatMap(lineFor(store), (line) => Effect.fail(noSnapshotError(line)))

const noSnapshotError = (line: CommandLine): Complaint =>
  unknownError("there is no snapshot of this root yet", `Take one: ${line("snapshot")}`)

/**
 * Returns the named snapshot. If there is none, the caller's hint may say that the text was probably meant as something else.
 */
export const chooseSnapshot = Effect.fnUntraced(function* <R = never>(
  { line, snapshots }: Store,
  text: string,
  alternativeHint?: Effect.Effect<string | undefined, never, R>
) {
  const all = yield* snapshots.list
  if (all.length === 0) return yield* noSnapshotError(line)
  const found = findCandidates(all, text)
  if (found.length > 1) return yield* ambiguousError(all, found, text)
  if (found.length === 1) return found[0]!
  const hint = (alternativeHint === undefined ? undefined : yield* alternativeHint) ?? `List them: ${line("snapshots")}`
  return yield* unknownError(`there is no snapshot "${text}"`, hint)
})
