import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { Backend, Child, Handle } from "../../port/Backend.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { type Law } from "../Law.ts"
import { encodeUtf8, hashOfAbc } from "../operations.ts"
import { exampleTree, linkedTree, portForms, toPath, writeText, wrongKindTags } from "../portChapter.ts"

const onPort = portForms()
const changing = portForms("write", "delete")
const renaming = portForms("write", "delete", "rename")
const linked = portForms("links")

const readWhole = (handle: Handle) =>
  Effect.gen(function* () {
    const out: Array<number> = []
    while (out.length < handle.stat.sizeBytes) {
      const part = yield* handle.read(out.length, handle.stat.sizeBytes - out.length)
      if (part.length === 0) break
      out.push(...part)
    }
    return Uint8Array.from(out)
  })

const opens = onPort("open", exampleTree)

const listings = onPort("list", exampleTree)

export const portReadingLaws: ReadonlyArray<Law> = [
  onPort("root").law("a new filesystem has an empty root", function* (port) {
    yield* has((yield* port.stat(toPath("."))) ?? {}, {
      kind: "directory",
      isDirectory: true,
      isFile: false,
      sizeBytes: 0
    } as object)
    yield* equal(yield* port.list(toPath(".")), [])
  }),
  onPort("stat", exampleTree).law("port stat returns the kind and the size", function* (port) {
    yield* has((yield* port.stat(toPath("file"))) ?? {}, {
      kind: "file",
      isFile: true,
      isDirectory: false,
      sizeBytes: 4
    } as object)
    yield* has((yield* port.stat(toPath("dir"))) ?? {}, {
      kind: "directory",
      isFile: false,
      isDirectory: true,
      sizeBytes: 0
    } as object)
  }),
  onPort("stat", exampleTree).law("port stat returns undefined for a missing entry", function* (port) {
    for (const path of ["none", "none/x", "dir/none", "file/x", "file/x/y"]) {
      yield* equal<unknown>(yield* port.stat(toPath(path)), undefined, path)
    }
  }),
  linked("stat", linkedTree).law("port stat of a link describes the link itself", function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) {
      yield* has((yield* port.stat(toPath(path))) ?? {}, { kind: "symlink", isFile: false, isDirectory: false } as object, path)
    }
  }),
  linked("nothing is followed", linkedTree).law("the port follows no link in a path", function* (port) {
    yield* equal<unknown>(yield* port.stat(toPath("todir/inner")), undefined)
    yield* fails(port.list(toPath("todir")), wrongKindTags)
    yield* fails(port.open(toPath("todir/inner")), wrongKindTags)
    yield* fails(port.list(toPath("todir/x")), wrongKindTags)
  }),
  onPort("list", { ...exampleTree, "dir/sub/x": "" }).law("port list returns each entry once, with its kind", function* (port) {
    const formatChildren = (children: ReadonlyArray<Child>) =>
      children.map(({ name, kind, addressable }) => `${name} ${kind} ${addressable}`).sort()
    yield* equal(formatChildren(yield* port.list(toPath("."))), [
      "dir directory true",
      "empty directory true",
      "file file true"
    ])
    yield* equal(formatChildren(yield* port.list(toPath("dir"))), ["inner file true", "sub directory true"])
    yield* equal(yield* port.list(toPath("empty")), [])
  }),
  onPort("list", { a: "12", b: "" }).law("port list returns the size of a file, or no size", function* (port) {
    for (const { name, sizeBytes } of yield* port.list(toPath("."))) {
      if (sizeBytes !== undefined) yield* equal(sizeBytes, (yield* port.stat(toPath(name)))?.sizeBytes, name)
    }
  }),
  listings.refuses("port list of a missing path", (port) => port.list(toPath("none")), "NotFound"),
  listings.refuses("port list of a file", (port) => port.list(toPath("file")), "NotADirectory"),
  listings.refuses("port list below a file", (port) => port.list(toPath("file/x")), ["NotFound", "NotADirectory"]),
  onPort("info", { Name: "x" }).law("port info states whether names are case-sensitive", function* (port) {
    yield* equal((yield* port.stat(toPath("nAME"))) === undefined, port.info.caseSensitive)
  }),

  onPort("open", { a: "0123456789" }).law("an open file can be read at any offset", function* (port) {
    const handle = yield* port.open(toPath("a"))
    yield* has(handle.stat, { kind: "file", sizeBytes: 10 })
    for (let offset = 9; offset >= 0; offset--) {
      const bytes = yield* handle.read(offset, 3)
      yield* holds(bytes.length > 0 && bytes.length <= 3, "one to three bytes", bytes.length)
      yield* equal(bytes, encodeUtf8("0123456789").slice(offset, offset + bytes.length))
    }
    yield* equal(yield* readWhole(handle), encodeUtf8("0123456789"))
  }),
  onPort("open", { a: "01" }).law("a read at the end of an open file returns no bytes", function* (port) {
    const handle = yield* port.open(toPath("a"))
    yield* equal((yield* handle.read(2, 5)).length, 0)
    yield* equal((yield* handle.read(9, 5)).length, 0)
    yield* equal(yield* handle.read(1, 5), encodeUtf8("1"))
  }),
  onPort("open", { a: "0123" }).law("changing bytes read from an open file does not change the file", function* (port) {
    const handle = yield* port.open(toPath("a"))
    ;(yield* handle.read(0, 4)).fill(0x78)
    yield* equal(yield* readWhole(handle), encodeUtf8("0123"))
    yield* equal(yield* readWhole(yield* port.open(toPath("a"))), encodeUtf8("0123"))
  }),
  onPort("open", { a: "abc" }).law("the version of an open file is the SHA-256 of its content", function* (port) {
    const handle = yield* port.open(toPath("a"))
    if (handle.version === undefined) return
    yield* equal(yield* handle.version, hashOfAbc)
  }),
  opens.refuses("port open of a missing path", (port) => port.open(toPath("none")), "NotFound"),
  opens.refuses("port open of a directory", (port) => port.open(toPath("dir")), "NotAFile"),
  opens.refuses("port open of the root", (port) => port.open(toPath(".")), "NotAFile"),
  opens.refuses("port open below a file", (port) => port.open(toPath("file/x")), ["NotFound", "NotADirectory"]),
  linked("open", linkedTree).refuses("port open of a link", (port) => port.open(toPath("tofile")), "NotAFile"),
  ...(
    [
      ["replaced", (port) => writeText(port, "a", "other")],
      ["appended to", (port) => writeText(port, "a", "more", "append")],
      ["removed", (port) => port.remove(toPath("a"))],
      ["renamed", (port) => port.rename(toPath("a"), toPath("b"), { replace: false })],
      ["renamed over", (port) => port.rename(toPath("z"), toPath("a"), { replace: true })]
    ] as ReadonlyArray<readonly [string, (port: Backend) => Effect.Effect<unknown, Fault>]>
  ).map(([what, change]) =>
    (what.startsWith("renamed") ? renaming : changing)("open pins", { a: "0123456789", z: "zz" }).law(
      `an open file keeps its content when the file is ${what}`,
      function* (port) {
        const handle = yield* port.open(toPath("a"))
        yield* change(port)
        yield* equal(yield* readWhole(handle), encodeUtf8("0123456789"))
      }
    )
  )
]
