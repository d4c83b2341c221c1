/**
 * Writes files.
 *
 * The engine first tries the primitive write, which succeeds in the common case. If this write fails, the engine looks
 * for a symlink to follow or for parents to create. The reported failure is the same as if all checks had run first in
 * their fixed order.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import { is as isFault, alreadyExists, notAFile, notFound } from "../model/Fault.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Backend, Commit, WritePlan } from "../port/Backend.ts"
import { performing } from "../port/Request.ts"
import {
  runAccelerated,
  withClaim,
  withLocks,
  withResolvedLock,
  makeDirectories,
  withRollback,
  withParents
} from "./directories.ts"
import { placeFault, type Resolved, resolve, resolveLink } from "./resolve.ts"
import { hasher } from "../runtime/hash.ts"
import * as Version from "./version.ts"

export type ExpectedVersion = string | null | undefined

const checkVersion = (port: Backend, at: FsPath.FsPath, expected: string | null): Effect.Effect<void, Fault> =>
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

/**
 * Converts the failure of a read to a Conflict. If the file is missing, the actual version is `null`; if reading is
 * denied, the actual version is unknown. Other faults are unchanged.
 */
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
export const withClaimIfMatched = <A, E, R>(
  port: Backend,
  at: FsPath.FsPath,
  expected: ExpectedVersion,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => (typeof expected === "string" ? withClaim(port, at, effect) : effect)

export const requirePrecondition = (port: Backend, at: FsPath.FsPath, expected: ExpectedVersion): Effect.Effect<void, Fault> =>
  expected === undefined ? Effect.void : checkVersion(port, at, expected)

const commitChecked = (port: Backend, at: FsPath.FsPath, expected: ExpectedVersion): { readonly commit: Commit } | undefined =>
  expected === undefined
    ? undefined
    : { commit: (publish) => withClaimIfMatched(port, at, expected, Effect.andThen(checkVersion(port, at, expected), publish)) }

export interface Plan extends WritePlan {
  readonly limits: LimitsShape
}

const primitiveMode = (plan: Plan): "create" | "replace" | "append" =>
  plan.mode === "create" || plan.ifMatch === null
    ? "create"
    : plan.mode === "append" || plan.mode === "appendExisting"
      ? "append"
      : "replace"

const needsFile = (plan: Plan): boolean => plan.mode === "replace" || plan.mode === "appendExisting"

const admissionFault = (plan: Plan, path: FsPath.FsPath, found: Resolved): Fault | undefined => {
  const { stat } = found
  if (stat !== undefined) {
    if (plan.mode === "create" && stat.kind !== "directory" && stat.kind !== "other") return alreadyExists
    return stat.kind === "file" ? undefined : notAFile
  }
  if (typeof plan.ifMatch === "string") return { _tag: "Conflict", expected: plan.ifMatch, actual: null }
  const fault = placeFault(found) ?? (needsFile(plan) ? notFound : undefined)
  return fault ?? (found.path === path ? undefined : FsPath.checkLimits(found.path, plan.limits))
}

/**
 * Handles AlreadyExists from a create.
 *
 * A write with `ifMatch: null` also runs as a create, which is atomic between processes; its failure becomes a
 * Conflict. If the entry is a directory or a special file, the write fails with NotAFile in every mode.
 */
const mapAlreadyExists = <A, E, R>(
  port: Backend,
  at: FsPath.FsPath,
  plan: Plan,
  effect: Effect.Effect<A, E | Fault, R>
): Effect.Effect<A, E | Fault, R> =>
  primitiveMode(plan) !== "create"
    ? effect
    : Effect.catch(effect, (error) =>
        isFault(error, "AlreadyExists")
          ? Effect.flatMap(port.stat(at), (stat): Effect.Effect<never, E | Fault> =>
              stat?.kind === "directory" || stat?.kind === "other"
                ? Effect.fail(notAFile)
                : plan.ifMatch === null
                  ? // Report a Conflict even if the entry has been removed since.
                    Effect.andThen(checkVersion(port, at, null), Effect.fail<Fault>({ _tag: "Conflict", expected: null }))
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
const appendWithVersion = (port: Backend, at: FsPath.FsPath, bytes: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> =>
  Effect.suspend(() => {
    let hash = hasher()
    // A decorator may retry this check, so each run starts a new hash at the start of the file.
    const checkExisting = Effect.flatMap(port.stat(at), (stat) => {
      hash = hasher()
      return stat?.kind === "file"
        ? Effect.scoped(Effect.flatMap(port.open(at), (handle) => Version.hashFile(handle, hash)))
        : Effect.void
    })
    const checkUnchanged: Effect.Effect<void, Fault> =
      plan.ifMatch === undefined
        ? checkExisting
        : Effect.andThen(
            checkExisting,
            Effect.suspend(() => {
              const actual = hash.digest()
              const { ifMatch } = plan
              return ifMatch === undefined || ifMatch === actual
                ? Effect.void
                : Effect.fail<Fault>({ _tag: "Conflict", expected: ifMatch, actual })
            })
          )
    const commit: Commit = (publish) => withClaimIfMatched(port, at, plan.ifMatch, Effect.andThen(checkUnchanged, publish))
    return Effect.map(port.write<never, never>(at, bytes, "append", { commit }), () => {
      hash.update(bytes)
      return { version: hash.digest() }
    })
  })

const writeOnce = (port: Backend, at: FsPath.FsPath, bytes: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> => {
  if (plan.version && primitiveMode(plan) === "append") return appendWithVersion(port, at, bytes, plan)
  const written = mapAlreadyExists(
    port,
    at,
    plan,
    port.write<never, never>(at, bytes, primitiveMode(plan), commitChecked(port, at, plan.ifMatch))
  )
  return Effect.map(written, () => ({ version: plan.version ? Version.ofBytes(bytes) : undefined }))
}

const mayBeBehindLink = (fault: Fault): boolean =>
  fault._tag === "NotFound" || fault._tag === "NotAFile" || fault._tag === "NotADirectory"

const withVersion = (done: Written, plan: Plan, ofContent: () => string): Written =>
  done.version !== undefined || !plan.version || primitiveMode(plan) === "append" ? done : { version: ofContent() }

export const bytes = (port: Backend, path: FsPath.FsPath, content: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> =>
  runAccelerated(
    port,
    "Write",
    [path],
    (perform) =>
      Effect.map(
        perform<never, never>({ _tag: "Write", path, bytes: content, plan }),
        Option.map((done) => withVersion(done, plan, () => Version.ofBytes(content)))
      ),
    () => bytesStepByStep(port, path, content, plan)
  )

const bytesStepByStep = (
  port: Backend,
  path: FsPath.FsPath,
  content: Uint8Array,
  plan: Plan
): Effect.Effect<Written, Fault> => {
  const resolvePlace = () => target(port, path, plan)
  const put = (found: Resolved): Effect.Effect<Written, Fault> => {
    const fault = admissionFault(plan, path, found)
    if (fault !== undefined) return Effect.fail(fault)
    const write = writeOnce(port, found.path, content, plan)
    return plan.createParents && found.stat === undefined ? withParents<Written, never, never>(port, found.path, write) : write
  }
  const putResolved = () => withResolvedLock(port, path, resolvePlace(), put)
  if (plan.ifMatch !== undefined || needsFile(plan)) return putResolved()
  const direct = Effect.catch(writeOnce(port, path, content, plan), (fault) =>
    mayBeBehindLink(fault)
      ? Effect.flatMap(resolvePlace(), (found) => (found.path === path ? put(found) : Effect.undefined))
      : Effect.fail(fault)
  )
  return Effect.flatMap(withLocks(port, [path], direct), (written) =>
    // A link needs the lock of its target, so it is resolved again after the release of this lock.
    written === undefined ? putResolved() : Effect.succeed(written)
  )
}

/**
 * Resolves the target of a write. A create does not follow a symlink in the last component, because the name of the
 * symlink already exists.
 */
const target = (port: Backend, path: FsPath.FsPath, plan: Plan): Effect.Effect<Resolved, Fault> =>
  plan.mode === "create" ? resolveLink(port, path) : resolve(port, path)

/**
 * Writes the content of a stream.
 *
 * The content is staged without a lock. The staged content is then published atomically under the lock of the path, after
 * the precondition is checked. So a file can be streamed onto itself, and a failing stream changes nothing.
 *
 * If the path cannot be written to, the write fails before the stream runs. `digest` returns the version of the content
 * once the stream has ended.
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
  const commit: Commit = (publish) => withLocks(port, [path], publish)
  return Effect.flatMap(withLocks(port, [path], resolveAdmitted(port, path, plan)), (at) =>
    // A write through a symlink runs step by step, because a stream can run only once, and the backend might decline a
    // `Write` request after the stream has run.
    at !== path
      ? stepByStep
      : Effect.flatMap(
          Effect.suspend(() => perform<E, R>({ _tag: "Write", path, bytes: content, plan, how: { commit } })),
          (done): Effect.Effect<Written, Fault | E, R> =>
            Option.isNone(done) ? stepByStep : Effect.succeed(withVersion(done.value, plan, digest))
        )
  )
}

const resolveAdmitted = (port: Backend, path: FsPath.FsPath, plan: Plan): Effect.Effect<FsPath.FsPath, Fault> =>
  Effect.flatMap(target(port, path, plan), (found): Effect.Effect<FsPath.FsPath, Fault> => {
    const fault = admissionFault(plan, path, found)
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
  withRollback(port, (made) => {
    const parents = (at: FsPath.FsPath): Effect.Effect<void, Fault> =>
      plan.createParents ? makeDirectories(port, FsPath.parent(at), made) : Effect.void
    const resolvePlace = withResolvedLock(
      port,
      path,
      target(port, path, plan),
      (found): Effect.Effect<FsPath.FsPath, Fault> => {
        const fault = admissionFault(plan, path, found)
        if (fault !== undefined) return Effect.fail(fault)
        if (found.stat !== undefined) return Effect.succeed(found.path)
        return Effect.as(plan.createParents ? parents(found.path) : withParent(port, found, plan), found.path)
      }
    )
    return Effect.flatMap(resolvePlace, (at) => writeStaged(port, at, content, plan, digest, parents(at)))
  })

const writeStaged = <E, R>(
  port: Backend,
  at: FsPath.FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  plan: Plan,
  digest: () => string,
  parents: Effect.Effect<void, Fault>
): Effect.Effect<Written, Fault | E, R> =>
  Effect.suspend(() => {
    let version: string | undefined
    const appends = primitiveMode(plan) === "append"
    const checkExisting = Effect.flatMap(port.stat(at), (stat): Effect.Effect<void, Fault> => {
      if (stat === undefined) return needsFile(plan) ? Effect.fail(notFound) : parents
      // The version needs the whole content, so an unreadable file must not be changed.
      return plan.version && appends && stat.kind === "file" ? Effect.scoped(Effect.asVoid(port.open(at))) : Effect.void
    })
    const recordVersion = !plan.version
      ? Effect.void
      : Effect.map(appends ? versionAt(port, at) : Effect.sync(digest), (value) => void (version = value))
    const commit: Commit = (publish) =>
      withLocks(
        port,
        [at],
        withClaimIfMatched(
          port,
          at,
          plan.ifMatch,
          Effect.andThen(
            Effect.andThen(requirePrecondition(port, at, plan.ifMatch), checkExisting),
            Effect.tap(publish, () => recordVersion)
          )
        )
      )
    return Effect.map(
      mapAlreadyExists(port, at, plan, port.write(at, content, primitiveMode(plan), { commit })),
      (): Written => ({
        version
      })
    )
  })
