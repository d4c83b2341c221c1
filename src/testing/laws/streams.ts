import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { plantFiles, lawForms, expectTree, withLimits } from "../chapter.ts"
import { equal, fails } from "../expect.ts"
import { directory } from "../Files.ts"
import type { Law } from "../Law.ts"
import { collect, concatBytes, encodeUtf8, toBytes } from "../operations.ts"

const { answers, law, refuses } = lawForms({ kind: "service" })
const writing = lawForms({ kind: "service", needs: ["write"] })

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
  { what: "an empty file streams no lines", text: "", lines: [] },
  { what: "lines come without their terminators", text: "a\r\nb\n\nc", lines: ["a", "b", "", "c"] },
  { what: "a final terminator begins no line", text: "a\nb\n", lines: ["a", "b"] },
  { what: "no other character ends a line of a stream", text: "a\rb\v\f\u0085\u2028c\n", lines: ["a\rb\v\f\u0085\u2028c"] },
  {
    what: "a CRLF across two chunks is one terminator",
    text: `${"x".repeat(chunkBytes - 1)}\r\ny`,
    lines: ["x".repeat(chunkBytes - 1), "y"]
  },
  {
    what: "a CR at the end of a chunk that no LF follows is text",
    text: `${"x".repeat(chunkBytes - 1)}\ry\n`,
    lines: [`${"x".repeat(chunkBytes - 1)}\ry`]
  },
  { what: "a CR at the very end is text", text: "a\r", lines: ["a\r"] },
  {
    what: "a character across two chunks is whole",
    text: `${"x".repeat(chunkBytes - 1)}é\n${"y".repeat(chunkBytes - 5)}😀`,
    lines: [`${"x".repeat(chunkBytes - 1)}é`, `${"y".repeat(chunkBytes - 5)}😀`]
  }
]

export const streamLaws: ReadonlyArray<Law> = [
  ...[0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes + 7].map((size) =>
    law(`a stream of ${size} bytes is the file, in chunks of 64 KiB`, "C-43", function* (fs) {
      const content = patternBytes(size)
      yield* plantFiles(fs, { a: content })
      const chunks = yield* collect(fs.stream("a"))
      yield* equal(concatBytes(chunks), content)
      const full = Array.from({ length: Math.floor(size / chunkBytes) }, () => chunkBytes)
      yield* equal(lengths(chunks), size % chunkBytes === 0 ? full : [...full, size % chunkBytes], "lengths of the chunks")
    })
  ),
  answers(
    "a stream has chunks of the size that was asked for",
    "C-43",
    { a: "0123456" },
    (fs) => Effect.map(collect(fs.stream("a", { chunkSize: 3 })), lengths),
    [3, 3, 1]
  ),
  answers(
    "a stream of a part begins and ends there",
    "C-43",
    { a: "0123456" },
    (fs) => Effect.map(collect(fs.stream("a", { offset: 2, length: 3, chunkSize: 2 })), concatBytes),
    encodeUtf8("234")
  ),
  answers("a stream from past the end is empty", "C-43", { a: "0123" }, (fs) => collect(fs.stream("a", { offset: 9 })), []),
  answers("a stream of no bytes is empty", "C-43", { a: "0123" }, (fs) => collect(fs.stream("a", { length: 0 })), []),
  ...invalidOptions.map(([argument, value]) =>
    refuses(
      `stream refuses ${argument} ${value}`,
      "C-43",
      { a: "x" },
      (fs) => collect(fs.stream("a", { [argument]: value })),
      "InvalidArgument",
      { argument }
    )
  ),
  law("a stream has no bound of size", "C-22", function* (fs) {
    yield* plantFiles(fs, { a: "12345\n6" })
    const small = withLimits({ maxReadBytes: 2 })
    yield* equal(concatBytes(yield* small(collect(fs.stream("a")))), encodeUtf8("12345\n6"))
    yield* equal(yield* small(collect(fs.lines("a"))), ["12345", "6"])
  }),
  writing.law("a stream goes on with the file that it began", "port: open pins", function* (fs) {
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
  }),

  ...lineCases.map(({ what, text, lines }) =>
    law(what, "C-10", function* (fs) {
      yield* plantFiles(fs, { a: text })
      yield* equal(yield* collect(fs.lines("a")), lines)
    })
  ),
  answers(
    "the byte order mark stays in the first line",
    "C-09",
    { a: toBytes(0xef, 0xbb, 0xbf, 0x78, 0x0a) },
    (fs) => collect(fs.lines("a")),
    ["\ufeffx"]
  ),
  law("lines fail with NotText at the offset in the file", "C-09", function* (fs) {
    const content = new Uint8Array(chunkBytes + 10).fill(0x78)
    content[chunkBytes + 3] = 0xff
    yield* plantFiles(fs, { a: content })
    yield* fails(collect(fs.lines("a")), "NotText", { offset: chunkBytes + 3 })
  }),
  law("lines fail with NotText where the end cuts a character off", "C-09", function* (fs) {
    yield* plantFiles(fs, { a: toBytes(0x61, 0x0a, 0xe2, 0x82) })
    yield* fails(collect(fs.lines("a")), "NotText", { offset: 2 })
  })
]

