import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Algebra, GrepOptions } from "../../filesystem/Filesystem.ts"
import type { GrepMatch } from "../../model/Entry.ts"
import { lawForms, withFaults, withLimits } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import type { Files } from "../Files.ts"
import type { Law } from "../Law.ts"
import { toBytes, collect, encodeUtf8 } from "../operations.ts"

const service = lawForms("service")

const formatMatch = ({ path, lineNumber, lineContent, matchStart, matchEnd }: GrepMatch): string =>
  `${path}:${lineNumber}:${lineContent.slice(matchStart, matchEnd)}`

const grepMatches = (pattern: string | RegExp, options?: GrepOptions) => (fs: Algebra) =>
  Effect.map(fs.grep(pattern, options), ({ matches }) => matches.map(formatMatch))

interface Row {
  readonly what: string
  readonly text: string | Uint8Array
  readonly pattern: string | RegExp
  readonly options?: GrepOptions
  readonly expected: ReadonlyArray<string>
}

const rows: ReadonlyArray<Row> = [
  { what: "a line matches once, at its first match", text: "aXbX\nX", pattern: "X", expected: ["1:X", "2:X"] },
  { what: "^ and $ match the start and the end of a line", text: "ab\nba\nb", pattern: "^b$", expected: ["3:b"] },
  { what: "$ matches before CRLF", text: "a\r\nb\r\n", pattern: "[ab]$", expected: ["1:a", "2:b"] },
  { what: "a lone CR does not end a line", text: "a\rb", pattern: "^b", expected: [] },
  {
    what: ". matches any character of a line, including CR and U+2028",
    text: "a\rb a\u2028b",
    pattern: "^a.b a.b$",
    expected: ["1:a\rb a\u2028b"]
  },
  { what: "a match does not cross lines", text: "a\nb", pattern: "a\\sb", expected: [] },
  { what: "an empty line can match", text: "a\n\nb\n", pattern: "^$", expected: ["2:"] },
  { what: "patterns are case-sensitive", text: "a\nA", pattern: "A", expected: ["2:A"] },
  {
    what: "the option ignoreCase ignores case",
    text: "a\nA",
    pattern: "A",
    options: { ignoreCase: true },
    expected: ["1:a", "2:A"]
  },
  { what: "(?i) at the start ignores case", text: "a\nA", pattern: "(?i)A", expected: ["1:a", "2:A"] },
  { what: "the flag i of a RegExp ignores case", text: "a\nA", pattern: /A/i, expected: ["1:a", "2:A"] },
  { what: "the flags g and y of a RegExp have no effect", text: "xa\nxa", pattern: /a/gy, expected: ["1:a", "2:a"] },
  {
    what: "named groups in the syntax of Python are supported",
    text: "abab\nabba",
    pattern: "(?P<x>ab)(?P=x)",
    expected: ["1:abab"]
  },
  { what: "Python's \\A and \\Z are supported", text: "ab\nb", pattern: "\\Ab\\Z", expected: ["2:b"] },
  { what: "Unicode properties of characters are supported", text: "a\né", pattern: "^\\p{Ll}$", expected: ["1:a", "2:é"] },
  {
    what: "a backslash before a punctuation character matches the character",
    text: "-\ny",
    pattern: "[\\-]",
    expected: ["1:-"]
  },
  {
    what: "the option literal matches the exact text",
    text: "a.c\nabc",
    pattern: "a.c",
    options: { literal: true },
    expected: ["1:a.c"]
  },
  {
    what: "the options literal and ignoreCase can be combined",
    text: "A.C\nabc",
    pattern: "a.c",
    options: { literal: true, ignoreCase: true },
    expected: ["1:A.C"]
  },
  {
    what: "the option wholeWord matches only complete words",
    text: "cat\nconcat cat\ncats",
    pattern: "cat",
    options: { wholeWord: true },
    expected: ["1:cat", "2:cat"]
  },
  {
    what: "the option wholeWord applies to each alternative",
    text: "ab\nx",
    pattern: "a|x",
    options: { wholeWord: true },
    expected: ["2:x"]
  },
  {
    what: "the byte order mark is not part of the first line",
    text: toBytes(0xef, 0xbb, 0xbf, ...encodeUtf8("x\n")),
    pattern: "^x",
    expected: ["1:x"]
  },
  { what: "a last line without a terminator can match", text: "a\nb", pattern: "b", expected: ["2:b"] },
  { what: "a terminator at the end does not begin another line", text: "a\n", pattern: "^", expected: ["1:"] }
]

