/**
 * Another program moves or replaces a directory before every primitive call of a read. The read must return one
 * consistent tree, report skipped files, or fail. It must never return a part silently.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { scan } from "../../src/history/scan.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { type Backend, portable } from "../../src/port/Backend.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import { host, memory, p } from "../agent/changing.ts"
import { type Act, disturbed } from "./moves.ts"
import { scoped, start } from "./workers.ts"

const treeOf = (name: string): Files => ({
  [`${name}.txt`]: "hit",
  [`${name}-a/1.txt`]: "hit",
  [`${name}-b/deep/2.txt`]: "hit",
  [`${name}-b/deep/3.txt`]: "hit"
})

const below = (top: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([path, entry]) => [`${top}/${path}`, entry]))

const files: Files = { ...below("d", treeOf("old")), ...below("x/new", treeOf("new")), "z.txt": "hit" }

const move = (port: Backend, from: string, to: string): Effect.Effect<void, Fault> =>
  port.rename(p(from), p(to), { replace: false })

const away: Act = (port) => move(port, "d", "x/old")
const back: Act = (port) => move(port, "x/old", "d")
const exchange: Act = (port) => Effect.andThen(move(port, "d", "x/old"), move(port, "x/new", "d"))
const exchangeBack: Act = (port) => Effect.andThen(move(port, "d", "x/new"), move(port, "x/old", "d"))
const aside: Act = (port) => move(port, "d", "e")

interface Answer {
  readonly paths: ReadonlyArray<string>
  readonly hasSaid: boolean
}

type Read = (fs: Algebra) => Effect.Effect<Answer, unknown>

const walked = <E>(entries: Stream.Stream<{ readonly path: string }, E>): Effect.Effect<Answer, E> =>
  Effect.map(Stream.runCollect(entries), (all) => ({ paths: all.map(({ path }) => path), hasSaid: false }))

const searched = <E>(
  result: Effect.Effect<
    { readonly matches: ReadonlyArray<{ readonly path: string }>; readonly skipped: { readonly unreadable: number } },
    E
  >
): Effect.Effect<Answer, E> =>
  Effect.map(result, ({ matches, skipped }) => ({
    paths: matches.map(({ path }) => path),
    hasSaid: skipped.unreadable > 0
  }))

const kinds = ["file", "directory"] as const
/** The names to which the other program moves directories. */
const exclude = ["x", "e-*"]

const reads: Readonly<Record<string, Read>> = {
  "walk of the directory": (fs) => walked(fs.walk("d")),
  "walk of the directory with sizes": (fs) => walked(fs.walk("d", { sizes: true })),
  "walk of the whole tree": (fs) => walked(fs.walk(".", { exclude })),
  "list of the directory": (fs) => Effect.map(fs.list("d"), (all) => ({ paths: all.map(({ path }) => path), hasSaid: false })),
  "glob in the directory": (fs) => searched(fs.glob("**", { path: "d", kinds })),
  "glob in the directory with sizes": (fs) => searched(fs.glob("**", { path: "d", kinds, sizes: true })),
  "glob in the whole tree": (fs) => searched(fs.glob("**", { exclude })),
  "grep in the directory": (fs) => searched(fs.grep("hit", { path: "d" })),
  "grep in the whole tree": (fs) => searched(fs.grep("hit", { exclude }))
}

const grounds = {
  memory,
  "a host without accelerations": (all: Files) => Effect.map(host(all), (fs) => make(portable(fs.port)))
}

type Plan = ReadonlyArray<readonly [nth: number, act: Act]>

const run = (ground: typeof memory, read: Read, plan: Plan) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { begin, calls, fs } = disturbed(yield* ground(files), new Map(plan))
      begin()
      return { exit: yield* Effect.exit(read(fs)), calls: calls() }
    })
  )

/** Returns the result of a read after these acts, without concurrent changes. */
const settled = (ground: typeof memory, read: Read, acts: ReadonlyArray<Act>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* ground(files)
      for (const act of acts) yield* Effect.orDie(act(fs.port))
      const exit = yield* Effect.exit(read(fs))
      return Exit.isSuccess(exit) ? JSON.stringify(exit.value.paths) : undefined
    })
  )

describe("a directory that another program moves or exchanges during a read", () => {
  for (const [where, ground] of Object.entries(grounds)) {
    for (const [name, read] of Object.entries(reads)) {
      it.effect(`is returned as one consistent tree, or reported, by ${name} in ${where}`, () =>
        Effect.gen(function* () {
          const { calls } = yield* run(ground, read, [])
          assert.isAbove(calls, 0)
          const whole = new Set<string | undefined>()
          for (const acts of [[], [exchange], [away], [aside]]) whole.add(yield* settled(ground, read, acts))
          for (let nth = 1; nth <= calls; nth++) {
            const plans: Array<Plan> = [[[nth, exchange]], [[nth, aside]]]
            for (let then = nth + 1; then < nth + 4; then++) {
              plans.push(
                [
                  [nth, exchange],
                  [then, exchangeBack]
                ],
                [
                  [nth, away],
                  [then, back]
                ]
              )
            }
            for (const [index, plan] of plans.entries()) {
              const { exit } = yield* run(ground, read, plan)
              if (Exit.isFailure(exit) || exit.value.hasSaid) continue
              const paths = JSON.stringify(exit.value.paths)
              assert.isTrue(whole.has(paths), `plan ${index} from call ${nth} on: ${paths}`)
            }
          }
        })
      )
    }
  }
})

