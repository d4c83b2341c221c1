import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { EventEmitter } from "node:events"
import * as Fs from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Backend } from "../../src/port/Backend.ts"
import type { DirectoryHistory } from "../../src/port/history.ts"
import * as Request from "../../src/port/Request.ts"
import * as Archive from "../../src/history/Archive.ts"
import { traced } from "../../src/filesystem/Decorator.ts"
import { make as makeAlgebra } from "../../src/filesystem/Filesystem.ts"
import { type Scan, scan } from "../../src/history/scan.ts"
import * as Limits from "../../src/model/Limits.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { replaceTree } from "../../src/history/replace.ts"
import * as Threads from "../../src/history/threads/pool.ts"
import { program } from "../../src/history/threads/program.ts"
import type { Order } from "../../src/history/threads/orders.ts"
import { blobId, type DirectoryNode, type Node } from "../../src/history/tree.ts"
import type { StampedDirectory } from "../../src/history/stamps.ts"
import { findUnchanged } from "../../src/history/unchanged.ts"
import { read as readZip } from "../../src/history/zip/reader.ts"
import { unpackFiles } from "../../src/history/zip/unpackFiles.ts"
import type { Source } from "../../src/history/zip/spool.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { host, p } from "../backends/posixHost.ts"
import { inGit, place } from "./support.ts"

const [directories, filesEach] = [40, 30] as const

/** Writes a tree that is large enough for threads. */
const sow = (root: string): void => {
  for (let d = 0; d < directories; d++) {
    const at = join(root, `top${d % 4}`, `d${d}`)
    Fs.mkdirSync(at, { recursive: true })
    for (let f = 0; f < filesEach; f++) Fs.writeFileSync(join(at, `f${f}.txt`), `${d} ${f}\n`.repeat(1 + ((d * f) % 60)))
  }
}

const sowOddFiles = (root: string): void => {
  const at = join(root, "top1", "odd")
  Fs.mkdirSync(at)
  Fs.writeFileSync(join(at, "empty"), "")
  Fs.writeFileSync(join(at, "random"), randomBytes(70_000))
  Fs.writeFileSync(join(at, "large"), randomBytes(1_200_000))
  Fs.writeFileSync(join(at, "repeated"), "x".repeat(900_000))
  Fs.writeFileSync(join(at, "naïve ☃"), "snow")
  Fs.writeFileSync(join(at, "two\nlines"), "lines")
  Fs.writeFileSync(Buffer.concat([Buffer.from(`${at}/`), Buffer.from([0xff, 0xfe])]), "no text")
  Fs.writeFileSync(join(at, "program"), "#!/bin/sh\n", { mode: 0o755 })
  Fs.writeFileSync(join(at, "secret"), "secret", { mode: 0o600 })
  Fs.symlinkSync("random", join(at, "link"))
  Fs.mkdirSync(join(at, "nothing"))
}

const historyOf = (port: Backend): DirectoryHistory => port.history as DirectoryHistory

/** Returns the tree without ids of directories and without stamps, because two scans may differ in these. */
const plain = (node: Node): unknown =>
  node.kind === "directory"
    ? [node.mode, Object.fromEntries([...node.entries].map(([name, below]) => [name, plain(below)]).sort())]
    : node.kind === "file"
      ? [node.mode, node.sizeBytes, node.id]
      : node.target

const counts = ({ bytes, directories, files, others }: Scan) => ({ bytes, directories, files, others })

const assertSame = (found: Scan, fresh: Scan): void => {
  assert.deepStrictEqual(plain(found.tree), plain(fresh.tree))
  assert.deepStrictEqual(counts(found), counts(fresh))
}

/** Returns the scan with a later start, so that every stamp in it counts as settled. */
const settled = (scan: Scan): Scan => ({ ...scan, began: scan.began + 3_600_000 })

interface Listing {
  readonly port: Backend
  readonly listed: Array<string>
}

