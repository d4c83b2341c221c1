/**
 * Greps a directory several times at once and prints the counts. A separate program, because a process cannot raise its limits
 * again.
 */
import * as Effect from "effect/Effect"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"

const [root, times] = process.argv.slice(2)
const search = Effect.scoped(
  Effect.gen(function* () {
    const fs = make(yield* PosixHost.make({ root: root! }))
    const all = Array.from({ length: Number(times) }, () => fs.grep("foo", { maxMatches: Number.POSITIVE_INFINITY }))
    const results = yield* Effect.all(all, { concurrency: "unbounded" })
    return results.map(({ matches, skipped }) => [matches.length, skipped.unreadable])
  })
)
console.log(JSON.stringify(await Effect.runPromise(search)))
