import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import fs, * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { collect, needsCollecting } from "../../../src/history/git/collect.ts"
import { open, type Store } from "../../../src/history/git/store.ts"
import { pause } from "../../../src/runtime/processLock.ts"
import * as Turns from "../../../src/history/git/turns.ts"
import * as Identity from "../../../src/runtime/processIdentity.ts"
import { pick, random } from "../../differential/trees.ts"
import { canMount, disk, needs } from "../../faults/ground.ts"
import {
  allObjects,
  commit,
  contentOf,
  directory,
  fresh,
  fsck,
  git,
  hasGit,
  hasProc,
  noise,
  reachableObjects,
  snapshot,
  type Taken,
  type Tree
} from "./support.ts"

/** Returns the start time of a process in clock ticks since boot, encoded as in `processIdentity`. */
const startOf = (pid: number): string => {
  const text = Fs.readFileSync(`/proc/${pid}/stat`, "latin1")
  return BigInt(text.slice(text.lastIndexOf(")") + 2).split(" ")[19]!).toString(36)
}

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined

const packsIn = (store: Store): ReadonlyArray<string> =>
  Fs.readdirSync(store.packDirectory).filter((name) => name.endsWith(".pack"))

/** Returns a random tree. Some of its files are also in other trees. */
const treeOf = (next: () => number): Tree =>
  Object.fromEntries(
    Array.from({ length: 1 + Math.floor(next() * 8) }, () => [
      pick(next, ["a", "b", "c/d", "c/e", "f/g/h"]),
      next() < 0.3
        ? noise(next, Math.floor(next() * 20_000))
        : `${pick(next, ["x", "y", "z"])}\n`.repeat(Math.floor(next() * 500))
    ])
  )

const asText = (tree: Tree): Record<string, string> =>
  Object.fromEntries(Object.entries(tree).map(([path, bytes]) => [path, Buffer.from(bytes as string).toString("latin1")]))

interface Expected {
  readonly taken: Taken
  readonly tree: Tree
  /** The id of the tree in git, as computed when the tree was stored. */
  readonly id: string
}

type All = Map<string, Expected>

const put = (store: Store, tree: Tree, seconds: number) =>
  Effect.map(snapshot(store, tree, seconds), (taken): Expected => ({
    taken,
    tree,
    id: git(store.directory, "rev-parse", `${taken.commit}^{tree}`)
  }))

/** Checks with git that every object matches its id and every snapshot has its tree. */
const check = (store: Store, expected: All): void => {
  assert.strictEqual(fsck(store.directory), "")
  const refs = git(store.directory, "for-each-ref", "--sort=refname", "--format=%(refname:lstrip=2) %(tree)")
  const lines = [...expected].map(([name, { id }]) => `${name} ${id}`)
  assert.deepStrictEqual(refs, lines.toSorted().join("\n"))
}

const checkContent = (store: Store, expected: All): void => {
  check(store, expected)
  for (const { taken, tree } of expected.values()) assert.deepStrictEqual(contentOf(store, taken), asText(tree))
}

const many = (store: Store, count: number, next: () => number) =>
  Effect.gen(function* () {
    const made: Array<readonly [Taken, Tree]> = []
    for (let i = 0; i < count; i++) {
      const tree = treeOf(next)
      made.push([yield* snapshot(store, tree, i), tree])
    }
    const refs = git(store.directory, "for-each-ref", "--format=%(refname:lstrip=2) %(tree)", "refs/snapshots").split("\n")
    const ids = new Map(refs.map((line) => line.split(" ") as [string, string]))
    return new Map(made.map(([taken, tree]): [string, Expected] => [taken.id, { taken, tree, id: ids.get(taken.id)! }]))
  })

const age = (path: string, seconds: number): void => {
  const { mtimeMs } = Fs.statSync(path)
  Fs.utimesSync(path, mtimeMs / 1000 - seconds, mtimeMs / 1000 - seconds)
}

