import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { createHash } from "node:crypto"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import type { Backend, Commit } from "../../src/port/Backend.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { performed } from "../performed.ts"

const at = (path: string) => path as FsPath
const utf8 = (text: string) => new TextEncoder().encode(text)
const root = at(".")

const read = (port: Backend, path: string) =>
  Effect.scoped(
    Effect.flatMap(port.open(at(path)), (handle) =>
      Effect.map(handle.read(0, handle.stat.sizeBytes), (bytes) => new TextDecoder().decode(bytes))
    )
  )
type Mode = "create" | "replace" | "append"
const putBytes = (port: Backend, path: string, bytes: Uint8Array, mode: Mode = "replace") =>
  port.write<never, never>(at(path), bytes, mode)
const put = (port: Backend, path: string, text: string, mode: Mode = "replace") => putBytes(port, path, utf8(text), mode)
const names = (port: Backend, path = ".") =>
  Effect.map(port.list(at(path)), (children) => children.map((child) => child.name).sort())
const faultOf = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.flip(effect)
const fails = <A, R>(effect: Effect.Effect<A, Fault, R>, expected: Fault) =>
  Effect.map(faultOf(effect), (fault) => assert.deepInclude(fault, expected))
const millis = (time: DateTime.Utc | undefined) => time && DateTime.toEpochMillis(time)

const NotFound: Fault = { _tag: "NotFound" }
const AlreadyExists: Fault = { _tag: "AlreadyExists" }
const NotADirectory: Fault = { _tag: "NotADirectory" }
const NotAFile: Fault = { _tag: "NotAFile" }
const DirectoryNotEmpty: Fault = { _tag: "DirectoryNotEmpty" }
const isRoot: Fault = { _tag: "AccessDenied", why: "root" }
const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

const sample = InMemory.make({
  tree: {
    file: "content",
    empty: {},
    full: { inner: "below" },
    toFile: { link: "file" },
    toFull: { link: "full" }
  }
})

describe("the root", () => {
  it.effect("exists, is an empty directory and reports its path as '.'", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const stat = yield* port.stat(root)
      assert.deepInclude(stat, { path: root, kind: "directory", isDirectory: true, isFile: false, sizeBytes: 0, mode: 0o755 })
      assert.deepStrictEqual(yield* port.list(root), [])
    })
  )
  it.effect("cannot be removed, moved, replaced or created", () =>
    Effect.gen(function* () {
      const port = yield* sample
      yield* fails(port.remove(root), isRoot)
      yield* fails(performed(port, { _tag: "RemoveTree", path: root }), isRoot)
      yield* fails(port.rename(root, at("x"), { replace: true }), isRoot)
      yield* fails(port.rename(at("full"), root, { replace: true }), isRoot)
      yield* fails(port.makeDirectory(root), AlreadyExists)
      yield* fails(port.links!.make(root, "x"), AlreadyExists)
      yield* fails(put(port, ".", "x", "create"), AlreadyExists)
      yield* fails(put(port, ".", "x", "replace"), NotAFile)
      yield* fails(put(port, ".", "x", "append"), NotAFile)
      yield* fails(port.open(root), NotAFile)
      assert.strictEqual(yield* read(port, "full/inner"), "below")
    })
  )
})

describe("a missing entry", () => {
  it.effect("makes stat return undefined and other calls fail, also below a file or a link", () =>
    Effect.gen(function* () {
      const port = yield* sample
      for (const path of ["none", "none/x", "file/x", "file/x/y", "toFull/inner", "toFile/x"]) {
        assert.isUndefined(yield* port.stat(at(path)), path)
        yield* fails(port.list(at(path)), NotFound)
        yield* fails(port.open(at(path)), NotFound)
        yield* fails(port.remove(at(path)), NotFound)
        yield* fails(port.rename(at(path), at("y"), { replace: false }), NotFound)
        yield* fails(port.attributes!.set(at(path), { mode: 0 }), NotFound)
        yield* fails(port.links!.read(at(path)), NotFound)
        yield* fails(performed(port, { _tag: "RemoveTree", path: at(path) }), NotFound)
        assert.isUndefined(yield* performed(port, { _tag: "Read", path: at(path), maxBytes: 100 }))
      }
    })
  )
  it.effect("cannot be created without a parent that is a directory", () =>
    Effect.gen(function* () {
      const port = yield* sample
      for (const [path, fault] of [
        ["none/x", NotFound],
        ["file/x", NotADirectory],
        ["toFull/x", NotADirectory],
        ["full/none/x", NotFound]
      ] as const) {
        for (const mode of ["create", "replace", "append"] as const) yield* fails(put(port, path, "", mode), fault)
        yield* fails(port.makeDirectory(at(path)), fault)
        yield* fails(port.links!.make(at(path), "t"), fault)
        yield* fails(port.rename(at("empty"), at(path), { replace: true }), fault)
      }
      assert.deepStrictEqual(yield* names(port), ["empty", "file", "full", "toFile", "toFull"])
    })
  )
})

describe("names in memory", () => {
  it.effect("such as __proto__ and toString, which every JavaScript object has as members, are ordinary names", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const own = ["__proto__", "constructor", "hasOwnProperty", "prototype", "toString", "valueOf"]
      for (const name of own) assert.isUndefined(yield* port.stat(at(name)))
      yield* port.makeDirectory(at("__proto__"))
      for (const name of own) yield* put(port, `__proto__/${name}`, name)
      assert.deepStrictEqual(yield* names(port, "__proto__"), own)
      assert.strictEqual(yield* read(port, "__proto__/constructor"), "constructor")
    })
  )
  it.effect("are compared by code unit and stored unchanged", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const given = ["a", "A", " a", "a ", "é", "e\u0301", "😀", "a\\b", "…", "-", "a.b"]
      for (const name of given) yield* put(port, name, name, "create")
      assert.deepStrictEqual(yield* names(port), [...given].sort())
      for (const name of given) assert.strictEqual(yield* read(port, name), name)
    })
  )
})

