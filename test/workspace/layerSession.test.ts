import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, Filesystem, make as makeFilesystem } from "../../src/filesystem/Filesystem.ts"
import { withExclusiveLock } from "../../src/history/replace.ts"
import { Snapshots, layer as snapshotsLayer } from "../../src/history/Snapshots.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { make as makeSlice } from "../../src/model/Slice.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { capture } from "../../src/testing/Files.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import * as Programs from "../filesystem/programs.ts"

const at = (path: string) => path as FsPath
const Json = Schema.toCodecJson(InMemory.State.schema)
const toJson = (state: InMemory.TreeState) => Schema.encodeSync(Json)(state)
const stateOf = (session: Session.Operations) => Effect.fromOption(Effect.runSync(session.latest(InMemory.State)))
const jsonOf = (session: Session.Operations) => Effect.map(stateOf(session), toJson)

const opened = (session: Session.Operations, options?: InMemory.InMemoryOptions) =>
  Effect.map(InMemory.makeSession(session, options), makeFilesystem)

/** Computes the saved form of a tree through its port. */
const formOf = Effect.fnUntraced(function* (port: Backend) {
  const directories: Array<object> = []
  const files: Array<object> = []
  const links: Array<object> = []
  for (const path of [".", ...Object.keys(yield* capture(port))].sort()) {
    const { createdAt, kind, mode, modifiedAt, sizeBytes } = (yield* port.stat(at(path)))!
    const times = { path, createdAt: createdAt!.epochMilliseconds, modifiedAt: modifiedAt!.epochMilliseconds }
    if (kind === "directory") directories.push({ ...times, mode })
    else if (kind === "symlink") links.push({ ...times, target: yield* port.links!.read(at(path)) })
    else {
      const { read } = yield* port.open(at(path))
      const content = Buffer.from(yield* read(0, sizeBytes)).toString("base64")
      files.push({ ...times, mode, sizeBytes, content })
    }
  }
  return { caseSensitive: port.info.caseSensitive, directories, files, links }
})

const Note = makeSlice("Note", Schema.String)

