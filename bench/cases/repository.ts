/**
 * Repository on a store in a directory. The large cases have BENCH_FILES files (20,000 unless set; the targets are for
 * 100,000) of 24 to 4,000 bytes in directories of 100.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Mounts from "../../src/filesystem/Mounts.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import type { BlobStore } from "../../src/repository/BlobStore.ts"
import type { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { fibers, writes } from "../batchedWrites.ts"
import type { Case } from "../harness.ts"
import { check, effects } from "../harness.ts"

const files = Number(process.env["BENCH_FILES"] ?? 20_000)

const temporary = () => mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))

type StoreServices = Context.Context<BlobStore | HeadStore>

/** Makes roots, and builds layers that stay open until the case is closed. */
const opening = () => {
  const scope = Scope.makeUnsafe()
  const roots: Array<string> = []
  const build = <A>(layer: Layer.Layer<A, unknown>) =>
    Effect.runPromise(Layer.buildWithScope(Layer.fresh(layer), scope)) as Promise<Context.Context<A>>
  const root = () => {
    roots.push(temporary())
    return roots.at(-1)!
  }
  const host = async (directory: string) => Context.get(await build(PosixHost.layer({ root: directory })), Filesystem)
  const stores = () => build(Stores.layerDirectory({ directory: root() }))
  const repository = async (stores: StoreServices, workspace = "w") => {
    const context = await build(Layer.provide(Repository.layer({ workspace }), Layer.succeedContext(stores)))
    return { fs: Context.get(context, Filesystem), snapshots: Context.get(context, Snapshots.Snapshots) }
  }
  const close = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    for (const directory of roots) rmSync(directory, { recursive: true })
  }
  return { root, host, stores, repository, close }
}

const run = <A>(effect: Effect.Effect<A, unknown>): Promise<A> => Effect.runPromise(effect)

const textOf = (i: number): string => `line of file ${i}\n`.repeat(1 + ((i * 7919) % 200))

/** Makes a directory of the host with files, and returns the path of each. */
const sow = (root: string, count: number): ReadonlyArray<string> => {
  const paths: Array<string> = []
  for (let i = 0; i < count; i++) {
    const directory = `d${Math.floor(i / 1000)}/e${Math.floor(i / 100) % 10}`
    if (i % 100 === 0) mkdirSync(join(root, directory), { recursive: true })
    paths.push(`${directory}/file-${i}.txt`)
    writeFileSync(join(root, paths[i]!), textOf(i))
  }
  return paths
}

/** Copies a directory of the host into a workspace, in one commit. */
const importInto = (fs: Algebra, host: Algebra) =>
  Effect.flatMap(Mounts.mount("host", host)(fs), (both) =>
    Effect.provideService(Repository.transaction(both.copy("host", "tree")), Filesystem, fs)
  )

const filled = async (count = files) => {
  const opened = opening()
  const source = opened.root()
  const paths = sow(source, count)
  const host = await opened.host(source)
  const stores = await opened.stores()
  const { fs, snapshots } = await opened.repository(stores)
  await run(importInto(fs, host))
  check((await run(fs.readString(`tree/${paths[count - 1]!}`))) === textOf(count - 1))
  return { ...opened, source, paths, host, stores, fs, snapshots }
}

const git = (gitDir: string, root: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", gitDir, "--work-tree", root, ...args], {
    encoding: "utf8",
    cwd: root,
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "ignore"]
  }).trim()

const gitCapture = (gitDir: string, root: string): string => {
  git(gitDir, root, "add", "-A", "-f")
  return git(gitDir, root, "write-tree")
}

/** Runs an operation on a large workspace, and the same on a small one. */
const whateverTheSize = (
  name: string,
  count: number,
  make: (place: Awaited<ReturnType<typeof filled>>) => Effect.Effect<unknown, unknown>
): Case => ({
  name: `repository: ${name} of ${files} files`,
  target: "≤ 5,000 µs, whatever the size (baseline: the same of 10 files)",
  bound: 5_000,
  figure: "µs",
  count,
  samples: 21,
  make: async () => {
    const large = await filled()
    const small = await filled(10)
    return {
      ours: { name: "large", run: effects(make(large)) },
      baseline: { name: "small", run: effects(make(small)) },
      close: async () => {
        await large.close()
        await small.close()
      }
    }
  }
})

