/**
 * Creates directories, for `mkdir` and as parents of new entries, and runs changes under locks and claims.
 *
 * If a call fails, the directories that it created are removed again.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { is as isFault, alreadyExists, notADirectory, notFound, ioError } from "../model/Fault.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend, MakeDirectoryPlan } from "../port/Backend.ts"
import { type Perform, performing, type Tag } from "../port/Request.ts"
import { TakingBack } from "../port/Rules.ts"
import * as Eager from "./eager.ts"
import { placeFault, type Resolved, resolve, resolveLink } from "./resolve.ts"

export const withLocks = <A, E, R>(
  port: Backend,
  paths: ReadonlyArray<FsPath.FsPath>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => (port.locks === undefined ? effect : port.locks.exclusive(paths, effect))

/**
 * Performs a change in one step under the lock of its paths. If the backend does not support the request or declines it,
 * releases the lock and runs `stepwise`.
 */
export const runAccelerated = <A, E, R>(
  port: Backend,
  tag: Tag,
  paths: ReadonlyArray<FsPath.FsPath>,
  fast: (perform: Perform) => Effect.Effect<Option.Option<A>, E, R>,
  stepwise: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const perform = performing(port, tag)
  return perform === undefined
    ? stepwise()
    : Eager.answered(
        withLocks(
          port,
          paths,
          Effect.suspend(() => fast(perform))
        ),
        stepwise
      )
}

/**
 * Runs an effect under a claim on the file. The claim excludes other processes. The caller must hold the lock of the path.
 */
export const withClaim = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => (port.locks?.claim === undefined ? effect : port.locks.claim(path, effect))

const linksKeepChanging: Fault = ioError("the symlinks in its path keep changing; try again")

/**
 * Locks the path that `find` resolves to, and runs `run` with its state under the lock.
 *
 * The path is resolved under its own lock, so that the result does not show the unfinished change of another fiber. If the
 * result is another path, the lock moves to this path, at most 8 times. After that, the call fails with IoError.
 */
export const withResolvedLock = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  find: Effect.Effect<Resolved, Fault>,
  run: (found: Resolved) => Effect.Effect<A, E | Fault, R>
): Effect.Effect<A, E | Fault, R> => {
  const attempt = (at: FsPath.FsPath, left: number): Effect.Effect<A, E | Fault, R> =>
    Effect.flatMap(
      withLocks(
        port,
        [at],
        Effect.flatMap(find, (found): Effect.Effect<FsPath.FsPath | { readonly value: A }, E | Fault, R> =>
          found.path === at ? Effect.map(run(found), (value) => ({ value })) : Effect.succeed(found.path)
        )
      ),
      (out) =>
        typeof out !== "string"
          ? Effect.succeed(out.value)
          : left === 0
            ? Effect.fail(linksKeepChanging)
            : attempt(out, left - 1)
    )
  return attempt(path, 8)
}

export const undoQuietly = (step: Effect.Effect<unknown, Fault>): Effect.Effect<void> =>
  Effect.ignore(Effect.provideService(step, TakingBack, true))

export const at = <A, R>(path: string, effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.mapError(effect, (fault) => located(fault, path))

const notCreatedTags: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>(["AlreadyExists", "NotFound", "NotADirectory"])

/** Tests whether the failure proves that the directory was not created. After any other failure, the directory may exist. */
const isCertainlyNotCreated = (exit: Exit.Exit<void, Fault>): boolean => {
  const fault = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
  return fault !== undefined && notCreatedTags.has(fault._tag)
}

/**
 * Creates a directory and records it in `made`. A directory that may have been created is recorded even after a failure
 * or an interruption.
 */
export const makeRecordedDirectory = (
  port: Backend,
  path: FsPath.FsPath,
  made: Array<FsPath.FsPath>
): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.onExit(port.makeDirectory(path), (exit) =>
      Effect.sync(() => {
        if (!isCertainlyNotCreated(exit)) made.push(path)
      })
    )
  )

/** Creates `directory` and its missing parents, and records each in `made`. The path must contain no symlinks. */
export const makeDirectories = Effect.fnUntraced(function* (
  port: Backend,
  directory: FsPath.FsPath,
  made: Array<FsPath.FsPath>
): Effect.fn.Return<void, Fault> {
  const missing: Array<FsPath.FsPath> = []
  for (let at = directory; ; at = FsPath.parent(at)) {
    const stat = yield* port.stat(at)
    if (stat?.kind === "directory") break
    if (stat !== undefined) return yield* Effect.fail(notADirectory)
    if (at === FsPath.root) return yield* Effect.fail(notFound)
    missing.push(at)
  }
  for (let i = missing.length - 1; i >= 0; i--) {
    const at = missing[i]!
    yield* Effect.catch(makeRecordedDirectory(port, at, made), (fault) =>
      fault._tag === "AlreadyExists" ? Effect.void : Effect.fail(fault)
    )
  }
})

/**
 * Runs `use` with a list for the directories that it creates. If `use` fails, removes the listed directories in reverse
 * order, except those that are not empty.
 */
export const withRollback = <A, E, R>(
  port: Backend,
  use: (made: Array<FsPath.FsPath>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const made: Array<FsPath.FsPath> = []
    return Effect.onExit(use(made), (exit) =>
      Exit.isSuccess(exit) || made.length === 0
        ? Effect.void
        : undoQuietly(Effect.forEach([...made].reverse(), (path) => Effect.ignore(port.remove(path)), { discard: true }))
    )
  })

/**
 * Runs an effect after creating the parents of the path. Retries up to three times after NotFound, because another fiber
 * whose write failed may have removed the parents.
 */
export const withParents = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  run: Effect.Effect<A, E | Fault, R>
): Effect.Effect<A, E | Fault, R> =>
  withRollback(port, (made) => {
    const attempt = (left: number): Effect.Effect<A, E | Fault, R> =>
      Effect.andThen(
        makeDirectories(port, FsPath.parent(path), made),
        left === 0 ? run : Effect.catch(run, (error) => (isFault(error, "NotFound") ? attempt(left - 1) : Effect.fail(error)))
      )
    return attempt(3)
  })

export const mkdir = (port: Backend, path: FsPath.FsPath, plan: MakeDirectoryPlan): Effect.Effect<void, Fault> =>
  runAccelerated(
    port,
    "MakeDirectory",
    [path],
    (perform) => perform({ _tag: "MakeDirectory", path, plan }),
    () => makeStepByStep(port, path, plan)
  )

const makeStepByStep = (port: Backend, path: FsPath.FsPath, options: MakeDirectoryPlan): Effect.Effect<void, Fault> =>
  withResolvedLock(port, path, resolveLink(port, path), (found): Effect.Effect<void, Fault> => {
    if (found.stat !== undefined) {
      if (!options.existOk) return Effect.fail(alreadyExists)
      if (found.stat.kind === "directory") return Effect.void
      return found.stat.kind === "symlink"
        ? Effect.flatMap(resolve(port, path), ({ stat }) =>
            stat?.kind === "directory" ? Effect.void : Effect.fail(alreadyExists)
          )
        : Effect.fail(alreadyExists)
    }
    const fault = placeFault(found)
    if (fault !== undefined) return Effect.fail(fault)
    const one = port.makeDirectory(found.path)
    return Effect.catch(options.parents ? withParents<void, never, never>(port, found.path, one) : one, (fault) =>
      fault._tag === "AlreadyExists" && options.existOk
        ? Effect.flatMap(port.stat(found.path), (stat) =>
            stat?.kind === "directory" ? Effect.void : Effect.fail(alreadyExists)
          )
        : Effect.fail(fault)
    )
  })
