/** Who a process is, and whether it has ended: against processes that live, are stopped, and were killed. */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { fileURLToPath } from "node:url"
import * as Identity from "../../src/backends/internal/processIdentity.ts"

const module = fileURLToPath(new URL("../../src/backends/internal/processIdentity.ts", import.meta.url))
const program = `import(${JSON.stringify(module)}).then(({ self }) => { console.log(self); process.stdin.resume() })`

/** A process that has said who it is. */
const other = async () => {
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] })
  const ended = new Promise((resolve) => child.once("close", resolve))
  const identity = await new Promise<string>((resolve) => child.stdout.once("data", (text) => resolve(String(text).trim())))
  return { child, ended, identity }
}

describe("the identity of a process", () => {
  it("is short, and made of what may stand in a name", () => {
    assert.match(Identity.self, /^[0-9a-z-]{3,40}$/)
    assert.isTrue(Identity.isIdentity(Identity.self))
    for (const text of ["", "claim", `${Identity.self}.x`, "a-b", "A-b-c"]) assert.isFalse(Identity.isIdentity(text), text)
  })

  it("is its own, alive while it runs and while it is stopped, dead when it was killed", async () => {
    const { child, ended, identity } = await other()
    assert.isTrue(Identity.isIdentity(identity))
    assert.notStrictEqual(identity, Identity.self)
    assert.isFalse(Identity.isDead(Identity.self))
    assert.isFalse(Identity.isDead(identity))
    child.kill("SIGSTOP")
    assert.isFalse(Identity.isDead(identity))
    child.kill("SIGKILL")
    await ended
    assert.isTrue(Identity.isDead(identity))
  })

  it.runIf(Fs.existsSync("/proc/self/stat"))("is dead where another process has its number", async () => {
    const { child, ended, identity } = await other()
    const [where, , started] = identity.split("-")
    const mine = Identity.self.split("-")
    assert.isTrue(Identity.isDead(`${where}-${mine[1]}-${Number.parseInt(started!, 36) - 1}`))
    // Of somebody else, who may not be signalled.
    assert.isTrue(Identity.isDead(`${where}-1-zzzzzz`))
    child.kill("SIGKILL")
    await ended
  })

  it("cannot be told of another machine, nor of what is no identity", () => {
    assert.isUndefined(Identity.isDead(`0${Identity.self.slice(1)}`.replace(/^0+/, "z")))
    for (const text of ["", "claim", "a-b", Identity.self.split("-").slice(0, 2).join("-")]) {
      assert.isUndefined(Identity.isDead(text), text)
    }
  })
})
