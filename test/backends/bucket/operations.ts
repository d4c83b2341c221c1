/** Every operation as data, on objects that the tests plant and read without the library. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import type { Algebra } from "../../../src/filesystem/Filesystem.ts"
import { aws, keysBelow, type Server, urlOf } from "./servers.ts"

export type Tree = Readonly<Record<string, string>>

export interface Case {
  readonly name: string
  readonly run: (fs: Algebra) => Effect.Effect<unknown, unknown>
  /** The result of a call that reads. */
  readonly answer?: unknown
  /** Returns the trees between the old and the new one that a failed call may leave, for calls that are documented so. */
  readonly between?: (before: Tree, after: Tree) => ReadonlyArray<Tree>
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** A content of more than one part, which is sent in parts. */
const large = new Uint8Array(6 * 1024 * 1024).fill(120)

/** The sizes of a backend that divides streams into parts of the least size that S3 permits. */
export const sizes = { part: 5 * 1024 * 1024 }

export const cases: ReadonlyArray<Case> = [
  {
    name: "stat",
    run: (fs) => Effect.map(fs.stat("d/a.txt"), ({ kind, sizeBytes }) => [kind, sizeBytes]),
    answer: ["file", 4]
  },
  {
    name: "list",
    run: (fs) => Effect.map(fs.list("d"), (entries) => entries.map(({ name }) => name)),
    answer: ["a.txt", "empty"]
  },
  { name: "readString", run: (fs) => fs.readString("d/a.txt"), answer: "old\n" },
  { name: "write in mode create", run: (fs) => fs.write("d/new.txt", "new\n", { mode: "create" }) },
  { name: "write in mode replace", run: (fs) => fs.write("d/a.txt", "new\n") },
  { name: "edit", run: (fs) => fs.edit("d/a.txt", { oldText: "old", newText: "new" }) },
  { name: "append", run: (fs) => fs.write("d/a.txt", "more\n", { mode: "append" }) },
  { name: "sink", run: (fs) => Stream.run(Stream.make(encode("from a stream\n")), fs.sink("d/a.txt")) },
  { name: "sink of several parts", run: (fs) => Stream.run(Stream.make(large, encode("end")), fs.sink("d/a.txt")) },
  { name: "mkdir", run: (fs) => fs.mkdir("d/made") },
  { name: "copy", run: (fs) => fs.copy("d/a.txt", "d/copy.txt") },
  { name: "delete of a file", run: (fs) => fs.delete("b.txt") },
  { name: "delete of the only file of a directory", run: (fs) => fs.delete("one/only.txt") },
  { name: "delete of a directory", run: (fs) => fs.delete("d/empty") },
  {
    name: "delete of a tree",
    run: (fs) => fs.delete("d", { recursive: true }),
    between: (before) => {
      const names = Object.keys(before).filter((name) => /^d\/(a\.txt|empty)$/.test(name))
      return names.map((name) => Object.fromEntries(Object.entries(before).filter(([other]) => other !== name)))
    }
  },
  {
    name: "move",
    run: (fs) => fs.move("b.txt", "d/moved.txt"),
    between: (before, after) => [{ ...before, ...after }]
  },
  {
    name: "move over a file",
    run: (fs) => fs.move("b.txt", "d/a.txt", { overwrite: true }),
    between: (before, after) => [{ ...before, ...after }]
  },
  { name: "symlink", run: (fs) => fs.symlink("link", "d/a.txt") },
  {
    name: "setAttributes",
    run: (fs) => fs.setAttributes("mode.txt", { mode: 0o600, modifiedAt: DateTime.makeUnsafe(1_200_000_000_000) })
  }
]

const put = async (server: Server, key: string, body: string, headers: Record<string, string> = {}): Promise<void> => {
  const answer = await aws.fetch(urlOf(server, key), { method: "PUT", body, headers })
  if (answer.status !== 200) throw new Error(`the server answered ${answer.status}`)
}

export const plantTree = async (server: Server, prefix: string): Promise<void> => {
  await Promise.all([
    put(server, `${prefix}d/a.txt`, "old\n"),
    put(server, `${prefix}d/empty/`, ""),
    put(server, `${prefix}one/only.txt`, "only\n"),
    put(server, `${prefix}b.txt`, "other\n"),
    put(server, `${prefix}mode.txt`, "m", { "x-amz-meta-fs-algebra-mode": "640" })
  ])
}

/** Reads the tree without the library: directories, contents, link targets, and the mode and time of `mode.txt`. */
export const treeOf = async (server: Server, prefix: string): Promise<Tree> => {
  const tree: Record<string, string> = {}
  const read = async (key: string): Promise<void> => {
    for (let at = key.indexOf("/"); at !== -1; at = key.indexOf("/", at + 1)) tree[key.slice(0, at)] = "/"
    if (key.endsWith("/")) return
    const answer = await aws.fetch(urlOf(server, prefix + key))
    const bytes = new Uint8Array(await answer.arrayBuffer())
    const meta = (name: string) => answer.headers.get(`x-amz-meta-fs-algebra-${name}`)
    const content = bytes.length < 100 ? new TextDecoder().decode(bytes) : createHash("sha256").update(bytes).digest("hex")
    tree[key] = meta("link") === null ? content : `-> ${decodeURIComponent(meta("link")!)}`
    if (key === "mode.txt") tree[key] += ` ${meta("mode")} ${meta("mtime")}`
  }
  await Promise.all((await keysBelow(server, prefix)).map(read))
  return Object.fromEntries(Object.entries(tree).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Returns the keys below a prefix that have parts of uploads that were neither completed nor ended. An upload without parts is
 * not counted: the start of an upload whose answer was lost leaves one, and no program can tell whose it is.
 */
export const partsBelow = async ({ bucket, endpoint }: Server, prefix: string): Promise<ReadonlyArray<string>> => {
  const answer = await aws.fetch(`${endpoint}/${bucket}?uploads=&prefix=${encodeURIComponent(prefix)}`)
  const keys: Array<string> = []
  for (const [, key, id] of (await answer.text()).matchAll(
    /<Upload>.*?<Key>([^<]*)<\/Key>.*?<UploadId>([^<]*)<.*?<\/Upload>/gs
  )) {
    const parts = await aws.fetch(`${endpoint}/${bucket}/${key}?uploadId=${encodeURIComponent(id!)}`)
    keys.push(...[...(await parts.text()).matchAll(/<Part>/g)].map(() => key!))
  }
  return keys
}
