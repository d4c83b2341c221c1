/** Table rows for the snapshot tools, whose answers are the same with snapshots in memory, in git and in archives. */
import { directory, type Files, link } from "../../src/testing/Files.ts"
import { fails, ok, type Row } from "./everywhereRun.ts"

const files: Files = {
  ".gitignore": "ignored\n",
  "a.txt": "1\n2\n3\n",
  "bin.dat": new Uint8Array([0, 1, 2]),
  "d/b.txt": "b\n",
  "d/crlf.txt": "x\r\ny\r\n",
  empty: directory,
  ignored: "kept all the same\n",
  link: link("a.txt"),
  "é 日.txt": "é\n"
}

const changes = [
  ok("edit_file", { path: "a.txt", old_string: "2\n", new_string: "two\nand a half\n" }, /^edited a\.txt/),
  ok("write_file", { path: "n/ew.txt", content: "new" }, /^created n\/ew\.txt/),
  ok("rm", { path: "d" }, /^removed d/)
]

/** The changed lines: a.txt +2 -1, b.txt -1, crlf.txt -2, ew.txt +1. */
const changed = [
  { path: "a.txt", change: "modified" },
  { path: "d", change: "removed" },
  { path: "d/b.txt", change: "removed" },
  { path: "d/crlf.txt", change: "removed" },
  { path: "n", change: "added" },
  { path: "n/ew.txt", change: "added" }
]

/** Changes that a restore reports. */
const back = [
  { path: "a.txt", change: "modified" },
  { path: "d", change: "added" },
  { path: "d/b.txt", change: "added" },
  { path: "d/crlf.txt", change: "added" },
  { path: "n", change: "removed" },
  { path: "n/ew.txt", change: "removed" }
]

