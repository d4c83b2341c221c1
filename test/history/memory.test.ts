import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { makeMemoryHistory, makeMemoryPort } from "../../src/backends/memory/port.ts"
import * as MemoryTree from "../../src/backends/memory/tree.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { make as makeFilesystem } from "../../src/filesystem/Filesystem.ts"
import { compare, fold, type FsPath, root } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import type { Captured, MemoryHistory as History } from "../../src/port/history.ts"
import * as Watchers from "../../src/port/watchers.ts"
import { capture as pictureOf } from "../../src/testing/Files.ts"
import { runStep, Step } from "../backends/internal/memoryModel.ts"
import { performed } from "../performed.ts"

const at = (path: string) => path as FsPath
const utf8 = (text: string) => new TextEncoder().encode(text)
const put = (port: Backend, path: string, text: string, mode: "create" | "replace" | "append" = "replace") =>
  port.write<never, never>(at(path), utf8(text), mode)

const historyOf = (port: Backend): History => {
  assert.strictEqual(port.history?._tag, "Memory")
  return port.history as History
}

/** The kind, content and mode of each path, as the tree spells the path. */
type Picture = ReadonlyMap<string, string>

const picture = (port: Backend) =>
  Effect.gen(function* () {
    const out = new Map<string, string>()
    for (const [path, what] of [[".", "directory"], ...Object.entries(yield* pictureOf(port))] as ReadonlyArray<
      [string, string]
    >) {
      const mode = what.startsWith("link") ? "" : ` ${((yield* port.stat(at(path)))!.mode ?? 0).toString(8)}`
      out.set(path, what + mode)
    }
    return out as Picture
  })

/** A copy of a tree as a map of case-folded paths. Each entry keeps its spelling. */
interface Plain {
  readonly entries: ReadonlyMap<string, { readonly name: string; readonly what: string }>
}

const plainOf = (picture: Picture, folds: boolean): Plain => ({
  entries: new Map(
    [...picture].map(([path, what]) => [folds ? fold(path) : path, { name: path.slice(path.lastIndexOf("/") + 1), what }])
  )
})

const isBelow = (base: string, path: string) => path === base || path.startsWith(`${base}/`)

/** Returns the expected tree after `paths` are restored, by the rule of the port on plain copies. */
const restored = (now: Plain, then: Plain, paths: ReadonlyArray<string>): Plain => {
  const entries = new Map(now.entries)
  for (const path of paths) {
    if (path === root) return then
    const clear = (base: string) => {
      for (const key of entries.keys()) if (isBelow(base, key)) entries.delete(key)
    }
    if (then.entries.has(path)) {
      const names = path.split("/")
      for (let i = 1; i < names.length; i++) {
        const above = names.slice(0, i).join("/")
        if (entries.get(above)?.what.startsWith("directory") === true) continue
        clear(above)
        entries.set(above, then.entries.get(above)!)
      }
    }
    clear(path)
    for (const [key, entry] of then.entries) if (isBelow(path, key)) entries.set(key, entry)
  }
  return { entries }
}

const sorted = ({ entries }: Plain) => [...entries].sort(([a], [b]) => compare(a, b))

type Told = Array<readonly [tag: string, path: string]>

const memory = (folds: boolean, isWatched: boolean) => {
  const told: Told = []
  const caseInsensitive = folds
  const listener: MemoryTree.Listener = { isActive: () => isWatched, emit: (tag, path) => void told.push([tag, path]) }
  const tree = MemoryTree.make({ now: DateTime.makeUnsafe(0), caseInsensitive, listener })
  const port = makeMemoryPort(
    tree,
    Watchers.make((path) => path),
    { caseInsensitive, rules: {} }
  )
  return { port, history: makeMemoryHistory(tree, { caseInsensitive, rules: {} }), told }
}

