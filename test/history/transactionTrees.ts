/** Trees as plain values. Helpers write and read them on disk without the code under test. */
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import type { TransactionGoal } from "../../src/history/transaction.ts"
import type { DirectoryNode, Node } from "../../src/history/tree.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Request from "../../src/port/Request.ts"

export interface Tree {
  readonly mode: number
  readonly entries: { readonly [name: string]: Item }
}

/** An entry of a tree. "other" is neither a file, a directory nor a link. */
export type Item = Tree | { readonly text: string; readonly mode: number } | { readonly link: string } | "other"

export const tree = (entries: Tree["entries"], mode = 0o755): Tree => ({ mode, entries })
export const file = (text: string, mode = 0o644): Item => ({ text, mode })
export const link = (target: string): Item => ({ link: target })

export const p = (path: string): FsPath => path as FsPath

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Returns the id of a blob in git. */
const idOf = (bytes: Uint8Array): string => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")

const isTree = (item: Item): item is Tree => typeof item === "object" && "entries" in item

const nodeOfItem = (item: Item): Node | undefined => {
  if (item === "other") return undefined
  if (isTree(item)) return nodeOf(item)
  if ("link" in item) return { kind: "symlink", target: item.link }
  const bytes = bytesOf(item.text)
  return { kind: "file", mode: item.mode, sizeBytes: bytes.length, id: idOf(bytes) }
}

export const nodeOf = (self: Tree): DirectoryNode => ({
  kind: "directory",
  mode: self.mode,
  entries: new Map(
    Object.entries(self.entries).flatMap(([name, item]) => {
      const node = nodeOfItem(item)
      return node === undefined ? [] : [[name, node] as const]
    })
  )
})

export const at = (self: Tree, path: string): Item => {
  let item: Item = self
  for (const name of path.split("/")) item = (item as Tree).entries[name]!
  return item
}

const pieces = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const out: Array<Uint8Array> = []
  const size = Math.max(7, Math.ceil(bytes.length / 5))
  for (let start = 0; start < bytes.length; start += size) out.push(bytes.slice(start, start + size))
  return out
}

/** Returns the goal of a transaction that turns one tree into another. Every second file comes as a stream. */
export const goalOf = (before: Tree, after: Tree): TransactionGoal<never> => {
  let given = 0
  return {
    before: nodeOf(before),
    after: nodeOf(after),
    content: (path) =>
      Effect.sync(() => {
        const bytes = bytesOf((at(after, path) as { readonly text: string }).text)
        return given++ % 2 === 0 ? bytes : Stream.fromIterable(pieces(bytes))
      })
  }
}

/** Plants a tree on the disk. Modes are set last, children before parents. */
export const plant = (root: string, self: Tree): void => {
  Fs.mkdirSync(root, { recursive: true })
  for (const [name, item] of Object.entries(self.entries)) {
    const path = join(root, name)
    if (item === "other") throw new Error("not by this way")
    if (isTree(item)) plant(path, item)
    else if ("link" in item) Fs.symlinkSync(item.link, path)
    else {
      Fs.writeFileSync(path, item.text)
      Fs.chmodSync(path, item.mode)
    }
  }
  Fs.chmodSync(root, self.mode)
}

/** Returns the paths of the entries that are equal in both trees. */
export const common = (self: Tree, that: Tree, path = ""): ReadonlyArray<string> => {
  const out = [path]
  for (const [name, item] of Object.entries(self.entries)) {
    const other = that.entries[name]
    const at = join(path, name)
    if (isTree(item) && other !== undefined && isTree(other)) out.push(...common(item, other, at))
    else if (isDeepStrictEqual(item, other)) out.push(at)
  }
  return out
}

const sorted = (entries: Record<string, Item>): Record<string, Item> =>
  Object.fromEntries(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1)))

export const ordered = (self: Tree): Tree => ({
  mode: self.mode,
  entries: sorted(
    Object.fromEntries(Object.entries(self.entries).map(([name, item]) => [name, isTree(item) ? ordered(item) : item]))
  )
})

