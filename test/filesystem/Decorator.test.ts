import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Deferred, Effect, Exit, Fiber, Layer, Metric, Random, Schema, Stream, Tracer } from "effect"
import { TestClock } from "effect/testing"
import * as InMemory from "../../src/backends/InMemory.ts"
import { quota, readOnly, retry, subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { capture, program, run, tick, tree } from "./programs.ts"
import { performed } from "../performed.ts"
import * as Request from "../../src/port/Request.ts"
import { runs } from "../runs.ts"

const at = (path: string) => path as FsPath
const root = at(".")
const utf8 = (text: string) => new TextEncoder().encode(text)
const bytes = (size: number) => new Uint8Array(size)

const memory = (options: InMemory.InMemoryOptions = {}) => Effect.map(InMemory.make(options), make)
const names = (fs: Algebra, path = ".") => Effect.map(fs.list(path), (entries) => entries.map(({ name }) => name))
const fails = <A, E, R>(effect: Effect.Effect<A, E, R>, expected: object) =>
  Effect.map(Effect.flip(effect), (error) => assert.deepInclude(error as object, expected))

/** A stream that pauses in its middle until the test lets it continue. */
const halting = Effect.gen(function* () {
  const [started, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const halt = Stream.drain(Stream.fromEffect(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(go))))
  return {
    started: Deferred.await(started),
    go: Deferred.succeed(go, undefined),
    around: (first: Uint8Array, second: Uint8Array) =>
      Stream.make(first).pipe(Stream.concat(halt), Stream.concat(Stream.make(second)))
  }
})

describe("readOnly", () => {
  const isReadOnly = { _tag: "AccessDenied", why: "readOnly" }

  it.effect("rejects every change before it uses the backend, even for an invalid path", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree })
      const die = () => Effect.die("the backend was asked")
      const fs = readOnly(make({ ...base, stat: die, list: die, open: die, perform: undefined, explore: undefined }))
      assert.isTrue(fs.readOnly)
      for (const path of ["c", "../up"]) {
        yield* fails(fs.write(path, ""), isReadOnly)
        yield* fails(fs.writeBytes(path, bytes(1)), isReadOnly)
        yield* fails(Stream.run(Stream.make(bytes(1)), fs.sink(path)), isReadOnly)
        yield* fails(fs.edit(path, { oldText: "a", newText: "b" }), isReadOnly)
        yield* fails(fs.delete(path), isReadOnly)
        yield* fails(fs.mkdir(path), isReadOnly)
        yield* fails(fs.copy(path, "new"), isReadOnly)
        yield* fails(fs.move(path, "new"), isReadOnly)
        yield* fails(fs.symlink(path, "c"), isReadOnly)
        yield* fails(fs.setAttributes(path, { mode: 0o600 }), isReadOnly)
      }
    })
  )

  it.effect("rejects every change at the port too", () =>
    Effect.gen(function* () {
      const base = yield* memory({ tree })
      const before = yield* capture(base.port)
      const { port } = readOnly(base)
      yield* fails(port.write<never, never>(at("c"), bytes(1), "replace"), isReadOnly)
      yield* fails(port.write(at("c"), Stream.make(bytes(1)), "append"), isReadOnly)
      yield* fails(port.makeDirectory(at("new")), isReadOnly)
      yield* fails(port.remove(at("c")), isReadOnly)
      yield* fails(port.rename(at("c"), at("new"), { replace: true }), isReadOnly)
      yield* fails(port.links!.make(at("new"), "c"), isReadOnly)
      yield* fails(port.attributes!.set(at("c"), { mode: 0o600 }), isReadOnly)
      assert.sameMembers([...port.perform!.tags], ["Read", "Stat"])
      assert.isFalse(port.rules?.permits?.("write"))
      assert.isFalse(port.rules?.permits?.("delete", at("c")))
      assert.deepStrictEqual(yield* capture(base.port), before)
    })
  )

  it.effect("returns the same results for reads as the filesystem that it decorates", () =>
    Effect.gen(function* () {
      const base = yield* memory({ tree })
      const fs = readOnly(base)
      assert.strictEqual(yield* fs.readString("ld/z"), "adz")
      assert.deepStrictEqual(yield* fs.list("a"), yield* base.list("a"))
      assert.strictEqual(yield* fs.readLink("l"), "a/x")
    })
  )
})

