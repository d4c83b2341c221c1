/**
 * Writes on effect's FileSystem: into a temporary file beside the target, which then is renamed.
 *
 * So an observer sees the old file or the new one, and a failed or interrupted write leaves nothing. Every call that
 * changes something runs uninterruptibly.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { File } from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, join, parent, root } from "../../model/FsPath.ts"
import type { Backend, WriteHow } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { fromPlatform } from "./errors.ts"
import { toFaults, type RootedFileSystem, permissions, toStat } from "./ground.ts"

const notFound: Fault = { _tag: "NotFound" }
const notAFile: Fault = { _tag: "NotAFile" }
const alreadyExistsFault: Fault = { _tag: "AlreadyExists" }

const noBytes = new Uint8Array(0)

type Content<E, R> = Uint8Array | Stream.Stream<Uint8Array, E, R>

const withCommit = <A, E, R>(how: WriteHow | undefined, publish: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
  how?.commit === undefined ? publish : how.commit(publish)

export const make = (ground: RootedFileSystem): Backend["write"] => {
  const { toHostPath: at, fs, lstatEntry: look, findCreatable: place } = ground

  const checkTarget = (found: File.Info | undefined, mode: "create" | "replace" | "append"): Effect.Effect<void, Fault> =>
    found === undefined
      ? Effect.void
      : mode === "create"
        ? Effect.fail(alreadyExistsFault)
        : found.type === "File"
          ? Effect.void
          : Effect.fail(notAFile)

  const writeWithFlag = (path: FsPath, bytes: Uint8Array, flag: "wx" | "a", mode?: number): Effect.Effect<void, Fault> =>
    Effect.uninterruptible(toFaults(fs.writeFile(at(path), bytes, { flag, mode })))

  const appendStream = <E, R>(path: FsPath, stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<void, Fault | E, R> =>
    Stream.runForEachArray(stream, (arrays) =>
      Effect.forEach(arrays, (bytes) => writeWithFlag(path, bytes, "a"), { discard: true })
    )

  const statPublished = (path: FsPath): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(look(path), (info) => (info === undefined ? Effect.fail(notFound) : Effect.succeed(toStat(path, info))))

  const discard = (path: FsPath): Effect.Effect<void> => Effect.ignore(toFaults(fs.remove(at(path), { force: true })))

  /**
   * Calls `use` with a temporary name beside the path, and removes that file afterwards, unless it was renamed to its target.
   */
  const withTemporaryFile = <A, E, R>(
    path: FsPath,
    isRenamedOnSuccess: boolean,
    use: (aside: FsPath) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    TemporaryNames.withName((name) => {
      const aside = join(parent(path), name)
      return Effect.onExit(use(aside), (exit) => (isRenamedOnSuccess && Exit.isSuccess(exit) ? Effect.void : discard(aside)))
    })

  /** Copies the old file's owner, if permitted, and its permission bits, which a change of owner may clear. */
  const copyOwnerAndMode = Effect.fnUntraced(function* (path: FsPath, old: File.Info): Effect.fn.Return<void, Fault> {
    const made = yield* look(path)
    if (made === undefined) return
    const uid = Option.getOrUndefined(old.uid)
    const gid = Option.getOrUndefined(old.gid)
    if (
      uid !== undefined &&
      gid !== undefined &&
      (uid !== Option.getOrUndefined(made.uid) || gid !== Option.getOrUndefined(made.gid))
    ) {
      yield* Effect.ignore(toFaults(fs.chown(at(path), uid, gid)))
    }
    if (permissions(old) !== permissions(made)) yield* toFaults(fs.chmod(at(path), permissions(old)))
  }, Effect.uninterruptible)

  const writeTemporary = Effect.fnUntraced(function* <E, R>(
    aside: FsPath,
    content: Content<E, R>,
    old: File.Info | undefined
  ): Effect.fn.Return<void, Fault | E, R> {
    const isWhole = isBytes(content)
    yield* writeWithFlag(aside, isWhole ? content : noBytes, "wx", old && permissions(old))
    if (!isWhole) yield* appendStream(aside, content)
    if (old !== undefined) yield* copyOwnerAndMode(aside, old)
  })

  /** Renames without hard links: an empty file takes the name first, and the content replaces it at once. */
  const reserveAndRename = (aside: FsPath, path: FsPath): Effect.Effect<void, Fault> =>
    Effect.andThen(
      writeWithFlag(path, noBytes, "wx"),
      Effect.onError(toFaults(fs.rename(at(aside), at(path))), () => discard(path))
    )

  const linkOrReserve = (aside: FsPath, path: FsPath): Effect.Effect<void, Fault> =>
    Effect.catch(toFaults(fs.link(at(aside), at(path))), (fault) =>
      fault._tag === "AlreadyExists" ? Effect.fail(fault) : reserveAndRename(aside, path)
    )

  const publish = (aside: FsPath, path: FsPath, mode: "create" | "replace"): Effect.Effect<FileStat, Fault> =>
    Effect.uninterruptible(
      Effect.andThen(
        mode === "create"
          ? linkOrReserve(aside, path)
          : Effect.andThen(
              Effect.flatMap(look(path), (found) => checkTarget(found, mode)),
              toFaults(fs.rename(at(aside), at(path)))
            ),
        statPublished(path)
      )
    )

  const writeStaged = <E, R>(
    path: FsPath,
    content: Content<E, R>,
    mode: "create" | "replace",
    how: WriteHow | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      Effect.tap(place(path), (found) => checkTarget(found, mode)),
      (old) =>
        withTemporaryFile(path, mode === "replace", (aside) =>
          Effect.andThen(writeTemporary(aside, content, old), withCommit(how, publish(aside, path, mode)))
        )
    )

  const appendOrTruncate = <E, R>(
    path: FsPath,
    add: Effect.Effect<void, Fault | E, R>
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      Effect.tap(look(path), (found) => checkTarget(found, "append")),
      (old) =>
        Effect.andThen(
          Effect.onExit(add, (exit) =>
            Exit.isSuccess(exit)
              ? Effect.void
              : old === undefined
                ? discard(path)
                : Effect.ignore(toFaults(fs.truncate(at(path), Number(old.size))))
          ),
          statPublished(path)
        )
    )

  const append = <E, R>(
    path: FsPath,
    content: Content<E, R>,
    how: WriteHow | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.andThen(
      Effect.tap(place(path), (found) => checkTarget(found, "append")),
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
                      Stream.mapError(fs.stream(at(aside)), (error) => fromPlatform(error))
                    )
                  )
                )
              )
            )
          )
    )

  return (path, content, mode, how) =>
    path === root
      ? Effect.fail(mode === "create" ? alreadyExistsFault : notAFile)
      : mode === "append"
        ? append(path, content, how)
        : writeStaged(path, content, mode, how)
}
