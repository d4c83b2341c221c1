/** The claim of a process on a file, as other processes observe it while that process runs, is stopped, or has been killed. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Deferred from "effect/Deferred"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { createHash } from "node:crypto"
import { basename, dirname, join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Installation from "../../src/runtime/installation.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { failing, replacing, systemError } from "../backends/posixFailures.ts"
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

/** Opens a host on a new root. Its file `f` contains "old". */
const ground = Effect.gen(function* () {
  const root = yield* scoped
  Fs.writeFileSync(join(root, "f"), "old")
  const port = yield* PosixHost.make({ root })
  return { root, port, fs: make(port), claim: port.locks!.claim! } satisfies Ground as Ground
})

const claimsOn = (file: string): string => {
  const { dev, ino } = Fs.statSync(dirname(file))
  const key = createHash("sha256")
    .update(`${dev}:${ino}:${basename(file).toLowerCase()}`)
    .digest("hex")
    .slice(0, 32)
  return join(Installation.directory()!, "claims", key)
}

/** Returns the entries of the processes that hold a claim on a file or wait for it. */
const entriesOf = (file: string): ReadonlyArray<string> => {
  try {
    return Fs.readdirSync(claimsOn(file))
  } catch {
    return []
  }
}

const entries = ({ root }: Ground): ReadonlyArray<string> => entriesOf(join(root, "f"))

/** Returns the name of a claim of this process on `f`. */
const nameOf = (self: Ground) =>
  self.claim(
    at("f"),
    Effect.sync(() => entries(self)[0]!)
  )

/** Waits until the condition holds, in real time. */
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

/** Starts another process that holds the claim on a file. */
const holder = ({ root }: Ground, path = "f") =>
  Effect.promise(async () => {
    const program = start("./holder.ts", { what: "hold", root, path } satisfies Order)
    assert.strictEqual(await program.line(), "held")
    return program
  })

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const conditional = (fs: Algebra) => Effect.flatMap(fs.version("f"), (ifMatch) => fs.write("f", "mine", { ifMatch }))

