/** Tests which requests Sftp sends without waiting for an answer. */
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Writable } from "node:stream"
import type { Dial } from "../../../src/backends/sftp/link.ts"
import { Reader, StatusCode, Type } from "../../../src/backends/sftp/wire.ts"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import { directory } from "../../conformance/filesystems.ts"
import { type Packet, passing, statusOf, through } from "./between.ts"
import { describeSftp, openPiped, pipe } from "./servers.ts"

const mebibyte = 1024 ** 2

/** Opens a directory whose packets pass through `between`, after the layer is open. */
const opened = Effect.gen(function* () {
  const root = yield* directory
  const between = passing()
  const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
  yield* fs.exists("x")
  return { root, between, fs }
})

/** Temporary files are removed without waiting for an answer. So are handles closed, except before a file is published. */
const isAwaited = ({ bytes, type }: Packet): boolean =>
  type !== Type.close && !(type === Type.remove && bytes.includes(".~fsa-"))

/** Counts the requests of a call, and the times that it waits for the server: a request after an answer begins a round trip. */
const countRequests = (run: (fs: Algebra) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const { between, fs, root } = yield* opened
    Fs.mkdirSync(join(root, "d/e"), { recursive: true })
    Fs.mkdirSync(join(root, "many"))
    for (let nth = 0; nth < 950; nth++) Fs.writeFileSync(join(root, "many", `${nth}`), "")
    for (const name of ["d/old.txt", "d/e/old.txt"]) {
      Fs.writeFileSync(join(root, name), "old\n")
      Fs.chmodSync(join(root, name), 0o644)
    }
    Fs.writeFileSync(join(root, "d/large.bin"), bytesOf(mebibyte))
    Fs.symlinkSync("old.txt", join(root, "d/link"))
    let requests = 0
    let roundTrips = 0
    let wasAnswered = true
    between.onRequest = (packet) => {
      requests++
      if (wasAnswered && isAwaited(packet)) roundTrips++
      wasAnswered &&= !isAwaited(packet)
      return "pass"
    }
    between.onAnswer = () => {
      wasAnswered = true
      return "pass"
    }
    yield* run(fs)
    return [roundTrips, requests]
  }).pipe(Effect.scoped)

const rangeOf = ({ bytes }: Packet): { readonly at: number; readonly length: number } => {
  const reader = new Reader(bytes.subarray(5))
  reader.bytes()
  return { at: reader.u64(), length: reader.u32() }
}

const streamOf = (size: number) => Stream.range(1, size / 65_536).pipe(Stream.map((nth) => new Uint8Array(65_536).fill(nth)))
const bytesOf = (size: number) =>
  Buffer.concat(Array.from({ length: size / 65_536 }, (_, nth) => Buffer.alloc(65_536, nth + 1)))

/** The round trips and the requests of each call. On a network, a call takes as long as its round trips. */
const costs: Record<
  string,
  readonly [roundTrips: number, requests: number, run: (fs: Algebra) => Effect.Effect<unknown, unknown>]
> = {
  stat: [1, 3, (fs) => fs.stat("d/old.txt")],
  exists: [1, 3, (fs) => fs.exists("d/old.txt")],
  "report a missing file": [2, 6, (fs) => fs.exists("d/missing.txt")],
  realPath: [1, 4, (fs) => fs.realPath("d/e/old.txt")],
  "list a small directory": [2, 6, (fs) => fs.list("d/e")],
  "list 950 entries": [4, 18, (fs) => fs.list("many")],
  "read a small file": [3, 7, (fs) => fs.readString("d/old.txt")],
  "read a part of a file": [4, 7, (fs) => fs.readBytes("d/large.bin", { offset: 10, limit: 10 })],
  "read through a symlink": [7, 17, (fs) => fs.readString("d/link")],
  "stream 1 MiB": [5, 13, (fs) => Stream.runDrain(fs.stream("d/large.bin"))],
  // Look, open, write and flush, look again and close, publish.
  "replace a file": [5, 13, (fs) => fs.write("d/old.txt", "new\n")],
  "write a new file": [5, 13, (fs) => fs.write("d/new.txt", "new\n")],
  "create a file": [5, 14, (fs) => fs.write("d/new.txt", "new\n", { mode: "create" })],
  "append to a file": [4, 9, (fs) => fs.write("d/old.txt", "new\n", { mode: "append" })],
  "edit a file": [9, 23, (fs) => fs.edit("d/old.txt", { oldText: "old", newText: "new" })],
  "write a stream": [8, 19, (fs) => Stream.run(Stream.make(new Uint8Array(9)), fs.sink("d/old.txt"))],
  mkdir: [4, 9, (fs) => fs.mkdir("d/new")],
  "delete a file": [3, 7, (fs) => fs.delete("d/old.txt")],
  "copy a file": [13, 35, (fs) => fs.copy("d/old.txt", "d/new.txt")],
  "move a file": [7, 21, (fs) => fs.move("d/old.txt", "d/new.txt")],
  "move a file over another": [7, 23, (fs) => fs.move("d/old.txt", "d/e/old.txt", { overwrite: true })],
  symlink: [4, 9, (fs) => fs.symlink("d/new", "old.txt")],
  setAttributes: [3, 7, (fs) => fs.setAttributes("d/old.txt", { mode: 0o600 })]
}

