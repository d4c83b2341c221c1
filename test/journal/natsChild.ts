/**
 * A process on a journal at a server: a leaf over a directory, a client of a leaf, or a writer.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { flushCompileCache } from "node:module"
import { createInterface } from "node:readline"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import { FileStat } from "../../src/journal/FileSystemEntry.ts"
import * as JetStream from "../../src/journal/JetStream.ts"
import { Entry } from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { writeOut } from "../writeOut.ts"

interface Place {
  readonly servers: string
  readonly name: string
}

export type Orders = Place &
  (
    | { readonly task: "leaf"; readonly directory: string }
    /** Appends the lines `<who> <n>`, from 1 to `count`, to a file and then prints "done". */
    | { readonly task: "call"; readonly who: string; readonly count: number }
    /**
     * Appends `<who>:<fiber>:<n>` from several fibers, alone or three at a time; prints `<position> <last id>` for each
     * answer.
     */
    | { readonly task: "append"; readonly who: string; readonly count: number }
  )

type Task<Name> = Extract<Orders, { readonly task: Name }>

const say = (text: string): void => writeOut(`${text}\n`)

const leaf = ({ directory, name, servers }: Task<"leaf">) =>
  Leaf.layer({ name: "leaf", extended: true }).pipe(
    Layer.provide(PosixHost.layer({ root: directory })),
    Layer.provide(JetStream.layer({ servers, name })),
    Layer.build,
    Effect.andThen(Effect.sync(() => say("serves"))),
    Effect.andThen(Effect.never)
  )

const call = ({ count, name, servers, who }: Task<"call">) =>
  Effect.gen(function* () {
    const fs = yield* Filesystem
    for (let n = 1; n <= count; n++) yield* fs.write("lines", `${who} ${n}\n`, { mode: "append" })
    say("done")
  }).pipe(Effect.provide(Layer.provide(Branch.layer({ extended: true }), JetStream.layer({ servers, name }))))

const append = ({ count, name, servers, who }: Task<"append">) =>
  Effect.gen(function* () {
    const journal = yield* JetStream.make(Entry, { servers, name })
    const one = (id: string) => new FileStat({ correlationId: id, path: "/a" })
    yield* Effect.forEach(
      [0, 1, 2],
      (fiber) =>
        Effect.gen(function* () {
          for (let n = 0; n < count; n++) {
            const id = `${who}:${fiber}:${n}`
            const position =
              n % 3 === 0
                ? yield* journal.appendAll([one(`${id}-a`), one(`${id}-b`), one(`${id}-c`)])
                : yield* journal.append(one(id))
            say(`${position} ${n % 3 === 0 ? `${id}-c` : id}`)
          }
        }),
      { concurrency: "unbounded", discard: true }
    )
    say("done")
  })

const work = (orders: Orders): Promise<void> => {
  const todo: Effect.Effect<void, unknown, Scope.Scope> =
    orders.task === "leaf" ? leaf(orders) : orders.task === "call" ? call(orders) : append(orders)
  return Effect.runPromise(Effect.scoped(Effect.orDie(todo)))
}

const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
lines.once("line", (line) => void work(JSON.parse(line) as Orders))
flushCompileCache()
process.stdout.write("!")