describe("write", () => {
  it.effect("with mode create makes a file and never overwrites an existing entry", () =>
    Effect.gen(function* () {
      const port = yield* sample
      assert.deepInclude(yield* put(port, "new", "ab", "create"), { path: at("new"), kind: "file", isFile: true, sizeBytes: 2 })
      for (const path of ["new", "file", "empty", "toFile"]) yield* fails(put(port, path, "x", "create"), AlreadyExists)
      assert.strictEqual(yield* read(port, "new"), "ab")
      assert.strictEqual(yield* port.links!.read(at("toFile")), "file")
    })
  )
  it.effect("with mode replace or append creates a missing file and refuses an entry that is not a file", () =>
    Effect.gen(function* () {
      const port = yield* sample
      for (const mode of ["replace", "append"] as const) {
        yield* put(port, mode, "1", mode)
        assert.strictEqual((yield* put(port, mode, "22", mode)).sizeBytes, mode === "append" ? 3 : 2)
        for (const path of ["empty", "full", "toFile", "toFull"]) yield* fails(put(port, path, "x", mode), NotAFile)
      }
      assert.strictEqual(yield* read(port, "replace"), "22")
      assert.strictEqual(yield* read(port, "append"), "122")
      assert.strictEqual(yield* read(port, "file"), "content")
    })
  )
  it.effect("keeps a copy of the bytes it was given", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      for (const size of [3, 100_000]) {
        const bytes = Buffer.alloc(size, "a")
        for (const mode of ["replace", "append"] as const) {
          yield* putBytes(port, "f", bytes, mode)
          bytes.fill("b")
          assert.notInclude(yield* read(port, "f"), "b")
          bytes.fill("a")
        }
      }
    })
  )
  it.effect("writes only the bytes of a view, not of its whole buffer", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      yield* putBytes(port, "f", utf8("0123456789").subarray(3, 6))
      yield* putBytes(port, "f", utf8("0123456789").subarray(8), "append")
      assert.strictEqual(yield* read(port, "f"), "34589")
    })
  )
  it.effect("appends content many times, even empty content", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      let expected = ""
      for (let i = 0; i < 5000; i++) {
        const text = i % 7 === 0 ? "" : `${i},`
        expected += text
        yield* put(port, "log", text, "append")
      }
      assert.strictEqual(yield* read(port, "log"), expected)
    })
  )
  it.effect("returns an effect that does nothing until it is run and can be run again", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const append = put(port, "f", "x", "append")
      assert.isUndefined(yield* port.stat(at("f")))
      yield* append
      yield* append
      assert.strictEqual(yield* read(port, "f"), "xx")
    })
  )
})

describe("write from a stream", () => {
  it.effect("publishes nothing until the stream has ended", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const gate = yield* Deferred.make<void>()
      const stream = Stream.concat(Stream.make(utf8("new ")), Stream.fromEffect(Effect.as(Deferred.await(gate), utf8("text"))))
      const fiber = yield* Effect.forkChild(port.write(at("file"), stream, "replace"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.strictEqual(yield* read(port, "file"), "content")
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(fiber)).sizeBytes, 8)
      assert.strictEqual(yield* read(port, "file"), "new text")
    })
  )
  it.effect("that fails keeps the old content and fails with the stream's own error", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const broken = Stream.concat(Stream.make(utf8("half")), Stream.fail("broken" as const))
      for (const mode of ["create", "replace", "append"] as const) {
        assert.strictEqual(yield* Effect.flip(port.write(at("new"), broken, mode)), "broken")
        assert.isUndefined(yield* port.stat(at("new")))
      }
      for (const mode of ["replace", "append"] as const) {
        assert.strictEqual(yield* Effect.flip(port.write(at("file"), broken, mode)), "broken")
        assert.strictEqual(yield* read(port, "file"), "content")
      }
    })
  )
  it.effect("that is interrupted keeps the old content", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const endless = Stream.concat(Stream.make(utf8("half")), Stream.fromEffect(Effect.never))
      const fiber = yield* Effect.forkChild(port.write(at("file"), endless, "append"), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* read(port, "file"), "content")
    })
  )
  it.effect("copies each chunk on arrival, because the stream may reuse its array", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const one = new Uint8Array(2)
      const stream = Stream.map(Stream.rechunk(Stream.make(1, 2, 3), 1), (n) => one.fill(48 + n))
      yield* port.write(at("f"), stream, "create")
      assert.strictEqual(yield* read(port, "f"), "112233")
    })
  )
  it.effect("creates an empty file if the stream is empty", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      assert.strictEqual((yield* port.write(at("f"), Stream.empty, "create")).sizeBytes, 0)
    })
  )
  it.effect("appends to the content at the end of the stream, not at its start", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const stream = Stream.fromEffect(Effect.as(put(port, "file", "other", "replace"), utf8("!")))
      yield* port.write(at("file"), stream, "append")
      assert.strictEqual(yield* read(port, "file"), "other!")
    })
  )
})

