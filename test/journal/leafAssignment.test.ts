/**
 * Every request is answered exactly once as soon as a leaf is assigned to it, even while leaves start, end and die.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Branch from "../../src/journal/Branch.ts"
import type * as Daemon from "../../src/journal/Daemon.ts"
import { DaemonChanged } from "../../src/journal/entries/status.ts"
import { JournalError } from "../../src/journal/errors.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { makeDeadlines } from "../../src/journal/leaf/executor.ts"
import {
  asked,
  asking,
  chunk,
  dead,
  fork,
  id,
  journaled,
  memory,
  quiet,
  read,
  remove,
  started,
  stat,
  write
} from "./leafBench.ts"

const errorOf = (answer: Entry.Afferent): string =>
  answer._tag === "FileFault" ? (answer.error?._tag ?? answer.faultKind) : answer._tag
const messageOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.message : answer._tag)

const answersTo = ({ correlationId }: { readonly correlationId: string }) =>
  Effect.flatMap(asked, ({ all }) =>
    Effect.map(all, (entries) => entries.filter(Entry.answers(correlationId)).filter((entry) => Entry.isTerminal(entry)))
  )

const append = (entry: Journal.Entry) => Effect.flatMap(asked, (self) => self.append(entry))

const pass = (time: `${number} ${"millis" | "seconds" | "minutes"}`) =>
  Effect.andThen(quiet, Effect.andThen(TestClock.adjust(time), quiet))

/** Starts a leaf that `kill` ends like a killed process: the journal takes no further entry from it. */
const mortal = (options: Leaf.LeafOptions, tree: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const journal = yield* Journal.Journal
    let isDead = false
    const cut = <A>(effect: Effect.Effect<A, JournalError>) =>
      Effect.suspend(() =>
        isDead ? Effect.fail(new JournalError({ operation: "append", reason: "unavailable", detail: "killed" })) : effect
      )
    const own: typeof journal = {
      ...journal,
      append: (entry) => cut(journal.append(entry)),
      appendAll: (entries) => cut(journal.appendAll(entries))
    }
    const scope = yield* Scope.make()
    const fs = yield* memory({ tree })
    const leaf: Daemon.Daemon = yield* Leaf.make(fs, options).pipe(
      Scope.provide(scope),
      Effect.provideService(Journal.Journal, own)
    )
    yield* leaf.start
    const shutdown = Effect.ignore(leaf.shutdown)
    const kill = Effect.suspend(() => {
      isDead = true
      return Effect.ignore(leaf.shutdown)
    })
    yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
    return { fs, leaf, shutdown, kill }
  }).pipe(Effect.orDie)

describe("a request without a leaf", () => {
  for (const late of [2_500, 3_000, 4_999]) {
    it.effect(`is answered by a leaf for its path that starts ${late} ms later, once the first leaf has ended`, () =>
      journaled(
        Effect.gen(function* () {
          const alpha = yield* started(yield* memory(), { prefix: "alpha" })
          const intent = stat("beta/x")
          yield* append(intent)
          yield* pass(`${late} millis`)
          yield* started(yield* memory({ tree: { beta: { x: "here" } } }), { prefix: "beta" })
          yield* quiet
          assert.deepStrictEqual(yield* answersTo(intent), [])
          yield* alpha.shutdown
          yield* quiet
          assert.deepStrictEqual((yield* answersTo(intent)).map(errorOf), ["FileMetadata"])
          yield* pass("5 minutes")
          assert.strictEqual((yield* answersTo(intent)).length, 1)
        })
      )
    )
  }

  it.effect("fails as Unavailable in a branch, even if all leaves have only the basic kinds of entry", () =>
    journaled(
      Effect.gen(function* () {
        yield* started(yield* memory(), { prefix: "alpha" })
        for (const extended of [false, true]) {
          const branch = yield* Branch.make({ extended })
          const writing = yield* fork(Effect.flip(branch.write("beta/x", "text")))
          yield* pass("5 seconds")
          const exit = writing.pollUnsafe()
          assert.isDefined(exit)
          assert.isTrue(Exit.isSuccess(exit!))
          if (Exit.isSuccess(exit!)) {
            assert.strictEqual(exit.value._tag, "Unavailable")
            assert.include(exit.value.message, "no leaf serves this path")
          }
        }
      })
    )
  )

  it.effect("fails with IoError and the reason for a client with only the basic kinds of fault", () =>
    journaled(
      Effect.gen(function* () {
        yield* started(yield* memory(), { prefix: "alpha" })
        const intent = write("beta/x", "text")
        yield* append(intent)
        yield* pass("5 seconds")
        const [fault] = yield* answersTo(intent)
        assert.isTrue(fault?._tag === "FileFault" && fault.faultKind === "IoError")
        assert.include(messageOf(fault!), "no leaf serves this path")
      })
    )
  )

  it.effect("is answered once by leaves with different grace periods", () =>
    Effect.forEach([250, 1_000, 2_000, 5_001, 12_000], (late) =>
      Effect.forEach([0, 1_000, 10_000], (grace) =>
        Effect.forEach([0, 1_000, 10_000], (other) =>
          Effect.scoped(
            journaled(
              Effect.gen(function* () {
                yield* started(yield* memory(), { prefix: "alpha", grace })
                const intent = stat("beta/x")
                yield* append(intent)
                yield* pass(`${late} millis`)
                yield* started(yield* memory({ tree: { beta: { x: "here" } } }), { prefix: "beta", grace: other })
                yield* pass("1 minutes")
                assert.strictEqual((yield* answersTo(intent)).length, 1, `${late} ${grace} ${other}`)
              })
            )
          )
        )
      )
    )
  )

  it.effect("gets its timeout in time, even if the wall clock is set back by an hour", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let back = 0
      const wall = (): number => clock.currentTimeMillisUnsafe() - back
      const expired: Array<string> = []
      const deadlines = makeDeadlines<string>({ ...clock, currentTimeMillisUnsafe: wall }, 5_000, (key) =>
        Effect.sync(() => void expired.push(key))
      )
      yield* fork(deadlines.run)
      deadlines.renew("one")
      yield* pass("3 seconds")
      back = 3_600_000
      deadlines.renew("two")
      yield* pass("2 seconds")
      assert.deepStrictEqual(expired, ["one"])
      yield* pass("3 seconds")
      assert.deepStrictEqual(expired, ["one", "two"])
    })
  )
})

