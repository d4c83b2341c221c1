import * as Effect from "effect/Effect"
import { plantFiles, lawForms, withFaults, expectTree } from "../chapter.ts"
import { equal, fails } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import type { Law } from "../Law.ts"
import { toBytes } from "../operations.ts"

const { changes, law, refuses } = lawForms({ kind: "service", needs: ["write"] })
const deleting = lawForms({ kind: "service", needs: ["delete"] })
const moving = lawForms({ kind: "service", needs: ["write", "delete"] })
const lawsKeepingDirectories = {
  deleting: lawForms({ kind: "service", needs: ["delete", "directories outlive their content"] }),
  moving: lawForms({ kind: "service", needs: ["write", "delete", "directories outlive their content"] })
}
const lawsPruningDirectories = lawForms({ kind: "service", needs: ["write", "delete", "directories go with their content"] })

const exampleTree: Files = { file: "text", "dir/inner": "x", empty: directory }

const rootNames = ["", ".", "/"]

export const mkdirLaws: ReadonlyArray<Law> = [
  changes("mkdir makes a directory", "S0-58", {}, (fs) => fs.mkdir("d"), { d: directory }),
  changes("mkdir makes its parents", "S0-59", { "a/x": "x" }, (fs) => fs.mkdir("a/b/c"), { "a/x": "x", "a/b/c": directory }),
  refuses(
    "mkdir without parents is NotFound where one is missing",
    "S0-62",
    {},
    (fs) => fs.mkdir("a/b", { parents: false }),
    "NotFound"
  ),
  changes("mkdir without parents makes one directory", "S0-59", { a: directory }, (fs) => fs.mkdir("a/b", { parents: false }), {
    "a/b": directory
  }),
  changes("mkdir of a directory that there is does nothing", "S0-60", exampleTree, (fs) => fs.mkdir("dir"), exampleTree),
  changes("mkdir of the root does nothing", "S0-60", exampleTree, (fs) => fs.mkdir("."), exampleTree),
  refuses(
    "mkdir can insist on a new directory",
    "S0-61",
    exampleTree,
    (fs) => fs.mkdir("dir", { existOk: false }),
    "AlreadyExists"
  ),
  refuses(
    "the root is no new directory",
    "behaviours: calls",
    exampleTree,
    (fs) => fs.mkdir(".", { existOk: false }),
    "AlreadyExists"
  ),
  refuses("mkdir over a file is AlreadyExists", "S0-60", exampleTree, (fs) => fs.mkdir("file"), "AlreadyExists"),
  refuses(
    "mkdir through a file is NotADirectory, and nothing changes",
    "behaviours: regressions",
    exampleTree,
    (fs) => fs.mkdir("file/a/b"),
    "NotADirectory"
  ),
  refuses(
    "mkdir without parents through a file is NotADirectory",
    "behaviours: calls",
    exampleTree,
    (fs) => fs.mkdir("file/a", { parents: false }),
    "NotADirectory"
  )
]

