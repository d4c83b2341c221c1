/**
 * Finds the programs that this library starts, such as git and podman.
 *
 * A PATH entry is used only if users of an open filesystem cannot control it. A relative or empty entry depends on the
 * working directory. An entry that leads into an open root, directly or through a symlink, may contain untrusted
 * programs.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { delimiter, Fs, isAbsolute, join } from "./node.ts"
import * as OpenRoots from "./openRoots.ts"

export interface Program {
  readonly program: string
  readonly path: string
}

const defaultPath = "/usr/local/bin:/usr/bin:/bin"

export const configuredPath: Effect.Effect<string> = Effect.orElseSucceed(Config.String("PATH"), () => defaultPath)

const isProgram = (path: string): boolean => {
  try {
    Fs.accessSync(path, Fs.constants.X_OK)
    return Fs.statSync(path).isFile()
  } catch {
    return false
  }
}

/**
 * Finds a program by name in a PATH, or by its absolute path. Ignores programs in the roots of open filesystems and in
 * the absolute directories of `avoid`.
 */
export const findProgram = (name: string, path: string, avoid: ReadonlyArray<string>): Program | undefined => {
  const avoidedDirectories = [
    ...avoid.map((directory) => OpenRoots.resolvePath(directory) ?? directory),
    ...OpenRoots.listOpen()
  ]
  const entries = path.split(delimiter).filter((entry) => isAbsolute(entry) && !OpenRoots.leadsInto(entry, avoidedDirectories))
  const isSuitable = (file: string): boolean => isProgram(file) && !OpenRoots.leadsInto(file, avoidedDirectories)
  if (isAbsolute(name)) return isSuitable(name) ? { program: name, path: entries.join(delimiter) } : undefined
  const names = process.platform === "win32" ? [`${name}.exe`] : [name]
  const program = entries.flatMap((entry) => names.map((file) => join(entry, file))).find(isSuitable)
  return program === undefined ? undefined : { program, path: entries.join(delimiter) }
}
