import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { Backend, Child, Handle } from "../../port/Backend.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { type Law } from "../Law.ts"
import { encodeUtf8 } from "../operations.ts"
import { toPath, changing, linkedTree, lawOnPort, writeText, refuses, exampleTree, wrongKindTags } from "../portChapter.ts"

const links = ["links"] as const

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

export const portReadingLaws: ReadonlyArray<Law> = [
  lawOnPort([], "the root is an empty directory at first", "root", {}, function* (port) {
    yield* has((yield* port.stat(toPath("."))) ?? {}, {
      kind: "directory",
      isDirectory: true,
      isFile: false,
      sizeBytes: 0
    } as object)
    yield* equal(yield* port.list(toPath(".")), [])
  }),
  lawOnPort([], "port stat tells the kind and the size", "stat", exampleTree, function* (port) {
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
  lawOnPort([], "port stat answers undefined for what is not there", "stat", exampleTree, function* (port) {
    for (const path of ["none", "none/x", "dir/none", "file/x", "file/x/y"]) {
      yield* equal<unknown>(yield* port.stat(toPath(path)), undefined, path)
    }
  }),
  lawOnPort(links, "port stat of a link answers the link", "stat", linkedTree, function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) {
      yield* has((yield* port.stat(toPath(path))) ?? {}, { kind: "symlink", isFile: false, isDirectory: false } as object, path)
    }
  }),
  lawOnPort(links, "below a link there is nothing for the port", "nothing is followed", linkedTree, function* (port) {
    yield* equal<unknown>(yield* port.stat(toPath("todir/inner")), undefined)
    yield* fails(port.list(toPath("todir")), wrongKindTags)
    yield* fails(port.open(toPath("todir/inner")), wrongKindTags)
    yield* fails(port.list(toPath("todir/x")), wrongKindTags)
  }),
  lawOnPort(
    [],
    "port list answers each entry once, with its kind",
    "list",
    { ...exampleTree, "dir/sub/x": "" },
    function* (port) {
      const formatChildren = (children: ReadonlyArray<Child>) =>
        children.map(({ name, kind, addressable }) => `${name} ${kind} ${addressable}`).sort()
      yield* equal(formatChildren(yield* port.list(toPath("."))), [
        "dir directory true",
        "empty directory true",
        "file file true"
      ])
      yield* equal(formatChildren(yield* port.list(toPath("dir"))), ["inner file true", "sub directory true"])
      yield* equal(yield* port.list(toPath("empty")), [])
    }
  ),
  lawOnPort([], "a size in a listing is the file's", "list", { a: "12", b: "" }, function* (port) {
    for (const { name, sizeBytes } of yield* port.list(toPath("."))) {
      if (sizeBytes !== undefined) yield* equal(sizeBytes, (yield* port.stat(toPath(name)))?.sizeBytes, name)
    }
  }),
  refuses([], "port list of nothing", "list", exampleTree, (port) => port.list(toPath("none")), "NotFound"),
  refuses([], "port list of a file", "list", exampleTree, (port) => port.list(toPath("file")), "NotADirectory"),
  refuses([], "port list below a file", "list", exampleTree, (port) => port.list(toPath("file/x")), [
    "NotFound",
    "NotADirectory"
  ]),
  lawOnPort([], "the case of names is as the port's info says", "info", { Name: "x" }, function* (port) {
    yield* equal((yield* port.stat(toPath("nAME"))) === undefined, port.info.caseSensitive)
  }),

  lawOnPort([], "an open file is read piece by piece", "open", { a: "0123456789" }, function* (port) {
    const handle = yield* port.open(toPath("a"))
    yield* has(handle.stat, { kind: "file", sizeBytes: 10 })
    const first = yield* handle.read(2, 3)
    yield* holds(first.length > 0 && first.length <= 3, "one to three bytes", first.length)
    yield* equal(first, encodeUtf8("234").slice(0, first.length))
    yield* equal(yield* readWhole(handle), encodeUtf8("0123456789"))
  }),
  lawOnPort([], "a read at the end answers nothing", "open", { a: "01" }, function* (port) {
    const handle = yield* port.open(toPath("a"))
    yield* equal((yield* handle.read(2, 5)).length, 0)
    yield* equal((yield* handle.read(9, 5)).length, 0)
    yield* equal(yield* handle.read(1, 5), encodeUtf8("1"))
  }),
  lawOnPort([], "what is read from an open file is the caller's own", "open", { a: "0123" }, function* (port) {
    const handle = yield* port.open(toPath("a"))
    ;(yield* handle.read(0, 4)).fill(0x78)
    yield* equal(yield* readWhole(handle), encodeUtf8("0123"))
    yield* equal(yield* readWhole(yield* port.open(toPath("a"))), encodeUtf8("0123"))
  }),
  lawOnPort([], "a version that an open file brings along is that of its content", "open", { a: "abc" }, function* (port) {
    const handle = yield* port.open(toPath("a"))
    if (handle.version === undefined) return
    yield* equal(yield* handle.version, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }),
  refuses([], "port open of nothing", "open", exampleTree, (port) => port.open(toPath("none")), "NotFound"),
  refuses([], "port open of a directory", "open", exampleTree, (port) => port.open(toPath("dir")), "NotAFile"),
  refuses([], "port open of the root", "open", exampleTree, (port) => port.open(toPath(".")), "NotAFile"),
  refuses([], "port open below a file", "open", exampleTree, (port) => port.open(toPath("file/x")), [
    "NotFound",
    "NotADirectory"
  ]),
  refuses(links, "port open of a link", "open", linkedTree, (port) => port.open(toPath("tofile")), "NotAFile"),
  ...(
    [
      ["replaced", (port) => writeText(port, "a", "other")],
      ["appended to", (port) => writeText(port, "a", "more", "append")],
      ["removed", (port) => port.remove(toPath("a"))],
      ["renamed", (port) => port.rename(toPath("a"), toPath("b"), { replace: false })],
      ["renamed over", (port) => port.rename(toPath("z"), toPath("a"), { replace: true })]
    ] as ReadonlyArray<readonly [string, (port: Backend) => Effect.Effect<unknown, Fault>]>
  ).map(([what, change]) =>
    lawOnPort(
      changing,
      `an open file stays what it was when its name is ${what}`,
      "open pins",
      { a: "0123456789", z: "zz" },
      function* (port) {
        const handle = yield* port.open(toPath("a"))
        yield* change(port)
        yield* equal(yield* readWhole(handle), encodeUtf8("0123456789"))
      }
    )
  )
]
