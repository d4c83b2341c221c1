import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Random, Stream } from "effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { quota, readOnly, subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { capture, program, run, type Step, tick, timeless, tree } from "./programs.ts"
import { runs } from "../runs.ts"

const at = (path: string) => path as FsPath
const root = at(".")

const memory = (options: InMemory.InMemoryOptions = {}) => Effect.map(InMemory.make(options), make)
const names = (fs: Algebra, path = ".") => Effect.map(fs.list(path), (entries) => entries.map(({ name }) => name))
const fails = <A, E, R>(effect: Effect.Effect<A, E, R>, expected: object) =>
  Effect.map(Effect.flip(effect), (error) => assert.deepInclude(error as object, expected))
const isRoot = { _tag: "AccessDenied", why: "root" }

/** Makes every primitive call yield first, so that other fibers run in between. */
const yielding = (port: Backend): Backend => ({
  ...port,
  perform: undefined,
  explore: undefined,
  stat: (path) => Effect.andThen(Effect.yieldNow, port.stat(path)),
  write: (path, bytes, mode, how) => Effect.andThen(Effect.yieldNow, port.write(path, bytes, mode, how)),
  rename: (from, to, options) => Effect.andThen(Effect.yieldNow, port.rename(from, to, options)),
  remove: (path) => Effect.andThen(Effect.yieldNow, port.remove(path))
})

/** Tests whether a mount at "a/d" protects this path. In this respect a mount differs from a plain tree. */
const stays = (path: string) => path === "a" || path === "a/d"
const touchesMount = (step: Step): boolean =>
  step._tag === "setMode" ||
  (step._tag === "delete" && stays(step.path)) ||
  (step._tag === "move" && (stays(step.from) || stays(step.to))) ||
  (step._tag === "copy" && stays(step.to))

const modeless = (captured: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(timeless(captured)).map(([path, entry]) => [path, { ...(entry as object), mode: 0 }]))
const answered = (answer: unknown) => JSON.stringify(answer, (key, value: unknown) => (key === "mode" ? 0 : value))

const mounted = Effect.fnUntraced(function* () {
  const outer = yield* memory({ tree: { ...tree, a: { ...tree.a, d: { hidden: "below the mount" } } } })
  const inner = yield* memory({ tree: tree.a.d })
  return { outer, inner, fs: yield* mount("a/d", inner)(outer) }
})

