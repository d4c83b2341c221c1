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
 * control lists, and it cannot be watched. Replacing a link or an empty directory by moving something over it is not atomic here, and
 * neither is making a file on a disk without hard links. A replaced file gets the access rights of a new one in its directory, and keeps
 * neither streams nor attributes such as "hidden". A directory in which a stream is being written cannot be moved meanwhile: AccessDenied
 * `busy`. Windows has no call for a directory to be written to disk, so durability `full` is here what `file` is.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Filesystem from "../filesystem/Filesystem.ts"
import type { Fault, NotADirectory, StatError, Unsupported } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import { enforce } from "../port/Rules.ts"
import * as Installation from "../runtime/installation.ts"
import * as OpenRoots from "../runtime/openRoots.ts"
import * as Identity from "../runtime/processIdentity.ts"
import * as Transactions from "../runtime/transactions.ts"
import { isFault } from "./internal/attempt.ts"
import type { WindowsHostOptions } from "./internal/options.ts"
import { inStore, promoteRoot, tooWeak } from "./internal/rootFaults.ts"
import { settled } from "./internal/settling.ts"
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

/** The root's path in one form, or why these options can never work here. */
const pathOf = ({ requireConfinement, root }: WindowsHostOptions): string | Fault => {
  if (process.platform !== "win32") return { _tag: "Unsupported", feature: `WindowsHost on ${process.platform}` }
  if (requireConfinement !== undefined && requireConfinement !== "best-effort") return tooWeak(requireConfinement)
  const parsed = parseRoot(root)
  return isFault(parsed) ? parsed : parsed.path
}

interface Opened {
  readonly walker: Walker
  readonly close: () => void
}

const openRoot = (options: WindowsHostOptions): Opened | Fault => {
  const path = pathOf(options)
  if (isFault(path)) return path
  if (OpenRoots.isInStore(path)) return inStore
  // Remembered from now on, for when there are no handles left to ask.
  Identity.self()
  Installation.remember()
  const walker = Root.open(system, options)
  if (isFault(walker)) return walker
  if (OpenRoots.isInStore(path)) return inStore
  const unregister = OpenRoots.register(path)
  return {
    walker,
    close: () => {
      unregister()
      walker.close()
    }
  }
}

/** Opens a directory that holds the root, for what was recorded of both. */
const openAbove = (root: string): Effect.Effect<Backend, Fault, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      attempt(() => Root.open(system, { root })),
      ({ close }) => Effect.sync(close)
    ),
    (walker) => backend(walker, { root })
  )

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
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.mapError(
        attempt(() => openRoot(options)),
        (fault) => promoteRoot(fault, "WindowsHost", String(options.root))
      ),
      ({ close }) => Effect.sync(close)
    ),
    ({ walker }) => {
      const port = enforce(backend(walker, options))
      const found = Transactions.rootAt(OpenRoots.resolved(options.root) ?? options.root)
      return found === undefined
        ? Effect.succeed(port)
        : Effect.mapError(settled(port, { ...found, isDurable: options.durability === "full", open: openAbove }), (fault) =>
            promoteRoot(fault, "WindowsHost", options.root)
          )
    }
  )

/**
 * A filesystem whose root is a directory of a Windows machine, for as long as the layer lives. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const layer = (
  options: WindowsHostOptions
): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> => Filesystem.layer(make(options))