describe.runIf(hasGit)("collecting objects", () => {
  for (let seed = 1; seed <= (soak ? 40 : 3); seed++) {
    it.effect(`loses nothing over random changes (seed ${seed})`, () =>
      Effect.gen(function* () {
        const next = random(seed)
        const store = yield* fresh
        const expected: All = new Map()
        for (let i = 0; i < 30; i++) {
          const step = next()
          if (step < 0.6) {
            const each = yield* put(store, treeOf(next), i)
            expected.set(each.taken.id, each)
          } else if (step < 0.85 && expected.size > 0) {
            const id = pick(next, [...expected.keys()])
            assert.isTrue(yield* store.snapshots.remove(id))
            expected.delete(id)
          } else {
            const { outcome } = yield* collect(store, { maxPacks: pick(next, [1, 3, 50]), maxWaste: pick(next, [0, 0.3]) })
            assert.strictEqual(outcome, "done")
          }
        }
        yield* collect(store, { maxPacks: 1, maxWaste: 0 })
        checkContent(store, expected)
        assert.deepStrictEqual(allObjects(store), reachableObjects(store))
        assert.isAtMost(packsIn(store).length, 1)
      })
    )
  }

  it.effect("merges many packs into few, and is due when there are many", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const expected = yield* many(store, 51, random(7))
      assert.strictEqual(packsIn(store).length, 51)
      assert.isTrue(yield* needsCollecting(store))
      yield* collect(store)
      assert.isBelow(packsIn(store).length, 10)
      assert.isFalse(yield* needsCollecting(store))
      check(store, expected)
    })
  )

  it.effect("is due after many snapshots are forgotten, and frees their space", () =>
    Effect.gen(function* () {
      const next = random(8)
      const store = yield* fresh
      const taken: Array<Taken> = []
      for (let i = 0; i < 17; i++) taken.push(yield* snapshot(store, { a: noise(next, 50_000) }, i))
      assert.isFalse(yield* needsCollecting(store))
      for (const { id } of taken.slice(1)) yield* store.snapshots.remove(id)
      assert.isTrue(yield* needsCollecting(store))
      const before = (yield* store.stats).bytes
      const { freedBytes, outcome } = yield* collect(store)
      assert.strictEqual(outcome, "done")
      assert.isFalse(yield* needsCollecting(store))
      assert.isAbove(freedBytes, 16 * 50_000)
      assert.isBelow((yield* store.stats).bytes, before - 16 * 50_000)
      assert.deepStrictEqual(allObjects(store), reachableObjects(store))
    })
  )

  it.effect("removes every object when no snapshot is left", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { id } = yield* snapshot(store, { a: "1" })
      yield* store.snapshots.remove(id)
      yield* collect(store)
      assert.deepStrictEqual([allObjects(store), packsIn(store)], [[], []])
      check(store, new Map())
    })
  )

  it.effect("changes nothing in a store that was just collected", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      yield* many(store, 5, random(9))
      yield* collect(store, { maxPacks: 1 })
      const before = Fs.readdirSync(store.directory, { recursive: true })
      assert.deepStrictEqual(yield* collect(store, { maxPacks: 1 }), { outcome: "done", freedBytes: 0 })
      assert.deepStrictEqual(Fs.readdirSync(store.directory, { recursive: true }), before)
    })
  )

  it.effect("packs loose objects and references", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { commit: made, id } = yield* snapshot(store, { a: "1" })
      const refs = join(store.directory, "refs", "snapshots")
      for (let i = 0; i < 201; i++) Fs.writeFileSync(join(refs, randomUUID()), `${made}\n`)
      const tree = yield* store.git.run(["mktree"], { input: "" })
      const loose = yield* store.git.run([
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@a",
        "commit-tree",
        tree.stdout.toString().trim()
      ])
      git(store.directory, "update-ref", "refs/heads/people", loose.stdout.toString().trim())
      yield* collect(store)
      assert.deepStrictEqual(Fs.readdirSync(join(store.directory, "objects")).sort(), ["info", "pack"])
      assert.deepStrictEqual(Fs.readdirSync(refs), [])
      assert.strictEqual((yield* store.snapshots.list).length, 202)
      assert.isTrue(yield* store.snapshots.remove(id))
      assert.strictEqual(git(store.directory, "rev-parse", "refs/heads/people"), loose.stdout.toString().trim())
      assert.strictEqual(fsck(store.directory), "")
    })
  )

  it.effect("keeps packs that are marked with .keep", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { id } = yield* snapshot(store, { a: "1" })
      const [pack] = packsIn(store)
      Fs.writeFileSync(join(store.packDirectory, pack!.replace(".pack", ".keep")), "")
      yield* store.snapshots.remove(id)
      yield* collect(store, { maxWaste: 0 })
      assert.deepStrictEqual(packsIn(store), [pack])
    })
  )

  for (let seed = 1; seed <= (soak ? 30 : 4); seed++) {
    it.effect(`keeps one copy of each object that is in many packs (seed ${seed})`, () =>
      Effect.gen(function* () {
        const next = random(seed)
        const store = yield* fresh
        const expected = yield* many(store, 8, next)
        const ids = allObjects(store)
        for (let i = 0; i < 8; i++) {
          const some = ids.filter(() => next() < 0.4)
          yield* store.git.run(["pack-objects", "--quiet", join(store.packDirectory, "pack")], {
            input: `${some.join("\n")}\n`
          })
        }
        for (const id of [...expected.keys()].slice(0, seed % 2 === 0 ? 0 : 3)) {
          yield* store.snapshots.remove(id)
          expected.delete(id)
        }
        const options = { maxPacks: seed % 4 < 2 ? 50 : 3, maxWaste: 0 }
        if (next() < 0.5) yield* store.withoutRemoval(collect(store, options))
        yield* collect(store, options)
        checkContent(store, expected)
        assert.deepStrictEqual(allObjects(store), reachableObjects(store))
        assert.strictEqual((yield* store.stats).objects, reachableObjects(store).length)
      })
    )
  }

  it.effect("keeps a pack if the merged pack is identical to it", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const expected = yield* many(store, 3, random(16))
      yield* collect(store, { maxPacks: 1 })
      const before = packsIn(store)
      const [id] = allObjects(store)
      yield* store.git.run(["pack-objects", "--quiet", join(store.packDirectory, "pack")], { input: `${id}\n` })
      assert.strictEqual(packsIn(store).length, 2)
      yield* store.withoutRemoval(collect(store, { maxPacks: 1 }))
      assert.deepStrictEqual(packsIn(store), before)
      checkContent(store, expected)
    })
  )

  it.effect("loses nothing when the new pack cannot be moved into place", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const expected = yield* many(store, 4, random(17))
      const copy = yield* Effect.flatMap(directory, (base) => {
        Fs.cpSync(store.directory, join(base, "copy"), { recursive: true })
        Fs.chmodSync(join(base, "copy"), 0o700)
        return open(join(base, "copy"))
      })
      yield* collect(copy, { maxPacks: 1 })
      const [name] = packsIn(copy)
      const inTheWay = join(store.packDirectory, name!)
      Fs.mkdirSync(join(inTheWay, "something"), { recursive: true })
      assert.strictEqual((yield* Effect.flip(collect(store, { maxPacks: 1 }))).reason, "io")
      Fs.rmSync(inTheWay, { recursive: true })
      checkContent(store, expected)
      assert.strictEqual(packsIn(store).length, 4)
    })
  )

  it.effect("removes nothing when an object of a snapshot is missing", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const first = yield* snapshot(store, { a: "1".repeat(1000) })
      const [pack] = packsIn(store)
      const second = yield* snapshot(store, { b: "2" })
      yield* store.snapshots.remove(second.id)
      Fs.renameSync(join(store.packDirectory, pack!.replace(".pack", ".idx")), join(store.directory, "away"))
      const before = packsIn(store)
      const fault = yield* Effect.flip(collect(store, { maxPacks: 1, maxWaste: 0 }))
      assert.strictEqual(fault.reason, "corrupt")
      assert.deepStrictEqual(packsIn(store), before)
      Fs.renameSync(join(store.directory, "away"), join(store.packDirectory, pack!.replace(".pack", ".idx")))
      assert.deepStrictEqual(contentOf(store, first), { a: "1".repeat(1000) })
    })
  )
})