describe("a killed leaf without a successor", () => {
  it.effect("is reported by another leaf, which then answers the open requests as Unavailable", () =>
    journaled(
      Effect.gen(function* () {
        yield* append(new DaemonChanged({ daemon: "gone", instance: dead(), status: "Running", prefix: "a", extended: true }))
        yield* started(yield* memory(), { prefix: "b" })
        const [its, nobodys] = [read("a/f"), read("c")]
        yield* append(its)
        yield* append(nobodys)
        yield* pass("5 seconds")
        yield* pass("5 seconds")
        yield* pass("5 seconds")
        for (const intent of [its, nobodys]) assert.deepStrictEqual((yield* answersTo(intent)).map(errorOf), ["Unavailable"])
        const { all } = yield* asked
        const ended = (yield* all).filter((entry) => entry._tag === "DaemonChanged" && entry.status === "Completed")
        assert.strictEqual(ended.length, 1)
      })
    )
  )

  it.effect(
    "leaves its open requests to the leaf of the root, which answers reads and reports changes as possibly executed",
    () =>
      journaled(
        Effect.gen(function* () {
          yield* started(yield* memory({ tree: { a: { f: "below" } } }), { resume: "all" })
          yield* append(new DaemonChanged({ daemon: "gone", instance: dead(), status: "Running", prefix: "a" }))
          const [reading, writing, parts] = [read("a/f"), write("a/g", "x"), id()]
          yield* append(reading)
          yield* append(writing)
          yield* append(chunk(parts, 0, "so", { path: "a/p" }))
          yield* append(chunk(parts, 2, " far", { isFinal: true }))
          yield* pass("5 seconds")
          assert.deepStrictEqual((yield* answersTo(reading)).map(errorOf), ["FileContent"])
          assert.include(messageOf((yield* answersTo(writing))[0]!), "may have made the change")
          assert.include(messageOf((yield* answersTo({ correlationId: parts }))[0]!), "may have made the change")
        })
      )
  )

  it.effect("leaves the outcome of an announced change unknown, because the leaf of the root has other files", () =>
    journaled(
      Effect.gen(function* () {
        const root = yield* memory()
        yield* started(root, { extended: true, resume: "all" })
        const instance = dead()
        yield* append(new DaemonChanged({ daemon: "gone", instance, status: "Running", prefix: "a", extended: true }))
        const intent = write("a/g", "x")
        yield* append(intent)
        yield* append(new Entry.FileStarted({ correlationId: intent.correlationId, instance, size: null }))
        yield* pass("5 seconds")
        assert.include(messageOf((yield* answersTo(intent))[0]!), "may have made the change")
        assert.isFalse(yield* root.exists("a/g"))
      })
    )
  )
})

describe("a killed leaf", () => {
  it.effect("that could not append its end leaves its requests to a later leaf for the same path", () =>
    Effect.scoped(
      journaled(
        Effect.gen(function* () {
          const alpha = yield* mortal({ prefix: "alpha", extended: true }, {})
          yield* started(yield* memory(), { prefix: "beta" })
          yield* quiet
          yield* alpha.kill
          const intent = stat("alpha/x")
          yield* append(intent)
          yield* pass("2 seconds")
          yield* mortal({ prefix: "alpha", extended: true }, {})
          yield* pass("1 seconds")
          assert.deepStrictEqual((yield* answersTo(intent)).map(errorOf), ["NotFound"])
        })
      )
    )
  )
})

