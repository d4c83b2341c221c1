import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { jetstreamManager, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream"
import { Objm } from "@nats-io/obj"
import { connect, headers, type NatsConnection } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { createHash } from "node:crypto"
import { FileEdit, FileStat, FileWrite } from "../../src/journal/FileSystemEntry.ts"
import * as JetStream from "../../src/journal/JetStream.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { gateTo } from "../repository/stores/natsGate.ts"
import { journalLaws } from "./journalLaws.ts"
import { describeNats, type Server, startServer, wayTo } from "./nats.ts"

type Scrivener = Journal.Scrivener<Journal.Entry>

const entry = (id: string | number) => new FileStat({ correlationId: String(id), path: "/a" })
const entries = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => entry(from + index))
const idOf = ({ entry }: Journal.Recorded<Journal.Entry>) => ("correlationId" in entry ? entry.correlationId : "")
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

let names = 0
const fresh = (): string => `journal-${++names}`

describeNats("a journal on JetStream:", () => {
  let server: Server
  let small: Server
  let nats: NatsConnection
  let manager: JetStreamManager

  beforeAll(async () => {
    ;[server, small] = await Promise.all([startServer(), startServer({ more: "max_payload: 65536" })])
    nats = await connect({ servers: server.url })
    manager = await jetstreamManager(nats)
  })
  afterAll(() => nats.close())

  const open = (name: string, options?: Partial<JetStream.Options>) =>
    JetStream.make(Journal.Entry, { servers: server.url, name, ...options })
  const all = (journal: Scrivener, after = 0) => Stream.runCollect(journal.stored(after))
  const stored = (name: string) => Effect.promise(async () => (await manager.streams.info(name)).state)
  const text = (name: string, seq: number) =>
    Effect.promise(async () => (await manager.streams.getMessage(name, { seq }))!.string())
  /** Publishes a message of another program on the subject of a journal. */
  const say = (name: string, data: string, fields: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async () => {
      const said = headers()
      for (const [field, value] of Object.entries(fields)) said.set(field, value)
      return manager.jetstream().publish(`fs-algebra.${name}`, data, { headers: said })
    })

  describe("positions", () => {
    it.live("are the sequence numbers of the stream, even for entries that are appended together", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journal = yield* open(name)
        assert.strictEqual(yield* journal.append(entry(1)), 1)
        assert.strictEqual(yield* journal.appendAll(entries(2, 4)), 4)
        assert.strictEqual(yield* journal.append(entry(5)), 5)
        const { first_seq, last_seq, messages } = yield* stored(name)
        assert.deepStrictEqual([first_seq, last_seq, messages], [1, 5, 5])
        assert.include(yield* text(name, 1), `"correlationId":"1"`)
        assert.include(yield* text(name, 5), `"correlationId":"5"`)
        assert.deepStrictEqual(
          (yield* all(journal)).map((one) => [one.position, idOf(one)]),
          [
            [1, "1"],
            [2, "2"],
            [3, "3"],
            [4, "4"],
            [5, "5"]
          ]
        )
      }).pipe(Effect.scoped)
    )

    it.live("have no gaps or duplicates when two connections append concurrently", () =>
      Effect.gen(function* () {
        const name = fresh()
        const [a, b] = yield* Effect.all([open(name), open(name)])
        const write = (journal: Scrivener, who: string) =>
          Effect.forEach(
            numbers(1, 60),
            (index) =>
              index % 3 === 0
                ? Effect.map(journal.appendAll([entry(`${who}${index}x`), entry(`${who}${index}y`)]), (last) => [
                    last - 1,
                    last
                  ])
                : Effect.map(journal.append(entry(`${who}${index}`)), (last) => [last]),
            { concurrency: 4 }
          )
        const positions = (yield* Effect.all([write(a, "a"), write(b, "b")], { concurrency: 2 })).flat(2)
        assert.deepStrictEqual(
          positions.toSorted((x, y) => x - y),
          numbers(1, 160)
        )
        const found = yield* all(a)
        assert.deepStrictEqual(
          found.map(({ position }) => position),
          numbers(1, 160)
        )
        assert.strictEqual(new Set(found.map(idOf)).size, 160)
        for (const [index, one] of found.entries()) {
          if (idOf(one).endsWith("x")) assert.strictEqual(idOf(found[index + 1]!), idOf(one).replace("x", "y"))
        }
      }).pipe(Effect.scoped)
    )

    it.live("keep the order of the calls of each connection", () =>
      Effect.gen(function* () {
        const name = fresh()
        const [a, b] = yield* Effect.all([open(name), open(name)])
        const write = (journal: Scrivener, who: string) =>
          Effect.forEach(numbers(100, 199), (index) => journal.append(entry(`${who}${index}`)), { concurrency: "unbounded" })
        yield* Effect.all([write(a, "a"), write(b, "b")], { concurrency: 2 })
        const ids = (yield* all(a)).map(idOf)
        for (const who of ["a", "b"]) {
          const own = ids.filter((id) => id.startsWith(who))
          assert.deepStrictEqual(
            own,
            numbers(100, 199).map((index) => `${who}${index}`)
          )
        }
      }).pipe(Effect.scoped)
    )
  })

  describe("entries appended together", () => {
    /** Publishes the first of three messages, as a killed writer would leave it. */
    const begun = (name: string) =>
      Effect.gen(function* () {
        const model = fresh()
        yield* Effect.flatMap(open(model), (journal) => journal.appendAll(entries(2, 4)))
        const message = yield* Effect.promise(() => manager.streams.getMessage(model, { seq: 1 }))
        const fields = Object.fromEntries([...message!.header].map(([key, [value]]) => [key, value!]))
        delete fields["Nats-Expected-Last-Sequence"]
        yield* say(name, message!.string(), fields)
      })

    it.live("are all present if their writer was killed after the first message, and the next append follows them", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journal = yield* open(name)
        yield* journal.append(entry(1))
        yield* begun(name)
        assert.strictEqual((yield* stored(name)).last_seq, 2)
        assert.strictEqual(yield* journal.last, 4)
        const late = yield* open(name)
        for (const reader of [journal, late]) assert.deepStrictEqual((yield* all(reader)).map(idOf), ["1", "2", "3", "4"])
        assert.deepStrictEqual(
          (yield* all(late, 2)).map(({ position }) => position),
          [3, 4]
        )
        assert.strictEqual(yield* late.append(entry(5)), 5)
        assert.strictEqual(yield* journal.append(entry(6)), 6)
        const { last_seq, messages } = yield* stored(name)
        assert.deepStrictEqual([last_seq, messages], [6, 6])
        for (const reader of [journal, late, yield* open(name)]) {
          assert.deepStrictEqual((yield* all(reader)).map(idOf), ["1", "2", "3", "4", "5", "6"])
          const backward = yield* Stream.runCollect(reader.readBackward(5))
          assert.deepStrictEqual(
            backward.map(({ position }) => position),
            [4, 3, 2, 1]
          )
        }
      }).pipe(Effect.scoped)
    )

    it.live("keep their positions when a message of another program takes one of their sequence numbers", () =>
      Effect.gen(function* () {
        const name = fresh()
        yield* open(name)
        yield* begun(name)
        yield* say(name, "hello")
        const journal = yield* open(name)
        assert.strictEqual(yield* journal.append(entry(5)), 4)
        for (const reader of [journal, yield* open(name)]) {
          for (const after of [0, 1, 2]) {
            assert.deepStrictEqual((yield* all(reader, after)).map(idOf), ["2", "3", "4", "5"].slice(after))
          }
        }
      }).pipe(Effect.scoped)
    )

    it.live("can be read from any position among them", () =>
      Effect.gen(function* () {
        const name = fresh()
        const writer = yield* open(name)
        yield* writer.append(entry(1))
        assert.strictEqual(yield* writer.appendAll(entries(2, 700)), 700)
        yield* writer.append(entry(701))
        const reader = yield* open(name)
        for (const after of [0, 1, 2, 350, 699, 700]) {
          assert.deepStrictEqual((yield* all(reader, after)).map(idOf), numbers(after + 1, 701).map(String))
        }
        const backward = yield* Stream.runCollect(reader.readBackward(500))
        assert.deepStrictEqual(backward.map(idOf), numbers(1, 499).toReversed().map(String))
      }).pipe(Effect.scoped)
    )
  })

  describe("an append whose answer is lost", () => {
    for (const together of [1, 3]) {
      it.live(`is made once, and returns its position (${together} together)`, () =>
        Effect.gen(function* () {
          const name = fresh()
          const way = yield* Effect.acquireRelease(
            Effect.promise(() => wayTo(server)),
            (way) => Effect.sync(way.close)
          )
          const journal = yield* open(name, { servers: way.url })
          yield* journal.append(entry("before"))
          way.silence()
          const append = yield* Effect.forkChild(journal.appendAll(entries(1, together)))
          const witness = yield* open(name)
          yield* witness.waitFor(0, (one): one is FileStat => one._tag === "FileStat" && one.correlationId === "1")
          way.cut()
          assert.strictEqual(yield* Fiber.join(append), 1 + together)
          assert.strictEqual(yield* journal.append(entry("after")), 2 + together)
          const ids = (yield* all(witness)).map(idOf)
          assert.deepStrictEqual(ids, ["before", ...numbers(1, together).map(String), "after"])
        }).pipe(Effect.scoped)
      )
    }

    it.live("returns its position before a later append of another connection", () =>
      Effect.gen(function* () {
        const name = fresh()
        const way = yield* Effect.acquireRelease(
          Effect.promise(() => wayTo(server)),
          (way) => Effect.sync(way.close)
        )
        const [journal, other] = yield* Effect.all([open(name, { servers: way.url }), open(name)])
        yield* journal.append(entry("before"))
        way.silence()
        const append = yield* Effect.forkChild(journal.append(entry("mine")))
        yield* other.waitFor(0, (one): one is FileStat => one._tag === "FileStat" && one.correlationId === "mine")
        yield* other.append(entry("other"))
        way.cut()
        assert.strictEqual(yield* Fiber.join(append), 2)
        assert.deepStrictEqual((yield* all(other)).map(idOf), ["before", "mine", "other"])
      }).pipe(Effect.scoped)
    )
  })

  describe("an unreachable server", () => {
    it.live("that comes back has neither lost nor repeated a confirmed append, and tails continue", () =>
      Effect.gen(function* () {
        const own = yield* Effect.promise(() => startServer())
        const journal = yield* open("survives", { servers: own.url })
        const reader = yield* open("survives", { servers: own.url })
        const tail = yield* Effect.forkChild(Stream.runCollect(Stream.take(reader.tail(), 300)))
        const append = yield* Effect.forkChild(
          Effect.forEach(numbers(1, 300), (index) => journal.append(entry(index)), { concurrency: 2 })
        )
        for (const reached of [60, 160]) {
          yield* reader.waitFor(reached, (one): one is FileStat => one._tag === "FileStat")
          yield* Effect.promise(own.kill)
          yield* Effect.promise(own.start)
        }
        const positions = yield* Fiber.join(append)
        assert.deepStrictEqual(
          positions.toSorted((a, b) => a - b),
          numbers(1, 300)
        )
        const seen = yield* Fiber.join(tail)
        assert.deepStrictEqual(
          seen.map(({ position }) => position),
          numbers(1, 300)
        )
        for (const [index, position] of positions.entries()) assert.strictEqual(idOf(seen[position - 1]!), String(index + 1))
      }).pipe(Effect.scoped)
    )

    /**
     * Opens a journal through a connection that can be cut, with a tail at the end. Then deletes the consumers on the
     * server. The clock stands still.
     */
    const followed = Effect.gen(function* () {
      const name = fresh()
      const way = yield* Effect.acquireRelease(
        Effect.promise(() => wayTo(server)),
        (way) => Effect.sync(way.close)
      )
      const [journal, other] = yield* Effect.all([open(name, { servers: way.url }), open(name)])
      yield* other.append(entry(1))
      const tail = yield* Effect.forkChild(Stream.runCollect(Stream.take(journal.tail(1), 1)), { startImmediately: true })
      yield* journal.waitFor(0, (one): one is FileStat => one._tag === "FileStat")
      // The server has one consumer for each journal.
      yield* Effect.promise(async () => {
        const consumers = await manager.consumers.list(name).next()
        for (const consumer of consumers) await manager.consumers.delete(name, consumer.name)
      })
      return { journal, other, tail, way }
    })

    it.effect("that drops consumers with the connection does not end a tail", () =>
      Effect.gen(function* () {
        const { other, tail, way } = yield* followed
        way.cut()
        yield* other.append(entry(2))
        assert.deepStrictEqual((yield* Fiber.join(tail)).map(idOf), ["2"])
      }).pipe(Effect.scoped)
    )

    it.effect("that drops consumers silently does not end a tail, which continues after a while", () =>
      Effect.gen(function* () {
        const { other, tail } = yield* followed
        yield* other.append(entry(2))
        yield* Effect.promise(() => nats.flush())
        assert.isUndefined(tail.pollUnsafe())
        while (tail.pollUnsafe() === undefined) {
          yield* TestClock.adjust("1 second")
          yield* Effect.promise(() => nats.flush())
        }
        assert.deepStrictEqual((yield* Fiber.join(tail)).map(idOf), ["2"])
      }).pipe(Effect.scoped)
    )

    it.live("that does not come back makes every call fail with `unavailable` after the timeout", () =>
      Effect.gen(function* () {
        const own = yield* Effect.promise(() => startServer())
        const journal = yield* open("lost", { servers: own.url, timeout: "200 millis" })
        yield* journal.append(entry(1))
        const ref = yield* journal.contents.put(new Uint8Array(5_000))
        yield* Effect.promise(own.kill)
        assert.include((yield* Effect.flip(journal.append(entry(2)))).message, "it is unknown")
        const calls: Record<string, Effect.Effect<unknown, Journal.JournalError>> = {
          append: journal.append(entry(3)),
          last: journal.last,
          backward: Stream.runDrain(journal.readBackward()),
          put: journal.contents.put(new Uint8Array(6_000)),
          get: journal.contents.get(ref)
        }
        for (const [name, call] of Object.entries(calls))
          assert.strictEqual((yield* Effect.flip(call)).reason, "unavailable", name)
      }).pipe(Effect.scoped)
    )

    it.live("that never existed makes opening fail with `unavailable` immediately", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(open("none", { servers: "127.0.0.1:1" }))
        assert.deepInclude(error, { _tag: "JournalError", reason: "unavailable" })
      }).pipe(Effect.scoped)
    )
  })

  describe("a message of another program on the subject", () => {
    it.live("makes a read of its position fail with `corrupt`, and hides no other entry", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journal = yield* open(name)
        yield* journal.append(entry(1))
        const hostile = [
          "hello",
          "",
          `{"v":1,"entries":[]}`,
          `{"v":1,"entries":[{"at":0,"entry":{"_tag":"FileStat"}}]}`,
          `{"v":1,"entries":[{"at":"x","entry":{"_tag":"FileStat","correlationId":"a","path":"b"}}]}`
        ]
        for (const text of hostile) yield* say(name, text)
        yield* say(name, "x", { "Fs-Algebra-Count": "x", "Fs-Algebra-Place-Of": "9/3", "Fs-Algebra-Body": "nothing/1" })
        yield* say(name, "y", { "Fs-Algebra-Count": "1000000", "Fs-Algebra-Place-Of": "1/1000000" })
        yield* say(name, "more than it holds", { "Fs-Algebra-Append": "mine", "Fs-Algebra-Count": "9007199254740991" })
        assert.strictEqual(yield* journal.append(entry(9)), 10)
        for (const reader of [journal, yield* open(name)]) {
          for (const position of numbers(2, 9)) {
            const error = yield* Effect.flip(all(reader, position - 1))
            assert.deepInclude(error, { reason: "corrupt", position })
          }
          assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(reader.stored(), 1))).map(idOf), ["1"])
          assert.deepStrictEqual((yield* all(reader, 9)).map(idOf), ["9"])
          const backward = Stream.runCollect(reader.readBackward())
          assert.deepInclude(yield* Effect.flip(backward), { reason: "corrupt", position: 9 })
          assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(reader.readBackward(), 1))).map(idOf), ["9"])
        }
      }).pipe(Effect.scoped)
    )

    it.live("in the format of a later version makes a read fail with `version`", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journal = yield* open(name)
        yield* say(name, `{"v":2,"things":[]}`)
        assert.deepInclude(yield* Effect.flip(all(journal)), { reason: "version", position: 1 })
      }).pipe(Effect.scoped)
    )
  })

  describe("a stream", () => {
    it.live("that is full makes appends fail with `tooLarge`, and keeps its entries", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journal = yield* open(name, { maxBytes: 4_000 })
        const outcomes = yield* Effect.forEach(numbers(1, 40), (index) => Effect.result(journal.append(entry(index))))
        const kept = outcomes.filter(({ _tag }) => _tag === "Success").length
        assert.isAbove(kept, 2)
        assert.isBelow(kept, 40)
        for (const outcome of outcomes.slice(kept)) {
          assert.strictEqual(outcome._tag === "Failure" ? outcome.failure.reason : "", "tooLarge")
        }
        assert.strictEqual((yield* Effect.flip(journal.appendAll(entries(1, 40)))).reason, "tooLarge")
        assert.deepStrictEqual((yield* all(journal)).map(idOf), numbers(1, kept).map(String))
      }).pipe(Effect.scoped)
    )

    const others: Record<string, Partial<StreamConfig>> = {
      "whose entries expire": { max_age: 60_000_000_000 },
      "that drops the oldest": { discard: "old" },
      "of a bounded number of entries": { max_msgs: 10 },
      "that is a queue": { retention: "workqueue" },
      "with another subject too": { subjects: ["fs-algebra.other", "other"] },
      "whose entries can be deleted": { deny_delete: false }
    }
    for (const [what, config] of Object.entries(others)) {
      it.live(`${what} is refused`, () =>
        Effect.gen(function* () {
          const name = fresh()
          const journal = { name, subjects: [`fs-algebra.${name}`], discard: "new", deny_delete: true, deny_purge: true }
          const add = (more: object) =>
            manager.streams.add({ ...journal, ...more } as Parameters<typeof manager.streams.add>[0])
          yield* Effect.promise(() => add(config))
          assert.deepInclude(yield* Effect.flip(open(name)), { reason: "corrupt" })
          yield* Effect.promise(() => manager.streams.delete(name))
          yield* Effect.promise(() => add({}))
          assert.strictEqual(yield* Effect.flatMap(open(name), (journal) => journal.append(entry(1))), 1)
        }).pipe(Effect.scoped)
      )
    }

    it.live("permits no deletion or purge", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journal = yield* open(name)
        yield* journal.append(entry(1))
        yield* Effect.flip(Effect.tryPromise(() => manager.streams.deleteMessage(name, 1)))
        yield* Effect.flip(Effect.tryPromise(() => manager.streams.purge(name)))
        assert.strictEqual((yield* all(journal)).length, 1)
      }).pipe(Effect.scoped)
    )

    it.live("is created once by concurrent openings", () =>
      Effect.gen(function* () {
        const name = fresh()
        const journals = yield* Effect.all(
          Array.from({ length: 5 }, () => open(name)),
          { concurrency: "unbounded" }
        )
        yield* Effect.forEach(journals, (journal, index) => journal.append(entry(index)), { concurrency: "unbounded" })
        assert.strictEqual((yield* all(journals[0]!)).length, 5)
      }).pipe(Effect.scoped)
    )
  })

  it.live("an entry above the largest message of the server is read as it was appended", () =>
    Effect.gen(function* () {
      const name = fresh()
      const journal = yield* open(name, { servers: small.url })
      const edit = (size: number) =>
        new FileEdit({ correlationId: String(size), path: "/a", edits: [{ oldText: "ä".repeat(size), newText: "" }] })
      const sizes = [10, 31_000, 32_000, 33_000, 300_000, 20]
      for (const size of sizes) yield* journal.append(edit(size))
      yield* journal.appendAll(Array.from({ length: 20 }, () => edit(5_000)))
      const reader = yield* open(name, { servers: small.url })
      for (const found of [yield* all(journal), yield* all(reader)]) {
        assert.deepStrictEqual(
          found.slice(0, 6).map(({ entry }) => entry),
          sizes.map(edit)
        )
        assert.deepStrictEqual(
          found.slice(6).map(({ entry }) => entry),
          Array.from({ length: 20 }, () => edit(5_000))
        )
      }
    }).pipe(Effect.scoped)
  )

  describe("contents", () => {
    const bytes = (size: number) => new Uint8Array(Buffer.alloc(size, Buffer.from(numbers(0, 250))))
    const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

    it.live("of every size are returned unchanged, whole and in chunks, on another connection", () =>
      Effect.gen(function* () {
        const name = fresh()
        const [writer, reader] = yield* Effect.all([open(name, { servers: small.url }), open(name, { servers: small.url })])
        for (const size of [0, 1, 65_535, 65_536, 65_537, 131_072, 400_000, 2_500_000]) {
          const all = bytes(size)
          const stream = Stream.fromIterable([all.subarray(0, size >> 1), all.subarray(size >> 1)])
          const ref = yield* size % 2 === 0 ? writer.contents.put(all) : writer.contents.putStream(stream)
          assert.deepStrictEqual(ref, { sha256: sha256(all), size })
          assert.isTrue(Buffer.from(all).equals(yield* reader.contents.get(ref)), String(size))
          const pieces = yield* Stream.runCollect(reader.contents.stream(ref))
          assert.isTrue(pieces.every(({ length }) => length <= 65_536))
          assert.isTrue(Buffer.concat(pieces).equals(all))
          assert.isTrue(yield* reader.contents.has(ref))
        }
      }).pipe(Effect.scoped)
    )

    it.live("are separate arrays, not views of the buffer that receives messages", () =>
      Effect.gen(function* () {
        const { contents } = yield* open(fresh())
        const read = yield* contents.get(yield* contents.put(bytes(10_000)))
        assert.strictEqual(Object.getPrototypeOf(read), Uint8Array.prototype)
        assert.strictEqual(read.buffer.byteLength, 10_000)
      }).pipe(Effect.scoped)
    )

    it.live("that are put twice are stored once, even concurrently", () =>
      Effect.gen(function* () {
        const name = fresh()
        const [a, b] = yield* Effect.all([open(name), open(name)])
        const content = bytes(300_000)
        const puts = [a, b, a, b].map(({ contents }) => contents.putStream(Stream.succeed(content)))
        yield* Effect.all(puts, { concurrency: "unbounded" })
        const { messages } = yield* stored(`OBJ_${name}`)
        assert.strictEqual(messages, 4)
        yield* a.contents.put(content)
        assert.strictEqual((yield* stored(`OBJ_${name}`)).messages, 4)
      }).pipe(Effect.scoped)
    )

    it.live("whose connection was lost are sent again, and stored once", () =>
      Effect.gen(function* () {
        const name = fresh()
        const way = yield* Effect.acquireRelease(
          Effect.promise(() => wayTo(server)),
          (way) => Effect.sync(way.close)
        )
        const { contents } = yield* open(name, { servers: way.url })
        const content = bytes(3_000_000)
        const put = yield* Effect.forkChild(contents.putStream(Stream.succeed(content)), { startImmediately: true })
        yield* Effect.promise(async () => {
          while ((await manager.streams.info(`OBJ_${name}`)).state.messages < 3) await nats.flush()
        })
        way.cut()
        const ref = yield* Fiber.join(put)
        assert.isTrue(Buffer.from(content).equals(yield* contents.get(ref)))
        const objects = yield* Effect.promise(() => new Objm(nats).open(name))
        assert.deepStrictEqual(
          (yield* Effect.promise(() => objects.list())).map(({ size }) => size),
          [content.length]
        )
      }).pipe(Effect.scoped)
    )

    it.live("that an earlier version has stored are read with few requests for each part, and are not stored again", () =>
      Effect.gen(function* () {
        const name = fresh()
        const content = bytes(3_000_000)
        const objects = yield* Effect.promise(() => new Objm(nats).create(name, { replicas: 1 }))
        // The object of an earlier version has no list of its parts, only the position before them.
        const object = { name: sha256(content), options: { max_chunk_size: 131_072 }, metadata: { after: "0" } }
        yield* Effect.promise(() => objects.putBlob(object, content))
        const way = yield* Effect.acquireRelease(
          Effect.promise(() => gateTo(server)),
          (gate) => Effect.sync(gate.close)
        )
        const { contents } = yield* open(name, { servers: way.url })
        const ref = { sha256: sha256(content), size: content.length }
        const sent = way.watch()
        assert.isTrue(Buffer.concat(yield* Stream.runCollect(contents.stream(ref))).equals(content))
        // There are 23 parts. Each of three ranges begins again with the part that the range before has ended in.
        assert.isAtMost(sent.length, 23 + 3 + 3 * 2)
        const { messages } = yield* stored(`OBJ_${name}`)
        assert.deepStrictEqual(yield* contents.put(content), ref)
        assert.strictEqual((yield* stored(`OBJ_${name}`)).messages, messages)
      }).pipe(Effect.scoped)
    )

    it.live("that are missing or damaged make a read fail with `corrupt`", () =>
      Effect.gen(function* () {
        const name = fresh()
        const { contents } = yield* open(name)
        const missing = { sha256: sha256(bytes(3)), size: 3 }
        assert.strictEqual((yield* Effect.flip(contents.get(missing))).reason, "corrupt")
        assert.isFalse(yield* contents.has(missing))
        const ref = yield* contents.put(bytes(300_000))
        yield* Effect.promise(() => manager.streams.deleteMessage(`OBJ_${name}`, 2))
        assert.strictEqual((yield* Effect.flip(contents.get(ref))).reason, "corrupt")
        const forged = yield* Effect.promise(async () => {
          const objects = await new Objm(nats).open(name)
          const name_ = sha256(bytes(9))
          await objects.putBlob({ name: name_ }, Uint8Array.of(1, 2, 3))
          return { sha256: name_, size: 9 }
        })
        assert.strictEqual((yield* Effect.flip(contents.get(forged))).reason, "corrupt")
        const whole = yield* contents.put(bytes(10))
        for (const size of [0, 9, 11]) {
          assert.strictEqual((yield* Effect.flip(contents.get({ ...whole, size }))).reason, "corrupt", `size ${size}`)
        }
      }).pipe(Effect.scoped)
    )

    it.live("are not stored if their stream fails or is interrupted", () =>
      Effect.gen(function* () {
        const name = fresh()
        const { contents } = yield* open(name)
        const failing = Stream.concat(Stream.succeed(bytes(2_000_000)), Stream.fail("over" as const))
        assert.strictEqual(yield* Effect.flip(contents.putStream(failing)), "over")
        const endless = yield* Effect.forkChild(
          contents.putStream(Stream.concat(Stream.succeed(bytes(2_000_000)), Stream.never))
        )
        yield* Effect.yieldNow
        yield* Fiber.interrupt(endless)
        assert.strictEqual((yield* stored(`OBJ_${name}`)).messages, 0)
      }).pipe(Effect.scoped)
    )

    it.live("over 4 KiB are stored outside of the entry, which contains a reference", () =>
      Effect.gen(function* () {
        const journal = yield* open(fresh())
        const content = bytes(5_000)
        yield* journal.append(new FileWrite({ correlationId: "w", path: "/f", content, createMode: "overwrite" }))
        const [one] = yield* all(journal)
        assert.isTrue(one!.entry._tag === "FileWrite" && !(one!.entry.content instanceof Uint8Array))
        if (one!.entry._tag === "FileWrite") assert.deepStrictEqual(yield* journal.bytes(one!.entry.content), content)
      }).pipe(Effect.scoped)
    )
  })

  describe("a journal whose scope ends", () => {
    it.live("makes its waiting calls fail with `closed`, and leaves no consumer on the server", () =>
      Effect.gen(function* () {
        const name = fresh()
        const scope = yield* Scope.make()
        const journal = yield* Scope.provide(open(name), scope)
        yield* journal.append(entry(1))
        const tail = yield* Effect.forkChild(Effect.flip(Stream.runDrain(journal.tail(1))))
        const wait = yield* Effect.forkChild(Effect.flip(journal.waitFor(1, (one): one is FileEdit => one._tag === "FileEdit")))
        yield* Effect.promise(async () => {
          while ((await manager.streams.info(name)).state.consumer_count === 0) await nats.flush()
        })
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Fiber.join(tail)).reason, "closed")
        assert.strictEqual((yield* Fiber.join(wait)).reason, "closed")
        assert.strictEqual((yield* Effect.flip(journal.append(entry(2)))).reason, "closed")
        assert.strictEqual((yield* Effect.flip(journal.last)).reason, "closed")
        assert.strictEqual((yield* stored(name)).consumer_count, 0)
      }).pipe(Effect.scoped)
    )
  })

  it.live("an invalid entry is refused with its whole append", () =>
    Effect.gen(function* () {
      const journal = yield* open(fresh())
      const wrong = { _tag: "FileStat", correlationId: 1 } as unknown as FileStat
      assert.strictEqual((yield* Effect.flip(journal.appendAll([entry(1), wrong]))).reason, "invalid")
      assert.strictEqual(yield* journal.append(entry(2)), 1)
    }).pipe(Effect.scoped)
  )

  it.live("an append that is interrupted in the queue is never made", () =>
    Effect.gen(function* () {
      const name = fresh()
      const way = yield* Effect.acquireRelease(
        Effect.promise(() => wayTo(server)),
        (way) => Effect.sync(way.close)
      )
      const journal = yield* open(name, { servers: way.url })
      yield* journal.append(entry(1))
      way.silence()
      const first = yield* Effect.forkChild(journal.append(entry(2)), { startImmediately: true })
      yield* Effect.yieldNow
      const waiting = yield* Effect.forkChild(journal.append(entry("never")), { startImmediately: true })
      const third = yield* Effect.forkChild(journal.append(entry(3)), { startImmediately: true })
      yield* Fiber.interrupt(waiting)
      way.cut()
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(third)], [2, 3])
      assert.deepStrictEqual((yield* all(journal)).map(idOf), ["1", "2", "3"])
    }).pipe(Effect.scoped)
  )

  it.live("an interrupted append is complete or absent, and later appends keep their order", () =>
    Effect.gen(function* () {
      const journal = yield* open(fresh())
      for (const round of numbers(1, 20)) {
        const fiber = yield* Effect.forkChild(journal.appendAll([entry(`${round}a`), entry(`${round}b`)]))
        if (round % 2 === 0) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        yield* journal.append(entry(`${round}z`))
      }
      const found = yield* all(journal)
      assert.deepStrictEqual(
        found.map(({ position }) => position),
        numbers(1, found.length)
      )
      const ids = found.map(idOf).join()
      assert.strictEqual(
        ids.replace(/(\d+)a,\1b,/g, ""),
        numbers(1, 20)
          .map((round) => `${round}z`)
          .join()
      )
    }).pipe(Effect.scoped)
  )

  it.live("a server with authentication accepts only the right token", () =>
    Effect.gen(function* () {
      const own = yield* Effect.promise(() => startServer({ more: `authorization { token: "right" }` }))
      const to = (token: string) => open("secret", { servers: own.url, authentication: { token: Redacted.make(token) } })
      const error = yield* Effect.flip(to("wrong"))
      assert.deepInclude(error, { reason: "unavailable" })
      assert.notInclude(error.message, "wrong")
      assert.strictEqual(yield* Effect.flatMap(to("right"), (journal) => journal.append(entry(1))), 1)
    }).pipe(Effect.scoped)
  )

  journalLaws(
    "JetStream",
    Effect.suspend(() => open(fresh())),
    { entries: 400, readers: 6 }
  )

  for (const options of [
    { name: "a.b" },
    { name: "" },
    { name: "a b" },
    { replicas: 0 },
    { replicas: 1.5 },
    { servers: [] },
    { maxBytes: 0 }
  ]) {
    it.live(`with the options ${JSON.stringify(options)} is refused before any connection`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(JetStream.make(Journal.Entry, { servers: "127.0.0.1:1", name: "ok", ...options }))
        assert.strictEqual(error.reason, "invalid")
      }).pipe(Effect.scoped)
    )
  }
})
