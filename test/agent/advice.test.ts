import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { changedLines, describe as describeFailure } from "../../src/agent/advice.ts"
import { runAtOnce } from "../../src/runtime/steps.ts"
import { type Call, refused, type ToolFailure } from "../../src/agent/definition.ts"
import * as Memory from "../../src/agent/memory.ts"
import * as ToolPath from "../../src/agent/toolPath.ts"
import { defaults } from "../../src/agent/ToolSettings.ts"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import { ArchiveError, SnapshotError, SnapshotRestoreError } from "../../src/history/errors.ts"
import { SessionError } from "../../src/model/sessionError.ts"
import * as E from "../../src/model/FsError.ts"
import type { Files } from "../../src/testing/Files.ts"
import { memory, p, versionOf } from "./changing.ts"
import { session } from "./policing.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { call } from "./looking.ts"
import { message } from "./looking.ts"
import { withTree } from "./looking.ts"
import * as Tools from "../../src/agent/tools.ts"

const files: Files = {
  "src/main.ts": "one\ntwo\nthree\n",
  "src/menu.ts": "menu\n",
  "src/deep/config.json": "{}\n",
  "lib/config.json": "{}\n",
  "lib/more/config.json": "{}\n",
  "test/config.json": "{}\n"
}

const callOn = (filesystem: Algebra, tool = "read_file", known = Memory.make()): Call => ({
  tool,
  filesystem,
  settings: defaults,
  memory: known,
  callId: "1",
  sent: (message) => message,
  path: ToolPath.make(tool, defaults, undefined)
})

const told = (failure: ToolFailure, tool?: string) =>
  Effect.flatMap(memory(files), (fs) => describeFailure(failure, callOn(fs, tool)))

const at = { operation: "read", path: "src/main.ts" }

type Tag = ToolFailure["_tag"]

/** One failure of each type; the compiler checks that no type is missing. */
const each: { readonly [T in Tag]: Extract<ToolFailure, { readonly _tag: T }> } = {
  NotFound: new E.NotFound(at),
  AlreadyExists: new E.AlreadyExists(at),
  AccessDenied: new E.AccessDenied({ ...at, why: "policy" }),
  InvalidPath: new E.InvalidPath({ ...at, detail: "it climbs above the root" }),
  PathTooLong: new E.PathTooLong({ ...at, detail: "it has 17 segments, but at most 16 are allowed" }),
  NotADirectory: new E.NotADirectory(at),
  NotAFile: new E.NotAFile(at),
  DirectoryNotEmpty: new E.DirectoryNotEmpty(at),
  DiskFull: new E.DiskFull(at),
  Timeout: new E.Timeout({ ...at, detail: "the pattern needs more than 2 seconds" }),
  IoError: new E.IoError({ ...at, code: "EIO", detail: "the disk failed" }),
  NotText: new E.NotText({ ...at, encoding: "utf-8", offset: 12 }),
  LimitExceeded: new E.LimitExceeded({ ...at, limit: "maxFileSize", allowed: 48_000, actual: 50_000 }),
  InvalidArgument: new E.InvalidArgument({ ...at, argument: "oldText", detail: "it occurs 3 times, in lines 1, 5 and 9" }),
  Conflict: new E.Conflict({ ...at, expected: "a".repeat(64), actual: "b".repeat(64) }),
  Unsupported: new E.Unsupported({ ...at, feature: "symbolic links" }),
  Unavailable: new E.Unavailable({ ...at, detail: "the container has stopped" }),
  SnapshotError: new SnapshotError({ operation: "snapshot", reason: "gitMissing", detail: "git is not installed" }),
  SnapshotRestoreError: new SnapshotRestoreError({
    snapshotId: "1",
    reason: "incompatible",
    detail: "the snapshot belongs to another root"
  }),
  ArchiveError: new ArchiveError({ entry: "files/a", reason: "corrupt", detail: "its checksum is wrong" }),
  SessionError: new SessionError({
    operation: "set",
    reason: "duplicateSlice",
    detail: "another slice called Plan is installed"
  }),
  Refused: refused("It is Sunday.", "Come back tomorrow.")
}

/** A part of the description and a part of the advice that each message must contain. */
const parts: { readonly [T in Tag]: readonly [happened: string, advice: string] } = {
  NotFound: ["no file or directory", "ls"],
  AlreadyExists: ["exists already", "edit_file"],
  AccessDenied: ["policy", "ask the user"],
  InvalidPath: ["climbs above the root", "relative to the root"],
  PathTooLong: ["17 segments", "shorter"],
  NotADirectory: ["not a directory", "parents"],
  NotAFile: ["not a regular file", "see its entries"],
  DirectoryNotEmpty: ["not empty", "Remove or move"],
  DiskFull: ["no space", "Remove files"],
  Timeout: ["2 seconds", "literal"],
  IoError: ["the disk failed", "again"],
  NotText: ["offset 12", "base64"],
  LimitExceeded: ["50000 is more than 48000", "48,000"],
  InvalidArgument: ["old_string", "Give more of the surrounding text"],
  Conflict: ["b".repeat(64), "read_file"],
  Unsupported: ["symbolic links", "Complete the task without"],
  Unavailable: ["container has stopped", "tell the user"],
  SnapshotError: ["git is not installed", "install git"],
  SnapshotRestoreError: ["another root", "snapshots"],
  ArchiveError: ["checksum", "again"],
  SessionError: ["another slice called Plan", "tell the user"],
  Refused: ["It is Sunday.", "Come back tomorrow."]
}

