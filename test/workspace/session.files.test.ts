/** The files of a session: how changes are published, mounts, and files outside of the session. */
import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { isAbsolute, join, sep } from "node:path"
import * as Container from "../../src/backends/Container.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make as derive } from "../../src/filesystem/Filesystem.ts"
import * as Slice from "../../src/model/Slice.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { host } from "../agent/changing.ts"
import { busyboxRoot, describePodman, services } from "../backends/container/podman.ts"
import { machine, pictureOf } from "./mounting.ts"
import { directoriesIn, filesOf, versionsOf, workspace } from "./vfsStates.ts"

const Done = Schema.Struct({ done: Schema.String })
const Notes = Slice.make("Notes", Schema.String, { on: [Slice.on(Done, (notes, { done }) => [...notes, done])] })
const End = Slice.make("End", Schema.Number)

/** Returns the last item of the slice after each of its changes. */
const toldOf = <A, E>(session: Session.Operations, slice: Slice.Slice<A>, effect: Effect.Effect<unknown, E>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      const told: Array<A | undefined> = []
      yield* Effect.forkScoped(
        Stream.runForEach(session.changes, ({ items, slice: name }) =>
          name === End.name
            ? Deferred.succeed(ended, undefined)
            : Effect.sync(() => (name === slice.name ? void told.push(items.at(-1) as A | undefined) : undefined))
        ),
        { startImmediately: true }
      )
      yield* effect
      yield* session.dispatch(End, 0)
      yield* Deferred.await(ended)
      return told
    })
  )

describe("the files of a session", () => {
  it.effect("are published once by each call that changes them, and by no other call", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      const told = yield* toldOf(
        session,
        VfsState.VirtualFileSystem,
        Effect.gen(function* () {
          yield* fs.write("a", "1")
          yield* fs.readString("a")
          yield* Effect.flip(fs.write("a", "2", { mode: "create" }))
          yield* fs.write("a", "3", { mode: "append" })
          yield* fs.move("a", "d/b")
          yield* fs.delete("d", { recursive: true })
        })
      )
      assert.deepStrictEqual(
        told.map((value) => value!.files.map(({ path, version }) => `${path.join("/")}@${version}`)),
        [["a@1"], ["a@2"], ["d/b@2"], []]
      )
    })
  )

  it.effect("are published once by each change, also in memory", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const fs = derive(yield* InMemory.makeSession(session))
      const told = yield* toldOf(
        session,
        InMemory.State,
        Effect.gen(function* () {
          yield* fs.write("a", "1")
          yield* fs.readString("a")
          yield* Effect.flip(fs.write("a", "2", { mode: "create" }))
          yield* fs.delete("a")
        })
      )
      assert.strictEqual(told.length, 2)
      assert.strictEqual(told.at(-1), Option.getOrThrow(yield* session.latest(InMemory.State)))
    }).pipe(Effect.scoped)
  )

  it.live("are recorded immediately if they are mounted, in a directory below the system's temporary directory", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "docs/b.md": "bb", "docs/a/c.md": "c", "docs/x.png": "x" })
      const session = yield* Session.make()
      yield* VfsState.make({ session, mounts: [{ hostPath: "docs", include: ["*.md"] }], allowedRoots: [root] })
      const { files, rootPath } = Option.getOrThrow(yield* session.latest(VfsState.VirtualFileSystem))
      assert.isTrue(isAbsolute(rootPath))
      assert.isTrue(rootPath.startsWith(Fs.realpathSync(tmpdir()) + sep))
      assert.deepStrictEqual(
        files.map(({ encoding, path, sizeBytes, version }) => [path, encoding, sizeBytes, version]),
        [
          [["docs", "a", "c.md"], "utf-8", 1, 1],
          [["docs", "b.md"], "utf-8", 2, 1]
        ]
      )
      for (const { createdAt, updatedAt } of files) assert.isTrue(DateTime.isLessThanOrEqualTo(createdAt, updatedAt))
    }).pipe(Effect.scoped)
  )

  it.live("are mounted once, and not again after a change of the source or a rollback", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "docs/a.md": "first" })
      const { fs, session } = yield* workspace({ mounts: [{ hostPath: "docs" }], allowedRoots: [root] })
      yield* session.snapshot("begun")
      Fs.writeFileSync(join(root, "docs/a.md"), "second")
      Fs.writeFileSync(join(root, "docs/b.md"), "new")
      assert.strictEqual(yield* fs.readString("docs/a.md"), "first")
      yield* fs.delete("docs/a.md")
      yield* session.rollback("begun")
      assert.strictEqual(yield* fs.readString("docs/a.md"), "first")
      assert.deepStrictEqual(yield* versionsOf(session), ["docs/a.md@1"])
    })
  )

  it.live("must have ASCII names, although the path of the source may have other characters", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "größe/a.md": "a", "größe/é/b.md": "b" })
      const allowedRoots = [root]
      const { session } = yield* workspace({
        mounts: [{ hostPath: "größe", mountPath: "size", include: ["a.md"] }],
        allowedRoots
      })
      assert.deepStrictEqual(yield* versionsOf(session), ["size/a.md@1"])
      for (const mount of [
        { hostPath: "größe", include: ["a.md"] },
        { hostPath: "größe", mountPath: "size" }
      ]) {
        const place = yield* machine({})
        const other = yield* Session.make()
        const made = VfsState.make({ session: other, directory: place, mounts: [mount], allowedRoots })
        assert.strictEqual((yield* Effect.flip(Effect.scoped(made)))._tag, "InvalidPath")
        assert.deepStrictEqual(directoriesIn(place), [])
        assert.deepStrictEqual(yield* filesOf(other), [])
      }
    })
  )
})

