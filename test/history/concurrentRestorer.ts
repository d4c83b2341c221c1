/** A process that reads commands (snapshot, restore, collect) as lines of JSON and answers each command with a line. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { createInterface } from "node:readline"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { writeOut } from "../writeOut.ts"

export interface Order {
  readonly restore?: string
  readonly take?: number
  readonly collect?: true
}

const [root, gitDir] = process.argv.slice(2) as [string, string]
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(Snapshots.FilesystemSnapshot)))
const layer = Snapshots.layerGit({ gitDir }).pipe(Layer.provide(PosixHost.layer({ root })))

const obey = Effect.fnUntraced(function* (snapshots: Snapshots.Operations, { collect, restore, take }: Order) {
  if (restore !== undefined) yield* snapshots.restore(yield* decode(restore))
  for (let i = 0; i < (take ?? 0); i++) yield* snapshots.snapshot()
  if (collect === true) yield* snapshots.collect
})

const say = (line: unknown): void => writeOut(`${JSON.stringify(line)}\n`)

const program = Effect.gen(function* () {
  const snapshots = yield* Snapshots.Snapshots
  say("ready")
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  for (;;) {
    const next = yield* Effect.promise(() => lines.next())
    if (next.done === true) return
    const exit = yield* Effect.exit(obey(snapshots, JSON.parse(next.value) as Order))
    say(Exit.isSuccess(exit) ? "done" : { failed: JSON.stringify(exit.cause) })
  }
})

await Effect.runPromise(Effect.provide(program, layer))
