import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { clean, type Child, scratch, start } from "./children.ts"
import { parse, record } from "./content.ts"
import type { Outcome, Part } from "./crowd.ts"
import { look } from "./model.ts"
import { isSoak } from "../runs.ts"

afterAll(clean)

const times = isSoak ? 20 : 1
const at = scratch()
const cache = join(at, "cache")
/** Returns the process that wrote the content with this number. */
const owner = (id: number): number => Math.floor(id / 100_000)

let roots = 0
const freshRoot = (): string => {
  const root = join(at, `root${roots++}`)
  Fs.mkdirSync(root)
  return root
}

const crowd = async (parts: ReadonlyArray<Part>): Promise<ReadonlyArray<Child>> => {
  const children = parts.map(() => start("crowd.ts", cache))
  // Begin the work only after all processes have started, so that they overlap.
  await Promise.all(children.map((child) => child.dots(0)))
  for (const [n, child] of children.entries()) child.say(parts[n])
  return children
}

const finish = async (child: Child): Promise<Outcome> => {
  child.process.stdin.end()
  const { code, errors } = await child.ended
  assert.strictEqual(code, 0, errors)
  return JSON.parse(child.said().replace(/^\./, "")) as Outcome
}

const together = async (parts: ReadonlyArray<Part>): Promise<ReadonlyArray<Outcome>> =>
  Promise.all((await crowd(parts)).map(finish))

/** Repeats a round until the processes overlap often enough. A round in which they do not overlap proves nothing. */
const untilTheyMeet = async (round: (root: string) => Promise<boolean>): Promise<void> => {
  let met = 0
  for (let rounds = 0; met < times && rounds < times + 5; rounds++) {
    const root = freshRoot()
    if (await round(root)) met++
    Fs.rmSync(root, { recursive: true })
  }
  assert.strictEqual(met, times, "the processes did not overlap often enough")
}

const four = (part: Omit<Part, "id">): ReadonlyArray<Part> => [1, 2, 3, 4].map((n) => ({ ...part, id: n * 100_000 }))

const holding = async (root: string): Promise<Child> => {
  const [child] = await crowd([{ root, role: "hold", how: "stream", id: 5, sizes: [100_000] }])
  await child!.dots(1)
  return child!
}

/** Runs another program on the directory. */
const meet = (root: string, how: "lists" | "writes"): Promise<void> =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    if (how === "lists") assert.deepStrictEqual(yield* fs.list(), [])
    else yield* fs.write("g", "g")
  }).pipe(Effect.provide(PosixHost.layer({ root })), Effect.orDie, Effect.runPromise)

for (const how of ["lists", "writes"] as const) {
  describe(`the staged file of another process, when a program ${how} in its directory`, () => {
    it("stays while the process lives, even if it is stopped and the file looks old", async () => {
      const root = freshRoot()
      const child = await holding(root)
      const { hidden } = look(root)
      assert.strictEqual(hidden.length, 1)
      Fs.utimesSync(join(root, hidden[0]!), 1, 1)
      child.process.kill("SIGSTOP")
      await meet(root, how)
      assert.deepStrictEqual(look(root).hidden, hidden)
      child.process.kill("SIGCONT")
      assert.deepStrictEqual((await finish(child)).wrong, [])
      assert.strictEqual(look(root).tree.get("f"), "file 5")
      assert.deepStrictEqual(look(root).hidden, [])
    })

    it("is removed after the process was killed, even if the file looks new", async () => {
      const root = freshRoot()
      const child = await holding(root)
      assert.strictEqual(look(root).hidden.length, 1)
      child.process.kill("SIGKILL")
      await child.ended
      assert.strictEqual(look(root).hidden.length, 1)
      await meet(root, how)
      assert.deepStrictEqual(look(root).hidden, [])
      assert.isUndefined(look(root).tree.get("f"))
    })
  })
}

describe("four processes", { timeout: isSoak ? 1_200_000 : 600_000 }, () => {
  for (const how of ["bytes", "stream"] as const) {
    it(`create the same names from ${how === "stream" ? "a stream" : how}, and exactly one process succeeds for each name`, async () => {
      const sizes = Array.from({ length: 150 }, (_, n) => (n % 10 === 0 ? 300_000 : 100 + n))
      await untilTheyMeet(async (root) => {
        const outcomes = await together(four({ root, role: "create", how, sizes }))
        const found = look(root)
        assert.deepStrictEqual(found.hidden, [])
        assert.strictEqual(found.tree.size, sizes.length)
        for (const [n, outcome] of outcomes.entries()) {
          assert.deepStrictEqual(outcome.wrong, [])
          const owned = [...found.tree].filter(([, what]) => what.startsWith(`file ${n + 1}`)).map(([path]) => path)
          assert.deepStrictEqual([...outcome.won].sort(), owned.sort())
        }
        return outcomes.filter(({ won }) => won.length > 0).length > 1
      })
    })

    it(`append ${how === "stream" ? "a stream" : how} to one file without losing or mixing records, from 57 bytes to 3 MB`, async () => {
      const sizes = [100, 3_000_000, 5000, 600_000, 100, 70_000, 1_500_000, 512 * 1024, 60, 3_000_000, 9, 200_000, 65_536, 100]
      const total = sizes.reduce((sum, size) => sum + 4 * record(1, size).length, 0)
      await untilTheyMeet(async (root) => {
        const outcomes = await together(four({ root, role: "append", how, sizes }))
        assert.deepStrictEqual(
          outcomes.flatMap(({ wrong }) => wrong),
          []
        )
        const bytes = Fs.readFileSync(join(root, "f"))
        const { ids, whole } = parse(bytes)
        assert.deepStrictEqual({ length: bytes.length, whole }, { length: total, whole: total }, `after ${ids.length} records`)
        for (const n of [1, 2, 3, 4]) {
          assert.deepStrictEqual(
            ids.filter((id) => owner(id) === n),
            sizes.map((_, k) => n * 100_000 + k)
          )
        }
        assert.deepStrictEqual(look(root).hidden, [])
        return ids.filter((id, k) => k > 0 && owner(id) !== owner(ids[k - 1]!)).length > 3
      })
    })

    it(`replace one file with ${how === "stream" ? "a stream" : how} while others read it, and every read returns one complete version`, async () => {
      const root = freshRoot()
      Fs.writeFileSync(join(root, "f"), record(1, 300_000))
      const sizes = Array.from({ length: 80 * times }, (_, n) => (n % 5 === 0 ? 1_000_000 : 300_000 + n))
      const readers = await crowd((["read", "readPlainly"] as const).map((role) => ({ root, role, how, id: 0, sizes: [] })))
      const written = await together(four({ root, role: "replace", how, sizes }))
      const read = await Promise.all(readers.map(finish))
      assert.deepStrictEqual(
        [...written, ...read].flatMap(({ wrong }) => wrong),
        []
      )
      for (const { done } of read) assert.isAbove(done, 20)
      const { hidden, tree } = look(root)
      assert.deepStrictEqual(hidden, [])
      assert.match(tree.get("f")!, /^file [1-4]000\d\d$|^file [1-4]0\d{4}$/)
    })
  }
})
