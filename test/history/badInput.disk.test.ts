/**
 * Snapshots and restores while the disk of the store or of the directory is full. A failure is reported and changes nothing,
 * and the operation works once there is space.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import { canMount, disk, needs } from "../faults/ground.ts"
import { read } from "./awkward.ts"
import { fsck, hasGit, hidden, type Place, place, refusesRestoring, within } from "./badInput.ts"

const ready = hasGit && needs("full disks", canMount, "it needs root and a kernel that lets it mount a tmpfs")

const megabyte = 2 ** 20

/** Fills the disk to the last page, except for `left` bytes. */
const fill = (directory: string, left = 0): void => {
  const descriptor = Fs.openSync(join(directory, "ballast"), "w")
  try {
    for (;;) Fs.writeSync(descriptor, Buffer.alloc(4096))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error
    Fs.ftruncateSync(descriptor, Math.max(0, Fs.fstatSync(descriptor).size - left))
  } finally {
    Fs.closeSync(descriptor)
  }
}

const empty = (directory: string): void => Fs.rmSync(join(directory, "ballast"), { force: true })

/** Writes files that do not compress. */
const write = (root: string, count: number, size: number): void => {
  for (let i = 0; i < count; i++) Fs.writeFileSync(join(root, `f${i}`), randomBytes(size))
}

const tmpIn = ({ gitDir }: Place): ReadonlyArray<string> =>
  Fs.readdirSync(gitDir, { recursive: true, encoding: "utf8" }).filter((path) =>
    /tmp_|\.tmp-|packing|\.lock$|turns\/./.test(path)
  )

/** Returns a place whose store is on a disk of its own. */
const withStoreOn = (options: string) =>
  Effect.gen(function* () {
    const here = yield* place
    const top = yield* disk(options)
    return { top, here: { ...here, gitDir: join(top, "store") } }
  })

