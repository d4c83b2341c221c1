import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Confined, HostDirectory } from "../../src/backends/posix/place.ts"
import * as HostRoot from "../../src/backends/posix/confinement.ts"
import * as HostStamps from "../../src/backends/posix/entries.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { isTemporaryName, root as top } from "../../src/model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../../src/port/Backend.ts"
import type { DirectoryHistory, StampedChild } from "../../src/port/history.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { plant } from "../../src/testing/Files.ts"
import { directory, fastDirectory, faultOf, host, p, walks } from "../backends/posixHost.ts"

const historyOf = (port: Backend): DirectoryHistory => {
  assert.strictEqual(port.history?._tag, "Directory")
  return port.history as DirectoryHistory
}

const byName = (self: Child, that: Child) => (self.name < that.name ? -1 : 1)

/** Returns the path on the disk. After a NUL, a segment contains the bytes of the name in hexadecimal. */
const onDisk = (root: string, segments: ReadonlyArray<string>): Buffer =>
  Buffer.concat([
    Buffer.from(root),
    ...segments.map((segment) =>
      Buffer.from(segment.startsWith("\0") ? `2f${segment.slice(1)}` : Buffer.from(`/${segment}`).toString("hex"), "hex")
    )
  ])

/** Returns the stamps that the port and the operating system would give for a directory. */
const expected = (port: Backend, root: string, path: string) =>
  Effect.gen(function* () {
    const out: Array<StampedChild> = []
    for (const child of yield* port.list(p(path))) {
      if (isTemporaryName(child.name)) continue
      const stat = (yield* port.stat(p(path === "." ? keyOf(child) : `${path}/${keyOf(child)}`)))!
      assert.strictEqual(stat.kind, child.kind)
      const real = Fs.lstatSync(onDisk(root, [...(path === "." ? [] : path.split("/")), keyOf(child)]))
      assert.strictEqual(Math.floor(real.mtimeMs), stat.modifiedAt!.epochMilliseconds)
      const { sizeBytes } = stat
      out.push({
        ...child,
        sizeBytes,
        mode: stat.mode!,
        modified: real.mtimeMs,
        changed: real.ctimeMs,
        inode: real.ino
      })
    }
    return out.sort(byName)
  })

/** Compares the stamps of the whole tree, directory by directory. */
const assertAgree = (port: Backend, root: string) =>
  Effect.gen(function* () {
    const pending: Array<string> = [top]
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      const stamps = [...(yield* historyOf(port).listStamped(p(at)))].sort(byName)
      assert.deepStrictEqual(stamps, yield* expected(port, root, at))
      for (const child of stamps) {
        if (child.kind === "directory") pending.push(at === top ? keyOf(child) : `${at}/${keyOf(child)}`)
      }
    }
  })

const bytesIn = (root: string, ...bytes: ReadonlyArray<number>) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(bytes)])

/** Passes each opened directory through `change`. */
const changing = (confined: Confined, change: (place: HostDirectory) => Partial<HostDirectory>): Confined => ({
  ...confined,
  directory: (path) => {
    const place = confined.directory(path)
    if ("_tag" in place) return place
    const changed = change(place)
    return new Proxy(place, {
      get: (target, key) => {
        if (key in changed) return Reflect.get(changed, key)
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === "function" ? value.bind(target) : value
      }
    })
  }
})

