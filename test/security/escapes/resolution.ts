/**
 * Two walks over a tree as data, written from the manual of openat2(2) and path_resolution(7), and from C-39. The first stands in for
 * the kernel where that may not be asked, and is compared with it where it may; the second says what the library has to answer.
 */
import { isDirectory, isLink, join, parentOf, textOf, type Tree, whatIs } from "./tree.ts"

export type Outcome =
  | { readonly at: string }
  | { readonly no: "ENOENT" | "ENOTDIR" | "ELOOP" | "EXDEV"; readonly links: number }

const mostLinks = 40

/** As the kernel does it: one component after the other, and nothing known of the ones to come. */
export const asKernel = (tree: Tree, path: string, follow: boolean): Outcome => {
  let todo = path.split("/")
  let here = "."
  let links = 0
  while (todo.length > 0) {
    const [segment, ...rest] = todo as [string, ...Array<string>]
    todo = rest
    const what = whatIs(tree, here)
    if (what === undefined) return { no: "ENOENT", links }
    if (!isDirectory(what)) return { no: "ENOTDIR", links }
    if (segment === "" || segment === ".") continue
    if (segment === "..") {
      if (here === ".") return { no: "EXDEV", links }
      here = parentOf(here)
      continue
    }
    const next = join(here, segment)
    const found = whatIs(tree, next)
    if (found === undefined) return { no: "ENOENT", links }
    if (isLink(found) && (follow || todo.length > 0)) {
      if (++links > mostLinks) return { no: "ELOOP", links }
      if (textOf(found).startsWith("/")) return { no: "EXDEV", links }
      todo = [...textOf(found).split("/"), ...todo]
      continue
    }
    here = next
  }
  return { at: here }
}

/**
 * Whether the kernel answers as its copy does. At ".." above the root it gives its fast walk up and goes the whole way again, without
 * forgetting the links that it has counted (fs/namei.c), so that a way out behind more than twenty of them is a loop to it.
 */
export const isCopied = (copy: Outcome, at: string | undefined, no: string | undefined): boolean =>
  "at" in copy ? copy.at === at : copy.no === no || (copy.no === "EXDEV" && no === "ELOOP" && copy.links > mostLinks / 2)

/** Whether a text climbs above the root from where it stands, whatever there is on its way. */
export const climbs = (directory: string, text: string): boolean => {
  let depth = directory === "." ? 0 : directory.split("/").length
  for (const segment of text.split("/")) {
    if (segment === "" || segment === ".") continue
    depth += segment === ".." ? -1 : 1
    if (depth < 0) return true
  }
  return false
}

export type Verdict = { readonly at: string } | { readonly fails: "NotFound" | "InvalidPath" | "AccessDenied" }

/**
 * As C-39 says: a link that leaves is known by its text, before anything that it names is looked at; and of a link's text, as of a
 * caller's path, slashes and dots that stand behind a name are no part of it.
 */
export const asPromised = (tree: Tree, path: string, follow: boolean): Verdict => {
  let todo = path.split("/")
  let here = "."
  let links = 0
  const isName = (segment: string): boolean => segment !== "" && segment !== "."
  while (todo.some(isName)) {
    const [segment, ...rest] = todo as [string, ...Array<string>]
    todo = rest
    if (!isName(segment)) continue
    const what = whatIs(tree, here)
    if (!isDirectory(what)) return { fails: "NotFound" }
    if (segment === "..") {
      if (here === ".") return { fails: "AccessDenied" }
      here = parentOf(here)
      continue
    }
    const next = join(here, segment)
    const found = whatIs(tree, next)
    if (isLink(found) && (follow || todo.some(isName))) {
      if (++links > mostLinks) return { fails: "InvalidPath" }
      const text = textOf(found)
      if (text.startsWith("/") || climbs(here, text)) return { fails: "AccessDenied" }
      todo = [...text.split("/"), ...todo]
      continue
    }
    here = next
  }
  const found = whatIs(tree, here)
  return found === undefined ? { fails: "NotFound" } : { at: here }
}

/** Where the two may differ, and why. Whatever is not among these is a mistake. */
export const reasonFor = (kernel: string, ours: string): string | undefined => {
  if (kernel === ours) return undefined
  const pair = `${kernel} ${ours}`
  return differences.find(([which]) => which === pair)?.[1] ?? `unexplained: the kernel ${kernel}, ours ${ours}`
}

const byText = "a link's text is judged before what it names is looked at, so that nothing outside can be learnt"

export const differences: ReadonlyArray<readonly [pair: string, why: string]> = [
  ["ENOENT escape", byText],
  ["ENOTDIR escape", byText],
  ["ELOOP escape", "the kernel may count links twice; and by its text a link out is known before the loop that it leads to"],
  [
    "ok escape",
    "a text that climbs above the root is refused, also where a link in it leads deep enough for it to stay inside"
  ],
  ["ENOTDIR ok", "a slash or dot behind a file's name in a link's text is no part of the name"]
]
