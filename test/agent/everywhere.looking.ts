/** Table rows for the tools that list, stat and read, including empty results. */
import { type Files } from "../../src/testing/Files.ts"
import { versionOf as v } from "./changing.ts"
import { fails, ok, type Row } from "./everywhereRun.ts"
import { encodings, project, seven, utf16 } from "./everywhere.trees.ts"

const long: Files = {
  "long.txt": "x\n".repeat(2500),
  "wide.txt": `${"w".repeat(2500)}\nshort\n`
}

const listing: ReadonlyArray<Row> = [
  {
    name: "ls lists names in order with sizes, slashes and links, including hidden and ignored files",
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
    name: "ls normalises blanks, slashes and dots of a path",
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
      ok("ls", { after: "linked", path: "." }, /^nowhere \(link\)\n/, {
        entries: [
          { name: "nowhere", path: "nowhere", kind: "symlink" },
          { kind: "symlink" },
          { kind: "file" },
          { kind: "file" }
        ]
      }),
      ok("ls", { path: "dir/inner/../inner/." }, "deep.ts (22 bytes)\n0 directories, 1 file", { path: "dir/inner" })
    ]
  },
  {
    name: "ls follows a link to a directory in the root",
    tree: project,
    calls: [ok("ls", { path: "linked/inner" }, "deep.ts (22 bytes)\n0 directories, 1 file", { path: "linked/inner" })]
  },
  {
    name: "ls says that a directory is empty",
    tree: project,
    calls: [ok("ls", { path: "empty" }, "empty is empty", { entries: [], counts: { files: 0, directories: 0, others: 0 } })]
  },
  {
    name: "ls says that the root is empty",
    tree: {},
    calls: [ok("ls", { path: null }, "the root is empty", { path: ".", entries: [] })]
  },
  {
    name: "ls continues after a name, even if the name does not exist",
    tree: { a: "1", b: "2", c: "3" },
    calls: [
      ok("ls", { after: "a" }, "b (1 byte)\nc (1 byte)\n0 directories, 3 files", { truncated: false }),
      ok("ls", { after: "bb" }, "c (1 byte)\n0 directories, 3 files", { counts: { files: 3 } }),
      ok("ls", { after: "" }, /^a \(1 byte\)/, { truncated: false })
    ]
  },
  {
    name: "ls is cut at the budget and says where to continue",
    tree: { a: "1", b: "2", c: "3", d: "4", e: "5", f: "6" },
    settings: { budget: 70 },
    calls: [
      ok("ls", {}, 'a (1 byte)\nb (1 byte)\n0 directories, 6 files; continue with after="b"', { truncated: true, next: "b" }),
      ok("ls", { after: "b" }, "c (1 byte)\nd (1 byte)\ne (1 byte)\nf (1 byte)\n0 directories, 6 files", { truncated: false })
    ]
  },
  {
    name: "ls refuses a file, a missing path, and a path below a file",
    tree: project,
    calls: [
      fails("ls", { path: "readme.md" }, /^"readme\.md" is not a directory.*\. .*read_file/),
      fails("ls", { path: "dri" }, 'There is no file or directory "dri". Did you mean "dir"?'),
      fails("ls", { path: "readme.md/x" }, /^There is no file or directory "readme\.md\/x"\./)
    ]
  },
  {
    name: "tree shows the upper levels, counts hidden entries, and names ignored entries",
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
          "empty.txt",
          "empty/",
          "inside (link)",
          "linked (link)",
          "nowhere (link)",
          "out (link)",
          "readme.md",
          "é日.txt",
          "2 directories, 6 files, 4 others; ignored: build and debug.log"
        ].join("\n"),
        {
          path: ".",
          depth: 1,
          counts: { files: 6, directories: 2, others: 4 },
          ignored: ["build", "debug.log"],
          truncated: true
        }
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
    name: "tree refuses a file, a missing path, and invalid numbers",
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
    name: "stat returns kind, size, version and whether the path is a link",
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
    name: "the advice for a dangling link does not suggest the link itself",
    tree: project,
    calls: [
      fails("stat", { path: "nowhere" }, /^There is no file or directory "nowhere"\. (?!Did you mean "nowhere"\?)/),
      fails("read_file", { path: "nowhere" }, /^There is no file or directory "nowhere"\. (?!Did you mean "nowhere"\?)/)
    ]
  },
  {
    name: "stat refuses a link out of the root and a missing path",
    tree: project,
    calls: [
      fails("stat", { path: "out" }, /^"out" leads out of the root through a link, which is refused\. /),
      fails("stat", { path: "readme" }, 'There is no file or directory "readme". Did you mean "readme.md"?')
    ]
  }
]

