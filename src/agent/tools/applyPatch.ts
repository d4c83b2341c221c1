import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { documentOf, splice } from "../../engine/edit.ts"
import { encode } from "../../engine/text.ts"
import { type FsError, LimitExceeded, promote } from "../../model/FsError.ts"
import { codePoints, type FsPath } from "../../model/FsPath.ts"
import { runInSlices } from "../../runtime/steps.ts"
import { applyChanges, type FileChange } from "../changes.ts"
import { type Call, define, type Refused, refused, type ToolFailure, type Touch } from "../definition.ts"
import { applyHunks, applyReplacements, type Deviation, refuseRemainingLines } from "../patch/apply.ts"
import { type FilePatch, parse, sendAgainAdvice } from "../patch/parse.ts"
import { joinFitting } from "../text/fit.ts"
import { formatCount as plural, whole } from "../../model/words.ts"

// Computes the effect of a patch on the tree before any change. If the patch has several sections for a file, each section
// works on the result of the previous section. A path that is added, removed or moved more than once is refused.

interface Section {
  readonly patch: FilePatch
  readonly from: FsPath | undefined
  readonly to: FsPath | undefined
}

type Action = "added" | "updated" | "deleted" | "moved"

interface FileOutcome {
  readonly action: Action
  readonly path: FsPath
  readonly to?: FsPath | undefined
  readonly addedLines: number
  readonly removedLines: number
  readonly deviations: ReadonlyArray<Deviation>
  readonly setsMode: boolean
  readonly change: FileChange
}

interface File {
  readonly content: Uint8Array
  readonly version: string
}

const empty = new Uint8Array(0)

const refuseExisting = (path: FsPath, { patchLine: at }: FilePatch, what: string): Refused =>
  refused(
    `${path} exists already, so it cannot be ${what} (line ${at} of the patch).`,
    what === "added"
      ? `Nothing was changed. Change this file with *** Update File, or choose another name.`
      : "Nothing was changed. Choose another name, or remove that file first, in another call."
  )

const refuseRepeated = (path: FsPath, { patchLine: at }: FilePatch): Refused =>
  refused(
    `${path} is added, removed or moved more than once by the patch (line ${at}).`,
    `${sendAgainAdvice} Or send the changes in two calls.`
  )

const read = (call: Call, path: FsPath): Effect.Effect<File, FsError> =>
  Effect.map(call.filesystem.readBytes(path, { version: true }), ({ content, version }) => ({ content, version: version! }))

const readIfExists = (call: Call, path: FsPath): Effect.Effect<File | undefined, FsError> =>
  Effect.catch(read(call, path), (error) => (error._tag === "NotFound" ? Effect.undefined : Effect.fail(error)))

/** Refuses a symlink. The patch would read the content of the link's target, but would move or remove the link itself. */
const refuseLink = Effect.fnUntraced(function* (call: Call, path: FsPath, what: string): Effect.fn.Return<void, ToolFailure> {
  const { isSymlink } = yield* call.filesystem.stat(path)
  if (isSymlink !== true) return
  yield* Effect.fail(
    refused(`${path} is a link, and a patch ${what} only files.`, "Nothing was changed. Use rm or move for the link.")
  )
})

const checkInsertedSize = (call: Call, path: FsPath, texts: ReadonlyArray<string>): LimitExceeded | undefined => {
  const allowed = call.settings.limits.maxFileSize
  const actual = texts.reduce((sum, text) => sum + codePoints(text), 0)
  return actual > allowed
    ? new LimitExceeded({ operation: call.tool, path, limit: "maxFileSize", allowed: Math.floor(allowed), actual })
    : undefined
}

interface PatchedFile extends Pick<FileOutcome, "addedLines" | "removedLines" | "deviations"> {
  readonly bytes: Uint8Array
}

const patchFile = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  bytes: Uint8Array,
  patch: FilePatch
): Effect.fn.Return<PatchedFile, ToolFailure> {
  if (patch.hunks.length === 0) return { bytes, addedLines: 0, removedLines: 0, deviations: [] }
  const document = yield* runInSlices(() => documentOf(bytes))
  if ("_tag" in document) return yield* Effect.fail(promote(document, call.tool, path))
  const applied = yield* runInSlices(() => applyHunks(patch, document.text, path))
  if ("_tag" in applied) return yield* Effect.fail(applied)
  const { replacements, ...counts } = applied
  if (patch.to === undefined) {
    const remainingText = applyReplacements(document.text, replacements)
    if (remainingText !== "" && remainingText !== "\uFEFF")
      return yield* Effect.fail(refuseRemainingLines(path, patch, remainingText))
    return { bytes: empty, ...counts }
  }
  for (const { text } of replacements) {
    const written = encode(text)
    if ("_tag" in written) return yield* Effect.fail(promote({ ...written, argument: "patch" }, call.tool, path))
  }
  const fault = checkInsertedSize(
    call,
    path,
    replacements.map(({ text }) => text)
  )
  if (fault !== undefined) return yield* Effect.fail(fault)
  return { bytes: yield* runInSlices(() => splice(document, replacements)), ...counts }
})

