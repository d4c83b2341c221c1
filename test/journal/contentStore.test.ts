import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import FsPromises from "node:fs/promises"
import { join } from "node:path"
import { make, makeDirectory, makeMemory } from "../../src/journal/ContentStore.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { spooled } from "../../src/repository/stores/spool.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { clean, start } from "../durability/children.ts"
import { makeBlobs } from "../repository/stores.ts"
import { inMemory } from "../scratch.ts"
import { contentLaws, contentsOn } from "./contentLaws.ts"
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

contentLaws("memory", Effect.sync(makeMemory))
contentLaws(
  "a directory",
  Effect.suspend(() => makeDirectory(fresh()))
)
contentLaws(
  "a directory, on disk at each answer",
  Effect.suspend(() => makeDirectory(fresh(), { fsync: true }))
)
contentLaws("stores in memory", contentsOn(Stores.layerMemory))
contentLaws(
  "stores in a directory",
  Effect.suspend(() => contentsOn(Stores.layerDirectory({ directory: fresh() })))
)
contentLaws(
  "stores in SQLite",
  Effect.suspend(() => {
    const file = join(Fs.mkdtempSync(join(inMemory(), "contents-")), "contents.db")
    return contentsOn(Stores.layerSql().pipe(Layer.provide(Stores.sqliteClient({ file }))))
  })
)
contentLaws(
  "a store of blobs of the caller",
  Effect.sync(() => make(makeBlobs()))
)

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

describe("a content store in a directory whose files change meanwhile", () => {
  it.live("fails with `io` if a file replaces the directory during a put", () =>
    Effect.gen(function* () {
      const directory = fresh()
      const store = yield* makeDirectory(directory)
      const replaced = Effect.sync(() => {
        Fs.rmSync(directory, { recursive: true })
        Fs.writeFileSync(directory, "")
        return Uint8Array.of(1)
      })
      const error = yield* Effect.flip(store.putStream(Stream.concat(Stream.make(bytesOf(10)), Stream.fromEffect(replaced))))
      assert.strictEqual(error.reason, "io")
    })
  )
})

describe("a content store in a directory, after a stream that fails", () => {
  it.live.skipIf(process.platform !== "linux")("leaves no descriptor open", () =>
    Effect.gen(function* () {
      const store = yield* makeDirectory(fresh())
      const fail = Effect.flip(store.putStream(Stream.concat(Stream.make(bytesOf(100_000)), Stream.fail("lost"))))
      const count = (): number => Fs.readdirSync("/proc/self/fd").length
      yield* fail
      const before = count()
      for (let n = 0; n < 20; n++) yield* fail
      assert.isBelow(count(), before + 20)
    })
  )
})

describe("a content store that keeps streams in temporary files", () => {
  /** Opens a store in SQLite, and a new directory for temporary files. */
  const opened = Effect.gen(function* () {
    const directory = Fs.mkdtempSync(join(inMemory(), "temporary-"))
    const file = join(Fs.mkdtempSync(join(inMemory(), "contents-")), "contents.db")
    const store = yield* contentsOn(Stores.layerSql().pipe(Layer.provide(Stores.sqliteClient({ file }))))
    const before = process.env["TMPDIR"]
    yield* Effect.acquireRelease(
      Effect.sync(() => (process.env["TMPDIR"] = directory)),
      () =>
        Effect.sync(() => {
          if (before === undefined) delete process.env["TMPDIR"]
          else process.env["TMPDIR"] = before
        })
    )
    return { directory, store }
  })

  it.live.skipIf(process.platform === "win32")("has no temporary file with a name in the middle of a put", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* opened
      let names: ReadonlyArray<string> | undefined
      const look = Effect.sync(() => {
        names = Fs.readdirSync(directory)
        return Uint8Array.of(1)
      })
      const bytes = Stream.concat(Stream.make(bytesOf(2_000_000)), Stream.fromEffect(look))
      const ref = yield* store.putStream(bytes)
      assert.deepStrictEqual(names, [])
      assert.deepStrictEqual(yield* store.get(ref), new Uint8Array(Buffer.concat([bytesOf(2_000_000), Uint8Array.of(1)])))
    }).pipe(Effect.scoped)
  )

  it.live("sends only content that the store does not have with this size", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const put = (size: number | undefined) =>
        spooled(
          () => Effect.succeed(size),
          (hash) => Effect.sync(() => void sent.push(hash))
        )(Stream.make(bytesOf(10)))
      const stored = { hash: sha256(bytesOf(10)), size: 10 }
      assert.deepStrictEqual(yield* put(10), stored)
      assert.deepStrictEqual(sent, [])
      assert.deepStrictEqual(yield* put(9), stored)
      assert.deepStrictEqual(yield* put(undefined), stored)
      assert.deepStrictEqual(sent, [stored.hash, stored.hash])
    })
  )

  it.live("closes the file of a stream that fails", () =>
    Effect.gen(function* () {
      const { store } = yield* opened
      const { open } = FsPromises
      const handles: Array<FsPromises.FileHandle> = []
      FsPromises.open = async (...args) => {
        const handle = await open(...args)
        handles.push(handle)
        return handle
      }
      yield* Effect.ensuring(
        Effect.flip(store.putStream(Stream.concat(Stream.make(bytesOf(2_000_000)), Stream.fail("lost")))),
        Effect.sync(() => (FsPromises.open = open))
      )
      // A closed handle has no descriptor.
      assert.deepStrictEqual(
        handles.map(({ fd }) => fd),
        [-1]
      )
    }).pipe(Effect.scoped)
  )

  it.live("leaves no directory if no file can be opened", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* opened
      const { open } = FsPromises
      FsPromises.open = () =>
        Promise.reject(Object.assign(new Error("EMFILE"), { code: "EMFILE", errno: -24, syscall: "open" }))
      const error = yield* Effect.ensuring(
        Effect.flip(store.putStream(Stream.make(bytesOf(2_000_000)))),
        Effect.sync(() => (FsPromises.open = open))
      )
      assert.strictEqual(error.reason, "unavailable")
      assert.deepStrictEqual(Fs.readdirSync(directory), [])
    }).pipe(Effect.scoped)
  )
})

describe("a content store on a user's store of blobs", () => {
  it.live("refuses to confirm a content for which the store returns another hash", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const store = make({ ...blobs, put: () => blobs.put(bytesOf(1)) })
      for (const put of [store.put(bytesOf(10)), store.putStream(Stream.make(bytesOf(10)))]) {
        assert.strictEqual((yield* Effect.flip(put)).reason, "io")
      }
    })
  )
})
