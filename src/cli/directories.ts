import { realpathSync } from "node:fs"
import { basename } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { refused } from "../agent/definition.ts"
import { layer as policy } from "../agent/policy/core.ts"
import { type Algebra, Filesystem, make } from "../filesystem/Filesystem.ts"
import type { FsError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Directory } from "./settings.ts"

/** Resolves the links of a path, so that one directory has one name; its snapshots are found by that name. */
export const toRealPath = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const nameOf = (path: string): string => {
  const name = basename(path)
  return name !== "" && FsPath.parse(name) === name ? name : "directory"
}

/** Names each directory by the last part of its path. Names that differ only in case get a number: `app`, `app-2`. */
export const nameDirectories = (paths: ReadonlyArray<string>): ReadonlyArray<Directory> => {
  const taken = new Set<string>()
  return paths.map((path) => {
    const name = nameOf(path)
    let unique = name
    for (let n = 2; taken.has(FsPath.fold(unique)); n++) unique = `${name}-${n}`
    taken.add(FsPath.fold(unique))
    return { name: unique, path }
  })
}

export const mountDirectories = <E, R>(
  directories: ReadonlyArray<Directory>,
  open: (path: string) => Layer.Layer<Filesystem, E, R>
): Layer.Layer<Filesystem, E | FsError, R> =>
  Layer.effect(
    Filesystem,
    Effect.gen(function* () {
      const { mount } = yield* Effect.promise(() => import("../filesystem/Mounts.ts"))
      const memory = yield* Effect.promise(() => import("../backends/InMemory.ts"))
      const scope = yield* Effect.scope
      let fs: Algebra = make(yield* memory.make({ tree: Object.fromEntries(directories.map(({ name }) => [name, {}])) }))
      for (const { name, path } of directories) {
        const opened = yield* Layer.buildWithScope(open(path), scope)
        fs = yield* mount(name, Context.get(opened, Filesystem))(fs)
      }
      return fs
    })
  )

const isOutsideDirectories = (path: FsPath.FsPath, names: ReadonlyArray<string>, caseSensitive: boolean): boolean => {
  const [first] = FsPath.segments(path)
  const toComparableName = (name: string): string => (caseSensitive ? name : FsPath.fold(name))
  return first !== undefined && !names.some((name) => toComparableName(name) === toComparableName(first))
}

/** Refuses changes outside the directories. Such files would exist only in memory and end with the server. */
export const refuseOutsideDirectories = (directories: ReadonlyArray<Directory>): Layer.Layer<never> => {
  const names = directories.map(({ name }) => name)
  return policy({
    name: "directories",
    before: ({ filesystem, tool, touches }) => {
      const { caseSensitive } = filesystem.port.info
      const outsideAccess = touches.find(
        ({ access, path }) => access !== "read" && isOutsideDirectories(path, names, caseSensitive)
      )
      return outsideAccess === undefined
        ? Effect.void
        : Effect.fail(
            refused(
              `${tool} was refused: ${JSON.stringify(outsideAccess.path)} is in none of the served directories.`,
              `Begin the path with one of them: ${names.join(", ")}.`
            )
          )
    }
  })
}
