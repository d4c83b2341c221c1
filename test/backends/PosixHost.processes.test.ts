/** Tests searches of host trees that are large enough for search processes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { Limits, standard } from "../../src/model/Limits.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import type { TreeSearch } from "../../src/model/treeSearch.ts"
import { portable } from "../../src/port/Backend.ts"
import type { Visit } from "../../src/port/explorer.ts"
import { searchProcesses } from "../../src/runtime/searchProcesses.ts"
import { inMemory } from "../scratch.ts"
import { runs } from "../runs.ts"
import { pick, random } from "../differential/trees.ts"

const canRun = process.platform === "linux" && Fs.existsSync("/proc/self/fd")
if (!canRun) console.log("skipped: search processes need Linux with /proc")

const everyFile: TreeSearch = {
  include: undefined,
  exclude: undefined,
  ignore: undefined,
  kinds: ["file"],
  maxDepth: Number.POSITIVE_INFINITY,
  from: undefined,
  basePath: ".",
  query: undefined
}

let number = 0
const freshRoot = (): string => {
  const root = join(inMemory(), `processes-${number++}`)
  Fs.mkdirSync(root)
  return root
}

/** Makes `count` directories with two files each. */
const grow = (root: string, count: number): void => {
  for (let i = 0; i < count; i++) {
    const directory = join(root, `d${i % 10}`, `e${i}`)
    Fs.mkdirSync(directory, { recursive: true })
    Fs.writeFileSync(join(directory, "a.ts"), `first\nneedle ${i}\n`)
    Fs.writeFileSync(join(directory, "b.js"), "nothing\n")
  }
}

const commandLineOf = (pid: string): string => {
  try {
    return Fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}

const parentOf = (pid: string): number => {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(Fs.readFileSync(`/proc/${pid}/status`, "utf8"))![1])
  } catch {
    return -1
  }
}

/** Returns the ids of the search processes that a process started. */
const processesOf = (parent: number): ReadonlyArray<string> =>
  Fs.readdirSync("/proc").filter(
    (pid) => /^\d+$/.test(pid) && commandLineOf(pid).includes("searchProcess") && parentOf(pid) === parent
  )

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Waits until search processes are ready, so that the next search uses them. */
const warmUp = Effect.gen(function* () {
  const root = freshRoot()
  grow(root, 300)
  const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
  while (!searchProcesses()!.areWarm()) {
    yield* Effect.orDie(fs.glob("**"))
    yield* Effect.sleep(5)
  }
})

const names = [
  "a",
  "b.ts",
  "c.js",
  "é",
  "漢字",
  "\u{1F600}",
  "\uff5e",
  "with space",
  "-x",
  ".hidden",
  "A",
  "node_modules",
  "lib"
]

/** Creates a random tree with ignore files, links, and names that no path can express. */
const growAtRandom = (root: string, next: () => number): void => {
  const directories = [""]
  for (let i = 0; i < 120; i++) {
    const path = join(pick(next, directories), `${pick(next, names)}${Math.floor(next() * 4)}`)
    if (path.split("/").length > 8) continue
    Fs.mkdirSync(join(root, path), { recursive: true })
    directories.push(path)
  }
  for (let i = 0; i < 500; i++) {
    const path = join(root, pick(next, directories), `${pick(next, names)}${pick(next, ["", ".ts", ".js", ".log"])}`)
    const kind = next()
    try {
      if (kind < 0.04) Fs.symlinkSync(pick(next, ["..", "a", "/etc", "nowhere"]), path)
      else if (kind < 0.06) Fs.writeFileSync(Buffer.concat([Buffer.from(path), Buffer.from([0xff])]), "needle\n")
      else if (kind < 0.08) Fs.writeFileSync(`${path}\n`, "needle\n")
      else if (kind < 0.1) Fs.writeFileSync(path, Buffer.from([0, 1, 2]))
      else if (kind < 0.12) Fs.writeFileSync(path, Buffer.from([0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0xff]))
      else if (kind < 0.13) Fs.writeFileSync(join(root, pick(next, directories), ".~note"), "needle\n")
      else
        Fs.writeFileSync(
          path,
          Array.from({ length: Math.floor(next() * 20) }, () => pick(next, ["needle", "a", "b"])).join("\n")
        )
    } catch {
      // Another entry has this name.
    }
  }
  for (const file of [".gitignore", ".ignore"]) {
    for (let i = 0; i < 8; i++) {
      const rules = Array.from({ length: 4 }, () =>
        pick(next, ["*.log", "a*", "!a1", "/b", "lib*/", "**/c.js*", "node_modules*/", "!*.ts"])
      )
      Fs.writeFileSync(join(root, pick(next, directories), file), `${rules.join("\n")}\n`)
    }
  }
}

