import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { define } from "../definition.ts"

export const mkdir = define({
  name: "mkdir",
  description: "Make a directory and the missing ones above it. An existing one is no error.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "Directory, relative to the root" })
  }),
  value: Schema.Struct({ path: Schema.String, created: Schema.Boolean }),
  does: "adds",
  idempotent: true,
  examples: [{ path: "src/components" }],
  touches: ({ path }, call) => Effect.map(call.path(path), (path) => [{ access: "write", path }]),
  handle: Effect.fnUntraced(function* ({ path: raw }, { filesystem, path: parse }) {
    const path = yield* parse(raw)
    const created = yield* filesystem.mkdir(path, { existOk: false }).pipe(
      Effect.as(true),
      // If the entry is no directory, this fails.
      Effect.catchTag("AlreadyExists", () => Effect.as(filesystem.mkdir(path), false))
    )
    return {
      message: created ? `made the directory ${path}` : `the directory ${path} exists already`,
      value: { path, created }
    }
  })
})
