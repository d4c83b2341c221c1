/**
 * Removes a directory at once: moves it aside, then removes its content there, so that a failure midway removes nothing. Where
 * a move could be a copy, the removal is uninterruptible instead.
 */
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import { isPinned } from "../../engine/remove.ts"
import { resolveLink } from "../../engine/resolve.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import { exchange, withoutMismatch } from "../../history/exchange.ts"
import { taking } from "../../history/exchange/turn.ts"
import { alone, recovering } from "../../history/replace.ts"
import { type DirectoryNode, empty, type Node, withNode } from "../../history/tree.ts"
import type { DeleteResult, FileStat } from "../../model/Entry.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

export interface Removed extends DeleteResult {
  /** The number of files, links and other entries. It equals `deleted`, except that `deleted` is 1 for an empty directory. */
  readonly files: number
}

interface Census {
  readonly counted: Removed
  /** The names and kinds of the entries, so that the transaction detects entries added since. */
  readonly node: DirectoryNode
}

const leafOf = (kind: "file" | "symlink"): Node => (kind === "file" ? { kind, sizeBytes: 0, id: "" } : { kind, target: "" })

/**
 * Counts the entries as a delete does: without temporary files of processes, and at least 1. Returns `undefined` if there is a
 * FIFO or the like.
 */
const census = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  { mode }: FileStat
): Effect.fn.Return<Census | undefined, Fault> {
  const entries = new Map<string, Node>()
  const pending = [{ path: top, entries }]
  let deleted = 0
  let directories = 0
  for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
    directories++
    for (const child of yield* locate(here.path, port.list(here.path))) {
      if (TemporaryNames.isInProgress(child.name)) continue
      if (child.kind === "other") return undefined
      const key = keyOf(child)
      if (child.kind === "directory") {
        const below = new Map<string, Node>()
        here.entries.set(key, { kind: "directory", entries: below })
        pending.push({ path: FsPath.join(here.path, key), entries: below })
      } else {
        here.entries.set(key, leafOf(child.kind))
        deleted++
      }
    }
  }
  const node: DirectoryNode = { kind: "directory", entries, ...(mode !== undefined && { mode: mode & 0o777 }) }
  return { counted: { deleted: Math.max(1, deleted), directories, files: deleted }, node }
})

const swap = Effect.fnUntraced(function* (
  port: Backend,
  at: FsPath.FsPath,
  stat: FileStat
): Effect.fn.Return<Removed | undefined, Fault> {
  yield* recovering(port)
  const found = yield* census(port, at, stat)
  if (found === undefined) return undefined
  const before = withNode(empty, at, found.node)
  const after = withNode(before, at, undefined)
  const content = () => Effect.succeed(new Uint8Array())
  yield* Effect.mapError(exchange<never>(port, { before, after, content }), withoutMismatch)
  return found.counted
})

const holdsFiles = Effect.fnUntraced(function* (port: Backend, path: FsPath.FsPath): Effect.fn.Return<boolean, Fault> {
  const { path: top, stat } = yield* resolveLink(port, path)
  if (stat?.kind !== "directory") return true
  const pending = [top]
  for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
    for (const child of yield* port.list(here)) {
      if (TemporaryNames.isInProgress(child.name)) continue
      if (child.kind !== "directory") return true
      pending.push(FsPath.join(here, keyOf(child)))
    }
  }
  return false
})

/** Removes the entry at the path, a directory with all its content. Fails as `delete` does; nothing has changed then. */
export const removeDirectory = (
  fs: Algebra,
  path: FsPath.FsPath,
  missing: "fail" | "ignore"
): Effect.Effect<Removed, FsError> => {
  const { port } = fs
  const { call, may } = Caller.make(port)
  const deleted = Effect.uninterruptible(fs.delete(path, { recursive: true, missing }))
  // A delete counts an empty directory as 1.
  const plainly = Effect.flatMap(
    Effect.orElseSucceed(holdsFiles(port, path), () => true),
    (holds) => Effect.map(deleted, (removed): Removed => ({ ...removed, files: holds ? removed.deleted : 0 }))
  )
  // Only a backend that removes trees natively also moves directories natively.
  if (port.info.confinement === "virtual" || performing(port, "RemoveTree") === undefined || !may("write", path)) return plainly
  const found = Effect.map(resolveLink(port, path), ({ path: at, stat }) =>
    stat?.kind === "directory" && !isPinned(port, at) ? { at, stat } : undefined
  )
  // Resolve the path again under the lock, when no other call can change it.
  const swapped = call<Removed | undefined, FsError>("delete", path, Caller.tags.delete, Caller.deleting, () =>
    Effect.flatMap(found, (first) =>
      first === undefined
        ? Effect.succeed(undefined)
        : alone(
            port,
            taking(
              port,
              Effect.flatMap(found, (there) =>
                there === undefined ? Effect.succeed(undefined) : swap(port, there.at, there.stat)
              )
            )
          )
    )
  )
  return Effect.flatMap(swapped, (removed) => (removed === undefined ? plainly : Effect.succeed(removed)))
}
