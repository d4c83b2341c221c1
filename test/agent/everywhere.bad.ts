/** Table rows for settings, for read-only filesystems, and for input that every tool refuses. */
import { type Files, link } from "../../src/testing/Files.ts"
import { fails, ok, type Row } from "./everywhereRun.ts"

const files: Files = { "a.txt": "a\n", "d/b.ts": "b\n", "workspacex/c.ts": "c\n" }

const readOnly = /^"(.*)" may be read but not changed: this filesystem is read-only\. /
const climbs = /is not a valid path: .*\. Give a path relative to the root/
const tooLong = /is too long: .*\. Choose shorter names or fewer directories\./
const blank = /^The argument path is invalid.*: it must not be blank\. Correct path and call the tool again\.$/

/** Every tool that takes a path, with its other required arguments. */
const withPath: Readonly<Record<string, object>> = {
  ls: {},
  read_file: {},
  write_file: { content: "x" },
  edit_file: { old_string: "a", new_string: "b" },
  glob: { pattern: "*" },
  grep: { pattern: "a" },
  rm: {},
  mkdir: {},
  stat: {},
  tree: {},
  "four/list_directory": {},
  "four/read_file": {},
  "four/write_file": { content: "x" },
  "four/delete_file": {}
}

/** The tools for which an absent path means the root. */
const ofRoot = new Set(["ls", "glob", "grep", "stat", "tree", "four/list_directory"])

const everyPath = (path: string, message: RegExp) =>
  Object.entries(withPath).map(([tool, more]) => fails(tool, { ...more, path }, message))

export const bad: ReadonlyArray<Row> = [
  {
    name: "a mount point stands for the root, but not as a part of a longer name",
    tree: files,
    settings: { mountPoint: "/workspace" },
    calls: [
      ok("ls", { path: "/workspace" }, /^a\.txt \(2 bytes\)\nd\/\nworkspacex\/\n/, { path: "." }),
      ok("read_file", { path: "/workspace/d/b.ts" }, "   1 | b\nlines 1-1 of 1", { path: "d/b.ts" }),
      ok("read_file", { path: "/workspacex/c.ts" }, "   1 | c\nlines 1-1 of 1", { path: "workspacex/c.ts" }),
      ok("glob", { pattern: "/workspace/d/*.ts" }, "d/b.ts (2 bytes)\n1 match"),
      ok("grep", { pattern: "b", path: "/workspace/d/" }, "d/b.ts\n   1 | b\n1 match in 1 file"),
      ok("move", { from: "/workspace/a.txt", to: "/workspace/n/a.txt" }, "moved a.txt to n/a.txt: 1 file, 2 bytes"),
      ok(
        "apply_patch",
        { patch: "*** Begin Patch\n*** Delete File: /workspace/n/a.txt\n*** End Patch" },
        /\ndeleted n\/a\.txt \(\+0 -1\)$/
      ),
      ok("four/write_file", { path: "/workspace/a.txt", content: "a\n" }, /^Created a\.txt/, { path: "a.txt" }),
      ok("rm", { path: "/workspace/n" }, /^removed n/)
    ]
  },
  {
    name: "a budget counts in the unit that the caller chooses",
    tree: { a: "1\n2\n3\n4\n5\n6\n7\n8\n9\n" },
    settings: { budget: 4, measure: (text) => text.split("\n").length },
    calls: [
      ok("read_file", { path: "a" }, "   1 | 1\n   2 | 2\n   3 | 3\nlines 1-3 of 9; continue with offset=3", { next: 3 }),
      ok("grep", { pattern: "[0-9]" }, 'a\n   1 | 1\n   2 | 2\n2 matches in 1 file, and more; continue with after="2:a"', {
        total: 2
      })
    ]
  },
  {
    name: "tools read a read-only filesystem, and refuse every change of it",
    tree: { ...files, link: link("a.txt") },
    readOnly: true,
    calls: [
      ok("read_file", { path: "link" }, "   1 | a\nlines 1-1 of 1"),
      ok("grep", { pattern: "b" }, "d/b.ts\n   1 | b\n1 match in 1 file"),
      fails("write_file", { path: "n", content: "x" }, readOnly),
      fails("edit_file", { path: "a.txt", old_string: "a", new_string: "b" }, readOnly),
      fails("rm", { path: "a.txt" }, readOnly),
      fails("move", { from: "a.txt", to: "b" }, readOnly),
      fails("copy", { from: "a.txt", to: "b" }, readOnly),
      fails("mkdir", { path: "n" }, readOnly),
      fails("apply_patch", { patch: "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch" }, readOnly),
      fails("apply_patch", { patch: "*** Begin Patch\n*** Add File: x\n+x\n*** Delete File: a.txt\n*** End Patch" }, readOnly),
      fails("four/write_file", { path: "n", content: "x" }, readOnly),
      fails("four/write_file", { path: "a.txt", content: "x", mode: "append" }, readOnly),
      fails("four/delete_file", { path: "a.txt" }, readOnly)
    ]
  },
  {
    name: "every tool refuses a path that leaves the root, is too deep, or has an invalid or long name",
    tree: files,
    calls: [
      ...everyPath("../outside.txt", climbs),
      ...everyPath("d/../../outside.txt", climbs),
      ...everyPath("/../outside.txt", climbs),
      ...everyPath("a\u0000b", climbs),
      ...everyPath("a\ud800", climbs),
      ...everyPath("s/".repeat(17), tooLong),
      ...everyPath("s".repeat(81), tooLong)
    ]
  },
  {
    name: "a blank path means the root if the path is optional, and is refused otherwise",
    tree: files,
    calls: Object.entries(withPath).map(([tool, more]) =>
      ofRoot.has(tool) ? ok(tool, { ...more, path: "  " }, /./) : fails(tool, { ...more, path: "  " }, blank)
    )
  },
  {
    name: "huge counts mean the maximum, and impossible numbers are refused",
    tree: files,
    calls: [
      ok("glob", { pattern: "*", max_matches: Number.MAX_SAFE_INTEGER }, /\n3 matches$/),
      ok("grep", { pattern: ".", max_matches: Number.MAX_SAFE_INTEGER }, /^a\.txt\n[^]*3 matches in 3 files$/),
      ok("grep", { pattern: ".", mode: "count", max_matches: Number.MAX_SAFE_INTEGER }, /3 matches in 3 files$/),
      ok("tree", { max_entries: Number.MAX_SAFE_INTEGER }, /2 directories, 3 files$/),
      ok("read_file", { path: "a.txt", offset: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER }, /a\.txt has 1 line$/),
      ok(
        "read_file",
        { path: "a.txt", encoding: "base64", limit: Number.MAX_SAFE_INTEGER },
        "YQo=\n2 bytes from offset 0, of 2"
      ),
      fails("grep", { pattern: ".", context: 1e6 }, /"context" must be /),
      fails("read_file", { path: "a.txt", limit: 1e300 }, /"limit" must be /)
    ]
  },
  {
    name: "snapshot tools fail if no snapshots are kept",
    tree: files,
    calls: [
      fails("snapshot", {}, /^Snapshots are not available\. /),
      fails("snapshots", {}, /^Snapshots are not available\. /),
      fails("restore", { snapshot_id: "latest" }, /^Snapshots are not available\. /),
      fails("diff", { snapshot_id: "latest" }, /^Snapshots are not available\. /)
    ]
  }
]