describe("a prefix that no leaf serves any longer", () => {
  it.effect("leaves no request without an answer if a leaf of the same name starts with another prefix", () =>
    journaled(
      Effect.gen(function* () {
        yield* append(new DaemonChanged({ daemon: "same", instance: dead(), status: "Running", prefix: "a" }))
        const intents = [read("a/f"), write("a/g", "x")]
        for (const intent of intents) yield* append(intent)
        yield* started(yield* memory(), { name: "same", prefix: "b" })
        yield* pass("5 seconds")
        for (const intent of intents) {
          assert.deepStrictEqual((yield* answersTo(intent)).map(errorOf), ["Unavailable"])
        }
        assert.include(messageOf((yield* answersTo(intents[1]!))[0]!), "may have made the change")
      })
    )
  )
})

// ── random schedules ──

const below = (count: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: count - 1 })))
const oneOf = <const A>(values: ReadonlyArray<A>) => Arbitrary.map(below(values.length), (i) => values[i]!)

type Step =
  | { readonly _tag: "start"; readonly slot: number; readonly prefix: string; readonly name: string | undefined }
  | { readonly _tag: "end" | "kill"; readonly slot: number }
  | { readonly _tag: "ask"; readonly path: string; readonly what: "stat" | "write" | "remove" | "parts" | "some" }
  | { readonly _tag: "pass"; readonly millis: number }

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"

const slots = [0, 1, 2, 3]
const step: Arbitrary.Arbitrary<Step> = Arbitrary.flatMap(below(11), (kind): Arbitrary.Arbitrary<Step> => {
  if (kind < 3) {
    return Arbitrary.map(
      Arbitrary.all([oneOf(slots), oneOf([".", "a", "a", "b", "a/b"]), oneOf([undefined, undefined, "one", "other"])]),
      ([slot, prefix, name]): Step => ({ _tag: "start", slot, prefix, name })
    )
  }
  if (kind < 5) {
    return Arbitrary.map(Arbitrary.all([oneOf(["end", "kill"]), oneOf(slots)]), ([_tag, slot]): Step => ({ _tag, slot }))
  }
  if (kind < 8) {
    return Arbitrary.map(
      Arbitrary.all([oneOf(["a/x", "b/x", "a/b/x", "x", "a//x"]), oneOf(["stat", "write", "remove", "parts", "some"])]),
      ([path, what]): Step => ({ _tag: "ask", path, what })
    )
  }
  return Arbitrary.map(oneOf([0, 10, 1_000, 2_000, 2_600, 4_999, 5_000, 11_000]), (millis): Step => ({ _tag: "pass", millis }))
})

const request = (path: string, what: Extract<Step, { _tag: "ask" }>["what"]): ReadonlyArray<Entry.Efferent> => {
  if (what === "stat") return [stat(path)]
  if (what === "write") return [write(path, "text")]
  if (what === "remove") return [remove(path)]
  const one = id()
  const first = chunk(one, 0, "te", { path })
  return what === "some" ? [first] : [first, chunk(one, 2, "xt", { isFinal: true })]
}

const run = (steps: ReadonlyArray<Step>, resume: "reads" | "all") =>
  Effect.scoped(
    journaled(
      Effect.gen(function* () {
        const journal = yield* Journal.Journal
        const bench = asking(journal)
        const leaves = new Map<number, Effect.Success<ReturnType<typeof mortal>>>()
        const ids: Array<string> = []
        for (const step of steps) {
          if (step._tag === "pass") yield* pass(`${step.millis} millis`)
          else if (step._tag === "ask") {
            const all = request(step.path, step.what)
            ids.push(all[0]!.correlationId)
            for (const entry of all) yield* bench.append(entry)
          } else if (step._tag === "start") {
            if (leaves.has(step.slot)) continue
            const { name, prefix } = step
            leaves.set(
              step.slot,
              yield* mortal({ prefix, name: name ?? `leaf ${prefix}`, resume, extended: step.slot % 2 === 0 })
            )
          } else {
            const leaf = leaves.get(step.slot)
            leaves.delete(step.slot)
            if (leaf !== undefined) yield* step._tag === "end" ? leaf.shutdown : leaf.kill
          }
        }
        // One leaf is enough to answer the rest.
        yield* mortal({ prefix: "z", name: "last" })
        for (let i = 0; i < 40; i++) yield* pass("5 seconds")
        const all = yield* bench.all
        for (const one of ids) {
          const ends = all.filter(Entry.answers(one)).filter((entry) => Entry.isTerminal(entry))
          assert.strictEqual(ends.length, 1, `${one}: ${JSON.stringify(ends)} of ${JSON.stringify(steps)}`)
        }
      })
    )
  )

describe("leaves that start, end and are killed at random", () => {
  for (const resume of ["reads", "all"] as const) {
    it.effect.prop(
      `answer every request once (resume: ${resume})`,
      [Arbitrary.array(step, { minLength: 4, maxLength: 24 })],
      ([steps]) => run(steps, resume),
      { arbitrary: { runs: soak ? 1000 : 40 } }
    )
  }
})