describeSftp("a call of Sftp", () => {
  for (const [name, [roundTrips, requests, run]] of Object.entries(costs)) {
    it.live(`needs at most ${roundTrips} round trips and ${requests} requests to ${name}`, () =>
      Effect.gen(function* () {
        const [actualRoundTrips, actualRequests] = yield* countRequests(run)
        assert.isAtMost(actualRoundTrips!, roundTrips)
        assert.isAtMost(actualRequests!, requests)
      })
    )
  }

  it.live("sends the requests of many fibers as one array, because ssh2 encrypts and sends each array alone", () =>
    Effect.gen(function* () {
      const root = yield* directory
      let arrays = 0
      const dial = Effect.map(pipe(), ({ close, input, output }) => ({
        close,
        input,
        output: new Writable({
          write: (chunk: Buffer, _, done) => {
            arrays++
            output.write(chunk, done)
          }
        })
      }))
      const fs = make(yield* openPiped(root, {}, {}, dial))
      yield* fs.exists("x")
      arrays = 0
      yield* Effect.all(
        Array.from({ length: 16 }, () => fs.exists(".")),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(arrays, 1)
    }).pipe(Effect.scoped)
  )

  it.live("closes a directory unread if a link leads to it, or if it is no directory", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      const outside = yield* directory
      Fs.symlinkSync(outside, join(root, "link"))
      Fs.mkdirSync(join(outside, "inner"))
      Fs.writeFileSync(join(root, "file"), "")
      const sent: Array<number> = []
      between.onRequest = ({ type }) => {
        if (type === Type.opendir || type === Type.close || type === Type.readdir) sent.push(type)
        return "pass"
      }
      const list = (path: string) => Effect.flip(fs.port.list(path as FsPath))
      assert.strictEqual((yield* list("link"))._tag, "NotADirectory")
      assert.strictEqual((yield* list("link/inner"))._tag, "NotFound")
      assert.strictEqual((yield* list("file"))._tag, "NotADirectory")
      assert.strictEqual((yield* list("missing"))._tag, "NotFound")
      const { close, opendir } = Type
      assert.deepStrictEqual(sent, [opendir, close, opendir, close, opendir, opendir])
    }).pipe(Effect.scoped)
  )

  it.live("ends a list at once if it is interrupted while the server is silent, and closes the directory later", () =>
    Effect.gen(function* () {
      const { between, fs } = yield* opened
      const isHeld = yield* Deferred.make<void>()
      const isReleased = yield* Deferred.make<void>()
      const sent: Array<number> = []
      between.onRequest = ({ type }) => {
        if (type === Type.opendir || type === Type.close || type === Type.readdir) sent.push(type)
        return "pass"
      }
      between.onAnswer = async () => {
        Deferred.doneUnsafe(isHeld, Effect.void)
        await Effect.runPromise(Deferred.await(isReleased))
        return "pass" as const
      }
      const listing = yield* Effect.forkChild(fs.port.list("." as FsPath))
      yield* Deferred.await(isHeld)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(listing))
      yield* turns
      assert.isDefined(interrupting.pollUnsafe())
      yield* Deferred.succeed(isReleased, undefined)
      yield* fs.exists("x")
      yield* fs.exists("x")
      assert.deepStrictEqual(sent, [Type.opendir, Type.close])
    }).pipe(Effect.scoped)
  )

  it.live("removes many files of a tree at the same time", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      for (const name of ["a", "b", "c"]) {
        Fs.mkdirSync(join(root, "tree", name), { recursive: true })
        for (let nth = 0; nth < 10; nth++) Fs.writeFileSync(join(root, "tree", name, `${nth}`), "")
      }
      const areSent = yield* Deferred.make<void>()
      const removals = new Set<number>()
      between.onRequest = ({ id, type }) => {
        if (type === Type.remove && removals.add(id).size === 30) Deferred.doneUnsafe(areSent, Effect.void)
        return "pass"
      }
      between.onAnswer = async ({ id }) => {
        if (removals.has(id)) await Effect.runPromise(Deferred.await(areSent))
        return "pass" as const
      }
      const { deleted, directories } = yield* fs.delete("tree", { recursive: true })
      assert.deepStrictEqual([deleted, directories], [30, 4])
      assert.deepStrictEqual(Fs.readdirSync(root), [])
    }).pipe(Effect.scoped)
  )
})