describe("subdirectory", () => {
  it.effect.prop(
    "behaves like a filesystem of its own, and changes nothing outside of it",
    [program],
    Effect.fnUntraced(function* ([steps]) {
      const whole = yield* memory({ tree: { beside: "beside", in: { there: tree, beside: "beside" } } })
      const fs = yield* subdirectory("in/there")(whole)
      const alone = yield* memory({ tree })
      for (const step of steps) {
        yield* tick
        assert.deepStrictEqual(yield* run(fs, step), yield* run(alone, step), JSON.stringify(step))
      }
      assert.deepStrictEqual(yield* capture(fs.port), yield* capture(alone.port))
      assert.deepStrictEqual(yield* names(whole), ["beside", "in"])
      assert.deepStrictEqual(yield* names(whole, "in"), ["beside", "there"])
      for (const path of ["beside", "in/beside"]) assert.strictEqual(yield* whole.readString(path), "beside")
    }),
    { arbitrary: { runs: runs(100) } }
  )

  it.effect("fails for a missing directory, a file, an invalid path or an escaping link, and changes nothing", () =>
    Effect.gen(function* () {
      const whole = yield* memory({ tree: { ...tree, out: { link: "../x" } } })
      const before = yield* capture(whole.port)
      yield* fails(subdirectory("new")(whole), { _tag: "NotFound", operation: "subdirectory", path: "new" })
      yield* fails(subdirectory("c/below")(whole), { _tag: "NotFound" })
      yield* fails(subdirectory("c")(whole), { _tag: "NotADirectory" })
      yield* fails(subdirectory("../up")(whole), { _tag: "InvalidPath" })
      yield* fails(subdirectory("out")(whole), { _tag: "AccessDenied", why: "escape" })
      assert.deepStrictEqual(yield* capture(whole.port), before)
    })
  )

  it.effect("resolves a link to the directory once, and reports its real path as root", () =>
    Effect.gen(function* () {
      const whole = yield* memory({ tree })
      const fs = yield* subdirectory("ld")(whole)
      yield* whole.delete("ld")
      assert.strictEqual(yield* fs.readString("z"), "adz")
      assert.strictEqual(fs.root, "/a/d")
      assert.strictEqual((yield* subdirectory("deep")(fs)).root, "/a/d/deep")
      assert.strictEqual((yield* subdirectory(".")(fs)).root, "/a/d")
    })
  )

  it.effect("rejects a link that leads out of it, even if the link stays inside the whole filesystem", () =>
    Effect.gen(function* () {
      const whole = yield* memory({
        tree: { secret: "s", d: { up: { link: "../secret" }, e: { in: { link: "../f" } }, f: "f" } }
      })
      const fs = yield* subdirectory("d")(whole)
      assert.strictEqual(yield* whole.readString("d/up"), "s")
      yield* fails(fs.readString("up"), { _tag: "AccessDenied", why: "escape" })
      yield* fails(fs.write("up", "over"), { _tag: "AccessDenied", why: "escape" })
      yield* fails(fs.symlink("e/new", "../../secret"), { _tag: "AccessDenied", why: "escape" })
      assert.strictEqual(yield* fs.readString("e/in"), "f")
    })
  )

  it.effect("protects its root, at the port too", () =>
    Effect.gen(function* () {
      const whole = yield* memory({ tree: { d: {}, e: {} } })
      const fs = yield* subdirectory("d")(whole)
      const isRoot = { _tag: "AccessDenied", why: "root" }
      yield* fails(fs.delete(".", { recursive: true }), isRoot)
      yield* fails(fs.port.remove(root), isRoot)
      yield* fails(fs.port.rename(root, at("x"), { replace: true }), isRoot)
      yield* fails(fs.port.rename(at("x"), root, { replace: true }), isRoot)
      yield* fails(performed(fs.port, { _tag: "RemoveTree", path: root }), isRoot)
      yield* fails(fs.port.write<never, never>(root, bytes(1), "replace"), { _tag: "NotAFile" })
      assert.isTrue(yield* whole.exists("d"))
    })
  )

  it.effect("shares the locks and rules of the whole filesystem", () =>
    Effect.gen(function* () {
      const sealed = yield* memory({ tree, allowDelete: false })
      yield* fails((yield* subdirectory("a")(sealed)).delete("x"), { _tag: "AccessDenied", why: "readOnly" })
      const whole = yield* memory({ tree: { a: { d: {}, f: "" } } })
      const mounted = yield* subdirectory("a")(yield* mount("a/d", yield* memory())(whole))
      yield* fails(mounted.delete("d", { recursive: true }), { _tag: "AccessDenied", why: "root" })
      const fs = yield* subdirectory("a")(whole)
      const done: Array<string> = []
      const held = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        fs.port.locks!.exclusive(
          [at("f")],
          Effect.andThen(
            Deferred.await(held),
            Effect.sync(() => done.push("below"))
          )
        ),
        { startImmediately: true }
      )
      const writer = yield* Effect.forkChild(
        Effect.tap(whole.write("a/f", "w"), () => Effect.sync(() => done.push("above"))),
        { startImmediately: true }
      )
      yield* Effect.yieldNow
      yield* Deferred.succeed(held, undefined)
      yield* Fiber.joinAll([holder, writer])
      assert.deepStrictEqual(done, ["below", "above"])
    })
  )

  it.effect("reports watched changes with its own paths", () =>
    Effect.gen(function* () {
      const whole = yield* memory({ tree })
      const fs = yield* subdirectory("a/d")(whole)
      const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(fs.watch(), 1)), { startImmediately: true })
      yield* Effect.yieldNow
      yield* whole.write("c", "beside")
      yield* whole.write("a/d/deep/w", "below")
      assert.deepStrictEqual(yield* Fiber.join(seen), [{ _tag: "Updated", path: at("deep/w") }])
    })
  )
})

