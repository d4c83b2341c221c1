import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import * as Installation from "../../src/runtime/installation.ts"

const module = new URL("../../src/runtime/installation.ts", import.meta.url).href

const scratch = (): string => {
  const directory = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-installation-"))
  onTestFinished(() => Fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Runs another process with this state directory. Returns its private directory and its signature of a text. */
const ask = (state: string, text = "text"): { readonly directory: string | null; readonly code: string } =>
  JSON.parse(
    execFileSync(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `const i = await import(${JSON.stringify(module)})
         console.log(JSON.stringify({ directory: i.directory() ?? null, code: i.signName(${JSON.stringify(text)}) }))`
      ],
      { env: { ...process.env, XDG_STATE_HOME: state, TMPDIR: join(state, "tmp") }, encoding: "utf8" }
    )
  )

describe("installation", () => {
  it("accepts a signature only with the text for which it was made", () => {
    const code = Installation.signName("a")
    assert.match(code, /^[0-9a-f]{32}$/)
    assert.isTrue(Installation.isSignatureOf("a", code))
    assert.isFalse(Installation.isSignatureOf("b", code))
    assert.isFalse(Installation.isSignatureOf("a", `${code}0`))
    assert.isFalse(Installation.isSignatureOf("a", ""))
    assert.isFalse(Installation.isSignatureOf("a", "é".repeat(32)))
  })

  it("makes the same signature in two processes of one user, and another signature for another state directory", () => {
    const [one, other] = [scratch(), scratch()]
    assert.strictEqual(ask(one).code, ask(one).code)
    assert.notStrictEqual(ask(one).code, ask(other).code)
  })

  it("makes a directory and a key that only the user can read", () => {
    const state = scratch()
    Fs.mkdirSync(join(state, "fs-algebra"), { mode: 0o755 })
    assert.strictEqual(ask(state).directory, join(state, "fs-algebra"))
    assert.strictEqual(Fs.statSync(join(state, "fs-algebra")).mode & 0o777, 0o700)
    assert.strictEqual(Fs.statSync(join(state, "fs-algebra", "key")).mode & 0o777, 0o600)
    assert.deepStrictEqual(Fs.readdirSync(join(state, "fs-algebra")), ["key"])
  })

  it("ignores a key that others can read, a short key, and a link or a directory in place of the key", () => {
    const forged = "k".repeat(32)
    const place = (make: (key: string) => void): string => {
      const state = scratch()
      Fs.mkdirSync(join(state, "fs-algebra"), { mode: 0o700 })
      make(join(state, "fs-algebra", "key"))
      return state
    }
    const readable = place((key) => Fs.writeFileSync(key, forged, { mode: 0o644 }))
    const short = place((key) => Fs.writeFileSync(key, "k", { mode: 0o600 }))
    const link = place((key) => {
      Fs.writeFileSync(`${key}.target`, forged, { mode: 0o600 })
      Fs.symlinkSync(`${key}.target`, key)
    })
    const directory = place((key) => Fs.mkdirSync(key))
    // An ignored key is replaced by one for the life of the process, so two processes differ.
    for (const state of [readable, short, link, directory]) assert.notStrictEqual(ask(state).code, ask(state).code)
  })

  it("uses the temporary directory if the state directory is a file", () => {
    const state = scratch()
    Fs.mkdirSync(join(state, "tmp"))
    const file = join(state, "file")
    Fs.writeFileSync(file, "")
    const answer = JSON.parse(
      execFileSync(
        process.execPath,
        [
          "--input-type=module",
          "-e",
          `const i = await import(${JSON.stringify(module)}); console.log(JSON.stringify(i.directory() ?? null))`
        ],
        { env: { ...process.env, XDG_STATE_HOME: file, TMPDIR: join(state, "tmp") }, encoding: "utf8" }
      )
    )
    assert.isTrue(String(answer).startsWith(join(state, "tmp")), answer)
  })

  it("fails if no descriptor is free, instead of using another directory or key", () => {
    const state = scratch()
    const { code } = ask(state)
    const program = `
      import fs from "node:fs"
      import { syncBuiltinESMExports } from "node:module"
      const { openSync } = fs
      let isLacking = false
      fs.openSync = (...args) => {
        if (isLacking) throw Object.assign(new Error("EMFILE"), { code: "EMFILE" })
        return openSync(...args)
      }
      syncBuiltinESMExports()
      const i = await import(${JSON.stringify(module)})
      const said = (run) => {
        try {
          return String(run())
        } catch ({ code }) {
          return code
        }
      }
      isLacking = true
      const first = said(i.directory)
      isLacking = false
      const directory = said(i.directory)
      isLacking = true
      const second = said(() => i.signName("text"))
      isLacking = false
      console.log(JSON.stringify([first, directory, second, said(() => i.signName("text"))]))`
    const answer: unknown = JSON.parse(
      execFileSync(process.execPath, ["--input-type=module", "-e", program], {
        env: { ...process.env, XDG_STATE_HOME: state, TMPDIR: join(state, "tmp") },
        encoding: "utf8"
      })
    )
    assert.deepStrictEqual(answer, ["EMFILE", join(state, "fs-algebra"), "EMFILE", code])
  })
})