const severalFiles: Files = { "b/x.ts": "hit\nno\nhit", "a.ts": "no\nhit", "b-c.ts": "hit", "d.txt": "hit" }

const badPatterns: ReadonlyArray<readonly [what: string, pattern: string]> = [
  ["that is malformed", "(a"],
  ["with a class that does not end", "[a"],
  ["of 1,001 characters", "a".repeat(1001)]
]

const globbing = service("C-19", severalFiles)

const choosing = service("S0-39", severalFiles)

export const grepLaws: ReadonlyArray<Law> = [
  ...rows.map(({ what, text, pattern, options, expected }) =>
    service("C-20, C-21", { f: text }).answers(
      `in grep, ${what}`,
      grepMatches(pattern, options),
      expected.map((line) => `f:${line}`)
    )
  ),
  service("api: GrepOptions", { f: "x\na\nb\nc" }).law(
    "a match of grep across lines has the number of its first line",
    function* (fs) {
      const { matches } = yield* fs.grep("a\\nb", { multiline: true })
      yield* equal(
        matches.map(({ lineNumber }) => lineNumber),
        [2]
      )
      yield* equal(yield* grepMatches("a\\nb")(fs), [])
    }
  ),
  service("C-21", { "d/f": "first\n😀é hit, hit\r\n" }).answers(
    "a match of grep has its line, and columns in UTF-16 units",
    (fs) => Effect.map(fs.grep("hit"), ({ matches }) => matches),
    [{ path: "d/f" as never, lineNumber: 2, lineContent: "😀é hit, hit", matchStart: 4, matchEnd: 7 }]
  ),
  service("C-18, C-21", severalFiles).answers("grep returns matches in the order of paths and lines", grepMatches("hit"), [
    "a.ts:2:hit",
    "b-c.ts:1:hit",
    "b/x.ts:1:hit",
    "b/x.ts:3:hit",
    "d.txt:1:hit"
  ]),
  choosing.answers("grep searches only the files that match the glob", grepMatches("hit", { glob: "*.txt" }), ["d.txt:1:hit"]),
  choosing.answers(
    "grep searches the files that match any of several globs",
    grepMatches("hit", { glob: ["*.txt", "/a.ts"] }),
    ["a.ts:2:hit", "d.txt:1:hit"]
  ),
  service("S0-38", severalFiles).answers("grep searches only below the base", grepMatches("hit", { path: "b" }), [
    "b/x.ts:1:hit",
    "b/x.ts:3:hit"
  ]),
  choosing.answers("the glob of a grep is relative to the base", grepMatches("hit", { path: "b", glob: "/x.ts" }), [
    "b/x.ts:1:hit",
    "b/x.ts:3:hit"
  ]),
  service("C-21", severalFiles).answers(
    "grep with a file as its base searches this file",
    grepMatches("hit", { path: "a.ts" }),
    ["a.ts:2:hit"]
  ),
  ...["missing", "missing/x", "a.ts/x"].flatMap((path) => [
    globbing.refuses(`grep with the missing base ${path} is NotFound`, (fs) => fs.grep("hit", { path }), "NotFound", {
      path
    }),
    globbing.refuses(
      `grepStream with the missing base ${path} is NotFound`,
      (fs) => collect(fs.grepStream("hit", { path, maxMatches: 0 })),
      "NotFound",
      { path }
    )
  ]),
  service("C-19", { "source/app/main.ts": "hit", "sourc.txt": "hit" }).law(
    "grep suggests files and directories with a name like the missing base",
    function* (fs) {
      yield* fails(fs.grep("hit", { path: "sourc.tx" }), "NotFound", { nearest: ["sourc.txt"] })
      yield* fails(fs.grep("hit", { path: "sorce/app/main.ts" }), "NotFound", { nearest: ["source/app/main.ts"] })
      yield* fails(collect(fs.grepStream("hit", { path: "source/ap" })), "NotFound", { nearest: ["source/app"] })
      yield* fails(fs.grep("hit", { path: "unlike" }), "NotFound", { nearest: undefined })
    }
  ),
  globbing.answers("grep does not search excluded files", grepMatches("hit", { exclude: ["b", "*.txt"] }), [
    "a.ts:2:hit",
    "b-c.ts:1:hit"
  ]),
  service("api: GrepResult", { a: "hit\nhit", b: "no", c: "hit" }).answers(
    "a grep counts files searched and matched",
    (fs) => fs.grep("hit"),
    { filesSearched: 3, filesMatched: 2, truncated: false, next: undefined }
  ),
  ...badPatterns.map(([what, pattern]) =>
    service("C-20", severalFiles).refuses(
      `a regular expression ${what} is InvalidArgument`,
      (fs) => fs.grep(pattern),
      "InvalidArgument",
      { argument: "pattern" }
    )
  ),
  service("C-20", severalFiles).refuses(
    "a RegExp with the option literal is InvalidArgument",
    (fs) => fs.grep(/a/, { literal: true }),
    "InvalidArgument"
  ),
  service("C-21", severalFiles).refuses(
    "grep refuses a negative maximum",
    (fs) => fs.grep("x", { maxMatches: -1 }),
    "InvalidArgument",
    { argument: "maxMatches" }
  ),
  globbing.refuses("an invalid glob in grep is InvalidArgument", (fs) => fs.grep("x", { glob: "../*" }), "InvalidArgument"),
  service("C-21", severalFiles).answers(
    "grep with a maximum of 0 returns no matches",
    grepMatches("hit", { maxMatches: 0 }),
    []
  ),
  service("C-20", severalFiles).law(
    "a grep reports truncation, and the next page continues after the last match",
    function* (fs) {
      const seen: Array<string> = []
      let after: string | undefined
      for (let page = 0; page < 10; page++) {
        const result = yield* fs.grep("hit", { maxMatches: 2, after })
        seen.push(...result.matches.map(formatMatch))
        yield* equal(result.truncated, result.next !== undefined, "truncated is true only if next is set")
        after = result.next
        if (after === undefined) break
      }
      yield* equal(seen, ["a.ts:2:hit", "b-c.ts:1:hit", "b/x.ts:1:hit", "b/x.ts:3:hit", "d.txt:1:hit"])
    }
  ),
  service("C-20", { f: "x\n".repeat(1001) }).law(
    "grep returns 1,000 matches by default, and grepStream returns all",
    function* (fs) {
      const result = yield* fs.grep("x")
      yield* equal([result.matches.length, result.truncated], [1000, true])
      yield* equal((yield* fs.grep("x", { after: result.next })).matches.map(formatMatch), ["f:1001:x"])
      yield* equal((yield* collect(fs.grepStream("x"))).length, 1001)
    }
  ),
  service("C-22", severalFiles).law("the limit maxGrepMatches applies to grep", function* (fs) {
    yield* equal((yield* withLimits({ maxGrepMatches: 2 })(fs.grep("hit"))).matches.length, 2)
  }),
  service("C-20", { ...severalFiles, ".gitignore": "/b/\n", long: `h.t\nHIT\n${"x".repeat(200)} hits` }).law(
    "grepStream finds the same matches as grep",
    function* (fs) {
      const { next } = yield* fs.grep("hit", { maxMatches: 2 })
      const cases: ReadonlyArray<readonly [pattern: string, options: GrepOptions]> = [
        ["hit", {}],
        ["hit", { path: "b" }],
        ["hit", { glob: "*.ts" }],
        ["hit", { exclude: "*.ts" }],
        ["hit", { gitignore: true }],
        ["hit", { context: 1 }],
        ["hit", { after: next }],
        ["hit", { maxMatches: 2 }],
        ["hit", { ignoreCase: true }],
        ["hit", { wholeWord: true }],
        ["hit", { maxFileSize: 100 }],
        ["h.t", { literal: true }],
        ["hit\\nno", { multiline: true }]
      ]
      for (const [pattern, options] of cases) {
        const { matches } = yield* fs.grep(pattern, options)
        yield* equal(yield* collect(fs.grepStream(pattern, options)), matches, `${pattern} ${JSON.stringify(options)}`)
      }
    }
  ),
  service("api: GrepMatch", { f: "1\n2\nhit\n4\n5\r\n6" }).law(
    "grep returns context lines only with the option context",
    function* (fs) {
      yield* equal<object | undefined>((yield* fs.grep("hit", { context: 1 })).matches[0], {
        path: "f",
        lineNumber: 3,
        lineContent: "hit",
        matchStart: 0,
        matchEnd: 3,
        before: ["2"],
        after: ["4"]
      })
      const uneven = (yield* fs.grep("hit", { context: [3, 2] })).matches[0]
      yield* equal<unknown>(
        [uneven?.before, uneven?.after],
        [
          ["1", "2"],
          ["4", "5"]
        ]
      )
      const none = (yield* fs.grep("hit")).matches[0]
      yield* equal<unknown>([none?.before, none?.after], [undefined, undefined])
    }
  ),

  service("C-21", {
    early: encodeUtf8("hit\n".padEnd(8191, "x") + "\0"),
    late: encodeUtf8("hit\n".padEnd(8192, "x") + "\0")
  }).law("grep skips a file as binary if its first 8,192 bytes contain NUL", function* (fs) {
    const result = yield* fs.grep("hit")
    yield* equal(result.matches.map(formatMatch), ["late:1:hit"])
    yield* has(result.skipped, { binary: 1 })
  }),
  service("C-21", { hit: toBytes(...encodeUtf8("hit\n"), 0xff), none: toBytes(...encodeUtf8("none\n"), 0xff) }).law(
    "grep counts a file that is not UTF-8 as binary only if the file has a match",
    function* (fs) {
      const result = yield* fs.grep("hit")
      yield* equal(result.matches, [])
      yield* has(result.skipped, { binary: 1 })
    }
  ),
  service("api: Skipped", { big: "hit hit", small: "hit" }).law("grep counts skipped files above maxFileSize", function* (fs) {
    const skipped: Array<string> = []
    const result = yield* fs.grep("hit", { maxFileSize: 6, onSkip: (path, why) => skipped.push(`${why} ${path}`) })
    yield* equal(result.matches.map(formatMatch), ["small:1:hit"])
    yield* has(result.skipped, { tooLarge: 1 })
    yield* equal(skipped, ["tooLarge big"])
  }),
  service("C-21", { a: "hit", b: "hit", c: "hit" }).law(
    "a grep reports an unreadable file and searches all other files",
    function* (fs) {
      const broken = yield* withFaults(fs, { operation: "Open", path: "b", fault: { _tag: "AccessDenied", why: "permission" } })
      const skipped: Array<string> = []
      const result = yield* broken.grep("hit", { onSkip: (path, why) => skipped.push(`${why} ${path}`) })
      yield* equal(result.matches.map(formatMatch), ["a:1:hit", "c:1:hit"])
      yield* has(result.skipped, { unreadable: 1, unreadablePaths: ["b" as never] })
      yield* equal(skipped, ["unreadable b"])
    }
  ),
  service("C-20", { "fine.txt": "aaa\n", "hostile.txt": `${"a".repeat(40)}!\n` }).law(
    "a grep with a slow pattern fails with a Timeout that names the file",
    function* (fs) {
      const error = yield* fails(withLimits({ patternBudget: 200 })(fs.grep("^(a+)+$")), "Timeout")
      yield* holds(error.message.includes("hostile.txt"), "a message that names hostile.txt", error.message)
    }
  ),
  service("C-20", { "hostile.txt": `${"a".repeat(40)}!\n`, other: "x" }).law(
    "a grep with a slow pattern does not block other calls",
    function* (fs) {
      const grep = yield* Effect.forkChild(withLimits({ patternBudget: 1000 })(fs.grep("^(a+)+$")), { startImmediately: true })
      yield* equal(yield* fs.readString("other"), "x")
      yield* holds(grep.pollUnsafe() === undefined, "a read that ends while the search is still at work")
      yield* Fiber.interrupt(grep)
    }
  ),
  service("C-20", { "hostile.txt": `${"a".repeat(40)}!\n` }).law(
    "an interrupted grep with a slow pattern ends",
    function* (fs) {
      const grep = yield* Effect.forkChild(withLimits({ patternBudget: 3_600_000 })(fs.grep("^(a+)+$")), {
        startImmediately: true
      })
      yield* fs.readString("hostile.txt")
      yield* Fiber.interrupt(grep)
      yield* equal(yield* grepMatches("!$", { path: "hostile.txt" })(fs), ["hostile.txt:1:!"])
    }
  ),
  service("C-20", { f: `${"a".repeat(40)}!\nhit\n` }).law(
    "greps work after a grep with a slow pattern has failed",
    function* (fs) {
      yield* fails(withLimits({ patternBudget: 200 })(fs.grep("^(a+)+$")), "Timeout")
      yield* equal(yield* grepMatches("hit")(fs), ["f:2:hit"])
    }
  )
]
