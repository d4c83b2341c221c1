/**
 * A copy like effect's Node implementation (`cp -r`).
 *
 * The service copies to a free path atomically. An existing target is handled here: directories are merged, and without
 * `overwrite` existing files are silently kept.
 */
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { writing } from "../operations/call.ts"
import type { Bridge } from "./bridge.ts"

interface How {
  readonly overwrite: boolean
  readonly times: boolean
}

const operation = "copy"

export const make = ({ answer, children, fs, lookAtLink, port }: Bridge): FileSystem["copy"] => {
  const cannot = (path: string, detail: string) =>
    Effect.fail(new FsError.InvalidArgument({ operation, path, argument: "to", detail }))

  /** Copies the mode, and the time if requested. The service's own copies have the mode and time of new files. */
  const keep = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    how: How
  ): Effect.fn.Return<void, FsError.FsError> {
    const { isFile, mode, modifiedAt } = yield* fs.stat(from)
    yield* fs.setAttributes(to, {
      ...(mode === undefined ? undefined : { mode }),
      ...(how.times && isFile && modifiedAt !== undefined ? { modifiedAt } : undefined)
    })
  })

  /**
   * Copies the attributes of a tree. Directories come last, because nothing can change in a directory without write
   * permission.
   */
  const keepTree = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    how: How
  ): Effect.fn.Return<void, FsError.FsError> {
    const directories: Array<FsPath.FsPath> = [FsPath.root]
    yield* Stream.runForEach(fs.walk(from), (entry) => {
      const path = FsPath.relative(from, entry.path)
      if (entry.isDirectory) directories.push(path)
      return entry.isFile && entry.addressable ? keep(entry.path, FsPath.below(to, path), how) : Effect.void
    })
    for (const path of directories.reverse()) yield* keep(FsPath.below(from, path), FsPath.below(to, path), how)
  })

  const kept = (from: FsPath.FsPath, source: FileStat, to: FsPath.FsPath, how: How): Effect.Effect<void, FsError.FsError> =>
    port.attributes === undefined || source.kind === "symlink"
      ? Effect.void
      : (source.isDirectory ? keepTree : keep)(from, to, how)

  const put = (from: FsPath.FsPath, source: FileStat, to: FsPath.FsPath, how: How): Effect.Effect<void, FsError.FsError> =>
    Effect.andThen(
      Effect.catchTag(fs.copy(from, to, { overwrite: true }), "NotAFile", ({ path }) =>
        cannot(path, "neither a FIFO, a socket nor a device can be copied")
      ),
      kept(from, source, to, how)
    )

  const merge = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    how: How
  ): Effect.fn.Return<void, FsError.FsError> {
    for (const { addressable, name } of yield* children(operation, from)) {
      const path = FsPath.join(from, name)
      if (!addressable) {
        return yield* Effect.fail(new FsError.IoError({ operation, path, detail: "no path can express this name" }))
      }
      yield* any(path, FsPath.join(to, name), how)
    }
  })

  const any = Effect.fnUntraced(function* (from: string, to: string, how: How): Effect.fn.Return<void, FsError.FsError> {
    const { path: source, stat } = yield* lookAtLink(operation, from)
    if (stat === undefined) return yield* Effect.fail(new FsError.NotFound({ operation, path: from }))
    const target = yield* lookAtLink(operation, to, writing)
    const found = target.stat
    if (target.blocked) return yield* Effect.fail(new FsError.NotADirectory({ operation, path: to }))
    if (FsPath.isWithin(source, target.path)) return yield* cannot(to, "nothing can be copied onto or into itself")
    if (found === undefined) return yield* put(source, stat, target.path, how)
    if (stat.isDirectory !== found.isDirectory) return yield* cannot(to, "a file and a directory do not replace each other")
    if (stat.isDirectory) return yield* merge(source, target.path, how)
    // Node replaces a symlink by a symlink, whatever `overwrite` says, but never a file.
    if (stat.kind === "symlink" && found.kind !== "symlink") {
      return yield* Effect.fail(new FsError.AlreadyExists({ operation, path: to }))
    }
    if (how.overwrite || stat.kind === "symlink") yield* put(source, stat, target.path, how)
  })

  return (from, to, options) =>
    answer(
      operation,
      from,
      any(from, to, { overwrite: options?.overwrite === true, times: options?.preserveTimestamps === true })
    )
}
