/**
 * The state of an agent's run, as typed slices.
 *
 * Events change the slices. A session can be rolled back, saved and cloned. A session is a value and needs no backend. A
 * filesystem can be part of a session (`layerSession`, `VfsState`), or be checkpointed with it (`Checkpoint`).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { ArchiveError } from "../history/errors.ts"
import type { FsError } from "../model/FsError.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { AnySlice, Slice } from "../model/Slice.ts"
import type { Prepared, Slices } from "../port/slices.ts"
import { dump } from "./session/dump.ts"
import { load as loadOne, loadTree } from "./session/load.ts"
import { createSession, initialItems } from "./session/session.ts"

export {
  /** @since 0.1.0 */
  SessionError
} from "../model/sessionError.ts"

/**
 * The options of a new session.
 *
 * @since 0.1.0
 */
export interface Options {
  /** @default a new UUID */
  readonly id?: string | undefined
  /** The slices to install at the start. Other slices can be installed at any time. @default none */
  readonly slices?: ReadonlyArray<AnySlice> | undefined
  /** The labels of the session. The tag `session_id` names the files of a dump. @default none */
  readonly tags?: Readonly<Record<string, string>> | undefined
}

/**
 * A change of a slice's items.
 *
 * @since 0.1.0
 */
export interface SliceChanged {
  readonly slice: string
  readonly items: ReadonlyArray<unknown>
  readonly cause: "dispatch" | "publish" | "set" | "cell" | "rollback" | "reset"
}

/**
 * The items of all state slices at one moment, and references to the data of participants. A participant is a component
 * outside the slices that is captured and restored with the session. A snapshot can be used only with its own session.
 *
 * @since 0.1.0
 */
export interface SessionSnapshot {
  readonly sessionId: string
  readonly snapshotId: string
  readonly createdAt: DateTime.Utc
  /**
   * Returns the items of a state slice at the time of the snapshot. Returns an empty array for a log, and for a slice that was
   * not installed.
   */
  readonly items: <A, E>(slice: Slice<A, E>) => ReadonlyArray<A>
}

/**
 * A session: its slices, its children, and the operations to snapshot, roll back, save and reset a session.
 *
 * @since 0.1.0
 */
export interface Operations extends Slices {
  readonly id: string
  readonly tags: Readonly<Record<string, string>>
  readonly createdAt: DateTime.Utc
  readonly parent: Operations | undefined
  /** The children in the order of their creation. */
  readonly children: Effect.Effect<ReadonlyArray<Operations>>

  /**
   * Installs a slice. Does nothing if the slice is already installed. Fails with SessionError `duplicateSlice` if a
   * different slice has the same name.
   */
  readonly install: (slice: AnySlice) => Effect.Effect<void, SessionError>
  /** Returns the items, with the oldest first. Returns an empty array if the slice is not installed. */
  readonly all: <A, E>(slice: Slice<A, E>) => Effect.Effect<ReadonlyArray<A>>
  readonly latest: <A, E>(slice: Slice<A, E>) => Effect.Effect<Option.Option<A>>
  /** Replaces the items of the slice. Installs the slice if necessary. */
  readonly set: <A, E>(slice: Slice<A, E>, ...items: ReadonlyArray<A>) => Effect.Effect<void, SessionError>
  /**
   * Applies the event with the reducer of the slice. Installs the slice if necessary. If the reducer throws, the call dies and
   * changes nothing.
   */
  readonly dispatch: <A, E>(slice: Slice<A, E>, event: E) => Effect.Effect<void, SessionError>
  /** Applies the event in one step to every installed slice that handles the event, and emits the event on `events`. */
  readonly publish: (event: unknown) => Effect.Effect<void>
  /** The changes of the slices in order, from the time when the stream starts. No change is dropped. */
  readonly changes: Stream.Stream<SliceChanged>
  /** The published events, from the time when the stream starts. */
  readonly events: Stream.Stream<unknown>

  /**
   * Takes a snapshot. Replaces a snapshot with the same id. Fails with SessionError `invalid` if the id is invalid, and with
   * `outside` if the data of a participant cannot be captured. After a failure an existing snapshot stays.
   */
  readonly snapshot: (id?: string) => Effect.Effect<SessionSnapshot, SessionError>
  /** The snapshots in the order in which they were taken. */
  readonly snapshots: Effect.Effect<ReadonlyArray<SessionSnapshot>>
  /**
   * Restores the state slices and the data of the participants. Slices that were installed after the snapshot get their initial
   * items. Log slices are not changed. After a failure nothing has changed.
   */
  readonly restore: (snapshot: SessionSnapshot) => Effect.Effect<void, SessionError>
  /** Restores the snapshot with this id. */
  readonly rollback: (id: string) => Effect.Effect<void, SessionError>
  /** Runs the part of `restore` that can fail. Must be called inside `exclusively`. */
  readonly prepare: (snapshot: SessionSnapshot) => Effect.Effect<Prepared, SessionError>
  /**
   * Runs the effect while no other caller changes the session or its participants. The effect itself may change both.
   *
   * A caller that also locks a filesystem outside the session must lock the filesystem first, as `Checkpoint` and dumps do.
   */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Removes a snapshot, and returns whether it existed. */
  readonly forget: (id: string) => Effect.Effect<boolean>