describe.runIf(ready)("the disk of a store", () => {
  it.live("is checked for space before anything is written", () =>
    Effect.gen(function* () {
      const { here } = yield* withStoreOn("size=6m")
      write(here.root, 8, megabyte)
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const before = read(here.gitDir)
          const error = yield* Effect.flip(snapshots.snapshot())
          assert.strictEqual(error.reason, "budget", error.message)
          assert.deepStrictEqual(read(here.gitDir), before)
        })
      )
    })
  )

  for (const left of [0, 8192, 3 * megabyte]) {
    it.live(
      `keeps its snapshots if only ${left} bytes are left during a snapshot, and takes the snapshot once there is space`,
      () =>
        Effect.gen(function* () {
          const { here, top } = yield* withStoreOn("size=90m")
          Fs.mkdirSync(join(here.root, "d"))
          write(here.root, 6, megabyte)
          write(join(here.root, "d"), 6, megabyte)
          let isFilling = false
          const onProgress = ({ phase }: { readonly phase: string }): void => {
            if (!isFilling || phase !== "reading") return
            isFilling = false
            fill(top, left)
          }
          yield* within(
            here,
            (snapshots) =>
              Effect.gen(function* () {
                const first = yield* snapshots.snapshot()
                const one = read(here.root)
                write(here.root, 3, megabyte)
                write(join(here.root, "d"), 3, megabyte)
                const two = read(here.root)
                isFilling = true
                const error = yield* Effect.flip(snapshots.snapshot())
                assert.isFalse(isFilling)
                assert.strictEqual(error._tag, "SnapshotError")
                assert.strictEqual(error.reason, "io", error.message)
                assert.include(error.detail, "full")
                assert.deepStrictEqual(read(here.root), two)
                assert.deepStrictEqual(hidden(here.root), [])
                assert.deepStrictEqual(tmpIn(here), [])
                assert.strictEqual((yield* snapshots.list).length, 1)
                // A restore works although the disk of the store is full.
                yield* snapshots.restore(first)
                assert.deepStrictEqual(read(here.root), one)
                empty(top)
                const second = yield* snapshots.snapshot()
                fsck(here)
                Fs.rmSync(join(here.root, "d"), { recursive: true })
                yield* snapshots.restore(second)
                assert.deepStrictEqual(read(here.root), one)
              }),
            { onProgress }
          )
        })
    )
  }

  const twoOnFull = Effect.gen(function* () {
    const { here, top } = yield* withStoreOn("size=90m")
    write(here.root, 3, megabyte)
    const first = yield* within(here, (snapshots) => snapshots.snapshot())
    const one = read(here.root)
    write(here.root, 3, megabyte)
    const second = yield* within(here, (snapshots) => snapshots.snapshot())
    fill(top)
    return { here, first, one, second, room: () => Fs.statfsSync(top).bavail * Fs.statfsSync(top).bsize }
  })

  it.live("permits a restore when it is full", () =>
    Effect.gen(function* () {
      const { first, here, one, second } = yield* twoOnFull
      const two = read(here.root)
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          yield* snapshots.restore(first)
          assert.deepStrictEqual(read(here.root), one)
          yield* snapshots.restore(second)
          assert.deepStrictEqual(read(here.root), two)
          assert.strictEqual((yield* snapshots.list).length, 2)
        })
      )
    })
  )

  it.live("has space again after a snapshot is forgotten and collected on a full disk", () =>
    Effect.gen(function* () {
      const { first, here, one, room, second } = yield* twoOnFull
      yield* within(here, (snapshots) => Effect.andThen(snapshots.forget(second), snapshots.collect))
      assert.isAbove(room(), 2 * megabyte)
      yield* within(here, (snapshots) => snapshots.restore(first, { verify: true }))
      assert.deepStrictEqual(read(here.root), one)
      fsck(here)
    })
  )

  it.live("has space again as soon as forgotten snapshots are collected, while the layer still runs", () =>
    Effect.gen(function* () {
      const { first, here, room, second } = yield* twoOnFull
      Fs.truncateSync(join(here.gitDir, "../ballast"), Fs.statSync(join(here.gitDir, "../ballast")).size - megabyte)
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          yield* snapshots.restore(first)
          yield* snapshots.restore(second)
          yield* snapshots.forget(second)
          yield* snapshots.collect
          assert.isAbove(room(), 3 * megabyte)
          yield* snapshots.restore(first)
        })
      )
    })
  )

  it.live("refuses a snapshot when it has no inodes left, and says that it is full", () =>
    Effect.gen(function* () {
      const { here, top } = yield* withStoreOn("size=90m,nr_inodes=60")
      write(here.root, 2, 1000)
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const first = yield* snapshots.snapshot()
          write(here.root, 2, 1000)
          const two = read(here.root)
          const ballast: Array<string> = []
          try {
            for (let i = 0; ; i++) {
              Fs.writeFileSync(join(top, `ballast${i}`), "")
              ballast.push(join(top, `ballast${i}`))
            }
          } catch {
            // No inode is left.
          }
          const error = yield* Effect.flip(snapshots.snapshot())
          assert.strictEqual(error.reason, "io", error.message)
          assert.include(error.detail, "full")
          assert.deepStrictEqual(read(here.root), two)
          for (const path of ballast) Fs.rmSync(path)
          yield* snapshots.snapshot()
          yield* snapshots.restore(first)
          assert.strictEqual((yield* snapshots.list).length, 2)
        })
      )
    })
  )
})

