/** Table rows for writing and editing: bytes outside of a match stay, and a failed call changes nothing. */
import { versionOf as v } from "./changing.ts"
import { fails, ok, type Row } from "./everywhereRun.ts"
import { climbs, escapes, text, utf16, work } from "./everywhere.trees.ts"

const stale = v("something else")

const edited = (path: string, replacements: number, after: string | Uint8Array, diff?: string) => ({
  path,
  replacements,
  version: v(after),
  ...(diff !== undefined && { diff }),
  files: [{ path, replacements, version: v(after) }]
})

const ofWriting: ReadonlyArray<Row> = [
  {
    name: "write_file makes a file and its parents",
    tree: work,
    calls: [
      ok(
        "write_file",
        { path: " /n/ew/é.txt ", content: "é\ny" },
        `created n/ew/é.txt: 4 bytes, 2 lines, version ${v("é\ny")}`,
        {
          path: "n/ew/é.txt",
          bytes_written: 4,
          mode: "create",
          version: v("é\ny")
        }
      ),
      ok("write_file", { path: "empty/none", content: "" }, `created empty/none: 0 bytes, 0 lines, version ${v("")}`),
      ok("read_file", { path: "n/ew/é.txt" }, "   1 | é\n   2 | y\nlines 1-2 of 2")
    ],
    left: { ...work, "n/ew/é.txt": "é\ny", "empty/none": "" }
  },
  {
    name: "write_file keeps every byte of the content: CRLF, a byte order mark, a missing final newline",
    tree: {},
    calls: [
      ok("write_file", { path: "a", content: "\ufeffx\r\ny" }, /^created a: 7 bytes, 2 lines, /, {
        bytes_written: 7,
        version: v("\ufeffx\r\ny")
      })
    ],
    left: { a: "\ufeffx\r\ny" }
  },
  {
    name: "write_file refuses an existing file and points to edit_file",
    tree: work,
    calls: [
      fails("write_file", { path: "a.txt", content: "x" }, /^"a\.txt" exists already.*\. .*edit_file.*overwrite/),
      fails("write_file", { path: "link", content: "x" }, /^"link" exists already/),
      fails("write_file", { path: "nowhere", content: "x" }, /^"nowhere" exists already/),
      fails("write_file", { path: "a.txt", content: "x", mode: null }, /^"a\.txt" exists already/)
    ]
  },
  {
    name: "write_file overwrites, replaces or appends, depending on its mode",
    tree: work,
    calls: [
      ok(
        "write_file",
        { path: "a.txt", content: "x\n", mode: "overwrite" },
        `wrote a.txt: 2 bytes, 1 line, version ${v("x\n")}`
      ),
      ok(
        "write_file",
        { path: "a.txt", content: "y", mode: "append" },
        `appended to a.txt: 1 byte, 1 line, version ${v("x\ny")}`,
        {
          bytes_written: 1,
          mode: "append"
        }
      ),
      ok("write_file", { path: "d/b.txt", content: "", mode: "replace" }, `wrote d/b.txt: 0 bytes, 0 lines, version ${v("")}`),
      ok("write_file", { path: "d/b.txt", content: "z", mode: "append_existing" }, /^appended to d\/b\.txt: 1 byte/),
      ok("write_file", { path: "o", content: "o", mode: "overwrite" }, /^wrote o: 1 byte/, { mode: "overwrite" }),
      ok("write_file", { path: "p", content: "p", mode: "append" }, /^appended to p: 1 byte/),
      fails("write_file", { path: "none", content: "x", mode: "replace" }, /^There is no file or directory "none"\./),
      fails("write_file", { path: "none", content: "x", mode: "append_existing" }, /^There is no file or directory "none"\./)
    ],
    left: { ...work, "a.txt": "x\ny", "d/b.txt": "z", o: "o", p: "p" }
  },
  {
    name: "write_file writes through a link, even to a missing target, and never out of the root",
    tree: work,
    calls: [
      ok("write_file", { path: "link", content: "x", mode: "overwrite" }, /^wrote link: 1 byte/, { path: "link" }),
      ok("write_file", { path: "linked/b.txt", content: "y", mode: "replace" }, /^wrote linked\/b\.txt: /),
      ok("write_file", { path: "nowhere", content: "z", mode: "overwrite" }, /^wrote nowhere: /),
      fails("write_file", { path: "out", content: "x", mode: "overwrite" }, escapes),
      fails("write_file", { path: "out", content: "x", mode: "append" }, escapes)
    ],
    left: { ...work, "a.txt": "x", "d/b.txt": "y", "d/new.txt": "z" }
  },
  {
    name: "write_file with if_match writes only if the file has the given version",
    tree: work,
    calls: [
      ok("write_file", { path: "a.txt", content: "1", mode: "overwrite", if_match: v(text) }, /^wrote a\.txt/, {
        version: v("1")
      }),
      fails(
        "write_file",
        { path: "a.txt", content: "2", mode: "overwrite", if_match: v(text) },
        new RegExp(`^"a\\.txt" does not have the version that was given.*${v("1")}.*read_file`)
      ),
      fails("write_file", { path: "no", content: "2", mode: "overwrite", if_match: stale }, /^"no" does not exist\. /),
      fails("write_file", { path: "d", content: "2", mode: "overwrite", if_match: stale }, /^"d" is not a regular file\. /),
      fails("write_file", { path: "b", content: "2", if_match: stale }, /^With mode "create".*if_match.*\. .*overwrite/)
    ],
    left: { ...work, "a.txt": "1" }
  },
  {
    name: "write_file refuses a directory, a path below a file, the root, and an invalid path",
    tree: work,
    calls: [
      fails("write_file", { path: "d", content: "x", mode: "overwrite" }, /^"d" is not a regular file\. /),
      fails(
        "write_file",
        { path: "a.txt/x", content: "x" },
        /^"a\.txt(\/x)?" is not a directory, or one of its parents is not a directory\. /
      ),
      fails("write_file", { path: ".", content: "x", mode: "overwrite" }, /^The root is not a regular file\. /),
      fails("write_file", { path: "../x", content: "x" }, climbs),
      fails("write_file", { path: "d/../../x", content: "x" }, /is not a valid path/),
      fails("write_file", { path: "  ", content: "x" }, /^The argument path is invalid: it must not be blank\. /),
      fails("write_file", { path: "a\u0000b", content: "x" }, /is not a valid path/),
      fails("write_file", { path: "a\nb", content: "x" }, /is not a valid path/)
    ]
  },
  {
    name: "write_file refuses content or paths over the limits, and a lone surrogate",
    tree: work,
    calls: [
      fails(
        "write_file",
        { path: "x", content: "x".repeat(48_001) },
        /exceeds the limit maxFileSize: 48001 is more than 48000\. .*48,000/
      ),
      ok("write_file", { path: "big", content: "😀".repeat(48_000) }, /^created big: 187\.5 KiB, 1 line/, {
        bytes_written: 192_000
      }),
      ok("rm", { path: "big" }, "removed big"),
      fails("write_file", { path: `${"s/".repeat(16)}x`, content: "x" }, /is too long/),
      fails("write_file", { path: "s".repeat(81), content: "x" }, /is too long/),
      fails("write_file", { path: "x", content: "a\ud800" }, /^The argument content is invalid/)
    ]
  },
  {
    name: "write_file names missing, unknown and invalid arguments",
    tree: {},
    calls: [
      fails(
        "write_file",
        { path: "x" },
        /^write_file cannot take these arguments: "content" is missing\. Send a JSON object such as /
      ),
      fails("write_file", { path: "x", content: 1 }, /"content" must be a string, and was 1/),
      fails("write_file", { pth: "x", content: "" }, /"pth" is not a parameter; did you mean "path"\?/),
      fails(
        "write_file",
        { path: "x/", content: "" },
        /^"x\/" is not a valid path: it ends in "\/", which names a directory\. /
      ),
      fails("write_file", { path: "x", content: "", mode: "truncate" }, /"mode" must be .*"create".*and was "truncate"/),
      fails("write_file", '{"path":"x","content":""}', /were sent as a string that contains JSON, not as an object/),
      fails("write_file", [], /must be an object, and were a list/),
      fails("write_file", null, /"path" is missing; "content" is missing/)
    ]
  }
]

