import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { deflateSync } from "node:zlib"
import { Filesystem, Repository, Stores } from "../../src/index.ts"
import { inMemory } from "../scratch.ts"

const environment = {
  PATH: process.env["PATH"],
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "Ann",
  GIT_AUTHOR_EMAIL: "ann@example.org",
  GIT_COMMITTER_NAME: "Ann",
  GIT_COMMITTER_EMAIL: "ann@example.org"
}

const gitIn =
  (directory: string) =>
  (...args: ReadonlyArray<string>): string =>
    execFileSync("git", args, { cwd: directory, env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

const fresh = (): string => Fs.mkdtempSync(join(inMemory(), "repository-git-"))

const makeRepository = (...args: ReadonlyArray<string>) => {
  const directory = fresh()
  const git = gitIn(directory)
  git("init", "--quiet", "--initial-branch=main", ...args)
  return { directory, git }
}

const inWorkspace = <A, E>(effect: Effect.Effect<A, E, Filesystem.Filesystem>) =>
  Effect.provide(effect, Layer.provide(Repository.layer({ workspace: "w" }), Stores.layerMemory))

const paths = Effect.flatMap(Filesystem.Filesystem, (fs) =>
  Effect.map(Stream.runCollect(fs.walk(".")), (all) => all.map(({ path }) => path).sort())
)

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly _tag: string }, R>) =>
  Effect.match(effect, {
    onFailure: (error) => ("reason" in error ? String(error.reason) : error._tag),
    onSuccess: () => "none"
  })

/** Writes an object that git itself would not write, and returns its id. */
const putObject = (directory: string, kind: string, body: Buffer): string => {
  const whole = Buffer.concat([Buffer.from(`${kind} ${body.length}\0`), body])
  const id = createHash("sha1").update(whole).digest("hex")
  const folder = join(directory, ".git/objects", id.slice(0, 2))
  Fs.mkdirSync(folder, { recursive: true })
  Fs.writeFileSync(join(folder, id.slice(2)), deflateSync(whole))
  return id
}

const entry = (mode: string, name: string | Buffer, id: string): Buffer =>
  Buffer.concat([Buffer.from(`${mode} `), Buffer.from(name), Buffer.of(0), Buffer.from(id, "hex")])

