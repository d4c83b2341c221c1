/** Temporary directories of a killed process are removed by the next process. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { realpathSync, tmpdir } from "../../runtime/node.ts"
import { IoError } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import type { Purpose } from "../../workspace/temporary.ts"

const failure = ({ code }: { readonly [detail: string]: unknown }): IoError =>
  new IoError({
    operation: "Section",
    path: root,
    detail: "no temporary directory can be made",
    ...(typeof code === "string" && { code })
  })

/** Makes a directory for this user alone. Returns its absolute path without links. */
export const makeTemporaryDirectory = (purpose: Purpose): Effect.Effect<string, IoError, Scope.Scope> =>
  Effect.gen(function* () {
    const { make, removeLeftovers: sweep } = yield* Effect.promise(() => import("../../workspace/temporary.ts"))
    const parent = yield* Effect.try({
      try: () => realpathSync(tmpdir()),
      catch: (error) => failure({ code: (error as NodeJS.ErrnoException).code })
    })
    const directory = yield* Effect.mapError(make(parent, purpose), failure)
    yield* Effect.forkScoped(sweep(parent))
    return directory
  })
