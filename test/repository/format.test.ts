import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { StoreError } from "../../src/repository/BlobStore.ts"
import * as Chunker from "../../src/repository/format/chunker.ts"
import * as Contents from "../../src/repository/format/contents.ts"
import {
  type Content,
  decode,
  type DirectoryEntry,
  encode,
  type Entry,
  maxInlineBytes,
  noAnswers,
  type Node
} from "../../src/repository/format/nodes.ts"
import * as Objects from "../../src/repository/format/objects.ts"
import { sha256 } from "../../src/runtime/hash.ts"
import { makeBlobs } from "./stores.ts"

interface Golden {
  readonly deepName: string
  readonly nodes: Record<string, { readonly bytes: string; readonly sha256: string }>
  readonly chunkSizes: ReadonlyArray<number>
}

const golden: Golden = JSON.parse(readFileSync(new URL("golden/nodes.json", import.meta.url), "utf8"))

const text = (value: string): Uint8Array => new Uint8Array(Buffer.from(value))
const hashOf = (value: string): string => sha256(text(value))
const time = 1_700_000_000_123
const common = { createdAt: time, modifiedAt: time }
const top = (tree: string | undefined): DirectoryEntry => ({
  kind: "directory",
  name: "",
  mode: 0o755,
  createdAt: time,
  modifiedAt: time + 1,
  tree
})
const file = (name: string, bytes: Uint8Array, mode = 0o644): Entry => ({
  kind: "file",
  name,
  mode,
  ...common,
  content: { _tag: "Inline", bytes }
})
const children = (...pairs: ReadonlyArray<readonly [digit: number, tree: string, weight: number]>) => {
  const all: Array<{ tree: string; weight: number } | undefined> = Array.from({ length: 16 }, () => undefined)
  for (const [digit, tree, weight] of pairs) all[digit] = { tree, weight }
  return all
}
const chunkHash = sha256(new Uint8Array(3000).fill(120))

const nodes: Record<string, Node> = {
  leaf: {
    kind: "leaf",
    prefix: "",
    weight: 7 * 96 + 5 + 6 + 3 + 6 + 9 + 5 + 9 + 2 + 4 + 2,
    entries: [
      file("a.txt", text("hello\n")),
      { ...top(undefined), name: "dir" },
      {
        kind: "file",
        name: "large",
        mode: 0o600,
        ...common,
        content: { _tag: "Chunks", size: 300_000, sha256: hashOf("whole"), level: 1, hash: hashOf("index") }
      },
      { kind: "symlink", name: "latest", mode: 0o777, createdAt: -1, modifiedAt: 0, target: "dir/a.txt" },
      {
        kind: "file",
        name: "one-chunk",
        mode: 0o600,
        ...common,
        content: { _tag: "Chunks", size: 3000, sha256: chunkHash, level: 0, hash: chunkHash }
      },
      file("é", new Uint8Array()),
      file("😀", Uint8Array.of(0, 255), 0o4755)
    ]
  },
  deep: { kind: "leaf", prefix: "c0", weight: 96 + golden.deepName.length + 4, entries: [file(golden.deepName, text("deep"))] },
  branch: {
    kind: "branch",
    prefix: "c",
    weight: 40_001,
    children: children([0, golden.nodes["deep"]!.sha256, 20_000], [15, hashOf("other"), 20_001])
  },
  index: {
    kind: "index",
    level: 1,
    children: [
      { hash: hashOf("first"), size: 200_000 },
      { hash: hashOf("second"), size: 100_000 }
    ]
  },
  // The roots of version 1.
  root: {
    kind: "root",
    files: top(golden.nodes["leaf"]!.sha256),
    snapshots: top(undefined),
    recent: ["000102030405060708090a0b0c0d0e0f", "ff".repeat(16)],
    past: undefined,
    answers: noAnswers
  },
  empty: { kind: "root", files: top(undefined), snapshots: top(undefined), recent: [], past: undefined, answers: noAnswers },
  answers: {
    kind: "answers",
    answers: [
      { id: "000102030405060708090a0b0c0d0e0f", request: "01".repeat(16), at: time, text: '{"bytesWritten":5}' },
      { id: "ff".repeat(16), request: "02".repeat(16), at: time - 1, text: undefined }
    ]
  },
  first: {
    kind: "root",
    files: top(undefined),
    snapshots: top(undefined),
    recent: ["000102030405060708090a0b0c0d0e0f"],
    past: { sequence: 1, parent: undefined, origin: undefined, lost: undefined },
    answers: noAnswers
  },
  third: {
    kind: "root",
    files: top(undefined),
    snapshots: top(undefined),
    recent: ["ff".repeat(16)],
    past: {
      sequence: 3,
      parent: hashOf("parent"),
      origin: "0f".repeat(16),
      lost: undefined,
      replaced: { author: "ada é", message: "write a.txt", committedAt: time }
    },
    answers: noAnswers
  },
  later: {
    kind: "root",
    files: top(golden.nodes["leaf"]!.sha256),
    snapshots: top(undefined),
    recent: ["ff".repeat(16), "000102030405060708090a0b0c0d0e0f"],
    past: {
      sequence: 70_000,
      parent: hashOf("parent"),
      origin: "0f".repeat(16),
      lost: { sequence: 69_999, root: hashOf("lost") }
    },
    answers: {
      forgottenUntil: time - 9,
      lists: [{ hash: golden.nodes["answers"]!.sha256, size: golden.nodes["answers"]!.bytes.length / 2, at: time }]
    }
  }
}

