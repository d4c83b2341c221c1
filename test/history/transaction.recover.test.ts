import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { runTransaction } from "../../src/history/transaction.ts"
import { settle } from "../../src/history/transaction/settle.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around, type Backend } from "../../src/port/Backend.ts"
import { describeOutcome } from "../../src/port/hostRoots.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import * as Transactions from "../../src/runtime/transactions.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { failing, systemError } from "../backends/posixFailures.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { allKinds, file, goalOf, look, plant, tree, type Tree, unlike } from "./transactionTrees.ts"
import type { Orders, Recovered } from "./killed.ts"
import { type Kept, opening, openingWith, recordsDirectory, recordsOf, recovered, write } from "./records.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const minutes = 60_000

const { after, before } = allKinds()

const hidden = (root: string): ReadonlyArray<string> => Fs.readdirSync(root).filter((name) => name.startsWith(".~fsa-"))

/** Copies the disk before each changing call of a transaction and after the last call. */
const moments = (before: Tree, after: Tree, visit: (copy: string, moment: number) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const top = yield* fastDirectory
    const root = join(top, "root")
    plant(root, before)
    const port = yield* PosixHost.make({ root })
    let moment = 0
    const copied = Effect.suspend(() => {
      const copy = join(top, `copy-${moment}`)
      execFileSync("cp", ["-a", root, copy])
      for (const kept of recordsOf(root)) write(copy, kept)
      return Effect.andThen(
        visit(copy, moment++),
        Effect.sync(() => Fs.rmSync(copy, { recursive: true }))
      )
    })
    const changes = new Set(["Write", "MakeDirectory", "Remove", "Rename", "MakeLink", "SetAttributes"])
    const watched = around(port, (operation, next) => (changes.has(operation._tag) ? Effect.andThen(copied, next) : next))
    yield* runTransaction(watched, goalOf(before, after))
    yield* copied
    return moment
  })

/**
 * Leaves the disk in the state that a process leaves if it is killed before its nth rename. Returns the records of the
 * unfinished change, which the caller must still write.
 */
const killedAt = (
  root: string,
  nth: number,
  before: Tree,
  after: Tree
): Effect.Effect<ReadonlyArray<Kept>, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const copy = `${root}-copy`
    plant(root, before)
    const port = yield* Effect.orDie(PosixHost.make({ root }))
    let renames = 0
    let kept: ReadonlyArray<Kept> = []
    const watched: Backend = {
      ...port,
      rename: (from, to, how) =>
        Effect.andThen(
          Effect.sync(() => {
            if (++renames !== nth) return
            execFileSync("cp", ["-a", root, copy])
            kept = recordsOf(root)
          }),
          port.rename(from, to, how)
        )
    }
    yield* Effect.orDie(runTransaction(watched, goalOf(before, after)) as Effect.Effect<void, Fault>)
    assert.isAtLeast(renames, nth)
    Fs.rmSync(root, { recursive: true })
    Fs.renameSync(copy, root)
    return kept
  })

const left = (root: string, nth: number, before: Tree, after: Tree) =>
  Effect.map(killedAt(root, nth, before, after), (kept) => kept.map((each) => write(root, each)))

const inRoot = <A, E>(use: (root: string) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(fastDirectory, (top) => use(join(top, "root"))))

