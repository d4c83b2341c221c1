import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { ReadBytesResult, ReadResult } from "../../model/Entry.ts"
import type { ReadError } from "../../model/FsError.ts"
import { plantFiles, lawForms, withLimits } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import type { Law } from "../Law.ts"
import { collect, encodeUtf8, hashOfAbc, names, readingCalls, toBytes } from "../operations.ts"

const service = lawForms("service")
const writing = lawForms("service", "write")

const lawsWithWatch = lawForms("ability", "watch")
const lawsWithoutWatch = lawForms("ability", "no watch")

const linesBeyondPage = Array.from({ length: 2001 }, (_, i) => `line ${i}`).join("\n")

interface LineCase {
  readonly what: string
  readonly text: string
  readonly content: string
  readonly totalLines: number
  readonly endsWithNewline: boolean
}

const lineCases: ReadonlyArray<LineCase> = [
  { what: "an empty file has no lines", text: "", content: "", totalLines: 0, endsWithNewline: false },
  { what: "a single line feed is one empty line", text: "\n", content: "", totalLines: 1, endsWithNewline: true },
  { what: "lines end at LF", text: "a\nb\n", content: "a\nb", totalLines: 2, endsWithNewline: true },
  { what: "a last line without a terminator is a line", text: "a\nb", content: "a\nb", totalLines: 2, endsWithNewline: false },
  {
    what: "an empty line before the last line feed is a line",
    text: "a\n\n",
    content: "a\n",
    totalLines: 2,
    endsWithNewline: true
  },
  {
    what: "a page of a CRLF file omits the last CRLF",
    text: "a\r\nb\r\n",
    content: "a\r\nb",
    totalLines: 2,
    endsWithNewline: true
  },
  { what: "a lone CR does not end a line", text: "a\rb\r", content: "a\rb\r", totalLines: 1, endsWithNewline: false },
  {
    what: "VT, FF, NEL, U+2028 and U+2029 do not end a line",
    text: "a\vb\fc\u0085d\u2028e\u2029f",
    content: "a\vb\fc\u0085d\u2028e\u2029f",
    totalLines: 1,
    endsWithNewline: false
  }
]

const wholeNumbers = ["offset", "limit"] as const
const invalidNumbers = [-2, 1.5, Number.NaN]

interface BadText {
  readonly what: string
  readonly content: Uint8Array
  readonly offset: number
}

const badTexts: ReadonlyArray<BadText> = [
  { what: "an invalid byte", content: toBytes(0x61, 0x62, 0xff, 0x63), offset: 2 },
  { what: "a lone continuation byte", content: toBytes(0xc3, 0xa9, 0x80), offset: 2 },
  { what: "an encoded surrogate", content: toBytes(0x61, 0xed, 0xa0, 0x80), offset: 1 },
  { what: "an overlong form", content: toBytes(0xc0, 0xaf), offset: 0 },
  { what: "an incomplete sequence at the end", content: toBytes(0x61, 0xe2, 0x82), offset: 1 }
]

const byteOrderMark = toBytes(0xef, 0xbb, 0xbf)

const hashOfEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

const fileReaders = readingCalls.filter(({ operation }) =>
  ["read", "readString", "readBytes", "version", "stream", "lines"].includes(operation)
)

const exampleTree: Files = { file: "text", "dir/inner": "x" }

const versions = service("C-50", { a: "abc" })

const bytePages = service("C-10", { a: "0123" })

const pageArguments = service("C-10", { a: "x" })

