/**
 * A directory of the machine opened as a root: the same for every backend that stands on one of a POSIX system.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, isAbsolute } from "../../runtime/node.ts"
import type { Fault, Unsupported } from "../../model/FsError.ts"
import { root as top } from "../../model/FsPath.ts"
import type { Backend, Info } from "../../port/Backend.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Installation from "../../runtime/installation.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { attempt, isFault } from "./attempt.ts"
import type { Confined } from "./confined.ts"
import { codeOf } from "./errno.ts"
import * as HostRoot from "./hostRoot.ts"
import type { HostOptions } from "./options.ts"
import { backend as portOf } from "./posixPort.ts"
import { inStore, promoteRoot, type RootError, tooWeak } from "./rootFaults.ts"
import { settled as settledIn } from "./settling.ts"

export type { RootError } from "./rootFaults.ts"

/** What a host can give, from the weakest to the strongest. */
const levels: ReadonlyArray<Info["confinement"]> = ["best-effort", "race-free-open", "race-free"]

const suffices = (level: Info["confinement"], required: Info["confinement"] = level): boolean =>
  levels.indexOf(level) >= levels.indexOf(required)

/** Why these options can never work; `undefined` when they may. */
const refusal = (backend: string, options: HostOptions): Fault | undefined => {
  const { requireConfinement, root } = options
  if (process.platform === "win32") return { _tag: "Unsupported", feature: `${backend} on Windows` }
  if (requireConfinement !== undefined && !levels.includes(requireConfinement)) return tooWeak(requireConfinement)
  if (typeof root !== "string") return { _tag: "InvalidPath", detail: "the root is not a string" }
  if (root.includes("\0")) return { _tag: "InvalidPath", detail: "the root contains a NUL" }
  return isAbsolute(root) ? undefined : { _tag: "InvalidPath", detail: "the root is not an absolute path" }
}

interface Root {
  readonly confined: Confined
  readonly close: () => void
}

/** Makes the root. A link that leads to nothing stands in the way of a directory, and is not there for a caller. */
const makeRoot = (root: string): Fault | undefined => {
  try {
    makeDirectories(root)
    return undefined
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
    return { _tag: "NotFound" }
  }
}

const openRoot = (backend: string, options: HostOptions): Root | Fault => {
  const fault = refusal(backend, options)
  if (fault !== undefined) return fault
  const level = HostRoot.level()
  if (!suffices(level, options.requireConfinement)) return tooWeak(options.requireConfinement)
  if (OpenRoots.isInStore(options.root)) return inStore
  // Remembered from now on, for when there are no descriptors left to ask.
  Identity.self()
  Installation.remember()
  if (options.createRoot === true && Fs.statSync(options.root, { throwIfNoEntry: false }) === undefined) {
    const fault = makeRoot(options.root)
    if (fault !== undefined) return fault
    if (OpenRoots.isInStore(options.root)) return inStore
  }
  const confined = HostRoot.open(options.root, level)
  if (isFault(confined)) return confined
  const unregister = OpenRoots.register(options.root)
  return {
    confined,
    close: () => {
      unregister()
      confined.close()
    }
  }
}

/** For as long as the scope lives. `backend` is what errors name. */
export const open = (backend: string, options: HostOptions): Effect.Effect<Confined, RootError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.mapError(
        attempt(() => openRoot(backend, options)),
        (fault) => promoteRoot(fault, backend, String(options.root))
      ),
      ({ close }) => Effect.sync(close)
    ),
    ({ confined }) => confined
  )

/** Opens a directory that holds the root, for what was recorded of both. */
const openAbove = (root: string): Effect.Effect<Backend, Fault, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      attempt(() => HostRoot.open(root)),
      ({ close }) => Effect.sync(close)
    ),
    (confined) => portOf(confined, { root })
  )

/** The root's identity, also where something else has taken its path since it was opened. */
const identify = (confined: Confined, root: string): Effect.Effect<{ path: string; device: string; inode: string }, Fault> =>
  attempt(() => {
    const place = confined.directory(top)
    if (isFault(place)) return place
    try {
      const { dev, ino } = Fs.statSync(place.directory, { bigint: true })
      return { path: Fs.realpathSync.native(root), device: String(dev), inode: String(ino) }
    } finally {
      place.release()
    }
  })

/** The port of a root that was opened, which says where its files lie; what killed processes have left in it is finished first. */
export const settled = (
  backend: string,
  confined: Confined,
  { durability, root }: HostOptions,
  port: Backend
): Effect.Effect<Backend, Exclude<RootError, Unsupported>> =>
  Effect.mapError(
    Effect.flatMap(identify(confined, root), (identity) =>
      settledIn(port, { ...identity, isDurable: durability === "full", open: openAbove })
    ),
    // Everything that is asked for here is there on every system.
    (fault) => promoteRoot(fault, backend, root) as Exclude<RootError, Unsupported>
  )
