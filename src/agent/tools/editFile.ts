import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type EditedFile, editFiles } from "../changes/editFiles.ts"
import { planEdits } from "../changes/editPlan.ts"
import { runInSlices } from "../../runtime/steps.ts"
import { define } from "../definition.ts"
import { diffText, excerptDiff, withDiff } from "../text/fit.ts"
import { plural } from "../text/words.ts"

const path = Schema.String.annotate({ description: "File, relative to the root; with edits, of those that name none" })
const oldString = Schema.String.annotate({
  description: "Text as it is in the file, without line numbers, and enough of it to occur once"
})
const newString = Schema.String.annotate({ description: "Text in its place; empty deletes" })
const replaceAll = Schema.Boolean.annotate({ description: "Replace every occurrence" })
const ifMatch = Schema.String.annotate({ description: "Only if the file still has this version, as stat shows it" })

const edits = Schema.Array(
  Schema.Struct({
    path: Schema.optionalKey(Schema.String.annotate({ description: "Another file" })),
    old_string: Schema.String.annotate({ description: "As above" }),
    new_string: Schema.String.annotate({ description: "As above" }),
    replace_all: Schema.optionalKey(Schema.Boolean.annotate({ description: "As above" })),
    if_match: Schema.optionalKey(Schema.String.annotate({ description: "As above" }))
  })
).annotate({
  description: "Instead of old_string and new_string; each is looked for in the text as it was"
})

const countReplacements = (files: ReadonlyArray<EditedFile>): number =>
  files.reduce((sum, { replacements }) => sum + replacements, 0)

const describeEdits = (files: ReadonlyArray<EditedFile>): ReadonlyArray<string> => {
  const each = files.map(
    ({ path, replacements, version }) => `${path}: ${plural(replacements, "replacement")}, version ${version}`
  )
  return files.length === 1
    ? [`edited ${each[0]!}`]
    : [
        `edited ${plural(files.length, "file")}: ${plural(countReplacements(files), "replacement")}`,
        ...each.map((line) => `  ${line}`)
      ]
}

export const editFile = define({
  name: "edit_file",
  description:
    "Replace old_string by new_string in a file, or make several edits, also of several files, all or none. Line endings and encoding stay.",
  parameters: Schema.Struct({
    path: Schema.optionalKey(path),
    old_string: Schema.optionalKey(oldString),
    new_string: Schema.optionalKey(newString),
    replace_all: Schema.optionalKey(replaceAll),
    if_match: Schema.optionalKey(ifMatch),
    edits: Schema.optionalKey(edits)
  }),
  value: Schema.Struct({
    /** The path of the first file; `version` belongs to it too. */
    path: Schema.String,
    replacements: Schema.Int,
    /** The first 48,000 characters of the diff, in whole lines; lines over 2,000 characters are cut. */
    diff: Schema.String,
    version: Schema.String,
    files: Schema.Array(Schema.Struct({ path: Schema.String, replacements: Schema.Int, version: Schema.String }))
  }),
  does: "changes",
  idempotent: false,
  examples: [
    { path: "src/main.ts", old_string: "const port = 80", new_string: "const port = 8080" },
    {
      edits: [
        { path: "a.ts", old_string: "oldName", new_string: "newName", replace_all: true },
        { path: "b.ts", old_string: "import { oldName }", new_string: "import { newName }" }
      ]
    }
  ],
  touches: (params, call) =>
    Effect.map(planEdits(params, call), (files) => files.map(({ path }) => ({ access: "write" as const, path }))),
  handle: Effect.fnUntraced(function* (params, call) {
    const files = yield* editFiles(call, yield* planEdits(params, call))
    const [{ path, version }] = files as [EditedFile]
    const diff = yield* runInSlices(() => excerptDiff(files.map((file) => file.diff).join("")))
    return {
      message: withDiff(describeEdits(files), diff, call.settings),
      value: {
        path,
        replacements: countReplacements(files),
        diff: diffText(diff),
        version,
        files: files.map(({ path, replacements, version }) => ({ path, replacements, version }))
      }
    }
  })
})
