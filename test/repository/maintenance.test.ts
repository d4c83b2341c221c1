import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import { Archive, Filesystem, InMemory } from "../../src/index.ts"
import { BlobStore, StoreError } from "../../src/repository/BlobStore.ts"
import { encode } from "../../src/repository/format/nodes.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { runs } from "../runs.ts"
import { inMemory } from "../scratch.ts"
import { random } from "./random.ts"
import { makeBlobs } from "./stores.ts"
import { contentsOf, memory, open, type Opened, stored, type StoreServices, tapped, untapped } from "./tapped.ts"

const inRepository = <A, E>({ fs }: Opened, effect: Effect.Effect<A, E, Filesystem.Filesystem>) =>
  Effect.provideService(Repository.transaction(effect), Filesystem.Filesystem, fs)

const large = Array.from({ length: 60_000 }, (_, i) => `${i}\n`).join("")

const fill = (opened: Opened, count = 300) =>
  inRepository(
    opened,
    Effect.gen(function* () {
      for (let i = 0; i < count; i++) yield* opened.fs.write(`many/${i}.txt`, `${i}`)
      yield* opened.fs.write("large", large)
      yield* opened.fs.write("middle", large.slice(0, 5000))
      yield* opened.fs.symlink("link", "large")
      yield* opened.fs.mkdir("empty")
    })
  )

const countBlobs = (stores: StoreServices) => Stream.runCount(Context.get(stores, BlobStore).list)

describe("fork", () => {
  it.live("stores no blob, and both workspaces are independent", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      yield* fill(opened)
      const snapshot = yield* opened.snapshots.snapshot({ tag: "before" })
      const blobs = yield* countBlobs(stores)
      const head = yield* Effect.provide(Repository.fork("w", "copy"), stores)
      assert.strictEqual(head.sequence, 1)
      assert.strictEqual(yield* countBlobs(stores), blobs)
      const copy = yield* open(stores, { workspace: "copy" })
      assert.deepStrictEqual(yield* contentsOf(copy.fs), yield* contentsOf(opened.fs))
      assert.deepStrictEqual(
        (yield* copy.snapshots.list).map(({ snapshotId }) => snapshotId),
        [snapshot.snapshotId]
      )
      yield* copy.fs.write("only-in-copy", "x")
      yield* opened.fs.write("only-in-original", "x")
      assert.isFalse(yield* opened.fs.exists("only-in-copy"))
      assert.isFalse(yield* copy.fs.exists("only-in-original"))
    })
  )

  it.live("fails for a missing source, and for a name that is already used", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* open(stores)
      const [missing, taken] = [
        yield* Effect.flip(Effect.provide(Repository.fork("missing", "x"), stores)),
        yield* Effect.flip(Effect.provide(Repository.fork("w", "w"), stores))
      ]
      assert.deepInclude(missing, { _tag: "NotFound", path: "missing" })
      assert.deepInclude(taken, { _tag: "AlreadyExists", path: "w" })
    })
  )

  it.live("succeeds if the answer of its only change is lost", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* open(stores)
      const lossy = tapped(stores, <A>(step: string, call: Effect.Effect<A, StoreError>) =>
        step === "compareAndSet"
          ? Effect.andThen(call, Effect.fail(new StoreError({ reason: "unavailable", detail: "lost" })))
          : call
      )
      yield* Effect.provide(Repository.fork("w", "copy"), lossy)
      assert.deepStrictEqual(yield* stored(stores, "copy"), {})
    })
  )
})

describe("a fork during a garbage collection", () => {
  it.effect("is complete even if the source changes before the garbage collection sees the fork", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      yield* fs.write("old", large)
      yield* TestClock.adjust("3 days")
      let isArmed = true
      const slow = tapped(stores, (step, call) => {
        if (step !== "compareAndSet" || !isArmed) return call
        isArmed = false
        return Effect.andThen(
          Effect.andThen(Effect.orDie(fs.delete("old")), Effect.provide(Repository.collect(), stores)),
          call
        )
      })
      yield* Effect.provide(Repository.fork("w", "copy"), slow)
      yield* Effect.provide(Repository.verify("copy"), stores)
      assert.deepStrictEqual(yield* stored(stores, "copy"), {})
    })
  )
})

