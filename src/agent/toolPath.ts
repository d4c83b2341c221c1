/** Paths as models write them: with blanks around them, a leading slash, or the directory under which a prompt showed them the files. */
import * as Effect from "effect/Effect"
import { InvalidArgument, InvalidPath, type PathTooLong, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Call } from "./definition.ts"
import type { ToolSettingsShape } from "./ToolSettings.ts"

export type MountPoint = ToolSettingsShape["mountPoint"]

/** Each directory that paths may begin with, and the path that it stands for, the longest first. */
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

/** What comes after the directory that stands for the root, or for a path below it, where the text begins with it. */
export const withoutMount = (text: string, mountPoint: MountPoint): string => {
  const mount = mountsOf(mountPoint).find(([directory]) => text === directory || text.startsWith(`${directory}/`))
  return mount === undefined ? text : `${mount[1]}${text.slice(mount[0].length)}`
}

/** Fails for a path that names a directory by its last slash, where a file is to be. */
export const checkFile = (tool: string, input: string): Effect.Effect<void, InvalidPath> =>
  /[^/\s]\s*\/+\s*$/.test(input)
    ? Effect.fail(new InvalidPath({ operation: tool, path: input, detail: 'it ends in "/", which names a directory' }))
    : Effect.void

export const make =
  (tool: string, { limits, mountPoint }: ToolSettingsShape, policy: FsPath.PathPolicy | undefined): Call["path"] =>
  (input, options = {}) => {
    const bare = withoutMount(input.trim(), mountPoint).replace(/^\/+/, "")
    if (input.trim() === "" && options.blank !== "root") {
      return Effect.fail(
        new InvalidArgument({ operation: tool, path: input, argument: options.argument ?? "path", detail: "must not be blank" })
      )
    }
    const path = bare === "" ? FsPath.root : FsPath.parse(bare, policy)
    const fault = typeof path === "string" ? FsPath.checkLimits(path, limits) : path
    return typeof path === "string" && fault === undefined
      ? Effect.succeed(path)
      : Effect.fail(promote(fault!, tool, input) as InvalidPath | PathTooLong)
  }
