/**
 * What a tree must look like after each operation, and what it may look like when the program was killed within one. Nothing here
 * knows the library: it is the specification, written down a second time.
 */
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { cut, fileToken, identify, parse, record, textToken } from "./content.ts"

/** By path: "directory", "-> target", or the word for what a file holds. */
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

/** Where a write to the path arrives. */
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

/** The path at which the operation puts something, or from which it takes. */
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

/** Whole files at a time; everything else happens at once. */
const isPiecewise = (before: Tree, op: Op): boolean =>
  (op.kind === "delete" && op.recursive) || (op.kind === "copy" && before.get(op.from) === directory)

/** An append may have come to nothing more than the file, or to a part of its record, and only at the end. */
const isCutAppend = (op: Op, old: string | undefined, found: string | undefined): boolean =>
  op.kind === "write" &&
  op.mode === "append" &&
  (found === (old ?? fileToken([])) + cut || (old === undefined && op.how === "bytes" && found === fileToken([])))

/**
 * Why this cannot be what a program has left that had finished everything that led to `before` and was killed within `op`;
 * `undefined` where it can.
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
  /** Paths of what a killed writer has left. */
  readonly hidden: ReadonlyArray<string>
}

const isHidden = (name: string): boolean => /^\.~fsa-.*\.tmp$/.test(name)

/** Reads a tree with nothing but `node:fs`. `tail` is the record that was being appended. */
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

/** What a journal does when it is opened: a broken record at the end goes. */
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
