/** VfsState with its session: snapshots, rollbacks, resets, shared filesystems, and cleanup. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { capture, type Files, picture } from "../../src/testing/Files.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as Installation from "../../src/runtime/installation.ts"
import { removeLeftovers } from "../../src/workspace/temporary.ts"
import * as Names from "../runtime/names.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { watching } from "./failingSystem.ts"
import { directoriesIn, filesOf, ground, versionsOf, workspace } from "./vfsStates.ts"

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const treeOf = (state: VfsState.VfsState) => capture(state.filesystem.port)

const is = Effect.fnUntraced(function* (state: VfsState.VfsState, files: Files) {
  assert.deepStrictEqual(yield* treeOf(state), picture(files))
})

describe("the snapshots of a session:", () => {
  it.effect("a rollback restores files and directories in a new directory, and the list of files in the session", () =>
    Effect.gen(function* () {
      const { fs, place, session, state } = yield* workspace()
      yield* fs.write("d/a", "1")
      yield* fs.write("d/a", "2")
      yield* fs.writeBytes("b", new Uint8Array([0, 255]))
      yield* fs.mkdir("empty")
      yield* fs.setAttributes("b", { mode: 0o755 })
      const before = yield* treeOf(state)
      const [known, stat, root] = [yield* filesOf(session), yield* fs.stat("b"), yield* state.rootPath]
      yield* session.snapshot("one")
      assert.strictEqual(yield* state.rootPath, root)
      yield* fs.write("d/a", "3")
      yield* fs.delete("b")
      yield* fs.delete("empty")
      yield* fs.write("new", "x")
      yield* session.rollback("one")
      assert.deepStrictEqual(yield* treeOf(state), before)
      assert.deepStrictEqual(yield* filesOf(session), known)
      // The file is new on the disk, so its identity differs.
      assert.deepStrictEqual({ ...(yield* fs.stat("b")), identity: stat.identity! }, stat)
      assert.notStrictEqual(yield* state.rootPath, root)
      assert.isFalse(Fs.existsSync(root))
      const [value] = yield* session.all(VfsState.VirtualFileSystem)
      assert.strictEqual(value!.rootPath, yield* state.rootPath)
      assert.strictEqual(directoriesIn(place).length, 2)
      yield* fs.write("d/a", "4")
      assert.deepStrictEqual(yield* versionsOf(session), ["b@1", "d/a@3"])
    })
  )

  it.effect("a snapshot is unchanged by later writes and repeated rollbacks", () =>
    Effect.gen(function* () {
      const { fs, session, state } = yield* workspace()
      yield* fs.write("a", "kept")
      yield* session.snapshot("one")
      for (let i = 0; i < 3; i++) {
        yield* fs.write("a", " and more", { mode: "append" })
        Fs.appendFileSync(join(yield* state.rootPath, "a"), " by another")
        yield* session.rollback("one")
        yield* is(state, { a: "kept" })
        assert.deepStrictEqual(yield* versionsOf(session), ["a@1"])
        assert.strictEqual(Fs.statSync(join(yield* state.rootPath, "a")).nlink, 1)
      }
    })
  )

  it.effect("snapshots are independent, and a forgotten snapshot loses its copy of the files", () =>
    Effect.gen(function* () {
      const { fs, place, session, state } = yield* workspace()
      for (const id of ["1", "2", "3"]) {
        yield* fs.write("a", id)
        yield* session.snapshot(id)
      }
      assert.strictEqual(directoriesIn(place).length, 4)
      yield* session.forget("2")
      assert.strictEqual(directoriesIn(place).length, 3)
      for (const id of ["1", "3"]) {
        yield* session.rollback(id)
        yield* is(state, { a: id })
      }
    })
  )

  it.effect("a rollback to before the filesystem existed removes all its files", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const session = yield* Session.make()
      yield* session.snapshot("before")
      const state = yield* VfsState.make({ session, directory: place })
      yield* state.filesystem.write("a", "x")
      yield* session.rollback("before")
      assert.deepStrictEqual(yield* session.all(VfsState.VirtualFileSystem), [])
      yield* is(state, {})
    })
  )

  it.effect("links of other programs are kept as links, and never followed", () =>
    Effect.gen(function* () {
      const { place, session, state } = yield* workspace()
      Fs.mkdirSync(join(place, "outside"))
      Fs.writeFileSync(join(place, "outside/secret"), "secret")
      const root = yield* state.rootPath
      Fs.symlinkSync("../outside/secret", join(root, "link"))
      Fs.symlinkSync(join(place, "outside"), join(root, "linked"))
      yield* session.snapshot("one")
      yield* session.rollback("one")
      const after = yield* state.rootPath
      assert.strictEqual(Fs.readlinkSync(join(after, "link")), "../outside/secret")
      assert.strictEqual(Fs.readlinkSync(join(after, "linked")), join(place, "outside"))
    })
  )

  it.effect("1,000 files are captured and restored", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* Effect.forEach(
        Array.from({ length: 1000 }, (_, i) => i),
        (i) => fs.write(`d${i % 7}/f${i}`, `${i}`),
        {
          concurrency: 8,
          discard: true
        }
      )
      const known = yield* versionsOf(session)
      assert.strictEqual(known.length, 1000)
      yield* session.snapshot("one")
      yield* fs.delete("d3", { recursive: true })
      assert.strictEqual((yield* filesOf(session)).length, 1000 - 143)
      yield* session.rollback("one")
      assert.deepStrictEqual(yield* versionsOf(session), known)
      for (const i of [0, 3, 10, 999]) assert.strictEqual(yield* fs.readString(`d${i % 7}/f${i}`), `${i}`)
    })
  )

  type Broken = { readonly _tag: string; readonly reason?: string }

  /** Makes the nth system call fail. Returns its name if it was reached, and whether `call` succeeded nevertheless. */
  const withFailing = Effect.fnUntraced(function* (
    nth: number,
    call: (session: Session.Operations) => Effect.Effect<unknown, Broken>
  ) {
    const { fs, place, session, state } = yield* workspace()
    yield* fs.write("d/a", "1")
    Fs.symlinkSync("a", join(yield* state.rootPath, "d/link"))
    const trees = new Map<string, unknown>([["one", yield* treeOf(state)]])
    yield* session.snapshot("one")
    yield* fs.write("d/a", "2")
    yield* fs.write("d/e/b", "2")
    trees.set("two", yield* treeOf(state))
    const now = Effect.gen(function* () {
      const { length } = yield* session.snapshots
      const [known] = yield* session.all(VfsState.VirtualFileSystem)
      return [yield* treeOf(state), known, yield* state.rootPath, directoriesIn(place), length]
    })
    const before = yield* now
    let failed: string | undefined
    const fails = watching((count, name) => {
      if (count === nth) failed = name
      return count === nth
    })
    const exit = yield* Effect.exit(Effect.scoped(Effect.andThen(fails, call(session))))
    if (Exit.isSuccess(exit)) {
      const { snapshotId } = (yield* session.snapshots).at(-1)!
      yield* session.rollback(snapshotId)
      assert.deepStrictEqual(yield* treeOf(state), trees.get(snapshotId) as never, failed)
      return { failed, harmless: true }
    }
    const [reason] = exit.cause.reasons
    assert.isTrue(reason?._tag === "Fail" && reason.error.reason === "outside", `${failed}: ${String(exit.cause)}`)
    assert.deepStrictEqual(yield* now, before, failed)
    yield* session.rollback("one")
    assert.strictEqual(yield* fs.readString("d/a"), "1")
    return { failed, harmless: false }
  }, Effect.scoped)

  const steps = (
    name: string,
    call: (session: Session.Operations) => Effect.Effect<unknown, Broken>,
    needed: ReadonlyArray<string>
  ) =>
    it.effect(`any failing step of ${name} makes the call fail without a change, or has no effect`, () =>
      Effect.gen(function* () {
        const met = new Set<string>()
        for (let nth = 1; ; nth++) {
          const { failed, harmless } = yield* withFailing(nth, call)
          if (failed === undefined) break
          if (!harmless) met.add(failed)
        }
        assert.includeMembers([...met], [...needed])
      })
    )
  const all = ["chmodSync", "copyFile", "mkdirSync", "openSync", "readdir", "readlinkSync", "symlinkSync", "utimesSync"]
  steps("a snapshot", (session) => session.snapshot("two"), all)
  steps("a rollback", (session) => session.rollback("one"), all)

  it.effect("an interrupted rollback changes nothing", () =>
    Effect.gen(function* () {
      const { fs, place, session, state } = yield* workspace()
      for (const name of ["a", "b", "c"]) yield* fs.write(name, "1")
      yield* session.snapshot("one")
      yield* fs.write("a", "2")
      const [before, directories] = [yield* treeOf(state), directoriesIn(place)]
      let fiber: Fiber.Fiber<unknown, unknown> | undefined
      const copying = yield* Deferred.make<void>()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* watching((_, name) => {
            if (name === "copyFile") Deferred.doneUnsafe(copying, Exit.void)
            return false
          })
          fiber = yield* Effect.forkChild(session.rollback("one"))
          yield* Deferred.await(copying)
          yield* Fiber.interrupt(fiber)
        })
      )
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber!)))
      assert.deepStrictEqual(yield* treeOf(state), before)
      assert.deepStrictEqual(directoriesIn(place), directories)
    })
  )

  it.effect("during a rollback, open reads continue on the old files, and an open write fails", () =>
    Effect.gen(function* () {
      const { fs, place, session, state } = yield* workspace()
      const large = "old ".repeat(100_000)
      yield* fs.write("a", "kept")
      yield* session.snapshot("one")
      yield* fs.write("a", large)
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const waits = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go))
      const written = yield* Effect.forkChild(
        Stream.run(Stream.concat(Stream.make(utf8("lost")), Stream.drain(Stream.fromEffect(waits))), fs.sink("d/b"))
      )
      yield* Deferred.await(begun)
      const reading = yield* Deferred.make<void>()
      const read = yield* Effect.forkChild(
        Stream.runFold(
          Stream.mapEffect(fs.stream("a"), (chunk) =>
            Effect.as(Effect.andThen(Deferred.succeed(reading, undefined), Deferred.await(go)), chunk.length)
          ),
          () => 0,
          (sum, length) => sum + length
        )
      )
      yield* Deferred.await(reading)
      const before = yield* state.rootPath
      yield* session.rollback("one")
      assert.isTrue(Fs.existsSync(before))
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual(yield* Fiber.join(read), large.length)
      const error = yield* Effect.flip(Fiber.join(written))
      assert.deepStrictEqual([error._tag, error.path], ["IoError", "d/b"])
      yield* is(state, { a: "kept" })
      assert.deepStrictEqual(yield* versionsOf(session), ["a@1"])
      assert.strictEqual(directoriesIn(place).length, 2)
    })
  )
})

