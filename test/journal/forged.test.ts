import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Journal from "../../src/journal/Journal.ts"
import { readStart, scan } from "../../src/journal/store/format.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { inMemory } from "../scratch.ts"
import { stat } from "./leafBench.ts"

const fresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "forged-")), "journal")
const opened = (path: string, readOnly = false) => Journal.makeFile(Journal.Entry, { path, readOnly })
const reasonOf = <A>(effect: Effect.Effect<A, Journal.JournalError, never>) =>
  Effect.match(effect, { onSuccess: () => "done", onFailure: ({ reason }) => reason as string })

/** The operations that open a journal. */
const ways: ReadonlyArray<readonly [name: string, open: (path: string) => Effect.Effect<unknown, Journal.JournalError>]> = [
  ["writing", (path) => Effect.scoped(opened(path))],
  ["reading along", (path) => Effect.scoped(opened(path, true))],
  ["verify", (path) => Journal.verify(path)],
  ["compact", (path) => Journal.compact(path, { before: 2 })]
]

describe("a forged journal", () => {
  it.live.each(ways)("that is a pipe is refused without waiting by %s", ([, open]) =>
    Effect.gen(function* () {
      const path = fresh()
      execFileSync("mkfifo", [path])
      assert.strictEqual(yield* reasonOf(open(path)), "invalid")
      assert.isFalse(Fs.existsSync(`${path}.lock`))
    })
  )

  it.live.each(ways)("that is a dangling link is refused, and its target is not created, by %s", ([, open]) =>
    Effect.gen(function* () {
      const path = fresh()
      const target = join(path, "..", "elsewhere")
      Fs.symlinkSync(target, path)
      assert.oneOf(yield* reasonOf(open(path)), ["invalid", "io"])
      assert.isFalse(Fs.existsSync(target))
    })
  )

  it.live.each(ways)("with deeply nested entries does not exhaust the stack of %s", ([, open]) =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(Effect.flatMap(opened(path), (journal) => journal.appendAll([stat("a")])))
      yield* Effect.scoped(Effect.flatMap(opened(path), (journal) => journal.append(stat("b"))))
      const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
      Fs.writeFileSync(path, Fs.readFileSync(path, "utf8").replaceAll('"path":', `"extra":${deep},"path":`))
      assert.strictEqual(yield* reasonOf(open(path)), "done")
    })
  )

  it.live("with a line longer than the longest possible line is corrupt", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(Effect.flatMap(opened(path), (journal) => journal.append(stat("a"))))
      Fs.truncateSync(path, 8 * 1024 * 1024)
      const descriptor = Fs.openSync(path, "r")
      const from = yield* readStart(descriptor)
      const error = yield* Effect.flip(scan(descriptor, from!, () => undefined, 1024 * 1024))
      Fs.closeSync(descriptor)
      assert.deepInclude(error, { reason: "corrupt", position: 2 })
    })
  )
})

describe("a forged claim on a journal", () => {
  const stranger = Identity.self().replace(/^[0-9a-z]+/, "elsewhere")

  it.live("with a time in the future does not block writers", () =>
    Effect.gen(function* () {
      const path = fresh()
      Fs.mkdirSync(`${path}.lock`)
      const entry = join(`${path}.lock`, `${stranger}.${"0".repeat(24)}`)
      Fs.writeFileSync(entry, "")
      Fs.utimesSync(entry, 2_240_000_000, 2_240_000_000)
      assert.strictEqual(yield* reasonOf(Effect.scoped(opened(path))), "done")
      assert.isFalse(Fs.existsSync(entry))
    })
  )

  it.live("that is a file or a link to a directory is refused, and the target is unchanged", () =>
    Effect.gen(function* () {
      const elsewhere = Fs.mkdtempSync(join(inMemory(), "victim-"))
      const name = `${stranger}.${"1".repeat(24)}`
      Fs.writeFileSync(join(elsewhere, name), "")
      Fs.utimesSync(join(elsewhere, name), 1, 1)
      const path = fresh()
      Fs.symlinkSync(elsewhere, `${path}.lock`)
      assert.strictEqual(yield* reasonOf(Effect.scoped(opened(path))), "invalid")
      assert.deepStrictEqual(Fs.readdirSync(elsewhere), [name])
      const other = fresh()
      Fs.writeFileSync(`${other}.lock`, "")
      assert.strictEqual(yield* reasonOf(Effect.scoped(opened(other))), "io")
      assert.strictEqual(Fs.readFileSync(`${other}.lock`, "utf8"), "")
    })
  )

  it.live("whose name has another form is ignored and kept", () =>
    Effect.gen(function* () {
      const path = fresh()
      Fs.mkdirSync(`${path}.lock`)
      Fs.writeFileSync(join(`${path}.lock`, "notes"), "mine")
      assert.strictEqual(yield* reasonOf(Effect.scoped(opened(path))), "done")
      assert.deepStrictEqual(Fs.readdirSync(`${path}.lock`), ["notes"])
    })
  )
})
