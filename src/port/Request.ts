/**
 * The requests that a backend may answer in one step, faster than the engine derives the answer from the primitives.
 *
 * Each answer must equal the derived answer; the acceleration laws check this. A backend declares a handler for each
 * tag that it supports. A wrapper maps or filters the requests as data.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { DeleteResult, FileStat, TransferResult } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { RequestAdvice, WriteHow } from "./Backend.ts"
import type { Edit, Edited, EditPlan, MakeDirectoryPlan, MovePlan, NewEntry, RemovePlan, WritePlan } from "./changes.ts"

/**
 * An entry on a path, as `Look` reports it.
 *
 * @since 0.1.0
 */
export interface Seen {
  readonly stat: FileStat
  /** The target of a symlink. */
  readonly target?: string | undefined
}

/**
 * A whole file, read in one step.
 *
 * @since 0.1.0
 */
export interface Whole {
  readonly stat: FileStat
  readonly bytes: Uint8Array
  /**
   * True if the backend owns the bytes. The engine must not modify the bytes, and must copy the bytes before it returns them
   * to a caller.
   */
  readonly isLent?: boolean
  readonly version?: Effect.Effect<string, Fault>
}

/**
 * A write in one step. The engine has checked the arguments and holds the lock of the path. For a stream, the engine
 * holds this lock only within `commit`.
 *
 * A handler that declines must not run the stream. A handler reports the version if the plan requests it and the caller
 * cannot compute it.
 *
 * @since 0.1.0
 */
export interface Write<E = unknown, R = unknown> {
  readonly _tag: "Write"
  readonly path: FsPath
  readonly bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>
  readonly plan: WritePlan
  readonly how?: WriteHow | undefined
}

/**
 * Any request except `Write`. Only `Write` needs type parameters, for the errors and services of its stream.
 *
 * @since 0.1.0
 */
export type Plain =
  | { readonly _tag: "Stat"; readonly path: FsPath }
  /** Reads a whole file. The backend declines if the file has more than `maxBytes`. */
  | { readonly _tag: "Read"; readonly path: FsPath; readonly maxBytes: number }
  /**
   * Reads several whole files. The answer has `undefined` for each file that could not be read; a `Read` of this file
   * gives the fault.
   */
  | { readonly _tag: "ReadMany"; readonly paths: ReadonlyArray<FsPath>; readonly maxBytes: number }
  /**
   * Reads the entry at each component of a path, from the root to the first entry that is not a directory. Follows no
   * symlinks.
   *
   * If the last entry is a directory and not the path itself, the next component does not exist.
   */
  | { readonly _tag: "Look"; readonly path: FsPath }
  /** Removes a directory and everything in it. */
  | { readonly _tag: "RemoveTree"; readonly path: FsPath }
  /**
   * Copies a directory and everything in it, with the permission bits, to a new name in an existing directory.
   *
   * The copy becomes visible in one step. If a part of the copy would fail or is unusual, the backend declines and
   * changes nothing.
   */
  | { readonly _tag: "CopyTree"; readonly path: FsPath; readonly to: FsPath }
  /**
   * Copies a regular file, without sending its content through this program.
   *
   * `create` and `replace` are those of a primitive write, and the answer is the stat of the copy. With `keepsMode`, the copy
   * gets the permission bits of the file. The `path` of a fault is the source or the target. A backend that cannot keep what
   * a write of the content would keep declines.
   */
  | {
      readonly _tag: "CopyFile"
      readonly path: FsPath
      readonly to: FsPath
      readonly mode: "create" | "replace"
      readonly keepsMode: boolean
      readonly how?: WriteHow | undefined
    }
  /**
   * Creates new entries, each directory before its entries, and replaces nothing.
   *
   * The answer tells for each entry whether it was created. An entry that was not created completely does not exist
   * afterwards. An entry may be visible before it is complete, so callers create entries in hidden directories.
   */
  | { readonly _tag: "MakeMany"; readonly entries: ReadonlyArray<NewEntry> }
  // The requests below are for backends in which another program checks whether entries exist. The engine has checked
  // everything else.
  | { readonly _tag: "Edit"; readonly path: FsPath; readonly edits: ReadonlyArray<Edit>; readonly plan: EditPlan }
  | { readonly _tag: "Remove"; readonly path: FsPath; readonly plan: RemovePlan }
  | { readonly _tag: "MakeDirectory"; readonly path: FsPath; readonly plan: MakeDirectoryPlan }
  /** Moves an entry. The `path` of a fault is the source or the target. */
  | { readonly _tag: "Move"; readonly path: FsPath; readonly to: FsPath; readonly plan: MovePlan }

