/** Tests that each law of stores can fail: for each fault of a store, at least one law detects the fault. */
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { BlobStore, HeadStore, Stores } from "../../../src/index.ts"
import { Law, type StoreLaws, storeLaws } from "../../../src/testing/index.ts"

type Blobs = BlobStore.Operations
type Heads = HeadStore.Operations

const layerOf = (
  change: (blobs: Blobs, heads: Heads) => { readonly blobs?: Partial<Blobs>; readonly heads?: Partial<Heads> }
): Layer.Layer<StoreLaws.StoreServices> =>
  Layer.effectContext(
    Effect.map(Layer.build(Stores.layerMemory), (context) => {
      const blobs = Context.get(context, BlobStore.BlobStore)
      const heads = Context.get(context, HeadStore.HeadStore)
      const changed = change(blobs, heads)
      return Context.add(Context.make(BlobStore.BlobStore, { ...blobs, ...changed.blobs }), HeadStore.HeadStore, {
        ...heads,
        ...changed.heads
      })
    })
  )

const epoch = DateTime.makeUnsafe(0)

/** The mistakes, each with the laws that it breaks at least. */
const mutants: Readonly<
  Record<string, readonly [layer: Layer.Layer<StoreLaws.StoreServices>, ...broken: ReadonlyArray<string>]>
