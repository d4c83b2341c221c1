import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { exchange, recover } from "../../src/history/exchange.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around, type Backend } from "../../src/port/Backend.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { allKinds, file, goalOf, look, plant, tree, type Tree, unlike } from "./exchanging.ts"
import type { Orders, Recovered } from "./killed.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const minutes = 60_000

const { after, before } = allKinds()

const hidden = (root: string): ReadonlyArray<string> => Fs.readdirSync(root).filter((name) => name.startsWith(".~fsa-"))

/** A process with our number that has started at another time has ended. */
const dead = (): string => Identity.self().replace(/[^-]+$/, "1")

/** As if the process that has made it had ended. */
const orphan = (root: string): string | undefined => {
  for (const name of hidden(root)) {
    const renamed = name.replace(Identity.self(), dead())
    Fs.renameSync(join(root, name), join(root, renamed))
    return renamed
  }
  return undefined
}

/** The disk as it is before each call of an exchange, and after the last one. */
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
      orphan(copy)
      return Effect.andThen(
        visit(copy, moment++),
        Effect.sync(() => Fs.rmSync(copy, { recursive: true }))
      )
    })
    const changes = new Set(["Write", "MakeDirectory", "Remove", "Rename", "MakeLink", "SetAttributes"])
    const watched = around(port, (operation, next) => (changes.has(operation._tag) ? Effect.andThen(copied, next) : next))
    yield* exchange(watched, goalOf(before, after))
    yield* copied
    return moment
  })

const recovered = (root: string) => Effect.scoped(Effect.flatMap(PosixHost.make({ root }), recover))

/** Killed before this call of those that change names, for which there is something to finish. */
const killedAt = (root: string, nth: number, before: Tree, after: Tree): Effect.Effect<string, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const copy = `${root}-copy`
    plant(root, before)
    const port = yield* Effect.orDie(PosixHost.make({ root }))
    let renames = 0
    const watched: Backend = {
      ...port,
      rename: (from, to, how) =>
        Effect.andThen(
          Effect.sync(() => {
            if (++renames === nth) execFileSync("cp", ["-a", root, copy])
          }),
          port.rename(from, to, how)
        )
    }
    yield* Effect.orDie(exchange(watched, goalOf(before, after)) as Effect.Effect<void, Fault>)
    assert.isAtLeast(renames, nth)
    Fs.rmSync(root, { recursive: true })
    Fs.renameSync(copy, root)
    orphan(root)
    return root
  })

const inRoot = <A, E>(use: (root: string) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(fastDirectory, (top) => use(join(top, "root"))))

describe("what a process leaves that ends before any of its calls", () => {
  for (const [claim, from, to] of [
    ["there", before, after],
    ["and back", after, before]
  ] as const) {
    it.live(
      `is the old tree or becomes the new one, whole, with nothing hidden, ${claim}`,
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
                if ((had === 0) !== (outcome === "none")) complaints.push(`moment ${moment}: ${outcome} with ${had} hidden`)
                assert.strictEqual(yield* Effect.orDie(recovered(copy)), "none")
              })
            )
            assert.deepStrictEqual(complaints, [])
            assert.isAbove(count, 80)
            assert.isAbove(outcomes["finished"] ?? 0, 20)
            assert.isAbove(outcomes["discarded"] ?? 0, 20)
          })
        ),
      2 * minutes
    )
  }

  it.live(
    "while it takes back what it could not finish, becomes one of both",
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
            orphan(copy)
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
          yield* Effect.flip(exchange(broken, goalOf(before, after)))
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(moment, 20)
          assert.deepStrictEqual(unlike(look(root), before), [])
        })
      ),
    2 * minutes
  )
})

