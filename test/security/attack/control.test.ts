/**
 * Shows that the attack works: on ports that only compare paths, it detects every operation outside of the root. Each
 * operation is repeated until it is detected, for at most a minute.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { compile, inNode } from "./attackers.ts"
import { onTheWay, type Scene } from "./ground.ts"
import { type Kind, line, play } from "./harness.ts"
import { onPort, type Operation } from "./operations.ts"
import { onService } from "./serviceOperations.ts"
import { type Opened, prefix, realpath } from "./subjects.ts"

const canPlay = process.platform === "linux" && Fs.existsSync("/proc/self/fd")
const base = Fs.mkdtempSync(join(Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-control-"))
afterAll(() => Fs.rmSync(base, { recursive: true, force: true }))

const compiled = canPlay ? compile(base) : inNode
let grounds = 0

const uncaught = async (
  subject: (root: string) => Promise<Opened>,
  scene: Scene,
  operations: ReadonlyArray<Operation>,
  until: Kind,
  program = compiled
): Promise<ReadonlyArray<string>> => {
  const top = join(base, String(grounds++))
  Fs.mkdirSync(top)
  const quota = { attempts: Number.POSITIVE_INFINITY, milliseconds: 60_000, until }
  const tallies = await Effect.runPromise(play(top, scene, operations, subject, program, () => quota))
  return tallies.filter(({ counts }) => counts[until] === 0).map(line)
}

const named = (operations: ReadonlyArray<Operation>, pattern: RegExp): ReadonlyArray<Operation> =>
  operations.filter(({ name }) => pattern.test(name))

const [absolute, deep, twins] = onTheWay as [Scene, Scene, Scene]

describe.runIf(canPlay)("the attack catches", () => {
  const minutes = { timeout: 600_000 }

  it("each operation of a port that compares only prefixes of paths", minutes, async () => {
    assert.deepStrictEqual(await uncaught(prefix, absolute, onPort, "escape"), [])
  })

  it("each operation of a port that resolves links, compares, and then uses the resolved path", minutes, async () => {
    assert.deepStrictEqual(await uncaught(realpath, deep, onPort, "escape"), [])
  })

  it("some operations of the service on a port that compares only prefixes of paths", minutes, async () => {
    assert.deepStrictEqual(await uncaught(prefix, absolute, named(onService, /readString|list|sink|delete$/), "escape"), [])
  })

  it("a read through a port that opens the same name twice for one file", minutes, async () => {
    assert.deepStrictEqual(await uncaught(prefix, twins, named(onPort, /^open and read/), "wrong"), [])
  })

  it("some operations of a port with the attacker in Node too", minutes, async () => {
    const some = named(onPort, /^(?:stat|list|write create bytes|remove a file)$/)
    assert.deepStrictEqual(await uncaught(prefix, absolute, some, "escape", inNode), [])
  })
})
