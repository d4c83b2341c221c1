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
import { ask, type Ground, permissions, toStat } from "./ground.ts"

const notFound: Fault = { _tag: "NotFound" }
const notAFile: Fault = { _tag: "NotAFile" }
const exists: Fault = { _tag: "AlreadyExists" }

const empty = new Uint8Array(0)

type Content<E, R> = Uint8Array | Stream.Stream<Uint8Array, E, R>

const committed = <A, E, R>(how: WriteHow | undefined, publish: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
  how?.commit === undefined ? publish : how.commit(publish)

export const make = (ground: Ground): Backend["write"] => {
  const { at, fs, look, place } = ground

  const admits = (found: File.Info | undefined, mode: "create" | "replace" | "append"): Effect.Effect<void, Fault> =>
    found === undefined
      ? Effect.void
      : mode === "create"
        ? Effect.fail(exists)
        : found.type === "File"
          ? Effect.void
          : Effect.fail(notAFile)

  const put = (path: FsPath, bytes: Uint8Array, flag: "wx" | "a", mode?: number): Effect.Effect<void, Fault> =>
    Effect.uninterruptible(ask(fs.writeFile(at(path), bytes, { flag, mode })))

  const pour = <E, R>(path: FsPath, stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<void, Fault | E, R> =>
    Stream.runForEachArray(stream, (arrays) => Effect.forEach(arrays, (bytes) => put(path, bytes, "a"), { discard: true }))

  const published = (path: FsPath): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(look(path), (info) => (info === undefined ? Effect.fail(notFound) : Effect.succeed(toStat(path, info))))

  const discard = (path: FsPath): Effect.Effect<void> => Effect.ignore(ask(fs.remove(at(path), { force: true })))

  /**
   * Calls `use` with a temporary name beside the path, and removes that file afterwards, unless it was renamed to its target.
   */
  const withAside = <A, E, R>(
    path: FsPath,
    given: boolean,
    use: (aside: FsPath) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    TemporaryNames.using((name) => {
      const aside = join(parent(path), name)
      return Effect.onExit(use(aside), (exit) => (given && Exit.isSuccess(exit) ? Effect.void : discard(aside)))
    })

  /** Copies the old file's owner, if permitted, and its permission bits, which a change of owner may clear. */
  const inherit = Effect.fnUntraced(function* (path: FsPath, old: File.Info): Effect.fn.Return<void, Fault> {
    const made = yield* look(path)
    if (made === undefined) return
    const uid = Option.getOrUndefined(old.uid)
    const gid = Option.getOrUndefined(old.gid)
    if (
      uid !== undefined &&
      gid !== undefined &&
      (uid !== Option.getOrUndefined(made.uid) || gid !== Option.getOrUndefined(made.gid))
    ) {
      yield* Effect.ignore(ask(fs.chown(at(path), uid, gid)))
    }
    if (permissions(old) !== permissions(made)) yield* ask(fs.chmod(at(path), permissions(old)))
  }, Effect.uninterruptible)

  const stage = Effect.fnUntraced(function* <E, R>(
    aside: FsPath,
    content: Content<E, R>,
    old: File.Info | undefined
  ): Effect.fn.Return<void, Fault | E, R> {
    const whole = isBytes(content)
    yield* put(aside, whole ? content : empty, "wx", old && permissions(old))
    if (!whole) yield* pour(aside, content)
    if (old !== undefined) yield* inherit(aside, old)
  })

  /** Renames without hard links: an empty file takes the name first, and the content replaces it at once. */
  const reserve = (aside: FsPath, path: FsPath): Effect.Effect<void, Fault> =>
    Effect.andThen(
      put(path, empty, "wx"),
      Effect.onError(ask(fs.rename(at(aside), at(path))), () => discard(path))
    )

  const give = (aside: FsPath, path: FsPath): Effect.Effect<void, Fault> =>
    Effect.catch(ask(fs.link(at(aside), at(path))), (fault) =>
      fault._tag === "AlreadyExists" ? Effect.fail(fault) : reserve(aside, path)
    )

  const publish = (aside: FsPath, path: FsPath, mode: "create" | "replace"): Effect.Effect<FileStat, Fault> =>
    Effect.uninterruptible(
      Effect.andThen(
        mode === "create"
          ? give(aside, path)
          : Effect.andThen(
              Effect.flatMap(look(path), (found) => admits(found, mode)),
              ask(fs.rename(at(aside), at(path)))
            ),
        published(path)
      )
    )

  const staged = <E, R>(
    path: FsPath,
    content: Content<E, R>,
    mode: "create" | "replace",
    how: WriteHow | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      Effect.tap(place(path), (found) => admits(found, mode)),
      (old) =>
        withAside(path, mode === "replace", (aside) =>
          Effect.andThen(stage(aside, content, old), committed(how, publish(aside, path, mode)))
        )
    )

  const extend = <E, R>(path: FsPath, add: Effect.Effect<void, Fault | E, R>): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      Effect.tap(look(path), (found) => admits(found, "append")),
      (old) =>
        Effect.andThen(
          Effect.onExit(add, (exit) =>
            Exit.isSuccess(exit)
              ? Effect.void
              : old === undefined
                ? discard(path)
                : Effect.ignore(ask(fs.truncate(at(path), Number(old.size))))
          ),
          published(path)
        )
    )

  const append = <E, R>(
    path: FsPath,
    content: Content<E, R>,
    how: WriteHow | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.andThen(
      Effect.tap(place(path), (found) => admits(found, "append")),
      isBytes(content)
        ? committed(how, extend(path, put(path, content, "a")))
        : withAside(path, false, (aside) =>
            Effect.andThen(
              stage(aside, content, undefined),
              committed(
                how,
                extend(
                  path,
                  Effect.andThen(
                    put(path, empty, "a"),
                    pour(
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
      ? Effect.fail(mode === "create" ? exists : notAFile)
      : mode === "append"
        ? append(path, content, how)
        : staged(path, content, mode, how)
}
