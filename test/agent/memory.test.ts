import { assert, describe, it } from "@effect/vitest"
import * as Memory from "../../src/agent/memory.ts"
import type { FsPath } from "../../src/model/FsPath.ts"

const path = "a" as FsPath
const megabyte = "x".repeat(1024 * 1024)

/** Fills the memory, which has room for eight texts of this size, with the versions v1 to v8. */
const filled = (): Memory.Memory => {
  const memory = Memory.make()
  for (let version = 1; version <= 8; version++) memory.saw(path, `v${version}`, megabyte)
  return memory
}

describe("the memory of a session", () => {
  it("discards the text that was seen least recently", () => {
    const memory = filled()
    assert.isTrue(memory.textOf("v1") === megabyte)
    memory.saw(path, "v9", megabyte)
    assert.isUndefined(memory.textOf("v1"))
    assert.isTrue(memory.textOf("v2") === megabyte)
  })

  it("keeps a text that was seen again, with or without its content", () => {
    for (const text of [megabyte, undefined]) {
      const memory = filled()
      memory.saw(path, "v1", text)
      memory.saw(path, "v9", megabyte)
      assert.isTrue(memory.textOf("v1") === megabyte)
      assert.isUndefined(memory.textOf("v2"))
      assert.isTrue(memory.textOf("v3") === megabyte)
    }
  })

  it("keeps no text that is too long", () => {
    const memory = Memory.make()
    memory.saw(path, "v1", `${megabyte}x`)
    assert.strictEqual(memory.seen(path), "v1")
    assert.isUndefined(memory.textOf("v1"))
  })

  it("counts only the latest text of each version towards its size", () => {
    const shrunk = Memory.make()
    const grown = Memory.make()
    for (let version = 1; version <= 9; version++) {
      shrunk.saw(path, `v${version}`, megabyte)
      shrunk.saw(path, `v${version}`, "x")
      grown.saw(path, `v${version}`, "x")
      grown.saw(path, `v${version}`, megabyte)
    }
    assert.strictEqual(shrunk.textOf("v1"), "x")
    assert.isUndefined(grown.textOf("v1"))
    assert.isTrue(grown.textOf("v2") === megabyte)
  })
})
