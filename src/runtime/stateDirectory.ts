import type * as NodePath from "node:path"

const paths = (): typeof NodePath => process.getBuiltinModule("node:path")

export interface Machine {
  readonly platform: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly home: string
}

const absoluteOrNone = (path: string | undefined, { isAbsolute }: NodePath.PlatformPath): string | undefined =>
  path !== undefined && isAbsolute(path) ? path : undefined

/**
 * Returns the directory for the state of a user's programs, or `undefined` if the system defines none.
 *
 * A relative path in XDG_STATE_HOME is ignored (https://specifications.freedesktop.org/basedir-spec).
 */
export const stateDirectory = ({ environment, home, platform }: Machine): string | undefined => {
  const { posix, win32 } = paths()
  if (platform === "win32") return absoluteOrNone(environment["LOCALAPPDATA"], win32)
  const configuredDirectory = absoluteOrNone(environment["XDG_STATE_HOME"], posix)
  if (configuredDirectory !== undefined || absoluteOrNone(home, posix) === undefined) return configuredDirectory
  return posix.join(home, platform === "darwin" ? "Library/Application Support" : ".local/state")
}