describe("a filesystem in a session", () => {
  it.effect("is one item, whose JSON is the tree with bytes, modes and times, sorted by path", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const fs = yield* opened(session)
        yield* TestClock.adjust(5)
        yield* fs.writeBytes("b", new Uint8Array([0, 255, 10]))
        yield* fs.mkdir("a")
        yield* TestClock.adjust(1)
        yield* fs.write("a/é", "")
        yield* fs.symlink("l", "b")
        yield* fs.setAttributes("b", { mode: 0o640 })
        assert.deepStrictEqual(yield* jsonOf(session), {
          caseSensitive: true,
          directories: [
            { path: ".", createdAt: 0, modifiedAt: 6, mode: 0o755 },
            { path: "a", createdAt: 5, modifiedAt: 6, mode: 0o755 }
          ],
          files: [
            { path: "a/é", createdAt: 6, modifiedAt: 6, mode: 0o644, sizeBytes: 0, content: "" },
            { path: "b", createdAt: 5, modifiedAt: 5, mode: 0o640, sizeBytes: 3, content: "AP8K" }
          ],
          links: [{ path: "l", createdAt: 6, modifiedAt: 6, target: "b" }]
        })
        assert.lengthOf(yield* session.all(InMemory.State), 1)
      })
    )
  )

  it.effect("has the same JSON for the same tree, even if the tree was built in another order", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const names = Array.from({ length: 60 }, (_, i) => `n${i}`)
        const made = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
          const session = yield* Session.make()
          const fs = yield* opened(session)
          for (const name of names) yield* fs.write(`d/${name}`, name)
          return JSON.stringify(yield* jsonOf(session))
        })
        assert.strictEqual(yield* made(names), yield* made(names.toReversed()))
      })
    )
  )

  it.effect.prop(
    "equals the item of its session after each step of a random program, and can be opened from the item",
    { steps: Programs.program, isCaseless: Schema.Boolean },
    ({ isCaseless, steps }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const options = { tree: Programs.tree, caseInsensitive: isCaseless }
          const session = yield* Session.make()
          const fs = yield* opened(session, options)
          for (const step of steps) {
            yield* Programs.tick
            yield* Programs.run(fs, step)
            const json = yield* jsonOf(session)
            assert.deepStrictEqual<unknown>(json, yield* formOf(fs.port))
            const other = yield* Session.make()
            yield* other.set(InMemory.State, Schema.decodeSync(Json)(JSON.parse(JSON.stringify(json))))
            const taken = yield* opened(other, { caseInsensitive: isCaseless })
            assert.deepStrictEqual(yield* formOf(taken.port), json as unknown)
            assert.deepStrictEqual(yield* jsonOf(other), json)
          }
        })
      ),
    { arbitrary: { runs: 60 } }
  )

  it.effect("never modifies an item that it has put into the session", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const fs = yield* opened(session)
        const items: Array<readonly [state: InMemory.TreeState, json: unknown]> = []
        for (let i = 0; i < 40; i++) {
          yield* fs.write(`d${i % 3}/f${i % 7}`, `${i}`, { mode: i % 2 === 0 ? "append" : "overwrite" })
          const state = yield* stateOf(session)
          items.push([state, toJson(state)])
        }
        for (const [state, json] of items) assert.deepStrictEqual(toJson(state), json)
      })
    )
  )

  it.effect("is rolled back with its session, and watchers are notified", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make({ slices: [Note] })
        const fs = yield* opened(session, { tree: { kept: "1", d: { deep: "2" } } })
        yield* session.dispatch(Note, "before")
        yield* session.snapshot("turn-1")
        const before = yield* jsonOf(session)
        yield* fs.write("kept", "changed", { mode: "overwrite" })
        yield* fs.delete("d", { recursive: true })
        yield* fs.write("new", "")
        yield* session.dispatch(Note, "after")
        const told: Array<string> = []
        const watching = yield* Effect.forkChild(
          Stream.runForEach(fs.port.watch!(at(".")), ({ _tag, path }) => Effect.sync(() => void told.push(`${_tag} ${path}`)))
        )
        yield* Effect.yieldNow
        yield* session.rollback("turn-1")
        assert.strictEqual(yield* fs.readString("d/deep"), "2")
        assert.strictEqual(yield* fs.readString("kept"), "1")
        assert.isFalse(yield* fs.exists("new"))
        assert.deepStrictEqual(yield* session.all(Note), ["before"])
        assert.deepStrictEqual(yield* jsonOf(session), before)
        while (told.length < 4) yield* Effect.yieldNow
        assert.deepStrictEqual(told.toSorted(), ["Created d", "Created d/deep", "Removed new", "Updated kept"])
        yield* Fiber.interrupt(watching)
      })
    )
  )

  it.effect("can be rolled back any number of times, with writes between", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const fs = yield* opened(session)
        for (const name of ["a", "b", "c"]) {
          yield* fs.write("f", name, { mode: "append" })
          yield* session.snapshot(name)
        }
        for (const [id, text] of [
          ["a", "a"],
          ["c", "abc"],
          ["b", "ab"],
          ["a", "a"]
        ] as const) {
          yield* session.rollback(id)
          assert.strictEqual(yield* fs.readString("f"), text)
          yield* fs.write("f", "!", { mode: "append" })
        }
      })
    )
  )

  it.effect("has its initial tree after a reset, and after a rollback to before it existed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        yield* session.snapshot("nothing")
        const fs = yield* opened(session, { tree: { first: "1" } })
        const other = yield* opened(session, { tree: { second: "2" } })
        const first = yield* jsonOf(session)
        for (const back of [session.reset, session.rollback("nothing"), session.reset]) {
          yield* fs.write("more", "x", { mode: "overwrite" })
          yield* back
          for (const one of [fs, other]) assert.deepStrictEqual(Object.keys(yield* capture(one.port)), ["first"])
        }
        assert.deepStrictEqual(yield* jsonOf(session), first)
      })
    )
  )

  it.effect("shows the tree that is already in the session, and then ignores the tree option", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      yield* Effect.scoped(Effect.flatMap(opened(session, { tree: { a: "1" } }), (fs) => fs.write("b", "2")))
      const before = yield* jsonOf(session)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fs = yield* opened(session, { tree: { c: "3" } })
          assert.deepStrictEqual(Object.keys(yield* capture(fs.port)), ["a", "b"])
          assert.deepStrictEqual(yield* jsonOf(session), before)
        })
      )
    })
  )

  it.effect("is copied with a clone of its session, and is then independent", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const fs = yield* opened(session, { tree: { a: "1" } })
        const copy = yield* opened(yield* session.clone())
        yield* fs.write("a", "of the first", { mode: "overwrite" })
        yield* copy.write("b", "of the second")
        assert.deepStrictEqual(yield* capture(fs.port), { a: 'file "of the first"' })
        assert.deepStrictEqual(yield* capture(copy.port), { a: 'file "1"', b: 'file "of the second"' })
      })
    )
  )

  it.effect("is provided by a layer, which can be built again with the files of the session", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const fs = InMemory.layerSession(session)
      yield* Effect.provide(
        Filesystem.use((fs) => fs.write("a", "1")),
        fs
      )
      assert.strictEqual(
        yield* Effect.provide(
          Filesystem.use((fs) => fs.readString("a")),
          fs
        ),
        "1"
      )
    })
  )

  it.effect("refuses every call after its scope closes, and leaves the tree in the session", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const scope = yield* Scope.make()
      const fs = yield* Scope.provide(opened(session, { tree: { a: "1" } }), scope)
      yield* Scope.close(scope, Exit.void)
      const before = yield* jsonOf(session)
      for (const call of [fs.write("b", ""), fs.readString("a"), fs.list("."), fs.delete("a"), fs.stat("a")]) {
        const error = yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string }>)
        assert.strictEqual(error._tag, "Unavailable")
      }
      assert.deepStrictEqual(yield* jsonOf(session), before)
    })
  )
})

