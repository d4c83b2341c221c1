/**
 * A process of its own that exchanges two trees for one another until it is killed, finishes what another has left, or does either as
 * somebody else. It writes a line of JSON for each thing that it has done.
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
  readonly what: "loop" | "recover" | "there and back"
  readonly user?: number
}

const say = (line: unknown): void => void Fs.writeSync(1, `${JSON.stringify(line)}\n`)

const become = (id: number): void => {
  process.setgroups!([])
  process.setgid!(id)
  process.setuid!(id)
}

const run = Effect.fnUntraced(function* ({ root, trees, what }: Orders) {
  const port = yield* PosixHost.make({ root })
  if (what === "recover") return say({ recovered: yield* recover(port) })
  const [one, other] = trees
  const first = unlike(look(root), one).length === 0
  const [from, to] = first ? [one, other] : [other, one]
  say("ready")
  for (let turn = 0; what === "loop" || turn < 2; turn++) {
    const [before, after] = turn % 2 === 0 ? [from, to] : [to, from]
    yield* exchange(port, goalOf(before, after))
    say(what === "loop" ? turn : unlike(look(root), after))
  }
})

const orders = JSON.parse(Fs.readFileSync(0, "utf8")) as Orders
if (orders.user !== undefined) become(orders.user)
const exit = await Effect.runPromise(Effect.exit(Effect.scoped(run(orders))))
if (Exit.isFailure(exit)) say({ failed: JSON.stringify(exit.cause) })
