/** What a process that holds a claim does to others: while it lives, when it has been stopped, when it was killed. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Deferred from "effect/Deferred"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { type Backend, portable } from "../../src/port/Backend.ts"
import { failing, systemError } from "../backends/posixFailures.ts"
import { openDescriptors } from "../backends/posixHost.ts"
import type { Order } from "./holder.ts"
import { scoped, scratch, start } from "./workers.ts"

const at = (path: string): FsPath => path as FsPath

interface Ground {
  readonly root: string
  readonly port: Backend
  readonly fs: Algebra
  readonly claim: NonNullable<NonNullable<Backend["locks"]>["claim"]>
}

/** A root with the file `f`, of which the content is "old". */
const ground = Effect.gen(function* () {
  const root = yield* scoped
  Fs.writeFileSync(join(root, "f"), "old")
  const port = yield* PosixHost.make({ root })
  return { root, port, fs: make(port), claim: port.locks!.claim! } satisfies Ground as Ground
})

const claimsIn = (directory: string): ReadonlyArray<string> =>
  Fs.readdirSync(directory).filter((name) => name.startsWith(".~fsa-claim-"))

/** The names of those that hold or want the file, or have waited long for it. */
const entries = ({ root }: Ground): ReadonlyArray<string> =>
  claimsIn(root).flatMap((name) => {
    try {
      return Fs.readdirSync(join(root, name))
    } catch {
      return []
    }
  })

/** What a claim of this process on `f` is called: its directory, and its entry in that. */
const namesOf = (self: Ground) =>
  self.claim(
    at("f"),
    Effect.sync(() => [claimsIn(self.root)[0]!, entries(self)[0]!] as const)
  )

/** Looks again and again, in real time. */
const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setInterval(() => {
      if (!holds()) return
      clearInterval(timer)
      resume(Effect.void)
    }, 2)
    return Effect.sync(() => clearInterval(timer))
  })

const isWaiting = (self: Ground): boolean => entries(self).some((name) => name.endsWith(".wait"))

/** Another process that has the claim on a file. */
const holder = ({ root }: Ground, path = "f") =>
  Effect.promise(async () => {
    const program = start("./holder.ts", { what: "hold", root, path } satisfies Order)
    assert.strictEqual(await program.line(), "held")
    return program
  })

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const conditional = (fs: Algebra) => Effect.flatMap(fs.version("f"), (ifMatch) => fs.write("f", "mine", { ifMatch }))

