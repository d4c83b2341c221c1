/** Table rows for removing, moving and copying entries and for making directories. */
import { directory, link } from "../../src/testing/Files.ts"
import { fails, ok, type Row, without } from "./everywhereRun.ts"
import { climbs, isRoot, text, work } from "./everywhere.trees.ts"

const removing: ReadonlyArray<Row> = [
  {
    name: "rm removes files, whole directories, and links without their targets",
    tree: work,
    calls: [
      ok("rm", { path: "a.txt" }, "removed a.txt", { deleted: 1, directories: 0 }),
      ok("rm", { path: "link" }, "removed link", { deleted: 1, directories: 0 }),
      ok("rm", { path: "linked" }, "removed linked", { deleted: 1, directories: 0 }),
      ok("rm", { path: "out" }, "removed out", { deleted: 1, directories: 0 }),
      ok("rm", { path: "nowhere" }, "removed nowhere", { deleted: 1, directories: 0 }),
      ok("rm", { path: "/d/" }, "removed d with everything in it: 2 directories, 2 files", { deleted: 2, directories: 2 }),
      ok("rm", { path: "é 日.txt" }, "removed é 日.txt")
    ],
    left: { ".hidden": "h\n", "bin.dat": new Uint8Array([0xff, 0x00, 0xfe]), empty: directory }
  },
  {
    name: "rm removes an empty directory",
    tree: work,
    calls: [ok("rm", { path: "empty" }, /^removed empty/, { directories: 1 })],
    left: without(work, "empty")
  },
  {
    name: "rm fails for a missing path unless allow_missing is set, and never removes the root",
    tree: work,
    calls: [
      fails("rm", { path: "none" }, /^There is no file or directory "none"\. /),
      ok("rm", { path: "none", allow_missing: true }, "nothing was removed, because none does not exist", {
        deleted: 0,
        directories: 0
      }),
      fails("rm", { path: "a.txt/x" }, /^There is no file or directory "a\.txt\/x"\. /),
      ok("rm", { path: "a.txt/x", allow_missing: true }, /^nothing was removed/, { deleted: 0 }),
      fails("rm", { path: "." }, isRoot),
      fails("rm", { path: "/" }, isRoot),
      fails("rm", { path: "d/.." }, isRoot),
      fails("rm", { path: "" }, /^The argument path is invalid: it must not be blank\. /),
      fails("rm", { path: "../x" }, climbs),
      fails(
        "rm",
        { path: "a.txt", recursive: false },
        /"recursive" is not a parameter; the parameters are path and allow_missing/
      ),
      fails("rm", { path: "a.txt", allow_missing: "yes" }, /"allow_missing" must be .*, and was "yes"/)
    ]
  },
  {
    name: "rm removes a directory that is reached through a link",
    tree: work,
    calls: [ok("rm", { path: "linked/e" }, "removed linked/e with everything in it: 1 directory, 1 file")],
    left: { ...without(work, "d/e"), "d/b.txt": "b\n" }
  }
]