describe("a concurrent call", () => {
  it.effect("of any kind, even beside snapshots, rollbacks and resets, keeps the records equal to the files", () =>
    Effect.gen(function* () {
      const { fs, place, session } = yield* workspace()
      const path = (i: number): string => `d${i % 3}/e${i % 2}/f${i % 5}`
      const worker = (seed: number) =>
        Effect.forEach(
          Array.from({ length: 40 }, (_, i) => seed * 7 + i),
          (i) => {
            const calls: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
              fs.write(path(i), "x"),
              fs.write(path(i), "y", { mode: "append" }),
              Stream.run(Stream.make(utf8("a"), utf8("b")), fs.sink(path(i + 1))),
              fs.delete(path(i + 1)),
              fs.move(path(i), path(i + 2), { overwrite: true }),
              fs.delete(`d${i % 3}`, { recursive: true }),
              fs.readString(path(i))
            ]
            // The calls may fail, but not die.
            return Effect.andThen(Effect.ignore(calls[i % calls.length]!), Effect.yieldNow)
          },
          { discard: true }
        )
      let rounds = 0
      const keeping = Effect.gen(function* () {
        for (; ; rounds++) {
          yield* session.snapshot("one")
          yield* Effect.yieldNow
          yield* session.rollback("one")
          if (rounds % 2 === 1) yield* session.reset
        }
      })
      const kept = yield* Effect.forkChild(keeping)
      yield* Effect.forEach([1, 2, 3, 4, 5, 6], worker, { concurrency: "unbounded" })
      // The interruption may arrive at any point.
      yield* Fiber.interrupt(kept)
      assert.isAbove(rounds, 3)
      yield* fs.write("last", "x")
      const there = (yield* Stream.runCollect(fs.walk())).filter(({ kind }) => kind === "file").map(({ path }) => path)
      const known = (yield* filesOf(session)).map(({ path }) => path.join("/"))
      assert.deepStrictEqual(new Set(known), new Set<string>(there))
      yield* session.forget("one")
      assert.strictEqual(directoriesIn(place).length, 1)
    })
  )

  it.effect("that is interrupted while it creates the directory leaves no directory, and a waiting call creates one", () =>
    Effect.gen(function* () {
      const [place, source] = [yield* ground, yield* ground]
      Fs.writeFileSync(join(source, "a"), "mounted")
      const session = yield* Session.make()
      const options = { session, directory: place, mounts: [{ hostPath: source, mountPath: "m" }], allowedRoots: [source] }
      const interruptedAtSource = <A, E>(call: Effect.Effect<A, E>) =>
        Effect.scoped(
          Effect.gen(function* () {
            const met = yield* Deferred.make<void>()
            yield* watching((_, name) => {
              if (name === "openSync" && directoriesIn(place).length > 0) Deferred.doneUnsafe(met, Exit.void)
              return false
            })
            const fiber = yield* Effect.forkChild(call)
            yield* Deferred.await(met)
            yield* Fiber.interrupt(fiber)
            return yield* Fiber.await(fiber)
          })
        )
      assert.isTrue(Exit.isFailure(yield* interruptedAtSource(Effect.scoped(VfsState.make(options)))))
      assert.deepStrictEqual(directoriesIn(place), [])
      const state = yield* VfsState.make({ ...options, start: "lazy" })
      const waiting = yield* Effect.forkChild(Effect.yieldNow.pipe(Effect.andThen(state.filesystem.readString("m/a"))))
      yield* interruptedAtSource(state.filesystem.readString("m/a"))
      assert.strictEqual(yield* Fiber.join(waiting), "mounted")
      assert.strictEqual(directoriesIn(place).length, 1)
    })
  )
})

