import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { TestClock } from "effect/testing"
import { ArchiveError } from "../../src/history/errors.ts"
import { directory, type Files } from "../../src/testing/Files.ts"
import { has, needs, picture } from "../faults/ground.ts"
import { hasGit, kept, type Kept, place } from "./kept.ts"
import { done, shell } from "./terminal.ts"
import { commandLine } from "../bundled.ts"

const hasPython = needs("archives beside Python's", () => has("python3"), "apt-get install python3")
const hasTar = needs("archives beside tar", () => has("tar"), "apt-get install tar")

const files: Files = {
  "a.txt": "one\n",
  "src/main.ts": "export const a = 1\n",
  "src/grün.txt": "ü\n",
  empty: directory,
  link: { link: "a.txt" }
}

const python = (cwd: string, script: string): string => execFileSync("python3", ["-c", script], { cwd, encoding: "utf8" })

const change = ({ root }: Kept): void => {
  Fs.writeFileSync(join(root, "a.txt"), "changed\n")
  Fs.rmSync(join(root, "src"), { recursive: true })
  Fs.writeFileSync(join(root, "added.txt"), "new\n")
}

describe("export", () => {
  it.live.runIf(hasPython)("writes a ZIP that Python reads, and reports the number of files", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const out = done(yield* here.run(["export", "out.zip", "--manifest"]))
      assert.match(out, /^Exported to out\.zip, 4 files, \d+ B\n$/)
      const listed = python(
        here.top,
        `import zipfile, json; z = zipfile.ZipFile("out.zip"); assert z.testzip() is None
print(json.dumps({i.filename: z.read(i).decode() for i in z.infolist()}))`
      )
      const { "manifest.json": manifest, ...entries } = JSON.parse(listed) as Record<string, string>
      assert.deepInclude(JSON.parse(manifest!) as object, { version: "1", file_count: 4 })
      const { "files/src/": _, ...contents } = entries
      assert.deepStrictEqual(contents, {
        "files/a.txt": "one\n",
        "files/src/main.ts": "export const a = 1\n",
        "files/src/grün.txt": "ü\n",
        "files/empty/": "",
        "files/link": "a.txt"
      })
    })
  )
  it.live.runIf(hasPython)("writes a manifest only with --manifest, and import reads a ZIP with or without a manifest", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      done(yield* here.run(["export", "plain.zip"]))
      done(yield* here.run(["export", "seed.zip", "--manifest"]))
      const names = (zip: string) =>
        JSON.parse(python(here.top, `import zipfile, json; print(json.dumps(zipfile.ZipFile("${zip}").namelist()))`)) as unknown
      assert.deepStrictEqual(names("plain.zip"), ["a.txt", "empty/", "link", "src/", "src/grün.txt", "src/main.ts"])
      const before = picture(here.root)
      for (const zip of ["plain.zip", "seed.zip"]) {
        change(here)
        done(yield* here.run(["import", zip, "--no-safety"]))
        assert.deepStrictEqual(picture(here.root), before)
      }
      const ran = yield* here.run(["export", "out.tar", "--manifest"])
      assert.strictEqual(ran.code, 2)
    })
  )
  it.live.each(["out.zip", "out.tar"])("to %s skips entries that import would refuse, and reports these entries", (name) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      Fs.symlinkSync("/usr/bin/python3", join(here.root, "python"))
      Fs.writeFileSync(join(here.root, "a.log"), "noise")
      const ran = yield* here.run(["export", name])
      assert.strictEqual(ran.code, 0)
      assert.include(ran.err, "left out: 1 of the entries, which import would refuse")
      assert.match(ran.err, /python: the link is not portable: the target is outside the tree/)
      assert.include(ran.err, "--strict")
      const piped = yield* here.run(["export", "-", "--format", name.slice(-3)])
      assert.include(piped.err, "python")
      const [answer] = yield* here.json(["export", name, "--overwrite"])
      const { skipped } = answer as { readonly skipped: ReadonlyArray<{ readonly path: string; readonly reason: string }> }
      assert.deepStrictEqual(
        skipped.map(({ path, reason }) => [path, reason]),
        [["python", "link"]]
      )
      const quiet = yield* here.run(["export", name, "--overwrite", "--strict", "--exclude", "python", "--exclude", "*.log"])
      assert.deepStrictEqual([quiet.code, quiet.err], [0, ""])
      Fs.unlinkSync(join(here.root, "python"))
      Fs.unlinkSync(join(here.root, "a.log"))
      const before = picture(here.root)
      change(here)
      done(yield* here.run(["import", name, "--no-safety"]))
      assert.deepStrictEqual(picture(here.root), before)
    })
  )
  it.live.runIf(hasTar)("writes a tar that tar unpacks to the same tree", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const [answer] = yield* here.json(["export", "out.tar"])
      const { size } = Fs.statSync(join(here.top, "out.tar"))
      assert.deepStrictEqual(answer, { file: "out.tar", format: "tar", bytes: size, skipped: [] })
      const unpacked = join(here.top, "unpacked")
      Fs.mkdirSync(unpacked)
      execFileSync("tar", ["-xpf", "../out.tar"], { cwd: unpacked })
      assert.deepStrictEqual(picture(unpacked), picture(here.root))
    })
  )
  it.live("writes only the archive into a pipe", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const zip = yield* here.run(["export", "-"])
      assert.deepStrictEqual([zip.code, zip.err], [0, ""])
      assert.strictEqual(Buffer.from(zip.bytes.subarray(0, 4)).toString("latin1"), "PK\u0003\u0004")
      const tar = yield* here.run(["export", "-", "--format", "tar"])
      assert.strictEqual(tar.code, 0)
      assert.strictEqual(Buffer.from(tar.bytes.subarray(257, 262)).toString("latin1"), "ustar")
    })
  )
  it.live.runIf(hasGit)("writes the tree of a snapshot, and changes nothing", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const then = yield* here.run(["export", "-", "--format", "tar"])
      done(yield* here.run(["snapshot", "--tag", "then"]))
      change(here)
      const before = picture(here.root)
      done(yield* here.run(["export", "out.tar", "--snapshot", "then"]))
      assert.deepStrictEqual(picture(here.root), before)
      const unpack = (name: string, bytes: Uint8Array) => {
        const at = join(here.top, name)
        Fs.mkdirSync(at)
        execFileSync("tar", ["-xp"], { cwd: at, input: bytes })
        return picture(at)
      }
      assert.deepStrictEqual(unpack("x", Fs.readFileSync(join(here.top, "out.tar"))), unpack("y", then.bytes))
    })
  )
  it.live("replaces a file only with --overwrite, and never replaces a directory", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const out = join(here.top, "out.zip")
      Fs.writeFileSync(out, "mine")
      const ran = yield* here.run(["export", "out.zip"])
      assert.deepStrictEqual([ran.code, ran.out], [4, ""])
      assert.include(ran.err, "--overwrite")
      assert.strictEqual(Fs.readFileSync(out, "utf8"), "mine")
      done(yield* here.run(["export", "out.zip", "--overwrite"]))
      assert.strictEqual(Fs.readFileSync(out).subarray(0, 2).toString(), "PK")
      Fs.mkdirSync(join(here.top, "dir.zip"))
      assert.strictEqual((yield* here.run(["export", "dir.zip", "--overwrite"])).code, 7)
    })
  )
  it.live.each(["out.zip", "out.tar"])(
    "to %s with --strict fails for an unsupported entry, keeps the old file and leaves no partial file",
    (name) =>
      Effect.gen(function* () {
        const here = yield* kept(files)
        Fs.symlinkSync("../outside", join(here.root, "out"))
        Fs.writeFileSync(join(here.top, name), "old")
        const before = Fs.readdirSync(here.top)
        const ran = yield* here.run(["export", name, "--overwrite", "--json", "--strict"])
        assert.strictEqual(ran.code, 7)
        const { error } = JSON.parse(ran.err) as { error: unknown }
        assert.strictEqual(Schema.decodeUnknownSync(Schema.toCodecJson(ArchiveError))(error).reason, "link")
        assert.deepStrictEqual(Fs.readdirSync(here.top), before)
        assert.strictEqual(Fs.readFileSync(join(here.top, name), "utf8"), "old")
      })
  )
  it.effect.each([
    ["a file name without a known extension", ["backup"], "--format"],
    ["JSON and an archive on the same standard output", ["-", "--json"], "standard output"]
  ] as const)("reports wrong usage for %s", ([, args, said]) =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell({ f: "" })).run(["export", ...args])
      assert.deepStrictEqual([ran.code, ran.out], [2, ""])
      assert.include(ran.err, said)
    })
  )
  it.effect("refuses to write an archive to a terminal", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell({ f: "" })).run(["export", "-"], { isTerminal: true })
      assert.deepStrictEqual([ran.code, ran.out], [2, ""])
    })
  )
})

