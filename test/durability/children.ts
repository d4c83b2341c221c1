/** Programs of ours in processes of their own. They start while others work, since that takes longer than most of what they do. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const made: Array<string> = []

/** A directory that goes with `clean`. */
export const scratch = (): string => {
  const path = Fs.mkdtempSync(join(Fs.realpathSync(tmpdir()), "fs-algebra-durability-"))
  made.push(path)
  return path
}

/** After all tests of a file. */
export const clean = (): void => {
  for (const path of made.splice(0)) Fs.rmSync(path, { recursive: true, force: true })
}

export interface Child {
  readonly process: ChildProcessWithoutNullStreams
  /** Until the program has said so often that it is where it should be. */
  readonly dots: (count: number) => Promise<void>
  /** Writes a line to its standard input. */
  readonly say: (line: unknown) => void
  /** Everything that it has written since `say`. */
  readonly said: () => string
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly errors: string }>
}

export const start = (program: string, cache: string): Child => {
  const child = spawn(process.execPath, [fileURLToPath(new URL(program, import.meta.url))], {
    // Twice as fast to start, once one has.
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
  // A program that was killed reads no more.
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
    // The first character says that it has started.
    dots: (count) => until(() => said.length >= count + 1),
    say: (line) => void child.stdin.write(`${JSON.stringify(line)}\n`),
    said: () => said.slice(1),
    ended
  }
}