/**
 * A request to a backend.
 *
 * @category models
 * @since 0.1.0
 */
export type Request = Plain | Write

/**
 * The name of a request.
 *
 * @since 0.1.0
 */
export type Tag = Request["_tag"]

/**
 * The answer of each request.
 *
 * @since 0.1.0
 */
export interface Answers {
  /** The stat, or `undefined` if the path is absent. */
  readonly Stat: FileStat | undefined
  readonly Read: Whole
  readonly ReadMany: ReadonlyArray<Whole | undefined>
  readonly Look: ReadonlyArray<Seen>
  readonly RemoveTree: DeleteResult
  readonly CopyTree: TransferResult
  readonly CopyFile: FileStat
  readonly MakeMany: ReadonlyArray<boolean>
  readonly Write: { readonly version?: string | undefined }
  readonly Edit: Edited
  readonly Remove: DeleteResult
  readonly MakeDirectory: void
  readonly Move: TransferResult
}

/**
 * The answer of a request.
 *
 * @since 0.1.0
 */
export type AnswerOf<R extends { readonly _tag: Tag }> = Answers[R["_tag"]]

/**
 * The handlers of a backend. A handler that returns `None` declines: it has done nothing, and the engine derives the
 * answer.
 *
 * The engine calls a handler only when it needs the answer. So a handler may do its work synchronously and return a
 * completed effect.
 *
 * @since 0.1.0
 */
export type Handlers = {
  readonly [R in Plain as R["_tag"]]?: ((request: R) => Effect.Effect<Option.Option<AnswerOf<R>>, Fault>) | undefined
} & {
  readonly Write?: (<E, R>(request: Write<E, R>) => Effect.Effect<Option.Option<Answers["Write"]>, Fault | E, R>) | undefined
}

/**
 * A function that answers requests in one step. `tags` lists the requests that the function handles.
 *
 * @since 0.1.0
 */
export interface Perform {
  <R extends Plain>(request: R): Effect.Effect<Option.Option<AnswerOf<R>>, Fault>
  <E, R>(request: Write<E, R>): Effect.Effect<Option.Option<Answers["Write"]>, Fault | E, R>
  readonly tags: ReadonlySet<Tag>
}

type Handle = (request: Request) => Effect.Effect<Option.Option<never>, Fault>

/**
 * An effect that declines a request.
 *
 * @since 0.1.0
 */
export const declined: Effect.Effect<Option.Option<never>> = Effect.succeed(Option.none())

const dispatching = (handle: Handle, tags: ReadonlySet<Tag>): Perform => Object.assign(handle as unknown as Perform, { tags })

const handleOf = (self: Perform): Handle => self as unknown as Handle

/**
 * Returns a `perform` that runs these handlers.
 *
 * @example
 * ```ts
 * const perform = Request.handlers({ Read: () => Request.declined })
 * perform.tags.has("Read") // => true
 * yield* perform({ _tag: "Look", path: FsPath.root }) // => Option.none()
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const handlers = (handlers: Handlers): Perform => {
  const all = handlers as Readonly<Record<Tag, Handle | undefined>>
  const tags = (Object.keys(handlers) as Array<Tag>).filter((tag) => all[tag] !== undefined)
  return dispatching((request) => all[request._tag]?.(request) ?? declined, new Set(tags))
}

/**
 * Returns the `perform` of a backend if it handles the tag, else `undefined`.
 *
 * @since 0.1.0
 */