describe("what others have done since", () => {
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
  // Before the first rename that anybody can see.
  const early = (root: string) => killedAt(root, 1, small.before, small.after)

  const cases: ReadonlyArray<readonly [claim: string, change: (root: string) => void, expected: (tree: Tree) => Tree]> = [
    ["nothing, and all is new", () => {}, (tree) => tree],
    [
      "a file that was to change has other content",
      (root) => Fs.writeFileSync(join(root, "changed"), "mine"),
      (found) => ({ ...found, entries: { ...found.entries, changed: file("mine") } })
    ],
    [
      "a file that was to change is gone",
      (root) => Fs.rmSync(join(root, "removed")),
      ({ entries: { removed: _, ...entries }, mode }) => ({ mode, entries })
    ],
    [
      "something stands where something new was to come",
      (root) => Fs.mkdirSync(join(root, "z")),
      (found) => ({ ...found, entries: { ...found.entries, z: tree({}) } })
    ],
    [
      "a file was added deep in a directory that was to go",
      (root) => Fs.writeFileSync(join(root, "goes/e/mine"), "mine"),
      (found) => ({
        ...found,
        entries: { ...found.entries, goes: tree({ e: tree({ f: file("1"), mine: file("mine") }), g: file("2") }) }
      })
    ],
    [
      "a file was edited in a directory in whose place a file was to stand",
      (root) => Fs.writeFileSync(join(root, "turns/f"), "mine"),
      (found) => ({ ...found, entries: { ...found.entries, turns: tree({ f: file("mine") }) } })
    ],
    [
      "a file that was to go has other content",
      (root) => Fs.writeFileSync(join(root, "d/gone"), "mine"),
      (found) => ({
        ...found,
        entries: { ...found.entries, d: tree({ gone: file("mine"), new: file("1"), same: file("2") }) }
      })
    ],
    [
      "a file of no concern was made",
      (root) => Fs.writeFileSync(join(root, "d/mine"), "mine"),
      (found) => ({
        ...found,
        entries: { ...found.entries, d: tree({ mine: file("mine"), new: file("1"), same: file("2") }) }
      })
    ]
  ]
  for (const [claim, change, expected] of cases) {
    it.live(`stays: ${claim}`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          yield* early(root)
          assert.deepStrictEqual(unlike(look(join(root)), small.before), [`${hidden(root)[0]} is there`])
          // What is made in the same tick of the clock as the journal cannot be told from what was there.
          const journal = Fs.statSync(join(root, hidden(root)[0]!, "journal"))
          Fs.utimesSync(join(root, hidden(root)[0]!, "journal"), journal.atime, new Date(journal.mtimeMs - 1000))
          for (const path of ["goes/e/f", "goes/e", "goes/g", "goes", "turns/f", "turns"]) {
            Fs.utimesSync(join(root, path), journal.atime, new Date(journal.mtimeMs - 2000))
          }
          change(root)
          assert.strictEqual(yield* recovered(root), "finished")
          assert.deepStrictEqual(unlike(look(root), expected(small.after)), [])
        })
      )
    )
  }

  it.live("stays, also where what was there has been put aside already", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const from = tree({ d: tree({ f: file("1") }), x: tree({}) })
        const to = tree({ d: file("flat") })
        // The second one would put the file in the directory's place.
        yield* killedAt(root, 3, from, to)
        assert.strictEqual(Fs.existsSync(join(root, "d")), false)
        Fs.writeFileSync(join(root, "d"), "mine")
        assert.strictEqual(yield* recovered(root), "finished")
        assert.deepStrictEqual(unlike(look(root), tree({ d: file("mine") })), [])
      })
    )
  )
})