describe("a reset of the session", () => {
  it.effect("makes the next call create a new directory with the mounts", () =>
    Effect.gen(function* () {
      const source = yield* ground
      Fs.writeFileSync(join(source, "a"), "mounted")
      const mounts = [{ hostPath: source, mountPath: "m" }]
      const { fs, place, session, state } = yield* workspace({ mounts, allowedRoots: [source] })
      const root = yield* state.rootPath
      yield* fs.write("m/a", "changed")
      yield* fs.write("b", "x")
      yield* session.reset
      assert.deepStrictEqual(yield* session.all(VfsState.VirtualFileSystem), [])
      yield* is(state, { "m/a": "mounted" })
      assert.deepStrictEqual(yield* versionsOf(session), ["m/a@1"])
      assert.isFalse(Fs.existsSync(root))
      assert.strictEqual(directoriesIn(place).length, 1)
    })
  )

  it.effect("makes calls fail while the source of a mount is missing, and later calls try again", () =>
    Effect.gen(function* () {
      const source = yield* ground
      const from = join(source, "from")
      Fs.mkdirSync(from)
      Fs.writeFileSync(join(from, "a"), "mounted")
      const mounts = [{ hostPath: from, mountPath: "m" }]
      const { fs, place, session } = yield* workspace({ mounts, allowedRoots: [source] })
      yield* session.reset
      Fs.renameSync(from, `${from}.away`)
      for (const call of [fs.readString("m/a"), fs.write("b", "x"), fs.list(), Stream.runCollect(fs.walk()), fs.grep("x")]) {
        const error: { readonly _tag: string; readonly message: string } = yield* Effect.flip(
          call as Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>
        )
        assert.strictEqual(error._tag, "Unavailable")
        assert.isFalse(error.message.includes(source), error.message)
      }
      assert.deepStrictEqual(directoriesIn(place), [])
      Fs.renameSync(`${from}.away`, from)
      assert.strictEqual(yield* fs.readString("m/a"), "mounted")
    })
  )

  it.effect("keeps snapshots", () =>
    Effect.gen(function* () {
      const { fs, session, state } = yield* workspace()
      yield* fs.write("a", "x")
      yield* session.snapshot("one")
      yield* session.reset
      yield* session.rollback("one")
      yield* is(state, { a: "x" })
      yield* session.reset
      yield* session.snapshot("empty")
      yield* fs.write("b", "x")
      yield* session.rollback("empty")
      yield* is(state, {})
    })
  )
})

