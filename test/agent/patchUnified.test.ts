/** Unified diffs in the forms of git, GNU diff and language models. `patchOracle.test.ts` compares results with git. */
import { describe, it } from "@effect/vitest"
import type { Files } from "../../src/testing/Files.ts"
import { isApplied, isRefused } from "./patching.ts"

type Row = readonly [claim: string, files: Files, patch: string, becomes: Files]

const diff = (...lines: ReadonlyArray<string>): string => `${lines.join("\n")}\n`
const head = ["--- a/x", "+++ b/x"]

const good: ReadonlyArray<Row> = [
  ["with one hunk", { x: "1\n2\n3\n" }, diff(...head, "@@ -1,3 +1,3 @@", " 1", "-2", "+two", " 3"), { x: "1\ntwo\n3\n" }],
  [
    "with file names without the prefixes a/ and b/",
    { "a/x": "1\n" },
    diff("--- a/x", "+++ a/x", "@@ -1 +1 @@", "-1", "+2"),
    { "a/x": "2\n" }
  ],
  [
    "with file names in two directories, and with times",
    { "d/x y": "1\n" },
    diff(
      "--- old/d/x y\t2024-01-02 03:04:05.000000000 +0100",
      "+++ new/d/x y\t2024-01-02 03:04:06 +0100",
      "@@ -1 +1 @@",
      "-1",
      "+2"
    ),
    { "d/x y": "2\n" }
  ],
  [
    "between a file and its copy with the suffix .orig",
    { x: "1\n" },
    diff("--- x.orig", "+++ x", "@@ -1 +1 @@", "-1", "+2"),
    { x: "2\n" }
  ],
  ["for a new file", {}, diff("--- /dev/null", "+++ b/d/x", "@@ -0,0 +1,2 @@", "+1", "+2"), { "d/x": "1\n2\n" }],
  [
    "for a new file that GNU diff marks by the time 1970-01-01",
    {},
    diff("--- o/x\t1970-01-01 00:00:00.000000000 +0000", "+++ n/x\t2024-01-02 03:04:05.0 +0000", "@@ -0,0 +1 @@", "+1"),
    { x: "1\n" }
  ],
  [
    "for a new file with two file names instead of /dev/null",
    {},
    diff("--- a/x", "+++ b/x", "@@ -0,0 +1 @@", "+1"),
    { x: "1\n" }
  ],
  ["for a removed file", { x: "1\n2\n" }, diff("--- a/x", "+++ /dev/null", "@@ -1,2 +0,0 @@", "-1", "-2"), {}],
  ["for a file that becomes empty", { x: "1\n" }, diff(...head, "@@ -1 +0,0 @@", "-1"), { x: "" }],
  [
    "of git, with new, removed, moved and empty files",
    { gone: "", old: "1\n", moved: "1\n2\n" },
    diff(
      "diff --git a/gone b/gone",
      "deleted file mode 100644",
      "index e69de29..0000000",
      "diff --git a/new b/new",
      "new file mode 100755",
      "index 0000000..e69de29",
      "diff --git a/old b/old",
      "deleted file mode 100644",
      "index d00491f..0000000",
      "--- a/old",
      "+++ /dev/null",
      "@@ -1 +0,0 @@",
      "-1",
      "diff --git a/moved b/d/here",
      "similarity index 50%",
      "rename from moved",
      "rename to d/here",
      "index 1191247..27a5c1b 100644",
      "--- a/moved",
      "+++ b/d/here",
      "@@ -1,2 +1,2 @@",
      " 1",
      "-2",
      "+two"
    ),
    { new: "", "d/here": "1\ntwo\n" }
  ],
  [
    "of git, with quoted file names",
    { 'ä"': "1\n" },
    diff(
      'diff --git "a/\\303\\244\\"" "b/\\303\\244\\""',
      "index d00491f..0cfbf08 100644",
      '--- "a/\\303\\244\\""',
      '+++ "b/\\303\\244\\""',
      "@@ -1 +1 @@",
      "-1",
      "+2"
    ),
    { 'ä"': "2\n" }
  ],
  [
    "of git format-patch, as a series of mails with prose, statistics and signatures",
    { x: "1\n" },
    diff(
      "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001",
      "From: A <a@example.com>",
      "Subject: [PATCH 1/2] One",
      "",
      "---",
      " x | 2 +-",
      " 1 file changed, 1 insertion(+), 1 deletion(-)",
      "",
      "diff --git a/x b/x",
      "index d00491f..0cfbf08 100644",
      ...head,
      "@@ -1 +1 @@",
      "-1",
      "+2",
      "-- ",
      "2.39.5",
      "",
      "From 1123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001",
      "Subject: [PATCH 2/2] Two",
      "",
      "diff --git a/x b/x",
      ...head,
      "@@ -1 +1 @@",
      "-2",
      "+3",
      "-- ",
      "2.39.5",
      ""
    ),
    { x: "3\n" }
  ],
  [
    "with changed lines that look like the header of a file",
    { x: "-- a/y\n1\n" },
    diff(...head, "@@ -1,2 +1,2 @@", "--- a/y", "+++ b/y", " 1"),
    { x: "++ b/y\n1\n" }
  ],
  [
    "with changed lines that look like the header of a file, at the end of a hunk",
    { x: "1\n-- a/y\n2\n" },
    diff(...head, "@@ -1,2 +1,2 @@", " 1", "--- a/y", "+++ b/y", "@@ -3 +3 @@", "-2", "+3"),
    { x: "1\n++ b/y\n3\n" }
  ],
  [
    "that remove or add the last newline of a file",
    { x: "1\n", y: "1" },
    diff(
      ...head,
      "@@ -1 +1 @@",
      "-1",
      "+1",
      "\\ No newline at end of file",
      "--- a/y",
      "+++ b/y",
      "@@ -1 +1 @@",
      "-1",
      "\\ No newline at end of file",
      "+1"
    ),
    { x: "1", y: "1\n" }
  ],
  [
    "with hunks that have moved down: later hunks move by the same distance, even if their stated place matches too",
    { x: "0\n0\n0\n0\n1\n2\n3\nA\n5\n6\n7\nA\n9\n" },
    diff(...head, "@@ -1,3 +1,3 @@", " 1", "-2", "+two", " 3", "@@ -8 +8 @@", "-A", "+B"),
    { x: "0\n0\n0\n0\n1\ntwo\n3\nA\n5\n6\n7\nB\n9\n" }
  ],
  [
    "at the nearest of several matching places",
    { x: "a\n1\n2\n3\na\n5\n6\n7\n8\na\n" },
    diff(...head, "@@ -6 +6 @@", "-a", "+b"),
    { x: "a\n1\n2\n3\nb\n5\n6\n7\n8\na\n" }
  ],
  [
    "with LF to a file with CRLF, which keeps CRLF",
    { x: "1\r\n2\r\n3" },
    diff(...head, "@@ -1,3 +1,4 @@", " 1", "-2", "+two", "+new", " 3"),
    { x: "1\r\ntwo\r\nnew\r\n3" }
  ],
  [
    "literally if their lines contain CR",
    { x: "1\r\n2\n3\r\n" },
    diff(...head, "@@ -1,3 +1,3 @@", "-1\r", "+1", "-2", "+2\r", " 3\r"),
    { x: "1\n2\r\n3\r\n" }
  ],
  [
    "to a file with a byte order mark, which stays",
    { x: "\uFEFF1\n" },
    diff(...head, "@@ -1 +1 @@", "-1", "+2"),
    { x: "\uFEFF2\n" }
  ],
  ["with the removal of a byte order mark", { x: "\uFEFF1\n" }, diff(...head, "@@ -1 +1 @@", "-\uFEFF1", "+1"), { x: "1\n" }],
  [
    "to a file in UTF-16, which stays in UTF-16",
    { x: new Uint8Array([0xff, 0xfe, 0xe4, 0, 10, 0, 0x32, 0, 10, 0]) },
    diff(...head, "@@ -1,2 +1,2 @@", " ä", "-2", "+ö"),
    { x: new Uint8Array([0xff, 0xfe, 0xe4, 0, 10, 0, 0xf6, 0, 10, 0]) }
  ],
  [
    "with wrong line counts",
    { x: "1\n2\n3\n4\n5\n", y: "1\n" },
    diff(
      ...head,
      "@@ -1,9 +1,1 @@",
      " 1",
      "-2",
      "+two",
      " 3",
      "@@ -4,1 +4,1 @@",
      " 4",
      "-5",
      "+five",
      "--- a/y",
      "+++ b/y",
      "@@ -1 +1 @@",
      "-1",
      "+2"
    ),
    { x: "1\ntwo\n3\n4\nfive\n", y: "2\n" }
  ],
  ["without line numbers", { x: "1\n2\n" }, diff(...head, "@@ ... @@", " 1", "-2", "+two"), { x: "1\ntwo\n" }],
  [
    "with the text of a line after @@, as in the V4A format",
    { x: "a\nf\na\n" },
    diff(...head, "@@ f", "-a", "+b"),
    { x: "a\nf\nb\n" }
  ],
  [
    "with empty lines instead of empty context lines",
    { x: "1\n\n2\n\n3\n" },
    diff(...head, "@@ -1,5 +1,5 @@", " 1", "", "-2", "+two", "", " 3", ""),
    { x: "1\n\ntwo\n\n3\n" }
  ],
  [
    "in the fences and prose of a chat",
    { x: "1\n" },
    diff("Here:", "```diff", ...head, "@@ -1 +1 @@", "-1", "+2", "```"),
    { x: "2\n" }
  ],
  [
    "with CRLF after every line of the diff",
    { x: "1\n" },
    diff(...head, "@@ -1 +1 @@", "-1", "+2").replaceAll("\n", "\r\n"),
    { x: "2\n" }
  ],
  ["without a newline at the end of the diff", { x: "1\n" }, diff(...head, "@@ -1 +1 @@", "-1", "+2").trimEnd(), { x: "2\n" }],
  [
    "without context",
    { x: "1\n2\n3\n" },
    diff(...head, "@@ -0,0 +1 @@", "+0", "@@ -2 +3,0 @@", "-2", "@@ -3,0 +4 @@", "+4"),
    { x: "0\n1\n3\n4\n" }
  ]
]