const ofConflicts: ReadonlyArray<Row> = [
  {
    name: "a conflict names the current version and the lines that another session changed",
    tree: { a: "1\n2\n3\n4\n" },
    calls: [
      ok("read_file", { path: "a" }, /lines 1-4 of 4$/, { version: v("1\n2\n3\n4\n") }),
      { ...ok("edit_file", { path: "a", old_string: "3", new_string: "three" }, /^edited a: 1 replacement/), by: "another" },
      fails(
        "edit_file",
        { path: "a", old_string: "1", new_string: "one", if_match: v("1\n2\n3\n4\n") },
        `"a" has changed since it was read: its current version is ${v("1\n2\nthree\n4\n")}; line 3 changed. Read the file again with read_file, then make the changes that are still needed.`
      )
    ],
    left: { a: "1\n2\nthree\n4\n" }
  }
]

const ofEditing: ReadonlyArray<Row> = [
  {
    name: "edit_file replaces the match and shows the diff",
    tree: work,
    calls: [
      ok(
        "edit_file",
        { path: "a.txt", old_string: "three\n", new_string: "3\n" },
        `edited a.txt: 1 replacement, version ${v("one\ntwo\n3\ntwo\n")}\n--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n two\n-three\n+3\n two`,
        edited("a.txt", 1, "one\ntwo\n3\ntwo\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n two\n-three\n+3\n two\n")
      ),
      ok("edit_file", { path: "é 日.txt", old_string: "e", new_string: "" }, /^edited é 日\.txt: 1 replacement/),
      ok("edit_file", { path: ".hidden", old_string: "h", new_string: "H" }, /^edited \.hidden: 1 replacement/)
    ],
    left: { ...work, "a.txt": "one\ntwo\n3\ntwo\n", "é 日.txt": "\n", ".hidden": "H\n" }
  },
  {
    name: "edit_file with replace_all replaces matches from the left, without overlap",
    tree: { a: "aaa", b: text },
    calls: [
      ok(
        "edit_file",
        { path: "a", old_string: "aa", new_string: "b", replace_all: true },
        /^edited a: 1 replacement,/,
        edited("a", 1, "ba")
      ),
      ok(
        "edit_file",
        { path: "b", old_string: "two", new_string: "2", replace_all: true },
        /^edited b: 2 replacements,/,
        edited("b", 2, "one\n2\nthree\n2\n")
      )
    ],
    left: { a: "ba", b: "one\n2\nthree\n2\n" }
  },
  {
    name: "edit_file keeps line endings, a byte order mark and UTF-16",
    tree: { bom: "\ufeffa\nb", crlf: "a\r\nb\r\nc", wide: utf16("a\r\nb", "le") },
    calls: [
      ok(
        "edit_file",
        { path: "crlf", old_string: "a\nb\n", new_string: "x\ny\nz\n" },
        /^edited crlf: 1 replacement/,
        edited("crlf", 1, "x\r\ny\r\nz\r\nc")
      ),
      ok(
        "edit_file",
        { path: "bom", old_string: "a", new_string: "x" },
        /^edited bom: 1 replacement/,
        edited("bom", 1, "\ufeffx\nb")
      ),
      ok(
        "edit_file",
        { path: "wide", old_string: "a\nb", new_string: "é\n日" },
        /^edited wide: 1 replacement/,
        edited("wide", 1, utf16("é\r\n日", "le"))
      )
    ],
    left: { bom: "\ufeffx\nb", crlf: "x\r\ny\r\nz\r\nc", wide: utf16("é\r\n日", "le") }
  },
  {
    name: "edit_file works beyond line 2,000",
    tree: { a: `${"x\n".repeat(2500)}end` },
    calls: [
      ok(
        "edit_file",
        { path: "a", old_string: "end", new_string: "END" },
        /^edited a: 1 replacement.*\n[^]*@@ -2498,4 \+2498,4 @@\n/
      )
    ],
    left: { a: `${"x\n".repeat(2500)}END` }
  },
  {
    name: "edit_file makes several edits in several files at once, each against the original text",
    tree: work,
    calls: [
      ok(
        "edit_file",
        {
          path: "a.txt",
          edits: [
            { old_string: "one", new_string: "three" },
            { path: "/d/b.txt", old_string: "b", new_string: "B", if_match: v("b\n") },
            { old_string: "three", new_string: "one" }
          ]
        },
        `edited 2 files: 3 replacements\n  a.txt: 2 replacements, version ${v("three\ntwo\none\ntwo\n")}\n  d/b.txt: 1 replacement, version ${v("B\n")}\n--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n-one\n+three\n two\n-three\n+one\n two\n--- a/d/b.txt\n+++ b/d/b.txt\n@@ -1 +1 @@\n-b\n+B`,
        { path: "a.txt", replacements: 3, files: [{ path: "a.txt" }, { path: "d/b.txt" }] }
      )
    ],
    left: { ...work, "a.txt": "three\ntwo\none\ntwo\n", "d/b.txt": "B\n" }
  },
  {
    name: "edit_file changes nothing when an edit does not match, matches twice, or overlaps another edit",
    tree: work,
    calls: [
      fails(
        "edit_file",
        { path: "a.txt", old_string: "four", new_string: "4" },
        /^The argument old_string is invalid \(for "a\.txt"\): it does not occur in the file/
      ),
      fails("edit_file", { path: "a.txt", old_string: "Three", new_string: "3" }, /does not occur in the file.*line 3/),
      fails("edit_file", { path: "a.txt", old_string: "two", new_string: "2" }, /it occurs 2 times, on lines 2 and 4/),
      fails(
        "edit_file",
        {
          edits: [
            { path: "d/b.txt", old_string: "b", new_string: "B" },
            { path: "a.txt", old_string: "four", new_string: "4" }
          ]
        },
        /^The argument edits\[1\]\.old_string is invalid \(for "a\.txt"\): it does not occur/
      ),
      fails(
        "edit_file",
        {
          path: "a.txt",
          edits: [
            { old_string: "one\ntwo", new_string: "1" },
            { old_string: "two\nthree", new_string: "2" }
          ]
        },
        /^The argument edits is invalid.*edits\[0\] and edits\[1\] overlap on line 2/
      ),
      fails("edit_file", { path: "a.txt", old_string: "one", new_string: "one" }, /new_string is invalid.*same as old_string/),
      fails("edit_file", { path: "a.txt", old_string: "", new_string: "x" }, /old_string is invalid.*empty/)
    ]
  },
  {
    name: "edit_file names missing and invalid arguments",
    tree: work,
    calls: [
      fails("edit_file", { path: "a.txt" }, /^edit_file was given nothing to replace\. /),
      fails("edit_file", {}, /^edit_file was given nothing to replace\. /),
      fails("edit_file", { path: "a.txt", edits: [] }, /^edit_file was given nothing to replace\. /),
      fails("edit_file", { path: "a.txt", old_string: "one" }, /^edit_file was given only one of old_string and new_string\. /),
      fails(
        "edit_file",
        { path: " ", old_string: "one", new_string: "1" },
        /^The argument path is invalid: it must not be blank\. /
      ),
      fails("edit_file", { edits: [{ old_string: "one", new_string: "1" }] }, /^The argument edits\[0\]\.path is invalid/),
      fails("edit_file", { path: "a.txt", edits: "one" }, /"edits" must be a list, and was "one"/),
      fails("edit_file", { path: "a.txt", edits: [{ old_string: "one" }] }, /"edits\[0\]\.new_string" is missing/)
    ]
  },
  {
    name: "edit_file refuses binary files, directories, missing files, paths outside of the root, and other versions",
    tree: work,
    calls: [
      fails("edit_file", { path: "bin.dat", old_string: "a", new_string: "b" }, /^"bin\.dat" is not .*text: .*offset 0\. /),
      fails("edit_file", { path: "d", old_string: "a", new_string: "b" }, /^"d" is not a regular file\. /),
      fails("edit_file", { path: "none", old_string: "a", new_string: "b" }, /^There is no file or directory "none"\. /),
      fails(
        "edit_file",
        { path: "a.txt/x", old_string: "a", new_string: "b" },
        /^There is no file or directory "a\.txt\/x"\. /
      ),
      fails("edit_file", { path: "out", old_string: "a", new_string: "b" }, escapes),
      fails("edit_file", { path: "../x", old_string: "a", new_string: "b" }, climbs),
      fails(
        "edit_file",
        { path: "a.txt", old_string: "one", new_string: "1", if_match: stale },
        new RegExp(`^"a\\.txt" does not have the version that was given.*${v(text)}`)
      ),
      fails(
        "edit_file",
        {
          edits: [
            { path: "d/b.txt", old_string: "b", new_string: "B" },
            { path: "bin.dat", old_string: "a", new_string: "b" }
          ]
        },
        /^"bin\.dat" is not .*text/
      ),
      fails(
        "edit_file",
        {
          edits: [
            { path: "d/b.txt", old_string: "b", new_string: "B" },
            { path: "none", old_string: "a", new_string: "b" }
          ]
        },
        /^There is no file or directory "none"\. /
      ),
      fails(
        "edit_file",
        {
          edits: [
            { path: "a.txt", old_string: "one", new_string: "1" },
            { path: "link", old_string: "three", new_string: "3" }
          ]
        },
        /^The argument edits is invalid.*one file would be changed twice/
      )
    ]
  },
  {
    name: "edit_file through a link changes its target and keeps the link",
    tree: work,
    calls: [
      ok("edit_file", { path: "link", old_string: "one", new_string: "1" }, /^edited link: 1 replacement/, { path: "link" })
    ],
    left: { ...work, "a.txt": "1\ntwo\nthree\ntwo\n" }
  }
]

export const editing: ReadonlyArray<Row> = [...ofWriting, ...ofConflicts, ...ofEditing]
