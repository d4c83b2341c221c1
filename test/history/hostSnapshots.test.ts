import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { createHash, createHmac } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { fastDirectory as directory } from "../backends/posixHost.ts"
import * as Names from "../runtime/names.ts"
import { chooser, disturb, plant, read } from "./awkward.ts"
import { inGit, type Place, place } from "./support.ts"

const programs = process.env["FS_ALGEBRA_SOAK"] === "1" ? 200 : 3

const inspect = ({ gitDir }: Place, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", gitDir, ...args], { encoding: "latin1", maxBuffer: 1 << 28 })

describe("snapshots of a host directory", () => {
  it.live("restore everything byte for byte and mode for mode", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      const before = read(here.root)
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot({ tag: "awkward" })
        assert.deepStrictEqual(read(here.root), before)
        const top = Fs.statSync(here.root).ino
        for (const name of Fs.readdirSync(here.root)) Fs.rmSync(join(here.root, name), { recursive: true })
        const { changes } = yield* snapshots.restore(taken, { verify: true })
        assert.isAbove(changes.length, 40)
        assert.deepStrictEqual(read(here.root), before)
        assert.strictEqual(Fs.statSync(here.root).ino, top)
        assert.isFalse(Fs.existsSync(here.trap))
        assert.deepStrictEqual((yield* snapshots.restore(taken)).changes, [])
      }).pipe(Effect.provide(inGit(here)))
    })
  )

  it.live("pass git fsck and are readable with git commands", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      const taken = yield* Snapshots.Snapshots.use((snapshots) => snapshots.snapshot({ tag: "awkward" })).pipe(
        Effect.provide(inGit(here))
      )
      execFileSync("git", ["--git-dir", here.gitDir, "fsck", "--full", "--strict"], { stdio: "pipe" })
      const names = inspect(here, "ls-tree", "-r", "-z", "--name-only", taken.commitRef).split("\0")
      assert.include(names, "plain.txt")
      assert.include(names, "ignored/secret.log")
      assert.strictEqual(inspect(here, "show", `${taken.commitRef}:crlf.txt`), "a\r\nb\r\n")
      assert.strictEqual(inspect(here, "log", "-1", "--format=%s", taken.commitRef).trim(), "awkward")
    })
  )

  it.live("restore in any order after random changes by other programs", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= programs; seed++) {
        const choose = chooser(seed * 7919)
        const here = yield* place
        plant(here.root, here.trap)
        Fs.rmSync(join(here.root, "large.bin"))
        yield* Effect.gen(function* () {
          const snapshots = yield* Snapshots.Snapshots
          const kept: Array<readonly [Snapshots.FilesystemSnapshot, Record<string, string>]> = []
          for (let step = 0; step < 10; step++) {
            disturb(here.root, choose)
            if (kept.length === 0 || choose(2) === 0) {
              kept.push([yield* snapshots.snapshot(), read(here.root)])
            } else {
              const [snapshot, tree] = kept[choose(kept.length)]!
              yield* snapshots.restore(snapshot)
              assert.deepStrictEqual(read(here.root), tree, `seed ${seed}, step ${step}`)
            }
          }
        }).pipe(Effect.provide(inGit(here)))
        execFileSync("git", ["--git-dir", here.gitDir, "fsck", "--full", "--strict"], { stdio: "pipe" })
      }
    })
  )

  it.live("are restored by a later process from the value alone", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      const before = read(here.root)
      const json = Schema.toCodecJson(Snapshots.FilesystemSnapshot)
      const text = yield* Snapshots.Snapshots.use((snapshots) => snapshots.snapshot()).pipe(
        Effect.flatMap(Schema.encodeEffect(json)),
        Effect.map((value) => JSON.stringify(value)),
        Effect.provide(inGit(here))
      )
      disturb(here.root, chooser(5))
      const value = yield* Schema.decodeUnknownEffect(json)(JSON.parse(text))
      yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(value)).pipe(Effect.provide(inGit(here)))
      assert.deepStrictEqual(read(here.root), before)
    })
  )

  it.live("restore only the requested paths, and change nothing in a dry run", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        const before = read(here.root)
        Fs.writeFileSync(join(here.root, "plain.txt"), "changed")
        Fs.writeFileSync(join(here.root, "a/new.txt"), "new")
        Fs.rmSync(join(here.root, "a/b.txt"))
        const changed = read(here.root)
        const { changes } = yield* snapshots.restore(taken, { dryRun: true })
        assert.deepStrictEqual(
          changes.map(({ _tag, path }) => `${_tag} ${path}`),
          ["Added a/b.txt", "Removed a/new.txt", "Modified plain.txt"]
        )
        assert.deepStrictEqual(read(here.root), changed)
        yield* snapshots.restore(taken, { paths: ["a"] })
        assert.deepStrictEqual(read(here.root), { ...before, "./plain.txt": "file 644 changed" })
        assert.deepStrictEqual(
          (yield* snapshots.diff(taken)).map(({ _tag, path }) => `${_tag} ${path}`),
          ["Modified plain.txt"]
        )
        yield* snapshots.restore(taken)
        assert.deepStrictEqual(read(here.root), before)
      }).pipe(Effect.provide(inGit(here)))
    })
  )

  it.live("can be read like any filesystem, but not written", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const fs = yield* Filesystem
        const taken = yield* snapshots.snapshot()
        yield* fs.write("plain.txt", "new\n")
        yield* fs.delete("a", { recursive: true })
        const past = yield* snapshots.view(taken)
        assert.strictEqual(yield* past.readString("plain.txt"), "one\ntwo\n")
        assert.strictEqual(yield* past.readString("link"), "one\ntwo\n")
        assert.strictEqual(yield* past.readString("link to directory/b.txt"), "")
        assert.deepStrictEqual((yield* past.glob("*.txt")).matches.map(({ path }) => path).slice(0, 3), [
          "$Id$.txt",
          "a-b.txt",
          "a.txt"
        ])
        assert.deepStrictEqual((yield* past.grep("nested repo")).matches.map(({ path }) => path).sort(), [
          "deep/er/nested/inside.txt",
          "inside.txt",
          "nested/inside.txt"
        ])
        assert.strictEqual((yield* past.readBytes("large.bin")).content.length, 5 * 1024 * 1024 + 7)
        assert.strictEqual((yield* past.stat("private")).mode, 0o600)
        const refused = yield* Effect.flip(past.write("plain.txt", "x"))
        assert.strictEqual(refused._tag, "AccessDenied")
      }).pipe(Effect.provide(inGit(here)))
    })
  )
})

