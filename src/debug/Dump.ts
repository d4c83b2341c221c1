/**
 * Functions that read a dump: the sessions in a `.jsonl` file and the files in its archive. The functions work without a server
 * and without the definitions of the slices. Most functions return the plain JSON of `Model`.
 *
 * The path of a dump is the path of its `.jsonl` file, of its `.fs.zip` file, or of a directory of dumps. A directory means its
 * newest dump. These functions never write a file.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as Content from "./content.ts"
import * as Opened from "./dump/opened.ts"
import { open as openPlace, type OpenDump } from "./dump/opened.ts"
import * as Place from "./dump/place.ts"
import { type DebugError, makeDebugError } from "./errors.ts"
import type * as Model from "./model.ts"

export {
  /** @since 0.1.0 */
  DebugError
} from "./errors.ts"

const openDump = (path: string): Effect.Effect<OpenDump, DebugError, Scope.Scope> => Effect.flatMap(Place.find(path), openPlace)

const useDump = <A>(path: string, use: (dump: OpenDump) => Effect.Effect<A, DebugError>): Effect.Effect<A, DebugError> =>
  Effect.scoped(Effect.flatMap(openDump(path), use))

const withArchive = <A>(
  path: string,
  none: A,
  use: (archive: NonNullable<OpenDump["archive"]>) => Effect.Effect<A, DebugError>
): Effect.Effect<A, DebugError> =>
  useDump(path, ({ archive, archiveProblem }) => {
    if (archiveProblem !== undefined) return Effect.fail(makeDebugError("unreadable", archiveProblem, path))
    return archive === undefined ? Effect.succeed(none) : use(archive)
  })

const withSessions = <A>(path: string, use: (dump: OpenDump) => A): Effect.Effect<A, DebugError> =>
  useDump(path, (dump) =>
    dump.sessionProblems.length > 0
      ? Effect.fail(makeDebugError("unreadable", dump.sessionProblems[0]!, path))
      : Effect.succeed(use(dump))
  )

/**
 * Returns the path of the archive of a dump, or `undefined` if the dump has no archive. The archive is found by its hash, which
 * the `.jsonl` file contains, even if the dumping process was killed before it renamed the archive. Fails with DebugError
 * `missing` if there is no dump, and `unreadable` if its archive is missing or damaged.
 *
 * @since 0.1.0
 */
export const archive = (path: string): Effect.Effect<string | undefined, DebugError> =>
  withArchive(path, undefined, ({ file }) => Effect.succeed(file))

/**
 * Returns the manifest of the archive, with the size of the archive file. Returns `undefined` if there is no archive.
 *
 * @since 0.1.0
 */
export const manifest = (path: string): Effect.Effect<Model.FilesystemMeta | undefined, DebugError> =>
  withArchive<Model.FilesystemMeta | undefined>(path, undefined, (found) => Effect.succeed(Opened.manifestOf(found)))

/**
 * Returns the files, links and empty directories of the archive, in path order, with sizes in bytes. The list is empty if there
 * is no archive.
 *
 * @since 0.1.0
 */
export const tree = (path: string): Effect.Effect<ReadonlyArray<Model.TreeFile>, DebugError> =>
  withArchive<ReadonlyArray<Model.TreeFile>>(path, [], ({ tree }) => tree)

/**
 * Returns one file of the archive: its text, or the base64 of its bytes, with their media type. Returns `undefined` if the
 * archive has no such path, or if there is no archive. Paths are spelled as in `tree`. At most the first 8 MiB of a text are
 * returned. Other files over 16 MiB are returned without content. Use `view` for large files.
 *
 * @since 0.1.0
 */
export const file = (path: string, file: string): Effect.Effect<Model.FileContent | undefined, DebugError> =>
  withArchive<Model.FileContent | undefined>(path, undefined, ({ filesystem }) =>
    Effect.catchIf(
      Content.describePath(filesystem, file),
      ({ reason }) => reason === "missing",
      () => Effect.succeed(undefined)
    )
  )

/**
 * Opens the archive as a read-only Filesystem, until the scope closes. Fails with DebugError `missing` if there is no archive.
 *
 * @category readers
 * @since 0.1.0
 */
export const view = (path: string): Effect.Effect<Algebra, DebugError, Scope.Scope> =>
  Effect.flatMap(openDump(path), ({ archive, archiveProblem }) =>
    archive === undefined
      ? Effect.fail(
          makeDebugError(
            archiveProblem === undefined ? "missing" : "unreadable",
            archiveProblem ?? `the dump ${JSON.stringify(path)} has no archive`,
            path
          )
        )
      : Effect.succeed(archive.filesystem)
  )

/**
 * Returns the sessions in the order of the file, in which parents precede their children.
 *
 * @since 0.1.0
 */
export const sessions = (path: string): Effect.Effect<ReadonlyArray<Model.SessionInfo>, DebugError> =>
  withSessions(path, ({ sessions }) => Opened.sessionsOf(sessions))

/**
 * Returns the slices, session by session.
 *
 * @since 0.1.0
 */
export const slices = (path: string): Effect.Effect<ReadonlyArray<Model.SliceInfo>, DebugError> =>
  withSessions(path, ({ sessions }) => Opened.slicesOf(sessions))

/**
 * Returns the items of a slice as they were written, oldest first. `session` defaults to the first session that has the slice.
 * The list is empty if no session has the slice.
 *
 * @since 0.1.0
 */
export const items = (
  path: string,
  slice: string,
  options: { readonly session?: string | undefined } = {}
): Effect.Effect<ReadonlyArray<unknown>, DebugError> =>
  withSessions(path, ({ sessions }) => Opened.sliceOf(sessions, slice, options.session)?.all ?? [])

/**
 * Returns the calls of tools (`ToolEvents.log`), and the other log items with a time, of all sessions. The oldest comes first,
 * and calls without a time come last.
 *
 * @since 0.1.0
 */
export const events = (path: string): Effect.Effect<ReadonlyArray<Model.Event>, DebugError> =>
  withSessions(path, ({ events }) => events)

/**
 * Returns the dumps of a directory, newest first. The `path` of each dump is relative to the directory.
 *
 * @since 0.1.0
 */
export const list: (directory: string) => Effect.Effect<ReadonlyArray<Model.DumpFile>, DebugError> = Place.list
