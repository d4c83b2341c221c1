/** Chooses the next operation on a tree: a seeded random choice among the operations that can succeed. */
import { directory, isBelow, type Op, parentOf, through, type Tree } from "./model.ts"

export interface Dice {
  /** Returns an integer from 0 to `bound` - 1. */
  readonly below: (bound: number) => number
  readonly pick: <A>(from: ReadonlyArray<A>) => A | undefined
}

/** Creates a seeded random generator (Mulberry32). */
export const dice = (seed: number): Dice => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return { below, pick: (from) => from[below(from.length)] }
}

const maxFiles = 24
const maxDirectories = 16
const maxDepth = 5
/** The top of a tree that is deeper than the number of directories that a removal keeps open. */
const deep = "deep"
const deepest = `${deep}${"/x".repeat(60)}`

const join = (parent: string, name: string): string => (parent === "" ? name : `${parent}/${name}`)

const isDeep = (path: string): boolean => path === deep || isBelow(path, deep)

const isFile = (what: string | undefined): boolean => what !== undefined && (what.startsWith("file") || what.startsWith("text"))

const depthOf = (path: string): number => path.split("/").length

/** Chooses a size in bytes: 0, a few, some, or up to 4 MB. */
const sizeOf = ({ below }: Dice): number => {
  const kind = below(20)
  if (kind < 2) return 0
  if (kind < 8) return below(4096)
  if (kind < 14) return below(200_000)
  return kind < 18 ? 200_000 + below(800_000) : 1_000_000 + below(3_000_000)
}

/** Returns the operations that are possible on a tree. `id` is the number of the new content. */
const chooser = (tree: Tree, random: Dice, id: number) => {
  const { below, pick } = random
  const paths = [...tree.keys()].filter((path) => !isDeep(path))
  const directories = paths.filter((path) => tree.get(path) === directory)
  const leaves = paths.filter((path) => tree.get(path) !== directory)
  const files = leaves.filter((path) => isFile(tree.get(path)))
  const isEmpty = (path: string): boolean => !paths.some((other) => isBelow(other, path))
  const within = (path: string): number => leaves.filter((other) => isBelow(other, path)).length
  const someDirectory = (): string => pick(["", ...directories])!

  /** Returns an unused name, sometimes below directories that do not exist yet. */
  const free = (): string | undefined => {
    const parent = someDirectory()
    const above = below(5) === 0 ? join(parent, `n${below(4)}/m${below(3)}`) : parent
    const path = join(above, `${"fgh"[below(3)]}${below(8)}`)
    const isTaken = tree.has(path) || (above !== parent && tree.has(parentOf(above)))
    return isTaken || depthOf(path) > maxDepth ? undefined : path
  }
  /** Returns a path to write to: a file, a free name, or a link to either. */
  const writable = (): string | undefined => {
    const path = below(3) === 0 ? free() : pick(leaves)
    if (path === undefined) return undefined
    const at = through(tree, path)
    const found = tree.get(at)
    const hasPlace = path === at || (!isDeep(at) && (parentOf(at) === "" || tree.get(parentOf(at)) === directory))
    return hasPlace && (found === undefined || isFile(found)) ? path : undefined
  }
  const appendable = (): string | undefined => {
    const path = writable()
    const found = path && tree.get(through(tree, path))
    return found === undefined || (found.startsWith("file") && found.split("+").length < 5) ? path : undefined
  }
  const written = (mode: "create" | "overwrite" | "append", how: "bytes" | "stream"): Op | undefined => {
    const path = mode === "create" ? free() : mode === "append" ? appendable() : writable()
    return path === undefined ? undefined : { kind: "write", mode, how, path, id, size: sizeOf(random) }
  }
  const edited = (): Op | undefined => {
    const path = pick(files.filter((path) => tree.get(path)!.startsWith("text")))
    if (path === undefined) return undefined
    const [, from, lines] = /^text (\d+)\/(\d+)$/.exec(tree.get(path)!)!
    return { kind: "edit", path, from: Number(from), id, lines: Number(lines) }
  }
  const texted = (): Op | undefined => {
    const path = pick(files) ?? free()
    return path === undefined ? undefined : { kind: "text", path, id, lines: below(3) === 0 ? 20_000 : below(200) }
  }
  const transferred = (kind: "move" | "copy", from: string | undefined, overwrite: boolean): Op | undefined => {
    if (from === undefined) return undefined
    const isTree = tree.get(from) === directory
    const to = overwrite ? pick(isTree ? directories.filter(isEmpty) : leaves) : free()
    if (to === undefined || to === from || isBelow(to, from) || isBelow(from, to)) return undefined
    return kind === "copy" && isTree && within(from) > 8 ? undefined : { kind, from, to, overwrite }
  }
  const deepened = (): Op => {
    if (!tree.has(deep)) return { kind: "mkdir", path: deepest }
    if (!tree.has(deepest) || below(2) === 0) return { kind: "delete", path: deep, recursive: true }
    return { kind: "write", mode: "overwrite", how: "bytes", path: `${deepest}/f`, id, size: below(4096) }
  }
  const removed = (path: string | undefined): Op | undefined =>
    path === undefined ? undefined : { kind: "delete", path, recursive: tree.get(path) === directory }
  const linked = (): Op | undefined => {
    const path = free()
    if (path === undefined || (parentOf(path) !== "" && !tree.has(parentOf(path)))) return undefined
    return { kind: "link", path, target: `f${below(8)}` }
  }
  const made = (): Op | undefined => {
    const path = free()
    return path === undefined ? undefined : { kind: "mkdir", path }
  }
  const isFull = files.length > maxFiles || directories.length > maxDirectories
  return isFull
    ? [() => removed(pick(directories)), () => removed(pick(leaves))]
    : [
        () => written("overwrite", "bytes"),
        () => written("overwrite", "bytes"),
        () => written("overwrite", "bytes"),
        () => written("overwrite", "stream"),
        () => written("create", "bytes"),
        () => written("create", "stream"),
        () => written("append", "bytes"),
        () => written("append", "bytes"),
        () => written("append", "stream"),
        texted,
        edited,
        edited,
        () => transferred("move", pick(leaves), false),
        () => transferred("move", pick(leaves), true),
        () => transferred("move", pick(directories), below(2) === 0),
        () => transferred("copy", pick(leaves), false),
        () => transferred("copy", pick(leaves), true),
        () => transferred("copy", pick(directories), below(2) === 0),
        () => removed(pick(leaves)),
        () => removed(pick(directories)),
        made,
        linked,
        linked,
        deepened
      ]
}

export const choose = (tree: Tree, random: Dice, id: number): Op => {
  const choices = chooser(tree, random, id)
  for (;;) {
    const op = random.pick(choices)!()
    if (op !== undefined) return op
  }
}
