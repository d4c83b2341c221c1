import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { applyEditsAtOnce, checkEdits, type Edit, type Edited } from "../../src/engine/edit.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { maxUnitsPerStep } from "../../src/runtime/units.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const anyOf = <A extends string>(values: ReadonlyArray<A>) => Arbitrary.schema(Schema.Literals(values))
const textOf = (values: ReadonlyArray<string>) => Arbitrary.map(Arbitrary.array(anyOf(values)), (parts) => parts.join(""))

const edited = (content: Uint8Array, edits: ReadonlyArray<Edit>, path = "a.txt"): Edited => {
  const result = applyEditsAtOnce(content, edits, path)
  if ("_tag" in result) assert.fail(JSON.stringify(result))
  return result
}
const once = (text: string, oldText: string, newText: string, match?: Edit["match"]): string =>
  Buffer.from(edited(utf8(text), [{ oldText, newText, match }]).bytes).toString()

const refused = (content: string | Uint8Array, edits: ReadonlyArray<Edit>): Fault => {
  const result = applyEditsAtOnce(typeof content === "string" ? utf8(content) : content, edits, "a.txt")
  if (!("_tag" in result)) assert.fail("it was edited")
  return result
}
const why = (text: string, oldText: string, match?: Edit["match"]): string => {
  const fault = refused(text, [{ oldText, newText: "", match }])
  assert.deepInclude(fault, { _tag: "InvalidArgument", argument: "oldText" })
  return String(fault["detail"])
}

const encodings = {
  "utf-8": (text: string) => Buffer.from(text),
  "utf-8 with its mark": (text: string) => Buffer.from(text),
  "utf-16le": (text: string) => Buffer.from(text, "utf16le"),
  "utf-16be": (text: string) => Buffer.from(text, "utf16le").swap16()
}
const encodingNames = Object.keys(encodings) as Array<keyof typeof encodings>

describe("an edit", () => {
  const pieces = ["a", "é", "漢", "😀", " ", "\n", "\r\n", "\r", "\t", "\0", "\x7f", "\x80", "\u07ff", "\u0800", "\uffff"]
  it.prop(
    "changes nothing but its matches, byte for byte, in every encoding",
    [anyOf(encodingNames), Arbitrary.array(textOf(pieces)), textOf(["", "b", "ö", "💡", "\r", "\r\n"])],
    ([name, parts, newText]) => {
      const encode = encodings[name]
      // A NUL after the byte order mark of UTF-16LE would make it the mark of UTF-32.
      const mark = name === "utf-8" ? "" : "\uFEFF."
      const rest = parts.length === 0 ? [""] : parts
      const between = (put: string) => encode(mark + rest.join(put))
      if (rest.length === 1) return
      const result = edited(between("«old»"), [{ oldText: "«old»", newText, match: "all" }])
      assert.deepStrictEqual(Buffer.from(result.bytes), between(newText))
      assert.strictEqual(result.replacements, rest.length - 1)
      assert.strictEqual(result.inserted, [...newText].length * (rest.length - 1))
    }
  )

  it("does not change the array that it was given", () => {
    const content = utf8("abc")
    edited(content, [{ oldText: "b", newText: "x" }])
    assert.deepStrictEqual(content, utf8("abc"))
  })

  it("replaces text beyond line 2,000", () => {
    const text = "line\n".repeat(5000)
    assert.strictEqual(once(`${text}here\n`, "here", "there"), `${text}there\n`)
  })

  it("replaces matches from the left, without overlap", () => {
    assert.strictEqual(once("aaa", "aa", "b", "all"), "ba")
    assert.strictEqual(once("aaa", "aa", "b"), "ba")
    assert.strictEqual(once("aaaa", "aa", "b", "all"), "bb")
  })

  it("replaces the first match, every match, or the only match, as `match` says", () => {
    assert.strictEqual(once("x y x", "x", "z", "first"), "z y x")
    assert.strictEqual(once("x y x", "x", "z", "all"), "z y z")
    assert.strictEqual(once("x y x", "y", "z", "unique"), "x z x")
    assert.strictEqual(once("x y x", "y", "z"), "x z x")
  })

  it("takes the old and the new text literally", () => {
    assert.strictEqual(once("a.*b a+b", "a.*b", "$& $1 \\n"), "$& $1 \\n a+b")
  })

  it("may replace text by the empty text or by the same text", () => {
    assert.strictEqual(once("abc", "b", ""), "ac")
    assert.strictEqual(once("abc", "abc", ""), "")
    assert.deepInclude(edited(utf8("abc\n"), [{ oldText: "b", newText: "b" }]), { replacements: 1, diff: "" })
  })

  it("counts inserted code points, with the CRs that it adds", () => {
    assert.strictEqual(edited(utf8("a a"), [{ oldText: "a", newText: "😀é", match: "all" }]).inserted, 4)
    assert.strictEqual(edited(utf8("a\r\nb"), [{ oldText: "a\nb", newText: "c\nd" }]).inserted, 4)
  })
})

