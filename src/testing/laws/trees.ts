import * as Effect from "effect/Effect"
import { plantFiles, lawForms, withFaults, expectTree } from "../chapter.ts"
import { equal, fails } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import type { Law } from "../Law.ts"
import { toBytes } from "../operations.ts"

const writing = lawForms("service", "write")
const deleting = lawForms("service", "delete")
const moving = lawForms("service", "write", "delete")
const lawsKeepingDirectories = {
  deleting: lawForms("service", "delete", "directories outlive their content"),
  moving: lawForms("service", "write", "delete", "directories outlive their content")
}
const lawsPruningDirectories = lawForms("service", "write", "delete", "directories go with their content")

const exampleTree: Files = { file: "text", "dir/inner": "x", empty: directory }

const rootNames = ["", ".", "/"]

const creation = writing("S0-60", exampleTree)

export const mkdirLaws: ReadonlyArray<Law> = [
  writing("S0-58").changes("mkdir creates a directory", (fs) => fs.mkdir("d"), { d: directory }),
  writing("S0-59", { "a/x": "x" }).changes("mkdir creates missing parents", (fs) => fs.mkdir("a/b/c"), {
    "a/x": "x",
    "a/b/c": directory
  }),
  writing("S0-62").refuses(
    "mkdir without parents is NotFound if a parent is missing",
    (fs) => fs.mkdir("a/b", { parents: false }),
    "NotFound"
  ),
  writing("S0-59", { a: directory }).changes(
    "mkdir without parents creates one directory",
    (fs) => fs.mkdir("a/b", { parents: false }),
    { "a/b": directory }
  ),
  creation.changes("mkdir of an existing directory does nothing", (fs) => fs.mkdir("dir"), exampleTree),
  creation.changes("mkdir of the root does nothing", (fs) => fs.mkdir("."), exampleTree),
  writing("S0-61", exampleTree).refuses(
    "mkdir with existOk false refuses an existing directory",
    (fs) => fs.mkdir("dir", { existOk: false }),
    "AlreadyExists"
  ),
  writing("behaviours: calls", exampleTree).refuses(
    "mkdir of the root with existOk false is AlreadyExists",
    (fs) => fs.mkdir(".", { existOk: false }),
    "AlreadyExists"
  ),
  creation.refuses("mkdir over a file is AlreadyExists", (fs) => fs.mkdir("file"), "AlreadyExists"),
  writing("behaviours: regressions", exampleTree).refuses(
    "mkdir through a file is NotADirectory, and nothing changes",
    (fs) => fs.mkdir("file/a/b"),
    "NotADirectory"
  ),
  writing("behaviours: calls", exampleTree).refuses(
    "mkdir without parents through a file is NotADirectory",
    (fs) => fs.mkdir("file/a", { parents: false }),
    "NotADirectory"
  )
]

const deletion = deleting("C-14", exampleTree)