describe("the message of a failure", () => {
  for (const tag of Object.keys(each) as ReadonlyArray<Tag>) {
    it.effect(`of type ${tag} says what happened and what to do next`, () =>
      Effect.gen(function* () {
        const failure = tag === "NotFound" ? new E.NotFound({ ...at, path: "zzz/qqqqqq" }) : each[tag]
        const message = yield* told(failure, tag === "NotFound" || tag === "NotAFile" ? "stat" : "read_file")
        for (const part of parts[tag]) assert.include(message, part)
        assert.match(message, /^[A-Z"].*[.…?] .*[.?]$/)
        assert.notMatch(message, /\.\.(?!\.)|\bundefined\b|\bnull\b|fs-algebra/)
      })
    )
  }

  for (const why of ["permission", "readOnly", "escape", "root", "link", "policy", "busy"] as const) {
    it.effect(`has a text of its own for AccessDenied with the reason ${why}`, () =>
      Effect.gen(function* () {
        const message = yield* told(new E.AccessDenied({ ...at, why }))
        const marks = {
          permission: "permi",
          readOnly: "read-only",
          escape: "out of the root",
          root: "below this path",
          link: "link",
          policy: "policy",
          busy: "moment"
        }
        assert.include(message, marks[why])
        assert.include(message, '"src/main.ts"')
      })
    )
  }

  it.effect("suggests only tools of the same kit as the tool that failed", () =>
    Effect.gen(function* () {
      const missing = new E.NotFound({ ...at, path: "zzz/qqqqqq" })
      assert.include(yield* told(missing, "list_directory"), "list_directory")
      assert.notInclude(yield* told(missing, "list_directory"), "glob")
      assert.notInclude(yield* told(missing, "read_file"), " ls ")
      assert.include(yield* told(each.AlreadyExists, "move"), "overwrite")
      assert.include(yield* told(each.NotADirectory, "ls"), "read_file")
    })
  )

  it.effect("explains for every limit how to stay below it", () =>
    Effect.gen(function* () {
      for (const limit of ["maxFileSize", "maxReadBytes", "maxListEntries", "another"]) {
        const message = yield* told(new E.LimitExceeded({ ...at, limit, allowed: 10, actual: 20 }))
        assert.include(message, limit)
        assert.match(message, /[a-z]\. [A-Z].*\.$|than 10\. .*\.$/)
      }
    })
  )

  it.effect("shortens a long path or detail", () =>
    Effect.gen(function* () {
      const long = "x".repeat(1_000_000)
      assert.isAtMost((yield* told(new E.InvalidPath({ ...at, path: long, detail: "bad" }))).length, 1000)
      assert.isAtMost((yield* told(new E.InvalidArgument({ ...at, argument: "pattern", detail: long }))).length, 10_000)
      assert.isAtMost((yield* told(refused(long, long))).length, 20_000)
    })
  )

  it.effect("never names the directory of the root on the machine", () =>
    Effect.gen(function* () {
      const fs = { ...(yield* memory(files)), root: "/home/somebody/work" }
      const details = "cannot open /home/somebody/work/a.txt"
      const failures = [
        new E.IoError({ ...at, detail: details }),
        new E.Unavailable({ ...at, detail: details }),
        new E.Timeout({ ...at, detail: details }),
        new SnapshotError({ operation: "snapshot", reason: "io", detail: details }),
        new SnapshotRestoreError({ snapshotId: "1", reason: "io", detail: details }),
        new ArchiveError({ reason: "corrupt", detail: details })
      ]
      for (const failure of failures) assert.notInclude(yield* describeFailure(failure, callOn(fs)), "somebody")
    })
  )
})

describe("suggestions for a missing path", () => {
  const suggested = (path: string) =>
    Effect.map(told(new E.NotFound({ ...at, path })), (message) =>
      [...message.matchAll(/"([^"]+)"/g)].slice(1).map(([, name]) => name)
    )

  it.effect("begin with at most three paths of the same name in other directories", () =>
    Effect.gen(function* () {
      const found = yield* suggested("app/config.json")
      assert.lengthOf(found, 3)
      const there = Object.keys(files).filter((path) => path.endsWith("/config.json"))
      for (const path of found) assert.include(there, path!)
    })
  )

  it.effect("include similar names in the same directory", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* suggested("src/mian.ts"), ["src/main.ts"])
      assert.deepStrictEqual((yield* suggested("src/menus.ts")).sort(), ["src/menu.ts"])
      assert.deepStrictEqual(yield* suggested("src/MAIN.TS"), ["src/main.ts"])
    })
  )

  it.effect("name the nearest directory if no name is similar", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* suggested("src/deep/qqqqqqqqq/x"), ["src/deep"])
    })
  )
})

