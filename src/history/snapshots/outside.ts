/** Directories for stores, always outside every workspace, so that code in a workspace cannot reach them. */
import { Fs, homedir, isAbsolute, join, randomBytes, tmpdir } from "../../runtime/node.ts"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as OpenRoots from "../../runtime/openRoots.ts"
import { type StoreFault, storeFault } from "../errors.ts"

const whyRefused = (directory: string): string | undefined => {
  const fault = OpenRoots.reachabilityFault("directory", directory)
  return fault === undefined ? undefined : String(fault["detail"])
}

/** Checks a directory that the caller gives; `argument` is the name of the parameter. */
export const checkDirectory = (argument: string, directory: string): Effect.Effect<void, StoreFault> =>
  Effect.suspend(() => {
    if (typeof directory !== "string" || !isAbsolute(directory)) {
      return Effect.fail(storeFault("refused", `${argument} must be an absolute path`))
    }
    const why = whyRefused(directory)
    return why === undefined ? Effect.void : Effect.fail(storeFault("refused", `${argument}: ${why}`))
  })

const candidateDirectories = (): ReadonlyArray<string> => [tmpdir(), join(homedir(), ".cache"), "/var/tmp", "/dev/shm"]

const create = (prefix: string): string | undefined => {
  for (const place of candidateDirectories()) {
    const directory = join(place, `${prefix}${randomBytes(9).toString("hex")}`)
    if (whyRefused(directory) !== undefined) continue
    try {
      Fs.mkdirSync(directory, { mode: 0o700 })
      return directory
    } catch {
      // Try the next place.
    }
  }
  return undefined
}

/** Prevents filesystems from being opened on the directory during the scope. */
export const reserveDirectory = (directory: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => OpenRoots.registerStore(directory)),
      (unregister) => Effect.sync(unregister)
    )
  )

export const makeTemporaryDirectory = (prefix: string): Effect.Effect<string, StoreFault, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      const directory = create(prefix)
      return directory === undefined
        ? Effect.fail(storeFault("unavailable", "there is no place for a store outside the root"))
        : Effect.succeed(directory)
    }),
    (directory) =>
      Effect.promise(() => Fs.promises.rm(directory, { recursive: true, force: true, maxRetries: 3 }).catch(() => {}))
  )