describe("the tree of a process that is killed before one of its calls", () => {
  for (const [claim, from, to] of [
    ["from one tree to another", before, after],
    ["in the reverse direction", after, before]
  ] as const) {
    it.live(
      `is the whole old or the whole new tree after the next start, without hidden names (${claim})`,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const complaints: Array<string> = []
            const outcomes: Record<string, number> = {}
            let isNew = false
            const count = yield* moments(from, to, (copy, moment) =>
              Effect.gen(function* () {
                const had = hidden(copy).length
                const outcome = yield* Effect.orDie(recovered(copy))
                outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
                if (outcome === "finished") isNew = true
                const wrong = unlike(look(copy), isNew ? to : from)
                if (wrong.length > 0) complaints.push(`moment ${moment}, ${outcome}: ${wrong.join()}`)
                if (had > 0 && outcome === "none") complaints.push(`moment ${moment}: none with ${had} hidden`)
                assert.strictEqual(yield* Effect.orDie(recovered(copy)), "none")
              })
            )
            assert.deepStrictEqual(complaints, [])
            assert.isAbove(count, 80)
            assert.isAbove(outcomes["finished"] ?? 0, 20)
            assert.isAbove(outcomes["cleared"] ?? 0, 20)
          })
        ),
      2 * minutes
    )
  }

  it.live(
    "is the old or the new tree after the next start if the process was rolling back a failed change",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const top = yield* fastDirectory
          const root = join(top, "root")
          plant(root, before)
          const port = yield* PosixHost.make({ root })
          const complaints: Array<string> = []
          let moment = 0
          let failed = false
          const visit = Effect.gen(function* () {
            const copy = join(top, `copy-${moment++}`)
            execFileSync("cp", ["-a", root, copy])
            for (const kept of recordsOf(root)) write(copy, kept)
            yield* Effect.orDie(recovered(copy))
            const found = look(copy)
            if (unlike(found, before).length > 0 && unlike(found, after).length > 0) {
              complaints.push(`moment ${moment}: ${unlike(found, after).join()}`)
            }
            Fs.rmSync(copy, { recursive: true })
          })
          const broken = around(port, (operation, next) => {
            if (operation._tag === "SetAttributes" && operation.path === "." && !failed) {
              failed = true
              return Effect.fail({ _tag: "IoError", code: "EIO", detail: "planned" })
            }
            return failed && operation._tag !== "Stat" && operation._tag !== "List" ? Effect.andThen(visit, next) : next
          })
          yield* Effect.flip(runTransaction(broken, goalOf(before, after)))
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(moment, 20)
          assert.deepStrictEqual(unlike(look(root), before), [])
        })
      ),
    2 * minutes
  )
})

