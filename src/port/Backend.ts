/**
 * What a backend must do: seven primitive operations on validated paths. It never follows a link, never recurses, never retries and
 * never sees an option of a call; it answers `undefined` for what is absent and fails with a bare `Fault`. Everything else a user
 * meets is derived from this, once, so there is nothing in which two backends could differ.
 *
 * The contract, which the port laws check:
 *
 * - The root exists, is a directory, and can be neither removed nor renamed (`AccessDenied` `root`).
 * - Nothing is followed: below a link there is nothing, as there is nothing below a file.
 * - `open` pins: the bytes read belong to the stat that it returned, whatever happens to the name meanwhile.
 * - `write` with `replace` is all or nothing, also under interruption; `create` never overwrites, not even a link.
 * - A missing parent is `NotFound`, a wrong kind a wrong-kind fault; nothing ever succeeds without doing its work.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as DateTime from "effect/DateTime"
import { isBytes } from "../model/bytes.ts"
import type { DeleteResult, FileStat, Kind, TransferResult, WatchEvent } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath, PathPolicy } from "../model/FsPath.ts"
import type { Edit, Edited, EditPlan, MakeDirectoryPlan, MovePlan, RemovePlan, WritePlan } from "./changes.ts"
import type { Explore, Visit } from "./explorer.ts"
import type { History } from "./history.ts"
import type { HostRoots } from "./hostRoots.ts"
import type { Call, Operation } from "./Operation.ts"

export type {
  /**
   * @since 0.1.0
   */
  Fault
} from "../model/FsError.ts"
export type {
  /** @since 0.1.0 */
  Edited,
  /** @since 0.1.0 */
  EditPlan,
  /** @since 0.1.0 */
  MakeDirectoryPlan,
  /** @since 0.1.0 */
  MovePlan,
  /** @since 0.1.0 */
  RemovePlan,
  /** @since 0.1.0 */
  WritePlan
} from "./changes.ts"

/**
 * What a backend says of itself.
 *
 * @since 0.1.0
 */
export interface Info {
  readonly name: string
  /** For people, never for parsing. */
  readonly root: string
  readonly caseSensitive: boolean
  readonly readOnly: boolean
  /** What containment the backend really has on this machine. */
  readonly confinement: "virtual" | "race-free" | "race-free-open" | "best-effort"
}

/**
 * An entry of a directory, as a backend lists it.
 *
 * @since 0.1.0
 */
export interface Child {
  readonly name: string
  readonly kind: Kind
  readonly addressable: boolean
  /** Where `addressable` is false: the segment by which this backend knows the entry. No caller's path can hold it. */
  readonly key?: string
  /** Where a listing costs nothing more for it; otherwise the engine asks `stat`. */
  readonly sizeBytes?: number
}

/**
 * The segment by which the backend knows a child, which for almost every one is its name.
 *
 * @since 0.1.0
 */
export const keyOf = (child: Child): string => child.key ?? child.name

/**
 * A file that is open for reading.
 *
 * @since 0.1.0
 */
export interface Handle {
  /** Pinned: what `read` answers belongs to it. */
  readonly stat: FileStat
  /** At most `length` bytes from `offset`, fewer at will, none only at the end. The array is the caller's own. */
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, Fault>
  /** The SHA-256 of the content in hex, where the backend keeps it. */
  readonly version?: Effect.Effect<string, Fault>
}

/**
 * How a write becomes visible. The backend does everything that takes time before, and runs the one step that publishes inside;
 * what `commit` adds (the path's turn, the check of a precondition) then happens as late as it can.
 *
 * @since 0.1.0
 */
