/** Runs random programs of `node:fs` calls on NodeFs, on Node's own fs, and on memfs. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { memfs } from "memfs"
import { join } from "node:path"
import * as NodeFs from "../../src/adapters/NodeFs.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { runs } from "../runs.ts"
import { inMemory } from "../scratch.ts"
import { type Command, makeRunner, programs } from "./nodePrograms.ts"

const makeSync = () => Effect.runSync(Effect.provide(NodeFs.sync(), InMemory.layer()))

const newDirectory = () => Fs.mkdtempSync(join(inMemory(), "nodefs-"))

const codeOf = (answer: unknown): unknown =>
  typeof answer === "object" && answer !== null && "code" in answer ? answer.code : answer

describe("NodeFs.sync", () => {
  it.effect.prop(
    "answers and fails as Node does, with the same messages except for cp, and leaves the same tree",
    [programs],
    ([program]) =>
      Effect.sync(() => {
        const base = newDirectory()
        const expected = makeRunner({ fs: Fs, base })
        const actual = makeRunner({ fs: makeSync(), base: "" })
        try {
          for (const [at, command] of (program as ReadonlyArray<Command>).entries()) {
            const want = expected.run(command)
            assert.deepStrictEqual(actual.run(command), want, `call ${at}: ${JSON.stringify(command)}`)
          }
          expected.closeAll()
          actual.closeAll()
          assert.deepStrictEqual(actual.tree(), expected.tree())
        } finally {
          Fs.rmSync(base, { recursive: true, force: true })
        }
      }),
    { arbitrary: { runs: runs(1000), size: 40 } }
  )

  it.effect.prop(
    "has the answers and error codes of memfs, up to the first call in which memfs differs from Node",
    [programs],
    ([program]) =>
      Effect.sync(() => {
        const base = newDirectory()
        const node = makeRunner({ fs: Fs, base })
        const expected = makeRunner({ fs: memfs().fs as unknown as NodeFs.Sync, base: "" })
        const actual = makeRunner({ fs: makeSync(), base: "" })
        try {
          for (const command of program as ReadonlyArray<Command>) {
            const [want, got, onDisk] = [expected, actual, node].map((runner) => codeOf(runner.run(command)))
            // The trees may differ after a call in which memfs differs from Node.
            if (JSON.stringify(want) !== JSON.stringify(onDisk)) return
            assert.deepStrictEqual(got, want, JSON.stringify(command))
          }
        } finally {
          Fs.rmSync(base, { recursive: true, force: true })
        }
      }),
    { arbitrary: { runs: runs(400), size: 40 } }
  )
})
