/**
 * `npm run bench -- snapshots [FILES]` measures captures and restores of a generated tree in turns with git's own
 * commands on the same tree, captures in memory, and archives. Captures that git stores under another id fail the run.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Context from "effect/Context"
import { execFileSync } from "node:child_process"
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { cpus, loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { check, median } from "../harness.ts"
import * as Corpus from "../search/corpus.ts"

interface Row {
  readonly name: string
  readonly ours: ReadonlyArray<number>
  readonly theirs: ReadonlyArray<number>
  readonly beside: string
  readonly target: number
}

interface Session {
  readonly snapshots: Context.Service.Shape<typeof Snapshots.Snapshots>
  readonly fs: Algebra
  readonly close: () => Promise<void>
}

const open = async (root: string, gitDir: string): Promise<Session> => {
  const scope = Effect.runSync(Scope.make())
  const layer = Snapshots.layerGit({ gitDir }).pipe(Layer.provideMerge(PosixHost.layer({ root })))
  const context = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  return {
    snapshots: Context.get(context, Snapshots.Snapshots),
    fs: Context.get(context, Filesystem),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

const timed = async (run: () => unknown): Promise<number> => {
  const start = performance.now()
  await run()
  return performance.now() - start
}

const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect)

/** Runs git with a store apart from the directory. */
const git = (gitDir: string, root: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", gitDir, "--work-tree", root, ...args], {
    encoding: "utf8",
    cwd: root,
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "ignore"]
  }).trim()

const captureByGit = (gitDir: string, root: string): string => {
  git(gitDir, root, "add", "-A", "-f")
  return git(gitDir, root, "write-tree")
}

const commitByGit = (gitDir: string, root: string): string => {
  const tree = captureByGit(gitDir, root)
  const who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
  return execFileSync("git", ["--git-dir", gitDir, ...who, "commit-tree", tree, "-m", "bench"], { encoding: "utf8" }).trim()
}

const newRepository = (gitDir: string): void => {
  rmSync(gitDir, { recursive: true, force: true })
  execFileSync("git", ["init", "-q", "--bare", gitDir])
}

const places = (root: string): ReadonlyArray<string> =>
  execFileSync("find", [".", "-type", "f"], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 })
    .trim()
    .split("\n")
    .sort()
    .map((path) => join(root, path))

const host = async (source: string, top: string): Promise<ReadonlyArray<Row>> => {
  const root = join(top, "root")
  cpSync(source, root, { recursive: true })
  // git has no empty directories, so the trees would differ.
  execFileSync("find", [root, "-type", "d", "-empty", "-delete"])
  Corpus.warm(root)
  const files = places(root)
  const [store, repository] = [join(top, "store"), join(top, "repository")]

  const first: [Array<number>, Array<number>] = [[], []]
  let session: Session | undefined
  for (let i = 0; i < 3; i++) {
    await session?.close()
    rmSync(store, { recursive: true, force: true })
    session = await open(root, store)
    const { snapshots } = session
    let commit = ""
    first[0].push(await timed(async () => (commit = (await run(snapshots.snapshot())).commitRef)))
    newRepository(repository)
    let tree = ""
    first[1].push(await timed(() => (tree = captureByGit(repository, root))))
    check(execFileSync("git", ["--git-dir", store, "rev-parse", `${commit}^{tree}`], { encoding: "utf8" }).trim() === tree)
  }
  const { close, snapshots } = session!
  // The first capture does not trust changes made just before it began; the next one can.
  await run(snapshots.snapshot())

  const changed: [Array<number>, Array<number>] = [[], []]
  const restored: [Array<number>, Array<number>] = [[], []]
  const unchanged: [Array<number>, Array<number>] = [[], []]
  for (let round = 0; round < 7; round++) {
    const before = await run(snapshots.snapshot())
    const commit = commitByGit(repository, root)
    const touch = (): void => {
      for (let i = 0; i < 10; i++) appendFileSync(files[(i * 9973 + round * 131) % files.length]!, `// ${round} ${i}\n`)
    }
    touch()
    let taken: Snapshots.FilesystemSnapshot | undefined
    changed[0].push(await timed(async () => (taken = await run(snapshots.snapshot()))))
    let tree = ""
    changed[1].push(await timed(() => (tree = captureByGit(repository, root))))
    const ours = execFileSync("git", ["--git-dir", store, "rev-parse", `${taken!.commitRef}^{tree}`], { encoding: "utf8" })
    check(ours.trim() === tree)
    restored[0].push(await timed(async () => check((await run(snapshots.restore(before))).changes.length === 10)))
    touch()
    captureByGit(repository, root)
    restored[1].push(await timed(() => git(repository, root, "restore", `--source=${commit}`, "--staged", "--worktree", ".")))
    check((await run(snapshots.diff(before))).length === 0)
    unchanged[0].push(await timed(() => run(snapshots.snapshot())))
    unchanged[1].push(await timed(() => captureByGit(repository, root)))
  }
  await close()
  return [
    { name: "first capture", ours: first[0], theirs: first[1], beside: "git add -A, write-tree", target: 0.5 },
    { name: "10 files changed", ours: changed[0], theirs: changed[1], beside: "git add -A, write-tree", target: 1 },
    { name: "nothing changed", ours: unchanged[0], theirs: unchanged[1], beside: "git add -A, write-tree", target: 0.8 },
    { name: "10 files restored", ours: restored[0], theirs: restored[1], beside: "git restore", target: 1.5 }
  ]
}