describe("a mounted filesystem", () => {
  it.effect.prop(
    "answers random programs as one tree, and leaves the hidden directory unchanged",
    [program],
    Effect.fnUntraced(function* ([steps]) {
      const whole = yield* memory({ tree })
      const { fs, outer } = yield* mounted()
      for (const step of steps) {
        if (touchesMount(step)) continue
        yield* tick
        assert.strictEqual(answered(yield* run(fs, step)), answered(yield* run(whole, step)), JSON.stringify(step))
      }
      assert.deepStrictEqual(modeless(yield* capture(fs.port)), modeless(yield* capture(whole.port)))
      assert.strictEqual(yield* outer.readString("a/d/hidden"), "below the mount")
      assert.deepStrictEqual(yield* names(outer, "a/d"), ["hidden"])
    }),
    { arbitrary: { runs: runs(300) } }
  )

  it.effect("is mounted at a missing path, whose parents it creates, and is listed there", () =>
    Effect.gen(function* () {
      const outer = yield* memory({ tree: { z: "z" } })
      const fs = yield* mount("p/q/m", yield* memory({ tree: { f: "inside" } }))(outer)
      assert.deepStrictEqual(yield* names(fs, "p/q"), ["m"])
      assert.strictEqual(yield* fs.readString("p/q/m/f"), "inside")
      assert.deepStrictEqual(yield* names(outer, "p/q/m"), [])
      assert.deepStrictEqual(
        (yield* Stream.runCollect(fs.walk())).map(({ path }) => path),
        ["p", "p/q", "p/q/m", "p/q/m/f", "z"].map(at)
      )
    })
  )

  it.effect("stays listed when the directory below the mount is removed", () =>
    Effect.gen(function* () {
      const { fs, outer } = yield* mounted()
      yield* outer.delete("a/d", { recursive: true })
      assert.include(yield* names(fs, "a"), "d")
      yield* outer.write("a/d", "a file now")
      assert.deepInclude(
        (yield* fs.list("a")).find(({ name }) => name === "d"),
        { kind: "directory" }
      )
      assert.strictEqual(yield* fs.readString("a/d/z"), "adz")
    })
  )

  it.effect("cannot be deleted, moved or replaced, nor can its parents and the root", () =>
    Effect.gen(function* () {
      const { fs, inner } = yield* mounted()
      yield* inner.delete("z")
      yield* inner.delete("deep", { recursive: true })
      yield* fs.mkdir("empty")
      for (const path of ["a/d", "a", "."]) {
        for (const recursive of [true, false]) yield* fails(fs.delete(path, { recursive }), isRoot)
        yield* fails(fs.move(path, "elsewhere"), isRoot)
        yield* fails(fs.move("empty", path, { overwrite: true }), isRoot)
        yield* fails(fs.copy("empty", path, { overwrite: true }), isRoot)
        yield* fails(fs.port.remove(at(path)), isRoot)
        yield* fails(fs.port.rename(at(path), at("elsewhere"), { replace: true }), isRoot)
        yield* fails(fs.port.rename(at("empty"), at(path), { replace: true }), isRoot)
      }
      assert.isTrue(yield* fs.exists("a/d"))
    })
  )

  it.effect("fails with EXDEV for a rename between its sides at the port; the service copies instead", () =>
    Effect.gen(function* () {
      const { fs, inner, outer } = yield* mounted()
      yield* fails(fs.port.rename(at("c"), at("a/d/c"), { replace: false }), {
        _tag: "IoError",
        code: "EXDEV"
      })
      assert.deepStrictEqual(yield* fs.move("b", "a/d/b"), { files: 1, directories: 1, bytes: 2 })
      assert.strictEqual(yield* inner.readString("b/x"), "bx")
      assert.isFalse(yield* outer.exists("b"))
      assert.deepStrictEqual(yield* fs.move("a/d/deep/w", "w"), { files: 1, directories: 0, bytes: 1 })
      assert.strictEqual(yield* outer.readString("w"), "w")
      assert.isFalse(yield* inner.exists("deep/w"))
    })
  )

  it.effect("rejects a path that cannot be a mount point, creates nothing, and accepts a link to a directory", () =>
    Effect.gen(function* () {
      const outer = yield* memory({ tree: { f: "f", dangling: { link: "nowhere" }, dir: {}, good: { link: "dir" } } })
      const inner = yield* memory({ tree: { x: "x" } })
      const before = yield* capture(outer.port)
      yield* fails(mount("f", inner)(outer), { _tag: "NotADirectory", operation: "mount", path: "f" })
      yield* fails(mount("f/below", inner)(outer), { _tag: "NotADirectory" })
      yield* fails(mount("dangling", inner)(outer), { _tag: "AlreadyExists" })
      yield* fails(mount(".", inner)(outer), isRoot)
      yield* fails(mount("../up", inner)(outer), { _tag: "InvalidPath" })
      yield* fails(mount("new", inner)(readOnly(outer)), { _tag: "AccessDenied", why: "readOnly" })
      assert.deepStrictEqual(yield* capture(outer.port), before)
      const through = yield* mount("good", inner)(outer)
      assert.strictEqual(yield* through.readString("dir/x"), "x")
      assert.strictEqual(yield* through.readString("good/x"), "x")
      yield* fails(through.delete("dir", { recursive: true }), isRoot)
    })
  )

  it.effect("reports a full disk instead of a missing directory", () =>
    Effect.gen(function* () {
      const outer = yield* InMemory.make()
      const full = make({ ...outer, makeDirectory: () => Effect.fail({ _tag: "DiskFull" }) })
      yield* fails(mount("m", yield* memory())(full), { _tag: "IoError", code: "ENOSPC" })
    })
  )

  it.effect("can be mounted over a mount, and inside a mount", () =>
    Effect.gen(function* () {
      const { fs } = yield* mounted()
      const inside = yield* mount("a/d/deep/m", yield* memory({ tree: { in: "in" } }))(fs)
      const over = yield* mount("a/d", yield* memory({ tree: { on: "on" } }))(inside)
      assert.strictEqual(yield* inside.readString("a/d/deep/m/in"), "in")
      for (const path of ["a/d/deep/m", "a/d/deep", "a/d", "a"]) {
        yield* fails(inside.delete(path, { recursive: true }), isRoot)
      }
      assert.deepStrictEqual(yield* names(over, "a/d"), ["on"])
      yield* over.move("a/d/on", "b/on")
      assert.strictEqual(yield* inside.readString("b/on"), "on")
    })
  )
})

