/**
 * Changes several files, all or nothing, even if a change fails or is interrupted. A killed process leaves a journal, which
 * the next process finishes.
 */
import * as Effect from "effect/Effect"
import { claiming } from "../../engine/directories.ts"
import { remove } from "../../engine/remove.ts"
import * as Version from "../../engine/version.ts"
import * as Write from "../../engine/write.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import { exchange, withoutMismatch } from "../../history/exchange.ts"
import { taking } from "../../history/exchange/turn.ts"
import { alone, recovering } from "../../history/replace.ts"
import { type Fault, type FsError, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { type End, find, type Place, type Trees } from "./places.ts"

export interface FileChange {
  readonly path: FsPath.FsPath
  /** The version that the file must have, or `null` if there must be no file. */
  readonly before: string | null
  /** The new content, or `null` to remove the file. */
  readonly after: Uint8Array | null
  /** The old path of a file that moves. The old file is removed, and the new one keeps its permissions. */
  readonly from?: { readonly path: FsPath.FsPath; readonly version: string } | undefined
}

export interface Changed {
  readonly path: FsPath.FsPath
  /** The version after the change, or `null` if there is no file. */
  readonly version: string | null
}

export interface Options {
  /** The name of the operation in errors. @default "change" */
  readonly operation?: string | undefined
}

const endsOf = ({ after, before, from, path }: FileChange): ReadonlyArray<End> =>
  from === undefined
    ? [{ path, before, after }]
    : [
        { path: from.path, before: from.version, after: null },
        { path, before, after, from: from.path }
      ]

const changedBy = ({ after, path }: FileChange): Changed => ({
  path,
  version: after === null ? null : Version.ofBytes(after)
})

/** Returns a fault if the layer's options forbid a change, before any file access. */
const refusal = ({ may }: Caller.Caller, ends: ReadonlyArray<End>): Fault | undefined => {
  for (const { after, path } of ends) {
    const action = after === null ? "delete" : "write"
    if (!may(action) || !may(action, path)) return located(Caller.readOnly, path)
  }
  return undefined
}

const applyOne = Effect.fnUntraced(function* (port: Backend, { after, before, path }: End): Effect.fn.Return<void, Fault> {
  if (after === null) return yield* Effect.asVoid(remove(port, path, { recursive: false, missing: "fail", ifMatch: before }))
  const limits = yield* Limits
  const plan = { mode: "overwrite", createParents: true, ifMatch: before, version: false, limits } as const
  yield* Write.bytes(port, path, after, plan)
})

/** Claims every file against other processes, in the same order in each, so that no two wait for each other. */
const claimingAll = <A, E, R>(
  port: Backend,
  places: ReadonlyArray<Place>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => {
  // Names that could be the same on some disk share a claim.
  const claims = new Map(places.map(({ at }) => [FsPath.fold(at.normalize()), at]))
  return [...claims]
    .sort(([a], [b]) => FsPath.compare(b, a))
    .reduce<Effect.Effect<A, E | Fault, R>>((inner, [, at]) => claiming(port, at, inner), effect)
}

/** Tests whether a fault shows that another program changed the tree after the paths were resolved. */
const isChange = ({ _tag, code }: Fault & { readonly code?: unknown }): boolean =>
  _tag === "NotFound" ||
  _tag === "NotADirectory" ||
  _tag === "AlreadyExists" ||
  (_tag === "IoError" && (code === "ECHANGED" || code === "EEXIST"))

/** Gives a fault the caller's path. A change by another program, at a place or in a directory above it, becomes a Conflict. */
const asCaller = (places: ReadonlyArray<Place>, fault: Fault): Fault => {
  const { path: at } = fault as { readonly path?: FsPath.FsPath }
  if (at === undefined) return fault
  const exact = places.find((place) => place.at === at)
  const place = exact ?? places.find((place) => FsPath.isWithin(at, place.at))
  if (place === undefined) return fault
  const { before, path } = place.end
  if (isChange(fault)) return { _tag: "Conflict", path, expected: before }
  return exact === undefined ? fault : { ...fault, path }
}

const swap = (port: Backend, { after, before, places }: Trees): Effect.Effect<void, Fault> => {
  const contents = new Map(places.map(({ at, end }) => [at, end.after]))
  const content = (path: FsPath.FsPath) => Effect.succeed(contents.get(path)!)
  const swapped = Effect.mapError(exchange<never>(port, { before, after, content }), withoutMismatch)
  // A transaction moves files aside for a moment. These moves are no deletions, so permission to write is enough.
  return port.rules?.permits?.("delete") === false ? Effect.provideService(swapped, TakingBack, true) : swapped
}

/**
 * Returns a fault if a rule protects a file to remove. Links may have led to the file, so its real path is checked
 * now.
 */
const keepsAny = (port: Backend, places: ReadonlyArray<Place>): Fault | undefined => {
  for (const { at, end } of places) {
    const fault = end.after === null ? port.rules?.keeps?.(at) : undefined
    if (fault !== undefined) return located(fault, end.path)
  }
  return undefined
}

const applyAll = Effect.fnUntraced(function* (port: Backend, ends: ReadonlyArray<End>): Effect.fn.Return<void, Fault> {
  yield* recovering(port)
  const trees = yield* find(port, ends)
  const { places } = trees
  const kept = keepsAny(port, places)
  if (kept !== undefined) return yield* Effect.fail(kept)
  const held = Effect.forEach(
    places,
    ({ at, end }) => Effect.mapError(Write.precondition(port, at, end.before), (fault) => located(fault, at)),
    { discard: true }
  )
  yield* Effect.mapError(claimingAll(port, places, Effect.andThen(held, swap(port, trees))), (fault) => asCaller(places, fault))
})

/**
 * Makes all changes or none. Paths follow links as in a write; the path of a removed file follows links as in a delete. Missing
 * directories are created and no directory is removed. The caller must check how much may be written.
 *
 * Fails with Conflict for a file at another version, InvalidArgument for two changes of one file, NotAFile, NotADirectory, and
 * the errors of a write or a delete. After a failure nothing has changed.
 */
export const applyChanges = (
  fs: Algebra,
  changes: ReadonlyArray<FileChange>,
  options: Options = {}
): Effect.Effect<ReadonlyArray<Changed>, FsError> => {
  const { port } = fs
  const caller = Caller.make(port)
  const ends = changes.flatMap(endsOf)
  const [first] = ends
  return caller.run(options.operation ?? "change", first?.path ?? FsPath.root, Caller.tags.edit, () => {
    const fault = refusal(caller, ends)
    if (fault !== undefined) return Effect.fail(fault)
    if (first === undefined) return Effect.succeed([])
    const applied = ends.length === 1 ? applyOne(port, first) : alone(port, taking(port, applyAll(port, ends)))
    return Effect.as(applied, changes.map(changedBy))
  })
}

/**
 * Finishes the interrupted `applyChanges` of a killed process, so that no tool sees half of it. Runs once, when a session
 * begins. If it cannot finish now, the next change of several files tries again.
 */
export const recoverChanges = ({ port }: Algebra): Effect.Effect<void> =>
  Effect.catch(alone(port, recovering(port)), (fault) =>
    Effect.logWarning("fs-algebra: the unfinished change of a killed process could not be completed", fault)
  )
