import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { isTemporaryName } from "../../src/model/FsPath.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import * as Names from "./names.ts"

const module = fileURLToPath(new URL("../../src/runtime/temporaryNames.ts", import.meta.url))

/** Starts another process of this installation, which makes a name and keeps running. */
const other = async () => {
  const program = `import(${JSON.stringify(module)}).then(({ make }) => { console.log(make("exchange")); process.stdin.resume() })`
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] })
  const ended = new Promise((resolve) => child.once("close", resolve))
  const name = await new Promise<string>((resolve) => child.stdout.once("data", (text) => resolve(String(text).trim())))
  return { child, ended, name }
}

describe("a temporary name", () => {
  it("of this process is in progress until it is forgotten, then a leftover", () => {
    const name = TemporaryNames.make("claim")
    assert.isTrue(isTemporaryName(name))
    assert.isAtMost(name.length, 128)
    const told = { owner: Identity.self(), kind: "claim", isOwnProcess: true, isPart: false }
    assert.deepStrictEqual(TemporaryNames.verify(name), { ...told, state: "in progress" })
    TemporaryNames.forget(name)
    assert.deepStrictEqual(TemporaryNames.verify(name), { ...told, state: "leftover" })
  })

  it("is forgotten when its step or effect ends, also by an exception or a failure", () => {
    const names: Array<string> = []
    TemporaryNames.withNameSync((name) => assert.isTrue(TemporaryNames.isInProgress(names[names.push(name) - 1]!)))
    assert.throws(() => TemporaryNames.withNameSync((name) => assert.fail(names[names.push(name) - 1]!)))
    const exit = Effect.runSyncExit(
      TemporaryNames.withName((name) => {
        assert.isTrue(TemporaryNames.isInProgress(name))
        names.push(name)
        return Effect.fail("no")
      })
    )
    assert.isTrue(Exit.isFailure(exit))
    assert.deepStrictEqual(names.map(TemporaryNames.isLeftover), [true, true, true])
    assert.strictEqual(new Set(names).size, 3)
  })

  it("of another process is in progress while the process runs or is stopped, and a leftover after it was killed", async () => {
    const { child, ended, name } = await other()
    assert.deepInclude(TemporaryNames.verify(name), { kind: "exchange", isOwnProcess: false, state: "in progress" })
    child.kill("SIGSTOP")
    assert.isTrue(TemporaryNames.isInProgress(name))
    child.kill("SIGKILL")
    await ended
    assert.isFalse(TemporaryNames.isInProgress(name))
    assert.isTrue(TemporaryNames.isLeftover(name))
  })

  it("of a process that cannot be looked up is not recognized", () => {
    assert.isUndefined(TemporaryNames.verify(Names.signed(Names.elsewhere)))
  })

  it("with an invalid code is not recognized, whichever process it names", () => {
    const [dead, own] = [Names.dead(), TemporaryNames.make()]
    assert.isTrue(TemporaryNames.isLeftover(Names.signed(dead)))
    const names = [
      Names.forged(dead),
      Names.forged(dead, "exchange"),
      Names.forged(Identity.self()),
      own.replace(/^\.~fsa-/, ".~fsa-kind-"),
      own.toUpperCase(),
      own.replace("-", "_"),
      `${own}.tmp`,
      own.slice(0, -4),
      ".~fsa-0.tmp",
      ".~fsa-.tmp",
      "a.txt",
      ""
    ]
    for (const name of names) {
      assert.isUndefined(TemporaryNames.verify(name), name)
      assert.isFalse(TemporaryNames.isInProgress(name), name)
      assert.isFalse(TemporaryNames.isLeftover(name), name)
    }
    TemporaryNames.forget(own)
  })
})

describe("a name derived from a temporary name", () => {
  it("is in progress as long as the temporary name, and never counts as a leftover", () => {
    const name = TemporaryNames.make("exchange")
    const part = TemporaryNames.derivePartName(name, "old3")
    assert.notStrictEqual(part, name)
    assert.isTrue(TemporaryNames.isInProgress(part))
    TemporaryNames.forget(name)
    assert.isFalse(TemporaryNames.isInProgress(part))
    assert.isTrue(TemporaryNames.isLeftover(name))
    assert.isFalse(TemporaryNames.isLeftover(part))
    assert.isUndefined(TemporaryNames.verify(part.replace("old3", "old4")))
  })
})