const usage = (captured: Record<string, unknown>) => {
  let [bytes, files] = [0, 0]
  for (const entry of Object.values(captured) as ReadonlyArray<{ text?: string; link?: string }>) {
    if (entry.text !== undefined) bytes += utf8(entry.text).length
    if (entry.text !== undefined || entry.link !== undefined) files++
  }
  return { bytes, files }
}

const Bounds = Schema.Struct({
  bytes: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })),
  files: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
})

describe("quota", () => {
  it.effect.prop(
    "rejects exactly the calls that would exceed a bound, with DiskFull and without any change",
    [program, Arbitrary.schema(Bounds)],
    Effect.fnUntraced(function* ([steps, spare]) {
      const base = yield* memory({ tree })
      const initial = usage(yield* capture(base.port))
      const bounds = { maxBytes: initial.bytes + spare.bytes, maxFiles: initial.files + spare.files }
      const fs = yield* quota(bounds)(base)
      for (const step of steps) {
        yield* tick
        const before = yield* capture(base.port)
        // Run the call without the quota on a copy.
        const free = yield* memory()
        yield* copied(before, free)
        const expected = yield* run(free, step)
        const would = usage(yield* capture(free.port))
        const answer = yield* run(fs, step)
        const after = yield* capture(base.port)
        if ("answer" in (expected as object) && (would.bytes > bounds.maxBytes || would.files > bounds.maxFiles)) {
          assert.deepInclude(
            (answer as { failure: object | string }).failure as object,
            { tag: "DiskFull" },
            JSON.stringify(step)
          )
          assert.deepStrictEqual(after, before)
        } else assert.deepStrictEqual(answer, expected, JSON.stringify(step))
        const now = usage(after)
        assert.isAtMost(now.bytes, bounds.maxBytes)
        assert.isAtMost(now.files, bounds.maxFiles)
      }
      // Exactly the remaining space can be written.
      const now = usage(yield* capture(base.port))
      const rest = bounds.maxBytes - now.bytes
      if (now.files < bounds.maxFiles) {
        yield* fails(fs.writeBytes("last", bytes(rest + 1)), { _tag: "DiskFull" })
        yield* fs.writeBytes("last", bytes(rest))
        yield* fails(fs.write("last", "x", { mode: "append" }), { _tag: "DiskFull" })
      } else yield* fails(fs.write("last", ""), { _tag: "DiskFull" })
    }),
    { arbitrary: { runs: runs(300) } }
  )

  it.effect("rejects a stream as soon as it exceeds the bound, and leaves no partial file", () =>
    Effect.gen(function* () {
      const base = yield* memory({ tree: { f: "12345" } })
      const fs = yield* quota({ maxBytes: 10 })(base)
      let pulled = 0
      const endless = Stream.forever(
        Stream.fromEffect(
          Effect.sync(() => {
            pulled++
            return bytes(2)
          })
        )
      )
      yield* fails(Stream.run(endless, fs.sink("new")), { _tag: "DiskFull" })
      assert.strictEqual(pulled, 3)
      pulled = 0
      yield* fails(Stream.run(endless, fs.sink("f")), { _tag: "DiskFull" })
      assert.strictEqual(pulled, 6)
      assert.deepStrictEqual(yield* names(base), ["f"])
      assert.strictEqual(yield* fs.readString("f"), "12345")
      yield* fs.writeBytes("rest", bytes(5))
    })
  )

  it.effect("releases the reserved space of a write that fails or is interrupted", () =>
    Effect.gen(function* () {
      const base = yield* memory()
      const fs = yield* quota({ maxBytes: 10, maxFiles: 1 })(base)
      yield* Effect.ignore(Stream.run(Stream.concat(Stream.make(bytes(10)), Stream.fail("the source")), fs.sink("f")))
      const { around, started } = yield* halting
      const writer = yield* Effect.forkChild(Stream.run(around(bytes(9), bytes(1)), fs.sink("f")))
      yield* started
      yield* fails(fs.writeBytes("g", bytes(1)), { _tag: "DiskFull" })
      yield* Fiber.interrupt(writer)
      yield* fails(fs.writeBytes("f", bytes(1), { ifMatch: "0".repeat(64) }), { _tag: "Conflict" })
      yield* fails(fs.writeBytes("d/f", bytes(1), { createParents: false }), { _tag: "NotFound" })
      yield* fs.writeBytes("f", bytes(10))
      assert.strictEqual((yield* base.stat("f")).sizeBytes, 10)
    })
  )

  it.effect("charges a stream for its growth over the file that exists when the stream ends", () =>
    Effect.gen(function* () {
      const base = yield* memory({ tree: { f: "12345678" } })
      const fs = yield* quota({ maxBytes: 10 })(base)
      const { around, go, started } = yield* halting
      const writer = yield* Effect.forkChild(Effect.exit(Stream.run(around(bytes(8), bytes(1)), fs.sink("f"))))
      yield* started
      yield* fs.delete("f")
      yield* fs.writeBytes("g", bytes(9))
      yield* go
      assert.isTrue(Exit.isFailure(yield* Fiber.join(writer)))
      assert.deepStrictEqual(yield* names(base), ["g"])
      yield* fs.writeBytes("h", bytes(1))
      yield* fails(fs.writeBytes("i", bytes(1)), { _tag: "DiskFull" })
    })
  )

  it.effect("limits the sum of concurrent writes", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make()
      let most = 0
      const watched: Backend = {
        ...base,
        write: (path, content, mode, how) =>
          Effect.tap(Effect.andThen(Effect.yieldNow, base.write(path, content, mode, how)), () =>
            Effect.map(Effect.orDie(capture(base)), (now) => {
              most = Math.max(most, usage(now).bytes)
            })
          )
      }
      const fs = yield* quota({ maxBytes: 100 })(make(watched))
      const one = Effect.fnUntraced(function* (writer: number) {
        for (let i = 0; i < 10; i++) {
          const path = `f${yield* Random.nextIntBetween(0, 8)}`
          const size = yield* Random.nextIntBetween(1, 30)
          const chunks = Stream.fromIterable([bytes(size), bytes(writer)]).pipe(
            Stream.rechunk(1),
            Stream.tap(() => Effect.yieldNow)
          )
          yield* Effect.ignore(
            i % 3 === 0
              ? fs.delete(path)
              : i % 3 === 1
                ? Stream.run(chunks, fs.sink(path))
                : fs.writeBytes(path, bytes(size), { mode: "append" })
          )
        }
      })
      yield* Effect.forEach(
        Array.from({ length: 12 }, (_, i) => i),
        one,
        { concurrency: "unbounded", discard: true }
      )
      assert.isAtMost(most, 100)
      assert.isAbove(most, 60)
      const rest = 100 - usage(yield* capture(base)).bytes
      yield* fails(fs.writeBytes("last", bytes(rest + 1)), { _tag: "DiskFull" })
      yield* fs.writeBytes("last", bytes(rest))
    })
  )

  it.effect("counts a write that is already running when the quota is made", () =>
    Effect.gen(function* () {
      const base = yield* memory()
      const held = yield* Deferred.make<void>()
      const write = base.port.write<never, never>(at("f"), bytes(8), "create")
      const writer = yield* Effect.forkChild(
        base.port.locks!.exclusive([at("f")], Effect.andThen(Deferred.await(held), write)),
        { startImmediately: true }
      )
      const made = yield* Effect.forkChild(quota({ maxBytes: 10 })(base), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Deferred.succeed(held, undefined)
      yield* Fiber.join(writer)
      const fs = yield* Fiber.join(made)
      yield* fails(fs.writeBytes("g", bytes(3)), { _tag: "DiskFull" })
      yield* fs.writeBytes("g", bytes(2))
    })
  )

  it.effect("counts a write through a link at its target", () =>
    Effect.gen(function* () {
      const base = yield* memory({ tree: { d: { f: "12345" }, ld: { link: "d" }, lf: { link: "d/f" } } })
      const fs = yield* quota({ maxBytes: 5, maxFiles: 3 })(base)
      yield* fs.write("ld/f", "54321")
      yield* fs.write("lf", "1")
      yield* fs.write("lf", "2345", { mode: "append" })
      yield* fails(fs.write("ld/f", "6", { mode: "append" }), { _tag: "DiskFull", path: "ld/f" })
    })
  )

  it.effect("lets existing files above a bound stay and shrink", () =>
    Effect.gen(function* () {
      const base = yield* memory({ tree: { f: "1234567890", g: { h: "x" } } })
      const fs = yield* quota({ maxBytes: 4, maxFiles: 1 })(base)
      assert.strictEqual(yield* fs.readString("f"), "1234567890")
      yield* fs.write("f", "123456789")
      yield* fails(fs.write("f", "1234567890"), { _tag: "DiskFull" })
      yield* fs.move("g", "i")
      yield* fs.delete("i", { recursive: true })
      yield* fs.write("f", "1234")
      yield* fails(fs.write("f", "12345"), { _tag: "DiskFull" })
    })
  )

  it.effect("can bound bytes or files alone, or nothing at all", () =>
    Effect.gen(function* () {
      const base = yield* memory()
      const files = yield* quota({ maxFiles: 2 })(base)
      yield* files.writeBytes("f", bytes(100_000))
      yield* files.symlink("l", "f")
      yield* files.mkdir("d/e")
      yield* fails(files.symlink("d/m", "../f"), { _tag: "DiskFull" })
      yield* fails(files.symlink("l", "f"), { _tag: "AlreadyExists" })
      const free = yield* quota({})(base)
      yield* free.writeBytes("g", bytes(1))
    })
  )

  it.effect("fails if the existing files cannot be counted, and dies for an invalid bound", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree })
      const broken = make({
        ...base,
        list: (path) => (path === "a/d" ? Effect.fail({ _tag: "AccessDenied", why: "permission" }) : base.list(path))
      })
      yield* fails(quota({ maxBytes: 1 })(broken), { _tag: "AccessDenied", operation: "quota", path: "a/d" })
      for (const options of [{ maxBytes: -1 }, { maxFiles: Number.NaN }]) {
        const exit = yield* Effect.exit(quota(options)(make(base)))
        assert.isTrue(Exit.isFailure(exit) && exit.cause.reasons.every(({ _tag }) => _tag === "Die"))
      }
    })
  )
})

