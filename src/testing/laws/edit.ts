import * as Effect from "effect/Effect"
import { plantFiles, lawForms, expectTree } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { directory } from "../Files.ts"
import type { Law } from "../Law.ts"
import { toBytes, encodeUtf8, hashOfAbc } from "../operations.ts"
import type { Edit } from "../../filesystem/Filesystem.ts"

const writing = lawForms("service", "write")

const mark = toBytes(0xef, 0xbb, 0xbf)

const utf16 = (text: string, littleEndian: boolean): Uint8Array => {
  const out = new Uint8Array(2 + text.length * 2)
  const view = new DataView(out.buffer)
  view.setUint16(0, 0xfeff, littleEndian)
  for (let i = 0; i < text.length; i++) view.setUint16(2 + i * 2, text.charCodeAt(i), littleEndian)
  return out
}

interface Row {
  readonly what: string
  readonly before: string | Uint8Array
  readonly edits: Edit | ReadonlyArray<Edit>
  readonly after: string | Uint8Array
  readonly replacements: number
}

const rows: ReadonlyArray<Row> = [
  {
    what: "an edit replaces its unique match",
    before: "one two three",
    edits: { oldText: "two", newText: "2" },
    after: "one 2 three",
    replacements: 1
  },
  {
    what: "an edit with empty newText deletes its match",
    before: "one two",
    edits: { oldText: " two", newText: "" },
    after: "one",
    replacements: 1
  },
  {
    what: "an edit with match first replaces only the first match",
    before: "a a a",
    edits: { oldText: "a", newText: "b", match: "first" },
    after: "b a a",
    replacements: 1
  },
  {
    what: "an edit with match all replaces all matches",
    before: "a a a",
    edits: { oldText: "a", newText: "b", match: "all" },
    after: "b b b",
    replacements: 3
  },
  {
    what: "a match of an edit begins after the end of the previous match",
    before: "aaa",
    edits: { oldText: "aa", newText: "b", match: "all" },
    after: "ba",
    replacements: 1
  },
  {
    what: "an edit does not match the text that it has inserted",
    before: "a",
    edits: { oldText: "a", newText: "aa", match: "all" },
    after: "aa",
    replacements: 1
  },
  {
    what: "each of several edits matches the original text",
    before: "a b",
    edits: [
      { oldText: "a", newText: "b" },
      { oldText: "b", newText: "a" }
    ],
    after: "b a",
    replacements: 2
  },
  {
    what: "several edits may be given in any order",
    before: "one two three",
    edits: [
      { oldText: "three", newText: "3" },
      { oldText: "one", newText: "1" }
    ],
    after: "1 two 3",
    replacements: 2
  },
  {
    what: "adjacent edits do not overlap",
    before: "abcd",
    edits: [
      { oldText: "ab", newText: "1" },
      { oldText: "cd", newText: "2" }
    ],
    after: "12",
    replacements: 2
  },
  {
    what: "an edit with LF matches CRLF and writes CRLF back",
    before: "a\r\nb\r\nc\r\n",
    edits: { oldText: "a\nb", newText: "x\ny\nz" },
    after: "x\r\ny\r\nz\r\nc\r\n",
    replacements: 1
  },
  {
    what: "an edit keeps the line endings outside its match",
    before: "a\nb\r\nc\rd\n\r\n",
    edits: { oldText: "c", newText: "C" },
    after: "a\nb\r\nC\rd\n\r\n",
    replacements: 1
  },
  {
    what: "an edit adds no newline at the end of the file",
    before: "a\nb",
    edits: { oldText: "a\n", newText: "A\n" },
    after: "A\nb",
    replacements: 1
  },
  {
    what: "an edit at the start of a file keeps the byte order mark",
    before: toBytes(...mark, ...encodeUtf8("abc")),
    edits: { oldText: "a", newText: "x" },
    after: toBytes(...mark, ...encodeUtf8("xbc")),
    replacements: 1
  },
  {
    what: "an edit of UTF-16 little endian keeps the encoding",
    before: utf16("one é\r\ntwo", true),
    edits: { oldText: "é\ntwo", newText: "😀\n2" },
    after: utf16("one 😀\r\n2", true),
    replacements: 1
  },
  {
    what: "an edit of UTF-16 big endian keeps the encoding",
    before: utf16("one two", false),
    edits: { oldText: "two", newText: "2" },
    after: utf16("one 2", false),
    replacements: 1
  },
  {
    what: "oldText of an edit is literal text, not a regular expression",
    before: "a.c abc $&",
    edits: [
      { oldText: "a.c", newText: "$&" },
      { oldText: " $&", newText: "" }
    ],
    after: "$& abc",
    replacements: 2
  },
  {
    what: "an edit can change text after line 2,000",
    before: `${"x\n".repeat(2500)}here`,
    edits: { oldText: "here", newText: "there" },
    after: `${"x\n".repeat(2500)}there`,
    replacements: 1
  }
]

