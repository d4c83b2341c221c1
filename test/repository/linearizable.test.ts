/**
 * Checks random histories of several writers and a collector on one store. Each operation of a history has the times of its
 * call and of its answer. The history is linearizable if the operations have an order that agrees with these times, and in
 * which a model gives each operation its answer (the search of Wing and Gong, with Lowe's memoization).
 */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { createHash } from "node:crypto"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { StoreError } from "../../src/repository/BlobStore.ts"
import { runs } from "../runs.ts"
import { random } from "./random.ts"
import { memory, open, type Step, stored, tapped } from "./tapped.ts"

type Call =
  | { readonly _tag: "Create" | "Replace" | "Append"; readonly path: string; readonly text: string }
  | { readonly _tag: "ReplaceIf"; readonly path: string; readonly text: string; readonly expected: string }
  | { readonly _tag: "Remove"; readonly path: string }
  | { readonly _tag: "Rename"; readonly path: string; readonly to: string }
  | { readonly _tag: "ReadAll" }

interface Event {
  readonly call: Call
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

const isLinearizable = (history: ReadonlyArray<Event>): boolean => {
  const failures = new Set<string>()
  const search = (done: number, model: Model): boolean => {
    const open = history.filter((_, i) => (done & (1 << i)) === 0)
    if (open.every(({ answer }) => answer === undefined)) return true
    const key = `${done} ${picture(model)}`
    if (failures.has(key)) return false
    const firstEnd = Math.min(...open.map(({ end }) => end))
    for (const [i, event] of history.entries()) {
      if ((done & (1 << i)) !== 0 || event.start > firstEnd) continue
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

const event = (call: Call, start: number, end: number, answer: string | undefined): Event => ({ call, start, end, answer })

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
  it("accepts an operation with an unknown outcome both with and without its effect", () => {
    const lost = event(create, 0, Infinity, undefined)
    assert.isTrue(isLinearizable([lost, event({ _tag: "ReadAll" }, 2, 3, files())]))
    assert.isTrue(isLinearizable([lost, event({ _tag: "ReadAll" }, 2, 3, files(["a", "x"]))]))
  })
})

const minute = 60_000
const paths = ["a", "b", "c"]

/** The tags of failures after which the caller does not know whether the change was made. */
const unknown: ReadonlySet<string> = new Set(["Unavailable"])

/** Runs three writers and a collector. Between any two calls of a store, the other fibers run for a random while. */
const makeHistory = (seed: number, loses: boolean) =>
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
      const stores = yield* memory
      const writer = Effect.gen(function* () {
        const { fs } = yield* open(tapped(stores, tap))
        const { port } = fs
        const pick = (): FsPath => paths[next(paths.length)]! as FsPath
        for (let i = 0; i < 4; i++) {
          const text = `${++count}.`
          const path = pick()
          const kind = next(6)
          const known = kind === 3 ? yield* Effect.orElseSucceed(fs.readString(path), () => "") : ""
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
          history.push(event(call, start, isUnknown ? Infinity : time++, isUnknown ? undefined : answer))
        }
      })
      const collector = Effect.gen(function* () {
        let deleted = 0
        for (let i = 0; i < 4; i++) {
          deleted += (yield* Effect.provide(Repository.collect({ grace: "4 hours" }), tapped(stores, tap))).deleted
          for (let left = next(30); left > 0; left--) yield* Effect.yieldNow
        }
        return deleted
      })
      yield* Effect.all([Effect.all([writer, writer, writer], { concurrency: 3, discard: true }), collector], {
        concurrency: 2
      })
      minutes += 10_000
      const { deleted } = yield* Effect.provide(Repository.collect({ grace: "4 hours" }), stores)
      const start = time++
      const files = yield* stored(stores)
      history.push(event({ _tag: "ReadAll" }, start, time++, picture(new Map(Object.entries(files)))))
      yield* Effect.provide(Repository.verify("w"), stores)
      return { history, deleted }
    })
    return yield* Effect.provideService(Effect.scoped(program), Clock.Clock, clock)
  })

describe("the commits of three writers and a collector", () => {
  const seeds = Array.from({ length: runs(500) }, (_, i) => i + 1)

  for (const loses of [false, true]) {
    it.live(
      `have linearizable histories${loses ? " when answers of the store are lost" : ""}`,
      () =>
        Effect.gen(function* () {
          const answers: Record<string, number> = {}
          let collected = 0
          for (const seed of seeds) {
            const { deleted, history } = yield* makeHistory(seed, loses)
            assert.isTrue(isLinearizable(history), `seed ${seed}: ${JSON.stringify(history)}`)
            collected += deleted
            for (const { answer, call } of history) {
              const name = answer === undefined ? "unknown" : call._tag === "ReadAll" ? "read" : answer
              answers[name] = (answers[name] ?? 0) + 1
            }
          }
          // The histories have all kinds of outcomes, and the collector has work.
          for (const name of ["ok", "AlreadyExists", "NotFound", "Conflict"]) assert.isAbove(answers[name] ?? 0, 0, name)
          assert.isAbove(collected, 0)
        }),
      { timeout: 600_000 }
    )
  }
})
