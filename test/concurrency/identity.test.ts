/** Tests the identity of a process and whether the process has ended, for processes that run, are stopped, or were killed. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { fileURLToPath } from "node:url"
import * as Identity from "../../src/runtime/processIdentity.ts"

const at = (path: string): string => fileURLToPath(new URL(`../../src/${path}`, import.meta.url))
const module = at("runtime/processIdentity.ts")
const program = `import(${JSON.stringify(module)}).then(({ self }) => { console.log(self()); process.stdin.resume() })`

const other = async () => {
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] })
  const ended = new Promise((resolve) => child.once("close", resolve))
  const identity = await new Promise<string>((resolve) => child.stdout.once("data", (text) => resolve(String(text).trim())))
  return { child, ended, identity }
}

/** Counts the reads of /proc and of random bytes, at the import of the host and at the first use of the identity. */
const asking = `
  const crypto = require("node:crypto"), fs = require("node:fs")
  let asked = 0, lacks = false
  const count = (module, name, concerns) => {
    const original = module[name]
    module[name] = (...args) => {
      if (!concerns(args[0])) return original(...args)
      asked++
      if (lacks) throw Object.assign(new Error("EMFILE: simulated"), { code: "EMFILE", errno: -24, syscall: "open" })
      return original(...args)
    }
  }
  for (const name of ["readFileSync", "readlinkSync"]) count(fs, name, (path) => String(path).startsWith("/proc/"))
  count(crypto, "randomBytes", () => true)
  require("node:module").syncBuiltinESMExports()
  const run = async () => {
    await import(${JSON.stringify(at("backends/PosixHost.ts"))})
    const { self } = await import(${JSON.stringify(module)})
    const imported = asked
    lacks = true
    let failed = false
    try { self() } catch (error) { failed = error.code === "EMFILE" }
    lacks = false
    const known = self()
    const first = asked
    console.log(JSON.stringify({ imported, failed, known, isAsked: first > 0, isRemembered: self() === known && asked === first }))
  }
  run()`

describe("the identity of a process", () => {
  it.runIf(Fs.existsSync("/proc/self/stat"))(
    "is read at its first use, not by an import, and fails if no descriptor is free",
    () => {
      const said = JSON.parse(execFileSync(process.execPath, ["-e", asking], { encoding: "utf8" }))
      assert.deepInclude(said, { imported: 0, failed: true, isAsked: true, isRemembered: true })
      assert.strictEqual(said.known.split("-")[0], Identity.self().split("-")[0])
      assert.notStrictEqual(said.known.split("-")[2], "0")
    }
  )

  it("is short, and contains only characters that are valid in a name", () => {
    assert.match(Identity.self(), /^[0-9a-z-]{3,40}$/)
    assert.isTrue(Identity.isIdentity(Identity.self()))
    for (const text of ["", "claim", `${Identity.self()}.x`, "a-b", "A-b-c"]) assert.isFalse(Identity.isIdentity(text), text)
  })

  it("differs for each process, and counts as dead only after the process ends, not while it is stopped", async () => {
    const { child, ended, identity } = await other()
    assert.isTrue(Identity.isIdentity(identity))
    assert.notStrictEqual(identity, Identity.self())
    assert.isFalse(Identity.isDead(Identity.self()))
    assert.isFalse(Identity.isDead(identity))
    child.kill("SIGSTOP")
    assert.isFalse(Identity.isDead(identity))
    child.kill("SIGKILL")
    await ended
    assert.isTrue(Identity.isDead(identity))
  })

  it.runIf(Fs.existsSync("/proc/self/stat"))("counts as dead if another process has its pid", async () => {
    const { child, ended, identity } = await other()
    const [where, , started] = identity.split("-")
    const mine = Identity.self().split("-")
    assert.isTrue(Identity.isDead(`${where}-${mine[1]}-${Number.parseInt(started!, 36) - 1}`))
    // Process 1 belongs to another user and may not be signalled.
    assert.isTrue(Identity.isDead(`${where}-1-zzzzzz`))
    child.kill("SIGKILL")
    await ended
  })

  it("has an unknown state if it is from another machine, or if the text is not an identity", () => {
    assert.isUndefined(Identity.isDead(`0${Identity.self().slice(1)}`.replace(/^0+/, "z")))
    for (const text of ["", "claim", "a-b", Identity.self().split("-").slice(0, 2).join("-")]) {
      assert.isUndefined(Identity.isDead(text), text)
    }
  })
})
