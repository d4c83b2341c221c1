import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import NodeFs from "node:fs"
import { join } from "node:path"
import { BlobStore, HeadStore, Stores } from "../../../src/index.ts"
import * as Identity from "../../../src/runtime/processIdentity.ts"
import { storeSuite } from "../../../src/testing/index.ts"
import { clean } from "../../durability/children.ts"
import { canMount, disk, needs } from "../../faults/ground.ts"
import { inMemory } from "../../scratch.ts"
import { answered, expectAnswered, readChain, writer } from "./chain.ts"

afterAll(clean)

const makeFresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "stores-")), "store")

const openAt = (directory: string, fsync = false) =>
  Effect.map(Layer.build(Layer.fresh(Stores.layerDirectory({ directory, fsync }))), (context) => ({
    blobs: Context.get(context, BlobStore.BlobStore),
    heads: Context.get(context, HeadStore.HeadStore)
  }))

storeSuite(
  "stores in a directory",
  Effect.sync(() => Stores.layerDirectory({ directory: makeFresh() }))
)

storeSuite(
  "stores in a directory that waits for the disk",
  Effect.sync(() => Stores.layerDirectory({ directory: makeFresh(), fsync: true })),
  { count: 50, largestBytes: 2 << 20 }
)

const bytes = new TextEncoder().encode("abc")
const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
const pathIn = (directory: string): string => join(directory, "blobs", hash.slice(0, 2), hash.slice(2))
const headPath = (directory: string, workspace: string): string =>
  join(directory, "heads", `${createHash("sha256").update(workspace).digest("hex")}.json`)

const head = (sequence: number): HeadStore.Head => ({
  root: hash,
  sequence,
  author: "ada",
  message: "m",
  committedAt: DateTime.makeUnsafe(0)
})

const filesIn = (directory: string): ReadonlyArray<string> =>
  Fs.readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => Fs.lstatSync(join(directory, name)).isFile())
    .sort()

/** Returns the calls that change a directory of the disk during an effect. Calls that fail count too. */
const changesDuring = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<ReadonlyArray<string>, E> => {
  const { mkdirSync, openSync, renameSync, rmdirSync, unlinkSync } = NodeFs
  const calls: Array<string> = []
  const noting = (name: string, call: object) =>
    new Proxy(call as () => unknown, {
      apply: (call, self, args: ReadonlyArray<unknown>) => {
        if (name !== "create" || args[1] === "wx") calls.push(name)
        return Reflect.apply(call, self, args)
      }
    })
  Object.assign(NodeFs, {
    mkdirSync: noting("mkdir", mkdirSync),
    openSync: noting("create", openSync),
    renameSync: noting("rename", renameSync),
    rmdirSync: noting("rmdir", rmdirSync),
    unlinkSync: noting("unlink", unlinkSync)
  })
  return Effect.ensuring(
    Effect.as(effect, calls),
    Effect.sync(() => Object.assign(NodeFs, { mkdirSync, openSync, renameSync, rmdirSync, unlinkSync }))
  )
}

const law = (title: string, run: (directory: string) => Effect.Effect<void, unknown, Scope.Scope>): void =>
  void it.live(title, () => Effect.scoped(Effect.suspend(() => run(makeFresh()))))