describe("what is not to be believed", () => {
  const from = tree({ a: file("1"), b: file("2") })
  const to = tree({ a: file("3"), c: file("4") })

  it.live("a process that lives keeps what is its own, and so does one of which nothing can be told, for an hour", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        yield* killedAt(root, 1, from, to)
        const own = hidden(root)[0]!
        const elsewhere = own.replace(dead(), "0-1-2")
        for (const name of [own.replace(dead(), Identity.self()), elsewhere]) {
          Fs.renameSync(join(root, hidden(root)[0]!), join(root, name))
          const found = look(root)
          assert.strictEqual(yield* recovered(root), "none")
          assert.deepStrictEqual(look(root), found)
        }
        const longAgo = new Date(Date.now() - 2 * 60 * minutes)
        for (const path of ["", "journal", "new", "old"]) Fs.utimesSync(join(root, elsewhere, path), longAgo, longAgo)
        for (const path of ["a", "b"]) assert.isAbove(Fs.statSync(join(root, path)).mtimeMs, longAgo.getTime())
        assert.strictEqual(yield* recovered(root), "finished")
        assert.deepStrictEqual(unlike(look(root), to), [])
      })
    )
  )

  const forge = (root: string, journal: unknown, name = "journal"): string => {
    const staging = join(root, `.~fsa-exchange-${dead()}-${"0".repeat(18)}.tmp`)
    for (const side of ["new", "old"]) Fs.mkdirSync(join(staging, side), { recursive: true })
    Fs.writeFileSync(join(staging, "new/0"), "forged")
    Fs.writeFileSync(join(staging, name), typeof journal === "string" ? journal : JSON.stringify(journal))
    return staging
  }
  const step = { path: "a", region: 0, slot: 0, next: "file", keeps: false }
  const region = { path: ".", isFlat: false }
  const good = { version: 1, regions: [region], steps: [step], modes: [] }
  const bad: ReadonlyArray<readonly [claim: string, journal: unknown]> = [
    ["nothing", ""],
    ["half of it", JSON.stringify(good).slice(0, 60)],
    ["no object", "7"],
    ["another version", { ...good, version: 2 }],
    ["no text at all", Buffer.from([0xff, 0xfe]).toString("latin1") + "\u0000"],
    ["a path out of the root", { ...good, steps: [{ ...step, path: "../outside" }] }],
    ["an absolute path", { ...good, steps: [{ ...step, path: "/etc/passwd" }] }],
    ["a path that climbs within", { ...good, steps: [{ ...step, path: "x/../../outside" }] }],
    ["the root as a path", { ...good, steps: [{ ...step, path: "." }] }],
    ["a hidden path", { ...good, steps: [{ ...step, path: ".~fsa-x.tmp/a" }] }],
    ["a region out of the root", { ...good, regions: [region, { path: "..", isFlat: false }] }],
    ["a region that is not there", { ...good, steps: [{ ...step, region: 1 }] }],
    ["no region", { ...good, regions: [] }],
    ["a slot that is a path", { ...good, steps: [{ ...step, slot: "../../outside" }] }],
    ["a slot that is no whole number", { ...good, steps: [{ ...step, slot: 0.5 }] }],
    [
      "a mode with more than permissions",
      { ...good, modes: [{ path: "a", kind: "file", was: 0, becomes: 0o4755, opens: false }] }
    ],
    ["a kind that is none", { ...good, steps: [{ ...step, next: "other" }] }]
  ]
  for (const [claim, journal] of bad) {
    it.live(`a journal that is ${claim}: it is kept, and an IoError says where`, () =>
      inRoot((root) =>
        Effect.gen(function* () {
          plant(root, from)
          const staging = forge(root, journal)
          const outside = look(join(root, ".."))
          const fault = yield* Effect.flip(recovered(root))
          assert.deepInclude(fault, { _tag: "IoError", code: "ECORRUPT", path: `${staging.slice(root.length + 1)}/journal` })
          assert.deepStrictEqual(look(join(root, "..")), outside)
        })
      )
    )
  }

  it.live("a forged one does what whoever wrote it could have done, and touches nothing outside", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        const top = join(root, "..")
        plant(root, from)
        Fs.writeFileSync(join(top, "outside"), "1")
        Fs.symlinkSync("..", join(root, "out"))
        const move = (path: string) => ({ ...step, path, was: { kind: "file", sizeBytes: 1 } })
        const staging = forge(root, { ...good, steps: [step, move("out/outside"), { ...move("b"), slot: 3, region: 0 }] })
        Fs.rmSync(join(staging, "old"), { recursive: true })
        Fs.symlinkSync("../..", join(staging, "old"))
        yield* Effect.exit(recovered(root))
        assert.deepStrictEqual(Fs.readdirSync(top).sort(), ["outside", "root"])
        assert.strictEqual(Fs.readFileSync(join(top, "outside"), "utf8"), "1")
      })
    )
  )

  it.live("a file, or a link, by the hidden name is left alone", () =>
    inRoot((root) =>
      Effect.gen(function* () {
        plant(root, from)
        Fs.writeFileSync(join(root, `.~fsa-exchange-${dead()}-${"1".repeat(18)}.tmp`), "x")
        Fs.symlinkSync("..", join(root, `.~fsa-exchange-${dead()}-${"2".repeat(18)}.tmp`))
        assert.strictEqual(yield* recovered(root), "none")
      })
    )
  )
})

it.live("what could not be put back is finished by the next start, also of the same process", () =>
  inRoot((root) =>
    Effect.gen(function* () {
      const { after, before } = allKinds(10)
      plant(root, before)
      const port = yield* PosixHost.make({ root })
      const broken = faulty([
        { operation: "SetAttributes", path: ".", fault: { _tag: "IoError", code: "EIO", detail: "planned" } },
        { operation: "Rename", path: "new tree", fault: { _tag: "IoError", code: "EIO", detail: "planned" } }
      ])(make(port))
      const fault = yield* Effect.flip(exchange(broken.port, goalOf(before, after)))
      assert.strictEqual(fault._tag, "IoError")
      assert.strictEqual(hidden(root).length, 1)
      assert.strictEqual(yield* recover(port), "finished")
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

/** Mulberry32. */
const dice = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
}

// Restores through the layer are killed in restoreKilled.test.ts too.
const kills = soak ? 500 : 6

describe("a process that is killed while it exchanges trees", () => {
  it.live(
    `leaves after the next start the whole of one or the other, ${kills} times`,
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
            // Half of them between two calls, each as likely as the other, half of them anywhere.
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
          assert.isAbove(outcomes["discarded"] ?? 0, 0)
        })
      ),
    soak ? 60 * minutes : 3 * minutes
  )
})

const isRoot = process.getuid?.() === 0
if (!isRoot) {
  assert.isUndefined(process.env["FS_ALGEBRA_NO_SKIP"], "it needs root to become somebody else")
  console.log("skipped: exchanges of another user, which need root: sudo npm test")
}

describe.runIf(isRoot)("a process of another user", () => {
  const nobody = 65534
  const give = (path: string): void => void execFileSync("chown", ["-hR", `${nobody}:${nobody}`, path])

  it.live("exchanges directories of its own that may not be written to, there and back, also a root like that", () =>
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

  it.live("is told AccessDenied of what is not its own, and changes nothing", () =>
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
