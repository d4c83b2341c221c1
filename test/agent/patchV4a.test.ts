/**
 * The patch format with an envelope. The first table holds the examples of OpenAI's cookbook (GPT-4.1 prompting guide)
 * and of the
 * instructions, parser tests and scenarios of codex's apply_patch. The second table holds the patches that we refuse,
 * some of which codex
 * accepts.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Files, picture } from "../../src/testing/Files.ts"
import { patched, v4a } from "./patching.ts"

type Row = readonly [claim: string, files: Files, patch: string, becomes: Files]

const twins = `class A:
    def first(self):
        pass

    def same(self):
        pass

class BaseClass:
    def first(self):
        pass

    def same(self):
        pass
`

const good: ReadonlyArray<Row> = [
  [
    "codex, instructions: adds, moves with a change, and deletes",
    { "src/app.py": 'def greet():\nprint("Hi")\n', "obsolete.txt": "x\n" },
    v4a(
      "*** Add File: hello.txt",
      "+Hello world",
      "*** Update File: src/app.py",
      "*** Move to: src/main.py",
      "@@ def greet():",
      '-print("Hi")',
      '+print("Hello, world!")',
      "*** Delete File: obsolete.txt"
    ),
    { "hello.txt": "Hello world\n", "src/main.py": 'def greet():\nprint("Hello, world!")\n' }
  ],
  [
    "codex, scenario 2: adds into a new directory, deletes, updates",
    { "modify.txt": "line1\nline2\n", "delete.txt": "obsolete\n" },
    v4a(
      "*** Add File: nested/new.txt",
      "+created",
      "*** Delete File: delete.txt",
      "*** Update File: modify.txt",
      "@@",
      "-line2",
      "+changed"
    ),
    { "modify.txt": "line1\nchanged\n", "nested/new.txt": "created\n" }
  ],
  [
    "codex, scenario 3: several hunks of one file",
    { "multi.txt": "line1\nline2\nline3\nline4\n" },
    v4a("*** Update File: multi.txt", "@@", "-line2", "+changed2", "@@", "-line4", "+changed4"),
    { "multi.txt": "line1\nchanged2\nline3\nchanged4\n" }
  ],
  [
    "codex, scenario 4: moves into a new directory",
    { "old/name.txt": "old content\n", "old/other.txt": "unrelated file\n" },
    v4a("*** Update File: old/name.txt", "*** Move to: renamed/dir/name.txt", "@@", "-old content", "+new content"),
    { "renamed/dir/name.txt": "new content\n", "old/other.txt": "unrelated file\n" }
  ],
  [
    "codex, scenario 16: lines without context go to the end",
    { "input.txt": "line1\nline2\n" },
    v4a("*** Update File: input.txt", "@@", "+added line 1", "+added line 2"),
    { "input.txt": "line1\nline2\nadded line 1\nadded line 2\n" }
  ],
  [
    "codex, scenarios 17 and 18: blanks around markers",
    { "foo.txt": "old\n" },
    " *** Begin Patch \n  *** Update File: foo.txt  \n@@\n-old\n+new\n *** End Patch  \n",
    { "foo.txt": "new\n" }
  ],
  [
    "codex, scenario 21: only deletes lines",
    { "lines.txt": "line1\nline2\nline3\n" },
    v4a("*** Update File: lines.txt", "@@", " line1", "-line2", " line3"),
    { "lines.txt": "line1\nline3\n" }
  ],
  [
    "codex, scenario 22: the end of the file",
    { "tail.txt": "first\nsecond\nmiddle\nfirst\nsecond\n" },
    v4a("*** Update File: tail.txt", "@@", " first", "-second", "+second updated", "*** End of File"),
    { "tail.txt": "first\nsecond\nmiddle\nfirst\nsecond updated\n" }
  ],
  [
    "codex, parser: the first hunk without @@",
    { "file2.py": "import foo\n" },
    v4a("*** Update File: file2.py", " import foo", "+bar"),
    { "file2.py": "import foo\nbar\n" }
  ],
  [
    "codex, parser: what a shell puts around it",
    { a: "x\n" },
    `<<'EOF'\n${v4a("*** Update File: a", "@@", "-x", "+y")}EOF\n`,
    { a: "y\n" }
  ],
  ["what a chat puts around it", { a: "x\n" }, `\`\`\`\n${v4a("*** Update File: a", "@@", "-x", "+y")}\`\`\`\n`, { a: "y\n" }],
  [
    "cookbook: @@ says which class, a second @@ which method",
    { "pygorithm/search.py": twins },
    v4a(
      "*** Update File: pygorithm/search.py",
      "@@ class BaseClass:",
      "@@     def same(self):",
      "-        pass",
      "+        raise NotImplementedError()"
    ),
    { "pygorithm/search.py": `${twins.slice(0, twins.lastIndexOf("pass"))}raise NotImplementedError()\n` }
  ],
  [
    "the first place below the line of @@ is meant",
    { a: "one\nx\ntwo\nx\nx\n" },
    v4a("*** Update File: a", "@@ two", "-x", "+y"),
    { a: "one\nx\ntwo\ny\nx\n" }
  ],
  [
    "the line of @@ may be its beginning, and may be repeated as context",
    { a: "class Base(Foo):\n  x\n" },
    v4a("*** Update File: a", "@@ class Base", " class Base(Foo):", "-  x", "+  y"),
    { a: "class Base(Foo):\n  y\n" }
  ],
  [
    "lines put in below a line of @@",
    { a: "one\ntwo\nthree\n" },
    v4a("*** Update File: a", "@@ two", "+x"),
    { a: "one\ntwo\nx\nthree\n" }
  ],
  [
    "numbers of a unified diff count",
    { a: "x\nx\nx\n" },
    v4a("*** Update File: a", "@@ -2,1 +2,1 @@", "-x", "+y"),
    { a: "x\ny\nx\n" }
  ],
  [
    "an empty line is an empty line of context",
    { a: "one\n\ntwo\n" },
    v4a("*** Update File: a", "@@", " one", "", "-two", "+TWO", ""),
    { a: "one\n\nTWO\n" }
  ],
  [
    "an empty line of context at the end may be the file's last newline",
    { a: "one\ntwo\n" },
    v4a("*** Update File: a", "@@", " one", "-two", "+TWO", " "),
    { a: "one\nTWO\n" }
  ],
  ["an empty file", { a: "" }, v4a("*** Add File: b", "*** Delete File: a"), { b: "" }],
  [
    "only moved",
    { a: new Uint8Array([0, 255, 1]) },
    v4a("*** Update File: a", "*** Move to: d/b"),
    { "d/b": new Uint8Array([0, 255, 1]) }
  ],
  [
    "a section that goes on with a file that one before has changed or added",
    { a: "one\ntwo\n" },
    v4a(
      "*** Update File: a",
      "@@",
      "-one",
      "+ONE",
      "*** Add File: b",
      "+x",
      "*** Update File: a",
      "@@",
      " ONE",
      "-two",
      "+TWO",
      "*** Update File: b",
      "@@",
      " x",
      "+y"
    ),
    { a: "ONE\nTWO\n", b: "x\ny\n" }
  ],
  ["a file makes room for a directory", { a: "x\n" }, v4a("*** Delete File: a", "*** Add File: a/b", "+y"), { "a/b": "y\n" }],
  ["a byte order mark stays", { a: "\uFEFFx\n" }, v4a("*** Update File: a", "@@", "-x", "+y"), { a: "\uFEFFy\n" }],
  [
    "a file without a last newline gets none",
    { a: "x\ny", b: "x", c: "x\ny" },
    v4a(
      "*** Update File: a",
      "@@",
      "-y",
      "+z",
      "+w",
      "*** Update File: b",
      "@@",
      " x",
      "+y",
      "*** Update File: c",
      "@@",
      "-x",
      "+z"
    ),
    { a: "x\nz\nw", b: "x\ny", c: "z\ny" }
  ],
  [
    "lines that end in CRLF stay so, and lines put in end as those that they replace or follow",
    { a: "1\r\n2\r\n3\n4\n" },
    v4a("*** Update File: a", "@@", " 1", "-2", "+two", "+new", " 3", "+x", "-4", "+four"),
    { a: "1\r\ntwo\r\nnew\r\n3\nx\nfour\n" }
  ],
  [
    "a patch all in CRLF leaves a file in LF as it is",
    { a: "1\n2\n", b: "1\r\n2\r\n" },
    v4a("*** Update File: a", "@@", "-2", "+two", "*** Update File: b", "@@", "-2", "+two").replaceAll("\n", "\r\n"),
    { a: "1\ntwo\n", b: "1\r\ntwo\r\n" }
  ],
  [
    "blanks at line ends may differ, and those of context stay",
    { a: "one  \ntwo\t\nthree\n" },
    v4a("*** Update File: a", "@@", " one", "-two", "+TWO", " three"),
    { a: "one  \nTWO\nthree\n" }
  ],
  [
    "indentation may differ, and lines put in are then indented as those there",
    { a: "if x:\n\tfoo()\n\tif y:\n\t\tbar()\n" },
    v4a("*** Update File: a", "@@", " foo()", " if y:", "-\tbar()", "+\tbaz()", "+", "+\tqux()"),
    { a: "if x:\n\tfoo()\n\tif y:\n\t\tbaz()\n\n\t\tqux()\n" }
  ],
  [
    "a patch that is indented too far",
    { a: "foo()\n  bar()\n" },
    v4a("*** Update File: a", "@@", "     foo()", "-      bar()", "+      baz()"),
    { a: "foo()\n  baz()\n" }
  ],
  [
    "a file whose lines look like a patch",
    { a: "*** End Patch\n@@ x\n+y\n" },
    v4a("*** Update File: a", "@@", " *** End Patch", "-@@ x", "++y", " +y"),
    { a: "*** End Patch\n+y\n+y\n" }
  ],
  ["blanks and slashes around a path", { "a b": "x\n" }, v4a("*** Update File:  /a b ", "-x", "+y"), { "a b": "y\n" }]
]

type Refused = readonly [claim: string, files: Files, patch: string, message: RegExp]

const bad: ReadonlyArray<Refused> = [
  ["an empty patch", {}, " \n", /^The patch is empty\. A patch is either/],
  ["an envelope with nothing in it", {}, v4a(), /^The patch names no file/],
  [
    "a patch without its end",
    { a: "x\n" },
    "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n",
    /^Line 5 .* without \*\*\* End Patch/
  ],
  ["an unknown section", {}, v4a("*** Frob File: a"), /^Line 2 of the patch should be one of \*\*\* Add File: path/],
  ["a section without a name", {}, v4a("*** Add File: ", "+x"), /^Line 2 of the patch names no file/],
  ["an update without a hunk", { a: "x\n" }, v4a("*** Update File: a"), /^Line 2 .* without a hunk/],
  ["a hunk without lines", { a: "x\n" }, v4a("*** Update File: a", "@@ x"), /^Line 3 .* has no lines/],
  ["a hunk that changes nothing", { a: "x\n" }, v4a("*** Update File: a", "@@", " x"), /^Line 3 .* changes nothing/],
  [
    "a line that is none",
    { a: "x\n" },
    v4a("*** Update File: a", "@@", "-x", "y"),
    /^Line 5 .* does not begin with a space, - or \+: "y"/
  ],
  ["a line of a new file without +", {}, v4a("*** Add File: a", "+x", "y"), /^Line 4 of the patch must begin with \+/],
  ["an empty line of a new file", {}, v4a("*** Add File: a", "+x", "", "+y"), /^Line 4 of the patch is empty/],
  ["lines below a deletion", { a: "x\n" }, v4a("*** Delete File: a", "-x"), /^Line 3 .* has no lines of its own/],
  ["the old lines twice", { a: "x\ny\nx\n" }, v4a("*** Update File: a", "@@", "-x", "+z"), /both at line 1 and at line 3,/],
  [
    "the line of @@ twice",
    { a: "f\nx\nf\nx\n" },
    v4a("*** Update File: a", "@@ f", "-x", "+z"),
    /both at line 2 and at line 4,/
  ],
  [
    "@@ twice, with nothing else",
    { a: "f\nx\nf\n" },
    v4a("*** Update File: a", "@@ f", "+z"),
    /"@@ f" occurs both at line 1 and at line 3/
  ],
  [
    "a line of @@ that is not there",
    { a: "x\n" },
    v4a("*** Update File: a", "@@ g", "-x", "+z"),
    /its @@ line names "g", but there is no such line/
  ],
  [
    "old lines above the line of @@",
    { a: "x\nf\ny\n" },
    v4a("*** Update File: a", "@@ f", "-x", "+z"),
    /occur at line 1, but not below "@@ f".*offset 0/
  ],
  [
    "hunks in the wrong order",
    { a: "x\ny\n" },
    v4a("*** Update File: a", "@@", "-y", "+Y", "@@", "-x", "+X"),
    /Hunk 2 of 2 for a \(line 6 of the patch\).*occur at line 1, but the hunk before it ends at line 2/
  ],
  [
    "old lines that are not there: the nearest, and where to read",
    { a: "1\n2\n3\n4\n5\nfunction foo() {\n  return 1\n}\n" },
    v4a("*** Update File: a", "@@", " function foo() {", "-  return 2", "+  return 3"),
    /Hunk 1 of 1 for a \(line 3 of the patch\) does not apply.*lines 6-7.*"  return 1".*"  return 2".*Nothing was changed\. Read a from line 3 on \(offset 2\)/
  ],
  [
    "what has been done already",
    { a: "1\ny\n" },
    v4a("*** Update File: a", "@@", "-x", "+y"),
    /already in the file, at line 2/
  ],
  [
    "a file that is there cannot be added",
    { a: "x\n" },
    v4a("*** Add File: a", "+y"),
    /^a exists already, .*Change this file with \*\*\* Update File/
  ],
  [
    "nor can it be moved to",
    { a: "x\n", b: "y\n" },
    v4a("*** Update File: a", "*** Move to: b"),
    /^b exists already, so it cannot be the new name \(line 2/
  ],
  ["a missing file", {}, v4a("*** Update File: a", "-x", "+y"), /"a"/],
  ["a missing file to delete", {}, v4a("*** Delete File: a"), /"a"/],
  ["a directory", { "a/b": "x\n" }, v4a("*** Delete File: a"), /"a"/],
  [
    "a file named twice",
    { a: "x\n" },
    v4a("*** Delete File: a", "*** Add File: a", "+y"),
    /^a is added, removed or moved more than once/
  ],
  ["what is no text", { a: new Uint8Array([120, 10, 255]) }, v4a("*** Update File: a", "-x", "+y"), /"a"/],
  ["a lone surrogate", { a: "x\n" }, v4a("*** Update File: a", "-x", "+\uD800"), /surrogate/]
]

describe("patches with an envelope", () => {
  for (const [claim, files, patch, becomes] of good) {
    it.effect(`are applied: ${claim}`, () =>
      Effect.gen(function* () {
        const result = yield* patched(files, patch)
        assert.isTrue(result.success, result.message)
        assert.deepStrictEqual(result.becomes, picture(becomes))
      })
    )
  }
  for (const [claim, files, patch, message] of bad) {
    it.effect(`are refused without a change: ${claim}`, () =>
      Effect.gen(function* () {
        // A valid section before the invalid one is not applied either.
        const more = patch.includes("File:") ? "*** Begin Patch\n*** Add File: before\n+x\n" : "$&"
        const after = yield* patched(files, patch.replace("*** Begin Patch\n", more))
        assert.isFalse(after.success)
        assert.deepStrictEqual(after.becomes, picture(files))
        const result = yield* patched(files, patch)
        assert.isFalse(result.success)
        assert.match(result.message, message)
        assert.deepStrictEqual(result.becomes, picture(files))
      })
    )
  }
})
