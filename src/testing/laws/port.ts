/** What the seven primitives promise, sentence by sentence. Nothing here goes through the service. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, Child, Handle } from "../../port/Backend.ts"
import { arrange, portLaw } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { capture, directory, type Files, link, picture } from "../Files.ts"
import { type Ability, type Law, make } from "../Law.ts"
import { bytes, utf8 } from "../operations.ts"

const at = (path: string): FsPath => path as FsPath

const ref = (what: string): string => `port: ${what}`

const tree: Files = { file: "text", "dir/inner": "x", empty: directory }
const linked: Files = { ...tree, tofile: link("file"), todir: link("dir"), nowhere: link("none") }

/** A program on a port where the tree has been planted. */
const on = (
  needs: ReadonlyArray<Ability>,
  name: string,
  what: string,
  files: Files,
  body: (port: Backend) => Effect.fn.Return<void, unknown, Scope.Scope>
): Law =>
  make({ name, ref: ref(what), kind: "port", needs }, function* (fs, port) {
    yield* arrange(fs, files)
    yield* body(port)
  })

/** A primitive call fails with one of the tags, and the tree is as it was. */
const refuses = (
  needs: ReadonlyArray<Ability>,
  name: string,
  what: string,
  files: Files,
  call: (port: Backend) => Effect.Effect<unknown, Fault, Scope.Scope>,
  tag: Fault["_tag"] | ReadonlyArray<Fault["_tag"]>,
  fields?: { readonly [field: string]: unknown }
): Law =>
  on(needs, name, what, files, function* (port) {
    yield* fails(call(port), tag, fields)
    yield* equal(yield* capture(port), picture(files), "the tree afterwards")
  })

const leaves = (port: Backend, files: Files) => Effect.flatMap(capture(port), (found) => equal(found, picture(files), "the tree afterwards"))

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

const writing = ["write"] as const
const links = ["links"] as const
const changing = ["write", "delete"] as const

const put = (port: Backend, path: string, content: string, mode: "create" | "replace" | "append" = "replace") =>
  port.write<never, never>(at(path), utf8(content), mode)

const broken = Stream.concat(Stream.make(utf8("new")), Stream.fail({ _tag: "Cable" } as const))

const wrongKind = ["NotFound", "NotADirectory", "NotAFile"] as const