> = {
  "uppercase hashes": [
    layerOf((blobs) => ({ blobs: { put: (bytes) => Effect.map(blobs.put(bytes), (hash) => hash.toUpperCase()) } })),
    "put returns the SHA-256 of the content in lowercase hexadecimal digits"
  ],
  "content that is cut at 1 MiB": [
    layerOf((blobs) => ({
      blobs: { get: (hash, range) => Effect.map(blobs.get(hash, range), (found) => found.slice(0, 1 << 20)) }
    })),
    "get returns the content of each size",
    "the largest content can be read whole and in ranges"
  ],
  "an end instead of a length": [
    layerOf((blobs) => ({
      blobs: {
        get: (hash, range) =>
          blobs.get(hash, range && { offset: range.offset, length: Math.max(0, range.length - range.offset) })
      }
    })),
    "get returns the bytes of a range that exist"
  ],
  "unchecked ranges": [
    layerOf((blobs) => ({
      blobs: {
        get: (hash, range) =>
          Effect.map(blobs.get(hash), (all) => all.slice(range?.offset, range && range.offset + range.length))
      }
    })),
    "get of an invalid range fails with invalid"
  ],
  "no bytes for an unknown hash": [
    layerOf((blobs) => ({
      blobs: { get: (hash, range) => Effect.catch(blobs.get(hash, range), () => Effect.succeed(new Uint8Array())) }
    })),
    "get of an unknown hash fails with missing, with and without a range",
    "get, has and delete treat a text that is not a hash as an unknown hash",
    "delete removes contents and ignores unknown hashes"
  ],
  "a failing deletion of unknown hashes": [
    layerOf((blobs) => ({
      blobs: {
        delete: (hashes) =>
          Effect.andThen(
            Effect.forEach(hashes, (hash) => blobs.get(hash)),
            blobs.delete(hashes)
          )
      }
    })),
    "get, has and delete treat a text that is not a hash as an unknown hash",
    "delete removes contents and ignores unknown hashes"
  ],
  "an array that is shared with the caller": [
    layerOf((blobs) => {
      const kept = new Map<string, Uint8Array>()
      return {
        blobs: {
          put: (bytes) => Effect.tap(blobs.put(bytes), (hash) => Effect.sync(() => void kept.set(hash, bytes))),
          get: (hash, range) =>
            kept.has(hash) && range === undefined ? Effect.sync(() => kept.get(hash)!) : blobs.get(hash, range)
        }
      }
    }),
    "changing the array given to put, or returned by get, does not change the stored content"
  ],
  "answers that are buffers": [
    layerOf((blobs) => ({
      blobs: { get: (hash, range) => Effect.map(blobs.get(hash, range), (found) => Buffer.from(found)) }
    })),
    "get returns a Uint8Array whose buffer has no other bytes"
  ],
  "content that is listed twice": [
    layerOf((blobs) => ({ blobs: { list: Stream.concat(blobs.list, blobs.list) } })),
    "content that is put several times at once is stored once",
    "list returns each of many hashes once, and has and delete accept all of them"
  ],
  "all hashes exist": [
    layerOf(() => ({ blobs: { has: (hashes) => Effect.succeed(new Set(hashes)) } })),
    "has returns the given hashes that exist",
    "delete removes the largest content completely"
  ],
  "content that exists before it is stored": [
    layerOf((blobs) => {
      const begun = new Set<string>()
      return {
        blobs: {
          put: (bytes) =>
            Effect.suspend(() => {
              begun.add(createHash("sha256").update(bytes).digest("hex"))
              return Effect.andThen(Effect.sleep("3 millis"), blobs.put(bytes))
            }),
          has: (hashes) => Effect.sync(() => new Set(hashes.filter((hash) => begun.has(hash))))
        }
      }
    }),
    "an interrupted put leaves the content whole or absent"
  ],
  "lists of one page": [
    layerOf((blobs, heads) => ({
      blobs: { list: Stream.take(blobs.list, 1000) },
      heads: { list: Stream.take(heads.list, 1000) }
    })),
    "list returns each of many hashes once, and has and delete accept all of them",
    "list returns each of many workspaces once"
  ],
  "a list that is empty": [
    layerOf((_, heads) => ({ blobs: { list: Stream.empty }, heads: { list: Stream.filter(heads.list, () => false) } })),
    "a reader may stop in the middle of a list",
    "compareAndSet creates a workspace only once"
  ],
  "times that stay": [
    layerOf((blobs) => ({ blobs: { list: Stream.map(blobs.list, ({ hash }) => ({ hash, storedAt: epoch })) } })),
    "content that is put again gets the current time"
  ],
  "a head of nobody": [
    layerOf((_, heads) => ({
      heads: {
        get: (workspace) =>
          Effect.map(
            heads.get(workspace),
            (found) => found ?? { root: "", sequence: 1, author: "", message: "", committedAt: epoch }
          )
      }
    })),
    "an unknown workspace has no head"
  ],
  "setting without comparing": [
    layerOf((_, heads) => ({
      heads: {
        compareAndSet: (workspace, _expected, next) =>
          Effect.flatMap(heads.get(workspace), (found) => heads.compareAndSet(workspace, found, next))
      }
    })),
    "compareAndSet creates a workspace only once",
    "compareAndSet replaces only the expected head, and compares each field",
    "delete removes a workspace only if its head is the expected head"
  ],
  "comparing and setting in two steps": [
    layerOf((_, heads) => ({
      heads: {
        compareAndSet: (workspace, expected, next) =>
          Effect.gen(function* () {
            const found = yield* heads.get(workspace)
            if (found?.sequence !== expected?.sequence) return false
            yield* Effect.yieldNow
            return yield* heads.compareAndSet(workspace, yield* heads.get(workspace), next)
          })
      }
    })),
    "compareAndSet replaces only the expected head, and compares each field",
    "exactly one of 32 concurrent callers with the same expected head gets true",
    "concurrent callers that retry store every head exactly once"
  ],
  "times in whole seconds": [
    layerOf((_, heads) => ({
      heads: {
        get: (workspace) =>
          Effect.map(
            heads.get(workspace),
            (found) =>
              found && {
                ...found,
                committedAt: DateTime.makeUnsafe(Math.floor(DateTime.toEpochMillis(found.committedAt) / 1000) * 1000)
              }
          )
      }
    })),
    "compareAndSet accepts a head from get as the expected head",
    "each field of a head is kept exactly"
  ],
  "deletion without comparing": [
    layerOf((_, heads) => ({
      heads: {
        delete: (workspace) =>
          Effect.gen(function* () {
            yield* Effect.yieldNow
            const found = yield* heads.get(workspace)
            return found !== undefined && (yield* heads.delete(workspace, found))
          })
      }
    })),
    "delete removes a workspace only if its head is the expected head",
    "exactly one of several concurrent deletions and replacements succeeds"
  ],
  "names without case": [
    layerOf((_, heads) => ({
      heads: {
        get: (workspace) => heads.get(workspace.toLowerCase()),
        compareAndSet: (workspace, expected, next) => heads.compareAndSet(workspace.toLowerCase(), expected, next)
      }
    })),
    "each valid name has its own head, and list returns the names"
  ],
  "names without checks": [
    layerOf((_, heads) => ({
      heads: { get: (workspace) => Effect.catch(heads.get(workspace), () => Effect.succeed(undefined)) }
    })),
    "every operation on an invalid name fails with invalid"
  ],
  "heads without checks": [
    layerOf((_, heads) => ({
      heads: {
        compareAndSet: (workspace, expected, next) =>
          Effect.catch(heads.compareAndSet(workspace, expected, next), () => Effect.succeed(true))
      }
    })),
    "every operation on an invalid name fails with invalid",
    "compareAndSet with an invalid head fails with invalid and changes nothing"
  ],
  "changes without the first head": [
    layerOf((_, heads) => ({ heads: { changes: (workspace) => Stream.drop(heads.changes(workspace), 1) } })),
    "changes returns the current head and then later heads, at least the last one",
    "changes waits for a workspace that does not exist, and continues after its deletion",
    "many readers of changes each get the last head, and may stop at any time"
  ],
  "changes that repeat a head": [
    layerOf((_, heads) => ({
      heads: { changes: (workspace) => Stream.flatMap(heads.changes(workspace), (head) => Stream.make(head, head)) }
    })),
    "changes returns the current head and then later heads, at least the last one"
  ],
  "changes that end at some head": [
    layerOf((_, heads) => ({
      heads: { changes: (workspace) => Stream.filter(heads.changes(workspace), ({ sequence }) => sequence < 50) }
    })),
    "changes never loses the last head, however slow the reader is"
  ],
  "a half-done compareAndSet on interruption": [
    layerOf((_, heads) => ({
      heads: {
        compareAndSet: (workspace, expected, next) =>
          Effect.gen(function* () {
            if (expected !== undefined && !(yield* heads.delete(workspace, expected))) return false
            yield* Effect.sleep("2 millis")
            return yield* heads.compareAndSet(workspace, undefined, next)
          })
      }
    })),
    "an interrupted compareAndSet leaves the old head or the new head"
  ]
}

describe("each fault of a store breaks the laws that detect it:", () => {
  for (const [mistake, [layer, ...broken]] of Object.entries(mutants)) {
    it.live(mistake, () =>
      Effect.gen(function* () {
        for (const name of broken) {
          const law = storeLaws.find((one) => one.name === name)
          assert.isDefined(law, name)
          const answer = yield* Effect.flip(
            Effect.provideService(law!.check(layer, { isShared: false, largestBytes: 2 << 20 }), Law.LawTimeout, "2 seconds")
          ).pipe(Effect.option)
          assert.isTrue(Option.isSome(answer), `the store keeps the law: ${name}`)
        }
      })
    )
  }

  it("every law that does not reopen the store is broken by some fault", () => {
    const broken = new Set(Object.values(mutants).flatMap(([, ...names]) => names))
    assert.deepStrictEqual(
      storeLaws.filter(({ name, needsSharing }) => !needsSharing && !broken.has(name)).map(({ name }) => name),
      []
    )
  })

  it("the titles of the laws differ", () => {
    assert.strictEqual(new Set(storeLaws.map(({ name }) => name)).size, storeLaws.length)
  })
})
