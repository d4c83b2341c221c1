/**
 * Resolves typed paths. A path is relative to the root, or absolute on the machine, as shells complete paths. Links above the
 * root are resolved here, so that every absolute path that leads to the root works. Links inside the root are left to the
 * filesystem.
 */
import * as Effect from "effect/Effect"
import { realpathSync, statSync } from "node:fs"
import { basename, dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path"
import { InvalidPath, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { isDirectoryRoot } from "./root.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

/** Resolves the links in the part of a path that exists. The rest of the path need not exist. */
export const resolveLinks = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return dirname(path) === path ? path : join(resolveLinks(dirname(path)), basename(path))
  }
}

/** Returns the absolute path of a file on the machine. The given path is relative to the current directory, not to the root. */
export const hostPathOf = (file: string): Effect.Effect<string, never, Screen> =>
  Effect.map(Screen, ({ directory }) => resolve(directory, file))

/**
 * Returns the kind of a path on the machine, or `undefined` if the path does not exist. An inaccessible path counts as a file;
 * opening that file reports the error.
 */
export const kindOfHostPath = (path: string): "file" | "directory" | "other" | undefined => {
  try {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory() === true) return "directory"
    return stat && (stat.isFile() ? "file" : "other")
  } catch {
    return "file"
  }
}

const ancestors = (path: string): ReadonlyArray<string> => {
  const { root } = parse(path)
  const names = path.slice(root.length).split(sep)
  return path === root ? [root] : [root, ...names.map((_, index) => root + names.slice(0, index + 1).join(sep))]
}

const isBelow = (path: string): boolean => path.split(sep)[0] !== ".." && !isAbsolute(path)

const toPathBelowRoot = (root: string, path: string): string | undefined => {
  const realRoot = resolveLinks(root)
  const absolutePath = resolve(path)
  for (const directory of ancestors(absolutePath)) {
    const above = relative(realRoot, resolveLinks(directory))
    // Do not follow a link outside the root that leads to an entry of the root, because rm would remove the entry instead of
    // the link. Only a link to the root itself is followed.
    if (isBelow(above) && (directory !== absolutePath || above === "")) {
      return [...above.split(sep), ...relative(directory, absolutePath).split(sep)].filter((name) => name !== "").join("/")
    }
  }
  return undefined
}

/** Returns the root as an absolute path of this machine, or `undefined` if the root is not a directory of this machine. */
const rootDirectory = Effect.gen(function* () {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  return isDirectoryRoot(root, directory) ? resolve(directory, root) : undefined
})

/**
 * Makes an absolute path relative to the root, and keeps a final slash. Fails with InvalidPath if the path lies outside the
 * root.
 */
export const toPathInRoot = Effect.fnUntraced(function* (path: string) {
  if (!isAbsolute(path)) return path
  const root = yield* rootDirectory
  if (root === undefined) {
    const { command } = yield* Settings
    return yield* new InvalidPath({ operation: command, path, detail: "an absolute path cannot lie on another machine" })
  }
  const found = toPathBelowRoot(root, path)
  if (found === undefined) {
    const { command } = yield* Settings
    return yield* new InvalidPath({ operation: command, path, detail: `it lies outside the root "${root}"` })
  }
  if (found === "") return FsPath.root
  return /[/\\]$/.test(path) ? `${found}/` : found
})

export const parsePath = Effect.fnUntraced(function* (text: string) {
  const path = FsPath.parse(yield* toPathInRoot(text))
  if (typeof path === "string") return path
  const { command } = yield* Settings
  return yield* Effect.fail(promote(path, command, text))
})

/**
 * Makes an absolute pattern relative to the root. Returns a relative pattern unchanged. Also returns a pattern unchanged if its
 * directories before the first wildcard lie outside the root.
 */
export const toPatternInRoot = Effect.fnUntraced(function* (pattern: string) {
  if (!isAbsolute(pattern)) return pattern
  const plain = pattern.split(/[\\*?[\]{}()!+@]/)[0]!
  const end = plain.lastIndexOf("/")
  const root = yield* rootDirectory
  const found = root === undefined ? undefined : toPathBelowRoot(root, plain.slice(0, end + 1))
  return found === undefined ? pattern : `${found === "" ? "" : `/${found}`}${pattern.slice(end)}`
})
