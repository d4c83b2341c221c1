/**
 * Temporary directories that only their owner can enter, in a parent directory that other users share. A directory's name
 * contains the identity of its process and this installation's code. So a leftover is removed only if its process is dead
 * and belonged to this installation.
 */
import { Fs, Path, randomBytes } from "../runtime/node.ts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { attempt } from "../backends/posix/errors.ts"
import { remove as removeOn } from "../backends/container/overlayDirectory.ts"
import type { Fault } from "../model/FsError.ts"
import * as Installation from "../runtime/installation.ts"
import * as Identity from "../runtime/processIdentity.ts"

export interface Directory {
  readonly path: string
  /**
   * The scope of the directory. The directory is removed when this scope or the scope of its creator closes. Resources in this
   * scope are closed before the removal.
   */
  readonly scope: Scope.Scope
  readonly remove: Effect.Effect<void>
}

export type Purpose = "snapshots" | "vfs" | "workspace"

const namePattern = /^(fs-algebra-(?:snapshots|vfs|workspace)-([0-9a-z-]+)\.[0-9a-f]{8})\.([\w-]{22})$/

/** Encodes a hexadecimal code in fewer characters, because the path of a socket in the directory may have at most 107 bytes. */
const shortenCode = (code: string): string => Buffer.from(code, "hex").toString("base64url")

const create = (parent: string, purpose: Purpose): Effect.Effect<string, Fault> =>
  attempt(() => {
    const name = `fs-algebra-${purpose}-${Identity.self()}.${randomBytes(4).toString("hex")}`
    const directory = Path.join(parent, `${name}.${shortenCode(Installation.signName(name))}`)
    Fs.mkdirSync(directory, { mode: 0o700 })
    return directory
  })

/** Removes the directory. Never fails. The next process removes entries that could not be removed. */
const remove = (directory: string): Effect.Effect<void> =>
  process.platform === "win32"
    ? Effect.ignore(Effect.tryPromise(() => Fs.promises.rm(directory, { recursive: true, force: true, maxRetries: 3 })))
    : removeOn(Path.dirname(directory), Path.basename(directory))

export const make = (parent: string, purpose: Purpose): Effect.Effect<string, Fault, Scope.Scope> =>
  Effect.acquireRelease(create(parent, purpose), remove)

/**
 * Creates a temporary directory and fills it. If `fill` fails or is interrupted, removes the directory. `fill` runs
 * uninterruptibly except where it allows interruption itself.
 */
export const makeFilled = (
  parentScope: Scope.Scope,
  parent: string,
  purpose: Purpose,
  fill: (path: string) => Effect.Effect<void, Fault>
): Effect.Effect<Directory, Fault> =>
  Effect.uninterruptible(
    Effect.flatMap(Scope.fork(parentScope), (scope) =>
      make(parent, purpose).pipe(
        Scope.provide(scope),
        Effect.tap(fill),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
        Effect.map((path) => ({ path, scope, remove: Scope.close(scope, Exit.void) }))
      )
    )
  )

const isLeftover = (name: string): boolean => {
  const [, signedName, owner, code] = namePattern.exec(name) ?? []
  return (
    owner !== undefined &&
    Identity.isDead(owner) === true &&
    Installation.isSignatureOf(signedName!, Buffer.from(code!, "base64url").toString("hex"))
  )
}

/**
 * Tests whether this user owns the directory. Another user can see the name of a removed directory and create an entry with
 * this name.
 */
const isOwnedByUser = (directory: string): boolean => {
  const found = Fs.lstatSync(directory, { throwIfNoEntry: false })
  return found?.isDirectory() === true && (process.getuid === undefined || found.uid === process.getuid())
}

export const removeLeftovers = (parent: string): Effect.Effect<void> =>
  Effect.ignore(
    Effect.flatMap(
      attempt(() => Fs.readdirSync(parent).filter((name) => isLeftover(name) && isOwnedByUser(Path.join(parent, name)))),
      (orphans) => Effect.forEach(orphans, (name) => remove(Path.join(parent, name)), { discard: true })
    )
  )
