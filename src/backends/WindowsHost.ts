/**
 * A directory of a Windows machine as a filesystem. It stands on `node:fs`, follows no link and no junction, touches nothing outside its
 * root, and keeps nothing in memory: whatever else works on the directory sees every change at once, and its changes are seen.
 *
 * Names are compared as Windows does, without regard to case, and keep the case that they were given. What Windows would read as
 * something else than it says is InvalidPath before the disk is touched: devices (`CON`, `NUL.txt`), streams (`a:b`), names that end in a
 * dot or a space, and those of the form of short names (`PROGRA~1`). A path that is too long for the machine is PathTooLong.
 *
 * A file that another program has open is waited for, for one and a half seconds, where it is to be read, written, replaced or moved, and
 * is AccessDenied `busy` after that; deleting it is AccessDenied `busy` at once. Files that are open here, to be read, are never in the way.
 * A file whose read-only attribute is set is AccessDenied `permission` to whoever would write it.
 *
 * Confinement is `best-effort`: no path, no link that stands in the tree, and no error leads out of the root, but a process that
 * exchanges directories for junctions while a call runs could win a race of microseconds. There are no permission bits and no access
 * control lists, and it cannot be watched. Replacing a link or an empty directory by moving something over it is not atomic here.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Filesystem from "../filesystem/Filesystem.ts"
import { type Fault, type NotADirectory, promote, type StatError, type Unsupported } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import { enforce } from "../port/Rules.ts"
import * as OpenRoots from "../runtime/openRoots.ts"
import * as Identity from "../runtime/processIdentity.ts"
import { isFault } from "./internal/attempt.ts"
import { codeOf } from "./internal/errno.ts"
import type { WindowsHostOptions } from "./internal/options.ts"
import { attempt } from "./internal/windows/attempt.ts"
import { parseRoot } from "./internal/windows/paths.ts"
import { backend } from "./internal/windows/port.ts"
import * as Root from "./internal/windows/root.ts"
import { system } from "./internal/windows/system.ts"
import type { Walker } from "./internal/windows/walk.ts"

export type {
  /** @since 0.1.0 */
  WindowsHostOptions
} from "./internal/options.ts"

const inStore: Fault = { _tag: "AccessDenied", why: "policy" }

/** Why these options can never work here; `undefined` when they may. */
const refusal = ({ requireConfinement, root }: WindowsHostOptions): Fault | undefined => {
  if (process.platform !== "win32") return { _tag: "Unsupported", feature: `WindowsHost on ${process.platform}` }
  if (requireConfinement !== undefined && requireConfinement !== "best-effort") {
    return { _tag: "Unsupported", feature: `${requireConfinement} confinement on this machine` }
  }
  const parsed = parseRoot(root)
  return isFault(parsed) ? parsed : undefined
}

interface Opened {
  readonly walker: Walker
  readonly close: () => void
}

const openRoot = (options: WindowsHostOptions): Opened | Fault => {
  const fault = refusal(options)
  if (fault !== undefined) return fault
  if (OpenRoots.isInStore(options.root)) return inStore
  // Remembered from now on, for when there are no handles left to ask.
  Identity.self()
  const walker = Root.open(system, options)
  if (isFault(walker)) return walker
  if (OpenRoots.isInStore(options.root)) return inStore
  const unregister = OpenRoots.register(options.root)
  return {
    walker,
    close: () => {
      unregister()
      walker.close()
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
  promote(expected.has(fault._tag) ? fault : other(fault), "WindowsHost", path) as StatError | NotADirectory | Unsupported

/**
 * The port of a directory, for as long as the scope lives; after that every call fails with Unavailable. Fails with Unsupported on any
 * other system than Windows, and where more than `best-effort` confinement is required; with InvalidPath where the root is not absolute
 * (`C:\directory`, `\\server\share\directory`, either also behind `\\?\`), and with NotFound, NotADirectory or AccessDenied for the root
 * (`policy` where it lies in an open store of snapshots).
 *
 * @since 0.1.0
 */
export const make = (
  options: WindowsHostOptions
): Effect.Effect<Backend, StatError | NotADirectory | Unsupported, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.mapError(
        attempt(() => openRoot(options)),
        (fault) => promoteRoot(fault, String(options.root))
      ),
      ({ close }) => Effect.sync(close)
    ),
    ({ walker }) => enforce(backend(walker, options))
  )

/**
 * A filesystem whose root is a directory of a Windows machine, for as long as the layer lives. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const layer = (
  options: WindowsHostOptions
): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> => Filesystem.layer(make(options))
