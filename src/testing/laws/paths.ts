import * as Effect from "effect/Effect"
import * as Limits from "../../model/Limits.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { plantFiles, lawForms, expectTree, withLimits } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import { abilities, Bench, type Law } from "../Law.ts"
import { pathCalls, paths, supportedCalls } from "../operations.ts"

const { answers, law } = lawForms({ kind: "service" })
const writing = lawForms({ kind: "service", needs: ["write"] })
const caseInsensitive = lawForms({ kind: "service", needs: ["write", "delete", "case insensitive"] })
const anyNameEnds = lawForms({ kind: "service", needs: ["write", "names ending in dots or spaces"] })
const plainNameEnds = lawForms({ kind: "service", needs: ["write", "no names ending in dots or spaces"] })
const caseSensitive = lawForms({ kind: "service", needs: ["write", "case sensitive"] })

const exampleTree: Files = { "source.txt": "a", "a/b.txt": "x" }

const rejectedEverywhere = (
  name: string,
  ref: string,
  path: unknown,
  tag: "InvalidPath" | "PathTooLong",
  limits: Partial<Limits.LimitsShape> = {}
): Law =>
  law(name, ref, function* (fs) {
    yield* plantFiles(fs, exampleTree)
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
  ["that climbs above the root on its way", "a/../../a/b.txt"],
  ["that is not a string", 42]
]

export const pathLaws: ReadonlyArray<Law> = [
  ...invalidPaths.map(([what, path]) =>
    rejectedEverywhere(`a path ${what} is InvalidPath in every call`, "C-02, C-05, C-49", path, "InvalidPath")
  ),
  ...invalidPaths.map(([what, path]) =>
    law(`a path ${what} does not exist`, "C-54", function* (fs) {
      yield* plantFiles(fs, { "up.txt": "x", "a/b.txt": "x" })
      yield* equal(yield* existsUntyped(fs, path), false)
    })
  ),
  rejectedEverywhere(
    "17 segments are PathTooLong in every call where 16 are allowed",
    "C-22",
    Array.from({ length: 17 }, () => "d").join("/"),
    "PathTooLong",
    Limits.agent
  ),
  rejectedEverywhere("a name over the limit is PathTooLong in every call", "C-22", "n".repeat(256), "PathTooLong"),
  rejectedEverywhere(
    "a path over the limit is PathTooLong in every call",
    "C-22",
    Array.from({ length: 41 }, () => "n".repeat(99)).join("/"),
    "PathTooLong"
  ),
  law("a path beyond the limits does not exist", "C-54", function* (fs) {
    yield* plantFiles(fs, exampleTree)
    yield* equal(yield* withLimits({ maxPathDepth: 1 })(fs.exists("a/b.txt")), false)
    yield* equal(yield* withLimits({ maxPathDepth: 2 })(fs.exists("a/b.txt")), true)
  }),
  writing.law("a name of 255 characters can be used", "C-22", function* (fs) {
    const name = "n".repeat(255)
    yield* fs.write(name, "x")
    yield* equal(paths(yield* fs.list()), [name])
  }),
  writing.law("16 segments can be used where 16 are allowed", "C-22", function* (fs) {
    const path = Array.from({ length: 16 }, () => "d").join("/")
    yield* withLimits(Limits.agent)(fs.write(path, "x"))
    yield* equal(yield* withLimits(Limits.agent)(fs.readString(path)), "x")
  }),

  law('"", ".", "/" and nothing at all name the root', "C-07", function* (fs) {
    yield* plantFiles(fs, { "a.txt": "x" })
    for (const path of ["", ".", "/"]) {
      yield* has(yield* fs.stat(path), { path: "." as never, kind: "directory" })
      yield* equal(paths(yield* fs.list(path)), ["a.txt"])
      yield* equal(yield* fs.exists(path), true)
    }
    yield* equal(paths(yield* fs.list()), ["a.txt"])
  }),
  answers(
    "a leading slash means the root of the workspace",
    "C-01",
    { "etc/passwd": "ours" },
    (fs) => fs.readString("/etc/passwd"),
    "ours"
  ),
  writing.changes(
    "what is written below a leading slash stands below the root",
    "C-01",
    {},
    (fs) => fs.write("/a/b.txt", "x"),
    { "a/b.txt": "x" },
    { path: "a/b.txt" as never }
  ),
  answers("inner .. is resolved on the text alone", "C-02", { b: "x" }, (fs) => fs.readString("missing/../b"), "x"),
  answers(
    "inner .. is resolved on the text alone, also through a file",
    "C-02",
    { f: "f", b: "x" },
    (fs) => fs.readString("f/../b"),
    "x"
  ),
  answers(
    "repeated slashes count once, and a trailing one not at all",
    "C-03",
    { "a/b": "x" },
    (fs) => fs.readString("a//b/"),
    "x"
  ),
  answers("a trailing slash does not make a file a directory", "C-03", { a: "x" }, (fs) => fs.readString("a/"), "x"),
  answers("segments of one dot are dropped", "C-04", { "a/b": "x" }, (fs) => fs.readString("./a/././b/."), "x"),
  answers("a percent sign is not decoded", "C-05", { "%2e%2e/x": "y" }, (fs) => fs.readString("%2e%2e/x"), "y"),
  answers("dots at the beginning of a name are part of it", "C-02", { "..a": "x" }, (fs) => fs.readString("..a"), "x"),
  anyNameEnds.answers("dots that are not a segment are a name", "C-02", { "...": "x" }, (fs) => fs.readString("..."), "x"),
  writing.changes("a space at the beginning of a name is kept", "C-06", { a: "1" }, (fs) => fs.write(" a", "2"), {
    a: "1",
    " a": "2"
  }),
  anyNameEnds.changes("spaces at either end of a name are kept", "C-06", { a: "1" }, (fs) => fs.write(" a ", "2"), {
    a: "1",
    " a ": "2"
  }),
  plainNameEnds.law("a name that ends in a dot or a space is InvalidPath in every call", "C-05", function* (fs) {
    yield* plantFiles(fs, exampleTree)
    for (const path of ["...", "a.", "a ", "a. /b.txt", "source.txt."]) {
      for (const call of supportedCalls(pathCalls, abilities(fs, yield* Bench))) yield* fails(call.run(fs, path), "InvalidPath")
      yield* equal(yield* fs.exists(path), false, path)
    }
    yield* expectTree(fs, exampleTree)
  }),
  answers(
    "a name with spaces around it is not the name without them",
    "C-06",
    { a: "x" },
    (fs) => Effect.all([fs.exists(" a"), fs.exists("a "), fs.exists("a")]),
    [false, false, true]
  ),
  writing.law("two normal forms of one name are two names", "C-05", function* (fs) {
    yield* fs.write("\u00e9", "composed")
    yield* fs.write("e\u0301", "decomposed")
    yield* equal(yield* fs.readString("\u00e9"), "composed")
    yield* equal(yield* fs.readString("e\u0301"), "decomposed")
    yield* equal((yield* fs.list()).length, 2)
  }),
  writing.law("a backslash never separates", "C-05", function* (fs) {
    const written = yield* Effect.result(fs.write("a\\b", "x"))
    if (written._tag === "Failure") return yield* equal(written.failure._tag, "InvalidPath")
    yield* equal(paths(yield* fs.list()), ["a\\b"])
  }),
  writing.changes("the case of a name is kept", "C-41", {}, (fs) => fs.write("ReadMe.TXT", "x"), { "ReadMe.TXT": "x" }),
  caseSensitive.changes(
    "names that differ in case are two where the backend says so",
    "C-41",
    { a: "1" },
    (fs) => fs.write("A", "2", { mode: "create" }),
    { a: "1", A: "2" }
  ),
  caseSensitive.answers(
    "capital letters come before small ones where they are others",
    "C-18, C-41",
    { b: "", A: "", a: "", B: "" },
    (fs) => Effect.map(fs.list(), paths),
    ["A", "B", "a", "b"]
  ),
  caseInsensitive.answers("a name is found in any case", "C-41", { "Dir/A.txt": "x" }, (fs) => fs.readString("dIR/a.TXT"), "x"),
  caseInsensitive.refuses(
    "another case of a name that there is exists already",
    "C-41",
    { "A.txt": "x" },
    (fs) => fs.write("a.txt", "y", { mode: "create" }),
    "AlreadyExists"
  ),
  caseInsensitive.changes(
    "overwriting by another case keeps the name",
    "C-41",
    { "A.txt": "x" },
    (fs) => fs.write("a.txt", "y"),
    {
      "A.txt": "y"
    }
  ),
  caseInsensitive.changes("a name can be given another case", "C-41", { "A.txt": "x" }, (fs) => fs.move("A.txt", "a.txt"), {
    "a.txt": "x"
  }),
  caseInsensitive.refuses(
    "another case of the way to a name is no other name",
    "C-41, C-51",
    { "a/a": "x" },
    (fs) => fs.move("A/A", "a/A"),
    "InvalidArgument"
  ),
  caseInsensitive.refuses(
    "a file cannot be copied onto another case of itself",
    "C-41, C-51",
    { "A.txt": "x" },
    (fs) => fs.copy("A.txt", "a.txt", { overwrite: true }),
    "InvalidArgument"
  ),
  caseInsensitive.answers(
    "listings are in the order of folded names",
    "C-41",
    { B: "", a: "", C: "", b2: "" },
    (fs) => Effect.map(fs.list(), paths),
    ["a", "B", "b2", "C"]
  ),
  caseInsensitive.answers(
    "globs do not tell case apart",
    "C-19, C-41",
    { "Src/Main.TS": "" },
    (fs) => Effect.map(fs.glob("src/*.ts"), ({ matches }) => paths(matches)),
    ["Src/Main.TS"]
  ),

  law("results carry the path in its one form", "C-07", function* (fs) {
    yield* plantFiles(fs, { "a/b.txt": "x\n" })
    const path = "a/b.txt" as never
    yield* has(yield* fs.stat("/a//b.txt"), { path })
    yield* has(yield* fs.read("./a/b.txt"), { path })
    yield* has(yield* fs.readBytes("a/./b.txt"), { path })
    yield* equal((yield* fs.list("/a/"))[0]?.path, path)
  }),
  writing.law("what writes answer carries the path in its one form", "C-07", function* (fs) {
    const path = "a/b.txt" as never
    yield* has(yield* fs.write("/a//b.txt", "x"), { path })
    yield* has(yield* fs.writeBytes("a/c/../b.txt", new Uint8Array(1)), { path })
    yield* has(yield* fs.edit("./a/b.txt", { oldText: "\0", newText: "y" }), { path })
  }),
  law("failures carry the operation, and the path as it was written", "C-23", function* (fs) {
    yield* plantFiles(fs, { "source.txt": "a", d: directory })
    const path = "/no//where"
    const always = new Set(["glob", "globStream", "grep", "grepStream", "write", "writeBytes", "sink", "mkdir", "symlink"])
    for (const { operation, parameter, run } of supportedCalls(pathCalls, abilities(fs, yield* Bench))) {
      if (always.has(operation) || parameter === "to") continue
      yield* fails(run(fs, path), "NotFound", { operation, path })
    }
  }),
  law("invalid paths are reported as they were written", "C-23", function* (fs) {
    yield* plantFiles(fs, { "source.txt": "a" })
    const path = "/a/../../b"
    for (const { operation, run } of supportedCalls(pathCalls, abilities(fs, yield* Bench))) {
      const error = yield* fails(run(fs, path), "InvalidPath", { path })
      yield* holds(error.operation === operation, `the operation ${operation}`, error.operation)
    }
  })
]
