import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Deferred, Effect, Fiber, Schema, Stream } from "effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { readOnly, subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { changes, commit, discard, overlay } from "../../src/filesystem/Overlay.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { type FsPath, parent } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { capture, program, run, tick, timeless, tree } from "./programs.ts"
import { runs } from "../runs.ts"

const at = (path: string) => path as FsPath
const utf8 = (text: string) => new TextEncoder().encode(text)

const memory = (options: InMemory.InMemoryOptions = {}) => Effect.map(InMemory.make(options), make)

const layers = Effect.fnUntraced(function* (
  lowerTree: InMemory.Tree = tree,
  options: { readonly upper?: InMemory.InMemoryOptions; readonly lower?: InMemory.InMemoryOptions } = {}
) {
  const lower = yield* memory({ tree: lowerTree, ...options.lower })
  const upper = yield* memory(options.upper)
  return { lower, upper, fs: overlay(upper)(lower) }
})

const names = (fs: Algebra, path = ".") => Effect.map(fs.list(path), (entries) => entries.map(({ name }) => name))
const told = (fs: Algebra) => Effect.map(changes(fs), (all) => all.map(({ _tag, path }) => `${_tag} ${path}`))
const tagOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

const cases = [
  ["the lower filesystem is", { lower: { caseInsensitive: true } }],
  ["the upper filesystem is", { upper: { caseInsensitive: true } }],
  ["both filesystems are", { lower: { caseInsensitive: true }, upper: { caseInsensitive: true } }]
] as const

describe("an overlay in random programs:", () => {
  it.effect.prop(
    "every call has the same answer and effect as on a copy, and the lower filesystem does not change",
    [program],
    Effect.fnUntraced(function* ([steps]) {
      const copy = yield* memory({ tree })
      const { fs, lower } = yield* layers()
      const before = yield* capture(lower.port)
      for (const step of steps) {
        yield* tick
        assert.deepStrictEqual(yield* run(fs, step), yield* run(copy, step), JSON.stringify(step))
      }
      assert.deepStrictEqual(yield* capture(fs.port), yield* capture(copy.port))
      assert.deepStrictEqual(yield* capture(lower.port), before)
    }),
    { arbitrary: { runs: runs(300) } }
  )

  for (const [where, options] of cases) {
    it.effect.prop(
      `every call has the same answer and effect as on a copy over another overlay, if ${where} case-insensitive`,
      [program],
      Effect.fnUntraced(function* ([steps]) {
        const copy = yield* memory({ tree, caseInsensitive: true })
        const { fs: between, lower } = yield* layers(tree, options)
        const fs = overlay(yield* memory())(between)
        for (const step of steps) {
          yield* tick
          assert.deepStrictEqual(yield* run(fs, step), yield* run(copy, step), JSON.stringify(step))
        }
        assert.deepStrictEqual(yield* capture(fs.port), yield* capture(copy.port))
        assert.deepStrictEqual(yield* changes(between), [])
        yield* commit(fs)
        yield* commit(between)
        assert.deepStrictEqual(timeless(yield* capture(lower.port)), timeless(yield* capture(copy.port)))
      }),
      { arbitrary: { runs: runs(100) } }
    )
  }

  it.effect.prop(
    "commit writes the shown tree to the lower filesystem, and empties the overlay",
    [program, program],
    Effect.fnUntraced(function* ([first, second]) {
      const copy = yield* memory({ tree })
      const { fs, lower, upper } = yield* layers()
      for (const steps of [first, second]) {
        for (const step of steps) {
          yield* tick
          yield* run(copy, step)
          yield* run(fs, step)
        }
        yield* commit(fs)
        assert.deepStrictEqual(yield* capture(lower.port), yield* capture(copy.port))
        assert.deepStrictEqual(yield* capture(upper.port), {})
        assert.deepStrictEqual(yield* capture(fs.port), yield* capture(copy.port))
        assert.deepStrictEqual(yield* changes(fs), [])
      }
    }),
    { arbitrary: { runs: runs(200) } }
  )

  it.effect.prop(
    "changes returns the differences between the shown and the lower tree",
    [program],
    Effect.fnUntraced(function* ([steps]) {
      const { fs, lower } = yield* layers()
      for (const step of steps) {
        yield* tick
        yield* run(fs, step)
      }
      const before = timeless(yield* capture(lower.port))
      const after = timeless(yield* capture(fs.port))
      const expected = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((path) => {
        if (!(path in before)) return [`Added ${path}`]
        if (!(path in after)) return [`Removed ${path}`]
        return JSON.stringify(before[path]) === JSON.stringify(after[path]) ? [] : [`Modified ${path}`]
      })
      assert.deepStrictEqual(yield* told(fs), expected)
    }),
    { arbitrary: { runs: runs(200) } }
  )

  it.effect.prop(
    "discard shows the lower tree again, with its times",
    [program],
    Effect.fnUntraced(function* ([steps]) {
      const { fs, lower, upper } = yield* layers()
      for (const step of steps) {
        yield* tick
        yield* run(fs, step)
      }
      yield* discard(fs)
      assert.deepStrictEqual(yield* capture(fs.port), yield* capture(lower.port))
      assert.deepStrictEqual(yield* capture(upper.port), {})
    }),
    { arbitrary: { runs: runs(100) } }
  )

  it.effect.prop(
    "a commit that is interrupted anywhere loses nothing, and the next commit completes it",
    [program, Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })))],
    Effect.fnUntraced(function* ([steps, allowed]) {
      const copy = yield* memory({ tree })
      const base = yield* InMemory.make({ tree })
      let left = Number.POSITIVE_INFINITY
      const spend = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => (left-- === 0 ? Effect.interrupt : effect))
      const lower = make({
        ...base,
        perform: undefined,
        explore: undefined,
        write: (path, bytes, mode, how) => spend(base.write(path, bytes, mode, how)),
        makeDirectory: (path) => spend(base.makeDirectory(path)),
        remove: (path) => spend(base.remove(path)),
        rename: (from, to, options) => spend(base.rename(from, to, options))
      })
      const fs = overlay(yield* memory())(lower)
      for (const step of steps) {
        yield* tick
        yield* run(copy, step)
        yield* run(fs, step)
      }
      left = allowed
      yield* Effect.exit(commit(fs))
      left = Number.POSITIVE_INFINITY
      assert.deepStrictEqual(timeless(yield* capture(fs.port)), timeless(yield* capture(copy.port)))
      yield* commit(fs)
      assert.deepStrictEqual(timeless(yield* capture(base)), timeless(yield* capture(copy.port)))
    }),
    { arbitrary: { runs: runs(200) } }
  )
})