export const readingLaws: ReadonlyArray<Law> = [
  ...lineCases.map(({ what, text, ...expected }) =>
    service("C-10", { "a.txt": text }).law(what, function* (fs) {
      yield* has(yield* fs.read("a.txt"), {
        ...expected,
        offset: 0,
        limit: expected.totalLines,
        truncated: false,
        next: undefined
      })
    })
  ),
  service("C-10, C-22", { a: linesBeyondPage }).answers("a page has 2,000 lines by default", (fs) => fs.read("a"), {
    limit: 2000,
    offset: 0,
    totalLines: 2001,
    truncated: true,
    next: 2000,
    content: linesBeyondPage.slice(0, linesBeyondPage.lastIndexOf("\n"))
  }),
  service("C-22", { a: "1\n2\n3" }).law("the default page size is the limit defaultReadLimit", function* (fs) {
    yield* has(yield* withLimits({ defaultReadLimit: 2 })(fs.read("a")), {
      content: "1\n2",
      limit: 2,
      truncated: true,
      next: 2
    })
  }),
  service("C-10", { a: linesBeyondPage }).answers("a limit of -1 returns all lines", (fs) => fs.read("a", { limit: -1 }), {
    content: linesBeyondPage,
    limit: 2001,
    truncated: false,
    next: undefined
  }),
  service("C-10", { a: "1\n2" }).answers(
    "a limit of 0 returns no lines, and the total number of lines",
    (fs) => fs.read("a", { limit: 0 }),
    { content: "", limit: 0, totalLines: 2 }
  ),
  service("C-10", { a: "0\n1\n2\n3\n4\n" }).answers(
    "a page begins at its offset and returns the offset of the next page",
    (fs) => fs.read("a", { offset: 1, limit: 2 }),
    { content: "1\n2", offset: 1, limit: 2, totalLines: 5, truncated: true, next: 3, endsWithNewline: true }
  ),
  service("C-10", { a: "0\n1\n2\n" }).answers(
    "the last page has no offset of a next page",
    (fs) => fs.read("a", { offset: 1, limit: 2 }),
    {
      content: "1\n2",
      truncated: false,
      next: undefined
    }
  ),
  service("C-10", { a: "0\n1\n" }).answers(
    "an offset past the end returns an empty page at the end",
    (fs) => fs.read("a", { offset: 7, limit: 2 }),
    { content: "", offset: 2, limit: 0, totalLines: 2, truncated: false }
  ),
  service("C-10", { a: "0\r\n1\n2\r\n3" }).answers(
    "line terminators inside a page are unchanged",
    (fs) => fs.read("a", { offset: 0, limit: 3 }),
    { content: "0\r\n1\n2" }
  ),
  ...(["read", "readBytes"] as const).flatMap((call) =>
    wholeNumbers.flatMap((argument) =>
      invalidNumbers.map((value) =>
        pageArguments.refuses(
          `${call} refuses ${argument} ${value}`,
          (fs): Effect.Effect<unknown, ReadError> => fs[call]("a", { [argument]: value }),
          "InvalidArgument",
          { argument }
        )
      )
    )
  ),
  pageArguments.refuses("read refuses an offset of -1", (fs) => fs.read("a", { offset: -1 }), "InvalidArgument", {
    argument: "offset"
  }),

  service("C-10", { a: "0123456789" }).answers(
    "readBytes returns a page of bytes",
    (fs) => fs.readBytes("a", { offset: 3, limit: 4 }),
    { content: encodeUtf8("3456"), offset: 3, limit: 4, sizeBytes: 10, truncated: true }
  ),
  bytePages.answers(
    "an offset past the end returns an empty page of bytes at the end",
    (fs) => fs.readBytes("a", { offset: 9 }),
    {
      content: toBytes(),
      offset: 4,
      limit: 0,
      sizeBytes: 4,
      truncated: false
    }
  ),
  bytePages.answers("a page of bytes ends at the end of the file", (fs) => fs.readBytes("a", { offset: 2, limit: 9 }), {
    content: encodeUtf8("23"),
    limit: 2,
    truncated: false
  }),
  bytePages.answers("a page of bytes may be empty", (fs) => fs.readBytes("a", { offset: 1, limit: 0 }), {
    content: toBytes(),
    offset: 1,
    limit: 0,
    truncated: true
  }),
  bytePages.answers("readBytes returns all bytes unless a limit is given", (fs) => fs.readBytes("a"), {
    content: encodeUtf8("0123"),
    offset: 0,
    limit: 4,
    sizeBytes: 4,
    truncated: false
  }),
  service("C-08").law("readBytes returns every byte value", function* (fs) {
    const all = Uint8Array.from({ length: 256 }, (_, i) => i)
    yield* plantFiles(fs, { a: all })
    yield* equal((yield* fs.readBytes("a")).content, all)
  }),

  ...badTexts.map(({ what, content, offset }) =>
    service("C-09", { a: content }).law(`${what} is NotText at its offset`, function* (fs) {
      yield* fails(fs.read("a"), "NotText", { offset })
      yield* fails(fs.readString("a"), "NotText", { offset })
      yield* equal((yield* fs.readBytes("a")).content, content)
    })
  ),
  service("C-09", { a: "a\ufffdb" }).answers("a file with U+FFFD is text", (fs) => fs.readString("a"), "a\ufffdb"),
  service("C-09", { a: "😀é" }).answers("characters beyond the basic plane are text", (fs) => fs.readString("a"), "😀é"),
  service("C-09", { a: toBytes(...byteOrderMark, 0x78) }).law("a byte order mark is read as U+FEFF", function* (fs) {
    yield* equal(yield* fs.readString("a"), "\ufeffx")
    yield* has(yield* fs.read("a"), { content: "\ufeffx" })
  }),
  writing("C-09").law("reading a file and writing the text back keeps all bytes", function* (fs) {
    const content = toBytes(...byteOrderMark, ...encodeUtf8("a\r\nb\nc\r"))
    yield* plantFiles(fs, { a: content })
    yield* fs.write("a", yield* fs.readString("a"))
    yield* equal((yield* fs.readBytes("a")).content, content)
  }),
  service("S0-18", { a: toBytes(0xe9) }).answers(
    "readString decodes another encoding",
    (fs) => fs.readString("a", "latin1"),
    "é"
  ),
  service("S0-18", { a: toBytes(0x61, 0, 0x0a, 0, 0x62, 0) }).answers(
    "read decodes another encoding",
    (fs) => fs.read("a", { encoding: "utf-16le" }),
    { content: "a\nb", totalLines: 2 }
  ),
  service("S0-18", { a: "x" }).refuses(
    "an unknown encoding is InvalidArgument",
    (fs) => fs.readString("a", "klingon"),
    "InvalidArgument",
    { argument: "encoding" }
  ),
  service("S0-18", { a: "x" }).refuses(
    "an unknown encoding of a page is InvalidArgument",
    (fs) => fs.read("a", { encoding: "klingon" }),
    "InvalidArgument",
    { argument: "encoding" }
  ),

  ...fileReaders.flatMap(({ operation, run }) => [
    service("S0-19", exampleTree).refuses(`${operation} of a missing path is NotFound`, (fs) => run(fs, "missing"), "NotFound"),
    service("S0-20", exampleTree).refuses(`${operation} of a directory is NotAFile`, (fs) => run(fs, "dir"), "NotAFile"),
    service("S0-20", exampleTree).refuses(`${operation} of the root is NotAFile`, (fs) => run(fs, "."), "NotAFile"),
    service("semantics: -", exampleTree).refuses(`${operation} below a file is NotFound`, (fs) => run(fs, "file/x"), "NotFound")
  ]),

  versions.answers("the version is the SHA-256 of the bytes", (fs) => fs.version("a"), hashOfAbc),
  service("C-50", { a: "" }).answers("an empty file has a version", (fs) => fs.version("a"), hashOfEmpty),
  versions.answers("a page contains the version of the whole file", (fs) => fs.read("a", { version: true, limit: 0 }), {
    version: hashOfAbc
  }),
  versions.answers(
    "a page of bytes contains the version of the whole file",
    (fs) => fs.readBytes("a", { version: true, offset: 1, limit: 1 }),
    { version: hashOfAbc, content: encodeUtf8("b") }
  ),
  versions.law("a version is returned only with the option version", function* (fs) {
    yield* has<ReadResult>(yield* fs.read("a"), { version: undefined })
    yield* has<ReadBytesResult>(yield* fs.readBytes("a"), { version: undefined })
  }),
  writing("C-50").law("the version depends only on the content", function* (fs) {
    yield* fs.write("a", "abc")
    yield* equal(yield* fs.version("a"), hashOfAbc)
    yield* fs.write("a", "")
    yield* equal(yield* fs.version("a"), hashOfEmpty)
    yield* fs.write("a", "ab")
    yield* fs.write("a", "c", { mode: "append" })
    yield* equal(yield* fs.version("a"), hashOfAbc)
  }),

  service("C-22", { a: "12345" }).law("a read of more than maxReadBytes bytes is LimitExceeded", function* (fs) {
    const small = withLimits({ maxReadBytes: 4 })
    const expected = { limit: "maxReadBytes", allowed: 4, actual: 5 }
    yield* fails(small(fs.read("a")), "LimitExceeded", expected)
    yield* fails(small(fs.readString("a")), "LimitExceeded", expected)
    yield* fails(small(fs.readBytes("a")), "LimitExceeded", expected)
  }),
  service("C-22", { a: "12345" }).law("a read of maxReadBytes bytes succeeds", function* (fs) {
    yield* equal(yield* withLimits({ maxReadBytes: 5 })(fs.readString("a")), "12345")
    yield* has(yield* withLimits({ maxReadBytes: 2 })(fs.readBytes("a", { offset: 1, limit: 2 })), {
      content: encodeUtf8("23")
    })
  }),

  service("S0-04", { a: "0123" }).law("changing returned bytes does not change the file", function* (fs) {
    const first = yield* fs.readBytes("a")
    first.content.fill(0x78)
    const part = yield* fs.readBytes("a", { offset: 1, limit: 2 })
    yield* equal(part.content, encodeUtf8("12"))
    part.content.fill(0x78)
    yield* equal(yield* fs.readString("a"), "0123")
  }),
  writing("S0-04").law("returned bytes do not change when the file changes", function* (fs) {
    yield* fs.write("a", "old")
    const before = yield* fs.readBytes("a")
    yield* fs.write("a", "new")
    yield* fs.write("a", "er", { mode: "append" })
    yield* equal(before.content, encodeUtf8("old"))
  }),
  writing("S0-04").law("changing the array after a write does not change the file", function* (fs) {
    const content = encodeUtf8("mine")
    yield* fs.writeBytes("a", content)
    content.fill(0x78)
    yield* equal(yield* fs.readString("a"), "mine")
  }),
  writing("S0-96").law("a read returns the complete content of the last write", function* (fs) {
    for (const content of ["long long long", "short", ""]) {
      yield* fs.write("a", content)
      yield* equal(yield* fs.readString("a"), content)
      yield* equal((yield* fs.readBytes("a")).content, encodeUtf8(content))
      yield* equal((yield* fs.read("a")).content, content)
      yield* equal((yield* fs.stat("a")).sizeBytes, content.length)
    }
  })
]

