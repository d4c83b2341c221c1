import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as Daemon from "../../src/journal/Daemon.ts"
import { JournalError } from "../../src/journal/errors.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as MemoryStore from "../../src/journal/store/memoryStore.ts"
import { asked, fork, journaled } from "./leafBench.ts"

const forever = (name: string, log?: Array<string>): Daemon.DaemonOptions<never, never> => ({
  name,
  run: () =>
    Effect.andThen(
      Effect.sync(() => void log?.push(`${name} runs`)),
      Effect.never
    ),
  stop: Effect.sync(() => void log?.push(`${name} stops`))
})

const reasonOf = <A>(effect: Effect.Effect<A, Daemon.DaemonError>) => Effect.map(Effect.flip(effect), ({ reason }) => reason)

/** Returns name, status and failure of every daemon entry, in order. */
const said = Effect.map(
  Effect.flatMap(asked, ({ all }) => all),
  (all) =>
    all.flatMap((entry) =>
      entry._tag === "DaemonChanged"
        ? [`${entry.daemon} ${entry.status}${entry.failure === undefined ? "" : `: ${entry.failure}`}`]
        : []
    )
)

describe("a daemon", () => {
  it.effect("is Stopped, then Running, then Completed, and records Running and Completed in the journal", () =>
    journaled(
      Effect.gen(function* () {
        const daemon = yield* Daemon.make(forever("d"))
        assert.strictEqual(yield* daemon.status, "Stopped")
        assert.deepStrictEqual(yield* said, [])
        yield* daemon.start
        assert.strictEqual(yield* daemon.status, "Running")
        assert.deepStrictEqual(yield* said, ["d Running"])
        yield* daemon.shutdown
        assert.strictEqual(yield* daemon.status, "Completed")
        assert.deepStrictEqual(yield* said, ["d Running", "d Completed"])
        assert.isUndefined(yield* daemon.failure)
      })
    )
  )

  it.effect("runs once if it is started twice, and stops once if it is shut down twice", () =>
    journaled(
      Effect.gen(function* () {
        const log: Array<string> = []
        const daemon = yield* Daemon.make(forever("d", log))
        yield* Effect.all([daemon.start, daemon.start, daemon.start], { concurrency: 3 })
        yield* daemon.start
        yield* Effect.yieldNow
        yield* Effect.all([daemon.shutdown, daemon.shutdown], { concurrency: 2 })
        yield* daemon.shutdown
        assert.deepStrictEqual(log, ["d runs", "d stops"])
        assert.deepStrictEqual(yield* said, ["d Running", "d Completed"])
      })
    )
  )

  it.effect("fails with notStarted if it is shut down before its start, and with completed if it is started again", () =>
    journaled(
      Effect.gen(function* () {
        const daemon = yield* Daemon.make(forever("d"))
        assert.strictEqual(yield* reasonOf(daemon.shutdown), "notStarted")
        assert.strictEqual(yield* daemon.status, "Stopped")
        yield* daemon.start
        yield* daemon.shutdown
        assert.strictEqual(yield* reasonOf(daemon.start), "completed")
        assert.strictEqual(yield* reasonOf(daemon.awaitStatus("Running")), "completed")
        assert.deepStrictEqual(yield* said, ["d Running", "d Completed"])
      })
    )
  )

  it.effect("that ends by itself is Completed without a failure", () =>
    journaled(
      Effect.gen(function* () {
        const end = yield* Deferred.make<void>()
        const daemon = yield* Daemon.make({ name: "d", run: () => Deferred.await(end) })
        yield* daemon.start
        const waiting = yield* fork(daemon.awaitStatus("Completed"))
        yield* Deferred.succeed(end, undefined)
        yield* Fiber.join(waiting)
        assert.isUndefined(yield* daemon.failure)
        yield* daemon.shutdown
        assert.deepStrictEqual(yield* said, ["d Running", "d Completed"])
      })
    )
  )

  it.effect("that fails or dies is Completed, and records its failure in the journal", () =>
    journaled(
      Effect.gen(function* () {
        const one = yield* Daemon.make({ name: "one", run: () => Effect.fail(new Error("no more")) })
        const other = yield* Daemon.make({ name: "other", run: () => Effect.die(new Error("never thought of")) })
        for (const daemon of [one, other]) {
          yield* daemon.start
          yield* daemon.awaitStatus("Completed")
        }
        const failure = yield* one.failure
        assert.deepStrictEqual([failure?.daemon, failure?.reason, failure?.detail], ["one", "failed", "no more"])
        assert.propertyVal(failure?.cause, "message", "no more")
        assert.include((yield* other.failure)?.message, "never thought of")
        assert.deepStrictEqual(yield* said, [
          "one Running",
          "one Completed: no more",
          "other Running",
          "other Completed: never thought of"
        ])
        // The failure of a daemon does not make its shutdown fail.
        yield* one.shutdown
      })
    )
  )

  it.effect("whose start fails is Completed and never runs", () =>
    journaled(
      Effect.gen(function* () {
        let ran = false
        const daemon = yield* Daemon.make({
          name: "d",
          start: Effect.fail(new Error("no port")),
          run: () => Effect.sync(() => void (ran = true))
        })
        const error = yield* Effect.flip(daemon.start)
        assert.deepStrictEqual([error.daemon, error.reason, error.detail], ["d", "failed", "no port"])
        assert.strictEqual(yield* daemon.status, "Completed")
        assert.isFalse(ran)
        assert.deepStrictEqual(yield* said, ["d Completed: no port"])
      })
    )
  )

  it.effect("that is interrupted during its start is Stopped and can be started again", () =>
    journaled(
      Effect.gen(function* () {
        let isFirst = true
        const daemon = yield* Daemon.make({
          name: "d",
          start: Effect.suspend(() => {
            const waits = isFirst
            isFirst = false
            return waits ? Effect.never : Effect.void
          }),
          run: () => Effect.never
        })
        const starting = yield* fork(daemon.start)
        yield* Fiber.interrupt(starting)
        assert.strictEqual(yield* daemon.status, "Stopped")
        yield* daemon.start
        assert.strictEqual(yield* daemon.status, "Running")
      })
    )
  )

  it.effect("finishes its work even if the caller of shutdown is interrupted", () =>
    journaled(
      Effect.gen(function* () {
        const flush = yield* Deferred.make<void>()
        const stopping = yield* Deferred.make<void>()
        let flushed = false
        const daemon = yield* Daemon.make({
          name: "d",
          run: () => Effect.never,
          stop: Effect.gen(function* () {
            yield* Deferred.succeed(stopping, undefined)
            yield* Deferred.await(flush)
            flushed = true
          })
        })
        yield* daemon.start
        const shutting = yield* fork(daemon.shutdown)
        yield* Deferred.await(stopping)
        const interrupting = yield* fork(Fiber.interrupt(shutting))
        assert.strictEqual(yield* daemon.status, "Running")
        yield* Deferred.succeed(flush, undefined)
        yield* Fiber.join(interrupting)
        yield* daemon.awaitStatus("Completed")
        assert.isTrue(flushed)
      })
    )
  )

  it.effect("whose `stop` fails is Completed, and its shutdown fails", () =>
    journaled(
      Effect.gen(function* () {
        const daemon = yield* Daemon.make({ name: "d", run: () => Effect.never, stop: Effect.fail(new Error("disk")) })
        yield* daemon.start
        const error = yield* Effect.flip(daemon.shutdown)
        assert.deepStrictEqual([error.operation, error.reason, error.detail], ["shutdown", "failed", "disk"])
        assert.deepStrictEqual(yield* said, ["d Running", "d Completed: disk"])
      })
    )
  )

  it.effect("ends with its scope, unless it was never started", () =>
    journaled(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const log: Array<string> = []
        const one = yield* Scope.provide(Daemon.make(forever("one", log)), scope)
        const other = yield* Scope.provide(Daemon.make(forever("other", log)), scope)
        yield* one.start
        yield* Effect.yieldNow
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual([yield* one.status, yield* other.status], ["Completed", "Stopped"])
        assert.deepStrictEqual(log, ["one runs", "one stops"])
      })
    )
  )

  it.effect("runs with the position of its first entry", () =>
    journaled(
      Effect.gen(function* () {
        const seen = yield* Deferred.make<number>()
        const daemon = yield* Daemon.make({
          name: "d",
          run: ({ position }) => Deferred.succeed(seen, position)
        })
        yield* (yield* asked).journal.append(new Daemon.DaemonChanged({ daemon: "x", instance: "x", status: "Running" }))
        yield* daemon.start
        // One other entry precedes it.
        assert.strictEqual(yield* Deferred.await(seen), 2)
      })
    )
  )

  it.effect("does not start if the journal refuses its first entry", () =>
    Effect.gen(function* () {
      const store = MemoryStore.make<Journal.Entry>()
      const closed = new JournalError({ operation: "append", reason: "closed", detail: "its scope has ended" })
      const journal = Journal.make({ ...store, append: () => Effect.fail(closed) })
      const daemon = yield* Effect.provideService(Daemon.make(forever("d")), Journal.Journal, journal)
      const error = yield* Effect.flip(daemon.start)
      assert.deepStrictEqual([error.reason, error.cause], ["failed", closed])
      assert.strictEqual(yield* daemon.status, "Completed")
    })
  )
})

