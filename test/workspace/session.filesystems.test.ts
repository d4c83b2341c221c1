/** Several filesystems in one session, and filesystems of loaded and cloned sessions. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, Filesystem, make as derive } from "../../src/filesystem/Filesystem.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { layer as snapshotsLayer, Snapshots } from "../../src/history/Snapshots.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { memory, Notes, pair, slices } from "./dumping.ts"
import { directoriesIn, filesOf, ground } from "./vfsStates.ts"

const checkpointOf = (session: Session.Operations, fs: Algebra) =>
  Effect.flatMap(Effect.provideService(Layer.build(snapshotsLayer), Filesystem, fs), (context) =>
    Checkpoint.make({ session, snapshots: Context.get(context, Snapshots) })
  )

const inSession = (session: Session.Operations, options?: InMemory.InMemoryOptions) =>
  Effect.map(InMemory.makeSession(session, options), derive)

/** Builds a session with a filesystem of both kinds, and a checkpoint for each. */
const both = Effect.gen(function* () {
  const session = yield* Session.make({ slices: [Notes] })
  const disk = (yield* VfsState.make({ session, directory: yield* ground })).filesystem
  const inMemory = yield* inSession(session)
  const filesystems = [disk, inMemory]
  const checkpoints = [yield* checkpointOf(session, disk), yield* checkpointOf(session, inMemory)]
  const write = (text: string) =>
    Effect.andThen(
      Effect.forEach(filesystems, (fs) => fs.write("note", text), { discard: true }),
      session.set(Notes, text)
    )
  const seen = Effect.gen(function* () {
    return [...(yield* Effect.forEach(filesystems, (fs) => fs.readString("note"))), ...(yield* session.all(Notes))]
  })
  return { session, filesystems, checkpoints, write, seen }
})

describe("two filesystems in one session", () => {
  it.effect("do not deadlock in concurrent calls that lock the filesystems and the session in different orders", () =>
    Effect.gen(function* () {
      const { checkpoints, session, write } = yield* both
      yield* write("1")
      const calls = Array.from({ length: 4 }, (_, i) => [
        session.snapshot(`s${i}`),
        ...checkpoints.map((checkpoint, of) => checkpoint.take(`${of} ${i}`)),
        ...checkpoints.map((checkpoint) => checkpoint.transaction(session.exclusively(Effect.yieldNow)))
      ])
      yield* Effect.all(calls.flat() as ReadonlyArray<Effect.Effect<unknown, unknown>>, { concurrency: "unbounded" })
      for (const checkpoint of checkpoints) assert.lengthOf(yield* checkpoint.list, 4)
    })
  )

  it.effect("never deadlock with checkpoints of a subdirectory", () =>
    Effect.gen(function* () {
      const { filesystems, session, write } = yield* both
      yield* write("1")
      for (const fs of filesystems) {
        yield* fs.write("d/a", "1")
        const checkpoint = yield* checkpointOf(session, yield* subdirectory("d")(fs))
        const calls = Array.from({ length: 3 }, (_, i) => [checkpoint.take(`${i}`), session.snapshot(`s${i}`)])
        yield* Effect.all(calls.flat() as ReadonlyArray<Effect.Effect<unknown, unknown>>, { concurrency: "unbounded" })
        yield* fs.write("d/a", "2")
        yield* checkpoint.rollback("0")
        assert.strictEqual(yield* fs.readString("d/a"), "1")
      }
    })
  )

  it.effect(
    "stay consistent with each other and with the slices under concurrent writes, checkpoints, rollbacks, resets and dumps",
    () =>
      Effect.gen(function* () {
        const { checkpoints, filesystems, seen, session, write } = yield* both
        const top = yield* fastDirectory
        let n = 0
        const whole = (what: string) =>
          Effect.map(seen, (all) => assert.lengthOf([...new Set(all)], 1, `${what}: ${all.join(" ")}`))
        const step = session.exclusively(Effect.suspend(() => Effect.andThen(write(String(++n)), whole("written"))))
        yield* step
        yield* session.snapshot("s")
        for (const [i, checkpoint] of checkpoints.entries()) yield* checkpoint.take(`c${i}`)
        const failing = (i: number) =>
          Effect.ignore(checkpoints[i]!.transaction(Effect.andThen(write("undone"), Effect.fail("on purpose"))))
        const dump = Effect.gen(function* () {
          const path = yield* Session.dumpSessionTree(session, top, { filesystem: filesystems[0]! })
          const into = yield* memory
          const loaded = yield* Session.loadSessionTree(path!, {
            slices: [Notes, InMemory.State, VfsState.VirtualFileSystem, Checkpoint.FilesystemSnapshots],
            into
          })
          const kept = yield* Effect.scoped(Effect.flatMap(inSession(loaded.session), (fs) => fs.readString("note")))
          const [note] = yield* loaded.session.all(Notes)
          assert.deepStrictEqual([kept, yield* into.readString("note")], [note, note])
          Fs.rmSync(path!)
        })
        const calls = Array.from({ length: 6 }, (_, i) => [
          step,
          session.rollback("s"),
          checkpoints[i % 2]!.take(`c${i % 2}`),
          checkpoints[i % 2]!.rollback(`c${i % 2}`),
          failing(i % 2),
          session.exclusively(Effect.andThen(session.reset, step)),
          dump,
          session.exclusively(whole("between"))
        ])
        yield* Effect.all(calls.flat() as ReadonlyArray<Effect.Effect<unknown, unknown>>, { concurrency: "unbounded" })
        yield* whole("at last")
        assert.isAbove(n, 11)
      })
  )
})

