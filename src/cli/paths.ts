/**
 * Paths as people type them: relative to the root, or absolute on the machine, as shells complete them and other programs print them.
 * Links above the root are resolved, so that each of its names is understood; links in it are left to the filesystem.
 */
import { isAbsolute, parse, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import { InvalidPath } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { resolved } from "./resolved.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

/** Returns the path and all directories above it, the topmost first. */
const ancestors = (path: string): ReadonlyArray<string> => {
  const { root } = parse(path)
  const names = path.slice(root.length).split(sep)
  return path === root ? [root] : [root, ...names.map((_, index) => root + names.slice(0, index + 1).join(sep))]
}

const isBelow = (path: string): boolean => path.split(sep)[0] !== ".." && !isAbsolute(path)

/** Returns the path from the root on, `undefined` where it lies outside. */
const inside = (root: string, path: string): string | undefined => {
  const top = resolved(root)
  const typed = resolve(path)
  for (const directory of ancestors(typed)) {
    const above = relative(top, resolved(directory))
    // A link outside the root is not its target: rm would remove what lies inside. Only the root itself may be named so.
    if (isBelow(above) && (directory !== typed || above === "")) {
      return [...above.split(sep), ...relative(directory, typed).split(sep)].filter((name) => name !== "").join("/")
    }
  }
  return undefined
}

/** Returns the root as an absolute path, as it was given. */
const rootDirectory = Effect.gen(function* () {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  return resolve(directory, root)
})

/**
 * Returns a path relative to the root; a slash at its end stays. Fails with InvalidPath where an absolute path lies outside the root.
 */
export const located = Effect.fnUntraced(function* (path: string) {
  if (!isAbsolute(path)) return path
  const root = yield* rootDirectory
  const found = inside(root, path)
  if (found === undefined) {
    const { command } = yield* Settings
    return yield* new InvalidPath({ operation: command, path, detail: `it lies outside the root "${root}"` })
  }
  if (found === "") return FsPath.root
  return /[/\\]$/.test(path) ? `${found}/` : found
})

/** Returns a pattern relative to the root, where its directories without wildcards lie in it, and any other as it is. */
export const locatedPattern = Effect.fnUntraced(function* (pattern: string) {
  if (!isAbsolute(pattern)) return pattern
  const plain = pattern.split(/[\\*?[\]{}()!+@]/)[0]!
  const end = plain.lastIndexOf("/")
  const found = inside(yield* rootDirectory, plain.slice(0, end + 1))
  return found === undefined ? pattern : `${found === "" ? "" : `/${found}`}${pattern.slice(end)}`
})
