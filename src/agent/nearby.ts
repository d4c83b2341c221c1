/**
 * For a path that is not there: up to three that are and look like it, first of the same name elsewhere, then of nearly the same name in
 * the same directory.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { alike, maxNearest } from "../engine/nearestPaths.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as FsPath from "../model/FsPath.ts"
import { inSlices } from "../runtime/steps.ts"

const inSameDirectory = (fs: Algebra, path: FsPath.FsPath) => {
  const directory = FsPath.parent(path)
  return Effect.flatMap(fs.list(directory), (entries) =>
    Effect.map(
      inSlices(() => alike(FsPath.name(path), entries)),
      (names) => names.map((name) => FsPath.join(directory, name))
    )
  )
}

/** Looking through everything is worth a moment, not more. */
const elsewhere = (fs: Algebra, path: FsPath.FsPath) => {
  const name = FsPath.name(path)
  if (/[\\*?[\]{}()!+@|]/.test(name)) return Effect.succeed([])
  return fs.globStream(name, { kinds: ["file", "directory"], gitignore: true }).pipe(
    Stream.take(maxNearest),
    Stream.map((match) => match.path),
    Stream.runCollect,
    Effect.timeoutOption("1 second"),
    Effect.map(Option.getOrElse((): ReadonlyArray<FsPath.FsPath> => []))
  )
}

/** Finds paths that exist and look like the one that a failure did not find; those that the failure names come first. */
export const nearby = (
  fs: Algebra,
  failure: { readonly path: string; readonly nearest?: ReadonlyArray<string> | undefined }
): Effect.Effect<ReadonlyArray<string>> => {
  const { nearest = [] } = failure
  const path = FsPath.parse(failure.path)
  if (typeof path !== "string" || path === FsPath.root) return Effect.succeed([])
  const none = () => Effect.succeed<ReadonlyArray<FsPath.FsPath>>([])
  return Effect.flatMap(Effect.catch(elsewhere(fs, path), none), (far) =>
    Effect.map(far.length < maxNearest ? Effect.catch(inSameDirectory(fs, path), none) : none(), (near) =>
      [...new Set([...nearest, ...far, ...near])].slice(0, maxNearest)
    )
  )
}

/** The directory that is furthest down the path. */
export const existingDirectory = (fs: Algebra, input: string): Effect.Effect<FsPath.FsPath> => {
  const path = FsPath.parse(input)
  if (typeof path !== "string") return Effect.succeed(FsPath.root)
  const parent = FsPath.parent(path)
  return parent === FsPath.root
    ? Effect.succeed(parent)
    : Effect.matchEffect(fs.stat(parent), {
        onFailure: () => existingDirectory(fs, parent),
        onSuccess: ({ isDirectory }) => (isDirectory ? Effect.succeed(parent) : existingDirectory(fs, parent))
      })
}