export interface Commit {
  <A, E, R>(publish: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R>
}

/**
 * How a backend is to carry out a write.
 *
 * @since 0.1.0
 */
export interface WriteHow {
  /** Left out: publish at once. */
  readonly commit?: Commit | undefined
}

/**
 * Symbolic links, which cannot be derived.
 *
 * @since 0.1.0
 */
export interface Links {
  /** The link's text. Fails with InvalidArgument where the path is no link, NotFound where there is nothing. */
  readonly read: (path: FsPath) => Effect.Effect<string, Fault>
  /** The same, for going on from there: fails with AccessDenied where the system would not let this user. @default read */
  readonly follow?: ((path: FsPath) => Effect.Effect<string, Fault>) | undefined
  /** The engine has checked the target. Fails with AlreadyExists, NotFound or NotADirectory for the parent. */
  readonly make: (path: FsPath, target: string) => Effect.Effect<void, Fault>
}

/**
 * Permission bits and times, where a backend can set them.
 *
 * @since 0.1.0
 */
export interface Attributes {
  readonly set: (
    path: FsPath,
    attributes: {
      readonly mode?: number | undefined
      readonly modifiedAt?: DateTime.Utc | undefined
      /** The mode is that of the original of a copy; a backend that leaves the decision to another program passes this on. */
      readonly isCopy?: boolean | undefined
    }
  ) => Effect.Effect<void, Fault>
}

/**
 * The order of writes, owned by the backend, so that every combinator over it shares them.
 *
 * @since 0.1.0
 */
export interface Locks {
  /** Runs the effect while the paths, and everything below them, are nobody else's to change. */
  readonly exclusive: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * The same, where the effect itself makes calls that want what it holds: they take turns among themselves, and those of others wait.
   * @default without excluding anybody
   */
  readonly alone?:
    | (<A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>)
    | undefined
  /**
   * Where other processes work on the same files: runs the effect while none of those that claim it too has the file. It is taken
   * with the path's turn, never before it, by one fiber for one file at a time, and only around the check of a precondition and what
   * depends on it. What is done without a precondition neither takes a claim nor waits for one. Fails with AccessDenied `busy` when
   * others have the file for too long.
   */
  readonly claim?: (<A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Fault, R>) | undefined
}

/**
 * What the layer's options say of every call. Combinators keep them.
 *
 * @since 0.1.0
 */
export interface Rules {
  /** Without a path: whether the action is possible anywhere at all. @default everything is permitted */
  readonly permits?: ((action: "write" | "delete", path?: FsPath) => boolean) | undefined
  /** Why something that a policy protects may not go, for who moves it out of sight instead of removing it. */
  readonly keeps?: ((path: FsPath) => Fault | undefined) | undefined
  /** Directories that, like the root, can be neither removed, moved nor replaced: what is mounted on, and what holds it. */
  readonly pinned?: ((path: FsPath) => boolean) | undefined
  /** @default "standard" */
  readonly policy?: PathPolicy | undefined
  /** @default "follow" */
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
  /** Whether a copy keeps permission bits. @default true */
  readonly preservePermissions?: boolean | undefined
  /** `attributes.set` receives the permission bits of every copy (`isCopy`), and decides whether they are kept. @default false */
  readonly decidesModeOfCopies?: boolean | undefined
}

/**
 * Faster ways to what is derived. Each is equal to the derivation, not similar, which the acceleration laws check. The engine calls
 * them when they are to happen, so one that needs no waiting may do its work in the call and answer an effect that is done.
 *
 * @since 0.1.0
 */
export interface Accelerations {
  readonly stat?: (path: FsPath) => Effect.Effect<FileStat | undefined, Fault>
  /** A whole file, when it holds at most `maxBytes`; `undefined` to decline, also where it is larger. */
  readonly read?: (path: FsPath, maxBytes: number) => Effect.Effect<Whole | undefined, Fault>
  /**
   * The same of several files at once, in their order; `undefined` for each that is declined, also where reading it would fail, which
   * who reads it by itself is then told. Fails where nothing can be read any more.
   */
  readonly readMany?:
    | ((paths: ReadonlyArray<FsPath>, maxBytes: number) => Effect.Effect<ReadonlyArray<Whole | undefined>, Fault>)
    | undefined
  /**
   * What stands at each component of a path, from the root down to the first that is no directory, in one look: where the last of
   * these is a directory and not the path itself, there is nothing at the next. Nothing is followed. `undefined` to decline, also
   * where a look at one of them would fail.
   */
  readonly look?: ((path: FsPath) => Effect.Effect<ReadonlyArray<Seen> | undefined, Fault>) | undefined
  /** Removes a directory and everything in it. */
  readonly removeTree?: (path: FsPath) => Effect.Effect<{ readonly deleted: number; readonly directories: number }, Fault>
  /** Reads the directories of a walk ahead, and searches the files in them. */
  readonly explore?: Explore

