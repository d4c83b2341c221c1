/**
 * Checks random histories of several writers and a collector on one store. Each operation of a history has a time of its call
 * and of its answer. The history is linearizable if the operations have an order that agrees with these times, and in which a
 * model gives each operation its answer (the search of Wing and Gong, with the memory of Lowe). A read of a writer may belong
 * to an old tree, if the tree has all changes of this writer and is not older than what the writer has read before.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { createHash } from "node:crypto"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { StoreError } from "../../src/repository/BlobStore.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import { inSoak, isSoak, runs, seed } from "../runs.ts"
import { random } from "./random.ts"
import { memory, open, type Step, stored, type StoreServices, tapped } from "./tapped.ts"

type Call =
  | { readonly _tag: "Create" | "Replace" | "Append"; readonly path: string; readonly text: string }
  | { readonly _tag: "ReplaceIf"; readonly path: string; readonly text: string; readonly expected: string }
  | { readonly _tag: "Remove"; readonly path: string }
  | { readonly _tag: "Rename"; readonly path: string; readonly to: string }
  | { readonly _tag: "Read"; readonly path: string }
  | { readonly _tag: "ReadAll" }

interface Event {
  readonly call: Call
  readonly writer: number
  readonly start: number
  /** Infinity for an operation whose outcome its caller does not know. */
  readonly end: number
  /** The answer: "ok", the tag of a failure, or the files that were read. `undefined` if it is unknown. */
  readonly answer: string | undefined
}

type Model = ReadonlyMap<string, string>

const sha = (text: string): string => createHash("sha256").update(text).digest("hex")

const picture = (model: Model): string => JSON.stringify([...model].sort(([a], [b]) => (a < b ? -1 : 1)))

const withEntry = (model: Model, path: string, text: string | undefined): Model => {
  const next = new Map(model)
  if (text === undefined) next.delete(path)
  else next.set(path, text)
  return next
}

/** Runs one call on the model. */
const step = (model: Model, call: Call): readonly [answer: string, next: Model] => {
  if (call._tag === "ReadAll") return [picture(model), model]
  const present = model.get(call.path)
  if (call._tag === "Read") return [present === undefined ? "NotFound" : `read ${present}`, model]
  switch (call._tag) {
    case "Create":
      return present === undefined ? ["ok", withEntry(model, call.path, call.text)] : ["AlreadyExists", model]
    case "Replace":
      return ["ok", withEntry(model, call.path, call.text)]
    case "Append":
      return ["ok", withEntry(model, call.path, (present ?? "") + call.text)]
    case "ReplaceIf":
      return present !== undefined && sha(present) === call.expected
        ? ["ok", withEntry(model, call.path, call.text)]
        : ["Conflict", model]
    case "Remove":
      return present === undefined ? ["NotFound", model] : ["ok", withEntry(model, call.path, undefined)]
    case "Rename":
      if (present === undefined) return ["NotFound", model]
      return model.has(call.to)
        ? ["AlreadyExists", model]
        : ["ok", withEntry(withEntry(model, call.path, undefined), call.to, present)]
  }
}

/** The failures that a writer may always have: they change nothing. */
const mayAlwaysFail: ReadonlySet<string> = new Set(["Conflict"])

/** Tests whether the event may belong to an old tree that its writer knows. */
const mayBeOld = ({ call }: Event): boolean => call._tag === "Read"

/** Tests whether the one must come before the other in every order. */
const precedes = (one: Event, other: Event): boolean =>
  one.end < other.start && (!mayBeOld(other) || one.writer === other.writer)

const isLinearizable = (history: ReadonlyArray<Event>): boolean => {
  assert.isAtMost(history.length, 31, "the operations of a history are bits of a number")
  const earlier = history.map((event) =>
    history.reduce((mask, other, i) => (precedes(other, event) ? mask | (1 << i) : mask), 0)
  )
  const answered = history.reduce((mask, { answer }, i) => (answer === undefined ? mask : mask | (1 << i)), 0)
  const failures = new Set<string>()
  const search = (done: number, model: Model): boolean => {
    if ((answered & ~done) === 0) return true
    const key = `${done} ${picture(model)}`
    if (failures.has(key)) return false
    for (const [i, event] of history.entries()) {
      if ((done & (1 << i)) !== 0 || (earlier[i]! & ~done) !== 0) continue
      const [answer, next] = step(model, event.call)
      const next_ = done | (1 << i)
      if ((event.answer === undefined || event.answer === answer) && search(next_, next)) return true
      if (event.answer !== undefined && mayAlwaysFail.has(event.answer) && search(next_, model)) return true
    }
    failures.add(key)
    return false
  }
  return search(0, new Map())
}

const event = (call: Call, start: number, end: number, answer: string | undefined, writer = -1): Event => ({
  call,
  writer,
  start,
  end,
  answer
})

