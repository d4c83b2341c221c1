/**
 * Processes that are killed at any moment during a restore, a capture or an import. The next process must find one
 * whole tree without hidden names, and a sound store.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { bundled } from "../bundled.ts"
import { host } from "../faults/ground.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { chooser, read } from "./awkward.ts"
import { fsck, hasGit, hidden, isSoak, type Place, place, within } from "./badInput.ts"
import type { Orders } from "./restoreLoop.ts"

/** The number of kills. The usual number is enough for each possible outcome. */
const kills = isSoak ? 500 : 6
const fewer = isSoak ? 100 : 3
/** Additional kills for a busy machine, where kills may come too early or too late to leave anything unfinished. */
const most = 20

const loop = bundled(new URL("restoreLoop.ts", import.meta.url))

interface Process {
  readonly child: ChildProcessWithoutNullStreams
  readonly complaint: Promise<string | undefined>
  readonly said: () => string
}

const launch = (cache: string): Process => {
  const child = spawn(process.execPath, [loop], { env: { ...process.env, NODE_COMPILE_CACHE: cache } })
  let said = ""
  let errors = ""
  child.stdout.setEncoding("latin1").on("data", (text: string) => (said += text))
  child.stderr.setEncoding("latin1").on("data", (text: string) => (errors += text))
  child.stdin.on("error", () => {})
  const complaint = new Promise<string | undefined>((resolve) =>
    child.once("close", (_, signal) => resolve(signal === "SIGKILL" && /^\+?\.*$/.test(said) ? undefined : `${said} ${errors}`))
  )
  return { child, complaint, said: () => said }
}