describe.runIf(hasGit)("an index with wrong offsets", () => {
  it.effect("makes a garbage collection fail as corrupt and removes nothing", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      yield* snapshot(store, { a: "1", b: "2" })
      const removed = yield* snapshot(store, { c: "3" })
      yield* store.snapshots.remove(removed.id)
      const [pack] = packsIn(store)
      const path = join(store.packDirectory, pack!.replace(".pack", ".idx"))
      const index = Fs.readFileSync(path)
      // The offset of the first object, after the ids and their checksums, now points into the table of 64-bit
      // offsets.
      const count = index.readUInt32BE(8 + 255 * 4)
      index.writeUInt32BE(0x80000007, 8 + 256 * 4 + count * 24)
      Fs.chmodSync(path, 0o600)
      Fs.writeFileSync(path, index)
      const before = packsIn(store)
      const fault = yield* Effect.flip(collect(store, { maxWaste: 0 }))
      assert.strictEqual(fault.reason, "corrupt")
      assert.deepStrictEqual(packsIn(store), before)
    })
  )
})

describe.runIf(hasGit)("while objects are collected", () => {
  it.effect("objects that a holder needs stay until the holder releases them", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const other = yield* open(store.directory)
      const old = yield* snapshot(store, { a: "old" })
      yield* store.snapshots.remove(old.id)
      yield* other.withoutRemoval(
        Effect.gen(function* () {
          const made = yield* commit(other, { b: "new" })
          const before = allObjects(store)
          for (const maxPacks of [50, 1]) {
            assert.strictEqual((yield* collect(store, { maxPacks, maxWaste: 0 })).outcome, "held")
            assert.deepStrictEqual(allObjects(store), before)
          }
          assert.strictEqual(packsIn(store).length, 1)
          yield* other.snapshots.put(old.id, old.commit)
          yield* other.snapshots.put(randomUUID(), made)
        })
      )
      assert.strictEqual((yield* collect(store, { maxWaste: 0 })).outcome, "done")
      assert.deepStrictEqual(contentOf(store, old), { a: "old" })
      for (const { id } of yield* store.snapshots.list) yield* store.snapshots.remove(id)
      yield* collect(store)
      assert.deepStrictEqual(allObjects(store), [])
    })
  )

  it.effect("a holder that reuses unreferenced objects loses nothing", () =>
    Effect.gen(function* () {
      const next = random(10)
      const store = yield* fresh
      const other = yield* open(store.directory)
      const trees = Array.from({ length: 6 }, () => treeOf(next))
      const made = yield* Effect.forEach(trees, (tree, i) => put(store, tree, i))
      const rounds = soak ? 400 : 25
      const state = { isOver: false }
      const reused = Effect.gen(function* () {
        for (let i = 0; i < rounds; i++) {
          const at = Math.floor(next() * trees.length)
          yield* other.snapshots.remove(made[at]!.taken.id)
          yield* other.withoutRemoval(
            Effect.gen(function* () {
              // Behaves like a capture: reuses an existing commit only if all of its objects exist.
              const [there] = yield* other.reader.sizes([made[at]!.taken.commit])
              const isWhole =
                there !== undefined &&
                (yield* Effect.exit(other.git.run(["rev-list", "--objects", made[at]!.taken.commit])))._tag === "Success"
              const now = isWhole ? made[at]!.taken.commit : yield* commit(other, trees[at]!, at)
              assert.strictEqual(now, made[at]!.taken.commit)
              yield* other.snapshots.put(made[at]!.taken.id, now)
            })
          )
        }
        state.isOver = true
      })
      const outcomes: Array<string> = []
      const collecting = Effect.gen(function* () {
        while (!state.isOver) outcomes.push((yield* collect(store, { maxPacks: 2, maxWaste: 0 })).outcome)
      })
      yield* Effect.all([reused, collecting], { concurrency: 2 })
      assert.include(outcomes, "held")
      assert.include(outcomes, "done")
      checkContent(store, new Map(made.map((each) => [each.taken.id, each])))
    })
  )

  it.effect("another open store can still read every object", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const reading = yield* open(store.directory)
      const expected = yield* many(store, 20, random(11))
      const ids = allObjects(store)
      for (const id of ids.slice(0, ids.length / 2)) yield* reading.reader.object(id)
      yield* collect(store, { maxPacks: 1 })
      for (const id of ids) yield* reading.reader.object(id)
      yield* reading.reader.sizes(ids)
      for (const id of [...expected.keys()].slice(5)) yield* store.snapshots.remove(id)
      yield* collect(store, { maxWaste: 0 })
      const left = new Set(allObjects(store))
      assert.isBelow(left.size, ids.length)
      for (const id of left) yield* reading.reader.object(id)
    })
  )

  it.effect("a second garbage collection is busy, and a killed garbage collection blocks nothing", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const taken = yield* snapshot(store, { a: "1" })
      yield* store.snapshots.remove(taken.id)
      const turn = Turns.acquire(store.directory, "collector")
      assert.strictEqual((yield* collect(store)).outcome, "busy")
      Turns.release(turn)
      // A process that died while it held all locks of the store.
      const module = fileURLToPath(new URL("../../../src/history/git/turns.ts", import.meta.url))
      const script = `const { acquire } = await import(${JSON.stringify(module)});
        for (const role of ["holder", "collector", "remover"]) acquire(${JSON.stringify(store.directory)}, role);
        process.kill(process.pid, "SIGKILL")`
      assert.throws(() => execFileSync(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" }))
      assert.strictEqual(Fs.readdirSync(Turns.directoryOf(store.directory)).length, 3)
      yield* store.withoutRemoval(Effect.void)
      assert.strictEqual((yield* collect(store)).outcome, "done")
      assert.deepStrictEqual(allObjects(store), [])
      assert.deepStrictEqual(Fs.readdirSync(Turns.directoryOf(store.directory)), [])
    })
  )

  it.effect.runIf(hasProc)("a forged lock is ignored, unless its name refers to a living process", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const turns = Turns.directoryOf(store.directory)
      const living = `${Identity.self().split("-")[0]}-${process.ppid.toString(36)}-${startOf(process.ppid)}`
      const mark = "a".repeat(12)
      const later = Date.now() / 1000 + 1e8
      // A lock from the future, a directory and a link.
      Fs.writeFileSync(join(turns, `elsewhere-1-1.${mark}.0.remover`), "")
      Fs.utimesSync(join(turns, `elsewhere-1-1.${mark}.0.remover`), later, later)
      Fs.mkdirSync(join(turns, `${living}.${mark}.1.remover`))
      Fs.symlinkSync(store.directory, join(turns, `${living}.${mark}.2.remover`))
      Fs.writeFileSync(join(turns, "notes.txt"), "")
      yield* store.withoutRemoval(Effect.void)
      assert.isTrue(Fs.existsSync(join(turns, "notes.txt")))
      Fs.writeFileSync(join(turns, `${living}.${mark}.3.remover`), "")
      const self = Turns.acquire(store.directory, "holder")
      assert.strictEqual(Turns.findOther(store.directory, "remover", self), `${living}.${mark}.3.remover`)
      Turns.release(self)
    })
  )

  it.effect("a holder waits until the removal ends", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const turn = Turns.acquire(store.directory, "remover")
      let isIn = false
      const fiber = yield* Effect.forkChild(
        store.withoutRemoval(
          Effect.sync(() => {
            isIn = true
          })
        ),
        { startImmediately: true }
      )
      yield* pause(30)
      assert.isFalse(isIn)
      Turns.release(turn)
      yield* Fiber.join(fiber)
      assert.isTrue(isIn)
      const waiting = Turns.acquire(store.directory, "remover")
      const interrupted = yield* Effect.forkChild(store.withoutRemoval(Effect.void), { startImmediately: true })
      yield* Fiber.interrupt(interrupted)
      Turns.release(waiting)
      assert.deepStrictEqual(Fs.readdirSync(Turns.directoryOf(store.directory)), [])
    })
  )
})

