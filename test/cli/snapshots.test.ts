import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { execFileSync, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { stateDirectory } from "../../src/runtime/privateDirectory.ts"
import { SnapshotError } from "../../src/history/errors.ts"
import { FilesystemSnapshot } from "../../src/history/snapshots/value.ts"
import { directory, type Files } from "../../src/testing/Files.ts"
import { picture } from "../faults/ground.ts"
import { hasGit, kept, type Kept, place } from "./kept.ts"
import { done, shell } from "./terminal.ts"
import { commandLine } from "../bundled.ts"

const files: Files = {
  "a.txt": "one\ntwo\nthree\n",
  "src/main.ts": "export const a = 1\n",
  ".gitignore": "ignored\n",
  ignored: "kept all the same\n",
  empty: directory,
  link: { link: "a.txt" }
}

interface Described {
  readonly snapshotId: string
  readonly commitRef: string
  readonly gitDir: string
  readonly tag?: string
  readonly rootPath: string
  readonly files: number
  readonly filesChanged?: number
  readonly linesAdded?: number
  readonly linesRemoved?: number
}

interface Restored {
  readonly snapshot: Described
  readonly safety?: Described
  readonly dryRun: boolean
  readonly changes: ReadonlyArray<{ readonly _tag: string; readonly path: string }>
}

const first = <A>(all: Effect.Effect<ReadonlyArray<unknown>>): Effect.Effect<A> => Effect.map(all, ([one]) => one as A)

const take = (here: Kept, ...args: ReadonlyArray<string>) => first<Described>(here.json(["snapshot", ...args]))

const change = ({ root }: Kept): void => {
  Fs.writeFileSync(join(root, "a.txt"), "one\nTWO\nthree\nfour\n")
  Fs.rmSync(join(root, "src"), { recursive: true })
  Fs.writeFileSync(join(root, "added.txt"), "new\n")
}

/** Takes a snapshot, and then changes files. */
const changedSince = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const here = yield* kept(files)
  const before = picture(here.root)
  const taken = yield* take(here, ...args)
  change(here)
  return { here, before, taken, changed: picture(here.root) }
})

