/** Copies trees as `fs.cp` does: a copied directory is merged into an existing directory. */
import * as Effect from "effect/Effect"
import * as DateTime from "effect/DateTime"
import type { Resolved } from "../../engine/resolve.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Code } from "../errno.ts"
import { toOptions, toPath } from "./arguments.ts"
import { type Core, type Entry, type Failure, named, naming, refuse } from "./core.ts"
import { fsError } from "./entries.ts"

export interface CopyOptions {
  readonly dereference?: boolean
  readonly errorOnExist?: boolean
  readonly filter?: (source: string, destination: string) => unknown
  readonly force?: boolean
  readonly preserveTimestamps?: boolean
  readonly recursive?: boolean
}

const join = (directory: string, name: string): string => `${directory.replace(/\/+$/, "")}/${name}`

const failCopy = (code: string, title: string, os: Code, why: string, path: string): Effect.Effect<never, Failure> =>
  Effect.fail(fsError(code, title, "cp", os, why, path))

const refuseDirectory = (from: string) =>
  failCopy("ERR_FS_EISDIR", "Path is a directory", "EISDIR", `${from} is a directory (not copied)`, from)

export const makeCopy = (core: Core) => {
  const { fs, openFiles } = core

  /** Runs the filter of the caller. A filter that never answers blocks only the copy that called it. */
  const isWanted = (options: CopyOptions, from: string, to: string): Effect.Effect<boolean, Failure> => {
    const { filter } = options
    if (filter === undefined) return Effect.succeed(true)
    return Effect.flatMap(Effect.try({ try: () => filter(from, to), catch: (error) => error as Error }), (answer) =>
      typeof answer === "object" && answer !== null && "then" in answer
        ? Effect.map(Effect.tryPromise({ try: () => answer as Promise<unknown>, catch: (error) => error as Error }), Boolean)
        : Effect.succeed(Boolean(answer))
    )
  }

  const copyTimes = (source: Entry, target: FsPath.FsPath): Effect.Effect<void, Failure> =>
    source.stat.modifiedAt === undefined
      ? Effect.void
      : fs.setAttributes(target, { modifiedAt: DateTime.toUtc(source.stat.modifiedAt) })

  const copyInto = Effect.fnUntraced(function* (
    source: Entry,
    target: Resolved,
    from: string,
    to: string,
    options: CopyOptions
  ): Effect.fn.Return<void, Failure> {
    if (target.stat === undefined) yield* fs.mkdir(target.path)
    for (const { name } of yield* fs.list(source.path)) yield* copyAny(join(from, name), join(to, name), options)
  })

  const copyAny = Effect.fnUntraced(function* (
    from: string,
    to: string,
    options: CopyOptions
  ): Effect.fn.Return<void, Failure> {
    if (!(yield* isWanted(options, from, to))) return
    const source = yield* naming(core.require(from, options.dereference === true), { syscall: "lstat", path: from })
    const isDirectory = source.stat.isDirectory
    const looked = yield* Effect.exit(naming(core.lookUp(to, false), { syscall: "lstat", path: to }))
    if (looked._tag === "Failure" && isDirectory && options.recursive !== true) return yield* refuseDirectory(from)
    const target = yield* looked
    const { stat } = target
    const invalid = (why: string, path: string) => failCopy("ERR_FS_CP_EINVAL", "Invalid src or dest", "EINVAL", why, path)
    if (source.path === target.path) return yield* invalid("src and dest cannot be the same", to)
    if (isDirectory && stat !== undefined && !stat.isDirectory) {
      const why = `cannot overwrite non-directory ${to} with directory ${from}`
      return yield* failCopy("ERR_FS_CP_DIR_TO_NON_DIR", "Cannot overwrite non-directory with directory", "EISDIR", why, to)
    }
    if (!isDirectory && stat?.isDirectory === true) {
      const why = `cannot overwrite directory ${to} with non-directory ${from}`
      return yield* failCopy("ERR_FS_CP_NON_DIR_TO_DIR", "Cannot overwrite directory with non-directory", "ENOTDIR", why, to)
    }
    if (isDirectory && options.recursive !== true) return yield* refuseDirectory(from)
    if (isDirectory && FsPath.isWithin(source.path, target.path)) {
      return yield* invalid(`cannot copy ${from} to a subdirectory of self ${to}`, to)
    }
    if (isDirectory) return yield* copyInto(source, target, from, to, options)
    if (source.stat.kind === "symlink" && stat !== undefined && stat.kind !== "symlink") {
      const call = { syscall: "symlink", path: yield* fs.readLink(source.path), dest: to }
      return yield* refuse("EEXIST", call)
    }
    if (stat !== undefined && source.stat.kind !== "symlink" && options.force === false) {
      return options.errorOnExist === true
        ? yield* failCopy("ERR_FS_CP_EEXIST", "Target already exists", "EEXIST", `${to} already exists`, to)
        : undefined
    }
    yield* fs.copy(source.path, target.path, { overwrite: true })
    openFiles.removed(target.path)
    if (options.preserveTimestamps === true && source.stat.isFile) yield* copyTimes(source, target.path)
  })

  return (source: unknown, destination: unknown, options?: unknown): Effect.Effect<void, Error> => {
    const from = toPath(source, "src")
    const to = toPath(destination, "dest")
    return named("cp", copyAny(from, to, toOptions<CopyOptions>(options)), from, to)
  }
}
