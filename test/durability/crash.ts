/**
 * Performs one operation and kills itself right before the n-th call that changes the disk. Exits normally if the operation
 * makes fewer calls.
 */
import * as Effect from "effect/Effect"
import fs from "node:fs"
import { flushCompileCache, syncBuiltinESMExports } from "node:module"
import { createInterface } from "node:readline"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import type { Op } from "./model.ts"
import { perform } from "./perform.ts"

export interface CrashOrders {
  readonly root: string
  readonly op: Op
  /** The number of the call, from 1. */
  readonly call: number
}

const changing = [
  "open",
  "write",
  "writev",
  "fsync",
  "fdatasync",
  "fchmod",
  "fchown",
  "ftruncate",
  "chmod",
  "copyFile"
] as const
const renaming = ["rename", "link", "unlink", "mkdir", "rmdir", "symlink", "rm"] as const

const changes = (name: string, args: ReadonlyArray<unknown>): boolean =>
  name !== "open" || (typeof args[1] === "number" && (args[1] & (fs.constants.O_CREAT | fs.constants.O_TRUNC)) !== 0)

const dieBefore = (call: number): void => {
  let calls = 0
  const functions = fs as unknown as Record<string, (...args: ReadonlyArray<unknown>) => unknown>
  for (const name of [...changing, ...renaming]) {
    for (const variant of [name, `${name}Sync`]) {
      const original = functions[variant]!
      functions[variant] = (...args) => {
        if (changes(name, args) && ++calls === call) process.kill(process.pid, "SIGKILL")
        return original(...args)
      }
    }
  }
  syncBuiltinESMExports()
}

const work = ({ call, op, root }: CrashOrders) =>
  Effect.gen(function* () {
    const filesystem = yield* Filesystem.Filesystem
    dieBefore(call)
    yield* perform(filesystem, op)
  }).pipe(Effect.provide(PosixHost.layer({ root, durability: "full" })))

const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
lines.once("line", (line) => {
  void Effect.runPromise(work(JSON.parse(line) as CrashOrders)).then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
      process.exit(1)
    }
  )
})
flushCompileCache()
process.stdout.write("!")
