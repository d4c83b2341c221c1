/** glob and grep: a plan made of the arguments, a base with its links resolved, and the engine. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Glob from "../../engine/glob.ts"
import * as Grep from "../../engine/grep.ts"
import { resolve } from "../../engine/resolve.ts"
import type { Kind, Skipped } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import type { Algebra, SearchOptions } from "../Filesystem.ts"
import { type Caller, isFault, notADirectory, reading, tags } from "./call.ts"

interface Base {
  /** As the caller names it. */
  readonly path: FsPath
  /** Where that leads. */
  readonly at: FsPath
  readonly kind: Kind
}

const pathOf = (options: SearchOptions | undefined): string => (options?.path === undefined ? "." : options.path)

const nothing: Skipped = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }

export const searching = (self: Caller): Pick<Algebra, "glob" | "globStream" | "grep" | "grepStream"> => {
  const { call, port, streaming } = self
  const context = (limits: LimitsShape) => ({ limits, caseSensitive: port.info.caseSensitive })

  /** What is missing is searched all the same, and nothing is found. */
  const search = <Plan extends object, A>(
    path: FsPath,
    plan: Plan | Fault,
    run: (base: Base, plan: Plan) => Effect.Effect<A, Fault>,
    empty: A
  ): Effect.Effect<A, Fault> =>
    isFault(plan)
      ? Effect.fail(plan)
      : Effect.flatMap(resolve(port, path), ({ path: at, stat }) =>
          stat === undefined ? Effect.succeed(empty) : run({ path, at, kind: stat.kind }, plan)
        )
  const inDirectory =
    <Plan, A>(run: (base: Base, plan: Plan) => Effect.Effect<A, Fault>) =>
    (base: Base, plan: Plan): Effect.Effect<A, Fault> =>
      base.kind === "directory" ? run(base, plan) : Effect.fail(notADirectory)

  return {
    glob: (pattern, options) =>
      call("glob", pathOf(options), tags.glob, reading, (path, limits) =>
        search(
          path,
          Glob.plan(pattern, options ?? {}, context(limits)),
          inDirectory((base, plan) => Glob.collect(port, base, plan)),
          { matches: [], truncated: false, skipped: nothing }
        )
      ),
    globStream: (pattern, options) =>
      streaming("globStream", pathOf(options), tags.glob, (path, limits) =>
        search(
          path,
          Glob.plan(pattern, options ?? {}, context(limits)),
          inDirectory((base, plan) => Effect.succeed(Glob.stream(port, base, plan))),
          Stream.empty
        )
      ),
    grep: (pattern, options) =>
      call("grep", pathOf(options), tags.grep, reading, (path, limits) =>
        search(path, Grep.plan(pattern, options ?? {}, context(limits)), (base, plan) => Grep.collect(port, base, plan), {
          matches: [],
          filesSearched: 0,
          filesMatched: 0,
          truncated: false,
          skipped: nothing
        })
      ),
    grepStream: (pattern, options) =>
      streaming("grepStream", pathOf(options), tags.grep, (path, limits) =>
        search(
          path,
          Grep.plan(pattern, options ?? {}, context(limits)),
          (base, plan) => Effect.succeed(Grep.stream(port, base, plan)),
          Stream.empty
        )
      )
  }
}