describe.runIf(hasGit)("import (needs git)", () => {
  it.live.each(["zip", "tar"] as const)(
    "replaces the whole tree by a %s and keeps a safety snapshot, which can undo the import",
    (format) =>
      Effect.gen(function* () {
        const here = yield* kept(files)
        const before = picture(here.root)
        done(yield* here.run(["export", `out.${format}`]))
        change(here)
        const changed = picture(here.root)
        const ran = yield* here.run(["import", `out.${format}`])
        assert.strictEqual(done(ran), `Imported out.${format}, 4 files\n`)
        assert.deepStrictEqual(picture(here.root), before)
        const [, id] =
          /^the previous files are kept as ([0-9a-f]{8}); undo this with fs-algebra restore \1 --root root\n$/.exec(ran.err)!
        done(yield* here.run(["restore", id!]))
        assert.deepStrictEqual(picture(here.root), changed)
        const [, newer] = (yield* here.json(["snapshots"])) as ReadonlyArray<{ tag: string }>
        assert.strictEqual(newer!.tag, `before importing out.${format}`)
      })
  )
  it.live.each([
    ["that is truncated", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2), "corrupt"],
    ["with a changed byte", (bytes: Uint8Array) => bytes.with(45, bytes[45]! ^ 1), undefined],
    ["that is empty", () => new Uint8Array(), "corrupt"]
  ] as const)("changes nothing and takes no snapshot for an archive %s", ([, spoil, reason]) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const { bytes } = yield* here.run(["export", "-"])
      change(here)
      const changed = picture(here.root)
      Fs.writeFileSync(join(here.top, "bad.zip"), spoil(bytes))
      for (const args of [["bad.zip"], ["-"]]) {
        const ran = yield* here.run(["import", ...args, "--json"], { input: spoil(bytes) })
        assert.deepStrictEqual([ran.code, ran.out], [7, ""], ran.err)
        const { error, hint } = JSON.parse(ran.err) as { error: unknown; hint: string }
        const decoded = Schema.decodeUnknownSync(Schema.toCodecJson(ArchiveError))(error)
        if (reason !== undefined) assert.strictEqual(decoded.reason, reason)
        assert.match(hint, /^Nothing has changed\. /)
        assert.deepStrictEqual(picture(here.root), changed)
      }
      assert.deepStrictEqual(yield* here.json(["snapshots"]), [])
    })
  )
})

