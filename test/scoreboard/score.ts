/** Runs laws on a filesystem in child processes, so that a law that never ends, or that ends the process, is only broken. */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { type Check, randomPrograms } from "./chapters.ts"

export interface Asked {
  readonly law: string
}

export type Outcome =
  | { readonly _tag: "Held" }
  | { readonly _tag: "Broken"; readonly why: string }
  | { readonly _tag: "NotApplicable"; readonly missing: ReadonlyArray<string> }

export interface Options {
  /** The module that exports `subjects`. */
  readonly module: URL
  readonly checks: ReadonlyArray<Check>
  /**
   * The seconds after which a law counts as broken. The process of a law that blocks is ended after twice the time, and the
   * process of the random programs after 20 times the time.
   */
  readonly timeoutSeconds: number
}

const start = async ({ module, timeoutSeconds }: Options, name: string): Promise<ChildProcess> => {
  const program = fileURLToPath(new URL("./worker.ts", import.meta.url))
  const child = fork(program, [module.href, name, String(timeoutSeconds)], { stdio: ["ignore", "ignore", "inherit", "ipc"] })
  const first = await Promise.race([once(child, "message"), once(child, "exit").then(() => undefined)])
  if (first === undefined) throw new Error(`The process for ${name} ended before its first law.`)
  return child
}

const ask = (child: ChildProcess, law: string, seconds: number): Promise<Outcome> =>
  new Promise((resolve) => {
    const end = (outcome: Outcome): void => {
      clearTimeout(timer)
      child.removeAllListeners("message").removeAllListeners("exit")
      resolve(outcome)
    }
    const timer = setTimeout(() => {
      end({ _tag: "Broken", why: "The law blocks the process." })
      child.kill("SIGKILL")
    }, seconds * 1000)
    child.once("message", end)
    child.once("exit", () => end({ _tag: "Broken", why: "The law ends the process." }))
    child.send({ law } satisfies Asked)
  })

/** Returns the outcomes in the order of the checks. */
export const score = async (name: string, options: Options): Promise<ReadonlyArray<Outcome>> => {
  let child = await start(options, name)
  const outcomes: Array<Outcome> = []
  try {
    for (const { name: law } of options.checks) {
      if (child.exitCode !== null || child.signalCode !== null || child.killed) child = await start(options, name)
      outcomes.push(await ask(child, law, options.timeoutSeconds * (law === randomPrograms.name ? 20 : 2)))
    }
  } finally {
    child.kill("SIGKILL")
  }
  return outcomes
}
