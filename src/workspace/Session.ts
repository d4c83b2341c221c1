/**
 * What an agent's run knows, as typed slices that events change, that can be taken back, saved and cloned. A session is a value without
 * a backend: filesystems take part in it (`layerSession`, `VfsState`), or are taken with it (`Checkpoint`).
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
import { begin, initially } from "./session/session.ts"

export {
  /** @since 0.1.0 */
  SessionError
} from "../model/sessionError.ts"

/**
 * What a session begins with.
 *
 * @since 0.1.0
 */
export interface Options {
  /** @default a new UUID */
  readonly id?: string | undefined
  /** What is installed at first; more can be at any time. @default none */
  readonly slices?: ReadonlyArray<AnySlice> | undefined
  /** For people; `session_id` names the files of a dump. @default none */
  readonly tags?: Readonly<Record<string, string>> | undefined
}

/**
 * A slice has other items.
 *
 * @since 0.1.0
 */
export interface SliceChanged {
  readonly slice: string
  readonly items: ReadonlyArray<unknown>
  readonly cause: "dispatch" | "publish" | "set" | "cell" | "rollback" | "reset"
}

/**
 * All slices at one moment, and by reference what was kept outside them. It belongs to its session.
 *
 * @since 0.1.0
 */
export interface SessionSnapshot {
  readonly sessionId: string
  readonly snapshotId: string
  readonly createdAt: DateTime.Utc
  /** What a slice of state held then; none for one that was not installed, or is a log. */
  readonly items: <A, E>(slice: Slice<A, E>) => ReadonlyArray<A>
}

/**
 * A session: its slices, its children, and the ways to snapshot, roll back, dump and reset them.
 *
 * @since 0.1.0
 */
export interface Operations extends Slices {
  readonly id: string
  readonly tags: Readonly<Record<string, string>>
  readonly createdAt: DateTime.Utc
  readonly parent: Operations | undefined
  /** In the order they were made. */
  readonly children: Effect.Effect<ReadonlyArray<Operations>>

  /** Nothing where it is installed already. Fails with SessionError `duplicateSlice` for another slice of that name. */
  readonly install: (slice: AnySlice) => Effect.Effect<void, SessionError>
  /** The oldest first; none where the slice is not installed. */
  readonly all: <A, E>(slice: Slice<A, E>) => Effect.Effect<ReadonlyArray<A>>
  readonly latest: <A, E>(slice: Slice<A, E>) => Effect.Effect<Option.Option<A>>
  /** The slice then holds these alone; it is installed where it is not. */
  readonly set: <A, E>(slice: Slice<A, E>, ...items: ReadonlyArray<A>) => Effect.Effect<void, SessionError>
  /** By the slice's own reducer; it is installed where it is not. A reducer that throws dies, and changes nothing. */
  readonly dispatch: <A, E>(slice: Slice<A, E>, event: E) => Effect.Effect<void, SessionError>
  /** To every installed slice that handles such events, all in one step, and to `events`. */
  readonly publish: (event: unknown) => Effect.Effect<void>
  /** Every change in the order in which it was made, from when it is run; nothing is dropped. */
  readonly changes: Stream.Stream<SliceChanged>
  /** What is published, from when it is run. */
  readonly events: Stream.Stream<unknown>

  /** The same id again replaces. Fails with SessionError `outside`, `invalid`, and nothing is kept then. */
  readonly snapshot: (id?: string) => Effect.Effect<SessionSnapshot, SessionError>
  /** In the order they were taken. */
  readonly snapshots: Effect.Effect<ReadonlyArray<SessionSnapshot>>
  /** Slices of state become what they were, those installed since what they were at first; logs stay. On failure nothing has changed. */
  readonly restore: (snapshot: SessionSnapshot) => Effect.Effect<void, SessionError>
  /** The same by id. */
  readonly rollback: (id: string) => Effect.Effect<void, SessionError>
  /** The part of `restore` that can fail. Whoever calls it holds the session by `exclusively`. */
  readonly prepare: (snapshot: SessionSnapshot) => Effect.Effect<Prepared, SessionError>
  /**
   * Runs the effect while nobody else changes what takes part in the session; calls of the effect itself go through. Whoever holds a
   * filesystem too that takes no part, holds that first: `Checkpoint` and dumps do.
   */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Answers whether there was one. */
  readonly forget: (id: string) => Effect.Effect<boolean>

  /** Everything as it was at first: all slices, logs too; snapshots stay. */
  readonly reset: Effect.Effect<void>
  /** Another session with the same items, without parent, children, snapshots and what takes part. */
  readonly clone: (options?: Pick<Options, "id" | "tags">) => Effect.Effect<Operations, SessionError>
  /** A session of its own, empty but for the slices of `options`, that is dumped with this one. */
  readonly child: (options?: Options) => Effect.Effect<Operations, SessionError>
  /** As JSON, in one file that is replaced at once. */
  readonly save: (path: string) => Effect.Effect<void, SessionError>
}

