import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { at as locate } from "../../engine/directories.ts"
import { isPinned } from "../../engine/remove.ts"
import { resolveLink } from "../../engine/resolve.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import { mismatchToFault, runTransaction } from "../../history/transaction.ts"
import { withTreeLock } from "../../history/transaction/treeLock.ts"
import { recoverTransactions, withExclusiveLock } from "../../history/replace.ts"
import { type DirectoryNode, emptyDirectory, type Node, withNode } from "../../history/tree.ts"
import type { DeleteResult, FileStat } from "../../model/Entry.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { define, optional, touching } from "../definition.ts"
import { formatCount as plural } from "../../model/words.ts"

// Removes a directory atomically: moves it aside, then removes it there, so that a failed call has removed nothing. If the
// backend may implement the move as a copy, an uninterruptible removal is used instead.

interface Removed extends DeleteResult {
  readonly files: number
}

interface DirectoryCount {
  readonly counted: Removed
  readonly node: DirectoryNode
}

const leafNode = (kind: "file" | "symlink"): Node => (kind === "file" ? { kind, sizeBytes: 0, id: "" } : { kind, target: "" })

/**
 * Counts the entries in the same way as a delete: without the temporary files of unfinished writes, and at least 1. Returns
 * `undefined` if an entry has the kind `other`.
 */
const countEntries = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  { mode }: FileStat
): Effect.fn.Return<DirectoryCount | undefined, Fault> {
  const entries = new Map<string, Node>()
  const pending = [{ path: top, entries }]
  let deleted = 0
  let directories = 0
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    directories++
    for (const child of yield* locate(directory.path, port.list(directory.path))) {
      if (TemporaryNames.isInProgress(child.name)) continue
      if (child.kind === "other") return undefined
      const key = keyOf(child)
      if (child.kind === "directory") {
        const below = new Map<string, Node>()
        directory.entries.set(key, { kind: "directory", entries: below })
        pending.push({ path: FsPath.join(directory.path, key), entries: below })
      } else {
        directory.entries.set(key, leafNode(child.kind))
        deleted++
      }
    }
  }
  const node: DirectoryNode = { kind: "directory", entries, ...(mode !== undefined && { mode: mode & 0o777 }) }
  return { counted: { deleted: Math.max(1, deleted), directories, files: deleted }, node }
})

const removeByTransaction = Effect.fnUntraced(function* (
  port: Backend,
  at: FsPath.FsPath,
  stat: FileStat
): Effect.fn.Return<Removed | undefined, Fault> {
  yield* recoverTransactions(port)
  const found = yield* countEntries(port, at, stat)
  if (found === undefined) return undefined
  const before = withNode(emptyDirectory, at, found.node)
  const after = withNode(before, at, undefined)
  const content = () => Effect.succeed(new Uint8Array())
  yield* Effect.mapError(runTransaction<never>(port, { before, after, content }), mismatchToFault)
  return found.counted
})

const containsFiles = Effect.fnUntraced(function* (port: Backend, path: FsPath.FsPath): Effect.fn.Return<boolean, Fault> {
  const { path: top, stat } = yield* resolveLink(port, path)
  if (stat?.kind !== "directory") return true
  const pending = [top]
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const child of yield* port.list(directory)) {
      if (TemporaryNames.isInProgress(child.name)) continue
      if (child.kind !== "directory") return true
      pending.push(FsPath.join(directory, keyOf(child)))
    }
  }
  return false
})

export const removeDirectory = (
  fs: Algebra,
  path: FsPath.FsPath,
  missing: "fail" | "ignore"
): Effect.Effect<Removed, FsError> => {
  const { port } = fs
  const { call, isPermitted: may } = Caller.make(port)
  const deleted = Effect.uninterruptible(fs.delete(path, { recursive: true, missing: missing }))
  // A delete counts an empty directory as 1.
  const deletePlainly = Effect.flatMap(
    Effect.orElseSucceed(containsFiles(port, path), () => true),
    (hasFiles) => Effect.map(deleted, (removed): Removed => ({ ...removed, files: hasFiles ? removed.deleted : 0 }))
  )
  // Only a backend that removes trees natively also moves directories natively.
  if (port.info.confinement === "virtual" || performing(port, "RemoveTree") === undefined || !may("write", path))
    return deletePlainly
  const found = Effect.map(resolveLink(port, path), ({ path: at, stat }) =>
    stat?.kind === "directory" && !isPinned(port, at) ? { at, stat } : undefined
  )
  // Resolve the path again under the lock, when no other call can change the tree.
  const removedByTransaction = call<Removed | undefined, FsError>(
    "delete",
    path,
    Caller.errorTags.delete,
    Caller.deleteActions,
    () =>
      Effect.flatMap(found, (first) =>
        first === undefined
          ? Effect.succeed(undefined)
          : withExclusiveLock(
              port,
              withTreeLock(
                port,
                Effect.flatMap(found, (target) =>
                  target === undefined ? Effect.succeed(undefined) : removeByTransaction(port, target.at, target.stat)
                )
              )
            )
      )
  )
  return Effect.flatMap(removedByTransaction, (removed) => (removed === undefined ? deletePlainly : Effect.succeed(removed)))
}

const describeRemoval = (path: FsPath.FsPath, { deleted, directories, files }: Removed): string => {
  if (deleted === 0) return `nothing was removed, because ${path} does not exist`
  if (directories === 0) return `removed ${path}`
  if (files === 0 && directories === 1) return `removed ${path}, an empty directory`
  return `removed ${path} with everything in it: ${plural(directories, "directory", "directories")}, ${plural(files, "file")}`
}

export const rm = define({
  name: "rm",
  description: "Remove a file, or a directory with everything in it. Only a snapshot brings it back.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "File or directory, relative to the root" }),
    allow_missing: optional(Schema.Boolean, "No error if the path does not exist")
  }),
  value: Schema.Struct({ deleted: Schema.Int, directories: Schema.Int }),
  does: "changes",
  idempotent: false,
  examples: [{ path: "build" }, { path: "tmp/out.txt", allow_missing: true }],
  touches: touching("delete"),
  handle: Effect.fnUntraced(function* ({ allow_missing = false, path: raw }, call) {
    const path = yield* call.path(raw)
    const removed = yield* removeDirectory(call.filesystem, path, allow_missing ? "ignore" : "fail")
    call.memory.forget(path)
    const { deleted, directories } = removed
    return { message: describeRemoval(path, removed), value: { deleted, directories } }
  })
})