describe("commit", () => {
  const sources: ReadonlyArray<readonly [string, Uint8Array | Stream.Stream<Uint8Array>]> = [
    ["bytes", utf8("new")],
    ["a stream", Stream.make(utf8("ne"), utf8("w"))]
  ]
  for (const [what, source] of sources) {
    it.effect(`wraps exactly the step that publishes ${what}`, () =>
      Effect.gen(function* () {
        const port = yield* sample
        const seen: Array<string> = []
        const look = Effect.map(Effect.orDie(read(port, "file")), (text) => void seen.push(text))
        const commit: Commit = (publish) => Effect.andThen(look, Effect.tap(publish, look))
        assert.strictEqual((yield* port.write(at("file"), source, "replace", { commit })).sizeBytes, 3)
        assert.deepStrictEqual(seen, ["content", "new"])
      })
    )
    it.effect(`that fails publishes nothing of ${what}`, () =>
      Effect.gen(function* () {
        const port = yield* sample
        const commit: Commit = () => Effect.fail<Fault>({ _tag: "Conflict", expected: null })
        yield* fails(port.write(at("file"), source, "replace", { commit }), { _tag: "Conflict", expected: null })
        yield* fails(port.write(at("new"), source, "create", { commit }), { _tag: "Conflict", expected: null })
        assert.strictEqual(yield* read(port, "file"), "content")
        assert.isUndefined(yield* port.stat(at("new")))
      })
    )
  }
  it.effect("publishes the bytes as they were when the write began", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const bytes = utf8("early")
      const commit: Commit = (publish) => Effect.suspend(() => (bytes.fill(0), publish))
      yield* port.write<never, never>(at("file"), bytes, "replace", { commit })
      assert.strictEqual(yield* read(port, "file"), "early")
    })
  )
})

describe("open", () => {
  it.effect("returns fewer bytes than requested only at the end of the file", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { f: "0123456789" } })
      const handle = yield* port.open(at("f"))
      const window = (offset: number, length: number) =>
        Effect.map(handle.read(offset, length), (bytes) => new TextDecoder().decode(bytes))
      assert.strictEqual(yield* window(0, 4), "0123")
      assert.strictEqual(yield* window(8, 4), "89")
      assert.strictEqual(yield* window(10, 4), "")
      assert.strictEqual(yield* window(99, 4), "")
      assert.strictEqual(yield* window(3, 0), "")
      assert.strictEqual(yield* window(3, Number.POSITIVE_INFINITY), "3456789")
      yield* put(port, "f", "ab", "append")
      assert.strictEqual(yield* window(8, 100), "89", "a read never returns the spare capacity that an append leaves")
    })
  )
  it.effect("returns copies, each in a buffer of its own", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const handle = yield* port.open(at("file"))
      const bytes = yield* handle.read(0, 100)
      assert.strictEqual(Object.getPrototypeOf(bytes), Uint8Array.prototype)
      assert.strictEqual(bytes.buffer.byteLength, bytes.length)
      bytes.fill(0)
      assert.isTrue((yield* performed(port, { _tag: "Read", path: at("file"), maxBytes: 100 }))!.isLent)
      const { content } = yield* make(port).readBytes("file")
      assert.strictEqual(content.buffer.byteLength, content.length)
      content.fill(0)
      assert.strictEqual(yield* read(port, "file"), "content")
    })
  )
  for (const [what, change] of [
    ["replaced", (port: Backend) => put(port, "file", "other and longer")],
    ["appended to", (port: Backend) => put(port, "file", " and more", "append")],
    ["removed", (port: Backend) => port.remove(at("file"))],
    ["renamed", (port: Backend) => port.rename(at("file"), at("elsewhere"), { replace: false })],
    ["replaced by a rename", (port: Backend) => port.rename(at("full/inner"), at("file"), { replace: true })],
    ["given another mode", (port: Backend) => port.attributes!.set(at("file"), { mode: 0o600 })]
  ] as const) {
    it.effect(`keeps reading the opened content when the file is ${what}`, () =>
      Effect.gen(function* () {
        const port = yield* sample
        const handle = yield* port.open(at("file"))
        const { sizeBytes, mode } = handle.stat
        yield* change(port)
        assert.strictEqual(new TextDecoder().decode(yield* handle.read(0, 100)), "content")
        assert.deepStrictEqual([handle.stat.sizeBytes, handle.stat.mode], [sizeBytes, mode])
        assert.strictEqual(yield* handle.version!, createHash("sha256").update("content").digest("hex"))
      })
    )
  }
  it.effect("returns a handle to the content at the time of the open, also between appends", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const handles = []
      for (const text of ["a", "b", "c", "d"]) {
        yield* put(port, "f", text, "append")
        handles.push(yield* port.open(at("f")))
      }
      const texts = yield* Effect.forEach(handles, (handle) => handle.read(0, 100))
      assert.deepStrictEqual(
        texts.map((bytes) => new TextDecoder().decode(bytes)),
        ["a", "ab", "abc", "abcd"]
      )
    })
  )
  it.effect("returns the SHA-256 of the content as the version", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { empty: "" } })
      // The SHA-256 of no bytes and of "abc", from FIPS 180.
      const none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
      const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
      const version = (path: string) => Effect.scoped(Effect.flatMap(port.open(at(path)), (handle) => handle.version!))
      assert.strictEqual(yield* version("empty"), none)
      yield* put(port, "f", "a")
      yield* version("f")
      yield* put(port, "f", "bc", "append")
      assert.strictEqual(yield* version("f"), abc)
      const whole = yield* performed(port, { _tag: "Read", path: at("f"), maxBytes: 3 })
      assert.strictEqual(yield* whole!.version!, abc)
    })
  )
})