describe("the recovery of a killed process, after other programs have changed files,", () => {
  const small = {
    before: tree({
      a: file("a"),
      changed: file("old"),
      removed: file("old"),
      d: tree({ gone: file("1"), same: file("2") }),
      goes: tree({ e: tree({ f: file("1") }), g: file("2") }),
      turns: tree({ f: file("1") })
    }),
    after: tree({
      a: file("b"),
      changed: file("new"),
      removed: file("new"),
      d: tree({ new: file("1"), same: file("2") }),
      turns: file("1"),
      z: tree({ f: file("1") })
    })
  }
  const cases: ReadonlyArray<readonly [claim: string, change: (root: string) => void, expected: (tree: Tree) => Tree]> = [
    ["there are none, and the new tree is complete", () => {}, (tree) => tree],
    [
      "a file that the transaction changes has other content",
      (root) => Fs.writeFileSync(join(root, "changed"), "mine"),
      (found) => ({ ...found, entries: { ...found.entries, changed: file("mine") } })
    ],
    [
      "a file that the transaction changes is missing",
      (root) => Fs.rmSync(join(root, "removed")),
      ({ entries: { removed: _, ...entries }, mode }) => ({ mode, entries })
    ],
    [
      "a directory has the path of a new directory",
      (root) => Fs.mkdirSync(join(root, "z")),
      (found) => ({ ...found, entries: { ...found.entries, z: tree({}) } })
    ],
    [
      "a file was added deep in a directory that the transaction removes",
      (root) => Fs.writeFileSync(join(root, "goes/e/mine"), "mine"),
      (found) => ({
        ...found,
        entries: { ...found.entries, goes: tree({ e: tree({ f: file("1"), mine: file("mine") }), g: file("2") }) }
      })
    ],
    [
      "a file was edited in a directory that the transaction replaces by a file",
      (root) => Fs.writeFileSync(join(root, "turns/f"), "mine"),
      (found) => ({ ...found, entries: { ...found.entries, turns: tree({ f: file("mine") }) } })
    ],
    [
      "a file that the transaction removes has other content",
      (root) => Fs.writeFileSync(join(root, "d/gone"), "mine"),
      (found) => ({
        ...found,
        entries: { ...found.entries, d: tree({ gone: file("mine"), new: file("1"), same: file("2") }) }
      })
    ],
    [
      "a file that the transaction does not touch was created",
      (root) => Fs.writeFileSync(join(root, "d/mine"), "mine"),
      (found) => ({
        ...found,
        entries: { ...found.entries, d: tree({ mine: file("mine"), new: file("1"), same: file("2") }) }
      })
    ]
  ]
  for (const [claim, change, expected] of cases) {
    it.live(`keeps the changes of other programs: ${claim}`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const [kept] = yield* killedAt(root, 1, small.before, small.after)
          assert.deepStrictEqual(unlike(look(join(root)), small.before), [`${hidden(root)[0]} is there`])
          // A change in the same clock tick as the record looks older than the record, so the record is dated back.
          const since = Number(/"since":([0-9.]+)/.exec(kept!.body)![1])
          write(root, { ...kept!, body: kept!.body.replace(/"since":[0-9.]+/g, `"since":${since - 1000}`) })
          for (const path of ["goes/e/f", "goes/e", "goes/g", "goes", "turns/f", "turns"]) {
            Fs.utimesSync(join(root, path), new Date(since), new Date(since - 2000))
          }
          change(root)
          assert.strictEqual(yield* recovered(root), "finished")
          assert.deepStrictEqual(unlike(look(root), expected(small.after)), [])
        })
      )
    )
  }

  const displaced: ReadonlyArray<readonly [claim: string, instead: (path: string) => void]> = [
    ["nothing is at its path", () => {}],
    ["a file is at its path", (path) => Fs.writeFileSync(path, "mine")],
    ["a symlink to the moved directory is at its path", (path) => Fs.symlinkSync("mine", path)]
  ]
  for (const [claim, instead] of displaced) {
    it.live(`waits for a moved directory that must receive an entry: ${claim}`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const from = tree({ a: file("1"), d: tree({ gone: file("1"), turns: tree({}) }) })
          const to = tree({ a: file("2"), d: tree({ new: file("1"), turns: file("2") }) })
          // The entry to replace has been moved aside and is nowhere else.
          yield* left(root, 4, from, to)
          const [d, mine] = [join(root, "d"), join(root, "mine")]
          Fs.renameSync(d, mine)
          instead(d)
          const found = look(root)
          const [settled] = yield* opening(root)
          assert.deepInclude(settled, { outcome: "left" })
          assert.match(settled!.detail!, /the directory "d" no longer exists; restore it/)
          assert.deepStrictEqual(look(root), found)
          Fs.rmSync(d, { force: true })
          Fs.renameSync(mine, d)
          assert.strictEqual(yield* recovered(root), "finished")
          assert.deepStrictEqual(unlike(look(root), to), [])
        })
      )
    )
  }

  it.live("does not wait for a missing directory if the change only removes entries from it", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        yield* left(root, 1, tree({ a: file("1"), d: tree({ f: file("1") }) }), tree({ a: file("2"), d: tree({}) }))
        Fs.rmSync(join(root, "d"), { recursive: true })
        assert.strictEqual(yield* recovered(root), "finished")
        assert.deepStrictEqual(unlike(look(root), tree({ a: file("2") })), [])
      })
    )
  )

  it.live("keeps a file that another program put in the place of a directory that was already moved aside", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const from = tree({ d: tree({ f: file("1") }), x: tree({}) })
        const to = tree({ d: file("flat") })
        // The next rename would put the file in the place of the directory.
        yield* left(root, 3, from, to)
        assert.strictEqual(Fs.existsSync(join(root, "d")), false)
        Fs.writeFileSync(join(root, "d"), "mine")
        assert.strictEqual(yield* recovered(root), "finished")
        assert.deepStrictEqual(unlike(look(root), tree({ d: file("mine") })), [])
      })
    )
  )
})

