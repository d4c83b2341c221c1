/** The calls of `node:fs` that inspect, create, rename and remove entries. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { createActions, deleteActions, moveActions } from "../../filesystem/operations/call.ts"
import type { FileEntry } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Buffer } from "../../runtime/buffer.ts"
import { constants, type Encoding, encodeName, toMillis, toMode, toOptions, toPath, toThreeBits } from "./arguments.ts"
import { type Core, type Entry, type Failure, named, refuse } from "./core.ts"
import { describe } from "../errno.ts"
import { type BigIntStats, Dirent, type Stats, toStats } from "./stats.ts"

interface StatOptions {
  readonly bigint?: boolean
  readonly throwIfNoEntry?: boolean
}
interface MkdirOptions {
  readonly recursive?: boolean
  readonly mode?: unknown
}
interface ReaddirOptions {
  readonly withFileTypes?: boolean
  readonly recursive?: boolean
}
interface RmOptions {
  readonly recursive?: boolean
  readonly force?: boolean
}

const defaultDirectoryMode = 0o777
const specialBits = 0o7000

/** Returns the error of Node for a failure that the operating system does not report, such as `ERR_FS_EISDIR`. */
export const fsError = (
  code: string,
  title: string,
  syscall: string,
  os: Parameters<typeof describe>[0],
  why: string,
  path: string
): Error => {
  const { errno } = describe(os)
  const error = new Error(`${title}: ${syscall} returned ${os} (${why}) ${path}`)
  const info = { code: os, message: why, path, syscall, errno }
  return Object.assign(error, { name: "SystemError", code, info, errno, syscall, path })
}

const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const randomSuffix: Effect.Effect<string> = Effect.gen(function* () {
  let text = ""
  while (text.length < 6) text += alphabet[yield* Random.nextIntBetween(0, alphabet.length)]
  return text
})

const endsWithDots = (path: string): boolean => /(?:^|\/)\.\.?\/*$/.test(path)

const joinShown = (directory: string, name: string): string =>
  directory.endsWith("/") ? directory + name : `${directory}/${name}`

export const makeEntryCalls = (core: Core) => {
  const { fs, lookUp, lookUpName, openFiles } = core

  const stat = (syscall: "stat" | "lstat") => (path: unknown, options?: unknown) => {
    const at = toPath(path)
    const { bigint, throwIfNoEntry } = toOptions<StatOptions>(options)
    const found = Effect.map(core.require(at, syscall === "stat"), ({ stat }): Stats | BigIntStats | undefined =>
      toStats(stat, bigint === true)
    )
    const isMissing = (failure: Failure) =>
      throwIfNoEntry === false && "code" in failure && (failure.code === "ENOENT" || failure.code === "ENOTDIR")
    return named(
      syscall,
      Effect.catch(found, (failure) => (isMissing(failure) ? Effect.succeed(undefined) : Effect.fail(failure))),
      at
    )
  }

  const access = (path: unknown, wanted: unknown = constants.F_OK) => {
    const at = toPath(path)
    const mode = toThreeBits(wanted)
    const check = ({ path, stat }: Entry): Effect.Effect<void, Failure> => {
      if ((mode & constants.W_OK) !== 0 && !core.isWritable(path)) return refuse("EROFS")
      // A permission of the owner, the group or others is enough, because entries have no owners.
      const lacks = (flag: number, bits: number) => (mode & flag) !== 0 && stat.mode !== undefined && (stat.mode & bits) === 0
      const isDenied = lacks(constants.R_OK, 0o444) || lacks(constants.W_OK, 0o222) || lacks(constants.X_OK, 0o111)
      return isDenied ? refuse("EACCES") : Effect.void
    }
    return named("access", Effect.flatMap(core.require(at, true), check), at)
  }

  const chmodAt = (entry: Entry, mode: number): Effect.Effect<void, Failure> =>
    (mode & specialBits) === 0 ? fs.setAttributes(entry.path, { mode: mode & 0o777 }) : refuse("EPERM")

  const chmod = (path: unknown, mode: unknown) => {
    const at = toPath(path)
    const bits = toMode(mode)
    return named(
      "chmod",
      Effect.flatMap(core.require(at, true), (entry) => chmodAt(entry, bits)),
      at
    )
  }

  const isKeptOwner = (id: unknown): boolean => id === 0 || id === -1 || id === 0xffff_ffff

  const checkOwner = (uid: unknown, gid: unknown): Effect.Effect<void, Failure> =>
    isKeptOwner(uid) && isKeptOwner(gid) ? Effect.void : refuse("EPERM")

  const chown = (syscall: "chown" | "lchown") => (path: unknown, uid: unknown, gid: unknown) => {
    const at = toPath(path)
    return named(
      syscall,
      Effect.flatMap(core.require(at, syscall === "chown"), () => checkOwner(uid, gid)),
      at
    )
  }

  const utimesAt = (entry: Entry, mtime: number | undefined): Effect.Effect<void, Failure> =>
    entry.stat.kind === "symlink"
      ? refuse("ENOSYS")
      : Effect.flatMap(mtime === undefined ? Clock.currentTimeMillis : Effect.succeed(mtime), (millis) =>
          fs.setAttributes(entry.path, { modifiedAt: DateTime.makeUnsafe(millis) })
        )

  const utimes = (syscall: "utime" | "lutime") => (path: unknown, atime: unknown, mtime: unknown) => {
    const at = toPath(path)
    toMillis(atime)
    const millis = toMillis(mtime)
    return named(
      syscall,
      Effect.flatMap(core.require(at, syscall === "utime"), (entry) => utimesAt(entry, millis)),
      at
    )
  }

  /** Creates one directory. For the default mode 0o777, keeps the mode that the backend chose. */
  const makeDirectory = (path: FsPath.FsPath, mode: number): Effect.Effect<void, Failure> =>
    Effect.andThen(
      fs.mkdir(path, { parents: false, existOk: false }),
      mode === defaultDirectoryMode ? Effect.void : core.applyMode(path, mode)
    )

  const makeDirectories = Effect.fnUntraced(function* (
    at: string,
    mode: number
  ): Effect.fn.Return<string | undefined, Failure> {
    let first: string | undefined
    for (let end = 0; end <= at.length; end++) {
      if (end < at.length && at[end] !== "/") continue
      const prefix = at.slice(0, end)
      if (prefix === "" || prefix.endsWith("/")) continue
      const isLast = !/[^/]/.test(at.slice(end))
      const found = yield* lookUp(prefix, true)
      if (found.stat?.isDirectory === true) continue
      if (found.stat !== undefined) return yield* refuse(isLast && end === at.length ? "EEXIST" : "ENOTDIR")
      if ((yield* lookUp(prefix, false)).stat !== undefined) return yield* refuse("ENOENT")
      yield* Effect.catch(makeDirectory(found.path, mode), (failure) =>
        "_tag" in failure && failure._tag === "AlreadyExists" ? Effect.void : Effect.fail(failure)
      )
      // After several slashes, Node returns the path with all of them but the last.
      first ??= isLast ? at : at.slice(0, end + /^\/+/.exec(at.slice(end))![0].length - 1)
    }
    return first
  })

  const mkdir = (path: unknown, options?: unknown) => {
    const at = toPath(path)
    const given: MkdirOptions =
      typeof options === "number" || typeof options === "string" ? { mode: options } : toOptions<MkdirOptions>(options)
    const mode = toMode(given.mode, defaultDirectoryMode)
    if (given.recursive === true) {
      return named("mkdir", at === "" ? refuse("ENOENT") : makeDirectories(at, mode), at)
    }
    const made = Effect.flatMap(lookUpName(at, createActions), ({ path, stat }) =>
      stat === undefined ? makeDirectory(path, mode) : refuse("EEXIST")
    )
    return named("mkdir", Effect.as(made, undefined), at)
  }

  const mkdtemp = (prefix: unknown, options?: unknown) => {
    const base = toPath(prefix, "prefix")
    const { encoding } = toOptions(options)
    const attempt = Effect.flatMap(randomSuffix, (suffix) =>
      Effect.flatMap(lookUpName(base + suffix, createActions), ({ path, stat }) =>
        stat === undefined ? Effect.as(makeDirectory(path, 0o700), base + suffix) : refuse("EEXIST")
      )
    )
    const isTaken = (failure: Failure) => "code" in failure && failure.code === "EEXIST"
    const made = Effect.map(Effect.retry(attempt, { times: 16, while: isTaken }), (path) => encodeName(path, encoding))
    return named("mkdtemp", made, `${base}XXXXXX`)
  }

  const list = (at: string): Effect.Effect<ReadonlyArray<FileEntry>, Failure> =>
    Effect.flatMap(core.require(at, true), ({ path, stat }) => (stat.isDirectory ? fs.list(path) : refuse("ENOTDIR")))

  const readDirectory = Effect.fnUntraced(function* (
    at: string,
    options: ReaddirOptions & { readonly encoding?: Encoding | undefined }
  ): Effect.fn.Return<Array<string | Buffer | Dirent>, Failure> {
    const out: Array<string | Buffer | Dirent> = []
    const directories = [{ shown: at, prefix: "" }]
    for (const { prefix, shown } of directories) {
      for (const { kind, name } of yield* list(shown)) {
        const encoded = encodeName(options.withFileTypes === true ? name : prefix + name, options.encoding)
        out.push(options.withFileTypes === true ? new Dirent(encoded, shown, kind) : encoded)
        if (options.recursive === true && kind === "directory") {
          directories.push({ shown: joinShown(shown, name), prefix: `${prefix}${name}/` })
        }
      }
    }
    return out
  })

  const readdir = (path: unknown, options?: unknown) => {
    const at = toPath(path)
    return named("scandir", readDirectory(at, toOptions<ReaddirOptions>(options)), at)
  }

  const readlink = (path: unknown, options?: unknown) => {
    const at = toPath(path)
    const { encoding } = toOptions(options)
    const read = Effect.flatMap(core.require(at, false), ({ path, stat }) =>
      stat.kind === "symlink" ? fs.readLink(path) : refuse("EINVAL")
    )
    return named(
      "readlink",
      Effect.map(read, (target) => encodeName(target, encoding)),
      at
    )
  }

  const symlink = (target: unknown, path: unknown) => {
    const to = toPath(target, "target")
    const at = toPath(path)
    const made = Effect.flatMap(lookUpName(at, createActions), ({ path, stat }) => {
      if (stat !== undefined) return refuse("EEXIST")
      return to === "" || at.endsWith("/") ? refuse("ENOENT") : fs.symlink(path, to)
    })
    // Linux reports EPERM if a filesystem does not support links.
    const withoutLinks = Effect.catch(made, (failure) =>
      "_tag" in failure && failure._tag === "Unsupported" ? refuse("EPERM") : Effect.fail(failure)
    )
    return named("symlink", withoutLinks, to, at)
  }

  const link = (from: unknown, to: unknown) => {
    const source = toPath(from, "existingPath")
    const target = toPath(to, "newPath")
    return named("link", Effect.andThen(core.require(source, false), refuse("EPERM")), source, target)
  }

  const realpath = (syscall: "lstat" | "realpath") => (path: unknown, options?: unknown) => {
    const at = toPath(path)
    const { encoding } = toOptions(options)
    const found = Effect.map(core.require(at, true), ({ path }) =>
      encodeName(path === FsPath.root ? "/" : `/${path}`, encoding)
    )
    const parsed = FsPath.parse(at)
    return named(syscall, found, syscall === "realpath" || typeof parsed !== "string" ? at : `/${parsed}`)
  }

  const renameEntry = Effect.fnUntraced(function* (from: string, to: string): Effect.fn.Return<void, Failure> {
    const source = yield* lookUpName(from, moveActions)
    const target = yield* lookUpName(to, moveActions)
    if (endsWithDots(from) || endsWithDots(to)) return yield* refuse("EBUSY")
    if (source.stat === undefined) return yield* refuse("ENOENT")
    if (!source.stat.isDirectory && (from.endsWith("/") || to.endsWith("/"))) return yield* refuse("ENOTDIR")
    if (source.path === target.path) return
    if (source.path === FsPath.root || target.path === FsPath.root) return yield* refuse("EBUSY")
    if (FsPath.isWithin(source.path, target.path)) return yield* refuse(source.stat.isDirectory ? "EINVAL" : "ENOTDIR")
    if (FsPath.isWithin(target.path, source.path)) return yield* refuse("ENOTEMPTY")
    if (source.stat.isDirectory) {
      if (target.stat !== undefined && !target.stat.isDirectory) return yield* refuse("ENOTDIR")
    } else {
      if (target.stat?.isDirectory === true) return yield* refuse("EISDIR")
    }
    yield* fs.move(source.path, target.path, { overwrite: true })
    openFiles.moved(source.path, target.path)
  })

  const rename = (from: unknown, to: unknown) => {
    const source = toPath(from, "oldPath")
    const target = toPath(to, "newPath")
    return named("rename", renameEntry(source, target), source, target)
  }

  const remove = (path: FsPath.FsPath, recursive: boolean): Effect.Effect<void, Failure> =>
    path === FsPath.root ? refuse("EBUSY") : Effect.map(fs.delete(path, { recursive }), () => openFiles.removed(path))

  const unlink = (path: unknown) => {
    const at = toPath(path)
    const removed = Effect.flatMap(lookUpName(at, deleteActions), ({ path, stat }) => {
      if (stat === undefined) return refuse("ENOENT")
      return stat.isDirectory ? refuse("EISDIR") : at.endsWith("/") ? refuse("ENOTDIR") : remove(path, false)
    })
    return named("unlink", removed, at)
  }

  const rm = (path: unknown, options?: unknown) => {
    const at = toPath(path)
    const { force, recursive } = toOptions<RmOptions>(options)
    const removed = Effect.flatMap(lookUp(at, false, deleteActions), ({ path, stat }): Effect.Effect<void, Failure> => {
      if (stat === undefined) return force === true ? Effect.void : refuse("ENOENT", { syscall: "lstat", path: at })
      return stat.isDirectory && recursive !== true
        ? Effect.fail(fsError("ERR_FS_EISDIR", "Path is a directory", "rm", "EISDIR", "is a directory", at))
        : remove(path, recursive === true)
    })
    const isIgnored = (failure: Failure) =>
      "code" in failure && force === true && (failure.code === "ENOENT" || (failure.code === "ENOTDIR" && recursive === true))
    return named(
      "lstat",
      Effect.catch(removed, (failure) => (isIgnored(failure) ? Effect.void : Effect.fail(failure))),
      at
    )
  }

  const rmdir = (path: unknown, options?: unknown): Effect.Effect<void, Error> => {
    const at = toPath(path)
    if (toOptions<RmOptions>(options).recursive === true) return rm(at, { recursive: true, force: true })
    const removed = Effect.flatMap(lookUpName(at, deleteActions), ({ path, stat }) => {
      if (stat === undefined) return refuse("ENOENT")
      return stat.isDirectory ? (/(?:^|\/)\.\/*$/.test(at) ? refuse("EINVAL") : remove(path, false)) : refuse("ENOTDIR")
    })
    return named("rmdir", removed, at)
  }

  const statfs = (path: unknown) => {
    const at = toPath(path)
    return named("statfs", Effect.andThen(core.require(at, true), refuse("ENOSYS")), at)
  }

  return {
    chmodAt,
    checkOwner,
    list,
    realpath,
    utimesAt,
    calls: {
      access,
      chmod,
      chown: chown("chown"),
      lchown: chown("lchown"),
      link,
      lstat: stat("lstat"),
      lutimes: utimes("lutime"),
      mkdir,
      mkdtemp,
      readdir,
      readlink,
      rename,
      rm,
      rmdir,
      stat: stat("stat"),
      statfs,
      symlink,
      unlink,
      utimes: utimes("utime")
    }
  }
}

export type EntryCalls = ReturnType<typeof makeEntryCalls>
