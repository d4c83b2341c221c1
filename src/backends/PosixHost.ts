/**
 * A filesystem over a directory on the machine.
 *
 * It uses `node:fs`, touches nothing outside its root, and caches no content. So this filesystem and other programs see
 * each other's changes immediately.
 *
 * Relative symlinks are followed if they stay inside the root. Absolute symlinks are followed if their text begins with the
 * path of the root.
 *
 * No path, symlink or error leads out of the root. On Linux with `/proc`, confinement is `race-free`: even a process that
 * replaces directories by symlinks during a call cannot lead the call outside. On other systems, confinement is
 * `best-effort`: such a process could lead a call outside within a window of a few microseconds.
 *
 * Names and metadata are read synchronously, in microseconds. If a disk does not respond (such as a network disk without
 * its server), the whole program waits.
 *
 * Creating, replacing and appending are atomic between processes. Exceptions are an append of more than 1 GiB (256 MiB from a
 * stream), and creating a file on a disk without hard links. A move without `overwrite` checks the target directly before
 * the rename, because Node has no call that does both in one step.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Filesystem from "../filesystem/Filesystem.ts"
import type { NotADirectory, StatError, Unsupported } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import { enforce } from "../port/Rules.ts"
import * as Workers from "../runtime/workerPool.ts"
import type { PosixHostOptions } from "./hostRoot.ts"
import { backend } from "./posix/port.ts"
import * as PosixRoot from "./posix/root.ts"

export type { HostOptions, PosixHostOptions } from "./hostRoot.ts"

/**
 * Opens the port of a host directory until the scope closes. After the scope has closed, every call fails with
 * Unavailable.
 *
 * A transaction that a killed process left unfinished in the directory is recovered first.
 *
 * Fails with NotFound, NotADirectory or AccessDenied for the root. The AccessDenied is `policy` if the root is inside an
 * open snapshot store. Fails with InvalidPath if the root is not absolute, and with Unsupported if the machine cannot
 * provide the required confinement.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: PosixHostOptions): Effect.Effect<Backend, StatError | NotADirectory | Unsupported, Scope.Scope> =>
  Effect.gen(function* () {
    const confined = yield* PosixRoot.open("PosixHost", options)
    const port = enforce(backend(confined, options, yield* Workers.shared))
    return yield* PosixRoot.recoverTransactions("PosixHost", confined, options, port)
  })

/**
 * Creates a filesystem whose root is a directory on the machine, until the layer's scope closes. Fails like `make`.
 *
 * @example
 * ```ts
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("README.md"))
 * yield* Effect.provide(read, PosixHost.layer({ root: "/srv/project" }))
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: PosixHostOptions): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> =>
  Filesystem.layer(make(options))
