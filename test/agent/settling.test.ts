/** The answers of tools in a directory in which another process was killed during a tool call. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { seven } from "../../src/agent/kits.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { runTransaction } from "../../src/history/transaction.ts"
import { Recovery, type TransactionOutcome } from "../../src/port/hostRoots.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { allKinds, goalOf, look, plant, unlike } from "../history/transactionTrees.ts"
import { call } from "./looking.ts"

const list = seven.find(({ name }) => name === "list_directory" || name === "ls")!

const left = Effect.gen(function* () {
  const root = join(yield* fastDirectory, "root")
  const { after, before } = allKinds(10)
  plant(root, before)
  const said: Array<TransactionOutcome> = []
  const port = yield* Effect.provideService(PosixHost.make({ root }), Recovery, {
    permits: () => true,
    report: (settled) => Effect.sync(() => void said.push(settled))
  })
  // The change fails midway, and so does its rollback.
  const broken = faulty([
    { operation: "SetAttributes", path: ".", fault: { _tag: "IoError", code: "EIO", detail: "planned" } },
    { operation: "Rename", path: "new tree", fault: { _tag: "IoError", code: "EIO", detail: "planned" } }
  ])(make(port))
  yield* Effect.flip(runTransaction(broken.port, goalOf(before, after)))
  return { root, fs: make(port), after, said }
})

describe("a tool over a directory with an unfinished transaction", () => {
  it.live("completes the transaction before it lists the directory", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { after, fs, root, said } = yield* left
        assert.isAbove(unlike(look(root), after).length, 0)
        const result = yield* Effect.provideService(call(list, {}), Filesystem, fs)
        assert.include(result.message, "new tree")
        assert.notInclude(result.message, "tree gone")
        assert.deepStrictEqual(unlike(look(root), after), [])
        assert.deepStrictEqual(
          said.map(({ outcome }) => outcome),
          ["finished"]
        )
      })
    )
  )

  it.live("leaves the transaction unfinished through a read-only view, and reports it once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fs, root, said } = yield* left
        const found = look(root)
        for (let i = 0; i < 2; i++) yield* Effect.provideService(call(list, {}), Filesystem, readOnly(fs))
        assert.deepStrictEqual(look(root), found)
        assert.deepStrictEqual(
          said.map(({ outcome }) => outcome),
          ["left"]
        )
        yield* fs.port.hostRoots!.settleTransactions(() => true)
      })
    )
  )
})
