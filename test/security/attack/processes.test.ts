/**
 * Another process exchanges a directory with a link to the outside as fast as possible, while search processes walk, glob and
 * grep the tree. Nothing outside is seen, and what stays in place is always found.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../../src/backends/PosixHost.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { searchProcesses } from "../../../src/runtime/searchProcesses.ts"
import { runs } from "../../runs.ts"
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

describe.runIf(canPlay)("a search by processes under attack", () => {
  it.live(
    "sees nothing outside, and finds everything that stays in place",
    () =>
      Effect.gen(function* () {
        const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
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
              for (let i = 0; i < runs(400); i++) {
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
              }
              assert.isAbove(attacker.swaps() - before, 100)
              assert.isAbove(whole, 0, "the attacked directory was never found as a whole")
            }),
          (attacker) => Effect.promise(attacker.stop)
        )
      }).pipe(Effect.scoped),
    600_000
  )
})
