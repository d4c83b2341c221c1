/** A directory with a store next to it, and checks that the tests of bad input share. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { fastDirectory, has, needs } from "../faults/ground.ts"
import { read } from "./awkward.ts"

export const hasGit = needs("bad stores", () => has("git"), "apt-get install git")

export const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

export interface Place {
  readonly top: string
  readonly root: string
  readonly gitDir: string
}

export const placeIn = (top: string): Place => {
  Fs.mkdirSync(join(top, "root"))
  return { top, root: join(top, "root"), gitDir: join(top, "store") }
}

/** Creates a place that the scope removes. */
export const place: Effect.Effect<Place, never, Scope.Scope> = Effect.map(fastDirectory, placeIn)

export type Services = Filesystem | Snapshots.Snapshots

export const serving = ({ gitDir, root }: Place, options: Snapshots.LayerOptions = {}) =>
  Snapshots.layerGit({ gitDir, ...options }).pipe(Layer.provideMerge(PosixHost.layer({ root })))

/** Runs `use` with a layer of its own, like one run of a process. */
export const within = <A, E>(
  here: Place,
  use: (snapshots: Snapshots.Operations) => Effect.Effect<A, E, Services | Scope.Scope>,
  options?: Snapshots.LayerOptions
) => Effect.scoped(Snapshots.Snapshots.use(use)).pipe(Effect.provide(serving(here, options)))

export const git = ({ gitDir }: Place, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", gitDir, ...args], {
    encoding: "latin1",
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" }
  }).trim()

export const gitWith = ({ gitDir }: Place, input: string | Uint8Array, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", gitDir, ...args], { encoding: "latin1", input, stdio: ["pipe", "pipe", "pipe"] }).trim()

/** Runs git fsck; throws if an object is damaged, or missing and in use. */
export const fsck = (here: Place): string => git(here, "fsck", "--full", "--strict", "--no-dangling")

export const packsOf = ({ gitDir }: Place): ReadonlyArray<string> =>
  Fs.readdirSync(join(gitDir, "objects/pack"))
    .filter((name) => name.endsWith(".pack"))
    .map((name) => join(gitDir, "objects/pack", name.slice(0, -".pack".length)))

/** Returns the paths whose names begin like the temporary names of this library. */
export const hidden = (root: string): ReadonlyArray<string> =>
  Fs.readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => path.split("/").at(-1)!.startsWith(".~fsa-"))

/** Writes two trees and takes a snapshot of each. The second tree remains, and each snapshot has a pack of its own. */
export const twoStates = Effect.fnUntraced(function* (here: Place, snapshots: Snapshots.Operations) {
  const put = (path: string, text: string): void => {
    Fs.mkdirSync(join(here.root, path, ".."), { recursive: true })
    Fs.writeFileSync(join(here.root, path), text)
  }
  put("same.txt", "the same\n")
  put("changed.txt", `one ${"1".repeat(3000)}\n`)
  put("d/deep/old.txt", "old\n")
  Fs.mkdirSync(join(here.root, "empty"))
  Fs.symlinkSync("same.txt", join(here.root, "link"))
  const before = packsOfIfAny(here)
  const first = yield* snapshots.snapshot({ tag: "first" })
  const one = read(here.root)
  const between = packsOfIfAny(here)
  put("changed.txt", `two ${Array.from({ length: 500 }, (_, i) => i * i).join()}\n`)
  put("d/deep/new.txt", "new\n")
  Fs.rmSync(join(here.root, "d/deep/old.txt"))
  Fs.rmdirSync(join(here.root, "empty"))
  const second = yield* snapshots.snapshot({ tag: "second" })
  const two = read(here.root)
  return {
    first,
    one,
    second,
    two,
    firstPack: between.find((name) => !before.includes(name))!,
    secondPack: packsOfIfAny(here).find((name) => !between.includes(name))!
  }
})

export type States = Effect.Success<ReturnType<typeof twoStates>>

const packsOfIfAny = (here: Place): ReadonlyArray<string> => (Fs.existsSync(here.gitDir) ? packsOf(here) : [])

/**
 * Checks that a restore fails with the reason and leaves the tree unchanged to the last byte and mode, without hidden
 * names.
 */
export const refusesRestoring = (
  here: Place,
  restore: Effect.Effect<Snapshots.RestoreResult, Snapshots.SnapshotRestoreError>,
  reason: Snapshots.SnapshotRestoreError["reason"]
) =>
  Effect.gen(function* () {
    const before = read(here.root)
    const error = yield* Effect.flip(restore)
    assert.strictEqual(error._tag, "SnapshotRestoreError")
    assert.strictEqual(error.reason, reason, error.message)
    assert.deepStrictEqual(read(here.root), before)
    assert.deepStrictEqual(hidden(here.root), [])
    return error
  })
