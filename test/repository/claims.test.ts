/** Tests calls on two workspaces. A file that a check has read in one workspace must not count as read in the other. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import { Filesystem, Overlay, Repository, Stores } from "../../src/index.ts"
import * as Tapped from "./tapped.ts"

const open = (workspace: string) =>
  Effect.map(Layer.build(Layer.provide(Repository.layer({ workspace }), Stores.layerMemory)), (services) =>
    Context.get(services, Filesystem.Filesystem)
  )

describe("an overlay over two workspaces", () => {
  it.live("edits a file of the lower workspace, and a file that is in both", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const lower = yield* open("lower")
        const upper = yield* open("upper")
        yield* lower.write("a", "old")
        yield* lower.write("both", "below")
        yield* upper.write("both", "above")
        const fs = Overlay.overlay(upper)(lower)
        yield* fs.edit("a", { oldText: "old", newText: "new" })
        const version = yield* fs.version("both")
        yield* fs.write("both", "newer", { ifMatch: version })
        assert.strictEqual(yield* fs.readString("a"), "new")
        assert.strictEqual(yield* fs.readString("both"), "newer")
        assert.strictEqual(yield* lower.readString("a"), "old")
      })
    )
  )

  it.live("does not let a read in one workspace set the precondition of a claim on the same path in another workspace", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const one = yield* open("one")
        const other = yield* open("other")
        yield* one.write("a", "one")
        yield* other.write("a", "other")
        const claim = one.port.locks!.claim!
        const path = (yield* one.stat("a")).path
        yield* claim(path, Effect.andThen(other.port.stat(path), one.write("a", "new")))
        assert.strictEqual(yield* one.readString("a"), "new")
      })
    )
  )
})

describe("a layer that does not know the newest head", () => {
  const text = (content: string) => Stream.make(new TextEncoder().encode(content))
  const changes: Readonly<Record<string, (fs: Algebra, ifMatch: string) => Effect.Effect<unknown, unknown>>> = {
    write: (fs, ifMatch) => fs.write("a", "x", { ifMatch }),
    append: (fs, ifMatch) => fs.write("a", "x", { ifMatch, mode: "append" }),
    sink: (fs, ifMatch) => Stream.run(text("x"), fs.sink("a", { ifMatch })),
    edit: (fs, ifMatch) => fs.edit("a", { oldText: "new", newText: "x" }, { ifMatch }),
    delete: (fs, ifMatch) => fs.delete("a", { ifMatch })
  }
  for (const before of [undefined, "old"]) {
    for (const [name, change] of Object.entries(changes)) {
      it.live(
        `checks the precondition of ${name} with the newest head, if it knows ${before === undefined ? "no file" : "an old file"}`,
        () =>
          Effect.gen(function* () {
            const stores = yield* Tapped.memory
            let reads = 0
            const counted = Tapped.tapped(
              stores,
              (step, call) => {
                if (step === "getHead") reads++
                return call
              },
              false
            )
            if (before !== undefined)
              yield* Effect.scoped(Effect.flatMap(Tapped.open(stores), ({ fs }) => fs.write("a", before)))
            const late = yield* Tapped.open(counted)
            const { fs } = yield* Tapped.open(stores)
            yield* fs.write("a", "new")
            const version = yield* fs.version("a")
            assert.strictEqual(yield* Effect.orElseSucceed(late.fs.readString("a"), () => undefined), before)
            yield* change(late.fs, version)
            const { a } = yield* Tapped.stored(stores)
            assert.strictEqual(a, { append: "newx", delete: undefined }[name] ?? (name === "delete" ? undefined : "x"))

            yield* fs.write("a", "newer")
            reads = 0
            const refused = (yield* Effect.flip(change(late.fs, version))) as { readonly _tag: string }
            assert.strictEqual(refused._tag, "Conflict")
            assert.isAtMost(reads, 2)
            assert.strictEqual((yield* Tapped.stored(stores))["a"], "newer")
          })
      )
    }
  }
})
