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
import { writeActions } from "../operations/call.ts"
import type { Bridge } from "./bridge.ts"

interface CopyOptions {
  readonly overwrite: boolean
  readonly times: boolean
}

const operation = "copy"

export const make = ({
  withPlatformErrors: answer,
  children,
  fs,
  lookUpLink: lookAtLink,
  port
}: Bridge): FileSystem["copy"] => {
  const failInvalidTarget = (path: string, detail: string) =>
    Effect.fail(new FsError.InvalidArgument({ operation, path, argument: "to", detail }))

  /** Copies the mode, and the time if requested. The service's own copies have the mode and time of new files. */
  const copyAttributes = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsError.FsError> {
    const { isFile, mode, modifiedAt } = yield* fs.stat(from)
    yield* fs.setAttributes(to, {
      ...(mode === undefined ? undefined : { mode }),
      ...(copyOptions.times && isFile && modifiedAt !== undefined ? { modifiedAt } : undefined)
    })
  })

  /**
   * Copies the attributes of a tree. Directories come last, because nothing can change in a directory without write
   * permission.
   */
  const copyTreeAttributes = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsError.FsError> {
    const directories: Array<FsPath.FsPath> = [FsPath.root]
    yield* Stream.runForEach(fs.walk(from), (entry) => {
      const path = FsPath.relative(from, entry.path)
      if (entry.isDirectory) directories.push(path)
      return entry.isFile && entry.addressable ? copyAttributes(entry.path, FsPath.below(to, path), copyOptions) : Effect.void
    })
    for (const path of directories.reverse())
      yield* copyAttributes(FsPath.below(from, path), FsPath.below(to, path), copyOptions)
  })

  const kept = (
    from: FsPath.FsPath,
    source: FileStat,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.Effect<void, FsError.FsError> =>
    port.attributes === undefined || source.kind === "symlink"
      ? Effect.void
      : (source.isDirectory ? copyTreeAttributes : copyAttributes)(from, to, copyOptions)

  const copyOrReplace = (
    from: FsPath.FsPath,
    source: FileStat,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.Effect<void, FsError.FsError> =>
    Effect.andThen(
      Effect.catchTag(fs.copy(from, to, { overwrite: true }), "NotAFile", ({ path }) =>
        failInvalidTarget(path, "neither a FIFO, a socket nor a device can be copied")
      ),
      kept(from, source, to, copyOptions)
    )

  const mergeDirectory = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsError.FsError> {
    for (const { addressable, name } of yield* children(operation, from)) {
      const path = FsPath.join(from, name)
      if (!addressable) {
        return yield* Effect.fail(new FsError.IoError({ operation, path, detail: "no path can express this name" }))
      }
      yield* copyAny(path, FsPath.join(to, name), copyOptions)
    }
  })

  const copyAny = Effect.fnUntraced(function* (
    from: string,
    to: string,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsError.FsError> {
    const { path: source, stat } = yield* lookAtLink(operation, from)
    if (stat === undefined) return yield* Effect.fail(new FsError.NotFound({ operation, path: from }))
    const target = yield* lookAtLink(operation, to, writeActions)
    const found = target.stat
    if (target.isBlocked) return yield* Effect.fail(new FsError.NotADirectory({ operation, path: to }))
    if (FsPath.isWithin(source, target.path)) return yield* failInvalidTarget(to, "nothing can be copied onto or into itself")
    if (found === undefined) return yield* copyOrReplace(source, stat, target.path, copyOptions)
    if (stat.isDirectory !== found.isDirectory)
      return yield* failInvalidTarget(to, "a file and a directory do not replace each other")
    if (stat.isDirectory) return yield* mergeDirectory(source, target.path, copyOptions)
    // Node replaces a symlink by a symlink, whatever `overwrite` says, but never a file.
    if (stat.kind === "symlink" && found.kind !== "symlink") {
      return yield* Effect.fail(new FsError.AlreadyExists({ operation, path: to }))
    }
    if (copyOptions.overwrite || stat.kind === "symlink") yield* copyOrReplace(source, stat, target.path, copyOptions)
  })

  return (from, to, options) =>
    answer(
      operation,
      from,
      copyAny(from, to, { overwrite: options?.overwrite === true, times: options?.preserveTimestamps === true })
    )
}