export const deleteLaws: ReadonlyArray<Law> = [
  deleting.changes(
    "delete removes a file",
    "C-16",
    { a: "x", b: "y" },
    (fs) => fs.delete("a"),
    { b: "y" },
    {
      deleted: 1,
      directories: 0
    }
  ),
  deleting.changes(
    "delete removes an empty directory",
    "C-15, C-16",
    exampleTree,
    (fs) => fs.delete("empty"),
    { file: "text", "dir/inner": "x" },
    {
      deleted: 1,
      directories: 1
    }
  ),
  deleting.refuses(
    "a directory with content needs recursive",
    "C-15",
    exampleTree,
    (fs) => fs.delete("dir"),
    "DirectoryNotEmpty"
  ),
  deleting.refuses(
    "a directory that holds only a directory needs recursive too",
    "C-15",
    { "a/b": directory },
    (fs) => fs.delete("a"),
    "DirectoryNotEmpty"
  ),
  deleting.changes(
    "delete counts files and directories apart",
    "C-16",
    { "d/a": "1", "d/b": "2", "d/e/c": "3", "d/f": directory, other: "x" },
    (fs) => fs.delete("d", { recursive: true }),
    { other: "x" },
    { deleted: 3, directories: 3 }
  ),
  deleting.changes(
    "deleting only directories answers at least 1",
    "C-16",
    { "d/e/f": directory },
    (fs) => fs.delete("d", { recursive: true }),
    {},
    { deleted: 1, directories: 3 }
  ),
  deleting.changes(
    "recursive is as good for a file",
    "C-16",
    { a: "x" },
    (fs) => fs.delete("a", { recursive: true }),
    {},
    { deleted: 1, directories: 0 }
  ),
  deleting.changes(
    "a neighbour whose name begins the same stays",
    "C-16",
    { "d/a": "1", "d2/a": "2", d3: "3" },
    (fs) => fs.delete("d", { recursive: true }),
    { "d2/a": "2", d3: "3" }
  ),
  lawsKeepingDirectories.deleting.changes(
    "a parent outlives its last child",
    "C-45",
    { "p/q/a": "x" },
    (fs) => fs.delete("p/q/a"),
    {
      "p/q": directory
    }
  ),
  lawsPruningDirectories.changes(
    "a directory goes with its last child, and so do those above it that hold no more",
    "C-45",
    { "p/q/r/a": "x", "p/b": "y", empty: directory },
    (fs) => fs.delete("p/q/r", { recursive: true }),
    { "p/b": "y", empty: directory },
    { deleted: 1, directories: 1 }
  ),
  lawsPruningDirectories.law(
    "what a failed write takes back leaves an empty directory where it stood",
    "C-45, C-13",
    function* (fs) {
      yield* plantFiles(fs, { empty: directory })
      const full = yield* withFaults(fs, { operation: "Write", fault: { _tag: "DiskFull" } })
      yield* fails(full.write("empty/p/a", "x"), "DiskFull")
      yield* expectTree(fs, { empty: directory })
    }
  ),
  deleting.refuses("deleting nothing is NotFound", "C-14", exampleTree, (fs) => fs.delete("missing"), "NotFound"),
  deleting.refuses(
    "deleting nothing recursively is NotFound",
    "C-14",
    exampleTree,
    (fs) => fs.delete("missing", { recursive: true }),
    "NotFound"
  ),
  deleting.refuses("deleting below a file is NotFound", "semantics: -", exampleTree, (fs) => fs.delete("file/x"), "NotFound"),
  deleting.refuses("deleting below nothing is NotFound", "C-14", exampleTree, (fs) => fs.delete("missing/x"), "NotFound"),
  ...["missing", "missing/x", "file/x"].map((path) =>
    deleting.changes(
      `deleting ${path} answers 0 where that is ignored`,
      "C-14",
      exampleTree,
      (fs) => fs.delete(path, { missing: "ignore" }),
      exampleTree,
      { deleted: 0, directories: 0 }
    )
  ),
  deleting.refuses(
    "ignoring what is missing ignores nothing else",
    "C-14",
    exampleTree,
    (fs) => fs.delete("dir", { missing: "ignore" }),
    "DirectoryNotEmpty"
  ),
  deleting.law("the root is never deleted", "behaviours: regressions", function* (fs) {
    for (const files of [{}, exampleTree]) {
      yield* plantFiles(fs, files)
      for (const path of rootNames) {
        yield* fails(fs.delete(path), "AccessDenied", { why: "root" })
        yield* fails(fs.delete(path, { recursive: true }), "AccessDenied", { why: "root" })
        yield* fails(fs.delete(path, { recursive: true, missing: "ignore" }), "AccessDenied", { why: "root" })
      }
      yield* expectTree(fs, files)
    }
  }),
  moving.law("what was deleted can be made again, as another kind", "C-16", function* (fs) {
    yield* fs.write("a/b", "x")
    yield* fs.delete("a", { recursive: true })
    yield* fs.write("a", "file now")
    yield* fs.delete("a")
    yield* fs.mkdir("a")
    yield* expectTree(fs, { a: directory })
  })
]

