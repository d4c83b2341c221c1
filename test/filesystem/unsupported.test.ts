/** Tests changes that a backend does not support. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { unsupported } from "../../src/model/Fault.ts"
import { type Backend, portable } from "../../src/port/Backend.ts"

const feature = "replacing a file atomically"

/** A tree in memory that cannot replace files. */
const creating = Effect.map(InMemory.make({ tree: { a: "one", b: "two" } }), (memory): Backend => {
  const port = portable(memory)
  return {
    ...port,
    write: (path, bytes, mode, how) =>
      mode === "create" ? port.write(path, bytes, mode, how) : Effect.fail(unsupported(feature)),
    rename: (from, to, options) => (options.replace ? Effect.fail(unsupported(feature)) : port.rename(from, to, options))
  }
})

it.effect("a change that a backend does not support fails with Unsupported", () =>
  Effect.gen(function* () {
    const fs = make(yield* creating)
    const changes: ReadonlyArray<readonly [string, Effect.Effect<unknown, { readonly _tag: string }>]> = [
      ["write", fs.write("a", "three")],
      ["writeBytes", fs.writeBytes("a", new Uint8Array(3))],
      ["sink", Stream.run(Stream.make(new Uint8Array(3)), fs.sink("a"))],
      ["edit", fs.edit("a", { oldText: "one", newText: "three" })],
      ["copy", fs.copy("b", "a", { overwrite: true })],
      ["move", fs.move("b", "a", { overwrite: true })]
    ]
    for (const [operation, change] of changes) {
      assert.deepInclude<object>(yield* Effect.flip(change), { _tag: "Unsupported", operation, feature })
    }
    assert.strictEqual(yield* fs.readString("a"), "one")
    assert.strictEqual(yield* fs.readString("b"), "two")
  })
)

it.effect("a copy of a symlink to a backend without symlinks fails with Unsupported", () =>
  Effect.gen(function* () {
    const port = portable(yield* InMemory.make({ tree: { a: "one" } }))
    yield* port.links!.make("l" as never, "a")
    const { links, ...others } = port
    const fs = make({ ...others, rules: { symlinks: "report" } })
    assert.isDefined(links)
    assert.deepInclude<object>(yield* Effect.flip(fs.copy("l", "m")), { _tag: "Unsupported", feature: "symbolic links" })
  })
)
