/**
 * Dumps that end early, because their process ends at a system call or because they are interrupted at a step, and
 * concurrent dumps.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { spawn } from "node:child_process"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import * as Identity from "../../src/runtime/processIdentity.ts"
import * as Session from "../../src/workspace/Session.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { real, Trigger, victimOf } from "../interruption/harness.ts"
import { isSoak } from "../runs.ts"
import { dying, found, names, pair, slices } from "./dumping.ts"
import * as Names from "../runtime/names.ts"

type Pair = Effect.Success<ReturnType<typeof pair>>

const dump = ({ filesystem, session }: Pair, top: string, withFilesystem = true) =>
  Session.dumpSessionTree(session, top, withFilesystem ? { filesystem } : {})

/** Two flags each: whether the old dump has an archive (`undefined` means no old dump), and whether the new dump has one. */
const scenarios = [
  ["the first dump, with an archive", undefined, true],
  ["the first dump, without an archive", undefined, false],
  ["a dump with an archive, over a dump with an archive", true, true],
  ["a dump without an archive, over a dump with an archive", true, false],
  ["a dump with an archive, over a dump without an archive", false, true]
] as const

const told = (note: string, hasArchive: boolean): readonly [string, string | undefined] => [note, hasArchive ? note : undefined]

const whole = Effect.fnUntraced(function* (top: string, outcomes: ReadonlyArray<unknown>, what: string) {
  const outcome = yield* found(top)
  assert.include(
    outcomes.map((one) => JSON.stringify(one)),
    JSON.stringify(outcome),
    what
  )
  return outcome === undefined ? "none" : outcome[0]!
})

/** Checks that the next dump leaves only its own files. */
const goesOn = Effect.fnUntraced(function* (top: string, third: Pair) {
  yield* dump(third, top)
  assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl"])
  assert.deepStrictEqual(yield* found(top), told("three", true))
})

describe("a dump whose process is killed", () => {
  for (const [what, before, after] of scenarios) {
    it.effect(`at any system call leaves the old dump or the new dump complete: ${what}`, () =>
      Effect.gen(function* () {
        const [one, two, three] = [yield* pair("one"), yield* pair("two"), yield* pair("three")]
        const outcomes = [before === undefined ? undefined : told("one", before), told("two", after)]
        const seen = new Set<string>()
        for (let nth = 1, died = true; died; nth++) {
          died = yield* Effect.scoped(
            Effect.gen(function* () {
              const top = yield* fastDirectory
              if (before !== undefined) yield* dump(one, top, before)
              const end = yield* dying(nth, dump(two, top, after))
              seen.add(yield* whole(top, outcomes, `call ${nth}`))
              if (!end.died) assert.isTrue(Exit.isSuccess(end.exit))
              yield* goesOn(top, three)
              return end.died
            })
          )
        }
        assert.deepStrictEqual([...seen].sort(), [before === undefined ? "none" : "one", "two"].sort())
      })
    )
  }

  it.effect("after another killed dump leaves one of the two dumps", () =>
    Effect.gen(function* () {
      const [one, two, three] = [yield* pair("one"), yield* pair("two"), yield* pair("three")]
      /** Returns the state after the first call and whether the call was reached. */
      const first = Effect.fnUntraced(function* (top: string, nth: number) {
        yield* dump(one, top)
        const { died } = yield* dying(nth, dump(two, top))
        return [(yield* found(top))!, died] as const
      })
      // Only calls after the commit of the new pair and before its completion are interesting.
      const unfinished: Array<number> = []
      for (let nth = 1, died = true; died; nth++) {
        const [there, isReached] = yield* Effect.scoped(Effect.flatMap(fastDirectory, (top) => first(top, nth)))
        if (isReached && there[0] === "two") unfinished.push(nth)
        died = isReached
      }
      assert.isAbove(unfinished.length, 1)
      for (const nth of unfinished) {
        for (let again = 1, died = true; died; again++) {
          died = yield* Effect.scoped(
            Effect.gen(function* () {
              const top = yield* fastDirectory
              const [middle] = yield* first(top, nth)
              const end = yield* dying(again, dump(three, top))
              yield* whole(top, [middle, told("three", true)], `calls ${nth} and ${again}`)
              return end.died
            })
          )
        }
      }
    })
  )
})

describe("an interrupted dump", () => {
  for (const moment of ["step", "call", "called"] as const) {
    it.live(
      `at any ${moment === "called" ? "end of a call" : moment} leaves only the old dump or only the new dump, complete`,
      () =>
        Effect.gen(function* () {
          const [one, two, three] = [yield* pair("one"), yield* pair("two"), yield* pair("three")]
          const seen = new Set<string>()
          const every = moment === "step" && !isSoak ? 23 : isSoak ? 1 : 3
          for (let nth = 1, fired = true; fired; nth += every) {
            fired = yield* Effect.scoped(
              Effect.gen(function* () {
                const top = yield* fastDirectory
                yield* dump(one, top)
                const trigger = new Trigger(moment, nth)
                const exit = yield* victimOf(trigger, dump(two, top))
                const outcome = yield* whole(top, [told("one", true), told("two", true)], `${moment} ${nth}`)
                if (Exit.isSuccess(exit)) assert.strictEqual(outcome, "two")
                seen.add(outcome)
                assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl"])
                return trigger.hasFired
              })
            )
          }
          assert.strictEqual(seen.size, 2)
          const top = yield* fastDirectory
          yield* dump(one, top)
          yield* goesOn(top, three)
        }).pipe(Effect.scoped)
    )
  }
})