describe("a recovery whose process is killed as well", () => {
  const [from, to] = [tree({ a: file("1"), b: file("2"), d: tree({ e: file("3") }) }), tree({ a: file("4"), c: file("5") })]

  /**
   * Runs a recovery that dies after its nth removal or rename, counted from zero. Returns whether the recovery made so many
   * calls.
   */
  const dying = (root: string, kept: ReadonlyArray<Kept>, last: number) =>
    Effect.gen(function* () {
      const port = yield* PosixHost.make({ root })
      for (const each of kept) write(root, each)
      let calls = 0
      const changes = new Set(["Remove", "Rename"])
      const counted = around(port, (operation, next) =>
        Effect.tap(next, () => (changes.has(operation._tag) && calls++ >= last ? Effect.die("killed") : Effect.void))
      )
      const [report, reported] = [() => Effect.void, new Set<string>()]
      const own = Transactions.rootAt(Fs.realpathSync(root))!
      yield* Effect.exit(
        settle({ root: own, port: counted, open: () => Effect.succeed(port), permits: () => true, report, reported })
      )
      return calls > last
    })

  it.live("is completed by the next recovery, after any of its calls, without leftovers", () =>
    Effect.gen(function* () {
      const complaints: Array<string> = []
      const killing = (last: number) =>
        inRoot((root) =>
          Effect.gen(function* () {
            const kept = yield* killedAt(root, 2, from, to)
            const isKilled = yield* dying(root, kept, last)
            const left = (yield* opening(root)).filter(({ outcome }) => outcome === "left")
            const wrong = [...unlike(look(root), to), ...hidden(root), ...left.map(describeOutcome)]
            if (wrong.length > 0 || recordsOf(root).length > 0) complaints.push(`after call ${last}: ${wrong.join()}`)
            return isKilled
          })
        )
      let last = 0
      while (yield* killing(last)) last++
      assert.deepStrictEqual(complaints, [])
      assert.isAbove(last, 8)
    })
  )
})

