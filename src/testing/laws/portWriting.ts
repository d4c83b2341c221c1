import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import { fails, has } from "../expect.ts"
import { capture, directory } from "../Files.ts"
import { type Law, unnoted } from "../Law.ts"
import { toBytes, encodeUtf8 } from "../operations.ts"
import {
  toPath,
  expectPortTree,
  linkedTree,
  lawOnPort,
  writeText,
  refuses,
  exampleTree,
  wrongKindTags,
  writing
} from "../portChapter.ts"

const failingStream = Stream.concat(Stream.make(encodeUtf8("new")), Stream.fail({ _tag: "Cable" } as const))

const modes = ["create", "replace", "append"] as const

export const portWritingLaws: ReadonlyArray<Law> = [
  ...modes.flatMap((mode) => [
    lawOnPort(writing, `port write ${mode} makes the file where nothing is`, "write", {}, function* (port) {
      yield* has(yield* writeText(port, "a", "new", mode), { kind: "file", sizeBytes: 3 })
      yield* expectPortTree(port, { a: "new" })
    }),
    lawOnPort(writing, `port write ${mode} takes a stream`, "write", {}, function* (port) {
      yield* port.write(toPath("a"), Stream.make(encodeUtf8("one"), toBytes(), encodeUtf8("two")), mode)
      yield* expectPortTree(port, { a: "onetwo" })
    }),
    refuses(
      writing,
      `port write ${mode} needs a parent`,
      "missing parent",
      exampleTree,
      (port) => writeText(port, "none/a", "x", mode),
      "NotFound"
    ),
    refuses(
      writing,
      `port write ${mode} needs a directory for a parent`,
      "missing parent",
      exampleTree,
      (port) => writeText(port, "file/a", "x", mode),
      "NotADirectory"
    ),
    refuses(
      ["write", "links"],
      `port write ${mode} follows no link on its way`,
      "nothing is followed",
      linkedTree,
      (port) => writeText(port, "todir/a", "x", mode),
      wrongKindTags
    ),
    lawOnPort(writing, `port write ${mode} of a stream that fails leaves nothing`, "write", exampleTree, function* (port) {
      yield* fails(port.write(toPath("new"), failingStream, mode), "Cable")
      yield* expectPortTree(port, exampleTree)
    }),
    lawOnPort(
      writing,
      `port write ${mode} of a stream that is interrupted leaves nothing`,
      "write",
      exampleTree,
      function* (port) {
        const begun = yield* Deferred.make<void>()
        const slow = Stream.concat(
          Stream.make(encodeUtf8("new")),
          Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
        )
        const fiber = yield* Effect.forkChild(port.write(toPath("new"), slow, mode))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        yield* expectPortTree(port, exampleTree)
      }
    ),
    lawOnPort(writing, `port write ${mode} publishes inside commit`, "commit", {}, function* (port) {
      yield* port.write<never, never>(toPath("a"), encodeUtf8("new"), mode, {
        commit: (publish) =>
          Effect.gen(function* () {
            const early = yield* Effect.orDie(capture(unnoted(port)))
            const done = yield* publish
            if ("a" in early) return yield* Effect.fail<Fault>({ _tag: "IoError", detail: "it was published before commit" })
            return done
          })
      })
      yield* expectPortTree(port, { a: "new" })
    }),
    lawOnPort(writing, `port write ${mode} changes nothing when commit refuses`, "commit", exampleTree, function* (port) {
      const refused: Fault = { _tag: "Conflict", expected: "x" }
      yield* fails(
        port.write<never, never>(toPath("new"), encodeUtf8("x"), mode, { commit: () => Effect.fail(refused) }),
        "Conflict"
      )
      yield* expectPortTree(port, exampleTree)
    })
  ]),
  ...["file", "dir", "empty", "."].map((path) =>
    refuses(
      writing,
      `port write create on ${path}`,
      "create never overwrites",
      exampleTree,
      (port) => writeText(port, path, "x", "create"),
      "AlreadyExists"
    )
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    refuses(
      ["write", "links"],
      `port write create on the link ${path}`,
      "create never overwrites",
      linkedTree,
      (port) => writeText(port, path, "x", "create"),
      "AlreadyExists"
    )
  ),
  ...(["replace", "append"] as const).flatMap((mode) => [
    ...["dir", "empty", "."].map((path) =>
      refuses(
        writing,
        `port write ${mode} on ${path}`,
        "write",
        exampleTree,
        (port) => writeText(port, path, "x", mode),
        "NotAFile"
      )
    ),
    ...["tofile", "todir", "nowhere"].map((path) =>
      refuses(
        ["write", "links"],
        `port write ${mode} on the link ${path}`,
        "write",
        linkedTree,
        (port) => writeText(port, path, "x", mode),
        "NotAFile"
      )
    ),
    lawOnPort(writing, `port write ${mode} of a stream that fails keeps the old bytes`, "write", exampleTree, function* (port) {
      yield* fails(port.write(toPath("file"), failingStream, mode), "Cable")
      yield* expectPortTree(port, exampleTree)
    }),
    lawOnPort(
      writing,
      `port write ${mode} on a file changes nothing when commit refuses`,
      "commit",
      exampleTree,
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
  lawOnPort(writing, "port write replace replaces", "write", exampleTree, function* (port) {
    yield* has(yield* writeText(port, "file", "n"), { sizeBytes: 1 })
    yield* expectPortTree(port, { ...exampleTree, file: "n" })
  }),
  lawOnPort(writing, "port write append adds to the end", "write", exampleTree, function* (port) {
    yield* has(yield* writeText(port, "file", "+", "append"), { sizeBytes: 5 })
    yield* expectPortTree(port, { ...exampleTree, file: "text+" })
  }),
  lawOnPort(
    writing,
    "port write create does not overwrite what comes before it publishes",
    "create never overwrites",
    {},
    function* (port) {
      const overtakenWrite = port.write<never, never>(toPath("a"), encodeUtf8("mine"), "create", {
        commit: (publish) => Effect.andThen(writeText(port, "a", "theirs"), publish)
      })
      yield* fails(overtakenWrite, "AlreadyExists")
      yield* expectPortTree(port, { a: "theirs" })
    }
  ),
  lawOnPort(
    writing,
    "port write replace does not replace a directory that comes before it publishes",
    "write",
    {},
    function* (port) {
      const overtakenWrite = port.write<never, never>(toPath("a"), encodeUtf8("mine"), "replace", {
        commit: (publish) => Effect.andThen(port.makeDirectory(toPath("a")), publish)
      })
      yield* fails(overtakenWrite, "NotAFile")
      yield* expectPortTree(port, { a: directory })
    }
  ),
  lawOnPort(writing, "port write keeps bytes of its own", "write", {}, function* (port) {
    const content = encodeUtf8("mine")
    yield* port.write<never, never>(toPath("a"), content, "create")
    content.fill(0x78)
    yield* expectPortTree(port, { a: "mine" })
  })
]