describe("a fork of a workspace that changes all the time", () => {
  it.live("fails and leaves no workspace", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      let count = 0
      const busy = tapped(stores, (step, call) =>
        step === "compareAndSet" ? Effect.tap(call, () => Effect.orDie(fs.write("a", `${count++}`))) : call
      )
      const error = yield* Effect.flip(Effect.provide(Repository.fork("w", "copy"), busy))
      assert.deepInclude(error, { _tag: "StoreError", reason: "unavailable" })
      assert.isUndefined(yield* Context.get(stores, HeadStore).get("copy"))
    })
  )
})

describe("the sizes and modes in a repository", () => {
  it.live("are checked for each file by verify, also if another file has the same chunks", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const [blobs, heads] = [Context.get(stores, BlobStore), Context.get(stores, HeadStore)]
      const part = new Uint8Array(100_000).fill(7)
      const chunk = { hash: yield* blobs.put(part), size: part.length }
      const hash = yield* blobs.put(encode({ kind: "index", level: 1, children: [chunk, chunk] }))
      const times = { createdAt: 0, modifiedAt: 0 }
      const sha256 = createHash("sha256").update(part).update(part).digest("hex")
      const file = (name: string, size: number) => ({
        kind: "file" as const,
        name,
        mode: 0o644,
        ...times,
        content: { _tag: "Chunks" as const, size, sha256, level: 1, hash }
      })
      const commit = (expected: number, size: number) =>
        Effect.gen(function* () {
          const entries = [file("a", size), file("z", 200_000)]
          const tree = yield* blobs.put(encode({ kind: "leaf", prefix: "", entries, weight: 0 }))
          const directory = { kind: "directory" as const, name: "", mode: 0o755, ...times }
          const root = yield* blobs.put(
            encode({
              kind: "root",
              files: { ...directory, tree },
              snapshots: { ...directory, tree: undefined },
              recent: [],
              past: undefined,
              answers: { forgottenUntil: 0, lists: [] }
            })
          )
          const head = { root, sequence: expected, author: "", message: "", committedAt: DateTime.makeUnsafe(0) }
          assert.isTrue(yield* heads.compareAndSet("w", yield* heads.get("w"), head))
        })
      yield* commit(1, 200_000)
      yield* Effect.provide(Repository.verify("w"), stores)
      yield* commit(2, 999_999)
      const error = yield* Effect.flip(Effect.provide(Repository.verify("w"), stores))
      assert.strictEqual(error.reason, "corrupt")
    })
  )

  it.live("never include the file type in a mode, so other layers can read the workspace", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      const entries = [
        { path: "file" as never, bytes: new Uint8Array(1), mode: 0o100644 },
        { path: "directory" as never, mode: 0o40755 }
      ]
      yield* fs.port.perform!({ _tag: "MakeMany", entries })
      yield* Effect.provide(Repository.verify("w"), stores)
      const other = yield* open(stores)
      assert.strictEqual((yield* other.fs.stat("file")).mode, 0o644)
      assert.strictEqual((yield* other.fs.stat("directory")).mode, 0o755)
    })
  )
})

describe("reading a repository", () => {
  it.live("requests at most one byte more than a chunk of a blob at once, even of a forged blob", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const lengths: Array<number | undefined> = []
      const counting = {
        ...blobs,
        get: (hash: string, range?: { readonly offset: number; readonly length: number }) => {
          lengths.push(range?.length)
          return blobs.get(hash, range)
        }
      }
      const stores = Context.add(yield* memory, BlobStore, counting)
      const root = yield* blobs.put(new Uint8Array(5_000_000))
      const head = { root, sequence: 1, author: "", message: "", committedAt: DateTime.makeUnsafe(0) }
      yield* Context.get(stores, HeadStore).compareAndSet("w", undefined, head)
      assert.include(String(yield* Effect.flip(open(stores))), "more than 65536 bytes")
      const opened = yield* open(stores, { workspace: "other" })
      yield* fill(opened, 3)
      yield* stored(stores, "other")
      for (const length of lengths) assert.isAtMost(length ?? Infinity, 1024 * 1024 + 1)
    })
  )
})

