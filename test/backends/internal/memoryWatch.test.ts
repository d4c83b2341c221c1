import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { type FsPath, root } from "../../../src/model/FsPath.ts"
import * as Watchers from "../../../src/port/watchers.ts"

const at = (path: string) => path as FsPath

it.effect("the watchers of a memory tree are active only while a stream runs", () =>
  Effect.gen(function* () {
    const watchers = Watchers.make((path) => path)
    const stream = watchers.watch(root, Effect.void)
    assert.isFalse(watchers.isActive())
    const one = yield* Effect.forkChild(Stream.runCollect(Stream.take(stream, 1)), { startImmediately: true })
    const endless = yield* Effect.forkChild(Stream.runDrain(stream), { startImmediately: true })
    assert.isTrue(watchers.isActive())
    watchers.emit("Created", at("a"))
    assert.deepStrictEqual(yield* Fiber.join(one), [{ _tag: "Created", path: at("a") }])
    assert.isTrue(watchers.isActive())
    yield* Fiber.interrupt(endless)
    assert.isFalse(watchers.isActive())
  })
)

it.effect("a watch fails with NotFound if its directory is removed while the watch starts", () =>
  Effect.gen(function* () {
    const watchers = Watchers.make((path) => path)
    // Another fiber removes the directory as soon as the directory has been found.
    const checkAndRemove = Effect.sync(() => watchers.emit("Removed", at("d")))
    const fault = yield* Effect.flip(Stream.runDrain(watchers.watch(at("d"), checkAndRemove)))
    assert.strictEqual(fault._tag, "NotFound")
    assert.isFalse(watchers.isActive())
  })
)
