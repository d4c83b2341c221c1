import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import { fails, has } from "../expect.ts"
import { capture, directory } from "../Files.ts"
import { type Law, unnoted } from "../Law.ts"
import { bytes, utf8 } from "../operations.ts"
import { at, leaves, linked, on, put, refuses, tree, wrongKind, writing } from "../portChapter.ts"

const broken = Stream.concat(Stream.make(utf8("new")), Stream.fail({ _tag: "Cable" } as const))

const modes = ["create", "replace", "append"] as const

export const portWritingLaws: ReadonlyArray<Law> = [
  ...modes.flatMap((mode) => [
    on(writing, `port write ${mode} makes the file where nothing is`, "write", {}, function* (port) {
      yield* has(yield* put(port, "a", "new", mode), { kind: "file", sizeBytes: 3 })
      yield* leaves(port, { a: "new" })
    }),
    on(writing, `port write ${mode} takes a stream`, "write", {}, function* (port) {
      yield* port.write(at("a"), Stream.make(utf8("one"), bytes(), utf8("two")), mode)
      yield* leaves(port, { a: "onetwo" })
    }),
    refuses(
      writing,
      `port write ${mode} needs a parent`,
      "missing parent",
      tree,
      (port) => put(port, "none/a", "x", mode),
      "NotFound"
    ),
    refuses(
      writing,
      `port write ${mode} needs a directory for a parent`,
      "missing parent",
      tree,
      (port) => put(port, "file/a", "x", mode),
      "NotADirectory"
    ),
    refuses(
      ["write", "links"],
      `port write ${mode} follows no link on its way`,
      "nothing is followed",
      linked,
      (port) => put(port, "todir/a", "x", mode),
      wrongKind
    ),
    on(writing, `port write ${mode} of a stream that fails leaves nothing`, "write", tree, function* (port) {
      yield* fails(port.write(at("new"), broken, mode), "Cable")
      yield* leaves(port, tree)
    }),
    on(writing, `port write ${mode} of a stream that is interrupted leaves nothing`, "write", tree, function* (port) {
      const begun = yield* Deferred.make<void>()
      const slow = Stream.concat(
        Stream.make(utf8("new")),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      )
      const fiber = yield* Effect.forkChild(port.write(at("new"), slow, mode))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      yield* leaves(port, tree)
    }),
    on(writing, `port write ${mode} publishes inside commit`, "commit", {}, function* (port) {
      yield* port.write<never, never>(at("a"), utf8("new"), mode, {
        commit: (publish) =>
          Effect.gen(function* () {
            const early = yield* Effect.orDie(capture(unnoted(port)))
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
    refuses(
      writing,
      `port write create on ${path}`,
      "create never overwrites",
      tree,
      (port) => put(port, path, "x", "create"),
      "AlreadyExists"
    )
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    refuses(
      ["write", "links"],
      `port write create on the link ${path}`,
      "create never overwrites",
      linked,
      (port) => put(port, path, "x", "create"),
      "AlreadyExists"
    )
  ),
  ...(["replace", "append"] as const).flatMap((mode) => [
    ...["dir", "empty", "."].map((path) =>
      refuses(writing, `port write ${mode} on ${path}`, "write", tree, (port) => put(port, path, "x", mode), "NotAFile")
    ),
    ...["tofile", "todir", "nowhere"].map((path) =>
      refuses(
        ["write", "links"],
        `port write ${mode} on the link ${path}`,
        "write",
        linked,
        (port) => put(port, path, "x", mode),
        "NotAFile"
      )
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
  on(
    writing,
    "port write create does not overwrite what comes before it publishes",
    "create never overwrites",
    {},
    function* (port) {
      const overtaken = port.write<never, never>(at("a"), utf8("mine"), "create", {
        commit: (publish) => Effect.andThen(put(port, "a", "theirs"), publish)
      })
      yield* fails(overtaken, "AlreadyExists")
      yield* leaves(port, { a: "theirs" })
    }
  ),
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
