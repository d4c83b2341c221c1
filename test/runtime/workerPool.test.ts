import { assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { EventEmitter } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { type BatchResult, make, shared, type StartWorker, type WorkerPool } from "../../src/runtime/workerPool.ts"
import type { Listing } from "../../src/runtime/lister.ts"
import { found, type PackedMatches } from "../../src/runtime/packed.ts"
import type { Query } from "../../src/model/search.ts"
import type { Batch } from "../../src/runtime/searcher.ts"
import { progress } from "../../src/runtime/serve.ts"
import { batchOf, content, expected, queries, query, question } from "./searched.ts"

const start: StartWorker = (program, shared) => new Worker(program, { eval: true, execArgv: [], env: {}, workerData: shared })
/** Workers that exit when they open a file named `die`, and workers that cannot be started. */
const mortal: StartWorker = (program, shared) =>
  start(
    `const files = require("node:fs"); const open = files.openSync;
     files.openSync = (path, ...rest) => path.endsWith("/die") ? process.exit(7) : open(path, ...rest); ${program}`,
    shared
  )
const impossible: StartWorker = () => {
  throw new Error("no threads here")
}

/** A worker that fails before it is online. */
class Stillborn extends EventEmitter {
  ref() {}
  unref() {}
  postMessage() {}
  terminate = async () => 1
}
const stillborn: StartWorker = () => {
  const worker = new Stillborn()
  setImmediate(() => worker.emit("error", new Error("ERR_WORKER_INIT_FAILED")) && worker.emit("exit", 1))
  return worker as unknown as Worker
}

const using = async (workers: WorkerPool, files: Record<string, Uint8Array | string>, use: (base: string) => Promise<void>) => {
  const base = mkdtempSync(join(tmpdir(), "fs-algebra-workers-"))
  try {
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(base, name), bytes)
    await use(base)
  } finally {
    await workers.end()
    rmSync(base, { recursive: true })
  }
}

const never = Number.POSITIVE_INFINITY
const search = (workers: WorkerPool, query: Query, batch: Batch, budget = never) =>
  new Promise<BatchResult>((resolve) => void workers.search(query, batch, budget, resolve))
const list = (workers: WorkerPool, directories: ReadonlyArray<string>) =>
  new Promise<ReadonlyArray<Listing | string>>((resolve) => void workers.list(directories, resolve))
const foundIn = (answer: BatchResult) => ("_tag" in answer ? answer : found(answer))

const foo = query(question("foo", { literal: "foo" }))
const hostile = query(question("^(a+)+$"))
const evil = `${"a".repeat(64)}b\n`

