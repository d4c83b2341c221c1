/** Writes without end into the directory it is given, to be killed. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { write } from "./posixHost.ts"

const content = (n: number, size: number) => new Uint8Array(size).fill(97 + (n % 26))

const program = Effect.gen(function* () {
  const port = yield* PosixHost.make({ root: process.argv[2]! })
  for (let n = 0; ; n++) {
    yield* write(port, "replaced", content(n, 2_000_000), "replace")
    const pieces = Array.from({ length: 20 }, () => content(n, 100_000))
    yield* write(port, "streamed", Stream.fromIterable(pieces).pipe(Stream.rechunk(3)), "replace")
    if (n === 0) process.stdout.write("ready\n")
    yield* write(port, `created${n}`, content(n, 300_000), "create")
  }
})

void Effect.runPromise(Effect.scoped(program))
