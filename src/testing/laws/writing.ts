import * as DateTime from "effect/DateTime"
import type * as Effect from "effect/Effect"
import type { Algebra, Precondition, WriteOptions } from "../../filesystem/Filesystem.ts"
import type { WriteMode, WriteResult } from "../../model/Entry.ts"
import type { DeleteError, EditError, WriteError } from "../../model/FsError.ts"
import { lawForms, expectTree, withLimits } from "../chapter.ts"
import { equal, fails, has } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import type { Law } from "../Law.ts"
import { encodeUtf8, hashOfAbc, names, toBytes, writeThroughSink } from "../operations.ts"

const writing = lawForms("service", "write")
const deleting = lawForms("service", "write", "delete")
const attributes = lawForms("ability", "write", "attributes")
const lawsWithMillisecondTimes = lawForms("ability", "write", "attributes", "times to the millisecond")
const lawsWithoutAttributes = lawForms("ability", "write", "no attributes")

interface ModeRow {
  readonly mode: WriteMode
  /** The content of a file with "old" after "new" was written, or the tag of the failure. */
  readonly onFile: readonly ["file", string] | readonly ["fails", "AlreadyExists"]
  readonly onNothing: readonly ["file", string] | readonly ["fails", "NotFound"]
}

const modes: ReadonlyArray<ModeRow> = [
  { mode: "create", onFile: ["fails", "AlreadyExists"], onNothing: ["file", "new"] },
  { mode: "overwrite", onFile: ["file", "new"], onNothing: ["file", "new"] },
  { mode: "append", onFile: ["file", "oldnew"], onNothing: ["file", "new"] },
  { mode: "replace", onFile: ["file", "new"], onNothing: ["fails", "NotFound"] },
  { mode: "appendExisting", onFile: ["file", "oldnew"], onNothing: ["fails", "NotFound"] }
]

const neighbourTree: Files = { "d/inner": "x", other: "y" }

const modeLaws = modes.flatMap(({ mode, onFile, onNothing }): ReadonlyArray<Law> => {
  const on = (where: string, before: Files, path: string, [what, outcome]: readonly [string, string]): Law =>
    what === "file"
      ? writing("C-11", before).changes(
          `a write in mode ${mode} succeeds ${where}`,
          (fs) => fs.write(path, "new", { mode }),
          { ...before, [path]: outcome },
          { mode, bytesWritten: 3 }
        )
      : writing("C-11", before).refuses(
          `a write in mode ${mode} fails ${where}`,
          (fs) => fs.write(path, "new", { mode }),
          outcome as "NotFound"
        )
  return [
    on("on an existing file", { ...neighbourTree, a: "old" }, "a", onFile),
    on("on a missing file", neighbourTree, "a", onNothing),
    on("on a missing file with missing parents", neighbourTree, "p/q/a", onNothing),
    writing("semantics: -", neighbourTree).refuses(
      `a write in mode ${mode} on a directory is NotAFile`,
      (fs) => fs.write("d", "new", { mode }),
      "NotAFile"
    ),
    writing("semantics: -", neighbourTree).refuses(
      `a write in mode ${mode} on the root is NotAFile`,
      (fs) => fs.write("/", "new", { mode }),
      "NotAFile"
    ),
    writing("behaviours: calls", neighbourTree).refuses(
      `a write in mode ${mode} below a file is NotADirectory`,
      (fs) => fs.write("other/a", "new", { mode }),
      "NotADirectory"
    ),
    writing("behaviours: calls", neighbourTree).refuses(
      `a write in mode ${mode} far below a file is NotADirectory`,
      (fs) => fs.write("other/p/a", "new", { mode }),
      "NotADirectory"
    )
  ]
})

const loneSurrogate = "a\ud800b"

