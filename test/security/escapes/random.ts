/**
 * Random trees of directories, files and links with targets of every kind, and paths over them. The same seed gives the
 * same tree.
 */
import { childrenOf, directory, file, isDirectory, isLink, join, link, put, type Tree } from "./tree.ts"

export type Random = () => number

export const random = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const below = (next: Random, count: number): number => Math.floor(next() * count)
const pick = <A>(next: Random, all: ReadonlyArray<A>): A => all[below(next, all.length)]!

const names = ["a", "b", "c", "d", "..e", "...", "é"]
const odd = ["none", "..", ".", ""]

/** Returns a path that mostly follows existing entries, often upwards, sometimes past its end. */
const way = (next: Random, tree: Tree, from: string): string => {
  const out: Array<string> = []
  let at = from
  for (let left = 1 + below(next, 4); left > 0; left--) {
    const there = childrenOf(tree, at)
    const roll = next()
    const step =
      roll < 0.28
        ? ".."
        : roll < 0.36
          ? pick(next, odd)
          : there.length > 0 && roll < 0.9
            ? pick(next, there)
            : pick(next, names)
    out.push(step)
    if (step === "..") at = at.includes("/") ? at.slice(0, at.lastIndexOf("/")) : "."
    else if (isDirectory(tree[join(at, step)])) at = join(at, step)
  }
  return out.join("/")
}

const textOf = (next: Random, tree: Tree, from: string): string => {
  const roll = next()
  if (roll < 0.04) return pick(next, ["/", "/a", "/etc/passwd", "/proc/self/root", "/proc/self/cwd/a"])
  const linked = childrenOf(tree, from).filter((name) => isLink(tree[join(from, name)]))
  // The target goes through a link, which may or may not lead deep enough for the steps up.
  if (roll < 0.14 && linked.length > 0) {
    const depth = from === "." ? 0 : from.split("/").length
    return `${pick(next, linked)}/..${"/..".repeat(depth + below(next, 2))}${next() < 0.5 ? `/${pick(next, names)}` : ""}`
  }
  const text = way(next, tree, from)
  if (text.startsWith("/") || text === "") return "."
  return roll < 0.22 ? `${text}/` : roll < 0.26 ? `${text}/.` : roll < 0.3 ? `./${text}` : text
}

/** Adds a chain of links, as long as the kernel allows or one longer. */
const chain = (next: Random, tree: Tree): Tree => {
  const length = 38 + below(next, 5)
  let out = tree
  for (let i = 0; i < length; i++)
    out = put(out, `chain${i}`, link(i === 0 ? pick(next, ["a", "b", ".", "..", "none"]) : `chain${i - 1}`))
  return out
}

export const randomTree = (next: Random): Tree => {
  let tree: Tree = {}
  const directories = ["."]
  for (let left = 3 + below(next, 6); left > 0; left--) {
    const at = join(pick(next, directories), pick(next, names))
    if (tree[at] !== undefined || at.split("/").length > 5) continue
    if (next() < 0.65) {
      tree = put(tree, at, directory)
      directories.push(at)
    } else tree = put(tree, at, file(`${at}\n`))
  }
  for (let left = 2 + below(next, 8); left > 0; left--) {
    const from = pick(next, directories)
    const at = join(from, pick(next, names))
    if (tree[at] === undefined) tree = put(tree, at, link(textOf(next, tree, from)))
  }
  return next() < 0.08 ? chain(next, tree) : tree
}

/** Returns a path that also goes through links, which `way` treats as ends. */
export const randomPath = (next: Random, tree: Tree): string => {
  const known = Object.keys(tree)
  const last = known.filter((path) => path.startsWith("chain")).length - 1
  if (last > 0 && next() < 0.3) return `chain${last - below(next, 4)}${next() < 0.5 ? "" : `/${pick(next, names)}`}`
  const start = known.length > 0 && next() < 0.85 ? pick(next, known) : way(next, tree, ".")
  const roll = next()
  if (roll < 0.3) return start
  const more = Array.from({ length: 1 + below(next, 3) }, () =>
    next() < 0.15 ? pick(next, odd) : known.length > 0 && next() < 0.4 ? pick(next, known) : pick(next, names)
  )
  return [start, ...more].join("/")
}
