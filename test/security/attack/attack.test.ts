/**
 * Another process swaps directories, files and links as fast as possible while every operation runs. On a race-free
 * host, nothing outside is changed, read or revealed. Each successful call acts on the entry to which the path led at
 * some moment of the call. `npm run soak` makes a million attempts per operation (or FS_ALGEBRA_ATTEMPTS) and prints
 * the results. With DEBUG=1 this test prints them too.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { compile, inNode, type Program } from "./attackers.ts"
import { isLoud, type Kind, line, play, type Tally } from "./harness.ts"
import type { Operation } from "./operations.ts"
import { actsFor, attemptsOf, operationOf, timeLimitOf, timeoutOf, wanted } from "./scenes.ts"
import { posixHost } from "./subjects.ts"

const canPlay = process.platform === "linux" && Fs.existsSync("/proc/self/fd")
if (!canPlay) console.log("skipped: the attack on PosixHost, which is race-free only on Linux with /proc")

/** A directory on a disk in memory if possible, because the attacker is fastest there. */
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
  milliseconds: timeLimitOf(attemptsOf(name))
})

describe.runIf(canPlay)("PosixHost under attack", () => {
  for (const act of actsFor(program.engine)) {
    describe(act.scene.name, () => {
      let tallies: ReadonlyArray<Tally> = []

      beforeAll(async () => {
        tallies = await Effect.runPromise(play(ground(), act.scene, act.operations, posixHost, program, quotaOf))
        all.push(...tallies)
      }, timeoutOf(act))

      it("is attacked the required number of times during swaps", () => {
        assert.deepStrictEqual(
          tallies.map(({ operation }) => operation),
          act.operations.map(({ name }) => name)
        )
        for (const tally of tallies) assert.isAtLeast(tally.attempts, attemptsOf(tally.operation), line(tally))
      })

      it("changes, reads and shows nothing outside the root", () => assert.deepStrictEqual(accused(tallies, "escape"), []))

      it("changes exactly the entry to which the path leads if the call succeeds, and nothing if the call fails", () =>
        assert.deepStrictEqual(accused(tallies, "wrong", "undeclared"), []))

      it("leaves no temporary file and no descriptor", () => assert.deepStrictEqual(accused(tallies, "leftovers"), []))

      it("fails only with errors that fit the operation", () => assert.deepStrictEqual(accused(tallies, "misnamed"), []))
    })
  }

  it("is attacked at least 20,000 times, and some calls of every operation succeed", () => {
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

  it("resists the attacker in Node too", { timeout: 600_000 }, async () => {
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