/** Checks that the events lead from one tree to the other and miss no difference. */
const assertTold = (told: Told, before: Picture, after: Picture) => {
  const paths = new Set(before.keys())
  for (const [tag, path] of told) {
    assert.strictEqual(paths.has(path), tag !== "Created", `${tag} ${path}`)
    if (tag === "Created") paths.add(path)
    if (tag === "Removed") paths.delete(path)
  }
  assert.deepStrictEqual([...paths].sort(), [...after.keys()].sort())
  const named = new Set(told.map(([, path]) => path))
  for (const [path, what] of after) if (before.get(path) !== what) assert.isTrue(named.has(path), `nobody was told of ${path}`)
}

/** Compares two trees path by path, for all paths of both trees. */
const naive = (before: Picture, after: Picture, folds: boolean) => {
  const paths = [...new Set([...before.keys(), ...after.keys()])]
  const order = folds
    ? (a: string, b: string) => compare(fold(a), fold(b)) || compare(a, b)
    : (a: string, b: string) => compare(a, b)
  return paths.sort(order).flatMap((path) => {
    const [was, is] = [before.get(path), after.get(path)]
    return was === is ? [] : [{ _tag: was === undefined ? "Added" : is === undefined ? "Removed" : "Modified", path }]
  })
}

const int = (maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum })))
const Path = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals(["a", "A", "b"])), { minLength: 1, maxLength: 3 }),
  (names) => names.join("/")
)
const Change = Arbitrary.all({ step: Step, isChmod: Arbitrary.map(int(5), (n) => n === 0), path: Path, mode: int(0o777) })
const Moment = Arbitrary.all({
  changes: Arbitrary.array(Change, { maxLength: 10 }),
  /** The index of the capture to restore. Ignored if there are fewer captures. */
  which: int(3),
  /** The indexes of paths that exist in the capture or now. If the list is empty, the whole tree is restored. */
  picks: Arbitrary.array(int(1000), { maxLength: 3 })
})

type Change = typeof Change extends Arbitrary.Arbitrary<infer A> ? A : never

const change = (port: Backend, { isChmod, mode, path, step }: Change): Effect.Effect<void> =>
  Effect.ignore(isChmod ? port.attributes!.set(at(path), { mode }) : runStep(port, step))

for (const folds of [false, true]) {
  for (const isWatched of [false, true]) {
    it.effect.prop(
      `each capture can be restored after any changes, as a whole and by paths${folds ? ", in a case-insensitive tree" : ""}${isWatched ? ", and watchers see it" : ""}`,
      [Arbitrary.array(Moment, { maxLength: 8 })],
      ([moments]) =>
        Effect.gen(function* () {
          const { history, port, told } = memory(folds, isWatched)
          for (const path of ["a", "a/a", "a/b", "b", "b/b"]) yield* port.makeDirectory(at(path))
          for (const path of ["a/a/a", "a/a/b", "b/b/a"]) yield* put(port, path, path)
          const kept: Array<readonly [captured: Captured, then: Picture]> = []
          for (const { changes, picks, which } of moments) {
            for (const one of changes) yield* change(port, one)
            const before = yield* picture(port)
            kept.push([yield* history.capture, before])
            const chosen = kept[which]
            if (chosen === undefined) continue
            for (const one of changes.toReversed()) yield* change(port, one)
            const now = yield* picture(port)
            const all = [...new Set([...chosen[1].keys(), ...now.keys(), "a/b", "b/A/a"])]
            const paths = picks.map((pick) => all[pick % all.length]!)
            told.length = 0
            yield* paths.length === 0
              ? history.restore(chosen[0])
              : history.restore(
                  chosen[0],
                  paths.map((path) => at(path))
                )
            // The first lookup after a restore must not use an entry that was cached before.
            const found = yield* Effect.forEach(paths, (path) => port.stat(at(path)))
            const after = yield* picture(port)
            const expected =
              paths.length === 0
                ? plainOf(chosen[1], folds)
                : restored(
                    plainOf(now, folds),
                    plainOf(chosen[1], folds),
                    paths.map((path) => (folds ? fold(path) : path))
                  )
            assert.deepStrictEqual(sorted(plainOf(after, folds)), sorted(expected))
            const kinds = paths.map((path) => expected.entries.get(folds ? fold(path) : path)?.what.split(" ")[0])
            assert.deepStrictEqual(
              found.map((stat) => (stat?.kind === "symlink" ? "link" : stat?.kind)),
              kinds
            )
            if (isWatched) assertTold(told, now, after)
          }
          for (const [captured, then] of kept) {
            assert.deepStrictEqual(yield* picture(history.view(captured)), then)
          }
          for (const [before, was] of kept) {
            for (const [after, is] of kept) {
              assert.deepStrictEqual(history.differences(before, after), naive(was, is, folds) as never)
            }
          }
          // Each directory is empty as soon as all its visible entries are removed.
          const left = [...(yield* picture(port)).keys()].filter((path) => path !== root).sort(compare)
          for (const path of left.toReversed()) yield* port.remove(at(path))
        }),
      { arbitrary: { runs: 300 } }
    )
  }
}

