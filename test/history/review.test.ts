/** Tests for bugs that a second review has found in snapshots. */
import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { storeFault } from "../../src/history/errors.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Service from "../../src/history/snapshots/service.ts"
import type { StoredSnapshot, Strategy } from "../../src/history/snapshots/strategy.ts"
import * as Names from "../runtime/names.ts"
import { hasGit } from "./git/support.ts"

const memory = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(memory), "fs-algebra-review-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const over = (root: string, gitDir: string, options: Partial<PosixHost.PosixHostOptions> = {}) =>
  Snapshots.layerGit({ gitDir }).pipe(Layer.provideMerge(PosixHost.layer({ root, ...options })))

/** Returns the path of the archive of a snapshot. */
const archiveOf = ({ snapshotId }: Snapshots.FilesystemSnapshot): string => {
  const path = Fs.readdirSync(tmpdir())
    .filter((name) => name.startsWith("fs-algebra-archives-"))
    .map((name) => join(tmpdir(), name, `${snapshotId}.zip`))
    .find((path) => Fs.existsSync(path))
  assert.isDefined(path)
  return path!
}

const target = (descriptor: string): string => {
  try {
    return Fs.readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ""
  }
}

/** Counts the descriptors of this process that are open on the file, even if it has been removed. */
const opensOf = (path: string): number =>
  Fs.readdirSync("/proc/self/fd").filter((descriptor) => target(descriptor).startsWith(path)).length

describe("snapshots, second review", () => {
  it.live("a snapshot that a restore needs is kept in addition to the retained ones", () =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      const fs = yield* Filesystem
      const taken: Array<Snapshots.FilesystemSnapshot> = []
      for (let i = 0; i < 3; i++) {
        yield* fs.write("a", `${i}`)
        taken.push(yield* snapshots.snapshot())
      }
      yield* fs.write("a", "now")
      const { safety } = yield* snapshots.restore(taken[0]!, { safety: true })
      // The newest three are the second, the third and the safety snapshot; the first was being restored.
      assert.deepStrictEqual(
        (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
        [...taken, safety!].map(({ snapshotId }) => snapshotId)
      )
    }).pipe(Effect.provide(Snapshots.layerWith({ retention: { maxSnapshots: 3 } }).pipe(Layer.provideMerge(InMemory.layer()))))
  )

  it.effect("the safety snapshot stays when the restore fails, because the tree may have changed", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const forgotten: Array<string> = []
      const kept = (snapshotId: string): StoredSnapshot => ({
        snapshot: new Snapshots.FilesystemSnapshot({
          snapshotId,
          createdAt: DateTime.makeUnsafe(0),
          commitRef: "mem-1",
          rootPath: port.info.root
        }),
        label: {},
        counts: Effect.succeed({ files: 0, bytes: 0 })
      })
      const wanted = kept("6f2f2b1e-0000-4000-8000-000000000001")
      const strategy: Partial<Strategy> = {
        name: "memory",
        commitRef: /^mem-1$/,
        rootPath: port.info.root,
        take: () => Effect.succeed(kept("6f2f2b1e-0000-4000-8000-000000000002")),
        find: () => Effect.succeed(wanted),
        restore: () => Effect.fail(storeFault("io", "it is not as it was captured")),
        forget: ({ snapshot }) => Effect.sync(() => void forgotten.push(snapshot.snapshotId))
      }
      const snapshots = Service.make(strategy as Strategy, port)
      yield* Effect.flip(snapshots.restore(wanted.snapshot, { safety: true, verify: true }))
      assert.deepStrictEqual(forgotten, [])
    })
  )

  it.live.skipIf(!Fs.existsSync("/proc/self/fd"))("a changed archive is refused each time and not kept open", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const layer = Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root })))
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const fs = yield* Filesystem
        yield* fs.write("a", "1")
        const taken = yield* snapshots.snapshot()
        const path = archiveOf(taken)
        const bytes = Fs.readFileSync(path)
        Fs.writeFileSync(path, "changed")
        for (let i = 0; i < 3; i++) {
          assert.deepInclude(yield* Effect.flip(snapshots.restore(taken)), { reason: "corrupt" })
          assert.strictEqual(opensOf(path), 0)
        }
        Fs.writeFileSync(path, bytes)
        for (let i = 0; i < 3; i++) {
          yield* fs.write("a", "2")
          yield* snapshots.restore(taken)
          assert.strictEqual(yield* fs.readString("a"), "1")
          assert.strictEqual(opensOf(path), 1)
        }
        yield* snapshots.forget(taken)
        assert.strictEqual(opensOf(path), 0)
      }).pipe(Effect.provide(layer))
    })
  )

  it.live("an archive that was unreadable once can be read later", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const layer = Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root })))
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const fs = yield* Filesystem
        yield* fs.write("a", "1")
        const taken = yield* snapshots.snapshot()
        const place = archiveOf(taken)
        Fs.renameSync(place, `${place}.away`)
        assert.strictEqual((yield* Effect.flip(snapshots.restore(taken)))._tag, "SnapshotRestoreError")
        Fs.renameSync(`${place}.away`, place)
        yield* fs.write("a", "2")
        yield* snapshots.restore(taken)
        assert.strictEqual(yield* fs.readString("a"), "1")
      }).pipe(Effect.provide(layer))
    })
  )
})

