/**
 * The operations of the attack without a race. Between two calls the entry at a path is replaced, so each call has
 * exactly one right result. Cached descriptors and paths must never decide on which entry a call acts.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Ground, inside, type Place, prepare, type Scene } from "./ground.ts"
import { onPort, type Operation, type Outcome, type Subject } from "./operations.ts"
import { onService } from "./serviceOperations.ts"
import { cached, type Opened, posixHost } from "./subjects.ts"
import { isSoak } from "../../runs.ts"

const canPlay = process.platform === "linux" && Fs.existsSync("/proc/self/fd")
const base = Fs.mkdtempSync(join(Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-exact-"))
afterAll(() => Fs.rmSync(base, { recursive: true, force: true }))

const scene: Scene = {
  name: "one after the other",
  build: (top) => {
    const root = join(top, "root")
    const places = [inside(join(root, "first", "name"), "x"), inside(join(root, "second", "name"), "y")]
    for (const holder of ["linked", "filed", "bare"]) Fs.mkdirSync(join(root, holder))
    Fs.symlinkSync(join(top, "out"), join(root, "linked", "name"))
    Fs.writeFileSync(join(root, "filed", "name"), "a file")
    return { at: "up/name", places, attack: ["exchange", "", ""] }
  }
}

const holders = ["first", "second", "linked", "filed", "bare"] as const
type Holder = (typeof holders)[number]

const stage = ({ root, places }: Ground) => {
  const path = (name: string): string => join(root, name)
  let shown: Holder = "bare"
  /** True if the entry was moved there with its directory, or alone into a new one. */
  let isCarried = true
  Fs.renameSync(path("bare"), path("up"))
  const clear = (): void => {
    if (isCarried) return Fs.renameSync(path("up"), path(shown))
    if (shown !== "bare") Fs.renameSync(path("up/name"), path(`${shown}/name`))
    Fs.rmdirSync(path("up"))
  }
  return {
    show: (next: Holder, withDirectory: boolean): Place | undefined => {
      clear()
      isCarried = withDirectory
      shown = next
      if (isCarried) Fs.renameSync(path(next), path("up"))
      else {
        Fs.mkdirSync(path("up"))
        if (next !== "bare") Fs.renameSync(path(`${next}/name`), path("up/name"))
      }
      return next === "first" ? places[0] : next === "second" ? places[1] : undefined
    }
  }
}

/** The operations that need an entry at the path. */
const operations = [...onPort, ...onService].filter(({ name }) => !/outside$|exists|walk|glob|grep/.test(name))

const numbers = (seed: number) => (bound: number) => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((seed / 2 ** 32) * bound)
}

/** Returns a complaint unless the call acted in the present directory, if there is one, and nowhere else. */
const complaint = (
  operation: Operation,
  ground: Ground,
  here: Place | undefined,
  n: number,
  outcome: Outcome
): string | undefined => {
  const judge = (places: ReadonlyArray<Place>, said: Outcome) => operation.judge!({ ...ground, places }, n, said)?.why
  const elsewhere = ground.places.filter((place) => place !== here)
  const failure: Outcome = { _tag: "Failure", failure: { _tag: "elsewhere" } }
  if (here === undefined) return outcome._tag === "Success" ? "succeeded with nothing there" : judge(elsewhere, outcome)
  if (outcome._tag === "Failure") return `failed: ${JSON.stringify(outcome.failure)}`
  return judge([here], outcome) ?? judge(elsewhere, failure)
}

const play = async (
  open: (root: string) => Promise<Opened>,
  rounds: number
): Promise<{ readonly complaints: ReadonlyArray<string>; readonly done: number }> => {
  const top = Fs.mkdtempSync(join(base, "ground-"))
  const ground = prepare(top, scene)
  const { close, subject } = await open(ground.root)
  const { show } = stage(ground)
  const any = numbers(3)
  const complaints: Array<string> = []
  let done = 0
  const call = (subject: Subject, operation: Operation, n: number) =>
    Effect.runPromise(Effect.result(operation.run(subject, ground, n)))
  for (let n = 0; n < rounds; n++) {
    const operation = operations[any(operations.length)]!
    operation.prepare?.(ground, n)
    const holder = holders[any(holders.length)]!
    const here = show(holder, any(2) === 0)
    const outcome = (await call(subject, operation, n)) as Outcome
    if (outcome._tag === "Success") done++
    const found =
      complaint(operation, ground, here, n, outcome) ?? ground.outside.touched(true) ?? ground.bystander.touched(true)
    if (found !== undefined) complaints.push(`${n}: ${operation.name} with ${holder}: ${found}`)
    if (complaints.length > 20) break
  }
  await close()
  ground.release()
  return { complaints, done }
}

describe.runIf(canPlay)("an operation after an exchange of the entry at its path", () => {
  it("acts on the entry that is at the path after the exchange", { timeout: 300_000 }, async () => {
    const rounds = isSoak ? 200_000 : 4000
    const { complaints, done } = await play(posixHost, rounds)
    assert.deepStrictEqual(complaints, [])
    assert.isAbove(done, rounds / 4)
  })

  it("is caught by this test if the port reuses a directory that it opened before", async () => {
    assert.isNotEmpty((await play(cached, 500)).complaints)
  })
})