const looking: ReadonlyArray<Law> = [
  portLaw([])("the root is an empty directory at first", ref("root"), function* (port) {
    yield* has((yield* port.stat(at("."))) ?? {}, { kind: "directory", isDirectory: true, isFile: false, sizeBytes: 0 } as object)
    yield* equal(yield* port.list(at(".")), [])
  }),
  on([], "port stat tells the kind and the size", "stat", tree, function* (port) {
    yield* has((yield* port.stat(at("file"))) ?? {}, { kind: "file", isFile: true, isDirectory: false, sizeBytes: 4 } as object)
    yield* has((yield* port.stat(at("dir"))) ?? {}, { kind: "directory", isFile: false, isDirectory: true, sizeBytes: 0 } as object)
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
    const short = (children: ReadonlyArray<Child>) => children.map(({ name, kind, addressable }) => `${name} ${kind} ${addressable}`).sort()
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
    on(changing, `an open file stays what it was when its name is ${what}`, "open pins", { a: "0123456789", z: "zz" }, function* (port) {
      const handle = yield* port.open(at("a"))
      yield* change(port)
      yield* equal(yield* whole(handle), utf8("0123456789"))
    })
  )
]

const modes = ["create", "replace", "append"] as const

const writes: ReadonlyArray<Law> = [
  ...modes.flatMap((mode) => [
    on(writing, `port write ${mode} makes the file where nothing is`, "write", {}, function* (port) {
      yield* has(yield* put(port, "a", "new", mode), { kind: "file", sizeBytes: 3 })
      yield* leaves(port, { a: "new" })
    }),
    on(writing, `port write ${mode} takes a stream`, "write", {}, function* (port) {
      yield* port.write(at("a"), Stream.make(utf8("one"), bytes(), utf8("two")), mode)
      yield* leaves(port, { a: "onetwo" })
    }),
    refuses(writing, `port write ${mode} needs a parent`, "missing parent", tree, (port) => put(port, "none/a", "x", mode), "NotFound"),
    refuses(writing, `port write ${mode} needs a directory for a parent`, "missing parent", tree, (port) => put(port, "file/a", "x", mode), "NotADirectory"),
    refuses(["write", "links"], `port write ${mode} follows no link on its way`, "nothing is followed", linked, (port) => put(port, "todir/a", "x", mode), wrongKind),
    on(writing, `port write ${mode} of a stream that fails leaves nothing`, "write", tree, function* (port) {
      yield* fails(port.write(at("new"), broken, mode), "Cable")
      yield* leaves(port, tree)
    }),
    on(writing, `port write ${mode} of a stream that is interrupted leaves nothing`, "write", tree, function* (port) {
      const begun = yield* Deferred.make<void>()
      const slow = Stream.concat(Stream.make(utf8("new")), Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)))
      const fiber = yield* Effect.forkChild(port.write(at("new"), slow, mode))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      yield* leaves(port, tree)
    }),
    on(writing, `port write ${mode} publishes inside commit`, "commit", {}, function* (port) {
      yield* port.write<never, never>(at("a"), utf8("new"), mode, {
        commit: (publish) =>
          Effect.gen(function* () {
            const early = yield* Effect.orDie(capture(port))
            const done = yield* publish
            if ("a" in early) return yield* Effect.fail<Fault>({ _tag: "IoError", detail: "it was published before commit" })
            return done
          })
      })
      yield* leaves(port, { a: "new" })
    }),
    on(writing, `port write ${mode} changes nothing when commit refuses`, "commit", tree, function* (port) {
      const refused: Fault = { _tag: "Conflict", expected: "x" }
      yield* fails(port.write<never, never>(at("new"), utf8("x"), mode, { commit: () => Effect.fail(refused) }), "Conflict")
      yield* leaves(port, tree)
    })
  ]),
  ...["file", "dir", "empty", "."].map((path) =>
    refuses(writing, `port write create on ${path}`, "create never overwrites", tree, (port) => put(port, path, "x", "create"), "AlreadyExists")
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    refuses(["write", "links"], `port write create on the link ${path}`, "create never overwrites", linked, (port) => put(port, path, "x", "create"), "AlreadyExists")
  ),
  ...(["replace", "append"] as const).flatMap((mode) => [
    ...["dir", "empty", "."].map((path) =>
      refuses(writing, `port write ${mode} on ${path}`, "write", tree, (port) => put(port, path, "x", mode), "NotAFile")
    ),
    ...["tofile", "todir", "nowhere"].map((path) =>
      refuses(["write", "links"], `port write ${mode} on the link ${path}`, "write", linked, (port) => put(port, path, "x", mode), "NotAFile")
    ),
    on(writing, `port write ${mode} of a stream that fails keeps the old bytes`, "write", tree, function* (port) {
      yield* fails(port.write(at("file"), broken, mode), "Cable")
      yield* leaves(port, tree)
    }),
    on(writing, `port write ${mode} on a file changes nothing when commit refuses`, "commit", tree, function* (port) {
      const refused: Fault = { _tag: "Conflict", expected: "x" }
      yield* fails(port.write<never, never>(at("file"), utf8("x"), mode, { commit: () => Effect.fail(refused) }), "Conflict")
      yield* leaves(port, tree)
    })
  ]),
  on(writing, "port write replace replaces", "write", tree, function* (port) {
    yield* has(yield* put(port, "file", "n"), { sizeBytes: 1 })
    yield* leaves(port, { ...tree, file: "n" })
  }),
  on(writing, "port write append adds to the end", "write", tree, function* (port) {
    yield* has(yield* put(port, "file", "+", "append"), { sizeBytes: 5 })
    yield* leaves(port, { ...tree, file: "text+" })
  }),
  on(writing, "port write create does not overwrite what comes before it publishes", "create never overwrites", {}, function* (port) {
    const overtaken = port.write<never, never>(at("a"), utf8("mine"), "create", {
      commit: (publish) => Effect.andThen(put(port, "a", "theirs"), publish)
    })
    yield* fails(overtaken, "AlreadyExists")
    yield* leaves(port, { a: "theirs" })
  }),
  on(writing, "port write replace does not replace a directory that comes before it publishes", "write", {}, function* (port) {
    const overtaken = port.write<never, never>(at("a"), utf8("mine"), "replace", {
      commit: (publish) => Effect.andThen(port.makeDirectory(at("a")), publish)
    })
    yield* fails(overtaken, "NotAFile")
    yield* leaves(port, { a: directory })
  }),
  on(writing, "port write keeps bytes of its own", "write", {}, function* (port) {
    const content = utf8("mine")
    yield* port.write<never, never>(at("a"), content, "create")
    content.fill(0x78)
    yield* leaves(port, { a: "mine" })
  })
]

