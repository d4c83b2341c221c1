import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeDirectories } from "../../src/runtime/directories.ts"
import { failing, replacing, systemError } from "../backends/posixFailures.ts"

const within = (body: (top: string) => void) => (): void => {
  const top = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-directories-"))
  try {
    body(top)
  } finally {
    Fs.rmSync(top, { recursive: true, force: true })
  }
}

const thrownBy = (run: () => unknown): unknown => {
  try {
    run()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
  return "nothing"
}

describe("makeDirectories", () => {
  it(
    "returns the first directory that it made, as Node does",
    within((top) => {
      Fs.mkdirSync(join(top, "a"))
      for (const path of ["a", "a/b/c", "a/b/c", "d", "e/f"]) {
        const other = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-directories-"))
        Fs.cpSync(top, other, { recursive: true })
        const expected = Fs.mkdirSync(join(other, path), { recursive: true })?.slice(other.length)
        Fs.rmSync(other, { recursive: true })
        assert.strictEqual(makeDirectories(join(top, path))?.slice(top.length), expected, path)
        assert.isTrue(Fs.statSync(join(top, path)).isDirectory(), path)
      }
    })
  )

  it.effect("succeeds although another process removes directories at the same time", () =>
    Effect.gen(function* () {
      const top = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-directories-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(top, { recursive: true, force: true })))
      const path = join(top, "a/b")
      const errors = [
        systemError("EEXIST", -17, "mkdir"),
        systemError("ENOENT", -2, "mkdir"),
        systemError("EEXIST", -17, "mkdir")
      ]
      Fs.mkdirSync(join(top, "a"))
      const making = yield* failing("mkdirSync", (made: unknown) => (made === path ? errors.shift() : undefined))
      assert.strictEqual(makeDirectories(path), path)
      assert.strictEqual(making.calls(), 3)
      assert.isTrue(Fs.statSync(path).isDirectory())
    }).pipe(Effect.scoped)
  )

  it.effect("succeeds although another process removes and re-creates a directory between two checks", () =>
    Effect.gen(function* () {
      const top = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-directories-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(top, { recursive: true, force: true })))
      const path = join(top, "a")
      Fs.mkdirSync(path)
      let looks = 0
      yield* replacing("statSync", (original) => (...args) => {
        if (args[0] === path && looks++ === 0) return undefined
        return original(...args)
      })
      assert.strictEqual(makeDirectories(path), undefined)
      assert.strictEqual(looks, 2)
    }).pipe(Effect.scoped)
  )

  it(
    "sets the given mode on every directory that it makes",
    within((top) => {
      makeDirectories(join(top, "a/b"), 0o700)
      if (process.platform === "win32") return
      for (const path of ["a", "a/b"]) assert.strictEqual(Fs.statSync(join(top, path)).mode & 0o777, 0o700)
    })
  )

  it(
    "accepts a link to a directory, and fails if a file is in the way",
    within((top) => {
      Fs.mkdirSync(join(top, "there"))
      Fs.symlinkSync("there", join(top, "link"))
      Fs.symlinkSync("nowhere", join(top, "dangling"))
      Fs.writeFileSync(join(top, "file"), "")
      assert.strictEqual(makeDirectories(join(top, "link/below")), join(top, "link/below"))
      assert.strictEqual(makeDirectories(join(top, "link")), undefined)
      assert.strictEqual(
        thrownBy(() => makeDirectories(join(top, "file"))),
        "EEXIST"
      )
      assert.strictEqual(
        thrownBy(() => makeDirectories(join(top, "file/below"))),
        "ENOTDIR"
      )
      assert.strictEqual(
        thrownBy(() => makeDirectories(join(top, "dangling"))),
        "EEXIST"
      )
    })
  )

  it.runIf(process.platform === "linux")("fails instead of looping in a directory that accepts no new entries", () => {
    const module = new URL("../../src/runtime/directories.ts", import.meta.url).href
    const program = `import(${JSON.stringify(module)}).then((m) => m.makeDirectories("/proc/fs-algebra/x")).catch((e) => console.log(e.code))`
    // A separate process, because an endless loop could not be stopped otherwise.
    const { stdout } = spawnSync(process.execPath, ["-e", program], { timeout: 20_000, encoding: "utf8" })
    assert.strictEqual(stdout, "ENOENT\n")
  })
})