describe("several daemons", () => {
  const group = (log: Array<string>, failing?: string) =>
    Effect.map(
      Effect.forEach(["a", "b", "c"], (name) =>
        Daemon.make({
          ...forever(name, log),
          start: name === failing ? Effect.fail(new Error("no")) : Effect.sync(() => void log.push(`${name} starts`))
        })
      ),
      Daemon.all
    )

  it.effect("start in order, and shut down in reverse order", () =>
    journaled(
      Effect.gen(function* () {
        const log: Array<string> = []
        const all = yield* group(log)
        yield* all.start
        yield* all.shutdown
        assert.deepStrictEqual(
          log.filter((line) => !line.endsWith("runs")),
          ["a starts", "b starts", "c starts", "c stops", "b stops", "a stops"]
        )
      })
    )
  )

  it.effect("stop in reverse order if one of them cannot start, and the error names this daemon", () =>
    journaled(
      Effect.gen(function* () {
        const log: Array<string> = []
        const all = yield* group(log, "c")
        const error = yield* Effect.flip(all.start)
        assert.strictEqual(error.daemon, "c")
        assert.deepStrictEqual(
          log.filter((line) => !line.endsWith("runs")),
          ["a starts", "b starts", "b stops", "a stops"]
        )
        const other = yield* group(log, "a")
        assert.strictEqual((yield* Effect.flip(other.start)).daemon, "a")
        assert.deepStrictEqual(yield* Effect.forEach(other.daemons, ({ status }) => status), [
          "Completed",
          "Stopped",
          "Stopped"
        ])
      })
    )
  )

  it.effect("do not stop a daemon that was already running when another of them cannot start", () =>
    journaled(
      Effect.gen(function* () {
        const log: Array<string> = []
        const all = yield* group(log, "c")
        yield* all.daemons[0]!.start
        yield* Effect.flip(all.start)
        assert.deepStrictEqual(yield* Effect.forEach(all.daemons, ({ status }) => status), [
          "Running",
          "Completed",
          "Completed"
        ])
      })
    )
  )

  it.effect("log the failure of each daemon that fails while it runs", () =>
    journaled(
      Effect.gen(function* () {
        const lines: Array<string> = []
        const logger = Logger.make(({ cause, logLevel, message }) => {
          lines.push(`${logLevel} ${String(message)} ${String(Cause.squash(cause))}`)
        })
        const fails = Daemon.make({ name: "d", run: () => Effect.fail("it broke") })
        const ends = Daemon.make({ name: "e", run: () => Effect.void })
        yield* Effect.scoped(
          Effect.gen(function* () {
            for (const daemon of [yield* fails, yield* ends]) {
              yield* daemon.start
              yield* daemon.awaitStatus("Completed")
            }
          })
        ).pipe(Effect.provide(Logger.layer([logger])))
        assert.deepStrictEqual(lines, ['Error fs-algebra: daemon "d" has failed it broke'])
      })
    )
  )
})