describe("filesystems of sessions", () => {
  it.effect("share one directory within a session, which is removed with the last filesystem", () =>
    Effect.gen(function* () {
      const [place, source] = [yield* ground, yield* ground]
      Fs.writeFileSync(join(source, "m"), "mounted")
      const session = yield* Session.make()
      const [first, second] = [yield* Scope.make(), yield* Scope.make()]
      const one = yield* Scope.provide(VfsState.make({ session, directory: place }), first)
      yield* one.filesystem.write("a", "of one")
      const two = yield* Scope.provide(
        VfsState.make({ session, mounts: [{ hostPath: "m" }], allowedRoots: [source], readOnly: true }),
        second
      )
      assert.strictEqual(yield* two.rootPath, yield* one.rootPath)
      yield* is(one, { a: "of one", m: "mounted" })
      assert.strictEqual((yield* Effect.flip(two.filesystem.write("a", "x")))._tag, "AccessDenied")
      yield* session.reset
      yield* is(two, { m: "mounted" })
      yield* Scope.close(second, Exit.void)
      yield* is(one, { m: "mounted" })
      yield* session.reset
      yield* is(one, {})
      yield* session.snapshot("one")
      yield* Scope.close(first, Exit.void)
      assert.deepStrictEqual(directoriesIn(place), [])
      assert.strictEqual((yield* Effect.flip(one.filesystem.list()))._tag, "Unavailable")
      assert.strictEqual((yield* Effect.flip(one.rootPath))._tag, "Unavailable")
      const again = yield* VfsState.make({ session, directory: place })
      yield* is(again, {})
    })
  )

  it.effect("are independent between sessions", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const [one, two] = [yield* Session.make(), yield* Session.make()]
      const a = yield* VfsState.make({ session: one, directory: place })
      const b = yield* VfsState.make({ session: two, directory: place })
      yield* a.filesystem.write("x", "of a")
      yield* one.snapshot("s")
      yield* b.filesystem.write("x", "of b")
      yield* b.filesystem.write("y", "of b")
      yield* one.rollback("s")
      yield* two.reset
      yield* is(a, { x: "of a" })
      yield* is(b, {})
    })
  )

  it.effect("have a directory with mode 0700, which exists immediately, or from the first use if they are lazy", () =>
    Effect.gen(function* () {
      const { place, state } = yield* workspace()
      assert.strictEqual(Fs.statSync(yield* state.rootPath).mode & 0o777, 0o700)
      assert.strictEqual(directoriesIn(place).length, 1)
      const lazy = yield* workspace({ start: "lazy" })
      assert.deepStrictEqual(directoriesIn(lazy.place), [])
      assert.deepStrictEqual(yield* lazy.session.all(VfsState.VirtualFileSystem), [])
      yield* lazy.session.snapshot("nothing yet")
      assert.deepStrictEqual(directoriesIn(lazy.place), [])
      yield* Effect.forEach(["a", "b", "c"], (name) => lazy.fs.write(name, "x"), { concurrency: "unbounded" })
      assert.strictEqual(directoriesIn(lazy.place).length, 1)
      assert.deepStrictEqual(yield* versionsOf(lazy.session), ["a@1", "b@1", "c@1"])
    })
  )

  it.effect("fail with a typed error for an invalid mount or directory, and leave nothing behind", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const session = yield* Session.make()
      const refused = yield* Effect.flip(
        Effect.scoped(VfsState.make({ session, directory: place, mounts: [{ hostPath: "/etc/passwd" }] }))
      )
      assert.strictEqual(refused._tag, "MountError")
      assert.deepStrictEqual(directoriesIn(place), [])
      const nowhere = yield* Effect.flip(Effect.scoped(VfsState.make({ session, directory: join(place, "none") })))
      assert.strictEqual(nowhere._tag, "NotFound")
      const state = yield* VfsState.make({ session, directory: place })
      yield* is(state, {})
    })
  )

  it.effect("never use a root path that is in the data of the session", () =>
    Effect.gen(function* () {
      const [place, victim] = [yield* ground, yield* ground]
      Fs.writeFileSync(join(victim, "a"), "not yours")
      const lie: VfsState.VirtualFileSystem = { rootPath: victim, files: [] }
      const session = yield* Session.make()
      yield* session.set(VfsState.VirtualFileSystem, lie)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const state = yield* VfsState.make({ session, directory: place })
          yield* is(state, {})
          yield* session.snapshot("one")
          yield* session.set(VfsState.VirtualFileSystem, lie)
          yield* is(state, {})
          yield* state.filesystem.write("a", "mine")
          const [value] = yield* session.all(VfsState.VirtualFileSystem)
          assert.strictEqual(value!.rootPath, yield* state.rootPath)
          yield* session.set(VfsState.VirtualFileSystem, lie)
          yield* session.snapshot("two")
          yield* session.rollback("two")
          yield* is(state, { a: "mine" })
          yield* session.set(VfsState.VirtualFileSystem, lie)
          yield* session.reset
          yield* is(state, {})
          yield* session.set(VfsState.VirtualFileSystem, lie)
        })
      )
      assert.deepStrictEqual(Fs.readdirSync(victim), ["a"])
      assert.strictEqual(Fs.readFileSync(join(victim, "a"), "utf8"), "not yours")
    })
  )

  it.effect("are provided by a layer for the session of the context, and are removed with the layer", () =>
    Effect.gen(function* () {
      const place = yield* ground
      yield* Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("a", "x")
        assert.deepStrictEqual(yield* versionsOf(yield* Session.Session), ["a@1"])
        assert.strictEqual(directoriesIn(place).length, 1)
      }).pipe(Effect.provide(Layer.provideMerge(VfsState.layer({ directory: place }), Session.layer())))
      assert.deepStrictEqual(directoriesIn(place), [])
      const session = yield* Session.make()
      const context = yield* Layer.build(VfsState.layer({ directory: place, session }))
      yield* Context.get(context, Filesystem).write("b", "x")
      assert.deepStrictEqual(yield* versionsOf(session), ["b@1"])
    })
  )
})

