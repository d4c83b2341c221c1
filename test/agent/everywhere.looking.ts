/** Rows of what only looks: lists, pages, searches, and what each says where there is nothing to see. */
import { directory, type Files, link } from "../../src/testing/Files.ts"
import { versionOf as v } from "./changing.ts"
import { fails, ok, type Row } from "./everywhere.ts"

const project: Files = {
  ".env": "KEY=1\n",
  ".gitignore": "build/\n*.log\n",
  "a b.txt": "with space\n",
  "build/out.js": "hello built\n",
  "debug.log": "hello log\n",
  "dir/.hidden": "hidden hello\n",
  "dir/inner/deep.ts": "export const deep = 1\n",
  "dir/x.ts": "import { deep } from './inner/deep'\nhello\n",
  empty: directory,
  "empty.txt": "",
  inside: link("dir/x.ts"),
  linked: link("dir"),
  nowhere: link("gone.txt"),
  out: link("../outside.txt"),
  "readme.md": "# Title\n\nhello\n",
  "é日.txt": "héllo\n"
}

const utf16 = (text: string, order: "le" | "be"): Uint8Array => {
  const bytes = Buffer.from(`\ufeff${text}`, "utf16le")
  return new Uint8Array(order === "le" ? bytes : bytes.swap16())
}

const seven = "a\nb\nc\nd\ne\nf\ng"

const encodings: Files = {
  "bad.txt": new Uint8Array([0x61, 0x0a, 0xff, 0x62]),
  "bom.txt": "\ufeffone\ntwo\n",
  "crlf.txt": "one\r\ntwo\r\n",
  "cr.txt": "one\rstill one\n",
  "nul.bin": new Uint8Array([0x61, 0x00, 0x62]),
  "odd.txt": "a\u2028b\u0085c\fd\n",
  "png.dat": new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00]),
  "seven.txt": seven,
  "u16be.txt": utf16("hé\nyo\n", "be"),
  "u16le.txt": utf16("hé\r\nyo", "le")
}

