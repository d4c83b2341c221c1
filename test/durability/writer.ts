/**
 * Changes a tree until it is killed. It writes each operation to a journal before it starts and again after it succeeds. A dot
 * on the standard output marks the start of an operation.
 */
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { flushCompileCache } from "node:module"
import { createInterface } from "node:readline"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { choose, type Dice, dice } from "./choice.ts"
import { apply, type Op, type Tree } from "./model.ts"
import { naively, perform } from "./perform.ts"
import { writeOut } from "../writeOut.ts"

export interface Orders {
  readonly root: string
  readonly journal: string
  readonly seed: number
  readonly durability: "none" | "file" | "full"
  readonly tree: ReadonlyArray<readonly [path: string, what: string]>
  /** The number of the first new content. */
  readonly id: number
  /** True to replace one large file only, with the library or in place. */
  readonly replacing?: "atomically" | "naively" | undefined
}

export interface Entry {
  readonly id: number
  readonly op?: Op
  readonly failed?: string
}

const replacement = (id: number): Op => ({ kind: "write", mode: "overwrite", how: "bytes", path: "f", id, size: 4_000_000 })

const work = (orders: Orders) =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    const random: Dice = dice(orders.seed)
    const journal = Fs.openSync(orders.journal, "a")
    const note = (entry: Entry): void => void Fs.writeSync(journal, `${JSON.stringify(entry)}\n`)
    let tree: Tree = new Map(orders.tree)
    for (let { id } = orders; ; id++) {
      const op = orders.replacing === undefined ? choose(tree, random, id) : replacement(id)
      note({ id, op })
      writeOut(".")
      const done = orders.replacing === "naively" ? naively(orders.root, op) : perform(fs, op)
      const failed = yield* Effect.match(done, { onSuccess: () => undefined, onFailure: String })
      note(failed === undefined ? { id } : { id, failed })
      if (failed !== undefined) return
      tree = apply(tree, op)
    }
  }).pipe(Effect.provide(PosixHost.layer({ root: orders.root, durability: orders.durability })))

// End when the parent process has ended.
const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
lines.once("line", (line) => void Effect.runPromise(work(JSON.parse(line) as Orders)))
// A killed process cannot flush the cache at its end.
flushCompileCache()
process.stdout.write("!")
