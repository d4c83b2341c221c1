/** Operations on whole repositories: forks, verification and garbage collection. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { AlreadyExists, NotFound } from "../model/FsError.ts"
import { hasher } from "../runtime/hash.ts"
import { BlobStore, type Operations as Blobs } from "./BlobStore.ts"
import { StoreError } from "./errors.ts"
import { forEachChunk } from "./format/contents.ts"
import { type Content, corruptNode, type Entry, type TreeNode } from "./format/nodes.ts"
import * as Objects from "./format/objects.ts"
import { type Head, HeadStore } from "./HeadStore.ts"
import { type Commit, commitsFrom, damagedHistory, headOf, isSameHead } from "./past.ts"
import { deleteOlder, type OwnOperations, sweep } from "./stores/blobs.ts"

const maxForkAttempts = 100

/**
 * Creates a workspace whose head has the root of another workspace. A concurrent `collect` may miss the new head, and delete
 * nodes that the source no longer needs. So the source is read again, and the fork follows the head of the source until the head
 * stays the same.
 */
export const fork = (from: string, to: string): Effect.Effect<Head, StoreError | NotFound | AlreadyExists, HeadStore> =>
  Effect.gen(function* () {
    const heads = yield* HeadStore
    const missing = Effect.fail(new NotFound({ operation: "Repository.fork", path: from }))
    const set = (expected: Head | undefined, next: Head): Effect.Effect<boolean, StoreError> =>
      Effect.catch(heads.compareAndSet(to, expected, next), (error) =>
        error.reason === "unavailable"
          ? Effect.flatMap(heads.get(to), (head) =>
              head === undefined ? Effect.fail(error) : Effect.succeed(isSameHead(head, next))
            )
          : Effect.fail(error)
      )
    let source = yield* heads.get(from)
    let made: Head | undefined
    for (let attempt = 1; ; attempt++) {
      if (source === undefined) {
        if (made !== undefined) yield* heads.delete(to, made)
        return yield* missing
      }
      const next: Head = { ...source, sequence: 1, message: `fork ${from}`, committedAt: yield* DateTime.now }
      if (!(yield* set(made, next))) {
        if (made === undefined) return yield* Effect.fail(new AlreadyExists({ operation: "Repository.fork", path: to }))
        const detail = `the workspaces ${JSON.stringify(from)} and ${JSON.stringify(to)} both changed during the fork; verify the second one`
        return yield* Effect.fail(new StoreError({ reason: "unavailable", detail }))
      }
      made = next
      const now: Head | undefined = yield* heads.get(from)
      if (now?.root === source.root) return next
      if (attempt === maxForkAttempts) {
        yield* heads.delete(to, made)
        const detail = `the workspace ${JSON.stringify(from)} changed ${attempt} times while it was forked; try again later`
        return yield* Effect.fail(new StoreError({ reason: "unavailable", detail }))
      }
      source = now
    }
  })

interface Visitor {
  /** Receives each blob at least once. */
  readonly visit: (hash: string) => void
  /** Receives each content that consists of chunks once. */
  readonly content?: (content: Extract<Content, { _tag: "Chunks" }>) => Effect.Effect<void, StoreError>
  readonly chunk?: (hash: string, size: number) => Effect.Effect<void, StoreError>
}

/**
 * Visits everything that a root refers to, except what earlier walks have noted in `seen`. If a walk fails, callers must not
 * use `seen` again: it has nodes whose children were not visited.
 */
const walk = (objects: Objects.Objects, root: string, seen: Set<string>, visitor: Visitor): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    const isNew = (key: string, hash: string): boolean => {
      if (seen.has(key)) return false
      seen.add(key)
      visitor.visit(hash)
      return true
    }
    const pending: Array<Entry> = []
    const content = (level: number, hash: string, size: number): Effect.Effect<void, StoreError> =>
      Effect.gen(function* () {
        if (!isNew(`c${level}:${size}:${hash}`, hash)) return
        if (level === 0) return yield* visitor.chunk?.(hash, size) ?? Effect.void
        for (const child of (yield* objects.index(hash, level, size)).children)
          yield* content(level - 1, child.hash, child.size)
      })
    const tree = (node: TreeNode): Effect.Effect<void, StoreError> =>
      Effect.gen(function* () {
        if (node.kind === "leaf") return void pending.push(...node.entries)
        for (const [digit, child] of node.children.entries()) {
          if (
            child === undefined ||
            !isNew(`t${node.prefix}${digit.toString(16)}:${child.weight}:${child.tree as string}`, child.tree as string)
          )
            continue
          yield* tree(yield* objects.child(node, child, digit))
        }
      })
    if (!isNew(`r:${root}`, root)) return
    const { answers, files, snapshots } = yield* objects.root(root)
    for (const list of answers.lists) if (isNew(`a:${list.hash}`, list.hash)) yield* objects.answers(list)
    pending.push(files, snapshots)
    for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
      if (entry.kind === "directory" && typeof entry.tree === "string" && isNew(`t:${entry.tree}`, entry.tree)) {
        yield* tree(yield* objects.tree(entry.tree, ""))
      }
      if (entry.kind === "file" && entry.content._tag === "Chunks") {
        const { hash, level, sha256, size } = entry.content
        const key = `f${sha256}:${level}:${size}:${hash}`
        if (seen.has(key)) continue
        seen.add(key)
        yield* content(level, hash, size)
        yield* visitor.content?.(entry.content) ?? Effect.void
      }
    }
  })

/** The maximum number of commits that are compared with their predecessors. */
const maxChecked = 10_000