describe.runIf(hasGit)("leftovers in a store", () => {
  it.effect("are removed if they are old or belong to no living process, and young leftovers stay", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      yield* snapshot(store, { a: "1" })
      const packs = Fs.readdirSync(store.packDirectory)
      const at = (name: string): string => join(store.packDirectory, name)
      const young = ["tmp_pack_abcdef", ".tmp-1-pack-x.pack", "pack-1234.pack"]
      const old = ["tmp_pack_ghijkl", "tmp_idx_mnopqr", ".tmp-2-pack-x.pack", "pack-5678.pack", "pack-5678.rev"]
      const ours = ["tmp_pack_0123456789abcdef", "tmp_idx_0123456789abcdef", "pack-9abc.idx"]
      for (const name of [...young, ...old, ...ours]) Fs.writeFileSync(at(name), "x")
      for (const name of old) age(at(name), 3700)
      const lock = join(store.directory, "packed-refs.lock")
      Fs.writeFileSync(lock, "")
      yield* store.withoutRemoval(collect(store))
      assert.deepStrictEqual(
        Fs.readdirSync(store.packDirectory).sort(),
        [...packs, ...young, "tmp_pack_0123456789abcdef", "tmp_idx_0123456789abcdef"].sort()
      )
      assert.isTrue(Fs.existsSync(lock))
      age(lock, 3700)
      yield* collect(store)
      assert.deepStrictEqual(Fs.readdirSync(store.packDirectory).sort(), [...packs, ...young].sort())
      assert.isFalse(Fs.existsSync(lock))
    })
  )

  it.effect("do not include the temporary pack of a process that begins to write during the garbage collection", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      yield* snapshot(store, { a: "1" })
      const temporary = join(store.packDirectory, "tmp_pack_0123456789abcdef")
      const writing = store.withoutRemoval(Effect.sync(() => Fs.writeFileSync(temporary, "")))
      let holder: Fiber.Fiber<void, unknown> | undefined
      const { readdirSync } = fs
      // The garbage collection lists the packs after it has looked for processes that need objects.
      fs.readdirSync = ((...args: Parameters<typeof readdirSync>) => {
        if (args[0] === store.packDirectory) holder ??= Effect.runFork(writing)
        return readdirSync(...args)
      }) as typeof readdirSync
      yield* Effect.ensuring(
        collect(store),
        Effect.sync(() => void (fs.readdirSync = readdirSync))
      )
      yield* Fiber.join(holder!)
      assert.isTrue(Fs.existsSync(temporary))
    })
  )
})

