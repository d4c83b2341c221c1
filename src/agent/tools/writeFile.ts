/** Writes a whole file. The default mode only creates new files, so that a wrong path does not overwrite a file. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { WriteMode } from "../../model/Entry.ts"
import type { InvalidArgument } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { define, optional, type Refused, refused, touching } from "../definition.ts"
import { formatCount as plural, formatSize as size } from "../../model/words.ts"
import { checkFile, withToolNames } from "../toolPath.ts"

const Mode = Schema.Literals(["create", "overwrite", "replace", "append", "append_existing"])

const modes: Record<typeof Mode.Type, WriteMode> = {
  create: "create",
  overwrite: "overwrite",
  replace: "replace",
  append: "append",
  append_existing: "appendExisting"
}

const refuseExisting = (path: FsPath): Refused =>
  refused(
    `${JSON.stringify(path)} exists already. It was not changed.`,
    'Change parts of the file with edit_file, or call write_file with mode "overwrite" to replace all of it.'
  )

const explainArgument = (error: InvalidArgument): Refused | InvalidArgument =>
  error.argument === "ifMatch"
    ? refused(
        'With mode "create", which is the default, the file is new and has no version to compare with if_match.',
        'Give mode "overwrite" to replace the file that has this version, or omit if_match.'
      )
    : withToolNames(error, "write_file")

const linesIn = (content: string): number => {
  let lines = content === "" || content.endsWith("\n") ? 0 : 1
  for (let at = content.indexOf("\n"); at !== -1; at = content.indexOf("\n", at + 1)) lines++
  return lines
}

const describeWrite = (mode: typeof Mode.Type, path: FsPath, content: string, bytes: number, version: string): string => {
  const amount = `${size(bytes)}, ${plural(linesIn(content), "line")}`
  const what =
    mode === "create"
      ? `created ${path}: ${amount}`
      : mode === "append" || mode === "append_existing"
        ? `appended to ${path}: ${amount}`
        : `wrote ${path}: ${amount}`
  return `${what}, version ${version}`
}

export const writeFile = define({
  name: "write_file",
  description:
    "Create a text file and its directories. An existing file is refused unless mode is overwrite or append; to change a part of a file use edit_file.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "File, relative to the root" }),
    content: Schema.String.annotate({
      description: "The whole text (append: the text to add), at most 48,000 characters"
    }),
    mode: optional(
      Mode,
      "create (default) refuses an existing file, overwrite replaces it, append adds to it; replace and append_existing refuse a missing file"
    ),
    if_match: optional(Schema.String, "Write only if the file still has this version, which stat shows")
  }),
  value: Schema.Struct({ path: Schema.String, bytes_written: Schema.Int, mode: Mode, version: Schema.String }),
  does: "changes",
  idempotent: false,
  examples: [
    { path: "docs/notes.md", content: "# Notes\n" },
    { path: "log.txt", content: "done\n", mode: "append" }
  ],
  touches: touching("write"),
  handle: Effect.fnUntraced(function* ({ content, if_match, mode = "create", path: raw }, call) {
    const path = yield* call.path(raw)
    yield* checkFile(call.tool, raw)
    const written = yield* call.filesystem
      .write(path, content, { mode: modes[mode], ...(if_match !== undefined && { ifMatch: if_match }), version: true })
      .pipe(
        Effect.catchTag("AlreadyExists", () => Effect.fail(refuseExisting(path))),
        Effect.catchTag("InvalidArgument", (error) => Effect.fail(explainArgument(error)))
      )
    const version = written.version!
    const isWhole = mode !== "append" && mode !== "append_existing"
    call.memory.saw(path, version, isWhole ? content : undefined)
    const bytes = written.bytesWritten
    return { message: describeWrite(mode, path, content, bytes, version), value: { path, bytes_written: bytes, mode, version } }
  })
})
