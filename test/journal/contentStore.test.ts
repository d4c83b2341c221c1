import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type ContentStore, makeDirectory, makeMemory } from "../../src/journal/ContentStore.ts"
import type { JournalError } from "../../src/journal/Journal.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { clean, start } from "../durability/children.ts"
import { inMemory } from "../scratch.ts"
import type { Orders } from "./fileJournalChild.ts"
import { bytesOf, sha256 } from "./journalLaws.ts"

afterAll(clean)

const fresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "contents-")), "store")
const refOf = (bytes: Uint8Array) => ({ sha256: sha256(bytes), size: bytes.length })
/** Returns the files in the store, without directories. */
const filesOf = (directory: string): ReadonlyArray<string> =>
  Fs.existsSync(directory)
    ? Fs.readdirSync(directory, { recursive: true, encoding: "utf8" })
        .filter((name) => Fs.statSync(join(directory, name)).isFile())
        .sort()
    : []

const laws = (name: string, make: () => Effect.Effect<ContentStore, JournalError>): void => {
  describe(`a content store in ${name}`, () => {
    const law = <E>(claim: string, run: (store: ContentStore) => Effect.Effect<void, E>): void => {
      it.live(claim, () => Effect.flatMap(Effect.suspend(make), run))
    }

    law("returns a separate plain array to each caller", (store) =>
      Effect.gen(function* () {
        const ref = yield* store.put(bytesOf(5_000))
        const first = yield* store.get(ref)
        assert.strictEqual(Object.getPrototypeOf(first), Uint8Array.prototype)
        first.fill(0)
        assert.deepStrictEqual(yield* store.get(ref), bytesOf(5_000))
      })
    )

    law("returns the hash and the size of a content, and later the same bytes", (store) =>
      Effect.gen(function* () {
        for (const size of [0, 1, 4_097, 65_535, 65_536, 65_537, 200_000]) {
          const bytes = bytesOf(size)
          assert.deepStrictEqual(yield* store.put(bytes), refOf(bytes))
          assert.deepStrictEqual(yield* store.get(refOf(bytes)), bytes)
          const chunks = yield* Stream.runCollect(store.stream(refOf(bytes)))
          assert.isTrue(chunks.every(({ length }) => length > 0 && length <= 65_536))
          assert.deepStrictEqual(new Uint8Array(Buffer.concat(chunks)), bytes)
          assert.isTrue(yield* store.has(refOf(bytes)))
        }
        const abc = Buffer.from("abc")
        assert.strictEqual((yield* store.put(abc)).sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
      })
    )

    law("is unchanged if a caller changes the bytes that the caller stored or read", (store) =>
      Effect.gen(function* () {
        for (const mine of [bytesOf(5_000, 3), Buffer.from(bytesOf(5_000, 4))]) {
          const was = new Uint8Array(mine)
          const ref = yield* store.put(mine)
          mine.fill(0)
          const got = yield* store.get(ref)
          assert.deepStrictEqual(got, was)
          got.fill(0)
          for (const chunk of yield* Stream.runCollect(store.stream(ref))) chunk.fill(0)
          assert.deepStrictEqual(yield* store.get(ref), was)
        }
        const reused = new Uint8Array(1_000)
        const pieces = [1, 2, 3].map((seed) => bytesOf(1_000, seed))
        const stream = Stream.fromIterable(pieces).pipe(
          Stream.rechunk(1),
          Stream.map((piece) => {
            reused.set(piece)
            return reused
          })
        )
        const whole = new Uint8Array(Buffer.concat(pieces))
        assert.deepStrictEqual(yield* store.putStream(stream), refOf(whole))
        assert.deepStrictEqual(yield* store.get(refOf(whole)), whole)
      })
    )

    law("fails as corrupt for a missing content or a content of another size", (store) =>
      Effect.gen(function* () {
        const ref = yield* store.put(bytesOf(100))
        const others = [
          refOf(bytesOf(101)),
          { ...ref, size: 99 },
          { ...ref, size: 101 },
          { ...ref, size: 0 },
          { ...ref, sha256: "../../../etc/passwd" },
          { ...ref, sha256: "" },
          { ...ref, sha256: ref.sha256.toUpperCase() }
        ]
        for (const other of others) {
          assert.isFalse(yield* store.has(other), JSON.stringify(other))
          assert.strictEqual((yield* Effect.flip(store.get(other))).reason, "corrupt")
          assert.strictEqual((yield* Effect.flip(Stream.runDrain(store.stream(other)))).reason, "corrupt")
        }
      })
    )

    law("stores the same content for many fibers at the same time", (store) =>
      Effect.gen(function* () {
        const bytes = bytesOf(100_000)
        const put = (n: number) =>
          n % 2 === 0 ? store.put(bytes) : store.putStream(Stream.make(bytes.subarray(0, 33_333), bytes.subarray(33_333)))
        const refs = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, n) => n),
          put,
          { concurrency: "unbounded" }
        )
        assert.isTrue(refs.every(({ sha256 }) => sha256 === refOf(bytes).sha256))
        assert.deepStrictEqual(yield* store.get(refOf(bytes)), bytes)
      })
    )
  })
}