/** Calls `before` with the path of each directory before it is listed. */
const reading = (port: Backend, before: (path: string) => void): Backend => {
  const history = historyOf(port)
  const explore: NonNullable<DirectoryHistory["explore"]> = (pathOf) =>
    Effect.map(history.explore!(pathOf), (explorer) => ({
      ...explorer,
      read: (visits) => {
        for (const visit of visits) before(pathOf(visit))
        explorer.read(visits)
      }
    }))
  const listStamped: DirectoryHistory["listStamped"] = (path) => {
    before(path)
    return history.listStamped(path)
  }
  return { ...port, history: { ...history, explore, listStamped } }
}

/** Notes each directory that is listed. */
const noting = (port: Backend): Listing => {
  const listed: Array<string> = []
  return { port: reading(port, (path) => void listed.push(path)), listed }
}

const changes: ReadonlyArray<readonly [name: string, listed: number, change: (root: string) => void]> = [
  ["no change", 1, () => {}],
  [
    "a change of a file that keeps its size and time",
    2,
    (root) => {
      const path = join(root, "top2/d2/f3.txt")
      const { atime, mtime, size } = Fs.statSync(path)
      Fs.writeFileSync(path, "y".repeat(size))
      Fs.utimesSync(path, atime, mtime)
    }
  ],
  ["the creation of a file", 3, (root) => Fs.writeFileSync(join(root, "top2/d2/new"), "new")],
  ["the removal of a file", 3, (root) => Fs.rmSync(join(root, "top2/d2/f3.txt"))],
  ["the renaming of a file", 3, (root) => Fs.renameSync(join(root, "top2/d2/f3.txt"), join(root, "top2/d2/other"))],
  [
    "the move of a file to another directory",
    4,
    (root) => Fs.renameSync(join(root, "top2/d2/f3.txt"), join(root, "top2/d6/moved"))
  ],
  ["a change of the mode of a file", 2, (root) => Fs.chmodSync(join(root, "top2/d2/f3.txt"), 0o600)],
  ["a change of the mode of a directory", 2, (root) => Fs.chmodSync(join(root, "top2/d2"), 0o700)],
  ["the creation of an empty directory", 3, (root) => Fs.mkdirSync(join(root, "top2/d2/new"))],
  ["the removal of a directory", 2, (root) => Fs.rmSync(join(root, "top2/d2"), { recursive: true })],
  [
    "the replacement of a directory by a link to it",
    2,
    (root) => {
      Fs.renameSync(join(root, "top2/d2"), join(root, "..", "outside", "d2"))
      Fs.symlinkSync("../../outside/d2", join(root, "top2/d2"))
    }
  ],
  [
    "the replacement of a directory by a copy",
    3,
    (root) => {
      Fs.cpSync(join(root, "top2/d2"), join(root, "copy"), { recursive: true, preserveTimestamps: true })
      Fs.rmSync(join(root, "top2/d2"), { recursive: true })
      Fs.renameSync(join(root, "copy"), join(root, "top2/d2"))
    }
  ],
  ["the creation of a hard link", 3, (root) => Fs.linkSync(join(root, "top2/d2/f3.txt"), join(root, "top2/d2/second"))],
  [
    "a change of the target of a symlink",
    3,
    (root) => {
      Fs.rmSync(join(root, "top1/odd/link"))
      Fs.symlinkSync("secret", join(root, "top1/odd/link"))
    }
  ],
  [
    "the replacement of a file by a directory",
    3,
    (root) => {
      Fs.rmSync(join(root, "top3/d3/f0.txt"))
      Fs.mkdirSync(join(root, "top3/d3/f0.txt"))
    }
  ]
]