describe("untrusted records and leftovers:", () => {
  const from = tree({ a: file("1"), b: file("2") })
  const to = tree({ a: file("3"), c: file("4") })

  const unfinished = (root: string) => Effect.map(killedAt(root, 1, from, to), ([kept]) => kept!)

  it.live("the unfinished change of a process of unknown state stays, however old, and is reported", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const file = write(root, yield* unfinished(root), "0-1-2")
        const longAgo = new Date(2020, 0, 1)
        for (const path of [file, join(root, hidden(root)[0]!)]) Fs.utimesSync(path, longAgo, longAgo)
        const found = look(root)
        const said = yield* opening(root)
        assert.deepStrictEqual(
          said.map(({ outcome, owner }) => [outcome, owner]),
          [["left", "0-1-2"]]
        )
        // The record is not read, so its number of paths is unknown.
        assert.include(describeOutcome(said[0]!), `left the unfinished change in ${JSON.stringify(Fs.realpathSync(root))} by`)
        assert.deepStrictEqual(look(root), found)
        Fs.rmSync(file)
      })
    )
  )

  it.live("a process of an earlier boot of this machine counts as dead", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const kept = yield* unfinished(root)
        const machine = Identity.boot()?.machine
        if (machine === undefined) return
        const header = { ...kept.header, boot: { machine, boot: "before" } }
        write(root, { ...kept, header }, "0-1-2")
        assert.strictEqual(yield* recovered(root), "finished")
        assert.deepStrictEqual(unlike(look(root), to), [])
      })
    )
  )

  it.live("opening a root fails with the name of a process that keeps changing files in it", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const file = write(root, yield* unfinished(root), Identity.self())
        const found = look(root)
        const error = yield* Effect.flip(opening(root))
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, Identity.self())
        assert.include(error.message, root)
        assert.deepStrictEqual(look(root), found)
        Fs.rmSync(file)
      })
    )
  )

  it.live("opening a root waits for a process that finishes its transaction", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const file = write(root, yield* unfinished(root), Identity.self())
        const opened = yield* Effect.forkChild(opening(root))
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
        assert.isUndefined(opened.pollUnsafe())
        Fs.renameSync(file, file.replace(/forward$/, "done"))
        assert.deepStrictEqual(yield* Fiber.join(opened), [])
        Fs.rmSync(file.replace(/forward$/, "done"))
      })
    )
  )

  for (const [claim, call] of [
    ["a record", "openSync"],
    ["the directory of the records", "readdirSync"]
  ] as const) {
    it.live(`${claim} that cannot be read for lack of descriptors stays, and opening the root says so`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const record = write(root, yield* unfinished(root))
          const unread = call === "openSync" ? record : recordsDirectory()
          const lacking = failing(call, (path) => (path === unread ? systemError("EMFILE", -24, call) : undefined))
          const error = yield* Effect.scoped(Effect.andThen(lacking, Effect.flip(opening(root))))
          assert.strictEqual(error._tag, "Unavailable")
          assert.include(error.message, "EMFILE")
          assert.isTrue(Fs.existsSync(record))
          assert.strictEqual(yield* recovered(root), "finished")
          assert.deepStrictEqual(unlike(look(root), to), [])
        })
      )
    )
  }

  const changes: ReadonlyArray<readonly [claim: string, change: (root: string, staging: string) => void]> = [
    ["has other content", (_, staging) => Fs.writeFileSync(join(staging, "new/0"), "forged")],
    [
      "is a link",
      (_, staging) => {
        Fs.rmSync(join(staging, "new/0"))
        Fs.symlinkSync("/etc/passwd", join(staging, "new/0"))
      }
    ],
    ["has other permission bits", (_, staging) => Fs.chmodSync(join(staging, "new/0"), 0o755)],
    ["is a directory with a changed file", (_, staging) => Fs.writeFileSync(join(staging, "new/1/f"), "forged")],
    ["is a directory with an additional file", (_, staging) => Fs.writeFileSync(join(staging, "new/1/g"), "forged")],
    ["is missing together with its directory", (_, staging) => Fs.rmSync(staging, { recursive: true })]
  ]
  for (const [claim, change] of changes) {
    it.live(`a staged entry that ${claim} is not published, and nothing else changes`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const [before, after] = [tree({ a: file("1") }), tree({ a: file("2"), d: tree({ f: file("3") }) })]
          const [kept] = yield* killedAt(root, 1, before, after)
          const record = write(root, kept!)
          change(root, join(root, hidden(root)[0]!))
          const found = look(root)
          const [said] = yield* opening(root)
          assert.strictEqual(said!.outcome, "left")
          assert.include(said!.detail, record)
          assert.deepStrictEqual(look(root), found)
          Fs.rmSync(record)
        })
      )
    )
  }

  it.live("a copy of a root is not mistaken for the root", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        write(root, yield* unfinished(root))
        const copy = `${root}-copied`
        execFileSync("cp", ["-a", root, copy])
        const found = look(copy)
        assert.deepStrictEqual(yield* opening(copy), [])
        assert.deepStrictEqual(look(copy), found)
        Fs.renameSync(root, `${root}-moved`)
        Fs.renameSync(copy, root)
        assert.deepStrictEqual(yield* opening(root), [])
        assert.deepStrictEqual(look(root), found)
        assert.strictEqual(yield* recovered(`${root}-moved`), "finished")
      })
    )
  )

  const onAnotherDevice = (file: string): void => {
    const [header, ...body] = Fs.readFileSync(file, "utf8").split("\n")
    const { roots, ...rest } = JSON.parse(header!) as Kept["header"]
    const renumbered = roots.map((each) => ({ ...each, device: `${each.device}1` }))
    Fs.writeFileSync(file, [JSON.stringify({ ...rest, roots: renumbered }), ...body].join("\n"))
  }

  it.live("a root is recognised by its staged entries when its device number has changed", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const file = write(root, yield* unfinished(root))
        onAnotherDevice(file)
        assert.strictEqual(yield* recovered(root), "finished")
        assert.deepStrictEqual(unlike(look(root), to), [])
        assert.isFalse(Fs.existsSync(file))
      })
    )
  )

  it.live("a directory on another device without staged entries is not mistaken for the root", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const file = write(root, yield* unfinished(root))
        onAnotherDevice(file)
        const staging = join(root, hidden(root)[0]!)
        Fs.renameSync(staging, `${root}-staged`)
        Fs.symlinkSync(`${root}-staged`, staging)
        const found = look(root)
        assert.deepStrictEqual(yield* opening(root), [])
        assert.deepStrictEqual(look(root), found)
        Fs.rmSync(file)
      })
    )
  )

  it.live("a filesystem without permission to write or delete reports the change and leaves it", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const record = write(root, yield* unfinished(root))
        const found = look(root)
        for (const options of [{ readOnly: true }, { allowWrite: false }, { allowDelete: false }]) {
          const [said] = yield* openingWith(PosixHost.make({ root, ...options }))
          assert.strictEqual(said!.outcome, "left")
          assert.include(said!.detail, "does not permit the change")
        }
        const [denied] = yield* opening(root, (path) => path !== "c")
        assert.strictEqual(denied!.outcome, "left")
        assert.deepStrictEqual(look(root), found)
        assert.isTrue(Fs.existsSync(record))
        assert.strictEqual(yield* recovered(root), "finished")
        assert.isFalse(Fs.existsSync(record))
      })
    )
  )

  for (const [claim, where] of [
    ["a directory in that root", (root: string) => root],
    ["the parent directory of that root", (root: string) => join(root, "..")]
  ] as const) {
    it.live(`an unfinished change in a root is completed when another process opens ${claim}`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const outer = claim === "a directory in that root" ? join(root, "d") : where(root)
          const [before, after] = [tree({ d: tree({ a: file("1") }) }), tree({ d: tree({ a: file("2") }), b: file("3") })]
          yield* left(root, 1, before, after)
          assert.strictEqual(yield* recovered(outer), "finished")
          assert.deepStrictEqual(unlike(look(root), after), [])
        })
      )
    )
  }

  const line = (value: unknown): string => `${JSON.stringify(value)}\n`
  const region = { _tag: "region", root: 0, index: 0, path: ".", isFlat: false }
  const step = {
    _tag: "step",
    root: 0,
    path: "a",
    region: 0,
    slot: 0,
    next: "file",
    keeps: false,
    digest: "0".repeat(64),
    hasBits: false
  }
  const end = line({ _tag: "end" })
  const bodyOf = (...lines: ReadonlyArray<unknown>): string => lines.map(line).join("") + end
  const bad: ReadonlyArray<readonly [claim: string, body: string]> = [
    ["is empty", ""],
    ["is truncated within its last line", bodyOf(region, step).slice(0, -4)],
    ["is truncated before its last line", line(region) + line(step)],
    ["is not JSON", "{ not JSON\n"],
    ["names a path out of the root", bodyOf(region, { ...step, path: "../outside" })],
    ["names an absolute path", bodyOf(region, { ...step, path: "/etc/passwd" })],
    ["names a path that climbs above the root by inner segments", bodyOf(region, { ...step, path: "x/../../outside" })],
    ["names the root as a path", bodyOf(region, { ...step, path: "." })],
    ["names a region out of the root", bodyOf(region, { ...region, index: 1, path: ".." })],
    ["names a missing region", bodyOf(region, { ...step, region: 1 })],
    ["names another root", bodyOf(region, { ...step, root: 1 })],
    ["has no region", bodyOf(step)],
    ["has a slot that is a path", bodyOf(region, { ...step, slot: "../../outside" })],
    ["has a slot that is not an integer", bodyOf(region, { ...step, slot: 0.5 })],
    ["stages an entry without a digest", bodyOf(region, { ...step, digest: undefined })],
    [
      "has a mode with more than permission bits",
      bodyOf(region, { _tag: "mode", root: 0, path: "a", kind: "file", was: 0, becomes: 0o4755, opens: false })
    ],
    ["has an unknown kind", bodyOf(region, { ...step, next: "other" })]
  ]
  for (const [claim, body] of bad) {
    it.live(`a record that ${claim} is moved aside, and nothing else changes`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const kept = yield* unfinished(root)
          const record = write(root, { ...kept, body })
          const outside = look(join(root, ".."))
          const [said] = yield* opening(root)
          assert.strictEqual(said!.outcome, "left")
          assert.deepStrictEqual(look(join(root, "..")), outside)
          assert.isFalse(Fs.existsSync(record))
          assert.isTrue(Fs.existsSync(`${record}.broken`))
          assert.deepStrictEqual(yield* opening(root), [])
          Fs.rmSync(`${record}.broken`)
        })
      )
    )
  }

  const odd: ReadonlyArray<readonly [claim: string, make: (path: string) => void]> = [
    ["a FIFO", (path) => void execFileSync("mkfifo", [path])],
    ["a link", (path) => Fs.symlinkSync("/etc/passwd", path)],
    ["a directory", (path) => Fs.mkdirSync(path)],
    ["empty", (path) => Fs.writeFileSync(path, "")],
    ["larger than any record", (path) => Fs.closeSync(Fs.openSync(path, "w"))]
  ]
  for (const [claim, make] of odd) {
    it.live(`a record that is ${claim} does not block opening the root`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          const kept = yield* unfinished(root)
          const path = write(root, kept)
          Fs.rmSync(path)
          make(path)
          if (claim.startsWith("larger")) Fs.truncateSync(path, Transactions.maxRecordBytes + 1)
          const found = look(root)
          assert.deepStrictEqual(yield* opening(root), [])
          assert.deepStrictEqual(look(root), found)
          Fs.rmSync(`${path}.broken`, { recursive: true })
        })
      )
    )
  }
})

