import * as Effect from "effect/Effect"
import type { DeleteResult, FileStat } from "../model/Entry.ts"
import { notFound, accessDenied } from "../model/Fault.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, keyOf, type RemovePlan } from "../port/Backend.ts"
import { performing } from "../port/Request.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { runAccelerated, at as locate, withResolvedLock } from "./directories.ts"
import * as Eager from "./eager.ts"
import { resolveLink } from "./resolve.ts"
import { withClaimIfMatched, requirePrecondition } from "./write.ts"

const root: Fault = accessDenied("root")

/** Tests whether a path must not be removed or moved: the root, a mount point, or a directory above a mount point. */
export const isPinned = (port: Backend, path: FsPath.FsPath): boolean =>
  path === FsPath.root || port.rules?.pinned?.(path) === true

const nothingDeleted: DeleteResult = { deleted: 0, directories: 0 }

export const remove = (port: Backend, path: FsPath.FsPath, plan: RemovePlan): Effect.Effect<DeleteResult, Fault> =>
  isPinned(port, path)
    ? stepByStep(port, path, plan)
    : runAccelerated(
        port,
        "Remove",
        [path],
        (perform) => perform({ _tag: "Remove", path, plan }),
        () => stepByStep(port, path, plan)
      )

const stepByStep = (port: Backend, path: FsPath.FsPath, options: RemovePlan): Effect.Effect<DeleteResult, Fault> =>
  withResolvedLock(port, path, resolveLink(port, path), ({ path: at, stat }): Effect.Effect<DeleteResult, Fault> =>
    isPinned(port, at)
      ? Effect.fail(root)
      : withClaimIfMatched(
          port,
          at,
          // Only files have a version.
          stat?.kind === "file" ? options.ifMatch : undefined,
          Effect.flatMap(requirePrecondition(port, at, options.ifMatch), () =>
            stat === undefined
              ? options.missing === "ignore"
                ? Effect.succeed(nothingDeleted)
                : Effect.fail(notFound)
              : removeAt(port, at, stat, options.recursive)
          )
        )
  )

export const removeAt = (
  port: Backend,
  at: FsPath.FsPath,
  stat: FileStat,
  recursive: boolean
): Effect.Effect<DeleteResult, Fault> => {
  if (stat.kind !== "directory") return Effect.as(port.remove(at), { deleted: 1, directories: 0 })
  const removeEntry = Effect.as(port.remove(at), { deleted: 1, directories: 1 })
  if (!recursive) {
    return Effect.catch(removeEntry, (fault) =>
      fault._tag === "DirectoryNotEmpty"
        ? Effect.flatMap(
            Effect.orElseSucceed(removeLeftovers(port, at), () => false),
            (swept) => (swept ? removeEntry : Effect.fail(fault))
          )
        : Effect.fail(fault)
    )
  }
  return Effect.map(removeWithContent(port, at), ({ deleted, directories }) => ({
    deleted: Math.max(deleted, 1),
    directories
  }))
}

/** Tests whether a leftover may be removed. Excludes parts of a transaction, which may be the only copies of files. */
const mayRemoveLeftover = (name: string): boolean => TemporaryNames.verify(name)?.isPart === false

/** Removes the leftovers from a directory that contains nothing else. Returns false for any other directory. */
const removeLeftovers = Effect.fnUntraced(function* (port: Backend, at: FsPath.FsPath): Effect.fn.Return<boolean, Fault> {
  const children = yield* port.list(at)
  if (!children.every((child) => mayRemoveLeftover(child.name))) return false
  for (const child of children) yield* Effect.catch(port.remove(FsPath.join(at, child.name)), ignoreNotFound)
  return true
})

interface Frame {
  readonly path: FsPath.FsPath
  readonly isHidden: boolean
  listed: boolean
}

export const removeTree = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath
): Effect.fn.Return<DeleteResult, Fault> {
  let deleted = 0
  let directories = 0
  const stack: Array<Frame> = [{ path: top, isHidden: false, listed: false }]
  while (stack.length > 0) {
    const current = stack[stack.length - 1]!
    if (current.listed) {
      yield* Effect.catch(locate(current.path, port.remove(current.path)), ignoreNotFound)
      if (!current.isHidden) directories++
      stack.pop()
      continue
    }
    current.listed = true
    const listed = locate(current.path, port.list(current.path))
    for (const child of yield* current.path === top ? listed : Effect.catch(listed, emptyIfNotFound)) {
      const path = FsPath.join(current.path, keyOf(child))
      const isHidden = current.isHidden || TemporaryNames.isOwnName(child.name)
      if (child.kind === "directory") stack.push({ path, isHidden, listed: false })
      else {
        yield* Effect.catch(locate(path, port.remove(path)), ignoreNotFound)
        if (!isHidden) deleted++
      }
    }
  }
  return { deleted, directories }
})

export const removeWithContent = (port: Backend, path: FsPath.FsPath): Effect.Effect<DeleteResult, Fault> => {
  const perform = performing(port, "RemoveTree")
  return perform === undefined
    ? removeTree(port, path)
    : Eager.answered(perform({ _tag: "RemoveTree", path }), () => removeTree(port, path))
}

const emptyIfNotFound = (fault: Fault): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  fault._tag === "NotFound" ? Effect.succeed([]) : Effect.fail(fault)

const ignoreNotFound = (fault: Fault): Effect.Effect<void, Fault> =>
  fault._tag === "NotFound" ? Effect.void : Effect.fail(fault)