for (const [name, begin] of Object.entries({ "with workers": start, "without workers": impossible })) {
  describe(`the worker pool, ${name}`, () => {
    it("returns to each caller the results of a search of the decoded text", async () => {
      const workers = make(2, begin)
      const contents = Array.from({ length: 60 }, (_, seed) => content(seed, (seed * seed * 7) % 5000))
      const names = contents.map((_, i) => `f${i}`)
      await using(workers, Object.fromEntries(contents.map((bytes, i) => [names[i]!, bytes])), async (base) => {
        // More queries than a worker caches, each twice.
        const asked = [...queries.slice(0, 20), ...queries.slice(0, 20)]
        const answers = await Promise.all(asked.map((query) => search(workers, query, batchOf(base, names))))
        for (const [i, answer] of answers.entries()) {
          assert.deepStrictEqual(foundIn(answer), contents.map((bytes) => expected(bytes, asked[i]!, 1)) as never)
        }
      })
    })

    it("lists the entries of directories in walk order", async () => {
      const workers = make(2, begin)
      await using(workers, { b: "", "a.b": "", "\uffee": "", "\ud83d\ude00": "", "\ufffd": "" }, async (base) => {
        mkdirSync(join(base, "a"))
        mkdirSync(join(base, "empty"))
        writeFileSync(join(base, "a", "x"), "")
        symlinkSync("b", join(base, "a", "l"))
        symlinkSync("a", join(base, "to"))
        const brief = (listing: Listing | string) =>
          typeof listing === "string" ? listing : [listing.names.split("/"), [...listing.kinds], listing.mayBeLossy]
        const answer = await list(workers, [
          base,
          join(base, "a"),
          join(base, "empty"),
          join(base, "none"),
          join(base, "b"),
          join(base, "to")
        ])
        assert.deepStrictEqual(answer.map(brief), [
          // "a.b" comes before "a/", and characters above U+FFFF come last.
          [["a.b", "a", "b", "empty", "to", "\uffee", "\ufffd", "\ud83d\ude00"], [0, 1, 0, 1, 2, 0, 0, 0], true],
          [["l", "x"], [2, 0], false],
          [[""], [], false],
          "ENOENT",
          "ENOTDIR",
          "ENOTDIR"
        ])
        assert.deepStrictEqual(await list(workers, []), [])
      })
    })

    it("does not answer a cancelled request, and answers the requests after it", async () => {
      const workers = make(1, begin)
      await using(workers, { a: "foo" }, async (base) => {
        const withdrawn: Array<number> = []
        const others: Array<Promise<BatchResult>> = []
        for (let i = 0; i < 8; i++) {
          const withdraw = workers.search(foo, batchOf(base, ["a"]), never, () => withdrawn.push(i))
          others.push(search(workers, foo, batchOf(base, ["a"])))
          withdraw()
          withdraw()
        }
        const answers = await Promise.all(others)
        assert.deepStrictEqual(
          answers.map((answer) => (answer as PackedMatches).files[0]),
          Array.from(others, () => 1)
        )
        assert.deepStrictEqual(withdrawn, [])
      })
    })

    it("fails a search whose pattern cannot run, and no other search", async () => {
      const workers = make(1, begin)
      await using(workers, { a: "foo" }, async (base) => {
        const answer = await search(workers, query(question("(")), batchOf(base, ["a"]))
        assert.include(answer, { _tag: "Failed", index: 0 })
        assert.strictEqual((foundIn(await search(workers, foo, batchOf(base, ["a"]))) as ReadonlyArray<unknown>).length, 1)
      })
    })

    it("answers or fails every pending request when it is closed, and fails later requests", async () => {
      const workers = make(1, begin)
      await using(workers, { a: "foo" }, async (base) => {
        const waiting = [
          search(workers, foo, batchOf(base, ["a"])),
          search(workers, foo, batchOf(base, ["a"])),
          search(workers, foo, batchOf(base, ["a"]))
        ]
        await workers.end()
        for (const answer of await Promise.all([...waiting, search(workers, foo, batchOf(base, ["a"]))])) {
          assert.isTrue(!("_tag" in answer) || answer._tag === "Failed")
        }
        assert.deepStrictEqual(await list(workers, [base]), ["EIO"])
      })
    })
  })
}