describe("overlay", () => {
  it.effect("hides a deleted file, and a new file of that name starts empty", () =>
    Effect.gen(function* () {
      const { fs, lower } = yield* layers({ a: { f: "old" } })
      yield* fs.delete("a/f")
      assert.isFalse(yield* fs.exists("a/f"))
      assert.deepStrictEqual(yield* names(fs, "a"), [])
      yield* fs.write("a/f", "new", { mode: "append" })
      assert.strictEqual(yield* fs.readString("a/f"), "new")
      assert.strictEqual(yield* lower.readString("a/f"), "old")
    })
  )

  it.effect("shows a directory as empty if it replaces a deleted directory", () =>
    Effect.gen(function* () {
      const { fs } = yield* layers({ d: { e: { f: "f" }, g: "g" } })
      yield* fs.delete("d", { recursive: true })
      yield* fs.mkdir("d/e")
      assert.deepStrictEqual(yield* names(fs, "d"), ["e"])
      assert.deepStrictEqual(yield* names(fs, "d/e"), [])
      assert.deepStrictEqual(yield* told(fs), ["Removed d/e/f", "Removed d/g"])
    })
  )

  it.effect("shows existing entries of the upper filesystem instead of lower entries", () =>
    Effect.gen(function* () {
      const { fs } = yield* layers(
        { d: { below: "1", both: "lower" }, f: { hidden: "2" }, g: "file" },
        { upper: { tree: { d: { above: "3", both: "upper" }, f: "now a file", g: { now: "a directory" } } } }
      )
      assert.deepStrictEqual(yield* names(fs, "d"), ["above", "below", "both"])
      assert.strictEqual(yield* fs.readString("d/both"), "upper")
      assert.isFalse(yield* fs.exists("f/hidden"))
      assert.deepStrictEqual(yield* names(fs, "g"), ["now"])
      assert.deepStrictEqual(yield* told(fs), [
        "Added d/above",
        "Modified d/both",
        "Modified f",
        "Removed f/hidden",
        "Modified g",
        "Added g/now"
      ])
      yield* commit(fs)
      assert.strictEqual(yield* fs.readString("f"), "now a file")
      assert.strictEqual(yield* fs.readString("g/now"), "a directory")
    })
  )

  it.effect("keeps the mode of a moved or overwritten file, and the time of a moved file", () =>
    Effect.gen(function* () {
      const lower = yield* memory({ tree: { f: "f", g: "g", d: { h: "h" } } })
      for (const path of ["f", "g", "d/h"]) yield* lower.setAttributes(path, { mode: 0o640 })
      yield* lower.setAttributes("d", { mode: 0o555 })
      const fs = overlay(yield* memory())(lower)
      const { modifiedAt } = yield* fs.stat("f")
      yield* tick
      yield* fs.move("f", "moved")
      yield* fs.write("g", "new")
      yield* fs.move("d", "e")
      const moved = yield* fs.stat("moved")
      assert.strictEqual(moved.mode, 0o640)
      assert.deepStrictEqual(moved.modifiedAt, modifiedAt)
      assert.strictEqual((yield* fs.stat("g")).mode, 0o640)
      assert.strictEqual((yield* fs.stat("e/h")).mode, 0o640)
      assert.strictEqual((yield* fs.stat("e")).mode, 0o555)
      yield* commit(fs)
      assert.strictEqual((yield* lower.stat("moved")).mode, 0o640)
      assert.strictEqual((yield* lower.stat("e")).mode, 0o555)
    })
  )

  it.effect("moves a read-only directory with its entries", () =>
    Effect.gen(function* () {
      const lower = yield* memory({ tree: { d: { e: { f: "f" } }, to: {} } })
      yield* lower.setAttributes("d/e", { mode: 0o555 })
      const base = yield* InMemory.make()
      const writable = <A, E, R>(path: FsPath, run: Effect.Effect<A, E, R>) =>
        Effect.flatMap(base.stat(parent(path)), (above): Effect.Effect<A, E | Fault, R> =>
          ((above?.mode ?? 0) & 0o200) === 0 ? Effect.fail<Fault>({ _tag: "AccessDenied", why: "permission" }) : run
        )
      const strict = make({
        ...base,
        write: (path, content, mode, how) => writable(path, base.write(path, content, mode, how)),
        makeDirectory: (path) => writable(path, base.makeDirectory(path)),
        rename: (from, to, options) => writable(from, writable(to, base.rename(from, to, options)))
      })
      const fs = overlay(strict)(lower)
      yield* fs.move("d", "to/d")
      assert.strictEqual(yield* fs.readString("to/d/e/f"), "f")
      assert.strictEqual((yield* fs.stat("to/d/e")).mode, 0o555)
      assert.deepInclude(yield* Effect.flip(fs.write("to/d/e/new", "")), { _tag: "AccessDenied", why: "permission" })
    })
  )

  it.effect("keeps changes over a read-only lower filesystem, and fails to commit them", () =>
    Effect.gen(function* () {
      const lower = readOnly(yield* memory({ tree }))
      const fs = overlay(yield* memory())(lower)
      assert.isFalse(fs.readOnly)
      yield* fs.move("a", "moved")
      const denied = yield* Effect.flip(commit(fs))
      assert.deepInclude(denied, { _tag: "AccessDenied", why: "readOnly", operation: "commit" })
      assert.strictEqual(yield* fs.readString("moved/x"), "ax")
      assert.strictEqual(yield* lower.readString("a/x"), "ax")
    })
  )

  it.effect("has the permissions of the upper filesystem and the path rules of the lower filesystem", () =>
    Effect.gen(function* () {
      const { fs } = yield* layers(tree, { upper: { allowDelete: false }, lower: { policy: "branch" } })
      assert.deepInclude(yield* Effect.flip(fs.delete("c")), { _tag: "AccessDenied", why: "readOnly" })
      yield* fs.write("c", "over")
      assert.strictEqual(yield* tagOf(fs.stat("a//x")), "InvalidPath")
      const sealed = overlay(readOnly(yield* memory()))(yield* memory({ tree }))
      assert.isTrue(sealed.readOnly)
      assert.strictEqual(yield* sealed.readString("c"), "content of c")
      assert.deepInclude(yield* Effect.flip(sealed.write("c", "")), { _tag: "AccessDenied", why: "readOnly" })
    })
  )

  it.effect("follows links only if both filesystems follow links", () =>
    Effect.gen(function* () {
      const lower = yield* InMemory.make({ tree })
      const strict = make({ ...lower, rules: { ...lower.rules, symlinks: "refuse" } })
      const fs = overlay(yield* memory())(strict)
      assert.deepInclude(yield* Effect.flip(fs.readString("l")), { _tag: "AccessDenied", why: "link" })
    })
  )

  it.effect("copies a large file up in blocks", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree: { big: new Uint8Array(3_000_000).fill(7) } })
      let largest = 0
      const lower = make({
        ...base,
        perform: undefined,
        explore: undefined,
        open: (path) =>
          Effect.map(base.open(path), (handle) => ({
            ...handle,
            read: (offset, length) => {
              largest = Math.max(largest, length)
              return handle.read(offset, length)
            }
          }))
      })
      const fs = overlay(yield* memory())(lower)
      yield* fs.write("big", "end", { mode: "append" })
      assert.isAtMost(largest, 1024 * 1024)
      assert.strictEqual((yield* fs.stat("big")).sizeBytes, 3_000_003)
    })
  )

  it.effect("loses no concurrent append to a file that it copies up", () =>
    Effect.gen(function* () {
      const { fs } = yield* layers({ d: { f: "" } })
      const parts = Array.from({ length: 20 }, (_, i) => `<${i}>`)
      yield* Effect.forEach(parts, (part) => fs.write("d/f", part, { mode: "append" }), { concurrency: "unbounded" })
      const text = yield* fs.readString("d/f")
      assert.deepStrictEqual(text.match(/<\d+>/g)?.sort(), [...parts].sort())
      assert.strictEqual(text.length, parts.join("").length)
      assert.deepStrictEqual(yield* names(fs, "d"), ["f"])
    })
  )

  it.effect("loses no concurrent append at the port, without locks, to a file that it copies up", () =>
    Effect.gen(function* () {
      const lower = yield* InMemory.make({ tree: { d: { f: "old" } } })
      const upper = yield* InMemory.make()
      const slowly: Backend = {
        ...upper,
        rename: (from, to, options) => Effect.andThen(Effect.yieldNow, upper.rename(from, to, options)),
        makeDirectory: (path) => Effect.andThen(Effect.yieldNow, upper.makeDirectory(path))
      }
      const { port } = overlay(make(slowly))(make(lower))
      yield* Effect.forEach(["1", "2", "3"], (part) => port.write<never, never>(at("d/f"), utf8(part), "append"), {
        concurrency: "unbounded"
      })
      const { text } = (yield* capture(port))["d/f"] as { readonly text: string }
      assert.match(text, /^old/)
      assert.deepStrictEqual(text.slice(3).split("").sort(), ["1", "2", "3"])
      assert.deepStrictEqual(Object.keys(yield* capture(upper)), ["d", "d/f"])
    })
  )

  it.effect("writes only the appended stream if the file is deleted while the stream runs", () =>
    Effect.gen(function* () {
      const { fs } = yield* layers({ f: "old" })
      const [started, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const source = Stream.concat(
        Stream.make(utf8("ne")),
        Stream.fromEffect(Effect.as(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(go)), utf8("w")))
      )
      const writer = yield* Effect.forkChild(Stream.run(source, fs.sink("f", { mode: "append" })))
      yield* Deferred.await(started)
      yield* fs.delete("f")
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(writer)
      assert.strictEqual(yield* fs.readString("f"), "new")
    })
  )

  for (const [name, end, mode, expected] of [
    ["discard", discard, "append", "oldnew"],
    ["discard", discard, "overwrite", "new"],
    ["commit", commit, "append", "oldnew"],
    ["commit", commit, "overwrite", "new"]
  ] as const) {
    it.effect(`completes a stream (${mode}) that ends after a ${name}`, () =>
      Effect.gen(function* () {
        const { fs, lower, upper } = yield* layers({ d: { e: { f: "old" } } })
        const [started, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const source = Stream.fromEffect(
          Effect.as(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(go)), utf8("new"))
        )
        yield* fs.write("d/e/other", "o")
        yield* fs.write("n/other", "o")
        const writer = yield* Effect.forkChild(Stream.run(source, fs.sink("d/e/f", { mode })))
        yield* Deferred.await(started)
        yield* Effect.asVoid<unknown, unknown, never>(end(fs))
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(writer)
        assert.strictEqual(yield* fs.readString("d/e/f"), expected)
        assert.strictEqual(yield* lower.readString("d/e/f"), "old")
        assert.deepStrictEqual(Object.keys(yield* capture(upper.port)), ["d", "d/e", "d/e/f"])
      })
    )
  }

  it.effect("leaves no file in the upper filesystem when a copy up is interrupted", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree: { f: "text" } })
      const reading = yield* Deferred.make<void>()
      const lower = make({
        ...base,
        perform: undefined,
        explore: undefined,
        open: (path) =>
          Effect.map(base.open(path), (handle) => ({
            ...handle,
            read: () => Effect.andThen(Deferred.succeed(reading, undefined), Effect.never)
          }))
      })
      const upper = yield* memory()
      const fs = overlay(upper)(lower)
      const writer = yield* Effect.forkChild(fs.write("f", "more", { mode: "append" }))
      yield* Deferred.await(reading)
      yield* Fiber.interrupt(writer)
      assert.deepStrictEqual(yield* capture(upper.port), {})
      assert.strictEqual((yield* fs.stat("f")).sizeBytes, 4)
    })
  )

  it.effect("hides no lower entry when a rename in the upper filesystem fails", () =>
    Effect.gen(function* () {
      const lower = yield* memory({ tree })
      const base = yield* InMemory.make()
      const upper = make({
        ...base,
        rename: (from, to, options) =>
          from.includes(".~fsa-")
            ? base.rename(from, to, options)
            : Effect.fail({ _tag: "IoError", code: "EIO", detail: "broken" })
      })
      const fs = overlay(upper)(lower)
      const before = yield* capture(fs.port)
      assert.strictEqual(yield* tagOf(fs.move("a", "moved")), "IoError")
      assert.deepStrictEqual(yield* capture(fs.port), before)
      assert.deepStrictEqual(yield* changes(fs), [])
      yield* lower.write("a/late", "shows")
      assert.strictEqual(yield* fs.readString("a/late"), "shows")
    })
  )

  it.effect("supports links and attributes only if both filesystems support them", () =>
    Effect.gen(function* () {
      const lower = yield* InMemory.make({ tree })
      const plain = make({ ...(yield* InMemory.make()), links: undefined, attributes: undefined })
      for (const fs of [overlay(plain)(make(lower)), overlay(make(lower))(plain)]) {
        assert.strictEqual(yield* tagOf(fs.symlink("new", "c")), "Unsupported")
        assert.strictEqual(yield* tagOf(fs.setAttributes("c", { mode: 0o600 })), "Unsupported")
      }
    })
  )

  it.effect("reports its own changes, and those changes of the lower filesystem that are visible", () =>
    Effect.gen(function* () {
      const { fs, lower } = yield* layers({ a: { f: "f", g: "g" } })
      const seen: Array<string> = []
      const watcher = yield* Stream.runForEach(fs.watch(), ({ _tag, path }) =>
        Effect.sync(() => void seen.push(`${_tag} ${path}`))
      ).pipe(Effect.forkChild({ startImmediately: true }))
      yield* Effect.yieldNow
      yield* fs.write("a/f", "more", { mode: "append" })
      yield* fs.delete("a/g")
      yield* fs.mkdir("b")
      yield* fs.move("a/f", "b/f")
      yield* lower.write("a/f", "not shown")
      yield* lower.write("a/g", "not shown")
      yield* lower.write("a/h", "shown")
      yield* TestYields
      yield* Fiber.interrupt(watcher)
      assert.sameMembers(seen, ["Updated a/f", "Removed a/g", "Created b", "Removed a/f", "Created b/f", "Created a/h"])
    })
  )

  const watchUntilFailure = (fs: Algebra, path: string) => {
    const seen: Array<string> = []
    const run = Stream.runForEach(fs.watch(path), ({ _tag, path }) => Effect.sync(() => void seen.push(`${_tag} ${path}`)))
    return Effect.map(
      Effect.forkChild(
        Effect.catch(run, ({ _tag }) => Effect.sync(() => void seen.push(_tag))),
        { startImmediately: true }
      ),
      () => seen
    )
  }

  it.effect("a watch fails with NotFound when its directory is removed, moved or replaced", () =>
    Effect.gen(function* () {
      for (const lose of [
        (fs: Algebra) => fs.delete("a", { recursive: true }),
        (fs: Algebra) => fs.move("a", "b"),
        (fs: Algebra) => fs.move("a/sub", "a/other")
      ]) {
        for (const lowerTree of [{ a: { sub: { f: "f" } } }, {}]) {
          const { fs } = yield* layers(lowerTree)
          yield* fs.write("a/sub/f", "new", { createParents: true })
          const seen = yield* watchUntilFailure(fs, "a/sub")
          yield* Effect.yieldNow
          yield* lose(fs)
          yield* TestYields
          assert.strictEqual(seen.at(-1), "NotFound", lose.toString())
        }
      }
    })
  )

  it.effect("a watch outlives its directory in the lower filesystem if the upper filesystem has the directory", () =>
    Effect.gen(function* () {
      const { fs, lower } = yield* layers({ a: { f: "f" }, b: { f: "f" } })
      yield* fs.write("a/g", "g")
      const kept = yield* watchUntilFailure(fs, "a")
      const lost = yield* watchUntilFailure(fs, "b")
      yield* Effect.yieldNow
      yield* lower.delete("a", { recursive: true })
      yield* lower.delete("b", { recursive: true })
      yield* TestYields
      yield* fs.write("a/h", "h")
      yield* TestYields
      assert.deepStrictEqual(kept, ["Removed a/f", "Created a/h"])
      assert.deepStrictEqual(lost, ["Removed b/f", "NotFound"])
    })
  )

  it.effect("is case-insensitive if one of its filesystems is case-insensitive", () =>
    Effect.gen(function* () {
      for (const [, options] of cases) {
        const { fs } = yield* layers({ Docs: { "Read.md": "r" } }, options)
        assert.strictEqual(yield* fs.readString("docs/READ.MD"), "r")
        yield* fs.write("DOCS/read.md", "!", { mode: "append" })
        yield* fs.write("docs/New.txt", "n")
        assert.strictEqual(yield* fs.readString("Docs/Read.md"), "r!")
        assert.strictEqual((yield* names(fs, "docs")).length, 2)
        assert.strictEqual(yield* tagOf(fs.write("docs/NEW.TXT", "", { mode: "create" })), "AlreadyExists")
        yield* fs.delete("DOCS/READ.md")
        assert.deepStrictEqual(yield* names(fs, "docs"), ["New.txt"])
        yield* fs.move("docs/New.txt", "docs/NEW.txt")
        assert.deepStrictEqual(yield* names(fs, "docs"), ["NEW.txt"])
      }
    })
  )

  it.effect("shows only one of two lower names that differ in case, and locks both together", () =>
    Effect.gen(function* () {
      const { fs } = yield* layers({ d: { a: "small", A: "large" } }, { upper: { caseInsensitive: true } })
      assert.deepStrictEqual(yield* names(fs, "d"), ["A"])
      const locks = overlay(yield* memory())(fs).port.locks!
      const done: Array<string> = []
      const note = (text: string) => Effect.sync(() => done.push(text))
      const first = Effect.andThen(Effect.yieldNow, Effect.andThen(Effect.yieldNow, note("first")))
      yield* Effect.all([locks.exclusive([at("d/a")], first), locks.exclusive([at("D/A")], note("second"))], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(done, ["first", "second"])
    })
  )

  it.effect("commits a name in its new spelling", () =>
    Effect.gen(function* () {
      const { fs, lower } = yield* layers({ Readme: "r", d: { x: "x" }, f: "f" }, { lower: { caseInsensitive: true } })
      yield* fs.move("Readme", "README")
      yield* fs.move("d", "D")
      yield* fs.delete("f")
      yield* fs.symlink("F", "D/x")
      assert.deepStrictEqual(yield* told(fs), ["Modified D", "Modified F", "Modified README"])
      yield* commit(fs)
      assert.deepStrictEqual(yield* names(lower), ["D", "F", "README"])
      assert.strictEqual(yield* lower.readString("D/x"), "x")
    })
  )

  it.effect("keeps a moved file in the lower filesystem at every moment of a commit", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree: { d: { precious: "p" } } })
      const lost: Array<string> = []
      const check = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        Effect.tap(effect, () =>
          Effect.map(Effect.orDie(capture(base)), (now) => {
            if (!Object.values(now).some((entry) => (entry as { text?: string }).text === "p")) lost.push("precious")
          })
        )
      const lower = make({
        ...base,
        perform: undefined,
        explore: undefined,
        write: (path, bytes, mode, how) => check(base.write(path, bytes, mode, how)),
        remove: (path) => check(base.remove(path)),
        rename: (from, to, options) => check(base.rename(from, to, options))
      })
      const fs = overlay(yield* memory())(lower)
      yield* fs.move("d", "z")
      yield* fs.write("d", "a file now")
      yield* commit(fs)
      assert.deepStrictEqual(lost, [])
      assert.strictEqual(yield* lower.readString("z/precious"), "p")
      assert.strictEqual(yield* lower.readString("d"), "a file now")
    })
  )

  it.effect("rewrites only the changed file in place on commit", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree })
      const done: Array<string> = []
      const lower = make({
        ...base,
        write: (path, bytes, mode, how) =>
          Effect.tap(base.write(path, bytes, mode, how), () => Effect.sync(() => done.push(`${mode} ${path}`))),
        remove: (path) => Effect.tap(base.remove(path), () => Effect.sync(() => done.push(`remove ${path}`))),
        rename: (from, to, options) =>
          Effect.tap(base.rename(from, to, options), () => Effect.sync(() => done.push(`rename ${to}`)))
      })
      const fs = overlay(yield* memory())(lower)
      yield* fs.write("a/x", "new")
      yield* fs.write("a/y", "a longer text")
      yield* fs.setAttributes("c", { mode: 0o644 })
      assert.deepStrictEqual(yield* commit(fs), [{ _tag: "Modified", path: at("a/x") }])
      assert.deepStrictEqual(done, ["replace a/x"])
    })
  )

  it.effect("is required by changes, commit and discard, which fail with Unsupported on any other filesystem", () =>
    Effect.gen(function* () {
      const { fs, lower } = yield* layers()
      yield* fs.write("c", "changed")
      for (const other of [lower, traced(fs), readOnly(fs), yield* subdirectory("a")(fs)]) {
        for (const asked of [Effect.asVoid(changes(other)), Effect.asVoid(commit(other)), discard(other)]) {
          assert.deepInclude(yield* Effect.flip(asked), { _tag: "Unsupported", feature: "overlay" })
        }
      }
      assert.strictEqual(yield* lower.readString("c"), "content of c")
    })
  )

  it.effect("is committed without deadlock if its upper filesystem is inside the lower filesystem", () =>
    Effect.gen(function* () {
      const lower = yield* memory({ tree: { ...tree, ".changes": {} } })
      const upper = yield* subdirectory(".changes")(lower)
      const fs = overlay(upper)(lower)
      yield* fs.write("c", "changed")
      assert.strictEqual(yield* lower.readString(".changes/c"), "changed")
      yield* commit(fs)
      assert.strictEqual(yield* lower.readString("c"), "changed")
    })
  )

  it.effect("loses no write that runs concurrently with a commit", () =>
    Effect.gen(function* () {
      const { fs, lower } = yield* layers({})
      const writes = Effect.forEach(
        Array.from({ length: 30 }, (_, i) => i),
        (i) => fs.write(`d${i % 3}/${i}`, `${i}`),
        {
          concurrency: "unbounded",
          discard: true
        }
      )
      const commits = Effect.forEach([1, 2, 3], () => commit(fs), { discard: true })
      yield* Effect.all([writes, commits], { concurrency: "unbounded" })
      yield* commit(fs)
      const found = yield* capture(lower.port)
      for (let i = 0; i < 30; i++) assert.deepInclude(found[`d${i % 3}/${i}`], { text: `${i}` })
    })
  )
})

/** Yields often enough for pending events to arrive. */
const TestYields = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })
