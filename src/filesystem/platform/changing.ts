import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { FileSystem, OpenFlag } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import type { Resolved } from "../../engine/resolve.ts"
import type { FileStat } from "../../model/Entry.ts"
import * as FsErrorModule from "../../model/FsError.ts"
import type { FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { deleteActions, moveActions, writeActions } from "../operations/call.ts"
import { type Bridge, maskMode, permissionBits } from "./bridge.ts"
import { badArgument, toPlatform } from "./errors.ts"

// Temporary files and directories are ordinary entries with random names, in the given directory or in the root, because a
// filesystem has no system directory for temporary files.

type Temporary = Pick<FileSystem, "makeTempDirectory" | "makeTempDirectoryScoped" | "makeTempFile" | "makeTempFileScoped">

type DirectoryOptions = Parameters<FileSystem["makeTempDirectory"]>[0]
type FileOptions = Parameters<FileSystem["makeTempFile"]>[0]

const radix = 36
const randomName = (digits: number): Effect.Effect<string> =>
  Effect.map(Random.nextIntBetween(0, radix ** digits), (number) => number.toString(radix).padStart(digits, "0"))

const ownerOnlyMode = 0o700

export const makeTemporary = ({ withPlatformErrors, fs, port }: Bridge): Temporary => {
  const removeDirectory = (directory: string) => fs.delete(directory, { recursive: true, missing: "ignore" })

  const createPrivateDirectory = (path: string): Effect.Effect<string, FsError> => {
    const made = Effect.as(fs.mkdir(path, { parents: false, existOk: false }), path)
    return port.attributes === undefined
      ? made
      : Effect.tap(made, () =>
          Effect.onError(fs.setAttributes(path, { mode: ownerOnlyMode }), () => Effect.ignore(removeDirectory(path)))
        )
  }

  const makeDirectory = (method: string, options: DirectoryOptions): Effect.Effect<string, PlatformError> => {
    const above = (options?.directory ?? "").replace(/\/+$/, "")
    const randomPath = Effect.map(randomName(6), (name) => `${above}/${options?.prefix ?? ""}${name}`)
    return withPlatformErrors(
      method,
      options?.directory ?? "/",
      Effect.retry(Effect.flatMap(randomPath, createPrivateDirectory), {
        times: 16,
        while: (error) => error._tag === "AlreadyExists"
      })
    )
  }

  const makeFile = (
    method: string,
    options: FileOptions
  ): Effect.Effect<{ readonly directory: string; readonly path: string }, PlatformError> =>
    Effect.flatMap(makeDirectory(method, options), (directory) =>
      Effect.flatMap(randomName(10), (name) => {
        const path = `${directory}/${name}${options?.suffix ?? ""}`
        const made = withPlatformErrors(
          method,
          path,
          fs.writeBytes(path, new Uint8Array(0), { mode: "create", createParents: false })
        )
        return Effect.as(
          Effect.onError(made, () => Effect.ignore(removeDirectory(directory))),
          { directory, path }
        )
      })
    )

  /** Removes the directory. A finalizer cannot fail, so a failure is logged. */
  const release = (directory: string) => Effect.ignore(removeDirectory(directory), { log: "Warn" })

  return {
    makeTempDirectory: (options) => makeDirectory("makeTempDirectory", options),
    makeTempDirectoryScoped: (options) => Effect.acquireRelease(makeDirectory("makeTempDirectoryScoped", options), release),
    makeTempFile: (options) => Effect.map(makeFile("makeTempFile", options), ({ path }) => path),
    makeTempFileScoped: (options) =>
      Effect.map(
        Effect.acquireRelease(makeFile("makeTempFileScoped", options), ({ directory }) => release(directory)),
        ({ path }) => path
      )
  }
}

// Copies like effect's Node implementation (`cp -r`).
//
// The service copies to a free path, and removes a copy that fails. An existing target is handled here: directories are
// merged, and without `overwrite` existing files are silently kept.

interface CopyOptions {
  readonly overwrite: boolean
  readonly times: boolean
}

const operation = "copy"

export const makeCopy = ({ withPlatformErrors, children, fs, lookUpLink, port }: Bridge): FileSystem["copy"] => {
  const failInvalidTarget = (path: string, detail: string) =>
    Effect.fail(new FsErrorModule.InvalidArgument({ operation, path, argument: "to", detail }))

  /** Copies the mode, and the time if requested. `fs.copy` sets a new time, and keeps the mode only if the rules permit. */
  const copyAttributes = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsErrorModule.FsError> {
    const { isFile, mode, modifiedAt } = yield* fs.stat(from)
    yield* fs.setAttributes(to, {
      ...(mode === undefined ? undefined : { mode }),
      ...(copyOptions.times && isFile && modifiedAt !== undefined ? { modifiedAt } : undefined)
    })
  })

  /**
   * Copies the attributes of a tree. Directories come last, because a directory without search permission would prevent
   * changes of its entries.
   */
  const copyTreeAttributes = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsErrorModule.FsError> {
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
  ): Effect.Effect<void, FsErrorModule.FsError> =>
    port.attributes === undefined || source.kind === "symlink"
      ? Effect.void
      : (source.isDirectory ? copyTreeAttributes : copyAttributes)(from, to, copyOptions)

  const copyOrReplace = (
    from: FsPath.FsPath,
    source: FileStat,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.Effect<void, FsErrorModule.FsError> =>
    Effect.andThen(
      Effect.catchTag(fs.copy(from, to, { overwrite: true }), "NotAFile", ({ path }) =>
        failInvalidTarget(path, "a FIFO, socket or device cannot be copied")
      ),
      kept(from, source, to, copyOptions)
    )

  const mergeDirectory = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsErrorModule.FsError> {
    for (const { addressable, name } of yield* children(operation, from)) {
      const path = FsPath.join(from, name)
      if (!addressable) {
        return yield* Effect.fail(new FsErrorModule.IoError({ operation, path, detail: "no path can express this name" }))
      }
      yield* copyAny(path, FsPath.join(to, name), copyOptions)
    }
  })

  const copyAny = Effect.fnUntraced(function* (
    from: string,
    to: string,
    copyOptions: CopyOptions
  ): Effect.fn.Return<void, FsErrorModule.FsError> {
    const { path: source, stat } = yield* lookUpLink(operation, from)
    if (stat === undefined) return yield* Effect.fail(new FsErrorModule.NotFound({ operation, path: from }))
    const target = yield* lookUpLink(operation, to, writeActions)
    const found = target.stat
    if (target.isBlocked) return yield* Effect.fail(new FsErrorModule.NotADirectory({ operation, path: to }))
    if (FsPath.isWithin(source, target.path))
      return yield* failInvalidTarget(to, "an entry cannot be copied onto or into itself")
    if (found === undefined) return yield* copyOrReplace(source, stat, target.path, copyOptions)
    if (stat.isDirectory !== found.isDirectory)
      return yield* failInvalidTarget(to, "a file cannot replace a directory, and a directory cannot replace a file")
    if (stat.isDirectory) return yield* mergeDirectory(source, target.path, copyOptions)
    // Node replaces a symlink by a symlink even without `overwrite`, but never replaces a file by a symlink.
    if (stat.kind === "symlink" && found.kind !== "symlink") {
      return yield* Effect.fail(new FsErrorModule.AlreadyExists({ operation, path: to }))
    }
    if (copyOptions.overwrite || stat.kind === "symlink") yield* copyOrReplace(source, stat, target.path, copyOptions)
  })

  return (from, to, options) =>
    withPlatformErrors(
      operation,
      from,
      copyAny(from, to, { overwrite: options?.overwrite === true, times: options?.preserveTimestamps === true })
    )
}