describe("an import from git", () => {
  it.live("makes the workspace equal to a commit, with modes, symlinks, packs and large files", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      const large = Buffer.alloc(3_000_000, "0123456789abcdef\n")
      Fs.mkdirSync(join(directory, "src/deep/er"), { recursive: true })
      Fs.writeFileSync(join(directory, "src/deep/er/ä b.txt"), "one\n")
      Fs.writeFileSync(join(directory, "large.bin"), large)
      Fs.writeFileSync(join(directory, "empty"), "")
      Fs.writeFileSync(join(directory, "run.sh"), "#!/bin/sh\n", { mode: 0o755 })
      Fs.writeFileSync(join(directory, ".gitattributes"), "*.txt export-ignore eol=crlf\n")
      Fs.writeFileSync(join(directory, ".gitignore"), "*.log\n")
      Fs.symlinkSync("src/deep", join(directory, "link"))
      Fs.symlinkSync("/etc/passwd", join(directory, "outside"))
      git("add", "--all")
      git("commit", "--quiet", "-m", "first")
      git("tag", "-a", "v1", "-m", "tagged")
      git("rm", "--quiet", "empty")
      git("commit", "--quiet", "-m", "second")
      git("gc", "--quiet")
      yield* inWorkspace(
        Effect.gen(function* () {
          const fs = yield* Filesystem.Filesystem
          yield* fs.write("old.txt", "stays only until the import")
          const first = yield* Repository.importGit({ directory, ref: "v1" })
          assert.strictEqual(first.commit, git("rev-parse", "v1^{commit}").trim())
          assert.deepStrictEqual(first.skipped, [])
          const files = git("ls-tree", "-r", "-t", "-z", "--name-only", "v1").split("\0").slice(0, -1)
          assert.deepStrictEqual(yield* paths, files.sort())
          assert.strictEqual(yield* fs.readString("src/deep/er/ä b.txt"), "one\n")
          assert.isTrue(large.equals((yield* fs.readBytes("large.bin")).content))
          assert.strictEqual((yield* fs.stat("run.sh")).mode! & 0o777, 0o755)
          assert.strictEqual((yield* fs.stat("empty")).mode! & 0o777, 0o644)
          assert.strictEqual(yield* fs.readLink("link"), "src/deep")
          assert.strictEqual(yield* reasonOf(fs.readString("outside")), "AccessDenied")
          const second = yield* Repository.importGit({ directory })
          assert.strictEqual(second.changes, 1)
          assert.isFalse(yield* fs.exists("empty"))
          assert.strictEqual((yield* Repository.importGit({ directory, ref: "main" })).changes, 0)
        })
      )
    })
  )

  it.live("reads bare repositories and work trees, and skips submodules", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      Fs.writeFileSync(join(directory, "a"), "a")
      git("add", "a")
      git("update-index", "--add", "--cacheinfo", `160000,${"1".repeat(40)},modules/one`)
      git("commit", "--quiet", "-m", "first")
      const bare = fresh()
      git("clone", "--quiet", "--bare", directory, join(bare, "bare.git"))
      git("worktree", "add", "--quiet", join(bare, "tree"), "-b", "other")
      for (const place of [directory, join(bare, "bare.git"), join(bare, "tree")]) {
        yield* inWorkspace(
          Effect.gen(function* () {
            const { skipped } = yield* Repository.importGit({ directory: place })
            assert.deepStrictEqual(skipped, [{ path: "modules/one", why: "submodule" }])
            assert.deepStrictEqual(yield* paths, ["a", "modules"])
          })
        )
      }
    })
  )

  it.live("refuses hostile trees and changes nothing", () =>
    Effect.gen(function* () {
      const { directory } = makeRepository()
      const blob = putObject(directory, "blob", Buffer.from("x"))
      const empty = putObject(directory, "blob", Buffer.alloc(0))
      const inner = putObject(directory, "tree", entry("100644", "config", blob))
      const trees: Readonly<Record<string, Buffer>> = {
        ".git": entry("40000", ".git", inner),
        ".GIT": entry("40000", ".GIT", inner),
        "git~1": entry("40000", "GIT~1", inner),
        ".git with a stream": entry("40000", ".git::$INDEX_ALLOCATION", inner),
        ".git with an ignored character": entry("40000", ".g\u200cit", inner),
        ".git behind a backslash": entry("100644", "a\\.git", blob),
        "..": entry("40000", "..", inner),
        ".": entry("40000", ".", inner),
        "a slash": entry("100644", "a/b", blob),
        "no name": entry("100644", "", blob),
        "a control character": entry("100644", "a\nb", blob),
        "a name that is not UTF-8": entry("100644", Buffer.of(0x61, 0xff), blob),
        "a duplicate": Buffer.concat([entry("100644", "a", blob), entry("100644", "a", blob)]),
        "a file and a directory": Buffer.concat([entry("100644", "a", blob), entry("40000", "a", inner)]),
        "a wrong order": Buffer.concat([entry("100644", "b", blob), entry("100644", "a", blob)]),
        "an unknown mode": entry("100777", "a", blob),
        "a padded mode": entry("040000", "a", inner),
        "a cut tree": entry("100644", "a", blob).subarray(0, -1),
        "an empty target": entry("120000", "a", empty)
      }
      yield* inWorkspace(
        Effect.gen(function* () {
          const fs = yield* Filesystem.Filesystem
          yield* fs.write("kept.txt", "kept")
          for (const [what, body] of Object.entries(trees)) {
            const tree = putObject(directory, "tree", body)
            const head = `tree ${tree}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nm\n`
            const commit = putObject(directory, "commit", Buffer.from(head))
            assert.strictEqual(yield* reasonOf(Repository.importGit({ directory, ref: commit })), "refused", what)
          }
          assert.deepStrictEqual(yield* paths, ["kept.txt"])
        })
      )
    })
  )

  it.live("fails for missing objects, a tree bomb, unknown commits and directories without a repository", () =>
    Effect.gen(function* () {
      const { directory } = makeRepository()
      const commitOf = (tree: string): string =>
        putObject(directory, "commit", Buffer.from(`tree ${tree}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nm\n`))
      const names = Array.from({ length: 10 }, (_, n) => String(n))
      let bomb = putObject(directory, "tree", entry("100644", "x", putObject(directory, "blob", Buffer.from("x"))))
      for (let n = 0; n < 9; n++) {
        bomb = putObject(directory, "tree", Buffer.concat(names.map((name) => entry("40000", name, bomb))))
      }
      const lacking = putObject(directory, "tree", entry("100644", "a", "1".repeat(40)))
      const cases = [
        [{ directory, ref: commitOf(bomb) }, "budget"],
        [{ directory, ref: commitOf(lacking) }, "corrupt"],
        [{ directory, ref: commitOf("2".repeat(40)) }, "corrupt"],
        [{ directory, ref: "absent" }, "unknown"],
        [{ directory, ref: "--help" }, "unknown"],
        [{ directory, ref: "a\nb" }, "unknown"],
        [{ directory }, "unknown"],
        [{ directory: fresh() }, "unknown"],
        [{ directory: "/nonexistent" }, "unknown"]
      ] as const
      for (const [options, reason] of cases) {
        assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit(options))), reason, JSON.stringify(options))
      }
      const other = makeRepository("--object-format=sha256")
      assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit({ directory: other.directory }))), "refused")
    })
  )

  it.live("refuses an expression that names more or less than one commit, and objects that would need much memory", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      git("commit", "--quiet", "--allow-empty", "-m", "first")
      for (const ref of ["^HEAD", "HEAD..HEAD", "HEAD^@", "@{-1}", "--all", "--upload-pack=touch x"]) {
        assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit({ directory, ref }))), "unknown", ref)
      }
      const blob = putObject(directory, "blob", Buffer.from("x"))
      const commitOf = (tree: string) =>
        putObject(directory, "commit", Buffer.from(`tree ${tree}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nm\n`))
      const long = putObject(directory, "blob", Buffer.alloc(100_000, "x"))
      const cases = [
        ["refused", "a long name", commitOf(putObject(directory, "tree", entry("100644", "n".repeat(5_000), blob)))],
        ["refused", "a long target", commitOf(putObject(directory, "tree", entry("120000", "link", long)))],
        ["budget", "a large tree", commitOf(putObject(directory, "tree", entry("100644", Buffer.alloc(70_000_000, "n"), blob)))]
      ] as const
      for (const [reason, what, ref] of cases) {
        assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit({ directory, ref }))), reason, what)
      }
    })
  )

  it.live("runs no program that the repository names", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      const proof = join(fresh(), "proof")
      Fs.writeFileSync(join(directory, "a"), "a")
      git("add", "a")
      git("commit", "--quiet", "-m", "first")
      const missing = putObject(directory, "tree", entry("100644", "a", "3".repeat(40)))
      const head = `tree ${missing}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nm\n`
      const commit = putObject(directory, "commit", Buffer.from(head))
      for (const [key, value] of [
        ["core.fsmonitor", `touch ${proof}`],
        ["core.sshCommand", `touch ${proof}`],
        ["core.repositoryformatversion", "1"],
        ["extensions.partialClone", "origin"],
        ["remote.origin.promisor", "true"],
        ["remote.origin.url", "ssh://localhost/x"],
        ["protocol.ext.allow", "always"]
      ] as const)
        git("config", key, value)
      assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit({ directory, ref: commit }))), "corrupt")
      git("config", "remote.origin.url", `ext::touch ${proof}`)
      assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit({ directory, ref: commit }))), "corrupt")
      assert.strictEqual(yield* inWorkspace(reasonOf(Repository.importGit({ directory }))), "none")
      assert.isFalse(Fs.existsSync(proof))
    })
  )
})

