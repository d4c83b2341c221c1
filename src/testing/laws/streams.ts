import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { plantFiles, lawForms, expectTree, withLimits } from "../chapter.ts"
import { equal, fails } from "../expect.ts"
import { directory } from "../Files.ts"
import type { Law } from "../Law.ts"
import { collect, concatBytes, encodeUtf8, hashOfAbc, streamThen, toBytes, writeThroughSink } from "../operations.ts"

const service = lawForms("service")
const writing = lawForms("service", "write")

const chunkBytes = 65536

const patternBytes = (length: number): Uint8Array => new Uint8Array(length).map((_, i) => i * 31 + (i >> 8))

const lengths = (chunks: ReadonlyArray<Uint8Array>): ReadonlyArray<number> => chunks.map((chunk) => chunk.length)

const invalidOptions: ReadonlyArray<readonly [argument: "offset" | "length" | "chunkSize", value: number]> = [
  ["offset", -1],
  ["offset", 1.5],
  ["length", -1],
  ["length", Number.NaN],
  ["chunkSize", 0],
  ["chunkSize", -1]
]

interface Lines {
  readonly what: string
  readonly text: string
  readonly lines: ReadonlyArray<string>
}

const lineCases: ReadonlyArray<Lines> = [
  { what: "a stream of an empty file has no lines", text: "", lines: [] },
  { what: "lines of a stream have no terminators", text: "a\r\nb\n\nc", lines: ["a", "b", "", "c"] },
  { what: "a terminator at the end does not begin another line", text: "a\nb\n", lines: ["a", "b"] },
  { what: "only LF and CRLF end a line of a stream", text: "a\rb\v\f\u0085\u2028c\n", lines: ["a\rb\v\f\u0085\u2028c"] },
  {
    what: "a CRLF that is split between two chunks is one terminator",
    text: `${"x".repeat(chunkBytes - 1)}\r\ny`,
    lines: ["x".repeat(chunkBytes - 1), "y"]
  },
  {
    what: "a CR at the end of a chunk is text if no LF follows",
    text: `${"x".repeat(chunkBytes - 1)}\ry\n`,
    lines: [`${"x".repeat(chunkBytes - 1)}\ry`]
  },
  { what: "a CR at the end of the file is text", text: "a\r", lines: ["a\r"] },
  {
    what: "a character that is split between two chunks stays whole",
    text: `${"x".repeat(chunkBytes - 1)}é\n${"y".repeat(chunkBytes - 5)}😀`,
    lines: [`${"x".repeat(chunkBytes - 1)}é`, `${"y".repeat(chunkBytes - 5)}😀`]
  }
]

export const streamLaws: ReadonlyArray<Law> = [
  ...[0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes + 7].map((size) =>
    service("C-43").law(`a stream of ${size} bytes is the file, in chunks of 64 KiB`, function* (fs) {
      const content = patternBytes(size)
      yield* plantFiles(fs, { a: content })
      const chunks = yield* collect(fs.stream("a"))
      yield* equal(concatBytes(chunks), content)
      const full = Array.from({ length: Math.floor(size / chunkBytes) }, () => chunkBytes)
      yield* equal(lengths(chunks), size % chunkBytes === 0 ? full : [...full, size % chunkBytes], "lengths of the chunks")
    })
  ),
  service("C-43", { a: "0123456" }).answers(
    "a stream has chunks of the requested size",
    (fs) => Effect.map(collect(fs.stream("a", { chunkSize: 3 })), lengths),
    [3, 3, 1]
  ),
  service("C-43", { a: "0123456" }).answers(
    "a stream of a range has exactly the bytes of the range",
    (fs) => Effect.map(collect(fs.stream("a", { offset: 2, length: 3, chunkSize: 2 })), concatBytes),
    encodeUtf8("234")
  ),
  service("C-43", { a: "0123" }).answers(
    "a stream from past the end is empty",
    (fs) => collect(fs.stream("a", { offset: 9 })),
    []
  ),
  service("C-43", { a: "0123" }).answers("a stream with length 0 is empty", (fs) => collect(fs.stream("a", { length: 0 })), []),
  ...invalidOptions.map(([argument, value]) =>
    service("C-43", { a: "x" }).refuses(
      `stream refuses ${argument} ${value}`,
      (fs) => collect(fs.stream("a", { [argument]: value })),
      "InvalidArgument",
      { argument }
    )
  ),
  service("C-22", { a: "12345\n6" }).law("a stream may be larger than maxReadBytes", function* (fs) {
    const small = withLimits({ maxReadBytes: 2 })
    yield* equal(concatBytes(yield* small(collect(fs.stream("a")))), encodeUtf8("12345\n6"))
    yield* equal(yield* small(collect(fs.lines("a"))), ["12345", "6"])
  }),
  writing("port: open pins").law(
    "a stream reads the opened file to its end, even if the path gets another file",
    function* (fs) {
      const old = patternBytes(40)
      yield* plantFiles(fs, { a: old })
      const seen: Array<Uint8Array> = []
      yield* Stream.runForEachArray(fs.stream("a", { chunkSize: 1 }).pipe(Stream.rechunk(1)), (chunks) =>
        Effect.gen(function* () {
          if (seen.length === 0) yield* fs.writeBytes("a", new Uint8Array(40))
          seen.push(...chunks)
        })
      )
      yield* equal(concatBytes(seen), old)
    }
  ),

  ...lineCases.map(({ what, text, lines }) =>
    service("C-10", { a: text }).law(what, function* (fs) {
      yield* equal(yield* collect(fs.lines("a")), lines)
    })
  ),
  service("C-09", { a: toBytes(0xef, 0xbb, 0xbf, 0x78, 0x0a) }).answers(
    "the byte order mark stays in the first line",
    (fs) => collect(fs.lines("a")),
    ["\ufeffx"]
  ),
  service("C-09").law("lines fail with NotText at the offset in the file", function* (fs) {
    const content = new Uint8Array(chunkBytes + 10).fill(0x78)
    content[chunkBytes + 3] = 0xff
    yield* plantFiles(fs, { a: content })
    yield* fails(collect(fs.lines("a")), "NotText", { offset: chunkBytes + 3 })
  }),
  service("C-09", { a: toBytes(0x61, 0x0a, 0xe2, 0x82) }).law(
    "lines fail with NotText at an incomplete character at the end",
    function* (fs) {
      yield* fails(collect(fs.lines("a")), "NotText", { offset: 2 })
    }
  )
]

