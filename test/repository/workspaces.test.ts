import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Sharding from "effect/cluster/Sharding"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import { BlobStore, StoreError } from "../../src/repository/BlobStore.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import { ownerHeader } from "../../src/repository/cluster/entity.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { runner, sharedRunner } from "./workspaces.ts"

/** Sends requests to the owner of a workspace, as a client of another version or of an attacker would. */
const raw = (workspace: string) =>
  Effect.map(Effect.flatten(Effect.map(Workspaces.entity, ({ client }) => client)), (of) => of(workspace))

const bytes = new Uint8Array(1)

const append = (id: string, content: string) => ({ id, path: "log.txt", content, options: { mode: "append" as const } })

describe("a workspace of a cluster", () => {
  it.live("is the same workspace for all its clients and for Repository, and no path leads to another workspace", () =>
    Effect.gen(function* () {
      const one = yield* Workspaces.client("shared")
      const two = yield* Workspaces.client("shared")
      yield* one.write("a.txt", "1")
      assert.strictEqual(yield* two.readString("a.txt"), "1")
      const direct = Effect.provide(
        Filesystem.use((fs) => fs.readString("a.txt")),
        Repository.layer({ workspace: "shared" })
      )
      assert.strictEqual(yield* direct, "1")
      const other = yield* Workspaces.client("shared/..")
      assert.deepStrictEqual(yield* other.list("."), [])
      const call = yield* raw("other")
      for (const path of ["../shared/a.txt", "x/../../shared/a.txt"]) {
        assert.strictEqual((yield* Effect.flip(other.readString(path)))._tag, "InvalidPath", path)
        assert.strictEqual((yield* Effect.flip(call["port.read"]({ path, maxBytes: 9 })))._tag, "InvalidPath", path)
        assert.strictEqual(
          (yield* Effect.flip(call["port.write"]({ id: path, path, mode: "create", bytes })))._tag,
          "InvalidPath"
        )
      }
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("keeps the content of a stream whose producer uses one array for all chunks", () =>
    Effect.gen(function* () {
      const fs = yield* Workspaces.client("one-array")
      for (const size of [1000, 512 * 1024, 700 * 1024]) {
        const array = new Uint8Array(size)
        const chunks = Stream.map(Stream.rechunk(Stream.range(1, 6), 1), (value) => array.fill(value))
        yield* Stream.run(chunks, fs.sink("a.bin"))
        const expected = new Uint8Array(6 * size).map((_, index) => 1 + Math.floor(index / size))
        assert.strictEqual(Buffer.compare((yield* fs.readBytes("a.bin")).content, expected), 0, `${size}`)
      }
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("makes a change once if the change arrives twice, and refuses another change with the same id", () =>
    Effect.gen(function* () {
      const call = yield* raw("twice")
      const first = yield* call.write(append("id", "line\n"))
      assert.deepStrictEqual(yield* call.write(append("id", "line\n")), first)
      assert.strictEqual(yield* call.readString({ path: "log.txt" }), "line\n")
      const error = yield* Effect.flip(call.write(append("id", "other\n")))
      assert.strictEqual(error._tag, "InvalidArgument")
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("makes a change on the next owner if the first owner ends before it answers", () =>
    Effect.gen(function* () {
      let instance = "first"
      const sharding = yield* Sharding.Sharding
      /** The first change that arrives ends its owner, as if the workspace moved to another runner. */
      const moving = {
        ...sharding,
        makeClient: (entity: never) =>
          Effect.map(sharding.makeClient(entity), (of) => (id: string) => {
            const calls = of(id) as unknown as Record<string, (...values: Array<unknown>) => Effect.Effect<object>>
            const info = (...values: Array<unknown>) =>
              Effect.map(calls["port.info"]!(...values), (answer) => ({ ...answer, instance }))
            return new Proxy(calls, {
              get:
                (_, tag) =>
                (payload: object, ...rest: Array<unknown>) =>
                  tag === "port.info"
                    ? info(payload, ...rest)
                    : Effect.suspend(() => {
                        if (instance !== "first" || !("id" in payload)) return calls[tag as string]!(payload, ...rest)
                        instance = "second"
                        return Effect.interrupt
                      })
            })
          })
      } as unknown as Sharding.Sharding["Service"]
      const fs = yield* Effect.provideService(Workspaces.client("moving"), Sharding.Sharding, moving)
      yield* fs.write("log.txt", "line\n", { mode: "append" })
      assert.strictEqual(instance, "second")
      assert.strictEqual(yield* fs.readString("log.txt"), "line\n")
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("refuses to publish an upload if its owner has changed, because the old owner may have published the upload", () =>
    Effect.gen(function* () {
      const call = yield* raw("moved")
      const gone = { headers: { [ownerHeader]: "an owner that is gone" } }
      const error = yield* Effect.flip(call["port.publish"]({ id: "1", upload: "u" }, gone))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "moved")
      // Other changes are made once by whichever owner gets them.
      yield* call.write(append("2", "two\n"), gone)
      assert.strictEqual(yield* call.readString({ path: "log.txt" }), "two\n")
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("with an invalid name is refused, by the client and by the owner", () =>
    Effect.gen(function* () {
      for (const name of ["", "a\0b", "x".repeat(257), "\ud800"]) {
        assert.strictEqual((yield* Effect.flip(Workspaces.client(name)))._tag, "InvalidArgument", name)
        const call = yield* raw(name)
        assert.strictEqual((yield* Effect.flip(call.readString({ path: "a.txt" })))._tag, "InvalidArgument", name)
        const streamed = Stream.runCollect(call.list({}))
        assert.strictEqual((yield* Effect.flip(streamed))._tag, "InvalidArgument", name)
      }
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("that was deleted and created again is opened anew, and refuses the clients of the deleted workspace", () =>
    Effect.gen(function* () {
      const fs = yield* Workspaces.client("again")
      yield* fs.write("old", "1")
      const heads = yield* HeadStore
      yield* heads.delete("again", (yield* heads.get("again"))!)
      yield* Effect.provide(
        Filesystem.use((fs) => fs.write("new", "1")),
        Repository.layer({ workspace: "again" })
      )
      for (const use of [fs.write("old", "2"), fs.write("mine", "1"), fs.readString("new")]) {
        const error = yield* Effect.flip(use as Effect.Effect<unknown, FsError>)
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, "deleted and made again")
      }
      const other = yield* Workspaces.client("again")
      yield* other.write("theirs", "1")
      assert.deepStrictEqual(
        (yield* other.list(".")).map(({ path }) => `${path}`),
        ["new", "theirs"]
      )
    }).pipe(Effect.provide(sharedRunner))
  )

  it.live("fails with Unavailable while its stores are unavailable, and works when they are available again", () => {
    let isDown = true
    const stores = Layer.effectContext(
      Effect.gen(function* () {
        const context = yield* Layer.build(Stores.layerMemory)
        const heads = yield* Effect.provideContext(HeadStore, context)
        const blobs = yield* Effect.provideContext(BlobStore, context)
        const down = Effect.fail(new StoreError({ reason: "unavailable", detail: "the store is down" }))
        const get: typeof heads.get = (workspace) => Effect.suspend(() => (isDown ? down : heads.get(workspace)))
        return yield* Layer.build(Layer.merge(Layer.succeed(HeadStore, { ...heads, get }), Layer.succeed(BlobStore, blobs)))
      })
    )
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Workspaces.client("down"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "the store is down")
      isDown = false
      const fs = yield* Workspaces.client("down")
      yield* fs.write("a.txt", "1")
      assert.strictEqual(yield* fs.readString("a.txt"), "1")
    }).pipe(Effect.provide(runner({}, {}, stores)))
  })

  it.live("fails with Unavailable if its runner has reached the maximum number of workspaces in use", () =>
    Effect.gen(function* () {
      const fs = yield* Workspaces.client("first", { timeout: "200 millis" })
      const error = yield* Effect.flip(Workspaces.client("second", { timeout: "200 millis" }))
      assert.strictEqual(error._tag, "Unavailable")
      yield* fs.write("a.txt", "1")
      assert.strictEqual(yield* fs.readString("a.txt"), "1")
    }).pipe(Effect.provide(runner({}, { maxResidentEntities: 1 })))
  )

  it.live("fails with Unavailable if no runner serves it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Workspaces.client("nobody", { timeout: "200 millis" }))
      assert.strictEqual(error._tag, "Unavailable")
    }).pipe(Effect.provide(runner({}, { runnerAddress: Option.none() })))
  )

  it.live("keeps the old file if the caller of a streamed write is interrupted", () =>
    Effect.gen(function* () {
      const fs = yield* Workspaces.client("interrupted")
      yield* fs.write("a.txt", "old")
      const endless = Stream.concat(Stream.succeed(new Uint8Array(10)), Stream.never)
      yield* Effect.ignore(Effect.timeout(Stream.run(endless, fs.sink("a.txt")), "50 millis"))
      assert.strictEqual(yield* fs.readString("a.txt"), "old")
    }).pipe(Effect.provide(sharedRunner))
  )
})