export const editLaws: ReadonlyArray<Law> = [
  ...rows.map(({ what, before, edits, after, replacements }) =>
    writing("C-34", { a: before }).changes(
      what,
      (fs) => fs.edit("a", edits),
      { a: after },
      { replacements, path: "a" as never }
    )
  ),
  writing("C-34", { a: "text" }).refuses(
    "an edit without a match is InvalidArgument",
    (fs) => fs.edit("a", { oldText: "none", newText: "y" }),
    "InvalidArgument"
  ),
  ...(["first", "all"] as const).map((match) =>
    writing("C-34", { a: "text" }).refuses(
      `an edit without a match is InvalidArgument with match ${match}`,
      (fs) => fs.edit("a", { oldText: "none", newText: "y", match }),
      "InvalidArgument"
    )
  ),
  writing("C-34").law(
    "an edit with several matches is InvalidArgument with the number and the lines of the matches",
    function* (fs) {
      const content = `${"\n".repeat(10)}here\n${"\n".repeat(11)}here\n`
      yield* plantFiles(fs, { a: content })
      const { message } = yield* fails(fs.edit("a", { oldText: "here", newText: "there" }), "InvalidArgument")
      yield* holds(
        /\b2\b/.test(message) && /\b11\b/.test(message) && /\b23\b/.test(message),
        "a message with 2, 11 and 23",
        message
      )
      yield* expectTree(fs, { a: content })
    }
  ),
  ...(
    [
      ["white space", "  if (x) {\n", "    if (x) {\n", /white ?space|indent|spaces/i],
      ["case", "Hello World\n", "hello world\n", /case/i],
      ["line endings", "a\nb\n", "a\r\nb\r\n", /line (ending|break|end)|\bCR\b|\\r/i]
    ] as const
  ).map(([why, content, oldText, pattern]) =>
    writing("C-34", { a: `first\n${content}last\n` }).law(
      `the error of an edit names a line that differs from oldText only in ${why}`,
      function* (fs) {
        const { message } = yield* fails(fs.edit("a", { oldText, newText: "x" }), "InvalidArgument")
        yield* holds(pattern.test(message) && /\b2\b/.test(message), `a message about ${why} in line 2`, message)
      }
    )
  ),
  writing("C-34", { a: "one two" }).refuses(
    "no edit is applied if one of several edits fails",
    (fs) =>
      fs.edit("a", [
        { oldText: "one", newText: "1" },
        { oldText: "three", newText: "3" }
      ]),
    "InvalidArgument"
  ),
  writing("C-34", { a: "abcd" }).refuses(
    "edits that overlap are InvalidArgument",
    (fs) =>
      fs.edit("a", [
        { oldText: "abc", newText: "1" },
        { oldText: "cd", newText: "2" }
      ]),
    "InvalidArgument"
  ),
  writing("C-34", { a: "abc" }).refuses(
    "empty oldText is InvalidArgument",
    (fs) => fs.edit("a", { oldText: "", newText: "x" }),
    "InvalidArgument"
  ),
  writing("semantics: -", { a: "abc" }).refuses(
    "a lone surrogate in newText is InvalidArgument",
    (fs) => fs.edit("a", { oldText: "a", newText: "\ud800" }),
    "InvalidArgument"
  ),
  writing("C-34", { a: toBytes(0x61, 0xe9, 0x62) }).refuses(
    "an edit of a file that is neither UTF-8 nor UTF-16 is NotText",
    (fs) => fs.edit("a", { oldText: "a", newText: "b" }),
    "NotText",
    { offset: 1 }
  ),
  writing("S0-19").refuses(
    "edit of a missing path is NotFound",
    (fs) => fs.edit("a", { oldText: "a", newText: "b" }),
    "NotFound"
  ),
  writing("S0-20", { d: directory }).refuses(
    "edit of a directory is NotAFile",
    (fs) => fs.edit("d", { oldText: "a", newText: "b" }),
    "NotAFile"
  ),
  writing("semantics: -", { f: "x" }).refuses(
    "edit below a file is NotFound",
    (fs) => fs.edit("f/x", { oldText: "a", newText: "b" }),
    "NotFound"
  ),
  writing("C-34", { a: "one two" }).law(
    "a dry run of an edit returns the diff of the edit, and changes nothing",
    function* (fs) {
      const dry = yield* fs.edit("a", { oldText: "two", newText: "2" }, { dryRun: true })
      yield* has(dry, { replacements: 1 })
      yield* expectTree(fs, { a: "one two" })
      yield* equal(dry.diff, (yield* fs.edit("a", { oldText: "two", newText: "2" })).diff)
    }
  ),
  writing("C-34", { a: "one" }).law("a dry run fails with the error of the edit", function* (fs) {
    yield* fails(fs.edit("a", { oldText: "two", newText: "2" }, { dryRun: true }), "InvalidArgument")
  }),
  writing("api: EditResult", { a: "1\n2\n3\n4\n5\n6\n7\n8\n9\n" }).law(
    "the diff of an edit is unified, with three lines of context",
    function* (fs) {
      const { diff } = yield* fs.edit("a", { oldText: "5", newText: "five" })
      const body = diff.slice(diff.indexOf("@@")).trimEnd().split("\n")
      yield* equal(body[0]?.replace(/@@[^@]*$/, "@@"), "@@ -2,7 +2,7 @@")
      yield* equal(body.slice(1), [" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"])
    }
  ),
  writing("C-50", { a: "abd" }).law("edit returns the new version with the option version", function* (fs) {
    yield* has(yield* fs.edit("a", { oldText: "d", newText: "c" }, { version: true }), {
      version: hashOfAbc
    })
  }),
  writing("S0-96", { a: "1" }).law("an edit applies to the result of the previous edit", function* (fs) {
    for (let i = 1; i < 5; i++) yield* Effect.asVoid(fs.edit("a", { oldText: `${i}`, newText: `${i + 1}` }))
    yield* expectTree(fs, { a: "5" })
  })
]
