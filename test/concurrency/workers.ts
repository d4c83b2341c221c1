/** Starts the processes of `worker.ts` at the same moment. Also defines their tasks and reports. */
import { afterAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { bundled } from "../bundled.ts"

/** The kind of filesystem through which a process reaches the shared directory. */
export type Way = "host" | "below" | "subdirectory" | "mount" | "caseless"

export interface Task {
  readonly what: "extend" | "edit" | "create" | "recreate"
  readonly way: Way
  readonly root: string
  /** The name of the process, which makes its written lines unique. */
  readonly name: string
  readonly fibers: number
  /** The number of successes of each fiber. */
  readonly rounds: number
}

/** The replaced version and the new version. `null` means that there is no file. */
export type Step = readonly [was: string | null, is: string | null]

export interface Report {
  readonly won: ReadonlyArray<Step>
  readonly conflicts: number
}

/** A disk in memory if possible, because these tests make and remove thousands of files. */
const memory = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const directories: Array<string> = []
const running = new Set<ChildProcess>()

const clear = (): void => {
  for (const child of running) child.kill("SIGKILL")
  for (const path of directories.splice(0)) Fs.rmSync(path, { recursive: true, force: true })
}

// `afterAll` cleans up normally, and `exit` if the test process is ended early.
afterAll(clear)
process.once("exit", clear)

/** Makes a directory that is removed after the tests of the file. */
export const scratch = (): string => {
  const path = Fs.mkdtempSync(join(Fs.realpathSync(memory), "fs-algebra-concurrency-"))
  directories.push(path)
  return path
}

/** A directory that is removed with its scope. */
export const scoped: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(Effect.sync(scratch), (path) =>
  Effect.sync(() => {
    directories.splice(directories.indexOf(path), 1)
    Fs.rmSync(path, { recursive: true, force: true })
  })
)

export interface Program {
  readonly process: ChildProcess
  readonly line: () => Promise<string>
  readonly say: (line: string) => void
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly errors: string }>
}

/** Starts a program of this directory, which is killed with the test process. */
export const start = (program: string, argument: unknown): Program => {
  const file = bundled(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [file, JSON.stringify(argument)], { stdio: "pipe" })
  running.add(child)
  let said = ""
  let errors = ""
  let hasEnded = false
  let look = (): void => undefined
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    said += more
    look()
  })
  child.stderr.setEncoding("utf8").on("data", (more: string) => (errors += more))
  child.stdin.on("error", () => undefined)
  const ended = new Promise<Awaited<Program["ended"]>>((resolve) =>
    child.once("close", (code, signal) => {
      running.delete(child)
      hasEnded = true
      look()
      resolve({ code, signal, errors })
    })
  )
  return {
    process: child,
    ended,
    say: (line) => void child.stdin.write(`${line}\n`),
    line: () =>
      new Promise((resolve, reject) => {
        look = () => {
          const end = said.indexOf("\n")
          if (end >= 0) {
            const line = said.slice(0, end)
            said = said.slice(end + 1)
            look = () => undefined
            resolve(line)
          } else if (hasEnded) reject(new Error(`the program ended: ${errors}`))
        }
        look()
      })
  }
}

/** Runs each task in a process of its own, all at the same time. */
export const together = async (tasks: ReadonlyArray<Task>): Promise<ReadonlyArray<Report>> => {
  const programs = tasks.map((task) => start("./worker.ts", task))
  await Promise.all(programs.map((program) => program.line()))
  for (const program of programs) program.say("go")
  const reports = await Promise.all(programs.map(async (program) => JSON.parse(await program.line()) as Report))
  await Promise.all(programs.map((program) => program.ended))
  return reports
}
