import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import { createHash, createHmac } from "node:crypto"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { chooser, disturb, plant, read } from "./awkward.ts"

const memory = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()
const programs = process.env["FS_ALGEBRA_SOAK"] === "1" ? 200 : 3

interface Place {
  readonly root: string
  readonly gitDir: string
  readonly trap: string
}

const place: Effect.Effect<Place, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(memory), "fs-algebra-snapshots-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  ),
  (top) => {
    Fs.mkdirSync(join(top, "root"))
    return { root: join(top, "root"), gitDir: join(top, "store"), trap: join(top, "trap") }
  }
)

const serving = ({ gitDir, root }: Place, options: Snapshots.LayerOptions = {}) =>
  Snapshots.layerGit({ gitDir, ...options }).pipe(Layer.provideMerge(PosixHost.layer({ root })))

const inspect = ({ gitDir }: Place, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["--git-dir", gitDir, ...args], { encoding: "latin1", maxBuffer: 1 << 28 })

describe("snapshots of a host directory", () => {
  it.live("bring everything back byte for byte and mode for mode", () =>
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
      }).pipe(Effect.provide(serving(here)))
    })
  )

  it.live("pass git fsck and are readable with git commands", () =>
    Effect.gen(function* () {
      const here = yield* place
      plant(here.root, here.trap)
      const taken = yield* Snapshots.Snapshots.use((snapshots) => snapshots.snapshot({ tag: "awkward" })).pipe(
        Effect.provide(serving(here))
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
        }).pipe(Effect.provide(serving(here)))
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
        Effect.provide(serving(here))
      )
      disturb(here.root, chooser(5))
      const value = yield* Schema.decodeUnknownEffect(json)(JSON.parse(text))
      yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(value)).pipe(Effect.provide(serving(here)))
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
      }).pipe(Effect.provide(serving(here)))
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
      }).pipe(Effect.provide(serving(here)))
    })
  )
})

describe("the stamps that a store keeps for the next process", () => {
  const capturing = (here: Place) =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      const taken = yield* snapshots.snapshot()
      return { taken, tree: read(here.root), differences: yield* snapshots.diff(taken) }
    }).pipe(Effect.provide(serving(here)))

  it.live("do not hide changes of the same size with the time put back", () =>
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
          yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)).pipe(Effect.provide(serving(here)))
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
        yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)).pipe(Effect.provide(serving(here)))
        assert.deepStrictEqual(read(here.root), tree)
      }
    })
  )

  /** Seals that a stranger can make: a checksum, and a code of the right length made with another key. */
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
        // The forgery claims a later capture time, so that even young files count as read, and swaps the content of a
        // file.
        const later = text.replace(/"began":[0-9]+/, `"began":${Date.now() + 1e9}`)
        const forged = later.replace(idOf("mine.txt"), idOf("other.txt"))
        assert.strictEqual(new Set([text, later, forged]).size, 3)
        Fs.writeFileSync(file, `${sealOf(forged)}\n${forged}`)
        const { taken, tree } = yield* capturing(here)
        Fs.writeFileSync(join(here.root, "mine.txt"), "since")
        yield* Snapshots.Snapshots.use((snapshots) => snapshots.restore(taken)).pipe(Effect.provide(serving(here)))
        assert.deepStrictEqual(read(here.root), tree)
      })
    )
  }

  it.live("are ignored if a directory is in their place, and the store is refused for a pipe or a link there", () =>
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