describe("the stamps that a store keeps for the next process", () => {
  const capturing = (here: Place) =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      const taken = yield* snapshots.snapshot()
      return { taken, tree: read(here.root), differences: yield* snapshots.diff(taken) }
    }).pipe(Effect.provide(inGit(here)))

  it.live("do not hide a change that keeps the size and restores the modification time", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= programs; seed++) {
        const here = yield* place
        plant(here.root, here.trap)
        Fs.rmSync(join(here.root, "large.bin"))
        const choose = chooser(seed * 104729)
        const all = []
        for (let step = 0; step < 5; step++) {
          disturb(here.root, choose)
          all.push(yield* capturing(here))
        }
        for (const { differences, taken, tree } of all.reverse()) {
          assert.deepStrictEqual(differences, [])
          yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)).pipe(Effect.provide(inGit(here)))
          assert.deepStrictEqual(read(here.root), tree)
        }
      }
    })
  )

  it.live("are ignored when the file is truncated, changed or garbage", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      yield* capturing(here)
      const seen = Fs.readdirSync(here.gitDir).find((name) => name.startsWith("seen-"))
      assert.isDefined(seen)
      const file = join(here.gitDir, seen!)
      const good = Fs.readFileSync(file)
      for (const bad of ["", "x", good.subarray(0, good.length >> 1), Buffer.from(good).fill(48, 100, 140)]) {
        Fs.writeFileSync(file, bad)
        Fs.writeFileSync(join(here.root, "plain.txt"), `${bad.length}`)
        const { taken, tree } = yield* capturing(here)
        Fs.writeFileSync(join(here.root, "plain.txt"), "other")
        yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)).pipe(Effect.provide(inGit(here)))
        assert.deepStrictEqual(read(here.root), tree)
      }
    })
  )

  /** Signatures that another program can make: a checksum, and a signature of the right length with another key. */
  const seals: Record<string, (text: string) => string> = {
    "a checksum": (text) => createHash("sha256").update(text).digest("hex"),
    "the code of another installation": (text) => {
      const hash = createHash("sha256").update(text).digest("hex")
      return createHmac("sha256", "another key").update(`seen ${hash}`).digest("hex").slice(0, 32)
    }
  }

  for (const [what, sealOf] of Object.entries(seals)) {
    it.live(`are ignored when forged with ${what}`, () =>
      Effect.gen(function* () {
        const here = yield* place
        Fs.writeFileSync(join(here.root, "mine.txt"), "mine")
        Fs.writeFileSync(join(here.root, "other.txt"), "else")
        yield* capturing(here)
        const file = join(
          here.gitDir,
          Fs.readdirSync(here.gitDir).find((name) => name.startsWith("seen-"))!
        )
        const idOf = (name: string): string => inspect(here, "hash-object", join(here.root, name)).trim()
        const text = Fs.readFileSync(file, "utf8").replace(/^[^\n]*\n/, "")
        // The forged file claims a later capture time, so that its stamps count as settled, and claims another content for a
        // file.
        const later = text.replace(/"began":[0-9]+/, `"began":${Date.now() + 1e9}`)
        const forged = later.replace(idOf("mine.txt"), idOf("other.txt"))
        assert.strictEqual(new Set([text, later, forged]).size, 3)
        Fs.writeFileSync(file, `${sealOf(forged)}\n${forged}`)
        const { taken, tree } = yield* capturing(here)
        Fs.writeFileSync(join(here.root, "mine.txt"), "since")
        yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)).pipe(Effect.provide(inGit(here)))
        assert.deepStrictEqual(read(here.root), tree)
      })
    )
  }

  it.live("are ignored if a directory is at the path of their file, and a pipe or a link there makes the store refused", () =>
    Effect.gen(function* () {
      const here = yield* place
      Fs.writeFileSync(join(here.root, "mine.txt"), "mine")
      yield* capturing(here)
      const file = join(
        here.gitDir,
        Fs.readdirSync(here.gitDir).find((name) => name.startsWith("seen-"))!
      )
      const elsewhere = join(here.gitDir, "..", "elsewhere")
      Fs.rmSync(file)
      Fs.mkdirSync(file)
      assert.deepStrictEqual((yield* capturing(here)).differences, [])
      Fs.rmSync(file, { recursive: true, force: true })
      Fs.writeFileSync(elsewhere, "kept")
      for (const make of [() => execFileSync("mkfifo", [file]), () => Fs.symlinkSync(elsewhere, file)]) {
        make()
        assert.deepInclude(yield* Effect.flip(capturing(here)), { _tag: "SnapshotError", reason: "refused" })
        Fs.rmSync(file)
      }
      assert.strictEqual(Fs.readFileSync(elsewhere, "utf8"), "kept")
    })
  )
})

