/**
 * Changes of several files on a backend on which every rename fails with EXDEV. The changes are atomic, because they copy
 * instead.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { faulty, renameless } from "../../src/testing/Faults.ts"
import { capture, directory, type Files, link, picture, plant } from "../../src/testing/Files.ts"
import { around } from "../../src/port/Backend.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"
import { fastDirectory } from "../backends/posixHost.ts"

const before: Files = { a: "a", "d/b": "b", "d/e/c": "c", empty: directory, way: link("d/b") }

const memory = Effect.map(InMemory.make(), make)
const host = Effect.flatMap(fastDirectory, (root) => Effect.map(Effect.orDie(PosixHost.make({ root })), make))

const grounds = [
  ["memory", memory],
  ["a host", host]
] as const

/** Makes writes to files of this name fail, so that the change must be rolled back. */
const failing = (name: string) =>
  faulty([{ operation: "Write", path: new RegExp(`(?:^|/)${name}$`), fault: { _tag: "DiskFull" } }])

const snapshotsOf = (fs: Parameters<typeof renameless>[0]) =>
  Effect.map(Layer.build(Snapshots.layerArchive.pipe(Layer.provide(Layer.succeed(Filesystem, fs)))), (services) =>
    Context.get(services, Snapshots.Snapshots)
  )

for (const [name, made] of grounds) {
  describe(`on ${name} without rename,`, () => {
    const ground = Effect.gen(function* () {
      const fs = renameless(yield* made)
      yield* plant(fs.port, before)
      return fs
    })

    it.live("a snapshot is restored whole", () =>
      Effect.gen(function* () {
        const fs = yield* ground
        const snapshots = yield* snapshotsOf(fs)
        const first = yield* snapshots.snapshot({})
        yield* fs.write("a", "changed")
        yield* fs.write("new/deep/file", "new")
        yield* fs.delete("d", { recursive: true })
        yield* snapshots.restore(first)
        assert.deepStrictEqual(yield* capture(fs.port), picture(before))
      }).pipe(Effect.scoped)
    )

    it.live("a transaction that fails is rolled back", () =>
      Effect.gen(function* () {
        const fs = yield* ground
        const snapshots = yield* snapshotsOf(fs)
        const exit = yield* Effect.exit(
          snapshots.transaction(
            Effect.gen(function* () {
              yield* fs.write("a", "changed")
              yield* fs.delete("d", { recursive: true })
              yield* fs.write("d", "a file now")
              return yield* Effect.fail("no")
            })
          )
        )
        assert.strictEqual(exit._tag, "Failure")
        assert.deepStrictEqual(yield* capture(fs.port), picture(before))
      }).pipe(Effect.scoped)
    )

    it.live("an import is all or nothing", () =>
      Effect.gen(function* () {
        const source = yield* memory
        yield* plant(source.port, { a: "other", "d/e/c": "other", "x/y/z": "z" })
        const bytes = yield* Archive.exportBytesOf(source)
        const fs = yield* ground
        assert.strictEqual((yield* Effect.exit(Archive.importBytesOf(failing("z")(fs), bytes)))._tag, "Failure")
        assert.deepStrictEqual(yield* capture(fs.port), picture(before))
        yield* Archive.importBytesOf(fs, bytes)
        assert.strictEqual(yield* fs.readString("x/y/z"), "z")
        assert.strictEqual(yield* fs.readString("d/e/c"), "other")
      }).pipe(Effect.scoped)
    )

    it.live("copying mounts is all or nothing", () =>
      Effect.gen(function* () {
        const root = yield* fastDirectory
        Fs.mkdirSync(join(root, "src/deep"), { recursive: true })
        Fs.writeFileSync(join(root, "src/a"), "mounted")
        Fs.writeFileSync(join(root, "src/deep/z"), "z")
        const fs = yield* ground
        const mounts = [{ hostPath: "src", mountPath: "d" }]
        const failed = yield* Effect.exit(HostMount.hydrate(failing("z")(fs), mounts, { allowedRoots: [root] }))
        assert.strictEqual(failed._tag, "Failure")
        assert.deepStrictEqual(yield* capture(fs.port), picture(before))
        yield* HostMount.hydrate(fs, mounts, { allowedRoots: [root] })
        assert.deepStrictEqual(yield* capture(fs.port), picture({ ...before, "d/a": "mounted", "d/deep/z": "z" }))
      }).pipe(Effect.scoped)
    )
  })
}