describe("the sides of a mount", () => {
  it.effect("keep their own permissions, and form a read-only filesystem if both are read-only", () =>
    Effect.gen(function* () {
      const { inner, outer } = yield* mounted()
      const sealedInside = yield* mount("a/d", readOnly(inner))(outer)
      assert.isFalse(sealedInside.readOnly)
      yield* fails(sealedInside.write("a/d/z", ""), { _tag: "AccessDenied", why: "readOnly" })
      yield* fails(sealedInside.move("a/d/z", "z"), { _tag: "AccessDenied", why: "readOnly" })
      yield* fails(sealedInside.move("c", "a/d/c"), { _tag: "AccessDenied", why: "readOnly" })
      yield* sealedInside.copy("a/d/z", "z")
      assert.strictEqual(yield* outer.readString("z"), "adz")
      const sealedOutside = yield* mount("a/d", inner)(readOnly(outer))
      yield* sealedOutside.write("a/d/new", "n")
      yield* fails(sealedOutside.write("new", ""), { _tag: "AccessDenied", why: "readOnly" })
      assert.isTrue((yield* mount("a/d", readOnly(inner))(readOnly(outer))).readOnly)
    })
  )

  it.effect("keep their own quota", () =>
    Effect.gen(function* () {
      const { inner, outer } = yield* mounted()
      const fs = yield* mount("a/d", yield* quota({ maxBytes: 10 })(inner))(outer)
      assert.strictEqual((yield* Effect.flip(fs.copy("c", "a/d/c")))._tag, "DiskFull")
      yield* fs.write("big", "x".repeat(100))
    })
  )

  it.effect("support links and attributes only if they support them without the mount", () =>
    Effect.gen(function* () {
      const plain = make({
        ...(yield* InMemory.make({ tree: { f: "f", l: { link: "f" } } })),
        links: undefined,
        attributes: undefined,
        watch: undefined
      })
      const fs = yield* mount("m", plain)(yield* memory({ tree: { g: "g" } }))
      yield* fs.symlink("toG", "g")
      yield* fs.symlink("toF", "m/f")
      assert.strictEqual(yield* fs.readString("toG"), "g")
      assert.strictEqual(yield* fs.readString("toF"), "f")
      yield* fails(fs.symlink("m/new", "f"), { _tag: "Unsupported" })
      yield* fails(fs.setAttributes("m/f", { mode: 0o600 }), { _tag: "Unsupported" })
      yield* fs.setAttributes("g", { mode: 0o600 })
      assert.strictEqual((yield* fs.stat("m/l")).kind, "other")
      assert.strictEqual((yield* Effect.flip(fs.readString("m/l")))._tag, "NotAFile")
      assert.strictEqual((yield* Effect.flip(fs.copy("toG", "m/toG")))._tag, "Unsupported")
      yield* fails(Stream.runDrain(fs.watch("m")), { _tag: "Unsupported" })
      yield* fails(Stream.runDrain(fs.watch()), { _tag: "Unsupported" })
    })
  )

  it.effect("may contain links that lead to the other side, but no link leads out of the whole tree", () =>
    Effect.gen(function* () {
      const outer = yield* memory({ tree: { secret: "outside", in: { link: "m/f" }, m: {} } })
      const inner = yield* memory({
        tree: { f: "inside", up: { link: "../secret" }, out: { link: "../../secret" }, absolute: { link: "/secret" } }
      })
      const fs = yield* mount("m", inner)(outer)
      assert.strictEqual(yield* fs.readString("in"), "inside")
      assert.strictEqual(yield* fs.readString("m/up"), "outside")
      for (const path of ["m/out", "m/absolute"]) {
        yield* fails(fs.readString(path), { _tag: "AccessDenied", why: "escape" })
      }
      yield* fails(inner.readString("up"), { _tag: "AccessDenied", why: "escape" })
      const alone = yield* subdirectory("m")(fs)
      yield* fails(alone.readString("up"), { _tag: "AccessDenied", why: "escape" })
    })
  )

  it.effect("refuse links if one side refuses links", () =>
    Effect.gen(function* () {
      const strict = yield* InMemory.make({ tree: { f: "f", l: { link: "f" } } })
      const fs = yield* mount("m", make({ ...strict, rules: { ...strict.rules, symlinks: "refuse" } }))(yield* memory({ tree }))
      for (const path of ["m/l", "l"]) {
        yield* fails(fs.readString(path), { _tag: "AccessDenied", why: "link" })
      }
    })
  )

  it.effect("can be watched by a path in any case if one side is case-insensitive", () =>
    Effect.gen(function* () {
      const outer = yield* InMemory.make({ tree: { dir: {} } })
      const caseless = yield* memory({ caseInsensitive: true })
      const fs = yield* mount("m", caseless)(make(outer))
      const watcher = yield* Effect.forkChild(Stream.runCollect(Stream.take(fs.watch("DIR"), 1)), { startImmediately: true })
      yield* Effect.yieldNow
      yield* fs.write("dir/new", "")
      assert.deepStrictEqual([...(yield* Fiber.join(watcher))], [{ _tag: "Created", path: "dir/new" }])
    })
  )

  it.effect("are watched together, without hidden entries", () =>
    Effect.gen(function* () {
      const { fs, inner, outer } = yield* mounted()
      const seen: Array<string> = []
      const watch = (path: string) =>
        Stream.runForEach(fs.watch(path), (event) =>
          Effect.sync(() => void seen.push(`${path}: ${event._tag} ${event.path}`))
        ).pipe(Effect.forkChild({ startImmediately: true }))
      const watchers = yield* Effect.forEach([".", "a/d/deep", "b"], watch)
      yield* Effect.yieldNow
      yield* outer.write("b/new", "")
      yield* inner.write("deep/new", "")
      yield* outer.write("a/d/unseen", "")
      yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })
      yield* Fiber.interruptAll(watchers)
      assert.sameMembers(seen, [
        ".: Created b/new",
        ".: Created a/d/deep/new",
        "a/d/deep: Created a/d/deep/new",
        "b: Created b/new"
      ])
    })
  )

  it.effect("are both case-insensitive if one side is case-insensitive", () =>
    Effect.gen(function* () {
      const folding = { caseInsensitive: true }
      for (const [one, other] of [
        [folding, {}],
        [{}, folding]
      ] as const) {
        const fs = yield* mount(
          "Mount",
          yield* memory({ tree: { File: "f" }, ...other })
        )(yield* memory({ tree: { Dir: { Name: "n" } }, ...one }))
        assert.isFalse(fs.port.info.caseSensitive)
        assert.strictEqual(yield* fs.readString("MOUNT/file"), "f")
        assert.strictEqual(yield* fs.readString("dir/NAME"), "n")
        yield* fs.move("DIR", "mount/sub")
        assert.strictEqual(yield* fs.readString("Mount/SUB/name"), "n")
        yield* fails(fs.delete("mOUNT", { recursive: true }), isRoot)
        yield* fails(fs.copy("mount/sub", "MOUNT/Sub/below"), { _tag: "InvalidArgument" })
        assert.deepStrictEqual(yield* names(fs), ["Mount"])
      }
    })
  )
})