export const performing = (self: { readonly perform?: Perform | undefined }, tag: Tag): Perform | undefined =>
  self.perform?.tags.has(tag) === true ? self.perform : undefined

/**
 * The requests that change nothing.
 *
 * @since 0.1.0
 */
export const reading: ReadonlySet<Tag> = new Set<Tag>(["Stat", "Read", "ReadMany", "Look"])

/**
 * Returns a `perform` that handles only the given tags.
 *
 * @since 0.1.0
 */
export const only = (self: Perform | undefined, tags: ReadonlySet<Tag>): Perform | undefined => {
  const kept = new Set([...(self?.tags ?? [])].filter((tag) => tags.has(tag)))
  if (self === undefined || kept.size === 0) return undefined
  const handle = handleOf(self)
  return kept.size === self.tags.size
    ? self
    : dispatching((request) => (kept.has(request._tag) ? handle(request) : declined), kept)
}

/**
 * Replaces handlers of the tags that `self` handles. Handlers of other tags are ignored.
 *
 * @since 0.1.0
 */
export const override = (self: Perform | undefined, change: (self: Perform) => Handlers): Perform | undefined => {
  if (self === undefined) return undefined
  const changed = change(self) as Readonly<Record<Tag, Handle | undefined>>
  return dispatching(
    (request) => (self.tags.has(request._tag) ? (changed[request._tag] ?? handleOf(self))(request) : declined),
    self.tags
  )
}

/**
 * Returns a `perform` with the tags of `self`. Each request first runs `latest`, which returns the `perform` that
 * answers the request.
 *
 * @since 0.1.0
 */
export const later = (self: Perform | undefined, latest: Effect.Effect<Perform, Fault>): Perform | undefined =>
  self && dispatching((request) => Effect.flatMap(latest, (perform) => handleOf(perform)(request)), self.tags)

/**
 * Adds handlers, which take precedence over the handlers of `self`.
 *
 * @since 0.1.0
 */
export const extend = (self: Perform | undefined, added: Handlers): Perform => {
  const more = handlers(added)
  return self === undefined
    ? more
    : dispatching(
        (request) => handleOf(more.tags.has(request._tag) ? more : self)(request),
        new Set([...self.tags, ...more.tags])
      )
}

/**
 * Runs `advice` around each request that `self` handles.
 *
 * @since 0.1.0
 */
export const around = (self: Perform | undefined, advice: RequestAdvice): Perform | undefined =>
  self &&
  dispatching((request) => (self.tags.has(request._tag) ? advice(request, handleOf(self)(request)) : declined), self.tags)

/**
 * Maps every path of a request.
 *
 * @since 0.1.0
 */
export const mapPath = <R extends Request>(request: R, into: (path: FsPath) => FsPath): R => {
  const self: Request = request
  switch (self._tag) {
    case "ReadMany":
      return { ...request, paths: self.paths.map(into) }
    case "MakeMany":
      return { ...request, entries: self.entries.map((entry) => ({ ...entry, path: into(entry.path) })) }
    case "CopyTree":
    case "CopyFile":
    case "Move":
      return { ...request, path: into(self.path), to: into(self.to) }
    default:
      return { ...request, path: into(self.path) }
  }
}

/**
 * Maps the paths of all requests with `into`. Maps the faults of the requests that may report a path with `out`.
 *
 * @since 0.1.0
 */
export const mapped = (
  self: Perform | undefined,
  into: (path: FsPath) => FsPath,
  out: (fault: Fault) => Fault
): Perform | undefined => {
  if (self === undefined) return undefined
  const handle = handleOf(self)
  return dispatching((request) => {
    const answer = handle(mapPath(request, into))
    return request._tag === "Remove" || request._tag === "Move" || request._tag === "CopyFile"
      ? Effect.mapError(answer, out)
      : answer
  }, self.tags)
}