describe("the message of a conflict", () => {
  const conflict = (before: string, after: string | null) =>
    Effect.gen(function* () {
      const { call, fs } = yield* session(yield* memory({ "a.txt": before }))
      yield* call("read_file", { path: "a.txt" })
      if (after === null) yield* fs.delete("a.txt")
      else yield* fs.write("a.txt", after)
      const { message, success } = yield* call("edit_file", {
        path: "a.txt",
        old_string: "x",
        new_string: "y",
        if_match: versionOf(before)
      })
      assert.isFalse(success)
      return message
    }).pipe(Effect.orDie)

  it.effect("gives the current version and the changed lines", () =>
    Effect.gen(function* () {
      const message = yield* conflict("x\n2\n3\n4\n5\n", "x\n2\nTHREE\nFOUR\n5\n")
      assert.include(message, versionOf("x\n2\nTHREE\nFOUR\n5\n"))
      assert.include(message, "lines 3-4 changed")
      assert.include(message, "read_file")
    })
  )

  it.effect("says that the file is missing", () =>
    Effect.map(conflict("x\n", null), (message) => assert.include(message, "no longer exists"))
  )

  it.effect("says that a file exists although none was expected", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const failure = new E.Conflict({ ...at, expected: null, actual: "c".repeat(64) })
      const message = yield* describeFailure(failure, callOn(fs))
      assert.include(message, "exists already")
      assert.include(message, "c".repeat(64))
    })
  )

  it.effect("names no lines if the session has not read the text", () =>
    Effect.gen(function* () {
      const known = Memory.make()
      known.saw(p("src/main.ts"), "a".repeat(64))
      const message = yield* describeFailure(each.Conflict, callOn(yield* memory(files), "edit_file", known))
      assert.notInclude(message, "line")
    })
  )
})

describe("changedLines", () => {
  const cases: ReadonlyArray<readonly [before: string, after: string, expected: string | undefined]> = [
    ["a\nb\nc\n", "a\nb\nc\n", undefined],
    ["a\nb\nc\n", "a\nB\nc\n", "line 2 changed"],
    ["a\nb\nc\n", "a\nb\nc\nd\ne\n", "lines 4-5 changed"],
    ["a\nb\nc\n", "A\nb\nC\n", "lines 1 and 3 changed"],
    ["a\n1\nb\n2\nc\n3\nd\n4\n", "A\n1\nB\n2\nC\n3\nD\n4\n", "lines 1-7 changed"],
    ["a\nb\nc\n", "a\nc\n", "line 2 changed"],
    ["a\nb\nc\n", "a\nb\n", "line 2 changed"],
    ["", "a\n", "line 1 changed"],
    ["a\n", "", "line 1 changed"],
    ["a", "a\n", "line 1 changed"]
  ]
  for (const [before, after, expected] of cases) {
    it(`returns ${expected ?? "nothing"} for a change of ${JSON.stringify(before)} to ${JSON.stringify(after)}`, () =>
      assert.strictEqual(runAtOnce(changedLines(before, after)), expected))
  }
})

const tool = (name: string) => [...Tools.seven, ...Tools.extras].find((each) => each.name === name)!

describe("the advice in a failure", () => {
  it.effect("suggests more context or replace_all if a text occurs twice", () =>
    Effect.gen(function* () {
      const said = yield* message(tool("edit_file"), { path: "a.txt", old_string: "x", new_string: "y" }, { "a.txt": "x\nx\n" })
      assert.include(said, "replace_all")
      assert.notInclude(said, "the first")
    })
  )

  it.effect("does not suggest `literal` for an invalid glob", () =>
    Effect.gen(function* () {
      assert.notInclude(yield* message(tool("glob"), { pattern: "[" }, {}), "literal")
    })
  )

  it.effect("does not suggest the dangling link that the call has named", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      yield* fs.port.links!.make("dangling" as never, "nowhere")
      const { message } = yield* call(tool("read_file"), { path: "dangling" })
      assert.notInclude(message, 'Did you mean "dangling"')
    }).pipe(withTree({}))
  )

  it.effect("does not suggest replacing or emptying the directory onto which a file is moved", () =>
    Effect.gen(function* () {
      const tree = { "a.txt": "a\n", src: { "m.ts": "m\n" } }
      assert.notInclude(yield* message(tool("move"), { from: "a.txt", to: "src" }, tree), "overwrite")
      assert.notInclude(yield* message(tool("move"), { from: "a.txt", to: "src", overwrite: true }, tree), "Remove")
    })
  )

  it.effect("mentions special characters and relative globs if nothing matches because of them", () =>
    Effect.gen(function* () {
      const tree = { src: { "m.ts": "function f() {}\n" } }
      assert.include(yield* message(tool("grep"), { pattern: "function f() {}" }, tree), "set literal=true")
      assert.include(yield* message(tool("grep"), { pattern: "f", path: "src", glob: "src/**" }, tree), "relative to src")
      const plain = yield* message(tool("grep"), { pattern: "absent", path: "src", glob: "*.ts", mode: "count" }, tree)
      assert.notMatch(plain, /literal|relative/)
    })
  )
})