describe("snapshots of a host:", () => {
  /**
   * The number of rewrites of the file during the reads of a capture: one before the fifth read, one before each of the first
   * twenty reads, and one before every read.
   */
  it.live.each([
    ["once", [5, 5]],
    ["twenty times", [1, 20]],
    ["at every read", [1, Infinity]]
  ] as const)("a file that is rewritten %s during a capture is captured whole, or the capture fails", ([, [first, last]]) =>
    Effect.gen(function* () {
      const here = yield* place
      const file = join(here.root, "torn")
      const size = 3 * 1024 * 1024
      let letter = 65
      // An intact file consists of one repeated letter. Each rewrite waits until the disk's clock shows the change.
      const rewrite = (): void => {
        const before = Fs.statSync(file, { bigint: true }).mtimeNs
        letter = letter === 90 ? 65 : letter + 1
        do Fs.writeFileSync(file, Buffer.alloc(size, letter), { flag: "r+" })
        while (Fs.statSync(file, { bigint: true }).mtimeNs === before)
      }
      Fs.writeFileSync(file, Buffer.alloc(size, letter))
      let reads = 0
      const rewriting = ({ port }: Algebra): Algebra =>
        make({
          ...port,
          open: (path) =>
            Effect.map(port.open(path), (handle) => ({
              ...handle,
              read: (offset, length) =>
                Effect.suspend(() => {
                  reads++
                  if (reads >= first && reads <= last) rewrite()
                  return handle.read(offset, length)
                })
            }))
        })
      const layer = Snapshots.layerGit({ gitDir: here.gitDir }).pipe(
        Layer.provideMerge(PosixHost.layer({ root: here.root }).pipe(decorate((fs) => Effect.succeed(rewriting(fs)))))
      )
      const taken = yield* Effect.result(Snapshots.Snapshots.use((snapshots) => snapshots.snapshot())).pipe(
        Effect.provide(layer)
      )
      assert.isAtLeast(reads, last === Infinity ? 100 : last)
      if (taken._tag === "Failure") return assert.include(taken.failure.message, "torn")
      const bytes = execFileSync("git", ["--git-dir", here.gitDir, "show", `${taken.success.commitRef}:torn`], {
        maxBuffer: 2 * size
      })
      assert.strictEqual(bytes.length, size)
      assert.isTrue(bytes.every((byte) => byte === bytes[0]))
    })
  )

  it.live("the files of an unchanged directory stay in the store when older snapshots are forgotten and collected", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      for (const name of ["a", "b"]) {
        Fs.mkdirSync(join(root, name), { mode: 0o700 })
        Fs.chmodSync(join(root, name), 0o700)
        Fs.writeFileSync(join(root, name, "file"), `${name}\n`)
        Fs.symlinkSync("file", join(root, name, "link"))
      }
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        let taken = yield* snapshots.snapshot()
        for (let i = 0; i < 6; i++) {
          Fs.writeFileSync(join(root, "a", "file"), `${i}\n`.repeat(1000))
          const next = yield* snapshots.snapshot()
          yield* snapshots.forget(taken)
          yield* snapshots.collect
          taken = next
          execFileSync("git", ["--git-dir", gitDir, "fsck", "--full", "--strict"], { stdio: "pipe" })
        }
      }).pipe(Effect.provide(inGit({ gitDir, root })))
    })
  )

  it.live("entries that cannot be captured are counted as skipped", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      execFileSync("mkfifo", [join(root, "fifo")])
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        assert.strictEqual((yield* snapshots.details(taken)).skipped, 1)
        yield* snapshots.restore(taken)
        assert.isTrue(Fs.lstatSync(join(root, "fifo")).isFIFO())
      }).pipe(Effect.provide(inGit({ gitDir, root })))
    })
  )

  it.live("a fork can be merged only into its own root", () =>
    Effect.gen(function* () {
      const gitDir = join(yield* directory, "store")
      const [one, other] = [yield* directory, yield* directory]
      const fork = yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const fork = yield* snapshots.fork(yield* snapshots.snapshot())
        yield* fork.write("new", "x")
        return fork
      }).pipe(Effect.provide(inGit({ gitDir, root: one })))
      const error = yield* Snapshots.Snapshots.use((snapshots) => Effect.flip(snapshots.merge(fork))).pipe(
        Effect.provide(inGit({ gitDir, root: other }))
      )
      assert.strictEqual(error._tag === "SnapshotError" && error.reason, "refused")
      assert.deepStrictEqual(Fs.readdirSync(other), [])
    })
  )

  it.live("the result of a restore survives JSON, even with names that are not UTF-8", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "")
        const result = yield* snapshots.restore(taken, { safety: true })
        const codec = Schema.toCodecJson(Snapshots.RestoreResult)
        const json = JSON.stringify(yield* Schema.encodeEffect(codec)(result))
        assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codec)(JSON.parse(json)), result)
      }).pipe(Effect.provide(inGit({ gitDir, root })))
    })
  )

  it.live("errors do not reveal the path of the store", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      Fs.writeFileSync(join(root, "a"), "1")
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        const past = yield* snapshots.view(taken)
        Fs.rmSync(gitDir, { recursive: true })
        const failures = [
          yield* Effect.flip(snapshots.snapshot()),
          yield* Effect.flip(snapshots.restore(taken)),
          yield* Effect.flip(snapshots.diff(taken))
        ]
        // Open objects may still be readable.
        const read = yield* Effect.result(past.readString("a"))
        if (read._tag === "Failure") assert.notInclude(read.failure.message, gitDir)
        for (const failure of failures) assert.notInclude(failure.message, gitDir)
      }).pipe(Effect.provide(inGit({ gitDir, root })))
    })
  )

  it.live("directories do not count against the budget of files", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      for (let i = 0; i < 40; i++) Fs.mkdirSync(join(root, `d${i}`))
      const take = Snapshots.Snapshots.use((snapshots) => snapshots.snapshot())
      const taken = yield* Effect.provide(take, inGit({ gitDir, root }, { maxFiles: 10 }))
      for (let i = 0; i < 40; i++) Fs.rmdirSync(join(root, `d${i}`))
      yield* Effect.provide(
        Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)),
        inGit({ gitDir, root }, { maxFiles: 10 })
      )
      assert.strictEqual(Fs.readdirSync(root).length, 40)
    })
  )

  it.live("a directory has the same snapshots, whatever path leads to it", () =>
    Effect.gen(function* () {
      const { gitDir, root: top } = yield* place
      Fs.mkdirSync(join(top, "root"))
      Fs.symlinkSync("root", join(top, "link"))
      const taken = yield* Effect.provide(
        Snapshots.Snapshots.use((snapshots) => snapshots.snapshot()),
        inGit({ gitDir, root: join(top, "link") })
      )
      Fs.writeFileSync(join(top, "root", "new"), "")
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        assert.strictEqual((yield* snapshots.list).length, 1)
        yield* snapshots.restore(taken)
        assert.deepStrictEqual(Fs.readdirSync(join(top, "root")), [])
      }).pipe(Effect.provide(inGit({ gitDir, root: join(top, "root") })))
    })
  )

  it.live("reading a large file of a snapshot backwards runs one git process at a time", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      const content = Buffer.alloc(6 * 1024 * 1024, "0123456789\n")
      Fs.writeFileSync(join(root, "large"), content)
      const running = (): number =>
        Fs.readdirSync("/proc").filter((pid) => {
          if (!/^\d+$/.test(pid)) return false
          try {
            const line = Fs.readFileSync(`/proc/${pid}/cmdline`, "latin1")
            return line.includes(gitDir) && line.includes("cat-file\0blob")
          } catch {
            return false
          }
        }).length
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const past = yield* snapshots.view(yield* snapshots.snapshot())
        yield* Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* past.port.open("large" as never)
            for (let i = 20; i >= 0; i--) {
              const at = i * 250_000
              const bytes = yield* handle.read(at, 1000)
              assert.isTrue(Buffer.from(bytes).equals(content.subarray(at, at + bytes.length)))
              assert.isAtMost(running(), 1)
            }
          })
        )
      }).pipe(Effect.provide(inGit({ gitDir, root })))
    })
  )

  it.live("a capture without write permission includes the leftovers of a killed transaction", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      Fs.writeFileSync(join(root, "a"), "1")
      const token = Names.signed(Names.dead(), "exchange")
      const left = join(root, token)
      Fs.mkdirSync(left)
      const taken = yield* Snapshots.Snapshots.use((snapshots) => snapshots.snapshot()).pipe(
        Effect.provide(inGit({ gitDir, root }, {}, { readOnly: true }))
      )
      assert.isTrue(Fs.existsSync(left))
      const names = yield* Snapshots.Snapshots.use((snapshots) =>
        Effect.flatMap(snapshots.view(taken), (past) => past.list())
      ).pipe(Effect.provide(inGit({ gitDir, root }, {}, { readOnly: true })))
      assert.deepStrictEqual(
        names.map(({ name }) => name),
        [token, "a"]
      )
    })
  )

  it.live.skipIf(process.platform !== "linux")("a name that is not UTF-8 is listed alike in a view and in the live tree", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      for (const name of ["a\xff", "b\\\xfe", "c\n"]) {
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]), "")
      }
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const fs = yield* Filesystem
        const past = yield* snapshots.view(yield* snapshots.snapshot())
        const names = (all: ReadonlyArray<{ readonly name: string }>) => all.map(({ name }) => name)
        const now = names(yield* fs.list())
        assert.strictEqual(now.length, 3)
        assert.deepStrictEqual(names(yield* past.list()), now)
      }).pipe(Effect.provide(inGit({ gitDir, root })))
    })
  )

  it.live("an excluded .git stays unchanged, whichever layer restores a snapshot", () =>
    Effect.gen(function* () {
      const { gitDir, root } = yield* place
      Fs.mkdirSync(join(root, ".git"))
      Fs.writeFileSync(join(root, ".git/HEAD"), "first\n")
      Fs.writeFileSync(join(root, "a"), "1")
      const take = Snapshots.Snapshots.use((snapshots) => snapshots.snapshot())
      const without = yield* Effect.provide(take, inGit({ gitDir, root }, { git: "exclude" }))
      const withIt = yield* Effect.provide(take, inGit({ gitDir, root }))
      for (const [snapshot, options, head] of [
        [without, {}, "second\n"],
        [without, { git: "exclude" }, "second\n"],
        [withIt, { git: "exclude" }, "second\n"],
        [withIt, {}, "first\n"]
      ] as const) {
        Fs.writeFileSync(join(root, ".git/HEAD"), "second\n")
        Fs.writeFileSync(join(root, "a"), "2")
        const restore = Snapshots.Snapshots.use((snapshots) => snapshots.restore(snapshot, { verify: true }))
        yield* Effect.provide(restore, inGit({ gitDir, root }, options))
        assert.strictEqual(Fs.readFileSync(join(root, ".git/HEAD"), "utf8"), head)
        assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "1")
      }
    })
  )

  it.live.each<readonly [what: string, plant: (staging: string) => void]>([
    ["file that is not JSON", (staging) => Fs.writeFileSync(join(staging, "journal"), "{ not JSON")],
    ["directory", (staging) => Fs.mkdirSync(join(staging, "journal"))],
    ["link", (staging) => Fs.symlinkSync("/etc/passwd", join(staging, "journal.back"))]
  ])("a forged staging directory with a journal that is a %s blocks neither snapshots nor restores, and stays", ([, plantIn]) =>
    Effect.gen(function* () {
      const here = yield* place
      Fs.writeFileSync(join(here.root, "a"), "1")
      const staging = join(here.root, Names.forged(Names.dead(), "exchange"))
      Fs.mkdirSync(staging)
      plantIn(staging)
      const before = Fs.readdirSync(staging)
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        Fs.writeFileSync(join(here.root, "a"), "2")
        yield* snapshots.restore(taken)
      }).pipe(Effect.provide(inGit(here)))
      assert.strictEqual(Fs.readFileSync(join(here.root, "a"), "utf8"), "1")
      assert.deepStrictEqual(Fs.readdirSync(staging), before)
    })
  )
})