const spin = (milliseconds: number): void => {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/**
 * Kills the process during an operation, after some hidden names appeared or disappeared in the root. Without a root, kills the
 * process after some characters of output.
 */
const killSoon = ({ child, said }: Process, root: string | undefined, choose: (below: number) => number): void => {
  // The hidden name of the lock is made first, then the staging directory; they are removed in reverse order.
  const after = (root === undefined ? 1 : 2) + choose(4)
  const most = [1, 5, 20, 60][choose(4)]!
  const kill = (): void => {
    spin((choose(1000) / 1000) * most)
    child.kill("SIGKILL")
  }
  if (root === undefined) {
    child.stdout.on("data", () => said().length > after && kill())
    return
  }
  let seen = 0
  const watcher = Fs.watch(root, (_, name) => {
    if (name?.startsWith(".~fsa-") && ++seen > after - 1) kill()
  })
  child.once("exit", () => watcher.close())
}

/** Runs one process after another. Each is launched while the previous one works. */
const lives = function (cache: string, choose: (below: number) => number) {
  let next = launch(cache)
  return {
    one: (orders: Orders, root: string | undefined) =>
      Effect.promise(() => {
        const here = next
        next = launch(cache)
        killSoon(here, root, choose)
        here.child.stdin.end(JSON.stringify(orders))
        return here.complaint
      }),
    end: Effect.promise(() => {
      next.child.kill("SIGKILL")
      return next.complaint
    })
  }
}

const lines = (word: string, count: number): string => Array.from({ length: count }, (_, i) => `${word} ${i}\n`).join("")

/** Creates an entry for each kind of conversion, and many files that change. */
const plantOne = (root: string): void => {
  Fs.mkdirSync(join(root, "d/deep"), { recursive: true })
  for (let i = 0; i < 20; i++) Fs.writeFileSync(join(root, `f${i}`), lines(`one ${i}`, 200))
  Fs.writeFileSync(join(root, "d/deep/gone"), "gone\n")
  Fs.writeFileSync(join(root, "d/changed"), "1\n")
  Fs.writeFileSync(join(root, "same"), "same\n")
  Fs.writeFileSync(join(root, "large"), lines("large", 150_000))
  Fs.symlinkSync("same", join(root, "link"))
  Fs.mkdirSync(join(root, "to file/in"), { recursive: true })
  Fs.writeFileSync(join(root, "to directory"), "a file\n")
  Fs.mkdirSync(join(root, "closed"))
  Fs.writeFileSync(join(root, "closed/f"), "closed\n", { mode: 0o444 })
  Fs.chmodSync(join(root, "closed"), 0o555)
}

const plantTwo = (root: string): void => {
  Fs.mkdirSync(join(root, "d"))
  for (let i = 0; i < 20; i += 1) Fs.writeFileSync(join(root, `f${i}`), lines(`two ${i}`, 300), { mode: 0o600 })
  Fs.writeFileSync(join(root, "d/changed"), "2 and more\n")
  Fs.writeFileSync(join(root, "same"), "same\n")
  Fs.writeFileSync(join(root, "large"), lines("larger", 150_000))
  Fs.symlinkSync("d/changed", join(root, "link"))
  Fs.writeFileSync(join(root, "to file"), "a file\n")
  Fs.mkdirSync(join(root, "to directory/in"), { recursive: true })
  Fs.mkdirSync(join(root, "new/tree"), { recursive: true })
  Fs.writeFileSync(join(root, "new/tree/f"), "new\n")
  Fs.mkdirSync(join(root, "closed"))
  Fs.writeFileSync(join(root, "closed/g"), "closed too\n", { mode: 0o400 })
  Fs.chmodSync(join(root, "closed"), 0o500)
}

type Tree = Record<string, string>

const clear = (root: string): void => {
  for (const name of Fs.readdirSync(root)) Fs.rmSync(join(root, name), { recursive: true })
}

/** Creates the first tree and calls `keep`, and then the same for the second tree. */
const prepared = Effect.fnUntraced(function* <A, E>(here: Place, keep: (which: number) => Effect.Effect<A, E>) {
  plantOne(here.root)
  const [one, first] = [read(here.root), yield* keep(0)]
  clear(here.root)
  plantTwo(here.root)
  const [two, second] = [read(here.root), yield* keep(1)]
  return { trees: [one, two] as const, kept: [first, second] as const }
})

const encode = Schema.encodeEffect(Schema.fromJsonString(Schema.toCodecJson(Snapshots.FilesystemSnapshot)))

const differing = (found: Tree, expected: Tree): string =>
  [...new Set([...Object.keys(found), ...Object.keys(expected)])].filter((path) => found[path] !== expected[path]).join()

/** Returns the reason if the tree is neither of the two trees or contains hidden names. */
const wrongWith = (root: string, [one, two]: readonly [Tree, Tree]): string | undefined => {
  const left = hidden(root)
  if (left.length > 0) return `left: ${left.join()}`
  const found = read(root)
  return isDeepStrictEqual(found, one) || isDeepStrictEqual(found, two)
    ? undefined
    : `a mixture: not the one by ${differing(found, one)}; not the other by ${differing(found, two)}`
}

interface Report {
  /** The number of kills that left hidden names for the next start. */
  unfinished: number
  readonly found: Array<number>
  readonly complaints: Array<string>
}

const killing = Effect.fnUntraced(function* (
  here: Place,
  orders: Orders,
  trees: readonly [Tree, Tree],
  { count, unfinished }: { readonly count: number; readonly unfinished: number },
  seed: number
) {
  const report: Report = { unfinished: 0, found: [0, 0], complaints: [] }
  const { end, one } = lives(join(here.top, "cache"), chooser(seed))
  for (let kill = 0; kill < count || (report.unfinished < unfinished && kill < count + most); kill++) {
    // Most kills hit the first operation, so the order alternates.
    const [first, second] = orders.two
    const complaint = yield* one(kill % 2 === 0 ? orders : { ...orders, two: [second, first] }, here.root)
    if (complaint !== undefined) report.complaints.push(`kill ${kill}: ${complaint}`)
    if (hidden(here.root).length > 0) report.unfinished++
    // Starting a layer recovers the root.
    yield* within(here, () => Effect.void)
    const wrong = wrongWith(here.root, trees)
    if (wrong !== undefined) report.complaints.push(`kill ${kill}: ${wrong}`)
    report.found[isDeepStrictEqual(read(here.root), trees[0]) ? 0 : 1]!++
  }
  yield* end
  return report
})

const timeout = isSoak ? 3_600_000 : 240_000

describe.runIf(hasGit)("processes that are killed", () => {
  it.live(
    `during a restore leave one whole tree to the next start (${kills} kills)`,
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const { kept, trees } = yield* prepared(here, () =>
          within(here, (snapshots) => Effect.flatMap(snapshots.snapshot(), encode))
        )
        const orders: Orders = { root: here.root, store: here.gitDir, what: "restores", two: kept }
        const report = yield* killing(here, orders, trees, { count: kills, unfinished: Math.ceil(kills / 4) }, 1)
        if (isSoak) console.log("restores that were killed", report)
        assert.deepStrictEqual(report.complaints, [])
        assert.isAtLeast(report.unfinished, kills / 4)
        if (isSoak) assert.isAbove(Math.min(...report.found), 0)
        fsck(here)
      }),
    timeout
  )

  it.live(
    "during a snapshot leave an intact store, restorable snapshots and no leftovers after a garbage collection",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        plantOne(here.root)
        const { end, one } = lives(join(here.top, "cache"), chooser(2))
        const orders: Orders = { root: here.root, store: here.gitDir, what: "snapshots", two: ["", ""] }
        const complaints: Array<string> = []
        let littered = 0
        const litter = (): ReadonlyArray<string> =>
          Fs.readdirSync(here.gitDir, { recursive: true, encoding: "utf8" }).filter((path) =>
            /tmp_|\.tmp-|packing|\.lock$|turns\/./.test(path)
          )
        for (let kill = 0; kill < fewer || (littered === 0 && kill < fewer + most); kill++) {
          const complaint = yield* one(orders, undefined)
          if (complaint !== undefined) complaints.push(`kill ${kill}: ${complaint}`)
          if (litter().length > 0) littered++
          fsck(here)
          assert.deepStrictEqual(hidden(here.root), [])
        }
        yield* end
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            const all = yield* snapshots.list
            assert.isAbove(all.length, 0)
            yield* snapshots.collect
            assert.deepStrictEqual(litter(), [])
            for (const snapshot of all.slice(-20)) yield* snapshots.restore(snapshot, { verify: true })
          })
        )
        fsck(here)
        assert.deepStrictEqual(complaints, [])
        assert.isAbove(littered, 0)
      }),
    timeout
  )
})

describe.runIf(hasGit)("processes that are killed", () => {
  for (const what of ["imports", "rollbacks"] as const) {
    it.live(
      `during ${what === "imports" ? "an import" : "a rollback to a named archive"} leave the old tree or the new one`,
      () =>
        Effect.gen(function* () {
          const here = yield* place
          const store = join(here.top, "archives")
          Fs.mkdirSync(store, { mode: 0o700 })
          const pathOf = (which: number): string => join(store, `s${which}.fs.zip`)
          const { trees } = yield* prepared(here, (which) =>
            Effect.scoped(Effect.flatMap(host(here.root), (fs) => Archive.exportArchiveOf(fs, pathOf(which))))
          )
          const two = what === "imports" ? ([pathOf(0), pathOf(1)] as const) : (["s0", "s1"] as const)
          const orders: Orders = { root: here.root, store, what, two }
          const report = yield* killing(here, orders, trees, { count: fewer, unfinished: 1 }, 3)
          assert.deepStrictEqual(report.complaints, [])
          assert.isAbove(report.unfinished, 0)
        }),
      timeout
    )
  }
})