describeSftp("Sftp streaming a large file from the server", () => {
  it.live("requests at most 5 MiB more than its reader has taken", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      Fs.writeFileSync(join(root, "a"), bytesOf(32 * mebibyte))
      let asked = 0
      between.onRequest = (packet) => {
        if (packet.type === Type.read) asked += rangeOf(packet).length
        return "pass"
      }
      let taken = 0
      const reader = fs.stream("a").pipe(
        Stream.runForEach((chunk) =>
          Effect.suspend(() => {
            taken += chunk.length
            // A stream hands on the chunks of one read together.
            assert.isAtMost(asked - taken, 5 * mebibyte)
            return Effect.void
          })
        )
      )
      yield* reader
      assert.strictEqual(taken, 32 * mebibyte)
      assert.strictEqual(asked, 32 * mebibyte)
    }).pipe(Effect.scoped)
  )

  it.live("does not wait for an answer before it sends the next requests", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      Fs.writeFileSync(join(root, "a"), bytesOf(16 * mebibyte))
      const isAhead = yield* Deferred.make<void>()
      const late = new Set<number>()
      let asked = 0
      between.onRequest = (packet) => {
        if (packet.type !== Type.read) return "pass"
        const { at, length } = rangeOf(packet)
        if (at >= 2 * mebibyte) late.add(packet.id)
        if ((asked += length) >= 5 * mebibyte) Deferred.doneUnsafe(isAhead, Effect.void)
        return "pass"
      }
      between.onAnswer = async ({ id }) => {
        if (late.has(id)) await Effect.runPromise(Deferred.await(isAhead))
        return "pass" as const
      }
      // No answer about the bytes after the first 2 MiB arrives before 5 MiB have been asked for.
      yield* Stream.runDrain(fs.stream("a"))
      assert.strictEqual(asked, 16 * mebibyte)
    }).pipe(Effect.scoped)
  )

  it.live("returns the whole file from a server that answers with fewer bytes than requested, and with varying lengths", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      const bytes = bytesOf(4 * mebibyte)
      Fs.writeFileSync(join(root, "a"), bytes)
      let nth = 0
      between.onRequest = (packet) => {
        if (packet.type !== Type.read) return "pass"
        const { length } = rangeOf(packet)
        const shorter = Buffer.from(packet.bytes)
        shorter.writeUInt32BE(Math.ceil(length / (1 + (nth++ % 4))), shorter.length - 4)
        return shorter
      }
      const chunks = yield* Stream.runCollect(fs.stream("a"))
      assert.isTrue(Buffer.concat(chunks).equals(bytes))
    }).pipe(Effect.scoped)
  )

  it.live("reads up to the end of a file that another program has made shorter", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      const bytes = bytesOf(8 * mebibyte)
      Fs.writeFileSync(join(root, "a"), bytes)
      between.onRequest = (packet) => {
        if (packet.type === Type.read && rangeOf(packet).at >= 2 * mebibyte) Fs.truncateSync(join(root, "a"), 3 * mebibyte)
        return "pass"
      }
      const got = Buffer.concat(yield* Stream.runCollect(fs.stream("a")))
      assert.isTrue(got.equals(bytes.subarray(0, got.length)))
      assert.strictEqual(got.length, 3 * mebibyte)
    }).pipe(Effect.scoped)
  )

  it.live("refuses an answer with more bytes than requested", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      Fs.writeFileSync(join(root, "a"), bytesOf(mebibyte))
      between.onAnswer = ({ bytes, type }) => {
        if (type !== Type.data) return "pass"
        const longer = Buffer.concat([bytes, Buffer.alloc(300 * 1024)])
        longer.writeUInt32BE(longer.length - 9, 5)
        return longer
      }
      const error = yield* Effect.flip(Stream.runDrain(fs.stream("a")))
      assert.deepInclude(error, { _tag: "IoError", code: "EPROTO" })
    }).pipe(Effect.scoped)
  )
})