describe("two filesystems in one session", () => {
  it.effect.prop(
    "behave as one filesystem: random steps on either of them give the same results",
    { steps: Arbitrary.array(Arbitrary.all([Programs.step, Arbitrary.schema(Schema.Boolean)]), { maxLength: 24 }) },
    ({ steps }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const alone = makeFilesystem(yield* InMemory.make({ tree: Programs.tree }))
          const session = yield* Session.make()
          const one = yield* opened(session, { tree: Programs.tree })
          const other = yield* opened(session)
          for (const [step, isFirst] of steps) {
            yield* Programs.tick
            const expected = yield* Programs.run(alone, step)
            assert.deepStrictEqual(yield* Programs.run(isFirst ? one : other, step), expected)
          }
          const expected = yield* formOf(alone.port)
          for (const fs of [one, other]) assert.deepStrictEqual(yield* formOf(fs.port), expected)
        })
      ),
    { arbitrary: { runs: 60 } }
  )

  it.effect("share their locks, so that no edit of one filesystem is lost to the other", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const both: ReadonlyArray<Algebra> = [yield* opened(session, { tree: { n: "|" } }), yield* opened(session)]
        const edits = Array.from({ length: 40 }, (_, i) => both[i % 2]!.edit("n", [{ oldText: "|", newText: `|${i},` }]))
        yield* Effect.all(edits, { concurrency: "unbounded" })
        const numbers = (yield* both[0]!.readString("n")).slice(1).split(",").filter(Boolean).map(Number)
        assert.deepStrictEqual(
          numbers.toSorted((a, b) => a - b),
          Array.from({ length: 40 }, (_, i) => i)
        )
      })
    )
  )

  it.effect("notify the watchers of both of every change", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const [one, other] = [yield* opened(session), yield* opened(session)]
        const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(other.port.watch!(at(".")), 2)))
        yield* Effect.yieldNow
        yield* one.write("a", "1")
        yield* one.write("a", "2", { mode: "overwrite" })
        assert.deepStrictEqual(yield* Fiber.join(seen), [
          { _tag: "Created", path: at("a") },
          { _tag: "Updated", path: at("a") }
        ])
      })
    )
  )
})