describe("a byte order mark", () => {
  it("is kept, and text is matched after it", () => {
    assert.strictEqual(once("\uFEFFab\n", "ab", "c"), "\uFEFFc\n")
    assert.strictEqual(once("\uFEFFab\n", "ab\n", ""), "\uFEFF")
  })

  it("is removed or added only by an edit that contains it", () => {
    assert.strictEqual(once("\uFEFFab\n", "\uFEFFab", "c"), "c\n")
    assert.strictEqual(once("ab\n", "ab", "\uFEFFab"), "\uFEFFab\n")
  })

  it.each([
    ["content that is not UTF-8", "61 FF", "utf-8", 1],
    ["UTF-16 without a mark", "61 00 E9 00", "utf-8", 2],
    ["UTF-16 that ends within a character", "FF FE 61 00 62", "utf-16le", 4],
    ["UTF-16 with a lone surrogate", "FE FF 00 61 DC 00", "utf-16be", 4],
    ["UTF-32", "FF FE 00 00 61 00 00 00", "utf-8", 0]
  ])("%s is refused with NotText", (_, hex, encoding, offset) => {
    const content = Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"))
    assert.deepStrictEqual(refused(content, [{ oldText: "a", newText: "b" }]), { _tag: "NotText", encoding, offset })
  })
})

