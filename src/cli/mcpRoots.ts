import { realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { isInside } from "../runtime/openRoots.ts"
import { widthOf } from "../runtime/wideRoots.ts"
import { Complaint, exitCodeOf } from "./exit.ts"

/**
 * Returns the kind of a directory that is too wide to serve, such as a home directory; `undefined` for any other or a missing
 * one.
 */
const widthAt = (path: string): string | undefined => {
  try {
    return widthOf(realpathSync.native(path))
  } catch {
    return undefined
  }
}

/**
 * Refuses a directory that is too wide, because an omitted argument must not expose it to an agent. `given` is the path as
 * typed, if any.
 */
export const refusalOf = (path: string, given: string | undefined): Complaint | undefined => {
  const width = widthAt(path)
  if (width === undefined) return undefined
  const root = given === undefined ? "the current directory" : `the root ${JSON.stringify(given)}`
  const message = `${root} is ${width}${path === given ? "" : `, ${path}`}: an agent could read and change everything in it`
  const hint =
    "Give the absolute path of one project: --root /path/to/project. A client may start its servers anywhere, so a relative path need not lead to the project. --any-root serves it all the same."
  return new Complaint({ error: { _tag: "RootRefused", root: path, width }, message, hint, code: exitCodeOf("AccessDenied") })
}

export interface Found {
  readonly directories: ReadonlyArray<string>
  readonly leftOut: ReadonlyArray<{ readonly root: string; readonly why: string }>
}

/** The largest number of roots to serve. Each root costs memory and descriptors. */
const mostRoots = 32

const longestUri = 200

const pathOf = (uri: unknown): { readonly path: string } | { readonly why: string } => {
  if (typeof uri !== "string" || !URL.canParse(uri)) return { why: "it has no URI" }
  if (new URL(uri).protocol !== "file:") return { why: "it is not a file of this machine" }
  try {
    return { path: resolve(fileURLToPath(uri)) }
  } catch {
    return { why: "its URI does not name a path of this machine" }
  }
}

const judged = (
  uri: unknown,
  anyRoot: boolean
): { readonly path: string; readonly real: string } | { readonly why: string } => {
  const found = pathOf(uri)
  if ("why" in found) return found
  const { path } = found
  try {
    if (!statSync(path).isDirectory()) return { why: "it is not a directory" }
    const real = realpathSync.native(path)
    const width = anyRoot ? undefined : widthOf(real)
    return width === undefined ? { path, real } : { why: `it is ${width}; only --any-root serves it` }
  } catch {
    return { why: "there is no such directory, or it cannot be read" }
  }
}

/** Returns the listed directories that may be served, without duplicates and without directories inside others. */
export const rootsOf = (listed: ReadonlyArray<unknown>, anyRoot: boolean): Found => {
  const leftOut: Array<Found["leftOut"][number]> = []
  const found = new Map<string, string>()
  for (const [index, root] of listed.slice(0, mostRoots).entries()) {
    const uri = typeof root === "object" && root !== null && "uri" in root ? root.uri : undefined
    const judgement = judged(uri, anyRoot)
    if ("why" in judgement) {
      leftOut.push({ root: typeof uri === "string" ? uri.slice(0, longestUri) : `root ${index + 1}`, why: judgement.why })
    } else if (!found.has(judgement.real)) found.set(judgement.real, judgement.path)
  }
  if (listed.length > mostRoots) {
    leftOut.push({ root: `${listed.length - mostRoots} more`, why: `at most ${mostRoots} are served` })
  }
  const reals = [...found.keys()]
  const directories = [...found].flatMap(([real, path]) =>
    reals.some((other) => other !== real && isInside(other, real)) ? [] : [path]
  )
  return { directories, leftOut }
}
