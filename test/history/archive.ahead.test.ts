/** Exports of a backend that lists many directories at a time, beside the same exports with one `list` after another. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import { accessDenied } from "../../src/model/Fault.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import type { Backend } from "../../src/port/Backend.ts"
import type { DirectoryReading, Explore, Explorer, Visit } from "../../src/port/explorer.ts"
import { fastDirectory, openDescriptors } from "../backends/posixHost.ts"

const bytesOf = (...parts: ReadonlyArray<string | number>): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part]))))

/** Creates 400 directories, so that threads list most of them, with entries that an import refuses at several depths. */
const plant = (root: string): void => {
  for (let i = 0; i < 20; i++) {
    for (let j = 0; j < 19; j++) {
      const at = join(root, `d${i}`, `e${j}`)
      Fs.mkdirSync(at, { recursive: true, mode: j % 3 === 0 ? 0o700 : 0o755 })
      for (let k = 0; k < j % 4; k++) Fs.writeFileSync(join(at, `f${k}`), `content ${i} ${j} ${k}`)
    }
  }
  Fs.writeFileSync(join(root, "d1", "e1.txt"), "after the directory e1")
  Fs.mkdirSync(join(root, "d2", "e0", "empty"))
  Fs.symlinkSync("f1", join(root, "d3", "e2", "link"))
  Fs.symlinkSync("/etc/hosts", join(root, "d4", "e2", "outside"))
  Fs.mkdirSync(join(root, "d5", "E1"))
  Fs.writeFileSync(join(root, "d5", "E1", "x"), "in the first of two names")
  execFileSync("mkfifo", [join(root, "d6", "e3", "fifo")])
  Fs.mkdirSync(bytesOf(`${root}/d7/e3/`, 0xff))
  Fs.writeFileSync(bytesOf(`${root}/d7/e3/`, 0xff, "/in"), "below a name that is not text")
  Fs.mkdirSync(join(root, "d8", "back\\slash", "in"), { recursive: true })
  for (const name of ["\ue000", "😀", "日本"]) Fs.writeFileSync(join(root, "d9", name), name)
}

const withoutExplore = (port: Backend): Backend => ({ ...port, explore: undefined })

type Change = <V extends Visit>(reading: DirectoryReading<V>, path: string) => DirectoryReading<V>

/** Changes the readings of an explorer, and runs an effect when the export closes it. */
const exploring = (port: Backend, change: Change, closed: Effect.Effect<void> = Effect.void): Backend => {
  const explore: Explore = <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean) =>
    Effect.map(
      Effect.andThen(
        Effect.addFinalizer(() => closed),
        port.explore!<V>(pathOf, searches)
      ),
      (explorer): Explorer<V> => ({
        ...explorer,
        take: () => explorer.take().map((reading) => change(reading, pathOf(reading.visit)))
      })
    )
  return { ...port, explore }
}

interface Exported {
  readonly bytes: string | unknown
  readonly skipped: ReadonlyArray<Archive.SkippedEntry>
}

const exported = (
  port: Backend,
  run: (fs: Algebra, options: Archive.ExportOptions) => Stream.Stream<Uint8Array, unknown>,
  options: Archive.ExportOptions = {}
): Effect.Effect<Exported> =>
  Effect.gen(function* () {
    const skipped: Array<Archive.SkippedEntry> = []
    const all = Stream.runCollect(run(make(port), { onSkipped: (entry) => void skipped.push(entry), ...options }))
    const bytes = yield* Effect.match(all, {
      onSuccess: (parts) => Buffer.concat(parts).toString("base64"),
      onFailure: (error) => error
    })
    return { bytes, skipped }
  })

const entriesOf = (exported: Exported, top: string): ReadonlyArray<string> => {
  const file = join(top, "archive.zip")
  Fs.writeFileSync(file, Buffer.from(exported.bytes as string, "base64"))
  const script = "import sys,zipfile\nfor n in zipfile.ZipFile(sys.argv[1]).namelist(): print(n)"
  return execFileSync("python3", ["-c", script, file], { encoding: "utf8" }).trim().split("\n")
}

const planted = Effect.gen(function* () {
  const root = yield* fastDirectory
  plant(root)
  return { root, port: yield* PosixHost.make({ root }) }
})