/** Encodes CBOR without any rule of the format, for forged nodes. */
const head = (major: number, value: number): Array<number> =>
  value < 24 ? [(major << 5) | value] : value < 256 ? [(major << 5) | 24, value] : [(major << 5) | 25, value >> 8, value & 255]
const cbor = (value: unknown): Array<number> => {
  if (value === null) return [0xf6]
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === "string") return [...head(3, Buffer.byteLength(value)), ...Buffer.from(value)]
  if (value instanceof Uint8Array) return [...head(2, value.length), ...value]
  const items = value as ReadonlyArray<unknown>
  return [...head(4, items.length), ...items.flatMap(cbor)]
}
const forged = (value: unknown): Uint8Array => Uint8Array.from(cbor(value))

const hash32 = new Uint8Array(32)
const entry = (name: unknown, ...rest: ReadonlyArray<unknown>) => [name, 1, 420, 0, 0, ...rest]
const someFile = entry("a", text("secret"))
const id16 = new Uint8Array(16)
const emptyTop = ["", 0, 493, 0, 0, null]
const root2 = (past: unknown, answers: unknown) => forged([2, "root", emptyTop, emptyTop, [], past, answers])

const root3 = (number: number, replaced: unknown) =>
  forged([
    3,
    "root",
    emptyTop,
    emptyTop,
    [],
    [number, number === 1 ? null : hash32, number === 1 ? null : id16, null, replaced],
    [0, []]
  ])

