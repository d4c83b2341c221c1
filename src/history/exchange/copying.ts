/**
 * Renames on ports that fail every rename with EXDEV: copies the entry and then removes the original.
 *
 * A failure keeps the original and removes the copy. Unlike a rename, a killed copy can leave a partial directory.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Read from "../../engine/read.ts"
import { removeTree } from "../../engine/remove.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"

const notFound: Fault = { _tag: "NotFound" }
const exists: Fault = { _tag: "AlreadyExists" }
const cannotCopy: Fault = {
  _tag: "IoError",
  code: "ENOTSUP",
  detail: "it is neither a file, a link nor a directory, and cannot be copied"
}

const chunkBytes = 64 * 1024

export const isCrossDeviceFault = (fault: Fault): boolean => fault._tag === "IoError" && fault["code"] === "EXDEV"

const setAttributes = (port: Backend, path: FsPath.FsPath, { kind, mode, modifiedAt }: FileStat): Effect.Effect<void, Fault> =>
  port.attributes === undefined
    ? Effect.void
    : port.attributes.set(path, { ...(kind !== "symlink" && mode !== undefined && { mode }), modifiedAt })

const copyFile = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean): Effect.Effect<void, Fault> =>
  Effect.scoped(
    Effect.flatMap(port.open(from), (handle) => {
      const content = Read.chunks(handle, 0, handle.stat.sizeBytes, chunkBytes)
      return Effect.andThen(port.write(to, content, replace ? "replace" : "create"), setAttributes(port, to, handle.stat))
    })
  )

const copyLink = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath): Effect.Effect<void, Fault> => {
  const { links } = port
  return links === undefined ? Effect.fail(cannotCopy) : Effect.flatMap(links.read(from), (target) => links.make(to, target))
}

const copyEntry = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, stat: FileStat): Effect.Effect<void, Fault> => {
  if (stat.kind === "file") return copyFile(port, from, to, false)
  if (stat.kind === "symlink") return Effect.andThen(copyLink(port, from, to), setAttributes(port, to, stat))
  return stat.kind === "directory" ? port.makeDirectory(to) : Effect.fail(cannotCopy)
}

/** Copies the entries of `from` that `to` lacks. Sets modes and times of directories at the end. */
const copyMissingEntries = Effect.fnUntraced(function* (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath
): Effect.fn.Return<void, Fault> {
  const filled: Array<readonly [to: FsPath.FsPath, stat: FileStat]> = []
  const pending: Array<readonly [from: FsPath.FsPath, to: FsPath.FsPath]> = [[from, to]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [source, target] = next
    const stat = yield* port.stat(source)
    if (stat === undefined) return yield* Effect.fail(notFound)
    if ((yield* port.stat(target)) === undefined) yield* copyEntry(port, source, target, stat)
    if (stat.kind !== "directory") continue
    filled.push([target, stat])
    for (const child of yield* port.list(source)) {
      pending.push([FsPath.join(source, keyOf(child)), FsPath.join(target, keyOf(child))])
    }
  }
  for (const [path, stat] of filled.reverse()) yield* setAttributes(port, path, stat)
})

const removeWhole = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(port.stat(path), (stat) => {
    if (stat === undefined) return Effect.void
    return stat.kind === "directory" ? Effect.asVoid(removeTree(port, path)) : port.remove(path)
  })

/** Tries a step up to three times, because a failed undo leaves a mixture. Returns whether it succeeded. */
export const withRetries = (step: Effect.Effect<void, Fault>): Effect.Effect<boolean> =>
  Effect.map(Effect.exit(Effect.retry(Effect.sandbox(step), { times: 2 })), Exit.isSuccess)

const makeWritable = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath): Effect.fn.Return<void, Fault> {
  const { attributes } = port
  if (attributes === undefined || (yield* port.stat(top))?.kind !== "directory") return
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    yield* attributes.set(path, { mode: 0o700 })
    for (const child of yield* port.list(path)) if (child.kind === "directory") pending.push(FsPath.join(path, keyOf(child)))
  }
})

const moveByCopy = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean): Effect.Effect<void, Fault> =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const [source, target] = [yield* port.stat(from), yield* port.stat(to)]
      if (source === undefined) return yield* Effect.fail(notFound)
      if (target !== undefined && !replace) return yield* Effect.fail(exists)
      const isFile = source.kind === "file" && target?.kind === "file"
      if (target !== undefined && !isFile) yield* port.remove(to)
      const removeCopy = withRetries(Effect.andThen(Effect.ignore(makeWritable(port, to)), removeWhole(port, to)))
      const copied = isFile ? copyFile(port, from, to, true) : copyMissingEntries(port, from, to)
      yield* Effect.onError(restore(copied), () => removeCopy)
      const makeSourceWritable = source.kind === "directory" ? Effect.ignore(makeWritable(port, from)) : Effect.void
      const removalExit = yield* Effect.exit(restore(Effect.andThen(makeSourceWritable, removeWhole(port, from))))
      // Complete the original again before removing the copy. If that fails, the copy is the only complete version, so
      // keep it.
      if (Exit.isSuccess(removalExit) || !(yield* withRetries(copyMissingEntries(port, to, from)))) return
      yield* removeCopy
      return yield* Effect.failCause(removalExit.cause)
    })
  )

export const withCopyingRenames = (port: Backend): Backend => ({
  ...port,
  rename: (from, to, options) =>
    Effect.catch(port.rename(from, to, options), (fault) =>
      isCrossDeviceFault(fault) ? moveByCopy(port, from, to, options.replace) : Effect.fail(fault)
    )
})
