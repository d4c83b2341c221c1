/**
 * A write is tried as it stands, which is one primitive call when nothing is in the way. Only where that found no place does the
 * engine look why: a link to follow, parents to make. So the common case costs nothing for the uncommon ones, and every failure is
 * still the one that the order of checks demands.
 */
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { FileStat, WriteMode } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend, Commit } from "../port/Backend.ts"
import { exclusively, isFault, makeDirectories, undoing, withParents } from "./directories.ts"
import { type Resolved, resolve } from "./resolve.ts"
import * as Version from "./version.ts"

const notFound: Fault = { _tag: "NotFound" }
const notAFile: Fault = { _tag: "NotAFile" }
const notADirectory: Fault = { _tag: "NotADirectory" }

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

/** A failed `ifMatch`, or success. */
export const precondition = (port: Backend, at: FsPath.FsPath, expected: Expected): Effect.Effect<void, Fault> =>
  expected === undefined ? Effect.void : holds(port, at, expected)

const checked = (port: Backend, at: FsPath.FsPath, expected: Expected): { readonly commit: Commit } | undefined =>
  expected === undefined ? undefined : { commit: (publish) => Effect.andThen(holds(port, at, expected), publish) }

export interface Plan {
  readonly mode: WriteMode
  readonly createParents: boolean
  readonly ifMatch: Expected
  readonly version: boolean
}

const primitive = (plan: Plan): "create" | "replace" | "append" =>
  plan.mode === "create" || plan.ifMatch === null
    ? "create"
    : plan.mode === "append" || plan.mode === "appendExisting"
      ? "append"
      : "replace"

const needsFile = (plan: Plan): boolean => plan.mode === "replace" || plan.mode === "appendExisting"

/** What must be true of the place before anything is staged. */
const admits = (plan: Plan, found: Resolved): Fault | undefined => {
  if (plan.mode === "create") return undefined
  const { stat } = found
  if (stat !== undefined) return stat.kind === "file" ? undefined : notAFile
  if (typeof plan.ifMatch === "string") return { _tag: "Conflict", expected: plan.ifMatch, actual: null }
  if (found.blocked) return notADirectory
  return needsFile(plan) ? notFound : undefined
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
                  ? Effect.andThen(holds(port, at, null), Effect.fail(error))
                  : Effect.fail(error)
            )
          : Effect.fail(error)
      )

export interface Written {
  readonly stat: FileStat
  readonly version: string | undefined
}

const once = (port: Backend, at: FsPath.FsPath, bytes: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> => {
  const written = whatExists(
    port,
    at,
    plan,
    port.write<never, never>(at, bytes, primitive(plan), checked(port, at, plan.ifMatch))
  )
  if (!plan.version) return Effect.map(written, (stat) => ({ stat, version: undefined }))
  const version = primitive(plan) === "append" ? versionAt(port, at) : Effect.sync(() => Version.ofBytes(bytes))
  return Effect.flatMap(written, (stat) => Effect.map(version, (version) => ({ stat, version })))
}

const noPlace = (fault: Fault): boolean =>
  fault._tag === "NotFound" || fault._tag === "NotAFile" || fault._tag === "NotADirectory"

/** Writes all bytes at once. */
export const bytes = (port: Backend, path: FsPath.FsPath, content: Uint8Array, plan: Plan): Effect.Effect<Written, Fault> => {
  const found = Effect.flatMap(resolveTarget(port, path, plan), (found): Effect.Effect<Written, Fault> => {
    const fault = admits(plan, found)
    if (fault !== undefined) return Effect.fail(fault)
    const write = once(port, found.path, content, plan)
    return exclusively(
      port,
      [found.path],
      needsFile(plan)
        ? Effect.flatMap(port.stat(found.path), (stat) => (stat === undefined ? Effect.fail(notFound) : write))
        : plan.createParents && found.stat === undefined
          ? withParents(port, found.path, write)
          : write
    )
  })
  if (plan.ifMatch !== undefined || needsFile(plan)) return found
  return Effect.catch(exclusively(port, [path], once(port, path, content, plan)), (fault) =>
    noPlace(fault) ? found : Effect.fail(fault)
  )
}

/** Creating never goes through a link that is the last component: whatever is there is there already. */
const resolveTarget = (port: Backend, path: FsPath.FsPath, plan: Plan): Effect.Effect<Resolved, Fault> =>
  plan.mode !== "create"
    ? resolve(port, path)
    : path === FsPath.root
      ? Effect.fail(notAFile)
      : Effect.flatMap(resolve(port, FsPath.parent(path)), (above): Effect.Effect<Resolved, Fault> => {
          if (above.blocked || (above.stat !== undefined && above.stat.kind !== "directory")) return Effect.fail(notADirectory)
          return Effect.succeed({ path: FsPath.join(above.path, FsPath.name(path)), stat: undefined, blocked: false })
        })

/**
 * Writes what a stream brings. It is staged without anybody's turn being taken, and published in one step with the path's turn, the
 * precondition checked in it; so a file can be streamed onto itself, and a stream that fails has changed nothing.
 * `digest` is the version of what the stream has brought, when it is through.
 */
export const stream = <E, R>(
  port: Backend,
  path: FsPath.FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  plan: Plan,
  digest: () => string
): Effect.Effect<Written, Fault | E, R> =>
  Effect.flatMap(resolveTarget(port, path, plan), (found): Effect.Effect<Written, Fault | E, R> => {
    const fault = admits(plan, found)
    if (fault !== undefined) return Effect.fail(fault)
    const at = found.path
    const present = needsFile(plan)
      ? Effect.flatMap(port.stat(at), (stat) => (stat === undefined ? Effect.fail(notFound) : Effect.void))
      : Effect.void
    const check = Effect.andThen(precondition(port, at, plan.ifMatch), present)
    let version: string | undefined
    const note = !plan.version
      ? Effect.void
      : Effect.map(primitive(plan) === "append" ? versionAt(port, at) : Effect.sync(digest), (value) => void (version = value))
    const commit: Commit = (publish) =>
      exclusively(
        port,
        [at],
        Effect.andThen(
          check,
          Effect.tap(publish, () => note)
        )
      )
    const written = Effect.map(
      whatExists(port, at, plan, port.write(at, content, primitive(plan), { commit })),
      (stat): Written => ({ stat, version })
    )
    return plan.createParents && found.stat === undefined
      ? undoing(port, (made) => Effect.andThen(makeDirectories(port, FsPath.parent(at), made), written))
      : written
  })