describe("leftovers of killed processes", () => {
  const holder = fileURLToPath(new URL("vfsStateHolder.ts", import.meta.url))

  it.live("are removed by the next filesystem, which removes no other files", () =>
    Effect.gen(function* () {
      const place = yield* ground
      const child = spawn(process.execPath, [holder, place], { stdio: ["ignore", "pipe", "inherit"] })
      const ended = new Promise((resolve) => child.on("close", resolve))
      yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
      const root = yield* Effect.promise(
        () => new Promise<string>((resolve) => child.stdout.once("data", (data: Buffer) => resolve(data.toString().trim())))
      )
      assert.strictEqual(directoriesIn(place).length, 2)
      // The process in the last name has ended, but the signature of the name is not of this installation.
      const names = [
        "fs-algebra-vfs-unknown.0123456789abcdef01234567",
        "fs-algebra-vfs-mine",
        "other",
        `fs-algebra-vfs-${Names.dead()}.0123456789abcdef01234567`,
        basename(root).replace(/[\w-]{22}$/, (code) => [...code].reverse().join(""))
      ]
      for (const name of names) Fs.mkdirSync(join(place, name))
      yield* removeLeftovers(place)
      assert.isTrue(Fs.existsSync(join(root, "held/file")))
      child.kill("SIGKILL")
      yield* Effect.promise(() => ended)
      assert.isTrue(Fs.existsSync(join(root, "held/file")))
      // The directories of agent sections have names of the same form, and are removed too.
      for (const purpose of ["workspace", "snapshots"]) {
        const signed = basename(root)
          .replace("vfs", purpose)
          .replace(/\.[\w-]{22}$/, "")
        Fs.mkdirSync(join(place, `${signed}.${Buffer.from(Installation.signName(signed), "hex").toString("base64url")}`))
      }
      const state = yield* VfsState.make({ session: yield* Session.make(), directory: place })
      const left = [...names, basename(yield* state.rootPath)].sort()
      // The cleanup runs in the background, for several turns of the event loop.
      for (let turns = 0; turns < 10_000 && Fs.readdirSync(place).length > left.length; turns++) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      assert.deepStrictEqual(Fs.readdirSync(place).sort(), left)
    })
  )
})
