import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { jetstreamManager, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream"
import { Objm } from "@nats-io/obj"
import { connect, headers, type NatsConnection } from "@nats-io/transport-node"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import { BlobStore, HeadStore, Repository, Stores } from "../../../src/index.ts"
import { deleteOlder, type OwnOperations, sweep } from "../../../src/repository/stores/blobs.ts"
import { laws, storeSuite, suite } from "../../../src/testing/index.ts"
import { bytesOf } from "../../../src/testing/stores/blobLaws.ts"
import { contentLaws, contentsOn } from "../../journal/contentLaws.ts"
import { describeNats, type Server, startServer } from "../../journal/nats.ts"
import { jumpingClock } from "../../jumpingClock.ts"
import { isSoak, randomPrograms } from "../../runs.ts"
import { type Gate, gateTo } from "./natsGate.ts"

const head = (sequence: number, author = "ada"): HeadStore.Head => ({
  root: "r",
  sequence,
  author,
  message: "m",
  committedAt: DateTime.makeUnsafe(0)
})

interface Opened {
  readonly blobs: OwnOperations
  readonly heads: HeadStore.Operations
}

const openAt = (options: Stores.JetStreamOptions) =>
  Effect.map(Layer.build(Layer.fresh(Stores.layerJetStream(options))), (context): Opened => ({
    blobs: Context.get(context, BlobStore.BlobStore) as OwnOperations,
    heads: Context.get(context, HeadStore.HeadStore)
  }))

/** Returns the reason of the failure, or "none" if the call succeeds. */
const reasonOf = <A, R>(effect: Effect.Effect<A, Stores.StoreError, R>) =>
  Effect.match(effect, { onFailure: ({ reason }): string => reason, onSuccess: () => "none" })
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")
const listed = ({ blobs }: Opened) => Effect.map(Stream.runCollect(blobs.list), (found) => found.map(({ hash }) => hash).sort())

let names = 0
const fresh = (): string => `place-${names++}`

describeNats("on JetStream", () => {
  let server: Server
  let nats: NatsConnection
  let manager: JetStreamManager

  beforeAll(async () => {
    server = await startServer()
    nats = await connect({ servers: server.url })
    manager = await jetstreamManager(nats)
  })
  afterAll(() => nats.close())

  const open = (name: string, options: Partial<Stores.JetStreamOptions> = {}) =>
    openAt({ servers: [server.url], name, ...options })
  const messages = (stream: string, filter: string) =>
    Effect.promise(async () => (await manager.streams.info(stream, { subjects_filter: filter })).state.subjects ?? {})
  /** Publishes a message of another program. */
  const say = (subject: string, data: string | Uint8Array, fields: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async () => {
      const said = headers()
      for (const [field, value] of Object.entries(fields)) said.set(field, value)
      return manager.jetstream().publish(subject, data, { headers: said })
    })

  storeSuite(
    "stores on NATS",
    Effect.sync(() => Stores.layerJetStream({ servers: [server.url], name: fresh() })),
    { count: isSoak ? 2_600 : 1_100 }
  )

  suite(
    "a repository on NATS",
    Layer.unwrap(
      Effect.sync(() =>
        Layer.provide(Repository.layer({ workspace: "laws" }), Stores.layerJetStream({ servers: [server.url], name: fresh() }))
      )
    ),
    { ...randomPrograms(2, 2_000), laws: isSoak ? laws : [] }
  )

  contentLaws(
    "stores on NATS",
    Effect.suspend(() => contentsOn(Stores.layerJetStream({ servers: [server.url], name: fresh() })))
  )

  describe("blobs", () => {
    it.live("of sizes around one part and around 8 MiB are stored, and are read completely and in ranges", () =>
      Effect.gen(function* () {
        const { blobs } = yield* open(fresh())
        const part = 131_072
        for (const size of [0, 1, part - 1, part, part + 1, 2 * part, 8_388_607, 8_388_608, 8_388_609]) {
          const bytes = bytesOf(size, size)
          const hash = yield* blobs.put(bytes)
          assert.strictEqual(sha256(yield* blobs.get(hash)), sha256(bytes), `${size} bytes`)
          for (const offset of [0, part - 2, part, size - 3].filter((offset) => offset >= 0)) {
            const found = yield* blobs.get(hash, { offset, length: 5 })
            assert.deepStrictEqual(found, bytes.slice(offset, offset + 5), `${size} bytes from ${offset}`)
          }
        }
      }).pipe(Effect.scoped)
    )

    it.live("can be read by other clients of the object store, whose objects are blobs too", () =>
      Effect.gen(function* () {
        const name = fresh()
        const opened = yield* open(name)
        const objects = yield* Effect.promise(() => new Objm(manager.jetstream()).open(`${name}-blobs`))
        const [mine, theirs] = [bytesOf(300_000, 1), bytesOf(300_000, 2)]
        const hash = yield* opened.blobs.put(mine)
        assert.strictEqual(sha256((yield* Effect.promise(() => objects.getBlob(hash)))!), hash)
        assert.strictEqual((yield* Effect.promise(() => objects.info(hash)))!.size, 300_000)
        yield* Effect.promise(() => objects.putBlob({ name: sha256(theirs), options: { max_chunk_size: 70_000 } }, theirs))
        assert.deepStrictEqual(yield* opened.blobs.get(sha256(theirs)), theirs)
        assert.deepStrictEqual(
          yield* opened.blobs.get(sha256(theirs), { offset: 139_999, length: 2 }),
          theirs.slice(139_999, 140_001)
        )
        assert.deepStrictEqual(yield* listed(opened), [hash, sha256(theirs)].sort())
        yield* Effect.promise(() => objects.delete(hash))
        assert.deepStrictEqual(yield* listed(opened), [sha256(theirs)])
        assert.strictEqual(yield* reasonOf(opened.blobs.get(hash)), "missing")
        assert.strictEqual(yield* opened.blobs.put(mine), hash)
        assert.strictEqual(sha256(yield* opened.blobs.get(hash)), hash)
      }).pipe(Effect.scoped)
    )

    it.live("leave no part of a deleted, replaced or refused blob on the server", () =>
      Effect.gen(function* () {
        const name = fresh()
        const { blobs } = yield* open(name)
        const other = yield* open(name)
        const bytes = bytesOf(300_000)
        yield* Effect.all(
          Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? blobs : other.blobs).put(bytes)),
          { concurrency: "unbounded" }
        )
        const parts = messages(`OBJ_${name}-blobs`, `$O.${name}-blobs.C.>`)
        assert.deepStrictEqual(Object.values(yield* parts), [3])
        yield* blobs.delete([sha256(bytes)])
        assert.deepStrictEqual(yield* messages(`OBJ_${name}-blobs`, ">"), {})
      }).pipe(Effect.scoped)
    )

    it.live("that are stored again after they were listed as old are not deleted", () =>
      Effect.gen(function* () {
        const { blobs } = yield* open(fresh())
        const bytes = bytesOf(1_000)
        const hash = yield* blobs.put(bytes)
        const timeOf = Effect.map(Stream.runCollect(blobs.list), ([found]) => DateTime.toEpochMillis(found!.storedAt))
        const first = yield* timeOf
        assert.strictEqual(yield* blobs[deleteOlder]([hash], first), 0)
        while ((yield* timeOf) === first) yield* blobs.put(bytes)
        assert.strictEqual(yield* blobs[deleteOlder]([hash, sha256(bytesOf(1))], first + 1), 0)
        assert.deepStrictEqual(yield* blobs.get(hash), bytes)
        assert.strictEqual(yield* blobs[deleteOlder]([hash], (yield* timeOf) + 1), 1)
        assert.strictEqual(yield* reasonOf(blobs.get(hash)), "missing")
      }).pipe(Effect.scoped)
    )

    it.live("that a killed put has begun are removed by a sweep once they are old, and no other blobs", () =>
      Effect.gen(function* () {
        const name = fresh()
        const [opened, stream, parts] = [yield* open(name), `OBJ_${name}-blobs`, `$O.${name}-blobs.C.`]
        const { blobs } = opened
        const kept = bytesOf(300_000, 1)
        const hash = yield* blobs.put(kept)
        yield* blobs.put(new Uint8Array())
        yield* say(`${parts}killed`, bytesOf(1_000))
        yield* say(`${parts}killed`, bytesOf(1_000))
        // A description that this version cannot read keeps its parts.
        yield* say(`${parts}later`, bytesOf(1_000))
        yield* say(
          `$O.${name}-blobs.M.${Buffer.from("0".repeat(64)).toString("base64url")}==`,
          '{"nuid": "later", "size": "x"}'
        )
        const subjects = Effect.map(messages(stream, `${parts}>`), (found) => Object.keys(found).length)
        assert.strictEqual(yield* subjects, 3)
        // The parts are young: they can be of a put that is under way, whatever this machine's clock says.
        assert.strictEqual(yield* blobs[sweep](Number.MAX_SAFE_INTEGER), 0)
        assert.strictEqual(yield* blobs[sweep](0, 0), 0)
        assert.strictEqual(yield* subjects, 3)
        let count = 0
        // The server counts in milliseconds, and the last part may be of this one.
        while (count === 0) count = yield* blobs[sweep](Number.MAX_SAFE_INTEGER, 0)
        assert.strictEqual(count, 1)
        assert.deepStrictEqual(yield* messages(stream, `${parts}killed`), {})
        assert.strictEqual(yield* subjects, 2)
        assert.deepStrictEqual(yield* blobs.get(hash), kept)
      }).pipe(Effect.scoped)
    )

    it.live("are swept with the grace period of a garbage collection, and not by a dry run", () =>
      Effect.gen(function* () {
        const { blobs, heads } = yield* open(fresh())
        const times: Array<number> = []
        const watched: OwnOperations = {
          ...blobs,
          [sweep]: (before, youngest) => {
            times.push(before)
            return blobs[sweep](before, youngest)
          }
        }
        const collect = (options: { readonly dryRun?: boolean }) =>
          Repository.collect({ grace: "2 hours", ...options }).pipe(
            Effect.provideService(BlobStore.BlobStore, watched),
            Effect.provideService(HeadStore.HeadStore, heads)
          )
        yield* collect({ dryRun: true })
        assert.deepStrictEqual(times, [])
        const before = Date.now()
        yield* collect({})
        assert.strictEqual(times.length, 1)
        assert.isAtLeast(times[0]!, before - 7_200_000)
        assert.isAtMost(times[0]!, Date.now() - 7_200_000)
      }).pipe(Effect.scoped)
    )

    it.live("whose put was stopped for an hour, and continued during a garbage collection, are sent again", () =>
      Effect.gen(function* () {
        const name = fresh()
        const open = Effect.acquireRelease(
          Effect.promise(() => gateTo(server)),
          (gate) => Effect.sync(gate.close)
        )
        const [gate, gateOfSweep] = [yield* open, yield* open]
        const { blobs } = yield* openAt({ servers: [gate.url], name })
        const sweeper = (yield* openAt({ servers: [gateOfSweep.url], name })).blobs
        const sweepNow = Effect.andThen(Effect.sleep("10 millis"), sweeper[sweep](Number.MAX_SAFE_INTEGER, 0))
        // A garbage collection of one leftover shows which of its messages removes parts.
        yield* say(`$O.${name}-blobs.C.killed`, bytesOf(1_000))
        gateOfSweep.watch()
        const seen = gateOfSweep.watch()
        assert.strictEqual(yield* sweepNow, 1)
        const nth = seen.findIndex((subject) => subject.includes(".PURGE.")) + 1
        assert.isAbove(nth, 0)
        const { clock, jump } = yield* jumpingClock
        let swept: Promise<number> | undefined
        let isStored = (): void => undefined
        const stored = new Promise<void>((resolve) => (isStored = resolve))
        // The messages: a look at the description, three parts, and the description, which is sent again later.
        gate.interfere(5, "before", async () => {
          jump(3_600_000)
          // The garbage collection has seen that the parts have no description, and removes them after the put.
          await new Promise<void>((resolve) => {
            gateOfSweep.interfere(nth, "before", () => (resolve(), stored))
            swept = Effect.runPromise(sweepNow)
          })
        })
        const bytes = bytesOf(300_000)
        const hash = yield* Effect.provideService(blobs.put(bytes), Clock.Clock, clock)
        isStored()
        yield* Effect.promise(() => swept!)
        assert.deepStrictEqual(yield* blobs.get(hash), bytes)
      }).pipe(Effect.scoped)
    )

    it.live("whose put was stopped for an hour, so that its parts were removed, are sent again", () =>
      Effect.gen(function* () {
        const name = fresh()
        const gate = yield* Effect.acquireRelease(
          Effect.promise(() => gateTo(server)),
          (gate) => Effect.sync(gate.close)
        )
        const { blobs } = yield* openAt({ servers: [gate.url], name })
        const { clock, jump } = yield* jumpingClock
        let isStopped = false
        // The messages: a look at the description, three parts, and the description, which is sent again later.
        gate.interfere(5, "before", async () => {
          await manager.streams.purge(`OBJ_${name}-blobs`, { filter: `$O.${name}-blobs.C.>` })
          isStopped = true
          jump(3_600_000)
        })
        const bytes = bytesOf(300_000)
        const hash = yield* Effect.provideService(blobs.put(bytes), Clock.Clock, clock)
        assert.isTrue(isStopped)
        assert.deepStrictEqual(yield* blobs.get(hash), bytes)
      }).pipe(Effect.scoped)
    )

    it.live("with forged descriptions or parts are corrupt, until their content is put again", () =>
      Effect.gen(function* () {
        const name = fresh()
        const { blobs } = yield* open(name)
        const bytes = bytesOf(300_000)
        const hash = yield* blobs.put(bytes)
        const subject = `$O.${name}-blobs.M.${Buffer.from(hash).toString("base64url")}==`
        const stream = `OBJ_${name}-blobs`
        const read = Effect.promise(async () => (await manager.streams.getMessage(stream, { last_by_subj: subject }))!.string())
        const known = JSON.parse(yield* read) as Record<string, unknown>
        const forged: ReadonlyArray<unknown> = [
          "",
          "[]",
          "x".repeat(100_000),
          { ...known, nuid: ">" },
          { ...known, nuid: "../../x" },
          { ...known, nuid: "absent" },
          { ...known, size: -1 },
          { ...known, size: 2 ** 52 },
          { ...known, size: 299_999 },
          { ...known, size: 300_001 },
          { ...known, chunks: 1e9 },
          { ...known, options: { link: { bucket: "other", name: "x" } } },
          { ...known, options: { max_chunk_size: 1 } },
          { ...known, metadata: { parts: "1x1000000" } },
          {
            ...known,
            size: 3_000_000_000,
            chunks: 3_000_000_000,
            options: { max_chunk_size: 1 },
            metadata: { parts: Array.from({ length: 375 }, () => "1x8000000").join() }
          },
          { ...known, metadata: { parts: "1x1,1x1,1x1", after: "0" } },
          { ...known, metadata: { after: "1000" } }
        ]
        for (const one of forged) {
          yield* say(subject, typeof one === "string" ? one : JSON.stringify(one), { "Nats-Rollup": "sub" })
          assert.strictEqual(yield* reasonOf(blobs.get(hash)), "corrupt", JSON.stringify(one).slice(0, 100))
          assert.strictEqual(yield* blobs.put(bytes), hash)
          assert.strictEqual(sha256(yield* blobs.get(hash)), hash)
        }
        const { nuid } = JSON.parse(yield* read) as { readonly nuid: string }
        const found = yield* Effect.promise(() =>
          manager.streams.getMessage(stream, { last_by_subj: `$O.${name}-blobs.C.${nuid}` })
        )
        yield* Effect.promise(() => manager.streams.deleteMessage(stream, found!.seq))
        assert.strictEqual(yield* reasonOf(blobs.get(hash)), "corrupt")
        assert.strictEqual((yield* blobs.get(hash, { offset: 0, length: 10 })).length, 10)
        yield* blobs.put(bytes)
        assert.strictEqual(sha256(yield* blobs.get(hash)), hash)
        yield* say(`$O.${name}-blobs.M.README`, "{}")
        yield* say(`$O.${name}-blobs.M.${Buffer.from("readme").toString("base64url")}`, "{}")
        assert.deepStrictEqual(
          (yield* Stream.runCollect(blobs.list)).map((one) => one.hash),
          [hash]
        )
      }).pipe(Effect.scoped)
    )
  })

  describe("heads", () => {
    it.live("that are forged are reported as corrupt, match no expected head, and stay in the list", () =>
      Effect.gen(function* () {
        const name = fresh()
        const { heads } = yield* open(name)
        const subject = `$KV.${name}-heads.77`
        assert.isTrue(yield* heads.compareAndSet("w", undefined, head(1)))
        for (const key of ["README", "7", "ff", "0a", "77.77", "zz"]) yield* say(`$KV.${name}-heads.${key}`, "{}")
        for (const text of ["", "null", "{}", new Uint8Array([0xff, 0xfe]), "x".repeat(500_000)]) {
          yield* say(subject, text)
          assert.strictEqual(yield* reasonOf(heads.get("w")), "corrupt")
          assert.strictEqual(yield* reasonOf(Stream.runHead(heads.changes("w"))), "corrupt")
          assert.isFalse(yield* heads.compareAndSet("w", head(1), head(2)))
          assert.isFalse(yield* heads.compareAndSet("w", undefined, head(2)))
          assert.deepStrictEqual(yield* Stream.runCollect(heads.list), ["w"])
        }
        yield* say(subject, "", { "KV-Operation": "PURGE", "Nats-Rollup": "sub" })
        assert.isUndefined(yield* heads.get("w"))
        assert.isTrue(yield* heads.compareAndSet("w", undefined, head(1)))
      }).pipe(Effect.scoped)
    )

    it.live("of a workspace that was deleted and created again have higher revisions", () =>
      Effect.gen(function* () {
        const name = fresh()
        const { heads } = yield* open(name)
        const revision = Effect.promise(
          async () => (await manager.streams.getMessage(`KV_${name}-heads`, { last_by_subj: `$KV.${name}-heads.77` }))!.seq
        )
        yield* heads.compareAndSet("w", undefined, head(1))
        const first = yield* revision
        assert.isTrue(yield* heads.delete("w", head(1)))
        assert.isFalse(yield* heads.delete("w", head(1)))
        assert.deepStrictEqual(yield* Stream.runCollect(heads.list), [])
        assert.isTrue(yield* heads.compareAndSet("w", undefined, head(1)))
        assert.strictEqual(yield* revision, first + 2)
      }).pipe(Effect.scoped)
    )

    it.live("reach a reader that was paused during 2,000 commits, and the last head is never lost", () =>
      Effect.gen(function* () {
        const name = fresh()
        const [{ heads }, writer] = [yield* open(name), yield* open(name)]
        const [gate, began] = [yield* Latch.make(false), yield* Latch.make(false)]
        yield* heads.compareAndSet("w", undefined, head(1))
        const reader = yield* Effect.forkChild(
          heads.changes("w").pipe(
            Stream.tap(() => Effect.andThen(began.open, gate.await)),
            Stream.takeUntil(({ sequence }) => sequence === 2_000),
            Stream.runCount
          )
        )
        yield* began.await
        for (let n = 2; n <= 2_000; n++) yield* writer.heads.compareAndSet("w", head(n - 1), head(n))
        yield* gate.open
        assert.isBelow(yield* Fiber.join(reader), 10)
      }).pipe(Effect.scoped)
    )
  })

  describe("compareAndSet whose answer is lost", () => {
    /**
     * Sends a compare-and-set whose answer is lost. Makes commits, and restarts the server, before the client can ask again. Returns
     * its answer.
     */
    const ask = (when: "before" | "after", commits: number, isRestarted = false) =>
      Effect.gen(function* () {
        const name = fresh()
        const place = yield* Effect.acquireRelease(
          Effect.promise(() => startServer()),
          (place) => Effect.promise(place.kill)
        )
        const gate = yield* Effect.acquireRelease(
          Effect.promise(() => gateTo(place)),
          (gate) => Effect.sync(gate.close)
        )
        const direct = yield* openAt({ servers: [place.url], name })
        const { heads } = yield* openAt({ servers: [gate.url], name })
        yield* direct.heads.compareAndSet("w", undefined, head(1))
        const act = Effect.gen(function* () {
          for (let n = 0; n < commits; n++) {
            const before = (yield* direct.heads.get("w"))!
            assert.isTrue(yield* direct.heads.compareAndSet("w", before, head(before.sequence + 1)))
          }
          if (isRestarted) yield* Effect.promise(() => place.kill().then(place.start))
        })
        // The first message reads the head, and the second one replaces it.
        gate.interfere(2, when, () => Effect.runPromise(act))
        return yield* heads.compareAndSet("w", head(1), head(2, "asked")).pipe(
          Effect.map(String),
          Effect.catch(({ reason }) => Effect.succeed(reason))
        )
      }).pipe(Effect.scoped)

    it.live("returns true if the head was stored, whatever commits followed", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* ask("after", 0), "true")
        assert.strictEqual(yield* ask("after", 60), "true")
        assert.strictEqual(yield* ask("after", 0, true), "true")
        assert.strictEqual(yield* ask("after", 10, true), "true")
      })
    )

    it.live("returns false if the head was not stored because other writers were first, and repeats the change otherwise", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* ask("before", 0), "true")
        assert.strictEqual(yield* ask("before", 1), "false")
        assert.strictEqual(yield* ask("before", 10, true), "false")
      })
    )

    it.live("fails with unavailable if so many writes followed that the server no longer knows the result", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* ask("before", 60), "unavailable")
        assert.strictEqual(yield* ask("after", 40, true), "unavailable")
      })
    )
  })

  describe("each operation returns the right answer", () => {
    const [small, large] = [bytesOf(100, 1), bytesOf(1_000_000, 2)]

    /** The operations on a place with the small blob and the head 1, each with what it must leave. */
    const operations: Readonly<Record<string, (gated: Opened, direct: Opened) => Effect.Effect<void, Stores.StoreError>>> = {
      "put of new content": ({ blobs }, direct) =>
        Effect.gen(function* () {
          const hash = yield* blobs.put(large)
          assert.strictEqual(sha256(yield* direct.blobs.get(hash)), sha256(large))
          assert.deepStrictEqual(yield* listed(direct), [sha256(small), hash].sort())
        }),
      "put of content that exists": ({ blobs }, direct) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* direct.blobs.get(yield* blobs.put(small)), small)
          assert.deepStrictEqual(yield* listed(direct), [sha256(small)])
        }),
      get: ({ blobs }) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* blobs.get(sha256(small)), small)
          assert.deepStrictEqual(yield* blobs.get(sha256(small), { offset: 1, length: 2 }), small.slice(1, 3))
          assert.strictEqual(yield* reasonOf(blobs.get(sha256(large))), "missing")
        }),
      has: ({ blobs }) =>
        Effect.map(blobs.has([sha256(small), sha256(large)]), (found) => assert.deepStrictEqual([...found], [sha256(small)])),
      "delete of a blob": ({ blobs }, direct) =>
        Effect.andThen(
          blobs.delete([sha256(small)]),
          Effect.map(listed(direct), (found) => assert.deepStrictEqual(found, []))
        ),
      lists: (gated) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* listed(gated), [sha256(small)])
          assert.deepStrictEqual(yield* Stream.runCollect(gated.heads.list), ["w"])
        }),
      "get of a head": ({ heads }) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* heads.get("w"))?.sequence, 1)
          assert.isUndefined(yield* heads.get("v"))
        }),
      compareAndSet: ({ heads }, direct) =>
        Effect.gen(function* () {
          assert.isTrue(yield* heads.compareAndSet("w", head(1), head(2)))
          assert.isTrue(yield* heads.compareAndSet("v", undefined, head(1)))
          assert.isFalse(yield* heads.compareAndSet("w", head(1), head(3)))
          assert.strictEqual((yield* direct.heads.get("w"))?.sequence, 2)
        }),
      "delete of a head": ({ heads }, direct) =>
        Effect.gen(function* () {
          assert.isTrue(yield* heads.delete("w", head(1)))
          assert.isFalse(yield* heads.delete("w", head(1)))
          assert.isUndefined(yield* direct.heads.get("w"))
        }),
      changes: ({ heads }, direct) =>
        Effect.gen(function* () {
          const reader = yield* Effect.forkChild(
            Stream.runDrain(Stream.takeUntil(heads.changes("w"), ({ sequence }) => sequence === 4)),
            { startImmediately: true }
          )
          for (let n = 2; n <= 4; n++) assert.isTrue(yield* direct.heads.compareAndSet("w", head(n - 1), head(n)))
          yield* Fiber.join(reader)
        })
    }

    /** Runs each operation, and acts at each message that it sends. */
    const runAll = (
      act: (place: Server) => Promise<void>,
      when: "before" | "after",
      concurrency: number,
      only: ReadonlyArray<string> = Object.keys(operations)
    ) =>
      Effect.gen(function* () {
        const place = yield* Effect.acquireRelease(
          Effect.promise(() => startServer()),
          (place) => Effect.promise(place.kill)
        )
        let acted = 0
        /** Runs an operation on a new place, and returns whether it sent the nth message. */
        const runOnce = (operation: string, nth: number) =>
          Effect.gen(function* () {
            const name = fresh()
            let isReached = false
            const gate: Gate = yield* Effect.acquireRelease(
              Effect.promise(() => gateTo(place)),
              (gate) => Effect.sync(gate.close)
            )
            const direct = yield* openAt({ servers: [place.url], name })
            yield* direct.blobs.put(small)
            yield* direct.heads.compareAndSet("w", undefined, head(1))
            const gated = yield* openAt({ servers: [gate.url], name })
            gate.interfere(nth, when, async () => {
              isReached = true
              acted++
              await act(place)
            })
            yield* Effect.mapError(
              operations[operation]!(gated, direct),
              (error) => new Error(`${operation}, message ${nth}: ${error.message}`)
            )
            return isReached
          }).pipe(Effect.scoped)
        const runAtEach = (operation: string, nth = 1): Effect.Effect<void, unknown> =>
          Effect.flatMap(runOnce(operation, nth), (isReached) => (isReached ? runAtEach(operation, nth + 1) : Effect.void))
        yield* Effect.forEach(only, (operation) => runAtEach(operation), { concurrency, discard: true })
        return acted
      }).pipe(Effect.scoped)

    it.live(
      "if the connection is lost before any of its messages",
      () =>
        Effect.map(
          runAll(() => Promise.resolve(), "before", 10),
          (acted) => assert.isAbove(acted, 20)
        ),
      60_000
    )

    it.live(
      "if the connection is lost after any of its messages",
      () =>
        Effect.map(
          runAll(() => Promise.resolve(), "after", 10),
          (acted) => assert.isAbove(acted, 20)
        ),
      60_000
    )

    it.live(
      "if the server is killed and restarted at any of its messages",
      () =>
        Effect.map(
          runAll(
            (place) => place.kill().then(place.start),
            "after",
            1,
            isSoak ? undefined : ["put of content that exists", "compareAndSet"]
          ),
          (acted) => assert.isAbove(acted, 5)
        ),
      600_000
    )
  })

  describe("opening", () => {
    const unfit: Readonly<Record<string, Partial<StreamConfig>>> = {
      "another description": { description: "mine" },
      "other subjects": { subjects: ["$O.NAME-blobs.M.>"] },
      "storage in memory": { storage: "memory" },
      "another retention": { retention: "interest" },
      "old messages that are deleted": { discard: "old" },
      "messages that expire": { max_age: 3_600_000_000_000 },
      "a limited number of messages": { max_msgs: 100 },
      "no roll-ups": { allow_rollup_hdrs: false },
      "messages that cannot be deleted": { deny_purge: true, allow_rollup_hdrs: false }
    }
    for (const [setting, config] of Object.entries(unfit)) {
      it.live(`refuses a bucket with ${setting}`, () =>
        Effect.gen(function* () {
          const name = fresh()
          const known = {
            name: `OBJ_${name}-blobs`,
            subjects: [`$O.${name}-blobs.C.>`, `$O.${name}-blobs.M.>`],
            description: "blobs of fs-algebra, version 1",
            storage: "file",
            discard: "new",
            allow_rollup_hdrs: true,
            ...config
          } as Partial<StreamConfig>
          const made = { ...known, subjects: known.subjects!.map((subject) => subject.replace("NAME", name)) }
          yield* Effect.promise(() => manager.streams.add(made as StreamConfig))
          const error = yield* Effect.flip(open(name))
          assert.strictEqual(error.reason, "invalid")
          assert.include(error.message, `OBJ_${name}-blobs`)
        }).pipe(Effect.scoped)
      )
    }

    it.live("refuses an object store that another client has created under its name", () =>
      Effect.gen(function* () {
        const name = fresh()
        yield* Effect.promise(() => new Objm(manager.jetstream()).create(`${name}-blobs`))
        assert.strictEqual(yield* reasonOf(open(name)), "invalid")
      }).pipe(Effect.scoped)
    )

    it.live("by many programs at once creates one object store and one key-value bucket", () =>
      Effect.gen(function* () {
        const name = fresh()
        const opened = yield* Effect.all(
          Array.from({ length: 8 }, () => open(name)),
          { concurrency: "unbounded" }
        )
        assert.isTrue(yield* opened[0]!.heads.compareAndSet("w", undefined, head(1)))
        for (const { heads } of opened) assert.strictEqual((yield* heads.get("w"))?.sequence, 1)
      }).pipe(Effect.scoped)
    )

    it.live("fails with unavailable if the server has no JetStream, refuses the credentials or does not exist", () =>
      Effect.gen(function* () {
        const [plain, guarded] = yield* Effect.promise(() =>
          Promise.all([
            startServer({ isPlain: true }),
            startServer({ more: 'authorization { user: "ann", password: "secret" }' })
          ])
        )
        const timeout = "300 millis"
        const without = yield* Effect.flip(openAt({ servers: [plain.url], name: "a", timeout }))
        assert.strictEqual(without.reason, "unavailable")
        assert.include(without.message, "--jetstream")
        const refused = yield* Effect.flip(openAt({ servers: [guarded.url], name: "a", timeout }))
        assert.strictEqual(refused.reason, "unavailable")
        assert.include(refused.message, guarded.url)
        const wrong = { user: "ann", password: Redacted.make("wrong") }
        const denied = yield* Effect.flip(openAt({ servers: [guarded.url], name: "a", timeout, authentication: wrong }))
        assert.strictEqual(denied.reason, "unavailable")
        assert.notInclude(denied.message, "wrong")
        const right = yield* Stores.jetStreamUrl(`nats://ann:secret@${guarded.url}/a`)
        yield* openAt(right)
        assert.strictEqual(yield* reasonOf(openAt({ servers: ["127.0.0.1:1"], name: "a" })), "unavailable")
      }).pipe(Effect.scoped)
    )
  })

  it.live("a store without space fails with full and keeps its content", () =>
    Effect.gen(function* () {
      const name = fresh()
      const { blobs, heads } = yield* open(name)
      const stream = `OBJ_${name}-blobs`
      const hash = yield* blobs.put(bytesOf(100_000, 1))
      yield* Effect.promise(async () =>
        manager.streams.update(stream, { ...(await manager.streams.info(stream)).config, max_bytes: 500_000 })
      )
      assert.strictEqual(yield* reasonOf(blobs.put(bytesOf(1_000_000, 2))), "full")
      assert.strictEqual((yield* blobs.get(hash)).length, 100_000)
      assert.strictEqual((yield* blobs.put(bytesOf(200_000, 3))).length, 64)
      assert.isTrue(yield* heads.compareAndSet("w", undefined, head(1)))
    }).pipe(Effect.scoped)
  )

  it.live("after the layer is closed, put, get of a head and changes fail with unavailable", () =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* Effect.scoped(open(fresh()))
      assert.strictEqual(yield* reasonOf(blobs.put(bytesOf(10))), "unavailable")
      assert.strictEqual(yield* reasonOf(heads.get("w")), "unavailable")
      assert.strictEqual(yield* reasonOf(Stream.runDrain(heads.changes("w"))), "unavailable")
    })
  )
})
