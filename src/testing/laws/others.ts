import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsError } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { plantFiles, lawForms, expectTree } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { abilities, Bench, type Law } from "../Law.ts"
import { directory } from "../Files.ts"
import {
  changingCalls,
  collect,
  encodeUtf8,
  names,
  paths,
  readingCalls,
  streamThen,
  supportedCalls,
  writeThroughSink
} from "../operations.ts"

const other = lawForms("ability", "others", "write", "delete")
const unaddressable = lawForms("ability", "unaddressable names", "write", "delete")
const temporary = lawForms("service", "write")
const removingLaws = lawForms("service", "write", "delete")

const openingOperations = new Set([
  "read",
  "readString",
  "readBytes",
  "version",
  "stream",
  "lines",
  "write",
  "writeBytes",
  "sink",
  "edit"
])

/** A name that looks like the name of a temporary file, but that this library never creates. */
const strange = ".~fsa-0000.tmp"

/** Creates a file through the port, as another program could. Returns `false` if the port rejects the name. */
const createForeignFile = (fs: Algebra, path: string): Effect.Effect<boolean, unknown> =>
  Effect.matchEffect(fs.port.write<never, never>(path as FsPath, encodeUtf8("a hit"), "create"), {
    onSuccess: () => Effect.succeed(true),
    onFailure: (fault) => (fault._tag === "InvalidPath" ? Effect.succeed(false) : Effect.fail(fault))
  })

