import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { clean, scratch, start } from "./children.ts"
import type { CrashOrders } from "./crash.ts"
import { identify, record, text } from "./content.ts"
import { killLoop, type Report, startAnew } from "./killing.ts"
import { complaint, directory, look, type Op, tailOf, type Tree } from "./model.ts"
import { isSoak } from "../runs.ts"

afterAll(clean)

const kills = isSoak ? 1000 : 50
const minutes = 60_000

describe("the check of the tree of a killed process", () => {
  const write = (mode: "create" | "overwrite" | "append", path = "f"): Op => ({
    kind: "write",
    how: "bytes",
    mode,
    path,
    id: 2,
    size: 9
  })
  const move = (from: string, to: string): Op => ({ kind: "move", from, to, overwrite: true })
  const cases: ReadonlyArray<readonly [claim: string, before: object, op: Op | undefined, found: object, allowed: boolean]> = [
    ["an untouched tree", { f: "file 1" }, undefined, { f: "file 1" }, true],
    ["an acknowledged file that is missing", { f: "file 1" }, undefined, {}, false],
    ["a file that was never written", {}, undefined, { f: "file 1" }, false],
    ["the old file during an overwrite", { f: "file 1" }, write("overwrite"), { f: "file 1" }, true],
    ["the new file during an overwrite", { f: "file 1" }, write("overwrite"), { f: "file 2" }, true],
    ["a missing file during an overwrite", { f: "file 1" }, write("overwrite"), {}, false],
    ["a torn file", { f: "file 1" }, write("overwrite"), { f: "torn after 0 of 3 bytes" }, false],
    ["an empty new file", {}, write("create"), { f: "file " }, false],
    ["a parent without its file", {}, write("create", "d/e/f"), { d: directory }, true],
    ["parents without their file", {}, write("create", "d/e/f"), { d: directory, "d/e": directory }, true],
    ["a truncated record at the end of an append", { f: "file 1" }, write("append"), { f: "file 1 cut" }, true],
    ["a truncated record without an append", { f: "file 1" }, write("overwrite"), { f: "file 1 cut" }, false],
    ["a directory that has moved", { d: directory, "d/f": "file 1" }, move("d", "e"), { e: directory, "e/f": "file 1" }, true],
    [
      "a half moved directory",
      { d: directory, "d/f": "file 1" },
      move("d", "e"),
      { d: directory, e: directory, "e/f": "file 1" },
      false
    ],
    ["a file under both its old and its new name", { f: "file 1" }, move("f", "g"), { f: "file 1", g: "file 1" }, false],
    [
      "a half deleted tree",
      { d: directory, "d/f": "file 1" },
      { kind: "delete", path: "d", recursive: true },
      { d: directory },
      true
    ],
    [
      "a missing file beside a deleted tree",
      { d: directory, f: "file 1" },
      { kind: "delete", path: "d", recursive: true },
      {},
      false
    ]
  ]
  const treeOf = (tree: object): Tree => new Map(Object.entries(tree))

  for (const [claim, before, op, found, allowed] of cases) {
    it(`${allowed ? "allows" : "rejects"} ${claim}`, () => {
      const said = complaint(treeOf(before), op, treeOf(found))
      assert.strictEqual(said === undefined, allowed, said)
    })
  }

  it("distinguishes a complete file from a truncated, zero-filled, mixed or doubled file", () => {
    const bytes = record(7, 10_000)
    assert.strictEqual(identify(bytes), "file 7")
    assert.strictEqual(identify(Buffer.concat([bytes, record(8, 0)])), "file 7+8")
    assert.strictEqual(identify(Buffer.from(text(9, 50))), "text 9/50")
    for (const length of [4, 47, 48, 4096, 9999, 10_047]) {
      assert.match(identify(bytes.subarray(0, length)), /^torn/)
      assert.match(identify(Buffer.concat([bytes.subarray(0, length), Buffer.alloc(bytes.length - length)])), /^torn/)
      assert.match(identify(Buffer.concat([bytes.subarray(0, length), record(8, 10_000).subarray(length)])), /^torn/)
      assert.match(identify(Buffer.from(text(9, 50)).subarray(0, length % 1000)), /^(?:torn|file $)/)
      assert.strictEqual(identify(Buffer.concat([record(6, 5), bytes.subarray(0, length)]), bytes), "file 6 cut")
    }
    assert.match(identify(Buffer.concat([bytes, bytes.subarray(10)])), /^torn/)
    assert.match(identify(Buffer.from(text(9, 50).replace("middle of version 9", "middle of version 8"))), /^torn/)
  })
})

describe("a process that is killed at a random moment", () => {
  it(
    `leaves the old or the new content and no torn file, and the next start removes all leftovers, in ${kills} kills`,
    async () => {
      const each = Math.ceil(kills / 3)
      const seed = isSoak ? Number(process.hrtime.bigint() % 1_000_000n) : 1
      const reports = await Promise.all(
        (["none", "file", "full"] as const).map((durability, n) =>
          killLoop({ directory: scratch(), kills: each, seed: seed + n, durability })
        )
      )
      const sum = (of: (report: Report) => number): number => reports.reduce((all, report) => all + of(report), 0)
      console.log(
        `${sum((r) => r.kills)} kills after ${sum((r) => r.operations)} operations: ${sum((r) => r.within)} within one, ` +
          `${sum((r) => r.littered)} left ${sum((r) => r.left)} temporary files, ${sum((r) => r.partial)} left something partial`
      )
      assert.deepStrictEqual(
        reports.flatMap((report) => report.complaints),
        []
      )
      assert.isAtLeast(
        sum((report) => report.kills),
        kills
      )
      // Without kills inside an operation the checks above prove nothing.
      assert.isAbove(
        sum((report) => report.within),
        kills / 2
      )
      assert.isAbove(
        sum((report) => report.littered),
        0
      )
    },
    (isSoak ? 60 : 10) * minutes
  )

  // About one kill in ten shows the fault, so this check of the kill loop itself takes a minute. It runs in the soak.
  it.runIf(isSoak)(
    "that writes in place tears a file within 150 kills, which shows that the test can fail",
    { timeout: 10 * minutes },
    async () => {
      const report = await killLoop({
        directory: scratch(),
        kills: 150,
        seed: 1,
        durability: "none",
        replacing: "naively",
        stopsAtFirst: true
      })
      assert.match(report.complaints[0] ?? "", /f is (?:torn|file ,).* neither old nor new/)
    }
  )
})