describe("a claim", () => {
  it.live("is nothing that anybody sees, and leaves nothing", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const { claim, fs, root } = self
      yield* claim(
        at("f"),
        Effect.gen(function* () {
          assert.strictEqual(claimsIn(root).length, 1)
          assert.strictEqual(entries(self).length, 1)
          assert.deepStrictEqual(
            (yield* fs.list(".")).map(({ name }) => name),
            ["f"]
          )
          assert.deepStrictEqual(
            (yield* fs.glob("**")).matches.map(({ path }) => path),
            ["f"]
          )
          const error = yield* Effect.flip(fs.readString(claimsIn(root)[0]!))
          assert.strictEqual(error._tag, "InvalidPath")
        })
      )
      assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
    }).pipe(Effect.scoped)
  )

  it.live("ends with success, failure, defect and interruption", () =>
    Effect.gen(function* () {
      const { claim, root } = yield* ground
      for (const effect of [Effect.void, Effect.fail("no"), Effect.die("no"), Effect.interrupt]) {
        yield* Effect.exit(claim(at("f"), effect))
        assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
      }
      const running = yield* fork(claim(at("f"), Effect.never))
      assert.strictEqual(claimsIn(root).length, 1)
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
    }).pipe(Effect.scoped)
  )

  it.live("is on one file: others go on, also where a root lies in another", () =>
    Effect.gen(function* () {
      const { claim, fs, root } = yield* ground
      yield* fs.write("d/f", "x")
      const below = yield* PosixHost.make({ root: join(root, "d") })
      yield* claim(at("f"), claim(at("d/f"), claim(at("g"), Effect.void)))
      yield* claim(at("f"), below.locks!.claim!(at("f"), Effect.void))
      const order: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const first = yield* fork(
        claim(
          at("d/f"),
          Effect.andThen(
            Deferred.await(gate),
            Effect.sync(() => order.push("first"))
          )
        )
      )
      const second = yield* fork(
        below.locks!.claim!(
          at("f"),
          Effect.sync(() => order.push("second"))
        )
      )
      yield* until(() => Fs.readdirSync(join(root, "d", claimsIn(join(root, "d"))[0]!)).some((name) => name.endsWith(".wait")))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.deepStrictEqual(order, ["first", "second"])
      assert.deepStrictEqual(Fs.readdirSync(join(root, "d")), ["f"])
    }).pipe(Effect.scoped)
  )

  it.live("is taken by what has a precondition and by edit, and by nothing else", () =>
    Effect.gen(function* () {
      const { fs, port, root } = yield* ground
      const claimed: Array<string> = []
      const watched = make({
        ...port,
        locks: {
          ...port.locks!,
          claim: (path, effect) =>
            Effect.suspend(() => {
              claimed.push(path)
              return port.locks!.claim!(path, effect)
            })
        }
      })
      const version = yield* fs.version("f")
      const takes = (call: Effect.Effect<unknown, unknown>, paths: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          Fs.writeFileSync(join(root, "f"), "old")
          claimed.length = 0
          yield* Effect.exit(call)
          assert.deepStrictEqual(claimed, paths)
        })
      const change = { oldText: "old", newText: "new" }
      for (const mode of ["overwrite", "replace", "append", "appendExisting"] as const) {
        for (const ifMatch of [version, "0".repeat(64)]) {
          yield* takes(watched.write("f", "new", { mode, ifMatch }), ["f"])
          yield* takes(watched.write("f", "new", { mode, ifMatch, version: true }), ["f"])
        }
        yield* takes(watched.write("f", "new", { mode }), [])
        yield* takes(watched.write("f", "new", { mode, version: true }), [])
      }
      yield* takes(watched.write("f", "new", { ifMatch: null }), [])
      yield* takes(watched.write("g", "new", { ifMatch: null }), [])
      yield* takes(watched.edit("f", change), ["f"])
      yield* takes(watched.edit("f", change, { ifMatch: version }), ["f"])
      yield* takes(watched.edit("f", change, { dryRun: true }), [])
      yield* takes(watched.delete("f"), [])
      yield* takes(watched.delete("f", { ifMatch: version }), ["f"])
      yield* takes(watched.copy("f", "h"), [])
      yield* takes(watched.move("h", "i"), [])
      yield* takes(watched.mkdir("d"), [])
      yield* fs.symlink("l", "f")
      yield* takes(watched.edit("l", change), ["f"])
    }).pipe(Effect.scoped)
  )
})

describe("another process that has a file", () => {
  it.live("is waited for, and what it wrote is seen", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const other = yield* holder(self)
      const writing = yield* fork(Effect.flip(conditional(self.fs)))
      const editing = yield* fork(self.fs.edit("f", { oldText: "theirs", newText: "ours" }))
      yield* until(() => isWaiting(self))
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "old")
      other.say("theirs")
      assert.strictEqual((yield* Fiber.join(writing))._tag, "Conflict")
      yield* Fiber.join(editing)
      yield* Effect.promise(() => other.ended)
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "ours")
      assert.deepStrictEqual(Fs.readdirSync(self.root), ["f"])
    }).pipe(Effect.scoped)
  )

  it.live("is waited for while it is stopped", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const other = yield* holder(self)
      other.process.kill("SIGSTOP")
      const writing = yield* fork(Effect.flip(conditional(self.fs)))
      yield* until(() => isWaiting(self))
      assert.isUndefined(writing.pollUnsafe())
      other.say("theirs")
      other.process.kill("SIGCONT")
      assert.strictEqual((yield* Fiber.join(writing))._tag, "Conflict")
      yield* Effect.promise(() => other.ended)
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "theirs")
    }).pipe(Effect.scoped)
  )

  it.live("is waited for without a mark where none can be made, and leaves no descriptor", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const other = yield* holder(self)
      const before = openDescriptors()
      const marking = yield* failing("openSync", (path: unknown) =>
        String(path).endsWith(".wait") ? systemError("EACCES", -13, "open") : undefined
      )
      const waiting = yield* Effect.forkChild(self.claim(at("f"), Effect.void), { startImmediately: true })
      yield* until(() => marking.calls() >= 3)
      yield* Fiber.interrupt(waiting)
      // The directory of the file, which is kept for a moment.
      assert.isAtMost(openDescriptors(), before + 1)
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )

  it.live("keeps nobody when it was killed, waited for or not", () =>
    Effect.gen(function* () {
      const self = yield* ground
      for (const waits of [false, true]) {
        Fs.writeFileSync(join(self.root, "f"), "old")
        const other = yield* holder(self)
        const early = waits ? yield* fork(conditional(self.fs)) : undefined
        if (waits) yield* until(() => isWaiting(self))
        other.process.kill("SIGKILL")
        yield* Effect.promise(() => other.ended)
        if (early === undefined) assert.strictEqual(entries(self).length, 1)
        yield* early === undefined ? conditional(self.fs) : Fiber.join(early)
        assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "mine")
        assert.deepStrictEqual(Fs.readdirSync(self.root), ["f"])
      }
    }).pipe(Effect.scoped)
  )

  it.live("does not keep those who write without a precondition", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const other = yield* holder(self)
      yield* self.fs.write("f", "new")
      yield* self.fs.write("f", "er", { mode: "append" })
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "newer")
      yield* self.fs.delete("f")
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )

  it.live("can be waited for no longer: interruption leaves nothing", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const other = yield* holder(self)
      const before = entries(self)
      const writing = yield* fork(conditional(self.fs))
      yield* until(() => isWaiting(self))
      yield* Fiber.interrupt(writing)
      assert.deepStrictEqual(entries(self), before)
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )

  it.live("makes a call fail as busy that has waited for half a minute", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const other = yield* holder(self)
      const before = entries(self)
      const { setTimeout } = globalThis
      let slept = 0
      globalThis.setTimeout = ((run: () => void, milliseconds = 0) => {
        slept += milliseconds
        return setTimeout(run, 0)
      }) as typeof setTimeout
      const error = yield* Effect.ensuring(
        Effect.flip(self.fs.edit("f", { oldText: "old", newText: "new" })),
        Effect.sync(() => void (globalThis.setTimeout = setTimeout))
      )
      assert.strictEqual(error._tag, "AccessDenied")
      assert.strictEqual((error as { readonly why?: string }).why, "busy")
      assert.isAtLeast(slept, 30_000)
      assert.isBelow(slept, 31_000)
      assert.deepStrictEqual(entries(self), before)
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "old")
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )
})

