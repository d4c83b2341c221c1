import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"

const linkMode: Fault = { _tag: "InvalidArgument", argument: "mode", detail: "a link has no permission bits of its own" }

/** Makes a filesystem on which `f` is a link the first few times its attributes are set. */
const swapped = (times: number) =>
  Effect.map(InMemory.make({ tree: { f: "x", l: { link: "f" } } }), (port) => {
    let left = times
    const set = (path: FsPath, values: { readonly mode?: number | undefined }) =>
      left-- > 0 ? Effect.fail(linkMode) : port.attributes!.set(path, values)
    return make({ ...port, attributes: { set } })
  })

describe("setAttributes of a file that another program exchanges with a link", () => {
  it.effect("succeeds when it is a file again", () =>
    Effect.gen(function* () {
      const fs = yield* swapped(3)
      yield* fs.setAttributes("f", { mode: 0o600 })
      assert.strictEqual((yield* fs.stat("f")).mode, 0o600)
    })
  )

  it.effect("fails with IoError if it stays a link, and does not blame the mode", () =>
    Effect.gen(function* () {
      const fs = yield* swapped(Number.POSITIVE_INFINITY)
      assert.strictEqual((yield* Effect.flip(fs.setAttributes("f", { mode: 0o600 })))._tag, "IoError")
    })
  )
})