const names: ReadonlyArray<Law> = [
  on(writing, "port makeDirectory makes one directory", "makeDirectory", tree, function* (port) {
    yield* port.makeDirectory(at("dir/new"))
    yield* leaves(port, { ...tree, "dir/new": directory })
  }),
  ...["file", "dir", "empty", "."].map((path) =>
    refuses(writing, `port makeDirectory over ${path}`, "makeDirectory", tree, (port) => port.makeDirectory(at(path)), "AlreadyExists")
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    refuses(["write", "links"], `port makeDirectory over the link ${path}`, "makeDirectory", linked, (port) => port.makeDirectory(at(path)), "AlreadyExists")
  ),
  refuses(writing, "port makeDirectory needs a parent", "missing parent", tree, (port) => port.makeDirectory(at("none/d")), "NotFound"),
  refuses(writing, "port makeDirectory needs a directory for a parent", "missing parent", tree, (port) => port.makeDirectory(at("file/d")), "NotADirectory"),

  on(["delete"], "port remove removes a file", "remove", tree, function* (port) {
    yield* port.remove(at("file"))
    yield* leaves(port, { "dir/inner": "x", empty: directory })
  }),
  on(["delete"], "port remove removes an empty directory", "remove", tree, function* (port) {
    yield* port.remove(at("empty"))
    yield* leaves(port, { "dir/inner": "x", file: "text" })
  }),
  on(["delete", "links"], "port remove removes a link, not what it leads to", "remove", linked, function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) yield* port.remove(at(path))
    yield* leaves(port, tree)
  }),
  refuses(["delete"], "port remove of a directory with content", "remove", tree, (port) => port.remove(at("dir")), "DirectoryNotEmpty"),
  refuses(["delete"], "port remove of nothing", "remove", tree, (port) => port.remove(at("none")), "NotFound"),
  refuses(["delete"], "port remove below a file", "remove", tree, (port) => port.remove(at("file/x")), ["NotFound", "NotADirectory"]),
  refuses(["delete"], "port remove of the root", "root", {}, (port) => port.remove(at(".")), "AccessDenied", { why: "root" }),
  refuses(["delete"], "port remove of the root with content", "root", tree, (port) => port.remove(at(".")), "AccessDenied", { why: "root" }),

  on(changing, "port rename gives a file another name", "rename", tree, function* (port) {
    yield* port.rename(at("file"), at("moved"), { replace: false })
    yield* leaves(port, { "dir/inner": "x", empty: directory, moved: "text" })
  }),
  on(changing, "port rename gives a whole tree another name", "rename", tree, function* (port) {
    yield* port.rename(at("dir"), at("moved"), { replace: false })
    yield* leaves(port, { "moved/inner": "x", empty: directory, file: "text" })
  }),
  on(changing, "port rename moves to another directory, or says that only copying would do", "rename", tree, function* (port) {
    const moved = yield* Effect.result(port.rename(at("dir"), at("empty/moved"), { replace: false }))
    if (moved._tag === "Success") return yield* leaves(port, { "empty/moved/inner": "x", file: "text" })
    yield* has(moved.failure as object, { _tag: "IoError", code: "EXDEV" } as object)
    yield* leaves(port, tree)
  }),
  on(["write", "delete", "links"], "port rename moves a link, not what it leads to", "rename", linked, function* (port) {
    yield* port.rename(at("todir"), at("moved"), { replace: false })
    const { todir: _, ...rest } = linked
    yield* leaves(port, { ...rest, moved: link("dir") })
  }),
  ...["file", "dir", "empty"].flatMap((from) =>
    ["file", "dir", "empty"]
      .filter((to) => to !== from)
      .map((to) =>
        refuses(changing, `port rename of ${from} to ${to} without replace`, "rename", tree, (port) => port.rename(at(from), at(to), { replace: false }), "AlreadyExists")
      )
  ),
  refuses(["write", "delete", "links"], "port rename to a link without replace", "rename", linked, (port) => port.rename(at("file"), at("nowhere"), { replace: false }), "AlreadyExists"),
  on(changing, "port rename replaces a file", "rename", { ...tree, other: "old" }, function* (port) {
    yield* port.rename(at("file"), at("other"), { replace: true })
    yield* leaves(port, { "dir/inner": "x", empty: directory, other: "text" })
  }),
  on(changing, "port rename replaces an empty directory", "rename", tree, function* (port) {
    yield* port.rename(at("dir"), at("empty"), { replace: true })
    yield* leaves(port, { "empty/inner": "x", file: "text" })
  }),
  on(["write", "delete", "links"], "port rename replaces a link, not what it leads to", "rename", linked, function* (port) {
    yield* port.rename(at("tofile"), at("todir"), { replace: true })
    const { tofile: _, ...rest } = linked
    yield* leaves(port, { ...rest, todir: link("file") })
  }),
  on(changing, "port rename with replace moves where nothing is", "rename", tree, function* (port) {
    yield* port.rename(at("file"), at("new"), { replace: true })
    yield* leaves(port, { "dir/inner": "x", empty: directory, new: "text" })
  }),
  refuses(changing, "port rename over a directory with content", "rename", tree, (port) => port.rename(at("empty"), at("dir"), { replace: true }), "DirectoryNotEmpty"),
  refuses(changing, "port rename of a file over an empty directory", "wrong kind", tree, (port) => port.rename(at("file"), at("empty"), { replace: true }), "NotAFile"),
  refuses(changing, "port rename of a directory over a file", "wrong kind", tree, (port) => port.rename(at("empty"), at("file"), { replace: true }), "NotADirectory"),
  refuses(changing, "port rename of nothing", "rename", tree, (port) => port.rename(at("none"), at("new"), { replace: false }), "NotFound"),
  refuses(changing, "port rename of nothing with replace", "rename", tree, (port) => port.rename(at("none"), at("file"), { replace: true }), "NotFound"),
  refuses(changing, "port rename needs a parent", "missing parent", tree, (port) => port.rename(at("file"), at("none/x"), { replace: false }), "NotFound"),
  refuses(changing, "port rename needs a directory for a parent", "missing parent", tree, (port) => port.rename(at("empty"), at("file/x"), { replace: false }), "NotADirectory"),
  refuses(changing, "port rename of the root", "root", tree, (port) => port.rename(at("."), at("new"), { replace: false }), "AccessDenied", { why: "root" })
]

