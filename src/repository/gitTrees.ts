/** Trees and commits as git stores them. Names are checked as strictly as `git fsck` does, and may have no control character. */
import * as Result from "effect/Result"
import { plainSpelling } from "../history/git/codec.ts"
import { storeFault, type StoreFault } from "../history/errors.ts"
import type { Node } from "../history/tree.ts"
import { Buffer } from "../runtime/buffer.ts"
import { isUtf8 } from "../runtime/node.ts"

export type GitKind = "file" | "program" | "symlink" | "directory" | "submodule"

export interface GitEntry {
  readonly name: string
  readonly kind: GitKind
  readonly id: string
}

const kindByMode: ReadonlyMap<string, GitKind> = new Map([
  ["100644", "file"],
  // Git wrote this mode before 2005.
  ["100664", "file"],
  ["100755", "program"],
  ["120000", "symlink"],
  ["40000", "directory"],
  ["160000", "submodule"]
])

/** The maximum length of a name in bytes, as in a repository of this library. */
const maxNameBytes = 4096

const controlPattern = /\p{Cc}/u
const dotGitPattern = /^(?:\.git|git~1)[ .]*(?::|$)/i

/**
 * Returns why an entry of this name is not allowed, or `undefined` if the name is allowed. Refuses control characters, and every
 * spelling that some filesystem treats as `.git`.
 */
export const problemOfName = (name: string): string | undefined => {
  if (name === "") return "it is empty"
  if (name === "." || name === "..") return "it leads out of its directory"
  if (name.includes("/")) return "it has a slash"
  if (controlPattern.test(name)) return "it has a control character"
  const isDotGit = plainSpelling(name)
    .split("\\")
    .some((part) => dotGitPattern.test(part))
  return isDotGit ? "git confuses it with its own directory" : undefined
}

const shown = (path: string, name: string): string => JSON.stringify((path === "" ? name : `${path}/${name}`).slice(0, 200))

const refused = (detail: string): Result.Result<never, StoreFault> => Result.fail(storeFault("refused", detail))

/** Decodes a tree. Fails for a tree that `git fsck --strict` refuses, and for names that are not UTF-8. */
export const decodeTree = (path: string, body: Buffer): Result.Result<ReadonlyArray<GitEntry>, StoreFault> => {
  const entries: Array<GitEntry> = []
  const names = new Set<string>()
  let before = ""
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(32, at)
    const end = body.indexOf(0, at)
    if (space === -1 || end < space || end + 21 > body.length) return refused(`the tree of ${shown(path, ".")} is truncated`)
    if (end - space > maxNameBytes + 1) {
      return refused(`a name in the directory ${shown(path, ".")} has more than ${maxNameBytes} bytes`)
    }
    const bytes = body.subarray(space + 1, end)
    const name = bytes.toString()
    const place = shown(path, name)
    const mode = body.toString("latin1", at, Math.min(space, at + 7))
    const kind = kindByMode.get(mode)
    if (kind === undefined) return refused(`${place} has the unknown mode ${JSON.stringify(mode)}`)
    if (!isUtf8(bytes)) return refused(`the name ${place} is not UTF-8; rename the file in the repository`)
    const problem = problemOfName(name)
    if (problem !== undefined) return refused(`the name ${place} is not allowed: ${problem}`)
    const key = bytes.toString("latin1") + (kind === "directory" ? "/" : "")
    if (names.has(name)) return refused(`the tree has ${place} twice`)
    if (key <= before) return refused(`the tree has ${place} in the wrong order`)
    entries.push({ name, kind, id: body.toString("hex", end + 1, end + 21) })
    names.add(name)
    before = key
    at = end + 21
  }
  return Result.succeed(entries)
}

const modeOf = (node: Node): string => {
  if (node.kind === "directory") return "40000"
  if (node.kind === "symlink") return "120000"
  return node.mode !== undefined && (node.mode & 0o100) !== 0 ? "100755" : "100644"
}

/** Encodes a tree. The caller must have checked the names. */
export const encodeTree = (entries: Iterable<readonly [name: string, node: Node, id: string]>): Buffer => {
  const rows = Array.from(entries, ([name, node, id]) => {
    const bytes = Buffer.from(name)
    return { key: bytes.toString("latin1") + (node.kind === "directory" ? "/" : ""), bytes, mode: modeOf(node), id }
  }).sort((a, b) => (a.key < b.key ? -1 : 1))
  return Buffer.concat(
    rows.flatMap(({ bytes, id, mode }) => [Buffer.from(`${mode} `), bytes, Buffer.of(0), Buffer.from(id, "hex")])
  )
}

export interface CommitFields {
  readonly tree: string
  readonly parent: string | undefined
  /** The name and the address, as in `Ann <ann@example.org>`. */
  readonly author: string
  readonly seconds: number
  readonly message: string
}

export const encodeCommit = ({ author, message, parent, seconds, tree }: CommitFields): Buffer =>
  Buffer.from(
    `tree ${tree}\n${parent === undefined ? "" : `parent ${parent}\n`}author ${author} ${seconds} +0000\n` +
      `committer ${author} ${seconds} +0000\n\n${message.replaceAll("\0", "\ufffd")}${message.endsWith("\n") ? "" : "\n"}`
  )

/** Returns the tree of a commit, or `undefined` for other bytes. */
export const treeOfCommit = (body: Buffer): string | undefined =>
  /^tree ([0-9a-f]{40})\n/.exec(body.toString("latin1", 0, 46))?.[1]