describe("a garbage collection", () => {
  const places: Record<string, () => Layer.Layer<BlobStore | HeadStore, StoreError>> = {
    "in memory": () => Stores.layerMemory,
    "in SQLite": () => Stores.layerSql().pipe(Layer.provide(Stores.sqliteClient({ file: ":memory:" }))),
    "in a directory": () => Stores.layerDirectory({ directory: mkdtempSync(join(inMemory(), "collect-")) })
  }
  for (const [name, make] of Object.entries(places)) {
    it.live(`${name} keeps a blob that is stored again after the garbage collection has listed it`, () =>
      Effect.gen(function* () {
        const stores = yield* Layer.build(make())
        const blobs = Context.get(stores, BlobStore)
        const [old, again] = [Buffer.from("old"), Buffer.from("again")]
        const [oldHash, againHash] = [yield* blobs.put(old), yield* blobs.put(again)]
        yield* Effect.sleep("30 millis")
        let listings = 0
        const list = Stream.unwrap(
          Effect.gen(function* () {
            const found = yield* Stream.runCollect(blobs.list)
            if (++listings === 2) yield* blobs.put(again)
            return Stream.fromIterable(found)
          })
        )
        const slow = Context.add(stores, BlobStore, Object.assign({}, blobs, { list }))
        assert.deepStrictEqual(yield* Effect.provide(Repository.collect({ grace: "10 millis" }), slow), { deleted: 1 })
        assert.deepStrictEqual(yield* blobs.has([oldHash, againHash]), new Set([againHash]))
      })
    )
  }
})

/** Fills a workspace over blobs that the test can damage. */
const damageable = Effect.gen(function* () {
  const blobs = makeBlobs()
  const stores = Context.add(yield* memory, BlobStore, blobs)
  const opened = yield* open(stores)
  yield* fill(opened)
  yield* opened.snapshots.snapshot({ tag: "one" })
  yield* opened.fs.write("many/7.txt", "seven")
  return { blobs, stores, expected: yield* contentsOf(opened.fs) }
})

describe("verify", () => {
  it.live("counts exactly the blobs that remain after a garbage collection", () =>
    Effect.gen(function* () {
      const { blobs, stores } = yield* damageable
      yield* Effect.provide(Repository.collect({ grace: -1000 }), stores)
      const { bytes, nodes } = yield* Effect.provide(Repository.verify("w"), stores)
      assert.strictEqual(nodes, blobs.all.size)
      assert.strictEqual(
        bytes,
        [...blobs.all.values()].reduce((sum, { bytes }) => sum + bytes.length, 0)
      )
    })
  )

  it.live("names each blob that is missing, truncated or exchanged, and no read returns wrong content", () =>
    Effect.gen(function* () {
      const { blobs, expected, stores } = yield* damageable
      yield* Effect.provide(Repository.collect({ grace: -1000 }), stores)
      for (const [hash, entry] of Array.from(blobs.all)) {
        const other = [...blobs.all.values()].find(({ bytes }) => bytes !== entry.bytes)!
        for (const damaged of [undefined, entry.bytes.subarray(1), entry.bytes.subarray(0, -1), other.bytes]) {
          if (damaged === undefined) blobs.all.delete(hash)
          else blobs.all.set(hash, { ...entry, bytes: damaged })
          const error = yield* Effect.flip(Effect.provide(Repository.verify("w"), stores))
          assert.strictEqual(error._tag, "StoreError")
          assert.strictEqual(error.reason, damaged === undefined ? "missing" : "corrupt")
          assert.include(error.detail, hash)
          const read = yield* Effect.result(stored(stores))
          // The damage may be in a snapshot.
          if (Result.isSuccess(read)) assert.deepStrictEqual(read.success, expected)
          else assert.strictEqual((read.failure as { _tag: string })._tag, "IoError")
          blobs.all.set(hash, entry)
        }
      }
    })
  )

  it.live("fails for a workspace that does not exist", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.provide(Repository.verify("nobody"), yield* memory))
      assert.strictEqual(error.reason, "missing")
    })
  )
})