const hostile: Record<string, Uint8Array> = {
  "no bytes": new Uint8Array(),
  "text that is no CBOR": text("secret content of a file"),
  "a cut node": Buffer.from(golden.nodes["leaf"]!.bytes, "hex").subarray(0, 100),
  "bytes after a node": Uint8Array.from([...Buffer.from(golden.nodes["empty"]!.bytes, "hex"), 0]),
  "arrays in arrays to a great depth": new Uint8Array(60_000).fill(0x81),
  "a list that says it has 2^32 - 1 items": Uint8Array.of(0x9a, 255, 255, 255, 255, 1),
  "a text that says it has 2^53 bytes": Uint8Array.of(0x83, 1, 0x7b, 0, 32, 0, 0, 0, 0, 0, 0),
  "too many bytes": forged([1, "leaf", "", [entry("a", new Uint8Array(65_000))]]).slice(),
  "a newer version": forged([4, "leaf", "", [someFile]]),
  "a leaf with the version of a root": forged([2, "leaf", "", [someFile]]),
  "answers with the version of a leaf": forged([1, "answers", [[id16, id16, 0, null]]]),
  "no answers": forged([2, "answers", []]),
  "an answer with a short id": forged([2, "answers", [[new Uint8Array(15), id16, 0, null]]]),
  "an answer that is bytes": forged([2, "answers", [[id16, id16, 0, new Uint8Array(1)]]]),
  "an answer before 1970": forged([2, "answers", [[id16, id16, -1, null]]]),
  "a first commit with a commit before it": root2([1, hash32, null, null], [0, []]),
  "a later commit without a commit before it": root2([2, null, null, null], [0, []]),
  "a commit without a number": root2([0, null, null, null], [0, []]),
  "a root of version 2 without a past": forged([2, "root", emptyTop, emptyTop, []]),
  "a root of version 1 with a past": forged([1, "root", emptyTop, emptyTop, [], [1, null, null, null], [0, []]]),
  "a root with too many lists of answers": root2([1, null, null, null], [0, Array.from({ length: 129 }, () => [hash32, 1, 0])]),
  "a list of answers without a size": root2([1, null, null, null], [0, [[hash32, 0, 0]]]),
  "a lost commit without a root": root2([2, hash32, id16, [1, null]], [0, []]),
  "a leaf with the version of a later root": forged([3, "leaf", "", [someFile]]),
  "a first commit that says who made the commit before it": root3(1, ["ada", "write", 0]),
  "a previous commit that is null": root3(2, null),
  "a previous commit without a time": root3(2, ["ada", "write"]),
  "a previous commit with an author that is bytes": root3(2, [id16, "write", 0]),
  "a previous commit with a long message": root3(2, ["ada", "x".repeat(1025), 0]),
  "a previous commit without a version for it": root2([2, hash32, id16, null, ["ada", "write", 0]], [0, []]),
  "a tag before a node": Uint8Array.from([0xc1, ...cbor([1, "leaf", "", [someFile]])]),
  "a mode above 2^53": Uint8Array.from(
    cbor([1, "leaf", "", [someFile]]).flatMap((byte, i, all) =>
      byte === 0x19 && all[i + 1] === 1 ? [0x1b, 0, 32, 0, 0, 0, 0, 0, 0] : [byte]
    )
  ),
  "an unknown kind": forged([1, "leaves", "", [someFile]]),
  "an empty leaf": forged([1, "leaf", "", []]),
  "names out of order": forged([1, "leaf", "", [entry("b", text("x")), entry("a", text("x"))]]),
  "a name twice": forged([1, "leaf", "", [someFile, someFile]]),
  "a name in the wrong leaf": forged([1, "leaf", sha256(text("a"))[0] === "0" ? "1" : "0", [someFile]]),
  "a prefix that is no hash": forged([1, "leaf", "xyz", [someFile]]),
  "the name ..": forged([1, "leaf", "", [entry("..", text("x"))]]),
  "the name .": forged([1, "leaf", "", [entry(".", text("x"))]]),
  "an empty name": forged([1, "leaf", "", [entry("", text("x"))]]),
  "a name with a slash": forged([1, "leaf", "", [entry("a/b", text("x"))]]),
  "a name with NUL": forged([1, "leaf", "", [entry("a\0", text("x"))]]),
  "a name that is not UTF-8": Uint8Array.from(cbor([1, "leaf", "", [someFile]]).map((byte) => (byte === 97 + 0 ? 0xff : byte))),
  "a name that is too long": forged([1, "leaf", "", [entry("a".repeat(5000), text("x"))]]),
  "a name that is bytes": forged([1, "leaf", "", [entry(text("a"), text("x"))]]),
  "an entry with a missing field": forged([1, "leaf", "", [["a", 1, 420, 0, 0]]]),
  "an entry with a further field": forged([1, "leaf", "", [entry("a", text("x"), 1)]]),
  "a mode out of range": forged([1, "leaf", "", [["a", 1, 0o10000, 0, 0, text("x")]]]),
  "a link without a target": forged([1, "leaf", "", [["a", 3, 511, 0, 0, ""]]]),
  "a link to a target with NUL": forged([1, "leaf", "", [["a", 3, 511, 0, 0, "x\0"]]]),
  "a directory with a short hash": forged([1, "leaf", "", [["a", 0, 493, 0, 0, new Uint8Array(31)]]]),
  "an inline file that is too large": forged([1, "leaf", "", [entry("a", new Uint8Array(maxInlineBytes + 1))]]),
  "a file in chunks that is too small": forged([1, "leaf", "", [["a", 2, 420, 0, 0, 5, hash32, 0, hash32]]]),
  "a file of one chunk with another hash": forged([
    1,
    "leaf",
    "",
    [["a", 2, 420, 0, 0, 5000, hash32, 0, new Uint8Array(32).fill(1)]]
  ]),
  "a leaf that should be a branch": forged([
    1,
    "leaf",
    "",
    Array.from({ length: 20 }, (_, i) => entry(String.fromCharCode(97 + i), new Uint8Array(2048)))
  ]),
  "a branch that should be a leaf": forged([
    1,
    "branch",
    "",
    [
      [0, hash32, 100],
      [1, hash32, 100]
    ]
  ]),
  "a branch with a digit twice": forged([
    1,
    "branch",
    "",
    [
      [0, hash32, 60_000],
      [0, hash32, 60_000]
    ]
  ]),
  "a branch with digits out of order": forged([
    1,
    "branch",
    "",
    [
      [3, hash32, 60_000],
      [1, hash32, 60_000]
    ]
  ]),
  "a branch with a digit out of range": forged([1, "branch", "", [[16, hash32, 60_000]]]),
  "a branch with a negative weight": forged([
    1,
    "branch",
    "",
    [
      [0, hash32, 60_000],
      [1, hash32, -1]
    ]
  ]),
  "a branch below the last digit": forged([1, "branch", "0".repeat(64), [[0, hash32, 60_000]]]),
  "an empty index": forged([1, "index", 1, []]),
  "an index of level 0": forged([1, "index", 0, [[hash32, 5]]]),
  "an index of an absurd level": forged([1, "index", 60, [[hash32, 5]]]),
  "an index with an empty chunk": forged([1, "index", 1, [[hash32, 0]]]),
  "an index with too many chunks": forged([1, "index", 1, Array.from({ length: 1025 }, () => [hash32, 5])]),
  "a root with a name": forged([1, "root", ["x", 0, 0, 0, 0, null], ["", 0, 0, 0, 0, null], []]),
  "a root that is a file": forged([1, "root", ["", 1, 0, 0, 0, text("x")], ["", 0, 0, 0, 0, null], []]),
  "a root with too many commits": forged([
    1,
    "root",
    ["", 0, 0, 0, 0, null],
    ["", 0, 0, 0, 0, null],
    Array.from({ length: 33 }, () => new Uint8Array(16))
  ]),
  "a whole number as a float": Uint8Array.from([
    0x84,
    0xfb,
    0x3f,
    0xf0,
    0,
    0,
    0,
    0,
    0,
    0,
    ...cbor("leaf"),
    0x60,
    0x81,
    ...cbor(someFile)
  ]),
  "a number with needless bytes": Uint8Array.from([0x84, 0x18, 1, ...cbor("leaf"), 0x60, 0x81, ...cbor(someFile)]),
  "a list of indefinite length": Uint8Array.from([0x9f, 1, ...cbor("leaf"), 0x60, 0x81, ...cbor(someFile), 0xff])
}

