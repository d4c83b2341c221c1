/** A process that runs one operation on a workspace, and kills itself by SIGKILL at one call of the store. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { flushCompileCache } from "node:module"
import { createInterface } from "node:readline"
import type { Orders } from "./killed.ts"
import { perform } from "./killedOperations.ts"
import { layerOf } from "./stores/places.ts"

const kill = Effect.sync(() => void process.kill(process.pid, "SIGKILL"))
const say = (text: string) => Effect.callback<void>((resume) => void process.stdout.write(text, () => resume(Effect.void)))

const obey = ({ moment, nth, operation, place, workspace }: Orders) =>
  Effect.gen(function* () {
    const stores = yield* Layer.build(layerOf(place))
    yield* perform(operation, stores, workspace, nth, moment, kill)
    yield* say("done\n")
  }).pipe(Effect.scoped)

const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
lines.once("line", (line) => void Effect.runPromise(Effect.orDie(obey(JSON.parse(line) as Orders))).then(() => process.exit()))
flushCompileCache()
process.stdout.write("!")