describe("stores in a directory", () => {
  law("have the documented files, and keep no drafts or locks after calls", (directory) =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* openAt(directory)
      yield* blobs.put(bytes)
      yield* heads.compareAndSet("notes", undefined, head(1))
      assert.deepStrictEqual(filesIn(directory), [
        `blobs/${hash.slice(0, 2)}/${hash.slice(2)}`,
        "format.json",
        `heads/${createHash("sha256").update("notes").digest("hex")}.json`
      ])
      assert.strictEqual(Fs.readFileSync(join(directory, "format.json"), "utf8"), '{"format":"fs-algebra store","version":1}\n')
      assert.strictEqual(
        Fs.readFileSync(headPath(directory, "notes"), "utf8"),
        `"notes"\n{"version":1,"root":"${hash}","sequence":1,"author":"ada","message":"m","committedAt":"1970-01-01T00:00:00.000Z"}\n`
      )
      assert.strictEqual(Fs.statSync(directory).mode & 0o077, 0)
      assert.strictEqual(Fs.statSync(pathIn(directory)).mode & 0o077, 0)
    })
  )

  law("refuse a directory with other files, and change nothing in it", (directory) =>
    Effect.gen(function* () {
      Fs.mkdirSync(directory)
      Fs.writeFileSync(join(directory, "letter.txt"), "dear")
      const error = yield* Effect.flip(openAt(directory))
      assert.strictEqual(error.reason, "invalid")
      assert.deepStrictEqual(Fs.readdirSync(directory), ["letter.txt"])
    })
  )

  law("refuse a store of a later version", (directory) =>
    Effect.gen(function* () {
      yield* openAt(directory)
      Fs.writeFileSync(join(directory, "format.json"), '{"format":"fs-algebra store","version":2}\n')
      assert.strictEqual((yield* Effect.flip(openAt(directory))).reason, "invalid")
    })
  )

  law("detect damaged content, and replace it when the content is put again", (directory) =>
    Effect.gen(function* () {
      const { blobs } = yield* openAt(directory)
      yield* blobs.put(bytes)
      for (const damage of ["abd", "", "ab", "abcd"]) {
        Fs.writeFileSync(pathIn(directory), damage)
        assert.strictEqual((yield* Effect.flip(blobs.get(hash))).reason, "corrupt", damage)
        yield* blobs.put(bytes)
        assert.deepStrictEqual(yield* blobs.get(hash), bytes)
      }
    })
  )

  law("do not follow planted links, and do not block on a planted FIFO", (directory) =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* openAt(directory)
      const secret = join(directory, "..", "secret")
      Fs.writeFileSync(secret, "abc")
      Fs.mkdirSync(join(directory, "blobs", hash.slice(0, 2)))
      Fs.symlinkSync(secret, pathIn(directory))
      assert.strictEqual((yield* Effect.flip(blobs.get(hash))).reason, "corrupt")
      assert.strictEqual((yield* blobs.has([hash])).size, 0)
      assert.deepStrictEqual(yield* Stream.runCollect(blobs.list), [])
      yield* blobs.delete([hash])
      assert.isTrue(Fs.existsSync(secret))
      execFileSync("mkfifo", [pathIn(directory)])
      assert.strictEqual((yield* Effect.flip(blobs.get(hash))).reason, "corrupt")
      Fs.unlinkSync(pathIn(directory))

      execFileSync("mkfifo", [headPath(directory, "fifo")])
      assert.strictEqual((yield* Effect.flip(heads.get("fifo"))).reason, "corrupt")
      Fs.unlinkSync(headPath(directory, "fifo"))
      Fs.symlinkSync(secret, headPath(directory, "link"))
      assert.strictEqual((yield* Effect.flip(heads.get("link"))).reason, "corrupt")
      assert.strictEqual((yield* Effect.flip(heads.compareAndSet("link", undefined, head(1)))).reason, "corrupt")
      assert.strictEqual(Fs.readFileSync(secret, "utf8"), "abc")
    })
  )

  law("write nothing through a planted folder or lock that leads elsewhere", (directory) =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* openAt(directory)
      const elsewhere = join(directory, "..", "elsewhere")
      Fs.mkdirSync(elsewhere)
      Fs.symlinkSync(elsewhere, join(directory, "blobs", hash.slice(0, 2)))
      assert.strictEqual((yield* Effect.flip(blobs.put(bytes))).reason, "corrupt")
      assert.strictEqual((yield* Effect.flip(blobs.get(hash))).reason, "corrupt")
      Fs.symlinkSync(elsewhere, headPath(directory, "notes").replace(/json$/, "lock"))
      assert.strictEqual((yield* Effect.flip(heads.compareAndSet("notes", undefined, head(1)))).reason, "corrupt")
      assert.deepStrictEqual(Fs.readdirSync(elsewhere), [])
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "drafts")), [])
    })
  )

  law("ignore foreign files among the blobs and the heads", (directory) =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* openAt(directory)
      yield* blobs.put(bytes)
      yield* heads.compareAndSet("notes", undefined, head(1))
      for (const name of ["README", ".DS_Store", "zz", hash]) {
        Fs.writeFileSync(join(directory, "blobs", name), "x")
        Fs.writeFileSync(join(directory, "blobs", hash.slice(0, 2), name), "x")
        Fs.writeFileSync(join(directory, "heads", name), "x")
      }
      assert.deepStrictEqual(
        (yield* Stream.runCollect(blobs.list)).map((one) => one.hash),
        [hash]
      )
      assert.deepStrictEqual(yield* Stream.runCollect(heads.list), ["notes"])
    })
  )

  law("detect damaged heads, and never return a list without them as complete", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const path = headPath(directory, "notes")
      const text = Fs.readFileSync(path, "utf8")
      const damages = [
        "",
        text.slice(0, -1),
        text.slice(0, 40),
        text.replace('"notes"', '"other"'),
        text.replace('"version":1', '"version":2'),
        text.replace('"sequence":1', '"sequence":0'),
        text.replace('"sequence":1', '"sequence": 1'),
        text.replace('"author"', '"more":1,"author"'),
        `${text}${text}`,
        "x".repeat(10_000_000)
      ]
      for (const damage of damages) {
        Fs.writeFileSync(path, damage)
        assert.strictEqual((yield* Effect.flip(heads.get("notes"))).reason, "corrupt", damage.slice(0, 80))
        assert.isFalse(yield* Effect.orElseSucceed(heads.compareAndSet("notes", head(1), head(2)), () => false))
      }
      assert.strictEqual((yield* Effect.flip(Stream.runCollect(heads.list))).reason, "corrupt")
      Fs.writeFileSync(path, text)
      assert.isTrue(yield* heads.compareAndSet("notes", head(1), head(2)))
    })
  )

  law("remove the drafts and locks of dead processes only", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory)
      const dead = Identity.self().replace(/-[0-9a-z]+$/, "-zz")
      const [deadDraft, livingDraft] = [dead, Identity.self()].map((owner) => `.${owner}.${"0".repeat(24)}.tmp`)
      for (const name of [deadDraft!, livingDraft!, "mine.tmp"]) Fs.writeFileSync(join(directory, "drafts", name), "x")
      const lock = headPath(directory, "notes").replace(/json$/, "lock")
      Fs.mkdirSync(lock)
      Fs.writeFileSync(join(lock, `${dead}.${"0".repeat(12)}.0.writer`), "")
      const livingLock = headPath(directory, "other").replace(/json$/, "lock")
      const claim = `${Identity.self()}.${"0".repeat(12)}.0.writer`
      Fs.mkdirSync(livingLock)
      Fs.writeFileSync(join(livingLock, claim), "")
      yield* openAt(directory)
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "drafts")).sort(), [livingDraft!, "mine.tmp"].sort())
      assert.isTrue(yield* heads.compareAndSet("notes", undefined, head(1)))
      assert.deepStrictEqual(Fs.readdirSync(lock), [])
      const waiting = yield* Effect.timeoutOption(heads.compareAndSet("other", undefined, head(1)), "200 millis")
      assert.isTrue(Option.isNone(waiting))
      assert.deepStrictEqual(Fs.readdirSync(livingLock), [claim])
    })
  )

  law("make, move and remove as few files as a change needs", (directory) =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* openAt(directory)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const replacing = yield* changesDuring(heads.compareAndSet("notes", head(1), head(2)))
      assert.deepStrictEqual(replacing, ["create", "rename"])
      // The folder of this content exists from now on.
      yield* blobs.put(bytes)
      yield* blobs.delete([hash])
      assert.deepStrictEqual(yield* changesDuring(blobs.put(bytes)), ["create", "rename"])
      assert.deepStrictEqual(yield* changesDuring(heads.compareAndSet("notes", head(1), head(2))), ["create", "unlink"])
      assert.deepStrictEqual(yield* changesDuring(heads.delete("notes", head(2))), ["create", "rename", "unlink", "rmdir"])
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "heads")), [])
    })
  )

  for (const fsync of [false, true]) {
    law(`publish a head only while the entry in the lock directory is there, with fsync: ${fsync}`, (directory) =>
      Effect.gen(function* () {
        const { heads } = yield* openAt(directory, fsync)
        yield* heads.compareAndSet("notes", undefined, head(1))
        const { readdirSync } = NodeFs
        // A process that takes this process for dead removes its entry.
        NodeFs.readdirSync = ((path: string, ...rest: []) => {
          const names = readdirSync(path, ...rest)
          if (path.endsWith(".lock")) for (const name of names) Fs.unlinkSync(join(path, name))
          return names
        }) as typeof readdirSync
        const error = yield* Effect.ensuring(
          Effect.flip(heads.compareAndSet("notes", head(1), head(2))),
          Effect.sync(() => (NodeFs.readdirSync = readdirSync))
        )
        assert.strictEqual(error.reason, "unavailable")
        assert.strictEqual((yield* heads.get("notes"))?.sequence, 1)
        assert.isTrue(yield* heads.compareAndSet("notes", head(1), head(2)))
        assert.deepStrictEqual(Fs.readdirSync(join(directory, "drafts")), [])
      })
    )
  }

  law("delete no head that another process has published since it removed the entry", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const path = headPath(directory, "notes")
      const lock = path.replace(/json$/, "lock")
      const later = Fs.readFileSync(path, "utf8").replace('"sequence":1', '"sequence":2')
      const { closeSync, openSync } = NodeFs
      let reading: number | undefined
      NodeFs.openSync = (opened, ...rest) => {
        const descriptor = openSync(opened, ...rest)
        if (opened === path) reading = descriptor
        return descriptor
      }
      NodeFs.closeSync = (descriptor) => {
        closeSync(descriptor)
        if (descriptor !== reading) return
        Object.assign(NodeFs, { closeSync, openSync })
        // This process is paused here, after its look at the head, for longer than the lease of its entry.
        for (const name of Fs.readdirSync(lock)) Fs.unlinkSync(join(lock, name))
        Fs.writeFileSync(path, later)
      }
      const isDeleted = yield* Effect.ensuring(
        heads.delete("notes", head(1)),
        Effect.sync(() => Object.assign(NodeFs, { closeSync, openSync }))
      )
      assert.isFalse(isDeleted)
      assert.deepStrictEqual(yield* heads.get("notes"), head(2))
      assert.deepStrictEqual(Fs.readdirSync(lock), [])
      assert.isTrue(yield* heads.delete("notes", head(2)))
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "heads")), [])
    })
  )

  law("leave no entry in the lock directory if the disk reports a failure when the entry is closed", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const lock = headPath(directory, "notes").replace(/json$/, "lock")
      const { closeSync, openSync } = NodeFs
      let entry: number | undefined
      NodeFs.openSync = (path, ...rest) => {
        const descriptor = openSync(path, ...rest)
        if (String(path).startsWith(lock)) entry = descriptor
        return descriptor
      }
      NodeFs.closeSync = (descriptor) => {
        closeSync(descriptor)
        if (descriptor === entry) throw Object.assign(new Error("the quota is used up"), { code: "EDQUOT", syscall: "close" })
      }
      const error = yield* Effect.ensuring(
        Effect.flip(heads.compareAndSet("notes", head(1), head(2))),
        Effect.sync(() => Object.assign(NodeFs, { closeSync, openSync }))
      )
      assert.strictEqual(error.reason, "full")
      // Other processes would wait for the entry until this process ends.
      assert.deepStrictEqual(Fs.readdirSync(lock), [])
      assert.isTrue(yield* heads.compareAndSet("notes", head(1), head(2)))
    })
  )

  law("wait with a flushed head until another process has left the lock directory", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory, true)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const lock = headPath(directory, "notes").replace(/json$/, "lock")
      Fs.mkdirSync(lock, { recursive: true })
      const entry = join(lock, `${Identity.self()}.${"0".repeat(12)}.0.writer`)
      Fs.writeFileSync(entry, "")
      const { readdirSync } = NodeFs
      let looks = 0
      NodeFs.readdirSync = ((path: string, ...rest: []) => {
        if (path === lock && ++looks === 3) Fs.unlinkSync(entry)
        return readdirSync(path, ...rest)
      }) as typeof readdirSync
      const isDone = yield* Effect.ensuring(
        heads.compareAndSet("notes", head(1), head(2)),
        Effect.sync(() => (NodeFs.readdirSync = readdirSync))
      )
      assert.isTrue(isDone)
      assert.strictEqual(looks, 3)
      assert.deepStrictEqual(yield* heads.get("notes"), head(2))
      assert.deepStrictEqual(Fs.readdirSync(lock), [])
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "drafts")), [])
    })
  )

  law("make no lock directory that stays for a workspace that does not exist", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory)
      assert.isFalse(yield* heads.compareAndSet("notes", head(1), head(2)))
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "heads")), [])
    })
  )

  law("replace a head if the lock directory has only an expired entry of another thread", (directory) =>
    Effect.gen(function* () {
      const { heads } = yield* openAt(directory)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const lock = headPath(directory, "notes").replace(/json$/, "lock")
      // Another thread of this process may have left the entry, so its age decides, by the clock of the own entry.
      const entry = join(lock, `${Identity.self()}.${"0".repeat(12)}.0.writer`)
      Fs.mkdirSync(lock, { recursive: true })
      Fs.writeFileSync(entry, "")
      Fs.utimesSync(entry, 1, 1)
      assert.isTrue(yield* heads.compareAndSet("notes", head(1), head(2)))
      assert.deepStrictEqual(yield* heads.get("notes"), head(2))
      assert.deepStrictEqual(Fs.readdirSync(lock), [])
    })
  )

  law("fail with unavailable if the directory is removed, and never with a path of the host", (directory) =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* openAt(directory)
      Fs.rmSync(directory, { recursive: true })
      for (const call of [blobs.put(bytes), heads.compareAndSet("notes", undefined, head(1)), Stream.runCollect(blobs.list)]) {
        const error = yield* Effect.flip(call as Effect.Effect<unknown, Stores.StoreError>)
        assert.strictEqual(error.reason, "unavailable")
        assert.notInclude(error.detail, directory)
      }
    })
  )
})

