/** Table rows for glob and grep: matches, skipped files and further pages. */
import { type Files } from "../../src/testing/Files.ts"
import { fails, ok, type Row } from "./everywhereRun.ts"
import { encodings, project } from "./everywhere.trees.ts"

const many: Files = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${String(i).padStart(2, "0")}.txt`, "needle\n"]))
export const searching: ReadonlyArray<Row> = [
  {
    name: "glob matches names at any depth, includes hidden files, and skips ignored files",
    tree: project,
    calls: [
      ok("glob", { pattern: "*.ts" }, "dir/inner/deep.ts (22 bytes)\ndir/x.ts (42 bytes)\n2 matches; skipped: 2 ignored", {
        matches: [
          { path: "dir/inner/deep.ts", size_bytes: 22 },
          { path: "dir/x.ts", size_bytes: 42 }
        ],
        truncated: false
      }),
      ok("glob", { pattern: ".*" }, /^\.env \(6 bytes\)\n\.gitignore \(13 bytes\)\ndir\/\.hidden \(13 bytes\)\n3 matches/),
      ok("glob", { pattern: "é*.txt" }, /^é日\.txt \(7 bytes\)\n1 match(;|$)/),
      ok("glob", { pattern: "*.log", include_ignored: true }, "debug.log (10 bytes)\n1 match", {
        matches: [{ path: "debug.log" }]
      }),
      ok("glob", { pattern: "*.log" }, /^0 matches; skipped: 2 ignored; include_ignored=true/, { matches: [] })
    ]
  },
  {
    name: "glob anchors a pattern with a slash, lets ** match no directory, and does not enter links",
    tree: project,
    calls: [
      ok("glob", { pattern: "**/*.md" }, /^readme\.md \(15 bytes\)\n1 match(;|$)/),
      ok("glob", { pattern: "dir/*.ts" }, /^dir\/x\.ts \(42 bytes\)\n1 match(;|$)/),
      ok("glob", { pattern: "/*.{md,txt}" }, /^a b\.txt .*\nempty\.txt .*\nreadme\.md .*\né日\.txt .*\n4 matches/),
      ok("glob", { pattern: "inner/*.ts", path: "dir" }, "dir/inner/deep.ts (22 bytes)\n1 match", { truncated: false }),
      ok("glob", { pattern: "linked/**" }, /^0 matches/, { matches: [] })
    ]
  },
  {
    name: "glob returns pages, each strictly after the previous page",
    tree: many,
    calls: [
      ok(
        "glob",
        { pattern: "*", max_matches: 2 },
        'f00.txt (7 bytes)\nf01.txt (7 bytes)\n2 matches, and more; continue with after="f01.txt"',
        {
          truncated: true,
          next: "f01.txt"
        }
      ),
      ok("glob", { pattern: "*", after: "f28.txt" }, "f29.txt (7 bytes)\n1 match", { truncated: false, next: undefined }),
      ok("glob", { pattern: "*", max_matches: 1e9 }, /\n30 matches$/, { truncated: false })
    ]
  },
  {
    name: "glob refuses a missing base, a file as base, and an invalid pattern",
    tree: project,
    calls: [
      fails("glob", { pattern: "*", path: "none" }, /^There is no file or directory "none"\./),
      fails("glob", { pattern: "*", path: "dri" }, 'There is no file or directory "dri". Did you mean "dir"?'),
      fails("glob", { pattern: "*", path: "readme.md" }, /^"readme\.md" is not a directory/),
      fails("glob", { pattern: " " }, /^The argument pattern is invalid/),
      fails("glob", { pattern: "../*" }, /^The argument pattern is invalid/),
      fails("glob", { pattern: "[a" }, /^The argument pattern is invalid/),
      fails("glob", { pattern: "x".repeat(1001) }, /^The argument pattern is invalid/),
      fails("glob", { pattern: "*", max_matches: 0 }, /"max_matches" must be /)
    ]
  },
  {
    name: "grep returns lines grouped by file, and counts skipped files",
    tree: project,
    calls: [
      ok(
        "grep",
        { pattern: "hello" },
        "dir/.hidden\n   1 | hidden hello\ndir/x.ts\n   2 | hello\nreadme.md\n   3 | hello\n3 matches in 3 files; skipped: 2 ignored",
        {
          matches: [
            { path: "dir/.hidden", line_number: 1, line: "hidden hello", match_start: 7, match_end: 12 },
            { path: "dir/x.ts", line_number: 2, line: "hello", match_start: 0, match_end: 5 },
            { path: "readme.md", line_number: 3, line: "hello", match_start: 0, match_end: 5 }
          ],
          total: 3,
          files_matched: 3,
          files_searched: 9,
          truncated: false
        }
      ),
      ok("grep", { pattern: "h.llo", path: "é日.txt" }, "é日.txt\n   1 | héllo\n1 match in 1 file", { files_searched: 1 }),
      ok(
        "grep",
        { pattern: "hello", path: "build", include_ignored: true },
        "build/out.js\n   1 | hello built\n1 match in 1 file"
      ),
      ok("grep", { pattern: "nothing like it" }, /^0 matches; skipped: 2 ignored; include_ignored=true/, {
        matches: [],
        total: 0
      })
    ]
  },
  {
    name: "grep returns files or counts in the modes files and count",
    tree: { a: "x\ny\nx x\n", b: "x\n", c: "y\n" },
    calls: [
      ok("grep", { pattern: "x", mode: "files" }, "a\nb\n3 matches in 2 files", {
        files: [
          { path: "a", count: 2 },
          { path: "b", count: 1 }
        ],
        total: 3,
        files_matched: 2,
        files_searched: 3,
        truncated: false,
        matches: undefined
      }),
      ok("grep", { pattern: "x", mode: "count" }, "a: 2 matches\nb: 1 match\n3 matches in 2 files"),
      ok("grep", { pattern: "x", mode: "files", max_matches: 1 }, /^a\n2 matches in 1 file, and more; continue with after=/, {
        files: [{ path: "a", count: 2 }],
        truncated: true
      })
    ]
  },
  {
    name: "grep continues strictly after a match",
    tree: { a: "x1\nx2\nx3\n", b: "x4\n" },
    calls: [
      ok(
        "grep",
        { pattern: "x", max_matches: 2 },
        'a\n   1 | x1\n   2 | x2\n2 matches in 1 file, and more; continue with after="2:a"',
        {
          truncated: true,
          next: "2:a"
        }
      ),
      ok("grep", { pattern: "x", after: "2:a" }, "a\n   3 | x3\nb\n   1 | x4\n2 matches in 2 files", { truncated: false }),
      fails("grep", { pattern: "x", after: "not one" }, /^The argument after is invalid/)
    ]
  },
  {
    name: "grep ignores case, matches literally, by word or across lines, and shows context on request",
    tree: { a: "Foo.bar\nfoo bar\nfooobar\nend\n", b: "begin\r\nend\r\n" },
    calls: [
      ok("grep", { pattern: "FOO", ignore_case: true, path: "a" }, /3 matches in 1 file$/, { total: 3 }),
      ok("grep", { pattern: ".", literal: true }, "a\n   1 | Foo.bar\n1 match in 1 file", {
        matches: [{ match_start: 3, match_end: 4 }]
      }),
      ok("grep", { pattern: "foo", whole_word: true }, "a\n   2 | foo bar\n1 match in 1 file"),
      ok("grep", { pattern: "begin\\s+end", multiline: true }, /^b\n {3}1 \| begin/, { total: 1 }),
      ok("grep", { pattern: "^end$" }, "a\n   4 | end\nb\n   2 | end\n2 matches in 2 files"),
      ok("grep", { pattern: "fooo", context: 1 }, "a\n   2 - foo bar\n   3 | fooobar\n   4 - end\n1 match in 1 file", {
        matches: [{ before: ["foo bar"], after: ["end"] }]
      }),
      ok("grep", { pattern: "(?i)foo\\b" }, /2 matches in 1 file$/, { total: 2 })
    ]
  },
  {
    name: "grep searches only files that match its glob; file_glob has the same meaning, and a blank glob matches all files",
    tree: { "a.ts": "x\n", "b.md": "x\n", "d/c.ts": "x\n" },
    calls: [
      ok("grep", { pattern: "x", glob: "*.ts", mode: "files" }, "a.ts\nd/c.ts\n2 matches in 2 files", { files_searched: 2 }),
      ok("grep", { pattern: "x", file_glob: "/*.ts", mode: "files" }, "a.ts\n1 match in 1 file"),
      ok("grep", { pattern: "x", glob: "  ", mode: "files" }, /3 matches in 3 files$/)
    ]
  },
  {
    name: "grep skips and counts binary files, with a NUL or with invalid text",
    tree: { "bad.txt": new Uint8Array([0x78, 0x0a, 0xff]), "null.bin": new Uint8Array([0x78, 0x00]), "t.txt": "x\n" },
    calls: [ok("grep", { pattern: "x" }, "t.txt\n   1 | x\n1 match in 1 file; skipped: 2 binary", { skipped: { binary: 2 } })]
  },
  {
    name: "grep matches after a byte order mark, and in lines that end in CRLF",
    tree: encodings,
    calls: [
      ok("grep", { pattern: "^one$" }, "bom.txt\n   1 | one\ncrlf.txt\n   1 | one\n2 matches in 2 files; skipped: 4 binary", {
        total: 2
      })
    ]
  },
  {
    name: "grep refuses an invalid expression or glob, and a missing base",
    tree: project,
    calls: [
      fails("grep", { pattern: "(" }, /^The argument pattern is invalid.*literal/s),
      fails("grep", { pattern: "" }, /^The argument pattern is invalid/),
      fails("grep", { pattern: "x", context: -1 }, /"context" must be /),
      fails("grep", { pattern: "x", mode: "lines" }, /"mode" must be .*"matches".*"files".*"count"/),
      fails("grep", { pattern: "x", glob: "[a" }, /^The argument glob is invalid/),
      fails("grep", { pattern: "x", path: "none" }, /^There is no file or directory "none"\./),
      fails("grep", { pattern: "x", path: "dri/x" }, /^There is no file or directory "dri\/x"\. Did you mean "dir/)
    ]
  },
  {
    name: "searches distinguish names that differ only in case",
    tree: { "A.txt": "x\n", "a.txt": "x\n", B: "x\n" },
    cases: true,
    calls: [
      ok("glob", { pattern: "a*" }, "a.txt (2 bytes)\n1 match"),
      ok("ls", {}, "A.txt (2 bytes)\nB (2 bytes)\na.txt (2 bytes)\n0 directories, 3 files"),
      fails("read_file", { path: "b" }, 'There is no file or directory "b". Did you mean "B"?')
    ]
  },
  {
    name: "search results are sorted by path, with / as a character like any other",
    tree: { "a-b.txt": "x\n", "a.txt": "x\n", "a/b.txt": "x\n" },
    calls: [
      ok("glob", { pattern: "**/*.txt" }, "a-b.txt (2 bytes)\na.txt (2 bytes)\na/b.txt (2 bytes)\n3 matches"),
      ok("grep", { pattern: "x", mode: "files" }, "a-b.txt\na.txt\na/b.txt\n3 matches in 3 files")
    ]
  },
  {
    name: "ignore files apply at every level, and a deeper file can negate patterns above it",
    tree: {
      ".gitignore": "*.log\n/top\n",
      "d/.gitignore": "!keep.log\nlocal\n",
      "d/keep.log": "x\n",
      "d/local": "x\n",
      "d/other.log": "x\n",
      "d/top": "x\n",
      ".git/config": "x\n",
      local: "x\n",
      top: "x\n"
    },
    calls: [
      ok("grep", { pattern: "^x", mode: "files" }, /^d\/keep\.log\nd\/top\nlocal\n3 matches in 3 files/, { files_matched: 3 }),
      ok("grep", { pattern: "^x", mode: "files", include_ignored: true }, /7 matches in 7 files$/, { files_matched: 7 })
    ]
  }
]
