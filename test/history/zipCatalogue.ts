/**
 * Hostile and broken archives, each with the reason of its refusal. Each has exactly one defect, so that nothing else
 * can cause the refusal.
 */
import { randomBytes } from "node:crypto"
import * as Zlib from "node:zlib"
import { build, bytesOf, descriptor, extra, type Ending, manifest, type Part, wide } from "./zipBuilder.ts"

export interface Row {
  readonly title: string
  readonly bytes: () => Uint8Array
  readonly reason: "corrupt" | "encrypted" | "unsupported" | "name" | "duplicate" | "link" | "tooLarge" | "version"
}

type Reason = Row["reason"]

const good: Part = { name: "files/good.txt", content: "good", method: 8 }

/** Returns a row whose archive has an additional part and a manifest that counts both parts. */
const beside = (
  title: string,
  reason: Reason,
  part: Part,
  ending?: Ending,
  counted = bytesOf(part.content ?? "").length
): Row => ({
  title,
  reason,
  bytes: () => build([good, part, manifest(2, 4 + counted)], ending)
})

const named = (name: string | Uint8Array, reason: Reason = "name", more: Partial<Part> = {}): Row =>
  beside(`the name ${JSON.stringify(typeof name === "string" ? name : Buffer.from(name).toString("latin1"))}`, reason, {
    name,
    content: "x",
    ...more
  })

/** Returns a row with two parts that the manifest counts. */
const both = (title: string, reason: Reason, one: Part, other: Part): Row => ({
  title,
  reason,
  bytes: () => build([one, other, manifest(2, bytesOf(one.content ?? "").length + bytesOf(other.content ?? "").length)])
})

const ended = (title: string, reason: Reason, ending: Ending): Row => ({
  title,
  reason,
  bytes: () => build([good, manifest(1, 4)], ending)
})

const said = (title: string, reason: Reason, content: string): Row => ({
  title,
  reason,
  bytes: () => build([good, { name: "manifest.json", content }])
})

const file = (name: string, content = "x"): Part => ({ name, content })
const linkTo = (target: string, name = "files/l"): Part => ({ name, content: target, mode: 0o120777 })
const leads = (target: string, name?: string): Row =>
  beside(`a link ${name ?? ""} to ${JSON.stringify(target.slice(0, 40))}`, "link", linkTo(target, name))

const valid = (): Uint8Array => build([good, manifest(1, 4)])
const honest = JSON.stringify({ version: "1", created_at: "2024-05-06T07:08:09Z", file_count: 1, total_bytes: 4 })

const names: ReadonlyArray<Row> = [
  named("../evil"),
  named("files/../evil"),
  named("files/../../evil"),
  named("files/a/../../b"),
  named("files/a/../b"),
  named("files/.."),
  named("/etc/evil"),
  named("//server/share"),
  named("files//etc/evil"),
  named("C:/evil"),
  named("C:evil"),
  named("files/C:/evil"),
  named("files/C:\\x"),
  named("files/..\\..\\evil"),
  named("..\\evil"),
  named("\\\\server\\share\\evil"),
  named("files/./x"),
  named("files/."),
  named("./files/x"),
  named("files/a//b"),
  named("files/a\0b"),
  named("files/a\nb"),
  named("files/\u001b[31m"),
  named("files/\u007f"),
  named(""),
  named("/"),
  named(Buffer.from([...Buffer.from("files/"), 0xff, 0xfe])),
  named(Buffer.from([...Buffer.from("files/"), 0xc0, 0xaf])),
  named(Buffer.from([...Buffer.from("files/"), 0xed, 0xa0, 0x80])),
  named(`files/${"n".repeat(256)}`),
  named(`files/${"d/".repeat(255)}x`),
  named(`files/${`${"p".repeat(250)}/`.repeat(17)}x`)
]

