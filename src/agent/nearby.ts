import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { maxNearest, similarNames } from "../engine/nearest.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as FsPath from "../model/FsPath.ts"
import { runInSlices } from "../runtime/steps.ts"

const findSimilarNames = (fs: Algebra, path: FsPath.FsPath) => {
  const directory = FsPath.parent(path)
  return Effect.flatMap(fs.list(directory), (entries) =>
    Effect.map(
      runInSlices(() => similarNames(FsPath.name(path), entries)),
      (names) => names.map((name) => FsPath.join(directory, name))
    )
  )
}

/** Searches the tree for the same name, for at most one second. */
const findSameName = (fs: Algebra, path: FsPath.FsPath) => {
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

/**
 * Finds up to three paths: suggestions of the failure itself, then the same name in other directories, then similar names in
 * the same directory.
 */
export const suggestPaths = (
  fs: Algebra,
  failure: { readonly path: string; readonly nearest?: ReadonlyArray<string> | undefined }
): Effect.Effect<ReadonlyArray<string>> => {
  const { nearest = [] } = failure
  const path = FsPath.parse(failure.path)
  if (typeof path !== "string" || path === FsPath.root) return Effect.succeed([])
  const none = () => Effect.succeed<ReadonlyArray<FsPath.FsPath>>([])
  return Effect.flatMap(Effect.catch(findSameName(fs, path), none), (sameNames) =>
    Effect.map(sameNames.length < maxNearest ? Effect.catch(findSimilarNames(fs, path), none) : none(), (similarNames) =>
      [...new Set([...nearest, ...sameNames, ...similarNames])].slice(0, maxNearest)
    )
  )
}

export const deepestExistingDirectory = (fs: Algebra, input: string): Effect.Effect<FsPath.FsPath> => {
  const path = FsPath.parse(input)
  if (typeof path !== "string") return Effect.succeed(FsPath.root)
  const parent = FsPath.parent(path)
  return parent === FsPath.root
    ? Effect.succeed(parent)
    : Effect.matchEffect(fs.stat(parent), {
        onFailure: () => deepestExistingDirectory(fs, parent),
        onSuccess: ({ isDirectory }) => (isDirectory ? Effect.succeed(parent) : deepestExistingDirectory(fs, parent))
      })
}
