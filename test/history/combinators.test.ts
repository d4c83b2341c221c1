import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { makeCaseInsensitive } from "../../src/filesystem/caseless.ts"
import * as Decorator from "../../src/filesystem/Decorator.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Mounts from "../../src/filesystem/Mounts.ts"
import * as Overlay from "../../src/filesystem/Overlay.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import { root } from "../../src/model/FsPath.ts"
import { portable } from "../../src/port/Backend.ts"
import type { DirectoryHistory, MemoryHistory } from "../../src/port/history.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { directory } from "../backends/posixHost.ts"

type Algebra = Filesystem.Algebra
type Combinator = (self: Algebra) => Effect.Effect<Algebra, unknown>

const another = Effect.map(InMemory.make({ tree: { of: { another: "" } } }), Filesystem.make)
const plain =
  (f: (self: Algebra) => Algebra): Combinator =>
  (self) =>
    Effect.sync(() => f(self))

/**
 * Combinators that show the same whole tree keep its history. Combinators that show another tree, or only a part, drop the
 * history.
 */
const combinators: Readonly<Record<string, readonly [history: "kept" | "dropped", combinator: Combinator]>> = {
  traced: ["kept", plain(Decorator.traced)],
  retry: ["kept", plain(Decorator.retry({ times: 1 }))],
  portable: ["kept", plain(({ port }) => Filesystem.make(portable(port)))],
  readOnly: ["dropped", plain(Decorator.readOnly)],
  subdirectory: ["dropped", Decorator.subdirectory("d")],
  quota: ["dropped", Decorator.quota({ maxFiles: 10 })],
  mount: ["dropped", (self) => Effect.flatMap(another, (other) => Mounts.mount("d", other)(self))],
  overlay: ["dropped", (self) => Effect.map(another, (other) => Overlay.overlay(other)(self))],
  caseless: ["dropped", plain(({ port }) => Filesystem.make(makeCaseInsensitive(port)))],
  faulty: ["dropped", plain(faulty([]))],
  fromFileSystem: [
    "dropped",
    (self) =>
      Effect.map(
        Effect.scoped(
          Layer.build(
            Layer.provide(
              Platform.fromFileSystem({ root: "/" }),
              Layer.provide(Platform.toFileSystem, Layer.succeed(Filesystem.Filesystem, self))
            )
          )
        ),
        (context) => Context.get(context, Filesystem.Filesystem)
      )
  ]
}

const memory = Effect.map(Effect.orDie(InMemory.make({ tree: { d: { f: "1" } } })), Filesystem.make)

assert.includeMembers(Object.keys(combinators), Object.keys(Decorator), "a decorator without an entry in the table")

describe("the history capability of a port", () => {
  for (const [name, [history, combinator]] of Object.entries(combinators)) {
    it.effect(`is ${history} by ${name}, over memory and over a host`, () =>
      Effect.gen(function* () {
        const host = yield* PosixHost.make({ root: yield* directory })
        yield* host.makeDirectory("d" as typeof root)
        for (const self of [yield* memory, Filesystem.make(host)]) {
          assert.isDefined(self.port.history)
          const made = yield* combinator(self)
          // `traced` counts the bytes that threads read in lent directories, and changes nothing else.
          const counted = name === "traced" && self.port.history?._tag === "Directory" ? { lend: undefined } : {}
          const shown = made.port.history && { ...made.port.history, ...counted }
          assert.deepStrictEqual(shown, history === "kept" ? { ...self.port.history!, ...counted } : undefined)
        }
      })
    )
  }

  it.effect("stays absent in a combinator that drops the history", () =>
    Effect.gen(function* () {
      for (const [, [outer, over]] of Object.entries(combinators)) {
        if (outer === "dropped") continue
        for (const [name, [inner, under]] of Object.entries(combinators)) {
          const made = yield* Effect.flatMap(under(yield* memory), over)
          assert.strictEqual(made.port.history === undefined, inner === "dropped", name)
        }
      }
    })
  )

  it.effect("does not depend on the options of the backend", () =>
    Effect.gen(function* () {
      const path = yield* directory
      const options = { readOnly: true, allowWrite: false, allowDelete: false, policy: "vfs" } as const
      assert.strictEqual((yield* InMemory.make(options)).history?._tag, "Memory")
      assert.strictEqual((yield* PosixHost.make({ root: path, ...options })).history?._tag, "Directory")
    })
  )

  it.effect("records no span when it is traced", () =>
    Effect.gen(function* () {
      const host = yield* PosixHost.make({ root: yield* directory })
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          spans.push(options.name)
          return new Tracer.NativeSpan(options)
        }
      })
      const fs = Decorator.traced(yield* memory)
      const kept = fs.port.history as MemoryHistory
      yield* Effect.gen(function* () {
        yield* fs.exists("d")
        yield* Effect.flatMap(kept.capture, (captured) => kept.restore(captured))
        yield* (Decorator.traced(Filesystem.make(host)).port.history as DirectoryHistory).listStamped(root)
      }).pipe(Effect.withTracer(tracer))
      assert.deepStrictEqual(spans, ["Filesystem.exists"])
    })
  )
})