describe.runIf(hasGit)("snapshots in git, second review", () => {
  it.live("a capture without write permission includes the leftovers of a killed exchange", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      Fs.writeFileSync(join(root, "a"), "1")
      const token = Names.signed(Names.dead(), "exchange")
      const left = join(root, token)
      Fs.mkdirSync(left)
      const taken = yield* Snapshots.Snapshots.use((snapshots) => snapshots.snapshot()).pipe(
        Effect.provide(over(root, gitDir, { readOnly: true }))
      )
      assert.isTrue(Fs.existsSync(left))
      const names = yield* Snapshots.Snapshots.use((snapshots) =>
        Effect.flatMap(snapshots.view(taken), (past) => past.list())
      ).pipe(Effect.provide(over(root, gitDir, { readOnly: true })))
      assert.deepStrictEqual(
        names.map(({ name }) => name),
        [token, "a"]
      )
    })
  )

  it.live("a forged journal does not block snapshot and restore", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      Fs.writeFileSync(join(root, "a"), "1")
      const forged = join(root, Names.forged(Names.dead(), "exchange"))
      Fs.mkdirSync(forged)
      Fs.writeFileSync(join(forged, "journal"), "{ not JSON")
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        Fs.writeFileSync(join(root, "a"), "2")
        yield* snapshots.restore(taken)
        assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "1")
        // The forged journal stays, because it may be the last trace of an entry.
        assert.strictEqual(Fs.readFileSync(join(forged, "journal"), "utf8"), "{ not JSON")
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live("a journal that is a directory or a link does not block snapshot and restore", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      Fs.writeFileSync(join(root, "a"), "1")
      const [one, other] = [
        join(root, Names.forged(Names.dead(), "exchange")),
        join(root, Names.forged(Names.dead(), "exchange"))
      ]
      Fs.mkdirSync(join(one, "journal"), { recursive: true })
      Fs.mkdirSync(other)
      Fs.symlinkSync("/etc/passwd", join(other, "journal.back"))
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        Fs.writeFileSync(join(root, "a"), "2")
        yield* snapshots.restore(taken)
        assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "1")
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )

  it.live.skipIf(process.platform !== "linux")("a name that is no text looks the same in a view as now", () =>
    Effect.gen(function* () {
      const [root, gitDir] = [yield* directory, join(yield* directory, "store")]
      for (const name of ["a\xff", "b\\\xfe", "c\n"]) {
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]), "")
      }
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const fs = yield* Filesystem
        const past = yield* snapshots.view(yield* snapshots.snapshot())
        const names = (all: ReadonlyArray<{ readonly name: string }>) => all.map(({ name }) => name)
        const now = names(yield* fs.list())
        assert.strictEqual(now.length, 3)
        assert.deepStrictEqual(names(yield* past.list()), now)
      }).pipe(Effect.provide(over(root, gitDir)))
    })
  )
})