/**
 * Checks that the head and the earlier roots form one history. The check ends at a root that `collect` has deleted, and at the
 * first commit of a fork, whose root belongs to another workspace.
 */
const checkHistory = (objects: Objects.Objects, workspace: string, { head, root }: Commit): Effect.Effect<void, StoreError> => {
  const lost = root.past?.lost
  return lost === undefined
    ? Stream.runDrain(Stream.take(commitsFrom(objects, workspace, head), maxChecked))
    : Effect.fail(
        damagedHistory(
          workspace,
          `the store of heads confirmed the commit ${lost.sequence} with the root ${lost.root}, and later lost it; ` +
            "read the files from that root, and use another store"
        )
      )
}

const smallCache = 8 * 1024 * 1024

/** Checks the blobs to which a workspace refers, and the history of the workspace. Returns the number of blobs and their size. */
export const verify = (
  workspace: string
): Effect.Effect<{ readonly nodes: number; readonly bytes: number }, StoreError, BlobStore | HeadStore> =>
  Effect.gen(function* () {
    const blobs = yield* BlobStore
    const head = yield* headOf(yield* HeadStore, workspace)
    const sizes = new Map<string, number>()
    const counting: Blobs = {
      ...blobs,
      get: (hash, range) => Effect.tap(blobs.get(hash, range), (bytes) => Effect.sync(() => sizes.set(hash, bytes.length)))
    }
    const objects = Objects.make(counting, { cacheBytes: 0 })
    const index = Objects.make(counting, { cacheBytes: smallCache })
    yield* walk(objects, head.root, new Set(), {
      visit: () => {},
      chunk: (hash, size) => Effect.asVoid(objects.chunk(hash, size)),
      content: (content) =>
        Effect.gen(function* () {
          if (content.level === 0) return
          const hash = hasher()
          yield* forEachChunk(index, content, 0, content.size, (chunk) =>
            Effect.map(objects.chunk(chunk.hash, chunk.size), (bytes) => hash.update(bytes))
          )
          if (hash.digest() !== content.sha256) {
            return yield* Effect.fail(
              corruptNode(content.hash, "the content below it has a different hash than its file states")
            )
          }
        })
    })
    yield* checkHistory(Objects.make(blobs, { cacheBytes: smallCache }), workspace, {
      head,
      root: yield* objects.root(head.root)
    })
    let bytes = 0
    for (const size of sizes.values()) bytes += size
    return { nodes: sizes.size, bytes }
  })

const deleteAtOnce = 100

/**
 * Deletes the blobs that no workspace refers to and that were stored before the grace period.
 *
 * Marks everything that the heads refer to, and counts the unmarked old blobs. Then marks what new commits refer to, and
 * deletes the blobs that are still unmarked and old. So blobs that were stored again meanwhile are kept. The library's own
 * stores check the time once more when they delete, and remove the leftovers of killed programs.
 */
export const collect = (options?: {
  readonly grace?: Duration.Input | undefined
  /** If true, counts the blobs and deletes none. @default false */
  readonly dryRun?: boolean | undefined
}): Effect.Effect<{ readonly deleted: number }, StoreError, BlobStore | HeadStore> =>
  Effect.gen(function* () {
    const blobs = yield* BlobStore
    const heads = yield* HeadStore
    const oldest = (yield* Clock.currentTimeMillis) - Duration.toMillis(options?.grace ?? "1 day")
    const objects = Objects.make(blobs, { cacheBytes: smallCache })
    const marked = new Set<string>()
    const seen = new Set<string>()
    const roots = new Set<string>()
    /**
     * Marks everything that a head refers to. If the head changes meanwhile, its old nodes may be deleted, so the marking
     * starts again.
     */
    const markOne = (workspace: string, left: number): Effect.Effect<void, StoreError> =>
      Effect.flatMap(heads.get(workspace), (head) => {
        if (head === undefined || roots.has(head.root)) return Effect.void
        const walked = walk(objects, head.root, seen, { visit: (hash) => marked.add(hash) })
        return Effect.matchEffect(walked, {
          onSuccess: () => Effect.sync(() => void roots.add(head.root)),
          onFailure: (error) =>
            Effect.flatMap(heads.get(workspace), (now) => {
              if (left === 0 || now?.root === head.root) return Effect.fail(error)
              seen.clear()
              roots.clear()
              return markOne(workspace, left - 1)
            })
        })
      })
    const mark = Stream.runForEach(heads.list, (workspace) => markOne(workspace, 3))
    const isGarbage = (blob: { readonly hash: string; readonly storedAt: DateTime.Utc }): boolean =>
      !marked.has(blob.hash) && DateTime.toEpochMillis(blob.storedAt) < oldest
    const count = yield* mark.pipe(Effect.andThen(Stream.runCount(Stream.filter(blobs.list, isGarbage))))
    if (options?.dryRun === true) return { deleted: count }
    const own: Partial<OwnOperations> = blobs
    yield* own[sweep]?.(oldest) ?? Effect.void
    if (count === 0) return { deleted: 0 }
    yield* mark
    let deleted = 0
    const deleteGroup = (hashes: ReadonlyArray<string>): Effect.Effect<number, StoreError> =>
      own[deleteOlder]?.(hashes, oldest) ?? Effect.as(blobs.delete(hashes), hashes.length)
    yield* Stream.runForEach(Stream.grouped(Stream.filter(blobs.list, isGarbage), deleteAtOnce), (group) =>
      Effect.map(deleteGroup(group.map(({ hash }) => hash)), (count) => {
        deleted += count
      })
    )
    return { deleted }
  })
