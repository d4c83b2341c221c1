import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { equal } from "../expect.ts"
import { link } from "../Files.ts"
import { type Law } from "../Law.ts"
import { toPath, expectPortTree, linkedTree, lawOnPort, writeText, refuses, exampleTree } from "../portChapter.ts"

export const portAbilityLaws: ReadonlyArray<Law> = [
  lawOnPort(["links"], "port readLink answers the text of a link", "links", linkedTree, function* (port) {
    yield* equal(yield* port.links!.read(toPath("todir")), "dir")
    yield* equal(yield* port.links!.read(toPath("nowhere")), "none")
  }),
  refuses(
    ["links"],
    "port readLink of a file",
    "links",
    linkedTree,
    (port) => port.links!.read(toPath("file")),
    "InvalidArgument"
  ),
  refuses(
    ["links"],
    "port readLink of nothing",
    "links",
    linkedTree,
    (port) => port.links!.read(toPath("missing")),
    "NotFound"
  ),
  lawOnPort(["links", "write"], "port makeLink keeps the text as it is", "links", exampleTree, function* (port) {
    yield* port.links!.make(toPath("dir/l"), ".././dir//inner")
    yield* expectPortTree(port, { ...exampleTree, "dir/l": link(".././dir//inner") })
  }),
  ...["file", "dir", "tofile", "nowhere"].map((path) =>
    refuses(
      ["links", "write"],
      `port makeLink over ${path}`,
      "links",
      linkedTree,
      (port) => port.links!.make(toPath(path), "x"),
      "AlreadyExists"
    )
  ),
  refuses(
    ["links", "write"],
    "port makeLink needs a parent",
    "links",
    exampleTree,
    (port) => port.links!.make(toPath("none/l"), "x"),
    "NotFound"
  ),
  refuses(
    ["links", "write"],
    "port makeLink needs a directory for a parent",
    "links",
    exampleTree,
    (port) => port.links!.make(toPath("file/l"), "x"),
    "NotADirectory"
  ),
  lawOnPort(["attributes", "write"], "port attributes are told by stat", "attributes", exampleTree, function* (port) {
    yield* port.attributes!.set(toPath("file"), { mode: 0o751 })
    yield* equal((yield* port.stat(toPath("file")))?.mode, 0o751)
  }),
  refuses(
    ["attributes", "write"],
    "port attributes of nothing",
    "attributes",
    exampleTree,
    (port) => port.attributes!.set(toPath("none"), { mode: 0o600 }),
    "NotFound"
  ),
  lawOnPort(["attributes", "write"], "port write replace keeps the permission bits", "C-49", exampleTree, function* (port) {
    yield* port.attributes!.set(toPath("file"), { mode: 0o751 })
    yield* writeText(port, "file", "new")
    yield* equal((yield* port.stat(toPath("file")))?.mode, 0o751)
  }),
  lawOnPort(["watch", "write"], "a watch tells of changes below its directory", "watch", exampleTree, function* (port) {
    const seen = yield* Effect.forkChild(
      Stream.runHead(Stream.filter(port.watch!(toPath(".")), ({ path }) => path === "dir/watched")),
      {
        startImmediately: true
      }
    )
    const writer = yield* Effect.forkChild(
      Effect.forever(Effect.andThen(writeText(port, "dir/watched", "x"), Effect.sleep("5 millis")))
    )
    yield* Fiber.join(seen)
    yield* Fiber.interrupt(writer)
  }),
  lawOnPort(["locks"], "a lock keeps others from the path, and from what is above and below it", "locks", {}, function* (port) {
    const exclusive = port.locks!.exclusive
    for (const other of ["a/b", "a", "a/b/c"]) {
      const release = yield* Deferred.make<void>()
      const order: Array<string> = []
      const first = yield* Effect.forkChild(
        exclusive(
          [toPath("a/b")],
          Effect.andThen(
            Deferred.await(release),
            Effect.sync(() => void order.push("first"))
          )
        ),
        { startImmediately: true }
      )
      const second = yield* Effect.forkChild(
        exclusive(
          [toPath(other)],
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
  lawOnPort(["locks"], "a lock keeps nobody from other paths", "locks", {}, function* (port) {
    const exclusive = port.locks!.exclusive
    for (const other of ["b", "a2", "a/c"]) {
      yield* exclusive([toPath("a/b")], exclusive([toPath(other)], Effect.void))
    }
  })
]