/** A server that processes the writes of a file after the requests that follow them. */
const reordering = (dial: Dial): Dial =>
  Effect.map(dial, ({ close, input, output }) => {
    let rest = Buffer.alloc(0)
    let writes: Array<Buffer> = []
    const flush = (): void => {
      for (const write of writes) output.write(write)
      writes = []
    }
    const take = (packet: Buffer): void => {
      if (packet[4] === Type.write) {
        if (writes.push(packet) === 1) setTimeout(flush, 20)
        return
      }
      output.write(packet)
    }
    const write = (chunk: Buffer, _: unknown, done: () => void): void => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
        const end = 4 + rest.readUInt32BE(0)
        take(rest.subarray(0, end))
        rest = rest.subarray(end)
      }
      done()
    }
    return { close, input, output: new Writable({ write }) }
  })

describeSftp("Sftp on a server that does not keep the order of requests", () => {
  it.live("returns the size of the written file, and flushes after the writes", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const between = passing()
      const sent: Array<string> = []
      between.onRequest = ({ bytes, type }) => {
        if (type === Type.write) sent.push("write")
        if (bytes.includes("fsync@openssh.com")) sent.push("flush")
        return "pass"
      }
      const port = yield* openPiped(root, {}, {}, reordering(through(pipe(), between)))
      const write = (text: string, mode: "replace" | "append") =>
        port.write<never, never>("a" as FsPath, Buffer.from(text), mode)
      assert.strictEqual((yield* write("content\n", "replace")).sizeBytes, 8)
      assert.deepStrictEqual(sent.slice(-2), ["write", "flush"])
      assert.strictEqual((yield* write("more\n", "append")).sizeBytes, 13)
      assert.deepStrictEqual(sent.slice(-2), ["write", "flush"])
      assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "content\nmore\n")
    }).pipe(Effect.scoped)
  )
})

