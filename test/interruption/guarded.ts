/**
 * A program in a process of its own, under a watchdog: what never ends, and what eats all memory, then fails a test and does not take
 * the runner with it. The watchdog is no measure of speed: what it ends would have taken many times as long, or for ever.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const project = fileURLToPath(new URL("../..", import.meta.url))

export interface Outcome {
  /** What it printed, without white space around it. */
  readonly out: string
  /** `undefined` where it was ended by a signal, its own (memory) or the watchdog's. */
  readonly status: number | undefined
  readonly isStuck: boolean
  /** The end of what it said of itself. */
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
  /** Until the watchdog ends it. @default 60 */
  readonly seconds?: number
  /** MiB of objects. @default 1024 */
  readonly heap?: number
}

/** `body` is the program's text, after imports of what it is likely to need; `make`, `run`, `say` and `told` are there too. */
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
