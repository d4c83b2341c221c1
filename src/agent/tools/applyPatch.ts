import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { documentOf } from "../../engine/splice.ts"
import { runInSlices } from "../../runtime/steps.ts"
import { applyChanges, type ChangedFile } from "../changes/apply.ts"
import { type Call, define, refused, type ToolFailure, type Touch } from "../definition.ts"
import type { Deviation } from "../patch/apply.ts"
import { type FileOutcome, planPatch, type Section } from "../patch/plan.ts"
import { parse } from "../patch/parse.ts"
import { joinFitting } from "../text/fit.ts"
import { plural } from "../text/words.ts"

/**
 * Returns the largest patch, in UTF-16 units. Parsing blocks the event loop until it ends. Limits that allow larger writes than
 * an agent's also allow larger patches.
 */
const maxPatchLength = ({ settings }: Call): number => Math.max(250_000, 5 * settings.limits.maxFileSize)

const formatNumber = (count: number): string => count.toLocaleString("en-US")

const refuseTooLong = (length: number, allowed: number) =>
  refused(
    `The patch has ${formatNumber(length)} characters, and at most ${formatNumber(allowed)} are read at once.`,
    "Nothing was changed; send several smaller patches."
  )

const sectionsOf = Effect.fnUntraced(function* (
  patch: string,
  call: Call
): Effect.fn.Return<ReadonlyArray<Section>, ToolFailure> {
  const allowed = maxPatchLength(call)
  if (patch.length > allowed) return yield* Effect.fail(refuseTooLong(patch.length, allowed))
  const files = parse(patch)
  if ("_tag" in files) return yield* Effect.fail(files)
  const path = (raw: string | undefined) => (raw === undefined ? Effect.undefined : call.path(raw, { argument: "patch" }))
  return yield* Effect.forEach(files, (patch) =>
    Effect.map(Effect.all([path(patch.from), path(patch.to)]), ([from, to]) => ({ patch, from, to }))
  )
})

const touchesOf = ({ from, to }: Section): ReadonlyArray<Touch> => [
  ...(to === undefined ? [] : [{ access: "write" as const, path: to }]),
  ...(from === undefined || from === to ? [] : [{ access: "delete" as const, path: from }])
]

const rememberOutcome = Effect.fnUntraced(function* (
  { memory }: Call,
  { action, change, path }: FileOutcome,
  version: string | null
) {
  if (action === "deleted" || action === "moved") memory.forget(path)
  const { after } = change
  if (after === null || version === null) return
  const document = yield* runInSlices(() => documentOf(after))
  memory.saw(change.path, version, "_tag" in document ? undefined : document.text)
})

const ignoredDifference = ({ indented, level }: Deviation): string =>
  level === 2
    ? "blanks at line ends"
    : indented
      ? "indentation, and was indented as the lines there"
      : "blanks around lines; check the indentation of what it put there"

const describeDeviations = ({ deviations }: FileOutcome): string =>
  deviations
    .map((deviation) => {
      const { hunk, level, line } = deviation
      return level > 1
        ? `; hunk ${hunk} matched line ${line} except for ${ignoredDifference(deviation)}`
        : `; hunk ${hunk} applied at line ${line}`
    })
    .join("")

const describeOutcome = (outcome: FileOutcome): string => {
  const { action, addedLines, path, removedLines, setsMode, to } = outcome
  const name = to === undefined ? path : `${path} to ${to}`
  return `${action} ${name} (+${addedLines} -${removedLines})${setsMode ? "; its permissions were left as they are" : ""}${describeDeviations(outcome)}`
}

const applyOutcomes = (
  call: Call,
  outcomes: ReadonlyArray<FileOutcome>
): Effect.Effect<ReadonlyArray<ChangedFile>, ToolFailure> =>
  applyChanges(
    call.filesystem,
    outcomes.map(({ change }) => change),
    { operation: call.tool }
  )

export const applyPatch = define({
  name: "apply_patch",
  description:
    "Apply a patch of several files, all of it or nothing: *** Begin Patch … *** End Patch, or a unified diff. Context lines must occur only once.",
  parameters: Schema.Struct({
    patch: Schema.String.annotate({
      description:
        "*** Add File: path (lines begin with +), *** Delete File: path, *** Update File: path (then *** Move to: path, and hunks: @@ with a line above the place, then lines that begin with space, - or +); or --- a/path, +++ b/path, @@ -1,3 +1,4 @@"
    })
  }),
  value: Schema.Struct({
    files: Schema.Array(
      Schema.Struct({
        path: Schema.String,
        action: Schema.Literals(["added", "updated", "deleted", "moved"]),
        to: Schema.optionalKey(Schema.String),
        added_lines: Schema.Int,
        removed_lines: Schema.Int,
        version: Schema.optionalKey(Schema.String)
      })
    )
  }),
  does: "changes",
  idempotent: false,
  examples: [
    {
      patch:
        "*** Begin Patch\n*** Update File: src/main.ts\n@@ function serve() {\n-  const port = 80\n+  const port = 8080\n*** Add File: NOTES.md\n+The port is 8080.\n*** End Patch"
    },
    { patch: "--- a/src/main.ts\n+++ b/src/main.ts\n@@ -3,1 +3,1 @@\n-  const port = 80\n+  const port = 8080\n" }
  ],
  touches: ({ patch }, call) => Effect.map(sectionsOf(patch, call), (sections) => sections.flatMap(touchesOf)),
  handle: Effect.fnUntraced(function* ({ patch }, call) {
    const sections = yield* sectionsOf(patch, call)
    // If another writer changes a file in between, plan again.
    const attempt = Effect.flatMap(planPatch(call, sections), (outcomes) =>
      Effect.map(applyOutcomes(call, outcomes), (changed) => ({ outcomes, changed }))
    )
    const { changed, outcomes } = yield* Effect.retry(attempt, { times: 4, while: ({ _tag }) => _tag === "Conflict" })
    for (const [index, outcome] of outcomes.entries()) yield* rememberOutcome(call, outcome, changed[index]!.version)
    const head = `applied the patch: ${plural(outcomes.length, "file")} changed`
    const rest = (shown: number): string => `and ${plural(outcomes.length + 1 - shown, "more file")}`
    return {
      message: joinFitting([head, ...outcomes.map(describeOutcome)], call.settings, rest),
      value: {
        files: outcomes.map(({ action, addedLines, path, removedLines, to }, index) => {
          const { version } = changed[index]!
          return {
            path,
            action,
            ...(to !== undefined && { to }),
            added_lines: addedLines,
            removed_lines: removedLines,
            ...(version !== null && { version })
          }
        })
      }
    }
  })
})
