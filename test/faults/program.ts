/**
 * A child process that loses rights or descriptors, or whose system calls fail. It runs operations of the table, one JSON
 * command a line, and prints their results.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { PosixHostOptions } from "../../src/backends/PosixHost.ts"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import { host, openBelow, plantAt } from "./ground.ts"
import { extra, extraMoves } from "./large.ts"
import { failure, type Failure, type Operation, operations } from "./operations.ts"

export type Command =
  /** Closes the current filesystem and opens one at this path. */
  | { readonly open: string; readonly options?: Partial<PosixHostOptions> }
  /** Switches to this user and drops all other rights. */
  | { readonly become: number }
  | { readonly run: string }
  /** Opens files until only this many descriptors are free. */
  | { readonly hoard: number }
  | { readonly release: true }
  | { readonly visit: ReadonlyArray<string> }
  | { readonly close: true }

export interface Answer {
  readonly failed?: Failure | undefined
  /** The files that the closed filesystem left open. */
  readonly left?: ReadonlyArray<string>
  readonly pid?: number
  /** The defect, if there was one. */
  readonly died?: string
}

const byName = new Map<string, Operation>([...operations, ...extra, ...extraMoves].map((self) => [self.name, self]))

let root = "/no/such/place"
let fs: Algebra
let scope = Scope.makeUnsafe()
const hoarded: Array<number> = []

/** Closes the filesystem. Returns and closes the files that it left open. */
const close = async (): Promise<ReadonlyArray<string>> => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  scope = Scope.makeUnsafe()
  return openBelow(root).map(({ at, descriptor }) => {
    Fs.closeSync(descriptor)
    return at
  })
}

const open = async (at: string, options?: Partial<PosixHostOptions>): Promise<ReadonlyArray<string>> => {
  const left = await close()
  root = at
  fs = await Effect.runPromise(Scope.provide(host(at, options), scope))
  return left
}

/** A path that the program looks up before and after an operation, to mark it in the list of system calls. */
export const marker = "/fs-algebra/marker"

const run = async (self: Operation): Promise<Answer> => {
  Fs.existsSync(marker)
  const failed = await Effect.runPromise(failure(self, fs))
  Fs.existsSync(marker)
  return { failed }
}

const visit = async (paths: ReadonlyArray<string>): Promise<Answer> => {
  const each = Effect.forEach(paths, (path) => Effect.andThen(fs.write(path, "x", { mode: "append" }), fs.readString(path)), {
    concurrency: 8,
    discard: true
  })
  await Effect.runPromise(each)
  return {}
}

const hoard = (spare: number): void => {
  try {
    for (;;) hoarded.push(Fs.openSync("/dev/null", "r"))
  } catch {
    for (let left = spare; left > 0; left--) Fs.closeSync(hoarded.pop()!)
  }
}

const become = (id: number): void => {
  process.setgroups!([])
  process.setgid!(id)
  process.setuid!(id)
}

const obey = async (command: Command): Promise<Answer> => {
  if ("open" in command) return { left: await open(command.open, command.options) }
  if ("run" in command) return run(byName.get(command.run)!)
  else if ("become" in command) become(command.become)
  else if ("visit" in command) return visit(command.visit)
  else if ("hoard" in command) hoard(command.hoard)
  else if ("release" in command) for (let fd = hoarded.pop(); fd !== undefined; fd = hoarded.pop()) Fs.closeSync(fd)
  else return { left: await close() }
  return {}
}

/** Loads all lazy modules and starts every thread of the pool before anything fails. */
const warmUp = async (): Promise<void> => {
  const at = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-warm-"))
  try {
    for (const self of [...operations, ...extra]) {
      Fs.rmSync(at, { recursive: true })
      Fs.mkdirSync(at)
      plantAt(at)
      await open(at, { durability: "full" })
      await run(self)
    }
    await close()
  } finally {
    Fs.rmSync(at, { recursive: true })
  }
}

/** Writes the answer, with retries, because this call may be made to fail too. */
const say = (answer: Answer): void => {
  const line = Buffer.from(`${JSON.stringify(answer)}\n`)
  for (let tries = 3; ; tries--) {
    try {
      Fs.writeSync(1, line)
      return
    } catch (error) {
      if (tries === 0) throw error
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await warmUp()
  say({ pid: process.pid })
  for await (const line of createInterface({ input: process.stdin })) {
    say(await obey(JSON.parse(line) as Command).catch((error: unknown): Answer => ({ died: String(error) })))
  }
}