const fresh = (tree: InMemory.Tree, options?: InMemory.InMemoryOptions) => Effect.orDie(InMemory.make({ tree, ...options }))

describe("a capture", () => {
  it.effect("belongs to its filesystem: another filesystem refuses it and changes nothing", () =>
    Effect.gen(function* () {
      const one = yield* fresh({ a: "1" })
      const other = yield* fresh({ b: "2" }, { caseInsensitive: true })
      const captured = yield* historyOf(other).capture
      for (const foreign of [captured, { root: {} }]) {
        for (const paths of [undefined, [at("b")], [root]]) {
          const fault = yield* Effect.flip(historyOf(one).restore(foreign, paths))
          assert.deepInclude(fault, { _tag: "InvalidArgument", argument: "captured" })
        }
      }
      assert.deepStrictEqual([...(yield* picture(one)).keys()], [".", "a"])
    })
  )

  it.effect("is the same object as the previous capture if nothing has changed", () =>
    Effect.gen(function* () {
      const history = historyOf(yield* fresh({ a: { b: "1" } }))
      assert.strictEqual((yield* history.capture).root, (yield* history.capture).root)
    })
  )

  it("is garbage collected with the bytes that only it holds", () => {
    const child = fileURLToPath(new URL("forgotten.ts", import.meta.url))
    const { status, stderr, stdout } = spawnSync(process.execPath, ["--expose-gc", child], { encoding: "utf8" })
    assert.strictEqual(status, 0, stderr)
    assert.deepStrictEqual(JSON.parse(stdout), { held: "there", forgotten: "gone" })
  })
})