describe("a process that is killed before one of its changing system calls", () => {
  const dirs = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`deep${"/x".repeat(n)}`, directory]))
  const write = (how: "bytes" | "stream", mode: "create" | "overwrite" | "append", path: string): Op => ({
    kind: "write",
    how,
    mode,
    path,
    id: 2,
    size: 100_000
  })
  interface Case {
    readonly before: object
    readonly op: Op
    /** The step from one killed call to the next. */
    readonly stride?: number
  }
  const ends = { f: "file 1", l: "-> f", m: "-> nothing", d: directory, "d/g": "file 3", e: directory }
  /** Cases for the soak only, because each kill costs a start of Node. */
  const others: Record<string, Case> = {
    "replaces a file through a link": { before: ends, op: write("stream", "overwrite", "l") },
    "appends to a file": { before: ends, op: write("bytes", "append", "f") },
    "edits a text": { before: { t: "text 1/50" }, op: { kind: "edit", path: "t", from: 1, id: 2, lines: 50 } },
    "moves a directory onto an empty one": { before: ends, op: { kind: "move", from: "d", to: "e", overwrite: true } },
    "copies a directory": { before: ends, op: { kind: "copy", from: "d", to: "new/d", overwrite: false } }
  }
  const cases: Record<string, Case> = {
    "creates a file, and its parents": { before: {}, op: write("bytes", "create", "a/b/f"), stride: isSoak ? 1 : 3 },
    "replaces a file": { before: ends, op: write("bytes", "overwrite", "f"), stride: isSoak ? 1 : 2 },
    "appends a stream to a new file": { before: ends, op: write("stream", "append", "d/new"), stride: isSoak ? 1 : 4 },
    "copies a file over a link": {
      before: ends,
      op: { kind: "copy", from: "f", to: "m", overwrite: true },
      stride: isSoak ? 1 : 5
    },
    "copies a link over a file": {
      before: ends,
      op: { kind: "copy", from: "m", to: "f", overwrite: true },
      stride: isSoak ? 1 : 5
    },
    "deletes a tree with more levels than the descriptors that it keeps open": {
      before: { ...dirs(60), f: "file 1" },
      op: { kind: "delete", path: "deep", recursive: true },
      stride: isSoak ? 1 : 13
    },
    ...(isSoak ? others : {})
  }

  const plant = (root: string, tree: Tree): void => {
    Fs.mkdirSync(root)
    for (const [path, what] of tree) {
      const at = join(root, path)
      Fs.mkdirSync(dirname(at), { recursive: true })
      const number = Number(/\d+/.exec(what)?.[0])
      if (what === directory) Fs.mkdirSync(at, { recursive: true })
      else if (what.startsWith("-> ")) Fs.symlinkSync(what.slice(3), at)
      else Fs.writeFileSync(at, what.startsWith("text") ? text(number, Number(what.split("/")[1])) : record(number, 5000))
    }
  }

  const at = scratch()
  const cache = join(at, "cache")
  /** Returns true if the process was killed, and false if it made fewer calls. */
  const crash = async (root: string, op: Op, call: number): Promise<boolean> => {
    const child = start("crash.ts", cache)
    await child.dots(0)
    child.say({ root, op, call } satisfies CrashOrders)
    const { code, errors, signal } = await child.ended
    assert.isTrue(signal === "SIGKILL" || code === 0, errors)
    return signal !== null
  }

  for (const [claim, { before, op, stride = 1 }] of Object.entries(cases)) {
    const limit = (isSoak ? 20 : 10) * minutes
    it.concurrent(
      `while it ${claim}, leaves the old or the new tree, and the next start removes all leftovers`,
      { timeout: limit },
      async () => {
        const tree: Tree = new Map(Object.entries(before))
        const complaints: Array<string> = []
        let calls = 1
        for (let call = 1, wasKilled = true; wasKilled; call += stride) {
          calls = call
          const root = join(at, `${claim}-${call}`.replaceAll(" ", "-"))
          plant(root, tree)
          wasKilled = await crash(root, op, call)
          const left = look(root, tailOf(op))
          const wrong = complaint(tree, op, left.tree)
          if (wrong !== undefined) complaints.push(`before call ${call}: ${wrong}`)
          await startAnew(root, left.tree, call % 2 === 0)
          const found = look(root, tailOf(op))
          const changed = complaint(left.tree, undefined, found.tree)
          if (changed !== undefined) complaints.push(`before call ${call}, by the next start: ${changed}`)
          for (const path of found.hidden) complaints.push(`before call ${call}: the next start leaves ${path}`)
          if (!wasKilled) assert.deepStrictEqual(complaint(tree, op, found.tree), undefined)
        }
        assert.isAbove(calls, 1, "no call was caught")
        assert.deepStrictEqual(complaints, [])
      }
    )
  }
})