describeSftp("Sftp writing a stream", () => {
  it.live("divides a large chunk without a copy of the whole chunk", () =>
    Effect.gen(function* () {
      const { between, fs } = yield* opened
      const writes = new Set<number>()
      const held = yield* Deferred.make<void>()
      between.onRequest = ({ id, type }) => {
        if (type === Type.write) writes.add(id)
        return "pass"
      }
      between.onAnswer = ({ id }) => {
        if (!writes.has(id)) return "pass"
        Deferred.doneUnsafe(held, Effect.void)
        return new Promise(() => {})
      }
      const chunk = new Uint8Array(128 * mebibyte)
      const before = process.memoryUsage().arrayBuffers
      const fiber = yield* Effect.forkChild(Stream.run(Stream.make(chunk), fs.sink("a")))
      yield* Deferred.await(held)
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 64 * mebibyte)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(chunk[0], 0)
    }).pipe(Effect.scoped)
  )

  it.live("sends more than ten write requests before the first answer, and writes all bytes", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      const isNext = yield* Deferred.make<void>()
      let first: number | undefined
      let writes = 0
      between.onRequest = ({ id, type }) => {
        if (type !== Type.write) return "pass"
        first ??= id
        if (++writes > 10) Deferred.doneUnsafe(isNext, Effect.void)
        return "pass"
      }
      between.onAnswer = async ({ id }) => {
        if (id === first) await Effect.runPromise(Deferred.await(isNext))
        return "pass" as const
      }
      yield* Stream.run(streamOf(8 * mebibyte), fs.sink("a"))
      assert.isTrue(Fs.readFileSync(join(root, "a")).equals(bytesOf(8 * mebibyte)))
    }).pipe(Effect.scoped)
  )

  it.live("writes all bytes of 200,000 tiny chunks", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* opened
      const chunks = Stream.range(0, 199_999).pipe(
        Stream.map((nth) => Uint8Array.of(nth & 255, (nth >> 8) & 255, nth >> 16, 7, 9, 11))
      )
      yield* Stream.run(chunks, fs.sink("a"))
      const found = Fs.readFileSync(join(root, "a"))
      assert.strictEqual(found.length, 1_200_000)
      assert.isTrue(
        Array.from({ length: 200_000 }, (_, nth) => found.readUIntLE(6 * nth, 3)).every((value, nth) => value === nth)
      )
    }).pipe(Effect.scoped)
  )

  it.live("copies chunks whose array the source uses again", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* opened
      const one = new Uint8Array(65_536)
      const chunks = Stream.map(Stream.rechunk(streamOf(4 * mebibyte), 1), (chunk) => {
        one.set(chunk)
        return one
      })
      yield* Stream.run(chunks, fs.sink("a"))
      assert.isTrue(Fs.readFileSync(join(root, "a")).equals(bytesOf(4 * mebibyte)))
    }).pipe(Effect.scoped)
  )

  for (const nth of [1, 7, 20]) {
    it.live(`keeps the old file if the server refuses write ${nth}`, () =>
      Effect.gen(function* () {
        const { between, fs, root } = yield* opened
        Fs.writeFileSync(join(root, "a"), "old")
        let refused: number | undefined
        let left = nth
        between.onRequest = ({ id, type }) => {
          if (type === Type.write && --left === 0) refused = id
          return "pass"
        }
        between.onAnswer = ({ id }) => (id === refused ? statusOf(id, StatusCode.failure) : "pass")
        const error = yield* Effect.flip(Stream.run(streamOf(8 * mebibyte), fs.sink("a")))
        assert.strictEqual((error as { readonly _tag: string })._tag, "IoError")
        yield* fs.exists("a")
        assert.deepStrictEqual(Fs.readdirSync(root), ["a"])
        assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "old")
      }).pipe(Effect.scoped)
    )
  }

  it.live("publishes nothing before the server has confirmed each write and the flush", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      const waiting = new Set<number>()
      let published = 0
      between.onRequest = ({ bytes, id, type }) => {
        if (type === Type.write || bytes.includes("fsync@openssh.com")) waiting.add(id)
        if (bytes.includes("posix-rename@openssh.com") || bytes.includes("hardlink@openssh.com")) {
          published++
          assert.strictEqual(waiting.size, 0)
        }
        return "pass"
      }
      between.onAnswer = ({ id }) => {
        waiting.delete(id)
        return "pass"
      }
      yield* Stream.run(streamOf(4 * mebibyte), fs.sink("a"))
      yield* fs.write("b", "small\n")
      yield* fs.write("c", "small\n", { mode: "create" })
      assert.strictEqual(published, 3)
      assert.strictEqual(Fs.readdirSync(root).filter((name) => !name.startsWith(".")).length, 3)
    }).pipe(Effect.scoped)
  )

  it.live("takes at most 8 MiB from its source while the server does not answer", () =>
    Effect.gen(function* () {
      const { between, fs } = yield* opened
      let taken = 0
      const source = Stream.tap(streamOf(32 * mebibyte), (chunk) => Effect.sync(() => void (taken += chunk.length))).pipe(
        Stream.rechunk(1)
      )
      const held: Array<number> = []
      const writes = new Set<number>()
      between.onRequest = ({ id, type }) => {
        if (type === Type.write) writes.add(id)
        return "pass"
      }
      between.onAnswer = ({ id }) => {
        if (!writes.has(id)) return "pass"
        held.push(id)
        return new Promise(() => {})
      }
      const fiber = yield* Effect.forkChild(Stream.run(source, fs.sink("a")))
      let before = -1
      while (held.length === 0 || before !== taken) {
        before = taken
        for (let nth = 0; nth < 50; nth++) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      assert.isAtLeast(taken, 4 * mebibyte)
      assert.isAtMost(taken, 8 * mebibyte)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.scoped)
  )
})

