/** Table rows for patches in both formats: a patch is applied as a whole or not at all. */
import { directory, type Files, link } from "../../src/testing/Files.ts"
import { versionOf as v } from "./changing.ts"
import { fails, ok, type Row, without } from "./everywhereRun.ts"

const main = "import a\n\nfunction serve() {\n  const port = 80\n  listen(port)\n}\n"

const files: Files = {
  "bin.dat": new Uint8Array([0x00, 0xff]),
  "crlf.txt": "one\r\ntwo\r\nthree\r\n",
  "d/old.txt": "1\n2\n3\n",
  link: link("main.ts"),
  "main.ts": main,
  "open.txt": "last",
  out: link("../outside.txt"),
  "twice.txt": "x\ny\nx\ny\n"
}

const v4a = (...lines: ReadonlyArray<string>) => ({ patch: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n") })
const unified = (...lines: ReadonlyArray<string>) => ({ patch: `${lines.join("\n")}\n` })

const ported = main.replace("80", "8080")

/** Calls with each kind of mistake in a patch, none of which changes a file. */
const refused: ReadonlyArray<readonly [args: unknown, message: RegExp]> = [
  [{ patch: "" }, /^The patch is empty\. /],
  [{ patch: "  \n" }, /^The patch is empty\. /],
  [{ patch: "change the port" }, /^The patch names no file, so there is nothing to do\. /],
  [{ patch: "*** Begin Patch\n*** Delete File: main.ts" }, /\*\*\* End Patch.*truncated/],
  [v4a(), /^The patch names no file/],
  [v4a("*** Update File: none.ts", "@@", "-x", "+y"), /^There is no file or directory "none\.ts"\. /],
  [v4a("*** Delete File: none.ts"), /^There is no file or directory "none\.ts"\. /],
  [v4a("*** Add File: main.ts", "+x"), /^main\.ts exists already, so it cannot be added \(line 2 of the patch\)\. /],
  [v4a("*** Update File: main.ts", "*** Move to: d/old.txt"), /^d\/old\.txt exists already/],
  [
    v4a("*** Update File: main.ts", "@@", "-  const port = 81", "+  const port = 82"),
    /^Hunk 1 of 1 for main\.ts \(line 3 of the patch\) does not apply: .*line 4.*\. Nothing was changed/s
  ],
  [
    v4a("*** Update File: main.ts", "@@ function close() {", "-  const port = 80", "+  const port = 82"),
    /does not apply: its @@ line names "function close\(\) \{", but there is no such line/
  ],
  [v4a("*** Update File: twice.txt", "@@", "-x", "+z"), /does not apply: its lines occur at lines 1 and 3/],
  [v4a("*** Update File: main.ts", "@@", " import a"), /changes nothing/],
  [v4a("*** Update File: bin.dat", "@@", "-x", "+z"), /^"bin\.dat" is not .*text/],
  [v4a("*** Update File: d", "@@", "-x", "+z"), /^"d" is not a regular file\. /],
  [v4a("*** Update File: ../x", "@@", "-x", "+z"), /^"\.\.\/x" is not a valid path/],
  [v4a("*** Add File: ../x", "+z"), /^"\.\.\/x" is not a valid path/],
  [v4a("*** Add File: main.ts/x", "+z"), /"main\.ts(\/x)?" is not a directory/],
  [v4a("*** Update File: out", "@@", "-secret", "+z"), /^"out" leads out of the root through a link/],
  [v4a("*** Delete File: link"), /^link is a link, and a patch removes only files\. /],
  [v4a("*** Add File: n", "+x", "*** Delete File: n"), /^n is added, removed or moved more than once/],
  [v4a("*** Add File: n", "x"), /^Line 3 of the patch must begin with \+/],
  [v4a("*** Rename File: n"), /^Line 2 of the patch should be one of \*\*\* Add File/],
  [
    v4a("*** Add File: good.txt", "+good", "*** Update File: main.ts", "@@", "-nowhere at all", "+z"),
    /^Hunk 1 of 1 for main\.ts \(line 5 of the patch\) does not apply/
  ],
  [
    unified("--- a/main.ts", "+++ b/main.ts", "@@ -1,2 +1,2 @@", "-import b", "+import c", " "),
    /^Hunk 1 of 1 for main\.ts .*line 1 of the file is "import a"/
  ],
  [unified("--- a/main.ts", "+++ b/other.ts", "@@ -1 +1 @@", "-import a", "+import c"), /names two files/],
  [unified("@@ -1 +1 @@", "-import a", "+import c"), /begins a hunk before any file is named/],
  [unified("diff --git a/bin.dat b/bin.dat", "Binary files a/bin.dat and b/bin.dat differ"), /binary content/],
  [
    unified("--- a/main.ts", "+++ /dev/null", "@@ -1 +0,0 @@", "-import a"),
    /^The patch cannot remove main\.ts .* because 5 of its lines are not in the patch/
  ],
  [{}, /"patch" is missing/],
  [{ ptach: "x" }, /"ptach" is not a parameter; did you mean "patch"\?/],
  [{ patch: ["x"] }, /"patch" must be a string, and was a list/]
]

export const patching: ReadonlyArray<Row> = [
  {
    name: "a V4A patch adds, updates, deletes and moves files at once",
    tree: files,
    calls: [
      ok(
        "apply_patch",
        v4a(
          "*** Update File: main.ts",
          "@@ function serve() {",
          "-  const port = 80",
          "+  const port = 8080",
          "*** Add File: n/ew é.md",
          "+# New",
          "+",
          "*** Delete File: open.txt",
          "*** Update File: d/old.txt",
          "*** Move to: d/new.txt",
          "@@",
          " 1",
          "-2",
          "+two",
          "+and a half",
          " 3"
        ),
        [
          "applied the patch: 4 files changed",
          "updated main.ts (+1 -1)",
          "added n/ew é.md (+2 -0)",
          "deleted open.txt (+0 -1)",
          "moved d/old.txt to d/new.txt (+2 -1)"
        ].join("\n"),
        {
          files: [
            { path: "main.ts", action: "updated", added_lines: 1, removed_lines: 1, version: v(ported) },
            { path: "n/ew é.md", action: "added", added_lines: 2, removed_lines: 0, version: v("# New\n\n") },
            { path: "open.txt", action: "deleted", added_lines: 0, removed_lines: 1, version: undefined },
            { path: "d/old.txt", to: "d/new.txt", action: "moved", version: v("1\ntwo\nand a half\n3\n") }
          ]
        }
      )
    ],
    left: {
      ...without(files, "open.txt", "d/old.txt"),
      "main.ts": ported,
      "n/ew é.md": "# New\n\n",
      "d/new.txt": "1\ntwo\nand a half\n3\n"
    }
  },
  {
    name: "a unified diff changes, makes and removes files",
    tree: files,
    calls: [
      ok(
        "apply_patch",
        unified(
          "--- a/main.ts",
          "+++ b/main.ts",
          "@@ -3,3 +3,3 @@",
          " function serve() {",
          "-  const port = 80",
          "+  const port = 8080",
          "   listen(port)",
          "--- /dev/null",
          "+++ b/new.txt",
          "@@ -0,0 +1 @@",
          "+new",
          "\\ No newline at end of file",
          "--- a/d/old.txt",
          "+++ /dev/null",
          "@@ -1,3 +0,0 @@",
          "-1",
          "-2",
          "-3"
        ),
        "applied the patch: 3 files changed\nupdated main.ts (+1 -1)\nadded new.txt (+1 -0)\ndeleted d/old.txt (+0 -3)",
        { files: [{ action: "updated" }, { action: "added", version: v("new") }, { action: "deleted" }] }
      )
    ],
    left: { ...without(files, "d/old.txt"), "main.ts": ported, "new.txt": "new", d: directory }
  },
  {
    name: "a patch keeps line endings and the missing newline at the end",
    tree: files,
    calls: [
      ok(
        "apply_patch",
        v4a("*** Update File: crlf.txt", "@@", " one", "-two", "+2", "+and", " three"),
        /\nupdated crlf\.txt \(\+2 -1\)/
      ),
      ok(
        "apply_patch",
        unified("--- open.txt", "+++ open.txt", "@@ -1 +1,2 @@", "+first", " last", "\\ No newline at end of file"),
        /\nupdated open\.txt \(\+1 -0\)$/
      )
    ],
    left: { ...files, "crlf.txt": "one\r\n2\r\nand\r\nthree\r\n", "open.txt": "first\nlast" }
  },
  {
    name: "a patch writes through a link to a file in the root",
    tree: files,
    calls: [ok("apply_patch", v4a("*** Update File: link", "@@", "-import a", "+import b"), /\nupdated link \(\+1 -1\)$/)],
    left: { ...files, "main.ts": main.replace("import a", "import b") }
  },
  {
    name: "a hunk whose lines have moved is applied at their new place, which the message names",
    tree: { a: "0\n0\n0\n1\n2\n3\n" },
    calls: [
      ok(
        "apply_patch",
        unified("--- a/a", "+++ b/a", "@@ -1,3 +1,3 @@", " 1", "-2", "+two", " 3"),
        "applied the patch: 1 file changed\nupdated a (+1 -1); hunk 1 applied at line 4"
      )
    ],
    left: { a: "0\n0\n0\n1\ntwo\n3\n" }
  },
  {
    name: "a patch that does not apply changes nothing, and the message says where it fails",
    tree: files,
    calls: refused.map(([args, message]) => fails("apply_patch", args, message))
  }
]