describe("the case rule of a filesystem in a session", () => {
  it.effect("must match the tree of the session, or opening fails with the name of the argument", () =>
    Effect.scoped(
      Effect.gen(function* () {
        for (const caseInsensitive of [true, false]) {
          const session = yield* Session.make()
          yield* Effect.scoped(opened(session, { caseInsensitive }))
          const error = yield* Effect.flip(opened(session, { caseInsensitive: !caseInsensitive }))
          assert.strictEqual(error._tag, "InvalidArgument")
          assert.strictEqual((error as { readonly argument?: string }).argument, "caseInsensitive")
        }
      })
    )
  )

  it.effect("makes a filesystem unavailable while the session contains a tree with the other case rule", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const fs = yield* opened(session, { tree: { A: "1", a: "2" } })
        yield* session.snapshot("fine")
        const caseless = yield* Session.make()
        yield* opened(caseless, { tree: { b: "3" }, caseInsensitive: true })
        const foreign = yield* stateOf(caseless)
        yield* session.set(InMemory.State, foreign)
        for (const call of [fs.readString("a"), fs.exists("a"), fs.write("c", ""), fs.delete("a"), fs.list(".")]) {
          const error = yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string }>)
          assert.strictEqual(error._tag, "Unavailable")
        }
        assert.strictEqual(yield* stateOf(session), foreign)
        yield* session.rollback("fine")
        assert.strictEqual(yield* fs.readString("A"), "1")
      })
    )
  )

  it.effect("preserves the case of names in a case-insensitive filesystem, even after a rollback", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const fs = yield* opened(session, { tree: { Read: { Me: "1" } }, caseInsensitive: true })
        yield* session.snapshot("s")
        yield* fs.write("read/me", "2", { mode: "overwrite" })
        yield* session.rollback("s")
        yield* fs.write("READ/ME", "3", { mode: "append" })
        assert.deepStrictEqual(yield* capture(fs.port), { Read: "directory", "Read/Me": 'file "13"' })
      })
    )
  )
})

const time = { createdAt: 0, modifiedAt: 0 }
const directory = (path: string) => ({ path, mode: 0o755, ...time })
const file = (path: string, more: object = {}) => ({ path, mode: 0o644, content: "", ...time, ...more })
const form = (more: object) => ({ caseSensitive: true, directories: [directory(".")], files: [], links: [], ...more })

