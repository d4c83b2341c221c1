/**
 * A directory of the machine as a filesystem. It stands on `node:fs`, follows no link, touches nothing outside its root, and keeps
 * nothing in memory: whatever else works on the directory sees every change at once, and its changes are seen.
 *
 * No path, no link that stands in the tree, and no error leads out of the root. On Linux with `/proc` this is `race-free`: a process
 * that exchanges directories for links while a call runs leads no call outside either. Elsewhere it is `best-effort`: such a process
 * could win a race of microseconds.
 *
 * Names and metadata are asked for synchronously, in microseconds; on a disk that does not answer (a network disk whose server is
 * gone) the whole program waits. Between processes, a move that may not replace anything looks directly before it acts, since no
 * call of Node can do both at once; creating, replacing and appending are atomic between processes too.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { isAbsolute } from "node:path"
import * as Filesystem from "../filesystem/Filesystem.ts"
import { type Fault, type NotADirectory, promote, type StatError, type Unsupported } from "../model/FsError.ts"
import type { Backend, Info } from "../port/Backend.ts"
import { enforce } from "../port/Rules.ts"
import * as Crew from "../runtime/crew.ts"
import * as OpenRoots from "../runtime/openRoots.ts"
import * as Identity from "../runtime/processIdentity.ts"
import { attempt, isFault } from "./internal/attempt.ts"
import type { Confined } from "./internal/confined.ts"
import { codeOf } from "./internal/errno.ts"
import * as HostRoot from "./internal/hostRoot.ts"
import type { PosixHostOptions } from "./internal/options.ts"
import { backend } from "./internal/posixPort.ts"

export type {
  /** @since 0.1.0 */
  HostOptions,
  /** @since 0.1.0 */
  PosixHostOptions
} from "./internal/options.ts"

/** What a host can give, from the weakest to the strongest. */
const levels: ReadonlyArray<Info["confinement"]> = ["best-effort", "race-free-open", "race-free"]

const suffices = (level: Info["confinement"], required: Info["confinement"] = level): boolean =>
  levels.indexOf(level) >= levels.indexOf(required)

const tooWeak = (required: Info["confinement"] | undefined): Fault => ({
  _tag: "Unsupported",
  feature: `${required} confinement on this machine`
})

const inStore: Fault = { _tag: "AccessDenied", why: "policy" }

/** Why these options can never work; `undefined` when they may. */
const refusal = (options: PosixHostOptions): Fault | undefined => {
  const { requireConfinement, root } = options
  if (process.platform === "win32") return { _tag: "Unsupported", feature: "PosixHost on Windows" }
  if (requireConfinement !== undefined && !levels.includes(requireConfinement)) return tooWeak(requireConfinement)
  if (typeof root !== "string") return { _tag: "InvalidPath", detail: "the root is not a string" }
  if (root.includes("\0")) return { _tag: "InvalidPath", detail: "the root contains a NUL" }
  return isAbsolute(root) ? undefined : { _tag: "InvalidPath", detail: "the root is not an absolute path" }
}

interface Root {
  readonly confined: Confined
  readonly close: () => void
}

const openRoot = (options: PosixHostOptions): Root | Fault => {
  const fault = refusal(options)
  if (fault !== undefined) return fault
  const level = HostRoot.level()
  if (!suffices(level, options.requireConfinement)) return tooWeak(options.requireConfinement)
  if (OpenRoots.isInStore(options.root)) return inStore
  // Remembered from now on, for when there are no descriptors left to ask.
  Identity.self()
  if (options.createRoot === true && Fs.statSync(options.root, { throwIfNoEntry: false }) === undefined) {
    Fs.mkdirSync(options.root, { recursive: true })
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

const expected = new Set<Fault["_tag"]>([
  "AccessDenied",
  "InvalidPath",
  "IoError",
  "NotADirectory",
  "NotFound",
  "PathTooLong",
  "Timeout",
  "Unavailable",
  "Unsupported"
])

const other = ({ cause }: Fault): Fault => {
  const code = codeOf(cause)
  return { _tag: "IoError", ...(code === undefined ? {} : { code }), detail: "the root cannot be made or opened" }
}

/** With the root as the caller gave it: that is the caller's own to see. */
const promoteRoot = (fault: Fault, path: string): StatError | NotADirectory | Unsupported =>
  promote(expected.has(fault._tag) ? fault : other(fault), "PosixHost", path) as StatError | NotADirectory | Unsupported

/**
 * The port of a host directory, for as long as the scope lives; after that every call fails with Unavailable. Fails with NotFound,
 * NotADirectory or AccessDenied for the root (`policy` where it lies in an open store of snapshots), InvalidPath where it is not
 * absolute, and Unsupported where the machine cannot give the confinement that is required.
 *
 * @since 0.1.0
 */
export const make = (options: PosixHostOptions): Effect.Effect<Backend, StatError | NotADirectory | Unsupported, Scope.Scope> =>
  Effect.zipWith(
    Effect.acquireRelease(
      Effect.mapError(
        attempt(() => openRoot(options)),
        (fault) => promoteRoot(fault, String(options.root))
      ),
      ({ close }) => Effect.sync(close)
    ),
    Crew.shared,
    ({ confined }, crew) => enforce(backend(confined, options, crew))
  )

/**
 * A filesystem whose root is a directory of the machine, for as long as the layer lives. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const layer = (options: PosixHostOptions): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> =>
  Filesystem.layer(make(options))
