/** Reads paths as models write them: with spaces around them, a leading slash, or the mount point that a prompt mentioned. */
import * as Effect from "effect/Effect"
import { InvalidArgument, InvalidPath, type PathTooLong, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { ToolSettingsShape } from "./ToolSettings.ts"
import type { Call } from "./definition.ts"

const wireNames: ReadonlyMap<string, string> = new Map([
  ["oldText", "old_string"],
  ["newText", "new_string"],
  ["ifMatch", "if_match"],
  ["maxMatches", "max_matches"],
  ["changes", "edits"]
])

/** Returns the name that a tool gives to an argument of the filesystem. */
export const toolArgumentName = (argument: string): string =>
  argument
    .split(".")
    .map((part) => wireNames.get(part) ?? part)
    .join(".")

/** Removes the core's advice from a detail, because the tools give their own. */
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

/** Returns the mount points and the path that each stands for, the longest mount point first. */
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
        new InvalidArgument({ operation: tool, path: input, argument: options.argument ?? "path", detail: "must not be blank" })
      )
    }
    const path = relativePath === "" ? FsPath.root : FsPath.parse(relativePath, policy)
    const fault = typeof path === "string" ? FsPath.checkLimits(path, limits) : path
    return typeof path === "string" && fault === undefined
      ? Effect.succeed(path)
      : Effect.fail(promote(fault!, tool, input) as InvalidPath | PathTooLong)
  }