export const deleteLaws: ReadonlyArray<Law> = [
  deleting("C-16", { a: "x", b: "y" }).changes(
    "delete removes a file",
    (fs) => fs.delete("a"),
    { b: "y" },
    { deleted: 1, directories: 0 }
  ),
  deleting("C-15, C-16", exampleTree).changes(
    "delete removes an empty directory",
    (fs) => fs.delete("empty"),
    { file: "text", "dir/inner": "x" },
    { deleted: 1, directories: 1 }
  ),
  deleting("C-15", exampleTree).refuses(
    "delete of a directory with content needs recursive",
    (fs) => fs.delete("dir"),
    "DirectoryNotEmpty"
  ),
  deleting("C-15", { "a/b": directory }).refuses(
    "delete of a directory with an empty subdirectory needs recursive",
    (fs) => fs.delete("a"),
    "DirectoryNotEmpty"
  ),
  deleting("C-16", { "d/a": "1", "d/b": "2", "d/e/c": "3", "d/f": directory, other: "x" }).changes(
    "delete counts files and directories separately",
    (fs) => fs.delete("d", { recursive: true }),
    { other: "x" },
    { deleted: 3, directories: 3 }
  ),
  deleting("C-16", { "d/e/f": directory }).changes(
    "deleting a tree of directories returns a count of at least 1",
    (fs) => fs.delete("d", { recursive: true }),
    {},
    { deleted: 1, directories: 3 }
  ),
  deleting("C-16", { a: "x" }).changes(
    "a recursive delete of a file removes the file",
    (fs) => fs.delete("a", { recursive: true }),
    {},
    { deleted: 1, directories: 0 }
  ),
  deleting("C-16", { "d/a": "1", "d2/a": "2", d3: "3" }).changes(
    "delete keeps entries whose names begin with the deleted name",
    (fs) => fs.delete("d", { recursive: true }),
    { "d2/a": "2", d3: "3" }
  ),
  lawsKeepingDirectories
    .deleting("C-45", { "p/q/a": "x" })
    .changes("deleting the last entry of a directory keeps the directory", (fs) => fs.delete("p/q/a"), { "p/q": directory }),
  lawsPruningDirectories("C-45", { "p/q/r/a": "x", "p/b": "y", empty: directory }).changes(
    "deleting the last entry of a directory removes the empty parents",
    (fs) => fs.delete("p/q/r", { recursive: true }),
    { "p/b": "y", empty: directory },
    { deleted: 1, directories: 1 }
  ),
  lawsPruningDirectories("C-45, C-13", { empty: directory }).law(
    "a failed write keeps an empty directory that existed before",
    function* (fs) {
      const full = yield* withFaults(fs, { operation: "Write", fault: { _tag: "DiskFull" } })
      yield* fails(full.write("empty/p/a", "x"), "DiskFull")
      yield* expectTree(fs, { empty: directory })
    }
  ),
  deletion.refuses("deleting a missing path is NotFound", (fs) => fs.delete("missing"), "NotFound"),
  deletion.refuses(
    "deleting a missing path recursively is NotFound",
    (fs) => fs.delete("missing", { recursive: true }),
    "NotFound"
  ),
  deleting("semantics: -", exampleTree).refuses("deleting below a file is NotFound", (fs) => fs.delete("file/x"), "NotFound"),
  deletion.refuses("deleting below a missing path is NotFound", (fs) => fs.delete("missing/x"), "NotFound"),
  ...["missing", "missing/x", "file/x"].map((path) =>
    deletion.changes(
      `deleting ${path} with missing ignore returns 0`,
      (fs) => fs.delete(path, { missing: "ignore" }),
      exampleTree,
      { deleted: 0, directories: 0 }
    )
  ),
  deletion.refuses(
    "delete with missing ignore reports other errors",
    (fs) => fs.delete("dir", { missing: "ignore" }),
    "DirectoryNotEmpty"
  ),
  deleting("behaviours: regressions").law("the root is never deleted", function* (fs) {
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
  moving("C-16").law("a deleted path can be created again as another kind", function* (fs) {
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
  readonly forms: typeof writing
}

const transfers: ReadonlyArray<Transfer> = [
  { call: "copy", remaining: (source) => source, forms: writing },
  { call: "move", remaining: () => ({}), forms: moving }
]

const transferLaw = ({ call, forms, remaining }: Transfer): ReadonlyArray<Law> => [
  forms("C-51", { a: "x" }).changes(
    `${call} of a file keeps its content`,
    (fs) => fs[call]("a", "b"),
    { ...remaining({ a: "x" }), b: "x" },
    { files: 1, directories: 0, bytes: 1 }
  ),
  forms("C-51", tree).changes(
    `${call} of a tree keeps all bytes and the empty directories`,
    (fs) => fs[call]("t", "u"),
    { ...remaining(tree), ...below("u") },
    { files: 2, directories: 3, bytes: 10 }
  ),
  forms("C-51", { e: directory }).changes(
    `${call} of an empty directory succeeds`,
    (fs) => fs[call]("e", "d"),
    { ...remaining({ e: directory }), d: directory },
    { files: 0, directories: 1, bytes: 0 }
  ),
  forms("C-51", { a: "x" }).changes(`${call} creates missing parents of the target`, (fs) => fs[call]("a", "p/q/b"), {
    ...remaining({ a: "x" }),
    "p/q/b": "x"
  }),
  forms("C-51", { "d/a": "x" }).changes(
    `${call} of a directory to a name with the same beginning succeeds`,
    (fs) => fs[call]("d", "d2/d"),
    {
      ...remaining({ "d/a": "x" }),
      "d2/d/a": "x"
    }
  ),
  forms("C-51", exampleTree).refuses(
    `${call} of a missing path is NotFound at the source`,
    (fs) => fs[call]("missing", "p/b"),
    "NotFound",
    { path: "missing" }
  ),
  forms("behaviours: calls", exampleTree).refuses(
    `${call} from below a file is NotFound`,
    (fs) => fs[call]("file/x", "b"),
    "NotFound",
    { path: "file/x" }
  ),
  forms("behaviours: calls", exampleTree).refuses(
    `${call} to below a file is NotADirectory at the target`,
    (fs) => fs[call]("dir", "file/p/x"),
    "NotADirectory",
    { path: "file/p/x" }
  ),
  ...["file", "dir", "empty"].flatMap((from) =>
    ["file", "dir", "empty"].map((to) =>
      from === to
        ? forms("C-51", exampleTree).refuses(
            `${call} of ${from} onto itself is InvalidArgument`,
            (fs) => fs[call](from, to),
            "InvalidArgument"
          )
        : forms("C-51", exampleTree).refuses(
            `${call} of ${from} to ${to} is AlreadyExists`,
            (fs) => fs[call](from, to),
            "AlreadyExists",
            { path: to }
          )
    )
  ),
  forms("C-51", exampleTree).refuses(
    `${call} onto itself is InvalidArgument with the option overwrite`,
    (fs) => fs[call]("file", "./file", { overwrite: true }),
    "InvalidArgument"
  ),
  forms("C-51", exampleTree).refuses(
    `${call} of a directory into itself is InvalidArgument`,
    (fs) => fs[call]("dir", "dir/p/q"),
    "InvalidArgument"
  ),
  forms("C-51", { a: "new", b: "old old" }).changes(
    `${call} over a file replaces it`,
    (fs) => fs[call]("a", "b", { overwrite: true }),
    { ...remaining({ a: "new" }), b: "new" },
    { files: 1 }
  ),
  forms("C-51", { ...tree, e: directory }).changes(
    `${call} of a directory over an empty directory replaces it`,
    (fs) => fs[call]("t", "e", { overwrite: true }),
    { ...remaining(tree), ...below("e") }
  ),
  forms("C-51", exampleTree).refuses(
    `${call} of a file over an empty directory is NotAFile`,
    (fs) => fs[call]("file", "empty", { overwrite: true }),
    "NotAFile",
    { path: "empty" }
  ),
  forms("C-51", exampleTree).refuses(
    `${call} of a directory over a file is NotADirectory`,
    (fs) => fs[call]("dir", "file", { overwrite: true }),
    "NotADirectory",
    { path: "file" }
  ),
  ...["file", "empty"].map((from) =>
    forms("C-51", exampleTree).refuses(
      `${call} of ${from} over a directory with content is DirectoryNotEmpty`,
      (fs) => fs[call](from, "dir", { overwrite: true }),
      "DirectoryNotEmpty",
      { path: "dir" }
    )
  ),
  ...rootNames.map((root) =>
    forms("semantics: -", exampleTree).refuses(
      `${call} onto the root, named ${JSON.stringify(root)}, is AccessDenied`,
      (fs) => fs[call]("dir", root, { overwrite: true }),
      "AccessDenied",
      { why: "root" }
    )
  )
]

export const transferLaws: ReadonlyArray<Law> = [
  ...transfers.flatMap(transferLaw),
  writing("C-51", exampleTree).refuses(
    "the root cannot be copied into itself",
    (fs) => fs.copy(".", "copy"),
    "InvalidArgument"
  ),
  moving("semantics: -", exampleTree).refuses("the root cannot be moved", (fs) => fs.move(".", "moved"), "AccessDenied", {
    why: "root"
  }),
  writing("C-51", { "d/a": "1" }).law("a copy and its original are independent", function* (fs) {
    yield* fs.copy("d", "e")
    yield* fs.write("d/a", "2")
    yield* fs.write("e/a", "3", { mode: "append" })
    yield* expectTree(fs, { "d/a": "2", "e/a": "13" })
  }),
  lawsKeepingDirectories
    .moving("C-45", { "p/d/a": "x" })
    .changes("a move keeps the old parent directory", (fs) => fs.move("p/d", "q"), { "q/a": "x", p: directory }),
  lawsPruningDirectories("C-45", { "p/d/a": "x", "o/d": "y", "o/e": "z" }).changes(
    "a move removes the old parent directory if it becomes empty",
    (fs) => Effect.all([fs.move("p/d", "q"), fs.move("o/d", "q/o")]),
    { "q/a": "x", "q/o": "y", "o/e": "z" }
  ),
  moving("C-51", { "d/a": "x" }).law("a moved file keeps its version", function* (fs) {
    const version = yield* fs.version("d/a")
    yield* fs.move("d", "e")
    yield* equal(yield* fs.version("e/a"), version)
    yield* equal(yield* fs.exists("d"), false)
    yield* fs.write("d", "a file in its place")
    yield* expectTree(fs, { "e/a": "x", d: "a file in its place" })
  }),
  moving("C-51", { a: "1", b: "2" }).law("names can be swapped", function* (fs) {
    yield* Effect.all([fs.move("a", "c"), fs.move("b", "a"), fs.move("c", "b")])
    yield* expectTree(fs, { a: "2", b: "1" })
  })
]
