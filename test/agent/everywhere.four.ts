/**
 * Table rows for the kit of four tools. Listings show sizes, versions and times, and a version is shown by its first
 * twelve digits.
 */
import { directory, type Files, link } from "../../src/testing/Files.ts"
import { versionOf as v } from "./changing.ts"
import { fails, ok, type Row, without } from "./everywhereRun.ts"

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00])

const files: Files = {
  ".hidden": "h",
  "crlf.txt": "a\r\nb",
  "d/a.txt": "a\n",
  "empty.txt": "",
  "logo.png": png,
  nowhere: link("gone"),
  out: link("../outside.txt"),
  linked: link("d"),
  "é 日.md": "\ufeff# é\n"
}

const short = (content: string | Uint8Array): string => v(content).slice(0, 12)
const facts = (size: string, content: string | Uint8Array): string =>
  `${size}, version ${short(content)}, created <time>, updated <time>`

export const four: ReadonlyArray<Row> = [
  {
    name: "list_directory lists entries with sizes, versions and times, and follows links inside of the root",
    tree: files,
    calls: [
      ok(
        "four/list_directory",
        {},
        [
          "the root: 2 directories, 7 files",
          `.hidden (${facts("1 byte", "h")})`,
          `crlf.txt (${facts("4 bytes", "a\r\nb")})`,
          "d/",
          `empty.txt (${facts("0 bytes", "")})`,
          "linked/",
          `logo.png (${facts("9 bytes", png)})`,
          "nowhere (a broken link)",
          "out (a broken link)",
          `é 日.md (${facts("8 bytes", "\ufeff# é\n")})`
        ].join("\n"),
        {
          path: ".",
          directories: ["d", "linked"],
          files: [".hidden", "crlf.txt", "empty.txt", "logo.png", "nowhere", "out", "é 日.md"]
        }
      ),
      ok("four/list_directory", { path: "/d/" }, `d: 0 directories, 1 file\na.txt (${facts("2 bytes", "a\n")})`, { path: "d" })
    ]
  },
  {
    name: "list_directory is empty for a missing directory, and fails for a file and outside of the root",
    tree: { ...files, none: directory },
    calls: [
      ok("four/list_directory", { path: "gone" }, "gone does not exist yet, so it has no entries", {
        path: "gone",
        directories: [],
        files: []
      }),
      ok("four/list_directory", { path: "none" }, "none is empty", { directories: [], files: [] }),
      ok("four/list_directory", { path: "crlf.txt/x" }, /does not exist yet/, { directories: [], files: [] }),
      fails("four/list_directory", { path: "crlf.txt" }, /^"crlf\.txt" is not a directory/),
      fails("four/list_directory", { path: "../x" }, /^"\.\.\/x" is not a valid path/),
      fails("four/list_directory", { path: 1 }, /"path" must be a string, and was 1/)
    ]
  },
  {
    name: "read_file returns a whole file as text, or as base64 if it is binary",
    tree: files,
    calls: [
      ok(
        "four/read_file",
        { path: "crlf.txt" },
        `crlf.txt (utf-8, ${facts("4 bytes", "a\r\nb")}): 2 lines\n   1 | a\n   2 | b`,
        {
          file: {
            path: "crlf.txt",
            encoding: "utf-8",
            size_bytes: 4,
            version: v("a\r\nb"),
            created_at: "<time>",
            updated_at: "<time>"
          },
          content: "a\r\nb"
        }
      ),
      ok("four/read_file", { path: "é 日.md" }, /: 1 line\n {3}1 \| \ufeff# é$/, { content: "\ufeff# é\n" }),
      ok("four/read_file", { path: "logo.png" }, /^logo\.png \(binary, 9 bytes, .*\): base64\niVBORw0KGgoA$/, {
        file: { encoding: "binary", version: v(png) },
        content: "iVBORw0KGgoA"
      }),
      ok("four/read_file", { path: "empty.txt" }, `empty.txt (utf-8, ${facts("0 bytes", "")}): it is empty`, { content: "" }),
      ok("four/read_file", { path: "linked/a.txt" }, /^linked\/a\.txt \(utf-8, 2 bytes/)
    ]
  },
  {
    name: "read_file refuses a directory, a missing file, and a link out of the root",
    tree: files,
    calls: [
      fails("four/read_file", { path: "d" }, /^"d" is not a regular file\. /),
      fails("four/read_file", { path: "gone" }, /^There is no file or directory "gone"\. /),
      fails("four/read_file", { path: "d/a.txx" }, 'There is no file or directory "d/a.txx". Did you mean "d/a.txt"?'),
      fails("four/read_file", { path: "out" }, /^"out" leads out of the root through a link/),
      fails("four/read_file", { path: " " }, /^The argument path is invalid.*must not be blank/),
      fails("four/read_file", { path: "crlf.txt", offset: 1 }, /"offset" is not a parameter/)
    ]
  },
  {
    name: "write_file returns its normalised parameters, and creates missing files in every mode",
    tree: files,
    calls: [
      ok(
        "four/write_file",
        { path: " /n/a.txt", content: "😀\n" },
        `Created n/a.txt: 2 characters, now version ${short("😀\n")}`,
        {
          path: "n/a.txt",
          content: "😀\n",
          mode: "create",
          encoding: "utf-8",
          if_version: undefined
        }
      ),
      ok("four/write_file", { path: "o", content: "x", mode: "overwrite" }, /^Wrote o: 1 character, /),
      ok("four/write_file", { path: "p", content: "x", mode: "append" }, /^Appended to p: 1 character, /, {
        encoding: "utf-8"
      }),
      ok(
        "four/write_file",
        { path: "p", content: "y", mode: "append" },
        `Appended to p: 1 character, now version ${short("xy")}`
      ),
      ok(
        "four/write_file",
        { path: "b", content: "AP8=", encoding: "binary" },
        `Created b: 2 bytes, now version ${short(new Uint8Array([0, 255]))}`,
        {
          encoding: "binary",
          content: "AP8="
        }
      ),
      ok("four/write_file", { path: "b", content: "AQ==", mode: "append" }, /^Appended to b: 1 byte, /, { encoding: "binary" }),
      fails("four/write_file", { path: "o", content: "y" }, /^o exists already\. .*"overwrite".*"append"/)
    ],
    left: { ...files, "n/a.txt": "😀\n", o: "x", p: "xy", b: new Uint8Array([0, 255, 1]) }
  },
  {
    name: "write_file with strict overwrites and appends to existing files only",
    tree: { a: "1" },
    settings: { strict: true },
    calls: [
      fails("four/write_file", { path: "b", content: "x", mode: "overwrite" }, /^There is no file or directory "b"\. /),
      fails("four/write_file", { path: "b", content: "x", mode: "append" }, /^There is no file or directory "b"\. /),
      ok("four/write_file", { path: "a", content: "2", mode: "append" }, /^Appended to a/)
    ],
    left: { a: "12" }
  },
  {
    name: "write_file with if_version writes only if the file has the given version",
    tree: { a: "1" },
    calls: [
      ok("four/write_file", { path: "a", content: "2", mode: "overwrite", if_version: short("1") }, /^Wrote a/, {
        if_version: v("1")
      }),
      fails(
        "four/write_file",
        { path: "a", content: "3", mode: "overwrite", if_version: v("1") },
        new RegExp(`^"a" does not have the version that was given.*${v("2")}`)
      ),
      fails(
        "four/write_file",
        { path: "a", content: "3", mode: "append", if_version: short("1") },
        /^"a" does not have the version/
      ),
      fails("four/write_file", { path: "b", content: "3", mode: "overwrite", if_version: v("1") }, /^"b" does not exist\. /),
      fails("four/write_file", { path: "b", content: "3", if_version: v("1") }, /^The argument if_version is invalid/)
    ],
    left: { a: "2" }
  },
  {
    name: "write_file refuses invalid base64, text for a binary file, too much content, and an invalid target",
    tree: files,
    calls: [
      fails("four/write_file", { path: "x", content: "A", encoding: "binary" }, /^The argument content is invalid.*base64/),
      fails("four/write_file", { path: "x", content: "é", encoding: "binary" }, /^The argument content is invalid.*base64/),
      fails(
        "four/write_file",
        { path: "logo.png", content: "x", mode: "append", encoding: "utf-8" },
        /^logo\.png is not UTF-8 text\. .*"binary"/
      ),
      fails("four/write_file", { path: "x", content: "x".repeat(48_001) }, /48001 is more than 48000/),
      fails(
        "four/write_file",
        { path: "x", content: Buffer.alloc(48_001).toString("base64"), encoding: "binary" },
        /48001 is more than 48000/
      ),
      ok(
        "four/write_file",
        { path: "y", content: Buffer.alloc(48_000).toString("base64"), encoding: "binary" },
        /^Created y: 48000 bytes/
      ),
      ok("four/delete_file", { path: "y" }, "Deleted y: 1 file"),
      fails("four/write_file", { path: "d", content: "x", mode: "overwrite" }, /^"d" is not a regular file\. /),
      fails("four/write_file", { path: "d", content: "x", mode: "append" }, /^"d" is not a regular file\. /),
      fails(
        "four/write_file",
        { path: "crlf.txt/x", content: "x" },
        /is not a directory, or one of its parents is not a directory\. /
      ),
      fails("four/write_file", { path: "out", content: "x", mode: "overwrite" }, /^"out" leads out of the root through a link/),
      fails(
        "four/write_file",
        { path: "x", content: "x", mode: "replace" },
        /"mode" must be .*"create".*"overwrite".*"append".*and was "replace"/
      ),
      fails(
        "four/write_file",
        { path: "x", content: "x", encoding: "base64" },
        /"encoding" must be .*"utf-8".*"binary".*and was "base64"/
      )
    ]
  },
  {
    name: "delete_file removes a file, a whole directory or a link, and never the root",
    tree: files,
    calls: [
      ok("four/delete_file", { path: "/d/" }, "Deleted d: 1 file and 1 directory", { path: "d", deleted: 1 }),
      ok("four/delete_file", { path: ".hidden" }, "Deleted .hidden: 1 file", { path: ".hidden", deleted: 1 }),
      ok("four/delete_file", { path: "out" }, "Deleted out: 1 file", { deleted: 1 }),
      fails("four/delete_file", { path: "d" }, /^There is no file or directory "d"\. /),
      ok("four/delete_file", { path: "d", allow_missing: true }, "d did not exist, so nothing was deleted", {
        path: "d",
        deleted: 0
      }),
      fails("four/delete_file", { path: "." }, /^The root cannot be removed/),
      fails("four/delete_file", { path: "" }, /^The argument path is invalid: it must not be blank\. /),
      fails("four/delete_file", { path: "d/../../x" }, /is not a valid path/)
    ],
    left: without(files, "d", ".hidden", "out")
  }
]