const memory = async (count: number): Promise<ReadonlyArray<Row>> => {
  const scope = Effect.runSync(Scope.make())
  const layer = Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer()))
  const context = await run(Layer.buildWithScope(layer, scope))
  const fs = Context.get(context, Filesystem)
  const snapshots = Context.get(context, Snapshots.Snapshots)
  const paths = Array.from({ length: count }, (_, i) => `d${i % 100}/e${i % 1000}/f${i}.txt`)
  await run(Effect.forEach(paths, (path) => fs.write(path, "content\n"), { discard: true }))
  const some = paths.filter((_, i) => i % 7 === 0)
  const writes = () => run(Effect.forEach(some, (path) => fs.write(path, "changed\n"), { discard: true }))
  await writes()
  const [captures, touched, plain]: [Array<number>, Array<number>, Array<number>] = [[], [], []]
  for (let round = 0; round < 7; round++) {
    plain.push(await timed(writes))
    captures.push(await timed(() => run(snapshots.snapshot())))
    touched.push(await timed(writes))
  }
  await run(Scope.close(scope, Exit.void))
  return [
    {
      name: "capture in memory",
      ours: captures,
      theirs: captures.map(() => 1),
      beside: "1 ms",
      target: 1
    },
    {
      name: "writes after a capture in memory, each first touch",
      ours: touched,
      theirs: plain,
      beside: "plain writes",
      target: 2
    }
  ]
}

/** Measures archives beside Python's zipfile. */
const archives = async (root: string, top: string): Promise<ReadonlyArray<Row>> => {
  const session = await open(root, join(top, "store"))
  const [ours, theirs]: [Array<number>, Array<number>] = [[], []]
  const target = join(top, "ours.zip")
  const script = `import sys,zipfile,os
z=zipfile.ZipFile(sys.argv[2],"w",zipfile.ZIP_DEFLATED,compresslevel=6)
for d,_,fs in sorted(os.walk(sys.argv[1])):
  for f in sorted(fs): p=os.path.join(d,f); z.write(p,os.path.relpath(p,sys.argv[1]))
z.close()`
  for (let round = 0; round < 3; round++) {
    ours.push(await timed(() => run(Archive.exportArchiveOf(session.fs, target))))
    theirs.push(await timed(() => execFileSync("python3", ["-c", script, root, join(top, "theirs.zip")])))
  }
  const [imported, extracted]: [Array<number>, Array<number>] = [[], []]
  for (let round = 0; round < 3; round++) {
    const empty = join(top, `into${round}`)
    mkdirSync(empty)
    const into = await open(empty, join(top, `store${round}`))
    imported.push(await timed(() => run(Archive.importArchiveOf(into.fs, target))))
    await into.close()
    const other = join(top, `other${round}`)
    extracted.push(
      await timed(() =>
        execFileSync("python3", [
          "-c",
          "import sys,zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])",
          target,
          other
        ])
      )
    )
    check(places(empty).length === places(root).length)
  }
  await session.close()
  return [
    { name: "export as ZIP", ours, theirs, beside: "Python's zipfile", target: 0.6 },
    {
      name: "import of that ZIP, checked, staged, swapped",
      ours: imported,
      theirs: extracted,
      beside: "Python's extractall",
      target: 1
    }
  ]
}

const ms = (values: ReadonlyArray<number>): string =>
  `${median(values).toFixed(median(values) < 10 ? 2 : 0)} (${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)})`

const told = ({ beside, name, ours, target, theirs }: Row): string => {
  const ratio = median(ours) / median(theirs)
  const verdict = `${target} ${ratio <= target ? "held" : "MISSED"}`
  return `| ${name} | ${ms(ours)} | ${beside} ${ms(theirs)} | ${ratio.toFixed(2)} | ${verdict} |`
}

export const snapshots = async (args: ReadonlyArray<string>): Promise<number> => {
  const files = Number(args[0] ?? 100_000)
  if (!Number.isSafeInteger(files) || files < 100) {
    process.stderr.write("npm run bench -- snapshots [FILES]\n")
    return 2
  }
  const top = mkdtempSync(join(tmpdir(), "fs-algebra-bench-snapshots-"))
  try {
    const source = Corpus.ensure("flat", files)
    const load = loadavg()[0]!.toFixed(1)
    console.log(
      `${files} files, node ${process.version}, ${cpus().length} cores, load ${load}; milliseconds, median (min–max)\n`
    )
    console.log("| | ours | beside | ratio | target |\n|---|--:|--:|--:|---|")
    for (const row of await host(source, top)) console.log(told(row))
    for (const row of await memory(files)) console.log(told(row))
    for (const row of await archives(source, top)) console.log(told(row))
    return 0
  } finally {
    rmSync(top, { recursive: true, force: true })
  }
}