describe("the accelerations:", () => {
  it.effect("read returns the same content as open, and declines files above its limit and other entries", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const whole = (yield* performed(port, { _tag: "Read", path: at("file"), maxBytes: 7 }))!
      const handle = yield* port.open(at("file"))
      assert.deepStrictEqual(whole.stat, handle.stat)
      assert.deepStrictEqual(whole.bytes, yield* handle.read(0, 7))
      for (const path of ["empty", "toFile", "none"])
        assert.isUndefined(yield* performed(port, { _tag: "Read", path: at(path), maxBytes: 7 }))
      assert.isUndefined(yield* performed(port, { _tag: "Read", path: at("file"), maxBytes: 6 }))
    })
  )
  it.effect("removeTree removes everything and counts files and links separately from directories", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({
        tree: { keep: "k", d: { a: "1", l: { link: "../keep" }, e: {}, f: { g: { h: "2" } } } }
      })
      yield* put(port, "d/.~fsa-x.tmp", "a stranger's")
      const removed = yield* TemporaryNames.withName((temporary) =>
        Effect.andThen(
          put(port, `d/${temporary}`, "a write in progress"),
          performed(port, { _tag: "RemoveTree", path: at("d") })
        )
      )
      assert.deepStrictEqual(removed, { deleted: 4, directories: 4 })
      assert.deepStrictEqual(yield* names(port), ["keep"])
    })
  )
})

describe("remove", () => {
  it.effect("removes a file, a link (not its target) or an empty directory, and refuses a directory with entries", () =>
    Effect.gen(function* () {
      const port = yield* sample
      yield* fails(port.remove(at("full")), DirectoryNotEmpty)
      for (const path of ["toFull", "toFile", "empty", "full/inner", "full"]) yield* port.remove(at(path))
      assert.deepStrictEqual(yield* names(port), ["file"])
      yield* fails(port.remove(at("full")), NotFound)
    })
  )
  it.effect("keeps the parent when its last entry is removed", () =>
    Effect.gen(function* () {
      const port = yield* sample
      yield* port.remove(at("full/inner"))
      assert.deepStrictEqual(yield* port.list(at("full")), [])
      yield* put(port, "full/again", "x", "create")
      assert.deepStrictEqual(yield* names(port, "full"), ["again"])
    })
  )
})

describe("rename", () => {
  const kinds = ["file", "empty", "full", "toFile"] as const
  const ok = undefined
  const table: Record<(typeof kinds)[number], ReadonlyArray<Fault | undefined>> = {
    // replaces: a file      an empty dir    a full dir          a link
    file: [ok, NotAFile, NotAFile, ok],
    toFile: [ok, NotAFile, NotAFile, ok],
    empty: [NotADirectory, ok, DirectoryNotEmpty, NotADirectory],
    full: [NotADirectory, ok, DirectoryNotEmpty, NotADirectory]
  }
  const targets = ["file", "empty", "full", "toFile"] as const
  for (const from of kinds) {
    targets.forEach((over, i) => {
      const expected = table[from][i]
      it.effect(`of ${from} over ${over} ${expected === undefined ? "replaces it" : "fails with " + expected._tag}`, () =>
        Effect.gen(function* () {
          const port = yield* InMemory.make({
            tree: {
              from: { file: "moved", empty: {}, full: { x: "moved" }, toFile: { link: "moved" } },
              to: { file: "old", empty: {}, full: { y: "old" }, toFile: { link: "old" } }
            }
          })
          const rename = (replace: boolean) => port.rename(at(`from/${from}`), at(`to/${over}`), { replace })
          yield* fails(rename(false), AlreadyExists)
          if (expected !== undefined) {
            yield* fails(rename(true), expected)
            assert.isDefined(yield* port.stat(at(`from/${from}`)))
            assert.strictEqual(yield* read(port, "to/full/y"), "old")
            return
          }
          yield* rename(true)
          assert.isUndefined(yield* port.stat(at(`from/${from}`)))
          if (from === "file") assert.strictEqual(yield* read(port, `to/${over}`), "moved")
          if (from === "toFile") assert.strictEqual(yield* port.links!.read(at(`to/${over}`)), "moved")
          if (from === "full") assert.strictEqual(yield* read(port, `to/${over}/x`), "moved")
          if (from === "empty") assert.deepStrictEqual(yield* port.list(at(`to/${over}`)), [])
        })
      )
    })
  }
  it.effect("of a directory moves everything in it", () =>
    Effect.gen(function* () {
      const port = yield* sample
      yield* port.stat(at("full/inner"))
      yield* port.rename(at("full"), at("empty/moved"), { replace: false })
      assert.strictEqual(yield* read(port, "empty/moved/inner"), "below")
      assert.isUndefined(yield* port.stat(at("full/inner")))
      assert.deepStrictEqual(yield* names(port), ["empty", "file", "toFile", "toFull"])
    })
  )
  it.effect("of a directory into itself is refused at any depth, but not into a sibling with the same prefix", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { a: { b: { c: {} } }, ab: {} } })
      const into: Fault = { _tag: "InvalidArgument", argument: "to" }
      for (const to of ["a/x", "a/b/x", "a/b/c/x", "a/b/c"]) yield* fails(port.rename(at("a"), at(to), { replace: true }), into)
      yield* port.rename(at("a"), at("ab/a"), { replace: false })
      assert.isDefined(yield* port.stat(at("ab/a/b/c")))
    })
  )
  it.effect("of a path onto itself changes nothing with replace, and fails with AlreadyExists without replace", () =>
    Effect.gen(function* () {
      const port = yield* sample
      for (const path of ["file", "full", "toFile"]) {
        yield* port.rename(at(path), at(path), { replace: true })
        yield* fails(port.rename(at(path), at(path), { replace: false }), AlreadyExists)
      }
      assert.strictEqual(yield* read(port, "full/inner"), "below")
      assert.deepStrictEqual(yield* names(port), ["empty", "file", "full", "toFile", "toFull"])
    })
  )
  it.effect("of an entry over the directory that holds it is refused", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { d: { e: {}, f: "x" } } })
      yield* fails(port.rename(at("d/e"), at("d"), { replace: true }), DirectoryNotEmpty)
      yield* fails(port.rename(at("d/f"), at("d"), { replace: true }), NotAFile)
    })
  )
})

