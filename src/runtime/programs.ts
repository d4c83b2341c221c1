/**
 * Finds the programs that this library starts, such as git and podman. A directory of the PATH counts only when nobody who works in a
 * served directory can decide what lies there: a relative or empty entry depends on the working directory, and an entry that leads into
 * a root, also by a link on the way, holds the programs of strangers.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { delimiter, dirname, isAbsolute, join, parse, sep } from "node:path"
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

/** As many links as Linux follows. */
const mostLinks = 40

const textOf = (path: string): string | undefined => {
  try {
    return Fs.readlinkSync(path)
  } catch {
    return undefined
  }
}

const namesOf = (path: string): ReadonlyArray<string> => path.split(sep).filter((name) => name !== "" && name !== ".")

/** Whether the path, or a link on its way, lies in one of the directories. They are resolved; so is every directory on the way. */
const leadsInto = (path: string, directories: ReadonlyArray<string>): boolean => {
  const isIn = (at: string): boolean => directories.some((directory) => OpenRoots.isInside(directory, at))
  let at = parse(path).root
  let left = namesOf(path.slice(at.length))
  let links = 0
  if (isIn(at)) return true
  while (left.length > 0) {
    const [name, ...rest] = left as [string, ...Array<string>]
    const next = name === ".." ? dirname(at) : join(at, name)
    if (isIn(next)) return true
    const text = textOf(next)
    left = rest
    if (text === undefined) {
      at = next
      continue
    }
    if (++links > mostLinks) return true
    if (isAbsolute(text)) at = parse(text).root
    left = [...namesOf(isAbsolute(text) ? text.slice(at.length) : text), ...rest]
  }
  return false
}

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
  const entries = path.split(delimiter).filter((entry) => isAbsolute(entry) && !leadsInto(entry, shunned))
  const names = process.platform === "win32" ? [`${name}.exe`] : [name]
  const program = entries
    .flatMap((entry) => names.map((file) => join(entry, file)))
    .find((file) => isProgram(file) && !leadsInto(file, shunned))
  return program === undefined ? undefined : { program, path: entries.join(delimiter) }
}
