/**
 * Copies one entry between backends unchanged: a file with its bytes, mode and time, a symlink with its target, or a directory
 * without its entries.
 *
 * If renames are permitted, the copy is created under a temporary name and then renamed. Its mode is set before any content
 * is readable. No reader sees a partial copy, and concurrent copies of one entry do not disturb each other.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import type { FileStat } from "../../model/Entry.ts"
import { notAFile, ioError } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

const noLinksFault: Fault = ioError("this backend has no symbolic links", "ENOTSUP")

const chunkBytes = 64 * 1024
const noBytes = new Uint8Array(0)

/** Calls `use` with a temporary name beside `path`, and removes the file if `use` fails. */
export const aside = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  use: (aside: FsPath.FsPath) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  TemporaryNames.withName((name) => {
    const hidden = FsPath.join(FsPath.parent(path), name)
    return Effect.onExit(use(hidden), (exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.ignore(port.remove(hidden))))
  })

export const setMode = (to: Backend, path: FsPath.FsPath, mode: number | undefined): Effect.Effect<void, Fault> =>
  mode === undefined || to.attributes === undefined ? Effect.void : to.attributes.set(path, { mode: mode & 0o777 })

/** Sets the modification time, except on a symlink, because not every backend can set the time of a symlink. */
export const setTime = (to: Backend, path: FsPath.FsPath, { kind, modifiedAt }: FileStat): Effect.Effect<void, Fault> =>
  modifiedAt === undefined || to.attributes === undefined || kind === "symlink"
    ? Effect.void
    : to.attributes.set(path, { modifiedAt })

const ownerPermissionBits = 0o700

/** Creates a file with the mode of an old file. The mode is set before any content is readable. */
export const writeWithModeOf = <E, R>(
  to: Backend,
  path: FsPath.FsPath,
  modeSource: FileStat,
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>
): Effect.Effect<void, Fault | E, R> =>
  modeSource.mode === undefined || to.attributes === undefined
    ? Effect.asVoid(to.write(path, content, "create"))
    : Effect.andThen(to.write<never, never>(path, noBytes, "create"), setMode(to, path, modeSource.mode)).pipe(
        Effect.andThen(to.write(path, content, "replace")),
        Effect.asVoid
      )

export const withContent = <A, E, R>(
  from: Backend,
  path: FsPath.FsPath,
  use: (content: Stream.Stream<Uint8Array, Fault>, stat: FileStat) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> =>
  Effect.scoped(
    Effect.flatMap(from.open(path), (handle) => use(Read.chunks(handle, 0, Number.POSITIVE_INFINITY, chunkBytes), handle.stat))
  )

const createEntryAt = (
  from: Backend,
  path: FsPath.FsPath,
  stat: FileStat,
  to: Backend,
  at: FsPath.FsPath
): Effect.Effect<void, Fault> => {
  if (stat.kind === "file") return withContent(from, path, (content, stat) => writeWithModeOf(to, at, stat, content))
  if (stat.kind === "directory") {
    return Effect.andThen(
      to.makeDirectory(at),
      setMode(to, at, stat.mode === undefined ? undefined : stat.mode | ownerPermissionBits)
    )
  }
  if (stat.kind === "other") return Effect.fail(notAFile)
  const { links } = to
  return links === undefined || from.links === undefined
    ? Effect.fail(noLinksFault)
    : Effect.flatMap(from.links.read(path), (target) => links.make(at, target))
}

/** Tests whether renames are permitted. Without renames, an entry cannot be staged under a temporary name. */
export const canRename = (port: Backend, path: FsPath.FsPath): boolean => port.rules?.permits?.("delete", path) !== false

/**
 * Creates an entry, or replaces a file, directly under its final name. The content appears in one step, but the mode is set
 * later.
 */
const createEntryInPlace = (
  from: Backend,
  path: FsPath.FsPath,
  stat: FileStat,
  to: Backend,
  mode: "create" | "replace"
): Effect.Effect<void, Fault> =>
  stat.kind === "file"
    ? withContent(from, path, (content, stat) => Effect.andThen(to.write(path, content, mode), setMode(to, path, stat.mode)))
    : createEntryAt(from, path, stat, to, path)

export const copyEntry = (
  from: Backend,
  path: FsPath.FsPath,
  stat: FileStat,
  to: Backend,
  options: { readonly replace: boolean }
): Effect.Effect<void, Fault> => {
  const setEntryTime = Effect.ignore(setTime(to, path, stat))
  return canRename(to, path)
    ? aside(to, path, (hidden) =>
        Effect.andThen(
          createEntryAt(from, path, stat, to, hidden),
          Effect.uninterruptible(Effect.andThen(to.rename(hidden, path, options), setEntryTime))
        )
      )
    : Effect.andThen(createEntryInPlace(from, path, stat, to, options.replace ? "replace" : "create"), setEntryTime)
}
