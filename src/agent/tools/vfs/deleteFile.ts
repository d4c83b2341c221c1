import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { removeDirectory } from "../../changes/removeDirectory.ts"
import { define } from "../../definition.ts"
import { plural } from "../../text/words.ts"

export const deleteFile = define({
  name: "delete_file",
  description: "Delete a file, or a directory with everything in it.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file or directory, relative to the root." }),
    allow_missing: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether to accept that the path does not exist. Default: false." })
    )
  }),
  value: Schema.Struct({
    path: Schema.String,
    deleted: Schema.Int
  }),
  does: "changes",
  idempotent: true,
  examples: [{ path: "scratch" }, { path: "notes/old.md", allow_missing: true }],
  touches: ({ path }, call) => Effect.map(call.path(path), (at) => [{ access: "delete", path: at }]),
  handle: Effect.fnUntraced(function* ({ allow_missing: missing = false, path }, call) {
    const at = yield* call.path(path)
    const { deleted, directories, files } = yield* removeDirectory(call.filesystem, at, missing ? "ignore" : "fail")
    call.memory.forget(at)
    const folders = directories === 0 ? "" : ` and ${plural(directories, "directory", "directories")}`
    return {
      message:
        deleted + directories === 0
          ? `${at} did not exist: nothing deleted`
          : `Deleted ${at}: ${plural(files, "file")}${folders}`,
      value: { path: at, deleted }
    }
  })
})
