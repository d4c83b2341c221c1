/** Atomic changes by a process without a private directory, which cannot keep a record. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { before } from "../agent/changesKilled.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { file, look, plant, tree } from "./transactionTrees.ts"

const script = fileURLToPath(new URL("../agent/changesKilled.ts", import.meta.url))

it.live.skipIf(process.platform === "win32")(
  "a change of several files that cannot be recorded is refused with advice and changes nothing",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = join(yield* fastDirectory, "root")
        plant(
          root,
          tree({
            "a.txt": file(before["a.txt"]!),
            d: tree({ "b.txt": file(before["d/b.txt"]!) }),
            gone: file(before["gone"]!),
            old: file(before["old"]!)
          })
        )
        const found = look(root)
        const nowhere = "/dev/null/nowhere"
        const { status, stderr } = spawnSync(process.execPath, [script, root, "0"], {
          encoding: "utf8",
          env: { PATH: process.env["PATH"], XDG_STATE_HOME: nowhere, HOME: nowhere, TMPDIR: nowhere }
        })
        assert.notStrictEqual(status, 0)
        assert.include(stderr, "nothing was changed, because the record of the transaction cannot be written")
        assert.include(stderr, "XDG_STATE_HOME")
        assert.deepStrictEqual(look(root), found)
        assert.isFalse(Fs.readdirSync(root).some((name) => name.startsWith(".~fsa-")))
      })
    )
)

const transactions = new URL("../../src/runtime/transactions.ts", import.meta.url).href

const twice = `
import * as Fs from "node:fs"
import * as Transactions from ${JSON.stringify(transactions)}
const roots = [Transactions.rootAt("/")]
const keep = () => Transactions.draft(Transactions.makeId(), Transactions.ownHeader("", roots), false).publish("turn")
keep()
Fs.rmSync(process.env.XDG_STATE_HOME, { recursive: true })
keep()
process.stdout.write(String(Fs.readdirSync(Transactions.directory()).length))
`

it.live.skipIf(process.platform === "win32")("a removed private directory is re-created with mode 0700", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const state = join(yield* fastDirectory, "state")
      const { stderr, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", twice], {
        encoding: "utf8",
        env: { ...process.env, XDG_STATE_HOME: state }
      })
      assert.strictEqual(stdout, "1", stderr)
      assert.strictEqual(Fs.statSync(join(state, "fs-algebra")).mode & 0o777, 0o700)
    })
  )
)