describe("a scan of a tree in threads", () => {
  it.live("returns the same tree as a scan without threads", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      sowOddFiles(root)
      const threads = yield* Threads.shared
      assertSame(yield* scan(port, { threads }), yield* scan(port))
    }).pipe(Effect.scoped)
  )

  for (const [name, most, change] of changes) {
    it.live(
      `after ${name} returns the same tree as a scan from scratch, and lists only the directories that may have changed`,
      () =>
        Effect.gen(function* () {
          const { port, root } = yield* host()
          sow(root)
          sowOddFiles(root)
          const threads = yield* Threads.shared
          const previous = settled(yield* scan(port, { threads }))
          change(root)
          const { listed, port: noted } = noting(port)
          assertSame(yield* scan(noted, { threads, previous }), yield* scan(port))
          // `top1/odd` has names that can be compared only by listing it, so a scan always lists `top1/odd` and `top1`.
          const expected = listed.filter((path) => !path.startsWith("top1"))
          assert.isAtMost(new Set(expected).size, most + 1, listed.join())
        }).pipe(Effect.scoped)
    )
  }

  it.live("lists a directory again if its stamp is not older than the start of the earlier scan", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      const threads = yield* Threads.shared
      const previous = yield* scan(port, { threads })
      const { listed, port: noted } = noting(port)
      yield* scan(noted, { threads, previous: { ...previous, began: 0 } })
      assert.strictEqual(new Set(listed).size, 1 + 4 + directories)
    }).pipe(Effect.scoped)
  )

  for (const [name, filler] of [
    ["of few directories", 0],
    ["of many directories", 300]
  ] as const) {
    it.live(`lists only the root again in an unchanged tree ${name}`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        sow(root)
        for (let d = 0; d < filler; d++) Fs.mkdirSync(join(root, "many", `${d % 9}`, `${d}`, "empty"), { recursive: true })
        const threads = yield* Threads.shared
        const fresh = yield* scan(port, { threads })
        const { listed, port: noted } = noting(port)
        assertSame(yield* scan(noted, { threads, previous: settled(fresh) }), fresh)
        assert.deepStrictEqual(listed, ["."])
      }).pipe(Effect.scoped)
    )
  }

  it.live("lists a directory again if another directory had its name for a moment", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      const at = (path: string) => join(root, "top0", path)
      Fs.mkdirSync(at("now/below"), { recursive: true })
      Fs.writeFileSync(at("now/below/precious"), "v1")
      Fs.mkdirSync(at("other/below"), { recursive: true })
      const threads = yield* Threads.shared
      const first = settled(yield* scan(port, { threads }))
      Fs.writeFileSync(at("now/below/precious"), "v2")
      let isSwapped = false
      const swapped = reading(port, (path) => {
        if (path !== "top0/now/below" || isSwapped) return
        isSwapped = true
        Fs.renameSync(at("now"), at("before"))
        Fs.renameSync(at("other"), at("now"))
      })
      const second = settled(yield* scan(swapped, { threads, previous: first }))
      assert.isTrue(isSwapped)
      Fs.renameSync(at("now"), at("other"))
      Fs.renameSync(at("before"), at("now"))
      assertSame(yield* scan(port, { threads, previous: second }), yield* scan(port))
    }).pipe(Effect.scoped)
  )

  for (const [name, other] of [
    ["another disk", { device: -1 }],
    ["another directory", { inode: -1 }]
  ] as const) {
    it.live(`lists a directory again if ${name} was mounted over it for a moment`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        sow(root)
        const threads = yield* Threads.shared
        const history = historyOf(port)
        // Through the mount, the host reads an empty directory. The times of the directory below the mount do not change.
        const explore: NonNullable<DirectoryHistory["explore"]> = (pathOf) =>
          Effect.map(history.explore!(pathOf), (explorer) => ({
            ...explorer,
            take: () =>
              explorer
                .take()
                .map((found) =>
                  pathOf(found.visit) === "top2/d2"
                    ? { ...found, children: [], ...(found.self && { self: { ...found.self, ...other } }) }
                    : found
                )
          }))
        const first = settled(yield* scan({ ...port, history: { ...history, explore } }, { threads }))
        assert.strictEqual(first.files, (directories - 1) * filesEach)
        assertSame(yield* scan(port, { threads, previous: first }), yield* scan(port))
      }).pipe(Effect.scoped)
    )
  }

  for (const [name, extra] of [
    ["small", 0],
    ["large", 600]
  ] as const) {
    it.live(
      `includes a leftover in a ${name} directory if the earlier scan ignored it as the temporary file of a running write`,
      () =>
        Effect.gen(function* () {
          const { port, root } = yield* host()
          sow(root)
          for (let f = 0; f < extra; f++) Fs.writeFileSync(join(root, "top2/d2", `${"long".repeat(20)}${f}`), "")
          const name = TemporaryNames.make()
          Fs.writeFileSync(join(root, "top2/d2", name), "unfinished")
          const threads = yield* Threads.shared
          const first = settled(yield* scan(port, { threads }))
          TemporaryNames.forget(name)
          const second = yield* scan(port, { threads, previous: first })
          assert.strictEqual(second.files, first.files + 1)
          assertSame(second, yield* scan(port))
        }).pipe(Effect.scoped)
    )
  }

  it.live("lists a directory again if the earlier scan excluded or skipped entries in it", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      execFileSync("mkfifo", [join(root, "top2/d2/pipe")])
      const threads = yield* Threads.shared
      const excludes = (path: string) => path === "top3/d3/f3.txt"
      const previous = settled(yield* scan(port, { threads, excludes }))
      const fresh = yield* scan(port)
      assertSame(yield* scan(port, { threads, previous }), fresh)
      assertSame(yield* scan(port, { threads, previous: settled(fresh), excludes }), yield* scan(port, { excludes }))
    }).pipe(Effect.scoped)
  )

  it.live("reads a file again if it changed after the listing", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      const threads = yield* Threads.shared
      const history = historyOf(port)
      const changed = join(root, "top2/d2/f3.txt")
      const lend: NonNullable<DirectoryHistory["lend"]> = (path) =>
        Effect.tap(history.lend!(path), () =>
          Effect.sync(() => {
            if (path === "top2/d2") Fs.appendFileSync(changed, "more")
          })
        )
      const found = yield* scan({ ...port, history: { ...history, lend } }, { threads })
      assertSame(found, { ...(yield* scan(port)), bytes: found.bytes })
    }).pipe(Effect.scoped)
  )

  it.live("fails for a file with several hard links if the filesystem rejects hard links", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host({ hardlinks: "reject" })
      sow(root)
      Fs.linkSync(join(root, "top2/d2/f3.txt"), join(root, "top2/d2/second"))
      const threads = yield* Threads.shared
      const fault = yield* Effect.flip(scan(port, { threads }))
      assert.deepStrictEqual(fault, yield* Effect.flip(scan(port)))
    }).pipe(Effect.scoped)
  )

  for (const [name, program] of [
    ["cannot be started", undefined],
    ["end at once", "process.exit(1)"],
    ["end at their first request", `require("node:worker_threads").parentPort.on("message", () => process.exit(1))`],
    [
      "fail",
      `const { parentPort } = require("node:worker_threads")
      parentPort.on("message", () => parentPort.postMessage({ _tag: "Failed", detail: "no" }))`
    ]
  ] as const) {
    it.live(`returns the same tree when the threads ${name}`, () =>
      Effect.gen(function* () {
        const { Worker } = process.getBuiltinModule("node:worker_threads")
        const { port, root } = yield* host()
        sow(root)
        const threads = yield* Effect.acquireRelease(
          Effect.sync(() =>
            Threads.make(2, () => {
              if (program === undefined) throw new Error("no threads")
              return new Worker(program, { eval: true })
            })
          ),
          ({ end }) => Effect.sync(end)
        )
        const fresh = yield* scan(port)
        const found = yield* scan(port, { threads })
        assertSame(found, fresh)
        assertSame(yield* scan(port, { threads, previous: settled(found) }), fresh)
      }).pipe(Effect.scoped)
    )
  }
})