const twins: ReadonlyArray<Row> = [
  both("the same name twice", "duplicate", file("files/a", "1"), file("files/a", "2")),
  both("two names that differ in case", "duplicate", file("files/Read.me"), file("files/READ.ME")),
  both("directories that differ in case", "duplicate", file("files/A/1"), file("files/a/2")),
  both("two names that differ in Unicode normalization", "duplicate", file("files/\u00e9"), file("files/e\u0301")),
  both("two names that are equal under case folding", "duplicate", file("files/straße"), file("files/STRASSE")),
  both("the Kelvin sign and k", "duplicate", file("files/\u212a"), file("files/k")),
  both("a file, then an entry below it", "duplicate", file("files/a"), file("files/a/b")),
  both("an entry below a file, then the file", "duplicate", file("files/a/b"), file("files/a")),
  both("an entry below a link", "duplicate", linkTo("b"), file("files/l/x")),
  {
    title: "a directory twice",
    reason: "duplicate",
    bytes: () => {
      const directory = { name: "files/d/", mode: 0o40755 }
      return build([directory, directory, manifest(0, 0)])
    }
  },
  {
    title: "a directory and a file of the same name",
    reason: "duplicate",
    bytes: () => build([{ name: "files/d/", mode: 0o40755 }, file("files/d"), manifest(1, 1)])
  },
  { title: "two manifests", reason: "duplicate", bytes: () => build([good, manifest(1, 4), manifest(1, 4)]) },
  {
    title: `a top directory "Files" instead of "files"`,
    reason: "duplicate",
    bytes: () => build([good, file("Files/x"), manifest(1, 4)])
  }
]

const links: ReadonlyArray<Row> = [
  leads("/etc/passwd"),
  leads("../../etc/passwd"),
  leads(".."),
  leads("../x", "files/a"),
  leads("../../x", "files/d/l"),
  leads("a/../../x"),
  leads("C:/x"),
  leads("..\\..\\x"),
  leads("a\0b"),
  leads("x/.~fsa-1.tmp"),
  leads("a".repeat(4096)),
  beside("a link with an empty target", "link", linkTo("")),
  beside("a link whose text is not UTF-8", "link", { name: "files/l", content: Buffer.from([0xff]), mode: 0o120777 })
]

const kinds: ReadonlyArray<Row> = (["FIFO", "character device", "block device", "socket"] as const).map((kind, i) =>
  beside(`a ${kind}`, "unsupported", {
    name: "files/other",
    content: "x",
    mode: [0o010644, 0o020644, 0o060644, 0o140644][i]!
  })
)

const zeros = Buffer.alloc(1024 * 1024)
const packedZeros = Zlib.deflateRawSync(zeros)