describe("an export to git", () => {
  it.live("adds commits that git accepts, and an import of them gives the same files", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository("--bare")
      yield* inWorkspace(
        Effect.gen(function* () {
          const fs = yield* Filesystem.Filesystem
          const large = new Uint8Array(2_500_000).fill(7)
          yield* fs.write("a/b/ä\\c.txt", "one\n")
          yield* fs.write("a.txt", "between a and a/ in the order of git")
          yield* fs.write(".gitignore", "*\n")
          yield* fs.write("large.bin", "")
          yield* Stream.run(Stream.make(large), fs.sink("large.bin"))
          yield* fs.symlink("link", "a/b")
          yield* fs.mkdir("hollow/inner", { parents: true })
          const first = yield* Repository.exportGit({ directory, ref: "main", message: "one", author: "Ann <ann@example.org>" })
          assert.deepStrictEqual(first.skipped, [{ path: "hollow", why: "emptyDirectory" }])
          git("fsck", "--strict", "--full")
          assert.strictEqual(git("log", "-1", "--format=%an %ae %s", "main").trim(), "Ann ann@example.org one")
          assert.strictEqual(git("show", "main:a/b/ä\\c.txt"), "one\n")
          assert.strictEqual(git("cat-file", "-s", "main:large.bin").trim(), "2500000")
          assert.match(git("ls-tree", "main", "link"), /^120000 blob /)
          assert.strictEqual(git("show", "main:link"), "a/b")
          yield* fs.edit("a/b/ä\\c.txt", { oldText: "one", newText: "two" })
          const second = yield* Repository.exportGit({ directory, ref: "main" })
          assert.strictEqual(second.changes, 1)
          assert.strictEqual(git("rev-parse", "main^").trim(), first.commit)
          git("fsck", "--strict", "--full")
          const before = (yield* paths).filter((path) => !path.startsWith("hollow"))
          yield* Repository.importGit({ directory, ref: first.commit })
          assert.strictEqual(yield* fs.readString("a/b/ä\\c.txt"), "one\n")
          assert.deepStrictEqual(yield* paths, before)
        })
      )
    })
  )

  it.live("writes the same tree as git for the same files", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      for (const name of ["a-b", "a.b", "a0", "b", "ü", "\u{1f600}", "\uff5e", ".gitattributes"]) {
        Fs.writeFileSync(join(directory, name), name)
      }
      Fs.mkdirSync(join(directory, "a"))
      Fs.writeFileSync(join(directory, "a/run"), "", { mode: 0o755 })
      Fs.symlinkSync("b", join(directory, "a/link"))
      git("-c", "core.autocrlf=false", "add", "--all")
      git("commit", "--quiet", "-m", "first")
      yield* inWorkspace(
        Effect.gen(function* () {
          yield* Repository.importGit({ directory })
          yield* Repository.exportGit({ directory, ref: "copy" })
          assert.strictEqual(git("rev-parse", "copy^{tree}"), git("rev-parse", "main^{tree}"))
          assert.strictEqual(git("diff", "main", "copy"), "")
          git("fsck", "--strict")
        })
      )
    })
  )

  it.live("refuses names and references that git does not accept, and a branch that is checked out", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      git("commit", "--quiet", "--allow-empty", "-m", "first")
      const before = git("for-each-ref")
      for (const name of [".git", "a/.GIT", "git~1", ".git ", ".git.", "x\\.git", ".g\u200cit", ".git:x"]) {
        yield* inWorkspace(
          Effect.gen(function* () {
            const fs = yield* Filesystem.Filesystem
            yield* fs.write(`${name}/config`, "x")
            assert.strictEqual(yield* reasonOf(Repository.exportGit({ directory, ref: "copy" })), "refused", name)
          })
        )
      }
      yield* inWorkspace(
        Effect.gen(function* () {
          const fs = yield* Filesystem.Filesystem
          yield* fs.symlink(".gitmodules", "x")
          assert.strictEqual(yield* reasonOf(Repository.exportGit({ directory, ref: "copy" })), "refused")
          yield* fs.delete(".gitmodules")
          for (const ref of ["", "main", "a..b", "refs/", "a b", "-x", "x.lock", "a\nb"]) {
            assert.strictEqual(yield* reasonOf(Repository.exportGit({ directory, ref })), "refused", ref)
          }
          for (const author of ["", "ann", "a<b> <c>", "a\nb <c>", "<a@b>", "a <b> "]) {
            assert.strictEqual(yield* reasonOf(Repository.exportGit({ directory, ref: "copy", author })), "refused", author)
          }
          assert.strictEqual(git("for-each-ref"), before)
          assert.strictEqual(yield* reasonOf(Repository.exportGit({ directory, ref: "copy" })), "none")
          git("fsck", "--strict")
        })
      )
    })
  )

  it.live("refuses a branch that is checked out in another work tree", () =>
    Effect.gen(function* () {
      for (const args of [[], ["--bare"]]) {
        const { directory, git } = makeRepository(...args)
        const first = git("commit-tree", "-m", "first", git("hash-object", "-t", "tree", "-w", "/dev/null").trim()).trim()
        git("update-ref", "refs/heads/main", first)
        const other = join(fresh(), "other")
        git("worktree", "add", "--quiet", "-b", "other", other)
        assert.strictEqual(yield* inWorkspace(reasonOf(Repository.exportGit({ directory, ref: "other" }))), "refused")
        assert.strictEqual(
          yield* inWorkspace(reasonOf(Repository.exportGit({ directory: other, ref: "main" }))),
          args.length === 0 ? "refused" : "none"
        )
        assert.strictEqual(git("rev-parse", "other").trim(), first)
      }
    })
  )

  it.live("uses only the commit of the exact reference as parent, never of a reference with a similar name", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      git("commit", "--quiet", "--allow-empty", "-m", "first")
      git("tag", "refs/heads/copy")
      const { commit } = yield* inWorkspace(Repository.exportGit({ directory, ref: "copy" }))
      assert.strictEqual(git("rev-parse", "refs/heads/copy").trim(), commit)
      assert.strictEqual(git("rev-list", "--count", commit).trim(), "1")
    })
  )

  it.live("does not move the reference if the tree of its current commit cannot be read", () =>
    Effect.gen(function* () {
      const { directory, git } = makeRepository()
      Fs.writeFileSync(join(directory, "a"), "a")
      git("add", "a")
      git("commit", "--quiet", "-m", "first")
      git("branch", "copy")
      const tree = git("rev-parse", "copy^{tree}").trim()
      Fs.rmSync(join(directory, ".git/objects", tree.slice(0, 2), tree.slice(2)))
      const before = git("for-each-ref")
      assert.strictEqual(yield* inWorkspace(reasonOf(Repository.exportGit({ directory, ref: "copy" }))), "corrupt")
      assert.strictEqual(git("for-each-ref"), before)
    })
  )
})
