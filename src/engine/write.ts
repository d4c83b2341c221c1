/**
 * A write is tried as it stands, which is one primitive call when nothing is in the way. Only where that found no place does the
 * engine look why: a link to follow, parents to make. So the common case costs nothing for the uncommon ones, and every failure is
 * still the one that the order of checks demands.
 */
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Backend, Commit, WritePlan } from "../port/Backend.ts"
import { accelerated, claiming, exclusively, inTurn, isFault, makeDirectories, undoing, withParents } from "./directories.ts"
import { noPlace, type Resolved, resolve, resolveLink } from "./resolve.ts"
import { hasher } from "../runtime/hash.ts"
import * as Version from "./version.ts"

const notFound: Fault = { _tag: "NotFound" }
const notAFile: Fault = { _tag: "NotAFile" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }

export type Expected = string | null | undefined

/** Fails with Conflict unless the file at `at` has the expected version, or is absent where `null` is expected. */
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

/** Where reading is denied, that it is not the expected version is all that can be said. */
const unreadable = (fault: Fault, expected: string | null): Fault =>
  fault._tag === "AccessDenied"
    ? { _tag: "Conflict", expected }
    : fault._tag === "NotFound"
      ? { _tag: "Conflict", expected, actual: null }
      : fault

/**
 * What depends on a precondition, and its check. That nothing is there needs no claim: creating is of itself one step, which only one
 * process can do.
 */
export const guarded = <A, E, R>(
  port: Backend,
  at: FsPath.FsPath,
  expected: Expected,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => (typeof expected === "string" ? claiming(port, at, effect) : effect)

/** A failed `ifMatch`, or success. */
export const precondition = (port: Backend, at: FsPath.FsPath, expected: Expected): Effect.Effect<void, Fault> =>
  expected === undefined ? Effect.void : holds(port, at, expected)

const checked = (port: Backend, at: FsPath.FsPath, expected: Expected): { readonly commit: Commit } | undefined =>
  expected === undefined
    ? undefined
    : { commit: (publish) => guarded(port, at, expected, Effect.andThen(holds(port, at, expected), publish)) }

export interface Plan extends WritePlan {
  /** For a name that no caller named, but a link. */
  readonly limits: LimitsShape
}

const primitive = (plan: Plan): "create" | "replace" | "append" =>
  plan.mode === "create" || plan.ifMatch === null
    ? "create"
    : plan.mode === "append" || plan.mode === "appendExisting"
      ? "append"
      : "replace"

const needsFile = (plan: Plan): boolean => plan.mode === "replace" || plan.mode === "appendExisting"

/** What must be true of the place before anything is written to it. */
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
 * `create` met something. With `ifMatch: null`, which is carried out as a create so that it holds against other processes too, that
 * is a Conflict; and what is no file can never be written to, in whatever mode.
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
                  ? // Even where it has gone again since.
                    Effect.andThen(holds(port, at, null), Effect.fail<Fault>({ _tag: "Conflict", expected: null }))
                  : Effect.fail(error)
            )
          : Effect.fail(error)
      )

export interface Written {
  readonly version?: string | undefined
}

/**
 * The version of a file that is appended to, in one reading: what stands there is taken up before anything is published, so that a
 * file that cannot be read is not changed either.
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

/** What a write answers inside of its turn where a link leads to another name, of which it has to take the turn. */
const elsewhere: Fault = { _tag: "IoError", detail: "it is a link" }

/** The version of a whole content is known to who has it, where who wrote it has not told. */
const versioned = (done: Written | undefined, plan: Plan, ofContent: () => string): Written | undefined =>
  done === undefined || done.version !== undefined || !plan.version || primitive(plan) === "append"
    ? done
    : { version: ofContent() }

/** Writes all bytes at once. */
export const bytes = (port: Backend, path: FsPath.FsPath, content: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> => {
  const fast = port.accelerations?.write
  return fast === undefined
    ? bytesStepByStep(port, path, content, plan)
    : accelerated<Written, Fault, never>(
        port,
        [path],
        () =>
          Effect.map(fast<never, never>(path, content, plan), (done) => versioned(done, plan, () => Version.ofBytes(content))),
        () => bytesStepByStep(port, path, content, plan)
      )
}

/** Only where a link is found is the turn of the path given back for another. */
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

/** Creating never goes through a link that is the last component: whatever is there is there already. */
const target = (port: Backend, path: FsPath.FsPath, plan: Plan): Effect.Effect<Resolved, Fault> =>
  plan.mode === "create" ? resolveLink(port, path) : resolve(port, path)

/**
 * Writes what a stream brings. It is staged without anybody's turn being taken, and published in one step with the path's turn, the
 * precondition checked in it; so a file can be streamed onto itself, and a stream that fails has changed nothing. A place that could
 * not be written to is refused before the stream is run.
 * `digest` is the version of what the stream has brought, when it is through.
 */
export const stream = <E, R>(
  port: Backend,
  path: FsPath.FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  plan: Plan,
  digest: () => string
): Effect.Effect<Written, Fault | E, R> => {
  const fast = port.accelerations?.write
  const stepByStep = streamStepByStep(port, path, content, plan, digest)
  if (fast === undefined) return stepByStep
  const commit: Commit = (publish) => exclusively(port, [path], publish)
  return Effect.flatMap(exclusively(port, [path], admitted(port, path, plan)), (at) =>
    // The target of a link is written step by step: a stream that has been run cannot be declined.
    at !== path
      ? stepByStep
      : Effect.flatMap(
          Effect.suspend(() => fast(path, content, plan, { commit })),
          (done) => {
            const written = versioned(done, plan, digest)
            return written === undefined ? stepByStep : Effect.succeed(written)
          }
        )
  )
}

/** Returns where the path leads, if that place could be written to as it is now. */
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
      // What could not be read afterwards is not published either.
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