const contents: ReadonlyArray<Row> = [
  beside("a wrong checksum of a stored file", "corrupt", {
    ...file("files/x", "abc"),
    local: { crc: 1 },
    central: { crc: 1 }
  }),
  beside("a wrong checksum of a compressed file", "corrupt", {
    ...file("files/x", "abc"),
    method: 8,
    local: { crc: 1 },
    central: { crc: 1 }
  }),
  beside(
    "a stored file with two sizes",
    "corrupt",
    { ...file("files/x", "abc"), local: { size: 4 }, central: { size: 4 } },
    {},
    4
  ),
  beside("a size that is too small", "corrupt", {
    name: "files/x",
    content: zeros,
    packed: packedZeros,
    method: 8,
    local: { size: 5 },
    central: { size: 5 }
  }),
  beside("a size that is too large", "corrupt", {
    ...file("files/x", "abc"),
    method: 8,
    local: { size: 4 },
    central: { size: 4 }
  }),
  beside("a compressed size that is impossible for the size", "corrupt", {
    ...file("files/x", "abc"),
    method: 8,
    local: { size: 100_000 },
    central: { size: 100_000 }
  }),
  beside("a truncated compressed stream", "corrupt", {
    name: "files/x",
    content: zeros,
    packed: packedZeros.subarray(0, packedZeros.length - 4),
    method: 8
  }),
  beside("bytes after the compressed stream", "corrupt", {
    ...file("files/x", "abc"),
    packed: Buffer.concat([Zlib.deflateRawSync(Buffer.from("abc")), Buffer.from("behind")]),
    method: 8
  }),
  beside("bytes after a large compressed stream", "corrupt", {
    name: "files/x",
    content: Buffer.concat([zeros, zeros]),
    packed: Buffer.concat([Zlib.deflateRawSync(Buffer.concat([zeros, zeros])), Buffer.from("behind")]),
    method: 8
  }),
  beside("a large truncated compressed stream", "corrupt", {
    name: "files/x",
    content: Buffer.concat([zeros, zeros]),
    packed: Zlib.deflateRawSync(Buffer.concat([zeros, zeros])).subarray(0, -4),
    method: 8
  }),
  beside("a large stream that is not compressed data", "corrupt", {
    name: "files/x",
    content: Buffer.concat([zeros, zeros]),
    packed: Zlib.deflateRawSync(Buffer.concat([zeros, zeros, zeros])),
    method: 8
  }),
  beside("a large damaged file", "corrupt", {
    name: "files/x",
    content: Buffer.concat([zeros, zeros]),
    method: 8,
    local: { crc: 7 },
    central: { crc: 7 }
  }),
  beside("data that is not a compressed stream", "corrupt", {
    ...file("files/x", "abc"),
    packed: Buffer.from([0xff, 0xff, 0xff]),
    method: 8
  }),
  beside("a directory with content", "corrupt", { name: "files/d/", content: "x", mode: 0o40755 }),
  beside("a file with the name of a directory", "corrupt", { name: "files/d/", content: "", mode: 0o100644 }, {}, 0),
  beside("a directory with the name of a file", "corrupt", { name: "files/d", content: "", mode: 0o40755 }, {}, 0),
  beside("encryption", "encrypted", { ...file("files/x"), flags: 0x801 }),
  beside("strong encryption", "encrypted", { ...file("files/x"), flags: 0x841 }),
  beside("masked headers", "encrypted", { ...file("files/x"), flags: 0x2800 }),
  beside("AES", "encrypted", { ...file("files/x"), method: 99, extra: extra(0x9901, Buffer.alloc(7)) }),
  beside("compressed patched data", "unsupported", { ...file("files/x"), flags: 0x820 }),
  ...[1, 9, 12, 14, 93, 95].map((method) => beside(`method ${method}`, "unsupported", { ...file("files/x"), method }))
]

