/**
 * `cp -r` as effect's Node implementation has it: directories are merged, and without `overwrite` what exists is silently kept. The
 * service's own copy refuses both, so the tree is gone through here, leaf by leaf.
 */
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
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

  const keep = (source: FileStat, to: FsPath.FsPath, how: How): Effect.Effect<void, FsError.FsError> => {
    if (port.attributes === undefined || source.kind === "symlink") return Effect.void
    const times = how.times && source.isFile
    return fs.setAttributes(to, {
      ...(source.mode === undefined ? undefined : { mode: source.mode }),
      ...(times && source.modifiedAt !== undefined ? { modifiedAt: source.modifiedAt } : undefined)
    })
  }

  const leaf = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    source: FileStat,
    to: FsPath.FsPath,
    target: FileStat | undefined,
    how: How
  ): Effect.fn.Return<void, FsError.FsError> {
    if (source.kind === "other") return yield* cannot(from, "neither a FIFO, a socket nor a device can be copied")
    if (target?.isDirectory === true) return yield* cannot(to, "a directory is not overwritten with a file")
    if (target !== undefined && source.kind === "symlink") {
      // Node puts a link in the place of a link, whatever `overwrite` says, and never in that of a file.
      if (target.kind !== "symlink") return yield* Effect.fail(new FsError.AlreadyExists({ operation, path: to }))
    } else if (target !== undefined && !how.overwrite) return
    yield* fs.copy(from, to, { overwrite: true })
    yield* keep(source, to, how)
  })

  const directory = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    source: FileStat,
    to: FsPath.FsPath,
    target: FileStat | undefined,
    how: How
  ): Effect.fn.Return<void, FsError.FsError> {
    if (target === undefined) yield* fs.mkdir(to, { existOk: false })
    else if (!target.isDirectory) return yield* cannot(to, "a file is not overwritten with a directory")
    for (const child of yield* children(operation, from)) {
      const path = FsPath.join(from, child.name)
      if (!child.addressable) {
        return yield* Effect.fail(new FsError.IoError({ operation, path, detail: "no path can express this name" }))
      }
      yield* any(path, FsPath.join(to, child.name), how)
    }
    if (target === undefined) yield* keep(source, to, how)
  })

  const any = Effect.fnUntraced(function* (from: string, to: string, how: How): Effect.fn.Return<void, FsError.FsError> {
    const source = yield* lookAtLink(operation, from)
    if (source.stat === undefined) return yield* Effect.fail(new FsError.NotFound({ operation, path: from }))
    const target = yield* lookAtLink(operation, to, writing)
    if (target.blocked) return yield* Effect.fail(new FsError.NotADirectory({ operation, path: to }))
    if (FsPath.isWithin(source.path, target.path)) return yield* cannot(to, "nothing can be copied onto or into itself")
    const copied = (source.stat.isDirectory ? directory : leaf)(source.path, source.stat, target.path, target.stat, how)
    // What was not there before goes again, whole, when not all of it could be put there.
    return yield* target.stat === undefined
      ? Effect.onError(copied, () => Effect.ignore(fs.delete(target.path, { recursive: true, missing: "ignore" })))
      : copied
  })

  return (from, to, options) =>
    answer(
      operation,
      from,
      any(from, to, { overwrite: options?.overwrite === true, times: options?.preserveTimestamps === true })
    )
}
