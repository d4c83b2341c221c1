/** Starts the test programs as child processes. Start a program early, because starting takes longer than most of its work. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundled } from "../bundled.ts"

const made: Array<string> = []

/** Makes a directory that `clean` removes. */
export const scratch = (): string => {
  const path = Fs.mkdtempSync(join(Fs.realpathSync(tmpdir()), "fs-algebra-durability-"))
  made.push(path)
  return path
}

/** Removes the scratch directories. Call it after all tests of a file. */
export const clean = (): void => {
  for (const path of made.splice(0)) Fs.rmSync(path, { recursive: true, force: true })
}

export interface Child {
  readonly process: ChildProcessWithoutNullStreams
  /** Waits until the program has written `count` dots, or has ended. */
  readonly dots: (count: number) => Promise<void>
  readonly say: (line: unknown) => void
  readonly said: () => string
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly errors: string }>
}

/** Starts a program from its bundle, or from its source if one of its libraries breaks in a bundle. */
export const start = (program: string, cache: string, isBundled = true): Child => {
  const source = new URL(program, import.meta.url)
  const child = spawn(process.execPath, [isBundled ? bundled(source) : fileURLToPath(source)], {
    // The compile cache halves the start time of every process after the first.
    env: { ...process.env, NODE_COMPILE_CACHE: cache }
  })
  let said = ""
  let errors = ""
  let hasEnded = false
  const waiting = new Set<() => void>()
  const heard = (): void => waiting.forEach((look) => look())
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    said += more
    heard()
  })
  child.stderr.setEncoding("utf8").on("data", (more: string) => (errors += more))
  // A killed program no longer reads its input.
  child.stdin.on("error", () => undefined)
  const ended = new Promise<Awaited<Child["ended"]>>((resolve) =>
    child.once("close", (code, signal) => {
      hasEnded = true
      resolve({ code, signal, errors })
      heard()
    })
  )
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!hasEnded && !holds()) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })
  return {
    process: child,
    // The first character is the start mark.
    dots: (count) => until(() => said.length >= count + 1),
    say: (line) => void child.stdin.write(`${JSON.stringify(line)}\n`),
    said: () => said.slice(1),
    ended
  }
}
