/**
 * The directory of the host that is a container's workspace: one that the caller has, which stays, or one in the user's cache that
 * goes with the scope. It belongs to the user inside, since that is who works in it.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"
import type { Fault } from "../../../model/FsError.ts"
import * as Identity from "../../../runtime/processIdentity.ts"
import { attempt } from "../attempt.ts"
import type { Owner } from "../confined.ts"
import { random } from "./life.ts"

/** https://specifications.freedesktop.org/basedir-spec: a relative path in XDG_CACHE_HOME is none. */
const cache: Effect.Effect<string> = Effect.map(
  Effect.orElseSucceed(Config.String("XDG_CACHE_HOME"), () => ""),
  (given) => join(isAbsolute(given) ? given : join(homedir(), ".cache"), "fs-algebra", "overlays")
)

/** Whose it is, and that it is one of ours. */
const named = /^([0-9a-z-]+)\.[0-9a-f]{24}$/

/** Whoever worked in it may have left directories that may not be entered. */
const unlock = (directory: Buffer): void => {
  Fs.chmodSync(directory, 0o700)
  for (const entry of Fs.readdirSync(directory, { withFileTypes: true, encoding: "buffer" })) {
    if (entry.isDirectory()) unlock(Buffer.concat([directory, Buffer.from("/"), entry.name]))
  }
}

/** Closing never fails: what cannot be removed is tried again by whoever comes after this process. */
const remove = (directory: string): Effect.Effect<void> => {
  const once = Effect.tryPromise(() => Fs.promises.rm(directory, { recursive: true, force: true }))
  const unlocked = Effect.andThen(
    Effect.try(() => unlock(Buffer.from(directory))),
    once
  )
  return Effect.ignore(Effect.catch(once, () => unlocked))
}

/** Removes what processes have left that have ended. */
const sweep = (parent: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const orphans = Fs.readdirSync(parent).filter((name) => {
      const owner = named.exec(name)?.[1]
      return owner !== undefined && Identity.isDead(owner) === true
    })
    return Effect.forEach(orphans, (name) => remove(join(parent, name)), { discard: true })
  })

/** A directory of our own, which goes with the scope, and with it those that others have left. */
export const make: Effect.Effect<string, Fault, Scope.Scope> = Effect.gen(function* () {
  const parent = yield* cache
  const directory = join(parent, `${Identity.self()}.${random()}`)
  yield* Effect.acquireRelease(
    attempt(() => {
      Fs.mkdirSync(parent, { recursive: true, mode: 0o700 })
      Fs.mkdirSync(directory, { mode: 0o700 })
    }),
    () => remove(directory)
  )
  yield* Effect.forkScoped(sweep(parent))
  return directory
})

/** Only root can; what is in it already keeps whom it belongs to. */
export const giveTo = (directory: string, owner: Owner): Effect.Effect<void, Fault> =>
  attempt(() => {
    const { gid, uid } = Fs.statSync(directory)
    if (uid !== owner.uid || gid !== owner.gid) Fs.chownSync(directory, owner.uid, owner.gid)
  })
