import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import { fails, has } from "../expect.ts"
import { capture, directory } from "../Files.ts"
import { type Law, unnoted } from "../Law.ts"
import { encodeUtf8, streamThen, toBytes } from "../operations.ts"
import { exampleTree, expectPortTree, linkedTree, portForms, toPath, writeText, wrongKindTags } from "../portChapter.ts"

const writing = portForms("write")
const linking = portForms("links", "write")

const failingStream = Stream.concat(Stream.make(encodeUtf8("new")), Stream.fail({ _tag: "Cable" } as const))

const modes = ["create", "replace", "append"] as const

const writes = writing("write", exampleTree)

export const portWritingLaws: ReadonlyArray<Law> = [
  ...modes.flatMap((mode) => [
    writing("write").law(`port write ${mode} creates a missing file`, function* (port) {
      yield* has(yield* writeText(port, "a", "new", mode), { kind: "file", sizeBytes: 3 })
      yield* expectPortTree(port, { a: "new" })
    }),
    writing("write").law(`port write ${mode} accepts a stream`, function* (port) {
      yield* port.write(toPath("a"), Stream.make(encodeUtf8("one"), toBytes(), encodeUtf8("two")), mode)
      yield* expectPortTree(port, { a: "onetwo" })
    }),
    writing("missing parent", exampleTree).refuses(
      `port write ${mode} without a parent`,
      (port) => writeText(port, "none/a", "x", mode),
      "NotFound"
    ),
    writing("missing parent", exampleTree).refuses(
      `port write ${mode} below a file`,
      (port) => writeText(port, "file/a", "x", mode),
      "NotADirectory"
    ),
    linking("nothing is followed", linkedTree).refuses(
      `port write ${mode} through a link`,
      (port) => writeText(port, "todir/a", "x", mode),
      wrongKindTags
    ),
    writes.law(`port write ${mode} of a failing stream leaves no file`, function* (port) {
      yield* fails(port.write(toPath("new"), failingStream, mode), "Cable")
      yield* expectPortTree(port, exampleTree)
    }),
    writes.law(`port write ${mode} leaves no file if it is interrupted`, function* (port) {
      const begun = yield* Deferred.make<void>()
      const slow = streamThen("new", Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(port.write(toPath("new"), slow, mode))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      yield* expectPortTree(port, exampleTree)
    }),
    writing("commit").law(`port write ${mode} shows no new file before commit publishes the file`, function* (port) {
      yield* port.write<never, never>(toPath("a"), encodeUtf8("new"), mode, {
        commit: (publish) =>
          Effect.gen(function* () {
            const early = yield* Effect.orDie(capture(unnoted(port)))
            const done = yield* publish
            if ("a" in early)
              return yield* Effect.fail<Fault>({ _tag: "IoError", detail: "the file was visible before commit published it" })
            return done
          })
      })
      yield* expectPortTree(port, { a: "new" })
    }),
    writing("commit", exampleTree).law(`port write ${mode} of a new file changes nothing if commit fails`, function* (port) {
      const refused: Fault = { _tag: "Conflict", expected: "x" }
      yield* fails(
        port.write<never, never>(toPath("new"), encodeUtf8("x"), mode, { commit: () => Effect.fail(refused) }),
        "Conflict"
      )
      yield* expectPortTree(port, exampleTree)
    })
  ]),
  ...["file", "dir", "empty", "."].map((path) =>
    writing("create never overwrites", exampleTree).refuses(
      `port write create on ${path}`,
      (port) => writeText(port, path, "x", "create"),
      "AlreadyExists"
    )
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    linking("create never overwrites", linkedTree).refuses(
      `port write create on the link ${path}`,
      (port) => writeText(port, path, "x", "create"),
      "AlreadyExists"
    )
  ),
  ...(["replace", "append"] as const).flatMap((mode) => [
    ...["dir", "empty", "."].map((path) =>
      writes.refuses(`port write ${mode} on ${path}`, (port) => writeText(port, path, "x", mode), "NotAFile")
    ),
    ...["tofile", "todir", "nowhere"].map((path) =>
      linking("write", linkedTree).refuses(
        `port write ${mode} on the link ${path}`,
        (port) => writeText(port, path, "x", mode),
        "NotAFile"
      )
    ),
    writes.law(`port write ${mode} of a failing stream keeps the old bytes`, function* (port) {
      yield* fails(port.write(toPath("file"), failingStream, mode), "Cable")
      yield* expectPortTree(port, exampleTree)
    }),
    writing("commit", exampleTree).law(
      `port write ${mode} of an existing file changes nothing if commit fails`,
      function* (port) {
        const refused: Fault = { _tag: "Conflict", expected: "x" }
        yield* fails(
          port.write<never, never>(toPath("file"), encodeUtf8("x"), mode, { commit: () => Effect.fail(refused) }),
          "Conflict"
        )
        yield* expectPortTree(port, exampleTree)
      }
    )
  ]),
  writes.law("port write replace replaces the content of a file", function* (port) {
    yield* has(yield* writeText(port, "file", "n"), { sizeBytes: 1 })
    yield* expectPortTree(port, { ...exampleTree, file: "n" })
  }),
  writes.law("port write append adds bytes at the end of a file", function* (port) {
    yield* has(yield* writeText(port, "file", "+", "append"), { sizeBytes: 5 })
    yield* expectPortTree(port, { ...exampleTree, file: "text+" })
  }),
  writing("create never overwrites").law(
    "port write create does not overwrite a file that appears during the write",
    function* (port) {
      const overtakenWrite = port.write<never, never>(toPath("a"), encodeUtf8("mine"), "create", {
        commit: (publish) => Effect.andThen(writeText(port, "a", "theirs"), publish)
      })
      yield* fails(overtakenWrite, "AlreadyExists")
      yield* expectPortTree(port, { a: "theirs" })
    }
  ),
  writing("write").law("port write replace does not replace a directory that appears during the write", function* (port) {
    const overtakenWrite = port.write<never, never>(toPath("a"), encodeUtf8("mine"), "replace", {
      commit: (publish) => Effect.andThen(port.makeDirectory(toPath("a")), publish)
    })
    yield* fails(overtakenWrite, "NotAFile")
    yield* expectPortTree(port, { a: directory })
  }),
  writing("write").law("changing the array after a port write does not change the file", function* (port) {
    const content = encodeUtf8("mine")
    yield* port.write<never, never>(toPath("a"), content, "create")
    content.fill(0x78)
    yield* expectPortTree(port, { a: "mine" })
  })
]