describe.runIf(hasGit)("the command snapshot", () => {
  it.live("prints id and size of the snapshot, and the changes since the previous snapshot", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const before = picture(here.root)
      const one = yield* here.run(["snapshot", "--tag", "first"])
      assert.match(done(one), /^Took snapshot [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n5 files, \d+ B; 5 files changed\n$/)
      assert.strictEqual(one.err, "")
      assert.deepStrictEqual(picture(here.root), before)
      change(here)
      assert.match(done(yield* here.run(["snapshot"])), /; 3 files changed, \+3 -2\n$/)
    })
  )
  it.live("counts the entries that a snapshot cannot contain", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      execFileSync("mkfifo", [join(here.root, "pipe"), join(here.root, "src/pipe")])
      const ran = yield* here.run(["snapshot"])
      assert.match(done(ran), /\n5 files, /)
      assert.strictEqual(
        ran.err,
        "skipped: 2 of the entries (FIFOs, sockets or devices), because snapshots cannot contain them\n"
      )
      const { code, err, out } = yield* here.run(["snapshot", "--json"])
      assert.deepStrictEqual([code, JSON.parse(err)], [0, { skipped: 2 }])
      assert.strictEqual((JSON.parse(out) as Described).files, 5)
    })
  )
  it.live("prints with --json the counts, and the id that restore accepts", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const taken = yield* take(here, "--tag", "before lunch")
      assert.deepInclude(taken, { tag: "before lunch", files: 5, filesChanged: 5, rootPath: here.root })
      const decoded = Schema.decodeUnknownSync(Schema.toCodecJson(FilesystemSnapshot))(taken)
      assert.strictEqual(decoded.snapshotId, taken.snapshotId)
    })
  )
  it.live("stores the snapshot in a private git directory for the root", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const { commitRef, gitDir } = yield* take(here)
      const hash = createHash("sha256").update(here.root).digest("hex").slice(0, 16)
      assert.strictEqual(gitDir, join(here.state, "fs-algebra", "snapshots", `root-${hash}`))
      assert.strictEqual(Fs.statSync(gitDir).mode & 0o777, 0o700)
      assert.strictEqual(Fs.statSync(join(here.state, "fs-algebra")).mode & 0o777, 0o700)
      const names = execFileSync("git", ["--git-dir", gitDir, "ls-tree", "-r", "--name-only", commitRef], { encoding: "utf8" })
      assert.deepStrictEqual(names.trimEnd().split("\n"), [".gitignore", "a.txt", "ignored", "link", "src/main.ts"])
      assert.deepStrictEqual(Fs.readdirSync(here.top).sort(), ["root", "state"])
    })
  )
  it.live("stores the snapshot in the directory of --store, and repeats --store in its hints", () =>
    Effect.gen(function* () {
      const { here, taken } = yield* changedSince("--store", "kept here")
      assert.strictEqual(taken.gitDir, join(here.top, "kept here"))
      assert.isFalse(Fs.existsSync(here.state))
      const { err } = yield* here.run(["restore", "--store", "kept here"])
      assert.match(err, /fs-algebra restore [0-9a-f]{8} --store 'kept here' --root root/)
    })
  )
  it.live.each([
    ["a state directory", []],
    ["--store", ["--store", "root/store"]],
    ["--store through a link", ["--store", "way/store"]],
    ["--store at a dangling link", ["--store", "dangling"]],
    ["--store behind a link in the root", ["--store", "root/back/store"]]
  ] as const)("refuses %s inside of the root, and suggests another directory", ([, args]) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      Fs.symlinkSync(here.root, join(here.top, "way"))
      Fs.symlinkSync("root/new-store", join(here.top, "dangling"))
      Fs.symlinkSync("..", join(here.root, "back"))
      const before = picture(here.root)
      const ran = yield* here.run(["snapshot", ...args], { stateDirectory: join(here.root, ".local/state") })
      assert.deepStrictEqual([ran.code, ran.out], [2, ""])
      assert.match(ran.err, /^error: the store of snapshots would lie inside the root: .*\nhint: .* --store DIR\.\n$/)
      assert.deepStrictEqual(picture(here.root), before)
    })
  )
  it.live("asks for --store when there is no home directory", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const ran = yield* here.run(["snapshot"], { stateDirectory: undefined })
      assert.strictEqual(ran.code, 2)
      assert.include(ran.err, "--store DIR")
    })
  )
  it.live.each(["two\nlines", "x".repeat(1001)])("refuses a tag that is longer than a line or than 1,000 characters", (tag) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const ran = yield* here.run(["snapshot", "--tag", tag])
      assert.strictEqual(ran.code, 2)
      assert.include(ran.err, "--tag is one line")
      assert.isFalse(Fs.existsSync(here.state))
    })
  )
  it.live("fails with a reason if the store cannot be created", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      Fs.writeFileSync(join(here.top, "file"), "")
      const ran = yield* here.run(["snapshot", "--store", "file/store", "--json"])
      assert.strictEqual(ran.code, 9)
      const { error } = JSON.parse(ran.err) as { error: unknown }
      assert.strictEqual(Schema.decodeUnknownSync(Schema.toCodecJson(SnapshotError))(error).reason, "io")
    })
  )
  it.live("leaves a directory that is not a store unchanged", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const other = join(here.top, "other")
      Fs.mkdirSync(other)
      Fs.writeFileSync(join(other, "mine.txt"), "mine")
      const before = picture(other)
      const ran = yield* here.run(["snapshot", "--store", "other"])
      assert.notStrictEqual(ran.code, 0)
      assert.notStrictEqual(ran.code, 70, ran.err)
      assert.deepStrictEqual(picture(other), before)
    })
  )
})

describe("snapshots of a copy in memory", () => {
  it.effect.each([["snapshot"], ["snapshots"], ["restore"], ["diff"]])("cannot be taken or used, so %s is refused", (args) =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell({ f: "" })).run([args[0]!, "--backend", "memory"], { stateDirectory: "/nowhere" })
      assert.strictEqual(ran.code, 2)
      assert.match(ran.err, /^error: .*copy in memory.*\nhint: {2}Leave out --backend memory\.\n$/)
    })
  )
})

