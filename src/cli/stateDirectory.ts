/**
 * Where a user's programs keep what they will want again: as each system has it, and nowhere at all where the environment does not say.
 */
import { posix, win32 } from "node:path"

export interface Machine {
  readonly platform: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly home: string
}

const absolute = (path: string | undefined, { isAbsolute }: typeof posix): string | undefined =>
  path !== undefined && isAbsolute(path) ? path : undefined

/** https://specifications.freedesktop.org/basedir-spec: a relative path in XDG_STATE_HOME is none. */
export const stateDirectory = ({ environment, home, platform }: Machine): string | undefined => {
  if (platform === "win32") return absolute(environment["LOCALAPPDATA"], win32)
  const given = absolute(environment["XDG_STATE_HOME"], posix)
  if (given !== undefined || absolute(home, posix) === undefined) return given
  return posix.join(home, platform === "darwin" ? "Library/Application Support" : ".local/state")
}
