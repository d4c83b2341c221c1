/**
 * A layer is closed while its filesystem is in use. Running calls end, and none uses a descriptor number that now belongs to
 * another file.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { before, changing, large, readings } from "./cases.ts"
import { descriptorsIn, guard, onDisk, plantOnDisk, type Picture, real, temporary } from "./harness.ts"
import { isSoak } from "../runs.ts"

const opened = (root: string) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(PosixHost.layer({ root }), scope)
    const fs = yield* Effect.provide(Filesystem, context)
    return { fs, close: Scope.close(scope, Exit.void) }
  })

const planted = Effect.tap(temporary, (root) => Effect.sync(() => plantOnDisk(root, before)))

/** A directory that no call may touch, with a way to open its files on freed descriptor numbers. */
const bystander = Effect.gen(function* () {
  const top = yield* temporary
  const secret = "what nobody asked for"
  for (let i = 0; i < 50; i++) real.writeFileSync(join(top, `f${i}`), secret)
  const untouched: Picture = onDisk(top)
  const held: Array<number> = []
  /** Opens more files than there are free numbers, so that a call with a stale number hits one of them. */
  const take = () => {
    for (let i = 0; i < 200; i++) {
      held.push(real.openSync(i % 4 === 0 ? top : join(top, `f${i % 50}`), i % 4 === 0 ? "r" : "r+"))
    }
  }
  const release = Effect.sync(() => held.splice(0).forEach((descriptor) => real.closeSync(descriptor)))
  yield* Effect.addFinalizer(() => release)
  return { secret, take, release, untouched, look: () => onDisk(top) }
})

const operations: ReadonlyArray<(fs: Algebra, i: number) => Effect.Effect<unknown, { readonly _tag: string }>> = [
  (fs, i) => fs.write(`w/${i}`, large),
  (fs, i) => fs.write(`v/${i}/deep/er`, "small", { mode: "create" }),
  (fs) => fs.write("log", `${"x".repeat(99)}\n`, { mode: "append" }),
  (fs, i) => Stream.run(Stream.make(new Uint8Array(70_000).fill(120), new Uint8Array(70_000).fill(121)), fs.sink(`s/${i}`)),
  (fs) => fs.readBytes("big"),
  (fs) => fs.readString("d/e/h"),
  (fs) => Stream.runDrain(fs.stream("big", { chunkSize: 1000 })),
  (fs) => Stream.runDrain(fs.walk(".", { sizes: true })),
  (fs) => fs.grep("needle"),
  (fs, i) => fs.copy("d", `c/${i}`),
  (fs, i) => Effect.andThen(fs.copy("big", `m/${i}`), fs.move(`m/${i}`, `moved/${i}`)),
  (fs, i) => Effect.andThen(fs.mkdir(`r/${i}/a/b`), fs.delete(`r/${i}`, { recursive: true })),
  (fs, i) => Effect.andThen(fs.symlink(`l${i}`, "a"), fs.readLink(`l${i}`)),
  (fs) => fs.setAttributes("a", { mode: 0o644 }),
  (fs) => fs.edit("x.txt", { oldText: "hay", newText: "hay", match: "all" }, { dryRun: true })
]

/** Asserts that every file is complete. */
const isWhole = (found: Picture, what: string): void => {
  const contents = new Set([
    `644 ${large}`,
    "644 small",
    "644 old",
    "644 one",
    "644 two",
    "644 needle\nhay\nneedle\n",
    `644 ${"x".repeat(70_000)}${"y".repeat(70_000)}`
  ])
  for (const [path, content] of Object.entries(found)) {
    assert.isFalse(path.includes(".~fsa-"), `${what}: ${path} is left`)
    if (path === "log") assert.match(content, /^644 (x{99}\n)*$/, what)
    else if (content !== "directory" && !content.startsWith("-> "))
      assert.isTrue(contents.has(content), `${what}: ${path} is torn`)
  }
}