/**
 * The session in force.
 *
 * @since 0.1.0
 */
export class Session extends Context.Service<Session, Operations>()("fs-algebra/Session") {}

/**
 * A session that lives as long as somebody holds it. Fails with SessionError `invalid` for an id or tags that cannot be, and
 * `duplicateSlice` for two slices of one name.
 *
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Operations, SessionError> =>
  Effect.suspend(() => Effect.map(begin("Session.make", options, initially(options)), ({ operations }) => operations))

/**
 * A session of its own. Fails with SessionError where slices have one name.
 *
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Session, SessionError> => Layer.effect(Session, make(options))

/**
 * Which slices a loaded session may have.
 *
 * @since 0.1.0
 */
export interface LoadOptions {
  /**
   * Those that the file may have. What it has nothing of holds what it holds at first, in a tree in each of the sessions. Whether a slice is
   * state or log is a matter of the slice, not of the file.
   */
  readonly slices: ReadonlyArray<AnySlice>
}

/**
 * The session that `save` wrote, or the only one of a dump, without a parent. Fails with SessionError `io`, `corrupt`, `version`,
 * `unknownSlice` and `duplicateSlice`.
 *
 * @since 0.1.0
 */
export const load = (path: string, { slices }: LoadOptions): Effect.Effect<Operations, SessionError> => loadOne(path, slices)

/**
 * Whatever answers a filesystem, such as a section; one that answers none counts as nothing.
 *
 * @since 0.1.0
 */
export interface WithFilesystem<E = never> {
  readonly filesystem?: Effect.Effect<Algebra, E> | undefined
}

/**
 * What is dumped beside the sessions.
 *
 * @since 0.1.0
 */
export interface DumpOptions<E = never> {
  /** Dumped beside the sessions. @default none */
  readonly filesystem?: Algebra | WithFilesystem<E> | undefined
}

/**
 * Writes a session and all below it to `{id}.jsonl`, and its filesystem to `{id}.fs.zip`, both taken at one moment, into a directory,
 * which is made; a file, or a name that ends in `.jsonl`, stands for the directory it is in. `id` is the tag `session_id`, else a new
 * UUID. Answers the path of the `.jsonl`; `undefined`, with nothing written or made, when no slice of any of the sessions holds an item.
 *
 * The two are replaced as one: whenever this ends, and if the process is killed, `loadSessionTree` finds the old pair or the new. Only
 * one process at a time may dump under one id. An earlier dump that lies in the filesystem itself is not in its archive.
 *
 * Replaces an archive only if the `.jsonl` beside it names it, and a `.jsonl` only if it is a dump: other files of those names stay, and
 * where the dump needs their place it fails with SessionError `invalid` before it writes.
 *
 * Fails with SessionError `invalid`, `corrupt` (items that do not fit their schema) and `io`, and with what taking the archive fails with.
 *
 * @since 0.1.0
 */
export const dumpSessionTree = <E = never>(
  session: Operations,
  target: string,
  options: DumpOptions<E> = {}
): Effect.Effect<string | undefined, SessionError | ArchiveError | FsError | E> => dump(session, target, options.filesystem)

/**
 * Which slices loaded sessions may have, and what becomes of their files.
 *
 * @since 0.1.0
 */
export interface LoadTreeOptions<E = never> extends LoadOptions {
  /**
   * Becomes what the archive says, if there is one. What is to live in the session itself, as VfsState does, is made over the loaded one, and
   * restored after that: `section.snapshots` restores `archive`. @default nothing is restored
   */
  readonly into?: Algebra | WithFilesystem<E> | undefined
}

/**
 * A loaded session with all below it, and the archive of its files.
 *
 * @since 0.1.0
 */
export interface LoadedTree {
  readonly session: Operations
  /** Of the archive that belongs to it, absolute. Until the next dump of that id. */
  readonly archive?: string
}

/**
 * The sessions of a dump and the archive that belongs to them. All is read and checked before the filesystem is changed; where that
 * fails there is no session, and it is as it was. Fails with SessionError `corrupt`, which says the line, also when the archive that
 * the file names is not there, is a link or no file, or has been changed; `invalid` when the dump lies in the filesystem itself, where a restore would take it away.
 *
 * @since 0.1.0
 */
export const loadSessionTree = <E = never>(
  jsonlPath: string,
  { into, slices }: LoadTreeOptions<E>
): Effect.Effect<LoadedTree, SessionError | ArchiveError | FsError | E> => loadTree(jsonlPath, slices, into)