describe("a claim on a file", () => {
  it.live("is kept in the private directory of the installation, and is removed afterwards", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const { claim, root } = self
      yield* claim(
        at("f"),
        Effect.gen(function* () {
          assert.strictEqual(entries(self).length, 1)
          assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
          assert.strictEqual(Fs.statSync(claimsOn(join(root, "f"))).mode & 0o777, 0o700)
        })
      )
      assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
      assert.isFalse(Fs.existsSync(claimsOn(join(root, "f"))))
    }).pipe(Effect.scoped)
  )

  it.live("is made although another process removes its directory at the same time", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const path = claimsOn(join(self.root, "f"))
      // The system call finds the directory (EEXIST), but Node then finds that it is gone.
      let removals = 2
      const making = yield* failing("mkdirSync", (made: unknown, options: unknown) => {
        if (made !== path || removals-- <= 0) return undefined
        const isRecursive = typeof options === "object" && options !== null && "recursive" in options
        return isRecursive ? systemError("ENOENT", -2, "mkdir") : systemError("EEXIST", -17, "mkdir")
      })
      assert.match(yield* nameOf(self), /\.claim$/)
      assert.strictEqual(making.calls(), 2)
    }).pipe(Effect.scoped)
  )

  it.live("fails with IoError without descriptors or memory or on a disk error, and the effect does not run", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const path = claimsOn(join(self.root, "f"))
      for (const [code, errno] of [
        ["EMFILE", -24],
        ["ENOMEM", -12],
        ["EIO", -5],
        ["ESTALE", -116]
      ] as const) {
        const fault = yield* Effect.scoped(
          Effect.gen(function* () {
            yield* failing("openSync", (opened: unknown) =>
              String(opened).startsWith(path) ? systemError(code, errno, "open") : undefined
            )
            return yield* Effect.flip(self.claim(at("f"), Effect.die("it ran without a claim")))
          })
        )
        assert.deepInclude(fault, { _tag: "IoError", code })
      }
    }).pipe(Effect.scoped)
  )

  it.live("ends after success, failure, defect and interruption", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const { claim, root } = self
      for (const effect of [Effect.void, Effect.fail("no"), Effect.die("no"), Effect.interrupt]) {
        yield* Effect.exit(claim(at("f"), effect))
        assert.isFalse(Fs.existsSync(claimsOn(join(root, "f"))))
      }
      const running = yield* fork(claim(at("f"), Effect.never))
      assert.strictEqual(entries(self).length, 1)
      yield* Fiber.interrupt(running)
      assert.isFalse(Fs.existsSync(claimsOn(join(root, "f"))))
    }).pipe(Effect.scoped)
  )

  it.live("excludes claims on the same file only, also from a root inside another root", () =>
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
      yield* until(() => entriesOf(join(root, "d/f")).some((name) => name.endsWith(".wait")))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.deepStrictEqual(order, ["first", "second"])
      assert.deepStrictEqual(Fs.readdirSync(join(root, "d")), ["f"])
    }).pipe(Effect.scoped)
  )

  it.live("is made only by calls with a version as precondition and by edit", () =>
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

describe("a claim of another process", () => {
  it.live("makes a call wait, which then reads the new content", () =>
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

  it.live("makes a call wait while its process is stopped", () =>
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

  it.live("makes a call wait even if the call cannot create its .wait file, and no descriptor stays open", () =>
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
      // The host keeps the directory of the file open for a moment.
      assert.isAtMost(openDescriptors(), before + 1)
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )

  it.live("does not block after its process was killed, whether or not a call already waits", () =>
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

  it.live("does not block writes without a precondition", () =>
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

  it.live("does not delay the interruption of a waiting call, and the interrupted call leaves no entry", () =>
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

  it.live("makes a call fail as busy after half a minute", () =>
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
      assert.match(error.message, new RegExp(`process ${other.process.pid} .*${before[0]!.replaceAll(".", "\\.")}`))
      assert.isAtLeast(slept, 30_000)
      assert.isBelow(slept, 31_000)
      assert.deepStrictEqual(entries(self), before)
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "old")
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )
})

describe("the claim of a killed process", () => {
  it.live("is removed when another process makes its first claim, even on another file", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const killed = yield* holder(self)
      killed.process.kill("SIGKILL")
      yield* Effect.promise(() => killed.ended)
      assert.strictEqual(entries(self).length, 1)
      yield* self.fs.write("g", "old")
      const other = yield* holder(self, "g")
      assert.isFalse(Fs.existsSync(claimsOn(join(self.root, "f"))))
      other.process.kill("SIGKILL")
      yield* Effect.promise(() => other.ended)
    }).pipe(Effect.scoped)
  )
})

describe("the claim of an unknown process", () => {
  /** Makes a claim of a process that cannot be looked up here. */
  const theirs = (self: Ground, mine: string): string => {
    const name = mine.replace(/^[0-9a-z]+/, "0").replace(/\.[0-9a-f]{12}\./, ".0123456789ab.")
    assert.notStrictEqual(name, mine)
    Fs.mkdirSync(claimsOn(join(self.root, "f")))
    Fs.writeFileSync(join(claimsOn(join(self.root, "f")), name), "")
    return join(claimsOn(join(self.root, "f")), name)
  }

  it.live("stays valid while an unknown process refreshes it, and is removed two seconds after the last refresh", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const entry = theirs(self, yield* nameOf(self))
      const writing = yield* fork(conditional(self.fs))
      yield* until(() => {
        Fs.writeFileSync(entry, "")
        return isWaiting(self)
      })
      const before = Fs.statSync(entry).mtimeMs / 1000
      // Each try makes an entry and removes it again.
      for (let tries = 0; tries < 3; tries++) {
        const { mtimeNs } = Fs.statSync(dirname(entry), { bigint: true })
        Fs.writeFileSync(entry, "")
        yield* until(() => Fs.statSync(dirname(entry), { bigint: true }).mtimeNs !== mtimeNs)
      }
      assert.isUndefined(writing.pollUnsafe())
      Fs.utimesSync(entry, before - 3, before - 3)
      yield* Fiber.join(writing)
      assert.isFalse(Fs.existsSync(entry))
    }).pipe(Effect.scoped)
  )

  it.live("stays valid even if the waiting thread was paused after it made its own claim", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const entry = theirs(self, yield* nameOf(self))
      const inside = dirname(entry)
      let looks = 0
      yield* replacing("readdirSync", (original) => (...args) => {
        if (args[0] !== inside) return original(...args)
        const names: ReadonlyArray<string> = original(...args)
        const now = Date.now() / 1000
        Fs.utimesSync(entry, now, now)
        for (const name of names.filter((name) => name !== basename(entry))) {
          looks++
          Fs.utimesSync(join(inside, name), now - 5, now - 5)
        }
        return names
      })
      const claiming = yield* fork(self.claim(at("f"), Effect.void))
      yield* until(() => looks >= 2 || claiming.pollUnsafe() !== undefined)
      assert.isUndefined(claiming.pollUnsafe())
      assert.isTrue(Fs.existsSync(entry))
      Fs.unlinkSync(entry)
      yield* Fiber.interrupt(claiming)
    }).pipe(Effect.scoped)
  )

  it.live("does not block if its time is in the future", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const entry = theirs(self, yield* nameOf(self))
      Fs.utimesSync(entry, 2_208_988_800, 2_208_988_800)
      yield* conditional(self.fs)
      assert.isFalse(Fs.existsSync(entry))
    }).pipe(Effect.scoped)
  )
})