describe("closing a layer with 1,000 running calls", () => {
  const rounds = isSoak ? Array.from({ length: 60 }, (_, i) => i * i) : [0, 2, 20]
  for (const turns of rounds) {
    it.live(
      `after ${turns} turns of the event loop ends each call normally or with Unavailable, and leaves no descriptor`,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const root = yield* planted
            const other = yield* bystander
            const { close, fs } = yield* opened(root)
            const fibers = Array.from({ length: 1000 }, (_, i) =>
              Effect.runFork(operations[i % operations.length]!(fs, i) as Effect.Effect<unknown, { readonly _tag: string }>)
            )
            for (let turn = 0; turn < turns; turn++)
              yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
            // Even if closing waits for running calls, freed descriptor numbers get new owners afterwards.
            yield* guard("closing never ended", close)
            other.take()
            const exits = yield* guard(
              "a call never ended",
              Effect.forEach(fibers, (fiber) => Fiber.await(fiber))
            )
            const tags: Record<string, number> = {}
            for (const exit of exits) {
              if (Exit.isSuccess(exit)) continue
              const failure = exit.cause.reasons[0]!
              const tag = failure._tag === "Fail" ? failure.error._tag : failure._tag
              tags[tag] = (tags[tag] ?? 0) + 1
            }
            assert.deepStrictEqual(
              Object.keys(tags).filter((tag) => tag !== "Unavailable"),
              [],
              JSON.stringify(tags)
            )
            yield* other.release
            assert.deepStrictEqual(descriptorsIn(root), [])
            assert.deepStrictEqual(other.look(), other.untouched)
            for (const exit of exits) {
              if (!Exit.isSuccess(exit) || typeof exit.value !== "string") continue
              assert.notInclude(exit.value, other.secret)
            }
            isWhole(onDisk(root), `after ${turns} turns`)
          })
        )
    )
  }
})

describe("after the layer is closed", () => {
  for (const self of [...changing, ...readings].filter(({ name }) => name !== "sink")) {
    it.live(`${self.name} fails with Unavailable and touches nothing`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = yield* planted
          const { close, fs } = yield* opened(root)
          yield* fs.list("d")
          yield* fs.read("d/f")
          yield* close
          const before = onDisk(root)
          const other = yield* bystander
          other.take()
          const error = yield* Effect.flip(guard("it never ended", self.run(fs))) as Effect.Effect<{ readonly _tag: string }>
          assert.strictEqual(error._tag, "Unavailable")
          yield* other.release
          assert.deepStrictEqual(onDisk(root), before)
          assert.deepStrictEqual(other.look(), other.untouched)
          assert.deepStrictEqual(descriptorsIn(root), [])
        })
      )
    )
  }

  it.live("an open handle reads the rest of its own file or fails, and never reads another file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* planted
        const other = yield* bystander
        const { close, fs } = yield* opened(root)
        const scope = yield* Scope.make()
        const handle = yield* Scope.provide(fs.port.open("big" as never), scope)
        const first = yield* handle.read(0, 16)
        yield* close
        other.take()
        const later = yield* Effect.exit(handle.read(16, 100_000))
        if (Exit.isSuccess(later)) assert.strictEqual(Buffer.from(later.value).toString(), large.slice(16, 100_016))
        assert.strictEqual(Buffer.from(first).toString(), large.slice(0, 16))
        yield* Scope.close(scope, Exit.void)
        yield* other.release
        assert.deepStrictEqual(descriptorsIn(root), [])
        const closed = yield* Effect.exit(handle.read(0, 16))
        assert.isTrue(Exit.isFailure(closed))
      })
    )
  )

  it.live("an open watch fails", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* planted
        const { close, fs } = yield* opened(root)
        const watch = Effect.runFork(Effect.exit(Stream.runDrain(fs.watch("d"))))
        // The watch has begun when it reports a change.
        const seen = Effect.runFork(Stream.runHead(fs.watch("p")))
        for (let i = 0; seen.pollUnsafe() === undefined; i++) {
          yield* fs.write("p/w", `${i}`)
          yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
        }
        yield* close
        const exit = yield* guard("the watch goes on without a filesystem", Fiber.join(watch))
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(descriptorsIn(root), [])
      })
    )
  )

  it.live("a sink that was writing has kept the old file and left no temporary file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* planted
        const { close, fs } = yield* opened(root)
        const staged = onDisk(root)
        const slow = Stream.concat(
          Stream.make(new Uint8Array(100_000)),
          Stream.unwrap(Effect.as(close, Stream.make(new Uint8Array(100_000))))
        )
        const error = yield* Effect.flip(guard("it never ended", Stream.run(slow, fs.sink("a"))))
        assert.strictEqual((error as { readonly _tag: string })._tag, "Unavailable")
        assert.deepStrictEqual(onDisk(root), staged)
        assert.deepStrictEqual(descriptorsIn(root), [])
      })
    )
  )
})
