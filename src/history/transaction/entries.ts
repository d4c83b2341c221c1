/** Copies and removes entries of a port, even on disks where renames fail and in directories that are not writable. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { at as locate } from "../../engine/directories.ts"
import * as Read from "../../engine/read.ts"
import { removeWithContent } from "../../engine/remove.ts"
import type { FileStat } from "../../model/Entry.ts"
import { alreadyExists, ioError, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"

const cannotCopy = ioError("the entry is not a file, a link or a directory, so it cannot be copied", "ENOTSUP")

export const noLinks = ioError("this filesystem does not support symbolic links", "ENOTSUP")

export const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

export const isCrossDeviceFault = (fault: Fault): boolean => fault._tag === "IoError" && fault["code"] === "EXDEV"

const chunkBytes = 64 * 1024

/** The size in bytes of the largest file that a copy keeps in memory as a whole. */
export const maxWholeBytes = 1024 * 1024

const setAttributes = (port: Backend, path: FsPath.FsPath, { kind, mode, modifiedAt }: FileStat): Effect.Effect<void, Fault> =>
  port.attributes === undefined
    ? Effect.void
    : port.attributes.set(path, { ...(kind !== "symlink" && mode !== undefined && { mode }), modifiedAt })

export const setMode = (port: Backend, path: FsPath.FsPath, mode: number): Effect.Effect<void, Fault> =>
  port.attributes === undefined ? Effect.void : locate(path, port.attributes.set(path, { mode }))

export const copyFile = (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  mode: "create" | "replace" = "create"
): Effect.Effect<void, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* port.open(from)
      const { sizeBytes } = handle.stat
      const content =
        sizeBytes <= maxWholeBytes ? yield* Read.range(handle, 0, sizeBytes) : Read.chunks(handle, 0, sizeBytes, chunkBytes)
      yield* port.write(to, content, mode)
      yield* setAttributes(port, to, handle.stat)
    })
  )

/** Copies a symlink and its modification time. Recovery recognises the symlink by the time. */
export const copyLink = Effect.fnUntraced(function* (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath) {
  if (port.links === undefined) return yield* Effect.fail(noLinks)
  const target = yield* port.links.read(from)
  const stat = yield* port.stat(from)
  yield* port.links.make(to, target)
  if (stat !== undefined) yield* setAttributes(port, to, stat)
})

const copyEntry = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, { kind }: FileStat): Effect.Effect<void, Fault> => {
  if (kind === "file") return copyFile(port, from, to)
  if (kind === "symlink") return copyLink(port, from, to)
  return kind === "directory" ? port.makeDirectory(to) : Effect.fail(cannotCopy)
}

/** Copies the entries of `from` that `to` does not contain. Sets the modes and times of directories at the end. */
const copyMissingEntries = Effect.fnUntraced(function* (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath) {
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

/** Makes a directory and all directories below it writable, because otherwise their entries cannot be removed. */
const makeWritable = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath) {
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    yield* Effect.ignore(setMode(port, path, 0o700))
    for (const child of yield* port.list(path)) if (child.kind === "directory") pending.push(FsPath.join(path, keyOf(child)))
  }
})

/** Removes a directory with everything in it, even if some directories are not writable. */
export const removeDirectory = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> => {
  const removed = Effect.suspend(() => Effect.asVoid(removeWithContent(port, path)))
  return Effect.catch(removed, (fault) =>
    fault._tag === "AccessDenied"
      ? Effect.andThen(makeWritable(port, path), removed)
      : fault._tag === "NotFound"
        ? Effect.void
        : Effect.fail(fault)
  )
}

export const removeWhole = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(port.stat(path), (stat) => {
    if (stat === undefined) return Effect.void
    return stat.kind === "directory" ? removeDirectory(port, path) : port.remove(path)
  })

/**
 * Runs a step up to three times, because a failed undo leaves a mixture of old and new entries. Returns whether the step
 * succeeded.
 */
export const withRetries = (step: Effect.Effect<void, Fault>): Effect.Effect<boolean> =>
  Effect.map(Effect.exit(Effect.retry(Effect.sandbox(step), { times: 2 })), Exit.isSuccess)

/**
 * Copies an entry and then removes the original. Unless both entries are files, an entry that the copy replaces is removed
 * first. After a failure, the original is complete and the copy is removed. If the original cannot be restored, the copy is
 * kept. If the process is killed, a partial copy may remain.
 */
const moveByCopy = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean): Effect.Effect<void, Fault> =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const [source, target] = [yield* port.stat(from), yield* port.stat(to)]
      if (source === undefined) return yield* Effect.fail(notFound)
      if (target !== undefined && !replace) return yield* Effect.fail(alreadyExists)
      const isFile = source.kind === "file" && target?.kind === "file"
      if (target !== undefined && !isFile) yield* port.remove(to)
      const removeCopy = withRetries(removeWhole(port, to))
      const copied = isFile ? copyFile(port, from, to, "replace") : copyMissingEntries(port, from, to)
      yield* Effect.onError(restore(copied), () => removeCopy)
      const removalExit = yield* Effect.exit(restore(removeWhole(port, from)))
      // Restore the original from the copy before removing the copy. If the restoration fails, keep the copy, because only
      // the copy is complete.
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