const failingStream = Stream.concat(Stream.make(encodeUtf8("new"), encodeUtf8("er")), Stream.fail({ _tag: "Cable" } as const))

export const sinkLaws: ReadonlyArray<Law> = [
  writing.changes(
    "a sink writes what the stream brought",
    "C-43",
    { a: "a longer text" },
    (fs) => Stream.run(Stream.make(encodeUtf8("one "), toBytes(), encodeUtf8("two")), fs.sink("a")),
    { a: "one two" },
    { bytesWritten: 7, mode: "overwrite", path: "a" as never }
  ),
  writing.changes(
    "a sink of an empty stream makes an empty file",
    "C-43",
    {},
    (fs) => Stream.run(Stream.empty, fs.sink("d/a")),
    { "d/a": "" },
    { bytesWritten: 0 }
  ),
  writing.changes(
    "a sink in mode append adds to the end",
    "C-43",
    { a: "old" },
    (fs) => Stream.run(Stream.make(encodeUtf8("+"), encodeUtf8("new")), fs.sink("a", { mode: "append" })),
    { a: "old+new" },
    { bytesWritten: 4, mode: "append" }
  ),
  writing.law("a sink brings as much as there is", "C-43", function* (fs) {
    const content = patternBytes(5 * chunkBytes + 3)
    yield* Stream.run(
      Stream.fromIterable([content.subarray(0, chunkBytes + 1), content.subarray(chunkBytes + 1)]),
      fs.sink("a")
    )
    yield* equal((yield* fs.readBytes("a")).content, content)
  }),
  ...(["overwrite", "append", "replace", "appendExisting"] as const).map((mode) =>
    writing.law(`a stream that fails leaves the old file, in mode ${mode}`, "C-43, C-55", function* (fs) {
      yield* plantFiles(fs, { a: "old" })
      yield* fails(Stream.run(failingStream, fs.sink("a", { mode })), "Cable")
      yield* expectTree(fs, { a: "old" })
    })
  ),
  ...(["create", "overwrite", "append"] as const).map((mode) =>
    writing.law(`a stream that fails leaves no file and no parents, in mode ${mode}`, "C-13, C-43", function* (fs) {
      yield* fails(Stream.run(failingStream, fs.sink("d/e/a", { mode })), "Cable")
      yield* expectTree(fs, {})
    })
  ),
  writing.law("a stream that is interrupted leaves the old file, and nothing beside it", "C-43", function* (fs) {
    yield* plantFiles(fs, { a: "old" })
    const begun = yield* Deferred.make<void>()
    const slow = Stream.concat(
      Stream.make(encodeUtf8("new")),
      Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
    )
    const fiber = yield* Effect.forkChild(Stream.run(slow, fs.sink("a")))
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(fiber)
    yield* expectTree(fs, { a: "old" })
  }),
  writing.law("nothing of a sink is visible before its stream has ended", "C-43", function* (fs) {
    yield* plantFiles(fs, { a: "old" })
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
  writing.changes(
    "a file can be streamed onto itself",
    "C-43",
    { a: "text" },
    (fs) => Stream.run(fs.stream("a", { chunkSize: 1 }), fs.sink("a")),
    { a: "text" }
  ),
  writing.law("a sink holds nobody up while its stream runs", "C-43", function* (fs) {
    const waiting = yield* Deferred.make<void>()
    const slow = Stream.concat(Stream.make(encodeUtf8("1")), Stream.drain(Stream.fromEffect(Deferred.await(waiting))))
    const fiber = yield* Effect.forkChild(Stream.run(slow, fs.sink("a")), { startImmediately: true })
    yield* fs.write("a", "2")
    yield* fs.write("b", "3")
    yield* Deferred.succeed(waiting, undefined)
    yield* Fiber.join(fiber)
    yield* expectTree(fs, { a: "1", b: "3" })
  }),
  writing.law("of two sinks to one path the last to finish wins, whole", "behaviours: sinks", function* (fs) {
    const gates = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
    const run = (text: string, gate: Deferred.Deferred<void>) =>
      Effect.forkChild(
        Stream.run(
          Stream.concat(Stream.make(encodeUtf8(text)), Stream.drain(Stream.fromEffect(Deferred.await(gate)))),
          fs.sink("a")
        ),
        { startImmediately: true }
      )
    const first = yield* run("first", gates[0])
    const second = yield* run("the second", gates[1])
    yield* Deferred.succeed(gates[1], undefined)
    yield* Fiber.join(second)
    yield* Deferred.succeed(gates[0], undefined)
    yield* Fiber.join(first)
    yield* expectTree(fs, { a: "first" })
  }),
  writing.law("a sink checks its precondition when it commits", "C-43, C-50", function* (fs) {
    yield* plantFiles(fs, { a: "old" })
    const version = yield* fs.version("a")
    const overtaken = Stream.concat(Stream.make(encodeUtf8("mine")), Stream.drain(Stream.fromEffect(fs.write("a", "theirs"))))
    yield* fails(Stream.run(overtaken, fs.sink("a", { ifMatch: version })), "Conflict", { expected: version })
    yield* expectTree(fs, { a: "theirs" })
  }),
  writing.law("a sink in mode create does not overwrite what came in the meantime", "C-43", function* (fs) {
    const overtaken = Stream.concat(Stream.make(encodeUtf8("mine")), Stream.drain(Stream.fromEffect(fs.write("a", "theirs"))))
    yield* fails(Stream.run(overtaken, fs.sink("a", { mode: "create" })), "AlreadyExists")
    yield* expectTree(fs, { a: "theirs" })
  }),
  writing.refuses(
    "a sink in mode create refuses what exists",
    "C-43",
    { a: "old" },
    (fs) => Stream.run(Stream.make(encodeUtf8("new")), fs.sink("a", { mode: "create" })),
    "AlreadyExists"
  ),
  ...(["replace", "appendExisting"] as const).map((mode) =>
    writing.refuses(
      `a sink in mode ${mode} refuses what is not there`,
      "C-11, C-43",
      {},
      (fs) => Stream.run(Stream.make(encodeUtf8("new")), fs.sink("d/a", { mode })),
      "NotFound"
    )
  ),
  writing.refuses(
    "a sink to a directory is NotAFile",
    "C-43",
    { d: directory },
    (fs) => Stream.run(Stream.make(encodeUtf8("new")), fs.sink("d")),
    "NotAFile"
  ),
  writing.refuses(
    "a sink below a file is NotADirectory",
    "behaviours: calls",
    { f: "x" },
    (fs) => Stream.run(Stream.make(encodeUtf8("new")), fs.sink("f/a")),
    "NotADirectory"
  ),
  writing.refuses(
    "a sink without parents is NotFound where it may not make them",
    "C-13",
    {},
    (fs) => Stream.run(Stream.make(encodeUtf8("new")), fs.sink("d/a", { createParents: false })),
    "NotFound"
  ),
  writing.refuses(
    "a sink over the limit is LimitExceeded and leaves nothing",
    "C-22, C-43",
    {},
    (fs) => withLimits({ maxFileSize: 4 })(Stream.run(Stream.make(encodeUtf8("123"), encodeUtf8("45")), fs.sink("d/a"))),
    "LimitExceeded",
    { limit: "maxFileSize", allowed: 4 }
  ),
  writing.law("a sink takes more than one write may hold, up to a limit of its own", "C-22, C-43", function* (fs) {
    const pour = (path: string) => Stream.run(Stream.make(encodeUtf8("123"), encodeUtf8("45")), fs.sink(path))
    const few = withLimits({ maxFileSize: 4, maxStreamBytes: 5 })
    yield* fails(few(fs.write("a", "12345")), "LimitExceeded", { limit: "maxFileSize" })
    yield* few(pour("a"))
    yield* expectTree(fs, { a: "12345" })
    const fewer = withLimits({ maxStreamBytes: 4 })
    yield* fails(fewer(pour("b")), "LimitExceeded", { limit: "maxStreamBytes", allowed: 4 })
    yield* expectTree(fs, { a: "12345" })
  }),
  writing.law("a sink answers the version of what it has written", "C-50", function* (fs) {
    const written = yield* Stream.run(Stream.make(encodeUtf8("a"), encodeUtf8("bc")), fs.sink("a", { version: true }))
    yield* equal(written.version, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    const appended = yield* Stream.run(Stream.make(encodeUtf8("d")), fs.sink("a", { mode: "append", version: true }))
    yield* equal(appended.version, yield* fs.version("a"))
  })
]
