/**
 * A search of the library finds nothing below what is not there. Whoever types a path wants to hear of the slip, so the command asks once
 * more, and only when nothing was found.
 */
import * as Effect from "effect/Effect"
import { Filesystem } from "../filesystem/Filesystem.ts"
import * as FsError from "../model/FsError.ts"
import { nothingFound, Quit } from "./exit.ts"

export const sayNothingFound = Effect.fnUntraced(function* (operation: "glob" | "grep", path: string | undefined) {
  const fs = yield* Filesystem
  if (path !== undefined && !(yield* fs.exists(path))) return yield* new FsError.NotFound({ operation, path })
  return yield* new Quit({ code: nothingFound })
})