it.live("a change that could not be rolled back is completed by the next start, even in the same process", () =>
  inRoot((root) =>
    Effect.gen(function* () {
      const { after, before } = allKinds(10)
      plant(root, before)
      const port = yield* PosixHost.make({ root })
      const broken = faulty([
        { operation: "SetAttributes", path: ".", fault: { _tag: "IoError", code: "EIO", detail: "planned" } },
        { operation: "Rename", path: "new tree", fault: { _tag: "IoError", code: "EIO", detail: "planned" } }
      ])(make(port))
      const fault = yield* Effect.flip(runTransaction(broken.port, goalOf(before, after)))
      assert.strictEqual(fault._tag, "IoError")
      assert.strictEqual(hidden(root).length, 1)
      yield* port.hostRoots!.settleTransactions(() => true)
      assert.deepStrictEqual(unlike(look(root), after), [])
    })
  )
)

const program = fileURLToPath(new URL("./killed.ts", import.meta.url))

interface Child {
  readonly kill: () => void
  readonly lines: (count: number) => Promise<void>
  readonly ended: Promise<ReadonlyArray<unknown>>
}

const start = (orders: Orders): Child => {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: join(orders.root, "../cache") }
  })
  child.stdin.on("error", () => undefined)
  child.stdin.end(JSON.stringify(orders))
  let said = ""
  const waiting = new Set<() => void>()
  const wake = (): void => waiting.forEach((look) => look())
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    said += more
    wake()
  })
  let hasEnded = false
  const linesOf = (): ReadonlyArray<string> => said.split("\n").slice(0, -1)
  const ended = new Promise<ReadonlyArray<unknown>>((resolve) =>
    child.once("close", () => {
      hasEnded = true
      wake()
      resolve(linesOf().map((line) => JSON.parse(line) as unknown))
    })
  )
  return {
    kill: () => void child.kill("SIGKILL"),
    lines: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!hasEnded && linesOf().length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    ended
  }
}

