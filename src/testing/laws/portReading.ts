import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { Backend, Child, Handle } from "../../port/Backend.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { type Law } from "../Law.ts"
import { utf8 } from "../operations.ts"
import { at, changing, linked, on, put, refuses, tree, wrongKind } from "../portChapter.ts"

const links = ["links"] as const

const whole = (handle: Handle) =>
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
  on([], "the root is an empty directory at first", "root", {}, function* (port) {
    yield* has((yield* port.stat(at("."))) ?? {}, {
      kind: "directory",
      isDirectory: true,
      isFile: false,
      sizeBytes: 0
    } as object)
    yield* equal(yield* port.list(at(".")), [])
  }),
  on([], "port stat tells the kind and the size", "stat", tree, function* (port) {
    yield* has((yield* port.stat(at("file"))) ?? {}, { kind: "file", isFile: true, isDirectory: false, sizeBytes: 4 } as object)
    yield* has((yield* port.stat(at("dir"))) ?? {}, {
      kind: "directory",
      isFile: false,
      isDirectory: true,
      sizeBytes: 0
    } as object)
  }),
  on([], "port stat answers undefined for what is not there", "stat", tree, function* (port) {
    for (const path of ["none", "none/x", "dir/none", "file/x", "file/x/y"]) {
      yield* equal<unknown>(yield* port.stat(at(path)), undefined, path)
    }
  }),
  on(links, "port stat of a link answers the link", "stat", linked, function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) {
      yield* has((yield* port.stat(at(path))) ?? {}, { kind: "symlink", isFile: false, isDirectory: false } as object, path)
    }
  }),
  on(links, "below a link there is nothing for the port", "nothing is followed", linked, function* (port) {
    yield* equal<unknown>(yield* port.stat(at("todir/inner")), undefined)
    yield* fails(port.list(at("todir")), wrongKind)
    yield* fails(port.open(at("todir/inner")), wrongKind)
    yield* fails(port.list(at("todir/x")), wrongKind)
  }),
  on([], "port list answers each entry once, with its kind", "list", { ...tree, "dir/sub/x": "" }, function* (port) {
    const short = (children: ReadonlyArray<Child>) =>
      children.map(({ name, kind, addressable }) => `${name} ${kind} ${addressable}`).sort()
    yield* equal(short(yield* port.list(at("."))), ["dir directory true", "empty directory true", "file file true"])
    yield* equal(short(yield* port.list(at("dir"))), ["inner file true", "sub directory true"])
    yield* equal(yield* port.list(at("empty")), [])
  }),
  on([], "a size in a listing is the file's", "list", { a: "12", b: "" }, function* (port) {
    for (const { name, sizeBytes } of yield* port.list(at("."))) {
      if (sizeBytes !== undefined) yield* equal(sizeBytes, (yield* port.stat(at(name)))?.sizeBytes, name)
    }
  }),
  refuses([], "port list of nothing", "list", tree, (port) => port.list(at("none")), "NotFound"),
  refuses([], "port list of a file", "list", tree, (port) => port.list(at("file")), "NotADirectory"),
  refuses([], "port list below a file", "list", tree, (port) => port.list(at("file/x")), ["NotFound", "NotADirectory"]),
  on([], "the case of names is as the port's info says", "info", { Name: "x" }, function* (port) {
    yield* equal((yield* port.stat(at("nAME"))) === undefined, port.info.caseSensitive)
  }),

  on([], "an open file is read piece by piece", "open", { a: "0123456789" }, function* (port) {
    const handle = yield* port.open(at("a"))
    yield* has(handle.stat, { kind: "file", sizeBytes: 10 })
    const first = yield* handle.read(2, 3)
    yield* holds(first.length > 0 && first.length <= 3, "one to three bytes", first.length)
    yield* equal(first, utf8("234").slice(0, first.length))
    yield* equal(yield* whole(handle), utf8("0123456789"))
  }),
  on([], "a read at the end answers nothing", "open", { a: "01" }, function* (port) {
    const handle = yield* port.open(at("a"))
    yield* equal((yield* handle.read(2, 5)).length, 0)
    yield* equal((yield* handle.read(9, 5)).length, 0)
    yield* equal(yield* handle.read(1, 5), utf8("1"))
  }),
  on([], "what is read from an open file is the caller's own", "open", { a: "0123" }, function* (port) {
    const handle = yield* port.open(at("a"))
    ;(yield* handle.read(0, 4)).fill(0x78)
    yield* equal(yield* whole(handle), utf8("0123"))
    yield* equal(yield* whole(yield* port.open(at("a"))), utf8("0123"))
  }),
  on([], "a version that an open file brings along is that of its content", "open", { a: "abc" }, function* (port) {
    const handle = yield* port.open(at("a"))
    if (handle.version === undefined) return
    yield* equal(yield* handle.version, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }),
  refuses([], "port open of nothing", "open", tree, (port) => port.open(at("none")), "NotFound"),
  refuses([], "port open of a directory", "open", tree, (port) => port.open(at("dir")), "NotAFile"),
  refuses([], "port open of the root", "open", tree, (port) => port.open(at(".")), "NotAFile"),
  refuses([], "port open below a file", "open", tree, (port) => port.open(at("file/x")), ["NotFound", "NotADirectory"]),
  refuses(links, "port open of a link", "open", linked, (port) => port.open(at("tofile")), "NotAFile"),
  ...(
    [
      ["replaced", (port) => put(port, "a", "other")],
      ["appended to", (port) => put(port, "a", "more", "append")],
      ["removed", (port) => port.remove(at("a"))],
      ["renamed", (port) => port.rename(at("a"), at("b"), { replace: false })],
      ["renamed over", (port) => port.rename(at("z"), at("a"), { replace: true })]
    ] as ReadonlyArray<readonly [string, (port: Backend) => Effect.Effect<unknown, Fault>]>
  ).map(([what, change]) =>
    on(
      changing,
      `an open file stays what it was when its name is ${what}`,
      "open pins",
      { a: "0123456789", z: "zz" },
      function* (port) {
        const handle = yield* port.open(at("a"))
        yield* change(port)
        yield* equal(yield* whole(handle), utf8("0123456789"))
      }
    )
  )
]