const transferring: ReadonlyArray<Row> = [
  {
    name: "move renames a file or a directory, and makes missing parents",
    tree: work,
    calls: [
      ok("move", { from: "d", to: "x/y" }, "moved d to x/y: 2 directories, 2 files, 4 bytes", {
        files: 2,
        directories: 2,
        bytes: 4
      }),
      ok("move", { from: " /a.txt ", to: "b c.txt" }, "moved a.txt to b c.txt: 1 file, 18 bytes", {
        files: 1,
        directories: 0,
        bytes: 18
      })
    ],
    left: { ...without(work, "d", "a.txt"), "x/y/b.txt": "b\n", "x/y/e/c.txt": "c\n", "b c.txt": text }
  },
  {
    name: "copy keeps its source, and copies bytes and links unchanged",
    tree: work,
    calls: [
      ok("copy", { from: "d", to: "x/y" }, "copied d to x/y: 2 directories, 2 files, 4 bytes", {
        files: 2,
        directories: 2,
        bytes: 4
      }),
      ok("copy", { from: "bin.dat", to: "bin2.dat" }, "copied bin.dat to bin2.dat: 1 file, 3 bytes"),
      ok("copy", { from: "link", to: "link2" }, /^copied link to link2/),
      ok("copy", { from: "empty", to: "empty2" }, "copied empty to empty2: 1 directory, 0 bytes", { files: 0, directories: 1 })
    ],
    left: {
      ...work,
      "x/y/b.txt": "b\n",
      "x/y/e/c.txt": "c\n",
      "bin2.dat": new Uint8Array([0xff, 0x00, 0xfe]),
      link2: link("a.txt"),
      empty2: directory
    }
  },
  {
    name: "move and copy replace an entry only with overwrite, and only by an entry of the same kind",
    tree: { ...work, other: directory },
    calls: [
      fails(
        "move",
        { from: "a.txt", to: "bin.dat" },
        '"bin.dat" exists already. Choose another destination, or set `overwrite` to replace the existing one.'
      ),
      fails("copy", { from: "a.txt", to: "bin.dat" }, /^"bin\.dat" exists already\. .*overwrite/),
      fails(
        "copy",
        { from: "a.txt", to: "other", overwrite: true },
        '"other" is a directory, and nothing was done. To put "a.txt" into this directory, give "other/a.txt" as `to`.'
      ),
      fails("copy", { from: "a.txt", to: "d", overwrite: true }, /^"d" is a directory, .*"d\/a\.txt"/),
      fails("move", { from: "d", to: "a.txt", overwrite: true }, /^"a\.txt" is not a directory/),
      fails("move", { from: "empty", to: "d", overwrite: true }, /^"d" is a directory, .*"d\/empty"/),
      ok("copy", { from: "a.txt", to: "d/b.txt", overwrite: true }, "copied a.txt to d/b.txt: 1 file, 18 bytes"),
      ok("move", { from: "empty", to: "other", overwrite: true }, "moved empty to other: 1 directory, 0 bytes"),
      ok("move", { from: "a.txt", to: "bin.dat", overwrite: true }, "moved a.txt to bin.dat: 1 file, 18 bytes")
    ],
    left: { ...without(work, "empty", "a.txt"), other: directory, "d/b.txt": text, "bin.dat": text }
  },
  {
    name: "move and copy refuse an impossible source or destination",
    tree: work,
    calls: [
      fails("move", { from: "d", to: "d" }, /^The argument to is invalid/),
      fails("move", { from: "d", to: "d/e/f" }, /^The argument to is invalid/),
      fails("copy", { from: "d", to: "d/e/f" }, /^The argument to is invalid/),
      fails("copy", { from: "a.txt", to: "./a.txt", overwrite: true }, /^The argument to is invalid/),
      fails("move", { from: ".", to: "x" }, isRoot),
      fails("copy", { from: "a.txt", to: "/", overwrite: true }, isRoot),
      fails("move", { from: "none", to: "x" }, /^There is no file or directory "none"\. /),
      fails("copy", { from: "none", to: "x" }, /^There is no file or directory "none"\. /),
      fails("copy", { from: "a.txt", to: "d/b.txt/x" }, /is not a directory, or one of its parents is not a directory\. /),
      fails("move", { from: "../x", to: "x" }, climbs),
      fails("copy", { from: "a.txt", to: "../x" }, climbs),
      fails("move", { from: "", to: "x" }, /^The argument from is invalid: it must not be blank\. /),
      fails("copy", { from: "a.txt", to: " " }, /^The argument to is invalid.*: it must not be blank\. /),
      fails("move", { from: "a.txt" }, /"to" is missing/),
      fails(
        "copy",
        { form: "a.txt", too: "b" },
        /"form" is not a parameter; did you mean "from"\?.*"too" is not a parameter; did you mean "to"\?/
      )
    ]
  },
  {
    name: "move moves a link itself, not its target",
    tree: work,
    calls: [
      ok("move", { from: "out", to: "d/out" }, /^moved out to d\/out/),
      ok("move", { from: "nowhere", to: "n" }, /^moved nowhere to n/)
    ],
    left: { ...without(work, "out", "nowhere"), "d/out": link("../outside.txt"), n: link("d/new.txt") }
  },
  {
    name: "mkdir makes a directory and its parents, and accepts an existing one",
    tree: work,
    calls: [
      ok("mkdir", { path: "x/y/ z" }, "made the directory x/y/ z", { path: "x/y/ z", created: true }),
      ok("mkdir", { path: "x/y" }, "the directory x/y exists already", { path: "x/y", created: false }),
      ok("mkdir", { path: "." }, /^the directory \. exists already/, { path: ".", created: false }),
      ok("mkdir", { path: "linked" }, /exists already$/, { created: false }),
      fails("mkdir", { path: "a.txt" }, /^"a\.txt" (exists already|is not a directory)/),
      fails("mkdir", { path: "a.txt/x/y" }, /^"a\.txt.*" is not a directory, or one of its parents is not a directory\. /),
      fails("mkdir", { path: "../x" }, climbs),
      fails("mkdir", { path: " " }, /^The argument path is invalid: it must not be blank\. /),
      fails("mkdir", {}, /"path" is missing/)
    ],
    left: { ...work, "x/y/ z": directory }
  }
]

export const changing: ReadonlyArray<Row> = [...removing, ...transferring]
