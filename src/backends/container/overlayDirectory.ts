/**
 * Manages the host directory of a container's workspace. A directory of the caller is kept; a directory in the user's
 * cache is removed when the scope closes.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../../model/FsError.ts"
import { fromSegments, type FsPath, join, root } from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { Fs, homedir, Path } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { removeTree } from "../posix/changes.ts"
import * as HostRoot from "../posix/confinement.ts"
import { attempt } from "../posix/errors.ts"
import { unavailable } from "../../model/Fault.ts"
import { type Confined, type Owner, withPlace } from "../posix/place.ts"
import { backend } from "../posix/port.ts"
import { random } from "./lifecycle.ts"

/**
 * The directory of all overlays, in the user's cache. A relative XDG_CACHE_HOME is ignored
 * (https://specifications.freedesktop.org/basedir-spec).
 */
const cache: Effect.Effect<string> = Effect.map(
  Effect.orElseSucceed(Config.String("XDG_CACHE_HOME"), () => ""),
  (given) => Path.join(Path.isAbsolute(given) ? given : Path.join(homedir(), ".cache"), "fs-algebra", "overlays")
)

const overlayName = /^([0-9a-z-]+)\.[0-9a-f]{24}$/

/** Makes all directories accessible again, because programs may have removed their permissions. */
const makeAccessible = (port: Backend, path: FsPath): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    yield* port.attributes!.set(path, { mode: 0o700 })
    for (const child of yield* port.list(path)) {
      if (child.kind === "directory") yield* makeAccessible(port, join(path, keyOf(child)))
    }
  })

/**
 * Removes an overlay directory. Never fails: later processes retry.
 *
 * Uses the tree removal of PosixHost, which is safe even if programs still replace directories by symlinks.
 */
export const remove = (parent: string, name: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const confined = yield* HostRoot.openScoped(parent)
    const path = fromSegments([name])
    const removeOnce = removeTree(confined, path)
    yield* Effect.catch(removeOnce, () =>
      Effect.andThen(Effect.ignore(makeAccessible(backend(confined, { root: parent }), path)), removeOnce)
    )
  }).pipe(Effect.scoped, Effect.ignore)

const isDirectory = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Removes overlay directories of ended processes. The directories may belong to the container's user. */
const removeOrphans = (parent: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const orphans = Fs.readdirSync(parent).filter((name) => {
      const owner = overlayName.exec(name)?.[1]
      return owner !== undefined && Identity.isDead(owner) === true && isDirectory(Path.join(parent, name))
    })
    return Effect.forEach(orphans, (name) => remove(parent, name), { discard: true })
  })

const foreignDirectory: Fault = unavailable(
  "fs-algebra or fs-algebra/overlays in the user's cache directory is a link or belongs to another user; give a hostDirectory, or set XDG_CACHE_HOME to a directory of your own"
)

/**
 * Creates a directory that only this user can change. Returns false if the path is a link or belongs to another user.
 *
 * Another user could replace an entry in the directory by a symlink. This program would then make the container's user the
 * owner of the symlink's target.
 */
const ensurePrivate = (directory: string): boolean => {
  makeDirectories(directory, 0o700)
  const { mode, uid } = Fs.lstatSync(directory)
  if (!isDirectory(directory) || uid !== process.getuid?.()) return false
  if ((mode & 0o022) !== 0) Fs.chmodSync(directory, 0o700)
  return true
}

export const make: Effect.Effect<string, Fault, Scope.Scope> = Effect.gen(function* () {
  const parent = yield* cache
  const name = `${Identity.self()}.${random()}`
  const directory = `${parent}/${name}`
  yield* Effect.acquireRelease(
    attempt(() => {
      if (!ensurePrivate(Path.dirname(parent)) || !ensurePrivate(parent)) return foreignDirectory
      Fs.mkdirSync(directory, { mode: 0o700 })
      return undefined
    }),
    () => remove(parent, name)
  )
  yield* Effect.forkScoped(removeOrphans(parent))
  return directory
})

/**
 * Changes the owner of the workspace if the directory belongs to root. This process must run as root. The contents keep
 * their owner.
 *
 * Changes the opened directory, even if its path now leads to another entry.
 */
export const changeOwner = (confined: Confined, owner: Owner): Effect.Effect<void, Fault> =>
  attempt(() =>
    withPlace(confined.directory(root), ({ directory, stats }) => {
      if (stats.uid === 0) Fs.chownSync(directory, owner.uid, owner.gid)
    })
  )
