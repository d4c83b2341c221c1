/**
 * Trees as data, in the form of the whole table: a path and its entry, where `/` is a directory, `=text` a file and `>text` a
 * link. Nothing here comes from the library, so that the expectations cannot share its mistakes.
 */

export type Tree = Readonly<Record<string, string>>

export const directory = "/"
export const file = (text: string): string => `=${text}`
export const link = (text: string): string => `>${text}`

export const isDirectory = (what: string | undefined): boolean => what === directory
export const isFile = (what: string | undefined): what is string => what?.startsWith("=") === true
export const isLink = (what: string | undefined): what is string => what?.startsWith(">") === true
export const textOf = (what: string): string => what.slice(1)

export const parentOf = (path: string): string => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".")
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)
export const join = (above: string, name: string): string => (above === "." ? name : name === "." ? above : `${above}/${name}`)

/** Returns a caller's path in the normal form of C-01 to C-04, or `undefined` when it climbs out. */
export const normal = (path: string): string | undefined => {
  const out: Array<string> = []
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment !== "..") out.push(segment)
    else if (out.pop() === undefined) return undefined
  }
  return out.length === 0 ? "." : out.join("/")
}

const within = (at: string, path: string): boolean => at === "." || path === at || path.startsWith(`${at}/`)

export const below = (tree: Tree, at: string): Tree =>
  Object.fromEntries(
    Object.entries(tree)
      .filter(([path]) => path !== at && within(at, path))
      .map(([path, what]) => [at === "." ? path : path.slice(at.length + 1), what])
  )

export const childrenOf = (tree: Tree, at: string): ReadonlyArray<string> =>
  Object.keys(below(tree, at))
    .filter((path) => !path.includes("/"))
    .sort()

export const whatIs = (tree: Tree, at: string): string | undefined => (at === "." ? directory : tree[at])

export const put = (tree: Tree, at: string, what: string): Tree => {
  const out: Record<string, string> = { ...tree }
  for (let above = parentOf(at); above !== "."; above = parentOf(above)) out[above] ??= directory
  return { ...out, [at]: what }
}

export const without = (tree: Tree, at: string): Tree =>
  Object.fromEntries(Object.entries(tree).filter(([path]) => !within(at, path)))

export const copied = (tree: Tree, from: string, to: string): Tree => {
  let out = put(tree, to, tree[from]!)
  for (const [path, what] of Object.entries(below(tree, from))) out = put(out, join(to, path), what)
  return out
}

/** Adds every missing parent and sorts parents before their entries. */
export const complete = (tree: Tree): Tree => {
  let out: Tree = {}
  for (const [path, what] of Object.entries(tree)) out = put(out, path, what)
  return Object.fromEntries(Object.entries(out).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}
