import { assert, it } from "@effect/vitest"
import * as RecentContents from "../../src/journal/record/recentContents.ts"
import type { FsPath } from "../../src/model/FsPath.ts"

const path = (name: string): FsPath => name as FsPath
const bytes = (...values: ReadonlyArray<number>): Uint8Array => new Uint8Array(values)

it("a replaced content shares the bytes of the write that recorded it, and no other bytes", () => {
  const recent = RecentContents.make()
  const written = bytes(1, 2)
  recent.add(path("a"), written)
  assert.strictEqual(recent.keep(path("a"), bytes(1, 2)), written)
  for (const other of [bytes(1, 3), bytes(1), bytes(1, 2, 3)]) {
    const kept = recent.keep(path("a"), other)
    assert.deepStrictEqual(kept, other)
    assert.notStrictEqual(kept, other)
  }
  const elsewhere = recent.keep(path("b"), bytes(1, 2))
  assert.deepStrictEqual(elsewhere, written)
  assert.notStrictEqual(elsewhere, written)
})

it("only the contents of the latest writes are kept for sharing", () => {
  const recent = RecentContents.make()
  const [first, second] = [bytes(1), bytes(2)]
  recent.add(path("first"), first)
  recent.add(path("second"), second)
  recent.add(path("first"), first)
  for (let i = 0; i < 255; i++) recent.add(path(`f${i}`), bytes(3))
  assert.strictEqual(recent.keep(path("first"), bytes(1)), first)
  assert.notStrictEqual(recent.keep(path("second"), bytes(2)), second)
})