/** Returns a mulberry32 generator. */
const dice = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
}

// restoreKilled.test.ts also kills restores through the layer.
const kills = soak ? 500 : 6

describe("a process that is killed while it replaces one tree by another", () => {
  it.live(
    `leaves one whole tree or the other after the next start, ${kills} times`,
    () =>
      inRoot((root) =>
        Effect.promise(async () => {
          const trees = [allKinds(2000).before, allKinds(2000).after] as const
          const random = dice(soak ? Number(process.hrtime.bigint() % 1_000_000n) : 7)
          plant(root, trees[0])
          const outcomes: Record<string, number> = {}
          const complaints: Array<string> = []
          const judge = (kill: number, said: ReadonlyArray<unknown>): void => {
            const [first, ...rest] = said as [Recovered, ...ReadonlyArray<unknown>]
            const failed = [first, ...rest].find((line) => typeof line === "object" && line !== null && "failed" in line)
            if (failed !== undefined) complaints.push(`after kill ${kill}: ${JSON.stringify(failed)}`)
            else if (first.unlike.every((wrong) => wrong.length > 0)) {
              complaints.push(`after kill ${kill}, ${first.recovered}: ${first.unlike.join(" and ")}`)
            }
            outcomes[first.recovered] = (outcomes[first.recovered] ?? 0) + 1
          }
          for (let kill = 0; kill < kills; kill++) {
            // Half of the kills come between two calls, chosen evenly; the others come at any time.
            if (kill % 2 === 0) {
              judge(kill, await start({ root, trees, what: "loop", call: 1 + Math.floor(random() * 200) }).ended)
              continue
            }
            const child = start({ root, trees, what: "loop" })
            await child.lines(2 + Math.floor(random() * 4))
            await new Promise((resolve) => setTimeout(resolve, random() * 60))
            child.kill()
            judge(kill, await child.ended)
          }
          judge(kills, await start({ root, trees, what: "recover" }).ended)
          console.log(`${kills} kills: ${JSON.stringify(outcomes)}`)
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(outcomes["finished"] ?? 0, 0)
          assert.isAbove(outcomes["cleared"] ?? 0, 0)
        })
      ),
    soak ? 60 * minutes : 3 * minutes
  )
})