describe("an interrupted call", () => {
  it.effect("of a transaction restores session and filesystems, even in directories on disk", () =>
    Effect.gen(function* () {
      const { checkpoints, seen, write } = yield* both
      yield* write("before")
      for (const checkpoint of checkpoints) {
        const begun = yield* Deferred.make<void>()
        const work = Effect.andThen(write("after"), Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
        const fiber = yield* Effect.forkChild(checkpoint.transaction(work))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* seen, ["before", "before", "before"])
      }
    })
  )

  it.effect("may roll back the session when it is interrupted, and completes uninterruptible work", () =>
    Effect.gen(function* () {
      const { seen, session, write } = yield* both
      yield* write("before")
      yield* session.snapshot("s")
      const begun = yield* Deferred.make<void>()
      const working = Effect.andThen(write("after"), Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(Effect.onInterrupt(working, () => Effect.orDie(session.rollback("s"))))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* seen, ["before", "before", "before"])

      // The first write after a reset makes a directory.
      const itself = Effect.withFiber((fiber) => Effect.sync(() => fiber.interruptUnsafe()))
      const anew = Effect.andThen(itself, Effect.andThen(session.reset, write("anew")))
      yield* Fiber.await(yield* Effect.forkChild(Effect.uninterruptible(anew)))
      assert.deepStrictEqual(yield* seen, ["anew", "anew", "anew"])
    })
  )
})

describe("a filesystem that is opened again on the same session", () => {
  it.effect("can be opened by the holder of the session's lock while the previous filesystem closes", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const session = yield* Session.make()
      const scope = yield* Scope.make()
      yield* Scope.provide(VfsState.make({ session, directory: place }), scope)
      const remaking = session.exclusively(
        Effect.gen(function* () {
          while (directoriesIn(place).length > 0) yield* Effect.yieldNow
          return yield* Effect.scoped(
            Effect.flatMap(VfsState.make({ session, directory: place }), ({ filesystem }) => filesystem.write("a", "x"))
          )
        })
      )
      yield* Effect.all([remaking, Effect.andThen(Effect.yieldNow, Scope.close(scope, Exit.void))], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(directoriesIn(place), [])
    })
  )

  it.effect("can be closed by the holder of the session's lock, even if it was opened under an earlier lock", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const place = yield* ground
      const makes = [inSession(session), Effect.map(VfsState.make({ session, directory: place }), (state) => state.filesystem)]
      for (const make of makes as ReadonlyArray<Effect.Effect<Algebra, unknown, Scope.Scope>>) {
        const scope = yield* Scope.make()
        const fs = yield* session.exclusively(Scope.provide(make, scope))
        yield* session.exclusively(Effect.andThen(session.snapshot("s"), Scope.close(scope, Exit.void)))
        assert.strictEqual((yield* Effect.flip(fs.list()))._tag, "Unavailable")
      }
      assert.deepStrictEqual(directoriesIn(place), [])
    })
  )

  it.effect("contains no files of an earlier filesystem after a rollback to a snapshot of the earlier filesystem", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const session = yield* Session.make()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { filesystem } = yield* VfsState.make({ session, directory: place })
          yield* filesystem.write("of the first", "x")
          yield* session.snapshot("first")
        })
      )
      const { filesystem, rootPath } = yield* VfsState.make({ session, directory: place })
      yield* filesystem.write("of the second", "x")
      yield* session.rollback("first")
      assert.deepStrictEqual(yield* session.all(VfsState.VirtualFileSystem), [])
      assert.deepStrictEqual(yield* Stream.runCollect(filesystem.walk()), [])
      assert.deepStrictEqual(yield* filesOf(session), [])
      assert.strictEqual((yield* session.all(VfsState.VirtualFileSystem))[0]!.rootPath, yield* rootPath)
    })
  )

  it.effect("on a clone of the session does not list the files of the original, even before it has a directory", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const session = yield* Session.make()
      const { filesystem } = yield* VfsState.make({ session, directory: place })
      yield* filesystem.write("of the original", "x")
      const clone = yield* session.clone()
      yield* VfsState.make({ session: clone, directory: place, start: "lazy" })
      assert.deepStrictEqual(yield* filesOf(clone), [])
      assert.lengthOf(yield* filesOf(session), 1)
    })
  )
})

