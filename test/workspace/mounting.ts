/** Directories on disk to mount, and the state of the target afterwards. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { capture, type Picture } from "../../src/testing/Files.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"
import { OpenDirectory } from "../../src/workspace/mount/survey.ts"
import { inMemory } from "../scratch.ts"

/** A tree on disk: a string or bytes are a file, an array is the target of a link, `null` is an empty directory. */
export type Machine = { readonly [path: string]: string | Uint8Array | readonly [target: string] | null }

export const machine = (tree: Machine): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = Fs.mkdtempSync(join(inMemory(), "mount-"))
      plant(root, tree)
      return root
    }),
    (root) => Effect.sync(() => Fs.rmSync(root, { recursive: true, force: true }))
  )

export const plant = (root: string, tree: Machine): void => {
  for (const [path, item] of Object.entries(tree)) {
    const at = join(root, path)
    Fs.mkdirSync(item === null ? at : dirname(at), { recursive: true })
    if (item === null) continue
    if (typeof item === "string" || item instanceof Uint8Array) Fs.writeFileSync(at, item)
    else Fs.symlinkSync(item[0], at)
  }
}

export const pictureOf = ({ port }: Algebra): Effect.Effect<Picture> => Effect.orDie(capture(port) as Effect.Effect<Picture>)

/** Returns the mount's error, and checks that the filesystem is unchanged. */
export const refused = Effect.fnUntraced(function* (
  fs: Algebra,
  mounts: ReadonlyArray<HostMount.HostMount>,
  allowedRoots: ReadonlyArray<string>
) {
  const before = yield* pictureOf(fs)
  const error: HostMount.MountError | FsError = yield* Effect.flip(HostMount.hydrate(fs, mounts, { allowedRoots }))
  assert.deepStrictEqual(yield* pictureOf(fs), before)
  return error
})

/** Wraps the port through which mounts read the machine. */
export const through = (change: (port: Backend) => Backend) =>
  Effect.provideService(OpenDirectory, (root) => Effect.map(PosixHost.make({ root }), change))