const isRoot = process.getuid?.() === 0
if (!isRoot) {
  assert.isUndefined(process.env["FS_ALGEBRA_NO_SKIP"], "it needs root to become somebody else")
  console.log("skipped: transactions of another user, which need root: sudo npm test")
}

describe.runIf(isRoot)("a process of another user", () => {
  const nobody = 65534
  const give = (path: string): void => void execFileSync("chown", ["-hR", `${nobody}:${nobody}`, path])

  it.live("replaces its own read-only directories and restores them, the root included", () =>
    inRoot((root) =>
      Effect.promise(async () => {
        Fs.chmodSync(join(root, ".."), 0o755)
        const kinds = allKinds(1000)
        const trees = [{ ...kinds.before, mode: 0o555 }, kinds.after] as const
        plant(root, trees[0])
        give(root)
        const said = await start({ root, trees, what: "there and back", user: nobody }).ended
        assert.deepStrictEqual(said.slice(1), [[], []])
      })
    )
  )

  it.live("gets AccessDenied for directories of other users, and changes nothing", () =>
    inRoot((root) =>
      Effect.promise(async () => {
        Fs.chmodSync(join(root, ".."), 0o755)
        const trees = [
          tree({ d: tree({ f: file("1") }), a: file("1") }),
          tree({ d: tree({ f: file("2") }), a: file("2") })
        ] as const
        plant(root, trees[0])
        give(root)
        Fs.chownSync(join(root, "d"), 0, 0)
        const [, answer] = await start({ root, trees, what: "there and back", user: nobody }).ended
        assert.match(JSON.stringify(answer), /AccessDenied/)
        assert.deepStrictEqual(unlike(look(root), trees[0]), [])
      })
    )
  )
})
