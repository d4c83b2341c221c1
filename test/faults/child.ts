/** Runs `program.ts` in a child process that takes one command at a time. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface, type Interface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { Answer, Command } from "./program.ts"

const program = fileURLToPath(new URL("./program.ts", import.meta.url))

export interface Child {
  readonly pid: number
  readonly ask: (command: Command) => Effect.Effect<Answer>
}

const lines = (from: Interface) => {
  const iterator = from[Symbol.asyncIterator]()
  return async (): Promise<Answer> => {
    const { done, value } = await iterator.next()
    if (done === true) throw new Error("the program has ended")
    return JSON.parse(value) as Answer
  }
}

const begin = async (before: string): Promise<{ readonly child: Child; readonly process: ChildProcess }> => {
  const made = spawn(
    "bash",
    ["-c", `${before} exec "$0" --disable-warning=ExperimentalWarning "$@"`, process.execPath, program],
    {
      stdio: ["pipe", "pipe", "inherit"],
      // One thread in the pool gives the calls a fixed order.
      env: { ...process.env, UV_THREADPOOL_SIZE: "1" }
    }
  )
  const answer = lines(createInterface({ input: made.stdout }))
  const { pid } = await answer()
  const child: Child = {
    pid: pid!,
    ask: (command) =>
      Effect.promise(() => {
        made.stdin.write(`${JSON.stringify(command)}\n`)
        return answer()
      })
  }
  return { child, process: made }
}

/** Starts the program for a scope. `before` is shell code that runs first, for example to lower a limit. */
export const spawned = (before = ""): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => begin(before)),
      ({ process }) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              if (process.exitCode !== null || process.signalCode !== null) return resolve()
              process.once("exit", () => resolve())
              process.stdin!.end()
            })
        )
    ),
    ({ child }) => child
  )