describe.runIf(needs("full disks", canMount, "it needs root and a kernel that lets it mount a tmpfs"))("a full disk", () => {
  it.live("fails with full, leaves nothing behind, and accepts changes again when there is space", () =>
    Effect.gen(function* () {
      const top = yield* disk("size=2m")
      const directory = join(top, "store")
      const { blobs, heads } = yield* openAt(directory)
      yield* heads.compareAndSet("notes", undefined, head(1))
      const large = new Uint8Array(3 << 20).fill(7)
      assert.strictEqual((yield* Effect.flip(blobs.put(large))).reason, "full")
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "drafts")), [])
      yield* blobs.put(large.subarray(0, 1000))
      Fs.writeFileSync(join(top, "ballast"), "")
      try {
        for (;;) Fs.appendFileSync(join(top, "ballast"), Buffer.alloc(4096))
      } catch {
        // The disk is full.
      }
      assert.strictEqual((yield* Effect.flip(heads.compareAndSet("notes", head(1), head(2)))).reason, "full")
      assert.deepStrictEqual((yield* heads.get("notes"))?.sequence, 1)
      Fs.rmSync(join(top, "ballast"))
      assert.isTrue(yield* heads.compareAndSet("notes", head(1), head(2)))
    }).pipe(Effect.scoped)
  )
})