/** The operations of the port that change something. */
const changes: ReadonlySet<string> = new Set(["Write", "MakeDirectory", "Remove", "Rename", "MakeLink", "SetAttributes"])

/** Makes the change with this number fail, and counts the changes. */
const failingAt = (fs: Algebra, number: number) => {
  let count = 0
  const counted = make(
    around(fs.port, (operation, next) =>
      changes.has(operation._tag)
        ? Effect.suspend(() => (++count === number ? Effect.fail({ _tag: "DiskFull" } as const) : next))
        : next
    )
  )
  return { fs: counted, count: () => count }
}

const archive = Effect.gen(function* () {
  const source = yield* memory
  yield* plant(source.port, { a: "other", "d/e/c": "other", "x/y/z": "z" })
  return yield* Archive.exportBytesOf(source)
})

/** Changes of several files at once. `root` is a directory of the host to mount. */
const severalAtOnce: ReadonlyArray<
  readonly [name: string, change: (fs: Algebra, root: string) => Effect.Effect<unknown, unknown, Scope.Scope>]
> = [
  ["an import", (fs) => Effect.flatMap(archive, (bytes) => Archive.importBytesOf(fs, bytes))],
  [
    "a transaction",
    (fs) =>
      Effect.flatMap(snapshotsOf(fs), (snapshots) =>
        snapshots.transaction(
          Effect.gen(function* () {
            yield* fs.write("a", "changed")
            yield* fs.delete("d", { recursive: true })
            yield* fs.write("d", "a file now")
            yield* fs.move("empty", "moved")
          })
        )
      )
  ],
  ["copying a mount", (fs, root) => HostMount.hydrate(fs, [{ hostPath: "src", mountPath: "d" }], { allowedRoots: [root] })]
]

for (const [name, made] of grounds) {
  describe(`on ${name} without rename, with a fault at each change,`, () => {
    for (const [what, change] of severalAtOnce) {
      it.live(
        `${what} is all or nothing`,
        () =>
          Effect.gen(function* () {
            const root = yield* fastDirectory
            Fs.mkdirSync(join(root, "src/deep"), { recursive: true })
            Fs.writeFileSync(join(root, "src/a"), "mounted")
            Fs.writeFileSync(join(root, "src/deep/z"), "z")
            const whole = yield* made
            yield* plant(whole.port, before)
            yield* change(renameless(whole), root)
            const after = yield* capture(whole.port)
            assert.notDeepEqual(after, picture(before))
            let number = 0
            for (let isDone = false; !isDone;) {
              const inner = yield* made
              yield* plant(inner.port, before)
              const faulted = failingAt(inner, ++number)
              const exit = yield* Effect.exit(change(renameless(faulted.fs), root))
              isDone = faulted.count() < number
              const found = yield* capture(inner.port)
              // The removal of staged files after the last change may fail too. The change stays.
              if (exit._tag === "Success") assert.deepStrictEqual(found, after, `fault ${number}`)
              else assert.deepStrictEqual(found, picture(before), `fault ${number}`)
            }
            assert.isAbove(number, 4)
          }).pipe(Effect.scoped),
        120_000
      )
    }

    it.live(
      "a restore is all or nothing",
      () =>
        Effect.gen(function* () {
          let number = 0
          for (let isDone = false; !isDone;) {
            const inner = yield* made
            yield* plant(inner.port, before)
            let first = Number.POSITIVE_INFINITY
            let count = 0
            const faulted = make(
              around(inner.port, (operation, next) =>
                changes.has(operation._tag)
                  ? Effect.suspend(() => (++count === first ? Effect.fail({ _tag: "DiskFull" } as const) : next))
                  : next
              )
            )
            const fs = renameless(faulted)
            const snapshots = yield* snapshotsOf(fs)
            const snapshot = yield* snapshots.snapshot({})
            yield* fs.write("a", "changed")
            yield* fs.write("new/deep/file", "new")
            yield* fs.delete("d", { recursive: true })
            const changed = yield* capture(inner.port)
            first = count + ++number
            const exit = yield* Effect.exit(snapshots.restore(snapshot))
            isDone = count < first
            const found = yield* capture(inner.port)
            assert.deepStrictEqual(found, exit._tag === "Success" ? picture(before) : changed, `fault ${number}`)
          }
          assert.isAbove(number, 4)
        }).pipe(Effect.scoped),
      120_000
    )
  })
}
