/**
 * The directory of the host that is a container's workspace: one that the caller has, which stays, or one in the user's cache that
 * goes with the scope. It belongs to the user inside, since that is who works in it.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, homedir, Path } from "../../../runtime/node.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, fromSegments, join, root } from "../../../model/FsPath.ts"
import { type Backend, keyOf } from "../../../port/Backend.ts"
import { makeDirectories } from "../../../runtime/directories.ts"
import * as Identity from "../../../runtime/processIdentity.ts"
import { attempt, isFault } from "../attempt.ts"
import type { Confined, Owner } from "../confined.ts"
import * as HostRoot from "../hostRoot.ts"
import { removeTree } from "../hostTree.ts"
import { backend } from "../posixPort.ts"
import { unavailable } from "./engine.ts"
import { random } from "./life.ts"

/** https://specifications.freedesktop.org/basedir-spec: a relative path in XDG_CACHE_HOME is none. */
const cache: Effect.Effect<string> = Effect.map(
  Effect.orElseSucceed(Config.String("XDG_CACHE_HOME"), () => ""),
  (given) => Path.join(Path.isAbsolute(given) ? given : Path.join(homedir(), ".cache"), "fs-algebra", "overlays")
)

/** Whose it is, and that it is one of ours. */
const named = /^([0-9a-z-]+)\.[0-9a-f]{24}$/

/** Whoever worked in it may have left directories that may not be entered. */
const unlock = (port: Backend, path: FsPath): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    yield* port.attributes!.set(path, { mode: 0o700 })
    for (const child of yield* port.list(path)) {
      if (child.kind === "directory") yield* unlock(port, join(path, keyOf(child)))
    }
  })

/**
 * Closing never fails: what cannot be removed is tried again by whoever comes after this process. It is removed as a host removes a
 * tree, however deep, since somebody may still be at work in it and put a link in the place of a directory.
 */
export const remove = (parent: string, name: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const confined = yield* Effect.acquireRelease(
      attempt(() => HostRoot.open(parent)),
      ({ close }) => Effect.sync(close)
    )
    const path = fromSegments([name])
    const once = removeTree(confined, path)
    yield* Effect.catch(once, () => Effect.andThen(Effect.ignore(unlock(backend(confined, { root: parent }), path)), once))
  }).pipe(Effect.scoped, Effect.ignore)

/** Returns whether the path is a directory itself, not a link to one. */
const isDirectory = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Removes what processes have left that have ended. A directory may belong to the user inside its container by then. */
const sweep = (parent: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const orphans = Fs.readdirSync(parent).filter((name) => {
      const owner = named.exec(name)?.[1]
      return owner !== undefined && Identity.isDead(owner) === true && isDirectory(Path.join(parent, name))
    })
    return Effect.forEach(orphans, (name) => remove(parent, name), { discard: true })
  })

const isForeign: Fault = unavailable(
  "the directory fs-algebra in the user's cache, or overlays in it, is a link or belongs to another user; give a hostDirectory, or set XDG_CACHE_HOME to a directory of your own"
)

/**
 * Makes the directory where it is missing, and refuses one that others own. Another user who may write in it could put a link in the
 * place of a directory that is then opened and given to the user inside.
 */
const secured = (directory: string): boolean => {
  makeDirectories(directory, 0o700)
  const { mode, uid } = Fs.lstatSync(directory)
  if (!isDirectory(directory) || uid !== process.getuid?.()) return false
  if ((mode & 0o022) !== 0) Fs.chmodSync(directory, 0o700)
  return true
}

/** A directory of our own, which goes with the scope, and with it those that others have left. */
export const make: Effect.Effect<string, Fault, Scope.Scope> = Effect.gen(function* () {
  const parent = yield* cache
  const name = `${Identity.self()}.${random()}`
  const directory = `${parent}/${name}`
  yield* Effect.acquireRelease(
    attempt(() => {
      if (!secured(Path.dirname(parent)) || !secured(parent)) return isForeign
      Fs.mkdirSync(directory, { mode: 0o700 })
      return undefined
    }),
    () => remove(parent, name)
  )
  yield* Effect.forkScoped(sweep(parent))
  return directory
})

/**
 * Only root can, and only what is root's own: a directory of another user stays with that user. What is in it already keeps whom it
 * belongs to. It is the directory that was opened, whatever has taken its path since.
 */
export const giveTo = (confined: Confined, owner: Owner): Effect.Effect<void, Fault> =>
  attempt(() => {
    const place = confined.directory(root)
    if (isFault(place)) return place
    try {
      if (place.stats.uid === 0) Fs.chownSync(place.directory, owner.uid, owner.gid)
    } finally {
      place.release()
    }
    return undefined
  })
