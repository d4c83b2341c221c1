import * as Effect from "effect/Effect"
import * as Glob from "../../engine/glob.ts"
import * as Grep from "../../engine/grep.ts"
import { nearestPaths } from "../../engine/nearest.ts"
import { resolve } from "../../engine/resolve.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import type { Algebra, SearchOptions } from "../Filesystem.ts"
import { type Caller, isFault, notADirectory, notFound, readActions, errorTags } from "./call.ts"

interface Base {
  /** The path as the caller gave it. */
  readonly path: FsPath
  /** The path with its symlinks resolved. */
  readonly at: FsPath
  readonly kind: Kind
}

const pathOf = (options: SearchOptions | undefined): string => (options?.path === undefined ? "." : options.path)

const directoryKinds: ReadonlyArray<Kind> = ["directory"]
const grepBaseKinds: ReadonlyArray<Kind> = ["directory", "file"]

export const searchOperations = (self: Caller): Pick<Algebra, "glob" | "globStream" | "grep" | "grepStream"> => {
  const { call, port, callStream: streaming } = self
  const context = (limits: LimitsShape) => ({ limits, caseSensitive: port.info.caseSensitive })

  /** Fails for a missing base, and suggests similar paths if the backend can find them. */
  const failMissingBase = (path: FsPath, kinds: ReadonlyArray<Kind>): Effect.Effect<never, Fault> =>
    Effect.flatMap(
      Effect.orElseSucceed(nearestPaths(port, path, kinds), () => []),
      (nearest) => Effect.fail(nearest.length === 0 ? notFound : { ...notFound, nearest })
    )

  const search = <Plan extends object, A>(
    path: FsPath,
    plan: Plan | Fault,
    kinds: ReadonlyArray<Kind>,
    run: (base: Base, plan: Plan) => Effect.Effect<A, Fault>
  ): Effect.Effect<A, Fault> =>
    isFault(plan)
      ? Effect.fail(plan)
      : Effect.flatMap(resolve(port, path), ({ path: at, stat }) =>
          stat === undefined ? failMissingBase(path, kinds) : run({ path, at, kind: stat.kind }, plan)
        )
  const requireDirectory =
    <Plan, A>(run: (base: Base, plan: Plan) => Effect.Effect<A, Fault>) =>
    (base: Base, plan: Plan): Effect.Effect<A, Fault> =>
      base.kind === "directory" ? run(base, plan) : Effect.fail(notADirectory)

  return {
    glob: (pattern, options) =>
      call("glob", pathOf(options), errorTags.glob, readActions, (path, limits) =>
        search(
          path,
          Glob.plan(pattern, options ?? {}, context(limits)),
          directoryKinds,
          requireDirectory((base, plan) => Glob.collect(port, base, plan))
        )
      ),
    globStream: (pattern, options) =>
      streaming("globStream", pathOf(options), errorTags.glob, (path, limits) =>
        search(
          path,
          Glob.plan(pattern, options ?? {}, context(limits)),
          directoryKinds,
          requireDirectory((base, plan) => Effect.succeed(Glob.stream(port, base, plan)))
        )
      ),
    grep: (pattern, options) =>
      call("grep", pathOf(options), errorTags.grep, readActions, (path, limits) =>
        search(path, Grep.plan(pattern, options ?? {}, context(limits)), grepBaseKinds, (base, plan) =>
          Grep.collect(port, base, plan)
        )
      ),
    grepStream: (pattern, options) =>
      streaming("grepStream", pathOf(options), errorTags.grep, (path, limits) =>
        search(path, Grep.plan(pattern, options ?? {}, context(limits)), grepBaseKinds, (base, plan) =>
          Effect.succeed(Grep.stream(port, base, plan))
        )
      )
  }
}