const many: Files = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${String(i).padStart(2, "0")}.txt`, "needle\n"]))
const long: Files = {
  "long.txt": "x\n".repeat(2500),
  "wide.txt": `${"w".repeat(2500)}\nshort\n`
}

const listing: ReadonlyArray<Row> = [
  {
    name: "ls shows names in order, directories with a slash, sizes, links, hidden and ignored files",
    tree: project,
    calls: [
      ok(
        "ls",
        {},
        [
          ".env (6 bytes)",
          ".gitignore (13 bytes)",
          "a b.txt (11 bytes)",
          "build/",
          "debug.log (10 bytes)",
          "dir/",
          "empty/",
          "empty.txt (0 bytes)",
          "inside (link)",
          "linked (link)",
          "nowhere (link)",
          "out (link)",
          "readme.md (15 bytes)",
          "é日.txt (7 bytes)",
          "3 directories, 7 files, 4 others"
        ].join("\n"),
        { path: ".", counts: { files: 7, directories: 3, others: 4 }, truncated: false, next: undefined }
      )
    ]
  },
  {
    name: "ls takes a path with blanks and slashes around it, and answers one without",
    tree: project,
    calls: [
      ok("ls", { path: " /dir/ " }, ".hidden (13 bytes)\ninner/\nx.ts (42 bytes)\n1 directory, 2 files", {
        path: "dir",
        entries: [
          { name: ".hidden", path: "dir/.hidden", kind: "file", size_bytes: 13 },
          { name: "inner", path: "dir/inner", kind: "directory" },
          { name: "x.ts", path: "dir/x.ts", kind: "file", size_bytes: 42 }
        ],
        counts: { files: 2, directories: 1, others: 0 }
      }),
      ok("ls", { path: "dir/inner/../inner/." }, "deep.ts (22 bytes)\n0 directories, 1 file", { path: "dir/inner" })
    ]
  },
  {
    name: "ls follows a link to a directory inside",
    tree: project,
    calls: [ok("ls", { path: "linked/inner" }, "deep.ts (22 bytes)\n0 directories, 1 file", { path: "linked/inner" })]
  },
  {
    name: "ls says that a directory is empty, and so the root",
    tree: project,
    calls: [
      ok("ls", { path: "empty" }, "empty is empty", { entries: [], counts: { files: 0, directories: 0, others: 0 } })
    ]
  },
  { name: "ls of an empty root", tree: {}, calls: [ok("ls", { path: null }, "the root is empty", { path: ".", entries: [] })] },
  {
    name: "ls goes on after a name, present or not",
    tree: { a: "1", b: "2", c: "3" },
    calls: [
      ok("ls", { after: "a" }, "b (1 byte)\nc (1 byte)\n0 directories, 3 files", { truncated: false }),
      ok("ls", { after: "bb" }, "c (1 byte)\n0 directories, 3 files", { counts: { files: 3 } }),
      ok("ls", { after: "" }, /^a \(1 byte\)/, { truncated: false })
    ]
  },
  {
    name: "ls is cut at the budget and says how to go on",
    tree: { a: "1", b: "2", c: "3" },
    settings: { budget: 70 },
    calls: [
      ok("ls", {}, 'a (1 byte)\n0 directories, 3 files; continue with after="a"', { truncated: true, next: "a" }),
      ok("ls", { after: "a" }, "b (1 byte)\nc (1 byte)\n0 directories, 3 files", { truncated: false })
    ]
  },
  {
    name: "ls of a file, of what is missing, and below a file",
    tree: project,
    calls: [
      fails("ls", { path: "readme.md" }, /^"readme\.md" is not a directory.*\. .*read_file/),
      fails("ls", { path: "dri" }, 'There is no file or directory "dri". Did you mean "dir"?'),
      fails("ls", { path: "readme.md/x" }, /^There is no file or directory "readme\.md\/x"\./)
    ]
  },
  {
    name: "tree outlines what is near the top, counts what is not shown, and names what is ignored",
    tree: project,
    calls: [
      ok(
        "tree",
        { depth: 1 },
        [
          ".env",
          ".gitignore",
          "a b.txt",
          "dir/ (3 entries)",
          "empty/",
          "empty.txt",
          "inside (link)",
          "linked (link)",
          "nowhere (link)",
          "out (link)",
          "readme.md",
          "é日.txt",
          "2 directories, 6 files, 4 others; ignored: build and debug.log"
        ].join("\n"),
        { path: ".", depth: 1, counts: { files: 6, directories: 2, others: 4 }, ignored: ["build", "debug.log"], truncated: true }
      ),
      ok("tree", { path: "dir" }, ".hidden\ninner/\n  deep.ts\nx.ts\n1 directory, 3 files", {
        path: "dir",
        depth: 3,
        entries: [
          { path: "dir/.hidden", kind: "file" },
          { path: "dir/inner", kind: "directory" },
          { path: "dir/x.ts", kind: "file" },
          { path: "dir/inner/deep.ts", kind: "file" }
        ],
        truncated: false
      }),
      ok("tree", { path: "build", include_ignored: true }, "out.js\n0 directories, 1 file", { ignored: [] }),
      ok("tree", { path: "empty" }, "empty is empty", { entries: [], truncated: false }),
      ok("tree", { path: "dir", max_entries: 2 }, ".hidden\ninner/ (1 entry)\n... 1 more\n1 directory, 1 file", {
        truncated: true
      })
    ]
  },
  {
    name: "tree of a file, of nothing, and beyond its depths",
    tree: project,
    calls: [
      fails("tree", { path: "readme.md" }, /^"readme\.md" is not a directory/),
      fails("tree", { path: "none" }, /^There is no file or directory "none"\./),
      fails("tree", { depth: 0 }, /^tree cannot take these arguments: "depth" must be /),
      fails("tree", { depth: 17 }, /^tree cannot take these arguments: "depth" must be /),
      fails("tree", { max_entries: 0 }, /^tree cannot take these arguments: "max_entries" must be /)
    ]
  },
  {
    name: "stat tells kind, size, version and whether it is a link",
    tree: project,
    calls: [
      ok("stat", { path: "readme.md" }, /^readme\.md: file\nsize 15 bytes\nmodified <time>\n/, {
        path: "readme.md",
        kind: "file",
        size_bytes: 15,
        is_symlink: false,
        version: v("# Title\n\nhello\n")
      }),
      ok("stat", {}, /^\.: directory\n/, { path: ".", kind: "directory", size_bytes: undefined, is_symlink: false }),
      ok("stat", { path: "inside" }, /^inside: file, reached through a link\n/, {
        kind: "file",
        is_symlink: true,
        size_bytes: 42,
        version: v("import { deep } from './inner/deep'\nhello\n")
      }),
      ok("stat", { path: "linked" }, /^linked: directory, reached through a link/, { kind: "directory", is_symlink: true }),
      ok("stat", { path: "empty.txt" }, /size 0 bytes/, { size_bytes: 0, version: v("") })
    ]
  },
  {
    name: "stat of a link that leads nowhere, one that leads out, and nothing",
    tree: project,
    calls: [
      ok("stat", { path: "nowhere" }, /^nowhere: symlink/, { kind: "symlink", is_symlink: true }),
      fails("stat", { path: "out" }, /^"out" leads through a link out of the root, which is refused\. /),
      fails("stat", { path: "readme" }, 'There is no file or directory "readme". Did you mean "readme.md"?')
    ]
  }
]

const reading: ReadonlyArray<Row> = [
  {
    name: "read_file numbers lines from 1, right-aligned, and says which they are",
    tree: encodings,
    calls: [
      ok("read_file", { path: "seven.txt", offset: 2, limit: 3 }, "   3 | c\n   4 | d\n   5 | e\nlines 3-5 of 7; continue with offset=5", {
        path: "seven.txt",
        content: "c\nd\ne",
        encoding: "utf-8",
        offset: 2,
        limit: 3,
        total_lines: 7,
        truncated: true,
        next: 5,
        version: v(seven)
      }),
      ok("read_file", { path: "seven.txt", offset: 5 }, "   6 | f\n   7 | g\nlines 6-7 of 7", {
        truncated: false,
        next: undefined,
        ends_with_newline: false
      }),
      ok("read_file", { path: "seven.txt", offset: 7 }, "no lines from offset 7 on: seven.txt has 7 lines", {
        content: "",
        limit: 0,
        total_lines: 7,
        truncated: false
      }),
      ok("read_file", { path: "seven.txt", offset: 1e15 }, /has 7 lines$/, { content: "", limit: 0 })
    ]
  },
  {
    name: "read_file answers 2,000 lines however many are asked for, and the hint leads to the end",
    tree: long,
    calls: [
      ok("read_file", { path: "long.txt", limit: 1e15 }, /\n2000 \| x\nlines 1-2000 of 2500; continue with offset=2000$/, {
        limit: 2000,
        next: 2000
      }),
      ok("read_file", { path: "long.txt", offset: 2000 }, /^2001 \| x\n[^]*\nlines 2001-2500 of 2500$/, {
        limit: 500,
        truncated: false,
        ends_with_newline: true
      })
    ]
  },
  {
    name: "read_file cuts a line over 2,000 characters with a mark, and says how to get its rest",
    tree: long,
    calls: [
      ok(
        "read_file",
        { path: "wide.txt" },
        /^ {3}1 \| w{2000} \[cut: characters 1-2000 of 2500\]\n {3}2 \| short\nlines 1-2 of 2\n.*encoding="base64", offset=2000, limit=500/,
        { cut_lines: [1], total_lines: 2 }
      ),
      ok("read_file", { path: "wide.txt", encoding: "base64", offset: 2000, limit: 500 }, /continue with encoding="base64", offset=2500$/, {
        content: Buffer.from("w".repeat(500)).toString("base64"),
        encoding: "base64",
        next: 2500
      })
    ]
  },
  {
    name: "read_file is cut at the budget between lines",
    tree: encodings,
    settings: { budget: 60 },
    calls: [
      ok("read_file", { path: "seven.txt" }, "   1 | a\n   2 | b\nlines 1-2 of 7; continue with offset=2", { limit: 2, next: 2 })
    ]
  },
  {
    name: "read_file says that a file is empty",
    tree: project,
    calls: [
      ok("read_file", { path: "empty.txt" }, "empty.txt is empty", { content: "", total_lines: 0, version: v("") })
    ]
  },
  {
    name: "read_file ends lines at LF and CRLF and at nothing else",
    tree: encodings,
    calls: [
      ok("read_file", { path: "crlf.txt" }, "   1 | one\n   2 | two\nlines 1-2 of 2", {
        content: "one\r\ntwo",
        ends_with_newline: true,
        version: v("one\r\ntwo\r\n")
      }),
      ok("read_file", { path: "cr.txt" }, "   1 | one\rstill one\nlines 1-1 of 1", { total_lines: 1 }),
      ok("read_file", { path: "odd.txt" }, "   1 | a\u2028b\u0085c\fd\nlines 1-1 of 1", { total_lines: 1 })
    ]
  },
  {
    name: "read_file keeps a byte order mark, and reads UTF-16 that has one",
    tree: encodings,
    calls: [
      ok("read_file", { path: "bom.txt" }, "   1 | \ufeffone\n   2 | two\nlines 1-2 of 2", { content: "\ufeffone\ntwo" }),
      ok("read_file", { path: "u16le.txt" }, /\u0068é\n {3}2 \| yo\nlines 1-2 of 2$/, {
        encoding: "utf-16le",
        total_lines: 2,
        ends_with_newline: false,
        version: v(utf16("hé\r\nyo", "le"))
      }),
      ok("read_file", { path: "u16be.txt" }, /\u0068é\n {3}2 \| yo\nlines 1-2 of 2$/, {
        encoding: "utf-16be",
        ends_with_newline: true
      })
    ]
  },
  {
    name: "read_file refuses what is binary with its size and type, and answers its bytes as base64",
    tree: encodings,
    calls: [
      fails("read_file", { path: "nul.bin" }, /binary.*unknown type, 3 bytes\. .*encoding="base64"/),
      fails("read_file", { path: "bad.txt" }, /binary.*4 bytes\. .*encoding="base64"/),
      ok("read_file", { path: "nul.bin", encoding: "base64" }, "YQBi\n3 bytes from offset 0, of 3", {
        content: "YQBi",
        encoding: "base64",
        size_bytes: 3,
        truncated: false,
        version: v(new Uint8Array([0x61, 0x00, 0x62]))
      }),
      ok("read_file", { path: "bad.txt", encoding: "base64", offset: 1, limit: 2 }, /^Cv8=\n2 bytes from offset 1, of 4; continue with .*offset=3$/, {
        content: "Cv8=",
        offset: 1,
        next: 3
      }),
      ok("read_file", { path: "bad.txt", encoding: "base64", offset: 9 }, "no bytes from offset 9 on: bad.txt has 4 bytes", {
        content: "",
        truncated: false
      }),
      ok("read_file", { path: "png.dat" }, "png.dat: PNG image, 9 bytes", { encoding: "base64", media_type: "image/png" })
    ]
  },
  {
    name: "read_file through links: inside it reads, outside it refuses, nowhere there is nothing",
    tree: project,
    calls: [
      ok("read_file", { path: "inside", offset: 1 }, "   2 | hello\nlines 2-2 of 2", { path: "inside" }),
      ok("read_file", { path: "linked/x.ts", offset: 1 }, "   2 | hello\nlines 2-2 of 2", { path: "linked/x.ts" }),
      fails("read_file", { path: "out" }, /^"out" leads through a link out of the root, which is refused\. /),
      fails("read_file", { path: "nowhere" }, /^There is no file or directory "nowhere"\. /)
    ]
  },
  {
    name: "read_file of unicode names, blanks and hidden files",
    tree: project,
    calls: [
      ok("read_file", { path: "é日.txt" }, "   1 | héllo\nlines 1-1 of 1", { path: "é日.txt" }),
      ok("read_file", { path: " a b.txt " }, "   1 | with space\nlines 1-1 of 1", { path: "a b.txt" }),
      ok("read_file", { path: "/.env" }, "   1 | KEY=1\nlines 1-1 of 1", { path: ".env" })
    ]
  },
  {
    name: "read_file of a directory, of nothing, and what was meant",
    tree: project,
    calls: [
      fails("read_file", { path: "dir" }, /^"dir" is not a regular file\. /),
      fails("read_file", { path: "." }, /^The root is not a regular file\. /),
      fails("read_file", { path: "deep.ts" }, 'There is no file or directory "deep.ts". Did you mean "dir/inner/deep.ts"?'),
      fails("read_file", { path: "dir/y.ts" }, 'There is no file or directory "dir/y.ts". Did you mean "dir/x.ts"?'),
      fails("read_file", { path: "readme.md/x" }, /^There is no file or directory "readme\.md\/x"\. /),
      fails("read_file", { path: "quite/another" }, /^There is no file or directory "quite\/another"\. /)
    ]
  },
  {
    name: "read_file refuses windows that are none",
    tree: encodings,
    calls: [
      fails("read_file", { path: "seven.txt", offset: -1 }, /"offset" must be .*-1/),
      fails("read_file", { path: "seven.txt", offset: 0.5 }, /"offset" must be .*0\.5/),
      fails("read_file", { path: "seven.txt", limit: 0 }, /"limit" must be .*0/),
      fails("read_file", { path: "seven.txt", limit: "3" }, /"limit" must be a number, and was "3"/),
      fails("read_file", { path: "seven.txt", encoding: "latin1" }, /"encoding" must be .*"utf-8".*"base64".*"latin1"/)
    ]
  }
]

const searching: ReadonlyArray<Row> = [
  {
    name: "glob finds a name at any depth, hidden files too, and passes over what is ignored",
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
      ok("glob", { pattern: "*.log", include_ignored: true }, "debug.log (10 bytes)\n1 match", { matches: [{ path: "debug.log" }] }),
      ok("glob", { pattern: "*.log" }, /^0 matches; skipped: 2 ignored; include_ignored=true/, { matches: [] })
    ]
  },
  {
    name: "glob anchors a pattern with a slash, ** is also nothing, and links are not entered",
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
    name: "glob answers a page at a time, and goes on strictly after it",
    tree: many,
    calls: [
      ok("glob", { pattern: "*", max_matches: 2 }, 'f00.txt (7 bytes)\nf01.txt (7 bytes)\n2 matches, and more; continue with after="f01.txt"', {
        truncated: true,
        next: "f01.txt"
      }),
      ok("glob", { pattern: "*", after: "f28.txt" }, "f29.txt (7 bytes)\n1 match", { truncated: false, next: undefined }),
      ok("glob", { pattern: "*", max_matches: 1e9 }, /\n30 matches$/, { truncated: false })
    ]
  },
  {
    name: "glob of nothing there is empty, and says so; of a file it fails",
    tree: project,
    calls: [
      ok("glob", { pattern: "*", path: "none" }, "0 matches; there is no none", { matches: [], truncated: false }),
      fails("glob", { pattern: "*", path: "readme.md" }, /^"readme\.md" is not a directory/),
      fails("glob", { pattern: " " }, /^The argument pattern does not fit/),
      fails("glob", { pattern: "../*" }, /^The argument pattern does not fit/),
      fails("glob", { pattern: "[a" }, /^The argument pattern does not fit/),
      fails("glob", { pattern: "x".repeat(1001) }, /^The argument pattern does not fit/),
      fails("glob", { pattern: "*", max_matches: 0 }, /"max_matches" must be /)
    ]
  },
  {
    name: "grep answers lines by file, and says what it passed over",
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
      ok("grep", { pattern: "hello", path: "build", include_ignored: true }, "build/out.js\n   1 | hello built\n1 match in 1 file"),
      ok("grep", { pattern: "nothing like it" }, /^0 matches; skipped: 2 ignored; include_ignored=true/, { matches: [], total: 0 })
    ]
  },
  {
    name: "grep by file and by count",
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
    name: "grep goes on strictly after a match",
    tree: { a: "x1\nx2\nx3\n", b: "x4\n" },
    calls: [
      ok("grep", { pattern: "x", max_matches: 2 }, 'a\n   1 | x1\n   2 | x2\n2 matches in 1 file, and more; continue with after="2:a"', {
        truncated: true,
        next: "2:a"
      }),
      ok("grep", { pattern: "x", after: "2:a" }, "a\n   3 | x3\nb\n   1 | x4\n2 matches in 2 files", { truncated: false }),
      fails("grep", { pattern: "x", after: "not one" }, /^The argument after does not fit/)
    ]
  },
  {
    name: "grep by case, as text, by word, over lines and with context",
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
    name: "grep searches only what its glob names; file_glob is the same, and a blank one is none",
    tree: { "a.ts": "x\n", "b.md": "x\n", "d/c.ts": "x\n" },
    calls: [
      ok("grep", { pattern: "x", glob: "*.ts", mode: "files" }, "a.ts\nd/c.ts\n2 matches in 2 files", { files_searched: 2 }),
      ok("grep", { pattern: "x", file_glob: "/*.ts", mode: "files" }, "a.ts\n1 match in 1 file"),
      ok("grep", { pattern: "x", glob: "  ", mode: "files" }, /3 matches in 3 files$/)
    ]
  },
  {
    name: "grep passes over what is binary, by a NUL or because it is no text, and says so",
    tree: { "bad.txt": new Uint8Array([0x78, 0x0a, 0xff]), "nul.bin": new Uint8Array([0x78, 0x00]), "t.txt": "x\n" },
    calls: [
      ok("grep", { pattern: "x" }, "t.txt\n   1 | x\n1 match in 1 file; skipped: 2 binary", { skipped: { binary: 2 } })
    ]
  },
  {
    name: "grep matches after a byte order mark, and in lines that end in CRLF",
    tree: encodings,
    calls: [
      ok("grep", { pattern: "^one$" }, "bom.txt\n   1 | one\ncrlf.txt\n   1 | one\n2 matches in 2 files", { total: 2 })
    ]
  },
  {
    name: "grep refuses what is no expression",
    tree: project,
    calls: [
      fails("grep", { pattern: "(" }, /^The argument pattern does not fit.*literal/s),
      fails("grep", { pattern: "" }, /^The argument pattern does not fit/),
      fails("grep", { pattern: "x", context: -1 }, /"context" must be /),
      fails("grep", { pattern: "x", mode: "lines" }, /"mode" must be .*"matches".*"files".*"count"/),
      fails("grep", { pattern: "x", glob: "[a" }, /^The argument glob does not fit/),
      ok("grep", { pattern: "x", path: "none" }, "0 matches; there is no none", { matches: [] })
    ]
  },
  {
    name: "searches see the names as they are where only case tells them apart",
    tree: { "A.txt": "x\n", "a.txt": "x\n", B: "x\n" },
    cases: true,
    calls: [
      ok("glob", { pattern: "a*" }, "a.txt (2 bytes)\n1 match"),
      ok("ls", {}, "A.txt (2 bytes)\nB (2 bytes)\na.txt (2 bytes)\n0 directories, 3 files"),
      fails("read_file", { path: "b" }, 'There is no file or directory "b". Did you mean "B"?')
    ]
  },
  {
    name: "searches are ordered by the whole path",
    tree: { "a-b.txt": "x\n", "a.txt": "x\n", "a/b.txt": "x\n" },
    calls: [
      ok("glob", { pattern: "**/*.txt" }, "a-b.txt (2 bytes)\na.txt (2 bytes)\na/b.txt (2 bytes)\n3 matches"),
      ok("grep", { pattern: "x", mode: "files" }, "a-b.txt\na.txt\na/b.txt\n3 matches in 3 files")
    ]
  },
  {
    name: "ignore rules of every level count, and later ones take back",
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

export const looking: ReadonlyArray<Row> = [...listing, ...reading, ...searching]