describe("restoring a capture", () => {
  it.effect("by paths restores the times of the given entries and updates the times of their directories", () =>
    Effect.gen(function* () {
      const port = yield* fresh({ d: { e: { f: "1" } }, kept: "k" })
      const history = historyOf(port)
      const captured = yield* history.capture
      yield* TestClock.adjust(1000)
      yield* put(port, "d/e/f", "2")
      yield* TestClock.adjust(1000)
      yield* history.restore(captured, [at("d/e/f")])
      const modified = (path: string) => Effect.map(port.stat(at(path)), (stat) => stat!.modifiedAt!.epochMilliseconds)
      assert.strictEqual(yield* modified("d/e/f"), 0)
      assert.strictEqual(yield* modified("d/e"), 2000)
      assert.strictEqual(yield* modified("kept"), 0)
    })
  )

  it.effect("by paths re-creates missing parent directories with their modes, but no other entries", () =>
    Effect.gen(function* () {
      const port = yield* fresh({ t: { d: { e: { f: "1", g: "2" }, h: "3" } } })
      yield* port.attributes!.set(at("t/d"), { mode: 0o700 })
      yield* port.attributes!.set(at("t/d/e"), { mode: 0o711 })
      const history = historyOf(port)
      const captured = yield* history.capture
      yield* performed(port, { _tag: "RemoveTree", path: at("t/d") })
      yield* put(port, "t/d", "a file in the way")
      yield* history.restore(captured, [at("t/d/e/f")])
      const after = yield* picture(port)
      assert.deepStrictEqual(
        [...after],
        [
          [".", "directory 755"],
          ["t", "directory 755"],
          ["t/d", "directory 700"],
          ["t/d/e", "directory 711"],
          ["t/d/e/f", 'file "1" 644']
        ]
      )
      for (const path of [...after.keys()].slice(1).reverse()) yield* port.remove(at(path))
    })
  )

  it.effect(
    "removes entries that did not exist at the capture, and does nothing for paths below files or missing entries",
    () =>
      Effect.gen(function* () {
        const port = yield* fresh({ a: "1" })
        const history = historyOf(port)
        const captured = yield* history.capture
        yield* port.makeDirectory(at("new"))
        yield* put(port, "new/f", "2")
        const before = yield* picture(port)
        yield* history.restore(captured, [at("a/below/a/file"), at("nowhere/f")])
        yield* history.restore(captured, [])
        assert.deepStrictEqual(yield* picture(port), before)
        yield* history.restore(captured, [at("new/f")])
        assert.deepStrictEqual([...(yield* picture(port)).keys()], [".", "a", "new"])
        yield* history.restore(captured, [at("new")])
        assert.deepStrictEqual([...(yield* picture(port)).keys()], [".", "a"])
      })
  )

  it.effect("restores the case of names in a case-insensitive tree", () =>
    Effect.gen(function* () {
      const port = yield* fresh({ Dir: { File: "1" } }, { caseInsensitive: true })
      const history = historyOf(port)
      const captured = yield* history.capture
      yield* port.rename(at("dir/file"), at("dir/FILE"), { replace: false })
      yield* port.rename(at("Dir"), at("DIR"), { replace: false })
      yield* history.restore(captured, [at("dir/file")])
      assert.deepStrictEqual([...(yield* picture(port)).keys()], [".", "DIR", "DIR/File"])
      yield* history.restore(captured, [at("diR")])
      assert.deepStrictEqual([...(yield* picture(port)).keys()], [".", "Dir", "Dir/File"])
    })
  )

  it.effect("notifies watchers of changed entries, and not of unchanged entries", () =>
    Effect.gen(function* () {
      const port = yield* fresh({ same: { x: "1" }, changed: { y: "1" } })
      const history = historyOf(port)
      const captured = yield* history.capture
      const told: Array<string> = []
      const watcher = yield* Effect.forkChild(
        Stream.runForEach(port.watch!(root), ({ _tag, path }) => Effect.sync(() => void told.push(`${_tag} ${path}`))),
        { startImmediately: true }
      )
      yield* put(port, "changed/y", "2")
      yield* put(port, "changed/z", "3")
      yield* put(port, "same/w", "4")
      told.length = 0
      yield* history.restore(captured, [at("changed"), at("same/x")])
      yield* history.restore(captured)
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      assert.deepStrictEqual(told.slice(-3), ["Removed changed/z", "Updated changed/y", "Removed same/w"])
      yield* Fiber.interrupt(watcher)
    })
  )
})

