/**
 * Finds the programs that this library starts, such as git and podman. A directory of the PATH counts only when nobody who works in a
 * served directory can decide what lies there: a relative or empty entry depends on the working directory, and an entry that leads into
 * a root, also by a link on the way, holds the programs of strangers.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { delimiter, Fs, isAbsolute, join } from "./node.ts"
import * as OpenRoots from "./openRoots.ts"

export interface Program {
  /** Absolute. */
  readonly program: string
  /** The PATH without the entries that do not count, for the program and what it starts itself. */
  readonly path: string
}

/** Where programs are when the PATH is not set. */
const usual = "/usr/local/bin:/usr/bin:/bin"

/** The PATH of this process, as its configuration says. */
export const configuredPath: Effect.Effect<string> = Effect.orElseSucceed(Config.String("PATH"), () => usual)

const isProgram = (path: string): boolean => {
  try {
    Fs.accessSync(path, Fs.constants.X_OK)
    return Fs.statSync(path).isFile()
  } catch {
    return false
  }
}

/**
 * Finds a program in a PATH. Entries and programs in the roots of open filesystems and in the directories to `avoid`, which are
 * absolute, do not count.
 */
export const find = (name: string, path: string, avoid: ReadonlyArray<string>): Program | undefined => {
  const shunned = [...avoid.map((directory) => OpenRoots.resolved(directory) ?? directory), ...OpenRoots.open()]
  const entries = path.split(delimiter).filter((entry) => isAbsolute(entry) && !OpenRoots.leadsInto(entry, shunned))
  const names = process.platform === "win32" ? [`${name}.exe`] : [name]
  const program = entries
    .flatMap((entry) => names.map((file) => join(entry, file)))
    .find((file) => isProgram(file) && !OpenRoots.leadsInto(file, shunned))
  return program === undefined ? undefined : { program, path: entries.join(delimiter) }
}