describe.runIf(canRun)("a search of a large tree by processes", () => {
  it.live("returns the same results, order and skipped entries as a search by the primitive operations", () =>
    Effect.gen(function* () {
      yield* warmUp
      for (let seed = 0; seed < runs(8); seed++) {
        const next = random(seed)
        const root = freshRoot()
        growAtRandom(root, next)
        const port = yield* Effect.orDie(PosixHost.make({ root }))
        const [fast, plain] = [make(port), make(portable(port))]
        const base = yield* Effect.map(Effect.orDie(plain.glob("*", { kinds: ["directory"] })), ({ matches }) =>
          pick(next, [".", ...matches.map(({ path }) => path)])
        )
        for (let i = 0; i < 12; i++) {
          const shared = {
            path: pick(next, [".", ".", base]),
            gitignore: next() < 0.5,
            ...(next() < 0.5 && { exclude: pick(next, ["*.log", "lib*", ["**/a*", "!a1"], "node_modules*/**", "A?/"]) })
          }
          const pattern = pick(next, [
            "**",
            "**/*.ts",
            "*.js",
            "**/lib*/**",
            "{a,b}*/**/*.ts",
            "**/!(a*)",
            "漢*/**",
            "**/*[0-9]/*"
          ])
          const kinds = pick(next, [["file"], ["file", "directory"], ["symlink", "other"]] as const)
          const what = JSON.stringify({ seed, shared, pattern, kinds })
          const glob = { ...shared, kinds, ...(next() < 0.3 && { maxMatches: 10 }) }
          const expected = yield* Effect.orDie(plain.glob(pattern, glob))
          assert.deepStrictEqual(yield* Effect.orDie(fast.glob(pattern, glob)), expected, what)
          if (expected.next !== undefined) {
            const after = { ...glob, after: expected.next }
            const rest = yield* Effect.orDie(plain.glob(pattern, after))
            assert.deepStrictEqual(yield* Effect.orDie(fast.glob(pattern, after)), rest, what)
          }
          const regex = pick(next, ["needle", /n.*le/, /^(a|b)$/, /NEEDLE/i, "nothing"])
          const grep = {
            ...shared,
            ...(next() < 0.5 && { glob: pattern }),
            context: pick(next, [0, 0, 2]),
            maxMatches: pick(next, [3, 1e6])
          }
          const found = yield* Effect.orDie(plain.grep(regex, grep))
          assert.deepStrictEqual(yield* Effect.orDie(fast.grep(regex, grep)), found, what)
          if (found.next !== undefined) {
            const after = { ...grep, after: found.next }
            const rest = yield* Effect.orDie(plain.grep(regex, after))
            assert.deepStrictEqual(yield* Effect.orDie(fast.grep(regex, after)), rest, what)
          }
          const maxDepth = pick(next, [undefined, 1, 2, 3])
          const walk = { gitignore: shared.gitignore, maxDepth, ...("exclude" in shared && { exclude: shared.exclude }) }
          const walked = yield* Effect.orDie(Stream.runCollect(plain.walk(shared.path, walk)))
          assert.deepStrictEqual(yield* Effect.orDie(Stream.runCollect(fast.walk(shared.path, walk))), walked, what)
        }
        Fs.rmSync(root, { recursive: true, force: true })
      }
    }).pipe(Effect.scoped)
  )

  it.live("uses at most four processes, each without environment variables and with a working directory outside the tree", () =>
    Effect.gen(function* () {
      yield* warmUp
      const pids = processesOf(process.pid)
      assert.isAbove(pids.length, 0)
      assert.isAtMost(pids.length, 4)
      for (const pid of pids) {
        assert.strictEqual(Fs.readFileSync(`/proc/${pid}/environ`, "utf8"), "")
        yield* Effect.promise(() => until(() => Fs.readlinkSync(`/proc/${pid}/cwd`) === "/"))
      }
    }).pipe(Effect.scoped)
  )

  it.live("reports the file on which a pattern backtracks without end, and terminates the process that searched it", () =>
    Effect.gen(function* () {
      yield* warmUp
      const root = freshRoot()
      grow(root, 200)
      Fs.writeFileSync(join(root, "d5/e55/hostile"), `${"a".repeat(40)}!\n`)
      const before = processesOf(process.pid)
      const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
      const error = yield* Effect.flip(fs.grep(/^(a+)+$/)).pipe(
        Effect.provideService(Limits, { ...standard, patternBudget: 200 })
      )
      assert.strictEqual(error._tag, "Timeout")
      assert.strictEqual((error as { readonly path?: string }).path, "d5/e55/hostile")
      yield* Effect.promise(() =>
        until(() => processesOf(process.pid).filter((pid) => before.includes(pid)).length < before.length)
      )
      const { matches } = yield* fs.grep("needle")
      assert.strictEqual(matches.length, 200)
    }).pipe(Effect.scoped)
  )

  it.live("terminates the process of an endless search when the search is interrupted", () =>
    Effect.gen(function* () {
      yield* warmUp
      const root = freshRoot()
      grow(root, 200)
      Fs.writeFileSync(join(root, "d5/e55/hostile"), `${"a".repeat(40)}!\n`)
      const before = processesOf(process.pid)
      const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
      const isBusy = (pid: string): boolean => /^State:\s+R/m.test(Fs.readFileSync(`/proc/${pid}/status`, "utf8"))
      const fiber = yield* Effect.forkChild(
        Effect.provideService(fs.grep(/^(a+)+$/), Limits, { ...standard, patternBudget: 600_000 })
      )
      yield* Effect.promise(() => until(() => before.some(isBusy)))
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
      yield* Effect.promise(() => until(() => processesOf(process.pid).every((pid) => !isBusy(pid))))
    }).pipe(Effect.scoped)
  )

  it.live("completes when its processes are killed", () =>
    Effect.gen(function* () {
      yield* warmUp
      const root = freshRoot()
      grow(root, 2000)
      const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
      for (let i = 0; i < 5; i++) {
        const fiber = yield* Effect.forkChild(fs.grep("needle", { maxMatches: 1e6 }))
        yield* Effect.sleep(i * 3)
        for (const pid of processesOf(process.pid)) process.kill(Number(pid), "SIGKILL")
        assert.strictEqual((yield* Fiber.join(fiber)).matches.length, 2000)
      }
    }).pipe(Effect.scoped)
  )

  it.live("follows a root that is moved, and finds nothing in a directory that replaces it", () =>
    Effect.gen(function* () {
      yield* warmUp
      const root = freshRoot()
      grow(root, 200)
      const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
      assert.strictEqual((yield* fs.grep("needle")).matches.length, 200)
      Fs.renameSync(root, `${root}-moved`)
      Fs.mkdirSync(root)
      grow(root, 300)
      assert.strictEqual((yield* fs.grep("needle")).matches.length, 200)
    }).pipe(Effect.scoped)
  )

  it.live("leaves no process behind when its program is killed during an endless search", () =>
    Effect.gen(function* () {
      const root = freshRoot()
      grow(root, 400)
      Fs.writeFileSync(join(root, "d5/e55/hostile"), `${"a".repeat(40)}!\n`)
      const program = new URL("./endlessSearch.ts", import.meta.url)
      const child = spawn(process.execPath, [program.pathname, root], { stdio: ["ignore", "ignore", "inherit"] })
      const isBusy = (pid: string): boolean => /^State:\s+R/m.test(Fs.readFileSync(`/proc/${pid}/status`, "utf8"))
      let pids: ReadonlyArray<string> = []
      yield* Effect.promise(() => until(() => (pids = processesOf(child.pid!)).some(isBusy)))
      child.kill("SIGKILL")
      yield* Effect.promise(() => until(() => pids.every((pid) => commandLineOf(pid) === "")))
    })
  )

  it.live("notices a report that arrives just before the search begins to wait for reports", () =>
    Effect.gen(function* () {
      yield* warmUp
      const root = freshRoot()
      grow(root, 10)
      const port = yield* Effect.orDie(PosixHost.make({ root }))
      // With one of these numbers, the fiber yields just before it waits for the report.
      for (const operations of [3, 4, 5, 6, 7, 8]) {
        const { trees, waitForReading } = yield* port.explore!<Visit>(() => FsPath.root, false)
        const base: Visit = { above: undefined, segment: "" }
        assert.isTrue(trees!.begin(everyFile, base))
        const send = Effect.sync(() => {
          trees!.send([base], [""], 100)
          // The report arrives in the meantime, and this thread receives it when the fiber yields.
          const end = performance.now() + 200
          while (performance.now() < end);
        })
        yield* Effect.provideService(Effect.andThen(send, waitForReading), MaxOpsBeforeYield, operations)
        assert.strictEqual(trees!.take().length, 1)
      }
    }).pipe(Effect.scoped)
  )
})