describe("the claim of an ended process whose pid another process has", () => {
  it.live("is removed, because the start times of the two processes differ", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const mine = yield* nameOf(self)
      Fs.mkdirSync(claimsOn(join(self.root, "f")))
      // The pid of this process with another start time, as of an earlier process.
      const [where, number, rest] = mine.split("-")
      const theirs = `${where}-${number}-1${rest!.slice(rest!.indexOf(".")).replace(/^\.[0-9a-f]{12}/, ".0123456789ab")}`
      Fs.writeFileSync(join(claimsOn(join(self.root, "f")), theirs), "")
      yield* conditional(self.fs)
      assert.isFalse(Fs.existsSync(claimsOn(join(self.root, "f"))))
    }).pipe(Effect.scoped)
  )
})

describe("the claim of a call", () => {
  it.live("is skipped if another entry has its name, and the version is still checked", () =>
    Effect.gen(function* () {
      const self = yield* ground
      const claims = claimsOn(join(self.root, "f"))
      Fs.mkdirSync(dirname(claims), { recursive: true })
      Fs.writeFileSync(claims, "in the way")
      yield* conditional(self.fs)
      assert.strictEqual(Fs.readFileSync(join(self.root, "f"), "utf8"), "mine")
      assert.strictEqual((yield* Effect.flip(self.fs.write("f", "x", { ifMatch: "0".repeat(64) })))._tag, "Conflict")
      assert.strictEqual(Fs.readFileSync(claims, "utf8"), "in the way")
      Fs.unlinkSync(claims)
    }).pipe(Effect.scoped)
  )

  it.live("does not change the error of the call if the directory is missing", () =>
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
    "gives the error of a write without a precondition if the directory is not writable",
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
    "excludes only processes of the same user, so users do not wait for each other",
    async () => {
      const root = scratch()
      Fs.chmodSync(root, 0o1777)
      Fs.writeFileSync(join(root, "f"), "old")
      Fs.chmodSync(join(root, "f"), 0o666)
      const one = start("./holder.ts", { what: "hold", root, path: "f" } satisfies Order)
      assert.strictEqual(await one.line(), "held")
      const other = start("./holder.ts", { what: "hold", root, path: "f", user: nobody } satisfies Order)
      assert.strictEqual(await other.line(), "held")
      for (const program of [one, other]) {
        program.process.kill("SIGKILL")
        await program.ended
      }
    }
  )
})

describe("an entry in the tree whose name older versions used for claims", () => {
  const name = `.~fsa-claim-${createHash("sha256").update("f").digest("hex").slice(0, 18)}.tmp`
  const plants: ReadonlyArray<readonly [what: string, plant: (at: string) => void]> = [
    ["a file", (at) => Fs.writeFileSync(at, "x")],
    ["a link to the file itself", (at) => Fs.symlinkSync("f", at)],
    ["a dangling link", (at) => Fs.symlinkSync("nowhere", at)],
    ["a FIFO", (at) => execFileSync("mkfifo", [at])],
    [
      "a directory with an entry that is dated in the year 2040",
      (at) => {
        Fs.mkdirSync(at)
        const entry = join(at, `${Identity.self()}.0123456789ab.0.claim`)
        Fs.writeFileSync(entry, "")
        Fs.utimesSync(entry, 2_208_988_800, 2_208_988_800)
      }
    ],
    ["an unreadable directory", (at) => Fs.mkdirSync(at, { mode: 0 })],
    [
      "a directory with ten thousand entries",
      (at) => {
        Fs.mkdirSync(at)
        for (let i = 0; i < 10_000; i++) Fs.writeFileSync(join(at, `0-0-0.0123456789ab.${i.toString(36)}.claim`), "")
      }
    ]
  ]
  for (const [what, plant] of plants) {
    it.live(`does not hinder or delay an edit, and is left alone: ${what}`, () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        plant(join(root, name))
        const before = Fs.lstatSync(join(root, name), { bigint: true })
        const read: Array<string> = []
        const reading = yield* failing("readdirSync", (path: unknown) => void read.push(String(path)))
        yield* fs.edit("f", { oldText: "old", newText: "new" })
        yield* conditional(fs)
        assert.isFalse(read.some((path) => path.includes(".~fsa-")))
        assert.isAtMost(reading.calls(), 12)
        assert.strictEqual(Fs.readFileSync(join(root, "f"), "utf8"), "mine")
        const after = Fs.lstatSync(join(root, name), { bigint: true })
        assert.deepStrictEqual([after.ino, after.mtimeNs, after.ctimeNs], [before.ino, before.mtimeNs, before.ctimeNs])
        if (after.isDirectory()) Fs.chmodSync(join(root, name), 0o700)
      }).pipe(Effect.scoped)
    )
  }
})
