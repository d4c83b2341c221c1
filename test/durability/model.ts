/**
 * The tree that each operation must leave, and the trees that a kill during an operation may leave. The model does not
 * use the library, so it is an independent specification.
 */
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { cut, fileToken, identify, parse, record, textToken } from "./content.ts"

/** The entries by path: "directory", "-> target", or the token for the content of a file. */
export type Tree = ReadonlyMap<string, string>

interface Transfer {
  readonly kind: "move" | "copy"
  readonly from: string
  readonly to: string
  readonly overwrite: boolean
}

export type Op =
  | {
      readonly kind: "write"
      readonly how: "bytes" | "stream"
      readonly mode: "create" | "overwrite" | "append"
      readonly path: string
      readonly id: number
      readonly size: number
    }
  | { readonly kind: "text"; readonly path: string; readonly id: number; readonly lines: number }
  | { readonly kind: "edit"; readonly path: string; readonly from: number; readonly id: number; readonly lines: number }
  | Transfer
  | { readonly kind: "delete"; readonly path: string; readonly recursive: boolean }
  | { readonly kind: "mkdir"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }

export const directory = "directory"

export const parentOf = (path: string): string => (path.includes("/") ? dirname(path) : "")

export const isBelow = (path: string, top: string): boolean => path.startsWith(`${top}/`)

/** Returns the path that a write to this path changes, after following links. */
export const through = (tree: Tree, path: string): string => {
  let at = path
  for (let links = 0; links < 8; links++) {
    const found = tree.get(at)
    if (found === undefined || !found.startsWith("-> ")) return at
    at = join(parentOf(at), found.slice(3))
  }
  return at
}

const ancestors = (path: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let at = parentOf(path); at !== ""; at = parentOf(at)) out.unshift(at)
  return out
}

/** Returns the path that the operation writes to or removes. */
const targetOf = (tree: Tree, op: Op): string => {
  if ("to" in op) return op.to
  return op.kind === "write" && op.mode !== "create" ? through(tree, op.path) : op.path
}

const appended = (old: string | undefined, id: number): string =>
  old === undefined ? fileToken([id]) : old === fileToken([]) ? old + id : `${old}+${id}`

const transferred = (tree: Map<string, string>, { from, kind, to }: Transfer): void => {
  for (const [path, what] of new Map(tree)) {
    if (path !== from && !isBelow(path, from)) continue
    if (kind === "move") tree.delete(path)
    tree.set(to + path.slice(from.length), what)
  }
}

export const apply = (before: Tree, op: Op): Tree => {
  const tree = new Map(before)
  const at = targetOf(before, op)
  if (op.kind !== "delete") for (const path of ancestors(at)) if (!tree.has(path)) tree.set(path, directory)
  switch (op.kind) {
    case "write":
      return tree.set(at, op.mode === "append" ? appended(tree.get(at), op.id) : fileToken([op.id]))
    case "text":
    case "edit":
      return tree.set(at, textToken(op.id, op.lines))
    case "mkdir":
      return tree.set(at, directory)
    case "link":
      return tree.set(at, `-> ${op.target}`)
    case "delete":
      for (const path of before.keys()) if (path === at || isBelow(path, at)) tree.delete(path)
      return tree
    default:
      transferred(tree, op)
      return tree
  }
}

/** Tests whether an operation changes one entry at a time. Every other operation is atomic. */
const isPiecewise = (before: Tree, op: Op): boolean =>
  (op.kind === "delete" && op.recursive) || (op.kind === "copy" && before.get(op.from) === directory)

/** Tests whether a file is the remains of an unfinished append: an empty new file, or the old content and a part of the record. */
const isCutAppend = (op: Op, old: string | undefined, found: string | undefined): boolean =>
  op.kind === "write" &&
  op.mode === "append" &&
  (found === (old ?? fileToken([])) + cut || (old === undefined && op.how === "bytes" && found === fileToken([])))

/**
 * Returns the reason why a kill during `op` on the tree `before` cannot have left this tree, or `undefined` if it can have left
 * it.
 */
export const complaint = (before: Tree, op: Op | undefined, found: Tree): string | undefined => {
  const after = op === undefined ? before : apply(before, op)
  const target = op === undefined ? "" : targetOf(before, op)
  let isOld: string | undefined
  let isNew: string | undefined
  for (const path of new Set([...before.keys(), ...after.keys(), ...found.keys()])) {
    const [was, becomes, is] = [before.get(path), after.get(path), found.get(path)]
    if (is === was && is === becomes) continue
    const said = `${path} is ${is ?? "missing"}, was ${was ?? "missing"}, becomes ${becomes ?? "missing"}`
    if (op === undefined || was === becomes) return `${said}: nothing was done to it`
    if (isCutAppend(op, was, is)) continue
    if (is !== was && is !== becomes) return `${said}: neither old nor new`
    const isParent = becomes === directory && was === undefined && isBelow(target, path)
    if (isParent || isPiecewise(before, op)) continue
    if (is === was) isOld = said
    else isNew = said
  }
  return isOld !== undefined && isNew !== undefined ? `half done: ${isOld}, but ${isNew}` : undefined
}

export interface Found {
  readonly tree: Tree
  /** The paths of leftovers of killed writers. */
  readonly hidden: ReadonlyArray<string>
}

const isHidden = (name: string): boolean => /^\.~fsa-.*\.tmp$/.test(name)

/** Reads a tree with `node:fs` alone. `tail` is the record of an unfinished append. */
export const look = (root: string, tail?: Buffer): Found => {
  const tree = new Map<string, string>()
  const hidden: Array<string> = []
  const visit = (directoryPath: string): void => {
    for (const entry of Fs.readdirSync(join(root, directoryPath), { withFileTypes: true })) {
      const path = directoryPath === "" ? entry.name : `${directoryPath}/${entry.name}`
      if (isHidden(entry.name)) hidden.push(path)
      else if (entry.isDirectory()) {
        tree.set(path, directory)
        visit(path)
      } else if (entry.isSymbolicLink()) tree.set(path, `-> ${Fs.readlinkSync(join(root, path))}`)
      else tree.set(path, identify(Fs.readFileSync(join(root, path)), tail))
    }
  }
  visit("")
  return { tree, hidden }
}

export const tailOf = (op: Op | undefined): Buffer | undefined =>
  op?.kind === "write" && op.mode === "append" ? record(op.id, op.size) : undefined

/** Removes a broken record at the end of a file, as a journal does when it opens. */
export const mend = (root: string, { hidden, tree }: Found): Found => {
  const mended = new Map(tree)
  for (const [path, what] of tree) {
    if (!what.endsWith(cut)) continue
    const { ids, whole } = parse(Fs.readFileSync(join(root, path)))
    Fs.truncateSync(join(root, path), whole)
    mended.set(path, fileToken(ids))
  }
  return { tree: mended, hidden }
}