laws("memory", () => Effect.sync(makeMemory))
laws("a directory", () => makeDirectory(fresh()))
laws("a directory, on disk at each answer", () => makeDirectory(fresh(), { fsync: true }))

describe("a content store in a directory", () => {
  it.live("keeps each content once, in a file that is named after its hash and has mode 0600", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const store = yield* makeDirectory(directory)
      assert.isFalse(Fs.existsSync(directory))
      const contents = [bytesOf(5_000, 1), bytesOf(5_000, 2), bytesOf(5_000, 1)]
      yield* Effect.forEach(contents, store.put)
      yield* Effect.forEach(contents, (bytes) => store.putStream(Stream.make(bytes)))
      const expected = [...new Set(contents.map(sha256))].map((hash) => `${hash.slice(0, 2)}/${hash.slice(2)}`).sort()
      assert.deepStrictEqual(filesOf(directory), expected)
      for (const file of expected) assert.strictEqual(Fs.statSync(join(directory, file)).mode & 0o777, 0o600)
      const again = yield* makeDirectory(directory)
      assert.deepStrictEqual(yield* again.get(refOf(contents[1]!)), contents[1]!)
    })
  )

  it.live("detects changed, shortened and lengthened contents, and repairs a wrong size at the next put", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const store = yield* makeDirectory(directory)
      const bytes = bytesOf(150_000)
      const ref = yield* store.put(bytes)
      const file = join(directory, ref.sha256.slice(0, 2), ref.sha256.slice(2))
      const changed = bytes.slice()
      changed[149_999]! ^= 1
      for (const damage of [changed, bytes.slice(0, -1), new Uint8Array(0), Buffer.concat([bytes, bytes])]) {
        Fs.writeFileSync(file, damage)
        assert.strictEqual((yield* Effect.flip(store.get(ref))).reason, "corrupt")
        assert.strictEqual((yield* Effect.flip(Stream.runDrain(store.stream(ref)))).reason, "corrupt")
        if (damage.length === bytes.length) continue
        assert.isFalse(yield* store.has(ref))
        yield* store.put(bytes)
        assert.deepStrictEqual(yield* store.get(ref), bytes)
      }
    })
  )

  it.live("keeps nothing of a stream that fails, dies or is interrupted", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const store = yield* makeDirectory(directory)
      const begun = Stream.make(bytesOf(100_000))
      assert.strictEqual(yield* Effect.flip(store.putStream(Stream.concat(begun, Stream.fail("lost" as const)))), "lost")
      yield* Effect.exit(store.putStream(Stream.concat(begun, Stream.die(new Error("defect")))))
      const reached = yield* Deferred.make<void>()
      const hangs = Stream.concat(begun, Stream.fromEffect(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)))
      const putting = yield* Effect.forkChild(store.putStream(Stream.map(hangs, (bytes) => bytes)))
      yield* Deferred.await(reached)
      assert.strictEqual(filesOf(directory).length, 1)
      yield* Fiber.interrupt(putting)
      assert.deepStrictEqual(filesOf(directory), [])
    })
  )

  it.live("removes leftovers of dead processes when it opens, and keeps active drafts and files of other programs", () =>
    Effect.gen(function* () {
      const directory = fresh()
      Fs.mkdirSync(directory)
      const [place, , started] = Identity.self().split("-")
      // No process has such a high pid.
      const dead = `${place}-${(2 ** 30).toString(36)}-${started}`
      const stranger = `elsewhere-1-1`
      const tail = `${"0".repeat(24)}.tmp`
      const long = performance.timeOrigin / 1000 - 48 * 3600
      const leave = (name: string, old = false): void => {
        Fs.writeFileSync(join(directory, name), "draft")
        if (old) Fs.utimesSync(join(directory, name), long, long)
      }
      leave(`.${dead}.${tail}`)
      leave(`.${Identity.self()}.${tail}`, true)
      leave(`.${stranger}.${tail}`)
      leave(`.${stranger}.${tail.replace("0", "1")}`, true)
      leave("notes.tmp", true)
      yield* makeDirectory(directory)
      assert.deepStrictEqual(filesOf(directory), [`.${stranger}.${tail}`, `.${Identity.self()}.${tail}`, "notes.tmp"].sort())
    })
  )

  it.live("reads nothing outside its directory, even for a forged hash", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const store = yield* makeDirectory(directory)
      yield* store.put(bytesOf(10))
      Fs.writeFileSync(join(directory, "../secret"), bytesOf(10))
      const ref = { sha256: "../secret", size: 10 }
      assert.isFalse(yield* store.has(ref))
      assert.include((yield* Effect.flip(store.get(ref))).message, "is missing")
    })
  )

  it.live("refuses a directory or a pipe in place of a content without waiting", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const store = yield* makeDirectory(directory)
      const ref = yield* store.put(bytesOf(10))
      const place = join(directory, ref.sha256.slice(0, 2), ref.sha256.slice(2))
      for (const put of [() => Fs.mkdirSync(place), () => execFileSync("mkfifo", [place])]) {
        Fs.rmSync(place, { recursive: true })
        put()
        assert.isFalse(yield* store.has(ref))
        assert.strictEqual((yield* Effect.flip(store.get(ref))).reason, "corrupt")
      }
    })
  )

  it.live("fails with `io` if its path is not a directory", () =>
    Effect.gen(function* () {
      const place = fresh()
      Fs.writeFileSync(place, "")
      const error = yield* Effect.flip(Effect.flatMap(makeDirectory(place), (store) => store.put(bytesOf(10))))
      assert.strictEqual(error.reason, "io")
      assert.notInclude(error.message, place)
    })
  )

  it.live("stores each content once if two processes put contents concurrently", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const cache = join(inMemory(), "compiled")
      const seeds = [Array.from({ length: 60 }, (_, n) => n), Array.from({ length: 60 }, (_, n) => 30 + n)]
      const children = seeds.map((seeds) => {
        const child = start("../journal/fileJournalChild.ts", cache)
        child.say({ task: "put", directory, seeds, size: 20_000 } satisfies Orders)
        return child
      })
      for (const child of children) {
        yield* Effect.promise(() => child.dots(60 * 65 + 5))
        child.process.stdin.end()
        const { errors } = yield* Effect.promise(() => child.ended)
        assert.strictEqual(errors, "")
      }
      const hashes = Array.from({ length: 90 }, (_, seed) => sha256(bytesOf(20_000, seed)))
      assert.deepStrictEqual(
        filesOf(directory),
        [...new Set(hashes)].map((hash) => `${hash.slice(0, 2)}/${hash.slice(2)}`).sort()
      )
      const store = yield* makeDirectory(directory)
      for (let seed = 0; seed < 90; seed++) {
        assert.deepStrictEqual(yield* store.get(refOf(bytesOf(20_000, seed))), bytesOf(20_000, seed))
      }
    })
  )
})