describe("a view of a capture", () => {
  const written = { a: { f: "one" }, l: { link: "a/f" } }

  it.effect("shows the captured tree after the real tree has changed", () =>
    Effect.gen(function* () {
      const port = yield* fresh(written)
      const history = historyOf(port)
      const view = history.view(yield* history.capture)
      const before = yield* picture(view)
      yield* put(port, "a/f", " two", "append")
      yield* put(port, "a/g", "new")
      yield* port.attributes!.set(at("a"), { mode: 0o700 })
      yield* port.remove(at("l"))
      assert.deepStrictEqual(yield* picture(view), before)
      assert.strictEqual(before.get("a/f"), 'file "one" 644')
      const fs = makeFilesystem(view)
      assert.strictEqual(yield* fs.readString("l"), "one")
      assert.deepStrictEqual(
        (yield* fs.grep("on.")).matches.map(({ path }) => path as string),
        ["a/f"]
      )
      assert.isUndefined(view.history)
    })
  )

  it.effect("refuses every change, through the port and the filesystem, and both trees stay unchanged", () =>
    Effect.gen(function* () {
      const port = yield* fresh(written)
      const history = historyOf(port)
      const view = history.view(yield* history.capture)
      const before = yield* picture(port)
      const fs = makeFilesystem(view)
      assert.isTrue(fs.readOnly)
      for (const change of [
        put(view, "a/f", "x"),
        put(view, "new", "x", "create"),
        put(view, "a/f", "x", "append"),
        view.makeDirectory(at("d")),
        view.remove(at("a/f")),
        view.rename(at("a"), at("b"), { replace: true }),
        view.links!.make(at("m"), "a"),
        view.attributes!.set(at("a"), { mode: 0 }),
        fs.write("a/f", "x"),
        fs.delete("a", { recursive: true }),
        fs.mkdir("d"),
        fs.move("a", "b"),
        fs.copy("a", "b")
      ] as ReadonlyArray<Effect.Effect<unknown, object>>) {
        assert.deepInclude(yield* Effect.flip(change), { _tag: "AccessDenied", why: "readOnly" })
      }
      assert.deepStrictEqual(yield* picture(view), before)
      assert.deepStrictEqual(yield* picture(port), before)
    })
  )

  it.effect("is case-insensitive if the tree is case-insensitive", () =>
    Effect.gen(function* () {
      const port = yield* fresh({ Dir: { File: "1" } }, { caseInsensitive: true })
      const history = historyOf(port)
      const view = history.view(yield* history.capture)
      assert.isFalse(view.info.caseSensitive)
      assert.strictEqual((yield* view.stat(at("dIR/fILE")))?.kind, "file")
      assert.strictEqual((yield* view.stat(root))?.kind, "directory")
      assert.isUndefined(yield* view.stat(at("dir/file/below")))
      assert.isUndefined(yield* view.stat(at("dir/")))
    })
  )

  it.effect("does not wait for writers of the tree", () =>
    Effect.gen(function* () {
      const port = yield* fresh(written)
      const history = historyOf(port)
      const view = history.view(yield* history.capture)
      const ran = yield* port.locks!.exclusive([root], view.locks!.exclusive([root], Effect.succeed("ran")))
      assert.strictEqual(ran, "ran")
    })
  )
})

describe("differences between captures", () => {
  const between = (tree: InMemory.Tree, change: (port: Backend) => Effect.Effect<unknown, unknown>) =>
    Effect.gen(function* () {
      const port = yield* fresh(tree)
      const history = historyOf(port)
      const before = yield* history.capture
      yield* change(port)
      return history.differences(before, yield* history.capture).map(({ _tag, path }) => `${_tag} ${path}`)
    })

  it.effect("are empty for files that were rewritten with the same bytes or only touched", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* between({ f: "1", g: "2" }, (port) => put(port, "f", "1")), [])
      assert.deepStrictEqual(
        yield* between({ f: "1" }, (port) => port.attributes!.set(at("f"), { modifiedAt: DateTime.makeUnsafe(7) })),
        []
      )
      assert.deepStrictEqual(
        yield* between({ f: "1" }, (port) => Effect.andThen(port.remove(at("f")), put(port, "f", "1"))),
        []
      )
    })
  )

  it.effect("name each entry once, including everything in an added or removed directory", () =>
    Effect.gen(function* () {
      const tree = { d: { e: { f: "1" } }, "d.txt": "2", l: { link: "x" } }
      assert.deepStrictEqual(yield* between(tree, (port) => port.rename(at("d"), at("n"), { replace: false })), [
        "Removed d",
        "Removed d/e",
        "Removed d/e/f",
        "Added n",
        "Added n/e",
        "Added n/e/f"
      ])
      assert.deepStrictEqual(
        yield* between(tree, (port) =>
          Effect.andThen(performed(port, { _tag: "RemoveTree", path: at("d") }), put(port, "d", "file"))
        ),
        ["Modified d", "Removed d/e", "Removed d/e/f"]
      )
      assert.deepStrictEqual(
        yield* between(tree, (port) => Effect.andThen(port.remove(at("l")), port.links!.make(at("l"), "y"))),
        ["Modified l"]
      )
      assert.deepStrictEqual(yield* between(tree, (port) => port.attributes!.set(root, { mode: 0o700 })), ["Modified ."])
    })
  )
})