  // Whole calls in one step, where they are decided by who has the files. The engine has checked what is checked before existence, and
  // holds the turn of the paths (of a stream, within `commit`). `undefined` to decline, with nothing done and no stream run.
  /** Answers the version where it is asked for and only known there: that of a whole content is known to who has it. */
  readonly write?:
    | (<E, R>(
        path: FsPath,
        bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
        plan: WritePlan,
        how?: WriteHow
      ) => Effect.Effect<{ readonly version?: string | undefined } | undefined, Fault | E, R>)
    | undefined
  readonly edit?:
    | ((path: FsPath, edits: ReadonlyArray<Edit>, plan: EditPlan) => Effect.Effect<Edited | undefined, Fault>)
    | undefined
  readonly remove?: ((path: FsPath, plan: RemovePlan) => Effect.Effect<DeleteResult | undefined, Fault>) | undefined
  readonly makeDirectory?: ((path: FsPath, plan: MakeDirectoryPlan) => Effect.Effect<true | undefined, Fault>) | undefined
  /** Faults name the path of the end that they are about. */
  readonly move?: ((from: FsPath, to: FsPath, plan: MovePlan) => Effect.Effect<TransferResult | undefined, Fault>) | undefined
}

/**
 * Those that change nothing.
 *
 * @since 0.1.0
 */
export const looking = ({ explore, look, read, readMany, stat }: Accelerations): Accelerations => ({
  ...(stat && { stat }),
  ...(read && { read }),
  ...(readMany && { readMany }),
  ...(look && { look }),
  ...(explore && { explore })
})

/**
 * What a look at a path has met.
 *
 * @since 0.1.0
 */
export interface Seen {
  readonly stat: FileStat
  /** Of a link: its text, for going on from there. */
  readonly target?: string | undefined
}

/**
 * A whole file, read at once.
 *
 * @since 0.1.0
 */
export interface Whole {
  readonly stat: FileStat
  readonly bytes: Uint8Array
  /** The bytes are the backend's own: they may be looked at, and are copied before they are handed out. */
  readonly isLent?: boolean
  readonly version?: Effect.Effect<string, Fault>
}

/**
 * Runs around whole calls of the service, streams included. Combinators keep it.
 *
 * @since 0.1.0
 */
export interface Calls {
  readonly effect: <A, E, R>(call: Call, self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly stream: <A, E, R>(call: Call, self: Stream.Stream<A, E, R>) => Stream.Stream<A, E, R>
}

/**
 * A backend: the seven primitive operations, and what it can do beyond them.
 *
 * @since 0.1.0
 */
export interface Backend {
  readonly info: Info
  /** `undefined` where nothing is, or where the way leads through a file or a link. A link answers as itself. */
  readonly stat: (path: FsPath) => Effect.Effect<FileStat | undefined, Fault>
  /** In any order. Fails with NotFound, NotADirectory. */
  readonly list: (path: FsPath) => Effect.Effect<ReadonlyArray<Child>, Fault>
  /** Fails with NotFound, and with NotAFile for directories, links and others. */
  readonly open: (path: FsPath) => Effect.Effect<Handle, Fault, Scope.Scope>
  /**
   * `create` fails with AlreadyExists for whatever is there; `replace` and `append` make the file where nothing is, and fail with
   * NotAFile on what is not a file (a link too). The parent must be a directory: NotFound, NotADirectory.
   * Answers the stat of the file as published.
   */
  readonly write: <E, R>(
    path: FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: "create" | "replace" | "append",
    how?: WriteHow
  ) => Effect.Effect<FileStat, Fault | E, R>
  /** Fails with AlreadyExists, and NotFound or NotADirectory for the parent. */
  readonly makeDirectory: (path: FsPath) => Effect.Effect<void, Fault>
  /** A file, a link, an other, an empty directory. Fails with NotFound, DirectoryNotEmpty. */
  readonly remove: (path: FsPath) => Effect.Effect<void, Fault>
  /**
   * Fails with AlreadyExists without `replace`, NotFound for the source or the target's parent. With `replace` a file or link takes
   * the place of a file or link, a directory that of an empty directory. IoError with code EXDEV where only copying would do.
   */
  readonly rename: (from: FsPath, to: FsPath, options: { readonly replace: boolean }) => Effect.Effect<void, Fault>

