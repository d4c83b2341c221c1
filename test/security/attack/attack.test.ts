/**
 * Another process swaps directories, files and links as fast as it can while every operation runs. What is promised where the host is
 * race-free: nothing outside is changed, read or seen, and what succeeds was done where the path led at some moment of the call.
 *
 * `npm run soak` makes a million attempts per operation (FS_ALGEBRA_ATTEMPTS another number), and prints what came of them; so does
 * DEBUG=1 here.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { compile, inNode, type Program } from "./attackers.ts"
import { isLoud, type Kind, line, play, type Tally } from "./harness.ts"
import type { Operation } from "./operations.ts"
import { actsFor, attemptsOf, operationOf, patienceFor, timeoutOf, wanted } from "./scenes.ts"
import { posixHost } from "./subjects.ts"

const canPlay = process.platform === "linux" && Fs.existsSync("/proc/self/fd")
if (!canPlay) console.log("skipped: the attack on PosixHost, whose promise of no race is for Linux with /proc")

/** In memory where that is possible: there the attacker is fastest, and a disk is spared. */
const base = Fs.mkdtempSync(join(Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-attack-"))
const program: Program = canPlay ? compile(base) : inNode
let grounds = 0
const ground = (): string => {
  const top = join(base, String(grounds++))
  Fs.mkdirSync(top)
  return top
}

const all: Array<Tally> = []

const accused = (tallies: ReadonlyArray<Tally>, ...kinds: ReadonlyArray<Kind>): ReadonlyArray<string> =>
  tallies
    .filter(({ counts }) => kinds.some((kind) => counts[kind] > 0))
    .map((tally) => [line(tally), ...tally.evidence.map((evidence) => `  ${evidence}`)].join("\n"))

const sum = (tallies: ReadonlyArray<Tally>, of: (tally: Tally) => number): number =>
  tallies.reduce((total, tally) => total + of(tally), 0)

const quotaOf = ({ name }: Operation) => ({
  attempts: attemptsOf(name),
  milliseconds: patienceFor(attemptsOf(name))
})

describe.runIf(canPlay)("under attack", () => {
  for (const act of actsFor(program.engine)) {
    describe(act.scene.name, () => {
      let tallies: ReadonlyArray<Tally> = []

      beforeAll(async () => {
        tallies = await Effect.runPromise(play(ground(), act.scene, act.operations, posixHost, program, quotaOf))
        all.push(...tallies)
      }, timeoutOf(act))

      it("the attacker was at it, in as many calls as were wanted", () => {
        assert.deepStrictEqual(
          tallies.map(({ operation }) => operation),
          act.operations.map(({ name }) => name)
        )
        for (const tally of tallies) assert.isAtLeast(tally.attempts, attemptsOf(tally.operation), line(tally))
      })

      it("nothing outside is changed, read or seen", () => assert.deepStrictEqual(accused(tallies, "escape"), []))

      it("what succeeds was done where the path led, and once; what fails was not done", () =>
        assert.deepStrictEqual(accused(tallies, "wrong", "undeclared"), []))

      it("no temporary file and no descriptor is left", () => assert.deepStrictEqual(accused(tallies, "leftovers"), []))

      it("a refusal says what the operation may say", () => assert.deepStrictEqual(accused(tallies, "misnamed"), []))
    })
  }

  it("20,000 attempts and more were made, and calls of every kind have succeeded too", () => {
    assert.isAtLeast(
      sum(all, ({ attempts }) => attempts),
      20_000
    )
    for (const name of new Set(all.map(({ operation }) => operationOf(operation)))) {
      const those = all.filter(({ operation }) => operationOf(operation) === name)
      const made = sum(those, ({ attempts }) => attempts)
      if (isLoud) console.log(`${name}: ${made} attempts, ${sum(those, ({ counts }) => counts.escape)} escapes`)
      if (program.engine === "c") assert.isAtLeast(made, wanted, name)
      assert.isAbove(
        sum(those, ({ successes }) => successes),
        0,
        name
      )
    }
  })

  it("the attacker that needs no compiler swaps as well, and wins nothing", { timeout: 120_000 }, async () => {
    const chosen = /^(?:list|open and read|write replace a stream|removeTree|remove of a file)$/
    for (const { operations, scene } of actsFor("node")) {
      const some = operations.filter(({ name }) => chosen.test(name))
      if (some.length === 0 || scene.name.includes("three deep")) continue
      const tallies = await Effect.runPromise(
        play(ground(), scene, some, posixHost, inNode, () => ({ attempts: 20, milliseconds: 30_000 }))
      )
      for (const tally of tallies) assert.isAtLeast(tally.attempts, 20, line(tally))
      assert.deepStrictEqual(accused(tallies, "escape", "wrong", "undeclared", "leftovers"), [])
    }
  })
})

afterAll(() => {
  Fs.rmSync(base, { recursive: true, force: true })
  const count = (kind: Kind): string => `${sum(all, ({ counts }) => counts[kind])} ${kind}`
  if (isLoud && all.length > 0) {
    const kinds: ReadonlyArray<Kind> = ["escape", "wrong", "undeclared", "partial", "misnamed", "leftovers"]
    console.log(
      `under attack (${program.engine}): ${sum(all, ({ attempts }) => attempts)} attempts of ${sum(all, ({ calls }) => calls)} calls, ` +
        `${sum(all, ({ swaps }) => swaps)} swaps, ${sum(all, ({ successes }) => successes)} done; ${kinds.map(count).join(", ")}`
    )
  }
})
