/** The program of each of several processes that work on the same files, and the result that it reports. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { flushCompileCache } from "node:module"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { identify, record } from "./content.ts"
import type { Op } from "./model.ts"
import { perform } from "./perform.ts"

export interface Part {
  readonly root: string
  readonly role: "create" | "append" | "replace" | "read" | "readPlainly" | "hold"
  readonly how: "bytes" | "stream"
  /** The number of the first content that this process writes. */
  readonly id: number
  /** One operation for each size. `read` repeats until the standard input closes; `hold` keeps its one sink open until then. */
  readonly sizes: ReadonlyArray<number>
}

export interface Outcome {
  /** The paths of the successful writes. For `create` these are the names that this process created. */
  readonly won: ReadonlyArray<string>
  readonly done: number
  /** The errors and contents that must not occur. */
  readonly wrong: ReadonlyArray<string>
}

const over = new AbortController()
const end = new Promise((resolve) => over.signal.addEventListener("abort", resolve))

/** Emits half of the bytes and a dot at once, and the other half after the standard input closes. */
const held = (bytes: Uint8Array): Stream.Stream<Uint8Array> =>
  Stream.concat(
    Stream.make(bytes.subarray(0, bytes.length >> 1)),
    Stream.fromEffect(
      Effect.promise(() => {
        process.stdout.write(".")
        return end.then(() => bytes.subarray(bytes.length >> 1))
      })
    )
  )

const take = (part: Part) =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    const won: Array<string> = []
    const wrong: Array<string> = []
    let done = 0

    const write = (op: Op) =>
      Effect.match(perform(fs, op), {
        onSuccess: () => "done",
        onFailure: (error) => (error as { readonly _tag: string })._tag
      })
    const readings = {
      read: Effect.map(fs.readBytes("f"), ({ content }) => Buffer.from(content)),
      readPlainly: Effect.sync(() => Fs.readFileSync(join(part.root, "f")))
    }

    if (part.role === "read" || part.role === "readPlainly") {
      const read = readings[part.role]
      while (!over.signal.aborted) {
        const found = yield* Effect.match(Effect.sandbox(read), { onSuccess: (bytes) => identify(bytes), onFailure: String })
        if (!/^file \d+$/.test(found)) wrong.push(found)
        done++
        // Let the event loop notice the end of the standard input.
        yield* Effect.promise(() => new Promise(setImmediate))
      }
      return { won, done, wrong } satisfies Outcome
    }
    if (part.role === "hold") {
      yield* Stream.run(Stream.rechunk(held(record(part.id, part.sizes[0]!)), 1), fs.sink("f"))
      return { won, done: 1, wrong } satisfies Outcome
    }
    const mode = part.role === "replace" ? "overwrite" : part.role
    for (const [n, size] of part.sizes.entries()) {
      const path = part.role === "create" ? `name${n}` : "f"
      const said = yield* write({ kind: "write", how: part.how, mode, path, id: part.id + n, size })
      if (said === "done") won.push(path)
      else if (part.role !== "create" || said !== "AlreadyExists") wrong.push(said)
      done++
    }
    return { won, done, wrong } satisfies Outcome
  }).pipe(Effect.provide(PosixHost.layer({ root: part.root })))

const lines = createInterface({ input: process.stdin }).on("close", () => over.abort())
lines.once("line", (line) => {
  void Effect.runPromise(take(JSON.parse(line) as Part)).then((outcome) => process.stdout.write(JSON.stringify(outcome)))
})
flushCompileCache()
process.stdout.write("!")
