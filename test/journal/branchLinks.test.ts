/** Symbolic links through a branch: the leaf returns their targets, and the branch follows them across all leaves. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as InMemory from "../../src/backends/InMemory.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as F from "../../src/journal/FileSystemEntry.ts"
import { type Entry, Journal, type Scrivener } from "../../src/journal/Journal.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { plant } from "../../src/testing/Files.ts"
import { withoutIdentity } from "./recordings.ts"
import { fork, journaled, memory, quiet, started } from "./leafBench.ts"
import { answering } from "./fakeLeaf.ts"

const unchecked = { disableChecks: true } as const

const planted = (files: Parameters<typeof plant>[1]) =>
  Effect.gen(function* () {
    const fs = yield* memory()
    yield* plant(fs.port, files)
    return fs
  })

const asked = (journal: Scrivener<Entry>, after: number) =>
  Effect.map(Stream.runCollect(journal.stored(after)), (all) => all.map(({ entry }) => entry).filter(F.isEfferent))

/** Returns the journal as an older version reads it, without the fields about links. */
const asReadByAnOlder = (journal: Scrivener<Entry>): Scrivener<Entry> => ({
  ...journal,
  tail: (after) =>
    Stream.map(journal.tail(after), (recorded) => {
      const entry = Object.assign(Object.create(Object.getPrototypeOf(recorded.entry)), recorded.entry)
      delete entry.links
      delete entry.way
      return { ...recorded, entry }
    })
})

/** Starts a leaf for the whole filesystem, and returns a branch to it. */
const over = (served: Algebra) =>
  Effect.gen(function* () {
    yield* started(served, { extended: true })
    return yield* Branch.make({ extended: true })
  })