export const writingLaws: ReadonlyArray<Law> = [
  ...modeLaws,
  writing("C-11", { a: "old" }).changes(
    "overwrite is the default mode",
    (fs) => fs.write("a", "new"),
    { a: "new" },
    { mode: "overwrite" }
  ),
  writing("C-08").changes("bytes are written as they are", (fs) => fs.writeBytes("a", toBytes(0, 255, 13, 10)), {
    a: toBytes(0, 255, 13, 10)
  }),
  writing("C-08").changes(
    "text is written in UTF-8 without a byte order mark",
    (fs) => fs.write("a", "é\r\n😀"),
    { a: "é\r\n😀" },
    { bytesWritten: 8 }
  ),
  writing("C-11").changes("an empty file can be written", (fs) => fs.write("a", ""), { a: "" }, { bytesWritten: 0 }),
  writing("C-12", { a: "no newline" }).changes(
    "an append returns the number of appended bytes, and adds no line ending",
    (fs) => fs.write("a", "é", { mode: "append" }),
    { a: "no newlineé" },
    { bytesWritten: 2 }
  ),
  writing("S0-52", { a: toBytes(1) }).changes(
    "writeBytes in mode appendExisting appends",
    (fs) => fs.writeBytes("a", toBytes(2), { mode: "appendExisting" }),
    { a: toBytes(1, 2) },
    { mode: "appendExisting", bytesWritten: 1 }
  ),
  writing("S0-52", { a: "x" }).refuses(
    "writeBytes in mode create refuses an existing file",
    (fs) => fs.writeBytes("a", toBytes(1), { mode: "create" }),
    "AlreadyExists"
  ),
  writing("C-55", { a: "1", b: "2", "d/a": "3" }).changes(
    "writing a file does not change other files",
    (fs) => fs.write("a", "new"),
    {
      a: "new",
      b: "2",
      "d/a": "3"
    }
  ),
  writing("C-13", { "p/x": "x" }).refuses(
    "write without createParents is NotFound if a parent is missing",
    (fs) => fs.write("p/q/a", "new", { createParents: false }),
    "NotFound"
  ),
  writing("C-13, S0-52").changes("writeBytes creates missing parents", (fs) => fs.writeBytes("p/q/a", toBytes(1)), {
    "p/q/a": toBytes(1)
  }),
  writing("C-13", { "p/x": "x" }).changes(
    "a write to an existing parent succeeds without createParents",
    (fs) => fs.write("p/a", "new", { createParents: false }),
    { "p/x": "x", "p/a": "new" }
  ),
  writing("C-13").refuses(
    "writeBytes without createParents is NotFound if a parent is missing",
    (fs) => fs.writeBytes("q/a", toBytes(1), { createParents: false }),
    "NotFound"
  ),
  writing("semantics: -").refuses(
    "text with a lone surrogate is InvalidArgument and writes nothing",
    (fs) => fs.write("p/a", loneSurrogate),
    "InvalidArgument",
    { argument: "content" }
  ),
  writing("semantics: -", { a: "old" }).refuses(
    "text with a lone surrogate keeps the old file",
    (fs) => fs.write("a", loneSurrogate, { mode: "append" }),
    "InvalidArgument"
  ),
  writing("C-22").law("maxFileSize limits the number of code points of a text", function* (fs) {
    const small = withLimits({ maxFileSize: 3 })
    yield* small(fs.write("a", "😀😀😀"))
    yield* fails(small(fs.write("p/b", "abcd")), "LimitExceeded", { limit: "maxFileSize", allowed: 3, actual: 4 })
    yield* expectTree(fs, { a: "😀😀😀" })
  }),
  writing("C-22").law("maxFileSize limits the number of bytes of writeBytes", function* (fs) {
    const small = withLimits({ maxFileSize: 3 })
    yield* small(fs.writeBytes("a", toBytes(1, 2, 3)))
    yield* fails(small(fs.writeBytes("p/b", toBytes(1, 2, 3, 4))), "LimitExceeded", {
      limit: "maxFileSize",
      allowed: 3,
      actual: 4
    })
    yield* expectTree(fs, { a: toBytes(1, 2, 3) })
  }),
  writing("C-22").law("maxFileSize limits the text of one append, not the size of the file", function* (fs) {
    const small = withLimits({ maxFileSize: 3 })
    yield* small(fs.write("a", "123"))
    yield* small(fs.write("a", "456", { mode: "append" }))
    yield* expectTree(fs, { a: "123456" })
  }),
  writing("C-50").law("a write returns the version with the option version", function* (fs) {
    yield* has<WriteResult>(yield* fs.write("a", "ab"), { version: undefined })
    yield* has<WriteResult>(yield* fs.writeBytes("a", encodeUtf8("ab"), { version: false }), { version: undefined })
    yield* has(yield* fs.write("a", "c", { mode: "append", version: true }), { version: hashOfAbc })
    yield* has(yield* fs.writeBytes("b", encodeUtf8("abc"), { version: true }), { version: hashOfAbc })
  }),
  writing("C-49").law("a write leaves no other entry in its directory", function* (fs) {
    for (let i = 0; i < 5; i++) yield* fs.write("d/a", `${i}`)
    yield* equal(names(yield* fs.list("d")), ["a"])
    yield* expectTree(fs, { "d/a": "4" })
  })
]

const staleVersion = "0".repeat(64)

type Put = (fs: Algebra, path: string, options: WriteOptions) => Effect.Effect<unknown, WriteError>

