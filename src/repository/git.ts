/** Copies files between a commit of a git repository and a filesystem, in both directions. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { SnapshotError, storeFault, type StoreFault } from "../history/errors.ts"
import { emptyTreeId, plainSpelling } from "../history/git/codec.ts"
import { idOf, isId } from "../history/git/objects.ts"
import * as PackWriter from "../history/git/packWriter.ts"
import * as Process from "../history/git/process.ts"
import * as Reader from "../history/git/reader.ts"
import { replaceTree } from "../history/replace.ts"
import { type ContentSink, maxWholeFileBytes, scan } from "../history/scan.ts"
import type { Mismatch } from "../history/transaction.ts"
import type { DirectoryNode, Node } from "../history/tree.ts"
import type { Fault } from "../model/Fault.ts"
import { type FsError, promote } from "../model/FsError.ts"
import { root } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { Buffer } from "../runtime/buffer.ts"
import { Fs, isUtf8, join, resolve } from "../runtime/node.ts"

/**
 * The source of an import.
 *
 * @since 0.1.0
 */
export interface GitImportOptions {
  /** The path of the git repository: a directory with `.git`, or a bare repository. */
  readonly directory: string
  /** The commit: a branch, a tag, an id, or another revision expression of git. @default "HEAD" */
  readonly ref?: string | undefined
}

/**
 * The target of an export.
 *
 * @since 0.1.0
 */
export interface GitExportOptions {
  /** The path of the git repository, which must exist. */
  readonly directory: string
  /**
   * The branch, or another reference by its full name, such as `refs/notes/export`. The reference is created if it does not
   * exist.
   */
  readonly ref: string
  /** @default "Export" */
  readonly message?: string | undefined
  /** The author in git's notation. @default "fs-algebra <fs-algebra@localhost>" */
  readonly author?: string | undefined
}

/**
 * An entry that was not copied.
 *
 * @since 0.1.0
 */
export interface GitSkipped {
  readonly path: string
  readonly why: "submodule" | "emptyDirectory"
}

/**
 * The result of an import or an export.
 *
 * @since 0.1.0
 */
export interface GitResult {
  /** The id of the commit. */
  readonly commit: string
  /** The number of paths that were added, changed or removed. */
  readonly changes: number
  readonly skipped: ReadonlyArray<GitSkipped>
}

// Trees and commits as git stores them. Names are checked as strictly as `git fsck` does, and may have no control character.

const controlPattern = /\p{Cc}/u

type GitKind = "file" | "program" | "symlink" | "directory" | "submodule"