describe.runIf(hasGit)("the command snapshots", () => {
  it.live("prints nothing to standard output for a root without snapshots, and creates no store", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const ran = yield* here.run(["snapshots"])
      assert.deepStrictEqual([ran.code, ran.out, ran.err], [0, "", "There is no snapshot of this root yet\n"])
      assert.deepStrictEqual(yield* here.json(["snapshots"]), [])
      assert.deepInclude((yield* here.json(["snapshots", "--stats"]))[0] as object, { snapshots: 0, bytes: 0 })
      assert.isFalse(Fs.existsSync(here.state))
    })
  )
  it.live("lists the newest snapshot first, with the changes of each", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const one = yield* take(here, "--tag", "first")
      change(here)
      const two = yield* take(here)
      const ran = yield* here.run(["snapshots"])
      const lines = done(ran).trimEnd().split("\n")
      const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d UTC`
      assert.lengthOf(lines, 2)
      assert.match(lines[0]!, new RegExp(`^${two.snapshotId.slice(0, 8)}  ${time}    3 files      \\+3      -2 +\\d+ B$`))
      assert.match(lines[1]!, new RegExp(`^${one.snapshotId.slice(0, 8)}  ${time}    5 files .* \\d+ B  first$`))
      assert.include(ran.err, `2 snapshots, `)
      assert.include(ran.err, two.gitDir)
      const all = (yield* here.json(["snapshots"])) as ReadonlyArray<Described>
      assert.deepStrictEqual(
        all.map(({ snapshotId }) => snapshotId),
        [two.snapshotId, one.snapshotId]
      )
      assert.deepInclude(all[0], { filesChanged: 3, linesAdded: 3, linesRemoved: 2, files: 5 })
      assert.lengthOf(yield* here.json(["snapshots", "-n", "1"]), 1)
    })
  )
  it.live("forgets by id, prefix or tag with --forget, and all but the newest with --keep", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const taken: Array<Described> = []
      for (const tag of ["a", "b", "c", "d", "e"]) taken.push(yield* take(here, "--tag", tag))
      const left = () =>
        Effect.map(here.json(["snapshots"]), (all) => (all as ReadonlyArray<Described>).map(({ tag }) => tag).join(""))
      const [a, b] = taken as [Described, Described]
      const dry = yield* here.run(["snapshots", "--keep", "3", "--dry-run"])
      assert.strictEqual(done(dry), `Would forget ${a.snapshotId.slice(0, 8)} a\nWould forget ${b.snapshotId.slice(0, 8)} b\n`)
      assert.strictEqual(yield* left(), "edcba")
      const ids = a.snapshotId.slice(0, 12)
      assert.deepStrictEqual(yield* here.json(["snapshots", "--forget", ids, "--forget", "d"]), [
        { forgotten: [a.snapshotId, taken[3]!.snapshotId], dryRun: false }
      ])
      assert.strictEqual(yield* left(), "ecb")
      done(yield* here.run(["snapshots", "--keep", "1"]))
      assert.strictEqual(yield* left(), "e")
      assert.strictEqual(done(yield* here.run(["snapshots", "--keep", "1"])), "There is no snapshot to forget\n")
      assert.deepInclude((yield* here.json(["snapshots", "--stats"]))[0] as object, { snapshots: 1, store: a.gitDir })
    })
  )
  it.live("forgets nothing if one of several names is unknown", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* take(here, "--tag", "a")
      assert.strictEqual((yield* here.run(["snapshots", "--forget", "a", "--forget", "nope"])).code, 3)
      assert.lengthOf(yield* here.json(["snapshots"]), 1)
    })
  )
  it.live.each([
    [["--dry-run"], "--forget or --keep"],
    [["--forget", "x", "--stats"], "--stats"],
    [["--keep", "1", "-n", "2"], "--max"],
    [["--keep", "-1"], "below 0"]
  ] as const)("reports wrong usage for %s", ([args, said]) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const ran = yield* here.run(["snapshots", ...args])
      assert.strictEqual(ran.code, 2)
      assert.include(ran.err, said)
    })
  )
})

describe.runIf(hasGit)("a snapshot name", () => {
  it.live("that is unknown ends the command with exit code 3 and a hint", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      for (const args of [["restore"], ["diff"], ["export", "x.zip", "--snapshot", "latest"], ["snapshots", "--forget", "x"]]) {
        const ran = yield* here.run(args)
        assert.deepStrictEqual([ran.code, ran.out], [3, ""], args.join(" "))
        assert.include(ran.err, "hint:  Take a snapshot: fs-algebra snapshot --root root")
      }
      yield* take(here)
      const ran = yield* here.run(["restore", "nope", "--json"])
      assert.strictEqual(ran.code, 3)
      const said = JSON.parse(ran.err) as { error: unknown; hint: string }
      assert.strictEqual(Schema.decodeUnknownSync(Schema.toCodecJson(SnapshotError))(said.error).reason, "unknown")
      assert.strictEqual(said.hint, "List the snapshots: fs-algebra snapshots --root root")
    })
  )
  it.live("that is a path gets a hint about the order of the arguments", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* take(here)
      const ran = yield* here.run(["restore", "src"])
      assert.strictEqual(ran.code, 3)
      assert.include(ran.err, "fs-algebra restore latest src --root root")
    })
  )
  it.live("that matches several snapshots is refused with a list of them", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const [one, two] = [yield* take(here, "--tag", "same"), yield* take(here, "--tag", "same")]
      change(here)
      const before = picture(here.root)
      const ran = yield* here.run(["restore", "same"])
      assert.deepStrictEqual([ran.code, ran.out], [2, ""])
      for (const { snapshotId } of [one, two]) assert.include(ran.err, snapshotId.slice(0, 8))
      assert.deepStrictEqual(picture(here.root), before)
      assert.lengthOf(yield* here.json(["snapshots"]), 2)
    })
  )
  it.live("refers to the snapshot with an equal tag, even if the name is the prefix of another snapshot's id", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const { snapshotId } = yield* take(here)
      const looksLikeIt = snapshotId.slice(0, 8)
      const tagged = yield* take(here, "--tag", looksLikeIt)
      const { snapshot } = yield* first<Restored>(here.json(["restore", looksLikeIt]))
      assert.strictEqual(snapshot.snapshotId, tagged.snapshotId)
    })
  )
  it.live("is refused if it is the prefix of two ids", () =>
    Effect.gen(function* () {
      const here = yield* kept({ f: "" })
      const byDigit = new Map<string, ReadonlyArray<string>>()
      let digit = ""
      // Among seventeen ids, two begin with the same digit.
      while ((byDigit.get(digit)?.length ?? 0) < 2) {
        const { snapshotId } = yield* take(here)
        digit = snapshotId[0]!
        byDigit.set(digit, [...(byDigit.get(digit) ?? []), snapshotId])
      }
      const alike = byDigit.get(digit)!
      const ran = yield* here.run(["diff", digit, "--json"])
      assert.strictEqual(ran.code, 2)
      assert.deepInclude(JSON.parse(ran.err) as object, { error: { _tag: "UsageError" } })
      for (const id of alike) assert.strictEqual((yield* here.run(["diff", id.toUpperCase()])).code, 0)
    })
  )
  it.live("that is `latest` does not refer to safety snapshots of restore", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const before = picture(here.root)
      const taken = yield* take(here)
      for (const text of ["an edit\n", "another\n"]) {
        Fs.writeFileSync(join(here.root, "a.txt"), text)
        const { safety, snapshot } = yield* first<Restored>(here.json(["restore"]))
        assert.strictEqual(snapshot.snapshotId, taken.snapshotId)
        assert.match(safety!.tag!, /^before restoring /)
        assert.deepStrictEqual(picture(here.root), before)
      }
    })
  )
})

describe.runIf(hasGit)("the command restore", () => {
  it.live("restores changed and removed files, removes added files, and can be undone", () =>
    Effect.gen(function* () {
      const { before, changed, here, taken } = yield* changedSince()
      const ran = yield* here.run(["restore"])
      assert.strictEqual(
        done(ran),
        `M\ta.txt\nD\tadded.txt\nA\tsrc\nA\tsrc/main.ts\nRestored ${taken.snapshotId.slice(0, 8)}, 2 added, 1 changed, 1 removed\n`
      )
      assert.deepStrictEqual(picture(here.root), before)
      const [, id] = /^the previous files are kept as ([0-9a-f]{8}); undo this with fs-algebra restore \1 --root root\n$/.exec(
        ran.err
      )!
      done(yield* here.run(["restore", id!]))
      assert.deepStrictEqual(picture(here.root), changed)
    })
  )
  it.live("reports the same changes with --dry-run, and makes none", () =>
    Effect.gen(function* () {
      const { changed, here } = yield* changedSince()
      const ran = yield* here.run(["restore", "--dry-run"])
      assert.match(done(ran), /^M\ta\.txt\nD\tadded\.txt\nA\tsrc\nA\tsrc\/main\.ts\nWould restore /)
      assert.strictEqual(ran.err, "nothing has changed\n")
      const dry = yield* first<Restored>(here.json(["restore", "--dry-run"]))
      assert.isTrue(dry.dryRun)
      assert.isUndefined(dry.safety)
      assert.deepStrictEqual(picture(here.root), changed)
      assert.lengthOf(yield* here.json(["snapshots"]), 1)
      const real = yield* first<Restored>(here.json(["restore"]))
      assert.deepStrictEqual(real.changes, dry.changes)
    })
  )
  it.live("restores only the given paths", () =>
    Effect.gen(function* () {
      const { before, changed, here, taken } = yield* changedSince("--tag", "x")
      done(yield* here.run(["restore", taken.snapshotId.slice(0, 10), "src/", "added.txt"]))
      const { "added.txt": _, ...rest } = changed
      assert.deepStrictEqual(picture(here.root), { ...rest, src: before["src"]!, "src/main.ts": before["src/main.ts"]! })
    })
  )
  it.live.each([
    ["a path outside of the root", ["latest", "../x"], 2],
    ["a path that is neither in the tree nor in the snapshot", ["latest", "a.txt", "nope"], 3],
    ["a path that is too long", ["latest", "x".repeat(300)], 8]
  ] as const)("changes nothing for %s", ([, args, code]) =>
    Effect.gen(function* () {
      const { changed, here } = yield* changedSince()
      const ran = yield* here.run(["restore", ...args])
      assert.deepStrictEqual([ran.code, ran.out], [code, ""], ran.err)
      assert.deepStrictEqual(picture(here.root), changed)
      assert.lengthOf(yield* here.json(["snapshots"]), 1)
    })
  )
  it.live("keeps no safety snapshot with --no-safety, and prints a note", () =>
    Effect.gen(function* () {
      const { here } = yield* changedSince()
      const ran = yield* here.run(["restore", "latest", "--no-safety"])
      done(ran)
      assert.strictEqual(ran.err, "the previous files are not kept\n")
      assert.lengthOf(yield* here.json(["snapshots"]), 1)
    })
  )
  it.live("changes nothing if nothing differs", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const { snapshotId } = yield* take(here)
      const ran = yield* here.run(["restore", "--verify"])
      assert.strictEqual(done(ran), `The files are already as in snapshot ${snapshotId.slice(0, 8)}\n`)
      assert.lengthOf(yield* here.json(["snapshots"]), 1)
    })
  )
  it.live("changes nothing if the store has lost content", () =>
    Effect.gen(function* () {
      const { changed, here, taken } = yield* changedSince()
      const packs = join(taken.gitDir, "objects/pack")
      for (const name of Fs.readdirSync(packs)) {
        if (!name.endsWith(".pack")) continue
        Fs.chmodSync(join(packs, name), 0o600)
        const bytes = Fs.readFileSync(join(packs, name))
        Fs.writeFileSync(join(packs, name), bytes.fill(0, 12, bytes.length - 20))
      }
      const ran = yield* here.run(["restore", "--no-safety"])
      assert.notInclude([0, 70], ran.code, ran.err)
      assert.match(ran.err, /^error: .*\nhint: .*\n$/)
      assert.deepStrictEqual(picture(here.root), changed)
    })
  )
  it.live("prints the first 20 changes, or all changes with --dry-run", () =>
    Effect.gen(function* () {
      const here = yield* kept({})
      yield* take(here)
      for (let i = 100; i < 150; i++) Fs.writeFileSync(join(here.root, `${i}.txt`), "")
      assert.lengthOf(
        done(yield* here.run(["restore", "--dry-run"]))
          .trimEnd()
          .split("\n"),
        51
      )
      const lines = done(yield* here.run(["restore"]))
        .trimEnd()
        .split("\n")
      assert.lengthOf(lines, 22)
      assert.strictEqual(lines[20], "... and 30 more")
    })
  )
})

/**
 * A tree for changes of many kinds. It has no binary files, because a patch would lack their bytes.
 */
const texts: Files = {
  "plain.txt": `${Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n")}\n`,
  "no newline": "no end",
  "gone.txt": "a\nb\n",
  "empty gone": "",
  "tool.sh": "#!/bin/sh\n",
  'quote".txt': "q\n",
  "grün.txt": "ä\n",
  "latin1.txt": new Uint8Array([0xe4, 0x0a, 0x62, 0x0a]),
  link: { link: "plain.txt" },
  turned: "a file\n",
  "crlf.txt": "a\r\nb\r\n"
}

const edit = (root: string): void => {
  const at = (name: string) => join(root, name)
  const lines = Fs.readFileSync(at("plain.txt"), "utf8").split("\n")
  lines[3] = "changed"
  lines.splice(40, 2)
  lines.push("@@ not a hunk", "-- not a head", "")
  Fs.writeFileSync(at("plain.txt"), lines.join("\n"))
  Fs.writeFileSync(at("no newline"), "no end\nnow another")
  Fs.rmSync(at("gone.txt"))
  Fs.rmSync(at("empty gone"))
  Fs.chmodSync(at("tool.sh"), 0o755)
  Fs.writeFileSync(at('quote".txt'), "Q\n")
  Fs.writeFileSync(at("grün.txt"), "ö\nü\n")
  Fs.writeFileSync(at("latin1.txt"), new Uint8Array([0xe4, 0x0a, 0xfc, 0x0a]))
  Fs.rmSync(at("link"))
  Fs.symlinkSync("grün.txt", at("link"))
  Fs.rmSync(at("turned"))
  Fs.symlinkSync("tool.sh", at("turned"))
  Fs.writeFileSync(at("crlf.txt"), "a\r\nB\r\n")
  Fs.mkdirSync(at("new dir"))
  Fs.writeFileSync(at("new dir/new\\file.txt"), "new\n")
  Fs.writeFileSync(at("empty new"), "")
}

const git = (cwd: string, args: ReadonlyArray<string>, input?: Uint8Array): string => {
  const env = {
    PATH: process.env["PATH"],
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CEILING_DIRECTORIES: cwd
  }
  const { status, stderr, stdout } = spawnSync("git", args, { cwd, env, input, encoding: "latin1" })
  assert.include([0, 1], status, stderr)
  if (input !== undefined) assert.strictEqual(status, 0, stderr)
  return stdout
}

describe.runIf(hasGit)("the command diff", () => {
  it.live("prints a patch that git applies and reverts exactly", () =>
    Effect.gen(function* () {
      const here = yield* kept(texts)
      const old = join(here.top, "old")
      Fs.cpSync(here.root, old, { recursive: true, verbatimSymlinks: true })
      const before = picture(old)
      yield* take(here)
      edit(here.root)
      const ran = yield* here.run(["diff"])
      done(ran)
      const theirs = git(here.top, ["diff", "--no-index", "old/no newline", "root/no newline"])
      const names = (patch: string) => patch.split("\n").filter((line) => /^(---|\+\+\+) .*no newline/.test(line))
      const ours = names(theirs).map((line) => line.replace("a/old/", "a/").replace("b/root/", "b/"))
      assert.deepStrictEqual(names(ran.out), ours)
      git(old, ["apply", "-"], ran.bytes)
      const { "new dir": _, ...after } = picture(here.root)
      const { "new dir": __, ...applied } = picture(old)
      assert.deepStrictEqual(applied, after)
      git(old, ["apply", "-R", "-"], ran.bytes)
      assert.deepStrictEqual(picture(old), before)
    })
  )
  it.live("counts lines as git does", () =>
    Effect.gen(function* () {
      const here = yield* kept(texts)
      const old = join(here.top, "old")
      Fs.cpSync(here.root, old, { recursive: true, verbatimSymlinks: true })
      yield* take(here)
      edit(here.root)
      const theirs = git(here.top, ["diff", "--no-index", "--no-renames", "--shortstat", "old", "root"])
      const table = done(yield* here.run(["diff", "--stat"]))
        .trimEnd()
        .split("\n")
      assert.strictEqual(`${table.at(-1)}\n`, theirs)
      assert.include(table, " plain.txt            | 7 ++++---")
      const all = (yield* here.json(["diff", "--stat"])) as ReadonlyArray<{
        path: string
        linesAdded: number
        linesRemoved: number
      }>
      const numbers = git(here.top, ["diff", "--no-index", "--no-renames", "--numstat", "old", "root"])
        .split("\n")
        .flatMap((line) => {
          const [, added, removed, path] = /^(\d+)\t(\d+)\t\{old => root\}\/(.*)$/.exec(line) ?? []
          return path === undefined ? [] : [{ path, linesAdded: Number(added), linesRemoved: Number(removed) }]
        })
      assert.isAbove(numbers.length, 4)
      for (const { linesAdded, linesRemoved, path } of numbers) {
        const ours = all.find((one) => one.path === path)
        assert.deepInclude(ours, { linesAdded, linesRemoved }, path)
      }
    })
  )
  it.live("lists changed names with --names, including directories", () =>
    Effect.gen(function* () {
      const { here } = yield* changedSince()
      Fs.chmodSync(join(here.root, "empty"), 0o700)
      const ran = yield* here.run(["diff", "--names"])
      assert.strictEqual(done(ran), "M\ta.txt\nA\tadded.txt\nM\tempty\nD\tsrc\nD\tsrc/main.ts\n")
      const patch = yield* here.run(["diff"])
      assert.notInclude(patch.out, "empty")
      assert.include(patch.err, "2 directories added, removed or changed in mode (--names shows each): empty, src\n")
      assert.deepStrictEqual(yield* here.json(["diff", "--names", "--path", "src/main.ts", "-p", "empty"]), [
        { _tag: "Modified", path: "empty" },
        { _tag: "Removed", path: "src/main.ts" }
      ])
    })
  )
  it.live("compares two snapshots in the given order, or a snapshot with the current files", () =>
    Effect.gen(function* () {
      const here = yield* kept({ f: "one\n" })
      yield* take(here, "--tag", "one")
      Fs.writeFileSync(join(here.root, "f"), "two\n")
      yield* take(here, "--tag", "two")
      Fs.writeFileSync(join(here.root, "f"), "now\n")
      const head = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n"
      assert.strictEqual(done(yield* here.run(["diff", "one", "two"])), `${head}-one\n+two\n`)
      assert.strictEqual(done(yield* here.run(["diff", "two", "one"])), `${head}-two\n+one\n`)
      assert.strictEqual(done(yield* here.run(["diff", "one"])), `${head}-one\n+now\n`)
      assert.strictEqual(done(yield* here.run(["diff"])), `${head}-two\n+now\n`)
      assert.strictEqual(done(yield* here.run(["diff", "two", "two"])), "")
      assert.deepStrictEqual(yield* here.json(["diff"]), [
        { _tag: "Modified", path: "f", linesAdded: 1, linesRemoved: 1, binary: false, diff: `${head}-two\n+now\n` }
      ])
    })
  )
  it.live("prints no bytes of binary or huge files", () =>
    Effect.gen(function* () {
      const here = yield* kept({ "b.bin": "a\0b", "large.txt": "x\n".repeat(5 << 20) })
      yield* take(here)
      Fs.writeFileSync(join(here.root, "b.bin"), "a\0c")
      Fs.appendFileSync(join(here.root, "large.txt"), "y\n")
      const out = done(yield* here.run(["diff"]))
      assert.strictEqual(
        out,
        "diff --git a/b.bin b/b.bin\nBinary files a/b.bin and b/b.bin differ\n" +
          "diff --git a/large.txt b/large.txt\nFiles a/large.txt and b/large.txt differ, too large to compare: 10 MiB and 10 MiB\n"
      )
      assert.include(done(yield* here.run(["diff", "--stat"])), " b.bin     | Bin\n")
    })
  )
  it.live("prints colours on a terminal, and escapes control characters", () =>
    Effect.gen(function* () {
      const here = yield* kept({ f: "" })
      yield* take(here)
      Fs.writeFileSync(join(here.root, "f"), "\u001b[2J\n")
      const ran = yield* here.run(["diff"], { isTerminal: true, colors: true })
      assert.include(ran.out, String.raw`+\x1b[2J`)
      assert.include(ran.out, "\u001b[32m")
      assert.notInclude(ran.out, "\u001b[2J")
    })
  )
  it.live("prints names that are not valid UTF-8 as git does", () =>
    Effect.gen(function* () {
      const here = yield* kept({})
      yield* take(here)
      Fs.writeFileSync(Buffer.from(`${here.root}/\xff"\n`, "latin1"), "x\n")
      const patch = done(yield* here.run(["diff"]))
      assert.include(patch, String.raw`+++ "b/\377\"\n"`)
      const raw = Buffer.from(patch, "latin1")
      const old = join(here.top, "old")
      Fs.mkdirSync(old)
      git(old, ["apply", "-"], raw)
      assert.deepStrictEqual(Fs.readdirSync(old, "latin1"), ['\xff"\n'])
      assert.strictEqual(done(yield* here.run(["diff", "--names"])), String.raw`A	\xff\x22\x0a` + "\n")
    })
  )
  it.live("ends quietly when the reader of its output has exited", () =>
    Effect.gen(function* () {
      const here = yield* kept({})
      yield* take(here)
      for (const name of ["a", "b", "c"]) Fs.writeFileSync(join(here.root, name), `${name}\n`)
      const ran = yield* here.run(["diff"], { closesAfter: 1 })
      assert.deepStrictEqual([ran.code, ran.err], [0, ""])
      assert.include(ran.out, "+a")
    })
  )
  it.live("refuses --names together with --stat, and refuses a path outside of the root", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* take(here)
      assert.strictEqual((yield* here.run(["diff", "--names", "--stat"])).code, 2)
      assert.strictEqual((yield* here.run(["diff", "--path", "../x"])).code, 2)
    })
  )
})

