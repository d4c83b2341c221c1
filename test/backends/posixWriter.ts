/**
 * Writes into the given directory until it is killed. Imports only modules of the port, which load in a third of the time
 * of the whole service.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { replaceFile } from "../../src/backends/posix/write.ts"
import type { Confined } from "../../src/backends/posix/place.ts"
import { open } from "../../src/backends/posix/confinement.ts"
import type { FsPath } from "../../src/model/FsPath.ts"

const confined = open(process.argv[2]!) as Confined

const content = (n: number, size: number) => new Uint8Array(size).fill(97 + (n % 26))

const program = Effect.gen(function* () {
  for (let n = 0; ; n++) {
    yield* replaceFile<never, never>(confined, "replaced" as FsPath, content(n, 2_000_000), "replace", "none", undefined)
    const pieces = Array.from({ length: 20 }, () => content(n, 100_000))
    const stream = Stream.rechunk(Stream.fromIterable(pieces), 3)
    yield* replaceFile(confined, "streamed" as FsPath, stream, "replace", "none", undefined)
    if (n === 0) process.stdout.write("ready\n")
    yield* replaceFile<never, never>(confined, `created${n}` as FsPath, content(n, 300_000), "create", "none", undefined)
  }
})

void Effect.runPromise(program)