const copied = Effect.fnUntraced(function* (captured: Record<string, unknown>, fs: Algebra) {
  for (const [path, entry] of Object.entries(captured) as ReadonlyArray<
    [string, { text?: string; link?: string; mode?: number }]
  >) {
    if (entry.link !== undefined) yield* fs.port.links!.make(at(path), entry.link)
    else if (entry.text === undefined) yield* fs.mkdir(path)
    else yield* fs.write(path, entry.text)
    if (entry.mode !== undefined) yield* fs.port.attributes!.set(at(path), { mode: entry.mode })
  }
})

interface Spans {
  readonly tracer: Tracer.Tracer
  readonly ended: Array<{
    readonly name: string
    readonly attributes: object
    readonly ok: boolean
    readonly parent: string | undefined
  }>
}

const recording = (): Spans => {
  const ended: Spans["ended"] = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const end = span.end.bind(span)
      span.end = (time, exit) => {
        const parent = options.parent
        ended.push({
          name: span.name,
          attributes: Object.fromEntries(span.attributes),
          ok: Exit.isSuccess(exit),
          parent: parent._tag === "Some" && parent.value._tag === "Span" ? parent.value.name : undefined
        })
        end(time, exit)
      }
      return span
    }
  })
  return { tracer, ended }
}

const metricsOf = Effect.map(Metric.snapshot, (all) =>
  Object.fromEntries(
    all
      .filter(({ id }) => id.startsWith("fs_algebra_"))
      .map(({ attributes, id, state }) => [
        [
          id,
          ...Object.entries(attributes ?? {})
            .filter(([key]) => key !== "unit" && key !== "time_unit")
            .map(([, value]) => value)
        ].join(" "),
        state as { readonly count?: number | bigint; readonly sum?: number }
      ])
  )
)
const countOf = (metrics: Record<string, { readonly count?: number | bigint }>, key: string) => Number(metrics[key]?.count ?? 0)

