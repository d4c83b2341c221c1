/** Uses up its descriptors, then prints the outcomes of the port's calls and the files in the given directory. */
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { bytes, p, write } from "./posixHost.ts"

const root = process.argv[2]!

const outcome = <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<unknown> =>
  Effect.match(effect, {
    onSuccess: () => "done",
    onFailure: (fault) => ({ _tag: fault._tag, code: fault["code"] })
  })

const program = Effect.gen(function* () {
  const port = yield* PosixHost.make({ root })
  for (const name of ["f", "g", "h"]) Fs.writeFileSync(join(root, name), name)
  // Load every lazily loaded module before the descriptors run out.
  yield* outcome(write(port, "g", bytes("g"), "replace"))
  yield* outcome(port.list(p(".")))
  const held: Array<number> = []
  try {
    for (;;) held.push(Fs.openSync("/dev/null", "r"))
  } catch {
    // No descriptor is left.
  }
  const scarce = {
    create: yield* outcome(write(port, "new", bytes("x"), "create")),
    replace: yield* outcome(write(port, "f", bytes("x"), "replace")),
    append: yield* outcome(write(port, "f", bytes("x"), "append")),
    open: yield* outcome(Effect.scoped(port.open(p("f")))),
    list: yield* outcome(port.list(p("."))),
    stat: yield* outcome(port.stat(p("f"))),
    rename: yield* outcome(port.rename(p("h"), p("i"), { replace: false })),
    remove: yield* outcome(port.remove(p("i")))
  }
  const recovering = Effect.sync(() => held.forEach((descriptor) => Fs.closeSync(descriptor)))
  const [recovered] = yield* Effect.all(
    [outcome(write(port, "f", bytes("f"), "replace")), Effect.andThen(Effect.sleep(10), recovering)],
    {
      concurrency: 2
    }
  )
  process.stdout.write(JSON.stringify({ ...scarce, recovered, left: Fs.readdirSync(root).sort() }))
})

void Effect.runPromise(Effect.scoped(program))
