/**
 * Performs a list of operations. Before each one it looks up a marker path, which separates the operations in the output of
 * strace.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"

const [root, durability] = process.argv.slice(2) as [string, "none" | "file" | "full"]
const bytes = (size: number): Uint8Array => new Uint8Array(size).fill(120)

const program = Effect.gen(function* () {
  const fs = yield* Filesystem.Filesystem
  const operations: Record<string, Effect.Effect<unknown, unknown>> = {
    replace: fs.writeBytes("d/f", bytes(10)),
    large: fs.writeBytes("d/f", bytes(3_000_000)),
    create: fs.writeBytes("d/created", bytes(10), { mode: "create" }),
    sink: Stream.run(Stream.make(bytes(10), bytes(200_000)), fs.sink("d/sunk")),
    through: fs.writeBytes("link", bytes(10)),
    edit: fs.edit("d/text", { oldText: "old", newText: "new" }),
    guarded: Effect.flatMap(fs.version("d/text"), (ifMatch) => fs.write("d/text", "guarded", { ifMatch })),
    append: fs.writeBytes("d/f", bytes(10), { mode: "append" }),
    appendLarge: fs.writeBytes("d/f", bytes(1_000_000), { mode: "append" }),
    appendNew: fs.writeBytes("d/appended", bytes(10), { mode: "append" }),
    appendSink: Stream.run(Stream.make(bytes(10)), fs.sink("d/f", { mode: "append" })),
    appendNewSink: Stream.run(Stream.make(bytes(10)), fs.sink("d/appended2", { mode: "append" })),
    parents: fs.writeBytes("p/q/f", bytes(10)),
    mkdir: fs.mkdir("m/n"),
    symlink: fs.symlink("d/link", "f"),
    move: fs.move("d/f", "e/f"),
    moveOver: fs.move("e/f", "d/sunk", { overwrite: true }),
    moveDirectory: fs.move("p", "e/p"),
    copy: fs.copy("d/text", "e/text"),
    copyTree: fs.copy("d", "copy"),
    copyOverLink: fs.copy("d/text", "d/link", { overwrite: true }),
    remove: fs.delete("d/created"),
    removeTree: fs.delete("e", { recursive: true })
  }
  for (const [name, operation] of Object.entries(operations)) {
    Fs.existsSync(`/fs-algebra-mark/${name}`)
    yield* operation
  }
  Fs.existsSync("/fs-algebra-mark/end")
}).pipe(Effect.provide(PosixHost.layer({ root, durability })))

await Effect.runPromise(program)