describe("traced", () => {
  const observed = <A, E>(effect: Effect.Effect<A, E>, spans: Spans) =>
    Effect.provideService(Effect.provideService(effect, Tracer.Tracer, spans.tracer), Metric.MetricRegistry, new Map())

  it.effect("records one span and the metrics of each call, also for streams and failures", () => {
    const spans = recording()
    return observed(
      Effect.gen(function* () {
        const fs = traced(yield* memory({ tree }))
        yield* fs.write("./new.txt", "12345")
        yield* Stream.run(Stream.make(bytes(3), bytes(4)), fs.sink("streamed"))
        assert.strictEqual(yield* fs.readString("new.txt"), "12345")
        yield* Stream.runDrain(fs.stream("streamed"))
        yield* Effect.ignore(fs.readString("nowhere"))
        const failing = Stream.concat(Stream.make(bytes(9)), Stream.fail("torn"))
        yield* Effect.ignore(Stream.run(failing, fs.sink("torn")))
        spans.ended.pop()
        assert.deepStrictEqual(
          spans.ended.map(({ attributes, name, ok }) => [name, attributes, ok]),
          [
            ["Filesystem.write", { path: "./new.txt", backend: "InMemory" }, true],
            ["Filesystem.sink", { path: "streamed", backend: "InMemory" }, true],
            ["Filesystem.readString", { path: "new.txt", backend: "InMemory" }, true],
            ["Filesystem.stream", { path: "streamed", backend: "InMemory" }, true],
            ["Filesystem.readString", { path: "nowhere", backend: "InMemory" }, false]
          ]
        )
        const metrics = yield* metricsOf
        assert.strictEqual(countOf(metrics, "fs_algebra_calls_total readString InMemory"), 2)
        assert.strictEqual(countOf(metrics, "fs_algebra_calls_total stream InMemory"), 1)
        assert.strictEqual(countOf(metrics, "fs_algebra_errors_total readString InMemory NotFound"), 1)
        assert.strictEqual(countOf(metrics, "fs_algebra_written_bytes_total InMemory"), 12)
        assert.strictEqual(countOf(metrics, "fs_algebra_read_bytes_total InMemory"), 12)
        assert.strictEqual(countOf(metrics, "fs_algebra_call_duration_ms write InMemory"), 1)
      }),
      spans
    )
  })

  it.effect("measures the duration with the clock, and distinguishes interruptions and defects from errors", () => {
    const spans = recording()
    return observed(
      Effect.gen(function* () {
        const base = yield* InMemory.make({ tree })
        const fs = traced(
          make({
            ...base,
            perform: undefined,
            explore: undefined,
            list: () => Effect.die("broken"),
            open: (path) => Effect.delay(base.open(path), "3 seconds")
          })
        )
        const reader = yield* Effect.forkChild(fs.readString("c"))
        yield* TestClock.adjust("3 seconds")
        yield* Fiber.join(reader)
        const waiting = yield* Effect.forkChild(fs.readString("c"), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        yield* Effect.exit(fs.list())
        const metrics = yield* metricsOf
        assert.strictEqual(countOf(metrics, "fs_algebra_errors_total readString InMemory Interrupt"), 1)
        assert.strictEqual(countOf(metrics, "fs_algebra_errors_total list InMemory Defect"), 1)
        assert.strictEqual(metrics["fs_algebra_call_duration_ms readString InMemory"]?.sum, 3000)
      }),
      spans
    )
  })

  it.effect("records a call once even if `traced` is applied twice, and nothing if `traced` is not applied", () => {
    const spans = recording()
    return observed(
      Effect.gen(function* () {
        const base = yield* memory({ tree })
        yield* base.readString("c")
        assert.deepStrictEqual(spans.ended, [])
        assert.deepStrictEqual(yield* metricsOf, {})
        yield* traced(traced(base)).readString("c")
        assert.strictEqual(spans.ended.length, 1)
        assert.strictEqual(countOf(yield* metricsOf, "fs_algebra_read_bytes_total InMemory"), 12)
      }),
      spans
    )
  })

  it.effect("counts the bytes that a search reads", () =>
    observed(
      Effect.gen(function* () {
        const fs = traced(yield* memory({ tree: { a: "one\n", b: { c: "two\n", d: "" } } }))
        assert.strictEqual((yield* fs.grep("two")).matches.length, 1)
        assert.strictEqual(countOf(yield* metricsOf, "fs_algebra_read_bytes_total InMemory"), 8)
      }),
      recording()
    )
  )

  it.effect("keeps recording below other decorators", () => {
    const spans = recording()
    return observed(
      Effect.gen(function* () {
        const below = yield* quota({ maxBytes: 1000 })(traced(yield* memory({ tree })))
        const fs = readOnly(retry({ times: 1 })(yield* subdirectory("a")(below)))
        spans.ended.length = 0
        yield* fs.readString("x")
        yield* Effect.ignore(fs.write("x", ""))
        assert.deepStrictEqual(
          spans.ended.map(({ attributes, name, ok }) => [name, attributes, ok]),
          [
            ["Filesystem.readString", { path: "x", backend: "InMemory" }, true],
            ["Filesystem.write", { path: "x", backend: "InMemory" }, false]
          ]
        )
      }),
      spans
    )
  })

  it.effect("can decorate a layer together with other decorators", () => {
    const spans = recording()
    return observed(
      Effect.gen(function* () {
        const layer = InMemory.layer({ tree }).pipe(decorate(traced), decorate(subdirectory("a")), decorate(readOnly))
        yield* Effect.provide(
          Filesystem.use((fs) => fs.readString("x")),
          Layer.orDie(layer)
        )
        assert.deepStrictEqual(
          spans.ended.map(({ name }) => name),
          ["Filesystem.subdirectory", "Filesystem.readString"]
        )
      }),
      spans
    )
  })
})

describe("retry", () => {
  const io = (code: string): Fault => ({ _tag: "IoError", code, detail: "injected" })
  const busy: Fault = { _tag: "AccessDenied", why: "busy" }
  const permission: Fault = { _tag: "AccessDenied", why: "permission" }
  const timeout: Fault = { _tag: "Timeout", detail: "injected" }
  const unavailable: Fault = { _tag: "Unavailable", detail: "injected" }

  /** Makes a filesystem whose calls fail with each of the faults in turn, before or after their work. */
  const failing = Effect.fnUntraced(function* (faults: ReadonlyArray<Fault>, when: "before" | "after" = "before") {
    const base = yield* InMemory.make({ tree })
    const left = [...faults]
    let asked = 0
    const fail = <A, E, R>(run: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
      Effect.suspend((): Effect.Effect<A, E | Fault, R> => {
        asked++
        const fault = left.shift()
        return fault === undefined ? run : when === "after" ? Effect.andThen(run, Effect.fail(fault)) : Effect.fail(fault)
      })
    const fs = make({
      ...base,
      perform: undefined,
      explore: undefined,
      stat: (path) => (when === "after" ? base.stat(path) : fail(base.stat(path))),
      list: (path) => fail(base.list(path)),
      write: (path, content, mode, how) => fail(base.write(path, content, mode, how)),
      remove: (path) => fail(base.remove(path)),
      makeDirectory: (path) => fail(base.makeDirectory(path))
    })
    return { fs, base, asked: () => asked }
  })
  const inTime = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Effect.exit(effect))
      yield* TestClock.adjust("1 hour")
      return yield* Fiber.join(fiber)
    })

  for (const fault of [
    io("EMFILE"),
    io("ENFILE"),
    io("EAGAIN"),
    io("EINTR"),
    io("EBUSY"),
    io("ECONNRESET"),
    busy,
    timeout,
    unavailable
  ]) {
    it.effect(`repeats a read after ${fault._tag} ${String(fault["code"] ?? "")}`, () =>
      Effect.gen(function* () {
        const { asked, fs } = yield* failing([fault, fault])
        assert.isTrue(Exit.isSuccess(yield* inTime(retry({ times: 2 })(fs).stat("c"))))
        assert.strictEqual(asked(), 3)
      })
    )
  }

  for (const fault of [io("EIO"), permission, { _tag: "InvalidPath", detail: "injected" } as Fault]) {
    it.effect(`does not repeat a read after ${fault._tag} ${String(fault["code"] ?? "")}`, () =>
      Effect.gen(function* () {
        const { asked, fs } = yield* failing([fault])
        assert.isTrue(Exit.isFailure(yield* inTime(retry({ times: 5 })(fs).list("a"))))
        assert.strictEqual(asked(), 1)
      })
    )
  }

  for (const fault of [io("EMFILE"), io("ENFILE"), io("EAGAIN"), busy]) {
    it.effect(`repeats a change after ${fault._tag} ${String(fault["code"] ?? "")}, because nothing was done`, () =>
      Effect.gen(function* () {
        const { asked, base, fs } = yield* failing([fault, fault])
        assert.isTrue(Exit.isSuccess(yield* inTime(retry({ times: 2 })(fs).write("c", "more", { mode: "append" }))))
        assert.strictEqual(asked(), 3)
        assert.strictEqual(yield* make(base).readString("c"), "content of cmore")
      })
    )
  }

  for (const fault of [timeout, unavailable, io("EINTR"), io("EBUSY"), io("ECONNRESET")]) {
    it.effect(
      `does not repeat a change after ${fault._tag} ${String(fault["code"] ?? "")}, because it may have been done`,
      () =>
        Effect.gen(function* () {
          const { asked, base, fs } = yield* failing([fault], "after")
          assert.isTrue(Exit.isFailure(yield* inTime(retry({ times: 5 })(fs).write("c", "!", { mode: "append" }))))
          assert.strictEqual(asked(), 1)
          assert.strictEqual(yield* make(base).readString("c"), "content of c!")
        })
    )
  }

  it.effect("returns the version of the whole file after a repeated append", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree: { f: "old" } })
      let left = 1
      const full = Effect.suspend((): Effect.Effect<void, Fault> => (left-- > 0 ? Effect.fail(io("EMFILE")) : Effect.void))
      const fs = make({
        ...base,
        perform: undefined,
        write: (path, content, mode, how) =>
          base.write(path, content, mode, {
            ...how,
            commit: (publish) => (how?.commit ?? ((run) => run))(Effect.andThen(full, publish))
          })
      })
      const { version } = yield* inTime(
        retry({ times: 1 })(fs).write("f", "new", { mode: "append", version: true, ifMatch: yield* fs.version("f") })
      ).pipe(Effect.flatMap((exit) => exit))
      assert.strictEqual(version, yield* fs.version("f"))
    })
  )

  it.effect("never repeats a write of a stream", () =>
    Effect.gen(function* () {
      for (const fault of [io("EAGAIN"), busy]) {
        const { asked, fs } = yield* failing([fault])
        const { port } = retry({ times: 5 })(fs)
        assert.isTrue(Exit.isFailure(yield* inTime(port.write(at("c"), Stream.make(bytes(1)), "replace"))))
        assert.strictEqual(asked(), 1)
      }
    })
  )

  it.effect("doubles the delay each time, varies it by up to 20 %, and fails with the last fault", () =>
    Effect.gen(function* () {
      const { asked, fs } = yield* failing(Array.from({ length: 10 }, () => timeout))
      const reader = yield* Effect.forkChild(Effect.flip(retry({ times: 3, base: "100 millis" })(fs).stat("c")))
      yield* TestClock.adjust(79)
      assert.strictEqual(asked(), 1)
      yield* TestClock.adjust(120 - 79)
      assert.strictEqual(asked(), 2)
      yield* TestClock.adjust(39)
      assert.strictEqual(asked(), 2)
      yield* TestClock.adjust(240 - 39)
      assert.strictEqual(asked(), 3)
      yield* TestClock.adjust(480)
      assert.strictEqual(asked(), 4)
      assert.strictEqual((yield* Fiber.join(reader))._tag, "Timeout")
    })
  )

  it.effect("repeats reads of a handle and accelerated reads", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree })
      let left = 2
      const once = <A>(run: Effect.Effect<A, Fault>) => Effect.suspend(() => (left-- > 0 ? Effect.fail(io("EAGAIN")) : run))
      const slow = make({
        ...base,
        perform: undefined,
        explore: undefined,
        open: (path) =>
          Effect.map(base.open(path), (handle) => ({ ...handle, read: (offset, length) => once(handle.read(offset, length)) }))
      })
      assert.deepStrictEqual(yield* inTime(retry({ times: 2 })(slow).readString("c")), Exit.succeed("content of c"))
      left = 2
      const fast = make({
        ...base,
        perform: Request.handlers({ Read: (request) => once(base.perform!(request)) }),
        open: () => Effect.die("opened")
      })
      assert.deepStrictEqual(yield* inTime(retry({ times: 2 })(fast).readString("c")), Exit.succeed("content of c"))
    })
  )

  it("throws for an invalid number of retries", () => {
    for (const times of [-1, 1.5, Number.NaN]) assert.throws(() => retry({ times }), RangeError)
  })
})