/** Kills the program some time after it begins; it may have finished by then. */
const killed = (store: string, milliseconds: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL("./collecting.ts", import.meta.url))
    const child = spawn(process.execPath, ["--no-warnings", program, store], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, NODE_COMPILE_CACHE: join(store, "../cache") }
    })
    let said = ""
    child.stdout.on("data", (bytes: Buffer) => {
      if (said === "") setTimeout(() => child.kill("SIGKILL"), milliseconds)
      said += bytes.toString()
    })
    child.on("error", reject)
    child.on("exit", (_, signal) =>
      signal === "SIGKILL" ? resolve(said) : reject(new Error(`it has ended by itself: ${said}`))
    )
  })

describe.runIf(hasGit)("a garbage collection that ends early", () => {
  it.live("by SIGKILL loses nothing, and the next garbage collection completes it", () =>
    Effect.gen(function* () {
      const next = random(12)
      const base = yield* directory
      const store = yield* open(join(base, "store"))
      const expected = yield* many(store, 10, next)
      let unfinished = 0
      // A busy machine may deliver the kills too late, so more rounds may be needed.
      for (let round = 0; round < (soak ? 200 : 3) || (unfinished === 0 && round < 20); round++) {
        for (const [id, entry] of yield* many(store, 3, next)) expected.set(id, entry)
        for (let i = 0; i < 3; i++) {
          const id = pick(next, [...expected.keys()])
          yield* store.snapshots.remove(id)
          expected.delete(id)
        }
        const said = yield* Effect.promise(() => killed(store.directory, next() * (soak ? 250 : 80)))
        if (!said.includes("ended")) unfinished++
        check(store, expected)
      }
      assert.isAbove(unfinished, 0)
      assert.strictEqual((yield* collect(store, { maxPacks: 1, maxWaste: 0 })).outcome, "done")
      checkContent(store, expected)
      assert.deepStrictEqual(allObjects(store), reachableObjects(store))
      assert.isFalse(Fs.existsSync(join(store.directory, "packing")))
    })
  )

  it.live("by interruption loses nothing and leaves no temporary files", () =>
    Effect.gen(function* () {
      const next = random(13)
      const store = yield* fresh
      const expected = yield* many(store, 10, next)
      for (let round = 0; round < (soak ? 20 : 4); round++) {
        for (const [id, entry] of yield* many(store, 3, next)) expected.set(id, entry)
        const id = pick(next, [...expected.keys()])
        yield* store.snapshots.remove(id)
        expected.delete(id)
        const fiber = yield* Effect.forkChild(collect(store, { maxPacks: 2, maxWaste: 0 }), { startImmediately: true })
        yield* pause(next() * 120)
        yield* Fiber.interrupt(fiber)
        assert.isFalse(Fs.existsSync(join(store.directory, "packing")))
        assert.deepStrictEqual(Fs.readdirSync(Turns.directoryOf(store.directory)), [])
        assert.strictEqual(fsck(store.directory), "")
      }
      check(store, expected)
    })
  )
})