describe("collect", () => {
  it.effect("deletes blobs that no workspace and no snapshot needs, and that are older than the grace period", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      yield* opened.fs.write("kept", large)
      const snapshot = yield* opened.snapshots.snapshot()
      yield* opened.fs.write("kept", "short")
      yield* opened.fs.write("dropped", `${large}!`)
      yield* opened.fs.delete("dropped")
      const collect = (grace: string) => Effect.provide(Repository.collect({ grace: grace as "1 day" }), stores)
      assert.deepStrictEqual(yield* collect("1 day"), { deleted: 0 })
      yield* TestClock.adjust("25 hours")
      assert.isAbove((yield* collect("1 day")).deleted, 3)
      assert.deepStrictEqual(yield* collect("1 day"), { deleted: 0 })
      yield* Effect.provide(Repository.verify("w"), stores)
      yield* opened.snapshots.restore(snapshot)
      assert.strictEqual(yield* opened.fs.readString("kept"), large)
      yield* opened.fs.write("kept", "short")
      yield* opened.snapshots.forget(snapshot)
      yield* TestClock.adjust("25 hours")
      assert.isAbove((yield* collect("1 day")).deleted, 3)
      assert.deepStrictEqual(yield* stored(stores), { kept: "short" })
    })
  )

  it.effect("keeps old content that a commit refers to again", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      yield* opened.fs.write("a", large)
      yield* opened.fs.delete("a")
      yield* TestClock.adjust("2 days")
      yield* opened.fs.write("b", large)
      yield* Effect.provide(Repository.collect(), stores)
      assert.deepStrictEqual(yield* stored(stores), { b: large })
    })
  )

  it.effect("keeps the content of a write that takes three hours, with a grace period of four hours", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      const bytes = Buffer.from(large)
      const slow = Stream.make(bytes, bytes).pipe(
        Stream.concat(
          Stream.drain(
            Stream.fromEffect(
              Effect.andThen(TestClock.adjust("3 hours"), Effect.provide(Repository.collect({ grace: "4 hours" }), stores))
            )
          )
        )
      )
      yield* Stream.run(slow, opened.fs.sink("a"))
      yield* TestClock.adjust("2 hours")
      yield* Effect.provide(Repository.collect({ grace: "4 hours" }), stores)
      assert.strictEqual((yield* stored(stores))["a"], large + large)
      yield* Effect.provide(Repository.verify("w"), stores)
    })
  )

  it.live("deletes nothing if a workspace is damaged", () =>
    Effect.gen(function* () {
      const { blobs, stores } = yield* damageable
      const head = (yield* Context.get(stores, HeadStore).get("w"))!
      blobs.all.delete(head.root)
      const size = blobs.all.size
      const error = yield* Effect.flip(Effect.provide(Repository.collect({ grace: -1000 }), stores))
      assert.strictEqual(error.reason, "missing")
      assert.strictEqual(blobs.all.size, size)
    })
  )
})

describe("the snapshots of a repository", () => {
  it.live("are available to the next layer, with their labels and order", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { fs, snapshots } = yield* open(stores)
          yield* fs.write("a", "1")
          yield* snapshots.snapshot({ tag: "first", tool: "edit", callId: "7" })
          yield* fs.write("a", "2")
          yield* snapshots.snapshot({ tag: "second" })
          yield* fs.write("a", "3")
        })
      )
      const { fs, snapshots } = yield* open(stores)
      const all = yield* snapshots.list
      assert.deepStrictEqual(
        all.map(({ tag }) => tag),
        ["first", "second"]
      )
      assert.deepInclude(yield* snapshots.details(all[0]!), { tool: "edit", callId: "7", files: 1 })
      assert.strictEqual(yield* Effect.flatMap(snapshots.view(all[0]!), (view) => view.readString("a")), "1")
      assert.deepStrictEqual(yield* snapshots.diff(all[0]!, all[1]!), [{ _tag: "Modified", path: "a" as never }])
      yield* snapshots.restore(all[1]!)
      assert.strictEqual(yield* fs.readString("a"), "2")
    })
  )

  it.live("need few nodes, and are compared by reading few nodes, for a tree of 3,000 files", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const stores = Context.add(yield* memory, BlobStore, blobs)
      const opened = yield* open(stores)
      yield* fill(opened, 3000)
      blobs.counts.puts = 0
      const before = yield* opened.snapshots.snapshot()
      assert.isAtMost(blobs.counts.puts, 4)
      yield* opened.fs.write("many/1234.txt", "changed")
      yield* opened.fs.delete("many/99.txt")
      const fresh = yield* open(tapped(stores, untapped))
      blobs.counts.gets = 0
      assert.deepStrictEqual(
        (yield* fresh.snapshots.diff(before)).map(({ _tag, path }) => `${_tag} ${path}`),
        ["Modified many/1234.txt", "Removed many/99.txt"]
      )
      assert.isAtMost(blobs.counts.gets, 20)
    })
  )

  it.live("can be forked, and the fork is merged into a workspace that changed elsewhere", () =>
    Effect.gen(function* () {
      const { fs, snapshots } = yield* open(yield* memory)
      yield* fs.write("a", "one\ntwo\nthree\n")
      const base = yield* snapshots.snapshot()
      const forked = yield* snapshots.fork(base)
      yield* forked.write("a", "one\ntwo\nTHREE\n")
      yield* fs.write("a", "ONE\ntwo\nthree\n")
      yield* snapshots.merge(forked)
      assert.strictEqual(yield* fs.readString("a"), "ONE\ntwo\nTHREE\n")
    })
  )

  it.live("can be restored for one path, without a change of other paths", () =>
    Effect.gen(function* () {
      const { fs, snapshots } = yield* open(yield* memory)
      yield* fs.write("a/b/c", "1")
      yield* fs.write("x", "1")
      const before = yield* snapshots.snapshot()
      yield* fs.delete("a", { recursive: true })
      yield* fs.write("x", "2")
      const { changes } = yield* snapshots.restore(before, { paths: ["a/b/c"] })
      assert.deepStrictEqual(
        changes.map(({ _tag, path }) => `${_tag} ${path}`),
        ["Added a", "Added a/b", "Added a/b/c"]
      )
      assert.deepStrictEqual(yield* contentsOf(fs), { a: "/", "a/b": "/", "a/b/c": "1", x: "2" })
    })
  )

  it.live("are refused if they are forged", () =>
    Effect.gen(function* () {
      const { snapshots } = yield* open(yield* memory)
      const snapshot = yield* snapshots.snapshot()
      const forged = Object.assign(Object.create(Object.getPrototypeOf(snapshot) as object), snapshot, {
        commitRef: `sha256:${"1".repeat(64)}`
      }) as typeof snapshot
      assert.strictEqual((yield* Effect.flip(snapshots.restore(forged))).reason, "unknown")
    })
  )
})

