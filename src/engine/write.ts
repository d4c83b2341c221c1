/**
 * Writes files. A write is first tried as it is, which takes one primitive call in the common case. Only if that fails
 * does the engine look for a symlink to follow or parents to create.
 *
 * Every failure is still the one that the order of checks demands.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Backend, Commit, WritePlan } from "../port/Backend.ts"
import { performing } from "../port/Request.ts"
import { accelerated, claiming, exclusively, inTurn, isFault, makeDirectories, undoing, withParents } from "./directories.ts"
import { noPlace, type Resolved, resolve, resolveLink } from "./resolve.ts"
import { hasher } from "../runtime/hash.ts"
import * as Version from "./version.ts"

const notFound: Fault = { _tag: "NotFound" }
const notAFile: Fault = { _tag: "NotAFile" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }

export type Expected = string | null | undefined

const holds = (port: Backend, at: FsPath.FsPath, expected: string | null): Effect.Effect<void, Fault> =>
  Effect.flatMap(port.stat(at), (stat) => {
    if (stat === undefined) return expected === null ? Effect.void : Effect.fail({ _tag: "Conflict", expected, actual: null })
    if (stat.kind !== "file") return Effect.fail(notAFile)
    return Effect.matchEffect(versionAt(port, at), {
      onSuccess: (actual): Effect.Effect<void, Fault> =>
        actual === expected ? Effect.void : Effect.fail({ _tag: "Conflict", expected, actual }),
      onFailure: (fault) => Effect.fail(unreadable(fault, expected))
    })
  })

const versionAt = (port: Backend, at: FsPath.FsPath): Effect.Effect<string, Fault> =>
  Effect.scoped(Effect.flatMap(port.open(at), Version.ofHandle))

/** Converts a read failure to a Conflict. If reading is denied, the actual version is unknown. */
const unreadable = (fault: Fault, expected: string | null): Fault =>
  fault._tag === "AccessDenied"
    ? { _tag: "Conflict", expected }
    : fault._tag === "NotFound"
      ? { _tag: "Conflict", expected, actual: null }
      : fault

/**
 * Runs an effect that depends on a precondition, under a claim if needed.
 *
 * The precondition "absent" needs no claim, because creation is atomic between processes.
 */