const failingStream = Stream.concat(Stream.make(encodeUtf8("new"), encodeUtf8("er")), Stream.fail({ _tag: "Cable" } as const))

const sinkOver = writing("C-43", { a: "old" })

const sinkNew = writing("C-43")

export const sinkLaws: ReadonlyArray<Law> = [
  writing("C-43", { a: "a longer text" }).changes(
    "a sink writes the bytes of its stream",
    (fs) => writeThroughSink(fs, "a", ["one ", "", "two"]),
    { a: "one two" },
    { bytesWritten: 7, mode: "overwrite", path: "a" as never }
  ),
  sinkNew.changes(
    "a sink of an empty stream creates an empty file",
    (fs) => Stream.run(Stream.empty, fs.sink("d/a")),
    { "d/a": "" },
    { bytesWritten: 0 }
  ),
  sinkOver.changes(
    "a sink in mode append adds bytes at the end of the file",
    (fs) => writeThroughSink(fs, "a", ["+", "new"], { mode: "append" }),
    { a: "old+new" },
    { bytesWritten: 4, mode: "append" }
  ),
  sinkNew.law("a sink writes a stream of several chunks", function* (fs) {
    const content = patternBytes(5 * chunkBytes + 3)
    yield* Stream.run(
      Stream.fromIterable([content.subarray(0, chunkBytes + 1), content.subarray(chunkBytes + 1)]),
      fs.sink("a")
    )
    yield* equal((yield* fs.readBytes("a")).content, content)
  }),
  ...(["overwrite", "append", "replace", "appendExisting"] as const).map((mode) =>
    writing("C-43, C-55", { a: "old" }).law(`a sink in mode ${mode} keeps the old file if its stream fails`, function* (fs) {
      yield* fails(Stream.run(failingStream, fs.sink("a", { mode })), "Cable")
      yield* expectTree(fs, { a: "old" })
    })
  ),
  ...(["create", "overwrite", "append"] as const).map((mode) =>
    writing("C-13, C-43").law(
      `a sink in mode ${mode} leaves no new file and no new parents if its stream fails`,
      function* (fs) {
        yield* fails(Stream.run(failingStream, fs.sink("d/e/a", { mode })), "Cable")
        yield* expectTree(fs, {})
      }
    )
  ),
  sinkOver.law("an interrupted sink keeps the old file and leaves no temporary file", function* (fs) {
    const begun = yield* Deferred.make<void>()
    const slow = streamThen("new", Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
    const fiber = yield* Effect.forkChild(Stream.run(slow, fs.sink("a")))
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(fiber)
    yield* expectTree(fs, { a: "old" })
  }),
  sinkOver.law("the content of a sink is not visible before its stream ends", function* (fs) {
    const watched = Stream.concat(
      Stream.make(encodeUtf8("new")),
      Stream.drain(
        Stream.fromEffect(
          Effect.gen(function* () {
            yield* equal(yield* fs.readString("a"), "old", "the file during the stream")
            yield* equal((yield* fs.list()).length, 1, "entries during the stream")
          })
        )
      )
    )
    yield* Stream.run(watched, fs.sink("a"))
    yield* expectTree(fs, { a: "new" })
  }),
  writing("C-43", { a: "text" }).changes(
    "a file can be streamed onto itself",
    (fs) => Stream.run(fs.stream("a", { chunkSize: 1 }), fs.sink("a")),
    { a: "text" }
  ),
  sinkNew.law("a sink does not block other calls while its stream runs", function* (fs) {
    const waiting = yield* Deferred.make<void>()
    const slow = streamThen("1", Deferred.await(waiting))
    const fiber = yield* Effect.forkChild(Stream.run(slow, fs.sink("a")), { startImmediately: true })
    yield* fs.write("a", "2")
    yield* fs.write("b", "3")
    yield* Deferred.succeed(waiting, undefined)
    yield* Fiber.join(fiber)
    yield* expectTree(fs, { a: "1", b: "3" })
  }),
  writing("behaviours: sinks").law("of two concurrent sinks, the last to end determines the whole content", function* (fs) {
    const gates = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
    const run = (text: string, gate: Deferred.Deferred<void>) =>
      Effect.forkChild(Stream.run(streamThen(text, Deferred.await(gate)), fs.sink("a")), { startImmediately: true })
    const first = yield* run("first", gates[0])
    const second = yield* run("the second", gates[1])
    yield* Deferred.succeed(gates[1], undefined)
    yield* Fiber.join(second)
    yield* Deferred.succeed(gates[0], undefined)
    yield* Fiber.join(first)
    yield* expectTree(fs, { a: "first" })
  }),
  writing("C-43, C-50", { a: "old" }).law("a sink checks its precondition when it commits", function* (fs) {
    const version = yield* fs.version("a")
    const overtaken = streamThen("mine", fs.write("a", "theirs"))
    yield* fails(Stream.run(overtaken, fs.sink("a", { ifMatch: version })), "Conflict", { expected: version })
    yield* expectTree(fs, { a: "theirs" })
  }),
  sinkNew.law("a sink in mode create does not overwrite a file that was created meanwhile", function* (fs) {
    const overtaken = streamThen("mine", fs.write("a", "theirs"))
    yield* fails(Stream.run(overtaken, fs.sink("a", { mode: "create" })), "AlreadyExists")
    yield* expectTree(fs, { a: "theirs" })
  }),
  sinkOver.refuses(
    "a sink in mode create refuses an existing file",
    (fs) => writeThroughSink(fs, "a", ["new"], { mode: "create" }),
    "AlreadyExists"
  ),
  ...(["replace", "appendExisting"] as const).map((mode) =>
    writing("C-11, C-43").refuses(
      `a sink in mode ${mode} of a missing file is NotFound`,
      (fs) => writeThroughSink(fs, "d/a", ["new"], { mode }),
      "NotFound"
    )
  ),
  writing("C-43", { d: directory }).refuses(
    "a sink to a directory is NotAFile",
    (fs) => writeThroughSink(fs, "d", ["new"]),
    "NotAFile"
  ),
  writing("behaviours: calls", { f: "x" }).refuses(
    "a sink below a file is NotADirectory",
    (fs) => writeThroughSink(fs, "f/a", ["new"]),
    "NotADirectory"
  ),
  writing("C-13").refuses(
    "a sink without parents is NotFound if a parent is missing",
    (fs) => writeThroughSink(fs, "d/a", ["new"], { createParents: false }),
    "NotFound"
  ),
  writing("C-22, C-43").refuses(
    "a sink over the limit is LimitExceeded and leaves no file",
    (fs) => withLimits({ maxFileSize: 4 })(writeThroughSink(fs, "d/a", ["123", "45"])),
    "LimitExceeded",
    { limit: "maxFileSize", allowed: 4 }
  ),
  writing("C-22, C-43").law("a sink accepts more bytes than a single write, up to maxStreamBytes", function* (fs) {
    const pour = (path: string) => writeThroughSink(fs, path, ["123", "45"])
    const few = withLimits({ maxFileSize: 4, maxStreamBytes: 5 })
    yield* fails(few(fs.write("a", "12345")), "LimitExceeded", { limit: "maxFileSize" })
    yield* few(pour("a"))
    yield* expectTree(fs, { a: "12345" })
    const fewer = withLimits({ maxStreamBytes: 4 })
    yield* fails(fewer(pour("b")), "LimitExceeded", { limit: "maxStreamBytes", allowed: 4 })
    yield* expectTree(fs, { a: "12345" })
  }),
  writing("C-50").law("a sink returns the version of the written content", function* (fs) {
    const written = yield* writeThroughSink(fs, "a", ["a", "bc"], { version: true })
    yield* equal(written.version, hashOfAbc)
    const appended = yield* writeThroughSink(fs, "a", ["d"], { mode: "append", version: true })
    yield* equal(appended.version, yield* fs.version("a"))
  })
]
