import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Eager from "../../engine/eager.ts"
import { list } from "../../engine/list.ts"
import { statAt } from "../../engine/read.ts"
import { resolve, resolveLink } from "../../engine/resolve.ts"
import * as Walk from "../../engine/walk.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Algebra } from "../Filesystem.ts"
import { type Caller, isFault, notADirectory, notFound, readActions, errorTags, unsupported } from "./call.ts"

const withPath = (stat: FileStat, path: FsPath.FsPath): FileStat => (stat.path === path ? stat : { ...stat, path })

const resolveDirectory = (
  self: Caller,
  path: FsPath.FsPath
): Effect.Effect<{ path: FsPath.FsPath; at: FsPath.FsPath }, Fault> =>
  Effect.flatMap(resolve(self.port, path), ({ path: at, stat }) =>
    stat === undefined
      ? Effect.fail(notFound)
      : stat.kind === "directory"
        ? Effect.succeed({ path, at })
        : Effect.fail(notADirectory)
  )

export const entryOperations = (self: Caller): Pick<Algebra, "exists" | "stat" | "list" | "walk" | "watch"> => {
  const { call, parse, port, run, callStream: streaming } = self
  const reportsSymlinks = port.rules?.symlinks === "report"

  const statLink = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(resolveLink(port, path), (found): Effect.Effect<FileStat, Fault> => {
      if (found.stat === undefined) return Effect.fail(notFound)
      if (found.stat.kind !== "symlink") return Effect.succeed(withPath(found.stat, path))
      return reportsSymlinks
        ? Effect.succeed({ ...found.stat, path, isSymlink: true })
        : Effect.flatMap(resolve(port, path), ({ stat }) =>
            stat === undefined ? Effect.fail(notFound) : Effect.succeed({ ...stat, path, isSymlink: true })
          )
    })
  const stat = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault> =>
    Eager.flatMap(statAt(port, path), (stat) =>
      stat === undefined && port.links === undefined
        ? Effect.fail(notFound)
        : stat === undefined || stat.kind === "symlink"
          ? statLink(path)
          : Effect.succeed(withPath(stat, path))
    )

  return {
    exists: (input) =>
      run("exists", input, errorTags.exists, (limits) => {
        const path = parse(input, limits)
        return typeof path !== "string"
          ? Effect.succeed(false)
          : Effect.matchEffect(stat(path), {
              onSuccess: () => Effect.succeed(true),
              onFailure: (fault) => (errorTags.exists.has(fault._tag) ? Effect.fail(fault) : Effect.succeed(false))
            })
      }),
    stat: (input) => call("stat", input, errorTags.stat, readActions, stat),
    list: (input = ".") =>
      call("list", input, errorTags.list, readActions, (path, limits) => list(port, path, limits.maxListEntries)),
    walk: (input = ".", options) =>
      streaming("walk", input, errorTags.list, (path, limits) => {
        const plan = Walk.plan(options ?? {}, { limits, caseSensitive: port.info.caseSensitive })
        return isFault(plan)
          ? Effect.fail(plan)
          : Effect.map(resolveDirectory(self, path), (base) => Walk.walk(port, base, plan))
      }),
    watch: (input = ".") =>
      streaming("watch", input, errorTags.watch, (path) => {
        const ability = port.watch
        if (ability === undefined) return Effect.fail(unsupported("watching"))
        return Effect.map(resolveDirectory(self, path), ({ at }) => {
          const events = ability(at)
          return at === path
            ? events
            : Stream.map(events, (event) => ({ ...event, path: FsPath.below(path, FsPath.relative(at, event.path)) }))
        })
      })
  }
}