/** A hundred turns of the event loop, without a timer. */
const turns = Effect.promise(async () => {
  for (let nth = 0; nth < 100; nth++) await new Promise((resolve) => setImmediate(resolve))
})

describeSftp("Sftp with more requests than may wait for an answer", () => {
  it.live("closes the file of a write that is interrupted before its close was sent", () =>
    Effect.gen(function* () {
      const { between, fs } = yield* opened
      const release = yield* Deferred.make<void>()
      const releaseAll = yield* Deferred.make<void>()
      let opens = 0
      let closes = 0
      let flushed: number | undefined
      const held = yield* Deferred.make<void>()
      let isBehind = false
      between.onRequest = ({ bytes, id, type }) => {
        if (type === Type.open) opens++
        if (type === Type.close) closes++
        if (type === Type.fstat && bytes.length > 0) flushed ??= id
        return "pass"
      }
      between.onAnswer = async ({ id }) => {
        if (id === flushed) {
          Deferred.doneUnsafe(held, Effect.void)
          await Effect.runPromise(Deferred.await(release))
          isBehind = true
          return "pass" as const
        }
        if (isBehind) await Effect.runPromise(Deferred.await(releaseAll))
        return "pass" as const
      }
      const writing = yield* Effect.forkChild(fs.write("a", "content\n"))
      yield* Deferred.await(held)
      const others = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 200 }, (_, nth) => `x${nth}`),
          (path) => fs.exists(path),
          { concurrency: "unbounded" }
        )
      )
      yield* turns
      yield* Deferred.succeed(release, undefined)
      yield* turns
      assert.strictEqual(closes, 0)
      yield* Fiber.interrupt(writing)
      yield* Deferred.succeed(releaseAll, undefined)
      yield* Fiber.join(others)
      yield* fs.exists("x")
      assert.strictEqual(opens, 1)
      assert.strictEqual(closes, 1)
    }).pipe(Effect.scoped)
  )
})

describeSftp("an append of Sftp", () => {
  it.live("adds the bytes that it was given, even if it is interrupted and its array then changes", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "a"), "old\n")
      const isHeld = yield* Deferred.make<void>()
      const isReleased = yield* Deferred.make<void>()
      const dial = Effect.map(pipe(), ({ close, input, output }) => ({
        close,
        input,
        // A network that takes the first large request only after its caller was interrupted.
        output: new Writable({
          write: (chunk: Buffer, _, done) => {
            if (chunk.length < 50_000) return void output.write(chunk, done)
            Deferred.doneUnsafe(isHeld, Effect.void)
            void Effect.runPromise(Deferred.await(isReleased)).then(() => output.write(chunk, done))
          }
        })
      }))
      const fs = make(yield* openPiped(root, {}, {}, dial))
      const bytes = new Uint8Array(60_000).fill(97)
      const writing = yield* Effect.forkChild(fs.writeBytes("a", bytes, { mode: "append" }))
      yield* Deferred.await(isHeld)
      yield* Fiber.interrupt(writing)
      bytes.fill(98)
      yield* Deferred.succeed(isReleased, undefined)
      yield* fs.exists("a")
      assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), `old\n${"a".repeat(60_000)}`)
    }).pipe(Effect.scoped)
  )

  it.live("fails with Unavailable, and is not repeated, if the server wrote only a part and then the connection is lost", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* opened
      Fs.writeFileSync(join(root, "a"), "old\n")
      let written: number | undefined
      let isWritten = false
      between.onRequest = ({ bytes, id, type }) => {
        if (isWritten && type === Type.fstat) {
          isWritten = false
          return "cut"
        }
        if (type !== Type.write || written !== undefined) return "pass"
        written = id
        // The disk has place for two bytes.
        const shorter = Buffer.from(bytes.subarray(0, bytes.length - 3))
        shorter.writeUInt32BE(2, shorter.length - 6)
        return shorter
      }
      between.onAnswer = ({ id }) => {
        if (id !== written) return "pass"
        isWritten = true
        return statusOf(id, StatusCode.failure)
      }
      const error = yield* Effect.flip(fs.write("a", "more\n", { mode: "append" }))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "check whether it was made")
      assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "old\nmo")
    }).pipe(Effect.scoped)
  )
})
