/**
 * The V4A patch format. The first table has the examples of OpenAI's cookbook (GPT-4.1 prompting guide) and of codex's
 * apply_patch: its instructions, parser tests and scenarios. The second table has refused patches, some of which codex
 * accepts.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Files, picture } from "../../src/testing/Files.ts"
import { isApplied, isRefused, patched, v4a } from "./patching.ts"

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
    "adding, moving with a change, and deleting (instructions of codex)",
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
    "adding into a new directory, deleting and updating (scenario 2 of codex)",
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
    "several hunks of one file (scenario 3 of codex)",
    { "multi.txt": "line1\nline2\nline3\nline4\n" },
    v4a("*** Update File: multi.txt", "@@", "-line2", "+changed2", "@@", "-line4", "+changed4"),
    { "multi.txt": "line1\nchanged2\nline3\nchanged4\n" }
  ],
  [
    "a move into a new directory (scenario 4 of codex)",
    { "old/name.txt": "old content\n", "old/other.txt": "unrelated file\n" },
    v4a("*** Update File: old/name.txt", "*** Move to: renamed/dir/name.txt", "@@", "-old content", "+new content"),
    { "renamed/dir/name.txt": "new content\n", "old/other.txt": "unrelated file\n" }
  ],
  [
    "added lines without context, at the end (scenario 16 of codex)",
    { "input.txt": "line1\nline2\n" },
    v4a("*** Update File: input.txt", "@@", "+added line 1", "+added line 2"),
    { "input.txt": "line1\nline2\nadded line 1\nadded line 2\n" }
  ],
  [
    "blanks around markers (scenarios 17 and 18 of codex)",
    { "foo.txt": "old\n" },
    " *** Begin Patch \n  *** Update File: foo.txt  \n@@\n-old\n+new\n *** End Patch  \n",
    { "foo.txt": "new\n" }
  ],
  [
    "deletions of lines only (scenario 21 of codex)",
    { "lines.txt": "line1\nline2\nline3\n" },
    v4a("*** Update File: lines.txt", "@@", " line1", "-line2", " line3"),
    { "lines.txt": "line1\nline3\n" }
  ],
  [
    "a hunk marked with *** End of File (scenario 22 of codex)",
    { "tail.txt": "first\nsecond\nmiddle\nfirst\nsecond\n" },
    v4a("*** Update File: tail.txt", "@@", " first", "-second", "+second updated", "*** End of File"),
    { "tail.txt": "first\nsecond\nmiddle\nfirst\nsecond updated\n" }
  ],
  [
    "a first hunk without @@ (parser tests of codex)",
    { "file2.py": "import foo\n" },
    v4a("*** Update File: file2.py", " import foo", "+bar"),
    { "file2.py": "import foo\nbar\n" }
  ],
  [
    "a patch in a here-document of a shell (parser tests of codex)",
    { a: "x\n" },
    `<<'EOF'\n${v4a("*** Update File: a", "@@", "-x", "+y")}EOF\n`,
    { a: "y\n" }
  ],
  [
    "a patch in the fences of a chat",
    { a: "x\n" },
    `\`\`\`\n${v4a("*** Update File: a", "@@", "-x", "+y")}\`\`\`\n`,
    { a: "y\n" }
  ],
  [
    "a first @@ for the class and a second @@ for the method (cookbook)",
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
    "a hunk at the first match below the line that @@ names",
    { a: "one\nx\ntwo\nx\nx\n" },
    v4a("*** Update File: a", "@@ two", "-x", "+y"),
    { a: "one\nx\ntwo\ny\nx\n" }
  ],
  [
    "an @@ with the beginning of its line, which may be repeated as context",
    { a: "class Base(Foo):\n  x\n" },
    v4a("*** Update File: a", "@@ class Base", " class Base(Foo):", "-  x", "+  y"),
    { a: "class Base(Foo):\n  y\n" }
  ],
  [
    "lines that are added below the line that @@ names",
    { a: "one\ntwo\nthree\n" },
    v4a("*** Update File: a", "@@ two", "+x"),
    { a: "one\ntwo\nx\nthree\n" }
  ],
  [
    "an @@ with the line numbers of a unified diff",
    { a: "x\nx\nx\n" },
    v4a("*** Update File: a", "@@ -2,1 +2,1 @@", "-x", "+y"),
    { a: "x\ny\nx\n" }
  ],
  [
    "an empty line as an empty context line",
    { a: "one\n\ntwo\n" },
    v4a("*** Update File: a", "@@", " one", "", "-two", "+TWO", ""),
    { a: "one\n\nTWO\n" }
  ],
  [
    "an empty context line at the end, for the file's last newline",
    { a: "one\ntwo\n" },
    v4a("*** Update File: a", "@@", " one", "-two", "+TWO", " "),
    { a: "one\nTWO\n" }
  ],
  ["the creation and removal of empty files", { a: "" }, v4a("*** Add File: b", "*** Delete File: a"), { b: "" }],
  [
    "a move without a change",
    { a: new Uint8Array([0, 255, 1]) },
    v4a("*** Update File: a", "*** Move to: d/b"),
    { "d/b": new Uint8Array([0, 255, 1]) }
  ],
  [
    "a second section for a file that an earlier section has changed or added",
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
  [
    "a file that is replaced by a directory",
    { a: "x\n" },
    v4a("*** Delete File: a", "*** Add File: a/b", "+y"),
    { "a/b": "y\n" }
  ],
  [
    "a change of a file with a byte order mark, which stays",
    { a: "\uFEFFx\n" },
    v4a("*** Update File: a", "@@", "-x", "+y"),
    { a: "\uFEFFy\n" }
  ],
  [
    "a change of a file without a last newline, which gets none",
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
    "mixed line endings: added lines get the ending of the lines that they replace or follow",
    { a: "1\r\n2\r\n3\n4\n" },
    v4a("*** Update File: a", "@@", " 1", "-2", "+two", "+new", " 3", "+x", "-4", "+four"),
    { a: "1\r\ntwo\r\nnew\r\n3\nx\nfour\n" }
  ],
  [
    "a patch with CRLF for a file with LF, which keeps LF",
    { a: "1\n2\n", b: "1\r\n2\r\n" },
    v4a("*** Update File: a", "@@", "-2", "+two", "*** Update File: b", "@@", "-2", "+two").replaceAll("\n", "\r\n"),
    { a: "1\ntwo\n", b: "1\r\ntwo\r\n" }
  ],
  [
    "context with other blanks at line ends, which stay in the file",
    { a: "one  \ntwo\t\nthree\n" },
    v4a("*** Update File: a", "@@", " one", "-two", "+TWO", " three"),
    { a: "one  \nTWO\nthree\n" }
  ],
  [
    "context with other indentation, to which added lines are adjusted",
    { a: "if x:\n\tfoo()\n\tif y:\n\t\tbar()\n" },
    v4a("*** Update File: a", "@@", " foo()", " if y:", "-\tbar()", "+\tbaz()", "+", "+\tqux()"),
    { a: "if x:\n\tfoo()\n\tif y:\n\t\tbaz()\n\n\t\tqux()\n" }
  ],
  [
    "a patch with too much indentation",
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
  ["an envelope without sections", {}, v4a(), /^The patch names no file/],
  [
    "a patch without *** End Patch",
    { a: "x\n" },
    "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n",
    /^Line 5 .* without \*\*\* End Patch/
  ],
  ["an unknown section", {}, v4a("*** Frob File: a"), /^Line 2 of the patch should be one of \*\*\* Add File: path/],
  ["a section without a file name", {}, v4a("*** Add File: ", "+x"), /^Line 2 of the patch names no file/],
  ["an update without a hunk", { a: "x\n" }, v4a("*** Update File: a"), /^Line 2 .* without a hunk/],
  ["a hunk without lines", { a: "x\n" }, v4a("*** Update File: a", "@@ x"), /^Line 3 .* has no lines/],
  ["a hunk that changes nothing", { a: "x\n" }, v4a("*** Update File: a", "@@", " x"), /^Line 3 .* changes nothing/],
  [
    "a line without a prefix",
    { a: "x\n" },
    v4a("*** Update File: a", "@@", "-x", "y"),
    /^Line 5 .* does not begin with a space, - or \+: "y"/
  ],
  ["a line of a new file without +", {}, v4a("*** Add File: a", "+x", "y"), /^Line 4 of the patch must begin with \+/],
  ["an empty line of a new file", {}, v4a("*** Add File: a", "+x", "", "+y"), /^Line 4 of the patch is empty/],
  ["lines below a deletion", { a: "x\n" }, v4a("*** Delete File: a", "-x"), /^Line 3 .* has no lines of its own/],
  ["old lines that occur twice", { a: "x\ny\nx\n" }, v4a("*** Update File: a", "@@", "-x", "+z"), /at lines 1 and 3,/],
  ["an @@ whose line occurs twice", { a: "f\nx\nf\nx\n" }, v4a("*** Update File: a", "@@ f", "-x", "+z"), /at lines 2 and 4,/],
  [
    "an @@ whose line occurs twice, in a hunk that only adds lines",
    { a: "f\nx\nf\n" },
    v4a("*** Update File: a", "@@ f", "+z"),
    /"@@ f" occurs at lines 1 and 3/
  ],
  [
    "an @@ whose line does not occur",
    { a: "x\n" },
    v4a("*** Update File: a", "@@ g", "-x", "+z"),
    /its @@ line names "g", but there is no such line/
  ],
  [
    "old lines that occur only above the line that @@ names",
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
    "old lines that do not occur; the message shows the nearest lines and where to read",
    { a: "1\n2\n3\n4\n5\nfunction foo() {\n  return 1\n}\n" },
    v4a("*** Update File: a", "@@", " function foo() {", "-  return 2", "+  return 3"),
    /Hunk 1 of 1 for a \(line 3 of the patch\) does not apply.*lines 6-7.*"  return 1".*"  return 2".*Nothing was changed\. Read a from line 3 on \(offset 2\)/
  ],
  [
    "a change that is already in the file",
    { a: "1\ny\n" },
    v4a("*** Update File: a", "@@", "-x", "+y"),
    /already in the file, at line 2/
  ],
  [
    "the addition of a file that exists",
    { a: "x\n" },
    v4a("*** Add File: a", "+y"),
    /^a exists already, .*Change this file with \*\*\* Update File/
  ],
  [
    "a move to a file that exists",
    { a: "x\n", b: "y\n" },
    v4a("*** Update File: a", "*** Move to: b"),
    /^b exists already, so it cannot be the new name \(line 2/
  ],
  ["an update of a missing file", {}, v4a("*** Update File: a", "-x", "+y"), /"a"/],
  ["the deletion of a missing file", {}, v4a("*** Delete File: a"), /"a"/],
  ["the deletion of a directory", { "a/b": "x\n" }, v4a("*** Delete File: a"), /"a"/],
  [
    "a file that is both deleted and added",
    { a: "x\n" },
    v4a("*** Delete File: a", "*** Add File: a", "+y"),
    /^a is added, removed or moved more than once/
  ],
  ["a file that is not text", { a: new Uint8Array([120, 10, 255]) }, v4a("*** Update File: a", "-x", "+y"), /"a"/],
  ["a lone surrogate in an added line", { a: "x\n" }, v4a("*** Update File: a", "-x", "+\uD800"), /surrogate/]
]

describe("patches in the V4A format", () => {
  for (const [claim, files, patch, becomes] of good) it.effect(`are applied: ${claim}`, () => isApplied(files, patch, becomes))
  for (const [claim, files, patch, message] of bad) {
    it.effect(`are refused without a change: ${claim}`, () =>
      Effect.gen(function* () {
        // A valid section before the invalid section is not applied either.
        const more = patch.includes("File:") ? "*** Begin Patch\n*** Add File: before\n+x\n" : "$&"
        const after = yield* patched(files, patch.replace("*** Begin Patch\n", more))
        assert.isFalse(after.success)
        assert.deepStrictEqual(after.becomes, picture(files))
        yield* isRefused(files, patch, message)
      })
    )
  }
})
