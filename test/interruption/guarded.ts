/**
 * Runs a program in a child process under a watchdog, so that an endless loop or exhausted memory fails one test only. The
 * watchdog does not measure speed: it ends only programs that are many times too slow.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const project = fileURLToPath(new URL("../..", import.meta.url))

export interface Outcome {
  readonly out: string
  /** The exit status, or `undefined` if a signal ended the program (out of memory, or the watchdog). */
  readonly status: number | undefined
  readonly isStuck: boolean
  /** The end of the standard error. */
  readonly error: string
}

const prelude = `
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as InMemory from "./src/backends/InMemory.ts"
import * as Filesystem from "./src/filesystem/Filesystem.ts"
import { Limits, standard, unlimited } from "./src/model/Limits.ts"
const run = (effect) => Effect.runPromise(effect)
const make = async (tree, limits = unlimited) => {
  const fs = Filesystem.make(await run(InMemory.make()))
  for (const [path, text] of Object.entries(tree)) await run(Effect.provideService(fs.write(path, text), Limits, limits))
  return fs
}
const say = (value) => process.stdout.write(JSON.stringify(value))
const told = (effect) => Effect.match(effect, { onSuccess: () => "done", onFailure: (error) => error._tag })
`

export interface Options {
  /** Seconds until the watchdog ends the program. @default 60 */
  readonly seconds?: number
  /** The heap limit in MiB. @default 1024 */
  readonly heap?: number
}

/** Runs the program `body`. The prelude gives it the usual imports and `make`, `run`, `say` and `told`. */
export const guarded = (body: string, { heap = 1024, seconds = 60 }: Options = {}): Effect.Effect<Outcome> =>
  Effect.callback((resume) => {
    const child = spawn(
      process.execPath,
      [`--max-old-space-size=${heap}`, "--input-type=module-typescript", "-e", `${prelude}\n${body}`],
      { cwd: project, stdio: ["ignore", "pipe", "pipe"] }
    )
    let out = ""
    let error = ""
    let isStuck = false
    child.stdout.on("data", (bytes: Buffer) => (out += bytes.toString()))
    child.stderr.on("data", (bytes: Buffer) => (error = `${error}${bytes.toString()}`.slice(-2000)))
    const watchdog = setTimeout(() => {
      isStuck = true
      child.kill("SIGKILL")
    }, seconds * 1000)
    child.on("close", (status) => {
      clearTimeout(watchdog)
      resume(Effect.succeed({ out: out.trim(), status: status ?? undefined, isStuck, error }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })
