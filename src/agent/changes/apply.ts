/**
 * Changes several files, all or nothing, even if a change fails or is interrupted. A killed process leaves a journal, which
 * the next process finishes.
 */
import * as Effect from "effect/Effect"
import { withClaim } from "../../engine/directories.ts"
import { remove } from "../../engine/remove.ts"
import * as Version from "../../engine/version.ts"
import * as Write from "../../engine/write.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import { runTransaction, mismatchToFault } from "../../history/exchange.ts"
import { withTreeLock } from "../../history/exchange/turn.ts"
import { withExclusiveLock, recoverTransactions } from "../../history/replace.ts"
import { type Fault, type FsError, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { type PathChange, resolveChanges, type ResolvedChange, type ChangeTrees } from "./places.ts"

export interface FileChange {
  readonly path: FsPath.FsPath
  /** The version that the file must have, or `null` if there must be no file. */
  readonly before: string | null
  /** The new content, or `null` to remove the file. */
  readonly after: Uint8Array | null
  /** The old path of a file that moves. The old file is removed, and the new one keeps its permissions. */
  readonly from?: { readonly path: FsPath.FsPath; readonly version: string } | undefined
}

export interface ChangedFile {
  readonly path: FsPath.FsPath
  /** The version after the change, or `null` if there is no file. */
  readonly version: string | null
}

export interface Options {
  /** The name of the operation in errors. @default "change" */
  readonly operation?: string | undefined
}

const pathChangesOf = ({ after, before, from, path }: FileChange): ReadonlyArray<PathChange> =>
  from === undefined
    ? [{ path, before, after }]
    : [
        { path: from.path, before: from.version, after: null },
        { path, before, after, from: from.path }
      ]

const changedFileOf = ({ after, path }: FileChange): ChangedFile => ({
  path,
  version: after === null ? null : Version.ofBytes(after)
})

/** Returns a fault if the layer's options forbid a change, before any file access. */
const permissionFault = ({ isPermitted: may }: Caller.Caller, pathChanges: ReadonlyArray<PathChange>): Fault | undefined => {
  for (const { after, path } of pathChanges) {
    const action = after === null ? "delete" : "write"
    if (!may(action) || !may(action, path)) return located(Caller.readOnly, path)
  }
  return undefined
}

const applySingleChange = Effect.fnUntraced(function* (
  port: Backend,
  { after, before, path }: PathChange
): Effect.fn.Return<void, Fault> {
  if (after === null) return yield* Effect.asVoid(remove(port, path, { recursive: false, missing: "fail", ifMatch: before }))
  const limits = yield* Limits
  const plan = { mode: "overwrite", createParents: true, ifMatch: before, version: false, limits } as const
  yield* Write.bytes(port, path, after, plan)
})

/** Claims every file against other processes, in the same order in each, so that no two wait for each other. */
const withClaims = <A, E, R>(
  port: Backend,
  places: ReadonlyArray<ResolvedChange>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => {
  // Names that could be the same on some disk share a claim.
  const claims = new Map(places.map(({ at }) => [FsPath.fold(at.normalize()), at]))
  return [...claims]
    .sort(([a], [b]) => FsPath.compare(b, a))
    .reduce<Effect.Effect<A, E | Fault, R>>((inner, [, at]) => withClaim(port, at, inner), effect)
}

/** Tests whether a fault shows that another program changed the tree after the paths were resolved. */
const isConcurrentChange = ({ _tag, code }: Fault & { readonly code?: unknown }): boolean =>
  _tag === "NotFound" ||
  _tag === "NotADirectory" ||
  _tag === "AlreadyExists" ||
  (_tag === "IoError" && (code === "ECHANGED" || code === "EEXIST"))

/** Gives a fault the caller's path. A change by another program, at a place or in a directory above it, becomes a Conflict. */
const withCallerPath = (places: ReadonlyArray<ResolvedChange>, fault: Fault): Fault => {
  const { path: at } = fault as { readonly path?: FsPath.FsPath }
  if (at === undefined) return fault
  const exact = places.find((place) => place.at === at)
  const place = exact ?? places.find((place) => FsPath.isWithin(at, place.at))
  if (place === undefined) return fault
  const { before, path } = place.pathChange
  if (isConcurrentChange(fault)) return { _tag: "Conflict", path, expected: before }
  return exact === undefined ? fault : { ...fault, path }
}

const exchangeTrees = (port: Backend, { after, before, places }: ChangeTrees): Effect.Effect<void, Fault> => {
  const contents = new Map(places.map(({ at, pathChange: end }) => [at, end.after]))
  const content = (path: FsPath.FsPath) => Effect.succeed(contents.get(path)!)
  const swapped = Effect.mapError(runTransaction<never>(port, { before, after, content }), mismatchToFault)
  // A transaction moves files aside for a moment. These moves are no deletions, so permission to write is enough.
  return port.rules?.permits?.("delete") === false ? Effect.provideService(swapped, TakingBack, true) : swapped
}

/**
 * Returns a fault if a rule protects a file to remove. Links may have led to the file, so its real path is checked
 * now.
 */
const protectedFileFault = (port: Backend, places: ReadonlyArray<ResolvedChange>): Fault | undefined => {
  for (const { at, pathChange: end } of places) {
    const fault = end.after === null ? port.rules?.keeps?.(at) : undefined
    if (fault !== undefined) return located(fault, end.path)
  }
  return undefined
}

const applyAll = Effect.fnUntraced(function* (
  port: Backend,
  pathChanges: ReadonlyArray<PathChange>
): Effect.fn.Return<void, Fault> {
  yield* recoverTransactions(port)
  const trees = yield* resolveChanges(port, pathChanges)
  const { places } = trees
  const kept = protectedFileFault(port, places)
  if (kept !== undefined) return yield* Effect.fail(kept)
  const checkPreconditions = Effect.forEach(
    places,
    ({ at, pathChange: end }) =>
      Effect.mapError(Write.requirePrecondition(port, at, end.before), (fault) => located(fault, at)),
    { discard: true }
  )
  yield* Effect.mapError(withClaims(port, places, Effect.andThen(checkPreconditions, exchangeTrees(port, trees))), (fault) =>
    withCallerPath(places, fault)
  )
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
): Effect.Effect<ReadonlyArray<ChangedFile>, FsError> => {
  const { port } = fs
  const caller = Caller.make(port)
  const pathChanges = changes.flatMap(pathChangesOf)
  const [first] = pathChanges
  return caller.run(options.operation ?? "change", first?.path ?? FsPath.root, Caller.errorTags.edit, () => {
    const fault = permissionFault(caller, pathChanges)
    if (fault !== undefined) return Effect.fail(fault)
    if (first === undefined) return Effect.succeed([])
    const applied =
      pathChanges.length === 1
        ? applySingleChange(port, first)
        : withExclusiveLock(port, withTreeLock(port, applyAll(port, pathChanges)))
    return Effect.as(applied, changes.map(changedFileOf))
  })
}

/**
 * Finishes the interrupted `applyChanges` of a killed process, so that no tool sees half of it. Runs once, when a session
 * begins. If it cannot finish now, the next change of several files tries again.
 */
export const recoverChanges = ({ port }: Algebra): Effect.Effect<void> =>
  Effect.catch(withExclusiveLock(port, recoverTransactions(port)), (fault) =>
    Effect.logWarning("fs-algebra: the unfinished change of a killed process could not be completed", fault)
  )
