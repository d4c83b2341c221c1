/**
 * Stores the last scan for the next process, which otherwise would read every file again.
 *
 * The data is only a hint, so a missing, truncated or foreign file is no error. A code of this installation
 * authenticates the data. Otherwise an attacker could prepare a store that claims wrong content for a file.
 */
import { createHash, Fs, join, randomBytes } from "../../runtime/node.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Installation from "../../runtime/installation.ts"
import type { StampedNode, Scan } from "../scan.ts"
import { stampOf } from "../stamp.ts"
import type { DirectoryNode, Node } from "../tree.ts"

export interface SavedScan {
  readonly scan: Scan
  readonly packs: ReadonlyArray<string>
}

const version = 1

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Returns the text to authenticate. The first word separates it from other texts of this installation. */
const authenticatedText = (text: string): string => `seen ${hashOf(text)}`

const codeLength = 32

/** Flags that do not follow a symlink and do not block on a pipe. */
const readFlags = Fs.constants.O_RDONLY | (Fs.constants.O_NOFOLLOW ?? 0) | (Fs.constants.O_NONBLOCK ?? 0)

const fileOf = (directory: string, root: string): string =>
  join(directory, `seen-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`)

/** Name, id or ">" with the target, mode, size, and the stamp: two times, inode, mode. Times of -1 never match. */
type LeafRow = readonly [string, string, number | null, number, number, number, number, number]

const ScanHeader = Schema.Struct({
  version: Schema.Literal(version),
  root: Schema.String,
  began: Schema.Finite,
  files: Schema.Int,
  bytes: Schema.Finite,
  directories: Schema.Int,
  others: Schema.Int,
  packs: Schema.Array(Schema.String)
})

type DirectoryRow = readonly [
  mode: number | null,
  id: string,
  directories: ReadonlyArray<string>,
  leaves: ReadonlyArray<LeafRow>
]

const noStamp = { modified: -1, changed: -1, inode: 0, mode: 0 }

const leafOf = (segment: string, node: StampedNode): LeafRow => {
  const { changed, inode, mode, modified } = node.stamp ?? noStamp
  return node.kind === "file"
    ? [segment, node.id, node.mode ?? null, node.sizeBytes, modified, changed, inode, mode]
    : [segment, `>${node.target}`, null, node.stamp?.sizeBytes ?? 0, modified, changed, inode, mode]
}

const lineOf = (self: DirectoryNode): DirectoryRow => {
  const directories: Array<string> = []
  const leaves: Array<LeafRow> = []
  for (const [segment, node] of self.entries) {
    if (node.kind === "directory") directories.push(segment)
    else leaves.push(leafOf(segment, node))
  }
  return [self.mode ?? null, self.id ?? "", directories, leaves]
}

const lines = function* (top: DirectoryNode): Generator<string> {
  const pending = [top]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    yield JSON.stringify(lineOf(next))
    for (const node of [...next.entries.values()].reverse()) if (node.kind === "directory") pending.push(node)
  }
}

const directoriesPerYield = 200

const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Saves a scan atomically: a process killed meanwhile leaves the old file. */
export const save = (directory: string, root: string, { packs, scan }: SavedScan): Effect.Effect<void> =>
  Effect.promise(async () => {
    const { tree, ...counts } = scan
    const temporary = join(directory, `tmp_seen_${randomBytes(9).toString("hex")}`)
    try {
      const parts = [JSON.stringify({ version, root, ...counts, packs })]
      for (const line of lines(tree)) if (parts.push(line) % directoriesPerYield === 0) await yieldToEventLoop()
      const text = `${parts.join("\n")}\n`
      await Fs.promises.writeFile(temporary, `${Installation.signName(authenticatedText(text))}\n${text}`, {
        mode: 0o600,
        flag: "wx"
      })
      await Fs.promises.rename(temporary, fileOf(directory, root))
    } catch {
      await Fs.promises.rm(temporary, { force: true }).catch(() => {})
    }
  })

const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(ScanHeader))

const nodeOf = ([, idOrTarget, mode, sizeBytes, modified, changed, inode, bits]: LeafRow): StampedNode => {
  const stamp = stampOf({ sizeBytes, mode: bits, modified, changed, inode })
  return idOrTarget.startsWith(">")
    ? { kind: "symlink", target: idOrTarget.slice(1), stamp }
    : { kind: "file", id: idOrTarget, sizeBytes, ...(mode === null ? undefined : { mode }), stamp }
}

interface OpenDirectory {
  readonly entries: Map<string, Node>
  readonly pendingNames: Array<string>
  readonly finish: () => DirectoryNode
}

const openDirectory = ([mode, id, directories, leaves]: DirectoryRow): OpenDirectory => {
  const entries = new Map<string, Node>()
  for (const leaf of leaves) entries.set(leaf[0], nodeOf(leaf))
  return {
    entries,
    pendingNames: directories.toReversed(),
    finish: () => ({
      kind: "directory",
      entries,
      ...(mode === null ? undefined : { mode }),
      ...(id === "" ? undefined : { id })
    })
  }
}

/** Parses the lines back into a tree. Throws if `save` did not write them. */
const treeOf = async (text: ReadonlyArray<string>): Promise<DirectoryNode> => {
  const open: Array<OpenDirectory> = [openDirectory(JSON.parse(text[0]!) as DirectoryRow)]
  let at = 1
  for (;;) {
    const here = open.at(-1)!
    const name = here.pendingNames.pop()
    if (name !== undefined) {
      const below = openDirectory(JSON.parse(text[at++]!) as DirectoryRow)
      if (at % directoriesPerYield === 0) await yieldToEventLoop()
      const holder = here.entries
      const named: OpenDirectory = {
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
  const handle = await Fs.promises.open(path, readFlags)
  try {
    return (await handle.stat()).isFile() ? await handle.readFile("utf8") : ""
  } finally {
    await handle.close()
  }
}

/** Returns the saved scan of this root, or `undefined` if there is none or this installation did not write it. */
export const load = (directory: string, root: string): Effect.Effect<SavedScan | undefined> =>
  Effect.promise(async () => {
    try {
      const all = await readWhole(fileOf(directory, root))
      const text = all.slice(codeLength + 1)
      if (!Installation.isSignatureOf(authenticatedText(text), all.slice(0, codeLength))) return undefined
      const [first = "", ...rest] = text.trimEnd().split("\n")
      const head = Option.getOrUndefined(decodeHead(first))
      if (head === undefined || head.root !== root) return undefined
      const { packs, root: _, version: __, ...counts } = head
      return { scan: { tree: await treeOf(rest), ...counts }, packs }
    } catch {
      return undefined
    }
  })