const statOf = (path: string) => (fs: Algebra) => fs.stat(path)

const watches = lawsWithWatch("api: watch", exampleTree)

export const lookingLaws: ReadonlyArray<Law> = [
  service("S0-08", { "a/f": "é" }).answers("a file's stat has its size in bytes", statOf("a/f"), {
    path: "a/f" as never,
    kind: "file",
    isFile: true,
    isDirectory: false,
    sizeBytes: 2
  }),
  service("S0-08", { "a/f": "x" }).answers("a directory's stat has the size 0", statOf("a"), {
    kind: "directory",
    isFile: false,
    isDirectory: true,
    sizeBytes: 0
  }),
  service("S0-28", exampleTree).refuses("stat of a missing path is NotFound", statOf("missing"), "NotFound"),
  service("S0-08", exampleTree).law("lstat of a path without links equals stat", function* (fs) {
    for (const path of [".", "file", "dir"]) yield* equal(yield* fs.lstat(path), yield* fs.stat(path), path)
  }),
  service("S0-28", exampleTree).refuses("lstat of a missing path is NotFound", (fs) => fs.lstat("missing"), "NotFound"),
  service("S0-08", { "a/f": "x" }).law("realPath of a path without links is the path in normal form", function* (fs) {
    yield* equal(yield* fs.realPath("."), ".")
    yield* equal(yield* fs.realPath("./a//f"), "a/f")
  }),
  service("S0-28", exampleTree).refuses("realPath of a missing path is NotFound", (fs) => fs.realPath("missing"), "NotFound"),
  service("semantics: -", exampleTree).refuses("realPath below a file is NotFound", (fs) => fs.realPath("file/x"), "NotFound"),
  service("S0-08", { a: "x", b: "x", "d/a": "x" }).law("files have different identities", function* (fs) {
    const all = yield* Effect.forEach(["a", "b", "d/a", "d", "."], (path) => fs.stat(path))
    const identities = all.flatMap(({ identity }) => (identity === undefined ? [] : [identity]))
    yield* equal(new Set(identities).size, identities.length)
    yield* equal((yield* fs.stat("./d//a")).identity, all[2]!.identity)
  }),
  service("semantics: -", exampleTree).refuses("stat below a file is NotFound", statOf("file/x"), "NotFound"),
  writing("C-44").law("times have milliseconds, and overwriting does not set a time back", function* (fs) {
    yield* fs.write("a", "1")
    const first = yield* fs.stat("a")
    yield* fs.write("a", "2")
    const second = yield* fs.stat("a")
    for (const time of [first.createdAt, first.modifiedAt, second.modifiedAt]) {
      if (time !== undefined)
        yield* holds(Number.isInteger(time.epochMilliseconds), "whole milliseconds", time.epochMilliseconds)
    }
    if (first.modifiedAt !== undefined && second.modifiedAt !== undefined) {
      yield* holds(
        second.modifiedAt.epochMilliseconds >= first.modifiedAt.epochMilliseconds,
        "a time not before the first write's"
      )
    }
  }),

  service("S0-26", exampleTree).law("exists returns true for existing entries", function* (fs) {
    for (const path of [".", "file", "dir", "dir/inner", "/dir/"]) yield* equal(yield* fs.exists(path), true, path)
  }),
  service("C-54", exampleTree).law("exists returns false for missing paths and for paths below a file", function* (fs) {
    for (const path of ["missing", "dir/missing", "missing/x", "file/x", "file/x/y"]) {
      yield* equal(yield* fs.exists(path), false, path)
    }
  }),

  service("S0-29", { "d/f": "12", "d/sub/deep": "x", other: "x" }).law(
    "a listing contains only the direct entries of a directory",
    function* (fs) {
      const common = { addressable: true }
      yield* equal<ReadonlyArray<object>>(yield* fs.list("d"), [
        { ...common, name: "f", path: "d/f", kind: "file", isFile: true, isDirectory: false, sizeBytes: 2 },
        { ...common, name: "sub", path: "d/sub", kind: "directory", isFile: false, isDirectory: true, sizeBytes: 0 }
      ])
    }
  ),
  service("S0-29", { d: directory }).answers("the listing of an empty directory is empty", (fs) => fs.list("d"), []),
  service("C-18", { "\u{1f600}": "", "\uffee": "", z: "", "a-b": "", a: "", "a.b": "" }).answers(
    "a listing is in the order of code points",
    (fs) => Effect.map(fs.list(), names),
    ["a", "a-b", "a.b", "z", "\uffee", "\u{1f600}"]
  ),
  service("C-17", exampleTree).refuses("a listing of a missing path is NotFound", (fs) => fs.list("missing"), "NotFound"),
  service("C-17", exampleTree).refuses("a listing of a file is NotADirectory", (fs) => fs.list("file"), "NotADirectory"),
  service("semantics: -", exampleTree).refuses("a listing below a file is NotFound", (fs) => fs.list("file/x"), "NotFound"),
  service("C-22", { "d/1": "", "d/2": "", "d/3": "" }).law(
    "a listing of more than maxListEntries entries is LimitExceeded",
    function* (fs) {
      const expected = { limit: "maxListEntries", allowed: 2, actual: 3 }
      yield* fails(withLimits({ maxListEntries: 2 })(fs.list("d")), "LimitExceeded", expected)
      yield* equal((yield* withLimits({ maxListEntries: 3 })(fs.list("d"))).length, 3)
    }
  ),

  watches.refuses("a watch of a missing path is NotFound", (fs) => collect(fs.watch("missing")), "NotFound"),
  watches.refuses("a watch of a file is NotADirectory", (fs) => collect(fs.watch("file")), "NotADirectory"),
  watches.refuses("a watch of an invalid path is InvalidPath", (fs) => collect(fs.watch("../x")), "InvalidPath"),
  lawsWithoutWatch("architecture: abilities", exampleTree).refuses(
    "watch is Unsupported without the capability",
    (fs) => collect(fs.watch("dir")),
    "Unsupported"
  )
]