describe.runIf(hasGit && needs("collecting on a disk that is full", canMount, "run as root where tmpfs can be mounted"))(
  "a garbage collection on a nearly full disk",
  () => {
    const size = 2 ** 19
    const pieces = (next: () => number, count: number) => Array.from({ length: count }, () => noise(next, size))
    const files = (all: ReadonlyArray<Buffer>): Tree => Object.fromEntries(all.map((bytes, i) => [`f${i}`, bytes]))

    it.effect("frees the space of unreachable objects even if the old and the new pack do not fit on the disk together", () =>
      Effect.gen(function* () {
        const next = random(14)
        const base = yield* disk("size=12m")
        const store = yield* open(join(base, "store"))
        // A pack of 8 MiB, of which 2 MiB are in use. The disk has no space for a second pack of that size.
        const many = pieces(next, 16)
        const all = yield* snapshot(store, files(many))
        const kept = yield* put(store, files(many.slice(0, 4)), 2)
        yield* store.snapshots.remove(all.id)
        assert.strictEqual((yield* collect(store)).outcome, "done")
        checkContent(store, new Map([[kept.taken.id, kept]]))
        assert.isBelow((yield* store.stats).bytes, 5 * size)
      })
    )

    it.effect("loses nothing if no space is left, and says that the disk is full", () =>
      Effect.gen(function* () {
        const next = random(15)
        const base = yield* disk("size=8m")
        const store = yield* open(join(base, "store"))
        const many = pieces(next, 8)
        const all = yield* snapshot(store, files(many))
        const kept = yield* put(store, files(many.slice(0, 4)), 2)
        yield* store.snapshots.remove(all.id)
        assert.throws(() => Fs.writeFileSync(join(base, "filler"), Buffer.alloc(16 * size)), "ENOSPC")
        const fault = yield* Effect.flip(collect(store, { maxWaste: 0 }))
        assert.strictEqual(fault.reason, "io")
        assert.include(fault.detail, "is full")
        assert.isFalse(Fs.existsSync(join(store.directory, "packing")))
        checkContent(store, new Map([[kept.taken.id, kept]]))
        Fs.unlinkSync(join(base, "filler"))
        yield* collect(store, { maxWaste: 0 })
        checkContent(store, new Map([[kept.taken.id, kept]]))
      })
    )
  }
)