describe("the comparison of a tree with the disk", () => {
  it.live("splits a directory of many names into small requests, and lets other fibers run before the first", () =>
    Effect.gen(function* () {
      const { root: base } = yield* host()
      const stamp = { sizeBytes: 1, mode: 0o644, modified: 1, changed: 1, inode: 1 }
      const names = Array.from({ length: 20_000 }, (_, f) => `f${f}`)
      const files = names.map((name) => [name, { kind: "file", id: "", sizeBytes: 1, stamp }] as const)
      const large: StampedDirectory = { kind: "directory", entries: new Map(files), stamp }
      const tree: DirectoryNode = { kind: "directory", entries: new Map([["large", large]]) }
      let turns = 0
      let turnsBeforeFirst: number | undefined
      const sent: Array<string> = []
      const run = (changed: string): Threads.Threads["run"] =>
        Effect.fnUntraced(function* (order) {
          turnsBeforeFirst ??= turns
          assert(order._tag === "Compare")
          assert.isAtMost(order.stamps.length, 5 * 2000)
          yield* Effect.yieldNow
          const found = order.directories.flatMap((text) => text.split("\n").slice(1))
          sent.push(...found)
          const state = found.includes(changed) ? 1 : 2
          return { _tag: "Compared", states: new Uint8Array(order.directories.length).fill(state) }
        })
      const compare = (changed: string) =>
        findUnchanged(
          {
            ...history,
            root: base,
            lend: () => Effect.succeed({ base, device: 1, refusesHardlinks: false, acceptsFiles: false })
          },
          { concurrency: 2, run: run(changed) },
          { began: 1e9, files: names.length, tree }
        )
      const history = { _tag: "Directory", listStamped: () => Effect.succeed([]) } as const
      yield* Effect.forkScoped(Effect.forever(Effect.sync(() => turns++)))
      const same = yield* compare("")
      assert.isAtLeast(turnsBeforeFirst!, 3)
      assert.deepStrictEqual(sent.sort(), names.toSorted())
      assert.deepStrictEqual(same!.whole(large), { files: names.length, bytes: names.length, directories: 0 })
      for (const changed of ["f0", "f9999", "f19999"]) {
        const other = yield* compare(changed)
        assert.isFalse(other!.isListed(large), changed)
      }
    }).pipe(Effect.scoped)
  )

  it.live("finds the one changed file in a directory of many names", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "large/below"), { recursive: true })
      for (let f = 0; f < 2500; f++) Fs.writeFileSync(join(root, "large", `f${f}`), "old")
      const threads = yield* Threads.shared
      const first = settled(yield* scan(port, { threads }))
      const { listed, port: noted } = noting(port)
      assertSame(yield* scan(noted, { threads, previous: first }), first)
      assert.deepStrictEqual(listed, ["."])
      Fs.writeFileSync(join(root, "large/f1200"), "new")
      assertSame(yield* scan(port, { threads, previous: first }), yield* scan(port))
    }).pipe(Effect.scoped)
  )
})

