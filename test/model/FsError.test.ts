import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import * as Entry from "../../src/model/Entry.ts"
import * as FsError from "../../src/model/FsError.ts"
import type * as FsPath from "../../src/model/FsPath.ts"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Same<Companion extends Schema.Top, Type> = Equal<Companion["Type"], Type>

/** Compiles only while each companion schema has the type of the same name. */
const companions: ReadonlyArray<true> = [
  true satisfies Same<typeof FsError.PathError, FsError.PathError>,
  true satisfies Same<typeof FsError.BackendError, FsError.BackendError>,
  true satisfies Same<typeof FsError.StatError, FsError.StatError>,
  true satisfies Same<typeof FsError.ListError, FsError.ListError>,
  true satisfies Same<typeof FsError.StreamError, FsError.StreamError>,
  true satisfies Same<typeof FsError.ReadBytesError, FsError.ReadBytesError>,
  true satisfies Same<typeof FsError.ReadError, FsError.ReadError>,
  true satisfies Same<typeof FsError.GlobError, FsError.GlobError>,
  true satisfies Same<typeof FsError.GrepError, FsError.GrepError>,
  true satisfies Same<typeof FsError.WriteError, FsError.WriteError>,
  true satisfies Same<typeof FsError.EditError, FsError.EditError>,
  true satisfies Same<typeof FsError.DeleteError, FsError.DeleteError>,
  true satisfies Same<typeof FsError.MkdirError, FsError.MkdirError>,
  true satisfies Same<typeof FsError.TransferError, FsError.TransferError>,
  true satisfies Same<typeof FsError.LinkError, FsError.LinkError>,
  true satisfies Same<typeof FsError.FsError, FsError.FsError>
]

const faults: ReadonlyArray<FsError.Fault> = [
  { _tag: "NotFound" },
  { _tag: "AlreadyExists" },
  { _tag: "AccessDenied", why: "escape" },
  { _tag: "InvalidPath", detail: "d" },
  { _tag: "PathTooLong", detail: "d" },
  { _tag: "NotADirectory" },
  { _tag: "NotAFile" },
  { _tag: "DirectoryNotEmpty" },
  { _tag: "DiskFull" },
  { _tag: "Timeout", detail: "d" },
  { _tag: "IoError", detail: "d", code: "EIO" },
  { _tag: "IoError", detail: "d" },
  { _tag: "NotText", encoding: "utf-8", offset: 3 },
  { _tag: "LimitExceeded", limit: "maxFileSize", allowed: 1, actual: 2 },
  { _tag: "InvalidArgument", argument: "offset", detail: "d" },
  { _tag: "Conflict", expected: null, actual: "abc" },
  { _tag: "Conflict", expected: "abc" },
  { _tag: "Conflict", expected: null, actual: null },
  { _tag: "Unsupported", feature: "links" },
  { _tag: "Unavailable", detail: "d" }
]

describe("FsError", () => {
  it("exports a schema and a type with the same name for each union of errors", () => assert.isAbove(companions.length, 0))

  for (const fault of faults) {
    it(`promotes ${JSON.stringify(fault)} to an error with operation and path, which survives JSON and converts back`, () => {
      const error = FsError.promote(fault, "read", "a/b.txt")
      assert.strictEqual(error._tag, fault._tag)
      assert.isTrue(error instanceof Error)
      assert.include(error.message, "read")
      assert.include(error.message, "a/b.txt")
      const codec = Schema.toCodecJson(FsError.FsError)
      const again = Schema.decodeUnknownSync(codec)(JSON.parse(JSON.stringify(Schema.encodeSync(codec)(error))))
      assert.deepStrictEqual({ ...again }, { ...error })
      assert.strictEqual(again.message, error.message)
      assert.deepStrictEqual(FsError.toFault(again), fault)
    })
  }

  it("prefers the fault's path to the caller's, and drops the cause", () => {
    const error = FsError.promote({ _tag: "NotFound", path: "x", cause: new Error("/secret/host") }, "copy", "a")
    assert.strictEqual(error.path, "x")
    assert.notInclude(JSON.stringify(error) + String(error.stack) + Object.keys(error).join(), "secret")
  })

  it("turns a fault that the operation does not declare into an IoError", () => {
    const tags = FsError.tagsOf(FsError.GlobError)
    const error = FsError.promote({ _tag: "DiskFull" }, "glob", "a", tags)
    assert.deepStrictEqual([error._tag, (error as FsError.IoError).code], ["IoError", "DiskFull"])
    assert.strictEqual(FsError.promote({ _tag: "NotADirectory" }, "glob", "a", tags)._tag, "NotADirectory")
  })

  it("encodes a limit with a number above 2^32", () => {
    const error = FsError.promote({ _tag: "LimitExceeded", limit: "l", allowed: 1, actual: 2 ** 40 }, "read", "a")
    assert.include(JSON.stringify(Schema.encodeSync(Schema.toCodecJson(FsError.FsError))(error)), `${2 ** 40}`)
  })
})

describe("Entry", () => {
  const path = "a/b" as FsPath.FsPath
  const at = DateTime.makeUnsafe(1_700_000_000_123)
  const rows: ReadonlyArray<readonly [string, Schema.Codec<any, any>, unknown]> = [
    [
      "FileStat",
      Entry.FileStat,
      { path, kind: "file", isFile: true, isDirectory: false, sizeBytes: 3, modifiedAt: at, mode: 0o644 }
    ],
    ["FileEntry", Entry.FileEntry, { name: "b", path, kind: "directory", isFile: false, isDirectory: true, addressable: true }],
    [
      "ReadResult",
      Entry.ReadResult,
      { path, content: "x", totalLines: 1, offset: 0, limit: 1, truncated: false, endsWithNewline: true }
    ],
    [
      "ReadBytesResult",
      Entry.ReadBytesResult,
      { path, content: Uint8Array.of(0, 255), sizeBytes: 2, offset: 0, limit: 2, truncated: false }
    ],
    ["WriteResult", Entry.WriteResult, { path, bytesWritten: 1, mode: "create", version: "v" }],
    ["EditResult", Entry.EditResult, { path, bytesWritten: 1, mode: "replace", replacements: 1, diff: "" }],
    ["TransferResult", Entry.TransferResult, { files: 1, directories: 0, bytes: 3 }],
    ["DeleteResult", Entry.DeleteResult, { deleted: 1, directories: 0 }],
    [
      "GlobResult",
      Entry.GlobResult,
      {
        matches: [{ path, kind: "file", isFile: true }],
        truncated: true,
        next: "n",
        skipped: { ignored: 0, binary: 0, tooLarge: 0, unreadable: 1, unreadablePaths: [path] }
      }
    ],
    [
      "GrepResult",
      Entry.GrepResult,
      {
        matches: [{ path, lineNumber: 1, lineContent: "x", matchStart: 0, matchEnd: 1, before: [], after: ["y"] }],
        filesSearched: 1,
        filesMatched: 1,
        truncated: false,
        skipped: { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }
      }
    ],
    ["WatchEvent", Entry.WatchEvent, { _tag: "Created", path }]
  ]
  for (const [name, schema, value] of rows) {
    it(`${name} survives JSON`, () => {
      const codec = Schema.toCodecJson(schema)
      const json = JSON.stringify(Schema.encodeUnknownSync(codec)(value))
      assert.deepEqual(Schema.decodeUnknownSync(codec)(JSON.parse(json)), value)
    })
  }
})