const reading: ReadonlyArray<Row> = [
  {
    name: "read_file shows right-aligned line numbers from 1, and the range of lines",
    tree: encodings,
    calls: [
      ok(
        "read_file",
        { path: "seven.txt", offset: 2, limit: 3 },
        "   3 | c\n   4 | d\n   5 | e\nlines 3-5 of 7; continue with offset=5",
        {
          path: "seven.txt",
          content: "c\nd\ne",
          encoding: "utf-8",
          offset: 2,
          limit: 3,
          total_lines: 7,
          truncated: true,
          next: 5,
          ends_with_newline: true,
          version: v(seven)
        }
      ),
      ok("read_file", { path: "seven.txt", offset: 5 }, "   6 | f\n   7 | g\nlines 6-7 of 7", {
        truncated: false,
        next: undefined,
        ends_with_newline: false
      }),
      ok("read_file", { path: "seven.txt", offset: 7 }, "there are no lines from offset 7: seven.txt has 7 lines", {
        content: "",
        limit: 0,
        total_lines: 7,
        truncated: false
      }),
      ok("read_file", { path: "seven.txt", offset: 1e15 }, /has 7 lines$/, { content: "", limit: 0 })
    ]
  },
  {
    name: "read_file returns at most 2,000 lines, and its hints lead to the end of the file",
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
    name: "read_file cuts and marks a line over 2,000 characters, and says how to get the rest",
    tree: long,
    calls: [
      ok(
        "read_file",
        { path: "wide.txt" },
        /^ {3}1 \| w{2000} \[cut: characters 1-2000 of 2500\]\n {3}2 \| short\nlines 1-2 of 2\n.*encoding="base64", offset=2000, limit=500/,
        { cut_lines: [1], total_lines: 2 }
      ),
      ok(
        "read_file",
        { path: "wide.txt", encoding: "base64", offset: 2000, limit: 500 },
        /continue with encoding="base64", offset=2500$/,
        {
          content: Buffer.from("w".repeat(500)).toString("base64"),
          encoding: "base64",
          next: 2500
        }
      )
    ]
  },
  {
    name: "read_file is cut at the budget between lines",
    tree: encodings,
    settings: { budget: 60 },
    calls: [
      ok("read_file", { path: "seven.txt" }, "   1 | a\n   2 | b\nlines 1-2 of 7; continue with offset=2", {
        limit: 2,
        next: 2
      })
    ]
  },
  {
    name: "read_file says that a file is empty",
    tree: project,
    calls: [ok("read_file", { path: "empty.txt" }, "empty.txt is empty", { content: "", total_lines: 0, version: v("") })]
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
    name: "read_file keeps a byte order mark, and decodes UTF-16 that begins with it",
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
    name: "read_file refuses a binary file with its size and type, and returns its bytes as base64 on request",
    tree: encodings,
    calls: [
      fails("read_file", { path: "null.bin" }, /binary.*unknown type, 3 bytes\. .*encoding="base64"/),
      fails("read_file", { path: "bad.txt" }, /binary.*4 bytes\. .*encoding="base64"/),
      ok("read_file", { path: "null.bin", encoding: "base64" }, "YQBi\n3 bytes from offset 0, of 3", {
        content: "YQBi",
        encoding: "base64",
        size_bytes: 3,
        truncated: false,
        version: v(new Uint8Array([0x61, 0x00, 0x62]))
      }),
      ok(
        "read_file",
        { path: "bad.txt", encoding: "base64", offset: 1, limit: 2 },
        /^Cv8=\n2 bytes from offset 1, of 4; continue with .*offset=3$/,
        {
          content: "Cv8=",
          offset: 1,
          next: 3
        }
      ),
      ok(
        "read_file",
        { path: "bad.txt", encoding: "base64", offset: 9 },
        "there are no bytes from offset 9: bad.txt has 4 bytes",
        {
          content: "",
          truncated: false
        }
      ),
      ok("read_file", { path: "png.dat" }, "png.dat: PNG image, 9 bytes", { encoding: "base64", media_type: "image/png" })
    ]
  },
  {
    name: "read_file follows links inside of the root, and refuses links out of it",
    tree: project,
    calls: [
      ok("read_file", { path: "inside", offset: 1 }, "   2 | hello\nlines 2-2 of 2", { path: "inside" }),
      ok("read_file", { path: "linked/x.ts", offset: 1 }, "   2 | hello\nlines 2-2 of 2", { path: "linked/x.ts" }),
      fails("read_file", { path: "out" }, /^"out" leads out of the root through a link, which is refused\. /)
    ]
  },
  {
    name: "read_file reads hidden files, and files with Unicode or blanks in their names",
    tree: project,
    calls: [
      ok("read_file", { path: "é日.txt" }, "   1 | héllo\nlines 1-1 of 1", { path: "é日.txt" }),
      ok("read_file", { path: " a b.txt " }, "   1 | with space\nlines 1-1 of 1", { path: "a b.txt" }),
      ok("read_file", { path: "/.env" }, "   1 | KEY=1\nlines 1-1 of 1", { path: ".env" })
    ]
  },
  {
    name: "read_file refuses a directory and a missing file, and suggests similar names",
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
    name: "read_file refuses invalid ranges and encodings",
    tree: encodings,
    calls: [
      fails("read_file", { path: "seven.txt", offset: -1 }, /"offset" must be .*-1/),
      fails("read_file", { path: "seven.txt", offset: 0.5 }, /"offset" must be .*0\.5/),
      fails("read_file", { path: "seven.txt", limit: 0 }, /"limit" must be .*0/),
      fails("read_file", { path: "seven.txt", limit: "three" }, /"limit" must be a number, and was "three"/),
      fails("read_file", { path: "seven.txt", line: 2, offset: 2 }, /^The argument line is invalid.*offset 2 means line 3/),
      fails(
        "read_file",
        { path: "seven.txt", line: 2, encoding: "base64" },
        /^The argument line is invalid.*bytes have no lines/
      ),
      fails("read_file", { path: "seven.txt", encoding: "latin1" }, /"encoding" must be .*"utf-8".*"base64".*"latin1"/)
    ]
  }
]

export const looking: ReadonlyArray<Row> = [...listing, ...reading]