  readonly links?: Links | undefined
  readonly attributes?: Attributes | undefined
  /** Changes below the directory, at any depth. */
  readonly watch?: ((path: FsPath) => Stream.Stream<WatchEvent, Fault>) | undefined

  readonly rules?: Rules | undefined
  readonly locks?: Locks | undefined
  readonly accelerations?: Accelerations | undefined
  /** For those who keep the past of the tree. Combinators drop it. */
  readonly history?: History | undefined
  readonly calls?: Calls | undefined
  /** Where the files lie on this machine, for records of transactions that outlive the process. Left out where they lie in memory. */
  readonly hostRoots?: HostRoots | undefined
}

/**
 * The text of a link that is to be followed.
 *
 * @since 0.1.0
 */
export const follow = (links: Links, path: FsPath): Effect.Effect<string, Fault> => (links.follow ?? links.read)(path)

/**
 * Receives each primitive operation and the effect that would run it.
 *
 * @since 0.1.0
 */
export interface Advice {
  <A, E, R>(operation: Operation, next: Effect.Effect<A, E | Fault, R>): Effect.Effect<A, E | Fault, R>
}

/**
 * Runs `advice` around every primitive operation. Accelerations are dropped, so that nothing goes past it.
 *
 * @since 0.1.0
 */
export const around = (self: Backend, advice: Advice): Backend => {
  const { attributes, links, watch } = self
  return {
    ...self,
    accelerations: undefined,
    history: undefined,
    stat: (path) => advice({ _tag: "Stat", path }, self.stat(path)),
    list: (path) => advice({ _tag: "List", path }, self.list(path)),
    open: (path) => advice({ _tag: "Open", path }, self.open(path)),
    write: (path, bytes, mode, how) =>
      advice(
        isBytes(bytes) ? { _tag: "Write", path, mode, size: bytes.length } : { _tag: "Write", path, mode },
        self.write(path, bytes, mode, how)
      ),
    makeDirectory: (path) => advice({ _tag: "MakeDirectory", path }, self.makeDirectory(path)),
    remove: (path) => advice({ _tag: "Remove", path }, self.remove(path)),
    rename: (path, to, options) =>
      advice({ _tag: "Rename", path, to, replace: options.replace }, self.rename(path, to, options)),
    links: links && {
      read: (path) => advice({ _tag: "ReadLink", path }, links.read(path)),
      follow: (path) => advice({ _tag: "ReadLink", path }, follow(links, path)),
      make: (path, target) => advice({ _tag: "MakeLink", path, target }, links.make(path, target))
    },
    attributes: attributes && {
      set: (path, values) => advice({ _tag: "SetAttributes", path }, attributes.set(path, values))
    },
    watch: watch && ((path) => Stream.unwrap(advice({ _tag: "Watch", path }, Effect.succeed(watch(path)))))
  }
}

/**
 * The same backend through another path space: `into` leads from the new paths to its own, `out` back again for what it reports.
 *
 * @since 0.1.0
 */
export const mapPath = (self: Backend, into: (path: FsPath) => FsPath, out: (path: FsPath) => FsPath): Backend => {
  const { accelerations, attributes, hostRoots, links, locks, rules, watch } = self
  const permits = rules?.permits
  const pinned = rules?.pinned
  const keeps = rules?.keeps
  /** Faults of what concerns several paths name theirs. */
  const back = <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
    Effect.mapError(effect, (fault) => {
      const path = fault["path"]
      return typeof path === "string" ? { ...fault, path: out(path as FsPath) } : fault
    })
  return {
    ...self,
    history: undefined,
    hostRoots: hostRoots && {
      all: hostRoots.all,
      originOf: (path) => hostRoots.originOf(into(path)),
      // What cannot be seen from here is not for those who look from here to refuse.
      settle: (permits) => hostRoots.settle((path) => into(out(path)) !== path || permits(out(path)))
    },
    stat: (path) => self.stat(into(path)),
    list: (path) => self.list(into(path)),
    open: (path) => self.open(into(path)),
    write: (path, bytes, mode, how) => self.write(into(path), bytes, mode, how),
    makeDirectory: (path) => self.makeDirectory(into(path)),
    remove: (path) => self.remove(into(path)),
    rename: (from, to, options) => self.rename(into(from), into(to), options),
    links: links && {
      read: (path) => links.read(into(path)),
      follow: (path) => follow(links, into(path)),
      make: (path, target) => links.make(into(path), target)
    },
    attributes: attributes && { set: (path, values) => attributes.set(into(path), values) },
    watch:
      watch && ((path) => Stream.map(watch(into(path)), (event): WatchEvent => ({ _tag: event._tag, path: out(event.path) }))),
    rules: rules && {
      ...rules,
      permits: permits && ((action, path) => permits(action, path === undefined ? undefined : into(path))),
      pinned: pinned && ((path) => pinned(into(path))),
      keeps: keeps && ((path) => keeps(into(path)))
    },
    locks: locks && {
      exclusive: (paths, effect) => locks.exclusive(paths.map(into), effect),
      ...(locks.alone && {
        alone: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => locks.alone!(paths.map(into), effect)
      }),
      ...(locks.claim && {
        claim: <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) => locks.claim!(into(path), effect)
      })
    },
    accelerations: accelerations && {
      ...(accelerations.stat && { stat: (path: FsPath) => accelerations.stat!(into(path)) }),
      ...(accelerations.read && { read: (path: FsPath, maxBytes: number) => accelerations.read!(into(path), maxBytes) }),
      ...(accelerations.readMany && {
        readMany: (paths: ReadonlyArray<FsPath>, maxBytes: number) => accelerations.readMany!(paths.map(into), maxBytes)
      }),
      ...(accelerations.removeTree && { removeTree: (path: FsPath) => accelerations.removeTree!(into(path)) }),
      ...(accelerations.explore && {
        explore: <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean) =>
          accelerations.explore!<V>((visit) => into(pathOf(visit)), searches)
      }),
      ...(accelerations.write && {
        write: <E, R>(path: FsPath, bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>, plan: WritePlan, how?: WriteHow) =>
          accelerations.write!(into(path), bytes, plan, how)
      }),
      ...(accelerations.edit && {
        edit: (path: FsPath, edits: ReadonlyArray<Edit>, plan: EditPlan) => accelerations.edit!(into(path), edits, plan)
      }),
      ...(accelerations.remove && {
        remove: (path: FsPath, plan: RemovePlan) => back(accelerations.remove!(into(path), plan))
      }),
      ...(accelerations.makeDirectory && {
        makeDirectory: (path: FsPath, plan: MakeDirectoryPlan) => accelerations.makeDirectory!(into(path), plan)
      }),
      ...(accelerations.move && {
        move: (from: FsPath, to: FsPath, plan: MovePlan) => back(accelerations.move!(into(from), into(to), plan))
      })
    }
  }
}

/**
 * The backend without accelerations: what the engine derives is then all there is.
 *
 * @since 0.1.0
 */
export const portable = (self: Backend): Backend => ({ ...self, accelerations: undefined })