describe("a worker thread for snapshots and archives", () => {
  const order = (content: string): Order => {
    const bytes = new TextEncoder().encode(content)
    const [ends, crcs] = [Uint32Array.of(bytes.length), Uint32Array.of(crc32(bytes))]
    return { _tag: "Inflate", bytes, ends, sizes: ends, crcs, isDeflated: Uint8Array.of(0) }
  }
  const pool = (start?: Threads.StartThread) =>
    Effect.acquireRelease(
      Effect.sync(() => Threads.make(1, start)),
      ({ end }) => Effect.sync(end)
    )

  it.live("completes the requests after a request that cannot be sent", () =>
    Effect.gen(function* () {
      const threads = yield* pool()
      const unsendable = { ...order("a"), extra: () => {} }
      assert.isUndefined(yield* threads.run(unsendable))
      assert.deepStrictEqual(yield* threads.run(order("b")), { _tag: "Inflated", ids: [blobId(Buffer.from("b"))] })
    }).pipe(Effect.scoped)
  )

  it.live("loses all its requests when a report cannot be received", () =>
    Effect.gen(function* () {
      class Worker extends EventEmitter {
        postMessage(): void {}
        ref(): void {}
        unref(): void {}
        terminate(): void {
          this.emit("message", { _tag: "Inflated", ids: ["of another order"] })
          this.emit("exit", 1)
        }
      }
      const worker = new Worker()
      const threads = yield* pool(() => worker as never)
      const runs = yield* Effect.forkChild(
        Effect.all([threads.run(order("a")), threads.run(order("b"))], { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      worker.emit("messageerror", new Error("no memory"))
      worker.terminate()
      assert.deepStrictEqual(yield* Fiber.join(runs), [undefined, undefined])
    }).pipe(Effect.scoped)
  )
})

describe("a snapshot taken in threads", () => {
  it.live("is stored in a valid git repository, and is restored byte for byte", () =>
    Effect.gen(function* () {
      const here = yield* place
      sow(here.root)
      sowOddFiles(here.root)
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const first = yield* snapshots.snapshot()
        const before = Fs.readFileSync(join(here.root, "top2/d2/f3.txt"))
        Fs.appendFileSync(join(here.root, "top2/d2/f3.txt"), "more")
        const second = yield* snapshots.snapshot()
        assert.deepStrictEqual(yield* snapshots.diff(first, second), [{ _tag: "Modified", path: p("top2/d2/f3.txt") }])
        yield* snapshots.restore(first, { verify: true })
        assert.isTrue(Fs.readFileSync(join(here.root, "top2/d2/f3.txt")).equals(before))
        const { status, stderr } = process
          .getBuiltinModule("node:child_process")
          .spawnSync("git", ["--git-dir", here.gitDir, "fsck", "--full", "--strict"], { encoding: "utf8" })
        assert.strictEqual(status, 0, stderr)
        const git = (...args: ReadonlyArray<string>) =>
          execFileSync("git", ["--git-dir", here.gitDir, ...args], { maxBuffer: 2 ** 24 })
        for (const name of ["empty", "random", "large", "repeated", "program", "secret", "naïve ☃"]) {
          const path = `top1/odd/${name}`
          assert.isTrue(git("show", `${first.commitRef}:${path}`).equals(Fs.readFileSync(join(here.root, path))), name)
        }
      }).pipe(Effect.provide(inGit(here)))
    }).pipe(Effect.scoped)
  )
})

describe("a ZIP archive compressed in threads", () => {
  it.live("is valid for Python, stores content that compression does not shorten, and imports to the same tree", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      sowOddFiles(root)
      Fs.writeFileSync(join(root, "top1/seven"), "aaaaaaa")
      const whole = Buffer.from(yield* Archive.exportBytesOf(makeAlgebra(port)))
      const target = join(root, "..", "whole.zip")
      Fs.writeFileSync(target, whole)
      execFileSync("python3", [
        "-c",
        `import sys, zlib, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
for i in z.infolist():
  with open(sys.argv[1], "rb") as f:
    f.seek(i.header_offset + 30 + len(i.filename.encode())); packed = f.read(i.compress_size)
  content = z.read(i)
  c = zlib.compressobj(6, zlib.DEFLATED, -15)
  shorter = len(content) >= 8 and len(c.compress(content) + c.flush()) < len(content)
  assert shorter == (i.compress_type == 8) or i.file_size > 262144, i.filename`,
        target
      ])
      const into = yield* host()
      assert.isAbove(yield* Archive.importBytesOf(makeAlgebra(into.port), whole), directories * filesEach)
      const [before, after] = [yield* scan(port), yield* scan(into.port)]
      const names = (tree: DirectoryNode, at: string) => tree.entries.get(at)
      assert.deepStrictEqual(plain(names(after.tree, "top2")!), plain(names(before.tree, "top2")!))
    }).pipe(Effect.scoped)
  )

  it.live("with damaged entries is refused with the name of the first damaged entry, and changes nothing", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      sowOddFiles(root)
      const whole = Buffer.from(yield* Archive.exportBytesOf(makeAlgebra(port)))
      for (const name of ["top1/odd/random", "top3/d3/f5.txt"]) {
        const local = whole.indexOf(`files/${name}`)
        whole[local + `files/${name}`.length + 2]! ^= 0xff
      }
      const before = yield* scan(port)
      const error = yield* Effect.flip(Archive.importBytesOf(makeAlgebra(port), whole))
      assert.strictEqual(error._tag, "ArchiveError")
      assert.include(error.message, "top1/odd/random")
      assertSame(yield* scan(port), before)
    }).pipe(Effect.scoped)
  )

  const listAll = (root: string): ReadonlyArray<string> => Fs.readdirSync(root, { recursive: true, encoding: "utf8" })

  it.live("is imported into an empty directory with modes, large files, links and empty directories", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      sowOddFiles(root)
      Fs.chmodSync(join(root, "top2/d2/f3.txt"), 0o467)
      Fs.chmodSync(join(root, "top2/d6"), 0o500)
      // An archive omits names that are not valid paths.
      Fs.rmSync(join(root, "top1/odd/two\nlines"))
      Fs.rmSync(Buffer.concat([Buffer.from(join(root, "top1/odd/")), Buffer.from([0xff, 0xfe])]) as unknown as string)
      const whole = yield* Archive.exportBytesOf(makeAlgebra(port))
      for (const durability of ["none", "file"] as const) {
        const into = yield* host({ durability })
        yield* Archive.importBytesOf(makeAlgebra(into.port), whole)
        assertSame(yield* scan(into.port), yield* scan(port))
        assert.strictEqual(Fs.statSync(join(into.root, "top2/d2/f3.txt")).mode & 0o777, 0o467)
      }
    }).pipe(Effect.scoped)
  )

  for (const name of ["top1/odd/random", "top1/odd/large", "top1/odd/repeated", "top3/d3/f5.txt"]) {
    it.live(`with the damaged entry ${name} leaves an empty directory empty`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        sow(root)
        sowOddFiles(root)
        const whole = Buffer.from(yield* Archive.exportBytesOf(makeAlgebra(port)))
        const local = whole.indexOf(`files/${name}`)
        whole[local + `files/${name}`.length + 2]! ^= 0xff
        const into = yield* host()
        const error = yield* Effect.flip(Archive.importBytesOf(makeAlgebra(into.port), whole))
        assert.strictEqual(error._tag, "ArchiveError")
        assert.include(error.message, name)
        assert.deepStrictEqual(listAll(into.root), [])
        const memory = makeAlgebra(yield* InMemory.make())
        assert.strictEqual((yield* Effect.flip(Archive.importBytesOf(memory, whole)))._tag, "ArchiveError")
        assert.deepStrictEqual(yield* memory.port.list(p(".")), [])
      }).pipe(Effect.scoped)
    )
  }

  it.live("is imported completely or not at all when the import is interrupted", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      const whole = yield* Archive.exportBytesOf(makeAlgebra(port))
      const before = yield* scan(port)
      for (const steps of [1, 5, 20, 40, 60, 80, 120, 200, 400]) {
        const into = yield* host()
        const fiber = yield* Effect.forkChild(Archive.importBytesOf(makeAlgebra(into.port), whole))
        for (let step = 0; step < steps; step++) yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
        yield* Fiber.interrupt(fiber)
        if (listAll(into.root).length > 0) assertSame(yield* scan(into.port), before)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is staged without threads if the threads end after they have created files", () =>
    Effect.gen(function* () {
      const { Worker } = process.getBuiltinModule("node:worker_threads")
      const endsAtReport = `require("node:worker_threads").parentPort.postMessage = () => process.exit(1)`
      const threads = yield* Effect.acquireRelease(
        Effect.sync(() => Threads.make(2, () => new Worker(`${endsAtReport}\n${program()}`, { eval: true }))),
        ({ end }) => Effect.sync(end)
      )
      const { port, root } = yield* host()
      const names = Array.from({ length: 300 }, (_, f) => `f${f}`)
      const content = Buffer.from("same")
      const source: Source = { size: 4, read: () => Effect.succeed(content) }
      const file = { kind: "file", id: "", sizeBytes: 4 } as const
      const after: DirectoryNode = { kind: "directory", entries: new Map(names.map((name) => [name, file])) }
      const entry = { data: 0, packed: 4, size: 4, crc: crc32(content), method: 0 }
      yield* replaceTree(port, {
        after,
        content: () => Effect.succeed(content),
        unpack: (files, options) =>
          unpackFiles(
            source,
            files.map((file) => [entry, file]),
            { ...options, threads }
          )
      })
      assert.deepStrictEqual(Fs.readdirSync(root).sort(), names.toSorted())
      for (const name of names) assert.strictEqual(Fs.readFileSync(join(root, name), "utf8"), "same")
    }).pipe(Effect.scoped)
  )

  it.live("replaces entries that appear in the empty directory while the archive is read", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      const whole = yield* Archive.exportBytesOf(makeAlgebra(port))
      const into = yield* host()
      const bytes = Stream.fromEffect(
        Effect.sync(() => {
          Fs.mkdirSync(join(into.root, "top2/d2"), { recursive: true })
          Fs.copyFileSync(join(root, "top2/d2/f3.txt"), join(into.root, "top2/d2/f3.txt"))
          Fs.writeFileSync(join(into.root, "top2/d2/other"), "other")
          return whole
        })
      )
      yield* Archive.importZipOf(makeAlgebra(into.port), bytes)
      assertSame(yield* scan(into.port), yield* scan(port))
    }).pipe(Effect.scoped)
  )

  it.live("contains a file that has hard links, unless the filesystem refuses such files", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      Fs.linkSync(join(root, "top2/d2/f3.txt"), join(root, "top2/d2/second"))
      const memory = makeAlgebra(yield* InMemory.make())
      yield* Archive.importBytesOf(memory, yield* Archive.exportBytesOf(makeAlgebra(port)))
      const { content } = yield* memory.readBytes("top2/d2/second")
      assert.isTrue(Fs.readFileSync(join(root, "top2/d2/f3.txt")).equals(content))
      const strict = yield* PosixHost.make({ root, hardlinks: "reject" })
      const error = yield* Effect.flip(Archive.exportBytesOf(makeAlgebra(strict)))
      assert.notStrictEqual(error._tag, "ArchiveError")
    }).pipe(Effect.scoped)
  )

  it.live("is counted by the metrics of its export and its import", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      sow(root)
      const { bytes } = yield* scan(port)
      const counted = <A, E, R>(effect: Effect.Effect<A, E, R>, direction: "read" | "written") =>
        Effect.provideService(
          Effect.gen(function* () {
            const value = yield* effect
            const found = (yield* Metric.snapshot).find(({ id }) => id === `fs_algebra_${direction}_bytes_total`)
            return [value, found?.type === "Counter" ? found.state.count : undefined] as const
          }),
          Metric.MetricRegistry,
          new Map()
        )
      const [whole, read] = yield* counted(Archive.exportBytesOf(traced(makeAlgebra(port))), "read")
      assert.strictEqual(read, bytes)
      const into = yield* host()
      const [, written] = yield* counted(Archive.importBytesOf(traced(makeAlgebra(into.port)), whole), "written")
      assert.strictEqual(written, bytes)
    }).pipe(Effect.scoped)
  )

  it.live("reads no file again that a thread has read", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const large = (f: number): boolean => f % 50 === 0
      for (let f = 0; f < 400; f++) Fs.writeFileSync(join(root, `f${f}`), "x".repeat(large(f) ? 40_000 : 100))
      const read: Array<string> = []
      const perform = Request.override(port.perform, (perform) => ({
        ReadMany: (request) => {
          read.push(...request.paths)
          return perform(request)
        }
      }))
      yield* Archive.exportBytesOf(makeAlgebra({ ...port, perform }))
      assert.deepStrictEqual(read.sort(), Array.from({ length: 8 }, (_, n) => `f${50 * n}`).sort())
    }).pipe(Effect.scoped)
  )

  it.live("is read completely even if its source reuses one buffer for all reads", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      for (let f = 0; f < 400; f++) Fs.writeFileSync(join(root, `f${f}`), randomBytes(2048))
      const whole = yield* Archive.exportBytesOf(makeAlgebra(port))
      const memory = Buffer.alloc(whole.length)
      const source: Source = {
        size: whole.length,
        read: (offset, length) =>
          Effect.sync(() => {
            memory.fill(0)
            memory.set(whole.subarray(offset, offset + length))
            return memory.subarray(0, length)
          })
      }
      const { tree } = yield* readZip(source, { limits: Limits.standard, policy: undefined })
      for (const [name, node] of tree.entries) {
        assert(node.kind === "file")
        assert.strictEqual(node.id, blobId(Fs.readFileSync(join(root, name))))
      }
    }).pipe(Effect.scoped)
  )
})