describe("a session without a tree", () => {
  const emptied: ReadonlyArray<readonly [what: string, back: (session: Session.Operations) => Effect.Effect<void, unknown>]> = [
    ["a rollback to before the filesystem existed", (session) => session.rollback("before")],
    ["a reset", (session) => session.reset],
    ["setting its slice to no items", (session) => session.set(InMemory.State)]
  ]
  for (const [what, back] of emptied) {
    it.effect(`saves the tree that its filesystem shows after ${what}`, () =>
      Effect.gen(function* () {
        const path = join(yield* fastDirectory, "s.json")
        const session = yield* Session.make()
        yield* session.snapshot("before")
        const shown = [yield* inSession(session, { tree: { first: "1" } }), yield* inSession(session)]
        yield* shown[1]!.write("later", "2")
        yield* back(session)
        yield* session.save(path)
        const again = yield* inSession(yield* Session.load(path, { slices: [InMemory.State] }))
        for (const fs of [...shown, again]) {
          assert.deepStrictEqual(
            (yield* fs.list()).map(({ name }) => name),
            ["first"]
          )
        }
      })
    )
  }
})

describe("a dump", () => {
  it.effect("that is replaced while it is loaded is restored with the archive of its own sessions", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const [one, two] = [yield* pair("one"), yield* pair("two")]
      const path = yield* Session.dumpSessionTree(one.session, top, { filesystem: one.filesystem })
      const into = yield* memory
      const replacing = Effect.as(Session.dumpSessionTree(two.session, top, { filesystem: two.filesystem }), into)
      const { session } = yield* Session.loadSessionTree(path!, { slices, into: { filesystem: replacing } })
      assert.deepStrictEqual(yield* session.all(Notes), ["one"])
      assert.strictEqual(yield* into.readString("note"), "one")
    })
  )

  it.effect("of 5,000 nested sessions can be loaded and written again", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const line = (i: number): string =>
        JSON.stringify({
          schemaVersion: 1,
          sessionId: `s${i}`,
          ...(i > 0 && { parentId: `s${i - 1}` }),
          createdAt: "2026-01-01T00:00:00.000Z",
          tags: i === 0 ? { session_id: "again" } : {},
          slices: [{ name: "Notes", policy: "state", items: [String(i)] }]
        })
      const lines = Array.from({ length: 5000 }, (_, i) => line(i))
      Fs.writeFileSync(join(top, "deep.jsonl"), lines.join("\n"))
      const { session } = yield* Session.loadSessionTree(join(top, "deep.jsonl"), { slices })
      const path = yield* Session.dumpSessionTree(session, top)
      const written = Fs.readFileSync(path!, "utf8").trimEnd().split("\n")
      const nameOf = (text: string): unknown => (JSON.parse(text) as { readonly sessionId: unknown }).sessionId
      assert.deepStrictEqual(written.map(nameOf), lines.map(nameOf))
    })
  )
})