type Refused = readonly [claim: string, files: Files, patch: string, message: RegExp]

const bad: ReadonlyArray<Refused> = [
  ["a text that is not a diff", { x: "1\n" }, "x\n-1\n+2\n", /^The patch names no file/],
  [
    "a hunk without file names",
    { x: "1\n" },
    diff("@@ -1 +1 @@", "-1", "+2"),
    /^Line 1 of the patch begins a hunk before any file is named/
  ],
  ["file names without a hunk", { x: "1\n" }, diff(...head), /^Line 1 of the patch begins a file without a hunk/],
  [
    "file names of two different files",
    { x: "1\n" },
    diff("--- a/x", "+++ b/y", "@@ -1 +1 @@", "-1", "+2"),
    /^Line 1 .* names two files, "x" and "y".*rename from/
  ],
  ["a truncated hunk", { x: "1\n2\n3\n" }, diff(...head, "@@ -1,3 +1,3 @@", "-1", "+one", " 2"), /^Line 3 .* truncated/],
  [
    "a line without a prefix in a hunk",
    { x: "1\n2\n" },
    diff(...head, "@@ -1,2 +1,2 @@", "-1", "+one", "2"),
    /^Line 6 .* does not begin with a space, - or \+: "2"/
  ],
  [
    "a line without a prefix after a hunk",
    { x: "1\n" },
    diff(...head, "@@ -1 +1 @@", "-1", "+one", "2", "+3"),
    /^Line 6 .* is neither a line of the hunk/
  ],
  [
    "a binary patch",
    { x: "1\n" },
    diff("diff --git a/x b/x", "index d00491f..0cfbf08 100644", "GIT binary patch", "literal 0", "HcmV?d00001"),
    /^Line 3 .* binary/
  ],
  [
    "a difference of binary files",
    { x: "1\n" },
    diff("diff --git a/x b/x", "index d00491f..0cfbf08 100644", "Binary files a/x and b/x differ"),
    /^Line 3 .* binary/
  ],
  ["a difference of binary files by GNU diff", { x: "1\n" }, diff("Binary files a/x and b/x differ"), /^Line 1 .* binary/],
  [
    "a new symbolic link",
    {},
    diff("diff --git a/x b/x", "new file mode 120000", "--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+y"),
    /^Line 2 .* symbolic link/
  ],
  [
    "a changed symbolic link",
    { x: "y" },
    diff("diff --git a/x b/x", "index d00491f..0cfbf08 120000", ...head, "@@ -1 +1 @@", "-y", "+z"),
    /^Line 2 .* symbolic link/
  ],
  [
    "a submodule",
    {},
    diff("diff --git a/x b/x", "new file mode 160000", "--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+y"),
    /^Line 2 .* submodule/
  ],
  [
    "a copy",
    { x: "1\n" },
    diff("diff --git a/x b/y", "similarity index 100%", "copy from x", "copy to y"),
    /^Line 3 .* copies a file/
  ],
  [
    "a combined diff",
    { x: "1\n" },
    diff("diff --cc x", "index 1,2..3", ...head, "@@@ -1,1 -1,1 +1,1 @@@", "- 1", "++2"),
    /^Line 1 .* combined/
  ],
  [
    "a context diff",
    { x: "1\n" },
    diff("*** x", "--- x", "***************", "*** 1 ****", "! 1", "--- 1 ----", "! 2"),
    /^Line 3 .* context diff/
  ],
  [
    "the removal of a file that has more lines",
    { x: "1\n2\n3\n" },
    diff("--- a/x", "+++ /dev/null", "@@ -1,2 +0,0 @@", "-1", "-2"),
    /^The patch cannot remove x \(line 1 of the patch\), because 1 of its lines are not in the patch\. The first of these lines is "3"/
  ],
  [
    "a new file that exists already",
    { x: "1\n" },
    diff("--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+2"),
    /^x exists already/
  ],
  [
    "context lines that differ in white space",
    { x: "1\n  2\n" },
    diff(...head, "@@ -1,2 +1,2 @@", " 1", "-2", "+two"),
    /line 2 of the file is "  2", but the hunk expects "2".*indentation/
  ],
  [
    "two equally near places for a hunk",
    { x: "a\n1\na\n" },
    diff(...head, "@@ -2 +2 @@", "-a", "+b"),
    /occur at lines 1 and 3.*right line number/
  ],
  [
    "a hunk for the end of the file that matches elsewhere",
    { x: "1\n2\n" },
    diff(...head, "@@ -1 +1 @@", "-1", "\\ No newline at end of file", "+2"),
    /occur at line 1, but the hunk says that they are the end of the file, which has 2 lines/
  ],
  [
    "a line after a line without a newline",
    { x: "1" },
    diff(...head, "@@ -1 +1,2 @@", " 1", "\\ No newline at end of file", "+2"),
    /^Line 3 .* lines follow a line without a newline/
  ],
  [
    "lines that are added as the last lines of the file, but elsewhere",
    { x: "1\n2\n" },
    diff(...head, "@@ -1,0 +2 @@", "+x", "\\ No newline at end of file"),
    /it adds the last lines of the file below line 1, but the file has 2 lines/
  ],
  [
    "lines that are added below the end of the file",
    { x: "1\n" },
    diff(...head, "@@ -7,0 +8 @@", "+2"),
    /it adds lines below line 7, but the file has 1 line/
  ],
  [
    "a hunk that extends past the end of the file",
    { x: "1\n" },
    diff(...head, "@@ -1,2 +1,2 @@", " 1", "-2", "+two"),
    /the file ends at line 1, but the hunk expects "2" on line 2/
  ]
]

describe("unified diffs", () => {
  for (const [claim, files, patch, becomes] of good) it.effect(`are applied: ${claim}`, () => isApplied(files, patch, becomes))
  for (const [claim, files, patch, message] of bad) {
    it.effect(`are refused without a change: ${claim}`, () => isRefused(files, patch, message))
  }
})
