/**
 * The strategy `overlay`: the files are a directory of the host, so the Filesystem is that of a host, with the same confinement, since
 * a container may plant links. It knows nothing of the container, and works before and after it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as FsError from "../../../model/FsError.ts"
import type { Fault, InvalidArgument, NotADirectory, StatError } from "../../../model/FsError.ts"
import type { Backend } from "../../../port/Backend.ts"
import * as Crew from "../../../runtime/crew.ts"
import type { Owner } from "../confined.ts"
import { backend } from "../posixPort.ts"
import * as PosixRoot from "../posixRoot.ts"
import { unavailable } from "./engine.ts"
import type { Caller, ContainerOptions, Plan } from "./options.ts"
import * as Overlay from "./overlay.ts"

export type ContainerError = StatError | NotADirectory | InvalidArgument

const tags = new Set([...FsError.tagsOf(FsError.StatError), "NotADirectory", "InvalidArgument"])

/** What building a container fails with; `path` is what the caller gave. */
export const promote = (fault: Fault, path: string): ContainerError =>
  FsError.promote(fault, "Container", path, tags) as ContainerError

export interface Shared {
  readonly port: Backend
  /** Absolute, on the host. */
  readonly directory: string
}

/** To whom what we make must be given, so that the user inside can work on it: only root runs a container as somebody else. */
const ownerOf = ({ user }: Plan, caller: Caller): Owner | undefined =>
  caller?.uid === 0 && (user.uid !== 0 || user.gid !== 0) ? user : undefined

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
    // What may not be changed is not given away either.
    if (owner !== undefined && (isOurs || !plan.isReadOnly)) {
      yield* Effect.mapError(Overlay.giveTo(root, owner), (fault) => promote(fault, root))
    }
    const options = { root, allowDelete, allowWrite, policy, readOnly }
    const port = backend(owner === undefined ? confined : { ...confined, owner }, options, yield* Crew.shared)
    return { port: { ...port, info: { ...port.info, name: "Container" } }, directory: root }
  })
