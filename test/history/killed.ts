/**
 * A process that recovers a root and reports the result. It then turns one tree into another and back, twice or until
 * it is killed. It prints each finished step as a line of JSON.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fs from "node:fs"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { runTransaction } from "../../src/history/transaction.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { Recovery } from "../../src/port/hostRoots.ts"
import { goalOf, look, oneByOne, type Tree, unlike } from "./transactionTrees.ts"
import { writeOut } from "../writeOut.ts"

export interface Orders {
  readonly root: string
  readonly trees: readonly [Tree, Tree]
  readonly what: "recover" | "loop" | "there and back"
  readonly user?: number
  /**
   * The number of the changing call, counted from one, before which the process kills itself. If absent, the parent kills the
   * process.
   */
  readonly call?: number
}

const say = (line: unknown): void => writeOut(`${JSON.stringify(line)}\n`)

const become = (id: number): void => {
  process.setgroups!([])
  process.setgid!(id)
  process.setuid!(id)
}

export interface Recovered {
  readonly recovered: string
  /** The differences between the current tree and each of the two trees. */
  readonly unlike: readonly [ReadonlyArray<string>, ReadonlyArray<string>]
}

const counting = (port: Backend, call: number | undefined): Backend => {
  let calls = 0
  const count = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      if (++calls === call) process.kill(process.pid, "SIGKILL")
      return work
    })
  const { attributes, links } = port
  return {
    ...port,
    write: <E, R>(...given: Parameters<typeof port.write<E, R>>) =>
      Effect.andThen(count(Effect.void), port.write<E, R>(...given)),
    makeDirectory: (path) => count(port.makeDirectory(path)),
    remove: (path) => count(port.remove(path)),
    rename: (from, to, how) => count(port.rename(from, to, how)),
    links: links && { ...links, make: (path, target) => count(links.make(path, target)) },
    attributes: attributes && { set: (path, values) => count(attributes.set(path, values)) },
    perform: oneByOne(port, count)
  }
}

const run = Effect.fnUntraced(function* ({ call, root, trees, what }: Orders) {
  let recovered = "none"
  const port = yield* Effect.provideService(PosixHost.make({ root }), Recovery, {
    permits: () => true,
    report: ({ outcome }) => Effect.sync(() => void (recovered = outcome))
  })
  const found = look(root)
  const answer: Recovered = { recovered, unlike: [unlike(found, trees[0]), unlike(found, trees[1])] }
  say(answer)
  if (what === "recover") return
  const [one, other] = answer.unlike[0].length === 0 ? trees : [trees[1], trees[0]]
  const counted = counting(port, call)
  const turns = what === "loop" ? Number.POSITIVE_INFINITY : 2
  for (let turn = 0; turn < turns; turn++) {
    const [before, after] = turn % 2 === 0 ? [one, other] : [other, one]
    yield* runTransaction(counted, goalOf(before, after))
    say(what === "loop" ? turn : unlike(look(root), after))
  }
})

const orders = JSON.parse(Fs.readFileSync(0, "utf8")) as Orders
if (orders.user !== undefined) become(orders.user)
const exit = await Effect.runPromise(Effect.exit(Effect.scoped(run(orders))))
if (Exit.isFailure(exit)) say({ failed: JSON.stringify(exit.cause) })