const optional: ReadonlyArray<Law> = [
  on(["links"], "port readLink answers the text of a link", "links", linked, function* (port) {
    yield* equal(yield* port.links!.read(at("todir")), "dir")
    yield* equal(yield* port.links!.read(at("nowhere")), "none")
  }),
  refuses(["links"], "port readLink of a file", "links", linked, (port) => port.links!.read(at("file")), "InvalidArgument"),
  refuses(["links"], "port readLink of nothing", "links", linked, (port) => port.links!.read(at("missing")), "NotFound"),
  on(["links", "write"], "port makeLink keeps the text as it is", "links", tree, function* (port) {
    yield* port.links!.make(at("dir/l"), ".././dir//inner")
    yield* leaves(port, { ...tree, "dir/l": link(".././dir//inner") })
  }),
  ...["file", "dir", "tofile", "nowhere"].map((path) =>
    refuses(["links", "write"], `port makeLink over ${path}`, "links", linked, (port) => port.links!.make(at(path), "x"), "AlreadyExists")
  ),
  refuses(["links", "write"], "port makeLink needs a parent", "links", tree, (port) => port.links!.make(at("none/l"), "x"), "NotFound"),
  refuses(["links", "write"], "port makeLink needs a directory for a parent", "links", tree, (port) => port.links!.make(at("file/l"), "x"), "NotADirectory"),
  on(["attributes", "write"], "port attributes are told by stat", "attributes", tree, function* (port) {
    yield* port.attributes!.set(at("file"), { mode: 0o751 })
    yield* equal((yield* port.stat(at("file")))?.mode, 0o751)
  }),
  refuses(["attributes", "write"], "port attributes of nothing", "attributes", tree, (port) => port.attributes!.set(at("none"), { mode: 0o600 }), "NotFound"),
  on(["attributes", "write"], "port write replace keeps the permission bits", "C-49", tree, function* (port) {
    yield* port.attributes!.set(at("file"), { mode: 0o751 })
    yield* put(port, "file", "new")
    yield* equal((yield* port.stat(at("file")))?.mode, 0o751)
  }),
  on(["watch", "write"], "a watch tells of changes below its directory", "watch", tree, function* (port) {
    const seen = yield* Effect.forkChild(Stream.runHead(Stream.filter(port.watch!(at(".")), ({ path }) => path === "dir/watched")), {
      startImmediately: true
    })
    const writer = yield* Effect.forkChild(Effect.forever(Effect.andThen(put(port, "dir/watched", "x"), Effect.sleep("5 millis"))))
    yield* Fiber.join(seen)
    yield* Fiber.interrupt(writer)
  }),
  on(["locks"], "a lock keeps others from the path, and from what is above and below it", "locks", {}, function* (port) {
    const exclusive = port.locks!.exclusive
    for (const other of ["a/b", "a", "a/b/c"]) {
      const release = yield* Deferred.make<void>()
      const order: Array<string> = []
      const first = yield* Effect.forkChild(
        exclusive([at("a/b")], Effect.andThen(Deferred.await(release), Effect.sync(() => void order.push("first")))),
        { startImmediately: true }
      )
      const second = yield* Effect.forkChild(exclusive([at(other)], Effect.sync(() => void order.push("second"))), { startImmediately: true })
      for (let i = 0; i < 10; i++) yield* Effect.yieldNow
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      yield* equal(order, ["first", "second"], other)
    }
  }),
  on(["locks"], "a lock keeps nobody from other paths", "locks", {}, function* (port) {
    const exclusive = port.locks!.exclusive
    for (const other of ["b", "a2", "a/c"]) {
      yield* exclusive([at("a/b")], exclusive([at(other)], Effect.void))
    }
  })
]

export const portLaws: ReadonlyArray<Law> = [...looking, ...writes, ...names, ...optional]
