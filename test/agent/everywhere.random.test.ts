/** Runs random calls on several filesystems, which must all give the same answers. */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { directory, type Files, link } from "../../src/testing/Files.ts"
import { oneOf, versionOf } from "./changing.ts"
import { anOverlay, grounds, host, memory } from "./everywhere.ts"
import { type Call, run } from "./everywhereRun.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"
const runs = isSoak ? 2000 : 60
/**
 * The filesystems to compare with memory. Case-insensitive filesystems are omitted, because the programs use names that
 * differ in case.
 */
const others = isSoak ? grounds.filter((ground) => ground !== memory && ground.caseless !== true) : [host, anOverlay]

const texts = ["", "x", "x\n", "x\ny\n", "y\nx\ny", "x\r\ny\r\n", "\ufeffx\n", "é 日\n", "X\n"] as const
const binary = new Uint8Array([0x78, 0x00, 0xff])

/** Entries that may be in the tree. */
const entries: ReadonlyArray<readonly [path: string, entry: Files[string]]> = [
  ["a", "x\ny\n"],
  ["b", binary],
  ["d/a", "x\r\ny\r\n"],
  ["d/e/b", "\ufeffx\n"],
  ["e", directory],
  ["é", new Uint8Array(Buffer.from("\ufeffx\ny", "utf16le"))],
  ["l", link("d/a")],
  ["m", link("d")],
  ["n", link("nothing")],
  ["o", link("../outside.txt")],
  ["d/p", link("../a")],
  ["q", link("q")],
  [".gitignore", "e\n*.log\n"],
  ["d/x.log", "x\n"]
]

const tree: Arbitrary.Arbitrary<Files> = Arbitrary.map(
  Arbitrary.all(entries.map(() => oneOf([true, true, false]))),
  (present) => Object.fromEntries(entries.filter((_, index) => present[index]))
)

/** Paths that are mostly text files. */
const file = oneOf(["a", "a", "d/a", "d/a", "d/e/b", "é", "l", "m/a", "d/p", "d/x.log", "c", "b", "d/c", "n", "o"])
const there = "a b d e é l m n o q d/a d/e d/e/b d/p m/a m/e m/p d/x.log .gitignore".split(" ")
const missing = "c d/c c/a e/c/d a/c l/c n/c m/c A D/a f.log nothing outside.txt .~fsa-1.tmp".split(" ")
const odd = ["d/e/../a", " a ", "/d/", "d//a/", "./a", ".", "", "..", "../a", "d/../../a", "m/..", "a/.."]
const path = oneOf([...there, ...missing, ...odd])
const place = Arbitrary.map(Arbitrary.all([oneOf([true, true, false]), path]), ([given, path]) => (given ? path : null))

const text = oneOf(texts)
const flag = oneOf([null, null, true, false])
const version = oneOf([...Array.from({ length: 40 }, () => null), ...texts.map((text) => versionOf(text))])
const part = oneOf(["x", "x", "x", "y", "y", "x\n", "x\ny", "\n", "é", "", "z", "\ufeff"])
const glob = oneOf(["*", "a", "**/*", "d/*", "/a", "*/", "[ab]", "{a,d}/**", "*.log", ".*", "m/*", "", "[", "../*", "é", "!a"])
const pattern = oneOf(["x", "^x$", "y", "X", ".", "x\\ny", "", "(", "é", "^", "x|y", "\\s"])
const count = oneOf([...Array.from({ length: 8 }, () => null), 1, 1, 2, 2, 5, 1e9, 0, -1])

const edit = Arbitrary.all({ old_string: part, new_string: part, replace_all: flag })
const editAt = Arbitrary.all({
  path: oneOf([null, "a", "a", "d/a", "d/a", "d/e/b", "l", "c"]),
  old_string: part,
  new_string: part,
  replace_all: flag,
  if_match: version
})

const lines = Arbitrary.map(
  Arbitrary.array(oneOf([" x", " y", "-x", "-x", "-y", "+x", "+z", "+é", "@@", "@@ x", "-", " "]), {
    minLength: 1,
    maxLength: 4
  }),
  (lines) => lines.join("\n")
)

const section = Arbitrary.map(
  Arbitrary.all({
    kind: oneOf(["Add", "Update", "Update", "Update", "Delete", "Move"]),
    path: file,
    to: path,
    lines,
    text: oneOf(["+x", "+x\n+y", "+", ""])
  }),
  ({ kind, lines, path, text, to }) =>
    kind === "Add"
      ? `*** Add File: ${path}\n${text}`
      : kind === "Delete"
        ? `*** Delete File: ${path}`
        : `*** Update File: ${path}\n${kind === "Move" ? `*** Move to: ${to}\n` : ""}${lines === "" ? "" : `@@\n${lines}`}`
)
const v4a = Arbitrary.map(Arbitrary.array(section, { minLength: 1, maxLength: 3 }), (sections) => ({
  patch: `*** Begin Patch\n${sections.join("\n")}\n*** End Patch`
}))