const hostile: ReadonlyArray<readonly [claim: string, json: unknown]> = [
  ["null instead of an object", null],
  ["missing fields", { files: [] }],
  ["a missing root", form({ directories: [] })],
  ["two roots", form({ directories: [directory("."), directory(".")] })],
  ["a root that is a file", form({ directories: [], files: [file(".")] })],
  ["a path above the root", form({ files: [file("../a")] })],
  ["a path with an inner .. segment", form({ directories: [directory("."), directory("d")], files: [file("d/../a")] })],
  ["an absolute path", form({ files: [file("/a")] })],
  ["an empty segment", form({ directories: [directory("."), directory("d")], files: [file("d//a")] })],
  ["a NUL", form({ files: [file("a\0b")] })],
  ["a control character", form({ files: [file("a\nb")] })],
  ["a lone surrogate", form({ files: [file("\ud800")] })],
  ["a name that is too long", form({ files: [file("a".repeat(256))] })],
  ["a missing parent", form({ files: [file("d/a")] })],
  ["a parent that is a file", form({ files: [file("d"), file("d/a")] })],
  ["a parent that is a link", form({ links: [{ path: "d", target: ".", ...time }], files: [file("d/a")] })],
  ["one file twice", form({ files: [file("a"), file("a")] })],
  ["a file and a directory of the same name", form({ directories: [directory("."), directory("a")], files: [file("a")] })],
  ["names that differ only in case in a tree that ignores case", form({ caseSensitive: false, files: [file("a"), file("A")] })],
  [
    "another spelling of a parent",
    form({ caseSensitive: false, directories: [directory("."), directory("D")], files: [file("d/a")] })
  ],
  ["content that is not base64", form({ files: [file("a", { content: "*" })] })],
  ["base64 of another alphabet", form({ files: [file("a", { content: "__8=" })] })],
  ["base64 with a newline", form({ files: [file("a", { content: "YQ==\n" })] })],
  ["a wrong size", form({ files: [file("a", { content: "YQ==", sizeBytes: 2 })] })],
  ["a missing mode", form({ files: [{ path: "a", content: "", ...time }] })],
  ["a mode beyond the permission bits", form({ files: [file("a", { mode: 0o10000 })] })],
  ["a negative mode", form({ files: [file("a", { mode: -1 })] })],
  ["an invalid time", form({ files: [file("a", { createdAt: "now" })] })],
  ["a time out of range", form({ files: [file("a", { modifiedAt: 8.64e15 + 1 })] })],
  ["a link with an empty target", form({ links: [{ path: "l", target: "", ...time }] })],
  ["a link with a NUL", form({ links: [{ path: "l", target: "a\0", ...time }] })],
  ["a path that is not a string", form({ files: [file(1 as unknown as string)] })]
]

