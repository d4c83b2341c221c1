import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make as makeFilesystem } from "../../src/filesystem/Filesystem.ts"
import { withExclusiveLock } from "../../src/history/replace.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { capture } from "../../src/testing/Files.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import { directory } from "../conformance/filesystems.ts"
import { byKind } from "../history/support.ts"
import { snapshotRecords, type Ground, ground, kinds, Log, Note, picture } from "./checkpointing.ts"

const memory = ground(kinds.memory)

const text = ({ fs }: Pick<Ground, "fs">) => fs.readString("f")
const put = ({ fs, session }: Pick<Ground, "fs" | "session">, value: string) =>
  Effect.andThen(fs.write("f", value, { mode: "overwrite" }), session.set(Note, value))

describe("a checkpoint", () => {
  it.effect("covers session and filesystem under one id, and a rollback restores both", () =>
    Effect.gen(function* () {
      const one = yield* memory
      const { checkpoint, session } = one
      yield* put(one, "v1")
      const taken = yield* checkpoint.take("turn-5")
      assert.strictEqual(taken.session.snapshotId, "turn-5")
      assert.strictEqual(taken.filesystem.tag, "turn-5")
      yield* put(one, "v2")
      yield* session.dispatch(Log, "kept")
      yield* checkpoint.rollback("turn-5")
      assert.strictEqual(yield* text(one), "v1")
      assert.deepStrictEqual(yield* session.all(Note), ["v1"])
      assert.deepStrictEqual(yield* session.all(Log), ["kept"])
    }).pipe(Effect.scoped)
  )

  it.effect("can be restored in any order, any number of times", () =>
    Effect.gen(function* () {
      const one = yield* memory
      for (const id of ["a", "b", "c"]) {
        yield* put(one, id)
        yield* one.checkpoint.take(id)
      }
      for (const id of ["a", "c", "b", "b", "a"]) {
        yield* one.checkpoint.rollback(id)
        assert.deepStrictEqual([yield* text(one), yield* one.session.all(Note)], [id, [id]])
      }
      assert.deepStrictEqual(
        (yield* one.checkpoint.list).map(({ id }) => id),
        ["a", "b", "c"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("is appended to a slice of the session, with the newest checkpoint last", () =>
    Effect.gen(function* () {
      const { checkpoint, session, snapshots } = yield* memory
      const own = yield* snapshots.snapshot({ tag: "mine" })
      yield* session.dispatch(Checkpoint.FilesystemSnapshots, own)
      const a = yield* checkpoint.take("a")
      const b = yield* checkpoint.take("b")
      assert.deepStrictEqual(yield* session.all(Checkpoint.FilesystemSnapshots), [own, a.filesystem, b.filesystem])
      assert.deepStrictEqual(a.session.items(Checkpoint.FilesystemSnapshots), [own, a.filesystem])
    }).pipe(Effect.scoped)
  )

  it.effect("replaces an earlier checkpoint with the same id, and is then the last of the list", () =>
    Effect.gen(function* () {
      const one = yield* memory
      const { checkpoint, plainSnapshots, session } = one
      yield* put(one, "old")
      yield* checkpoint.take("a")
      const b = yield* checkpoint.take("b")
      yield* put(one, "new")
      const a = yield* checkpoint.take("a")
      assert.deepStrictEqual(yield* checkpoint.list, [b, a])
      assert.deepStrictEqual(yield* plainSnapshots.list, [b.filesystem, a.filesystem])
      assert.deepStrictEqual(yield* session.all(Checkpoint.FilesystemSnapshots), [b.filesystem, a.filesystem])
      yield* put(one, "newer")
      yield* checkpoint.rollback("a")
      assert.strictEqual(yield* text(one), "new")
    }).pipe(Effect.scoped)
  )

  it.effect("is removed from session and filesystem when it is forgotten, which succeeds only once", () =>
    Effect.gen(function* () {
      const { checkpoint, plainSnapshots, session } = yield* memory
      yield* checkpoint.take("a")
      assert.isTrue(yield* checkpoint.forget("a"))
      assert.isFalse(yield* checkpoint.forget("a"))
      assert.deepStrictEqual(yield* checkpoint.list, [])
      assert.deepStrictEqual(yield* plainSnapshots.list, [])
      assert.deepStrictEqual(yield* session.snapshots, [])
      assert.deepStrictEqual(yield* session.all(Checkpoint.FilesystemSnapshots), [])
      assert.strictEqual((yield* Effect.flip(checkpoint.rollback("a")))._tag, "SessionError")
    }).pipe(Effect.scoped)
  )

  it.effect("can be forgotten after its filesystem snapshot, and leaves a later session snapshot of the same id", () =>
    Effect.gen(function* () {
      const { checkpoint, session, snapshots } = yield* memory
      const { filesystem } = yield* checkpoint.take("a")
      yield* snapshots.forget(filesystem)
      const own = yield* session.snapshot("a")
      assert.isTrue(yield* checkpoint.forget("a"))
      assert.deepStrictEqual(yield* session.snapshots, [own])
    }).pipe(Effect.scoped)
  )

  it.effect("can be restored in a later process from the saved session", () =>
    Effect.gen(function* () {
      const place = yield* directory
      const gitDir = join(place, "store")
      const root = join(place, "root")
      const layers = Snapshots.layerGit({ gitDir }).pipe(Layer.provideMerge(PosixHost.layer({ root, createRoot: true })))
      const all = Checkpoint.layer.pipe(Layer.provideMerge(Layer.merge(layers, Session.layer({ slices: [Note] }))))
      const file = join(place, "session.json")
      yield* Effect.gen(function* () {
        const [fs, session] = [yield* Filesystem, yield* Session.Session]
        yield* put({ fs, session }, "v1")
        yield* Checkpoint.Checkpoint.use(({ take }) => take("turn-1"))
        yield* put({ fs, session }, "v2")
        yield* session.save(file)
      }).pipe(Effect.provide(all))
      const loaded = yield* Session.load(file, { slices: [Note, Checkpoint.FilesystemSnapshots] })
      const recorded = Option.getOrThrow(yield* loaded.latest(Checkpoint.FilesystemSnapshots))
      assert.strictEqual(recorded.tag, "turn-1")
      yield* Effect.provide(
        Snapshots.Snapshots.use(({ restore }) => restore(recorded)),
        layers
      )
      assert.strictEqual(Fs.readFileSync(join(root, "f"), "utf8"), "v1")
    }).pipe(Effect.scoped)
  )
})

describe("a checkpoint call fails and changes nothing when", () => {
  const unchanged = (one: Ground, tag: string, call: Effect.Effect<unknown, unknown>) =>
    Effect.gen(function* () {
      const before = [yield* picture(one), yield* snapshotRecords(one)]
      const error = (yield* Effect.flip(call)) as { readonly _tag: string; readonly reason: string }
      assert.strictEqual(`${error._tag} ${error.reason}`, tag)
      assert.deepStrictEqual([yield* picture(one), yield* snapshotRecords(one)], before)
    })

  it.effect("the checkpoint does not exist", () =>
    Effect.gen(function* () {
      const one = yield* memory
      yield* put(one, "v1")
      yield* unchanged(one, "SessionError unknown", one.checkpoint.rollback("a"))
    }).pipe(Effect.scoped)
  )

  for (const [id, tag] of [
    ["", "SessionError invalid"],
    ["a/b", "SessionError invalid"],
    ["..", "SessionError invalid"],
    ["a\nb", "SnapshotError refused"],
    ["a".repeat(201), "SessionError invalid"],
    ["\ud800", "SnapshotError refused"]
  ] as const) {
    it.effect(`the id is invalid: ${JSON.stringify(id.slice(0, 10))}`, () =>
      Effect.gen(function* () {
        const one = yield* memory
        yield* put(one, "v1")
        yield* unchanged(one, tag, one.checkpoint.take(id))
      }).pipe(Effect.scoped)
    )
  }

  it.effect("the filesystem snapshot has been forgotten", () =>
    Effect.gen(function* () {
      const one = yield* memory
      yield* put(one, "v1")
      const { filesystem } = yield* one.checkpoint.take("a")
      yield* put(one, "v2")
      yield* one.snapshots.forget(filesystem)
      yield* unchanged(one, "SnapshotRestoreError unknown", one.checkpoint.rollback("a"))
    }).pipe(Effect.scoped)
  )

  it.effect("the session snapshot has been forgotten or replaced", () =>
    Effect.gen(function* () {
      const one = yield* memory
      yield* put(one, "v1")
      yield* one.checkpoint.take("a")
      yield* put(one, "v2")
      yield* one.session.snapshot("a")
      yield* unchanged(one, "SessionError unknown", one.checkpoint.rollback("a"))
      yield* one.session.forget("a")
      yield* unchanged(one, "SessionError unknown", one.checkpoint.rollback("a"))
    }).pipe(Effect.scoped)
  )

  it.effect("the filesystem is read-only", () =>
    Effect.gen(function* () {
      const fs = makeFilesystem(yield* InMemory.make({ tree: { f: "v1" } }))
      const session = yield* Session.make({ slices: [Note] })
      const built = yield* Effect.provideService(Layer.build(Snapshots.layer), Filesystem, readOnly(fs))
      const snapshots = Context.get(built, Snapshots.Snapshots)
      const checkpoint = yield* Checkpoint.make({ session, snapshots })
      yield* session.set(Note, "v1")
      yield* checkpoint.take("a")
      yield* put({ fs, session }, "v2")
      const error = yield* Effect.flip(checkpoint.rollback("a"))
      assert.strictEqual(error.reason, "readOnly")
      assert.deepStrictEqual([yield* text({ fs }), yield* session.all(Note)], ["v2", ["v2"]])
    }).pipe(Effect.scoped)
  )
})

describe("rollbackTo with a snapshot of the session", () => {
  it.effect("restores the newest filesystem snapshot that the snapshot of the session contains", () =>
    Effect.gen(function* () {
      const one = yield* memory
      const { session, snapshots } = one
      for (const value of ["v1", "v2"]) {
        yield* put(one, value)
        yield* session.dispatch(Checkpoint.FilesystemSnapshots, yield* snapshots.snapshot())
      }
      const then = yield* session.snapshot()
      yield* put(one, "v3")
      yield* session.dispatch(Checkpoint.FilesystemSnapshots, yield* snapshots.snapshot())
      yield* Checkpoint.rollbackTo(session, then, snapshots)
      assert.strictEqual(yield* text(one), "v2")
      assert.deepStrictEqual(yield* session.all(Note), ["v2"])
      assert.lengthOf(yield* session.all(Checkpoint.FilesystemSnapshots), 2)
    }).pipe(Effect.scoped)
  )

  it.effect("restores only the session if its snapshot contains no filesystem snapshot", () =>
    Effect.gen(function* () {
      const one = yield* memory
      yield* put(one, "v1")
      const then = yield* one.session.snapshot()
      yield* put(one, "v2")
      yield* Checkpoint.rollbackTo(one.session, then, one.snapshots)
      assert.deepStrictEqual([yield* text(one), yield* one.session.all(Note)], ["v2", ["v1"]])
    }).pipe(Effect.scoped)
  )

  it.effect("changes nothing for a snapshot of another filesystem or of another session", () =>
    Effect.gen(function* () {
      const one = yield* memory
      const other = yield* memory
      yield* put(one, "v1")
      yield* one.session.dispatch(Checkpoint.FilesystemSnapshots, yield* other.snapshots.snapshot())
      const then = yield* one.session.snapshot()
      yield* put(one, "v2")
      const before = yield* picture(one)
      const foreign = yield* Effect.flip(Checkpoint.rollbackTo(one.session, then, one.snapshots))
      assert.strictEqual(foreign._tag, "SnapshotRestoreError")
      const strange = yield* Effect.flip(Checkpoint.rollbackTo(one.session, yield* other.session.snapshot(), one.snapshots))
      assert.strictEqual(strange._tag, "SessionError")
      assert.deepStrictEqual(yield* picture(one), before)
    }).pipe(Effect.scoped)
  )
})

describe("a transaction of a session and a filesystem", () => {
  const endings = [
    ["fails", Effect.fail("no")],
    ["dies", Effect.die("no")],
    ["is interrupted", Effect.interrupt]
  ] as const

  for (const kind of ["memory", "layerSession", "overlay"] as const) {
    for (const [claim, ending] of endings) {
      it.effect(
        `over ${kind} that ${claim} changes neither the session nor the filesystem, and leaves no snapshots behind`,
        () =>
          Effect.gen(function* () {
            const one = yield* ground(kinds[kind])
            yield* put(one, "v1")
            yield* one.checkpoint.take("a")
            const before = [yield* picture(one), yield* snapshotRecords(one)]
            const exit = yield* Effect.exit(
              one.checkpoint.transaction(
                Effect.gen(function* () {
                  yield* put(one, "v2")
                  yield* one.fs.write("new/file", "")
                  for (const box of one.boxes) box.value++
                  return yield* ending
                })
              )
            )
            assert.deepStrictEqual(exit, yield* Effect.exit(ending))
            assert.deepStrictEqual([yield* picture(one), yield* snapshotRecords(one)], before)
          }).pipe(Effect.scoped)
      )
    }
  }

  it.effect("that succeeds keeps the changes in both, and leaves no snapshots behind", () =>
    Effect.gen(function* () {
      const one = yield* memory
      const before = yield* snapshotRecords(one)
      assert.strictEqual(yield* one.checkpoint.transaction(Effect.as(put(one, "v2"), "answer")), "answer")
      assert.deepStrictEqual([yield* text(one), yield* one.session.all(Note)], ["v2", ["v2"]])
      assert.deepStrictEqual(yield* snapshotRecords(one), before)
    }).pipe(Effect.scoped)
  )

  it.effect("in another transaction rolls back only its own changes", () =>
    Effect.gen(function* () {
      const one = yield* memory
      yield* one.checkpoint.transaction(
        Effect.gen(function* () {
          yield* put(one, "outer")
          yield* Effect.ignore(one.checkpoint.transaction(Effect.andThen(put(one, "inner"), Effect.fail("no"))))
          assert.deepStrictEqual([yield* text(one), yield* one.session.all(Note)], ["outer", ["outer"]])
        })
      )
      assert.deepStrictEqual([yield* text(one), yield* one.session.all(Note)], ["outer", ["outer"]])
    }).pipe(Effect.scoped)
  )

  it.effect("makes other writers wait, and keeps their writes at a rollback", () =>
    Effect.gen(function* () {
      const one = yield* memory
      yield* put(one, "v1")
      const goOn = yield* Deferred.make<void>()
      const running = yield* Effect.forkChild(
        one.checkpoint.transaction(
          Effect.andThen(Effect.andThen(one.fs.write("g", ""), Deferred.await(goOn)), Effect.fail("no"))
        )
      )
      yield* Effect.yieldNow
      const writing = yield* Effect.forkChild(one.fs.write("h", "from outside"))
      for (let i = 0; i < 20; i++) yield* Effect.yieldNow
      assert.isFalse(yield* one.fs.exists("h"))
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.await(running)
      yield* Fiber.join(writing)
      assert.deepStrictEqual(Object.keys(yield* capture(one.fs.port)), ["f", "h"])
    }).pipe(Effect.scoped)
  )

  for (const [kind, layer] of Object.entries(byKind({ retention: { maxSnapshots: 1 } }))) {
    it.live(`is rolled back even if its effect takes more snapshots than are retained: ${kind}`, () =>
      Effect.gen(function* () {
        const [fs, snapshots] = [yield* Filesystem, yield* Snapshots.Snapshots]
        const session = yield* Session.make({ slices: [Note] })
        const checkpoint = yield* Checkpoint.make({ session, snapshots })
        yield* put({ fs, session }, "v1")
        const exit = yield* Effect.exit(
          checkpoint.transaction(
            Effect.gen(function* () {
              yield* put({ fs, session }, "v2")
              yield* snapshots.snapshot({ tag: "inner" })
              return yield* Effect.fail("no")
            })
          )
        )
        assert.deepStrictEqual(exit, Exit.fail("no"))
        assert.deepStrictEqual([yield* text({ fs }), yield* session.all(Note)], ["v1", ["v1"]])
        assert.deepStrictEqual(
          (yield* snapshots.list).map(({ tag }) => tag),
          ["inner"]
        )
        assert.strictEqual((yield* snapshots.stats).snapshots, 1)
      }).pipe(Effect.provide(layer))
    )

    it.live(`takes a snapshot that is not listed and displaces no other snapshot: ${kind}`, () =>
      Effect.gen(function* () {
        const [fs, snapshots] = [yield* Filesystem, yield* Snapshots.Snapshots]
        const session = yield* Session.make({ slices: [Note] })
        const checkpoint = yield* Checkpoint.make({ session, snapshots })
        const kept = yield* snapshots.snapshot()
        const listed = yield* checkpoint.transaction(Effect.andThen(put({ fs, session }, "v1"), snapshots.list))
        assert.deepStrictEqual([listed, yield* snapshots.list], [[kept], [kept]])
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("uses the Checkpoint service of the context", () =>
    Effect.gen(function* () {
      const all = Checkpoint.layer.pipe(
        Layer.provideMerge(
          Layer.merge(Layer.provideMerge(Snapshots.layer, InMemory.layer()), Session.layer({ slices: [Note] }))
        )
      )
      yield* Effect.gen(function* () {
        const [fs, session] = [yield* Filesystem, yield* Session.Session]
        yield* put({ fs, session }, "v1")
        assert.isTrue(
          Exit.isFailure(
            yield* Effect.exit(Checkpoint.transaction(Effect.andThen(put({ fs, session }, "v2"), Effect.fail("no"))))
          )
        )
        assert.deepStrictEqual([yield* text({ fs }), yield* session.all(Note)], ["v1", ["v1"]])
      }).pipe(Effect.provide(all))
    })
  )
})

describe("a filesystem whose archive is in a session", () => {
  const filled = InMemory.make({ tree: { a: "1", d: { e: "2" }, l: { link: "a" } } })

  it.effect("is restored on another backend after the session is saved and loaded", () =>
    Effect.gen(function* () {
      const place = yield* directory
      const session = yield* Session.make()
      const fs = makeFilesystem(yield* filled)
      yield* Checkpoint.captureExternal(session, fs)
      yield* fs.write("a", "later", { mode: "overwrite" })
      yield* Checkpoint.captureExternal(session, fs)
      assert.lengthOf(yield* session.all(Checkpoint.ExternalFsSnapshot), 1)
      yield* session.save(join(place, "session.json"))
      const saved = JSON.parse(Fs.readFileSync(join(place, "session.json"), "utf8"))
      const { data } = saved.slices.find(({ name }: { readonly name: string }) => name === "ExternalFsSnapshot").items[0]
      assert.strictEqual(Buffer.from(data, "base64").subarray(0, 4).toString("latin1"), "PK\u0003\u0004")
      const loaded = yield* Session.load(join(place, "session.json"), { slices: [Checkpoint.ExternalFsSnapshot] })
      const other = makeFilesystem(yield* PosixHost.make({ root: join(place, "root"), createRoot: true }))
      yield* other.write("was here", "before")
      assert.isTrue(yield* Checkpoint.restoreExternal(loaded, other))
      assert.deepStrictEqual(yield* capture(other.port), yield* capture(fs.port))
    }).pipe(Effect.scoped)
  )

  it.effect("is not restored if no archive was captured, and nothing changes", () =>
    Effect.gen(function* () {
      const fs = makeFilesystem(yield* filled)
      const before = yield* capture(fs.port)
      assert.isFalse(yield* Checkpoint.restoreExternal(yield* Session.make(), fs))
      assert.deepStrictEqual(yield* capture(fs.port), before)
    })
  )

  it.effect("is restored from a tar archive too, with or without gzip", () =>
    Effect.gen(function* () {
      const place = yield* directory
      Fs.writeFileSync(join(place, "a"), "from tar")
      for (const flags of ["-cf", "-czf"]) {
        const fs: Algebra = makeFilesystem(yield* filled)
        const session = yield* Session.make()
        const data = new Uint8Array(execFileSync("tar", [flags, "-", "-C", place, "a"]))
        yield* session.set(Checkpoint.ExternalFsSnapshot, { data })
        assert.isTrue(yield* Checkpoint.restoreExternal(session, fs))
        assert.deepStrictEqual(yield* capture(fs.port), { a: 'file "from tar"' })
      }
    }).pipe(Effect.scoped)
  )

  it.effect("is not restored from a damaged archive, and nothing changes", () =>
    Effect.gen(function* () {
      const fs = makeFilesystem(yield* filled)
      const session = yield* Session.make()
      yield* Checkpoint.captureExternal(session, fs)
      const { data } = Option.getOrThrow(yield* session.latest(Checkpoint.ExternalFsSnapshot))
      yield* fs.write("new", "")
      const before = yield* capture(fs.port)
      for (const damaged of [data.slice(0, -10), new Uint8Array(), new TextEncoder().encode("PK no archive")]) {
        yield* session.set(Checkpoint.ExternalFsSnapshot, { data: damaged })
        assert.strictEqual((yield* Effect.flip(Checkpoint.restoreExternal(session, fs)))._tag, "ArchiveError")
        assert.deepStrictEqual(yield* capture(fs.port), before)
      }
    })
  )
})

describe("concurrent calls", () => {
  const Number_ = Schema.NumberFromString
  const rounds = process.env["FS_ALGEBRA_SOAK"] === "1" ? 40 : 5

  for (const [name, make] of Object.entries(kinds)) {
    it.live(`of writers, checkpoints and rollbacks keep the file and the slice consistent in ${name}`, () =>
      Effect.gen(function* () {
        const one = yield* ground(make)
        const { checkpoint, fs, session } = one
        yield* put(one, "0")
        let next = 0
        /** Two steps that must stay together. */
        const write = Effect.suspend(() => {
          const value = `${++next}`
          return withExclusiveLock(
            fs.port,
            Effect.andThen(
              fs.write("f", value, { mode: "overwrite" }),
              Effect.andThen(Effect.yieldNow, session.set(Note, value))
            )
          )
        })
        const isWhole = withExclusiveLock(
          fs.port,
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* session.all(Note), [yield* fs.readString("f")])
          })
        )
        yield* checkpoint.take("c0")
        for (let i = 0; i < rounds; i++) {
          yield* Effect.all(
            [
              write,
              checkpoint.take(`c${i + 1}`),
              write,
              checkpoint.rollback(`c${i}`),
              isWhole,
              write,
              checkpoint.take("again"),
              session.snapshot("session alone"),
              isWhole
            ],
            { concurrency: "unbounded" }
          )
        }
        for (const { id } of yield* checkpoint.list) {
          yield* change_(one)
          yield* checkpoint.rollback(id)
          yield* isWhole
          assert.isAtMost(Schema.decodeSync(Number_)(yield* fs.readString("f")), next)
        }
      }).pipe(Effect.scoped)
    )
  }

  const change_ = ({ fs, session }: Ground) =>
    Effect.andThen(fs.write("f", "something else", { mode: "overwrite" }), session.set(Note, "something else"))
})