describe("a repository", () => {
  it.live("imports and exports archives", () =>
    Effect.gen(function* () {
      const { fs } = yield* open(yield* memory)
      yield* fs.write("d/a", "1")
      yield* fs.mkdir("empty")
      const zip = yield* Stream.runCollect(Stream.provideService(Archive.exportZip, Filesystem.Filesystem, fs))
      const copy = yield* open(yield* memory)
      yield* copy.fs.write("old", "x")
      yield* Effect.provideService(Archive.importZip(Stream.fromIterable(zip)), Filesystem.Filesystem, copy.fs)
      assert.deepStrictEqual(yield* contentsOf(copy.fs), { d: "/", "d/a": "1", empty: "/" })
    })
  )

  it.effect("has equal nodes for equal trees, whatever changes led to them", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= runs(12); seed++) {
        const next = random(seed)
        const treeOf = (isDirect: boolean) =>
          Effect.scoped(
            Effect.gen(function* () {
              const stores = yield* memory
              const opened = yield* open(stores)
              const { fs } = opened
              const names = Array.from({ length: 200 }, (_, i) => `d${i % 5}/${i}`)
              if (!isDirect) {
                names.sort(() => next(3) - 1)
                for (const name of names) yield* fs.write(name.replace("/", "/wrong"), "x".repeat(next(2000)))
                yield* opened.snapshots.snapshot()
                for (const name of names) yield* fs.write(name, "detour")
                for (const name of names) yield* fs.delete(name.replace("/", "/wrong"))
              }
              for (const name of names) yield* fs.write(name, name.repeat(100))
              return (yield* opened.snapshots.snapshot()).commitRef
            })
          )
        assert.strictEqual(yield* treeOf(false), yield* treeOf(true), `seed ${seed}`)
      }
    })
  )

  it.live("reads files that are larger than its cache", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      const block = Buffer.alloc(1024 * 1024)
      const next = random(1)
      const blocks = Stream.map(Stream.range(1, 80), () => {
        for (let i = 0; i < block.length; i += 4) block.writeUInt32LE(next(0xffffffff), i)
        return block
      })
      yield* Stream.run(blocks, fs.sink("big"))
      const version = yield* fs.version("big")
      const other = yield* open(stores)
      assert.strictEqual((yield* other.fs.stat("big")).sizeBytes, 80 * 1024 * 1024)
      const copied = yield* Filesystem.Filesystem.pipe(Effect.provide(InMemory.layer()))
      yield* Stream.run(other.fs.stream("big"), copied.sink("big"))
      assert.strictEqual(yield* copied.version("big"), version)
    })
  )
})