describe("the encoding of nodes", () => {
  for (const [name, node] of Object.entries(nodes)) {
    it(`the golden node ${JSON.stringify(name)} equals the bytes from another program, and these bytes decode to the node`, () => {
      const { bytes, sha256: hash } = golden.nodes[name]!
      assert.strictEqual(Buffer.from(encode(node)).toString("hex"), bytes)
      assert.strictEqual(sha256(encode(node)), hash)
      assert.deepStrictEqual(decode(hash, Uint8Array.from(Buffer.from(bytes, "hex"))), node)
    })
  }

  it("a forged node without a defect is decoded", () => {
    const found = decode("", forged([1, "leaf", "", [someFile]]))
    assert.notInstanceOf(found, StoreError)
  })

  for (const [name, bytes] of Object.entries(hostile)) {
    it(`refuses ${name} with a fault that names the node and contains no content`, () => {
      const hash = sha256(bytes)
      const found = decode(hash, bytes)
      assert.instanceOf(found, StoreError)
      assert.strictEqual((found as StoreError).reason, "corrupt")
      assert.include((found as StoreError).detail, hash)
      assert.notInclude((found as StoreError).detail, "secret")
    })
  }

  it("a golden node with a changed byte is decoded to another valid node or a fault, and never throws", () => {
    for (const { bytes } of Object.values(golden.nodes)) {
      const original = Buffer.from(bytes, "hex")
      for (let at = 0; at < original.length; at++) {
        for (const change of [1, 128, 255]) {
          const copy = Uint8Array.from(original)
          copy[at] = copy[at]! ^ change
          const found = decode("", copy)
          if (!(found instanceof StoreError)) assert.deepStrictEqual(encode(found), copy)
        }
      }
    }
  })
})