describe("the checker of histories", () => {
  const create = { _tag: "Create", path: "a", text: "x" } as const
  const files = (...pairs: ReadonlyArray<readonly [string, string]>) => JSON.stringify(pairs)

  it("accepts operations that overlap in any order", () => {
    assert.isTrue(isLinearizable([event(create, 0, 3, "AlreadyExists"), event({ ...create, text: "y" }, 1, 2, "ok")]))
  })
  it("refuses two successful creations of one file", () => {
    assert.isFalse(isLinearizable([event(create, 0, 3, "ok"), event({ ...create, text: "y" }, 1, 2, "ok")]))
  })
  it("refuses an order that contradicts the times of the calls", () => {
    assert.isFalse(isLinearizable([event(create, 0, 1, "AlreadyExists"), event({ ...create, text: "y" }, 2, 3, "ok")]))
  })
  it("refuses the loss of a confirmed write", () => {
    assert.isFalse(isLinearizable([event(create, 0, 1, "ok"), event({ _tag: "ReadAll" }, 2, 3, files())]))
  })
  it("refuses an append that is made twice", () => {
    const append = { _tag: "Append", path: "a", text: "x" } as const
    assert.isFalse(isLinearizable([event(append, 0, 1, "ok"), event({ _tag: "ReadAll" }, 2, 3, files(["a", "xx"]))]))
  })
  it("refuses the effect of a failed operation", () => {
    assert.isFalse(
      isLinearizable([
        event({ ...create, _tag: "Replace" }, 0, 1, "Conflict"),
        event({ _tag: "ReadAll" }, 2, 3, files(["a", "x"]))
      ])
    )
  })
  it("accepts a read of an old tree, and refuses a read without the writer's own change or older than its last read", () => {
    const read = { _tag: "Read", path: "a" } as const
    const written = event(create, 0, 1, "ok", 1)
    assert.isTrue(isLinearizable([written, event(read, 2, 3, "NotFound", 2)]))
    assert.isFalse(isLinearizable([written, event(read, 2, 3, "NotFound", 1)]))
    assert.isTrue(isLinearizable([written, event(read, 2, 3, "read x", 2), event(read, 4, 5, "read x", 2)]))
    assert.isFalse(isLinearizable([written, event(read, 2, 3, "read x", 2), event(read, 4, 5, "NotFound", 2)]))
    assert.isFalse(isLinearizable([event(read, 0, 1, "read x", 2), event(create, 2, 3, "ok", 1)]))
  })
  it("accepts an operation of unknown outcome with and without its effect", () => {
    const lost = event(create, 0, Infinity, undefined)
    assert.isTrue(isLinearizable([lost, event({ _tag: "ReadAll" }, 2, 3, files())]))
    assert.isTrue(isLinearizable([lost, event({ _tag: "ReadAll" }, 2, 3, files(["a", "x"]))]))
  })
})

const minute = 60_000
const paths = ["a", "b", "c"]

/** The tags of failures after which the caller does not know whether the change was made. */
const unknown: ReadonlySet<string> = new Set(["Unavailable"])

/** A mistake of the stores, of a reader or of the collector. */
interface Mutant {
  readonly stores?: (stores: StoreServices) => StoreServices
  /** Returns what a writer reads, from its first answer for the path and the present one. */
  readonly read?: (first: string, now: string) => string
  readonly grace?: Duration.Input
}

