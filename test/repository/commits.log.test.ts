/** Tests the list of all commits of a workspace, also for collected and forged histories. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { BlobStore } from "../../src/repository/BlobStore.ts"
import { decode, encode, noAnswers, type Past, type Root } from "../../src/repository/format/nodes.ts"
import { type Head, HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { memory, open, type StoreServices } from "./tapped.ts"

const list = (stores: StoreServices, workspace = "w") =>
  Effect.provide(Stream.runCollect(Repository.commits(workspace)), stores)

const headOf = (stores: StoreServices, workspace = "w") =>
  Effect.map(Context.get(stores, HeadStore).get(workspace), (head) => head!)

const setHead = (stores: StoreServices, next: Head) =>
  Effect.gen(function* () {
    const heads = Context.get(stores, HeadStore)
    assert.isTrue(yield* heads.compareAndSet("w", yield* heads.get("w"), next))
  })

const rootOf = (stores: StoreServices, hash: string) =>
  Effect.gen(function* () {
    const node = decode(hash, yield* Context.get(stores, BlobStore).get(hash))
    assert.isTrue("kind" in node && node.kind === "root")
    return node as Root
  })

/** Stores a root, and makes it the newest commit with the number of its past. */
const forge = (stores: StoreServices, root: Root) =>
  Effect.gen(function* () {
    const hash = yield* Context.get(stores, BlobStore).put(encode(root))
    yield* setHead(stores, { ...(yield* headOf(stores)), root: hash, sequence: root.past!.sequence })
    return hash
  })

const threeCommits = Effect.gen(function* () {
  const stores = yield* memory
  const { fs } = yield* open(stores, { author: "ada" })
  const heads = [yield* headOf(stores)]
  for (const name of ["a", "b"]) {
    yield* fs.write(name, "x")
    heads.unshift(yield* headOf(stores))
  }
  return { stores, fs, heads }
})