export const guarded = <A, E, R>(
  port: Backend,
  at: FsPath.FsPath,
  expected: Expected,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => (typeof expected === "string" ? claiming(port, at, effect) : effect)

export const precondition = (port: Backend, at: FsPath.FsPath, expected: Expected): Effect.Effect<void, Fault> =>
  expected === undefined ? Effect.void : holds(port, at, expected)

const checked = (port: Backend, at: FsPath.FsPath, expected: Expected): { readonly commit: Commit } | undefined =>
  expected === undefined
    ? undefined
    : { commit: (publish) => guarded(port, at, expected, Effect.andThen(holds(port, at, expected), publish)) }

export interface Plan extends WritePlan {
  readonly limits: LimitsShape
}

const primitive = (plan: Plan): "create" | "replace" | "append" =>
  plan.mode === "create" || plan.ifMatch === null
    ? "create"
    : plan.mode === "append" || plan.mode === "appendExisting"
      ? "append"
      : "replace"

const needsFile = (plan: Plan): boolean => plan.mode === "replace" || plan.mode === "appendExisting"

const admits = (plan: Plan, path: FsPath.FsPath, found: Resolved): Fault | undefined => {
  const { stat } = found
  if (stat !== undefined) {
    if (plan.mode === "create" && stat.kind !== "directory" && stat.kind !== "other") return alreadyExists
    return stat.kind === "file" ? undefined : notAFile
  }
  if (typeof plan.ifMatch === "string") return { _tag: "Conflict", expected: plan.ifMatch, actual: null }
  const fault = noPlace(found) ?? (needsFile(plan) ? notFound : undefined)
  return fault ?? (found.path === path ? undefined : FsPath.checkLimits(found.path, plan.limits))
}

/**
 * Handles AlreadyExists from a create.
 *
 * A write with `ifMatch: null` is also a create, so that it holds against other processes, and its failure is a
 * Conflict. A directory or special file fails with NotAFile in every mode.
 */
const whatExists = <A, E, R>(
  port: Backend,
  at: FsPath.FsPath,
  plan: Plan,
  effect: Effect.Effect<A, E | Fault, R>
): Effect.Effect<A, E | Fault, R> =>
  primitive(plan) !== "create"
    ? effect
    : Effect.catch(effect, (error) =>
        isFault(error, "AlreadyExists")
          ? Effect.flatMap(port.stat(at), (stat): Effect.Effect<never, E | Fault> =>
              stat?.kind === "directory" || stat?.kind === "other"
                ? Effect.fail(notAFile)
                : plan.ifMatch === null
                  ? // Report a Conflict even if the entry has been removed since.
                    Effect.andThen(holds(port, at, null), Effect.fail<Fault>({ _tag: "Conflict", expected: null }))
                  : Effect.fail(error)
            )
          : Effect.fail(error)
      )

export interface Written {
  readonly version?: string | undefined
}

/**
 * Appends to a file and computes its version in one pass.
 *
 * The old content is read before the append is published, so a file that cannot be read is not changed.
 */
const appended = (port: Backend, at: FsPath.FsPath, bytes: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> =>
  Effect.suspend(() => {
    const hash = hasher()
    const standing = Effect.flatMap(port.stat(at), (stat) =>
      stat?.kind === "file"
        ? Effect.scoped(Effect.flatMap(port.open(at), (handle) => Version.absorb(handle, hash)))
        : Effect.void
    )
    const holdsStill: Effect.Effect<void, Fault> =
      plan.ifMatch === undefined
        ? standing
        : Effect.andThen(
            standing,
            Effect.suspend(() => {
              const actual = hash.digest()
              const { ifMatch } = plan
              return ifMatch === undefined || ifMatch === actual
                ? Effect.void
                : Effect.fail<Fault>({ _tag: "Conflict", expected: ifMatch, actual })
            })
          )
    const commit: Commit = (publish) => guarded(port, at, plan.ifMatch, Effect.andThen(holdsStill, publish))
    return Effect.map(port.write<never, never>(at, bytes, "append", { commit }), () => {
      hash.update(bytes)
      return { version: hash.digest() }
    })
  })

const once = (port: Backend, at: FsPath.FsPath, bytes: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> => {
  if (plan.version && primitive(plan) === "append") return appended(port, at, bytes, plan)
  const written = whatExists(
    port,
    at,
    plan,
    port.write<never, never>(at, bytes, primitive(plan), checked(port, at, plan.ifMatch))
  )
  return Effect.map(written, () => ({ version: plan.version ? Version.ofBytes(bytes) : undefined }))
}

const mayLieElsewhere = (fault: Fault): boolean =>
  fault._tag === "NotFound" || fault._tag === "NotAFile" || fault._tag === "NotADirectory"

const elsewhere: Fault = { _tag: "IoError", detail: "it is a link" }

const versioned = (done: Written, plan: Plan, ofContent: () => string): Written =>
  done.version !== undefined || !plan.version || primitive(plan) === "append" ? done : { version: ofContent() }

export const bytes = (port: Backend, path: FsPath.FsPath, content: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> =>
  accelerated(
    port,
    "Write",
    [path],
    (perform) =>
      Effect.map(
        perform<never, never>({ _tag: "Write", path, bytes: content, plan }),
        Option.map((done) => versioned(done, plan, () => Version.ofBytes(content)))
      ),
    () => bytesStepByStep(port, path, content, plan)
  )

const bytesStepByStep = (
  port: Backend,
  path: FsPath.FsPath,
  content: Uint8Array,
  plan: Plan
): Effect.Effect<Written, Fault> => {
  const place = target(port, path, plan)
  const put = (found: Resolved): Effect.Effect<Written, Fault> => {
    const fault = admits(plan, path, found)
    if (fault !== undefined) return Effect.fail(fault)
    const write = once(port, found.path, content, plan)
    return plan.createParents && found.stat === undefined ? withParents<Written, never, never>(port, found.path, write) : write
  }
  if (plan.ifMatch !== undefined || needsFile(plan)) return inTurn(port, path, place, put)
  const direct = Effect.catch(once(port, path, content, plan), (fault) =>
    mayLieElsewhere(fault)
      ? Effect.flatMap(place, (found) => (found.path === path ? put(found) : Effect.fail(elsewhere)))
      : Effect.fail(fault)
  )
  return Effect.catch(exclusively(port, [path], direct), (fault) =>
    fault === elsewhere ? inTurn(port, path, place, put) : Effect.fail(fault)
  )
}

/**
 * Resolves the target of a write. A create does not follow a symlink in the last component, because that name exists.
 */
const target = (port: Backend, path: FsPath.FsPath, plan: Plan): Effect.Effect<Resolved, Fault> =>
  plan.mode === "create" ? resolveLink(port, path) : resolve(port, path)

/**
 * Writes the content of a stream.
 *
 * The content is staged without a lock. It is then published atomically under the lock of the path, after the
 * precondition is checked. So a file can be streamed onto itself, and a failing stream changes nothing.
 *
 * A place that cannot be written to is refused before the stream runs. `digest` returns the version of the content once
 * the stream has ended.
 */
export const stream = <E, R>(
  port: Backend,
  path: FsPath.FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  plan: Plan,
  digest: () => string
): Effect.Effect<Written, Fault | E, R> => {
  const perform = performing(port, "Write")
  const stepByStep = streamStepByStep(port, path, content, plan, digest)
  if (perform === undefined) return stepByStep
  const commit: Commit = (publish) => exclusively(port, [path], publish)
  return Effect.flatMap(exclusively(port, [path], admitted(port, path, plan)), (at) =>
    // A symlink is written step by step, because a fast write that declines after running the stream could not run it
    // again.
    at !== path
      ? stepByStep
      : Effect.flatMap(
          Effect.suspend(() => perform<E, R>({ _tag: "Write", path, bytes: content, plan, how: { commit } })),
          (done): Effect.Effect<Written, Fault | E, R> =>
            Option.isNone(done) ? stepByStep : Effect.succeed(versioned(done.value, plan, digest))
        )
  )
}

const admitted = (port: Backend, path: FsPath.FsPath, plan: Plan): Effect.Effect<FsPath.FsPath, Fault> =>
  Effect.flatMap(target(port, path, plan), (found): Effect.Effect<FsPath.FsPath, Fault> => {
    const fault = admits(plan, path, found)
    return fault === undefined ? Effect.as(withParent(port, found, plan), found.path) : Effect.fail(fault)
  })

const withParent = (port: Backend, { path, stat }: Resolved, plan: Plan): Effect.Effect<void, Fault> =>
  stat !== undefined || plan.createParents
    ? Effect.void
    : Effect.flatMap(port.stat(FsPath.parent(path)), (above) => (above === undefined ? Effect.fail(notFound) : Effect.void))

const streamStepByStep = <E, R>(
  port: Backend,
  path: FsPath.FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  plan: Plan,
  digest: () => string
): Effect.Effect<Written, Fault | E, R> =>
  undoing(port, (made) => {
    const parents = (at: FsPath.FsPath): Effect.Effect<void, Fault> =>
      plan.createParents ? makeDirectories(port, FsPath.parent(at), made) : Effect.void
    const place = inTurn(port, path, target(port, path, plan), (found): Effect.Effect<FsPath.FsPath, Fault> => {
      const fault = admits(plan, path, found)
      if (fault !== undefined) return Effect.fail(fault)
      if (found.stat !== undefined) return Effect.succeed(found.path)
      return Effect.as(plan.createParents ? parents(found.path) : withParent(port, found, plan), found.path)
    })
    return Effect.flatMap(place, (at) => staged(port, at, content, plan, digest, parents(at)))
  })

const staged = <E, R>(
  port: Backend,
  at: FsPath.FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  plan: Plan,
  digest: () => string,
  parents: Effect.Effect<void, Fault>
): Effect.Effect<Written, Fault | E, R> =>
  Effect.suspend(() => {
    let version: string | undefined
    const appends = primitive(plan) === "append"
    const standing = Effect.flatMap(port.stat(at), (stat): Effect.Effect<void, Fault> => {
      if (stat === undefined) return needsFile(plan) ? Effect.fail(notFound) : parents
      // Content that could not be read afterwards must not be published.
      return plan.version && appends && stat.kind === "file" ? Effect.scoped(Effect.asVoid(port.open(at))) : Effect.void
    })
    const note = !plan.version
      ? Effect.void
      : Effect.map(appends ? versionAt(port, at) : Effect.sync(digest), (value) => void (version = value))
    const commit: Commit = (publish) =>
      exclusively(
        port,
        [at],
        guarded(
          port,
          at,
          plan.ifMatch,
          Effect.andThen(
            Effect.andThen(precondition(port, at, plan.ifMatch), standing),
            Effect.tap(publish, () => note)
          )
        )
      )
    return Effect.map(whatExists(port, at, plan, port.write(at, content, primitive(plan), { commit })), (): Written => ({
      version
    }))
  })