const conditionalCalls: ReadonlyArray<readonly [operation: string, put: Put, modes: ReadonlyArray<WriteMode>]> = [
  ["write", (fs, path, options) => fs.write(path, "new", options), ["overwrite", "append", "replace", "appendExisting"]],
  ["writeBytes", (fs, path, options) => fs.writeBytes(path, encodeUtf8("new"), options), ["overwrite"]]
]

/** An invalid precondition, which only a caller without types can pass. */
const undefinedVersion = { ifMatch: undefined } as unknown as Precondition

export const preconditionLaws: ReadonlyArray<Law> = [
  ...(
    [
      ["write", (fs) => fs.write("a", "new", undefinedVersion)],
      ["writeBytes", (fs) => fs.writeBytes("a", encodeUtf8("new"), undefinedVersion)],
      ["sink", (fs) => writeThroughSink(fs, "a", ["new"], undefinedVersion)],
      ["edit", (fs) => fs.edit("a", { oldText: "old", newText: "new" }, undefinedVersion)],
      ["delete", (fs) => fs.delete("a", undefinedVersion)]
    ] as ReadonlyArray<readonly [string, (fs: Algebra) => Effect.Effect<unknown, WriteError | DeleteError | EditError>]>
  ).map(([operation, call]) =>
    deleting("C-50", { a: "old" }).law(
      `${operation} with the ifMatch undefined is InvalidArgument and changes nothing`,
      function* (fs) {
        yield* fails(call(fs), "InvalidArgument", { argument: "ifMatch" })
        yield* expectTree(fs, { a: "old" })
      }
    )
  ),
  ...conditionalCalls.flatMap(([operation, put, modes]) =>
    modes.flatMap((mode) => {
      return [
        writing("C-50", { a: "old" }).law(`${operation} in mode ${mode} succeeds if ifMatch matches`, function* (fs) {
          yield* put(fs, "a", { mode, ifMatch: yield* fs.version("a") })
          yield* expectTree(fs, { a: mode === "append" || mode === "appendExisting" ? "oldnew" : "new" })
        }),
        writing("C-50", { a: "old" }).law(
          `${operation} in mode ${mode} is a Conflict if ifMatch does not match`,
          function* (fs) {
            const actual = yield* fs.version("a")
            yield* fails(put(fs, "a", { mode, ifMatch: staleVersion }), "Conflict", { expected: staleVersion, actual })
            yield* expectTree(fs, { a: "old" })
          }
        ),
        writing("C-50").refuses(
          `${operation} in mode ${mode} is a Conflict if the file is missing`,
          (fs) => put(fs, "p/a", { mode, ifMatch: staleVersion }),
          "Conflict",
          { expected: staleVersion, actual: null }
        ),
        writing("C-50", { a: directory }).refuses(
          `${operation} in mode ${mode} with ifMatch on a directory is NotAFile`,
          (fs) => put(fs, "a", { mode, ifMatch: staleVersion }),
          "NotAFile"
        )
      ]
    })
  ),
  writing("C-50").changes("ifMatch null writes a new file", (fs) => fs.write("p/a", "new", { ifMatch: null }), {
    "p/a": "new"
  }),
  writing("C-50").changes(
    "an append with ifMatch null creates a new file",
    (fs) => fs.write("a", "new", { ifMatch: null, mode: "append" }),
    { a: "new" }
  ),
  writing("C-50", { a: "old" }).law("ifMatch null is a Conflict if the file exists", function* (fs) {
    const actual = yield* fs.version("a")
    yield* fails(fs.write("a", "new", { ifMatch: null }), "Conflict", { expected: null, actual })
    yield* fails(fs.write("a", "new", { ifMatch: null, mode: "append" }), "Conflict", { expected: null, actual })
    yield* expectTree(fs, { a: "old" })
  }),
  writing("C-50", { a: directory }).refuses(
    "ifMatch null on a directory is NotAFile",
    (fs) => fs.write("a", "new", { ifMatch: null }),
    "NotAFile"
  ),
  ...[null, staleVersion].map((ifMatch) =>
    writing("C-50").refuses(
      `ifMatch ${ifMatch === null ? "null" : "of a version"} with mode create is InvalidArgument`,
      (fs) => fs.write("a", "new", { ifMatch, mode: "create" }),
      "InvalidArgument",
      { argument: "ifMatch" }
    )
  ),
  writing("C-50", { a: "old" }).law("edit checks ifMatch", function* (fs) {
    const actual = yield* fs.version("a")
    const change = { oldText: "old", newText: "new" }
    yield* fails(fs.edit("a", change, { ifMatch: staleVersion }), "Conflict", { expected: staleVersion, actual })
    yield* fails(fs.edit("a", change, { ifMatch: null }), "Conflict", { expected: null, actual })
    yield* expectTree(fs, { a: "old" })
    yield* fs.edit("a", change, { ifMatch: actual })
    yield* expectTree(fs, { a: "new" })
  }),
  deleting("C-50", { a: "old", d: directory }).law("delete checks ifMatch", function* (fs) {
    const actual = yield* fs.version("a")
    yield* fails(fs.delete("a", { ifMatch: staleVersion }), "Conflict", { expected: staleVersion, actual })
    yield* fails(fs.delete("a", { ifMatch: null }), "Conflict", { expected: null, actual })
    yield* fails(fs.delete("missing", { ifMatch: staleVersion }), "Conflict", { expected: staleVersion, actual: null })
    yield* fails(fs.delete("d", { ifMatch: staleVersion }), "NotAFile")
    yield* expectTree(fs, { a: "old", d: directory })
    yield* fs.delete("a", { ifMatch: actual })
    yield* expectTree(fs, { d: directory })
  })
]

