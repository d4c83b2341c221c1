import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { failing, systemError } from "./posixFailures.ts"
import { bytes, faultOf, host, type Host, openDescriptors, p, write, walks } from "./posixHost.ts"
import * as Names from "../runtime/names.ts"
import { performed } from "../performed.ts"

const marker = "zz-marker"

const during = <E>({ port, root }: Host, base: string, change: Effect.Effect<unknown, E>) =>
  Effect.gen(function* () {
    const seen = yield* Effect.forkChild(
      port.watch!(p(base)).pipe(
        Stream.map(({ _tag, path }) => `${_tag} ${path}`),
        Stream.takeUntil((event) => event.endsWith(marker)),
        Stream.runCollect
      ),
      { startImmediately: true }
    )
    yield* change
    // Yields once so that the marker is not merged with the events before it.
    yield* Effect.yieldNow
    Fs.writeFileSync(join(root, base, marker), "")
    const events = yield* Fiber.join(seen)
    Fs.unlinkSync(join(root, base, marker))
    return events.slice(0, -1)
  })

describe("watching", () => {
  it.live("reports creations, changes and removals at any depth, our own and those of other programs", () =>
    Effect.gen(function* () {
      const made = yield* host()
      const { port, root } = made
      Fs.mkdirSync(join(root, "d/e"), { recursive: true })
      Fs.writeFileSync(join(root, "d/e/old"), "")
      assert.deepStrictEqual(yield* during(made, ".", write(port, "f", bytes("1"), "create")), ["Created f"])
      assert.deepStrictEqual(yield* during(made, ".", write(port, "f", bytes("2"), "replace")), ["Updated f"])
      assert.deepStrictEqual(yield* during(made, ".", write(port, "f", bytes("3"), "append")), ["Updated f"])
      assert.deepStrictEqual(yield* during(made, ".", write(port, "d/e/new", Stream.make(bytes("x")), "create")), [
        "Created d/e/new"
      ])
      assert.deepStrictEqual(yield* during(made, ".", port.attributes!.set(p("d/e/old"), { mode: 0o600 })), ["Updated d/e/old"])
      assert.deepStrictEqual(yield* during(made, ".", port.rename(p("f"), p("g"), { replace: false })), [
        "Removed f",
        "Created g"
      ])
      assert.deepStrictEqual(yield* during(made, ".", port.links!.make(p("l"), "nowhere")), ["Created l"])
      assert.deepStrictEqual(yield* during(made, ".", port.makeDirectory(p("made"))), ["Created made"])
      assert.deepStrictEqual(yield* during(made, ".", port.remove(p("made"))), ["Removed made"])
      assert.deepStrictEqual(yield* during(made, ".", port.remove(p("d/e/old"))), ["Removed d/e/old"])
      assert.deepStrictEqual(
        yield* during(
          made,
          ".",
          Effect.sync(() => Fs.writeFileSync(join(root, "theirs"), "x"))
        ),
        ["Created theirs"]
      )
      assert.deepStrictEqual(
        yield* during(
          made,
          ".",
          Effect.sync(() => Fs.appendFileSync(join(root, "theirs"), "x"))
        ),
        ["Updated theirs"]
      )
      assert.deepStrictEqual(
        yield* during(
          made,
          ".",
          Effect.sync(() => Fs.unlinkSync(join(root, "theirs")))
        ),
        ["Removed theirs"]
      )
    })
  )

  it.live("a directory reports only changes inside the directory, with paths from the root", () =>
    Effect.gen(function* () {
      const made = yield* host()
      const { port } = made
      yield* port.makeDirectory(p("d"))
      const change = Effect.andThen(write(port, "d/f", bytes("1"), "create"), write(port, "f", bytes("1"), "create"))
      assert.deepStrictEqual(yield* during(made, "d", change), ["Created d/f"])
    })
  )

  it.live("never reports our temporary files or names that no path can express", () =>
    Effect.gen(function* () {
      const made = yield* host()
      const { port, root } = made
      const change = Effect.gen(function* () {
        Fs.writeFileSync(join(root, Names.signed(Names.dead())), "")
        Fs.writeFileSync(join(root, ".~fsa-other.tmp"), "")
        Fs.writeFileSync(join(root, "a\nb"), "")
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]), "")
        yield* write(port, "f", Stream.make(bytes("1"), bytes("2")), "append")
        yield* write(port, "f", Stream.make(bytes("1"), bytes("2")), "replace")
      })
      const events = yield* during(made, ".", change)
      assert.deepStrictEqual([...new Set(events.map((event) => event.split(" ")[1]))].sort(), [".~fsa-other.tmp", "f"])
    })
  )

  it.live("reports the whole content of a directory that is created, removed or renamed", () =>
    Effect.gen(function* () {
      const made = yield* host()
      const { outside, port, root } = made
      Fs.mkdirSync(join(outside, "t/inner"), { recursive: true })
      Fs.writeFileSync(join(outside, "t/inner/f"), "")
      const arrive = yield* during(
        made,
        ".",
        Effect.sync(() => Fs.renameSync(join(outside, "t"), join(root, "t")))
      )
      assert.deepStrictEqual(arrive, ["Created t", "Created t/inner", "Created t/inner/f"])
      const seen = yield* during(
        made,
        ".",
        Effect.gen(function* () {
          Fs.renameSync(join(root, "t"), join(root, "u"))
          yield* Effect.yieldNow
          yield* Effect.sleep(20)
          yield* write(port, "u/inner/g", bytes(""), "create")
        })
      )
      assert.deepStrictEqual([...seen].sort(), [
        "Created u",
        "Created u/inner",
        "Created u/inner/f",
        "Created u/inner/g",
        "Removed t",
        "Removed t/inner",
        "Removed t/inner/f"
      ])
      const removed = yield* during(made, ".", performed(port, { _tag: "RemoveTree", path: p("u") }))
      assert.deepStrictEqual(removed.at(-1), "Removed u")
      assert.deepStrictEqual([...removed].sort(), ["Removed u", "Removed u/inner", "Removed u/inner/f", "Removed u/inner/g"])
    })
  )

  it.live("follows no link", () =>
    Effect.gen(function* () {
      const made = yield* host()
      const { outside, port, root } = made
      Fs.symlinkSync(outside, join(root, "l"))
      const change = Effect.sync(() => Fs.writeFileSync(join(outside, "f"), ""))
      assert.deepStrictEqual(yield* during(made, ".", change), [])
      assert.strictEqual((yield* faultOf(Stream.runDrain(port.watch!(p("l")))))._tag, "NotADirectory")
      assert.strictEqual((yield* faultOf(Stream.runDrain(port.watch!(p("l/x")))))._tag, "NotFound")
    })
  )

  it.live("fails with NotFound for a missing path, and with NotADirectory for a file", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "")
      assert.strictEqual((yield* faultOf(Stream.runDrain(port.watch!(p("none")))))._tag, "NotFound")
      assert.strictEqual((yield* faultOf(Stream.runDrain(port.watch!(p("f")))))._tag, "NotADirectory")
      assert.strictEqual((yield* faultOf(Stream.runDrain(port.watch!(p("f/x")))))._tag, "NotFound")
    })
  )

  it.live(
    "reports the removals and fails with NotFound when its directory is removed, or with Unavailable when the root is removed",
    () =>
      Effect.gen(function* () {
        for (const [level, make] of walks) {
          const { port, root } = yield* host(undefined, make)
          Fs.mkdirSync(join(root, "d"))
          Fs.writeFileSync(join(root, "d/f"), "")
          const ended = Effect.fnUntraced(function* (base: string, go: () => void) {
            const seen: Array<string> = []
            const fiber = yield* Effect.forkChild(
              Effect.flip(
                Stream.runForEach(port.watch!(p(base)), ({ _tag, path }) => Effect.sync(() => seen.push(`${_tag} ${path}`)))
              ),
              { startImmediately: true }
            )
            go()
            return { tag: (yield* Fiber.join(fiber))._tag, seen }
          })
          const moved = yield* ended("d", () => Fs.renameSync(join(root, "d"), join(root, "..", "moved")))
          assert.deepStrictEqual(moved, { tag: "NotFound", seen: ["Removed d/f"] }, level)
          assert.strictEqual((yield* ended(".", () => Fs.rmSync(root, { recursive: true }))).tag, "Unavailable", level)
        }
      })
  )

  it.live("ends with its scope, leaves no watcher, and can be started again", () =>
    Effect.gen(function* () {
      const made = yield* host()
      const { port, root } = made
      Fs.mkdirSync(join(root, "a/b/c"), { recursive: true })
      yield* during(made, ".", Effect.void)
      const before = openDescriptors()
      // The handle of a closed watcher disappears after the event loop has run.
      const watchers = Effect.map(
        Effect.andThen(Effect.yieldNow, Effect.yieldNow),
        () => process.getActiveResourcesInfo().filter((name) => name === "FSEventWrap").length
      )
      const idle = yield* watchers
      for (let i = 0; i < 20; i++) {
        const scope = yield* Scope.make()
        yield* Effect.forkIn(Stream.runDrain(port.watch!(p("."))), scope, { startImmediately: true })
        assert.strictEqual(yield* watchers, idle + 4)
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual(yield* watchers, idle)
      }
      assert.strictEqual(openDescriptors(), before)
      assert.deepStrictEqual(yield* during(made, ".", write(port, "f", bytes(""), "create")), ["Created f"])
    })
  )

  it.live("reports each path to a slow reader at least once after its last change", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const names = Array.from({ length: 1500 }, (_, i) => `f${i}`)
      const seen = new Map<string, number>()
      const fiber = yield* Effect.forkChild(
        port.watch!(p(".")).pipe(
          Stream.takeUntil(({ path }) => path === marker),
          Stream.runForEach(({ path }) =>
            Effect.andThen(
              Effect.yieldNow,
              Effect.sync(() => seen.set(path, Fs.readFileSync(join(root, path)).length))
            )
          )
        ),
        { startImmediately: true }
      )
      for (let round = 1; round <= 3; round++) {
        for (const name of names) Fs.appendFileSync(join(root, name), "x")
        yield* Effect.yieldNow
      }
      Fs.writeFileSync(join(root, marker), "")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        names.filter((name) => seen.get(name) !== 3),
        []
      )
    })
  )

  it.live("fails with the system's error when the system allows no more watches", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "d"))
      yield* failing("watch", (path: string) =>
        Fs.realpathSync(path).endsWith("/d") ? systemError("ENOSPC", -28, "watch") : undefined
      )
      assert.deepInclude(yield* faultOf(Stream.runDrain(port.watch!(p(".")))), { _tag: "IoError", code: "ENOSPC" })
    })
  )
})