for (const [level, make] of walks) {
  const confinedTo = (root: string): Effect.Effect<Confined, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.sync(() => HostRoot.open(root, level as "race-free") as Confined),
      (confined) => Effect.sync(confined.close)
    )

  describe(`stamps, ${level}`, () => {
    it.effect.prop(
      "agree with list and stat for any tree",
      [Arbitraries.files],
      ([files]) =>
        Effect.scoped(
          Effect.gen(function* () {
            const root = yield* fastDirectory
            const port = yield* make({ root })
            yield* Effect.orDie(plant(port, files))
            yield* assertAgree(port, root)
          })
        ),
      { arbitrary: { runs: 60 } }
    )

    it.effect("agree for every kind, every mode and names that are not UTF-8", () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({}, make)
        Fs.mkdirSync(join(root, "d"))
        for (const mode of [0o000, 0o644, 0o755, 0o4755, 0o2640, 0o777]) {
          Fs.writeFileSync(join(root, "d", `f${mode}`), "x".repeat(mode))
          Fs.chmodSync(join(root, "d", `f${mode}`), mode)
        }
        Fs.mkdirSync(join(root, "d/sticky"))
        Fs.chmodSync(join(root, "d/sticky"), 0o1777)
        Fs.symlinkSync("nowhere", join(root, "d/dangling"))
        Fs.symlinkSync("/etc", join(root, "d/out"))
        execFileSync("mkfifo", [join(root, "d/fifo")])
        Fs.mkdirSync(join(root, "n"))
        Fs.writeFileSync(bytesIn(join(root, "n"), 0x61, 0xff), "bytes")
        Fs.mkdirSync(bytesIn(join(root, "n"), 0xfe))
        Fs.writeFileSync(bytesIn(join(root, "n"), 0xfe, 0x2f, 0x0a), "below")
        Fs.writeFileSync(join(root, "n/a\nb"), "control")
        Fs.writeFileSync(join(root, "n/\ufffd"), "a name that is text")
        Fs.mkdirSync(join(root, "c"))
        Fs.writeFileSync(join(root, "c/only\u0007control"), "")
        yield* assertAgree(port, root)
        const names = yield* historyOf(port).listStamped(p("n"))
        assert.deepStrictEqual(
          names.map(({ addressable, key, kind, name }) => [name, kind, addressable, key]).sort(),
          [
            ["a\\x0ab", "file", false, "\u0000610a62"],
            ["a\\xff", "file", false, "\u000061ff"],
            ["\\xfe", "directory", false, "\u0000fe"],
            ["\ufffd", "file", true, undefined]
          ].sort()
        )
      })
    )

    it.effect("omit temporary files without removing them", () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({}, make)
        const temporary = TemporaryNames.make()
        Fs.writeFileSync(join(root, temporary), "half")
        Fs.writeFileSync(join(root, "f"), "whole")
        assert.deepStrictEqual(
          (yield* historyOf(port).listStamped(top)).map(({ name }) => name),
          ["f"]
        )
        assert.isTrue(Fs.existsSync(join(root, temporary)))
        TemporaryNames.forget(temporary)
      })
    )

    it.effect("differ for a changed file even if its size and times are the same", () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({}, make)
        const file = join(root, "f")
        const stamp = Effect.map(historyOf(port).listStamped(top), ([stamp]) => stamp!)
        Fs.writeFileSync(file, "1")
        Fs.utimesSync(file, 1, 1)
        const first = yield* stamp
        assert.deepStrictEqual(yield* stamp, first)
        // Only the ctime differs, so the clock of the filesystem must advance.
        while (Fs.lstatSync(file).ctimeMs === first.changed) {
          Fs.writeFileSync(file, "2")
          Fs.utimesSync(file, 1, 1)
        }
        const second = yield* stamp
        assert.deepStrictEqual({ ...second, changed: first.changed }, first)
        assert.isAbove(second.changed, first.changed)
        Fs.writeFileSync(join(root, "new"), "2")
        Fs.renameSync(join(root, "new"), file)
        assert.notStrictEqual((yield* stamp).inode, first.inode)
      })
    )

    it.effect("fail with the error of list for a missing path, a file, a link and paths below a file", () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({}, make)
        Fs.mkdirSync(join(root, "d"))
        Fs.writeFileSync(join(root, "f"), "")
        Fs.symlinkSync("d", join(root, "l"))
        for (const [path, tag] of [
          ["nothing", "NotFound"],
          ["nothing/below", "NotFound"],
          ["f", "NotADirectory"],
          ["l", "NotADirectory"],
          ["f/below", "NotFound"],
          ["l/below", "NotFound"]
        ] as const) {
          const fault = yield* faultOf(historyOf(port).listStamped(p(path)))
          assert.strictEqual(fault._tag, tag, path)
          assert.deepStrictEqual(fault, yield* faultOf(port.list(p(path))), path)
        }
      })
    )

    it.effect("omit an entry that disappears during the listing", () =>
      Effect.gen(function* () {
        const root = yield* directory
        for (const name of ["a", "b", "c"]) Fs.writeFileSync(join(root, name), name)
        const confined = yield* confinedTo(root)
        const removing = changing(confined, (place) => ({
          at: (segment) => {
            if (segment === "b") Fs.rmSync(join(root, "b"))
            return place.at(segment)
          }
        }))
        const stamps = yield* HostStamps.stamps(removing, top)
        assert.deepStrictEqual(stamps.map(({ name }) => name).sort(), ["a", "c"])
      })
    )

    it.effect("of a directory that is replaced during the listing are empty or belong to the new directory", () =>
      Effect.gen(function* () {
        const root = yield* directory
        Fs.mkdirSync(join(root, "d"))
        Fs.writeFileSync(join(root, "d/old"), "")
        Fs.mkdirSync(join(root, "next"))
        Fs.writeFileSync(join(root, "next/new"), "")
        const confined = yield* confinedTo(root)
        let isFirst = true
        const exchanging = changing(confined, (place) => ({
          at: (segment) => {
            if (isFirst) {
              isFirst = false
              Fs.rmSync(join(root, "d"), { recursive: true })
              Fs.renameSync(join(root, "next"), join(root, "d"))
            }
            return place.at(segment)
          }
        }))
        const names = (yield* HostStamps.stamps(exchanging, p("d"))).map(({ name }) => name)
        // A race-free walk reads the opened directory; another one looks at the path again.
        assert.deepStrictEqual(names, level === "race-free" ? [] : ["new"])
      })
    )

    it.effect("of a directory that is moved away belong to the opened directory or to its replacement", () =>
      Effect.gen(function* () {
        const root = yield* directory
        Fs.mkdirSync(join(root, "d"))
        Fs.writeFileSync(join(root, "d/old"), "")
        Fs.mkdirSync(join(root, "next"))
        Fs.writeFileSync(join(root, "next/new"), "")
        const confined = yield* confinedTo(root)
        let looks = 0
        const exchanging = changing(confined, (place) => {
          if (looks++ > 0) return {}
          return {
            get directory() {
              Fs.renameSync(join(root, "d"), join(root, "away"))
              return place.directory
            }
          }
        })
        const waiting: Confined = {
          ...exchanging,
          directory: (path) => {
            if (looks === 1) Fs.renameSync(join(root, "next"), join(root, "d"))
            return exchanging.directory(path)
          }
        }
        const names = (yield* HostStamps.stamps(waiting, p("d"))).map(({ name }) => name)
        assert.deepStrictEqual(names, level === "race-free" ? ["old"] : ["new"])
      })
    )

    it.effect("of a large directory are complete, and other fibers run meanwhile", () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({}, make)
        const names = Array.from({ length: 6000 }, (_, n) => `a-file-with-some-name-${n}`)
        for (const name of names) Fs.writeFileSync(join(root, name), "")
        assert.isAbove(Fs.lstatSync(root).size, 64 * 1024)
        const done = yield* Deferred.make<void>()
        let turns = 0
        const others = yield* Effect.forkChild(
          Effect.whileLoop({
            while: () => !Deferred.isDoneUnsafe(done),
            body: () => Effect.yieldNow,
            step: () => void turns++
          })
        )
        const stamps = yield* historyOf(port).listStamped(top)
        const during = turns
        yield* Deferred.succeed(done, undefined)
        yield* Fiber.join(others)
        assert.deepStrictEqual(stamps.map(({ name }) => name).sort(), names.sort())
        // The listing yields by itself; each slice of stamps yields once more.
        assert.isAtLeast(during, 10)
      })
    )
  })
}

describe("the history capability of a host directory", () => {
  it.effect("has the root with all links resolved", () =>
    Effect.gen(function* () {
      const base = yield* directory
      Fs.mkdirSync(join(base, "real"))
      Fs.symlinkSync("real", join(base, "link"))
      const port = yield* PosixHost.make({ root: `${base}/link/../link/` })
      assert.strictEqual(historyOf(port).root, join(Fs.realpathSync(base), "real"))
    })
  )

  it.effect("is absent if the path of the root is not UTF-8", () =>
    Effect.gen(function* () {
      const base = yield* directory
      Fs.mkdirSync(bytesIn(base, 0x61, 0xff))
      Fs.symlinkSync(Buffer.from([0x61, 0xff]), join(base, "link"))
      const port = yield* PosixHost.make({ root: join(base, "link") })
      assert.isUndefined(port.history)
      assert.deepStrictEqual(yield* port.list(top), [])
    })
  )

  it.effect("fails with Unavailable after the scope of the filesystem closes", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const { listStamped: stamps } = historyOf(yield* Effect.scoped(PosixHost.make({ root })))
      assert.strictEqual((yield* faultOf(stamps(top)))._tag, "Unavailable")
    })
  )
})