export const otherLaws: ReadonlyArray<Law> = [
  other("behaviours: regressions").law("every call that opens a FIFO fails with NotAFile instead of waiting", function* (fs) {
    const { makeOther } = yield* Bench
    yield* makeOther!("pipe")
    const calls = supportedCalls([...readingCalls, ...changingCalls], abilities(fs, yield* Bench))
    for (const call of calls.filter(({ operation }) => openingOperations.has(operation)))
      yield* fails(call.run(fs, "pipe"), "NotAFile")
    yield* fails(fs.copy("pipe", "copy"), "NotAFile", { path: "pipe" })
    yield* fails(fs.write("pipe", "x", { mode: "create" }), ["NotAFile", "AlreadyExists"])
    yield* equal(yield* fs.exists("copy"), false)
  }),
  other("semantics: -").law("a FIFO can be listed, moved and deleted", function* (fs) {
    const { makeOther } = yield* Bench
    yield* makeOther!("pipe")
    yield* has((yield* fs.list())[0]!, { name: "pipe", kind: "other", isFile: false, isDirectory: false })
    yield* has(yield* fs.stat("pipe"), { kind: "other", isFile: false })
    yield* fs.move("pipe", "d/moved")
    yield* has(yield* fs.stat("d/moved"), { kind: "other" })
    yield* equal(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
    yield* expectTree(fs, {})
  }),
  ...(["copy", "move"] as const).map((call) =>
    other("C-51").law(`a ${call} never replaces a FIFO`, function* (fs) {
      const { makeOther } = yield* Bench
      yield* makeOther!("pipe")
      yield* plantFiles(fs, { a: "x", "d/b": "y", empty: directory })
      for (const from of ["a", "d", "empty"]) {
        yield* fails(fs[call](from, "pipe"), "AlreadyExists", { path: "pipe" })
        yield* fails(fs[call](from, "pipe", { overwrite: true }), "NotAFile", { path: "pipe" })
      }
      yield* has(yield* fs.stat("pipe"), { kind: "other" })
      yield* fs.delete("pipe")
      yield* expectTree(fs, { a: "x", "d/b": "y", empty: directory })
    })
  ),
  other("semantics: -").law("a grep counts a FIFO as unreadable", function* (fs) {
    const { makeOther } = yield* Bench
    yield* makeOther!("pipe")
    yield* plantFiles(fs, { a: "hit" })
    const result = yield* fs.grep("hit")
    yield* equal(paths(result.matches), ["a"])
    yield* has(result.skipped, { unreadable: 1, unreadablePaths: ["pipe" as never] })
  }),

  unaddressable("C-05").law("a listing escapes a name that no path can express", function* (fs) {
    const { makeUnaddressable } = yield* Bench
    yield* makeUnaddressable!
    yield* plantFiles(fs, { a: "hit" })
    const strange = (yield* fs.list()).filter(({ addressable }) => !addressable)
    yield* equal(strange.length, 1)
    yield* holds(!/[\0-\x1f\x7f]/.test(strange[0]!.name), "a name without control characters", strange[0]!.name)
  }),
  unaddressable("C-05").law("searches skip and count a name that no path can express", function* (fs) {
    const { makeUnaddressable } = yield* Bench
    yield* makeUnaddressable!
    yield* plantFiles(fs, { a: "hit" })
    const result = yield* fs.glob("*")
    yield* equal(paths(result.matches), ["a"])
    yield* has(result.skipped, { unreadable: 1 })
    yield* has((yield* fs.grep("hit")).skipped, { unreadable: 1 })
  }),
  lawForms(
    "ability",
    "unaddressable names",
    "write",
    "delete",
    "rename"
  )("C-05").law("a recursive delete removes names that no path can express", function* (fs) {
    const { makeUnaddressable } = yield* Bench
    yield* makeUnaddressable!
    const [strange] = yield* fs.port.list("." as FsPath)
    yield* fs.mkdir("d")
    yield* fs.port.rename((strange?.key ?? "") as FsPath, `d/${strange?.key ?? ""}` as FsPath, { replace: false })
    yield* equal(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
    yield* expectTree(fs, {})
  }),

  temporary("C-49", { "d/a": "hit" }).law(
    "a foreign file with the name of a temporary file is listed like any other file",
    function* (fs) {
      if (!(yield* createForeignFile(fs, `d/${strange}`))) return
      const both = [`d/${strange}`, "d/a"]
      yield* equal(names(yield* fs.list("d")), [strange, "a"])
      yield* equal(paths(yield* collect(fs.walk())), ["d", ...both])
      yield* equal(paths((yield* fs.glob("**")).matches), both)
      yield* equal(paths((yield* fs.glob("**/*.tmp")).matches), [`d/${strange}`])
      yield* equal(paths((yield* fs.grep("hit")).matches), both)
      yield* equal(paths((yield* fs.grep("hit", { path: `d/${strange}` })).matches), [`d/${strange}`])
      yield* equal(yield* fs.exists(`d/${strange}`), true)
      yield* has(yield* fs.stat(`./d/${strange}`), { kind: "file", sizeBytes: 5 })
      yield* equal(yield* fs.readString(`d/${strange}`), "a hit")
      yield* fs.edit(`d/${strange}`, { oldText: "a ", newText: "no " })
      yield* expectTree(fs, { "d/a": "hit", [`d/${strange}`]: "no hit" })
    }
  ),
  removingLaws("C-49", { "d/a": "x" }).law(
    "a foreign file with the name of a temporary file is copied, moved, counted and deleted like any other file",
    function* (fs) {
      if (!(yield* createForeignFile(fs, `d/${strange}`))) return
      yield* fails(fs.delete("d"), "DirectoryNotEmpty")
      yield* equal(yield* fs.copy("d", "e"), { files: 2, directories: 1, bytes: 6 })
      yield* expectTree(fs, { "d/a": "x", [`d/${strange}`]: "a hit", "e/a": "x", [`e/${strange}`]: "a hit" })
      yield* equal(yield* fs.move(`d/${strange}`, "b"), { files: 1, directories: 0, bytes: 5 })
      yield* equal(yield* fs.delete("e", { recursive: true }), { deleted: 2, directories: 1 })
      yield* equal(yield* createForeignFile(fs, `d/${strange}`), true)
      yield* equal(yield* fs.delete(`d/${strange}`), { deleted: 1, directories: 0 })
      yield* expectTree(fs, { "d/a": "x", b: "a hit" })
    }
  ),
  temporary("C-49", { "d/a": "x" }).law("no caller can create a name with the form of a temporary name", function* (fs) {
    const links = abilities(fs, yield* Bench).has("links")
    for (const path of [strange, `d/${strange}`, `${strange}/x`, `new/../d/./${strange}`, ".~FSA-x.TMP"]) {
      const calls: ReadonlyArray<Effect.Effect<unknown, FsError>> = [
        fs.write(path, "x"),
        fs.writeBytes(path, encodeUtf8("x")),
        writeThroughSink(fs, path, ["x"]),
        fs.mkdir(path),
        fs.copy("d", path),
        fs.copy("d/a", path),
        fs.move("d/a", path),
        ...(links ? [fs.symlink(path, "a")] : [])
      ]
      for (const call of calls) yield* fails(call, "InvalidPath")
    }
    yield* expectTree(fs, { "d/a": "x" })
  }),
  temporary("C-49", { "d/a": "hit" }).law("a write in progress is hidden", function* (fs) {
    const look = Effect.gen(function* () {
      yield* equal(names(yield* fs.list("d")), ["a"])
      yield* equal(paths(yield* collect(fs.walk())), ["d", "d/a"])
      yield* equal(paths((yield* fs.glob("**")).matches), ["d/a"])
      yield* equal(paths((yield* fs.grep("a|hit")).matches), ["d/a"])
    })
    const content = streamThen("hi", look)
    yield* Stream.run(Stream.concat(content, Stream.make(encodeUtf8("t"))), fs.sink("d/b"))
    yield* expectTree(fs, { "d/a": "hit", "d/b": "hit" })
  })
]
