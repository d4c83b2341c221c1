import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Replay from "../../src/journal/Replay.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { plant } from "../../src/testing/Files.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { another, look, outcome, programs, record, watching } from "./recordings.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { isMutation } from "../../src/port/Operation.ts"
import * as FsPath from "../../src/model/FsPath.ts"

const int = (max: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: max })))
const seed = int(1_000_000)
const rng = (s: number) => () => { s = (s * 1103515245 + 12345) & 0x7fffffff; return s / 0x7fffffff }
const cased = (program: any, r: () => number) => program.map((c: any) => {
  const out: any = { ...c }
  for (const k of ["path", "from", "to"]) if (typeof out[k] === "string") out[k] = out[k].split("/").map((s: string) => r() < 0.4 ? s.toUpperCase() : s).join("/")
  return out
})
const fold = (p: any) => Object.fromEntries(Object.entries(p).map(([k, v]) => [FsPath.fold(k as any), v]))

describe("scratch", () => {
  it.effect.prop("case-insensitive", [programs, Arbitraries.files, seed], ([program, files, s]) =>
    Effect.gen(function* () {
      const r = rng(s)
      const fs = yield* another({ caseInsensitive: true })
      yield* Effect.exit(plant(fs.port, files))
      const { journal, pictures } = yield* watching(fs.port)
      const recorded = yield* record(journal, fs)
      for (const command of cased(program, r)) {
        yield* outcome(recorded, command)
        if (r() < 0.1) {
          const to = Math.floor(r() * pictures.length)
          yield* Replay.undo(journal, recorded, { to })
          assert.deepStrictEqual(fold(yield* look(fs.port)), fold(pictures[to]!), `mid to ${to}`)
        }
      }
      const end = pictures.length - 1
      const to = Math.floor(r() * end)
      const last = yield* journal.last
      const at = yield* Replay.tree(journal, { until: to, caseInsensitive: true })
      yield* Replay.undo(journal, recorded, { to })
      assert.deepStrictEqual(fold(yield* look(fs.port)), fold(pictures[to]!), `to ${to} of ${end}`)
      yield* Replay.undo(journal, recorded, { to: last })
      assert.deepStrictEqual(fold(yield* look(fs.port)), fold(pictures[end]!), "the undo undone")
    }), { arbitrary: { runs: 400, size: 40 } }, 120_000)

  it.effect.prop("many undos", [programs, Arbitraries.files, seed], ([program, files, s]) =>
    Effect.gen(function* () {
      const r = rng(s)
      const fs = yield* another()
      yield* plant(fs.port, files)
      const { journal, pictures } = yield* watching(fs.port)
      const recorded = yield* record(journal, fs)
      for (const command of program) {
        yield* outcome(recorded, command)
        if (r() < 0.15) {
          const to = Math.floor(r() * pictures.length)
          yield* Replay.undo(journal, recorded, { to })
          assert.deepStrictEqual(yield* look(fs.port), pictures[to], `mid to ${to}`)
        }
      }
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
    }), { arbitrary: { runs: 400, size: 40 } }, 120_000)

  it.effect.prop("faults in recorded operations", [programs, Arbitraries.files, seed], ([program, files, s]) =>
    Effect.gen(function* () {
      const r = rng(s)
      const fs = yield* another()
      yield* plant(fs.port, files)
      let on = false
      const mode = () => r()
      const broken = make(around(fs.port, (operation, next) => {
        if (!on || !isMutation(operation) || r() > 0.2) return next
        const m = mode()
        const fault = { _tag: "IoError", detail: "injected" } as never
        return m < 0.25 ? Effect.fail(fault) : m < 0.5 ? Effect.andThen(next, Effect.fail(fault)) as never : m < 0.75 ? Effect.andThen(next, Effect.die("x")) as never : Effect.andThen(next, Effect.interrupt) as never
      }))
      const { journal, pictures } = yield* watching(fs.port)
      const recorded = yield* record(journal, broken)
      for (const command of program) {
        on = true
        yield* Effect.exit(outcome(recorded, command))
        on = false
        assert.deepStrictEqual(yield* Replay.drift(journal, fs), [], JSON.stringify(command))
      }
      const end = yield* look(fs.port)
      const to = Math.floor(r() * pictures.length)
      const exit = yield* Effect.exit(Replay.undo(journal, fs, { to }))
      if (Exit.isSuccess(exit) && to === 0) assert.deepStrictEqual(yield* look(fs.port), pictures[0])
      else if (Exit.isFailure(exit)) console.log("undo", String(exit.cause).slice(0, 300))
    }), { arbitrary: { runs: 400, size: 40 } }, 120_000)
})