describe("links through a branch", () => {
  it.effect("are created, read, followed, copied, moved and deleted as on the filesystem of the leaf", () =>
    journaled(
      Effect.gen(function* () {
        const served = yield* planted({ f: "one", "d/g": "two" })
        const fs = yield* over(served)
        yield* fs.symlink("l", "f")
        yield* fs.symlink("below/d", "../d")
        assert.strictEqual(yield* served.readLink("l"), "f")
        assert.strictEqual(yield* fs.readLink("below/d"), "../d")
        assert.deepStrictEqual(yield* fs.stat("l"), withoutIdentity(yield* served.stat("l")))
        assert.strictEqual(yield* fs.readString("below/d/g"), "two")
        yield* fs.write("below/d/g", "three")
        yield* Stream.run(Stream.make(new TextEncoder().encode("four")), fs.sink("l"))
        yield* fs.edit("l", { oldText: "four", newText: "five" })
        assert.strictEqual(yield* served.readString("f"), "five")
        assert.strictEqual(yield* served.readString("d/g"), "three")
        yield* fs.copy("l", "copied")
        yield* fs.move("l", "below/moved")
        yield* fs.delete("copied")
        assert.strictEqual(yield* served.readLink("below/moved"), "f")
        assert.isTrue(yield* served.exists("f"))
      })
    )
  )

  it.effect("with absolute targets lead to the target that the leaf reports, and keep their text", () =>
    journaled(
      Effect.gen(function* () {
        const served = make(yield* InMemory.make({ absoluteLinks: "root" }))
        yield* plant(served.port, { "d/f": "one", "d/e/l": { link: "/d/f" }, ld: { link: "/d" }, out: { link: "/.." } })
        const fs = yield* over(served)
        assert.strictEqual(yield* fs.readString("ld/e/l"), "one")
        assert.strictEqual(yield* fs.readLink("ld"), "/d")
        yield* fs.write("ld/e/l", "two")
        assert.strictEqual(yield* served.readString("d/f"), "two")
        for (const failing of [fs.stat("out"), fs.stat("out/d/f")]) {
          assert.include(yield* Effect.flip(failing), { _tag: "AccessDenied", why: "escape" })
        }
        assert.include(yield* Effect.flip(fs.symlink("made", "/d/f")), { _tag: "AccessDenied", why: "escape" })
      })
    )
  )

  it.effect("are read but not followed if the leaf reports a relative target with a NUL", () =>
    journaled(
      Effect.gen(function* () {
        yield* answering(yield* Journal, ({ correlationId }) => {
          const found = { size: 1, isDirectory: false, kind: "symlink", target: "/d", relativeTarget: "d\0" } as const
          return Effect.succeed([new F.FileMetadata({ correlationId, ...found, way: [found] }, unchecked)])
        })
        const fs = yield* Branch.make({ extended: true })
        assert.strictEqual(yield* fs.port.links!.read("l" as FsPath), "/d")
        assert.strictEqual((yield* Effect.flip(fs.port.links!.follow!("l" as FsPath)))._tag, "IoError")
      })
    )
  )

  it.effect("need two requests on a missing deep path, and at most six on a path through a link", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* over(yield* planted({ "a/b/c/f": "x", l: { link: "a/b" } }))
        const journal = yield* Journal
        const before = yield* journal.last
        yield* Effect.flip(fs.stat("a/b/c/none/at/all"))
        assert.strictEqual((yield* asked(journal, before)).length, 2)
        const through = yield* journal.last
        assert.strictEqual(yield* fs.readString("l/c/f"), "x")
        assert.isAtMost((yield* asked(journal, through)).length, 6)
      })
    )
  )

  it.effect("lead from one leaf into another, but never to files outside the prefix of a leaf", () =>
    journaled(
      Effect.gen(function* () {
        const alpha = yield* planted({
          "alpha/across": { link: "../deep/beta/y" },
          "alpha/beside": { link: "../other" },
          "alpha/up": { link: ".." },
          other: "hidden in alpha",
          "deep/beta/y": "hidden in alpha"
        })
        const beta = yield* planted({ "deep/beta/y": "shown" })
        yield* started(alpha, { prefix: "alpha", extended: true })
        yield* started(beta, { prefix: "deep/beta", extended: true })
        const fs = yield* Branch.make({ extended: true })
        assert.strictEqual(yield* fs.readString("alpha/across"), "shown")
        assert.strictEqual(yield* fs.readString("alpha/up/deep/beta/y"), "shown")
        // No leaf serves the path, which is certain only after a while.
        for (const path of ["alpha/beside", "alpha/up/other"]) {
          const reading = yield* fork(Effect.flip(fs.readString(path)))
          for (let i = 0; i < 8 && reading.pollUnsafe() === undefined; i++) {
            yield* quiet
            yield* TestClock.adjust("5 seconds")
          }
          yield* quiet
          assert.strictEqual((yield* Fiber.join(reading))._tag, "Unavailable", path)
        }
        yield* fs.write("alpha/across", "written")
        yield* Stream.run(Stream.make(new TextEncoder().encode("streamed")), fs.sink("alpha/up/deep/beta/new"))
        yield* fs.edit("alpha/across", { oldText: "written", newText: "edited" })
        assert.strictEqual(yield* beta.readString("deep/beta/y"), "edited")
        assert.strictEqual(yield* beta.readString("deep/beta/new"), "streamed")
        assert.strictEqual(yield* alpha.readString("deep/beta/y"), "hidden in alpha")
        assert.deepStrictEqual(yield* alpha.exists("deep/beta/new"), false)
      })
    )
  )

  it.effect("out of a subdirectory of a branch fail with AccessDenied (escape) in every call", () =>
    journaled(
      Effect.gen(function* () {
        const served = yield* planted({ secret: "s", "sub/out": { link: "../secret" }, "sub/up": { link: ".." } })
        const fs = yield* subdirectory("sub")(yield* over(served))
        const calls: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          fs.readString("out"),
          fs.write("out", "x"),
          fs.write("up/secret", "x"),
          fs.edit("out", { oldText: "s", newText: "x" }),
          fs.mkdir("up/d"),
          fs.delete("up/secret"),
          fs.move("up/secret", "mine"),
          Stream.run(Stream.make(new Uint8Array(1)), fs.sink("out"))
        ]
        for (const call of calls) {
          const error = yield* Effect.flip(call)
          assert.include(error, { _tag: "AccessDenied", why: "escape" })
        }
        assert.strictEqual(yield* served.readString("secret"), "s")
      })
    )
  )

  it.effect("are read but not followed if the filesystem of the leaf refuses to follow links", () =>
    journaled(
      Effect.gen(function* () {
        const { port } = yield* planted({ f: "one", l: { link: "f" } })
        const fs = yield* over(make({ ...port, rules: { ...port.rules, symlinks: "refuse" } }))
        assert.strictEqual(yield* fs.readLink("l"), "f")
        for (const call of [fs.readString("l"), fs.stat("l"), fs.write("l", "x")]) {
          assert.include(yield* Effect.flip<unknown, unknown, never>(call), { _tag: "AccessDenied", why: "link" })
        }
      })
    )
  )

  it.effect("of a leaf of an older version, or with only basic kinds of entry, are listed, but readLink and stat fail", () =>
    Effect.forEach([true, false], (extended) =>
      journaled(
        Effect.gen(function* () {
          const journal = yield* Journal
          const served = yield* planted({ f: "one", l: { link: "f" } })
          const leaf = started(served, { extended })
          yield* extended ? Effect.provideService(leaf, Journal, asReadByAnOlder(journal)) : leaf
          const fs = yield* Branch.make({ extended: true })
          assert.strictEqual((yield* fs.list("."))[1]?.kind, "symlink")
          for (const call of [fs.readLink("l"), fs.stat("l")]) {
            const error = yield* Effect.flip<unknown, { readonly _tag: string; readonly message: string }, never>(call)
            assert.strictEqual(error._tag, "IoError")
            assert.include(error.message, "does not report the target")
          }
          // The leaf still follows links by itself.
          assert.strictEqual(yield* fs.readString("l"), "one")
          yield* fs.write("f", "two")
          assert.strictEqual(yield* fs.readString("f"), "two")
        })
      )
    )
  )

  const forged: ReadonlyArray<readonly [what: string, target: string, detail: string]> = [
    ["nothing", "", "the target is empty"],
    ["NUL", "a\0b", "the target contains NUL"],
    ["a text that is too long", "x".repeat(32_768), "the target is longer than 32767 characters"]
  ]
  for (const [what, target, detail] of forged) {
    it.effect(`with a forged target (${what}) fail with IoError`, () =>
      journaled(
        Effect.gen(function* () {
          yield* answering(yield* Journal, ({ correlationId }) => {
            const found = { size: 1, isDirectory: false, kind: "symlink", target } as const
            return Effect.succeed([new F.FileMetadata({ correlationId, ...found, way: [found] }, unchecked)])
          })
          const fs = yield* Branch.make({ extended: true })
          const error = yield* Effect.flip(fs.port.links!.read("l" as FsPath))
          assert.strictEqual(error._tag, "IoError")
          assert.include(String(error["detail"]), detail)
        })
      )
    )
  }

  it.effect("are not created by a leaf without write permission, nor below a link or a missing directory", () =>
    journaled(
      Effect.gen(function* () {
        const served = yield* planted({ "d/f": "x", l: { link: "d" } })
        const leaf = yield* started(served, { extended: true, allowWrite: false })
        const fs = yield* Branch.make({ extended: true })
        const path = (text: string) => text as FsPath
        assert.include(yield* Effect.flip(fs.port.links!.make(path("m"), "/etc/passwd")), {
          _tag: "AccessDenied",
          why: "readOnly"
        })
        yield* leaf.shutdown
        yield* started(served, { extended: true })
        assert.strictEqual((yield* Effect.flip(fs.port.links!.make(path("l/m"), "x")))._tag, "NotADirectory")
        assert.strictEqual((yield* Effect.flip(fs.port.links!.make(path("none/m"), "x")))._tag, "NotFound")
        assert.strictEqual((yield* Effect.flip(fs.port.links!.make(path("m"), "a\0b")))._tag, "InvalidArgument")
        assert.isFalse(yield* served.exists("d/m"))
      })
    )
  )

  it.effect("with a hostile target (above the root, absolute, circular, or with a control character) never lead outside", () =>
    journaled(
      Effect.gen(function* () {
        const served = yield* memory()
        for (const [path, target] of [
          ["up", "../../etc/passwd"],
          ["absolute", "/etc/passwd"],
          ["control", "a\nb"],
          ["circle", "circle"]
        ] as const) {
          yield* served.port.links!.make(path as FsPath, target)
        }
        const fs = yield* over(served)
        for (const [path, tag] of [
          ["up", "AccessDenied"],
          ["absolute", "AccessDenied"],
          ["control", "InvalidPath"],
          ["circle", "InvalidPath"]
        ] as const) {
          assert.strictEqual((yield* Effect.flip(fs.readString(path)))._tag, tag)
          assert.strictEqual(yield* fs.readLink(path), yield* served.readLink(path))
        }
      })
    )
  )
})