const headers: ReadonlyArray<Row> = [
  beside("another name in the local header", "corrupt", { ...file("files/x"), local: { name: "files/y" } }),
  beside("a longer name in the local header", "corrupt", { ...file("files/x"), local: { name: "files/xx" } }),
  beside("another method in the local header", "corrupt", { ...file("files/x"), local: { method: 8 } }),
  beside("another size in the local header", "corrupt", { ...file("files/x"), local: { size: 2 } }),
  beside("another compressed size in the local header", "corrupt", { ...file("files/x"), local: { packed: 2 } }),
  beside("another checksum in the local header", "corrupt", { ...file("files/x"), local: { crc: 2 } }),
  beside("other flags in the local header", "corrupt", { ...file("files/x"), local: { flags: 0 } }),
  beside("an entry without a local header", "corrupt", { ...file("files/x"), local: { signature: 0x04034b51 } }),
  beside("an entry that begins inside of another", "corrupt", { ...file("files/x"), central: { offset: 3 } }),
  beside("an entry at an offset after the end", "corrupt", { ...file("files/x"), central: { offset: 0x7fffffff } }),
  beside("an entry without header or data", "corrupt", { ...file("files/x"), isGhost: true }),
  beside("an entry on another disk", "unsupported", { ...file("files/x"), central: { disk: 1 } }),
  beside("an extra field that is longer than the space for extra fields", "corrupt", {
    ...file("files/x"),
    central: { extra: Buffer.from([1, 0, 99, 0]), size: 0xffffffff }
  }),
  beside("a missing 64-bit size", "corrupt", { ...file("files/x"), central: { size: 0xffffffff } }),
  beside("a 64-bit size that is larger than any file", "corrupt", {
    ...file("files/x"),
    central: { size: 0xffffffff, extra: extra(1, Buffer.alloc(8, 0xff)) }
  }),
  beside("a 64-bit offset after the end", "corrupt", {
    ...file("files/x"),
    central: { offset: 0xffffffff, extra: wide(2 ** 40) }
  }),
  beside("the same extra field twice", "corrupt", {
    ...file("files/x"),
    central: { size: 0xffffffff, extra: Buffer.concat([wide(1), wide(1)]) }
  }),
  beside("a wrong data descriptor", "corrupt", { ...file("files/x"), flags: 0x808, behind: descriptor(1, 1, 1) }),
  beside("a missing data descriptor", "corrupt", { ...file("files/x"), flags: 0x808, behind: Buffer.alloc(0) }),
  beside("a data descriptor that no flag announces", "corrupt", { ...file("files/x", ""), behind: descriptor(0, 0, 0) }),
  beside("bytes between two entries", "corrupt", { ...file("files/x"), before: Buffer.from("hidden") }),
  both("two entries at the same offset", "corrupt", file("files/a"), {
    ...file("files/a"),
    sharing: 0,
    central: { name: "files/b" }
  }),
  {
    title: "a hundred entries with the same compressed data",
    reason: "corrupt",
    bytes: () => {
      const first: Part = { name: "files/0", content: zeros, packed: packedZeros, method: 8 }
      const more = Array.from({ length: 100 }, (_, i): Part => ({ ...first, name: `files/${i + 1}`, sharing: 0 }))
      return build([first, ...more, manifest(101, 101 * zeros.length)])
    }
  },
  {
    title: "overlapping entries",
    reason: "corrupt",
    bytes: () => {
      const inner = build([{ name: "files/b", content: "b" }]).subarray(0, 30 + 7 + 1)
      const outer: Part = { name: "files/a", content: inner }
      const inside = 30 + 7
      return build([
        outer,
        { name: "files/b", content: "b", isGhost: true, central: { offset: inside } },
        manifest(2, inner.length + 1)
      ])
    }
  },
  {
    title: "an entry that is missing in the central directory",
    reason: "corrupt",
    bytes: () => build([good, { ...file("files/hidden"), isHidden: true }, manifest(1, 4)])
  }
]

const ends: ReadonlyArray<Row> = [
  { title: "an empty file", reason: "corrupt", bytes: () => new Uint8Array(0) },
  { title: "a text file", reason: "corrupt", bytes: () => bytesOf("this is no archive, only a text of some length") },
  { title: "random bytes", reason: "corrupt", bytes: () => Uint8Array.from(randomBytes(4096)) },
  { title: "a gzip file", reason: "corrupt", bytes: () => Uint8Array.from(Zlib.gzipSync(valid())) },
  { title: "a missing end of central directory record", reason: "corrupt", bytes: () => valid().subarray(0, -22) },
  { title: "a missing last byte", reason: "corrupt", bytes: () => valid().subarray(0, -1) },
  { title: "a missing first byte", reason: "corrupt", bytes: () => valid().subarray(1) },
  ended("bytes after the end record", "corrupt", { after: Buffer.from("behind") }),
  ended("bytes before the beginning", "corrupt", { before: Buffer.from("#!/bin/sh\n") }),
  {
    title: "bytes before the beginning, without adjusted offsets",
    reason: "corrupt",
    bytes: () => Buffer.concat([Buffer.from("MZ"), valid()])
  },
  { title: "two archives in one file", reason: "corrupt", bytes: () => Buffer.concat([valid(), valid()]) },
  ended("a comment that contains another end record", "corrupt", {
    comment: build([]),
    commentLength: 22,
    after: Buffer.from("x")
  }),
  ended("a comment that is longer than the file", "corrupt", { commentLength: 100 }),
  ended("fewer entries than there are", "corrupt", { count: 1 }),
  ended("more entries than there are", "corrupt", { count: 3 }),
  {
    title: "an entry of the central directory that is not counted",
    reason: "corrupt",
    bytes: () => build([good, manifest(1, 4), { ...file("files/ghost"), isGhost: true }], { count: 2 })
  },
  ended("a wrong offset of the central directory", "corrupt", { offset: 5 }),
  ended("an offset of the central directory after the end", "corrupt", { offset: 0x7fffffff }),
  ended("a wrong size of the central directory", "corrupt", { size: 10 }),
  ended("bytes between the central directory and the end record", "corrupt", { between: Buffer.from("hidden") }),
  ended("a wrong count of entries in the end record", "corrupt", { count: 0 }),
  ended("several disks", "unsupported", { disk: 1 }),
  ended("another count of entries on this disk", "unsupported", { countHere: 1 }),
  ended("an offset of the ZIP64 end record after the end", "corrupt", { zip64: { at: 2 ** 40 } }),
  ended("a wrong offset of the ZIP64 end record", "corrupt", { zip64: { at: 0 } }),
  ended("a ZIP64 end record with a wrong signature", "corrupt", { zip64: { signature: 1 } }),
  ended("a wrong length of the ZIP64 end record", "corrupt", { zip64: { length: 100 } }),
  ended("a ZIP64 end record with a wrong offset of the central directory", "corrupt", { zip64: { offset: 2 ** 40 } }),
  ended("a ZIP64 end record with another count of entries", "corrupt", { zip64: {}, count: 5 }),
  ended("bytes between the central directory and the ZIP64 end record", "corrupt", {
    zip64: {},
    between: Buffer.from("hidden")
  }),
  ended("a ZIP64 end record of several disks", "unsupported", { zip64: { disks: 2 } }),
  ended("a missing ZIP64 end record", "corrupt", { count: 0xffff, size: 0xffffffff, offset: 0xffffffff }),
  ended("a billion entries", "tooLarge", { zip64: { count: 1e9 } })
]