describe("the state directory", () => {
  const at = (platform: string, home: string, environment: Readonly<Record<string, string>> = {}) =>
    stateDirectory({ platform, home, environment })
  it("follows the convention of each operating system", () => {
    assert.strictEqual(at("linux", "/home/me"), "/home/me/.local/state")
    assert.strictEqual(at("linux", "/home/me", { XDG_STATE_HOME: "/state" }), "/state")
    assert.strictEqual(at("darwin", "/Users/me"), "/Users/me/Library/Application Support")
    assert.strictEqual(at("win32", String.raw`C:\Users\me`, { LOCALAPPDATA: String.raw`C:\Local` }), String.raw`C:\Local`)
  })
  it("is never a relative path, and is undefined if the environment does not determine it", () => {
    assert.strictEqual(at("linux", "/home/me", { XDG_STATE_HOME: "state" }), "/home/me/.local/state")
    assert.strictEqual(at("linux", "/home/me", { XDG_STATE_HOME: "" }), "/home/me/.local/state")
    assert.isUndefined(at("linux", ""))
    assert.isUndefined(at("win32", String.raw`C:\Users\me`))
  })
})

const bin = commandLine()

describe.runIf(hasGit)("the program with git", () => {
  const program = (cwd: string, env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, ...args], {
      cwd,
      env: { PATH: process.env["PATH"], ...env },
      encoding: "utf8"
    })
    return { code: status, out: stdout, err: stderr }
  }

  it.live("finds snapshots of another process, through any path to the root", () =>
    Effect.gen(function* () {
      const { root, state, top } = yield* place(files)
      const env = { HOME: top, XDG_STATE_HOME: state }
      const before = picture(root)
      Fs.symlinkSync(root, join(top, "way"))
      const taken = program(root, env, "snapshot", "--tag", "works")
      assert.strictEqual(taken.code, 0, taken.err)
      Fs.rmSync(join(root, "src"), { recursive: true })
      const shown = program(top, env, "diff", "works", "--names", "--root", "way")
      assert.deepStrictEqual([shown.code, shown.out], [0, "D\tsrc\nD\tsrc/main.ts\n"])
      const restored = program(join(top, "way"), env, "restore", "--verify")
      assert.strictEqual(restored.code, 0, restored.err)
      assert.deepStrictEqual(picture(root), before)
      const [store, ...others] = Fs.readdirSync(join(state, "fs-algebra/snapshots"))
      assert.deepStrictEqual(others, [])
      const refs = git(join(state, "fs-algebra/snapshots", store!), ["for-each-ref", "--format=%(refname)", "refs/snapshots"])
      assert.lengthOf(refs.toString().trimEnd().split("\n"), 2)
    })
  )
  it.live("refuses a snapshot of a home directory without --any-root", () =>
    Effect.gen(function* () {
      const { root, state, top } = yield* place(files)
      const home = program(root, { HOME: root, XDG_STATE_HOME: state }, "snapshot")
      assert.strictEqual(home.code, 5)
      assert.include(home.err, "--any-root")
      const asked = program(root, { HOME: root }, "snapshot", "--any-root", "--store", join(top, "store"))
      assert.strictEqual(asked.code, 0, asked.err)
      const listed = program(root, { HOME: root }, "snapshots", "--store", join(top, "store"), "--json")
      assert.deepStrictEqual([listed.code, listed.out.split("\n").length], [0, 2], listed.err)
    })
  )
  it.live("reports how to install git when it is missing", () =>
    Effect.gen(function* () {
      const { root, state, top } = yield* place(files)
      const ran = program(root, { PATH: top, HOME: top, XDG_STATE_HOME: state }, "snapshot")
      assert.strictEqual(ran.code, 9)
      assert.include(ran.err, "apt-get install git")
    })
  )
})