describe("what killed processes have left of claims", () => {
  const left = Effect.gen(function* () {
    const self = yield* ground
    yield* self.fs.write("d/f", "old")
    const other = yield* holder(self, "d/f")
    other.process.kill("SIGKILL")
    yield* Effect.promise(() => other.ended)
    assert.strictEqual(claimsIn(join(self.root, "d")).length, 1)
    return self
  })

  it.live("goes when the directory is listed", () =>
    Effect.gen(function* () {
      const { root } = yield* left
      const fs = make(yield* PosixHost.make({ root }))
      assert.deepStrictEqual(
        (yield* fs.list("d")).map(({ name }) => name),
        ["f"]
      )
      assert.deepStrictEqual(Fs.readdirSync(join(root, "d")), ["f"])
    }).pipe(Effect.scoped)
  )

  const uses = [
    "deleted",
    "deleted with what is in it",
    "deleted with what is in it step by step",
    "moved",
    "replaced"
  ] as const
  for (const use of uses) {
    it.live(`does not keep a directory from being ${use}`, () =>
      Effect.gen(function* () {
        const { root } = yield* left
        const port = yield* PosixHost.make({ root })
        const fs = make(use.endsWith("step by step") ? portable(port) : port)
        yield* fs.delete("d/f")
        if (use === "deleted") assert.deepInclude(yield* fs.delete("d"), { directories: 1 })
        else if (use === "moved") yield* fs.move("d", "e")
        else if (use === "replaced") {
          yield* fs.mkdir("e/x")
          yield* fs.move("e", "d", { overwrite: true })
          assert.deepStrictEqual(Fs.readdirSync(join(root, "d")), ["x"])
        } else {
          // Nothing of what is hidden counts.
          Fs.writeFileSync(join(root, "d/g"), "x")
          assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
        }
        assert.strictEqual(yield* fs.exists("d"), use === "replaced")
      }).pipe(Effect.scoped)
    )
  }

  it.live("stays while its process may live: one of another machine, until it is a minute older than what is new", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const mine = yield* namesOf(self)
      const directory = join(self.root, mine[0])
      Fs.mkdirSync(directory)
      const theirs = join(directory, mine[1].replace(/^[0-9a-z]+/, "0").replace(/\.[0-9a-f]{12}\./, ".0123456789ab."))
      assert.notStrictEqual(theirs, join(directory, mine[1]))
      Fs.writeFileSync(theirs, "")
      const writing = yield* fork(conditional(self.fs))
      yield* until(() => isWaiting(self))
      const now = Fs.statSync(theirs).mtimeMs / 1000
      Fs.utimesSync(theirs, now - 50, now - 50)
      // Each try makes an entry, and takes it back.
      for (let tries = 0; tries < 3; tries++) {
        const { mtimeNs } = Fs.statSync(directory, { bigint: true })
        yield* until(() => Fs.statSync(directory, { bigint: true }).mtimeNs !== mtimeNs)
      }
      assert.isUndefined(writing.pollUnsafe())
      Fs.utimesSync(theirs, now - 120, now - 120)
      yield* Fiber.join(writing)
      assert.deepStrictEqual(Fs.readdirSync(self.root), ["f"])
    }).pipe(Effect.scoped)
  )

  it.live("is told from a live one by when its process started, not by its number alone", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const mine = yield* namesOf(self)
      Fs.mkdirSync(join(self.root, mine[0]))
      // This very process, as if it had had a predecessor with its number.
      const [where, number, rest] = mine[1].split("-")
      const theirs = `${where}-${number}-1${rest!.slice(rest!.indexOf(".")).replace(/^\.[0-9a-f]{12}/, ".0123456789ab")}`
      Fs.writeFileSync(join(self.root, mine[0], theirs), "")
      yield* conditional(self.fs)
      assert.deepStrictEqual(Fs.readdirSync(self.root), ["f"])
    }).pipe(Effect.scoped)
  )
})