describe("an export that lists directories ahead", () => {
  it.effect("gives the same bytes, reports and failures as an export that lists one directory after another", () =>
    Effect.gen(function* () {
      const { port } = yield* planted
      const limits = { ...Limits.standard, maxArchiveEntries: 300 }
      const runs = [
        [Archive.exportZipOf, {}],
        [Archive.exportZipOf, { layout: "plain" }],
        [Archive.exportZipOf, { exclude: ["d1/e1*", "**/f2", "d3/**", "!d3/e2"] }],
        [Archive.exportZipOf, { strict: true }],
        [Archive.exportZipOf, { strict: true, exclude: ["d4", "d5/E1", "d6", "d7/e3", "d8"] }],
        [Archive.exportTarOf, {}],
        [Archive.keepZipOf, {}]
      ] as const
      const sizes = new Set<number>()
      for (const [run, options] of runs) {
        for (const limit of [Limits.standard, limits]) {
          const both = yield* Effect.all([exported(port, run, options), exported(withoutExplore(port), run, options)]).pipe(
            Effect.provideService(Limits.Limits, limit)
          )
          assert.deepStrictEqual(both[0], both[1])
          sizes.add(JSON.stringify(both[0]).length)
        }
      }
      assert.isAtLeast(sizes.size, 8)
    }).pipe(Effect.scoped)
  )

  it.effect("sees what is removed or replaced after the directories were listed, and follows no link", () =>
    Effect.gen(function* () {
      const { port, root } = yield* planted
      const outside = yield* fastDirectory
      Fs.mkdirSync(join(outside, "in"))
      Fs.writeFileSync(join(outside, "in", "secret"), "secret")
      const spoil = Effect.sync(() => {
        Fs.rmSync(join(root, "d10"), { recursive: true })
        Fs.rmSync(join(root, "d11", "e5"), { recursive: true })
        Fs.symlinkSync(join(outside, "in"), join(root, "d11", "e5"))
        Fs.rmSync(join(root, "d12", "e3", "f0"))
        Fs.symlinkSync(join(outside, "in", "secret"), join(root, "d12", "e3", "f0"))
        Fs.rmSync(join(root, "d13", "e3", "f1"))
        Fs.rmSync(join(root, "d14", "e3"), { recursive: true })
        Fs.writeFileSync(join(root, "d14", "e3"), "now a file")
      })
      const names = entriesOf(
        yield* exported(
          exploring(port, (reading) => reading, spoil),
          Archive.exportZipOf
        ),
        outside
      )
      assert.include(names, "files/d13/e3/f0")
      assert.include(names, "files/d12/e3/f1")
      for (const gone of ["d10", "d11/e5", "d12/e3/f0", "d13/e3/f1", "d14/e3/"]) {
        assert.isFalse(
          names.some((name) => name.startsWith(`files/${gone}`)),
          gone
        )
      }
    }).pipe(Effect.scoped)
  )

  it.effect("lists a directory again if it could not be read ahead", () =>
    Effect.gen(function* () {
      const { port } = yield* planted
      const failing = exploring(port, (reading, path) =>
        path === "" || /^d1\d$/.test(path) ? { visit: reading.visit, children: accessDenied("permission") } : reading
      )
      assert.deepStrictEqual(
        yield* exported(failing, Archive.exportZipOf),
        yield* exported(withoutExplore(port), Archive.exportZipOf)
      )
    }).pipe(Effect.scoped)
  )

  it.effect("reports the first failure in the order of the paths", () =>
    Effect.gen(function* () {
      const { port } = yield* planted
      const unreadable = (path: string): Backend =>
        exploring(
          { ...port, list: (other) => (other === path ? Effect.fail(accessDenied("permission")) : port.list(other)) },
          (reading, other) => (other === path ? { visit: reading.visit, children: accessDenied("permission") } : reading)
        )
      for (const [path, expected] of [
        ["d9", "ArchiveError"],
        ["d19", "AccessDenied"]
      ] as const) {
        const { bytes } = yield* exported(unreadable(path), Archive.exportZipOf, { strict: true })
        assert.strictEqual((bytes as { readonly _tag: string })._tag, expected)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("reads few directories more than its limit of entries", () =>
    Effect.gen(function* () {
      const { port } = yield* planted
      let count = 0
      const counting = exploring(port, (reading) => {
        count++
        return reading
      })
      const { bytes } = yield* exported(counting, Archive.exportZipOf).pipe(
        Effect.provideService(Limits.Limits, { ...Limits.standard, maxArchiveEntries: 50 })
      )
      assert.strictEqual((bytes as Archive.ArchiveError).reason, "tooLarge")
      assert.isBelow(count, 60)
    }).pipe(Effect.scoped)
  )

  it.effect("stops reading ahead when it exceeds its limit of entries or finds an entry that it refuses", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      for (let i = 0; i < 2000; i++) {
        Fs.mkdirSync(join(root, `d${i}`))
        Fs.writeFileSync(join(root, `d${i}`, "a"), "")
      }
      const port = yield* PosixHost.make({ root })
      const failing = Effect.fnUntraced(function* (options: Archive.ExportOptions, limits: Partial<Limits.LimitsShape>) {
        let count = 0
        const counting = exploring(port, (reading) => {
          count++
          return reading
        })
        const { bytes } = yield* exported(counting, Archive.exportZipOf, options).pipe(
          Effect.provideService(Limits.Limits, { ...Limits.standard, ...limits })
        )
        return { reason: (bytes as Archive.ArchiveError).reason, isEarly: count < 1000 }
      })
      // The root alone exceeds the first limit. The directories that are read first exceed the second limit.
      for (const maxArchiveEntries of [50, 2050]) {
        assert.deepStrictEqual(yield* failing({}, { maxArchiveEntries }), { reason: "tooLarge", isEarly: true })
      }
      Fs.mkdirSync(join(root, "back\\slash"))
      assert.deepStrictEqual(yield* failing({ strict: true }, {}), { reason: "name", isEarly: true })
    }).pipe(Effect.scoped)
  )

  it.live("closes all directories if it is interrupted", () =>
    Effect.gen(function* () {
      const { port } = yield* planted
      yield* exported(port, Archive.exportZipOf)
      const before = openDescriptors()
      const began = yield* Deferred.make<void>()
      let isClosed = false
      const stopping = exploring(
        port,
        (reading) => {
          Deferred.doneUnsafe(began, Exit.void)
          return reading
        },
        Effect.sync(() => void (isClosed = true))
      )
      const fiber = yield* Effect.forkChild(exported(stopping, Archive.exportZipOf))
      yield* Deferred.await(began)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(isClosed)
      assert.isAtMost(openDescriptors(), before)
    }).pipe(Effect.scoped)
  )
})