describe("the locks of a mount", () => {
  it.effect("cover both sides for the root, and also block calls that use a side directly", () =>
    Effect.gen(function* () {
      const { fs, inner, outer } = yield* mounted()
      const done: Array<string> = []
      const go = yield* Deferred.make<void>()
      const whole = yield* Effect.forkChild(
        fs.port.locks!.exclusive(
          [root],
          Effect.andThen(
            Deferred.await(go),
            Effect.sync(() => done.push("whole"))
          )
        ),
        { startImmediately: true }
      )
      const others = yield* Effect.forkChild(
        Effect.all(
          [
            Effect.tap(inner.write("z", ""), () => Effect.sync(() => done.push("inner"))),
            Effect.tap(outer.write("c", ""), () => Effect.sync(() => done.push("outer")))
          ],
          { concurrency: "unbounded" }
        ),
        { startImmediately: true }
      )
      yield* Effect.yieldNow
      assert.deepStrictEqual(done, [])
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(whole)
      yield* Fiber.join(others)
      assert.strictEqual(done[0], "whole")
      assert.sameMembers(done, ["whole", "inner", "outer"])
    })
  )

  it.effect("are taken once for a backend that is on both sides, without deadlock", () =>
    Effect.gen(function* () {
      const whole = yield* memory({ tree: { shared: { f: "f" }, g: "g" } })
      const fs = yield* mount("m", yield* subdirectory("shared")(whole))(whole)
      yield* fs.port.locks!.exclusive([root], Effect.void)
      yield* fs.move("shared/f", "m/h")
      yield* fs.move("g", "m/g")
      yield* fs.move("m/h", "shared/i")
      assert.deepStrictEqual(yield* names(fs, "shared"), ["g", "i"])
      assert.deepStrictEqual(yield* names(fs, "m"), ["g", "i"])
    })
  )

  it.effect("lock every path of a request, on both sides and for several paths of one backend", () =>
    Effect.gen(function* () {
      const whole = yield* memory({ tree: { shared: { f: "f" }, g: "g" } })
      const fs = yield* mount("m", yield* subdirectory("shared")(whole))(whole)
      for (const written of ["g", "shared/f"]) {
        const done: Array<string> = []
        const go = yield* Deferred.make<void>()
        const holder = yield* Effect.forkChild(
          fs.port.locks!.exclusive(
            [at("g"), at("m/f")],
            Effect.andThen(
              Deferred.await(go),
              Effect.sync(() => done.push("held"))
            )
          ),
          { startImmediately: true }
        )
        const writer = yield* Effect.forkChild(
          Effect.tap(whole.write(written, "w"), () => Effect.sync(() => done.push("written"))),
          { startImmediately: true }
        )
        yield* Effect.yieldNow
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.joinAll([holder, writer])
        assert.deepStrictEqual(done, ["held", "written"])
      }
    })
  )

  it.effect("do not deadlock or lose files in random moves through crossed, nested and doubled mounts", () =>
    Effect.gen(function* () {
      const files = Array.from({ length: 6 }, (_, i) => `f${i}`)
      const full = (side: string) => Object.fromEntries(files.map((name) => [name, `${side} ${name}`]))
      const a = make(yielding(yield* InMemory.make({ tree: { ...full("a"), m: {}, sub: {} } })))
      const b = make(yielding(yield* InMemory.make({ tree: { ...full("b"), m: {} } })))
      const c = make(yielding(yield* InMemory.make({ tree: { ...full("c") } })))
      const aInB = yield* mount("m", a)(b)
      const bInA = yield* mount("m", b)(a)
      const nested = yield* mount("m/sub", c)(aInB)
      const doubled = yield* mount("m", yield* subdirectory("sub")(a))(a)
      const work = Effect.fnUntraced(function* (fs: Algebra, prefixes: ReadonlyArray<string>) {
        for (let i = 0; i < 40; i++) {
          const pick = Effect.map(
            Effect.all([Random.nextIntBetween(0, prefixes.length - 1), Random.nextIntBetween(0, files.length - 1)]),
            ([prefix, file]) => prefixes[prefix]! + files[file]!
          )
          const [from, to] = [yield* pick, yield* pick]
          yield* Effect.ignore(i % 8 === 7 ? fs.port.locks!.exclusive([root], Effect.yieldNow) : fs.move(from, to))
        }
      })
      yield* Effect.all(
        [
          work(aInB, ["", "m/"]),
          work(bInA, ["", "m/"]),
          work(nested, ["", "m/", "m/sub/"]),
          work(doubled, ["", "m/", "sub/"]),
          work(aInB, ["", "m/"]),
          work(bInA, ["", "m/"])
        ],
        { concurrency: "unbounded" }
      )
      const texts = Effect.fnUntraced(function* (fs: Algebra) {
        return Object.values(yield* capture(fs.port)).flatMap((entry) => {
          const { text } = entry as { readonly text?: string }
          return text === undefined ? [] : [text]
        })
      })
      const found = [...(yield* texts(a)), ...(yield* texts(b)), ...(yield* texts(c))]
      assert.sameMembers(
        found,
        ["a", "b", "c"].flatMap((side) => files.map((name) => `${side} ${name}`))
      )
    })
  )
})

