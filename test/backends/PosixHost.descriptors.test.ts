import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { is as isFault } from "../../src/model/Fault.ts"
import type { Confined, HostDirectory } from "../../src/backends/posix/place.ts"
import * as HostRoot from "../../src/backends/posix/confinement.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { failing, replacing, systemError } from "./posixFailures.ts"
import { bytes, directory, fastDirectory, faultOf, host, openDescriptors, p, readAll, tree, write } from "./posixHost.ts"
import { performed } from "../performed.ts"

const opened = (root: string) =>
  Effect.acquireRelease(
    Effect.sync(() => HostRoot.open(root) as Confined),
    (confined) => Effect.sync(confined.close)
  )

const reach = (confined: Confined, path: string): HostDirectory => {
  const place = confined.directory(p(path))
  if (isFault(place)) return assert.fail(`${path}: ${place._tag}`)
  return place
}

const descriptorsOf = (count: () => void): number => {
  const before = openDescriptors()
  count()
  return openDescriptors() - before
}

describe("a cached directory", () => {
  it.effect("is opened once; later uses only check that it has not moved", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "a/b/c"), { recursive: true })
      yield* write(port, "a/b/c/f", bytes("x"), "create")
      let opens = 0
      yield* Effect.scoped(
        Effect.andThen(
          replacing("openSync", (open) => (...args) => {
            opens++
            return open(...args)
          }),
          Effect.andThen(port.stat(p("a/b/c/f")), port.stat(p("a/b/f")))
        )
      )
      assert.strictEqual(opens, 0)
    })
  )

  it.effect("is not used after another program has moved, removed or replaced it", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      const changes: Record<string, () => void> = {
        "moved outside": () => Fs.renameSync(join(root, "a"), join(outside, "a")),
        "moved inside": () => Fs.renameSync(join(root, "a"), join(root, "b")),
        "its parent moved": () => Fs.renameSync(join(root, "up"), join(root, "down")),
        removed: () => Fs.rmSync(join(root, "a"), { recursive: true }),
        "replaced by a link to itself": () => {
          Fs.renameSync(join(root, "a"), join(outside, "a"))
          Fs.symlinkSync(join(outside, "a"), join(root, "a"))
        }
      }
      for (const [how, change] of Object.entries(changes)) {
        const path = how === "its parent moved" ? "up/a" : "a"
        Fs.mkdirSync(join(root, path), { recursive: true })
        yield* write(port, `${path}/f`, bytes("old"), "create")
        change()
        assert.isUndefined(yield* port.stat(p(`${path}/f`)), how)
        assert.include(
          ["NotFound", "NotADirectory"],
          (yield* faultOf(write(port, `${path}/g`, bytes("new"), "create")))._tag,
          how
        )
        Fs.rmSync(join(root, "a"), { force: true })
        Fs.mkdirSync(join(root, path), { recursive: true })
        yield* write(port, `${path}/f`, bytes("new"), "create")
        assert.strictEqual(Fs.readFileSync(join(root, path, "f"), "utf8"), "new", how)
        for (const top of ["a", "b", "up", "down"]) Fs.rmSync(join(root, top), { recursive: true, force: true })
        if (Fs.existsSync(join(outside, "a"))) {
          assert.deepStrictEqual(tree(outside), { a: "directory", "a/f": "old" }, how)
          Fs.rmSync(join(outside, "a"), { recursive: true })
        }
      }
    })
  )

  it.effect("is not used when it moves during the walk to it", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      Fs.mkdirSync(join(root, "a/b"), { recursive: true })
      let opens = 0
      yield* replacing("openSync", (open) => (...args) => {
        const descriptor = open(...args)
        if (String(args[0]).endsWith("/b") && opens++ === 0) Fs.renameSync(join(root, "a"), join(outside, "a"))
        return descriptor
      })
      assert.strictEqual((yield* faultOf(port.makeDirectory(p("a/b/c"))))._tag, "NotFound")
      assert.strictEqual(opens, 1)
      assert.deepStrictEqual(tree(outside), { a: "directory", "a/b": "directory" })
    })
  )

  it.effect("is not confused with a directory whose name ends in (deleted), as the system labels deleted directories", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const name = "d (deleted)"
      Fs.mkdirSync(join(root, name))
      yield* write(port, `${name}/f`, bytes("1"), "create")
      Fs.rmSync(join(root, name, "f"))
      Fs.renameSync(join(root, name), join(root, "d"))
      Fs.rmdirSync(join(root, "d"))
      Fs.mkdirSync(join(root, name))
      yield* write(port, `${name}/g`, bytes("2"), "create")
      assert.deepStrictEqual(tree(root), { [name]: "directory", [`${name}/g`]: "2" })
    })
  )

  it.effect("is distinguished from a directory whose name differs only in bytes that are not UTF-8", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const named = (...name: ReadonlyArray<number>) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)])
      Fs.mkdirSync(join(root, "\ufffd"))
      yield* write(port, "\ufffd/f", bytes("text"), "create")
      Fs.renameSync(join(root, "\ufffd"), named(0xff))
      assert.isUndefined(yield* port.stat(p("\ufffd/f")))
      const [child] = yield* port.list(p("."))
      assert.strictEqual(yield* readAll(port, p(`${child!.key}/f`)), "text")
      Fs.renameSync(named(0xff), named(0xfe))
      assert.isUndefined(yield* port.stat(p(`${child!.key}/f`)))
    })
  )
})

