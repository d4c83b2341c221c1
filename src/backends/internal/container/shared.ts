/**
 * The strategy `overlay`: the files are a host directory, served by a host filesystem.
 *
 * They have a host's confinement, because a container may create symlinks, and work before and after the container.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as FsError from "../../../model/FsError.ts"
import type { Fault, InvalidArgument, NotADirectory, StatError } from "../../../model/FsError.ts"
import * as FsPath from "../../../model/FsPath.ts"
import { relativeTo } from "../../../port/absoluteLinks.ts"
import type { Backend } from "../../../port/Backend.ts"
import * as Crew from "../../../runtime/crew.ts"
import * as OpenRoots from "../../../runtime/openRoots.ts"
import { attempt, isFault } from "../attempt.ts"
import { type Confined, isSameFile, look, type Owner } from "../confined.ts"
import { backend } from "../posixPort.ts"
import * as PosixRoot from "../posixRoot.ts"
import { unavailable } from "./engine.ts"
import type { Caller, ContainerOptions, Plan } from "./options.ts"
import * as Overlay from "./overlay.ts"

export type ContainerError = StatError | NotADirectory | InvalidArgument

const tags = new Set([...FsError.tagsOf(FsError.StatError), "NotADirectory", "InvalidArgument"])

export const promote = (fault: Fault, path: string): ContainerError =>
  FsError.promote(fault, "Container", path, tags) as ContainerError

export interface Shared {
  readonly port: Backend
  readonly directory: string
  /** Fails if the path leads to a directory other than the served one. */
  readonly check: Effect.Effect<void, Fault>
}

/**
 * Returns the owner for created entries, so that the user inside can use them. Only root runs a container as another
 * user.
 */
const ownerOf = ({ user }: Plan, caller: Caller): Owner | undefined =>
  caller?.uid === 0 && (user.uid !== 0 || user.gid !== 0) ? user : undefined

const isElsewhere: Fault = unavailable("the shared directory is not where it was any more, and no container is given another")

const checked = (confined: Confined, directory: string): Effect.Effect<void, Fault> =>
  attempt(() => {
    const place = confined.directory(FsPath.root)
    if (isFault(place)) return place
    try {
      const found = look(directory)
      const isSame = OpenRoots.resolved(directory) === directory && found !== undefined && isSameFile(found, place.stats)
      return isSame ? undefined : isElsewhere
    } finally {
      place.release()
    }
  })

/** Resolves absolute link targets as programs in the container do, for which the files are below `workdir`. */
const rooted = (port: Backend, workdir: string): Backend => ({
  ...port,
  links: port.links && { ...port.links, relative: relativeTo(() => [workdir]) }
})

const made = Effect.mapError(Overlay.make, (fault) => promote(fault, "hostDirectory"))

export const make = (
  plan: Plan,
  { allowDelete, allowWrite, policy, readOnly }: ContainerOptions,
  caller: Caller
): Effect.Effect<Shared, ContainerError, Scope.Scope> =>
  Effect.gen(function* () {
    const root = plan.hostDirectory ?? (yield* made)
    const confined = yield* Effect.catchTag(PosixRoot.open("Container", { root }), "Unsupported", () =>
      Effect.fail(promote(unavailable("a shared directory needs a POSIX system"), root))
    )
    const owner = ownerOf(plan, caller)
    const isOurs = plan.hostDirectory === undefined
    if (owner !== undefined && (isOurs || !plan.isReadOnly)) {
      yield* Effect.mapError(Overlay.giveTo(confined, owner), (fault) => promote(fault, root))
    }
    const options = { root, allowDelete, allowWrite, policy, readOnly }
    const place = owner === undefined ? confined : { ...confined, owner }
    const directory = OpenRoots.resolved(root) ?? root
    const port = rooted(backend(place, options, yield* Crew.shared, "Container"), plan.workdir)
    return {
      port: yield* PosixRoot.settled("Container", confined, options, port),
      directory,
      check: checked(confined, directory)
    }
  })
