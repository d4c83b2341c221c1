/** Stores in temporary directories, and checks of their content with git itself. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { StoreFault } from "../../../src/history/errors.ts"
import { open, type Store } from "../../../src/history/git/store.ts"
import { fastDirectory, has, needs } from "../../faults/ground.ts"

export const hasGit = needs("stores of snapshots", () => has("git"), "apt-get install git")

export const hasProc = Fs.existsSync("/proc/self/stat")

export { fastDirectory as directory } from "../../faults/ground.ts"

/** Creates a store that lasts as long as the scope, in a new directory. */
export const fresh: Effect.Effect<Store, StoreFault, Scope.Scope> = Effect.flatMap(fastDirectory, (path) =>
  open(join(path, "store"))
)

/** Runs git without any configuration and returns its output. */
export const git = (store: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", store, ...args], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" }
  }).trim()

/** Runs git fsck; throws if an object is damaged or missing. */
export const fsck = (store: string): string => git(store, "fsck", "--full", "--strict", "--no-dangling")

export { commit, snapshot, type Taken, type Tree } from "./commits.ts"

/** Reads every path of a snapshot with its bytes, by git. */
export const contentOf = (store: Store, { id }: { readonly id: string }): Record<string, string> => {
  const rows = git(store.directory, "ls-tree", "-r", "-z", "--format=%(objectname) %(path)", `refs/snapshots/${id}`)
    .split("\0")
    .filter((row) => row !== "")
  const all = execFileSync("git", ["--git-dir", store.directory, "cat-file", "--batch"], {
    encoding: "latin1",
    maxBuffer: 2 ** 28,
    input: rows.map((row) => `${row.slice(0, 40)}\n`).join("")
  })
  let at = 0
  return Object.fromEntries(
    rows.map((row) => {
      // Each entry has a line with id, kind and size, the bytes, and a line feed.
      const start = all.indexOf("\n", at) + 1
      const [name, kind, size] = all.slice(at, start - 1).split(" ")
      if (name !== row.slice(0, 40) || kind !== "blob") throw new Error(`git says ${all.slice(at, start - 1)} of ${row}`)
      at = start + Number(size) + 1
      return [row.slice(41), all.slice(start, at - 1)]
    })
  )
}

const idsIn = (text: string): ReadonlyArray<string> => [...new Set(text.split("\n").filter((line) => line !== ""))].sort()

export const allObjects = (store: Store): ReadonlyArray<string> =>
  idsIn(git(store.directory, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))

export const reachableObjects = (store: Store): ReadonlyArray<string> =>
  idsIn(git(store.directory, "rev-list", "--objects", "--no-object-names", "--all"))

/** Returns the ids of the running child processes. */
export const children = (): ReadonlyArray<number> =>
  Fs.readdirSync("/proc/self/task")
    .flatMap((task) => Fs.readFileSync(`/proc/self/task/${task}/children`, "utf8").trim().split(" "))
    .filter((pid) => pid !== "")
    .map(Number)

/** Returns incompressible bytes. */
export const noise = (random: () => number, size: number): Buffer => {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; i++) bytes[i] = Math.floor(random() * 256)
  return bytes
}
