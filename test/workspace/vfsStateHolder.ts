/**
 * Holds a filesystem of a session until it is killed: `node vfsStateHolder.ts DIRECTORY`. Prints the directory once it
 * exists.
 */
import * as Effect from "effect/Effect"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"

const [directory = ""] = process.argv.slice(2)

// Effect alone does not keep a process alive.
setInterval(() => {}, 60_000)
await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* Session.make()
      const { filesystem, rootPath } = yield* VfsState.make({ session, directory })
      yield* filesystem.write("held/file", "x")
      yield* session.snapshot("one")
      process.stdout.write(`${yield* rootPath}\n`)
      return yield* Effect.never
    })
  )
)