/** Hunks that replace, insert or delete one line. */
const unified = Arbitrary.map(
  Arbitrary.all({
    path: file,
    kind: oneOf(["change", "add", "remove"]),
    old: oneOf(["x", "y", "é"]),
    now: oneOf(["x", "z"]),
    at: oneOf([1, 2, 3])
  }),
  ({ at, kind, now, old, path }) => ({
    patch:
      kind === "change"
        ? `--- a/${path}\n+++ b/${path}\n@@ -${at} +${at} @@\n-${old}\n+${now}\n`
        : kind === "add"
          ? `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+${now}\n`
          : `--- a/${path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-${old}\n`
  })
)

const both = Arbitrary.all({ from: path, to: path, overwrite: flag })

const calls: ReadonlyArray<readonly [tool: string, args: Arbitrary.Arbitrary<unknown>]> = [
  ["ls", Arbitrary.all({ path: place, after: oneOf([null, null, "a", "d", "zz"]) })],
  ["tree", Arbitrary.all({ path: place, depth: oneOf([null, 1, 2]), max_entries: count, include_ignored: flag })],
  ["stat", Arbitrary.all({ path: place })],
  [
    "read_file",
    Arbitrary.all({ path: file, offset: oneOf([null, null, 1, 5]), limit: count, encoding: oneOf([null, "utf-8", "base64"]) })
  ],
  [
    "glob",
    Arbitrary.all({ pattern: glob, path: place, max_matches: count, include_ignored: flag, after: oneOf([null, "a", "d/a"]) })
  ],
  [
    "grep",
    Arbitrary.all({
      pattern,
      path: place,
      glob: Arbitrary.map(Arbitrary.all([flag, glob]), ([given, glob]) => (given === true ? glob : null)),
      mode: oneOf([null, "matches", "files", "count"]),
      max_matches: count,
      ignore_case: flag,
      literal: flag,
      whole_word: flag,
      multiline: flag,
      context: oneOf([null, 0, 1]),
      include_ignored: flag,
      after: oneOf([null, null, "1:a", "1:d/a"])
    })
  ],
  [
    "write_file",
    Arbitrary.all({
      path: oneOf(["a", "b", "c", "d/c", "e/c/d", "l", "n", "o", "m/c", "d", "a/c", "f.log", ".gitignore"]),
      content: text,
      mode: oneOf([null, "create", "overwrite", "overwrite", "replace", "append", "append_existing"]),
      if_match: version
    })
  ],
  ["edit_file", Arbitrary.map(Arbitrary.all([edit, file, version]), ([edit, path, if_match]) => ({ ...edit, path, if_match }))],
  [
    "edit_file",
    Arbitrary.all({ path: file, edits: Arbitrary.array(editAt, { minLength: 1, maxLength: 3 }), if_match: version })
  ],
  ["rm", Arbitrary.all({ path, allow_missing: flag })],
  ["mkdir", Arbitrary.all({ path })],
  ["move", both],
  ["copy", both],
  ["apply_patch", v4a],
  ["apply_patch", unified],
  ["four/list_directory", Arbitrary.all({ path: place })],
  ["four/read_file", Arbitrary.all({ path: file })],
  [
    "four/write_file",
    Arbitrary.all({
      path,
      content: oneOf([...texts, "AP8=", "eA=="]),
      mode: oneOf([null, "create", "overwrite", "append"]),
      encoding: oneOf([null, null, "utf-8", "binary"]),
      if_version: version
    })
  ],
  ["four/delete_file", Arbitrary.all({ path, allow_missing: flag })]
]

const call: Arbitrary.Arbitrary<Call> = Arbitrary.flatMap(oneOf(calls), ([tool, args]) =>
  Arbitrary.map(Arbitrary.all([args, oneOf([false, false, true])]), ([args, isOther]) => ({
    tool,
    arguments: args,
    success: true,
    message: "",
    ...(isOther && { by: "another" as const })
  }))
)

const program = Arbitrary.all({ tree, calls: Arbitrary.array(call, { minLength: 6, maxLength: 15 }) })

describe("a random sequence of calls", () => {
  it.live.prop(
    "gets the same answers and leaves the same files on different filesystems",
    [program],
    ([row]) =>
      Effect.gen(function* () {
        const first = yield* run(row, memory)
        for (const answer of first.answers) assert.notMatch(answer.message, /^a defect/)
        for (const ground of others) assert.deepStrictEqual(yield* run(row, ground), first, ground.name)
      }),
    { arbitrary: { runs }, timeout: isSoak ? 900_000 : 300_000 }
  )
})
