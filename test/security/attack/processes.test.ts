/**
 * Another process exchanges a directory with a link to the outside as fast as possible, while search processes walk, glob and
 * grep the tree, and snapshots are taken of it. Nothing outside is seen, and what stays in place is always found. The soak goes on
 * until the directory was exchanged 20 million times (or FS_ALGEBRA_RUNS times).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../../src/backends/PosixHost.ts"
import { Filesystem, make } from "../../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../../src/history/Snapshots.ts"
import { searchProcesses } from "../../../src/runtime/searchProcesses.ts"
import { inSoak, isSoak, runs } from "../../runs.ts"
import { compile, inNode, type Program, start } from "./attackers.ts"

const canPlay = process.platform === "linux" && Fs.existsSync("/proc/self/fd")
const base = Fs.mkdtempSync(join(Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-attack-"))
const program: Program = canPlay ? compile(base) : inNode
const [root, outside] = [join(base, "root"), join(base, "outside")]

/** Makes directories with one file each, whose names and texts begin with the mark. */
const grow = (top: string, mark: string): void => {
  for (let i = 0; i < 60; i++) {
    const directory = join(top, `a${i % 6}`, `b${i}`)
    Fs.mkdirSync(directory, { recursive: true })
    Fs.writeFileSync(join(directory, `${mark}-${i}.ts`), `${mark} needle ${i}\n`)
  }
}

beforeAll(() => {
  grow(join(root, "attacked"), "inside")
  grow(join(root, "quiet"), "inside")
  grow(outside, "secret")
  Fs.symlinkSync(outside, join(root, "swap"))
})
afterAll(() => Fs.rmSync(base, { recursive: true, force: true }))

const swaps = isSoak ? inSoak(20_000_000) : 0

describe.runIf(canPlay)("a search by processes under attack", () => {
  it.live(
    "sees nothing outside, and finds everything that stays in place",
    () =>
      Effect.gen(function* () {
        const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
        const history = Layer.provide(Snapshots.layer, Layer.succeed(Filesystem, fs))
        const snapshots = Context.get(yield* Effect.orDie(Layer.build(history)), Snapshots.Snapshots)
        while (!searchProcesses()!.areWarm()) {
          yield* Effect.orDie(fs.glob("**"))
          yield* Effect.sleep(5)
        }
        const counter = join(base, "counter")
        yield* Effect.acquireUseRelease(
          Effect.promise(() => start(program, ["exchange", join(root, "attacked"), join(root, "swap")], 16_000, counter)),
          (attacker) =>
            Effect.gen(function* () {
              const before = attacker.swaps()
              let whole = 0
              let taken = 0
              for (let i = 0; i < runs(isSoak ? 0 : 400) || attacker.swaps() - before < swaps; i++) {
                const { matches } = yield* Effect.orDie(fs.glob("**/*.ts"))
                const found = yield* Effect.orDie(fs.grep("needle"))
                const walked = yield* Effect.option(Stream.runCollect(fs.walk(".")))
                const paths = [
                  ...matches.map(({ path }) => path),
                  ...found.matches.map(({ lineContent, path }) => `${path}: ${lineContent}`),
                  ...(walked._tag === "Some" ? walked.value.map(({ path }) => path) : [])
                ]
                assert.deepStrictEqual(
                  paths.filter((path) => path.includes("secret")),
                  []
                )
                const quiet = (all: ReadonlyArray<string>): number => all.filter((path) => path.startsWith("quiet/")).length
                assert.strictEqual(quiet(matches.map(({ path }) => path)), 60)
                assert.strictEqual(quiet(found.matches.map(({ path }) => path)), 60)
                if (matches.length === 120) whole++
                if (i % 50 !== 0) continue
                const snapshot = yield* Effect.option(snapshots.snapshot())
                if (snapshot._tag === "None") continue
                const view = yield* Effect.orDie(snapshots.view(snapshot.value))
                const { matches: kept } = yield* Effect.orDie(view.grep("."))
                assert.deepStrictEqual(
                  kept.filter(({ lineContent, path }) => `${path}${lineContent}`.includes("secret")),
                  []
                )
                assert.strictEqual(quiet(kept.map(({ path }) => path)), 60)
                yield* Effect.orDie(snapshots.forget(snapshot.value))
                taken++
              }
              assert.isAbove(taken, 0, "no snapshot was taken")
              if (isSoak) console.log(`${attacker.swaps() - before} swaps, ${taken} snapshots`)
              assert.isAbove(attacker.swaps() - before, 100)
              assert.isAbove(whole, 0, "the attacked directory was never found as a whole")
            }),
          (attacker) => Effect.promise(attacker.stop)
        )
      }).pipe(Effect.scoped),
    isSoak ? 7_200_000 : 600_000
  )
})