describe("between the sides of a mount", () => {
  it.effect("a copy of a directory into itself by its other path copies each entry once", () =>
    Effect.gen(function* () {
      const memory = make(yield* InMemory.make({ tree: { shared: { "a.txt": "1", deep: { "b.txt": "2" } } } }))
      const fs = yield* mount("m", yield* subdirectory("shared")(memory))(memory)
      assert.deepStrictEqual(yield* fs.copy("shared", "m/x"), { files: 2, directories: 2, bytes: 2 })
      assert.strictEqual(yield* fs.readString("shared/x/deep/b.txt"), "2")
      assert.isFalse(yield* fs.exists("shared/x/x"))
    })
  )

  it.effect("a move keeps permission bits", () =>
    Effect.gen(function* () {
      const outer = make(yield* InMemory.make({ tree: { d: { "a.sh": "1" } } }))
      const fs = yield* mount("m", make(yield* InMemory.make()))(outer)
      yield* fs.setAttributes("d/a.sh", { mode: 0o755 })
      yield* fs.setAttributes("d", { mode: 0o700 })
      yield* fs.move("d", "m/d")
      assert.deepStrictEqual([(yield* fs.stat("m/d")).mode, (yield* fs.stat("m/d/a.sh")).mode], [0o700, 0o755])
    })
  )
})