const bomb = (): Uint8Array => {
  // Five files of a gibibyte of zeros. Their deflate stream is a repetition, so the zeros are never in memory. The total
  // exceeds 4 GiB.
  const sizes = 2 ** 30
  const parts = Array.from({ length: 5 }, (_, i): Part => {
    const packed = Buffer.alloc(Math.ceil(sizes / 1032) + 10, 1)
    return { name: `files/${i}`, packed, method: 8, local: { size: sizes }, central: { size: sizes } }
  })
  return build([...parts, manifest(5, 5 * sizes)])
}

const limits: ReadonlyArray<Row> = [
  { title: "a file of five gibibytes", reason: "tooLarge", bytes: bomb },
  {
    title: "more entries than are allowed",
    reason: "tooLarge",
    bytes: () => build([good, manifest(1, 4)], { zip64: { count: 100_002 } })
  }
]

const manifests: ReadonlyArray<Row> = [
  { title: "an archive without entries", reason: "corrupt", bytes: () => build([]) },
  said("a manifest of version 2", "version", honest.replace('"1"', '"2"')),
  said("a manifest with its version as a number", "version", honest.replace('"1"', "1")),
  said("a manifest without a version", "version", honest.replace('"version"', '"v"')),
  { title: "a manifest without its files", reason: "corrupt", bytes: () => build([manifest(1, 4)]) },
  said("a manifest with a wrong number of files", "corrupt", honest.replace('"file_count":1', '"file_count":2')),
  said("a manifest with a wrong number of bytes", "corrupt", honest.replace('"total_bytes":4', '"total_bytes":5')),
  said("a manifest with a negative number of files", "corrupt", honest.replace('"file_count":1', '"file_count":-1')),
  said("a manifest with a string as number of files", "corrupt", honest.replace('"file_count":1', '"file_count":"1"')),
  said("a manifest without a time", "corrupt", honest.replace('"created_at"', '"at"')),
  said("a manifest with an invalid time", "corrupt", honest.replace("2024-05-06T07:08:09Z", "yesterday"))
]

export const catalogue: ReadonlyArray<Row> = [
  ...names,
  ...twins,
  ...links,
  ...kinds,
  ...contents,
  ...headers,
  ...ends,
  ...limits,
  ...manifests
]
