/**
 * Two walks over a tree as data, written from the manuals of openat2(2) and path_resolution(7), and from C-39. The first one
 * replaces the kernel where openat2 is not available, and is compared with it elsewhere. The second one gives the answers that
 * the library must give.
 */
import { isDirectory, isLink, join, parentOf, textOf, type Tree, whatIs } from "./tree.ts"

export type Outcome =
  | { readonly at: string }
  | { readonly no: "ENOENT" | "ENOTDIR" | "ELOOP" | "EXDEV"; readonly links: number }

const mostLinks = 40

/** Walks like the kernel: one component after the other, without looking ahead. */
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
 * Tests whether the kernel agrees with the copy. At ".." above the root the kernel restarts without its fast walk, but keeps
 * the count of links (fs/namei.c). So it reports an escape after more than twenty links as a loop.
 */
export const isCopied = (copy: Outcome, at: string | undefined, no: string | undefined): boolean =>
  "at" in copy ? copy.at === at : copy.no === no || (copy.no === "EXDEV" && no === "ELOOP" && copy.links > mostLinks / 2)

/** Tests whether a text climbs above the root from its directory, whatever entries it goes through. */
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
 * Walks as C-39 says. A link that leads out is refused by its text, before any entry in its target path is read. Empty segments
 * and segments of one dot are ignored, in the path of the caller and in the text of a link.
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

/** Returns the reason for a difference between the kernel and the library. A pair without a reason is a mistake. */
export const reasonFor = (kernel: string, ours: string): string | undefined => {
  if (kernel === ours) return undefined
  const pair = `${kernel} ${ours}`
  return differences.find(([which]) => which === pair)?.[1] ?? `unexplained: the kernel ${kernel}, ours ${ours}`
}

const byText = "a link's text is checked before the entries that it names are read, so that nothing outside can be learnt"

export const differences: ReadonlyArray<readonly [pair: string, why: string]> = [
  ["ENOENT escape", byText],
  ["ENOTDIR escape", byText],
  ["ELOOP escape", "the kernel may count links twice, and a link that leaves is refused by its text before the loop is found"],
  ["ok escape", "a text that climbs above the root is refused, even if a link in it leads deep enough to stay inside"],
  ["ENOTDIR ok", "a slash or dot behind a file's name in a link's text is no part of the name"]
]