describe("a tree in JSON", () => {
  for (const [claim, json] of hostile) {
    it(`is refused with ${claim}`, () => {
      assert.isTrue(Exit.isFailure(Schema.decodeUnknownExit(Json)(json)))
    })
  }

  it.effect("is refused with a message that does not contain its content", () =>
    Effect.gen(function* () {
      const content = "c2VjcmV0".repeat(2000)
      const error = yield* Effect.flip(Schema.decodeUnknownEffect(Json)(form({ files: [file("d/a", { content })] })))
      assert.include(error.message, '"d/a": its parent directory is not in the list')
      assert.notInclude(error.message, "c2VjcmV0")
    })
  )

  it.effect("may omit the sizes of its files", () =>
    Effect.gen(function* () {
      const state = yield* Schema.decodeUnknownEffect(Json)(form({ files: [file("a", { content: "YWI=" })] }))
      const session = yield* Session.make()
      yield* session.set(InMemory.State, state)
      const fs = yield* opened(session)
      assert.strictEqual(yield* fs.readString("a"), "ab")
    }).pipe(Effect.scoped)
  )

  it.effect("may have its entries in any order, and is written sorted", () =>
    Effect.gen(function* () {
      const state = yield* Schema.decodeUnknownEffect(Json)(
        form({ directories: [directory("d/e"), directory("d"), directory(".")], files: [file("d/e/b"), file("a")] })
      )
      const json = toJson(state) as { readonly [list: string]: ReadonlyArray<{ readonly path: string }> }
      assert.deepStrictEqual(
        json["directories"]!.map(({ path }) => path),
        [".", "d", "d/e"]
      )
      assert.deepStrictEqual(
        json["files"]!.map(({ path }) => path),
        ["a", "d/e/b"]
      )
    })
  )

  it.effect("omits writes in progress, and contains other files whose names look temporary", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const { port } = yield* opened(session)
      const json = yield* TemporaryNames.withName((temporary) =>
        Effect.gen(function* () {
          for (const name of [temporary, ".~fsa-1.tmp", "a"]) {
            yield* port.write<never, never>(at(name), new Uint8Array(3), "create")
          }
          return (yield* jsonOf(session)) as { readonly files: ReadonlyArray<{ readonly path: string }> }
        })
      )
      assert.deepStrictEqual(
        json.files.map(({ path }) => path),
        [".~fsa-1.tmp", "a"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("may be as deep as the limits allow, but not deeper", () =>
    Effect.gen(function* () {
      const paths = Array.from({ length: 255 }, (_, i) =>
        Array(i + 1)
          .fill("d")
          .join("/")
      )
      const deep = form({ directories: [directory("."), ...paths.map(directory)] })
      assert.deepStrictEqual(toJson(yield* Schema.decodeUnknownEffect(Json)(deep)), deep)
      const tooDeep = form({ directories: [...deep.directories, directory(`${paths.at(-1)}/d`)] })
      assert.isTrue(Exit.isFailure(Schema.decodeUnknownExit(Json)(tooDeep)))
    })
  )
})

describe("snapshots of a filesystem in a session", () => {
  it.effect("restore the slice, completely and by paths", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const fs = yield* opened(session, { tree: { a: "1", d: { b: "2" } } })
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots
        const taken = yield* snapshots.snapshot()
        assert.match(taken.commitRef, /^mem-/)
        const before = yield* jsonOf(session)
        yield* fs.write("a", "changed", { mode: "overwrite" })
        yield* fs.delete("d", { recursive: true })
        yield* snapshots.restore(taken, { paths: ["d"] })
        assert.deepStrictEqual<unknown>(yield* jsonOf(session), yield* formOf(fs.port))
        assert.strictEqual(yield* fs.readString("d/b"), "2")
        yield* snapshots.restore(taken)
        assert.deepStrictEqual(yield* jsonOf(session), before)
        yield* Effect.flip(snapshots.transaction(Effect.andThen(fs.write("new", ""), Effect.fail("no"))))
        assert.deepStrictEqual(yield* jsonOf(session), before)
      }).pipe(Effect.provide(snapshotsLayer), Effect.provideService(Filesystem, fs))
    }).pipe(Effect.scoped)
  )
})

describe("an exclusive effect on a filesystem in a session", () => {
  it.effect("makes a rollback of the session wait", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const fs = yield* opened(session, { tree: { a: "1" } })
      yield* session.snapshot("s")
      const seen: Array<string> = []
      const goOn = yield* Deferred.make<void>()
      const working = yield* Effect.forkChild(
        withExclusiveLock(
          fs.port,
          Effect.gen(function* () {
            yield* fs.write("a", "2", { mode: "overwrite" })
            yield* Deferred.await(goOn)
            seen.push(yield* fs.readString("a"))
          })
        )
      )
      yield* Effect.yieldNow
      const back = yield* Effect.forkChild(session.rollback("s"))
      for (let i = 0; i < 20; i++) yield* Effect.yieldNow
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(working)
      yield* Fiber.join(back)
      assert.deepStrictEqual(seen, ["2"])
      assert.strictEqual(yield* fs.readString("a"), "1")
    }).pipe(Effect.scoped)
  )

  it.effect("may call the session without a deadlock while others use the session and the filesystem", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const fs = yield* opened(session)
      const one = withExclusiveLock(fs.port, Effect.andThen(Effect.yieldNow, Effect.asVoid(session.snapshot("one"))))
      const other = Effect.andThen(Effect.yieldNow, Effect.asVoid(session.snapshot("other")))
      const third = Effect.andThen(Effect.yieldNow, Effect.asVoid(fs.write("f", "", { mode: "overwrite" })))
      yield* Effect.all(
        Array.from({ length: 30 }, (_, i) => [one, other, third][i % 3]!),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(yield* session.snapshots, 2)
    }).pipe(Effect.scoped)
  )
})