describe("line endings:", () => {
  const cases: ReadonlyArray<readonly [claim: string, text: string, oldText: string, newText: string, expected: string]> = [
    ["an LF matches CRLF and is written as CRLF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"],
    ["an LF at the end of the old text matches a whole CRLF", "a\r\nb\r\n", "a\n", "", "b\r\n"],
    ["an LF at the beginning of the old text matches a whole CRLF", "a\r\nb", "\nb", "\nx\nb", "a\r\nx\r\nb"],
    ["a single LF matches a whole CRLF", "a\r\nb", "\n", " ", "a b"],
    ["an LF between blank lines matches CRLF", "a\r\n\r\nb\r\n", "a\n\nb", "a\nb", "a\r\nb\r\n"],
    ["LF is written as LF in a file with LF", "a\nb\n", "a\nb", "x\ny\nz", "x\ny\nz\n"],
    ["an exact match is preferred to a match of other line endings", "a\r\nb\r\na\nb\n", "a\nb", "x\ny", "a\r\nb\r\nx\ny\n"],
    ["a CRLF in the old text makes the edit literal", "a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n"],
    ["a lone CR in the old text makes the edit literal", "a\rb\r\nc\r\n", "a\rb", "x\ny", "x\ny\r\nc\r\n"],
    ["a CRLF in the new text is written as CRLF", "a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n"],
    ["a CRLF in the new text is not written as CR CRLF", "a\r\nb\r\n", "a\nb", "x\r\ny\nz", "x\r\ny\r\nz\r\n"],
    ["a lone CR is content", "a\rb\r\nc\r\n", "b\nc", "x\ny", "a\rx\r\ny\r\n"],
    ["a CR before a CRLF is content", "a\r\r\nb", "\nb", "\nx", "a\r\r\nx"],
    ["lines that are added within a CRLF line end in CRLF", "a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n"],
    ["lines that are added within an LF line end in LF", "a\r\nb\nc\r\n", "b", "x\ny", "a\r\nx\ny\nc\r\n"],
    ["lines that are added in the last line end like the line before it", "a\nb\r\nc", "c", "x\ny", "a\nb\r\nx\r\ny"],
    ["lines that are added to a text without line endings end in LF", "a", "a", "x\ny", "x\ny"],
    [
      "unchanged lines keep their endings if endings differ",
      "a\nb\r\nc\nd",
      "a\nb\nc\nd",
      "a\nb\nx\nc\nd",
      "a\nb\r\nx\r\nc\nd"
    ],
    ["new lines get the ending of the first replaced line if endings differ", "a\r\nb\nc", "a\nb\nc", "x\ny\nz", "x\r\ny\r\nz"],
    ["a removed line is removed with its own ending if endings differ", "a\nb\r\nc\nd", "a\nb\nc\nd", "a\nc\nd", "a\nc\nd"]
  ]
  it.each(cases)("%s", (_, text, oldText, newText, expected) => {
    assert.strictEqual(once(text, oldText, newText), expected)
  })

  it("an edit of all matches finds lines of every ending and keeps each ending", () => {
    assert.strictEqual(once("a\r\nb\r\na\nb\n", "a\nb", "x\ny", "all"), "x\r\ny\r\nx\ny\n")
    assert.strictEqual(once("a,\r\na,\na,", ",", ";\n", "all"), "a;\r\n\r\na;\n\na;\n")
    assert.strictEqual(once("a\r\nb\nc\r\n", "\n", "\r\n", "all"), "a\r\nb\r\nc\r\n")
    assert.strictEqual(once("a\r\nb\nc\r\n", "\r\n", "\n", "all"), "a\nb\nc\n")
  })

  it("a CRLF after a CR anywhere in a long text does not move later matches", () => {
    for (let length = maxUnitsPerStep - 4; length <= maxUnitsPerStep + 2; length++) {
      const start = `${"x".repeat(length)}\r\r\n`
      assert.strictEqual(once(`${start}a\r\nb\r\nend`, "a\nb", "c\nd"), `${start}c\r\nd\r\nend`, String(length))
    }
  })

  it("a CRLF does not match an LF, and the error says so", () => {
    assert.match(why("one\ntwo\n", "one\r\ntwo\r\n"), /lines 1-2 .*line endings, LF in the file and CRLF in the edit/)
  })

  it.prop(
    "an edit with LF changes the same lines in a CRLF file as in an LF file, and writes CRLF",
    [textOf(["a", "b", "\n"]), textOf(["a", "b", "\n"]), textOf(["a", "x", "\n"])],
    ([text, oldText, newText]) => {
      if (oldText === "" || !text.includes("\n") || !text.includes(oldText)) return
      const crlf = (text: string) => text.replaceAll("\n", "\r\n")
      assert.strictEqual(once(crlf(text), oldText, newText, "all"), crlf(text.replaceAll(oldText, newText)))
    }
  )
})