describe("import", () => {
  it.live("needs and creates no snapshot store with --no-safety", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const before = picture(here.root)
      const { bytes } = yield* here.run(["export", "-"])
      change(here)
      const [answer] = yield* here.json(["import", "-", "--no-safety"], { input: bytes, stateDirectory: undefined })
      assert.deepStrictEqual(answer, { file: "-", format: "zip", files: 4 })
      assert.deepStrictEqual(picture(here.root), before)
      assert.deepStrictEqual(Fs.readdirSync(here.top), ["root"])
    })
  )
  it.live.runIf(hasPython)("reads a ZIP and a compressed tar that Python wrote", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      python(
        here.top,
        `import zipfile, tarfile, json, io
z = zipfile.ZipFile("p.zip", "w", zipfile.ZIP_DEFLATED)
z.writestr("files/d/x.txt", "x\\n"); z.writestr("files/y", "y")
z.writestr("manifest.json", json.dumps({"version": "1", "created_at": "2026-01-01T00:00:00Z", "file_count": 2, "total_bytes": 3}))
z.close()
t = tarfile.open("p.tar.gz", "w:gz")
for name, text in (("d/x.txt", b"x\\n"), ("y", b"y")):
    i = tarfile.TarInfo(name); i.size = len(text); t.addfile(i, io.BytesIO(text))
t.close()`
      )
      const contents = () => Object.entries(picture(here.root)).map(([path, line]) => [path, line.replace(/ \d{3,4}\b/, "")])
      const expected = [
        ["d", "directory"],
        ["d/x.txt", String.raw`file "x\n"`],
        ["y", 'file "y"']
      ]
      done(yield* here.run(["import", "p.zip", "--no-safety"]))
      assert.deepStrictEqual(contents(), expected)
      Fs.writeFileSync(join(here.root, "z"), "to go")
      done(yield* here.run(["import", "p.tar.gz", "--no-safety"]))
      assert.deepStrictEqual(contents(), expected)
    })
  )
  it.live.each([
    ["a missing file", ["nope.zip"], 3],
    ["a directory", ["dir.zip"], 7],
    ["a file name without a known extension", ["backup"], 2]
  ] as const)("of %s changes nothing and creates no store", ([, args, code]) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      Fs.mkdirSync(join(here.top, "dir.zip"))
      const before = picture(here.root)
      const ran = yield* here.run(["import", ...args])
      assert.deepStrictEqual([ran.code, ran.out], [code, ""])
      assert.match(ran.err, /^error: .*\nhint: .*\n$/)
      assert.deepStrictEqual(picture(here.root), before)
      assert.isFalse(Fs.existsSync(here.state))
    })
  )
  it.live("fails and changes nothing when no safety snapshot can be taken, and suggests --no-safety", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      done(yield* here.run(["export", "out.zip"]))
      change(here)
      const changed = picture(here.root)
      Fs.writeFileSync(join(here.top, "file"), "")
      const ran = yield* here.run(["import", "out.zip", "--store", "file/store"])
      assert.strictEqual(ran.code, 9)
      assert.include(ran.err, "--no-safety")
      assert.deepStrictEqual(picture(here.root), changed)
    })
  )
  it.live("changes nothing on disk with --backend memory", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      done(yield* here.run(["export", "out.zip"]))
      change(here)
      const changed = picture(here.root)
      assert.strictEqual(done(yield* here.run(["import", "out.zip", "--backend", "memory"])), "Imported out.zip, 4 files\n")
      assert.deepStrictEqual(picture(here.root), changed)
      assert.isFalse(Fs.existsSync(here.state))
    })
  )
  it.effect("refuses a terminal as standard input instead of waiting for typed input", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell({ f: "" })).run(["import", "-"], { isInteractive: true, input: Stream.never })
      assert.strictEqual(ran.code, 2)
    })
  )
  it.effect("reports its progress on a terminal", () =>
    Effect.gen(function* () {
      const statuses: Array<string> = []
      const { run } = yield* shell({ f: "" })
      const options = { showsProgress: true, statuses, input: Stream.never }
      const fiber = yield* Effect.forkChild(run(["import", "-", "--no-safety"], options), { startImmediately: true })
      yield* Effect.promise(() => import("../../src/history/Archive.ts"))
      yield* TestClock.adjust("3 seconds")
      assert.isTrue(statuses.some((status) => status.startsWith("Importing -")))
      yield* Fiber.interrupt(fiber)
    })
  )
})

const bin = commandLine()

describe.runIf(hasGit)("export to a pipe", () => {
  it.live("sends a tree through the pipe to import in another root", () =>
    Effect.gen(function* () {
      const { root, state, top } = yield* place(files)
      Fs.mkdirSync(join(top, "other"))
      Fs.writeFileSync(join(top, "other/old.txt"), "old")
      const program = `'${process.execPath}' '${bin}'`
      const { status, stderr, stdout } = spawnSync(
        "bash",
        ["-c", `set -o pipefail; ${program} export - --root root | ${program} import - --root other`],
        { cwd: top, env: { PATH: process.env["PATH"], HOME: top, XDG_STATE_HOME: state }, encoding: "utf8" }
      )
      assert.strictEqual(status, 0, stderr)
      assert.strictEqual(stdout, "Imported -, 4 files\n")
      assert.deepStrictEqual(picture(join(top, "other")), picture(root))
      assert.deepStrictEqual(
        Fs.readdirSync(join(state, "fs-algebra/snapshots")).map((name) => name.slice(0, 6)),
        ["other-"]
      )
    })
  )
})
