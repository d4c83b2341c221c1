import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { childOf, diskPathOf, fromBytes, toBytes } from "../../../src/backends/windows/names.ts"
import { system, type WindowsEntry } from "../../../src/backends/windows/disk.ts"
import { directory, p } from "../posixHost.ts"

/** Names and their WTF-8 bytes: the examples of the WTF-8 specification and the edges of its ranges. */
const names: ReadonlyArray<readonly [name: string, bytes: string]> = [
  ["a.txt", "612e747874"],
  ["é€", "c3a9e282ac"],
  ["😀", "f09f9880"],
  ["\ud7ff\ue000", "ed9fbfee8080"],
  ["\ud800", "eda080"],
  ["\udfff", "edbfbf"],
  ["a\udbffb", "61edafbf62"],
  ["\udc00\ud800", "edb080eda080"],
  ["😀\ud83d", "f09f9880eda0bd"],
  ["\ufffd\ud800í", "efbfbdeda080c3ad"]
]

describe("names on a Windows disk", () => {
  for (const [name, bytes] of names) {
    it(`${JSON.stringify(name)} is converted to ${bytes} and back`, () => {
      assert.strictEqual(toBytes(name).toString("hex"), bytes)
      assert.strictEqual(fromBytes(Buffer.from(bytes, "hex")), name)
    })
  }

  it("that no path can express have a key that leads back to them, and a printable form", () => {
    for (const name of ["CON", "a.", "a ", "\ud800", "a:b", "\u007f", "GIT~1"]) {
      const child = childOf(name, "file")
      assert.isFalse(child.addressable, name)
      assert.strictEqual(diskPathOf(p(`d/${child.key}/e`)), p(`d/${name}/e`))
      assert.isTrue(child.name.isWellFormed())
    }
    assert.notStrictEqual(childOf("\ud800", "file").name, childOf("\ud801", "file").name)
  })

  it.effect("pass through node:fs unchanged, also with a lone surrogate", () =>
    Effect.gen(function* () {
      const top = yield* directory
      for (const [name] of names)
        system.closeSync(system.openSync(`${top}/${name}`, Fs.constants.O_CREAT | Fs.constants.O_WRONLY))
      const expected = names.map(([name]) => name).sort()
      const told = (entries: ReadonlyArray<WindowsEntry>) => entries.filter((entry) => entry.isFile()).map(({ name }) => name)
      assert.deepStrictEqual(told(system.readdirSync(top, { withFileTypes: true })).sort(), expected)
      const later = yield* Effect.callback<ReadonlyArray<WindowsEntry>>((resume) =>
        system.readdir(top, { withFileTypes: true }, (_, entries) => resume(Effect.succeed(entries)))
      )
      assert.deepStrictEqual(told(later).sort(), expected)
      system.renameSync(`${top}/\ud800`, `${top}/\udbff`)
      assert.isTrue(system.lstatSync(`${top}/\udbff`, { bigint: true, throwIfNoEntry: false })?.isFile())
      for (const name of told(system.readdirSync(top, { withFileTypes: true }))) system.unlinkSync(`${top}/${name}`)
      assert.deepStrictEqual(Fs.readdirSync(top), [])
    })
  )
})
