/** Runs isomorphic-git over NodeFs in memory, and checks the repositories with the real git. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import * as Git from "isomorphic-git"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as NodeFs from "../../src/adapters/NodeFs.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { inMemory } from "../scratch.ts"

const author = { name: "A", email: "a@example.com", timestamp: 1_700_000_000, timezoneOffset: 0 }
const environment = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" }
const newDirectory = () => Fs.mkdtempSync(join(inMemory(), "nodefs-git-"))
const git = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", args, { cwd, encoding: "utf8", env: environment, stdio: ["ignore", "pipe", "pipe"] }).trim()

const workspace = Effect.gen(function* () {
  return { node: yield* NodeFs.make(), fs: yield* Filesystem }
})
const makeWorkspace = () => ManagedRuntime.make(InMemory.layer()).runPromise(workspace)

/** Copies the files and directories of a filesystem into a directory of the host. */
const putOnDisk = (from: Filesystem["Service"], directory: string) =>
  Effect.gen(function* () {
    const to = yield* Filesystem
    yield* Stream.runForEach(from.walk(), (entry) =>
      entry.isDirectory
        ? to.mkdir(entry.path)
        : Effect.gen(function* () {
            const { content } = yield* from.readBytes(entry.path)
            yield* to.writeBytes(entry.path, content)
          })
    )
  }).pipe(Effect.provide(PosixHost.layer({ root: directory })), Effect.runPromise)

/** Returns the HTTP client of isomorphic-git for one bare repository. The requests go to `git upload-pack`, not to a network. */
const serve = (bare: string): Git.HttpClient => ({
  request: async ({ body, method, url }) => {
    const advertises = method !== "POST"
    const parts: Array<Uint8Array> = []
    for await (const part of body ?? []) parts.push(part)
    const input = Buffer.concat(parts)
    const args = ["upload-pack", "--stateless-rpc", ...(advertises ? ["--advertise-refs"] : []), bare]
    const output = execFileSync("git", args, { input, env: environment, maxBuffer: 1 << 28 })
    const announced = advertises ? Buffer.concat([Buffer.from("001e# service=git-upload-pack\n0000"), output]) : output
    const type = `application/x-git-upload-pack-${advertises ? "advertisement" : "result"}`
    const chunks = (async function* () {
      yield new Uint8Array(announced)
    })()
    return { url, method, statusCode: 200, statusMessage: "OK", headers: { "content-type": type }, body: chunks }
  }
})

/** Makes two commits on two branches with isomorphic-git, and returns what isomorphic-git reports. */
const work = async (fs: Git.FsClient & { readonly promises: NodeFs.Promises }, dir: string) => {
  await Git.init({ fs, dir, defaultBranch: "main" })
  await fs.promises.mkdir(`${dir}/src/deep`, { recursive: true })
  await fs.promises.writeFile(`${dir}/README.md`, "# One\n")
  await fs.promises.writeFile(`${dir}/src/deep/b.bin`, Buffer.from([0, 1, 2, 255]))
  await Git.add({ fs, dir, filepath: ["README.md", "src/deep/b.bin"] })
  const first = await Git.commit({ fs, dir, message: "first", author, committer: author })
  await Git.branch({ fs, dir, ref: "topic", checkout: true })
  await fs.promises.writeFile(`${dir}/README.md`, "# Two, and longer\n")
  await fs.promises.rm(`${dir}/src/deep/b.bin`)
  await fs.promises.writeFile(`${dir}/new.txt`, "new")
  const dirty = await Git.statusMatrix({ fs, dir })
  await Git.add({ fs, dir, filepath: "." })
  await Git.remove({ fs, dir, filepath: "src/deep/b.bin" })
  const second = await Git.commit({ fs, dir, message: "second", author, committer: author })
  await Git.checkout({ fs, dir, ref: "main" })
  const onMain = await fs.promises.readFile(`${dir}/README.md`, "utf8")
  const names = (await fs.promises.readdir(dir)).filter((name) => name !== ".git").sort()
  await Git.checkout({ fs, dir, ref: "topic" })
  const merged = await Git.log({ fs, dir })
  return {
    first,
    second,
    dirty,
    onMain,
    names,
    log: merged.map(({ commit, oid }) => [oid, commit.message, commit.tree]),
    clean: await Git.statusMatrix({ fs, dir }),
    branches: await Git.listBranches({ fs, dir })
  }
}