export const attributeLaws: ReadonlyArray<Law> = [
  attributes("S0-08").law("stat returns the permission bits that were set", function* (fs) {
    yield* fs.write("a", "x")
    yield* fs.setAttributes("a", { mode: 0o640 })
    yield* has(yield* fs.stat("a"), { mode: 0o640, sizeBytes: 1 })
  }),
  attributes("C-44").law("the time of modification can be set", function* (fs) {
    const modifiedAt = DateTime.makeUnsafe(1_600_000_000_000)
    yield* fs.write("a", "x")
    yield* fs.setAttributes("a", { modifiedAt })
    yield* has(yield* fs.stat("a"), { modifiedAt })
  }),
  lawsWithMillisecondTimes("C-44").law("the time of modification can be set, to the millisecond", function* (fs) {
    const modifiedAt = DateTime.makeUnsafe(1_600_000_000_123)
    yield* fs.write("a", "x")
    yield* fs.setAttributes("a", { modifiedAt })
    yield* has(yield* fs.stat("a"), { modifiedAt })
  }),
  ...(
    [
      ["overwriting", (fs) => fs.write("a", "new")],
      ["replacing", (fs) => fs.write("a", "new", { mode: "replace" })],
      ["appending", (fs) => fs.write("a", "new", { mode: "append" })],
      ["editing", (fs) => fs.edit("a", { oldText: "old", newText: "new" })],
      ["copying over the file", (fs) => fs.copy("b", "a", { overwrite: true })]
    ] as ReadonlyArray<readonly [string, (fs: Algebra) => Effect.Effect<unknown, unknown>]>
  ).map(([what, call]) =>
    attributes("C-49", { a: "old", b: "x" }).law(`a mode of 0755 survives ${what}`, function* (fs) {
      yield* fs.setAttributes("a", { mode: 0o755 })
      yield* call(fs)
      yield* has(yield* fs.stat("a"), { mode: 0o755 })
    })
  ),
  attributes("C-51", { "d/run": "x", "d/secret/key": "y", plain: "z" }).law(
    "a copy of a tree keeps the permission bits of every entry",
    function* (fs) {
      yield* fs.setAttributes("d/run", { mode: 0o755 })
      yield* fs.setAttributes("d/secret/key", { mode: 0o600 })
      yield* fs.setAttributes("d/secret", { mode: 0o700 })
      yield* fs.copy("d/run", "run")
      yield* fs.copy("d", "e")
      yield* has(yield* fs.stat("run"), { mode: 0o755 })
      yield* has(yield* fs.stat("e/run"), { mode: 0o755 })
      yield* has(yield* fs.stat("e/secret"), { mode: 0o700 })
      yield* has(yield* fs.stat("e/secret/key"), { mode: 0o600 })
    }
  ),
  attributes("S0-28", { f: "x" }).law("setAttributes of a missing path is NotFound", function* (fs) {
    for (const path of ["missing", "f/x"]) yield* fails(fs.setAttributes(path, { mode: 0o600 }), "NotFound")
    yield* expectTree(fs, { f: "x" })
  }),
  ...[-1, 0o1000, 1.5, Number.NaN].map((mode) =>
    attributes("Filesystem: AttributeValues", { a: "x" }).refuses(
      `a mode of ${mode} is InvalidArgument`,
      (fs) => fs.setAttributes("a", { mode }),
      "InvalidArgument",
      { argument: "mode" }
    )
  ),
  lawsWithoutAttributes("architecture: abilities", { a: "x" }).refuses(
    "setAttributes is Unsupported without the capability",
    (fs) => fs.setAttributes("a", { mode: 0o600 }),
    "Unsupported"
  )
]
