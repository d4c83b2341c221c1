import * as Effect from "effect/Effect"
import * as Limits from "../../model/Limits.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { lawForms, expectTree, withLimits } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import { abilities, Bench, type Law } from "../Law.ts"
import { pathCalls, paths, supportedCalls } from "../operations.ts"

const service = lawForms("service")
const writing = lawForms("service", "write")
const caseInsensitive = lawForms("service", "write", "delete", "case insensitive")
const anyNameEnds = lawForms("service", "write", "names ending in dots or spaces")
const plainNameEnds = lawForms("service", "write", "no names ending in dots or spaces")
const caseSensitive = lawForms("service", "write", "case sensitive")

const exampleTree: Files = { "source.txt": "a", "a/b.txt": "x" }

const rejectedEverywhere = (
  name: string,
  ref: string,
  path: unknown,
  tag: "InvalidPath" | "PathTooLong",
  limits: Partial<Limits.LimitsShape> = {}
): Law =>
  service(ref, exampleTree).law(name, function* (fs) {
    for (const call of supportedCalls(pathCalls, abilities(fs, yield* Bench))) {
      yield* fails(withLimits(limits)(call.run(fs, path as string)), tag)
    }
    yield* expectTree(fs, exampleTree)
  })

const existsUntyped = (fs: Algebra, path: unknown): Effect.Effect<boolean, unknown> => fs.exists(path as string)

const invalidPaths: ReadonlyArray<readonly [what: string, path: unknown]> = [
  ["with NUL", "a\0b"],
  ["with a line feed", "a\nb"],
  ["with DEL", "a\x7fb"],
  ["with a lone surrogate", "a\ud800b"],
  ["that climbs above the root", "../up.txt"],
  ["that climbs above the root and returns", "a/../../a/b.txt"],
  ["that is not a string", 42]
]

const anyCase = caseInsensitive("C-41", { "A.txt": "x" })

