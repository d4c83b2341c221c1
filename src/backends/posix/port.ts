import { rootWriteFault } from "../faults.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import type { Backend, Rules } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { fromOptions, isReadOnly } from "../../port/Rules.ts"
import { makeRelativeTargets } from "../../port/absoluteLinks.ts"
import type { DirectoryHistory } from "../../port/history.ts"
import { searchProcesses } from "../../runtime/searchProcesses.ts"
import type { WorkerPool } from "../../runtime/workerPool.ts"
import * as Locks from "../../runtime/locks.ts"
import { Fs } from "../../runtime/node.ts"
import type { PosixHostOptions } from "../hostRoot.ts"
import * as Attributes from "./changes.ts"
import { removeTree } from "./changes.ts"
import * as Claims from "./claims.ts"
import * as Stamps from "./entries.ts"
import { list } from "./entries.ts"
import { attempt } from "./errors.ts"
import { explore } from "./explorer.ts"
import type { Confined } from "./place.ts"
import * as File from "./read.ts"
import { watch } from "./watch.ts"
import * as Append from "./write.ts"
import { flushName, makeMany, replaceFile } from "./write.ts"

const isRealPathOf = (given: string, real: string): boolean => {
  try {
    return Fs.realpathSync.native(given) === real
  } catch {
    return false
  }
}

/**
 * Returns the absolute paths that mean the root in symlink targets: its real path, and the path in the options as long
 * as that path leads to the root.
 */
const namesOf = ({ rootPath }: Confined, given: string): ReadonlyArray<string> => {
  const real = rootPath()
  if (typeof real !== "string") return []
  return given !== real && isRealPathOf(given, real) ? [real, given] : [real]
}

export const backend = (confined: Confined, options: PosixHostOptions, workers?: WorkerPool, name = "PosixHost"): Backend => {
  const { durability = "none", hardlinks = "allow", preservePermissions, symlinks } = options
  const rules: Rules = { ...fromOptions(options), symlinks, preservePermissions }
  const mayRemoveLeftovers = rules.permits?.("delete") !== false

  const withFlush = <A>(change: Effect.Effect<A, Fault>, ...paths: ReadonlyArray<FsPath>): Effect.Effect<A, Fault> =>
    durability === "full"
      ? Effect.tap(change, () => Effect.forEach(paths, (path) => flushName(confined, path, durability), { discard: true }))
      : change
  const changeNames = (run: () => Fault | undefined, ...paths: ReadonlyArray<FsPath>): Effect.Effect<void, Fault> =>
    withFlush(attempt(run), ...paths)

  const exploring = {
    workers,
    processes: workers && searchProcesses,
    sweeps: mayRemoveLeftovers,
    refuseHardlinks: hardlinks === "reject"
  }
  const exploreStamps: DirectoryHistory["explore"] = (pathOf) =>
    explore(confined, { ...exploring, stamps: true })(pathOf, false)

  return {
    info: {
      name,
      root: options.root,
      caseSensitive: confined.caseSensitive,
      readOnly: isReadOnly(rules),
      confinement: confined.level
    },
    stat: (path) => attempt(() => File.stat(confined, path)),
    list: (path) => list(confined, path, mayRemoveLeftovers),
    open: (path) => File.open(confined, path, hardlinks),
    write: (path, content, mode, how) =>
      path === root
        ? Effect.fail(rootWriteFault(mode))
        : mode === "append"
          ? Append.append(confined, path, content, hardlinks, durability, how?.commit)
          : replaceFile(confined, path, content, mode, durability, how?.commit),
    makeDirectory: (path) => changeNames(() => Attributes.makeDirectory(confined, path), path),
    remove: (path) => changeNames(() => Attributes.remove(confined, path), path),
    rename: (from, to, { replace }) => changeNames(() => Attributes.rename(confined, from, to, replace), from, to),
    links: {
      read: (path) => attempt(() => Attributes.readLink(confined, path)),
      follow: (path) => attempt(() => Attributes.readLink(confined, path, true)),
      relative: makeRelativeTargets(() => namesOf(confined, options.root)),
      make: (path, target) => changeNames(() => Attributes.makeLink(confined, path, target), path)
    },
    attributes: { set: (path, values) => attempt(() => Attributes.setAttributes(confined, path, values, hardlinks)) },
    watch: (path) => watch(confined, path),
    rules,
    history: Stamps.history(
      confined,
      options.root,
      confined.level === "race-free"
        ? {
            explore: exploreStamps,
            lend: Stamps.lend(confined, {
              refusesHardlinks: exploring.refuseHardlinks,
              acceptsFiles: durability === "none" && confined.owner === undefined
            })
          }
        : undefined
    ),
    locks: { ...Locks.make({ caseSensitive: confined.caseSensitive }), claim: Claims.make(confined) },
    perform: Request.handlers({
      Read: ({ maxBytes, path }) => Effect.map(File.readSmall(confined, path, maxBytes, hardlinks), Option.fromUndefinedOr),
      ReadMany: ({ maxBytes, paths }) => Effect.asSome(File.readMany(confined, paths, maxBytes, hardlinks)),
      RemoveTree: ({ path }) => Effect.asSome(withFlush(removeTree(confined, path), path)),
      // Files that must be flushed are written one by one.
      ...(durability === "none" && { MakeMany: ({ entries }) => Effect.asSome(makeMany(confined, entries)) })
    }),
    ...(confined.level === "race-free" && { explore: explore(confined, exploring) })
  }
}