const objectsOver = (blobs = makeBlobs()) => Objects.make(blobs, { cacheBytes: 1024 * 1024 })

/** The bytes of the golden chunk sizes: the SHA-256 of each counter. */
const counted = (count: number): Uint8Array =>
  Uint8Array.from(
    Buffer.concat(
      Array.from({ length: count }, (_, i) => {
        const number = Buffer.alloc(4)
        number.writeUInt32BE(i)
        return Buffer.from(sha256(number), "hex")
      })
    )
  )

const chunkSizes = (bytes: Uint8Array, part: number): ReadonlyArray<number> => {
  const chunker = Chunker.make()
  const sizes: Array<number> = []
  for (let at = 0; at < bytes.length; at += part) {
    for (const chunk of chunker.push(bytes.subarray(at, at + part))) sizes.push(chunk.length)
  }
  return [...sizes, chunker.end().length]
}

describe("the chunks of files", () => {
  const bytes = counted(131_072)

  it("have the boundaries that another program computes, no matter how the bytes arrive", () => {
    for (const part of [bytes.length, 1_000_003, 4097]) assert.deepStrictEqual(chunkSizes(bytes, part), golden.chunkSizes)
  })

  it("are at most 1 MiB, also in a file without any boundary", () => {
    assert.deepStrictEqual(chunkSizes(new Uint8Array(2_500_000), 70_000), [1_048_576, 1_048_576, 402_848])
  })

  it.effect("change little if a byte is inserted", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = objectsOver(blobs)
      yield* Contents.fromBytes(objects, bytes)
      const before = new Set(blobs.all.keys())
      yield* Contents.fromBytes(objects, Uint8Array.from([...bytes.subarray(0, 9), 1, ...bytes.subarray(9)]))
      const added = [...blobs.all.keys()].filter((hash) => !before.has(hash))
      // The first chunk and the index.
      assert.isAtMost(added.length, 3)
    })
  )

  it.effect("return the written content in every range", () =>
    Effect.gen(function* () {
      const objects = objectsOver()
      for (const size of [0, 1, maxInlineBytes, maxInlineBytes + 1, 65_536, 65_537, 1_048_577, bytes.length]) {
        const content = yield* Contents.fromBytes(objects, bytes.subarray(0, size))
        assert.strictEqual(Contents.versionOf(content), sha256(bytes.subarray(0, size)))
        for (const [offset, length] of [
          [0, size],
          [size - 1, 5],
          [size, 1],
          [1000, 3_000_000],
          [300_000, 1]
        ] as const) {
          const from = Math.max(offset, 0)
          assert.strictEqual(
            Buffer.compare(
              yield* Contents.read(objects, content, from, length),
              bytes.subarray(0, size).subarray(from, from + length)
            ),
            0
          )
        }
      }
    })
  )

  it.effect("are equal for appended content and for content that is written at once", () =>
    Effect.gen(function* () {
      const objects = objectsOver()
      for (const cut of [0, 1, 2000, 2048, 3000, 65_536, 700_000, 2_000_000]) {
        for (const end of [cut + 1, cut + 60_000, bytes.length]) {
          const first = yield* Contents.fromBytes(objects, bytes.subarray(0, cut))
          const all = yield* Contents.append(objects, first, bytes.subarray(cut, end), undefined)
          assert.deepStrictEqual(all.content, yield* Contents.fromBytes(objects, bytes.subarray(0, end)))
        }
      }
    })
  )

  it.effect("may be so many that an index has several levels: the file is read and appended to like any other", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = objectsOver(blobs)
      // Zeros have chunks of 1 MiB, all of which are one blob.
      const mebibyte = 1024 * 1024
      const chunk = yield* blobs.put(new Uint8Array(mebibyte))
      const full = Array.from({ length: 1024 }, () => ({ hash: chunk, size: mebibyte }))
      const hash = yield* blobs.put(encode({ kind: "index", level: 1, children: full }))
      const content: Content = { _tag: "Chunks", size: 1024 * mebibyte, sha256: chunk, level: 1, hash }
      const known = { update: () => {}, digest: () => chunk }
      const { content: longer } = yield* Contents.append(objects, content, new Uint8Array(mebibyte), known)
      assert.isTrue(longer._tag === "Chunks" && longer.level === 2 && longer.size === 1025 * mebibyte)
      assert.deepStrictEqual(yield* Contents.read(objects, longer, 1024 * mebibyte - 2, 5), new Uint8Array(5))
      const { content: again } = yield* Contents.append(objects, longer, Uint8Array.of(7), known)
      assert.deepStrictEqual(yield* Contents.read(objects, again, 1025 * mebibyte - 1, 9), Uint8Array.of(0, 7))
    })
  )
})

