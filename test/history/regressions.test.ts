/** Tests for bugs that reviews have found in snapshots. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as TestClock from "effect/testing/TestClock"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { decorate, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"

const { Snapshots: Service } = Snapshots

const memory = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(memory), "fs-algebra-regressions-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const host = Layer.unwrap(Effect.map(directory, (root) => PosixHost.layer({ root })))

const over = (root: string, gitDir: string, options: Snapshots.LayerOptions = {}) =>
  Snapshots.layerGit({ gitDir, ...options }).pipe(Layer.provideMerge(PosixHost.layer({ root })))

type Served = Layer.Layer<Filesystem | Snapshots.Snapshots, unknown>

const both = (options: Snapshots.LayerOptions): ReadonlyArray<Served> => [
  Snapshots.layerWith(options).pipe(Layer.provideMerge(InMemory.layer())),
  Snapshots.layerWith(options).pipe(Layer.provideMerge(host))
]

const all = (options: Snapshots.LayerOptions): ReadonlyArray<Served> => [
  ...both(options),
  Snapshots.layerWith(options).pipe(
    Layer.provideMerge(InMemory.layer({ tree: { sub: {} } }).pipe(decorate(subdirectory("sub"))))
  )
]

const shown = (changes: ReadonlyArray<Snapshots.Change>) => changes.map(({ _tag, path }) => `${_tag} ${path}`)

describe("snapshots, regressions", () => {
  it.live("a file that is rewritten during a capture is captured whole, or the capture fails", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      const file = join(root, "torn")
      const size = 3 * 1024 * 1024
      Fs.writeFileSync(file, Buffer.alloc(size, 65))
      // A whole file consists of one letter.
      const program = `const fs=require("fs");const d=fs.openSync(process.argv[1],"r+");
        for(let i=0;;i++)fs.writeSync(d,Buffer.alloc(${size},65+i%26),0,${size},0)`
      const writer = spawn(process.execPath, ["-e", program, file], { stdio: "ignore" })
      yield* Effect.addFinalizer(() => Effect.sync(() => void writer.kill("SIGKILL")))
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        for (let i = 0; i < 3; i++) {
          const taken = yield* Effect.result(snapshots.snapshot())
          if (taken._tag === "Failure") {
            assert.include(taken.failure.detail, "torn")
            continue
          }
          const bytes = execFileSync("git", ["--git-dir", gitDir, "show", `${taken.success.commitRef}:torn`], {
            maxBuffer: 2 * size
          })
          assert.strictEqual(bytes.length, size)
          assert.isTrue(bytes.every((byte) => byte === bytes[0]))
        }
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live("files of an unchanged directory are kept when only its tree survived a collection", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      for (const name of ["a", "b"]) {
        Fs.mkdirSync(join(root, name), { mode: 0o700 })
        Fs.chmodSync(join(root, name), 0o700)
        Fs.writeFileSync(join(root, name, "file"), `${name}\n`)
        Fs.symlinkSync("file", join(root, name, "link"))
      }
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        let taken = yield* snapshots.snapshot()
        for (let i = 0; i < 6; i++) {
          Fs.writeFileSync(join(root, "a", "file"), `${i}\n`.repeat(1000))
          const next = yield* snapshots.snapshot()
          yield* snapshots.forget(taken)
          yield* snapshots.collect
          taken = next
          execFileSync("git", ["--git-dir", gitDir, "fsck", "--full", "--strict"], { stdio: "pipe" })
        }
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live("a transaction does not count for retention, and rolls back when snapshots expire in it", () =>
    Effect.gen(function* () {
      for (const layer of all({ retention: { maxSnapshots: 1 } })) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const fs = yield* Filesystem
          yield* fs.write("a", "before")
          const mine = yield* snapshots.snapshot()
          yield* snapshots.transaction(fs.write("b", "x"))
          assert.deepStrictEqual(
            (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
            [mine.snapshotId]
          )
          yield* Effect.flip(
            snapshots.transaction(
              Effect.gen(function* () {
                yield* fs.write("a", "after")
                yield* snapshots.snapshot()
                return yield* Effect.fail("no")
              })
            )
          )
          assert.strictEqual(yield* fs.readString("a"), "before")
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("details are right after a transaction and after the newest snapshot is forgotten", () =>
    Effect.gen(function* () {
      for (const layer of both({})) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const fs = yield* Filesystem
          yield* fs.write("a", "1\n")
          yield* snapshots.snapshot()
          yield* snapshots.transaction(fs.write("a", "2\n"))
          yield* snapshots.forget(yield* snapshots.snapshot())
          yield* fs.write("b", "3\n")
          const { filesChanged } = yield* snapshots.details(yield* snapshots.snapshot())
          assert.strictEqual(filesChanged, 2)
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.effect("snapshots keep their order when the clock stands still or goes back", () =>
    Effect.gen(function* () {
      for (const layer of both({ retention: { maxSnapshots: 3 } })) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const taken: Array<string> = []
          for (const time of [5000, 5000, 5000, 1000, 0, -1000, -1000]) {
            yield* TestClock.setTime(time)
            taken.push((yield* snapshots.snapshot()).snapshotId)
          }
          assert.deepStrictEqual(
            (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
            taken.slice(-3)
          )
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("an excluded .git stays unchanged, whichever layer restores", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      Fs.mkdirSync(join(root, ".git"))
      Fs.writeFileSync(join(root, ".git/HEAD"), "first\n")
      Fs.writeFileSync(join(root, "a"), "1")
      const take = Service.use((snapshots) => snapshots.snapshot())
      const without = yield* Effect.provide(take, over(root, gitDir, { git: "exclude" }))
      const withIt = yield* Effect.provide(take, over(root, gitDir))
      for (const [snapshot, options, head] of [
        [without, {}, "second\n"],
        [without, { git: "exclude" }, "second\n"],
        [withIt, { git: "exclude" }, "second\n"],
        [withIt, {}, "first\n"]
      ] as const) {
        Fs.writeFileSync(join(root, ".git/HEAD"), "second\n")
        Fs.writeFileSync(join(root, "a"), "2")
        const restore = Service.use((snapshots) => snapshots.restore(snapshot, { verify: true }))
        yield* Effect.provide(restore, over(root, gitDir, options))
        assert.strictEqual(Fs.readFileSync(join(root, ".git/HEAD"), "utf8"), head)
        assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "1")
      }
      for (const layer of all({ git: "exclude" })) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const fs = yield* Filesystem
          yield* fs.write(".git/HEAD", "first\n")
          yield* fs.write("a", "1")
          const taken = yield* snapshots.snapshot()
          yield* fs.write(".git/HEAD", "second\n")
          yield* fs.write("a", "2")
          assert.deepStrictEqual(shown(yield* snapshots.diff(taken)), ["Modified a"])
          assert.deepStrictEqual(shown((yield* snapshots.restore(taken)).changes), ["Modified a"])
          assert.strictEqual(yield* fs.readString(".git/HEAD"), "second\n")
          assert.strictEqual(yield* fs.readString("a"), "1")
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("entries that cannot be captured are counted as skipped", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      execFileSync("mkfifo", [join(root, "fifo")])
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const taken = yield* snapshots.snapshot()
        assert.strictEqual((yield* snapshots.details(taken)).skipped, 1)
        yield* snapshots.restore(taken)
        assert.isTrue(Fs.lstatSync(join(root, "fifo")).isFIFO())
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live("a fork can be merged only into its own root", () =>
    Effect.gen(function* () {
      const gitDir = join(yield* directory, "store")
      const [one, other] = [yield* directory, yield* directory]
      const fork = yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const fork = yield* snapshots.fork(yield* snapshots.snapshot())
        yield* fork.write("new", "x")
        return fork
      }).pipe(Effect.provide(over(one, gitDir)))
      const error = yield* Service.use((snapshots) => Effect.flip(snapshots.merge(fork))).pipe(
        Effect.provide(over(other, gitDir))
      )
      assert.strictEqual(error._tag === "SnapshotError" && error.reason, "refused")
      assert.deepStrictEqual(Fs.readdirSync(other), [])
    })
  )

  it.live("the result of a restore survives JSON, even with names that are no text", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const taken = yield* snapshots.snapshot()
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "")
        const result = yield* snapshots.restore(taken, { safety: true })
        const codec = Schema.toCodecJson(Snapshots.RestoreResult)
        const json = JSON.stringify(yield* Schema.encodeEffect(codec)(result))
        assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codec)(JSON.parse(json)), result)
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live("errors do not reveal the path of the store", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      Fs.writeFileSync(join(root, "a"), "1")
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const taken = yield* snapshots.snapshot()
        const past = yield* snapshots.view(taken)
        Fs.rmSync(gitDir, { recursive: true })
        const failures = [
          yield* Effect.flip(snapshots.snapshot()),
          yield* Effect.flip(snapshots.restore(taken)),
          yield* Effect.flip(snapshots.diff(taken))
        ]
        // Open objects may still be readable.
        const read = yield* Effect.result(past.readString("a"))
        if (read._tag === "Failure") assert.notInclude(read.failure.message, gitDir)
        for (const failure of failures) assert.notInclude(failure.message, gitDir)
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live("directories do not count against the budget of files", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      for (let i = 0; i < 40; i++) Fs.mkdirSync(join(root, `d${i}`))
      const take = Service.use((snapshots) => snapshots.snapshot())
      const taken = yield* Effect.provide(take, over(root, gitDir, { maxFiles: 10 }))
      for (let i = 0; i < 40; i++) Fs.rmdirSync(join(root, `d${i}`))
      yield* Effect.provide(
        Service.use((snapshots) => snapshots.restore(taken)),
        over(root, gitDir, { maxFiles: 10 })
      )
      assert.strictEqual(Fs.readdirSync(root).length, 40)
    })
  )

  it.live("a dry run and a restore report the parents that must be created for a path in another case", () =>
    Effect.gen(function* () {
      const snapshots = yield* Service
      const fs = yield* Filesystem
      yield* fs.write("Src/deep/a", "1")
      const taken = yield* snapshots.snapshot()
      yield* fs.delete("Src", { recursive: true })
      const expected = ["Added Src", "Added Src/deep", "Added Src/deep/a"]
      const options = { paths: ["SRC/deep/A"] }
      assert.deepStrictEqual(shown((yield* snapshots.restore(taken, { ...options, dryRun: true })).changes), expected)
      assert.isFalse(yield* fs.exists("Src"))
      assert.deepStrictEqual(shown((yield* snapshots.restore(taken, options)).changes), expected)
      assert.strictEqual(yield* fs.readString("src/deep/a"), "1")
    }).pipe(Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer({ caseInsensitive: true })))))
  )

  it.live("a path through a link is refused", () =>
    Effect.gen(function* () {
      for (const layer of all({})) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const fs = yield* Filesystem
          yield* fs.write("d/f", "1")
          yield* fs.symlink("link", "d")
          const taken = yield* snapshots.snapshot()
          const error = yield* Effect.flip(snapshots.restore(taken, { paths: ["link/f"] }))
          assert.include(error.detail, '"link" is a link')
          yield* snapshots.restore(taken, { paths: ["link"] })
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("one directory is one root, whatever path leads to it", () =>
    Effect.gen(function* () {
      const [top, gitDir] = [yield* directory, join(yield* directory, "store")]
      Fs.mkdirSync(join(top, "root"))
      Fs.symlinkSync("root", join(top, "link"))
      const taken = yield* Effect.provide(
        Service.use((snapshots) => snapshots.snapshot()),
        over(join(top, "link"), gitDir)
      )
      Fs.writeFileSync(join(top, "root", "new"), "")
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        assert.strictEqual((yield* snapshots.list).length, 1)
        yield* snapshots.restore(taken)
        assert.deepStrictEqual(Fs.readdirSync(join(top, "root")), [])
      }).pipe(Effect.provide(over(join(top, "root"), gitDir)))
    })
  )

  it.live("reading a large file of the past backwards runs one process at a time", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      const content = Buffer.alloc(6 * 1024 * 1024, "0123456789\n")
      Fs.writeFileSync(join(root, "large"), content)
      const running = (): number =>
        Fs.readdirSync("/proc").filter((pid) => {
          if (!/^\d+$/.test(pid)) return false
          try {
            const line = Fs.readFileSync(`/proc/${pid}/cmdline`, "latin1")
            return line.includes(gitDir) && line.includes("cat-file\0blob")
          } catch {
            return false
          }
        }).length
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const past = yield* snapshots.view(yield* snapshots.snapshot())
        yield* Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* past.port.open("large" as never)
            for (let i = 20; i >= 0; i--) {
              const at = i * 250_000
              const bytes = yield* handle.read(at, 1000)
              assert.isTrue(Buffer.from(bytes).equals(content.subarray(at, at + bytes.length)))
              assert.isAtMost(running(), 1)
            }
          })
        )
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )
})
