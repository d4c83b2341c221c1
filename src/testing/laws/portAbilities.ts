import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { equal } from "../expect.ts"
import { link } from "../Files.ts"
import { type Law } from "../Law.ts"
import { exampleTree, expectPortTree, linkedTree, portForms, toPath, writeText } from "../portChapter.ts"

const linked = portForms("links")
const linking = portForms("links", "write")
const attributes = portForms("attributes", "write")
const watching = portForms("watch", "write")
const locking = portForms("locks")

const newLinks = linking("links", exampleTree)

const linkTexts = linked("links", linkedTree)

export const portAbilityLaws: ReadonlyArray<Law> = [
  linkTexts.law("port readLink returns the target of a link", function* (port) {
    yield* equal(yield* port.links!.read(toPath("todir")), "dir")
    yield* equal(yield* port.links!.read(toPath("nowhere")), "none")
  }),
  linkTexts.refuses("port readLink of a file", (port) => port.links!.read(toPath("file")), "InvalidArgument"),
  linkTexts.refuses("port readLink of a missing path", (port) => port.links!.read(toPath("missing")), "NotFound"),
  newLinks.law("port makeLink stores the target unchanged", function* (port) {
    yield* port.links!.make(toPath("dir/l"), ".././dir//inner")
    yield* expectPortTree(port, { ...exampleTree, "dir/l": link(".././dir//inner") })
  }),
  ...["file", "dir", "tofile", "nowhere"].map((path) =>
    linking("links", linkedTree).refuses(
      `port makeLink over ${path}`,
      (port) => port.links!.make(toPath(path), "x"),
      "AlreadyExists"
    )
  ),
  newLinks.refuses("port makeLink without a parent", (port) => port.links!.make(toPath("none/l"), "x"), "NotFound"),
  newLinks.refuses("port makeLink below a file", (port) => port.links!.make(toPath("file/l"), "x"), "NotADirectory"),
  attributes("attributes", exampleTree).law("port stat reports the mode that was set", function* (port) {
    yield* port.attributes!.set(toPath("file"), { mode: 0o751 })
    yield* equal((yield* port.stat(toPath("file")))?.mode, 0o751)
  }),
  attributes("attributes", exampleTree).refuses(
    "port setAttributes of a missing path",
    (port) => port.attributes!.set(toPath("none"), { mode: 0o600 }),
    "NotFound"
  ),
  attributes("C-49", exampleTree).law("port write replace keeps the permission bits", function* (port) {
    yield* port.attributes!.set(toPath("file"), { mode: 0o751 })
    yield* writeText(port, "file", "new")
    yield* equal((yield* port.stat(toPath("file")))?.mode, 0o751)
  }),
  watching("watch", exampleTree).law("a watch reports changes below its directory", function* (port) {
    const seen = yield* Effect.forkChild(
      Stream.runHead(Stream.filter(port.watch!(toPath(".")), ({ path }) => path === "dir/watched")),
      { startImmediately: true }
    )
    const writer = yield* Effect.forkChild(
      Effect.forever(Effect.andThen(writeText(port, "dir/watched", "x"), Effect.sleep("5 millis")))
    )
    yield* Fiber.join(seen)
    yield* Fiber.interrupt(writer)
  }),
  locking("locks").law(
    "a lock of a path blocks other callers on the path, its ancestors and its descendants",
    function* (port) {
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
    }
  ),
  locking("locks").law("a lock of a path does not block callers on other paths", function* (port) {
    const exclusive = port.locks!.exclusive
    for (const other of ["b", "a2", "a/c"]) {
      yield* exclusive([toPath("a/b")], exclusive([toPath(other)], Effect.void))
    }
  })
]