describe("a dump whose archive cannot be renamed to its final name", () => {
  it.effect("fails, although it is complete, and the next dump succeeds", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      yield* dump(yield* pair("one"), top)
      const renameSync = (from: string, to: string): void => {
        if (to === join(real.realpathSync(top), "abc.fs.zip")) {
          throw Object.assign(new Error("planned"), { code: "EIO", errno: -5 })
        }
        real.renameSync(from, to)
      }
      const put = (value: unknown): void => {
        Object.assign(fs, { renameSync: value })
        syncBuiltinESMExports()
      }
      put(renameSync)
      const error = yield* Effect.ensuring(
        Effect.flip(dump(yield* pair("two"), top)),
        Effect.sync(() => put(real.renameSync))
      )
      assert.isTrue(error._tag === "SessionError" && error.reason === "io")
      assert.deepStrictEqual(yield* found(top), told("two", true))
      yield* goesOn(top, yield* pair("three"))
    })
  )
})

describe("a dump", () => {
  /** Finds the kind in the name of the hidden directory for the dump "abc". */
  const kindOf = Effect.fnUntraced(function* (top: string) {
    // The third change of the disk is the first one inside of the hidden directory.
    yield* dying(3, dump(yield* pair("one"), top))
    const [name] = names(top)
    real.rmSync(join(top, name!), { recursive: true })
    return /^\.~fsa-(dump[a-z]{16})-/.exec(name!)![1]!
  })

  /** The identity of a process that lives until the scope ends. */
  const neighbour = Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const script = `import * as I from "./src/runtime/processIdentity.ts"; process.stdout.write(I.self()); process.stdin.resume()`
        return spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] })
      }),
      (child) =>
        Effect.callback<void>((resume) => {
          child.on("exit", () => resume(Effect.void))
          child.kill("SIGKILL")
        })
    ),
    (child) =>
      Effect.callback<string>((resume) => {
        child.stdout.once("data", (bytes: Buffer) => resume(Effect.succeed(bytes.toString())))
      })
  )

  it.effect("removes the leftovers of dead processes for the same dump, and no other files", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const kind = yield* kindOf(top)
      const dead = yield* Effect.scoped(Effect.flatten(neighbour))
      const living = yield* Effect.flatten(neighbour)
      assert.deepStrictEqual([Identity.isDead(dead), Identity.isDead(living)], [true, false])
      const kept = [
        Names.signed(dead, `dump${"a".repeat(16)}`),
        Names.signed(living, kind),
        Names.signed(Names.elsewhere, kind),
        ...[dead, living, Names.elsewhere].map((owner) => Names.forged(owner, kind)),
        ".~fsa-dump.tmp",
        "other.jsonl"
      ]
      for (const name of [...kept, Names.signed(dead, kind)]) {
        real.mkdirSync(join(top, name))
        for (const file of ["lines9", "archive", `${"0".repeat(64)}.fs.zip`, Names.signed(dead, "archive")]) {
          real.writeFileSync(join(top, name, file), "")
        }
      }
      for (const name of kept) real.utimesSync(join(top, name), 1, 1)
      yield* dump(yield* pair("one"), top)
      assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl", ...kept].sort())
      for (const name of kept) assert.strictEqual(names(join(top, name)).length, 4)
    })
  )

  it.effect("may be replaced after a reader has read its first file and before the reader opens the second", () =>
    Effect.gen(function* () {
      const [top, elsewhere] = [yield* fastDirectory, yield* fastDirectory]
      yield* dump(yield* pair("one"), top)
      yield* dump(yield* pair("two"), elsewhere)
      let isDone = false
      // The reader's last check before it opens the archive is an lstat.
      const put = (lstatSync: unknown): void => {
        Object.assign(fs, { lstatSync })
        syncBuiltinESMExports()
      }
      put((path: string, ...options: ReadonlyArray<never>) => {
        if (!isDone && path.endsWith(".fs.zip")) {
          isDone = true
          for (const name of ["abc.jsonl", "abc.fs.zip"]) real.renameSync(join(elsewhere, name), join(top, name))
        }
        return (real.lstatSync as unknown as (...all: ReadonlyArray<unknown>) => unknown)(path, ...options)
      })
      const outcome = yield* Effect.ensuring(
        found(top),
        Effect.sync(() => put(real.lstatSync))
      )
      assert.isTrue(isDone)
      assert.deepStrictEqual(outcome, ["two", "two"])
    })
  )

  it.effect("may run concurrently with other dumps in the same process, with equal or different ids", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const pairs = yield* Effect.forEach(["one", "two", "three", "four"], pair)
      const others = yield* Effect.forEach(["x", "y"], (id) =>
        Effect.tap(Session.make({ tags: { session_id: id }, slices }), (session) => session.publish(id))
      )
      for (let round = 0; round < 5; round++) {
        yield* Effect.all(
          [...pairs.map((one) => dump(one, top)), ...others.map((session) => Session.dumpSessionTree(session, top))],
          { concurrency: "unbounded" }
        )
        const [note, file] = (yield* found(top))!
        assert.strictEqual(file, note)
      }
      assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl"])
    })
  )
})