describe("the worker pool", () => {
  it("reports the file on which a pattern exceeds its time budget, and completes the other searches", async () => {
    const workers = make(2, start)
    await using(workers, { a: "aaa", b: evil, c: "foo" }, async (base) => {
      const [overrun, ...others] = await Promise.all([
        search(workers, hostile, batchOf(base, ["a", "c", "b", "a"]), 200),
        ...Array.from({ length: 9 }, () => search(workers, foo, batchOf(base, ["c"]), 60_000)),
        search(workers, hostile, batchOf(base, ["a", "c"]), 60_000)
      ])
      assert.deepStrictEqual(overrun, { _tag: "Overrun", index: 2 })
      for (const answer of others) assert.isFalse("_tag" in answer)
    })
  })

  it("applies the budget to each file separately", async () => {
    const workers = make(1, start)
    const names = Array.from({ length: 400 }, (_, i) => `f${i}`)
    await using(workers, Object.fromEntries(names.map((name) => [name, `${"a".repeat(18)}b`])), async (base) => {
      // All files together take longer than the budget.
      const answer = await search(workers, hostile, batchOf(base, names), 1000)
      assert.isFalse("_tag" in answer, JSON.stringify(answer))
    })
  })

  it("frees the worker of an endless search that is cancelled", async () => {
    let seen: Int32Array | undefined
    const workers = make(1, (program, shared) => start(program, (seen ??= shared)))
    await using(workers, { b: evil, c: "foo" }, async (base) => {
      const withdraw = workers.search(hostile, batchOf(base, ["b"]), 600_000, () => assert.fail("it was withdrawn"))
      const behind = search(workers, foo, batchOf(base, ["c"]))
      // Wait until the worker runs the search.
      while (Atomics.load(seen!, progress.ticket) !== 1) await new Promise((resolve) => setImmediate(resolve))
      withdraw()
      assert.isFalse("_tag" in (await behind))
    })
  })

  it("reports the end of a cancelled request once, after the last thread has stopped working on it", async () => {
    let seen: Int32Array | undefined
    const workers = make(1, (program, shared) => start(program, (seen ??= shared)))
    await using(workers, { a: "foo", b: evil }, async (base) => {
      const overs: Array<string> = []
      const over = (name: string) => () => void overs.push(name)
      const answered: Array<string> = []
      const asked = (name: string, file: string, query: Query, budget = never) =>
        workers.search(query, batchOf(base, [file]), budget, () => answered.push(name), over(name))
      await new Promise<void>((resolve) => void workers.search(foo, batchOf(base, ["a"]), never, () => {}, resolve))
      const stuck = asked("stuck", "b", hostile, 600_000)
      const next = asked("next", "a", foo)
      const waiting = asked("waiting", "a", foo)
      const listing = workers.list([base], () => answered.push("listing"), over("listing"))
      while (Atomics.load(seen!, progress.ticket) !== 2) await new Promise((resolve) => setImmediate(resolve))
      // A request that no worker has started ends at once, although another request occupies the only worker.
      for (const withdraw of [next, waiting, listing]) withdraw()
      assert.deepStrictEqual(overs.sort(), ["listing", "next", "waiting"])
      stuck()
      stuck()
      assert.notInclude(overs, "stuck")
      await new Promise<void>((resolve) => void workers.search(foo, batchOf(base, ["a"]), never, () => {}, resolve))
      while (overs.length < 4) await new Promise((resolve) => setImmediate(resolve))
      assert.deepStrictEqual(overs.sort(), ["listing", "next", "stuck", "waiting"])
      assert.deepStrictEqual(answered, [])
    })
  })

  it("reports an error for the file at which a worker died, and gives its other files to another worker", async () => {
    const workers = make(1, mortal)
    await using(workers, { a: "foo", die: "foo" }, async (base) => {
      const answers = await Promise.all([
        search(workers, foo, batchOf(base, ["a", "a", "die", "a"])),
        search(workers, foo, batchOf(base, ["a", "die"])),
        search(workers, foo, batchOf(base, ["a"]))
      ])
      assert.include(answers[0], { _tag: "Failed", index: 2 })
      assert.include(answers[1], { _tag: "Failed", index: 1 })
      assert.isFalse("_tag" in answers[2]!)
    })
  })

  it("searches on the calling thread if a worker ends before it is online", async () => {
    const workers = make(2, stillborn)
    await using(workers, { a: "foo" }, async (base) => {
      const answers = await Promise.all(Array.from({ length: 5 }, () => search(workers, foo, batchOf(base, ["a"]))))
      assert.deepStrictEqual(
        answers.map((answer) => "_tag" in answer),
        answers.map(() => false)
      )
    })
  })

  it("still enforces budgets if one of its workers could not start", async () => {
    let starts = 0
    const workers = make(1, (program, shared) => (starts++ === 0 ? stillborn : start)(program, shared))
    await using(workers, { a: "foo", b: evil }, async (base) => {
      const [harmless, stuck] = await Promise.all([
        search(workers, foo, batchOf(base, ["a"])),
        search(workers, hostile, batchOf(base, ["a", "b"]), 200)
      ])
      assert.isFalse("_tag" in harmless)
      assert.deepStrictEqual(stuck, { _tag: "Overrun", index: 1 })
    })
  })

  it.skipIf(process.platform !== "linux")(
    "leaves no descriptor open, even if workers are terminated during a search",
    async () => {
      const open = () => readdirSync("/proc/self/fd").length
      const workers = make(2, start)
      let before = 0
      await using(workers, { a: "foo", b: evil }, async (base) => {
        // The first worker may leave descriptors that the runtime keeps for later ones.
        await search(workers, foo, batchOf(base, ["a"]))
        await search(workers, hostile, batchOf(base, ["b"]), 100)
        await list(workers, [base, join(base, "none")])
        await workers.end()
        before = open()
        const again = make(2, start)
        for (let i = 0; i < 3; i++) {
          await Promise.all([
            search(again, hostile, batchOf(base, ["a", "b"]), 100),
            search(again, foo, batchOf(base, ["a", "none", "b"])),
            list(again, [base, join(base, "none"), join(base, "a")])
          ])
        }
        await again.end()
        assert.isAtMost(open(), before)
      })
    }
  )

  it("lets a program with idle workers or a cancelled search exit by itself", () => {
    const base = mkdtempSync(join(tmpdir(), "fs-algebra-workers-"))
    try {
      writeFileSync(join(base, "a"), "foo")
      writeFileSync(join(base, "b"), evil)
      const module = new URL("../../src/runtime/workerPool.ts", import.meta.url).href
      const program = (last: string) => `
        import { make } from ${JSON.stringify(module)}
        const workers = make(2)
        const base = ${JSON.stringify(base)}
        const query = (source) => ({ pattern: { source, flags: "s", literal: undefined, multiline: false }, needles: undefined, maxMatches: 9, maxBytes: 1e9, includesText: false, patternBudgetMillis: 1 })
        const batch = (name) => ({ bases: [base], counts: [1], names: name, from: 1 })
        workers.search(query("foo"), batch("a"), 10000, (answer) => { console.log(answer.files[0]); ${last} })`
      for (const last of [
        "",
        `workers.search(query("^(a+)+$"), batch("b"), Infinity, () => {})()`,
        `workers.search(query("^(a+)+$"), batch("b"), 1e6, () => {})()`
      ]) {
        const ran = spawnSync(process.execPath, ["--input-type=module", "-e", program(last)], {
          encoding: "utf8",
          timeout: 60_000
        })
        assert.deepStrictEqual([ran.stdout, ran.status, ran.signal], ["1\n", 0, null], ran.stderr)
      }
    } finally {
      rmSync(base, { recursive: true })
    }
  })

  it.live("is shared by its users, and ends some seconds after the last user has released it", () =>
    Effect.gen(function* () {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
      const [one, other] = [yield* Scope.make(), yield* Scope.make()]
      const first = yield* Scope.provide(shared, one)
      const second = yield* Scope.provide(shared, other)
      assert.strictEqual(first, second)
      const listed = () => Effect.promise(() => list(first, [tmpdir()]))
      yield* Scope.close(one, Exit.void)
      vi.advanceTimersByTime(60_000)
      assert.isObject((yield* listed())[0])
      yield* Scope.close(other, Exit.void)
      vi.advanceTimersByTime(1000)
      assert.strictEqual(yield* Effect.scoped(shared), first)
      vi.advanceTimersByTime(60_000)
      assert.deepStrictEqual(yield* listed(), ["EIO"])
      assert.notStrictEqual(yield* Effect.scoped(shared), first)
    }).pipe(Effect.ensuring(Effect.sync(() => vi.useRealTimers())))
  )
})
