import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Fault } from "../../src/model/FsError.ts"
import type { Backend, NewEntry } from "../../src/port/Backend.ts"
import { failing, replacing, systemError } from "./posixFailures.ts"
import { bytes, host, openDescriptors, p, tree, walks } from "./posixHost.ts"

const makeMany = (
  { perform }: Backend,
  entries: ReadonlyArray<NewEntry>
): Effect.Effect<ReadonlyArray<boolean> | undefined, Fault> =>
  Effect.map(perform!({ _tag: "MakeMany", entries }), Option.getOrUndefined)

for (const [level, make] of walks) {
  describe(`the creation of many entries (${level})`, () => {
    it.effect("leaves no file whose content the disk refuses at the write or at close", () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({}, make)
        const before = openDescriptors()
        const entries = [
          { path: p("f"), bytes: bytes("1") },
          { path: p("g"), bytes: bytes("2"), mode: 0o600 },
          { path: p("d") }
        ]
        yield* Effect.scoped(
          Effect.andThen(
            failing("writeSync", () => systemError("EDQUOT", -122, "write")),
            Effect.map(makeMany(port, entries), (made) => assert.deepStrictEqual(made, [false, false, true]))
          )
        )
        assert.deepStrictEqual(tree(root), { d: "directory" })
        yield* replacing("closeSync", (close) => (descriptor) => {
          const isFile = Fs.fstatSync(descriptor).isFile()
          close(descriptor)
          if (isFile) throw systemError("EDQUOT", -122, "close")
        })
        assert.deepStrictEqual(yield* makeMany(port, entries.slice(0, 2)), [false, false])
        assert.deepStrictEqual(tree(root), { d: "directory" })
        assert.isAtMost(openDescriptors() - before, 1)
      })
    )

    it.effect("neither changes nor removes a file that another process puts in the place of a new directory", () =>
      Effect.gen(function* () {
        const { outside, port, root } = yield* host({ hardlinks: "reject" }, make)
        Fs.writeFileSync(join(outside, "f"), "theirs")
        Fs.chmodSync(join(outside, "f"), 0o600)
        yield* replacing("mkdirSync", (mkdir) => (at, ...rest) => {
          mkdir(at, ...rest)
          Fs.rmdirSync(at)
          Fs.linkSync(join(outside, "f"), at)
        })
        assert.deepStrictEqual(yield* makeMany(port, [{ path: p("d"), mode: 0o777 }]), [false])
        assert.strictEqual(Fs.statSync(join(outside, "f")).mode & 0o777, 0o600)
        assert.deepStrictEqual(tree(root), { d: "theirs" })
      })
    )
  })
}