describe.runIf(ready)("a full disk", () => {
  /** Runs a call on a disk with more and more room until it succeeds, and checks that each failure changes nothing. */
  const sweep = <E>(
    root: string,
    call: Effect.Effect<unknown, E>,
    expected: Record<string, string>,
    check: (error: E) => void
  ) =>
    Effect.gen(function* () {
      let failures = 0
      for (let left = 0; ; left += 200_000) {
        empty(root)
        fill(root, left)
        const before = read(root)
        const result = yield* Effect.result(call)
        assert.deepStrictEqual(hidden(root), [])
        if (result._tag === "Success") break
        failures++
        check(result.failure)
        assert.deepStrictEqual(read(root), before)
      }
      const found = read(root)
      assert.deepStrictEqual(found, expected)
      return failures
    })

  it.live("leaves the tree unchanged by a restore until there is enough space", () =>
    Effect.gen(function* () {
      const root = yield* disk("size=8m")
      const here = { ...(yield* place), root }
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          Fs.mkdirSync(join(root, "d/e"), { recursive: true })
          write(root, 3, 300_000)
          write(join(root, "d/e"), 5, 20_000)
          const one = read(root)
          const first = yield* snapshots.snapshot()
          Fs.rmSync(join(root, "d"), { recursive: true })
          write(root, 3, 250_000)
          Fs.writeFileSync(join(root, "new"), "new\n")
          const failures = yield* sweep(root, snapshots.restore(first), one, (error) => {
            assert.strictEqual(error._tag, "SnapshotRestoreError")
            assert.strictEqual(error.reason, "io", error.message)
          })
          assert.isAbove(failures, 2)
        })
      )
    })
  )

  it.live("leaves the tree unchanged by a restore if no inode is free", () =>
    Effect.gen(function* () {
      const root = yield* disk("size=8m,nr_inodes=60")
      const here = { ...(yield* place), root }
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          write(root, 12, 100)
          const one = read(root)
          const first = yield* snapshots.snapshot()
          write(root, 12, 100)
          for (let i = 0; i < 40; i++) Fs.writeFileSync(join(root, `more${i}`), "")
          yield* refusesRestoring(here, snapshots.restore(first), "io")
          for (let i = 0; i < 40; i++) Fs.rmSync(join(root, `more${i}`))
          yield* snapshots.restore(first)
          assert.deepStrictEqual(read(root), one)
        })
      )
    })
  )

  it.live("leaves the tree unchanged by an import or a rollback until there is enough space", () =>
    Effect.gen(function* () {
      const root = yield* disk("size=8m")
      const { top } = yield* place
      const archives = join(top, "archives")
      yield* Effect.gen(function* () {
        const fs = yield* Filesystem
        const named = yield* SnapshotStore.SnapshotStore
        write(root, 3, 300_000)
        const one = read(root)
        yield* named.snapshot("one")
        const bytes = new Uint8Array(Fs.readFileSync(join(archives, "one.fs.zip")))
        for (const call of [
          named.rollback("one"),
          Archive.importBytesOf(fs, bytes),
          Archive.importZipOf(fs, Stream.make(bytes)),
          Archive.importArchiveOf(fs, join(archives, "one.fs.zip"))
        ]) {
          write(root, 3, 250_000)
          const failures = yield* sweep<{ readonly _tag: string; readonly message: string }>(root, call, one, (error) => {
            assert.strictEqual(error._tag, "DiskFull", error.message)
          })
          assert.isAbove(failures, 2)
        }
      }).pipe(Effect.provide(SnapshotStore.layer({ directory: archives }).pipe(Layer.provideMerge(PosixHost.layer({ root })))))
    })
  )

  it.live("keeps the archives of a SnapshotStore, but no partial archive", () =>
    Effect.gen(function* () {
      const top = yield* disk("size=4m")
      const archives = join(top, "archives")
      const { root } = yield* place
      yield* Effect.gen(function* () {
        const named = yield* SnapshotStore.SnapshotStore
        write(root, 3, 300_000)
        const one = read(root)
        yield* named.snapshot("one")
        write(root, 3, 300_000)
        for (const left of [0, 4096, 400_000]) {
          empty(top)
          fill(top, left)
          const error = yield* Effect.flip(named.snapshot("one"))
          assert.strictEqual(error._tag, "SnapshotError")
          assert.deepStrictEqual(Fs.readdirSync(archives), ["one.fs.zip"])
        }
        yield* named.rollback("one")
        assert.deepStrictEqual(read(root), one)
        empty(top)
        yield* named.snapshot("two")
        assert.strictEqual((yield* named.list).length, 2)
      }).pipe(Effect.provide(SnapshotStore.layer({ directory: archives }).pipe(Layer.provideMerge(PosixHost.layer({ root })))))
    })
  )
})
