/** A process that writes a journal until it is killed, keeps one open, or puts contents. It prints each answer. */
import * as Effect from "effect/Effect"
import { flushCompileCache } from "node:module"
import { createInterface } from "node:readline"
import * as ContentStore from "../../src/journal/ContentStore.ts"
import { Entry, makeFile } from "../../src/journal/Journal.ts"
import { bytesOf, stat, write } from "./journalLaws.ts"

export type Orders =
  /**
   * Appends `<from>:<fiber>:<n>` from several fibers, alone or three at a time; prints `<position> <last id>` for each
   * answer.
   */
  | {
      readonly task: "append"
      readonly path: string
      readonly from: number
      readonly chained: boolean
      readonly fsync: boolean
    }
  /** Opens the journal, prints the result and waits. */
  | { readonly task: "open"; readonly path: string }
  /** Puts contents of these seeds and prints their hashes. */
  | { readonly task: "put"; readonly directory: string; readonly seeds: ReadonlyArray<number>; readonly size: number }

/** Prints a line, and waits if the reader is slow. */
const say = (text: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => void process.stdout.write(`${text}\n`, () => resume(Effect.void)))

const append = ({ chained, from, fsync, path }: Extract<Orders, { task: "append" }>) =>
  Effect.gen(function* () {
    const journal = yield* makeFile(Entry, { path, chained, fsync })
    const one = (id: string, n: number) => write(id, bytesOf(n % 11 === 0 ? 6_000 : n % 500, n))
    yield* Effect.forEach(
      [0, 1, 2, 3],
      (fiber) =>
        Effect.gen(function* () {
          for (let n = 0; ; n++) {
            const id = `${from}:${fiber}:${n}`
            const position =
              n % 3 === 0
                ? yield* journal.appendAll([one(`${id}-a`, n), one(`${id}-b`, 50_000 + n), one(`${id}-c`, n)])
                : yield* journal.append(one(id, n))
            yield* say(`${position} ${n % 3 === 0 ? `${id}-c` : id}`)
          }
        }),
      { concurrency: "unbounded", discard: true }
    )
  })

const open = ({ path }: Extract<Orders, { task: "open" }>) =>
  makeFile(Entry, { path }).pipe(
    Effect.flatMap((journal) => journal.append(stat(1))),
    Effect.matchEffect({ onSuccess: (position) => say(String(position)), onFailure: ({ reason }) => say(reason) }),
    Effect.andThen(Effect.never)
  )

const put = ({ directory, seeds, size }: Extract<Orders, { task: "put" }>) =>
  Effect.gen(function* () {
    const contents = yield* ContentStore.makeDirectory(directory)
    for (const seed of seeds) yield* say((yield* contents.put(bytesOf(size, seed))).sha256)
    yield* say("done")
  })

const work = (orders: Orders): Promise<void> => {
  const todo = orders.task === "append" ? append(orders) : orders.task === "open" ? open(orders) : put(orders)
  return Effect.runPromise(Effect.scoped(Effect.orDie(todo)))
}

const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
lines.once("line", (line) => void work(JSON.parse(line) as Orders))
flushCompileCache()
process.stdout.write("!")