describe("descriptors", () => {
  it.effect("of 500 used directories stay below a bound, and all are closed with the scope", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      for (let i = 0; i < 500; i++) Fs.mkdirSync(join(root, `d${i}/e`), { recursive: true })
      const before = openDescriptors()
      const scope = yield* Scope.make()
      const port = yield* Scope.provide(PosixHost.make({ root }), scope)
      for (let i = 0; i < 500; i++) yield* write(port, `d${i}/e/f`, bytes(""), "create")
      assert.isAtMost(openDescriptors() - before, 129)
      assert.isAbove(openDescriptors() - before, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(openDescriptors(), before)
    })
  )

  it.effect("of a directory in use stay open until its release, even after the filesystem is closed", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.mkdirSync(join(root, "a"))
      const before = openDescriptors()
      const confined = HostRoot.open(root) as Confined
      const place = reach(confined, "a")
      confined.close()
      assert.strictEqual((confined.directory(p("a")) as { _tag: string })._tag, "Unavailable")
      Fs.mkdirSync(place.at("b"))
      place.release()
      place.release()
      assert.strictEqual(openDescriptors(), before)
      assert.throws(() => place.at("c"))
      assert.deepStrictEqual(tree(root), { a: "directory", "a/b": "directory" })
    })
  )

  it.effect("that are only cached are closed when the process runs out of descriptors", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      for (const name of ["a", "b", "c"]) {
        Fs.mkdirSync(join(root, name))
        yield* write(port, `${name}/f`, bytes(name), "create")
      }
      const before = openDescriptors()
      let refused = 0
      yield* Effect.scoped(
        Effect.andThen(
          failing("openSync", () =>
            openDescriptors() >= before && refused++ < 10 ? systemError("EMFILE", -24, "open") : undefined
          ),
          Effect.map(readAll(port, p("c/f")), (text) => assert.strictEqual(text, "c"))
        )
      )
      assert.strictEqual(refused, 1)
    })
  )

  describe("that are not in use", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    })
    afterEach(() => {
      vi.useRealTimers()
    })

    it.effect("are closed after a second, so that an idle filesystem holds only the descriptor of its root", () =>
      Effect.gen(function* () {
        const root = yield* directory
        Fs.mkdirSync(join(root, "a/b"), { recursive: true })
        const confined = yield* opened(root)
        assert.strictEqual(
          descriptorsOf(() => reach(confined, "a/b").release()),
          2
        )
        assert.strictEqual(
          descriptorsOf(() => vi.advanceTimersByTime(1000)),
          -2
        )
        assert.strictEqual(
          descriptorsOf(() => reach(confined, "a/b").release()),
          2
        )
      })
    )
  })
})

describe("a path longer than the system allows", () => {
  it.effect("is resolved in steps: a file on it can be written, replaced, renamed, read, listed and removed", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const name = "n".repeat(200)
      const deep = Array.from({ length: 25 }, () => name).join("/")
      for (let i = 1; i <= 25; i++) yield* port.makeDirectory(p(deep.slice(0, i * 201 - 1)))
      yield* write(port, `${deep}/f`, bytes("deep"), "create")
      yield* write(port, `${deep}/f`, bytes("deeper"), "replace")
      yield* port.rename(p(`${deep}/f`), p(`${deep}/g`), { replace: false })
      assert.strictEqual(yield* readAll(port, p(`${deep}/g`)), "deeper")
      assert.deepStrictEqual(
        (yield* port.list(p(deep))).map(({ name }) => name),
        ["g"]
      )
      assert.strictEqual(execFileSync("find", [".", "-name", "g", "-printf", "%d %s"], { cwd: root, encoding: "utf8" }), "26 6")
      assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: p(name) }), { deleted: 1, directories: 25 })
    })
  )
})
