/** Runs the command line on a directory, with a state directory for its snapshots. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import type { Files } from "../../src/testing/Files.ts"
import { has, needs, plantAt } from "../faults/ground.ts"
import { type RunOptions, type Shell, shellOver } from "./terminal.ts"

export const hasGit = needs("snapshots on the command line", () => has("git"), "apt-get install git")

export interface Place {
  /** The current directory of the commands, which holds the root and the state directory. */
  readonly top: string
  readonly root: string
  readonly state: string
}

const base = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

export const place = (files: Files): Effect.Effect<Place, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(base), "fs-algebra-cli-"))),
      (top) => Effect.sync(() => Fs.rmSync(top, { recursive: true, force: true }))
    ),
    (top) => {
      const root = join(top, "root")
      Fs.mkdirSync(root)
      plantAt(root, files)
      return { top, root, state: join(top, "state") }
    }
  )

export interface Kept extends Place, Pick<Shell, "run" | "json"> {}

export const kept = Effect.fnUntraced(function* (files: Files) {
  const here = yield* place(files)
  const shell = shellOver(make(yield* Effect.orDie(PosixHost.make({ root: here.root }))))
  const with_ = (options: RunOptions = {}): RunOptions => ({ directory: here.top, stateDirectory: here.state, ...options })
  const given = (args: ReadonlyArray<string>) => (args.includes("--root") ? args : [...args, "--root", "root"])
  const out: Kept = {
    ...here,
    run: (args, options) => shell.run(given(args), with_(options)),
    json: (args, options) => shell.json(given(args), with_(options))
  }
  return out
})
