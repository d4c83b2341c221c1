import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { FsPath } from "../../model/FsPath.ts"
import { type Removed, removeDirectory } from "../changes/removeDirectory.ts"
import { define } from "../definition.ts"
import { plural } from "../text/words.ts"

const describeRemoval = (path: FsPath, { deleted, directories, files }: Removed): string => {
  if (deleted === 0) return `nothing removed: there is no ${path}`
  if (directories === 0) return `removed ${path}`
  if (files === 0 && directories === 1) return `removed ${path}, an empty directory`
  return `removed ${path} with everything in it: ${plural(directories, "directory", "directories")}, ${plural(files, "file")}`
}

export const rm = define({
  name: "rm",
  description: "Remove a file, or a directory with everything in it. Only a snapshot brings it back.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "File or directory, relative to the root" }),
    allow_missing: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "No error if the path does not exist"
      })
    )
  }),
  value: Schema.Struct({ deleted: Schema.Int, directories: Schema.Int }),
  does: "changes",
  idempotent: false,
  examples: [{ path: "build" }, { path: "tmp/out.txt", allow_missing: true }],
  touches: ({ path }, call) => Effect.map(call.path(path), (path) => [{ access: "delete", path }]),
  handle: Effect.fnUntraced(function* ({ allow_missing = false, path: raw }, call) {
    const path = yield* call.path(raw)
    const removed = yield* removeDirectory(call.filesystem, path, allow_missing ? "ignore" : "fail")
    call.memory.forget(path)
    const { deleted, directories } = removed
    return { message: describeRemoval(path, removed), value: { deleted, directories } }
  })
})
