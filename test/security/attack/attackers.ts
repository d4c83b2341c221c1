/**
 * Starts, counts and stops the attacker. It is compiled from C at the start of the tests. Without a compiler, the same attacker
 * in Node replaces it, so that these tests always run.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export type Attack =
  | readonly ["exchange", a: string, b: string]
  | readonly ["bounce", a: string, b: string]
  | readonly ["recreate", directory: string, target: string, grave: string]
  | readonly ["flip", file: string, target: string, spare: string]

export type Engine = "c" | "node"

export interface Program {
  readonly engine: Engine
  readonly command: ReadonlyArray<string>
}

const source = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

export const inNode: Program = { engine: "node", command: [process.execPath, source("attacker.ts")] }

export const compile = (directory: string): Program => {
  const binary = join(directory, "attacker")
  const { error, status, stderr } = spawnSync("gcc", ["-O2", "-o", binary, source("attacker.c")], { encoding: "utf8" })
  if (error !== undefined) {
    console.log("no gcc: using the slower attacker in Node (apt-get install gcc libc6-dev)")
    return inNode
  }
  if (status !== 0) throw new Error(`attacker.c cannot be compiled: ${stderr}`)
  return { engine: "c", command: [binary] }
}

export interface Report {
  readonly swaps: number
  readonly failures: number
}

export interface Attacker {
  readonly swaps: () => number
  /** Stops the attacker and waits for its end. A second call does nothing more. */
  readonly stop: () => Promise<Report>
}

const ended = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let output = ""
    child.stdout!.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.on("error", reject)
    child.on("close", (code) =>
      code === 0 ? resolve(output) : reject(new Error(`the attacker ended with ${code}: ${output}`))
    )
  })

/** Starts an attacker and waits for its first swap. `gap` is the longest pause between two swaps, in nanoseconds. */
export const start = async ({ command, engine }: Program, attack: Attack, gap: number, counter: string): Promise<Attacker> => {
  Fs.writeFileSync(counter, new Uint8Array(8))
  const descriptor = Fs.openSync(counter, "r")
  const count = new BigUint64Array(1)
  const bytes = new Uint8Array(count.buffer)
  const swaps = (): number => {
    Fs.readSync(descriptor, bytes, 0, 8, 0)
    return Number(count[0])
  }
  const [file, ...args] = [...command, counter, String(gap), ...attack]
  const child = spawn(file!, args, { stdio: ["ignore", "pipe", "inherit"] })
  const end = ended(child)
  // Avoids an unhandled rejection after an early end; a later await still fails.
  end.catch(() => undefined)
  while (swaps() === 0) {
    if (child.exitCode !== null) throw new Error(`the attacker ended before its first swap: ${await end}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const stopped = async (): Promise<Report> => {
    Fs.rmSync(counter, { force: true })
    // The attacker in Node stops when the counter is gone, because a signal would leave names half exchanged.
    if (engine === "c") child.kill("SIGTERM")
    const output = await end
    Fs.closeSync(descriptor)
    return JSON.parse(output) as Report
  }
  let report: Promise<Report> | undefined
  return { swaps, stop: () => (report ??= stopped()) }
}