describe("links in memory", () => {
  it.effect("keep their target as text and are never followed", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      yield* port.links!.make(at("l"), "../é/none")
      assert.strictEqual(yield* port.links!.read(at("l")), "../é/none")
      const stat = yield* port.stat(at("l"))
      assert.deepInclude(stat, { kind: "symlink", isFile: false, isDirectory: false, isSymlink: true, sizeBytes: 10 })
      assert.deepInclude((yield* port.list(root))[0], { name: "l", kind: "symlink", addressable: true })
      yield* fails(port.open(at("l")), NotAFile)
      yield* fails(port.list(at("l")), NotADirectory)
    })
  )
  it.effect("are created only at unused names, and links.read refuses entries that are not links", () =>
    Effect.gen(function* () {
      const port = yield* sample
      for (const path of ["file", "empty", "toFile"]) yield* fails(port.links!.make(at(path), "x"), AlreadyExists)
      for (const path of ["file", "empty", "."]) {
        yield* fails(port.links!.read(at(path)), { _tag: "InvalidArgument", argument: "path" })
      }
    })
  )
})

describe("times in memory", () => {
  it.effect("come from the clock of the fiber that makes the change, and change for a directory with its list of names", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1000)
      const port = yield* InMemory.make({ tree: { d: { f: "x" } } })
      const times = (path: string) =>
        Effect.map(port.stat(at(path)), (stat) => [millis(stat?.createdAt), millis(stat?.modifiedAt)])
      assert.deepStrictEqual(yield* times("."), [1000, 1000])
      assert.deepStrictEqual(yield* times("d/f"), [1000, 1000])
      yield* TestClock.setTime(2000)
      yield* put(port, "d/f", "y")
      assert.deepStrictEqual(yield* times("d/f"), [1000, 2000])
      assert.deepStrictEqual(yield* times("d"), [1000, 1000], "a directory keeps its times when only a file in it changes")
      yield* TestClock.setTime(3000)
      yield* put(port, "d/g", "y")
      assert.deepStrictEqual(yield* times("d/g"), [3000, 3000])
      assert.deepStrictEqual(yield* times("d"), [1000, 3000])
      assert.deepStrictEqual(yield* times("."), [1000, 1000])
      yield* TestClock.setTime(4000)
      yield* port.rename(at("d/g"), at("g"), { replace: false })
      assert.deepStrictEqual(yield* times("g"), [3000, 3000])
      assert.deepStrictEqual([yield* times("d"), yield* times(".")].flat(), [1000, 4000, 1000, 4000])
      yield* TestClock.setTime(5000)
      yield* port.remove(at("d/f"))
      assert.deepStrictEqual(yield* times("d"), [1000, 5000])
      yield* TestClock.setTime(6000)
      yield* port.makeDirectory(at("d/e"))
      yield* port.links!.make(at("d/e/l"), "x")
      assert.deepStrictEqual([yield* times("d"), yield* times("d/e/l")].flat(), [1000, 6000, 6000, 6000])
    })
  )
  it.effect("of a file written from a stream come from the moment of its publication", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const later = Stream.fromEffect(Effect.as(TestClock.setTime(9000), utf8("x")))
      assert.strictEqual(millis((yield* port.write(at("f"), later, "create")).modifiedAt), 9000)
    })
  )
})

describe("modes in memory", () => {
  it.effect("default to 0644 for files and 0755 for directories, and a replaced file keeps its mode", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const mode = (path: string) => Effect.map(port.stat(at(path)), (stat) => stat?.mode)
      assert.deepStrictEqual([yield* mode("file"), yield* mode("empty"), yield* mode("toFile")], [0o644, 0o755, 0o777])
      yield* port.attributes!.set(at("file"), { mode: 0o755 })
      yield* put(port, "file", "new")
      yield* put(port, "file", "new", "append")
      assert.strictEqual(yield* mode("file"), 0o755)
      yield* port.attributes!.set(root, { mode: 0o40700 })
      assert.strictEqual(yield* mode("."), 0o700)
    })
  )
  it.effect("stay unchanged when times are set, and cannot be set for a link", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const modifiedAt = DateTime.makeUnsafe(123_456)
      for (const path of ["file", "empty", "toFile", "."]) {
        const before = (yield* port.stat(at(path)))!
        yield* port.attributes!.set(at(path), { modifiedAt })
        assert.deepStrictEqual(yield* port.stat(at(path)), { ...before, modifiedAt })
      }
      yield* fails(port.attributes!.set(at("toFile"), { mode: 0o600 }), { _tag: "InvalidArgument", argument: "mode" })
    })
  )
})

