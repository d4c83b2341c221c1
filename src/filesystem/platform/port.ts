import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { File, FileSystem } from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"
import * as Entry from "../../model/Entry.ts"
import type { FileStat, Kind, WatchEvent } from "../../model/Entry.ts"
import {
  alreadyExists,
  directoryNotEmpty,
  notADirectory,
  notAFile,
  notFound,
  accessDenied,
  invalidPath,
  invalidArgument
} from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { join, parent, root } from "../../model/FsPath.ts"
import { Limits, unlimited } from "../../model/Limits.ts"
import { isBytes } from "../../model/realms.ts"
import type { Attributes, Backend, Child, Handle, Info, Links, Rules, WriteHow } from "../../port/Backend.ts"
import { makeRelativeTargets } from "../../port/absoluteLinks.ts"
import * as Locks from "../../runtime/locks.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { fromPlatform } from "./errors.ts"

// Maps paths, rejects paths through symlinks and converts errors to faults, for a port over effect's FileSystem.
//
// Effect's FileSystem cannot confine a path to a directory. Each component is therefore checked before use. A process that
// replaces a component between the check and the use can redirect the call out of the root. The confinement is therefore only
// `best-effort`.

const reservedNameFault: Fault = invalidPath("names of this form are reserved for writes in progress")

interface RootedFileSystem {
  readonly fs: FileSystem
  readonly toHostPath: (path: FsPath.FsPath) => string
  /** Looks up a path whose components were checked before; `undefined` if it is absent. */
  readonly lstatEntry: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly findEntry: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly requireEntry: (path: FsPath.FsPath) => Effect.Effect<File.Info, Fault>
  /** Looks up a path at which an entry could be created. Fails if its parent directory does not exist. */
  readonly findCreatable: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly toShownName: (name: string) => string
}

/**
 * Converts errors to faults. `wrongKind` is the fault for a BadResource without a code.
 *
 * The effect runs without the caller's limits. If `fs` is a filesystem of this library, the limits would otherwise apply to its
 * steps too.
 */
export const toFaults = <A, R>(effect: Effect.Effect<A, PlatformError, R>, wrongKind?: Fault): Effect.Effect<A, Fault, R> =>
  Effect.provideService(
    Effect.mapError(effect, (error) => fromPlatform(error, wrongKind)),
    Limits,
    unlimited
  )

/**
 * Returns the suffix that this port adds to temporary names on `fs`.
 *
 * If `fs` is a filesystem of this library, it refuses the temporary names of this library. This port then adds a number to its
 * temporary names, which users of the port never see. Several ports can be stacked, so the first number that `fs` accepts is
 * used.
 */
const findNameSuffix = Effect.fnUntraced(function* (fs: FileSystem, above: string): Effect.fn.Return<string> {
  for (let number = 0; ; number++) {
    const suffix = number === 0 ? "" : String(number)
    const isRefused = yield* TemporaryNames.withName((name) =>
      Effect.match(fs.access(above + name + suffix), {
        onFailure: ({ reason }) => reason._tag === "BadArgument" && number < 8,
        onSuccess: () => false
      })
    )
    if (!isRefused) return suffix
  }
})

