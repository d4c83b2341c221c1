/**
 * What the last capture saw, for the next process: without it every file would be read again. It is a hint and nothing else, so what is
 * missing, cut off or of another root is no error. A code of this installation stands before it: otherwise a store that somebody has
 * prepared could claim for a file content that it does not have.
 */
import { createHash, Fs, join, randomBytes } from "../../runtime/node.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Installation from "../../runtime/installation.ts"
import { type Known, type Scan, stampOf } from "../scan.ts"
import type { DirectoryNode, Node } from "../tree.ts"

export interface Remembered {
  readonly scan: Scan
  /** The packs that the store had then. */
  readonly packs: ReadonlyArray<string>
}

const version = 1

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** The text that the code is made of. Its first word keeps it apart from other texts of this installation. */
const signed = (text: string): string => `seen ${hashOf(text)}`

const codeLength = 32

/** Opens no link, and does not wait at a pipe. */
const readable = Fs.constants.O_RDONLY | (Fs.constants.O_NOFOLLOW ?? 0) | (Fs.constants.O_NONBLOCK ?? 0)

/** One name for each root that shares the store. */
const fileOf = (directory: string, root: string): string =>
  join(directory, `seen-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`)

/** Name, id or ">" and target, mode, size, and what the disk told: times, inode and mode; times of -1 vouch for nothing. */
type Leaf = readonly [string, string, number | null, number, number, number, number, number]

const Written = Schema.Struct({
  version: Schema.Literal(version),
  root: Schema.String,
  began: Schema.Finite,
  files: Schema.Int,
  bytes: Schema.Finite,
  directories: Schema.Int,
  others: Schema.Int,
  packs: Schema.Array(Schema.String)
})

/** A directory; those in it follow, each with all that is in it. */
type Line = readonly [mode: number | null, id: string, directories: ReadonlyArray<string>, leaves: ReadonlyArray<Leaf>]

const nothing = { modified: -1, changed: -1, inode: 0, mode: 0 }

const leafOf = (segment: string, node: Known): Leaf => {
  const { changed, inode, mode, modified } = node.stamp ?? nothing
  return node.kind === "file"
    ? [segment, node.id, node.mode ?? null, node.sizeBytes, modified, changed, inode, mode]
    : [segment, `>${node.target}`, null, node.stamp?.sizeBytes ?? 0, modified, changed, inode, mode]
}

const lineOf = (self: DirectoryNode): Line => {
  const directories: Array<string> = []
  const leaves: Array<Leaf> = []
  for (const [segment, node] of self.entries) {
    if (node.kind === "directory") directories.push(segment)
    else leaves.push(leafOf(segment, node))
  }
  return [self.mode ?? null, self.id ?? "", directories, leaves]
}

/** Each directory before those in it, in their order. */
const lines = function* (top: DirectoryNode): Generator<string> {
  const pending = [top]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    yield JSON.stringify(lineOf(next))
    for (const node of [...next.entries.values()].reverse()) if (node.kind === "directory") pending.push(node)
  }
}

/** Directories before others have their turn. */
const slice = 200

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** At once, or not at all: who is killed meanwhile leaves the old one. */
export const save = (directory: string, root: string, { packs, scan }: Remembered): Effect.Effect<void> =>
  Effect.promise(async () => {
    const { tree, ...counts } = scan
    const temporary = join(directory, `tmp_seen_${randomBytes(9).toString("hex")}`)
    try {
      const parts = [JSON.stringify({ version, root, ...counts, packs })]
      for (const line of lines(tree)) if (parts.push(line) % slice === 0) await turn()
      const text = `${parts.join("\n")}\n`
      await Fs.promises.writeFile(temporary, `${Installation.codeOf(signed(text))}\n${text}`, { mode: 0o600, flag: "wx" })
      await Fs.promises.rename(temporary, fileOf(directory, root))
    } catch {
      await Fs.promises.rm(temporary, { force: true }).catch(() => {})
    }
  })

const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(Written))

const nodeOf = ([, what, mode, sizeBytes, modified, changed, inode, bits]: Leaf): Known => {
  const stamp = stampOf({ sizeBytes, mode: bits, modified, changed, inode })
  return what.startsWith(">")
    ? { kind: "symlink", target: what.slice(1), stamp }
    : { kind: "file", id: what, sizeBytes, ...(mode === null ? undefined : { mode }), stamp }
}

interface Open {
  readonly entries: Map<string, Node>
  /** Directories in it that are still to come, the next one last. */
  readonly left: Array<string>
  readonly finish: () => DirectoryNode
}

const opened = ([mode, id, directories, leaves]: Line): Open => {
  const entries = new Map<string, Node>()
  for (const leaf of leaves) entries.set(leaf[0], nodeOf(leaf))
  return {
    entries,
    left: directories.toReversed(),
    finish: () => ({
      kind: "directory",
      entries,
      ...(mode === null ? undefined : { mode }),
      ...(id === "" ? undefined : { id })
    })
  }
}

/** Throws for what was not written by `save`. */
const treeOf = async (text: ReadonlyArray<string>): Promise<DirectoryNode> => {
  const open: Array<Open> = [opened(JSON.parse(text[0]!) as Line)]
  let at = 1
  for (;;) {
    const here = open.at(-1)!
    const name = here.left.pop()
    if (name !== undefined) {
      const below = opened(JSON.parse(text[at++]!) as Line)
      if (at % slice === 0) await turn()
      const holder = here.entries
      const named: Open = {
        ...below,
        finish: () => {
          const node = below.finish()
          holder.set(name, node)
          return node
        }
      }
      open.push(named)
      continue
    }
    const node = open.pop()!.finish()
    if (open.length === 0) return node
  }
}

const readWhole = async (path: string): Promise<string> => {
  const handle = await Fs.promises.open(path, readable)
  try {
    return (await handle.stat()).isFile() ? await handle.readFile("utf8") : ""
  } finally {
    await handle.close()
  }
}

/** Returns `undefined` where nothing is remembered of this root, or not as this installation wrote it. */
export const load = (directory: string, root: string): Effect.Effect<Remembered | undefined> =>
  Effect.promise(async () => {
    try {
      const all = await readWhole(fileOf(directory, root))
      const text = all.slice(codeLength + 1)
      if (!Installation.isCodeOf(signed(text), all.slice(0, codeLength))) return undefined
      const [first = "", ...rest] = text.trimEnd().split("\n")
      const head = Option.getOrUndefined(decodeHead(first))
      if (head === undefined || head.root !== root) return undefined
      const { packs, root: _, version: __, ...counts } = head
      return { scan: { tree: await treeOf(rest), ...counts }, packs }
    } catch {
      return undefined
    }
  })
