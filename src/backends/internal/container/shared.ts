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
import { makeRelativeTargets } from "../../../port/absoluteLinks.ts"
import type { Backend } from "../../../port/Backend.ts"
import * as Crew from "../../../runtime/crew.ts"
import * as OpenRoots from "../../../runtime/openRoots.ts"
import { attempt, isFault } from "../attempt.ts"
import { type Confined, isSameFile, lstatEntry, type Owner } from "../confined.ts"
import { backend } from "../posixPort.ts"
import * as PosixRoot from "../posixRoot.ts"
import { unavailable } from "./engine.ts"
import type { Caller, ContainerOptions, Plan } from "./options.ts"
import * as Overlay from "./overlay.ts"

export type ContainerError = StatError | NotADirectory | InvalidArgument

const tags = new Set([...FsError.tagsOf(FsError.StatError), "NotADirectory", "InvalidArgument"])

export const promote = (fault: Fault, path: string): ContainerError =>
  FsError.promote(fault, "Container", path, tags) as ContainerError

export interface SharedDirectory {
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

const directoryMoved: Fault = unavailable(
  "the shared directory is not where it was any more, and no container is given another"
)

const checkDirectory = (confined: Confined, directory: string): Effect.Effect<void, Fault> =>
  attempt(() => {
    const place = confined.directory(FsPath.root)
    if (isFault(place)) return place
    try {
      const found = lstatEntry(directory)
      const isSame = OpenRoots.resolvePath(directory) === directory && found !== undefined && isSameFile(found, place.stats)
      return isSame ? undefined : directoryMoved
    } finally {
      place.release()
    }
  })

/** Resolves absolute link targets as programs in the container do, for which the files are below `workdir`. */
const withContainerLinks = (port: Backend, workdir: string): Backend => ({
  ...port,
  links: port.links && { ...port.links, relative: makeRelativeTargets(() => [workdir]) }
})

const makeOverlay = Effect.mapError(Overlay.make, (fault) => promote(fault, "hostDirectory"))

export const make = (
  plan: Plan,
  { allowDelete, allowWrite, policy, readOnly }: ContainerOptions,
  caller: Caller
): Effect.Effect<SharedDirectory, ContainerError, Scope.Scope> =>
  Effect.gen(function* () {
    const root = plan.hostDirectory ?? (yield* makeOverlay)
    const confined = yield* Effect.catchTag(PosixRoot.open("Container", { root }), "Unsupported", () =>
      Effect.fail(promote(unavailable("a shared directory needs a POSIX system"), root))
    )
    const owner = ownerOf(plan, caller)
    const isOwnDirectory = plan.hostDirectory === undefined
    if (owner !== undefined && (isOwnDirectory || !plan.isReadOnly)) {
      yield* Effect.mapError(Overlay.changeOwner(confined, owner), (fault) => promote(fault, root))
    }
    const options = { root, allowDelete, allowWrite, policy, readOnly }
    const place = owner === undefined ? confined : { ...confined, owner }
    const directory = OpenRoots.resolvePath(root) ?? root
    const port = withContainerLinks(backend(place, options, yield* Crew.shared, "Container"), plan.workdir)
    return {
      port: yield* PosixRoot.recoverTransactions("Container", confined, options, port),
      directory,
      check: checkDirectory(confined, directory)
    }
  })