const tree: Files = { "t/a.bin": toBytes(0, 13, 10, 255), "t/b/c": "crlf\r\n", "t/empty": directory }
const below = (to: string): Files => ({
  [`${to}/a.bin`]: toBytes(0, 13, 10, 255),
  [`${to}/b/c`]: "crlf\r\n",
  [`${to}/empty`]: directory
})

interface Transfer {
  readonly call: "copy" | "move"
  readonly remaining: (source: Files) => Files
  readonly lawChanging: typeof changes
  readonly lawFailing: typeof refuses
}

const transfers: ReadonlyArray<Transfer> = [
  { call: "copy", remaining: (source) => source, lawChanging: changes, lawFailing: refuses },
  { call: "move", remaining: () => ({}), lawChanging: moving.changes, lawFailing: moving.refuses }
]

const transferLaw = ({ call, lawFailing, lawChanging, remaining }: Transfer): ReadonlyArray<Law> => [
  lawChanging(
    `${call} of a file`,
    "C-51",
    { a: "x" },
    (fs) => fs[call]("a", "b"),
    { ...remaining({ a: "x" }), b: "x" },
    {
      files: 1,
      directories: 0,
      bytes: 1
    }
  ),
  lawChanging(
    `${call} of a whole tree, byte for byte, empty directories too`,
    "C-51",
    tree,
    (fs) => fs[call]("t", "u"),
    { ...remaining(tree), ...below("u") },
    { files: 2, directories: 3, bytes: 10 }
  ),
  lawChanging(
    `${call} of an empty directory`,
    "C-51",
    { e: directory },
    (fs) => fs[call]("e", "d"),
    { ...remaining({ e: directory }), d: directory },
    {
      files: 0,
      directories: 1,
      bytes: 0
    }
  ),
  lawChanging(`${call} makes the parents`, "C-51", { a: "x" }, (fs) => fs[call]("a", "p/q/b"), {
    ...remaining({ a: "x" }),
    "p/q/b": "x"
  }),
  lawChanging(`${call} to a name that begins like the source`, "C-51", { "d/a": "x" }, (fs) => fs[call]("d", "d2/d"), {
    ...remaining({ "d/a": "x" }),
    "d2/d/a": "x"
  }),
  lawFailing(
    `${call} of nothing is NotFound at the source`,
    "C-51",
    exampleTree,
    (fs) => fs[call]("missing", "p/b"),
    "NotFound",
    {
      path: "missing"
    }
  ),
  lawFailing(
    `${call} from below a file is NotFound`,
    "behaviours: calls",
    exampleTree,
    (fs) => fs[call]("file/x", "b"),
    "NotFound",
    {
      path: "file/x"
    }
  ),
  lawFailing(
    `${call} to below a file is NotADirectory at the target`,
    "behaviours: calls",
    exampleTree,
    (fs) => fs[call]("dir", "file/p/x"),
    "NotADirectory",
    {
      path: "file/p/x"
    }
  ),
  ...["file", "dir", "empty"].flatMap((from) =>
    ["file", "dir", "empty"].map((to) =>
      from === to
        ? lawFailing(
            `${call} of ${from} onto itself is InvalidArgument`,
            "C-51",
            exampleTree,
            (fs) => fs[call](from, to),
            "InvalidArgument"
          )
        : lawFailing(
            `${call} of ${from} to ${to} is AlreadyExists`,
            "C-51",
            exampleTree,
            (fs) => fs[call](from, to),
            "AlreadyExists",
            {
              path: to
            }
          )
    )
  ),
  lawFailing(
    `${call} onto itself is InvalidArgument even when it may overwrite`,
    "C-51",
    exampleTree,
    (fs) => fs[call]("file", "./file", { overwrite: true }),
    "InvalidArgument"
  ),
  lawFailing(
    `${call} of a directory into itself is InvalidArgument`,
    "C-51",
    exampleTree,
    (fs) => fs[call]("dir", "dir/p/q"),
    "InvalidArgument"
  ),
  lawChanging(
    `${call} over a file replaces it`,
    "C-51",
    { a: "new", b: "old old" },
    (fs) => fs[call]("a", "b", { overwrite: true }),
    { ...remaining({ a: "new" }), b: "new" },
    { files: 1 }
  ),
  lawChanging(
    `${call} of a directory over an empty one`,
    "C-51",
    { ...tree, e: directory },
    (fs) => fs[call]("t", "e", { overwrite: true }),
    { ...remaining(tree), ...below("e") }
  ),
  lawFailing(
    `${call} of a file over an empty directory is NotAFile`,
    "C-51",
    exampleTree,
    (fs) => fs[call]("file", "empty", { overwrite: true }),
    "NotAFile",
    { path: "empty" }
  ),
  lawFailing(
    `${call} of a directory over a file is NotADirectory`,
    "C-51",
    exampleTree,
    (fs) => fs[call]("dir", "file", { overwrite: true }),
    "NotADirectory",
    { path: "file" }
  ),
  ...["file", "empty"].map((from) =>
    lawFailing(
      `${call} of ${from} over a directory with content is DirectoryNotEmpty`,
      "C-51",
      exampleTree,
      (fs) => fs[call](from, "dir", { overwrite: true }),
      "DirectoryNotEmpty",
      { path: "dir" }
    )
  ),
  ...rootNames.map((root) =>
    lawFailing(
      `${call} onto the root, named ${JSON.stringify(root)}, is AccessDenied`,
      "semantics: -",
      exampleTree,
      (fs) => fs[call]("dir", root, { overwrite: true }),
      "AccessDenied",
      { why: "root" }
    )
  )
]

