import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { File } from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { WatchEvent } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { makeRelativeTargets } from "../../port/absoluteLinks.ts"
import type { Attributes, Backend, Child, Handle, Info, Links, Rules } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import * as Locks from "../../runtime/locks.ts"
import { fromPlatform } from "./errors.ts"
import { toFaults, type RootedFileSystem, kindOf, toStat } from "./ground.ts"
import * as Staging from "./staging.ts"

const notAFile: Fault = { _tag: "NotAFile" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const notEmpty: Fault = { _tag: "DirectoryNotEmpty" }
const alreadyExistsFault: Fault = { _tag: "AlreadyExists" }
const rootDeniedFault: Fault = { _tag: "AccessDenied", why: "root" }
const notALink: Fault = { _tag: "InvalidArgument", argument: "path", detail: "it is not a symbolic link" }
const linkAttributesFault: Fault = {
  _tag: "InvalidArgument",
  argument: "path",
  detail: "a link has no attributes of its own here"
}

const tagOf = { Create: "Created", Update: "Updated", Remove: "Removed" } as const

/** Escapes a name. The result is readable and unique: a control character becomes `\x01`, and a backslash is doubled. */
const escapeName = (name: string): string =>
  name.replace(/[\\\u0000-\u001f\u007f]/g, (unit) =>
    unit === "\\" ? "\\\\" : `\\x${unit.charCodeAt(0).toString(16).padStart(2, "0")}`
  )

const isPathName = (name: string): boolean => FsPath.parse(name) === name

/** Tests for U+FFFD, which replaces invalid bytes. A name that contains it may not be usable in a path. */
const hasReplacementCharacter = (name: string): boolean => name.includes("\ufffd")

/**
 * Returns seconds, plus half a microsecond so that the fraction is not rounded below its millisecond. Before 1970 only
 * a Date works.
 */
const secondsOf = (time: DateTime.Utc): number | Date =>
  time.epochMilliseconds < 0
    ? DateTime.toDateUtc(time)
    : time.epochMilliseconds % 1000 === 0
      ? time.epochMilliseconds / 1000
      : time.epochMilliseconds / 1000 + 5e-7

export const make = (ground: RootedFileSystem, info: Info, rules: Rules): Backend => {
  const {
    toHostPath: at,
    fs,
    lstatEntry: look,
    toShownName: nameOf,
    findCreatable: place,
    requireEntry: reach,
    findEntry: seek
  } = ground

  const childOf = ({ name, type }: { readonly name: string; readonly type: File.Type }): Child =>
    isPathName(name)
      ? { name, kind: kindOf(type), addressable: true }
      : { name: escapeName(name), kind: kindOf(type), addressable: false, key: name }

  const lookUpChild = (directory: FsPath.FsPath, name: string): Effect.Effect<Child | undefined, Fault> =>
    Effect.map(look(FsPath.join(directory, name)), (found) =>
      found !== undefined
        ? childOf({ name, type: found.type })
        : hasReplacementCharacter(name)
          ? { name, kind: "other", addressable: false, sizeBytes: 0 }
          : undefined
    )

  const entries = (
    path: FsPath.FsPath
  ): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly type: File.Type }>, Fault> =>
    Effect.map(toFaults(fs.readDirectoryEntries(at(path)), notADirectory), (entries) =>
      entries.map(({ name, type }) => ({ name: nameOf(name), type }))
    )

  const list = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<ReadonlyArray<Child>, Fault> {
    if ((yield* reach(path)).type !== "Directory") return yield* Effect.fail(notADirectory)
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
        // Bytes appended since are not part of the file as it was opened.
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
    // Opening a FIFO would block.
    if ((yield* reach(path)).type !== "File") return yield* Effect.fail(notAFile)
    const file = yield* toFaults(
      Effect.catch(fs.open(at(path), { flag: "r", noFollow: true }), (error) =>
        error.reason._tag === "BadArgument" ? fs.open(at(path), { flag: "r" }) : Effect.fail(error)
      )
    )
    const found = yield* toFaults(file.stat)
    return found.type === "File" ? handleOf(path, file, found) : yield* Effect.fail(notAFile)
  })

  const makeDirectory = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    path === FsPath.root
      ? Effect.fail(alreadyExistsFault)
      : Effect.flatMap(place(path), (found) =>
          found === undefined
            ? Effect.uninterruptible(toFaults(fs.makeDirectory(at(path)), notADirectory))
            : Effect.fail(alreadyExistsFault)
        )

  /**
   * Removes an empty directory.
   *
   * Effect's FileSystem removes a directory with everything in it. So the directory is renamed first, and checked again
   * before the removal.
   */
  const removeDirectory = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<void, Fault> {
    if ((yield* entries(path)).length > 0) return yield* Effect.fail(notEmpty)
    yield* TemporaryNames.withName(
      Effect.fnUntraced(function* (name) {
        const aside = FsPath.join(FsPath.parent(path), name)
        yield* toFaults(fs.rename(at(path), at(aside)))
        if ((yield* entries(aside)).length === 0) return yield* toFaults(fs.remove(at(aside), { recursive: true }))
        yield* toFaults(fs.rename(at(aside), at(path)))
        return yield* Effect.fail(notEmpty)
      })
    )
  }, Effect.uninterruptible)

  const remove = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    path === FsPath.root
      ? Effect.fail(rootDeniedFault)
      : Effect.flatMap(reach(path), ({ type }) =>
          type === "Directory" ? removeDirectory(path) : Effect.uninterruptible(toFaults(fs.remove(at(path))))
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
    if ((yield* entries(to)).length > 0) return yield* Effect.fail(notEmpty)
  })

  const rename: Backend["rename"] = Effect.fnUntraced(function* (from, to, options) {
    if (from === FsPath.root || to === FsPath.root) return yield* Effect.fail(rootDeniedFault)
    const source = yield* reach(from)
    const target = yield* place(to)
    if (target !== undefined && !isSameName(from, to)) {
      if (!options.replace) return yield* Effect.fail(alreadyExistsFault)
      yield* checkReplaceable(source, target, to)
    }
    yield* toFaults(fs.rename(at(from), at(to)))
  }, Effect.uninterruptible)

  const links: Links = {
    read: (path) =>
      Effect.flatMap(reach(path), ({ type }) =>
        type === "SymbolicLink" ? toFaults(fs.readLink(at(path))) : Effect.fail(notALink)
      ),
    // A FileSystem that is confined itself has its own "/", and follows no absolute link there.
    relative: at(FsPath.root) === "/" ? undefined : makeRelativeTargets(() => [at(FsPath.root), info.root]),
    make: (path, target) =>
      Effect.flatMap(place(path), (found) =>
        found === undefined ? Effect.uninterruptible(toFaults(fs.symlink(target, at(path)))) : Effect.fail(alreadyExistsFault)
      )
  }

  const attributes: Attributes = {
    set: Effect.fnUntraced(function* (path, { mode, modifiedAt }) {
      const found = yield* reach(path)
      if (found.type === "SymbolicLink") return yield* Effect.fail(linkAttributesFault)
      if (mode !== undefined) yield* toFaults(fs.chmod(at(path), mode))
      if (modifiedAt !== undefined) {
        const time = secondsOf(modifiedAt)
        yield* toFaults(
          fs.utimes(
            at(path),
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
      Effect.map(reach(path), ({ type }) =>
        type === "Directory"
          ? fs.watch(at(path), { recursive: true }).pipe(
              Stream.mapError((error) => fromPlatform(error, notADirectory)),
              Stream.filter(({ path }) => isVisible(path)),
              Stream.map((event) => ({ _tag: tagOf[event._tag], path: FsPath.below(path, event.path as FsPath.FsPath) }))
            )
          : Stream.fromEffect(Effect.fail(notADirectory))
      )
    )

  return {
    info,
    stat: (path) => Effect.map(seek(path), (found) => found && toStat(path, found)),
    list,
    open,
    write: Staging.make(ground),
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
