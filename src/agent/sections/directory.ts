/** Directories of our own in the system's place for such, which go with the scope. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { IoError } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"

const failure = (error: unknown): IoError => {
  const { code } = error as NodeJS.ErrnoException
  const detail = "no temporary directory can be made"
  return new IoError({ operation: "Section", path: root, detail, ...(code !== undefined && { code }) })
}

/** Whoever worked in it may have left directories that may not be entered. */
const unlock = async (directory: string): Promise<void> => {
  await Fs.promises.chmod(directory, 0o700)
  for (const entry of await Fs.promises.readdir(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) await unlock(join(directory, entry.name))
  }
}

/** Closing never fails. */
const remove = (directory: string): Effect.Effect<void> => {
  const once = () => Fs.promises.rm(directory, { recursive: true, force: true, maxRetries: 3 })
  return Effect.promise(() =>
    once().catch(() =>
      unlock(directory)
        .catch(() => {})
        .then(once)
        .catch(() => {})
    )
  )
}

/** For this user alone; the whole path, all links resolved. */
export const temporary = (prefix: string): Effect.Effect<string, IoError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({ try: () => Fs.mkdtempSync(join(Fs.realpathSync(tmpdir()), prefix)), catch: failure }),
    remove
  )