describe("files that do not belong to the session", () => {
  const kinds: ReadonlyArray<readonly [string, Effect.Effect<Algebra, never, Scope.Scope>]> = [
    ["memory", Effect.map(Effect.orDie(InMemory.make()), derive)],
    ["a host directory", host({})]
  ]

  for (const [name, make] of kinds) {
    it.live(`in ${name} are kept by a rollback of the session, and are saved with the session only on request`, () =>
      Effect.gen(function* () {
        const fs = yield* make
        const session = yield* Session.make({ slices: [Notes] })
        yield* fs.write("a", "secret 1")
        yield* session.set(Notes, "one")
        yield* session.snapshot("s")
        yield* fs.write("a", "secret 2")
        yield* session.set(Notes, "two")
        yield* session.rollback("s")
        assert.deepStrictEqual(yield* session.all(Notes), ["one"])
        assert.strictEqual(yield* fs.readString("a"), "secret 2")

        const slices = [Notes, Checkpoint.ExternalFsSnapshot]
        const path = join(yield* machine({}), "saved.json")
        const resumed = Effect.gen(function* () {
          yield* session.save(path)
          const into = derive(yield* InMemory.make())
          const isThere = yield* Checkpoint.restoreExternal(yield* Session.load(path, { slices }), into)
          return [isThere, yield* pictureOf(into)] as const
        })
        assert.deepStrictEqual(yield* resumed, [false, {}])
        yield* Checkpoint.captureExternal(session, fs)
        assert.deepStrictEqual(yield* resumed, [true, yield* pictureOf(fs)])
      })
    )
  }
})

describe("a loaded session", () => {
  it.live("passes events to its reducers and to its subscribers", () =>
    Effect.gen(function* () {
      const path = join(yield* machine({}), "saved.json")
      const made = yield* Session.make({ slices: [Notes] })
      yield* made.publish({ done: "before" })
      yield* made.save(path)
      const loaded = yield* Session.load(path, { slices: [Notes] })
      const heard = yield* Effect.forkChild(Stream.runCollect(Stream.take(loaded.events, 1)), { startImmediately: true })
      const told = yield* toldOf(loaded, Notes, loaded.publish({ done: "after" }))
      assert.deepStrictEqual(told, ["after"])
      assert.deepStrictEqual(yield* loaded.all(Notes), ["before", "after"])
      assert.deepStrictEqual(yield* made.all(Notes), ["before"])
      assert.deepStrictEqual([...(yield* Fiber.join(heard))], [{ done: "after" }])
    })
  )
})

describePodman("the directory of a session, with podman", () => {
  it.live("can be the working directory of a container", () =>
    Effect.gen(function* () {
      const { fs, session, state } = yield* workspace()
      yield* fs.write("in.txt", "from the session\n")
      const hostDirectory = yield* state.rootPath
      const inside = yield* Scope.make()
      const { sandbox } = yield* Scope.provide(Container.make({ image: { rootfs: busyboxRoot() }, hostDirectory }), inside)
      const ran = yield* sandbox.exec(["sh", "-c", "cat in.txt; mkdir d && echo from inside > d/out.txt"])
      assert.deepStrictEqual([ran.stderr, ran.stdout], ["", "from the session\n"])
      assert.strictEqual(yield* fs.readString("d/out.txt"), "from inside\n")
      yield* fs.write("d/out.txt", "and back\n")
      assert.strictEqual((yield* sandbox.exec(["cat", "d/out.txt"])).stdout, "and back\n")
      assert.deepStrictEqual(yield* versionsOf(session), ["d/out.txt@1", "in.txt@1"])
      yield* Scope.close(inside, Exit.void)
      assert.strictEqual(yield* fs.readString("d/out.txt"), "and back\n")
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})