export const cases: ReadonlyArray<Case> = [
  {
    name: "repository: write of 250 bytes, batched, 50 fibers over 50 files",
    target: "≤ 100 µs (10,000 a second; baseline: PosixHost)",
    bound: 100,
    figure: "µs",
    count: 2_000,
    samples: 15,
    make: async () => {
      const { close, host, repository, root, stores } = opening()
      const theirs = await host(root())
      const { fs } = await repository(await stores())
      await writes(theirs)(fibers)
      await writes(fs)(fibers)
      check((await run(fs.readString("f7.txt"))).length === (await run(theirs.readString("f7.txt"))).length)
      return { ours: { name: "repository", run: writes(fs) }, baseline: { name: "PosixHost", run: writes(theirs) }, close }
    }
  },
  {
    name: "repository: read of a warm file of 4 KiB",
    target: "≤ 20 µs (baseline: PosixHost)",
    bound: 20,
    figure: "µs",
    count: 5_000,
    samples: 21,
    make: async () => {
      const { close, host, repository, root, stores } = opening()
      const theirs = await host(root())
      const { fs } = await repository(await stores())
      const content = Buffer.alloc(4096, "repository ")
      for (const one of [fs, theirs]) {
        await run(
          Effect.forEach(Array.from({ length: 64 }), (_, i) => one.writeBytes(`a/b/f${i}`, content, { createParents: true }))
        )
      }
      const read = (fs: Algebra) => {
        let serial = 0
        return Effect.suspend(() => fs.readBytes(`a/b/f${serial++ & 63}`))
      }
      check(Buffer.compare((await run(fs.readBytes("a/b/f1"))).content, (await run(theirs.readBytes("a/b/f1"))).content) === 0)
      return {
        ours: { name: "repository", run: effects(read(fs)) },
        baseline: { name: "PosixHost", run: effects(read(theirs)) },
        close
      }
    }
  },
  whateverTheSize("snapshot", 1, ({ snapshots }) => snapshots.snapshot()),
  whateverTheSize("fork", 20, ({ stores }) => {
    let serial = 0
    return Effect.suspend(() => Effect.provideContext(Repository.fork("w", `fork ${serial++}`), stores))
  }),
  {
    name: `repository: diff of 10 changes in ${files} files`,
    target: "≤ 20,000 µs (baseline: git diff-tree)",
    bound: 20_000,
    figure: "µs",
    count: 1,
    samples: 21,
    make: async () => {
      const { close, fs, paths, root, snapshots, source } = await filled()
      const gitDir = join(root(), "git")
      execFileSync("git", ["init", "-q", "--bare", gitDir])
      const before = await run(snapshots.snapshot())
      const beforeByGit = gitCapture(gitDir, source)
      const changed = Array.from({ length: 10 }, (_, i) => paths[Math.floor((i * files) / 10)]!)
      for (const path of changed) {
        writeFileSync(join(source, path), "changed\n")
        await run(fs.write(`tree/${path}`, "changed\n"))
      }
      const after = await run(snapshots.snapshot())
      const afterByGit = gitCapture(gitDir, source)
      const diff = () => run(snapshots.diff(before, after))
      const diffByGit = () => git(gitDir, source, "diff-tree", "-r", "--name-only", beforeByGit, afterByGit)
      const found = (await diff()).map(({ path }) => path.replace("tree/", ""))
      check(JSON.stringify(found.sort()) === JSON.stringify(diffByGit().split("\n").sort()))
      return { ours: { name: "diff", run: diff }, baseline: { name: "git", run: diffByGit }, close }
    }
  },
  {
    name: `repository: cold glob of ${files} names`,
    target: `≤ ${files * 10} µs (1 s for 100,000; baseline: PosixHost, warm)`,
    bound: files * 10,
    figure: "µs",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const { close, host, paths, repository, stores } = await filled()
      const glob = (fs: Algebra) => run(fs.glob("**/*.txt", { maxMatches: files + 1 }))
      const cold = async () => {
        const { fs } = await repository(stores)
        const { matches } = await glob(fs)
        check(matches.length === paths.length)
        return matches
      }
      const found = (await cold()).map(({ path }) => path.replace("tree/", ""))
      check(JSON.stringify(found) === JSON.stringify((await glob(host)).matches.map(({ path }) => path)))
      return { ours: { name: "repository", run: cold }, baseline: { name: "PosixHost", run: () => glob(host) }, close }
    }
  },
  {
    name: `repository: first import of ${files} files`,
    target: "≤ 1.5 of git's first snapshot",
    bound: 1.5,
    figure: "ratio",
    count: 1,
    samples: 3,
    warmups: 1,
    make: async () => {
      const { close, host, repository, root, stores } = opening()
      const source = root()
      const paths = sow(source, files)
      const theirs = await host(source)
      const importOnce = async () => {
        const { fs } = await repository(await stores())
        await run(importInto(fs, theirs))
        return fs
      }
      const importByGit = () => {
        const gitDir = join(root(), "git")
        execFileSync("git", ["init", "-q", "--bare", gitDir])
        return { gitDir, tree: gitCapture(gitDir, source) }
      }
      const { gitDir, tree } = importByGit()
      const fs = await importOnce()
      for (const path of [paths[0]!, paths[files - 1]!]) {
        check((await run(fs.readString(`tree/${path}`))).trim() === git(gitDir, source, "cat-file", "blob", `${tree}:${path}`))
      }
      check(git(gitDir, source, "ls-tree", "-r", "--name-only", tree).split("\n").length === paths.length)
      return { ours: { name: "import", run: importOnce }, baseline: { name: "git", run: importByGit }, close }
    }
  }
]