export const pathLaws: ReadonlyArray<Law> = [
  ...invalidPaths.map(([what, path]) =>
    rejectedEverywhere(`a path ${what} is InvalidPath in every call except exists`, "C-02, C-05, C-49", path, "InvalidPath")
  ),
  ...invalidPaths.map(([what, path]) =>
    service("C-54", { "up.txt": "x", "a/b.txt": "x" }).law(`a path ${what} does not exist`, function* (fs) {
      yield* equal(yield* existsUntyped(fs, path), false)
    })
  ),
  rejectedEverywhere(
    "with maxPathDepth 16, a path of 17 segments is PathTooLong in every call except exists",
    "C-22",
    Array.from({ length: 17 }, () => "d").join("/"),
    "PathTooLong",
    Limits.agent
  ),
  rejectedEverywhere(
    "a name over the limit is PathTooLong in every call except exists",
    "C-22",
    "n".repeat(256),
    "PathTooLong"
  ),
  rejectedEverywhere(
    "a path over the limit is PathTooLong in every call except exists",
    "C-22",
    Array.from({ length: 41 }, () => "n".repeat(99)).join("/"),
    "PathTooLong"
  ),
  service("C-54", exampleTree).law("a path beyond the limits does not exist", function* (fs) {
    yield* equal(yield* withLimits({ maxPathDepth: 1 })(fs.exists("a/b.txt")), false)
    yield* equal(yield* withLimits({ maxPathDepth: 2 })(fs.exists("a/b.txt")), true)
  }),
  writing("C-22").law("a name of 255 characters can be used", function* (fs) {
    const name = "n".repeat(255)
    yield* fs.write(name, "x")
    yield* equal(paths(yield* fs.list()), [name])
  }),
  writing("C-22").law("a path of 16 segments can be used if maxPathDepth is 16", function* (fs) {
    const path = Array.from({ length: 16 }, () => "d").join("/")
    yield* withLimits(Limits.agent)(fs.write(path, "x"))
    yield* equal(yield* withLimits(Limits.agent)(fs.readString(path)), "x")
  }),

  service("C-07", { "a.txt": "x" }).law('"", ".", "/" and an omitted path all mean the root', function* (fs) {
    for (const path of ["", ".", "/"]) {
      yield* has(yield* fs.stat(path), { path: "." as never, kind: "directory" })
      yield* equal(paths(yield* fs.list(path)), ["a.txt"])
      yield* equal(yield* fs.exists(path), true)
    }
    yield* equal(paths(yield* fs.list()), ["a.txt"])
  }),
  service("C-01", { "etc/passwd": "ours" }).answers(
    "a leading slash in a read means the root of the filesystem",
    (fs) => fs.readString("/etc/passwd"),
    "ours"
  ),
  writing("C-01").changes(
    "a leading slash in a write means the root of the filesystem",
    (fs) => fs.write("/a/b.txt", "x"),
    { "a/b.txt": "x" },
    { path: "a/b.txt" as never }
  ),
  service("C-02", { b: "x" }).answers(
    "a .. after a missing directory is resolved on the text of the path",
    (fs) => fs.readString("missing/../b"),
    "x"
  ),
  service("C-02", { f: "f", b: "x" }).answers(
    "a .. after a file is resolved on the text of the path",
    (fs) => fs.readString("f/../b"),
    "x"
  ),
  service("C-03", { "a/b": "x" }).answers(
    "repeated slashes count as one slash, and a trailing slash is ignored",
    (fs) => fs.readString("a//b/"),
    "x"
  ),
  service("C-03", { a: "x" }).answers("a trailing slash does not make a file a directory", (fs) => fs.readString("a/"), "x"),
  service("C-04", { "a/b": "x" }).answers("segments of one dot are ignored", (fs) => fs.readString("./a/././b/."), "x"),
  service("C-05", { "%2e%2e/x": "y" }).answers("a percent sign is not decoded", (fs) => fs.readString("%2e%2e/x"), "y"),
  service("C-02", { "..a": "x" }).answers(
    "dots at the beginning of a name are part of the name",
    (fs) => fs.readString("..a"),
    "x"
  ),
  anyNameEnds("C-02", { "...": "x" }).answers("three dots are a name", (fs) => fs.readString("..."), "x"),
  writing("C-06", { a: "1" }).changes("a space at the beginning of a name is kept", (fs) => fs.write(" a", "2"), {
    a: "1",
    " a": "2"
  }),
  anyNameEnds("C-06", { a: "1" }).changes("spaces at either end of a name are kept", (fs) => fs.write(" a ", "2"), {
    a: "1",
    " a ": "2"
  }),
  plainNameEnds("C-05", exampleTree).law(
    "a name that ends in a dot or a space is InvalidPath in every call except exists",
    function* (fs) {
      for (const path of ["...", "a.", "a ", "a. /b.txt", "source.txt."]) {
        for (const call of supportedCalls(pathCalls, abilities(fs, yield* Bench)))
          yield* fails(call.run(fs, path), "InvalidPath")
        yield* equal(yield* fs.exists(path), false, path)
      }
      yield* expectTree(fs, exampleTree)
    }
  ),
  service("C-06", { a: "x" }).answers(
    "a name with spaces at an end is not equal to the trimmed name",
    (fs) => Effect.all([fs.exists(" a"), fs.exists("a "), fs.exists("a")]),
    [false, false, true]
  ),
  writing("C-05").law("two Unicode normal forms of a name are different names", function* (fs) {
    yield* fs.write("\u00e9", "composed")
    yield* fs.write("e\u0301", "decomposed")
    yield* equal(yield* fs.readString("\u00e9"), "composed")
    yield* equal(yield* fs.readString("e\u0301"), "decomposed")
    yield* equal((yield* fs.list()).length, 2)
  }),
  writing("C-05").law("a backslash does not separate segments", function* (fs) {
    const written = yield* Effect.result(fs.write("a\\b", "x"))
    if (written._tag === "Failure") return yield* equal(written.failure._tag, "InvalidPath")
    yield* equal(paths(yield* fs.list()), ["a\\b"])
  }),
  writing("C-41").changes("the case of a name is kept", (fs) => fs.write("ReadMe.TXT", "x"), { "ReadMe.TXT": "x" }),
  caseSensitive("C-41", { a: "1" }).changes(
    "names that differ in case are different files",
    (fs) => fs.write("A", "2", { mode: "create" }),
    { a: "1", A: "2" }
  ),
  caseSensitive("C-18, C-41", { b: "", A: "", a: "", B: "" }).answers(
    "a listing has capital letters before small letters",
    (fs) => Effect.map(fs.list(), paths),
    ["A", "B", "a", "b"]
  ),
  caseInsensitive("C-41", { "Dir/A.txt": "x" }).answers(
    "a file is found by its name in any case",
    (fs) => fs.readString("dIR/a.TXT"),
    "x"
  ),
  anyCase.answers("realPath returns the stored case of a name", (fs) => Effect.map(fs.realPath("a.TXT"), String), "A.txt"),
  anyCase.refuses(
    "creating an existing name in another case is AlreadyExists",
    (fs) => fs.write("a.txt", "y", { mode: "create" }),
    "AlreadyExists"
  ),
  anyCase.changes("overwriting a file by its name in another case keeps the old name", (fs) => fs.write("a.txt", "y"), {
    "A.txt": "y"
  }),
  anyCase.changes("a move can change the case of a name", (fs) => fs.move("A.txt", "a.txt"), { "a.txt": "x" }),
  caseInsensitive("C-41, C-51", { "a/a": "x" }).refuses(
    "a move that changes only the case of the parent is InvalidArgument",
    (fs) => fs.move("A/A", "a/A"),
    "InvalidArgument"
  ),
  caseInsensitive("C-41, C-51", { "A.txt": "x" }).refuses(
    "a file cannot be copied onto another case of itself",
    (fs) => fs.copy("A.txt", "a.txt", { overwrite: true }),
    "InvalidArgument"
  ),
  caseInsensitive("C-41", { B: "", a: "", C: "", b2: "" }).answers(
    "listings are in the order of folded names",
    (fs) => Effect.map(fs.list(), paths),
    ["a", "B", "b2", "C"]
  ),
  caseInsensitive("C-19, C-41", { "Src/Main.TS": "" }).answers(
    "globs ignore case if the filesystem does",
    (fs) => Effect.map(fs.glob("src/*.ts"), ({ matches }) => paths(matches)),
    ["Src/Main.TS"]
  ),

  service("C-07", { "a/b.txt": "x\n" }).law("results of reads contain the path in normal form", function* (fs) {
    const path = "a/b.txt" as never
    yield* has(yield* fs.stat("/a//b.txt"), { path })
    yield* has(yield* fs.read("./a/b.txt"), { path })
    yield* has(yield* fs.readBytes("a/./b.txt"), { path })
    yield* equal((yield* fs.list("/a/"))[0]?.path, path)
  }),
  writing("C-07").law("results of writes contain the path in normal form", function* (fs) {
    const path = "a/b.txt" as never
    yield* has(yield* fs.write("/a//b.txt", "x"), { path })
    yield* has(yield* fs.writeBytes("a/c/../b.txt", new Uint8Array(1)), { path })
    yield* has(yield* fs.edit("./a/b.txt", { oldText: "\0", newText: "y" }), { path })
  }),
  service("C-23", { "source.txt": "a", d: directory }).law(
    "failures contain the operation, and the path as the caller wrote it",
    function* (fs) {
      const path = "/no//where"
      const always = new Set(["glob", "globStream", "grep", "grepStream", "write", "writeBytes", "sink", "mkdir", "symlink"])
      for (const { operation, parameter, run } of supportedCalls(pathCalls, abilities(fs, yield* Bench))) {
        if (always.has(operation) || parameter === "to") continue
        yield* fails(run(fs, path), "NotFound", { operation, path })
      }
    }
  ),
  service("C-23", { "source.txt": "a" }).law("failures contain an invalid path as the caller wrote it", function* (fs) {
    const path = "/a/../../b"
    for (const { operation, run } of supportedCalls(pathCalls, abilities(fs, yield* Bench))) {
      const error = yield* fails(run(fs, path), "InvalidPath", { path })
      yield* holds(error.operation === operation, `the operation ${operation}`, error.operation)
    }
  })
]