describe("where a claim cannot be made", () => {
  it.live("because something else has its name, nothing is written, and nothing goes through a link", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const name = yield* self.claim(
        at("f"),
        Effect.sync(() => claimsIn(self.root)[0]!)
      )
      const outside = scratch()
      for (const plant of [
        () => Fs.writeFileSync(join(self.root, name), "in the way"),
        () => Fs.symlinkSync(outside, join(self.root, name))
      ]) {
        plant()
        const exit = yield* Effect.exit(conditional(self.fs))
        assert.isTrue(Exit.isFailure(exit))
        assert.strictEqual((yield* Effect.flip(conditional(self.fs)))._tag, "IoError")
        assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "old")
        assert.deepStrictEqual(Fs.readdirSync(outside), [])
        Fs.unlinkSync(join(self.root, name))
      }
    }).pipe(Effect.scoped)
  )

  it.live("because the file's directory is not there, the call says so as it would without", () =>
    Effect.gen(function* () {
      const { claim, fs } = yield* ground
      assert.strictEqual(yield* claim(at("no/f"), Effect.succeed(1)), 1)
      assert.strictEqual(yield* claim(at("f/x"), Effect.succeed(1)), 1)
      assert.strictEqual((yield* Effect.flip(fs.edit("no/f", { oldText: "a", newText: "b" })))._tag, "NotFound")
      const stale = { ifMatch: "0".repeat(64) }
      assert.strictEqual((yield* Effect.flip(fs.write("no/f", "x", stale)))._tag, "Conflict")
      assert.strictEqual((yield* Effect.flip(fs.edit("no/f", { oldText: "a", newText: "b" }, stale)))._tag, "Conflict")
    }).pipe(Effect.scoped)
  )

  const isRoot = process.geteuid?.() === 0
  if (!isRoot) console.log("skipped: claims of another user, which needs root to start a process as somebody else")
  const nobody = 65534

  it.runIf(isRoot || process.env["FS_ALGEBRA_NO_SKIP"] !== undefined)(
    "because the directory may not be written to, the call fails as the same write without a precondition",
    async () => {
      const root = scratch()
      Fs.chmodSync(root, 0o755)
      Fs.writeFileSync(join(root, "f"), "old")
      Fs.chmodSync(join(root, "f"), 0o666)
      const program = start("./holder.ts", { what: "tell", root, path: "f", user: nobody } satisfies Order)
      const [write, writeIf, edit, remove, removeIf] = JSON.parse(await program.line()) as ReadonlyArray<string>
      const { operation: _, ...denied } = JSON.parse(write!)
      assert.strictEqual(denied._tag, "AccessDenied")
      assert.strictEqual(writeIf, write)
      assert.deepInclude(JSON.parse(edit!), denied)
      assert.deepInclude(JSON.parse(remove!), denied)
      assert.strictEqual(removeIf, remove)
      assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
      await program.ended
    }
  )

  it.runIf(isRoot || process.env["FS_ALGEBRA_NO_SKIP"] !== undefined)(
    "because another user's process was killed, it is made all the same where both may write",
    async () => {
      const root = scratch()
      Fs.chmodSync(root, 0o1777)
      Fs.writeFileSync(join(root, "f"), "old")
      Fs.chmodSync(join(root, "f"), 0o666)
      const killed = start("./holder.ts", { what: "hold", root, path: "f" } satisfies Order)
      assert.strictEqual(await killed.line(), "held")
      killed.process.kill("SIGKILL")
      await killed.ended
      const other = start("./holder.ts", { what: "hold", root, path: "f", user: nobody } satisfies Order)
      assert.strictEqual(await other.line(), "held")
      other.process.kill("SIGKILL")
      await other.ended
    }
  )
})