export const makeGround = (fs: FileSystem, rootPath: string): Effect.Effect<RootedFileSystem> => {
  const above = rootPath.endsWith("/") ? rootPath : `${rootPath}/`
  return Effect.map(findNameSuffix(fs, above), (suffix) => {
    const toShownName = (name: string): string => {
      const shown = name.slice(0, name.length - suffix.length)
      return suffix !== "" && name.endsWith(suffix) && TemporaryNames.isOwnName(shown) ? shown : name
    }
    const isReserved = (name: string): boolean => toShownName(name) !== name
    const toHostName = (name: string): string => (TemporaryNames.isOwnName(name) ? name + suffix : name)
    const toHostPath = (path: FsPath.FsPath): string => {
      if (path === FsPath.root) return rootPath
      return above + (suffix === "" || !path.includes(".~") ? path : path.split("/").map(toHostName).join("/"))
    }

    const lstatEntry = (path: FsPath.FsPath): Effect.Effect<File.Info | undefined, Fault> =>
      Effect.catch(toFaults(fs.lstat(toHostPath(path)), notFound), (fault) =>
        fault._tag === "NotFound" || fault._tag === "NotADirectory" ? Effect.undefined : Effect.fail(fault)
      )

    const findObstacle = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<Fault | undefined, Fault> {
      for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
        const info = yield* lstatEntry(path.slice(0, end) as FsPath.FsPath)
        if (info === undefined) return notFound
        if (info.type !== "Directory") return notADirectory
      }
      return undefined
    })

    const checkPath = (path: FsPath.FsPath): Effect.Effect<Fault | undefined, Fault> =>
      isReserved(FsPath.name(path)) ? Effect.fail(reservedNameFault) : findObstacle(path)

    const findEntry = (path: FsPath.FsPath) =>
      Effect.flatMap(checkPath(path), (fault) => (fault === undefined ? lstatEntry(path) : Effect.undefined))

    return {
      fs,
      toHostPath,
      lstatEntry,
      findEntry,
      requireEntry: (path) =>
        Effect.flatMap(findEntry(path), (info) => (info === undefined ? Effect.fail(notFound) : Effect.succeed(info))),
      findCreatable: (path) =>
        Effect.flatMap(checkPath(path), (fault) => (fault === undefined ? lstatEntry(path) : Effect.fail(fault))),
      toShownName
    }
  })
}

const kindOf = (type: File.Type): Kind =>
  type === "File" ? "file" : type === "Directory" ? "directory" : type === "SymbolicLink" ? "symlink" : "other"

const timeOf = (date: Option.Option<Date>): DateTime.Utc | undefined =>
  Option.isSome(date) ? DateTime.makeUnsafe(date.value.getTime()) : undefined

const permissions = (info: File.Info): number => info.mode & 0o777

const toStat = (path: FsPath.FsPath, info: File.Info): FileStat => {
  const kind = kindOf(info.type)
  const createdAt = timeOf(info.birthtime)
  const modifiedAt = timeOf(info.mtime)
  return Entry.stat({
    path,
    kind,
    sizeBytes: kind === "file" || kind === "symlink" ? Number(info.size) : 0,
    ...(createdAt === undefined ? undefined : { createdAt }),
    ...(modifiedAt === undefined ? undefined : { modifiedAt }),
    mode: permissions(info),
    ...(kind === "symlink" ? { isSymlink: true } : undefined)
  })
}

// Writes to effect's FileSystem. New content goes into a temporary file beside the target. The temporary file is then linked
// to a new name, or renamed over the old file.
//
// A reader therefore sees the old or the new file, and a failed or interrupted write leaves nothing behind. An append changes
// the file itself, and removes the appended bytes if it fails. Every call that changes something runs uninterruptibly.

const noBytes = new Uint8Array(0)

type Content<E, R> = Uint8Array | Stream.Stream<Uint8Array, E, R>