describe("commits", () => {
  it.live("lists the fields of each head, the newest first", () =>
    Effect.gen(function* () {
      const { heads, stores } = yield* threeCommits
      assert.deepStrictEqual(
        heads.map(({ author, message, sequence }) => [sequence, author, message]),
        [
          [3, "ada", "write b"],
          [2, "ada", "write a"],
          [1, "ada", "create the workspace"]
        ]
      )
      const millis = ({ committedAt, ...rest }: Head) => ({ ...rest, committedAt: DateTime.toEpochMillis(committedAt) })
      const listed = yield* list(stores)
      assert.deepStrictEqual(
        listed.map(({ isStored, ...commit }) => [millis(commit as Head), isStored]),
        heads.map((head) => [millis(head), true])
      )
    })
  )

  it.live("lists the commits of a fork, back to the fork itself with its author and message", () =>
    Effect.gen(function* () {
      const { stores } = yield* threeCommits
      yield* Effect.provide(Repository.fork("w", "fork"), stores)
      const { fs } = yield* open(stores, { workspace: "fork", author: "bob" })
      yield* fs.write("c", "x")
      assert.deepStrictEqual(
        (yield* list(stores, "fork")).map(({ author, message, sequence }) => [sequence, author, message]),
        [
          [2, "bob", "write c"],
          [1, "ada", "fork w"]
        ]
      )
    })
  )

  it.live("ends with the newest commit whose root collect has removed", () =>
    Effect.gen(function* () {
      const { fs, stores } = yield* threeCommits
      // A garbage collection keeps roots of the current millisecond.
      yield* Effect.sleep("2 millis")
      yield* Effect.provide(Repository.collect({ grace: 0 }), stores)
      const collected = (yield* list(stores)).map(({ isStored, message, sequence }) => [sequence, message, isStored])
      assert.deepStrictEqual(collected, [
        [3, "write b", true],
        [2, "write a", false]
      ])
      yield* fs.write("c", "x")
      assert.deepStrictEqual(
        (yield* list(stores)).map(({ isStored, sequence }) => [sequence, isStored]),
        [
          [4, true],
          [3, true],
          [2, false]
        ]
      )
    })
  )

  it.live("reads only the roots of the commits that the caller takes from the stream", () =>
    Effect.gen(function* () {
      const { fs, stores } = yield* threeCommits
      for (let i = 0; i < 20; i++) yield* fs.write("c", `${i}`)
      const blobs = Context.get(stores, BlobStore)
      let reads = 0
      const counting = Context.add(stores, BlobStore, {
        ...blobs,
        get: (hash: string, range?: { readonly offset: number; readonly length: number }) =>
          Effect.suspend(() => {
            reads++
            return blobs.get(hash, range)
          })
      })
      yield* Effect.provide(Stream.runDrain(Stream.take(Repository.commits("w"), 3)), counting)
      assert.strictEqual(reads, 3)
    })
  )

  it.live("shortens long authors and messages, so that a root keeps its maximum size", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const author = "é".repeat(20_000)
      const { fs } = yield* open(stores, { author })
      yield* fs.write("a", "x")
      const [newest, first] = yield* list(stores)
      assert.strictEqual(newest!.author, author)
      assert.match(first!.author!, /^é{400,}…$/)
      assert.isAtMost(Buffer.byteLength(first!.author!), 1024)
    })
  )

  it.live("ends at a commit of format version 1, and knows no author of commits before version 3", () =>
    Effect.gen(function* () {
      const { heads, stores } = yield* threeCommits
      const { replaced: _, ...past } = (yield* rootOf(stores, heads[0]!.root)).past!
      const second = yield* rootOf(stores, heads[0]!.root)
      yield* forge(stores, { ...second, past })
      assert.deepStrictEqual(
        (yield* list(stores)).map(({ author, committedAt, message, sequence }) => [
          sequence,
          author,
          message,
          committedAt === undefined
        ]),
        [
          [3, "ada", "write b", false],
          [2, undefined, undefined, true],
          [1, "ada", "create the workspace", false]
        ]
      )
      const old = yield* Context.get(stores, BlobStore).put(encode({ ...second, past: undefined, answers: noAnswers }))
      yield* setHead(stores, { ...heads[0]!, root: old })
      assert.deepStrictEqual(
        (yield* list(stores)).map(({ isStored, sequence }) => [sequence, isStored]),
        [[3, true]]
      )
    })
  )

  it.live(
    "fails with missing for a workspace that does not exist, and for a missing newest root, which the message names",
    () =>
      Effect.gen(function* () {
        const { heads, stores } = yield* threeCommits
        const none = yield* Effect.flip(list(stores, "nope"))
        assert.strictEqual(none.reason, "missing")
        assert.include(none.message, "nope")
        yield* Context.get(stores, BlobStore).delete([heads[0]!.root])
        const error = yield* Effect.flip(list(stores))
        assert.strictEqual(error.reason, "missing")
        assert.include(error.message, heads[0]!.root)
      })
  )

  const forgeries: Record<string, (past: Past, heads: ReadonlyArray<Head>) => Past> = {
    "the commit before its parent": (past, heads) => ({ ...past, parent: heads[2]!.root }),
    "a commit with a greater number, as in a cycle": (past, heads) => ({ ...past, sequence: 2, parent: heads[0]!.root }),
    "a parent of another history": (past) => ({ ...past, origin: "ab".repeat(16) }),
    "a commit that is far too new": (past) => ({ ...past, sequence: Number.MAX_SAFE_INTEGER })
  }
  for (const [what, change] of Object.entries(forgeries)) {
    it.live(`fails with corrupt and names the node for a root whose parent is forged: ${what}`, () =>
      Effect.gen(function* () {
        const { heads, stores } = yield* threeCommits
        const root = yield* rootOf(stores, heads[0]!.root)
        const past = change(root.past!, heads)
        yield* forge(stores, { ...root, past })
        const error = yield* Effect.flip(list(stores))
        assert.strictEqual(error.reason, "corrupt")
        assert.include(error.message, past.parent!)
      })
    )
  }

  it.live("fails with corrupt and names the node if the parent is no root, has other bytes, or belongs to another number", () =>
    Effect.gen(function* () {
      const { heads, stores } = yield* threeCommits
      const blobs = Context.get(stores, BlobStore)
      const root = yield* rootOf(stores, heads[0]!.root)
      const chunk = yield* blobs.put(Uint8Array.of(1, 2, 3))
      yield* forge(stores, { ...root, past: { ...root.past!, parent: chunk } })
      const noRoot = yield* Effect.flip(list(stores))
      assert.strictEqual(noRoot.reason, "corrupt")
      assert.include(noRoot.message, chunk)
      yield* setHead(stores, heads[0]!)
      const exchanged = Context.add(stores, BlobStore, {
        ...blobs,
        get: (hash: string, range?: { readonly offset: number; readonly length: number }) =>
          blobs.get(hash === heads[1]!.root ? heads[2]!.root : hash, range)
      })
      const wrongHash = yield* Effect.flip(list(exchanged))
      assert.strictEqual(wrongHash.reason, "corrupt")
      assert.include(wrongHash.message, heads[1]!.root)
      yield* setHead(stores, { ...heads[0]!, sequence: 9 })
      const wrongNumber = yield* Effect.flip(list(stores))
      assert.strictEqual(wrongNumber.reason, "corrupt")
      assert.include(wrongNumber.message, heads[0]!.root)
    })
  )
})
