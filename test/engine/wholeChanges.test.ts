import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Rules from "../../src/agent/policy/access.ts"
import { confined } from "../../src/agent/policy/access.ts"
import { quota, readOnly, retry, subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { makeCaseInsensitive } from "../../src/filesystem/caseless.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { around, portable } from "../../src/port/Backend.ts"
import { enforce, fromOptions } from "../../src/port/Rules.ts"
import { capture } from "../../src/testing/Files.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { changesOf, wholly } from "./wholly.ts"

const tree = { a: "one", b: "two", d: { f: "deep" }, e: {} }

/** A filesystem that records every request that changes something in one step. */
const noting = Effect.map(InMemory.make({ tree }), (port) => {
  const asked: Array<string> = []
  const note = <A>(what: string, path: string, effect: A): A => {
    asked.push(`${what} ${path}`)
    return effect
  }
  const fs = make(
    wholly({ ...port, links: undefined }, ({ Edit, MakeDirectory, Move, Remove, Write }) => ({
      Write: (request) => note("write", request.path, Write(request)),
      Edit: (request) => note("edit", request.path, Edit(request)),
      Remove: (request) => note("remove", request.path, Remove(request)),
      MakeDirectory: (request) => note("makeDirectory", request.path, MakeDirectory(request)),
      Move: (request) => note("move", request.path, Move(request))
    }))
  )
  return { fs, asked }
})

const changes: ReadonlyArray<(fs: Algebra) => Effect.Effect<unknown, unknown>> = [
  (fs) => fs.write("a", "1"),
  (fs) => fs.writeBytes("new/b", Uint8Array.of(1)),
  (fs) => Stream.run(Stream.make(Uint8Array.of(2)), fs.sink("a")),
  (fs) => fs.edit("b", { oldText: "two", newText: "2" }),
  (fs) => fs.mkdir("made"),
  (fs) => fs.move("b", "c"),
  (fs) => fs.delete("d", { recursive: true })
]

const all = (fs: Algebra) => Effect.forEach(changes, (change) => Effect.exit(change(fs)))

/** Runs all changes on a filesystem derived from the recording filesystem. Returns the recorded requests. */
const through = <E>(f: (self: Algebra) => Algebra | Effect.Effect<Algebra, E>) =>
  Effect.gen(function* () {
    const { asked, fs } = yield* noting
    const made = f(fs)
    yield* all(Effect.isEffect(made) ? yield* made : made)
    return asked
  })

const everything = ["write a", "write new/b", "write a", "edit b", "makeDirectory made", "move b", "remove d"]

describe("a change that the port can make in one step", () => {
  it.effect("is requested from the port", () =>
    Effect.gen(function* () {
      const asked = yield* through((self) => self)
      assert.deepStrictEqual(asked, everything)
    })
  )

  it.effect("is not requested for a call that fails its checks", () =>
    Effect.gen(function* () {
      const { asked, fs } = yield* noting
      const refused: ReadonlyArray<
        readonly [call: (fs: Algebra) => Effect.Effect<unknown, { readonly _tag: string }>, tag: string]
      > = [
        [(fs) => fs.write("../x", "1"), "InvalidPath"],
        [(fs) => fs.write(".", "1"), "NotAFile"],
        [(fs) => fs.write("a", "\ud800"), "InvalidArgument"],
        [(fs) => fs.edit("a", []), "InvalidArgument"],
        [(fs) => fs.delete(".", { recursive: true }), "AccessDenied"],
        [(fs) => fs.move("a", "."), "AccessDenied"],
        [(fs) => fs.move(".", "x"), "AccessDenied"],
        [(fs) => fs.move("d", "d/x"), "InvalidArgument"],
        [(fs) => Stream.run(Stream.die("it was run"), fs.sink("d")), "NotAFile"],
        [(fs) => Stream.run(Stream.die("it was run"), fs.sink("a/x")), "NotADirectory"],
        [(fs) => Stream.run(Stream.die("it was run"), fs.sink("x/y", { createParents: false })), "NotFound"]
      ]
      for (const [call, tag] of refused) assert.strictEqual((yield* Effect.flip(call(fs)))._tag, tag)
      assert.deepStrictEqual(asked, [])
    })
  )

  it.effect("waits for the locks of its paths", () =>
    Effect.gen(function* () {
      const { asked, fs } = yield* noting
      const before = yield* capture(fs.port)
      yield* fs.port.locks!.exclusive(
        ["a", "b", "c", "d", "made", "new/b"] as never,
        Effect.gen(function* () {
          const fibers = yield* Effect.forEach(changes, (change) =>
            Effect.forkDetach(Effect.exit(change(fs)), { startImmediately: true })
          )
          for (let i = 0; i < 50; i++) yield* Effect.yieldNow
          assert.deepStrictEqual(yield* capture(fs.port), before)
          assert.strictEqual(fibers.length, changes.length)
          // A stream is staged without a lock and published under it.
          assert.deepStrictEqual(asked, [])
        })
      )
    })
  )

  const dropping: ReadonlyArray<readonly [what: string, f: (self: Algebra) => Algebra | Effect.Effect<Algebra, unknown>]> = [
    ["readOnly", readOnly],
    ["quota", quota({ maxBytes: 1e9 })],
    ["retry", retry({ times: 1 })],
    ["faulty", faulty([])],
    ["confined", (self) => confined(self, Rules.make({}, true))],
    ["around", ({ port }) => make(around(port, (_, next) => next))],
    ["portable", ({ port }) => make(portable(port))],
    ["caseless", ({ port }) => make(makeCaseInsensitive(port))],
    ["an overlay above it", (lower) => Effect.map(InMemory.make(), (upper) => overlay(make(upper))(lower))],
    ["an overlay that writes to it", (upper) => Effect.map(InMemory.make({ tree }), (lower) => overlay(upper)(make(lower)))],
    ["a mount in it", (self) => Effect.flatMap(InMemory.make(), (inner) => mount("e", make(inner))(self))],
    [
      "rules that permit less",
      ({ port }) => make(enforce({ ...port, rules: { ...port.rules, ...fromOptions({ allowDelete: false }) } }))
    ],
    ["rules of paths", ({ port }) => make(enforce({ ...port, rules: { permits: (_, path) => path !== "made" } }))]
  ]

  for (const [what, f] of dropping) {
    it.effect(`is made in several steps through ${what}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* through(f), [])
      })
    )
  }

  it.effect("is refused if a rule forbids a parent that it would create", () =>
    Effect.gen(function* () {
      const { fs } = yield* noting
      const guarded = make(enforce({ ...fs.port, rules: { permits: (_, path) => path !== "new" } }))
      const error = yield* Effect.flip(guarded.write("new/file", "x"))
      assert.strictEqual(error._tag, "AccessDenied")
      assert.isFalse(yield* fs.exists("new"))
    })
  )

  it.effect("is requested by a subdirectory if no parent must be created", () =>
    Effect.gen(function* () {
      const { asked, fs } = yield* noting
      const inside = yield* subdirectory("d")(fs)
      yield* inside.write("f", "1")
      yield* inside.write("x/y", "2")
      yield* inside.write("x/y", "3", { ifMatch: yield* inside.version("x/y") })
      yield* inside.write("x/y", "4", { mode: "replace" })
      yield* inside.mkdir("x/z/z")
      yield* inside.mkdir("z")
      yield* inside.move("x", "w/x")
      yield* inside.move("w", "v")
      yield* inside.delete("v", { recursive: true })
      assert.deepStrictEqual(asked, ["write d/f", "write d/x/y", "write d/x/y", "makeDirectory d/z", "move d/w", "remove d/v"])
    })
  )

  it.effect("is counted by Decorator.traced", () =>
    Effect.gen(function* () {
      const asked = yield* through(traced)
      assert.deepStrictEqual(asked, everything)
      const found = (yield* Metric.snapshot).find(({ id }) => id === "fs_algebra_written_bytes_total")
      // The sizes of "1", two single bytes, and the edited file.
      assert.strictEqual(found?.type === "Counter" ? found.state.count : undefined, 4)
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it("is an Edit, a MakeDirectory, a Move, a Remove or a Write on the port of these tests", () => {
    assert.deepStrictEqual(Object.keys(changesOf(Effect.runSync(InMemory.make()))).sort(), [
      "Edit",
      "MakeDirectory",
      "Move",
      "Remove",
      "Write"
    ])
  })
})