describe("watch", () => {
  const told = (path: string, act: (port: Backend) => Effect.Effect<unknown, Fault>, options: InMemory.InMemoryOptions = {}) =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ ...options, tree: { d: { f: "x", e: { g: "y" } }, o: "z" } })
      const events: Array<string> = []
      const watch = Stream.takeUntil(port.watch!(at(path)), (event) => event.path.endsWith("end"))
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(watch, (event) => Effect.sync(() => events.push(`${event._tag} ${event.path}`))),
        { startImmediately: true }
      )
      yield* act(port)
      yield* put(port, path === "." ? "end" : `${path}/end`, "")
      yield* Fiber.join(fiber)
      return events.slice(0, -1)
    })
  it.effect("emits events for entries created, updated and removed below the directory, and no others", () =>
    Effect.gen(function* () {
      const events = yield* told("d", (port) =>
        Effect.all([
          put(port, "o", "elsewhere"),
          put(port, "d/new", "x"),
          put(port, "d/f", "x"),
          put(port, "d/f", "x", "append"),
          Effect.ignore(put(port, "d/f", "x", "create")),
          port.makeDirectory(at("d/e/dir")),
          port.links!.make(at("d/l"), "x"),
          port.attributes!.set(at("d"), { mode: 0o700 }),
          port.attributes!.set(at("d/f"), { mode: 0o600 }),
          port.rename(at("d/f"), at("d/e/f"), { replace: false }),
          port.rename(at("o"), at("d/o"), { replace: false }),
          port.remove(at("d/o"))
        ])
      )
      assert.deepStrictEqual(events, [
        "Created d/new",
        "Updated d/f",
        "Updated d/f",
        "Created d/e/dir",
        "Created d/l",
        "Updated d/f",
        "Removed d/f",
        "Created d/e/f",
        "Created d/o",
        "Removed d/o"
      ])
    })
  )
  it.effect("emits an event for every entry of a removed tree, the innermost first", () =>
    Effect.gen(function* () {
      const events = yield* told(".", (port) => performed(port, { _tag: "RemoveTree", path: at("d") }))
      assert.sameMembers(events, ["Removed d/f", "Removed d/e/g", "Removed d/e", "Removed d"])
      assert.isBelow(events.indexOf("Removed d/e/g"), events.indexOf("Removed d/e"))
      assert.strictEqual(events.at(-1), "Removed d")
    })
  )
  it.effect("emits every event to each watcher, however slow, and stops with its stream", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const counts = yield* Effect.forEach([1, 1000], (count) =>
        Effect.forkChild(
          Effect.map(Stream.runCollect(Stream.take(port.watch!(root), count)), (all) => all.length),
          {
            startImmediately: true
          }
        )
      )
      for (let i = 0; i < 2000; i++) yield* put(port, `f${i}`, "")
      assert.deepStrictEqual(yield* Effect.forEach(counts, Fiber.join), [1, 1000])
    })
  )
  it.effect("is case-insensitive if the tree is", () =>
    Effect.gen(function* () {
      const events = yield* told("D", (port) => put(port, "d/F", "new"), { caseInsensitive: true })
      assert.deepStrictEqual(events, ["Updated d/F"])
    })
  )
  it.effect.each([
    ["removed as a whole", (port: Backend) => port.perform!({ _tag: "RemoveTree", path: at("d") }), ["Removed d/e/g"]],
    ["removed with the directory above it", (port: Backend) => port.perform!({ _tag: "RemoveTree", path: at("d/e") }), []],
    ["moved", (port: Backend) => port.rename(at("d"), at("moved"), { replace: false }), []],
    ["replaced", (port: Backend) => port.rename(at("other"), at("d/e/h"), { replace: true }), []]
  ] as const)("reports the removals and fails with NotFound when its directory is %s", ([, act, expected]) =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { d: { e: { g: "y", h: {} } }, other: {} } })
      const seen: Array<string> = []
      const base = expected.length === 0 ? "d/e/h" : "d/e"
      const watching = yield* Effect.forkChild(
        Effect.flip(
          Stream.runForEach(port.watch!(at(base)), ({ _tag, path }) => Effect.sync(() => seen.push(`${_tag} ${path}`)))
        ),
        { startImmediately: true }
      )
      yield* act(port)
      assert.strictEqual((yield* Fiber.join(watching))._tag, "NotFound")
      assert.includeMembers(seen, [...expected])
    })
  )
  it.effect("fails for a missing directory", () =>
    Effect.gen(function* () {
      const port = yield* sample
      yield* fails(Stream.runDrain(port.watch!(at("none"))), NotFound)
      yield* fails(Stream.runDrain(port.watch!(at("file"))), NotADirectory)
      yield* fails(Stream.runDrain(port.watch!(at("toFull"))), NotADirectory)
    })
  )
})

