import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { enforce, fromOptions, isReadOnly } from "../../src/port/Rules.ts"

const at = (path: string) => path as FsPath
const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

describe("Rules", () => {
  it("permit everything by default, and readOnly overrides the other options", () => {
    const permitted = (options: Parameters<typeof fromOptions>[0]) => {
      const { permits } = fromOptions(options)
      return [permits?.("write") ?? true, permits?.("delete") ?? true]
    }
    assert.deepStrictEqual(permitted(undefined), [true, true])
    assert.deepStrictEqual(permitted({ readOnly: false, allowDelete: undefined }), [true, true])
    assert.deepStrictEqual(permitted({ allowDelete: false }), [true, false])
    assert.deepStrictEqual(permitted({ allowWrite: false }), [false, true])
    assert.deepStrictEqual(permitted({ readOnly: true, allowWrite: true, allowDelete: true }), [false, false])
  })
  it("are read-only only if neither writing nor deleting is permitted", () => {
    assert.isFalse(isReadOnly(fromOptions()))
    assert.isFalse(isReadOnly(fromOptions({ allowWrite: false })))
    assert.isFalse(isReadOnly(fromOptions({ allowDelete: false })))
    assert.isTrue(isReadOnly(fromOptions({ allowWrite: false, allowDelete: false })))
    assert.isTrue(isReadOnly(fromOptions({ readOnly: true })))
  })
  it("keep the path policy", () => assert.strictEqual(fromOptions({ policy: "vfs" }).policy, "vfs"))

  it.effect("leave a backend unchanged if they permit everything", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      assert.strictEqual(enforce(port), port)
    })
  )
  it.effect("check each path: a rename deletes one name and writes the other", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { keep: { a: "1" }, free: { b: "2" } } })
      const permits = (action: "write" | "delete", path: FsPath = at(".")) => !(action === "delete" && path.startsWith("keep"))
      const guarded = enforce({ ...port, rules: { permits } })
      const rename = (from: string, to: string) => guarded.rename(at(from), at(to), { replace: false })
      assert.deepInclude(yield* Effect.flip(rename("keep/a", "free/a")), readOnly)
      yield* rename("free/b", "keep/b")
      assert.deepInclude(yield* Effect.flip(guarded.remove(at("keep/b"))), readOnly)
      assert.isDefined(yield* port.stat(at("keep/b")))
    })
  )
  it.effect("are checked when a call runs, not when it is built", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { f: "1" } })
      let open = false
      const remove = enforce({ ...port, rules: { permits: () => open } }).remove(at("f"))
      assert.deepInclude(yield* Effect.flip(remove), readOnly)
      open = true
      yield* remove
      assert.isUndefined(yield* port.stat(at("f")))
    })
  )
  it.effect("add no capability that the backend lacks", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const bare = { ...port, links: undefined, attributes: undefined, perform: undefined, explore: undefined }
      const guarded = enforce({ ...bare, rules: fromOptions({ readOnly: true }) })
      assert.deepStrictEqual([guarded.links, guarded.attributes, guarded.perform], [undefined, undefined, undefined])
    })
  )
})