  /** Resets all slices, including logs, to their initial items, and resets the participants. Snapshots are kept. */
  readonly reset: Effect.Effect<void>
  /** Returns a new session with the items of this session. Tags, parent, children, snapshots and participants are not copied. */
  readonly clone: (options?: Pick<Options, "id" | "tags">) => Effect.Effect<Operations, SessionError>
  /** Returns a new child of this session, with only the slices of `options`. A dump of the parent contains the child. */
  readonly child: (options?: Options) => Effect.Effect<Operations, SessionError>
  /** Writes the session as JSON to one file, which is replaced atomically. */
  readonly save: (path: string) => Effect.Effect<void, SessionError>
}

/**
 * The session service.
 *
 * @category services
 * @since 0.1.0
 */
export class Session extends Context.Service<Session, Operations>()("fs-algebra/Session") {}

/**
 * Returns a new session, which needs no scope.
 *
 * Fails with SessionError `invalid` if the id, a tag or the name of a slice is invalid. Fails with `duplicateSlice` if two
 * slices have the same name.
 *
 * @example
 * ```ts
 * const Step = Slice.make("Step", Schema.String)
 * const session = yield* Session.make({ slices: [Step] })
 * yield* session.snapshot("start")
 * yield* session.dispatch(Step, "read the guide")
 * yield* session.rollback("start")
 * yield* session.all(Step) // => []
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Operations, SessionError> =>
  Effect.suspend(() =>
    Effect.map(createSession("Session.make", options, initialItems(options)), ({ operations }) => operations)
  )

/**
 * Provides a new session. Fails with SessionError as `make` does.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Session, SessionError> => Layer.effect(Session, make(options))

/**
 * The options of `load`.
 *
 * @since 0.1.0
 */
export interface LoadOptions {
  /**
   * The slices that the file may contain. A slice that is missing in the file gets its initial items, in each session of a
   * tree. The policy of a slice comes from this list and not from the file.
   */
  readonly slices: ReadonlyArray<AnySlice>
}

/**
 * Loads a session from a file of `save`, or from a dump with one session. The loaded session has no parent. Fails with
 * SessionError `io`, `corrupt`, `version`, `unknownSlice` or `duplicateSlice`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const load = (path: string, { slices }: LoadOptions): Effect.Effect<Operations, SessionError> => loadOne(path, slices)

/**
 * A value that may contain a filesystem, such as a section. If `filesystem` is absent, no filesystem is used.
 *
 * @since 0.1.0
 */
export interface WithFilesystem<E = never> {
  readonly filesystem?: Effect.Effect<Algebra, E> | undefined
}

/**
 * The options of a dump.
 *
 * @since 0.1.0
 */
export interface DumpOptions<E = never> {
  /** The filesystem to dump together with the sessions. @default none */
  readonly filesystem?: Algebra | WithFilesystem<E> | undefined
}

/**
 * Writes a session and all sessions below it to `{id}.jsonl`, and its filesystem to `{id}.fs.zip`. Both files contain the
 * state at one moment.
 *
 * `id` is the tag `session_id`, or else a new UUID. The target directory is created if necessary. If the target is a file, or
 * its name ends in `.jsonl`, its parent directory is used. Returns the path of the `.jsonl` file. If no slice of any session
 * has items, writes nothing and returns `undefined`.
 *
 * Both files are replaced together. However this call ends, even by a kill of the process, `loadSessionTree` finds the old
 * pair or the new pair. Only one process at a time may dump with the same id. If the filesystem contains an earlier dump with
 * this id, the archive omits that dump.
 *
 * An existing archive is replaced only if the `.jsonl` file names it. An existing `.jsonl` file is replaced only if it is a
 * dump. Other files with these names stay, and the call then fails with SessionError `invalid` before it writes.
 *
 * Fails with SessionError `invalid`, `corrupt` (items that do not match their schema) or `io`, and with the errors of the
 * archive.
 *
 * @category dumps
 * @since 0.1.0
 */
export const dumpSessionTree = <E = never>(
  session: Operations,
  target: string,
  options: DumpOptions<E> = {}
): Effect.Effect<string | undefined, SessionError | ArchiveError | FsError | E> => dump(session, target, options.filesystem)

/**
 * The options of `loadSessionTree`.
 *
 * @since 0.1.0
 */
export interface LoadTreeOptions<E = never> extends LoadOptions {
  /**
   * The filesystem to restore from the archive, if the dump has an archive. A filesystem that is part of the session, such as
   * VfsState, does not exist before the load. Create such a filesystem with the loaded session, and then restore `archive`
   * with `section.snapshots`.
   *
   * @default nothing is restored
   */
  readonly into?: Algebra | WithFilesystem<E> | undefined
}

/**
 * A loaded session with all sessions below it, and the archive of its filesystem.
 *
 * @since 0.1.0
 */
export interface LoadedTree {
  readonly session: Operations
  /** The absolute path of the archive, which is valid until the next dump with the same id. */
  readonly archive?: string
}

/**
 * Loads the sessions of a dump, and its archive.
 *
 * Reads and checks everything before it changes the filesystem. After a failure nothing has changed. Fails as `load` does, with
 * the errors of the archive, and with SessionError:
 *
 * - `corrupt`, with the number of the line in its message, if a line is invalid
 * - `corrupt` if the archive is missing, was changed, or is a link or not a file
 * - `invalid` if the dump is inside the filesystem to restore, because the restore would remove the dump
 *
 * @category dumps
 * @since 0.1.0
 */
export const loadSessionTree = <E = never>(
  jsonlPath: string,
  { into, slices }: LoadTreeOptions<E>
): Effect.Effect<LoadedTree, SessionError | ArchiveError | FsError | E> => loadTree(jsonlPath, slices, into)