describe("the option caseInsensitive", () => {
  it.effect("finds names in any case, keeps the case of creation and refuses a second spelling", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ caseInsensitive: true, tree: { Src: { "Ärger.TXT": "x" } } })
      assert.isFalse(port.info.caseSensitive)
      assert.strictEqual(yield* read(port, "SRC/äRGER.txt"), "x")
      yield* put(port, "src/ÄRGER.txt", "y")
      assert.deepStrictEqual(yield* names(port, "src"), ["Ärger.TXT"])
      yield* fails(put(port, "sRC/ärger.txt", "", "create"), AlreadyExists)
      yield* fails(port.makeDirectory(at("sRC")), AlreadyExists)
      assert.strictEqual(yield* read(port, "Src/Ärger.TXT"), "y")
      yield* port.remove(at("sRC/ärger.TXT"))
      assert.deepStrictEqual(yield* names(port, "Src"), [])
    })
  )
  it.effect("allows a rename that changes only the case, with and without replace", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ caseInsensitive: true, tree: { dir: { file: "x" } } })
      yield* port.rename(at("dir"), at("Dir"), { replace: false })
      yield* port.rename(at("DIR/file"), at("dir/FILE"), { replace: true })
      assert.deepStrictEqual([yield* names(port), yield* names(port, "dir")], [["Dir"], ["FILE"]])
      assert.strictEqual(yield* read(port, "dir/file"), "x")
      yield* fails(port.rename(at("Dir"), at("Dir"), { replace: false }), AlreadyExists)
      yield* fails(port.rename(at("dir"), at("DIR/x"), { replace: false }), { _tag: "InvalidArgument", argument: "to" })
    })
  )
  it.effect("uses one lock for all spellings of a path", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ caseInsensitive: true })
      const gate = yield* Deferred.make<void>()
      const seen: Array<number> = []
      const first = port.locks!.exclusive(
        [at("A")],
        Effect.andThen(
          Deferred.await(gate),
          Effect.sync(() => seen.push(1))
        )
      )
      const second = port.locks!.exclusive(
        [at("a")],
        Effect.sync(() => seen.push(2))
      )
      const fibers = yield* Effect.forEach([first, second], (effect) => Effect.forkChild(effect, { startImmediately: true }))
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(seen, [1, 2])
    })
  )
})

describe("the option tree", () => {
  it.effect("is the initial content of the filesystem", () =>
    Effect.gen(function* () {
      const bytes = new Uint8Array([0, 255])
      const port = yield* InMemory.make({
        tree: {
          text: "é",
          bytes,
          l: { link: "text" },
          d: { link: "two keys", e: { link: utf8("bytes") } },
          n: Object.create(null)
        }
      })
      bytes.fill(1)
      assert.strictEqual((yield* port.stat(at("text")))?.sizeBytes, 2)
      assert.deepStrictEqual(
        (yield* performed(port, { _tag: "Read", path: at("bytes"), maxBytes: 9 }))?.bytes,
        new Uint8Array([0, 255])
      )
      assert.strictEqual(yield* port.links!.read(at("l")), "text")
      assert.strictEqual(yield* read(port, "d/link"), "two keys")
      assert.strictEqual(yield* read(port, "d/e/link"), "bytes")
      assert.deepStrictEqual(yield* port.list(at("n")), [])
    })
  )
  it.effect("accepts own keys that have the names of JavaScript's built-in properties", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: JSON.parse('{"__proto__": {"constructor": "x"}}') })
      assert.strictEqual(yield* read(port, "__proto__/constructor"), "x")
    })
  )
  for (const key of ["", ".", "..", "a/b", "/a", "a/", "a\u0000", "a\n", "\ud800", ".~fsa-1.tmp"]) {
    it.effect(`refuses the name ${JSON.stringify(key)} with InvalidPath, at any depth`, () =>
      Effect.gen(function* () {
        for (const tree of [{ [key]: "x" }, { d: { [key]: {} } }]) {
          assert.strictEqual((yield* Effect.flip(InMemory.make({ tree })))._tag, "InvalidPath")
        }
      })
    )
  }
  it.effect("is checked against the path policy", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(InMemory.make({ policy: "vfs", tree: { é: "x" } })))._tag, "InvalidPath")
    })
  )
  const cycle: Record<string, unknown> = {}
  cycle["a"] = { b: cycle }
  const shared = { f: "x" }
  for (const [what, value] of [
    ["a lone surrogate in a text", "\udc00"],
    ["a lone surrogate in a link", { link: "\udc00" }],
    ["an empty link", { link: "" }],
    ["a number", 1],
    ["null", null],
    ["undefined", undefined],
    ["an array", []],
    ["a date", new Date(0)],
    ["a map", new Map()],
    ["a function", () => ""],
    ["a Uint16Array", new Uint16Array(1)],
    ["a directory within itself", cycle]
  ] as const) {
    it.effect(`refuses ${what} with an InvalidArgument that names the path`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(InMemory.make({ tree: { ok: "x", d: { bad: value } } as unknown as InMemory.Tree }))
        assert.deepInclude(error, { _tag: "InvalidArgument", argument: "tree" })
        assert.include(error.path, "d/bad")
      }).pipe(Effect.provideService(Limits.Limits, Limits.unlimited))
    )
  }
  it.effect("copies an object that occurs in two places", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { a: shared, b: shared } })
      yield* put(port, "a/f", "y")
      assert.strictEqual(yield* read(port, "b/f"), "x")
    })
  )
  it.effect("refuses a root that is not a directory", () =>
    Effect.gen(function* () {
      for (const tree of ["x", { link: "x" }] as unknown as Array<InMemory.Tree>) {
        assert.strictEqual((yield* Effect.flip(InMemory.make({ tree })))._tag, "InvalidArgument")
      }
    })
  )
  it.effect("refuses two names that differ only in case if the tree is case-insensitive", () =>
    Effect.gen(function* () {
      const tree = { d: { readme: "1", README: "2" } }
      assert.strictEqual((yield* Effect.flip(InMemory.make({ tree, caseInsensitive: true })))._tag, "InvalidArgument")
      assert.lengthOf(yield* names(yield* InMemory.make({ tree }), "d"), 2)
    })
  )
  it.effect("is checked against the current limits", () =>
    Effect.gen(function* () {
      const tree = { ["x".repeat(81)]: "" }
      yield* InMemory.make({ tree })
      const error = yield* Effect.provideService(Effect.flip(InMemory.make({ tree })), Limits.Limits, Limits.agent)
      assert.strictEqual(error._tag, "PathTooLong")
    })
  )
  it.effect("is also the content of a read-only layer", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      assert.isTrue(fs.readOnly)
      assert.strictEqual(yield* read(fs.port, "f"), "x")
    }).pipe(Effect.provide(InMemory.layer({ readOnly: true, tree: { f: "x" } })))
  )
  it.effect("fails the layer when it is invalid", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Effect.provide(Filesystem, InMemory.layer({ tree: { "..": "x" } })))
      assert.isTrue(Exit.isFailure(exit))
    })
  )
})