describe("several edits", () => {
  it("all match the original text, in any order", () => {
    const edits: ReadonlyArray<Edit> = [
      { oldText: "two", newText: "one" },
      { oldText: "one", newText: "three" },
      { oldText: "x", newText: "y", match: "all" }
    ]
    for (const list of [edits, edits.toReversed()]) {
      const result = edited(utf8("x one x two x"), list)
      assert.strictEqual(Buffer.from(result.bytes).toString(), "y three y one y")
      assert.strictEqual(result.replacements, 5)
      assert.strictEqual(result.inserted, 11)
    }
  })

  it("may touch but not overlap", () => {
    const touching = [
      { oldText: "ab", newText: "1" },
      { oldText: "cd", newText: "2" }
    ]
    assert.strictEqual(Buffer.from(edited(utf8("abcd"), touching).bytes).toString(), "12")
    for (const oldText of ["bc", "abcd", "b", "ab"]) {
      const fault = refused("\nabcd", [touching[1]!, { oldText, newText: "" }, { oldText: "ab", newText: "" }])
      assert.deepInclude(fault, { _tag: "InvalidArgument", argument: "edits" })
      assert.match(String(fault["detail"]), /edits\[\d\] and edits\[\d\] overlap on line 2/)
    }
  })

  it("change nothing if one edit does not match, and the error names that edit", () => {
    const fault = refused("one two", [
      { oldText: "one", newText: "1" },
      { oldText: "three", newText: "3" }
    ])
    assert.deepInclude(fault, { _tag: "InvalidArgument", argument: "edits[1].oldText" })
  })

  it("do not match text that another edit inserts, and the error says so", () => {
    const fault = refused("one two", [
      { oldText: "one", newText: "three four" },
      { oldText: "three", newText: "3" }
    ])
    assert.match(String(fault["detail"]), /edits\[0\] would insert it/)
  })
})

describe("an edit that can never succeed fails with InvalidArgument:", () => {
  const good = { oldText: "a", newText: "b" }
  const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<Edit>]> = [
    ["no edits", "edits", []],
    ["an empty old text", "oldText", [{ oldText: "", newText: "b" }]],
    ["an empty old text in one of several edits", "edits[1].oldText", [good, { oldText: "", newText: "b" }]],
    ["a lone surrogate in the old text", "oldText", [{ oldText: "\uD800", newText: "b" }]],
    ["a lone surrogate in the new text", "newText", [{ oldText: "a", newText: "b\uDC00" }]],
    ["a number as a text", "newText", [{ oldText: "a", newText: 1 as never }]],
    ["an unknown value of match", "match", [{ ...good, match: "some" as never }]],
    ["null as an edit", "edits", [null as never]]
  ]
  it.each(cases)("%s", (_, argument, edits) => {
    assert.deepInclude(checkEdits(edits), { _tag: "InvalidArgument", argument })
    assert.deepStrictEqual(refused("a", edits), checkEdits(edits) as Fault)
  })

  it("but a valid edit passes the check", () => {
    assert.isUndefined(checkEdits([good, { oldText: "x", newText: "", match: "all" }]))
  })
})

describe("a limit", () => {
  it("on the inserted characters counts code points, and allows exactly its number", () => {
    const edits: ReadonlyArray<Edit> = [{ oldText: "a", newText: "😀".repeat(1000), match: "all" }]
    const content = utf8("a".repeat(100_000))
    assert.deepStrictEqual(applyEditsAtOnce(content, edits, "a", 99_999_999), {
      _tag: "LimitExceeded",
      limit: "maxFileSize",
      allowed: 99_999_999,
      actual: 100_000_000
    })
    assert.strictEqual((applyEditsAtOnce(utf8("ab"), edits, "a", 1000) as Edited).inserted, 1000)
  })

  it("on the length of a string is reported as LimitExceeded, not as a defect", () => {
    const edits: ReadonlyArray<Edit> = [{ oldText: "a", newText: "x".repeat(1_000_000), match: "all" }]
    assert.deepInclude(applyEditsAtOnce(utf8("a".repeat(1000)), edits, "a"), {
      _tag: "LimitExceeded",
      limit: "maxStringLength"
    })
  })
})

describe("the error of an ambiguous edit", () => {
  it("states the number of matches and their lines", () => {
    assert.match(why("x\ny\nx\n\nx = x\n", "x"), /occurs 4 times, on lines 1, 3 and 5;/)
    assert.match(why("x x\n", "x"), /occurs 2 times, on line 1;/)
    assert.match(why("a\r\nb\r\na\r\nb\r\n", "a\nb"), /occurs 2 times, on lines 1 and 3;/)
  })
  it("lists at most ten lines", () => {
    assert.match(
      why("x\n".repeat(500), "x"),
      /occurs 500 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and in 490 more places;/
    )
  })
})

