import { assert, beforeEach, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Draft, openDraft, withDraft, writeFile } from "../../src/runtime/atomicFile.ts"
import { failing, first, systemError } from "../backends/posixFailures.ts"
import { inMemory } from "../scratch.ts"

let top: string
let target: string
let draft: string

beforeEach(() => {
  top = Fs.mkdtempSync(join(inMemory(), "atomic-"))
  target = join(top, "file")
  draft = join(top, "draft")
  Fs.writeFileSync(target, "old")
})

const content = (): string => Fs.readFileSync(target, "utf8")

describe("an atomic write", () => {
  it("replaces the file, with the mode of its temporary file, and leaves no temporary file", () => {
    assert.isTrue(writeFile(target, "new", { draft, durability: "full" }))
    assert.strictEqual(content(), "new")
    assert.strictEqual(Fs.statSync(target).mode & 0o777, 0o600)
    assert.deepStrictEqual(Fs.readdirSync(top), ["file"])
  })

  it("keeps an existing file if it must not be replaced, and then creates only a missing file", () => {
    assert.isFalse(writeFile(target, "new", { draft, replaces: false }))
    assert.strictEqual(content(), "old")
    assert.isTrue(writeFile(join(top, "free"), "new", { draft, replaces: false }))
    assert.deepStrictEqual(Fs.readdirSync(top).sort(), ["file", "free"])
  })

  it("refuses a temporary name that is in use, and leaves its entry unchanged", () => {
    Fs.writeFileSync(draft, "of another process")
    assert.throws(() => writeFile(target, "new", { draft }), /EEXIST/)
    assert.strictEqual(Fs.readFileSync(draft, "utf8"), "of another process")
  })

  for (const call of ["writeSync", "fsyncSync", "closeSync", "renameSync"] as const) {
    it.effect(`keeps the old file and leaves no temporary file if ${call} fails`, () =>
      Effect.gen(function* () {
        yield* failing(call, first(1, systemError("EIO", -5, call)))
        assert.throws(() => writeFile(target, "new", { draft, durability: "file" }), /EIO/)
        assert.strictEqual(content(), "old")
        assert.deepStrictEqual(Fs.readdirSync(top), ["file"])
      }).pipe(Effect.scoped)
    )
  }
})

describe("the temporary file of an atomic write", () => {
  it("can be written in parts", () => {
    const file = openDraft(draft)
    file.write("one ")
    file.write(Buffer.from("two"))
    assert.strictEqual(content(), "old")
    file.publish(target)
    file.discard()
    assert.strictEqual(content(), "one two")
  })

  it.effect("is removed if its use is interrupted", () =>
    Effect.gen(function* () {
      let used: Draft | undefined
      const write = withDraft(draft, String, (file) => {
        used = file
        file.write("new")
        return Effect.interrupt
      })
      yield* Effect.exit(write)
      assert.isDefined(used)
      assert.deepStrictEqual(Fs.readdirSync(top), ["file"])
      assert.strictEqual(content(), "old")
    })
  )
})