describe("permissions", () => {
  const mutations: ReadonlyArray<
    readonly [what: string, needs: ReadonlyArray<"write" | "delete">, run: (port: Backend) => Effect.Effect<unknown, Fault>]
  > = [
    ["create", ["write"], (port) => put(port, "new", "x", "create")],
    ["replace", ["write"], (port) => put(port, "file", "x", "replace")],
    ["append", ["write"], (port) => put(port, "file", "x", "append")],
    ["stream", ["write"], (port) => port.write(at("file"), Stream.make(utf8("x")), "replace")],
    ["makeDirectory", ["write"], (port) => port.makeDirectory(at("new"))],
    ["link", ["write"], (port) => port.links!.make(at("new"), "x")],
    ["attributes", ["write"], (port) => port.attributes!.set(at("file"), { mode: 0o600 })],
    ["remove", ["delete"], (port) => port.remove(at("file"))],
    ["removeTree", ["delete"], (port) => performed(port, { _tag: "RemoveTree", path: at("full") })],
    ["rename", ["write", "delete"], (port) => port.rename(at("file"), at("new"), { replace: false })]
  ]
  const tree = { file: "content", full: { inner: "below" } }
  for (const [options, forbidden] of [
    [{}, []],
    [{ readOnly: false, allowWrite: true, allowDelete: true }, []],
    [{ readOnly: true }, ["write", "delete"]],
    [{ allowWrite: false, allowDelete: false }, ["write", "delete"]],
    [{ allowWrite: false }, ["write"]],
    [{ allowDelete: false }, ["delete"]]
  ] as ReadonlyArray<readonly [InMemory.InMemoryOptions, ReadonlyArray<"write" | "delete">]>) {
    it.effect(`${JSON.stringify(options)} refuses exactly the calls that need ${forbidden.join(" or ") || "nothing"}`, () =>
      Effect.gen(function* () {
        for (const [what, needs, run] of mutations) {
          const port = yield* InMemory.make({ ...options, tree })
          assert.strictEqual(port.info.readOnly, forbidden.length === 2)
          if (needs.some((need) => forbidden.includes(need))) {
            yield* fails(run(port), readOnly)
            assert.deepStrictEqual(yield* names(port), ["file", "full"], what)
            assert.strictEqual(yield* read(port, "file"), "content", what)
            assert.strictEqual(
              (yield* performed(port, { _tag: "Read", path: at("full/inner"), maxBytes: 9 }))?.stat.mode,
              0o644
            )
          } else yield* run(port)
        }
      })
    )
  }
})

describe("a tree in memory", () => {
  it.effect("may have ten thousand nested directories, which can be moved and removed", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const depth = 10_000
      let path = "d"
      for (let i = 0; i < depth; i++, path += "/d") yield* port.makeDirectory(at(path))
      yield* put(port, path, "deep")
      yield* port.rename(at("d"), at("e"), { replace: false })
      assert.isUndefined(yield* port.stat(at(path)))
      assert.strictEqual(yield* read(port, `e${path.slice(1)}`), "deep")
      assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: at("e") }), { deleted: 1, directories: depth })
      assert.deepStrictEqual(yield* port.list(root), [])
    })
  )
  it.effect("may begin with five thousand nested directories", () =>
    Effect.gen(function* () {
      let tree: InMemory.Tree = { bottom: "x" }
      for (let i = 0; i < 5000; i++) tree = { d: tree }
      const port = yield* InMemory.make({ tree })
      assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: at("d") }), { deleted: 1, directories: 5000 })
    }).pipe(Effect.provideService(Limits.Limits, Limits.unlimited))
  )
  it.effect("may have a hundred thousand entries in one directory, which lists each name once and can be emptied", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const all = Array.from({ length: 100_000 }, (_, i) => `file-${i}`)
      for (const path of all) yield* putBytes(port, path, new Uint8Array(0), "create")
      assert.strictEqual(new Set(yield* names(port)).size, all.length)
      for (const path of all.slice(1)) yield* port.remove(at(path))
      assert.deepStrictEqual(yield* names(port), ["file-0"])
    })
  )
  it.effect("makes a write fail with DiskFull and changes nothing when memory is exhausted", () =>
    Effect.gen(function* () {
      const port = yield* sample
      const huge = Object.defineProperty(new Uint8Array(0), "length", { value: 2 ** 53 })
      const diskFull: Fault = { _tag: "DiskFull" }
      for (const mode of ["replace", "append"] as const) {
        yield* fails(putBytes(port, "file", huge, mode), diskFull)
        yield* fails(port.write(at("file"), Stream.make(huge), mode), diskFull)
      }
      assert.strictEqual(yield* read(port, "file"), "content")
    })
  )
})