/** Reads every entry on the disk, hidden or not. */
export const look = (root: string): Tree => {
  const entries: Record<string, Item> = {}
  for (const name of Fs.readdirSync(root)) {
    const path = join(root, name)
    const stat = Fs.lstatSync(path)
    const mode = stat.mode & 0o777
    entries[name] = stat.isDirectory()
      ? look(path)
      : stat.isSymbolicLink()
        ? link(Fs.readlinkSync(path))
        : stat.isFile()
          ? file(Fs.readFileSync(path, "utf8"), mode)
          : "other"
  }
  return { mode: Fs.statSync(root).mode & 0o777, entries: sorted(entries) }
}

/** Returns the inode and, for files, the modification time of every entry. */
export const identities = (root: string): Map<string, string> => {
  const out = new Map<string, string>()
  for (const name of ["", ...Fs.readdirSync(root, { recursive: true, encoding: "utf8" })]) {
    const stat = Fs.lstatSync(join(root, name), { bigint: true })
    out.set(name, stat.isDirectory() ? String(stat.ino) : `${stat.ino} ${stat.mtimeNs}`)
  }
  return out
}

/** Plants a tree through a port. */
export const plantIn = Effect.fnUntraced(function* (
  port: Backend,
  self: Tree,
  path: string = "."
): Effect.fn.Return<void, Fault> {
  for (const [name, item] of Object.entries(self.entries)) {
    const child = path === "." ? name : `${path}/${name}`
    if (item === "other") throw new Error("not by this way")
    if (isTree(item)) {
      if ((yield* port.stat(p(child))) === undefined) yield* port.makeDirectory(p(child))
      yield* plantIn(port, item, child)
    } else if ("link" in item) yield* port.links!.make(p(child), item.link)
    else {
      yield* port.write<never, never>(p(child), bytesOf(item.text), "create")
      yield* port.attributes!.set(p(child), { mode: item.mode })
    }
  }
  yield* port.attributes!.set(p(path), { mode: self.mode })
})

export const lookIn = Effect.fnUntraced(function* (port: Backend, path: string = "."): Effect.fn.Return<Tree, Fault> {
  const entries: Record<string, Item> = {}
  for (const { kind, name } of yield* port.list(p(path))) {
    const child = path === "." ? name : `${path}/${name}`
    if (kind === "directory") entries[name] = yield* lookIn(port, child)
    else if (kind === "symlink") entries[name] = link(yield* port.links!.read(p(child)))
    else {
      const bytes = yield* Effect.scoped(Effect.flatMap(port.open(p(child)), (handle) => handle.read(0, handle.stat.sizeBytes)))
      entries[name] = file(new TextDecoder().decode(bytes), (yield* port.stat(p(child)))!.mode!)
    }
  }
  return { mode: (yield* port.stat(p(path)))!.mode!, entries: sorted(entries) }
})

const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(
    Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: values.length - 1 }))),
    (i) => values[i]!
  )

const name = oneOf(["a", "b", "c", "d", "é 1", "%fs", ".git", "a\\b", "-rf", "日😀"])
const path = Arbitrary.array(name, { minLength: 1, maxLength: 4 })
const fileMode = oneOf([0o644, 0o644, 0o644, 0o755, 0o600, 0o444, 0o000])
const directoryMode = oneOf([0o755, 0o755, 0o755, 0o700, 0o555, 0o500])
const text = oneOf(["", "x", "one\r\ntwo\n", "é😀", "y".repeat(3000)])
const what: Arbitrary.Arbitrary<"file" | "link" | "directory"> = oneOf(["file", "file", "file", "link", "directory"])
const target = oneOf(["a", "../b", "nothing", "a/b"])

interface Growing {
  mode: number
  readonly entries: Record<string, Item | Growing>
}

