/**
 * A filesystem over a directory on a Windows machine.
 *
 * It uses `node:fs`, touches nothing outside its root, and caches no content. So this filesystem and other programs see
 * each other's changes immediately.
 *
 * Names are compared without regard to case, as Windows does, and keep the case in which they were created. Names that
 * Windows would reinterpret fail with InvalidPath before the disk is touched. These are devices (`CON`, `NUL.txt`), streams
 * (`a:b`), names that end in a dot or a space, and short names (`PROGRA~1`). A path that is too long for the machine fails
 * with PathTooLong.
 *
 * To read, write, replace or move a file that another program has open, a call waits up to 1.5 seconds and then fails with
 * AccessDenied `busy`. Deleting such a file fails with AccessDenied `busy` immediately. Files that this filesystem has open
 * for reading never block its calls. Writing a read-only file fails with AccessDenied `permission`.
 *
 * Confinement is `best-effort`: no path, symlink in the tree or error leads out of the root. But a process that replaces
 * directories by junctions during a call could lead the call outside within a window of a few microseconds.
 *
 * There are no permission bits and no access control lists, and the directory cannot be watched. Some changes are not
 * atomic: replacing a symlink or an empty directory by a move, and creating a file on a disk without hard links.
 *
 * A replaced file gets the access rights of a new file in its directory, and loses its streams and attributes such as
 * "hidden". While a stream is being written in a directory, moving the directory fails with AccessDenied `busy`.
 *
 * Windows cannot flush a directory to disk, so the durability `full` is the same as `file`.
 *
 * @since 0.1.0
 */
import { is as isFault, unsupported } from "../model/Fault.ts"
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
import { inStore, promoteRoot, tooWeakConfinement, type WindowsHostOptions, withRecovery } from "./hostRoot.ts"
import { attempt } from "./windows/errors.ts"
import { parseRoot } from "./windows/names.ts"
import { backend } from "./windows/port.ts"
import * as Root from "./windows/walk.ts"
import type { Walker } from "./windows/walk.ts"
import { system } from "./windows/disk.ts"

export type { WindowsHostOptions } from "./hostRoot.ts"

const pathOf = ({ requireConfinement, root }: WindowsHostOptions): string | Fault => {
  if (process.platform !== "win32") return unsupported(`WindowsHost on ${process.platform}`)
  if (requireConfinement !== undefined && requireConfinement !== "best-effort") return tooWeakConfinement(requireConfinement)
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
  // Read the identity of the process now, because later there may be no free handles.
  Identity.self()
  Installation.loadKey()
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

/** Opens a directory above the root, to recover a transaction that changes entries of both directories. */
const openAbove = (root: string): Effect.Effect<Backend, Fault, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      attempt(() => Root.open(system, { root })),
      ({ close }) => Effect.sync(close)
    ),
    (walker) => backend(walker, { root })
  )

/**
 * Opens the port of a directory until the scope closes. After the scope has closed, every call fails with Unavailable.
 *
 * Fails with Unsupported on other systems than Windows, and if more than `best-effort` confinement is required. Fails
 * with InvalidPath if the root is not absolute: `C:\directory` or `\\server\share\directory`, possibly with the prefix
 * `\\?\`. Fails with NotFound, NotADirectory or AccessDenied for the root. The AccessDenied is `policy` if the root is
 * inside an open snapshot store.
 *
 * @category constructors
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
      const found = Transactions.rootAt(OpenRoots.resolvePath(options.root) ?? options.root)
      return found === undefined
        ? Effect.succeed(port)
        : Effect.mapError(
            withRecovery(port, { ...found, isDurable: options.durability === "full", open: openAbove }),
            (fault) => promoteRoot(fault, "WindowsHost", options.root)
          )
    }
  )

/**
 * Creates a filesystem whose root is a directory of a Windows machine, until the layer's scope closes. Fails like
 * `make`.
 *
 * @example
 * ```ts
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("README.md"))
 * yield* Effect.provide(read, WindowsHost.layer({ root: "C:\\project" }))
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: WindowsHostOptions
): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> => Filesystem.layer(make(options))
