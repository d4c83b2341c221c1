import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { equal } from "../expect.ts"
import { link } from "../Files.ts"
import { type Law } from "../Law.ts"
import { at, leaves, linked, on, put, refuses, tree } from "../portChapter.ts"

export const portAbilityLaws: ReadonlyArray<Law> = [
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
    refuses(
      ["links", "write"],
      `port makeLink over ${path}`,
      "links",
      linked,
      (port) => port.links!.make(at(path), "x"),
      "AlreadyExists"
    )
  ),
  refuses(
    ["links", "write"],
    "port makeLink needs a parent",
    "links",
    tree,
    (port) => port.links!.make(at("none/l"), "x"),
    "NotFound"
  ),
  refuses(
    ["links", "write"],
    "port makeLink needs a directory for a parent",
    "links",
    tree,
    (port) => port.links!.make(at("file/l"), "x"),
    "NotADirectory"
  ),
  on(["attributes", "write"], "port attributes are told by stat", "attributes", tree, function* (port) {
    yield* port.attributes!.set(at("file"), { mode: 0o751 })
    yield* equal((yield* port.stat(at("file")))?.mode, 0o751)
  }),
  refuses(
    ["attributes", "write"],
    "port attributes of nothing",
    "attributes",
    tree,
    (port) => port.attributes!.set(at("none"), { mode: 0o600 }),
    "NotFound"
  ),
  on(["attributes", "write"], "port write replace keeps the permission bits", "C-49", tree, function* (port) {
    yield* port.attributes!.set(at("file"), { mode: 0o751 })
    yield* put(port, "file", "new")
    yield* equal((yield* port.stat(at("file")))?.mode, 0o751)
  }),
  on(["watch", "write"], "a watch tells of changes below its directory", "watch", tree, function* (port) {
    const seen = yield* Effect.forkChild(
      Stream.runHead(Stream.filter(port.watch!(at(".")), ({ path }) => path === "dir/watched")),
      {
        startImmediately: true
      }
    )
    const writer = yield* Effect.forkChild(
      Effect.forever(Effect.andThen(put(port, "dir/watched", "x"), Effect.sleep("5 millis")))
    )
    yield* Fiber.join(seen)
    yield* Fiber.interrupt(writer)
  }),
  on(["locks"], "a lock keeps others from the path, and from what is above and below it", "locks", {}, function* (port) {
    const exclusive = port.locks!.exclusive
    for (const other of ["a/b", "a", "a/b/c"]) {
      const release = yield* Deferred.make<void>()
      const order: Array<string> = []
      const first = yield* Effect.forkChild(
        exclusive(
          [at("a/b")],
          Effect.andThen(
            Deferred.await(release),
            Effect.sync(() => void order.push("first"))
          )
        ),
        { startImmediately: true }
      )
      const second = yield* Effect.forkChild(
        exclusive(
          [at(other)],
          Effect.sync(() => void order.push("second"))
        ),
        { startImmediately: true }
      )
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
