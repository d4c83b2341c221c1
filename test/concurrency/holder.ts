/**
 * Holds a claim for a test. If `what` is "hold", it prints `held`, waits for a line, writes that line to the file and
 * exits. If `what` is "tell", it prints the results of several writes.
 */
import * as Effect from "effect/Effect"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"

export interface Order {
  readonly what: "hold" | "tell"
  readonly root: string
  readonly path: string
  /** The user id to switch to. The process starts with the user of the test. */
  readonly user?: number
}

const { path, root, user, what } = JSON.parse(process.argv[2]!) as Order
if (user !== undefined) {
  process.setgroups!([user])
  process.setgid!(user)
  process.setuid!(user)
}

const line: Effect.Effect<string> = Effect.callback((resume) => {
  process.stdin.once("data", (text) => resume(Effect.succeed(text.toString().trimEnd())))
})

const say = (text: string): Effect.Effect<void> => Effect.sync(() => void process.stdout.write(`${text}\n`))

const told = <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<string> =>
  Effect.match(effect, { onSuccess: () => "success", onFailure: (error) => JSON.stringify(error) })

const program = Effect.gen(function* () {
  const port = yield* PosixHost.make({ root })
  const fs = make(port)
  if (what === "hold") {
    const written = Effect.andThen(
      say("held"),
      Effect.flatMap(line, (text) => fs.write(path, text))
    )
    yield* port.locks!.claim!(path as FsPath, written)
  } else {
    const ifMatch = yield* fs.version(path)
    const change = { oldText: "old", newText: "new" }
    yield* say(
      JSON.stringify([
        yield* told(fs.write(path, "new")),
        yield* told(fs.write(path, "new", { ifMatch })),
        yield* told(fs.edit(path, change)),
        yield* told(fs.delete(path)),
        yield* told(fs.delete(path, { ifMatch }))
      ])
    )
  }
  process.stdin.destroy()
})

void Effect.runPromise(Effect.scoped(program))
