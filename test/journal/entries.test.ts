import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Correlation from "../../src/journal/Correlation.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"

const json = Schema.toCodecJson(Journal.Entry)
const encode = Schema.encodeUnknownSync(json)
const decode = Schema.decodeUnknownSync(json)
const through = (entry: unknown): unknown => decode(JSON.parse(JSON.stringify(encode(entry))))

/** The thirteen basic kinds of entry, by direction. */
const efferent = ["FileRead", "FileWrite", "FileWriteChunk", "FileList", "FileDelete", "FileStat"]
const afferent = ["FileContent", "FileContentChunk", "FileWritten", "FileListing", "FileDeleted", "FileMetadata", "FileFault"]
/** The additional kinds of entry: pairs of request and answer. */
const pairs: ReadonlyArray<readonly [string, string]> = [
  ["FileMakeDirectory", "FileDirectoryMade"],
  ["FileMove", "FileMoved"],
  ["FileEdit", "FileEdited"],
  ["FileMakeLink", "FileLinkMade"],
  ["FileSetAttributes", "FileAttributesSet"]
]

const kinds: ReadonlyArray<string> = Journal.Entry.members.map((member) => member.fields._tag.schema.literal)

describe("a journal entry", () => {
  for (const member of Journal.Entry.members) {
    it.effect.prop(`of the type ${member.fields._tag.schema.literal} survives JSON`, [Arbitrary.schema(member)], ([entry]) =>
      Effect.sync(() => {
        const back = through(entry)
        assert.instanceOf(back, member as never)
        assert.deepStrictEqual(back, entry)
      })
    )
  }

  it("has one of the thirteen basic kinds or of the additional kinds", () => {
    const thirteen: ReadonlyArray<string> = FileSystemEntry.Thirteen.members.map((member) => member.fields._tag.schema.literal)
    assert.sameMembers([...thirteen], [...efferent, ...afferent])
    assert.strictEqual(thirteen.length, 13)
    assert.sameMembers([...kinds], [...thirteen, ...pairs.flat(), "FileStarted", "DaemonChanged", "LeafCheckpoint"])
  })

  it("encodes bytes as base64 or as a reference", () => {
    const write = (content: FileSystemEntry.Content) =>
      new FileSystemEntry.FileWrite({ correlationId: "1", path: "a", content, createMode: "create" })
    assert.strictEqual(
      JSON.stringify(encode(write(new TextEncoder().encode("hello")))),
      '{"_tag":"FileWrite","correlationId":"1","path":"a","content":"aGVsbG8=","createMode":"create"}'
    )
    const sha256 = "ab".repeat(32)
    assert.deepStrictEqual((encode(write({ sha256, size: 5_000 })) as { content: unknown }).content, { sha256, size: 5_000 })
    assert.deepStrictEqual(through(write(new Uint8Array())), write(new Uint8Array()))
  })

  it("encodes whether permission bits belong to a copy and whether they were set", () => {
    const asked = new FileSystemEntry.FileSetAttributes({ correlationId: "1", path: "a", mode: 0o750, isCopy: true })
    assert.strictEqual(
      JSON.stringify(encode(asked)),
      '{"_tag":"FileSetAttributes","correlationId":"1","path":"a","mode":488,"isCopy":true}'
    )
    assert.deepStrictEqual(through(asked), asked)
    const answer = new FileSystemEntry.FileAttributesSet({ correlationId: "1", path: "a", skippedMode: true })
    assert.deepStrictEqual(through(answer), answer)
  })

  it("may have an unknown field of a later version, which is ignored", () => {
    const asked = { _tag: "FileStat", correlationId: "1", path: "a", later: { than: "this" } }
    assert.deepStrictEqual(decode(asked), new FileSystemEntry.FileStat({ correlationId: "1", path: "a" }))
  })

  it("is refused if it is invalid", () => {
    const good = { _tag: "FileRead", correlationId: "1", path: "a" }
    assert.isTrue(Exit.isSuccess(Schema.decodeUnknownExit(json)(good)))
    for (const bad of [
      null,
      "FileRead",
      {},
      { ...good, _tag: "FileReed" },
      { _tag: "FileRead", path: "a" },
      { ...good, offset: -1 },
      { ...good, offset: 0.5 },
      { ...good, length: "all" },
      { _tag: "FileWrite", correlationId: "1", path: "a", content: "not base64!", createMode: "create" },
      { _tag: "FileWrite", correlationId: "1", path: "a", content: "", createMode: "CreateNew" },
      { _tag: "FileWrite", correlationId: "1", path: "a", content: { sha256: "12", size: 1 }, createMode: "create" },
      { _tag: "FileFault", correlationId: "1", path: "a", faultKind: "Conflict", message: "" },
      { _tag: "FileSetAttributes", correlationId: "1", path: "a", mode: 0o750, isCopy: "true" },
      { _tag: "FileSetAttributes", correlationId: "1", path: "a", mode: 0o750, isCopy: 1 },
      { _tag: "FileSetAttributes", correlationId: "1", path: "a", mode: 0o750, isCopy: null },
      { _tag: "FileAttributesSet", correlationId: "1", path: "a", skippedMode: "false" },
      { ...good, links: "follow" },
      { ...good, links: true },
      { _tag: "FileStat", correlationId: "1", path: "a", way: "true" },
      { _tag: "FileMetadata", correlationId: "1", size: 0, isDirectory: false, target: 5 },
      { _tag: "FileMetadata", correlationId: "1", size: 0, isDirectory: false, noFollow: "yes" },
      {
        _tag: "FileMetadata",
        correlationId: "1",
        size: 0,
        isDirectory: true,
        way: [{ size: 0, isDirectory: true, kind: "link" }]
      }
    ]) {
      assert.isTrue(Exit.isFailure(Schema.decodeUnknownExit(json)(bad)), JSON.stringify(bad))
    }
  })

  it("of a write has one of five create modes, whose values are fixed", () => {
    assert.deepStrictEqual(FileSystemEntry.CreateMode, {
      CreateNew: "create",
      CreateOrReplace: "overwrite",
      CreateOrAppend: "append",
      ReplaceExisting: "replace",
      AppendExisting: "appendExisting"
    })
  })

  it.effect.prop(
    "is classified as a request or an answer, and as the last answer to its request or not",
    [Arbitrary.schema(Journal.Entry)],
    ([entry]) =>
      Effect.sync(() => {
        const asks = efferent.includes(entry._tag) || pairs.some(([ask]) => ask === entry._tag)
        const replies =
          afferent.includes(entry._tag) || pairs.some(([, reply]) => reply === entry._tag) || entry._tag === "FileStarted"
        assert.strictEqual(FileSystemEntry.isEfferent(entry), asks)
        assert.strictEqual(FileSystemEntry.isAfferent(entry), replies)
        assert.strictEqual(FileSystemEntry.isFileSystemEntry(entry), asks || replies)
        const ends = replies && entry._tag !== "FileStarted" && !(entry._tag === "FileContentChunk" && !entry.isFinal)
        assert.strictEqual(FileSystemEntry.isTerminal(entry), ends)
        if (FileSystemEntry.isEfferent(entry)) {
          assert.strictEqual(FileSystemEntry.isMutation(entry), !["FileRead", "FileList", "FileStat"].includes(entry._tag))
        }
        if (FileSystemEntry.isAfferent(entry)) {
          assert.isTrue(FileSystemEntry.answers(entry.correlationId)(entry))
          assert.isFalse(FileSystemEntry.answers(`${entry.correlationId}x`)(entry))
        }
      })
  )

  it("is the only kind of value that counts as a request or an answer", () => {
    for (const other of [undefined, null, 3, "FileRead", {}, { _tag: "Other" }]) {
      assert.isFalse(FileSystemEntry.isEfferent(other))
      assert.isFalse(FileSystemEntry.isAfferent(other))
      assert.isFalse(FileSystemEntry.isTerminal(other))
    }
  })
})

describe("correlation ids", () => {
  it.effect("are 32 hexadecimal digits, and unique", () =>
    Effect.gen(function* () {
      const ids = yield* Effect.forEach(Array.from({ length: 1_000 }), () => Correlation.generate)
      assert.strictEqual(new Set(ids).size, 1_000)
      for (const id of ids) assert.match(id, /^[0-9a-f]{32}$/)
    })
  )

  it.effect("come from the service that a test provides", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Correlation.generate, "req-1")
      assert.strictEqual(yield* Correlation.generate, "req-2")
    }).pipe(Effect.provideService(Correlation.Correlation, Correlation.sequential()))
  )
})