interface GitEntry {
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

const dotGitPattern = /^(?:\.git|git~1)[ .]*(?::|$)/i

/**
 * Returns why an entry of this name is not allowed, or `undefined` if the name is allowed. Refuses control characters, and every
 * spelling that some filesystem treats as `.git`.
 */
const problemOfName = (name: string): string | undefined => {
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

const refusedTree = (detail: string): Result.Result<never, StoreFault> => Result.fail(storeFault("refused", detail))

/** Decodes a tree. Fails for a tree that `git fsck --strict` refuses, and for names that are not UTF-8. */
const decodeTree = (path: string, body: Buffer): Result.Result<ReadonlyArray<GitEntry>, StoreFault> => {
  const entries: Array<GitEntry> = []
  const names = new Set<string>()
  let before = ""
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(32, at)
    const end = body.indexOf(0, at)
    if (space === -1 || end < space || end + 21 > body.length)
      return refusedTree(`the tree of ${shown(path, ".")} is truncated`)
    if (end - space > maxNameBytes + 1) {
      return refusedTree(`a name in the directory ${shown(path, ".")} has more than ${maxNameBytes} bytes`)
    }
    const bytes = body.subarray(space + 1, end)
    const name = bytes.toString()
    const place = shown(path, name)
    const mode = body.toString("latin1", at, Math.min(space, at + 7))
    const kind = kindByMode.get(mode)
    if (kind === undefined) return refusedTree(`${place} has the unknown mode ${JSON.stringify(mode)}`)
    if (!isUtf8(bytes)) return refusedTree(`the name ${place} is not UTF-8; rename the file in the repository`)
    const problem = problemOfName(name)
    if (problem !== undefined) return refusedTree(`the name ${place} is not allowed: ${problem}`)
    const key = bytes.toString("latin1") + (kind === "directory" ? "/" : "")
    if (names.has(name)) return refusedTree(`the tree has ${place} twice`)
    if (key <= before) return refusedTree(`the tree has ${place} in the wrong order`)
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
const encodeTree = (entries: Iterable<readonly [name: string, node: Node, id: string]>): Buffer => {
  const rows = Array.from(entries, ([name, node, id]) => {
    const bytes = Buffer.from(name)
    return { key: bytes.toString("latin1") + (node.kind === "directory" ? "/" : ""), bytes, mode: modeOf(node), id }
  }).sort((a, b) => (a.key < b.key ? -1 : 1))
  return Buffer.concat(
    rows.flatMap(({ bytes, id, mode }) => [Buffer.from(`${mode} `), bytes, Buffer.of(0), Buffer.from(id, "hex")])
  )
}

interface CommitFields {
  readonly tree: string
  readonly parent: string | undefined
  /** The name and the address, as in `Ann <ann@example.org>`. */
  readonly author: string
  readonly seconds: number
  readonly message: string
}

const encodeCommit = ({ author, message, parent, seconds, tree }: CommitFields): Buffer =>
  Buffer.from(
    `tree ${tree}\n${parent === undefined ? "" : `parent ${parent}\n`}author ${author} ${seconds} +0000\n` +
      `committer ${author} ${seconds} +0000\n\n${message.replaceAll("\0", "\ufffd")}${message.endsWith("\n") ? "" : "\n"}`
  )

/** Returns the tree of a commit, or `undefined` for other bytes. */
const treeOfCommit = (body: Buffer): string | undefined => /^tree ([0-9a-f]{40})\n/.exec(body.toString("latin1", 0, 46))?.[1]

type Problem = StoreFault | Fault | Mismatch

export type GitError = SnapshotError | FsError

const toError =
  (operation: string) =>
  (problem: Problem): GitError => {
    if (problem._tag === "StoreFault") {
      return new SnapshotError({ operation, reason: problem.reason, detail: problem.detail })
    }
    return problem._tag === "Mismatch"
      ? new SnapshotError({ operation, reason: "io", detail: `${JSON.stringify(problem.path)} changed during the call` })
      : promote(problem, operation, ".")
  }

const refused = (detail: string): Effect.Effect<never, StoreFault> => Effect.fail(storeFault("refused", detail))

const maxLinkBytes = 65_536

/** Returns the git directory of a work tree, or of a bare repository. */
const gitDirectoryOf = (directory: string): Effect.Effect<string, StoreFault> =>
  Effect.flatMap(
    Effect.sync(() => {
      try {
        const inside = join(resolve(directory), ".git")
        const stats = Fs.statSync(inside, { throwIfNoEntry: false })
        if (stats?.isDirectory() === true) return inside
        if (stats?.isFile() === true && stats.size <= maxLinkBytes) {
          const [, target] = /^gitdir: (.+?)\n?$/.exec(Fs.readFileSync(inside, "utf8")) ?? []
          return target === undefined ? undefined : resolve(directory, target)
        }
        return Fs.existsSync(join(directory, "HEAD")) && Fs.existsSync(join(directory, "objects"))
          ? resolve(directory)
          : undefined
      } catch {
        return undefined
      }
    }),
    (found) =>
      found === undefined
        ? Effect.fail(
            storeFault("unknown", "the directory is not a git repository; give the directory with .git, or a bare repository")
          )
        : Effect.succeed(found)
  )

const lineOf = (git: Process.Git, args: ReadonlyArray<string>): Effect.Effect<string, StoreFault> =>
  Effect.map(git.run(args), ({ stdout }) => stdout.toString().trimEnd())

const open = (directory: string): Effect.Effect<Process.Git, StoreFault> =>
  Effect.gen(function* () {
    const git = yield* Process.make(yield* gitDirectoryOf(directory))
    const format = yield* lineOf(git, ["rev-parse", "--show-object-format"])
    return format === "sha1" ? git : yield* refused(`repositories with ${format} ids are not supported`)
  })

/** Returns the commit of an expression, or `undefined`. */
const find = (git: Process.Git, ref: string): Effect.Effect<string | undefined, StoreFault> =>
  controlPattern.test(ref) || ref === ""
    ? Effect.succeed(undefined)
    : Effect.match(lineOf(git, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]), {
        onFailure: () => undefined,
        // For `^HEAD`, git prints the id with a "^" in front, because the expression excludes the commit.
        onSuccess: (id) => (isId(id) ? id : undefined)
      })

/** Returns the commit of a reference with exactly this name, or `undefined`. */
const findReference = (git: Process.Git, name: string): Effect.Effect<string | undefined, StoreFault> =>
  Effect.flatMap(
    Effect.match(lineOf(git, ["show-ref", "--verify", "--hash", "--", name]), {
      onFailure: () => undefined,
      onSuccess: (id) => id
    }),
    (id) => (id === undefined ? Effect.succeed(undefined) : find(git, id))
  )

/** Tests whether a branch is checked out in a work tree of the repository. */
const isCheckedOut = (git: Process.Git, name: string): Effect.Effect<boolean, StoreFault> =>
  Effect.map(lineOf(git, ["worktree", "list", "--porcelain"]), (text) => text.split("\n").includes(`branch ${name}`))

/** The maximum number of entries in a commit. A few forged objects can describe any number of entries. */
const maxEntries = 1_000_000
const maxDepth = 1_000
const sizesAtOnce = 2_000
/** The maximum size of an object that is read into memory, in bytes. A tree of a million entries with short names fits. */
const maxObjectBytes = 64 * 1024 * 1024
/** The maximum size of all trees and symlink targets together, in bytes. */
const maxTreeBytes = 256 * 1024 * 1024

interface Pending {
  readonly path: string
  readonly id: string
  readonly depth: number
  readonly into: Map<string, Node>
}

const loadTree = (reader: Reader.Reader, id: string) =>
  Effect.gen(function* () {
    const top = new Map<string, Node>()
    const skipped: Array<GitSkipped> = []
    const files: Array<{
      readonly into: Map<string, Node>
      readonly name: string
      readonly id: string
      readonly mode: number
    }> = []
    const pending: Array<Pending> = [{ path: "", id, depth: 0, into: top }]
    let count = 0
    // A few objects that refer to each other can describe many entries, so each object is read once.
    const trees = new Map<string, ReadonlyArray<GitEntry>>()
    const targets = new Map<string, string>()
    let bytes = 0
    const once = <A>(
      known: Map<string, A>,
      kind: "tree" | "blob",
      id: string,
      decode: (body: Buffer) => Result.Result<A, StoreFault>
    ): Effect.Effect<A, StoreFault> => {
      const found = known.get(id)
      if (found !== undefined) return Effect.succeed(found)
      return Effect.flatMap(bodyOf(reader, id, kind), (body) => {
        bytes += body.length
        if (bytes > maxTreeBytes) {
          return Effect.fail(
            storeFault("budget", `the directories and symlinks of the commit have more than ${maxTreeBytes} bytes`)
          )
        }
        return Effect.tap(Effect.fromResult(decode(body)), (value) => Effect.sync(() => void known.set(id, value)))
      })
    }
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const { depth, id, into, path } = next
      if (depth > maxDepth) return yield* refused("the directories of the commit are nested too deeply")
      const entries = id === emptyTreeId ? [] : yield* once(trees, "tree", id, (body) => decodeTree(path, body))
      count += entries.length
      if (count > maxEntries) return yield* Effect.fail(storeFault("budget", `the commit has more than ${maxEntries} entries`))
      for (const { id, kind, name } of entries) {
        const place = path === "" ? name : `${path}/${name}`
        if (kind === "submodule") skipped.push({ path: place, why: "submodule" })
        else if (kind === "symlink") {
          into.set(name, { kind, target: yield* once(targets, "blob", id, (body) => targetOf(place, body)) })
        } else if (kind === "directory") {
          const inner = new Map<string, Node>()
          into.set(name, { kind, entries: inner })
          pending.push({ path: place, id, depth: depth + 1, into: inner })
        } else files.push({ into, name, id, mode: kind === "program" ? 0o755 : 0o644 })
      }
    }
    for (let at = 0; at < files.length; at += sizesAtOnce) {
      const some = files.slice(at, at + sizesAtOnce)
      const sizes = yield* reader.sizes(some.map(({ id }) => id))
      for (const [n, { id, into, mode, name }] of some.entries()) {
        const found = sizes[n]
        if (found?.kind !== "blob") return yield* Effect.fail(storeFault("corrupt", `the repository has no blob ${id}`))
        into.set(name, { kind: "file", id, mode, sizeBytes: found.size })
      }
    }
    const tree: DirectoryNode = { kind: "directory", entries: top }
    return { tree, skipped }
  })

const bodyOf = (reader: Reader.Reader, id: string, kind: "tree" | "blob" | "commit"): Effect.Effect<Buffer, StoreFault> =>
  Effect.flatMap(reader.object(id), (found) =>
    found.kind === kind
      ? Effect.succeed(found.body)
      : Effect.fail(storeFault("corrupt", `the object ${id} is a ${found.kind} instead of a ${kind}`))
  )

const targetOf = (path: string, body: Buffer): Result.Result<string, StoreFault> => {
  const target = body.length > maxLinkBytes ? "" : body.toString()
  const isTarget = target !== "" && !target.includes("\0") && Buffer.from(target).equals(body)
  return isTarget
    ? Result.succeed(target)
    : Result.fail(
        storeFault(
          "refused",
          `the target of the symlink ${JSON.stringify(path)} is not a path of at most ${maxLinkBytes} bytes in UTF-8`
        )
      )
}

const importInto = (port: Backend, { directory, ref = "HEAD" }: GitImportOptions) =>
  Effect.scoped(
    Effect.gen(function* (): Effect.fn.Return<GitResult, Problem, Scope.Scope> {
      const git = yield* open(directory)
      const commit = yield* find(git, ref)
      if (commit === undefined) {
        return yield* Effect.fail(storeFault("unknown", `the repository has no commit ${JSON.stringify(ref.slice(0, 200))}`))
      }
      const reader = yield* Reader.make(git, { maxBodyBytes: maxObjectBytes })
      const tree = treeOfCommit(yield* bodyOf(reader, commit, "commit"))
      if (tree === undefined) return yield* Effect.fail(storeFault("corrupt", `the commit ${commit} names no tree`))
      const { skipped, tree: after } = yield* loadTree(reader, tree)
      const changes = yield* replaceTree<StoreFault>(port, {
        after,
        content: (_, file) =>
          file.sizeBytes > maxWholeFileBytes
            ? Effect.succeed(reader.stream(file.id))
            : Effect.map(reader.object(file.id), ({ body }) => body)
      })
      return { commit, changes: changes.length, skipped }
    })
  )

/** Makes the files of the filesystem equal to the files of a commit. Files with the same content and mode are not touched. */
export const importGit = (options: GitImportOptions): Effect.Effect<GitResult, GitError, Filesystem> =>
  Effect.flatMap(Filesystem, ({ port }) => Effect.mapError(importInto(port, options), toError("Repository.importGit")))

const authorPattern = /^[^<>\p{Cc}]*[^<>\p{Cc} ] <[^<>\p{Cc} ]*>$/u
const defaultAuthor = "fs-algebra <fs-algebra@localhost>"

const isModules = (name: string): boolean => /^(?:\.gitmodules|g[^~]{0,5}~\d+)[ .]*(?::|$)/i.test(plainSpelling(name))

/** Writes the objects of a scan into a pack, and notes the names that are not allowed. */
const makeSink = (writer: PackWriter.PackWriter) => {
  const problems: Array<string> = []
  const emptyIds = new Set([emptyTreeId])
  const sink: ContentSink<StoreFault> = {
    file: (bytes) => writer.add("blob", bytes),
    large: (size, bytes) =>
      Effect.catchIf(
        writer.addStream(size, bytes),
        (problem): problem is PackWriter.SizeMismatch => problem._tag === "SizeMismatch",
        () => Effect.succeed(undefined)
      ),
    directory: ({ entries }) => {
      const rows: Array<readonly [string, Node, string]> = []
      for (const [name, node] of entries) {
        const why =
          problemOfName(name) ??
          (isModules(name) && node.kind !== "file"
            ? "git reads settings from a file of this name, so it must be a file"
            : undefined)
        if (why !== undefined) problems.push(`the name ${JSON.stringify(name)} is not allowed in git: ${why}`)
        if (node.kind === "directory" && emptyIds.has(node.id!)) continue
        rows.push([name, node, node.kind === "symlink" ? writer.add("blob", Buffer.from(node.target)) : node.id!])
      }
      const body = encodeTree(rows)
      return writer.add("tree", body, idOf("tree", body))
    }
  }
  return { sink, problems }
}

const emptyDirectoriesOf = (tree: DirectoryNode): ReadonlyArray<GitSkipped> => {
  const skipped: Array<GitSkipped> = []
  const visit = (path: string, { entries, id }: DirectoryNode): void => {
    if (id === emptyTreeId && path !== root) {
      skipped.push({ path, why: "emptyDirectory" })
      return
    }
    for (const [name, node] of entries) if (node.kind === "directory") visit(path === root ? name : `${path}/${name}`, node)
  }
  visit(root, tree)
  return skipped
}

const exportFrom = (port: Backend, { author = defaultAuthor, directory, message = "Export", ref }: GitExportOptions) =>
  Effect.gen(function* (): Effect.fn.Return<GitResult, Problem> {
    if (!authorPattern.test(author)) {
      return yield* refused("the author does not have the form `Ann <ann@example.org>`")
    }
    const git = yield* open(directory)
    const name = ref.startsWith("refs/") ? ref : `refs/heads/${ref}`
    const isName = yield* Effect.match(git.run(["check-ref-format", name]), { onFailure: () => false, onSuccess: () => true })
    if (!isName || controlPattern.test(name) || ref.startsWith("-"))
      return yield* refused(`${JSON.stringify(ref.slice(0, 200))} is not a name of a reference`)
    const tip = yield* findReference(git, name)
    if (tip !== undefined && (yield* isCheckedOut(git, name))) {
      return yield* refused(
        `${name} is checked out in a work tree of the repository; export to another branch, and merge it there`
      )
    }
    const packDirectory = resolve(git.directory, yield* lineOf(git, ["rev-parse", "--git-path", "objects/pack"]))
    const writer = yield* PackWriter.open(packDirectory, { isDurable: true })
    return yield* Effect.gen(function* () {
      const { problems, sink } = makeSink(writer)
      const { tree } = yield* scan<StoreFault>(port, { sink })
      if (problems.length > 0) return yield* refused(problems[0]!)
      const skipped = emptyDirectoriesOf(tree)
      const seconds = Math.max(0, Math.floor((yield* Clock.currentTimeMillis) / 1000))
      const commit = writer.add("commit", encodeCommit({ tree: tree.id!, parent: tip, author, seconds, message }))
      yield* writer.finish
      const changes = yield* lineOf(git, [
        "diff-tree",
        "-r",
        "--root",
        "--name-only",
        "-z",
        "--no-commit-id",
        ...(tip === undefined ? [] : [tip]),
        commit
      ])
      // Move the reference only if nobody else has moved it meanwhile.
      yield* git.run(["update-ref", "--no-deref", name, commit, tip ?? "0".repeat(40)])
      return { commit, changes: changes.split("\0").length - 1, skipped }
    }).pipe(Effect.ensuring(writer.discard))
  })

/**
 * Adds a commit with the files of the filesystem to a git repository. The parent of the new commit is the commit of the
 * reference, if there is one.
 */
export const exportGit = (options: GitExportOptions): Effect.Effect<GitResult, GitError, Filesystem> =>
  Effect.flatMap(Filesystem, ({ port }) => Effect.mapError(exportFrom(port, options), toError("Repository.exportGit")))