describe("Daemon.run", () => {
  it.effect("ends or fails as its daemon does, and stops the daemon if it is interrupted", () =>
    journaled(
      Effect.gen(function* () {
        yield* Daemon.run(Daemon.make({ name: "ends", run: () => Effect.void }))
        const failed = yield* Effect.flip(Daemon.run(Daemon.make({ name: "fails", run: () => Effect.fail("it broke") })))
        assert.deepInclude(failed, { daemon: "fails", reason: "failed", detail: "it broke" })
        const broken = Daemon.make({ name: "broken", start: Effect.fail("no place"), run: () => Effect.never })
        assert.deepInclude(yield* Effect.flip(Daemon.run(broken)), { operation: "start", detail: "no place" })
        const log: Array<string> = []
        const running = yield* fork(Daemon.run(Daemon.make(forever("d", log))))
        yield* Effect.yieldNow
        assert.deepStrictEqual(log, ["d runs"])
        yield* Fiber.interrupt(running)
        assert.deepStrictEqual(log, ["d runs", "d stops"])
      })
    )
  )
})

describe("daemons as a layer", () => {
  it.effect("start and stop with the layer", () =>
    journaled(
      Effect.gen(function* () {
        const log: Array<string> = []
        const made = ["a", "b"].map((name) => Daemon.make(forever(name, log)))
        yield* Effect.scoped(Effect.andThen(Layer.build(Daemon.layerAll(made)), Effect.yieldNow))
        assert.deepStrictEqual(log, ["a runs", "b runs", "b stops", "a stops"])
      })
    )
  )
})