describe("the error of an edit without a match describes the mismatch:", () => {
  const source = [
    'import x from "y"', // 1
    "",
    "function foo(a, b) {", // 3
    "\tif (a) {",
    "\t\treturn b  ", // 5
    "\t}",
    "  const label = “Hello — world”", // 7
    "\treturn a + b",
    "}"
  ].join("\n")
  const cases: ReadonlyArray<readonly [reason: string, oldText: string, expected: RegExp]> = [
    [
      "tabs instead of spaces",
      "    return a + b",
      /line 8 .*indentation, tabs against spaces.*"\\treturn a \+ b".*" {4}return a \+ b"/
    ],
    ["indentation", "\t\tif (a) {\n\t\t\treturn b  ", /lines 4-5 .*only in indentation: on line 4/],
    ["white space", "function foo(a,b) {", /line 3 .*only in white space.*foo\(a, b\).*foo\(a,b\)/],
    ["trailing blanks", "\t\treturn b\n\t}", /lines 5-6 .*only in trailing blanks: on line 5/],
    ["blank lines", 'import x from "y"\nfunction', /lines 1-3 .*only in blank lines/],
    ["case", "Function foo(a, b) {", /line 3 .*only in case/],
    ["case and white space", "function Foo( a, b ) {", /line 3 .*only in white space and case/],
    ["quotes and dashes", 'label = "Hello - world"', /line 7 .*look alike.*\\u201cHello \\u2014 world\\u201d/],
    [
      "one different line among equal lines",
      "\tif (a) {\n\t\treturn c\n\t}",
      /most similar .*lines 4-6, with 2 of its 3 lines: on line 5 .*return b.*return c/
    ],
    ["another word", "function foo(a, b, c) {", /most similar line is line 3/],
    [
      "line numbers of a listing",
      "   8 | \treturn a + b\n   9 | }",
      /begin with line numbers; without these it occurs on line 8/
    ],
    ["a missing newline at the end of the file", "a + b\n}\n", /ends on line 9 without a newline/],
    ["no similar text", "qwertz uiop", /the file has no similar text/],
    ["only white space", " \t \t ", /only white space/]
  ]
  it.each(cases)("%s", (_, oldText, expected) => {
    assert.match(why(source, oldText), /^it does not occur in the file/)
    assert.match(why(source, oldText), expected)
    for (const match of ["first", "all"] as const) assert.match(why(source, oldText, match), expected)
  })

  it("an empty file is reported as empty", () => {
    assert.match(why("", "a"), /empty/)
    assert.match(why("\uFEFF", "a"), /empty/)
  })

  it("several similar places are named", () => {
    assert.match(why("  x = 1\n y = 2\n  x = 1\n", "\tx = 1"), /line 1 .*indentation.*line 3/)
  })

  it("a large file is compared only around the likely place, and the error says so", () => {
    const text = `${"filler\n".repeat(300_000)}const needle = haystack(1)\n`
    assert.match(
      why(text, "const  needle = haystack(1)"),
      /line 300001 .*white space.*\(only compared: lines \d+-300002 of this large file\)/
    )
    const line = `${"ab ".repeat(1_000_000)}needle here`
    assert.match(why(line, "needle  here"), /line 1 .*white space.*needle here.*\(only compared: line 1 of this large file\)/)
  })

  it("a long text is compared around its first difference", () => {
    const lines = Array.from({ length: 1000 }, (_, i) => `line number ${i}`)
    const oldText = lines.slice(100, 900).join("\n").replace("number 650", "Number 650")
    assert.match(why(lines.join("\n"), oldText), /only in case: on line 651 .*\(only compared: lines \d+-\d+ of its 800\)/)
  })

  it("a long line is quoted only near its difference", () => {
    const long = `${"0123456789".repeat(100)} left ${"0123456789".repeat(100)}`
    const detail = why(long, long.replace("left", "Left"))
    assert.isBelow(detail.length, 500)
    assert.match(detail, /left.*Left/)
  })
})