export const transferLaws: ReadonlyArray<Law> = [
  ...transfers.flatMap(transferLaw),
  refuses("the root cannot be copied into itself", "C-51", exampleTree, (fs) => fs.copy(".", "copy"), "InvalidArgument"),
  moving.refuses("the root cannot be moved", "semantics: -", exampleTree, (fs) => fs.move(".", "moved"), "AccessDenied", {
    why: "root"
  }),
  law("a copy and its original go separate ways", "C-51", function* (fs) {
    yield* plantFiles(fs, { "d/a": "1" })
    yield* fs.copy("d", "e")
    yield* fs.write("d/a", "2")
    yield* fs.write("e/a", "3", { mode: "append" })
    yield* expectTree(fs, { "d/a": "2", "e/a": "13" })
  }),
  lawsKeepingDirectories.moving.changes(
    "a moved tree leaves its old parent",
    "C-45",
    { "p/d/a": "x" },
    (fs) => fs.move("p/d", "q"),
    {
      "q/a": "x",
      p: directory
    }
  ),
  lawsPruningDirectories.changes(
    "a moved tree takes along its old parent where that holds no more",
    "C-45",
    { "p/d/a": "x", "o/d": "y", "o/e": "z" },
    (fs) => Effect.all([fs.move("p/d", "q"), fs.move("o/d", "q/o")]),
    { "q/a": "x", "q/o": "y", "o/e": "z" }
  ),
  moving.law("what was moved is what there was", "C-51", function* (fs) {
    yield* plantFiles(fs, { "d/a": "x" })
    const version = yield* fs.version("d/a")
    yield* fs.move("d", "e")
    yield* equal(yield* fs.version("e/a"), version)
    yield* equal(yield* fs.exists("d"), false)
    yield* fs.write("d", "a file in its place")
    yield* expectTree(fs, { "e/a": "x", d: "a file in its place" })
  }),
  moving.law("names can be swapped", "C-51", function* (fs) {
    yield* plantFiles(fs, { a: "1", b: "2" })
    yield* Effect.all([fs.move("a", "c"), fs.move("b", "a"), fs.move("c", "b")])
    yield* expectTree(fs, { a: "2", b: "1" })
  })
]