/** Walks `d` and runs `act` at the first entry, before the walk reads any directory below its base. */
const amid = (fs: Algebra, act: () => void): Effect.Effect<ReadonlyArray<string>, unknown> => {
  let isFirst = true
  return Effect.map(
    Stream.runCollect(
      Stream.tap(fs.walk("d"), () =>
        Effect.sync(() => {
          if (isFirst) act()
          isFirst = false
        })
      )
    ),
    (all) => all.map(({ path }) => path)
  )
}

/** More levels than a walk reads ahead. */
const deep = "a/b/c/e/f/g"

const onHost = <A>(run: (fs: Algebra, root: string) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const root = yield* scoped
      const port = yield* PosixHost.make({ root })
      const tree = { [`d/${deep}/old.txt`]: "hit", [`x/new/${deep}/new.txt`]: "hit" }
      yield* plant(port, { ...files, ...tree })
      return yield* run(make(port), root)
    })
  )

const moveIn = (root: string, from: string, to: string): void => Fs.renameSync(join(root, from), join(root, to))

describe("a walk of a host", () => {
  it.effect("continues in the directory where it began when another directory takes its name", () =>
    onHost((fs, root) =>
      Effect.gen(function* () {
        const before = yield* amid(fs, () => undefined)
        const found = yield* amid(fs, () => {
          moveIn(root, "d", "x/old")
          moveIn(root, "x/new", "d")
        })
        assert.deepStrictEqual(found, before)
      })
    )
  )

  it.effect("fails with Unavailable when the directory where it began is moved and then removed", () =>
    onHost((fs, root) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(
          amid(fs, () => {
            moveIn(root, "d", "x/old")
            moveIn(root, "x/new", "d")
            Fs.rmSync(join(root, "x/old"), { recursive: true })
          })
        )
        assert.strictEqual((error as { readonly _tag: string })._tag, "Unavailable")
        assert.include(String(error), "moved or replaced this directory")
      })
    )
  )

  it.effect("treats a removed directory as empty", () =>
    onHost((fs, root) =>
      Effect.gen(function* () {
        const found = yield* amid(fs, () => Fs.rmSync(join(root, "d/old-b"), { recursive: true }))
        assert.include(found, "d/old-b")
        assert.notInclude(found, "d/old-b/deep")
      })
    )
  )
})

describe("a program that constantly exchanges two directories", () => {
  const rounds = 200
  for (const [name, read] of Object.entries(reads)) {
    it.effect(
      `does not make ${name} on a host return a partial tree`,
      () =>
        onHost((fs, root) =>
          Effect.gen(function* () {
            const answer = Effect.map(read(fs), ({ paths }) => JSON.stringify(paths))
            const whole = new Set([yield* answer])
            moveIn(root, "d", "x/old")
            whole.add(yield* Effect.orElseSucceed(answer, () => ""))
            moveIn(root, "x/new", "d")
            whole.add(yield* answer)
            moveIn(root, "x/old", "x/new")
            const swapper = yield* Effect.acquireRelease(
              Effect.sync(() => start("./swapper.ts", { root })),
              ({ ended, process }) =>
                Effect.andThen(
                  Effect.sync(() => process.kill("SIGKILL")),
                  Effect.promise(() => ended)
                )
            )
            yield* Effect.promise(() => swapper.line())
            for (let round = 0; round < rounds; round++) {
              const exit = yield* Effect.exit(read(fs))
              if (Exit.isFailure(exit) || exit.value.hasSaid) continue
              const paths = JSON.stringify(exit.value.paths)
              assert.isTrue(whole.has(paths), paths)
            }
          })
        ),
      120_000
    )
  }
})

describe("a scan of a tree for a snapshot or an archive", () => {
  it.effect("never records part of a directory that another program moved away for a moment", () =>
    Effect.gen(function* () {
      const run = (acts: Plan) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { begin, calls, fs } = disturbed(yield* memory(files), new Map(acts))
            begin()
            const { tree } = yield* scan(fs.port)
            return { entries: tree.entries.get("d"), calls: calls() }
          })
        )
      const { calls, entries } = yield* run([])
      assert.strictEqual(entries?.kind === "directory" ? entries.entries.size : 0, 3)
      let missing = 0
      for (let nth = 1; nth <= calls; nth++) {
        const found = yield* run([
          [nth, away],
          [nth + 1, back]
        ])
        if (found.entries === undefined) missing++
        else assert.deepStrictEqual(found.entries, entries, `call ${nth}`)
      }
      assert.isAbove(missing, 0)
      assert.isBelow(missing, calls)
    })
  )
})
