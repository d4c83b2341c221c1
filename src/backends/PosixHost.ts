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
import * as Filesystem from "../filesystem/Filesystem.ts"
import type { NotADirectory, StatError, Unsupported } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import { enforce } from "../port/Rules.ts"
import * as Crew from "../runtime/crew.ts"
import type { PosixHostOptions } from "./internal/options.ts"
import { backend } from "./internal/posixPort.ts"
import * as PosixRoot from "./internal/posixRoot.ts"

export type {
  /** @since 0.1.0 */
  HostOptions,
  /** @since 0.1.0 */
  PosixHostOptions
} from "./internal/options.ts"

/**
 * The port of a host directory, for as long as the scope lives; after that every call fails with Unavailable. A change of several files
 * that a killed process has left unfinished in the directory is finished first. Fails with NotFound, NotADirectory or AccessDenied for the root (`policy` where it lies in an open store of snapshots), InvalidPath where it is not
 * absolute, and Unsupported where the machine cannot give the confinement that is required.
 *
 * @since 0.1.0
 */
export const make = (options: PosixHostOptions): Effect.Effect<Backend, StatError | NotADirectory | Unsupported, Scope.Scope> =>
  Effect.gen(function* () {
    const confined = yield* PosixRoot.open("PosixHost", options)
    const port = enforce(backend(confined, options, yield* Crew.shared))
    return yield* PosixRoot.settled("PosixHost", confined, options, port)
  })

/**
 * A filesystem whose root is a directory of the machine, for as long as the layer lives. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const layer = (options: PosixHostOptions): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> =>
  Filesystem.layer(make(options))
