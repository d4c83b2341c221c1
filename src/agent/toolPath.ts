/**
 * Parses paths in the form that models write: with blanks around them, a leading slash, or the mount point that a prompt
 * mentioned. Also finds existing paths to suggest instead of a missing path.
 */
import * as Effect from "effect/Effect"
import { InvalidArgument, InvalidPath, type PathTooLong, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { ToolSettingsShape } from "./ToolSettings.ts"
import type { Call } from "./definition.ts"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { maxNearest, similarNames } from "../engine/nearest.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import { runInSlices } from "../runtime/steps.ts"

const wireNames: ReadonlyMap<string, string> = new Map([
  ["oldText", "old_string"],
  ["newText", "new_string"],
  ["ifMatch", "if_match"],
  ["maxMatches", "max_matches"],
  ["changes", "edits"]
])

export const toolArgumentName = (argument: string): string =>
  argument
    .split(".")
    .map((part) => wireNames.get(part) ?? part)
    .join(".")

/** Removes the advice for programmers from an error's detail, because tools give advice for models. */
export const withoutCoreAdvice = (detail: string): string =>
  detail.replace("; give more of the surrounding text so that it occurs only once, or ask for the first or for all of them", "")

export const withToolNames = (error: InvalidArgument, tool: string): InvalidArgument =>
  new InvalidArgument({
    operation: tool,
    path: error.path,
    argument: toolArgumentName(error.argument),
    detail: withoutCoreAdvice(error.detail)
  })

export type MountPoint = ToolSettingsShape["mountPoint"]

const mountsOf = (mountPoint: MountPoint): ReadonlyArray<readonly [directory: string, path: string]> => {
  if (mountPoint === undefined) return []
  const roots = typeof mountPoint === "string" ? [mountPoint] : mountPoint
  const mounts = Array.isArray(roots)
    ? (roots as ReadonlyArray<string>).map((directory) => [directory, ""] as const)
    : Object.entries(roots).map(([directory, path]) => [directory, `/${path}`] as const)
  return mounts
    .map(([directory, path]) => [directory.replace(/\/+$/, ""), path] as const)
    .filter(([directory]) => directory !== "")
    .sort(([a], [b]) => b.length - a.length)
}

export const withoutMount = (text: string, mountPoint: MountPoint): string => {
  const mount = mountsOf(mountPoint).find(([directory]) => text === directory || text.startsWith(`${directory}/`))
  return mount === undefined ? text : `${mount[1]}${text.slice(mount[0].length)}`
}

export const checkFile = (tool: string, input: string): Effect.Effect<void, InvalidPath> =>
  /[^/\s]\s*\/+\s*$/.test(input)
    ? Effect.fail(new InvalidPath({ operation: tool, path: input, detail: 'it ends in "/", which names a directory' }))
    : Effect.void

export const make =
  (tool: string, { limits, mountPoint }: ToolSettingsShape, policy: FsPath.PathPolicy | undefined): Call["path"] =>
  (input, options = {}) => {
    const relativePath = withoutMount(input.trim(), mountPoint).replace(/^\/+/, "")
    if (input.trim() === "" && options.blank !== "root") {
      return Effect.fail(
        new InvalidArgument({
          operation: tool,
          path: input,
          argument: options.argument ?? "path",
          detail: "it must not be blank"
        })
      )
    }
    const path = relativePath === "" ? FsPath.root : FsPath.parse(relativePath, policy)
    const fault = typeof path === "string" ? FsPath.checkLimits(path, limits) : path
    return typeof path === "string" && fault === undefined
      ? Effect.succeed(path)
      : Effect.fail(promote(fault!, tool, input) as InvalidPath | PathTooLong)
  }

const findSimilarNames = (fs: Algebra, path: FsPath.FsPath) => {
  const directory = FsPath.parent(path)
  return Effect.flatMap(fs.list(directory), (entries) =>
    Effect.map(
      runInSlices(() => similarNames(FsPath.name(path), entries)),
      (names) => names.map((name) => FsPath.join(directory, name))
    )
  )
}

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
 * Finds up to three similar paths. The suggestions of the error come first, then the same name in other directories, then
 * similar names in the same directory.
 */
export const suggestPaths = (
  fs: Algebra,
  failure: { readonly path: string; readonly nearest?: ReadonlyArray<string> | undefined }
): Effect.Effect<ReadonlyArray<string>> => {
  const { nearest = [] } = failure
  const path = FsPath.parse(failure.path)
  if (typeof path !== "string" || path === FsPath.root) return Effect.succeed([])
  const orNone = Effect.orElseSucceed((): ReadonlyArray<FsPath.FsPath> => [])
  return Effect.gen(function* () {
    const sameNames = yield* orNone(findSameName(fs, path))
    const similarNames = sameNames.length < maxNearest ? yield* orNone(findSimilarNames(fs, path)) : []
    return [...new Set([...nearest, ...sameNames, ...similarNames])].slice(0, maxNearest)
  })
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

/** Returns a path as a message shows it. */
export const displayPath = (path: FsPath.FsPath): string => (path === FsPath.root ? "the root" : path)