/** Random trees with few names and little content, so that two trees have many equal entries. */
export const trees: Arbitrary.Arbitrary<Tree> = Arbitrary.map(
  Arbitrary.all([
    directoryMode,
    Arbitrary.array(Arbitrary.all({ path, what, text, target, fileMode, directoryMode }), { maxLength: 14 })
  ]),
  ([mode, parts]) => {
    const top: Growing = { mode, entries: {} }
    for (const part of parts) {
      let here: Growing | undefined = top
      for (const name of part.path.slice(0, -1)) {
        const next: Item | Growing = (here.entries[name] ??= { mode: part.directoryMode, entries: {} })
        here = typeof next === "object" && "entries" in next ? (next as Growing) : undefined
        if (here === undefined) break
      }
      const last = part.path.at(-1)!
      if (here === undefined || last in here.entries) continue
      here.entries[last] =
        part.what === "file"
          ? file(part.text, part.fileMode)
          : part.what === "link"
            ? link(part.target)
            : { mode: part.directoryMode, entries: {} }
    }
    return ordered(top as Tree)
  }
)

/** Returns the paths at which two trees differ. */
export const unlike = (found: Tree, expected: Tree, path = ""): ReadonlyArray<string> => {
  const out: Array<string> = []
  if (found.mode !== expected.mode) out.push(`${path || "."} ${found.mode.toString(8)}, not ${expected.mode.toString(8)}`)
  for (const name of new Set([...Object.keys(found.entries), ...Object.keys(expected.entries)])) {
    const [one, other] = [found.entries[name], expected.entries[name]]
    const at = path === "" ? name : `${path}/${name}`
    if (one !== undefined && other !== undefined && isTree(one) && isTree(other)) out.push(...unlike(one, other, at))
    else if (!isDeepStrictEqual(one, other))
      out.push(one === undefined ? `${at} is missing` : other === undefined ? `${at} is there` : at)
  }
  return out
}

/** Returns a pair of trees with an entry for every kind of conversion. Files over a megabyte are not copied aside. */
export const allKinds = (size = 1_100_000): { readonly before: Tree; readonly after: Tree } => ({
  before: tree(
    {
      same: file("same", 0o640),
      changed: file("old"),
      large: file("o".repeat(size)),
      bits: file("bits", 0o600),
      turned: link("same"),
      "file to link": file("text"),
      "link to file": link("nothing"),
      "file to directory": file("flat"),
      "directory to file": tree({ inner: file("1"), deeper: tree({ x: file("2") }, 0o555) }),
      "directory to link": tree({}),
      gone: file("gone"),
      "tree gone": tree({ sub: tree({ f: file("f"), l: link("f") }, 0o500), e: tree({}) }, 0o555),
      closed: tree({ changed: file("1", 0o444), gone: file("2"), same: file("3") }, 0o555),
      opening: tree({ gone: file("1") }, 0o500),
      closing: tree({ same: file("1") })
    },
    0o755
  ),
  after: tree(
    {
      same: file("same", 0o640),
      changed: file("new and longer"),
      large: file("n".repeat(size), 0o600),
      bits: file("bits", 0o755),
      turned: link("../elsewhere"),
      "file to link": link("same"),
      "link to file": file("text", 0o400),
      "file to directory": tree({ inner: tree({}) }, 0o555),
      "directory to file": file("flat"),
      "directory to link": link("."),
      "new tree": tree({ sub: tree({ f: file("1", 0o755), e: tree({}, 0o700) }, 0o555), l: link("sub/f") }, 0o500),
      new: file("new"),
      closed: tree({ changed: file("2", 0o444), new: tree({}), same: file("3") }, 0o555),
      opening: tree({ new: file("1") }, 0o755),
      closing: tree({ same: file("1"), new: file("2") }, 0o500)
    },
    0o700
  )
})

/** Creates the entries of `MakeMany` one by one, each with `step`, so that a process can end between two of them. */
export const oneByOne = (
  { perform }: Backend,
  step: <A>(work: Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
): Request.Perform | undefined =>
  Request.override(perform, (perform) => ({
    MakeMany: ({ entries }) =>
      Effect.map(
        Effect.forEach(entries, (entry) => step(perform({ _tag: "MakeMany", entries: [entry] }))),
        (all) => Option.some(all.map((made) => Option.isSome(made) && made.value[0] === true))
      )
  }))