describe("isomorphic-git over NodeFs", () => {
  it("has the same results in memory, on a host and over node:fs, and git accepts the repository", async () => {
    const { fs, node } = await makeWorkspace()
    const disk = newDirectory()
    const actual = await work(node, "/repo")
    const expected = await work(Fs as never, join(disk, "repo"))
    assert.deepStrictEqual(actual, expected)
    assert.strictEqual(actual.onMain, "# One\n")
    const copy = newDirectory()
    await putOnDisk(fs, copy)
    assert.strictEqual(git(join(copy, "repo"), "fsck", "--full", "--strict"), "")
    assert.strictEqual(git(join(copy, "repo"), "rev-parse", "topic"), actual.second)
    const host = newDirectory()
    const runtime = ManagedRuntime.make(PosixHost.layer({ root: host }))
    const { node: onHost } = await runtime.runPromise(workspace)
    assert.deepStrictEqual(await work(onHost, "/repo"), expected)
    assert.throws(() => onHost.readFileSync("/repo/README.md"), "ENOSYS: function not implemented, open '/repo/README.md'")
    await runtime.dispose()
    assert.strictEqual(git(join(host, "repo"), "fsck", "--full", "--strict"), "")
  })

  it("clones a packed repository of 1,000 files and commits to the clone, which git finds intact", async () => {
    const disk = newDirectory()
    const origin = join(disk, "origin")
    Fs.mkdirSync(origin)
    git(origin, "init", "-q", "-b", "main")
    for (let i = 0; i < 1000; i++) {
      const directory = join(origin, `d${i % 25}`, `e${i % 4}`)
      Fs.mkdirSync(directory, { recursive: true })
      Fs.writeFileSync(join(directory, `file-${i}.txt`), `${i}\n`.repeat(1 + (i % 50)))
    }
    git(origin, "add", "-A")
    const identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    git(origin, ...identity, "commit", "-q", "-m", "first")
    Fs.appendFileSync(join(origin, "d0/e0/file-0.txt"), "more\n")
    git(origin, ...identity, "commit", "-q", "-am", "second")
    const bare = join(disk, "bare.git")
    git(disk, "clone", "-q", "--bare", origin, bare)
    git(bare, "gc", "-q", "--aggressive", "--prune=now")

    const { fs, node } = await makeWorkspace()
    const dir = "/work/clone"
    await Git.clone({ fs: node, http: serve(bare), dir, url: "http://origin.test/bare.git" })
    const head = git(bare, "rev-parse", "main")
    assert.isTrue((await node.promises.readdir(`${dir}/.git/objects/pack`)).some((name) => name.endsWith(".pack")))
    const matrix = await Git.statusMatrix({ fs: node, dir })
    assert.strictEqual(matrix.length, 1000)
    assert.isTrue(matrix.every(([, head, workdir, stage]) => head === 1 && workdir === 1 && stage === 1))
    assert.strictEqual((await Git.log({ fs: node, dir })).length, 2)
    await node.promises.writeFile(`${dir}/d1/e1/new.txt`, "new\n")
    await Git.add({ fs: node, dir, filepath: "d1/e1/new.txt" })
    const third = await Git.commit({ fs: node, dir, message: "third", author, committer: author })

    const copy = newDirectory()
    await putOnDisk(fs, copy)
    const repository = join(copy, "work/clone")
    assert.strictEqual(git(repository, "fsck", "--full", "--strict"), "")
    assert.strictEqual(git(repository, "rev-parse", "HEAD"), third)
    assert.strictEqual(git(repository, "status", "--porcelain"), "")
    assert.strictEqual(git(repository, "ls-files").split("\n").length, 1001)
    assert.strictEqual(git(repository, "diff", "--stat", head, "HEAD"), git(repository, "diff", "--stat", "HEAD~1", "HEAD"))
  })
})