const withCommit = <A, E, R>(how: WriteHow | undefined, publish: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
  how?.commit === undefined ? publish : how.commit(publish)

const makeStaging = (ground: RootedFileSystem): Backend["write"] => {
  const { toHostPath, fs, lstatEntry, findCreatable } = ground

  const checkTarget = (found: File.Info | undefined, mode: "create" | "replace" | "append"): Effect.Effect<void, Fault> =>
    found === undefined
      ? Effect.void
      : mode === "create"
        ? Effect.fail(alreadyExists)
        : found.type === "File"
          ? Effect.void
          : Effect.fail(notAFile)

  const writeWithFlag = (path: FsPath.FsPath, bytes: Uint8Array, flag: "wx" | "a", mode?: number): Effect.Effect<void, Fault> =>
    Effect.uninterruptible(toFaults(fs.writeFile(toHostPath(path), bytes, { flag, mode })))

  const appendStream = <E, R>(
    path: FsPath.FsPath,
    stream: Stream.Stream<Uint8Array, E, R>
  ): Effect.Effect<void, Fault | E, R> =>
    Stream.runForEachArray(stream, (arrays) =>
      Effect.forEach(arrays, (bytes) => writeWithFlag(path, bytes, "a"), { discard: true })
    )

  const statPublished = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(lstatEntry(path), (info) =>
      info === undefined ? Effect.fail(notFound) : Effect.succeed(toStat(path, info))
    )

  const discard = (path: FsPath.FsPath): Effect.Effect<void> =>
    Effect.ignore(toFaults(fs.remove(toHostPath(path), { force: true })))

  const withTemporaryFile = <A, E, R>(
    path: FsPath.FsPath,
    isRenamedOnSuccess: boolean,
    use: (aside: FsPath.FsPath) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    TemporaryNames.withName((name) => {
      const aside = join(parent(path), name)
      return Effect.onExit(use(aside), (exit) => (isRenamedOnSuccess && Exit.isSuccess(exit) ? Effect.void : discard(aside)))
    })

  /**
   * Copies the old file's owner, if permitted, and then its permission bits, because a change of owner may clear them.
   */
  const copyOwnerAndMode = Effect.fnUntraced(function* (path: FsPath.FsPath, old: File.Info): Effect.fn.Return<void, Fault> {
    const made = yield* lstatEntry(path)
    if (made === undefined) return
    const uid = Option.getOrUndefined(old.uid)
    const gid = Option.getOrUndefined(old.gid)
    if (
      uid !== undefined &&
      gid !== undefined &&
      (uid !== Option.getOrUndefined(made.uid) || gid !== Option.getOrUndefined(made.gid))
    ) {
      yield* Effect.ignore(toFaults(fs.chown(toHostPath(path), uid, gid)))
    }
    if (permissions(old) !== permissions(made)) yield* toFaults(fs.chmod(toHostPath(path), permissions(old)))
  }, Effect.uninterruptible)

  const writeTemporary = Effect.fnUntraced(function* <E, R>(
    aside: FsPath.FsPath,
    content: Content<E, R>,
    old: File.Info | undefined
  ): Effect.fn.Return<void, Fault | E, R> {
    const isWhole = isBytes(content)
    yield* writeWithFlag(aside, isWhole ? content : noBytes, "wx", old && permissions(old))
    if (!isWhole) yield* appendStream(aside, content)
    if (old !== undefined) yield* copyOwnerAndMode(aside, old)
  })

  /**
   * Publishes a new file without hard links. First creates an empty file under the name, and then renames the content
   * over it.
   */
  const reserveAndRename = (aside: FsPath.FsPath, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.andThen(
      writeWithFlag(path, noBytes, "wx"),
      Effect.onError(toFaults(fs.rename(toHostPath(aside), toHostPath(path))), () => discard(path))
    )

  const linkOrReserve = (aside: FsPath.FsPath, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.catch(toFaults(fs.link(toHostPath(aside), toHostPath(path))), (fault) =>
      fault._tag === "AlreadyExists" ? Effect.fail(fault) : reserveAndRename(aside, path)
    )

  const publish = (aside: FsPath.FsPath, path: FsPath.FsPath, mode: "create" | "replace"): Effect.Effect<FileStat, Fault> =>
    Effect.uninterruptible(
      Effect.andThen(
        mode === "create"
          ? linkOrReserve(aside, path)
          : Effect.andThen(
              Effect.flatMap(lstatEntry(path), (found) => checkTarget(found, mode)),
              toFaults(fs.rename(toHostPath(aside), toHostPath(path)))
            ),
        statPublished(path)
      )
    )

  const writeStaged = <E, R>(
    path: FsPath.FsPath,
    content: Content<E, R>,
    mode: "create" | "replace",
    how: WriteHow | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      Effect.tap(findCreatable(path), (found) => checkTarget(found, mode)),
      (old) =>
        withTemporaryFile(path, mode === "replace", (aside) =>
          Effect.andThen(writeTemporary(aside, content, old), withCommit(how, publish(aside, path, mode)))
        )
    )

  const appendOrTruncate = <E, R>(
    path: FsPath.FsPath,
    add: Effect.Effect<void, Fault | E, R>
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      Effect.tap(lstatEntry(path), (found) => checkTarget(found, "append")),
      (old) =>
        Effect.andThen(
          Effect.onExit(add, (exit) =>
            Exit.isSuccess(exit)
              ? Effect.void
              : old === undefined
                ? discard(path)
                : Effect.ignore(toFaults(fs.truncate(toHostPath(path), Number(old.size))))
          ),
          statPublished(path)
        )
    )

  const append = <E, R>(
    path: FsPath.FsPath,
    content: Content<E, R>,
    how: WriteHow | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.andThen(
      Effect.tap(findCreatable(path), (found) => checkTarget(found, "append")),
      isBytes(content)
        ? withCommit(how, appendOrTruncate(path, writeWithFlag(path, content, "a")))
        : withTemporaryFile(path, false, (aside) =>
            Effect.andThen(
              writeTemporary(aside, content, undefined),
              withCommit(
                how,
                appendOrTruncate(
                  path,
                  Effect.andThen(
                    writeWithFlag(path, noBytes, "a"),
                    appendStream(
                      path,
                      Stream.mapError(fs.stream(toHostPath(aside)), (error) => fromPlatform(error))
                    )
                  )
                )
              )
            )
          )
    )

  return (path, content, mode, how) =>
    path === root
      ? Effect.fail(mode === "create" ? alreadyExists : notAFile)
      : mode === "append"
        ? append(path, content, how)
        : writeStaged(path, content, mode, how)
}

const rootDeniedFault: Fault = accessDenied("root")
const notALink: Fault = invalidArgument("path", "it is not a symbolic link")
const linkAttributesFault: Fault = invalidArgument("path", "a symbolic link has no attributes of its own")

const tagOf = { Create: "Created", Update: "Updated", Remove: "Removed" } as const

/** Escapes a name. The result is readable and unique: a control character becomes `\x01`, and a backslash is doubled. */
const escapeName = (name: string): string =>
  name.replace(/[\\\u0000-\u001f\u007f]/g, (unit) =>
    unit === "\\" ? "\\\\" : `\\x${unit.charCodeAt(0).toString(16).padStart(2, "0")}`
  )

const isPathName = (name: string): boolean => FsPath.parse(name) === name

/** Tests whether a name contains U+FFFD, which replaces invalid bytes. Such a name may not be usable in a path. */
const hasReplacementCharacter = (name: string): boolean => name.includes("\ufffd")

/**
 * Returns a time in seconds. Half a microsecond is added so that rounding does not change the millisecond. Returns a Date
 * for a time before 1970, because Node takes a negative number as the current time.
 */
const secondsOf = (time: DateTime.Utc): number | Date =>
  time.epochMilliseconds < 0
    ? DateTime.toDateUtc(time)
    : time.epochMilliseconds % 1000 === 0
      ? time.epochMilliseconds / 1000
      : time.epochMilliseconds / 1000 + 5e-7

export const make = (ground: RootedFileSystem, info: Info, rules: Rules): Backend => {
  const { toHostPath, fs, lstatEntry, toShownName: nameOf, findCreatable, requireEntry, findEntry } = ground

  const childOf = ({ name, type }: { readonly name: string; readonly type: File.Type }): Child =>
    isPathName(name)
      ? { name, kind: kindOf(type), addressable: true }
      : { name: escapeName(name), kind: kindOf(type), addressable: false, key: name }

  const lookUpChild = (directory: FsPath.FsPath, name: string): Effect.Effect<Child | undefined, Fault> =>
    Effect.map(lstatEntry(FsPath.join(directory, name)), (found) =>
      found !== undefined
        ? childOf({ name, type: found.type })
        : hasReplacementCharacter(name)
          ? { name, kind: "other", addressable: false, sizeBytes: 0 }
          : undefined
    )

  const entries = (
    path: FsPath.FsPath
  ): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly type: File.Type }>, Fault> =>
    Effect.map(toFaults(fs.readDirectoryEntries(toHostPath(path)), notADirectory), (entries) =>
      entries.map(({ name, type }) => ({ name: nameOf(name), type }))
    )

  const list = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<ReadonlyArray<Child>, Fault> {
    if ((yield* requireEntry(path)).type !== "Directory") return yield* Effect.fail(notADirectory)
    const out: Array<Child> = []
    for (const entry of yield* entries(path)) {
      const child =
        entry.type === "Unknown" || hasReplacementCharacter(entry.name) ? yield* lookUpChild(path, entry.name) : childOf(entry)
      if (child !== undefined) out.push(child)
    }
    return out
  })

  const handleOf = (path: FsPath.FsPath, file: File, found: File.Info): Handle => {
    const stat = toStat(path, found)
    return {
      stat,
      read: (offset, length) => {
        // Do not read bytes that were appended after the file was opened.
        const size = Math.max(0, Math.min(length, stat.sizeBytes - offset))
        return Effect.uninterruptible(
          Effect.map(toFaults(file.readAlloc(size, { position: BigInt(offset) })), (bytes) =>
            Option.match(bytes, {
              onNone: () => new Uint8Array(0),
              onSome: ({ buffer, byteOffset, length }) => new Uint8Array(buffer, byteOffset, length)
            })
          )
        )
      }
    }
  }

  const open: Backend["open"] = Effect.fnUntraced(function* (path) {
    // Check the kind first, because opening a FIFO would block.
    if ((yield* requireEntry(path)).type !== "File") return yield* Effect.fail(notAFile)
    const file = yield* toFaults(
      Effect.catch(fs.open(toHostPath(path), { flag: "r", noFollow: true }), (error) =>
        error.reason._tag === "BadArgument" ? fs.open(toHostPath(path), { flag: "r" }) : Effect.fail(error)
      )
    )
    const found = yield* toFaults(file.stat)
    return found.type === "File" ? handleOf(path, file, found) : yield* Effect.fail(notAFile)
  })

  const makeDirectory = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    path === FsPath.root
      ? Effect.fail(alreadyExists)
      : Effect.flatMap(findCreatable(path), (found) =>
          found === undefined
            ? Effect.uninterruptible(toFaults(fs.makeDirectory(toHostPath(path)), notADirectory))
            : Effect.fail(alreadyExists)
        )

  /**
   * Removes an empty directory.
   *
   * Effect's FileSystem removes a directory with everything in it. This function therefore renames the directory first, and
   * then checks again that the directory is empty.
   */
  const removeDirectory = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<void, Fault> {
    if ((yield* entries(path)).length > 0) return yield* Effect.fail(directoryNotEmpty)
    yield* TemporaryNames.withName(
      Effect.fnUntraced(function* (name) {
        const aside = FsPath.join(FsPath.parent(path), name)
        yield* toFaults(fs.rename(toHostPath(path), toHostPath(aside)))
        if ((yield* entries(aside)).length === 0) return yield* toFaults(fs.remove(toHostPath(aside), { recursive: true }))
        yield* toFaults(fs.rename(toHostPath(aside), toHostPath(path)))
        return yield* Effect.fail(directoryNotEmpty)
      })
    )
  }, Effect.uninterruptible)

  const remove = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    path === FsPath.root
      ? Effect.fail(rootDeniedFault)
      : Effect.flatMap(requireEntry(path), ({ type }) =>
          type === "Directory" ? removeDirectory(path) : Effect.uninterruptible(toFaults(fs.remove(toHostPath(path))))
        )

  const isSameName = (from: FsPath.FsPath, to: FsPath.FsPath): boolean =>
    info.caseSensitive ? from === to : FsPath.fold(from) === FsPath.fold(to)

  const checkReplaceable = Effect.fnUntraced(function* (
    source: File.Info,
    target: File.Info,
    to: FsPath.FsPath
  ): Effect.fn.Return<void, Fault> {
    if (source.type !== "Directory") return target.type === "Directory" ? yield* Effect.fail(notAFile) : undefined
    if (target.type !== "Directory") return yield* Effect.fail(notADirectory)
    if ((yield* entries(to)).length > 0) return yield* Effect.fail(directoryNotEmpty)
  })

  const rename: Backend["rename"] = Effect.fnUntraced(function* (from, to, options) {
    if (from === FsPath.root || to === FsPath.root) return yield* Effect.fail(rootDeniedFault)
    const source = yield* requireEntry(from)
    const target = yield* findCreatable(to)
    if (target !== undefined && !isSameName(from, to)) {
      if (!options.replace) return yield* Effect.fail(alreadyExists)
      yield* checkReplaceable(source, target, to)
    }
    yield* toFaults(fs.rename(toHostPath(from), toHostPath(to)))
  }, Effect.uninterruptible)

  const links: Links = {
    read: (path) =>
      Effect.flatMap(requireEntry(path), ({ type }) =>
        type === "SymbolicLink" ? toFaults(fs.readLink(toHostPath(path))) : Effect.fail(notALink)
      ),
    // If the FileSystem is itself confined, its "/" is not the root of the machine, so absolute symlinks are not
    // converted.
    relative: toHostPath(FsPath.root) === "/" ? undefined : makeRelativeTargets(() => [toHostPath(FsPath.root), info.root]),
    make: (path, target) =>
      Effect.flatMap(findCreatable(path), (found) =>
        found === undefined
          ? Effect.uninterruptible(toFaults(fs.symlink(target, toHostPath(path))))
          : Effect.fail(alreadyExists)
      )
  }

  const attributes: Attributes = {
    set: Effect.fnUntraced(function* (path, { mode, modifiedAt }) {
      const found = yield* requireEntry(path)
      if (found.type === "SymbolicLink") return yield* Effect.fail(linkAttributesFault)
      if (mode !== undefined) yield* toFaults(fs.chmod(toHostPath(path), mode))
      if (modifiedAt !== undefined) {
        const time = secondsOf(modifiedAt)
        yield* toFaults(
          fs.utimes(
            toHostPath(path),
            Option.getOrElse(found.atime, () => time),
            time
          )
        )
      }
    }, Effect.uninterruptible)
  }

  const isVisible = (path: string): boolean => {
    const parsed = FsPath.parse(path)
    return parsed === path && !path.split("/").some((name) => TemporaryNames.isOwnName(nameOf(name)))
  }

  const watch = (path: FsPath.FsPath): Stream.Stream<WatchEvent, Fault> =>
    Stream.unwrap(
      Effect.map(requireEntry(path), ({ type }) =>
        type === "Directory"
          ? fs.watch(toHostPath(path), { recursive: true }).pipe(
              Stream.mapError((error) => fromPlatform(error, notADirectory)),
              Stream.filter(({ path }) => isVisible(path)),
              Stream.map((event) => ({ _tag: tagOf[event._tag], path: FsPath.below(path, event.path as FsPath.FsPath) }))
            )
          : Stream.fromEffect(Effect.fail(notADirectory))
      )
    )

  return {
    info,
    stat: (path) => Effect.map(findEntry(path), (found) => found && toStat(path, found)),
    list,
    open,
    write: makeStaging(ground),
    makeDirectory,
    remove,
    rename,
    links,
    attributes,
    watch,
    rules,
    locks: Locks.make({ caseSensitive: info.caseSensitive })
  }
}