/** Returns the content after the tool has applied the diff, or the output of the tool if it failed. */
const patched = (
  directory: string,
  tool: "git" | "patch",
  path: string,
  before: Uint8Array,
  diff: string
): Uint8Array | string => {
  const file = join(directory, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, before)
  writeFileSync(join(directory, "the.diff"), diff)
  const argv =
    tool === "git"
      ? ["apply", "--whitespace=nowarn", "the.diff"]
      : ["-p1", "--binary", "--no-backup-if-mismatch", "-i", "the.diff"]
  const env = {
    PATH: process.env["PATH"],
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CEILING_DIRECTORIES: tmpdir()
  }
  const { status, stderr, stdout } = spawnSync(tool, argv, { cwd: directory, encoding: "utf8", env })
  return status === 0 && !/fuzz|offset/.test(stdout) ? new Uint8Array(readFileSync(file)) : stdout + stderr
}
const hasPatch = spawnSync("patch", ["--version"]).status === 0
const tools = hasPatch ? (["git", "patch"] as const) : (["git"] as const)

const scratch = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fs-algebra-diff-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
)

const lineNumbers = (count: number) => Array.from({ length: count }, (_, i) => `line ${i + 1}\n`)

describe("a diff", () => {
  it("has three lines of context, and the file names of git's format", () => {
    const { diff } = edited(
      utf8(lineNumbers(20).join("")),
      [{ oldText: "line 10\n", newText: "ten\nand a half\n" }],
      "src/a.txt"
    )
    assert.strictEqual(
      diff,
      [
        "--- a/src/a.txt",
        "+++ b/src/a.txt",
        "@@ -7,7 +7,8 @@",
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+ten",
        "+and a half",
        " line 11",
        " line 12",
        " line 13",
        ""
      ].join("\n")
    )
  })

  it("has one hunk for changes up to six lines apart, and two hunks for changes farther apart", () => {
    const diffOf = (first: string, second: string) =>
      edited(utf8(lineNumbers(30).join("")), [
        { oldText: `${first}\n`, newText: `${first}\nnew\n` },
        { oldText: `${second}\n`, newText: "" }
      ]).diff.match(/^@@.*@@$/gm)
    assert.deepStrictEqual(diffOf("line 10", "line 17"), ["@@ -8,13 +8,13 @@"])
    assert.deepStrictEqual(diffOf("line 10", "line 18"), ["@@ -8,6 +8,7 @@", "@@ -15,7 +16,6 @@"])
  })

  it("shows only the lines that differ within a large edit", () => {
    const oldText = lineNumbers(40).join("")
    const newText = oldText.replace("line 20\n", "twenty\n")
    const { diff } = edited(utf8(oldText), [{ oldText, newText }])
    assert.deepStrictEqual(diff.match(/^[-+@].*$/gm)!.slice(2), ["@@ -17,7 +17,7 @@", "-line 20", "+twenty"])
  })

  it("is minimal for an edit of ordinary size", () => {
    const oldText = lineNumbers(200).join("")
    const newText = oldText.replaceAll("5\n", "five\n").replaceAll("line 4", "x\nline 4")
    const { diff } = edited(utf8(oldText), [{ oldText, newText }])
    assert.lengthOf(diff.match(/^-(?!--)/gm)!, 20)
    assert.lengthOf(diff.match(/^\+(?!\+\+)/gm)!, 20 + 11)
  })

  it("quotes a name with a quotation mark or a backslash as git does", () => {
    const diffOf = (path: string) => edited(utf8("a"), [{ oldText: "a", newText: "b" }], path).diff.split("\n")[0]
    assert.strictEqual(diffOf('a"b'), String.raw`--- "a/a\"b"`)
    assert.strictEqual(diffOf("a\\b"), String.raw`--- "a/a\\b"`)
    assert.strictEqual(diffOf("a b"), "--- a/a b\t")
    assert.strictEqual(diffOf("ü"), "--- a/ü")
  })

  it("marks a missing newline at the end of the file", () => {
    assert.include(
      edited(utf8("a\nb"), [{ oldText: "b", newText: "c" }]).diff,
      "-b\n\\ No newline at end of file\n+c\n\\ No newline"
    )
    assert.include(edited(utf8("a\nb"), [{ oldText: "b", newText: "c\n" }]).diff, "-b\n\\ No newline at end of file\n+c\n")
  })

  const awkward: ReadonlyArray<readonly [string, string, ReadonlyArray<Edit>]> = [
    ["a.txt", "only\n", [{ oldText: "only\n", newText: "" }]],
    ["a.txt", "only", [{ oldText: "only", newText: "other" }]],
    ["a.txt", "\n".repeat(50), [{ oldText: "\n\n", newText: "\n", match: "first" }]],
    ["a.txt", `${"\n".repeat(50)}x\n${"\n".repeat(50)}`, [{ oldText: "x\n", newText: "\n\n" }]],
    [
      "a.txt",
      "ab\ncd\nef\n",
      [
        { oldText: "a", newText: "x" },
        { oldText: "b\n", newText: "y" }
      ]
    ],
    ["a.txt", "ab\ncd\nef\n", [{ oldText: "b\n", newText: "" }]],
    ["a.txt", "a\r\nb\r\nc\r\n", [{ oldText: "b\n", newText: "x\ny\n" }]],
    ["a.txt", "\uFEFFa\nb\n", [{ oldText: "a", newText: "b" }]],
    ["a.txt", "a\r@@ -1 +1 @@\n\u2028@@ -1 +1 @@\nb\n", [{ oldText: "b", newText: "c" }]],
    ["a.txt", "--- a\n+++ b\n@@ -1 +1 @@\n", [{ oldText: "b", newText: "c" }]],
    ["with a blank/and another.txt", "a\n", [{ oldText: "a", newText: "b" }]],
    ["ünï/漢字.txt", "é\n", [{ oldText: "é", newText: "è" }]],
    ['quote"s and \\.txt', "a\n", [{ oldText: "a", newText: "b" }]],
    ["back\\slash.txt", "a\n", [{ oldText: "a", newText: "b" }]]
  ]
  for (const tool of tools) {
    it.effect.each(awkward)(`is accepted by ${tool} (%s, %j)`, ([path, text, edits]) =>
      Effect.gen(function* () {
        const directory = yield* scratch
        const { bytes, diff } = edited(utf8(text), edits, path)
        const result = patched(directory, tool, path, utf8(text), diff)
        assert.deepStrictEqual(result, Uint8Array.from(bytes))
      })
    )

    const line = anyOf(["a\n", "a\n", "b\n", "b\r\n", "c\n", "\n", "d x\n", "x\n", "x\r\n", "y\ny\ny\n", "ab\n"])
    it.effect.prop(
      `makes ${tool} produce the edited content, for random edits`,
      [Arbitrary.array(line, { minLength: 1, maxLength: 40 }), anyOf(["", "x", "z"]), textOf(["a\n", "b\n", "z", "\n"])],
      ([lines, last, newText]) =>
        Effect.scoped(
          Effect.gen(function* () {
            const text = `${lines.join("")}${last}`
            const edits = (["x", "d ", "y\ny\n", "b\n"] as const)
              .filter((oldText) => text.replaceAll("\r\n", "\n").includes(oldText))
              .map((oldText, index): Edit => ({
                oldText,
                newText: index % 2 === 0 ? newText : "",
                match: index === 1 ? "first" : "all"
              }))
            if (edits.length === 0) return
            const { bytes, diff } = edited(utf8(text), edits)
            if (diff === "") return assert.deepStrictEqual(Buffer.from(bytes).toString(), text)
            const directory = yield* scratch
            const result = patched(directory, tool, "a.txt", utf8(text), diff)
            assert.deepStrictEqual(result, Uint8Array.from(bytes), diff)
          })
        ),
      { arbitrary: { runs: 60 } }
    )
  }
})
