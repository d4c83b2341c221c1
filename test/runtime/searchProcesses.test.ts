/** Tests the pool of search processes with programs that fail or send wrong data. */
import { assert, describe, it } from "@effect/vitest"
import type { ChildProcess } from "node:child_process"
import type { TreeSearch } from "../../src/model/treeSearch.ts"
import { make } from "../../src/runtime/searchProcesses.ts"

const tree: TreeSearch = {
  include: undefined,
  exclude: undefined,
  ignore: undefined,
  kinds: ["file"],
  maxDepth: Number.POSITIVE_INFINITY,
  from: undefined,
  basePath: ".",
  query: undefined
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const place = { path: "/", device: 0, inode: 0 }

/** Makes a program that reports that it is ready, and then runs the code `then`. */
const program = (then: string) => ({
  args: [
    "-e",
    `const body = require("node:v8").serialize({ ticket: 0 })
    const head = Buffer.alloc(4)
    head.writeUInt32LE(body.length)
    require("node:fs").writeSync(1, Buffer.concat([head, body]))
    ${then}`
  ],
  text: undefined
})

describe("the pool of search processes", () => {
  it("accepts no job, and starts no process for a while, when the process ends immediately", async () => {
    const pool = make(1, { args: ["-e", "process.exit(1)"], text: undefined })
    const search = pool.begin(tree, false)!
    await until(() => pool.begin(tree, false) === undefined)
    assert.strictEqual(search.room(), 0)
    assert.isFalse(pool.areWarm())
  })

  it("refuses a search when no process can be started", () => {
    const pool = make(2, program(""), () => {
      throw new Error("spawn EAGAIN")
    })
    assert.isUndefined(pool.begin(tree, false))
  })

  it("reports an unfinished job when its process ends, and accepts no more jobs of the search", async () => {
    const pool = make(1, program('process.stdin.once("data", () => process.exit(1))'))
    const search = pool.begin(tree, false)!
    await until(() => search.room() > 0)
    const report = await new Promise((done) => search.send({ place, directories: [""], budget: 1, done }))
    assert.isUndefined(report)
    assert.strictEqual(search.room(), 0)
    pool.end()
  })

  it("kills a process that does not respond after its search has ended", async () => {
    const children: Array<ChildProcess> = []
    const pool = make(1, program("setInterval(() => {}, 1000)"), (command, args, options) => {
      const child = process.getBuiltinModule("node:child_process").spawn(command, args, options)
      children.push(child)
      return child
    })
    const search = pool.begin(tree, false)!
    await until(() => search.room() > 0)
    let reports = 0
    search.send({ place, directories: [""], budget: 1, done: () => reports++ })
    search.end()
    await until(() => children[0]!.signalCode === "SIGKILL")
    assert.strictEqual(reports, 0)
  })

  it("ends a process that does not respond, even while other searches begin and end in it", async () => {
    const children: Array<ChildProcess> = []
    const pool = make(1, program("setInterval(() => {}, 1000)"), (command, args, options) => {
      const child = process.getBuiltinModule("node:child_process").spawn(command, args, options)
      children.push(child)
      return child
    })
    const query = { patternBudgetMillis: 200 } as NonNullable<TreeSearch["query"]>
    const search = pool.begin({ ...tree, query }, false)!
    await until(() => search.room() > 0)
    const report = new Promise((done) => search.send({ place, directories: [""], budget: 1, done }))
    const timer = setInterval(() => pool.begin(tree, false)?.end(), 50)
    try {
      assert.isUndefined(await report)
      assert.isFalse(search.isUsable())
    } finally {
      clearInterval(timer)
      pool.end()
    }
  })

  it("returns the directories of other searches when it kills the process of an endless pattern", async () => {
    const pool = make(1, program("setInterval(() => {}, 1000)"))
    const query = { patternBudgetMillis: 200 } as NonNullable<TreeSearch["query"]>
    const endless = pool.begin({ ...tree, query }, false)!
    const other = pool.begin(tree, false)!
    await until(() => other.room() > 0)
    const ended = new Promise((done) => endless.send({ place, directories: [""], budget: 1, done }))
    const report = new Promise<unknown>((done) => other.send({ place, directories: ["a", "b"], budget: 1, done }))
    assert.isUndefined(await ended)
    assert.deepInclude((await report) as object, { directories: new Int32Array(6), names: "" })
    assert.isTrue(other.isUsable())
    assert.isFalse(endless.isUsable())
    pool.end()
  })

  it("stops a process whose report is malformed, and reports its unfinished jobs", async () => {
    const pool = make(1, program('process.stdin.once("data", () => process.stdout.write(Buffer.from([1, 0, 0, 0, 7])))'))
    const search = pool.begin(tree, false)!
    await until(() => search.room() > 0)
    assert.isUndefined(await new Promise((done) => search.send({ place, directories: [""], budget: 1, done })))
    assert.isFalse(pool.areWarm())
  })

  it.runIf(process.geteuid?.() === 0)("ends its processes when the program changes its user or group", async () => {
    const pool = make(1, program("process.stdin.resume()"))
    const search = pool.begin(tree, false)!
    await until(() => search.room() > 0)
    process.setegid!(65_534)
    try {
      pool.begin(tree, false)
      assert.strictEqual(search.room(), 0)
      assert.isFalse(pool.areWarm())
    } finally {
      process.setegid!(0)
      pool.end()
    }
  })

  it("ends its processes after an idle period", { timeout: 60_000 }, async () => {
    const children: Array<ChildProcess> = []
    const collect: Parameters<typeof make>[2] = (command, args, options) => {
      const child = process.getBuiltinModule("node:child_process").spawn(command, args, options)
      children.push(child)
      return child
    }
    const pool = make(1, program("process.stdin.resume()"), collect, 100)
    pool.begin(tree, false)!.end()
    await until(() => children[0]!.exitCode !== null || children[0]!.signalCode !== null)
    assert.isFalse(pool.areWarm())
  })
})