export const snapshots: ReadonlyArray<Row> = [
  {
    name: "a snapshot is taken, listed, compared and restored byte for byte",
    tree: files,
    snapshots: true,
    calls: [
      ok("snapshots", {}, "There is no snapshot yet. Take a snapshot of the current files with the tool snapshot.", {
        snapshots: []
      }),
      ok("snapshot", { tag: " works " }, "Took snapshot <snapshot 1>: 8 files; 8 files changed", {
        snapshot_id: "<snapshot 1>",
        created_at: "<time>",
        tag: "works",
        tool: "snapshot",
        call_id: "call_2",
        files: 8
      }),
      ok("diff", {}, /^0 files changed, \+0 -0 from <short 1> to the current files$/, {
        changes: [],
        diff: ""
      }),
      ...changes,
      ok(
        "diff",
        { snapshot_id: "works" },
        /^4 files changed, \+3 -4 from <short 1> to the current files\nM a\.txt \(\+2 -1\)\nD d\nD d\/b\.txt \(\+0 -1\)\nD d\/crlf\.txt \(\+0 -2\)\nA n\nA n\/ew\.txt \(\+1 -0\)\n[^]*\n-2\n\+two\n\+and a half\n/,
        { snapshot_id: "<snapshot 1>", to: undefined, changes: changed, files_changed: 4, lines_added: 3, lines_removed: 4 }
      ),
      ok("snapshot", {}, "Took snapshot <snapshot 2>: 7 files; 4 files changed, +3 -4", { files: 7, files_changed: 4 }),
      ok("diff", { snapshot_id: "works", to: "latest" }, /^4 files changed, \+3 -4 from <short 1> to <short 2>\n/, {
        to: "<snapshot 2>"
      }),
      ok(
        "snapshots",
        {},
        '<short 2> <time>: 7 files; 4 files changed, +3 -4; by snapshot, call call_8\n<short 1> "works" <time>: 8 files; 8 files changed; by snapshot, call call_2',
        { snapshots: [{ snapshot_id: "<snapshot 2>" }, { snapshot_id: "<snapshot 1>", tag: "works" }] }
      ),
      ok(
        "restore",
        { snapshot_id: "works", dry_run: true },
        /^Would restore snapshot <short 1>: 3 added, 1 modified, 2 removed\n/,
        {
          dry_run: true,
          changes: back,
          safety_snapshot_id: undefined
        }
      ),
      ok(
        "restore",
        { snapshot_id: "works" },
        /^Restored snapshot <short 1>: 3 added, 1 modified, 2 removed\nThe previous state is kept as snapshot <snapshot 3>\. .*"snapshot_id":"<short 3>"/,
        {
          dry_run: false,
          changes: back,
          safety_snapshot_id: "<snapshot 3>"
        }
      ),
      ok("restore", { snapshot_id: "works" }, /^Nothing changed: all files are already as in snapshot <short 1>/, {
        changes: []
      })
    ]
  },
  {
    name: "a restore of some paths keeps other paths, and removes the given paths that the snapshot lacks",
    tree: files,
    few: true,
    snapshots: true,
    calls: [
      ok("snapshot", { tag: "before" }, /^Took snapshot/),
      ...changes,
      ok(
        "restore",
        { snapshot_id: "before", paths: ["/d/b.txt", " n "] },
        /^Restored snapshot <short 1>: 2 added, 2 removed\n/,
        {
          changes: [
            { path: "d", change: "added" },
            { path: "d/b.txt", change: "added" },
            { path: "n", change: "removed" },
            { path: "n/ew.txt", change: "removed" }
          ]
        }
      )
    ],
    left: (() => {
      const { "d/crlf.txt": _, ...rest } = files
      return { ...rest, "a.txt": "1\ntwo\nand a half\n3\n" }
    })()
  },
  {
    name: "snapshot tools refuse unknown and ambiguous snapshots, and invalid paths and tags",
    tree: files,
    few: true,
    snapshots: true,
    calls: [
      fails(
        "restore",
        { snapshot_id: "latest" },
        "There is no snapshot yet. Take a snapshot of the current files with the tool snapshot."
      ),
      fails(
        "diff",
        { snapshot_id: "works" },
        "There is no snapshot yet. Take a snapshot of the current files with the tool snapshot."
      ),
      ok("snapshot", { tag: "same" }, /^Took snapshot <snapshot 1>/),
      ok("snapshot", { tag: "same" }, /^Took snapshot <snapshot 2>/),
      ok("snapshot", { tag: "  " }, /^Took snapshot <snapshot 3>/, { tag: undefined }),
      fails("restore", { snapshot_id: "nope" }, 'There is no snapshot "nope". List the snapshots with the tool snapshots.'),
      fails("restore", { snapshot_id: "" }, /^There is no snapshot ""\. |matches/),
      fails(
        "restore",
        { snapshot_id: "same" },
        '"same" matches 2 snapshots. Give more of the id: <short 1> (same), <short 2> (same).'
      ),
      fails(
        "diff",
        { snapshot_id: "latest", to: "nope" },
        'There is no snapshot "nope". List the snapshots with the tool snapshots.'
      ),
      fails(
        "restore",
        { snapshot_id: "latest", paths: ["nowhere/at/all"] },
        /^There is no file or directory "nowhere\/at\/all"\. /
      ),
      fails("restore", { snapshot_id: "latest", paths: ["../x"] }, /^"\.\.\/x" is not a valid path/),
      fails("restore", { snapshot_id: "latest", paths: [" "] }, /^The argument paths is invalid.*must not be blank/),
      fails("restore", { snapshot_id: "latest", paths: 5 }, /"paths" must be a list, and was 5/),
      fails("snapshot", { tag: "two\nlines" }, /^The argument tag is invalid.*one line/),
      fails("snapshot", { tag: "x".repeat(1001) }, /^The argument tag is invalid.*1,000 characters/),
      fails("snapshot", { nme: "x" }, /"nme" is not a parameter/)
    ]
  },
  {
    name: "a tool without parameters refuses arguments",
    tree: files,
    few: true,
    snapshots: true,
    calls: [
      fails("snapshots", { limit: 3 }, /"limit" is not a parameter/),
      fails("snapshots", "{}", /were sent as a string/),
      fails("snapshots", [], /must be an object, and were a list/)
    ]
  }
]
