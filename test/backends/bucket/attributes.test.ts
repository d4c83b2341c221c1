/** Tests changes of attributes while another program writes. The store is in memory, and the test sees each request. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { EntryAttributes } from "../../../src/backends/bucket/attributes.ts"
import type { ObjectHead, Objects, Stored } from "../../../src/backends/bucket/objects.ts"
import { defaultSizes, makePort } from "../../../src/backends/bucket/port.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"

/** Makes a store with one object "f". `after` runs after each PUT. Tags depend on the content alone, as those of S3. */
const storeWith = (after: (object: { attributes: EntryAttributes }, put: number) => void) => {
  const object = { attributes: {} as EntryAttributes, bytes: new TextEncoder().encode("text") as Uint8Array, puts: 0 }
  const head = (): ObjectHead => ({
    etag: `"${object.bytes.length}"`,
    sizeBytes: object.bytes.length,
    modifiedMillis: 0,
    writeId: undefined,
    attributes: object.attributes,
    foreign: {}
  })
  const objects = {
    head: (key) => Effect.sync(() => (key === "f" ? head() : undefined)),
    get: () => Effect.sync(() => ({ head: head(), bytes: object.bytes })),
    list: () => Effect.succeed({ objects: [], prefixes: [], next: undefined }),
    put: (_key, bytes, _hash, _condition, _form, labels) =>
      Effect.sync((): Stored => {
        object.bytes = bytes
        object.attributes = labels?.attributes ?? {}
        after(object, ++object.puts)
        return { _tag: "Stored", etag: head().etag }
      })
  } satisfies Partial<Objects>
  const fs = make(
    makePort({
      objects: objects as unknown as Objects,
      support: { put: true, form: "quoted", remove: true, complete: true },
      prefix: "",
      place: "",
      shownRoot: "s3://bucket/",
      rules: {},
      sizes: defaultSizes,
      bestEffort: [],
      metadata: true
    })
  )
  return { fs, object }
}

describe("a change of attributes", () => {
  it.effect("is repeated if another program overwrites it with a change that began earlier", () =>
    Effect.gen(function* () {
      const { fs, object } = storeWith((object, put) => {
        if (put === 1) object.attributes = { modifiedMillis: 1_600_000_000_000 }
      })
      yield* fs.setAttributes("f", { mode: 0o600 })
      assert.deepInclude(object.attributes, { mode: 0o600, modifiedMillis: 1_600_000_000_000 })
      assert.strictEqual(object.puts, 2)
    })
  )

  it.effect("is sent at most 10 times if another program sets a different value each time", () =>
    Effect.gen(function* () {
      const { fs, object } = storeWith((object) => {
        object.attributes = { mode: 0o640 }
      })
      yield* fs.setAttributes("f", { mode: 0o600 })
      assert.isAtMost(object.puts, 10)
    })
  )
})