const lineCount = (bytes: Uint8Array): number => {
  let lines = bytes.length > 0 && bytes.at(-1) !== 10 ? 1 : 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

interface Plan {
  readonly outcomes: Map<FsPath, FileOutcome>
  readonly usedPaths: Set<FsPath>
}

/** Computes the outcome of one section. */
type Planner = (call: Call, plan: Plan, section: Section) => Effect.Effect<FileOutcome, ToolFailure>

const refuseUsed = ({ outcomes, usedPaths }: Plan, patch: FilePatch, paths: ReadonlyArray<FsPath>) => {
  const used = paths.find((path) => usedPaths.has(path) || outcomes.has(path))
  return used === undefined ? Effect.void : Effect.fail(refuseRepeated(used, patch))
}

const add: Planner = Effect.fnUntraced(function* (call, plan, { patch, to }) {
  const path = to!
  yield* refuseUsed(plan, patch, [path])
  if (yield* call.filesystem.exists(path)) return yield* Effect.fail(refuseExisting(path, patch, "added"))
  const { bytes, ...counts } = yield* patchFile(call, path, empty, patch)
  const change = { path, before: null, after: bytes }
  return { action: "added", path, ...counts, setsMode: patch.setsMode, change }
})

const remove: Planner = Effect.fnUntraced(function* (call, plan, { from, patch }) {
  const path = from!
  yield* refuseUsed(plan, patch, [path])
  yield* refuseLink(call, path, "removes")
  const { content, version } = yield* read(call, path)
  const { deviations } = yield* patchFile(call, path, content, patch)
  const change = { path, before: version, after: null }
  const removedLines = lineCount(content)
  return { action: "deleted", path, addedLines: 0, removedLines, deviations, setsMode: false, change }
})

const move: Planner = Effect.fnUntraced(function* (call, plan, section) {
  const { patch } = section
  const [path, to] = [section.from!, section.to!]
  yield* refuseUsed(plan, patch, [path, to])
  yield* refuseLink(call, path, "moves")
  const { content, version } = yield* read(call, path)
  if (yield* call.filesystem.exists(to)) return yield* Effect.fail(refuseExisting(to, patch, "the new name"))
  const { bytes, ...counts } = yield* patchFile(call, path, content, patch)
  const change = { path: to, before: null, after: bytes, from: { path, version } }
  return { action: "moved", path, to, ...counts, setsMode: patch.setsMode, change }
})

const patchAgain = Effect.fnUntraced(function* (call: Call, before: FileOutcome, { patch, to }: Section) {
  const { addedLines, bytes, deviations, removedLines } = yield* patchFile(call, to!, before.change.after!, patch)
  return {
    ...before,
    addedLines: before.addedLines + addedLines,
    removedLines: before.removedLines + removedLines,
    deviations: [...before.deviations, ...deviations],
    setsMode: before.setsMode || patch.setsMode,
    change: { ...before.change, after: bytes }
  }
})

const update: Planner = Effect.fnUntraced(function* (call, plan, section) {
  const { patch } = section
  const path = section.to!
  const before = plan.outcomes.get(path)
  if (before?.change.after != null) return yield* patchAgain(call, before, section)
  if (plan.usedPaths.has(path)) return yield* Effect.fail(refuseRepeated(path, patch))
  const file = yield* patch.mayBeNew ? readIfExists(call, path) : read(call, path)
  const { bytes, ...counts } = yield* patchFile(call, path, file?.content ?? empty, patch)
  const change = { path, before: file?.version ?? null, after: bytes }
  return { action: file === undefined ? "added" : "updated", path, ...counts, setsMode: patch.setsMode, change }
})

const plannerOf = ({ from, to }: Section) =>
  from === undefined ? add : to === undefined ? remove : from === to ? update : move

const planPatch = Effect.fnUntraced(function* (call: Call, sections: ReadonlyArray<Section>) {
  const plan: Plan = { outcomes: new Map(), usedPaths: new Set() }
  for (const section of sections) {
    const outcome = yield* plannerOf(section)(call, plan, section)
    plan.outcomes.set(outcome.to ?? outcome.path, outcome)
    if (outcome.action !== "updated")
      for (const name of [outcome.path, outcome.to]) if (name !== undefined) plan.usedPaths.add(name)
  }
  return [...plan.outcomes.values()]
})

/**
 * Returns the largest size of a patch, in UTF-16 units. Parsing a patch blocks the event loop. Settings that allow larger
 * writes also allow larger patches.
 */
const maxPatchLength = ({ settings }: Call): number => Math.max(250_000, 5 * settings.limits.maxFileSize)

const refuseTooLong = (length: number, allowed: number) =>
  refused(
    `The patch has ${whole(length)} characters, but a patch may have at most ${whole(allowed)}.`,
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
      ? "indentation, so it was indented like the lines there"
      : "blanks around lines, so check the indentation of the lines that it added"

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
  return `${action} ${name} (+${addedLines} -${removedLines})${setsMode ? "; its permissions were not changed" : ""}${describeDeviations(outcome)}`
}

export const applyPatch = define({
  name: "apply_patch",
  description:
    "Apply a patch of several files, all or none: *** Begin Patch … *** End Patch, or a unified diff. Context lines must occur only once.",
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
    // If another writer changes a file before the commit, compute the changes again.
    const attempt = Effect.gen(function* () {
      const outcomes = yield* planPatch(call, sections)
      const changes = outcomes.map(({ change }) => change)
      return { outcomes, changed: yield* applyChanges(call.filesystem, changes, { operation: call.tool }) }
    })
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
