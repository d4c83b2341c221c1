/** Where git's directory may be: outside every workspace, where nobody who works in one can reach it. */
import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { homedir, tmpdir } from "node:os"
import { isAbsolute, join } from "node:path"
import * as OpenRoots from "../../runtime/openRoots.ts"
import { type StoreFault, storeFault } from "../errors.ts"

const whyNot = (directory: string): string | undefined => {
  const fault = OpenRoots.refusal("gitDir", directory)
  return fault === undefined ? undefined : String(fault["detail"])
}

/** Of a directory that is given. */
export const check = (directory: string): Effect.Effect<void, StoreFault> =>
  Effect.suspend(() => {
    if (typeof directory !== "string" || !isAbsolute(directory)) {
      return Effect.fail(storeFault("refused", "gitDir must be an absolute path"))
    }
    const why = whyNot(directory)
    return why === undefined ? Effect.void : Effect.fail(storeFault("refused", `gitDir: ${why}`))
  })

/** Where a directory of our own can be made, the usual place first. */
const places = (): ReadonlyArray<string> => [tmpdir(), join(homedir(), ".cache"), "/var/tmp", "/dev/shm"]

const create = (): string | undefined => {
  for (const place of places()) {
    const directory = join(place, `fs-algebra-git-${randomBytes(9).toString("hex")}`)
    if (whyNot(directory) !== undefined) continue
    try {
      Fs.mkdirSync(directory, { mode: 0o700 })
      return directory
    } catch {
      // The next place may do.
    }
  }
  return undefined
}

/** A directory of our own, gone with the scope. */
export const temporary: Effect.Effect<string, StoreFault, Scope.Scope> = Effect.acquireRelease(
  Effect.suspend(() => {
    const directory = create()
    return directory === undefined
      ? Effect.fail(storeFault("unavailable", "there is no place for a store outside the root: give one by layerGit"))
      : Effect.succeed(directory)
  }),
  (directory) =>
    Effect.promise(() => Fs.promises.rm(directory, { recursive: true, force: true, maxRetries: 3 }).catch(() => {}))
)
