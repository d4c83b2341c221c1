/**
 * What a run has left on the disk, read without a server and without the slices that it was made of: the sessions of a `.jsonl`, and the
 * files of the archive that belongs to it. What readers answer is the plain JSON of `Model`.
 *
 * A path is that of a `.jsonl`, of its `.fs.zip`, or of a directory of them, in which the newest is meant. Nothing is written, ever.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as Content from "./content.ts"
import { type Opened, open as openPlace } from "./dump/opened.ts"
import * as Place from "./dump/place.ts"
import * as Said from "./dump/said.ts"
import { type DebugError, refuse } from "./errors.ts"
import type * as Model from "./model.ts"

export {
  /** @since 0.1.0 */
  DebugError
} from "./errors.ts"

const opened = (path: string): Effect.Effect<Opened, DebugError, Scope.Scope> => Effect.flatMap(Place.find(path), openPlace)

const using = <A>(path: string, use: (dump: Opened) => Effect.Effect<A, DebugError>): Effect.Effect<A, DebugError> =>
  Effect.scoped(Effect.flatMap(opened(path), use))

/** An archive that is there and cannot be read is not the same as none. */
const withArchive = <A>(
  path: string,
  none: A,
  use: (archive: NonNullable<Opened["archive"]>) => Effect.Effect<A, DebugError>
): Effect.Effect<A, DebugError> =>
  using(path, ({ archive, archiveProblem }) => {
    if (archiveProblem !== undefined) return Effect.fail(refuse("unreadable", archiveProblem, path))
    return archive === undefined ? Effect.succeed(none) : use(archive)
  })

/** All of them, or what is wrong. */
const withSessions = <A>(path: string, use: (dump: Opened) => A): Effect.Effect<A, DebugError> =>
  using(path, (dump) =>
    dump.sessionProblems.length > 0
      ? Effect.fail(refuse("unreadable", dump.sessionProblems[0]!, path))
      : Effect.succeed(use(dump))
  )

/**
 * The path of the archive that belongs to a file of sessions: the one whose hash the file names, wherever a dump that was killed has left
 * it. `undefined` where there is none. Fails with DebugError `missing`, and `unreadable` where the one that is named is not there.
 *
 * @since 0.1.0
 */
export const archive = (path: string): Effect.Effect<string | undefined, DebugError> =>
  withArchive(path, undefined, ({ file }) => Effect.succeed(file))

/**
 * What the archive says of itself, and its own size.
 *
 * @since 0.1.0
 */
export const manifest = (path: string): Effect.Effect<Model.FilesystemMeta | undefined, DebugError> =>
  withArchive<Model.FilesystemMeta | undefined>(path, undefined, (found) => Effect.succeed(Said.manifestOf(found)))

/**
 * The files, links and empty directories of the archive, in path order, with sizes in bytes; none where there is no archive.
 *
 * @since 0.1.0
 */
export const tree = (path: string): Effect.Effect<ReadonlyArray<Model.TreeFile>, DebugError> =>
  withArchive<ReadonlyArray<Model.TreeFile>>(path, [], ({ tree }) => tree)

/**
 * One file of the archive: its text, or the base64 of its bytes with their media type; `undefined` where there is none of that path, which
 * is as the tree says it. Of text the first 8 MiB, of other files nothing beyond 16 MiB: for all of a large one there is `view`.
 *
 * @since 0.1.0
 */
export const file = (path: string, file: string): Effect.Effect<Model.FileContent | undefined, DebugError> =>
  withArchive<Model.FileContent | undefined>(path, undefined, ({ filesystem }) =>
    Effect.catchIf(
      Content.ofPath(filesystem, file),
      ({ reason }) => reason === "missing",
      () => Effect.succeed(undefined)
    )
  )

/**
 * What is in the archive as a read-only Filesystem, until the scope ends. Fails with DebugError `missing` where there is none.
 *
 * @since 0.1.0
 */
export const view = (path: string): Effect.Effect<Algebra, DebugError, Scope.Scope> =>
  Effect.flatMap(opened(path), ({ archive, archiveProblem }) =>
    archive === undefined
      ? Effect.fail(
          refuse(archiveProblem === undefined ? "missing" : "unreadable", archiveProblem ?? "there is no archive", path)
        )
      : Effect.succeed(archive.filesystem)
  )

/**
 * In the order of the file: parents before children.
 *
 * @since 0.1.0
 */
export const sessions = (path: string): Effect.Effect<ReadonlyArray<Model.SessionInfo>, DebugError> =>
  withSessions(path, ({ sessions }) => Said.sessionsOf(sessions))

/**
 * What slices there are, session by session.
 *
 * @since 0.1.0
 */
export const slices = (path: string): Effect.Effect<ReadonlyArray<Model.SliceInfo>, DebugError> =>
  withSessions(path, ({ sessions }) => Said.slicesOf(sessions))

/**
 * The items of a slice as they were written, the oldest first; none where nobody has such a slice. `session`: of this one, or else of the
 * first that has it.
 *
 * @since 0.1.0
 */
export const items = (
  path: string,
  slice: string,
  options: { readonly session?: string | undefined } = {}
): Effect.Effect<ReadonlyArray<unknown>, DebugError> =>
  withSessions(path, ({ sessions }) => Said.sliceOf(sessions, slice, options.session)?.all ?? [])

/**
 * What the logs of all sessions tell, the oldest first: calls of tools (`ToolEvents.log`), and other items that say when they were.
 *
 * @since 0.1.0
 */
export const events = (path: string): Effect.Effect<ReadonlyArray<Model.Event>, DebugError> =>
  withSessions(path, ({ events }) => events)

/**
 * The dumps of a directory, the newest first; `path` is relative to it.
 *
 * @since 0.1.0
 */
export const list: (directory: string) => Effect.Effect<ReadonlyArray<Model.DumpFile>, DebugError> = Place.list
