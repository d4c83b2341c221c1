/** The directory of the compile cache must be private, because Node runs the code in it. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"

const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url))

/** Creates a user's state directory and a temporary directory. */
const ground = (): { readonly state: string; readonly temporary: string } => {
  const top = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-cache-"))
  onTestFinished(() => Fs.rmSync(top, { recursive: true, force: true }))
  const [state, temporary] = [join(top, "state"), join(top, "tmp")]
  Fs.mkdirSync(state)
  Fs.mkdirSync(temporary)
  return { state, temporary }
}

const help = (state: string, temporary: string): string => {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  return execFileSync(process.execPath, [bin, "--help"], {
    env: { ...env, XDG_STATE_HOME: state, TMPDIR: temporary },
    encoding: "utf8"
  })
}

const cacheIn = (state: string): string => join(state, "fs-algebra", "compile-cache")

describe("the cache of compiled code", () => {
  it("is in the private state directory, not in the temporary directory", () => {
    const { state, temporary } = ground()
    assert.match(help(state, temporary), /USAGE/)
    assert.deepStrictEqual(Fs.readdirSync(temporary), [])
    assert.strictEqual(Fs.statSync(cacheIn(state)).mode & 0o777, 0o700)
    assert.isAbove(Fs.readdirSync(cacheIn(state)).length, 0)
  })

  it("is not used if its path is a symbolic link", () => {
    const { state, temporary } = ground()
    const planted = join(state, "planted")
    Fs.mkdirSync(planted)
    Fs.mkdirSync(join(state, "fs-algebra"), { mode: 0o700 })
    Fs.symlinkSync(planted, cacheIn(state))
    assert.match(help(state, temporary), /USAGE/)
    assert.deepStrictEqual([Fs.readdirSync(planted), Fs.readdirSync(temporary)], [[], []])
  })

  it.runIf(process.geteuid?.() === 0)("is not used when another user owns it", () => {
    const { state, temporary } = ground()
    Fs.mkdirSync(cacheIn(state), { recursive: true, mode: 0o777 })
    Fs.chownSync(cacheIn(state), 65534, 65534)
    assert.match(help(state, temporary), /USAGE/)
    assert.deepStrictEqual([Fs.readdirSync(cacheIn(state)), Fs.readdirSync(temporary)], [[], []])
  })
})
