/**
 * A process of its own that finishes what another has left, says what it finds then, and exchanges two trees for one another until it
 * is killed, or twice. It writes a line of JSON for each thing that it has done.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fs from "node:fs"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { exchange, recover } from "../../src/history/exchange.ts"
import { goalOf, look, type Tree, unlike } from "./exchanging.ts"

export interface Orders {
  readonly root: string
  readonly trees: readonly [Tree, Tree]
  readonly what: "recover" | "loop" | "there and back"
  readonly user?: number
}

const say = (line: unknown): void => void Fs.writeSync(1, `${JSON.stringify(line)}\n`)

const become = (id: number): void => {
  process.setgroups!([])
  process.setgid!(id)
  process.setuid!(id)
}

export interface Recovered {
  readonly recovered: string
  /** How what is there then differs from the one and from the other. */
  readonly unlike: readonly [ReadonlyArray<string>, ReadonlyArray<string>]
}

const run = Effect.fnUntraced(function* ({ root, trees, what }: Orders) {
  const port = yield* PosixHost.make({ root })
  const recovered = yield* recover(port)
  const found = look(root)
  const answer: Recovered = { recovered, unlike: [unlike(found, trees[0]), unlike(found, trees[1])] }
  say(answer)
  if (what === "recover") return
  const [one, other] = answer.unlike[0].length === 0 ? trees : [trees[1], trees[0]]
  for (let turn = 0; what === "loop" || turn < 2; turn++) {
    const [before, after] = turn % 2 === 0 ? [one, other] : [other, one]
    yield* exchange(port, goalOf(before, after))
    say(what === "loop" ? turn : unlike(look(root), after))
  }
})

const orders = JSON.parse(Fs.readFileSync(0, "utf8")) as Orders
if (orders.user !== undefined) become(orders.user)
const exit = await Effect.runPromise(Effect.exit(Effect.scoped(run(orders))))
if (Exit.isFailure(exit)) say({ failed: JSON.stringify(exit.cause) })