/** Runs three writers and a collector. Between any two calls of a store, the other fibers run for a random while. */
const makeHistory = (seed: number, loses: boolean, { grace = "4 hours", read = (_, now) => now, ...mutant }: Mutant = {}) =>
  Effect.gen(function* () {
    const next = random(seed)
    const real = yield* Clock.Clock
    let minutes = 0
    // Each call of a store takes a minute, so that the collector finds old blobs.
    const clock: Clock.Clock = {
      ...real,
      sleep: () => Effect.yieldNow,
      currentTimeMillisUnsafe: () => minutes * minute,
      currentTimeMillis: Effect.sync(() => minutes * minute)
    }
    const history: Array<Event> = []
    let time = 0
    let count = 0

    const tap = <A>(step: Step, call: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> =>
      Effect.gen(function* () {
        for (let left = next(4); left > 0; left--) yield* Effect.yieldNow
        minutes++
        const isLost = loses && step === "compareAndSet" && next(4) === 0
        if (isLost && next(2) === 0) return yield* Effect.fail(new StoreError({ reason: "unavailable", detail: "no answer" }))
        const answer = yield* call
        for (let left = next(3); left > 0; left--) yield* Effect.yieldNow
        if (isLost) return yield* Effect.fail(new StoreError({ reason: "unavailable", detail: "lost answer" }))
        return answer
      })

    const program = Effect.gen(function* () {
      const correct = yield* memory
      const stores = mutant.stores?.(correct) ?? correct
      const makeWriter = Effect.fnUntraced(function* (writer: number) {
        const seen = new Map<string, string>()
        const { fs } = yield* open(tapped(stores, tap))
        const { port } = fs
        const pick = (): FsPath => paths[next(paths.length)]! as FsPath
        const look = (path: FsPath) =>
          Effect.gen(function* () {
            const start = time++
            const result = yield* Effect.result(fs.readString(path))
            const now = Result.isSuccess(result) ? `read ${result.success}` : result.failure._tag
            const answer = read(seen.get(path) ?? now, now)
            if (!seen.has(path)) seen.set(path, now)
            history.push(event({ _tag: "Read", path }, start, time++, answer, writer))
            return Result.getOrElse(result, () => "")
          })
        for (let i = 0; i < 4; i++) {
          const text = `${++count}.`
          const path = pick()
          const kind = next(7)
          const known = kind === 3 || kind === 6 ? yield* look(path) : ""
          if (kind === 6) continue
          const [call, run]: readonly [Call, Effect.Effect<unknown, { readonly _tag: string }>] =
            kind === 0
              ? [{ _tag: "Create", path, text }, port.write<never, never>(path, Buffer.from(text), "create")]
              : kind === 1
                ? [{ _tag: "Replace", path, text }, port.write<never, never>(path, Buffer.from(text), "replace")]
                : kind === 2
                  ? [{ _tag: "Append", path, text }, port.write<never, never>(path, Buffer.from(text), "append")]
                  : kind === 3
                    ? [{ _tag: "ReplaceIf", path, text, expected: sha(known) }, fs.write(path, text, { ifMatch: sha(known) })]
                    : kind === 4
                      ? [{ _tag: "Remove", path }, port.remove(path)]
                      : (() => {
                          const to = paths[(paths.indexOf(path) + 1 + next(paths.length - 1)) % paths.length]! as FsPath
                          return [{ _tag: "Rename", path, to }, port.rename(path, to, { replace: false })]
                        })()
          const start = time++
          const result = yield* Effect.result(run)
          const answer = Result.isSuccess(result) ? "ok" : result.failure._tag
          const isUnknown = unknown.has(answer)
          history.push(event(call, start, isUnknown ? Infinity : time++, isUnknown ? undefined : answer, writer))
        }
      })
      const collector = Effect.gen(function* () {
        let deleted = 0
        for (let i = 0; i < 4; i++) {
          deleted += (yield* Effect.provide(Repository.collect({ grace }), tapped(stores, tap))).deleted
          for (let left = next(30); left > 0; left--) yield* Effect.yieldNow
        }
        return deleted
      })
      yield* Effect.all([Effect.forEach([0, 1, 2], makeWriter, { concurrency: 3, discard: true }), collector], {
        concurrency: 2
      })
      minutes += 10_000
      const { deleted } = yield* Effect.provide(Repository.collect({ grace }), stores)
      const start = time++
      const files = yield* stored(stores)
      history.push(event({ _tag: "ReadAll" }, start, time++, picture(new Map(Object.entries(files)))))
      yield* Effect.provide(Repository.verify("w"), stores)
      return { history, deleted }
    })
    return yield* Effect.provideService(Effect.scoped(program), Clock.Clock, clock)
  })

describe("the commits of three writers and a collector", () => {
  const count = isSoak ? inSoak(10_000) : runs(500)
  const seeds = Array.from({ length: count }, (_, i) => (isSoak ? seed : 0) + i + 1)

  for (const loses of [false, true]) {
    it.live(
      `have linearizable histories${loses ? " when answers of the store are lost" : ""}, with the seeds from ${seeds[0]}`,
      () =>
        Effect.gen(function* () {
          const answers: Record<string, number> = {}
          let collected = 0
          for (const seed of seeds) {
            const { deleted, history } = yield* makeHistory(seed, loses)
            assert.isTrue(isLinearizable(history), `seed ${seed}: ${JSON.stringify(history)}`)
            collected += deleted
            for (const { answer, call } of history) {
              const name = answer === undefined ? "unknown" : call._tag === "Read" || call._tag === "ReadAll" ? "read" : answer
              answers[name] = (answers[name] ?? 0) + 1
            }
          }
          if (isSoak) console.log(`${seeds.length} histories`, answers, `${collected} blobs collected`)
          // The histories have all kinds of outcomes, and the collector has work.
          for (const name of ["ok", "AlreadyExists", "NotFound", "Conflict"]) assert.isAbove(answers[name] ?? 0, 0, name)
          assert.isAbove(collected, 0)
        }),
      { timeout: Math.max(600_000, count * 500) }
    )
  }

  const mutants: Readonly<Record<string, Mutant>> = {
    "a lost update: heads are replaced whatever they are": {
      stores: (stores) => {
        const heads = Context.get(stores, HeadStore)
        return Context.add(stores, HeadStore, {
          ...heads,
          compareAndSet: (workspace, _, next) =>
            Effect.flatMap(heads.get(workspace), (present) => heads.compareAndSet(workspace, present, next))
        })
      }
    },
    "a stale read: a writer reads again what it has read before": { read: (first) => first },
    "a collector that waits for no writer": { grace: "0 millis" }
  }
  for (const [name, mutant] of Object.entries(mutants)) {
    it.live(`have histories that the checker refuses, if the repository has the mistake: ${name}`, () =>
      Effect.gen(function* () {
        for (let seed = 1; seed <= 300; seed++) {
          const made = yield* Effect.exit(makeHistory(seed, false, mutant))
          if (Exit.isFailure(made) || !isLinearizable(made.value.history)) return
        }
        assert.fail("no history shows the mistake")
      })
    )
  }
})