describe("processes that are killed by SIGKILL", () => {
  it.live("lose no confirmed commit, make none twice, and do not block other processes", () =>
    Effect.gen(function* () {
      const place = { directory: makeFresh(), fsync: false }
      const children = ["a", "b", "c"].map((name) => writer({ place, name, fibers: 3 }))
      for (let round = 0; round < 5; round++) {
        const victim = children.at(-1)!
        yield* Effect.promise(() => victim.dots(300 * (round + 1)))
        victim.process.kill("SIGKILL")
        const { errors, signal } = yield* Effect.promise(() => victim.ended)
        assert.strictEqual(signal, "SIGKILL", errors)
        children.push(writer({ place, name: `later${round}`, fibers: 3 }))
      }
      yield* Effect.promise(() => children.at(-1)!.dots(300))
      for (const child of children) child.process.kill("SIGKILL")
      for (const child of children) assert.strictEqual((yield* Effect.promise(() => child.ended)).signal, "SIGKILL")
      const authors = yield* readChain(yield* openAt(place.directory))
      assert.isAbove(authors.length, 20)
      assert.isAbove(new Set(children.flatMap(answered).map(([, author]) => author.split(":")[0])).size, 2)
      expectAnswered(authors, children)
      assert.deepStrictEqual(Fs.readdirSync(join(place.directory, "drafts")), [])
    }).pipe(Effect.scoped)
  )
})
