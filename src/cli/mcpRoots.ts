import { realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { isInside } from "../runtime/openRoots.ts"
import { describeWideRoot } from "../runtime/wideRoots.ts"
import { Complaint, exitCodeOf } from "./exit.ts"

/**
 * Returns the kind of a directory that is too wide to serve, such as a home directory; `undefined` for any other or a missing
 * one.
 */
const tooWideKind = (path: string): string | undefined => {
  try {
    return describeWideRoot(realpathSync.native(path))
  } catch {
    return undefined
  }
}

/**
 * Refuses a directory that is too wide, because an omitted argument must not expose it to an agent. `given` is the path as
 * typed, if any.
 */
export const refusalOf = (path: string, given: string | undefined): Complaint | undefined => {
  const width = tooWideKind(path)
  if (width === undefined) return undefined
  const root = given === undefined ? "the current directory" : `the root ${JSON.stringify(given)}`
  const message = `${root} is ${width}${path === given ? "" : `, ${path}`}: an agent could read and change everything in it`
  const hint =
    "Give the absolute path of one project: --root /path/to/project. A client may start its servers anywhere, so a relative path need not lead to the project. --any-root serves it all the same."
  return new Complaint({ error: { _tag: "RootRefused", root: path, width }, message, hint, code: exitCodeOf("AccessDenied") })
}

export interface ChosenRoots {
  readonly directories: ReadonlyArray<string>
  readonly skippedRoots: ReadonlyArray<{ readonly root: string; readonly why: string }>
}

/** The largest number of roots to serve. Each root costs memory and descriptors. */
const maxRoots = 32

const maxUriCharacters = 200

const pathOf = (uri: unknown): { readonly path: string } | { readonly why: string } => {
  if (typeof uri !== "string" || !URL.canParse(uri)) return { why: "it has no URI" }
  if (new URL(uri).protocol !== "file:") return { why: "it is not a file of this machine" }
  try {
    return { path: resolve(fileURLToPath(uri)) }
  } catch {
    return { why: "its URI does not name a path of this machine" }
  }
}

const checkRoot = (
  uri: unknown,
  anyRoot: boolean
): { readonly path: string; readonly real: string } | { readonly why: string } => {
  const found = pathOf(uri)
  if ("why" in found) return found
  const { path } = found
  try {
    if (!statSync(path).isDirectory()) return { why: "it is not a directory" }
    const real = realpathSync.native(path)
    const width = anyRoot ? undefined : describeWideRoot(real)
    return width === undefined ? { path, real } : { why: `it is ${width}; only --any-root serves it` }
  } catch {
    return { why: "there is no such directory, or it cannot be read" }
  }
}

/** Returns the listed directories that may be served, without duplicates and without directories inside others. */
export const rootsOf = (listedRoots: ReadonlyArray<unknown>, anyRoot: boolean): ChosenRoots => {
  const skippedRoots: Array<ChosenRoots["skippedRoots"][number]> = []
  const found = new Map<string, string>()
  for (const [index, root] of listedRoots.slice(0, maxRoots).entries()) {
    const uri = typeof root === "object" && root !== null && "uri" in root ? root.uri : undefined
    const checkedRoot = checkRoot(uri, anyRoot)
    if ("why" in checkedRoot) {
      skippedRoots.push({
        root: typeof uri === "string" ? uri.slice(0, maxUriCharacters) : `root ${index + 1}`,
        why: checkedRoot.why
      })
    } else if (!found.has(checkedRoot.real)) found.set(checkedRoot.real, checkedRoot.path)
  }
  if (listedRoots.length > maxRoots) {
    skippedRoots.push({ root: `${listedRoots.length - maxRoots} more`, why: `at most ${maxRoots} are served` })
  }
  const realPaths = [...found.keys()]
  const directories = [...found].flatMap(([real, path]) =>
    realPaths.some((other) => other !== real && isInside(other, real)) ? [] : [path]
  )
  return { directories, skippedRoots }
}