type ChangeMethods = Pick<
  FileSystem,
  | "chmod"
  | "chown"
  | "copyFile"
  | "link"
  | "makeDirectory"
  | "remove"
  | "rename"
  | "sink"
  | "symlink"
  | "truncate"
  | "utimes"
  | "writeFile"
>

/** The write modes of the service, by the equivalent open flag. All other flags need a handle. */
const writeModeByFlag: { readonly [Flag in OpenFlag]?: "overwrite" | "create" | "append" } = {
  w: "overwrite",
  "w+": "overwrite",
  wx: "create",
  "wx+": "create",
  a: "append",
  "a+": "append",
  ax: "create",
  "ax+": "create"
}

export const make = (bridge: Bridge, open: FileSystem["open"]): ChangeMethods => {
  const { withPlatformErrors, failPlatform, fs, lookUp, lookUpLink, port } = bridge

  const notFound = (operation: string, path: string) => new FsErrorModule.NotFound({ operation, path })

  /** Fails if a missing target has no parent directory. The service creates parents, but effect's FileSystem does not. */
  const requireParent = Effect.fnUntraced(function* (
    method: string,
    path: string,
    target: Resolved
  ): Effect.fn.Return<void, FsErrorModule.FsError> {
    if (target.stat !== undefined) return
    const parent = yield* lookUp(method, FsPath.parent(target.path), writeActions)
    if (parent.stat?.kind === "directory") return
    const operation = method
    return yield* Effect.fail(
      target.isBlocked || parent.stat !== undefined
        ? new FsErrorModule.NotADirectory({ operation, path })
        : notFound(method, path)
    )
  })

  const toExclusiveError = (error: FsErrorModule.FsError, mode: string | undefined): FsErrorModule.FsError =>
    mode === "create" && error._tag === "NotAFile"
      ? new FsErrorModule.AlreadyExists({ operation: error.operation, path: error.path })
      : error

  const unsupported = (method: string, path: string, feature: string) =>
    withPlatformErrors(
      method,
      path,
      Effect.andThen(fs.stat(path), Effect.fail(new FsErrorModule.Unsupported({ operation: method, path, feature })))
    )

  const missingDirectories = Effect.fnUntraced(function* (
    path: string,
    recursive: boolean
  ): Effect.fn.Return<Array<FsPath.FsPath>, FsErrorModule.FsError> {
    const out: Array<FsPath.FsPath> = []
    for (let at = path; ;) {
      const found = yield* lookUpLink("makeDirectory", at, writeActions)
      if (found.stat !== undefined) return out
      out.push(found.path)
      if (!recursive) return out
      at = FsPath.parent(found.path)
    }
  })

  const makeDirectory = (path: string, recursive: boolean): Effect.Effect<void, FsErrorModule.FsError> =>
    Effect.catchTag(fs.mkdir(path, { parents: recursive, existOk: recursive }), "AlreadyExists", (error) =>
      recursive
        ? Effect.flatMap(lookUp("makeDirectory", path), ({ stat }) =>
            Effect.fail(stat === undefined ? notFound("makeDirectory", path) : error)
          )
        : Effect.fail(error)
    )

  const makeDirectoryWith = Effect.fnUntraced(function* (
    path: string,
    recursive: boolean,
    mode: number
  ): Effect.fn.Return<void, FsErrorModule.FsError> {
    const created = yield* missingDirectories(path, recursive)
    yield* makeDirectory(path, recursive)
    for (const directory of created) {
      yield* fs.setAttributes(directory, { mode: maskMode(mode, yield* fs.stat(directory)) })
    }
  })

  const copyFile = Effect.fnUntraced(function* (from: string, to: string): Effect.fn.Return<void, FsErrorModule.FsError> {
    const operation = "copyFile"
    const source = yield* lookUp(operation, from)
    if (source.stat === undefined) return yield* Effect.fail(notFound(operation, from))
    if (source.stat.kind !== "file") return yield* Effect.fail(new FsErrorModule.NotAFile({ operation, path: from }))
    const target = yield* lookUp(operation, to, writeActions)
    if (target.path === source.path) return
    if (target.stat?.kind === "directory") return yield* Effect.fail(new FsErrorModule.NotAFile({ operation, path: to }))
    yield* requireParent(operation, to, target)
    yield* fs.copy(source.path, target.path, { overwrite: true })
    if (source.stat.mode !== undefined && port.attributes !== undefined) {
      yield* fs.setAttributes(target.path, { mode: source.stat.mode })
    }
  })

  const remove = Effect.fnUntraced(function* (
    path: string,
    recursive: boolean,
    force: boolean
  ): Effect.fn.Return<void, FsErrorModule.FsError | PlatformError> {
    const operation = "remove"
    const { isBlocked, stat } = yield* lookUpLink(operation, path, deleteActions)
    if (stat === undefined) return force && !isBlocked ? undefined : yield* Effect.fail(notFound(operation, path))
    if (stat.isDirectory && !recursive) {
      return yield* Effect.fail(toPlatform(new FsErrorModule.NotAFile({ operation, path }), operation, path, "Unknown"))
    }
    yield* fs.delete(path, { recursive, missing: force ? "ignore" : "fail" })
  })

  const rename = Effect.fnUntraced(function* (from: string, to: string): Effect.fn.Return<void, FsErrorModule.FsError> {
    const operation = "rename"
    const source = yield* lookUpLink(operation, from, moveActions)
    if (source.stat === undefined) return yield* Effect.fail(notFound(operation, from))
    const target = yield* lookUpLink(operation, to, moveActions)
    if (target.path === source.path) return
    yield* requireParent(operation, to, target)
    const isAbove = FsPath.isWithin(target.path, source.path)
    if (target.stat?.isDirectory === true && !source.stat.isDirectory && !isAbove) {
      return yield* Effect.fail(new FsErrorModule.NotAFile({ operation, path: to }))
    }
    yield* fs.move(from, to, { overwrite: true })
  })

  const symlink = Effect.fnUntraced(function* (target: string, path: string): Effect.fn.Return<void, FsErrorModule.FsError> {
    yield* requireParent("symlink", path, yield* lookUpLink("symlink", path, writeActions))
    yield* fs.symlink(path, target)
  })

  /**
   * Converts a time as Node does: numbers are seconds, and a negative number means the current time. An infinite number, which
   * Node refuses, means the current time too.
   */
  const toMillis = (method: string, time: Date | number): Effect.Effect<number, PlatformError> => {
    const value = typeof time === "number" ? time : time.getTime()
    if (Number.isNaN(value)) return Effect.fail(badArgument(method, "the time must be a number or a valid Date"))
    if (typeof time !== "number") return Effect.succeed(value)
    return Number.isFinite(value) && value >= 0 ? Effect.succeed(value * 1000) : Clock.currentTimeMillis
  }

  const withHandle = (
    path: string,
    options: { readonly flag?: OpenFlag | undefined; readonly mode?: number | undefined },
    data: Uint8Array
  ): Effect.Effect<void, PlatformError> =>
    Effect.scoped(Effect.flatMap(open(path, options), (file) => Effect.andThen(file.writeAll(data), file.sync)))

  const publishingSink = (path: string, mode: "overwrite" | "create"): Sink.Sink<void, Uint8Array, never, PlatformError> => {
    const sink = Sink.as(fs.sink(path, { mode, createParents: false }), undefined)
    return Sink.fromTransform((upstream, scope) =>
      Effect.catch(sink.transform(upstream, scope), (error) => failPlatform("sink", path, toExclusiveError(error, mode)))
    )
  }

  return {
    chmod: (path, mode) =>
      Effect.flatMap(permissionBits("chmod", mode), (mode) =>
        withPlatformErrors("chmod", path, fs.setAttributes(path, { mode }))
      ),
    chown: (path) => unsupported("chown", path, "owners"),
    copyFile: (from, to) => withPlatformErrors("copyFile", from, copyFile(from, to)),
    link: (from) => unsupported("link", from, "hard links"),
    makeDirectory: (path, options) => {
      const recursive = options?.recursive === true
      return options?.mode === undefined
        ? withPlatformErrors("makeDirectory", path, makeDirectory(path, recursive))
        : Effect.flatMap(permissionBits("makeDirectory", options.mode), (mode) =>
            withPlatformErrors("makeDirectory", path, makeDirectoryWith(path, recursive, mode))
          )
    },
    remove: (path, options) =>
      Effect.catch(remove(path, options?.recursive === true, options?.force === true), (error) =>
        error._tag === "PlatformError" ? Effect.fail(error) : failPlatform("remove", path, error)
      ),
    rename: (from, to) => withPlatformErrors("rename", from, rename(from, to)),
    sink: (path, options) => {
      const flag = options?.flag ?? "w"
      const mode = Object.hasOwn(writeModeByFlag, flag) ? writeModeByFlag[flag] : undefined
      return mode === undefined || mode === "append" || options?.mode !== undefined
        ? Sink.unwrap(
            Effect.map(open(path, { ...options, flag }), (file) => Sink.mapEffect(Sink.forEach(file.writeAll), () => file.sync))
          )
        : publishingSink(path, mode)
    },
    symlink: (target, path) => withPlatformErrors("symlink", path, symlink(target, path)),
    truncate: (path, length = 0) =>
      Number.isSafeInteger(length)
        ? Effect.scoped(Effect.flatMap(open(path, { flag: "r+" }), (file) => Effect.andThen(file.truncate(length), file.sync)))
        : Effect.fail(badArgument("truncate", "the length must be an integer")),
    utimes: (path, atime, mtime) =>
      Effect.flatMap(Effect.andThen(toMillis("utimes", atime), toMillis("utimes", mtime)), (modified) =>
        withPlatformErrors("utimes", path, fs.setAttributes(path, { modifiedAt: DateTime.makeUnsafe(modified) }))
      ),
    writeFile: (path, data, options) => {
      const flag = options?.flag ?? "w"
      const mode = Object.hasOwn(writeModeByFlag, flag) ? writeModeByFlag[flag] : undefined
      return mode === undefined || options?.mode !== undefined
        ? withHandle(path, { ...options, flag }, data)
        : withPlatformErrors(
            "writeFile",
            path,
            Effect.mapError(Effect.asVoid(fs.writeBytes(path, data, { mode, createParents: false })), (error) =>
              toExclusiveError(error, mode)
            )
          )
    }
  }
}
