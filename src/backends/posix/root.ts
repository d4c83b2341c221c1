import { invalidPath, is as isFault, notFound, unsupported } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault, Unsupported } from "../../model/FsError.ts"
import { root as top } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import type { Backend, Info } from "../../port/Backend.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Installation from "../../runtime/installation.ts"
import { Fs, isAbsolute } from "../../runtime/node.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import {
  type HostOptions,
  inStore,
  promoteRoot,
  type RootError,
  tooWeakConfinement,
  withRecovery as settledIn
} from "../hostRoot.ts"
import * as HostRoot from "./confinement.ts"
import { attempt } from "./errors.ts"
import { type Confined, withPlace } from "./place.ts"
import { backend as portOf } from "./port.ts"

/** The levels of confinement, from the weakest to the strongest. */
const levels: ReadonlyArray<Info["confinement"]> = ["best-effort", "race-free-open", "race-free"]

const isSufficient = (level: Info["confinement"], required: Info["confinement"] = level): boolean =>
  levels.indexOf(level) >= levels.indexOf(required)

const findOptionFault = (backend: string, options: HostOptions): Fault | undefined => {
  const { requireConfinement, root } = options
  if (process.platform === "win32") return unsupported(`${backend} on Windows`)
  if (requireConfinement !== undefined && !levels.includes(requireConfinement)) return tooWeakConfinement(requireConfinement)
  if (typeof root !== "string") return invalidPath("the root is not a string")
  if (root.includes("\0")) return invalidPath("the root contains a NUL")
  return isAbsolute(root) ? undefined : invalidPath("the root is not an absolute path; resolve it first, as with path.resolve")
}

interface Root {
  readonly confined: Confined
  readonly close: () => void
}

/**
 * Creates the root directory. Returns NotFound if a dangling symlink has its name, because no directory can be created
 * there.
 */
const makeRoot = (root: string): Fault | undefined => {
  try {
    makeDirectories(root)
    return undefined
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
    return notFound
  }
}

const openRoot = (backend: string, options: HostOptions): Root | Fault => {
  const fault = findOptionFault(backend, options)
  if (fault !== undefined) return fault
  const level = HostRoot.level()
  if (!isSufficient(level, options.requireConfinement)) return tooWeakConfinement(options.requireConfinement)
  if (OpenRoots.isInStore(options.root)) return inStore
  // Read the identity of the process now, because later there may be no descriptors left.
  Identity.self()
  Installation.loadKey()
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

const openAbove = (root: string): Effect.Effect<Backend, Fault, Scope.Scope> =>
  Effect.map(HostRoot.openScoped(root), (confined) => portOf(confined, { root }))

/** Returns the device and the inode of the opened root, and the real path to which the text of the root now leads. */
const identify = (confined: Confined, root: string): Effect.Effect<{ path: string; device: string; inode: string }, Fault> =>
  attempt(() =>
    withPlace(confined.directory(top), (place) => {
      const { dev, ino } = Fs.statSync(place.directory, { bigint: true })
      return { path: Fs.realpathSync.native(root), device: String(dev), inode: String(ino) }
    })
  )

export const recoverTransactions = (
  backend: string,
  confined: Confined,
  { durability, root }: HostOptions,
  port: Backend
): Effect.Effect<Backend, Exclude<RootError, Unsupported>> =>
  Effect.mapError(
    Effect.flatMap(identify(confined, root), (identity) =>
      settledIn(port, { ...identity, isDurable: durability === "full", open: openAbove })
    ),
    // The port of a POSIX directory has every capability that the recovery needs, so the fault is never Unsupported.
    (fault) => promoteRoot(fault, backend, root) as Exclude<RootError, Unsupported>
  )
