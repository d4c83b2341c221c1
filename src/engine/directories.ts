/**
 * Directories come into being here: for `mkdir`, and as the parents of what is written, copied, moved or linked. What was made for a
 * call that then fails is taken away again.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend, MakeDirectoryPlan } from "../port/Backend.ts"
import { TakingBack } from "../port/Rules.ts"
import { noPlace, type Resolved, resolve, resolveLink } from "./resolve.ts"

const notFound: Fault = { _tag: "NotFound" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const exists: Fault = { _tag: "AlreadyExists" }

/** Under the backend's own locks, where it has them. */
export const exclusively = <A, E, R>(
  port: Backend,
  paths: ReadonlyArray<FsPath.FsPath>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => (port.locks === undefined ? effect : port.locks.exclusive(paths, effect))

/**
 * A whole change in one step by who can make it so, with the turn of its paths; step by step where that declines. In the turn `fast` is
 * called when it is to happen.
 */
export const accelerated = <A, E, R>(
  port: Backend,
  paths: ReadonlyArray<FsPath.FsPath>,
  fast: () => Effect.Effect<A | undefined, E, R>,
  stepwise: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(exclusively(port, paths, Effect.suspend(fast)), (done) =>
    done === undefined ? stepwise() : Effect.succeed(done)
  )

/** While no other process checks and changes the file, where the backend can keep them off. With the path's turn taken. */
export const claiming = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => (port.locks?.claim === undefined ? effect : port.locks.claim(path, effect))

const unstable: Fault = { _tag: "IoError", detail: "where its links lead keeps changing" }

/**
 * Takes the turn of where the path leads, and acts on what is there then: what was seen before its turn may have been another's work
 * in progress.
 */
export const inTurn = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  find: Effect.Effect<Resolved, Fault>,
  run: (found: Resolved) => Effect.Effect<A, E | Fault, R>
): Effect.Effect<A, E | Fault, R> => {
  const attempt = (at: FsPath.FsPath, left: number): Effect.Effect<A, E | Fault, R> =>
    Effect.flatMap(
      exclusively(
        port,
        [at],
        Effect.flatMap(find, (found): Effect.Effect<FsPath.FsPath | { readonly value: A }, E | Fault, R> =>
          found.path === at ? Effect.map(run(found), (value) => ({ value })) : Effect.succeed(found.path)
        )
      ),
      (out) =>
        typeof out !== "string" ? Effect.succeed(out.value) : left === 0 ? Effect.fail(unstable) : attempt(out, left - 1)
    )
  return attempt(path, 8)
}

/** A step by which a failed call takes back what it has made, as far as that can be done. */
export const takingBack = (step: Effect.Effect<unknown, Fault>): Effect.Effect<void> =>
  Effect.ignore(Effect.provideService(step, TakingBack, true))

/** With the path at fault where a call names two. */
export const at = <A, R>(path: string, effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.mapError(effect, (fault) => located(fault, path))

export const isFault = (error: unknown, tag?: Fault["_tag"]): error is Fault =>
  typeof error === "object" && error !== null && "_tag" in error && (tag === undefined || error._tag === tag)

const impossible: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>(["AlreadyExists", "NotFound", "NotADirectory"])

/** Whether the directory was certainly not made. In any other failure it may have been, and only the confirmation be missing. */
const isDenied = (exit: Exit.Exit<void, Fault>): boolean => {
  const fault = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
  return fault !== undefined && impossible.has(fault._tag)
}

/** Makes a directory and notes it in `made`, also when the call fails or the fiber is interrupted at that moment. */
export const makingDirectory = (port: Backend, path: FsPath.FsPath, made: Array<FsPath.FsPath>): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.onExit(port.makeDirectory(path), (exit) =>
      Effect.sync(() => {
        if (!isDenied(exit)) made.push(path)
      })
    )
  )

/** Makes the missing directories of `directory`, which has no links left in it, and notes each in `made`. */
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
    yield* Effect.catch(makingDirectory(port, at, made), (fault) =>
      fault._tag === "AlreadyExists" ? Effect.void : Effect.fail(fault)
    )
  }
})

/** Gives `use` a list to note the directories in that it makes; when it does not succeed they go again, the last first, as far as they are empty. */
export const undoing = <A, E, R>(
  port: Backend,
  use: (made: Array<FsPath.FsPath>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const made: Array<FsPath.FsPath> = []
    return Effect.onExit(use(made), (exit) =>
      Exit.isSuccess(exit) || made.length === 0
        ? Effect.void
        : takingBack(Effect.forEach([...made].reverse(), (path) => Effect.ignore(port.remove(path)), { discard: true }))
    )
  })

/** With the parents made first, and made again where someone else's failed write has just removed them. */
export const withParents = <A, E, R>(
  port: Backend,
  path: FsPath.FsPath,
  run: Effect.Effect<A, E | Fault, R>
): Effect.Effect<A, E | Fault, R> =>
  undoing(port, (made) => {
    const attempt = (left: number): Effect.Effect<A, E | Fault, R> =>
      Effect.andThen(
        makeDirectories(port, FsPath.parent(path), made),
        left === 0 ? run : Effect.catch(run, (error) => (isFault(error, "NotFound") ? attempt(left - 1) : Effect.fail(error)))
      )
    return attempt(3)
  })

export const mkdir = (port: Backend, path: FsPath.FsPath, options: MakeDirectoryPlan): Effect.Effect<void, Fault> => {
  const fast = port.accelerations?.makeDirectory
  return fast === undefined
    ? stepByStep(port, path, options)
    : Effect.asVoid(
        accelerated<boolean, Fault, never>(
          port,
          [path],
          () => fast(path, options),
          () => Effect.as(stepByStep(port, path, options), true)
        )
      )
}

const stepByStep = (port: Backend, path: FsPath.FsPath, options: MakeDirectoryPlan): Effect.Effect<void, Fault> =>
  inTurn(port, path, resolveLink(port, path), (found): Effect.Effect<void, Fault> => {
    if (found.stat !== undefined) {
      if (!options.existOk) return Effect.fail(exists)
      if (found.stat.kind === "directory") return Effect.void
      return found.stat.kind === "symlink"
        ? Effect.flatMap(resolve(port, path), ({ stat }) => (stat?.kind === "directory" ? Effect.void : Effect.fail(exists)))
        : Effect.fail(exists)
    }
    const fault = noPlace(found)
    if (fault !== undefined) return Effect.fail(fault)
    const one = port.makeDirectory(found.path)
    return Effect.catch(options.parents ? withParents<void, never, never>(port, found.path, one) : one, (fault) =>
      // Another process came first.
      fault._tag === "AlreadyExists" && options.existOk
        ? Effect.flatMap(port.stat(found.path), (stat) => (stat?.kind === "directory" ? Effect.void : Effect.fail(exists)))
        : Effect.fail(fault)
    )
  })