describe("forged blobs", () => {
  it.effect("with bytes that do not match their hash never become a node or content", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = objectsOver(blobs)
      const content = yield* Contents.fromBytes(objects, new Uint8Array(5000).fill(1))
      const hash = content._tag === "Chunks" ? content.hash : ""
      blobs.all.get(hash)!.bytes = new Uint8Array(5000).fill(2)
      const error = yield* Effect.flip(Contents.read(objects, content, 0, 10))
      assert.strictEqual(error.reason, "corrupt")
      assert.include(error.detail, hash)
    })
  )

  it.effect("that are nodes of another kind than expected are refused", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = objectsOver(blobs)
      const index = yield* blobs.put(encode(nodes["index"]!))
      const root = yield* blobs.put(encode(nodes["empty"]!))
      const deep = yield* blobs.put(encode(nodes["deep"]!))
      for (const attempt of [
        objects.tree(index, ""),
        objects.tree(root, ""),
        objects.tree(deep, ""),
        objects.root(index),
        objects.index(root, 1, 300_000),
        objects.index(index, 2, 300_000),
        objects.index(index, 1, 300_001)
      ]) {
        assert.strictEqual((yield* Effect.flip(attempt as Effect.Effect<unknown, StoreError>)).reason, "corrupt")
      }
    })
  )

  it.effect("with a weight that differs from the weight in their parent are refused", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = objectsOver(blobs)
      yield* blobs.put(encode(nodes["deep"]!))
      const branch = nodes["branch"]
      if (branch?.kind !== "branch") return assert.fail()
      assert.strictEqual((yield* Effect.flip(objects.child(branch, branch.children[0]!, 0))).reason, "corrupt")
    })
  )
})
