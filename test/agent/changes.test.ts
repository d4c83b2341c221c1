import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import { applyChanges, type FileChange } from "../../src/agent/changes.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Limits from "../../src/model/Limits.ts"
import { adversarial } from "../../src/testing/Faults.ts"
import { capture, directory as emptyDirectory, type Files, link, picture } from "../../src/testing/Files.ts"
import { bytesOf, directory, grounds, host, memory, p, versionOf } from "./changing.ts"

const to = (path: string, before: string | null, after: string | null): FileChange => ({
  path: p(path),
  before: before === null ? null : versionOf(before),
  after: after === null ? null : bytesOf(after)
})

const moved = (from: string, path: string, was: string, after: string, before: string | null = null): FileChange => ({
  ...to(path, before, after),
  from: { path: p(from), version: versionOf(was) }
})

const files: Files = {
  "a.txt": "a\n",
  "d/b.txt": "b\n",
  "d/c.txt": "c\n",
  lone: "lone",
  empty: emptyDirectory,
  "to a": link("a.txt"),
  "to d": link("d"),
  "to nothing": link("d/later.txt")
}

const without = (path: string): Files => Object.fromEntries(Object.entries(files).filter(([name]) => name !== path))

const made: ReadonlyArray<readonly [claim: string, changes: ReadonlyArray<FileChange>, becomes: Files]> = [
  ["an empty list changes nothing", [], files],
  ["one file gets a new content", [to("a.txt", "a\n", "A\n")], { ...files, "a.txt": "A\n" }],
  ["one file is created with its parents", [to("x/y/z", null, "new")], { ...files, "x/y/z": "new" }],
  ["one file is removed", [to("lone", "lone", null)], without("lone")],
  [
    "files are created, changed and removed together",
    [to("a.txt", "a\n", "A\n"), to("new/deep/n", null, "n"), to("new/m", null, ""), to("lone", "lone", null)],
    { ...without("lone"), "a.txt": "A\n", "new/deep/n": "n", "new/m": "" }
  ],
  [
    "a file is moved and changed",
    [moved("d/b.txt", "e/B.txt", "b\n", "B\n"), to("a.txt", "a\n", "A\n")],
    { ...without("d/b.txt"), "e/B.txt": "B\n", "a.txt": "A\n" }
  ],
  ["a file is moved over another", [moved("lone", "a.txt", "lone", "lone", "a\n")], { ...without("lone"), "a.txt": "lone" }],
  [
    "a file is replaced by a directory",
    [to("lone", "lone", null), to("lone/inside", null, "in")],
    { ...without("lone"), "lone/inside": "in" }
  ],
  [
    "a directory that loses its last file stays",
    [to("d/b.txt", "b\n", null), to("d/c.txt", "c\n", null)],
    {
      ...Object.fromEntries(Object.entries(files).filter(([name]) => !name.startsWith("d/"))),
      d: emptyDirectory
    }
  ],
  [
    "writes go through links, and create missing targets",
    [to("to a", "a\n", "A\n"), to("to d/b.txt", "b\n", "B\n"), to("to d/new", null, "n"), to("to nothing", null, "now")],
    { ...files, "a.txt": "A\n", "d/b.txt": "B\n", "d/new": "n", "d/later.txt": "now" }
  ],
  ["a file with the same content stays", [to("a.txt", "a\n", "a\n"), to("lone", "lone", "new")], { ...files, lone: "new" }]
]

const refused: ReadonlyArray<readonly [claim: string, changes: ReadonlyArray<FileChange>, error: Record<string, unknown>]> = [
  [
    "a file whose version differs from the expected version",
    [to("a.txt", "a\n", "A"), to("lone", "other", "x")],
    { _tag: "Conflict", path: "lone", actual: versionOf("lone") }
  ],
  [
    "a single file whose version differs",
    [to("lone", "other", "x")],
    { _tag: "Conflict", path: "lone", actual: versionOf("lone") }
  ],
  ["a missing file", [to("a.txt", "a\n", "A"), to("d/gone", "x", "y")], { _tag: "Conflict", path: "d/gone", actual: null }],
  [
    "an existing file where none is expected",
    [to("a.txt", "a\n", "A"), to("lone", null, "y")],
    { _tag: "Conflict", path: "lone", actual: versionOf("lone") }
  ],
  [
    "a file behind a link whose version differs",
    [to("lone", "lone", "A"), to("to d/b.txt", "c", "x")],
    { _tag: "Conflict", path: "to d/b.txt" }
  ],
  [
    "removing a file whose version differs",
    [to("a.txt", "a\n", "A"), to("lone", "x", null)],
    { _tag: "Conflict", path: "lone" }
  ],
  ["moving a file whose version differs", [moved("lone", "new", "other", "x")], { _tag: "Conflict", path: "lone" }],
  [
    "moving onto an existing file where none is expected",
    [moved("lone", "a.txt", "lone", "x")],
    { _tag: "Conflict", path: "a.txt" }
  ],
  ["writing to a directory", [to("a.txt", "a\n", "A"), to("d", null, "x")], { _tag: "NotAFile", path: "d" }],
  ["writing to the root", [to("a.txt", "a\n", "A"), to(".", null, "x")], { _tag: "NotAFile", path: "." }],
  ["removing a directory", [to("a.txt", "a\n", "A"), to("empty", "x", null)], { _tag: "NotAFile", path: "empty" }],
  ["removing a link", [to("lone", "lone", "A"), to("to a", "a\n", null)], { _tag: "NotAFile", path: "to a" }],
  ["writing below a file", [to("a.txt", "a\n", "A"), to("lone/x", null, "x")], { _tag: "NotADirectory", path: "lone" }],
  ["two changes of one file", [to("a.txt", "a\n", "A"), to("a.txt", "a\n", "B")], { _tag: "InvalidArgument", path: "a.txt" }],
  [
    "two changes of one file through two paths",
    [to("a.txt", "a\n", "A"), to("to a", "a\n", "B")],
    { _tag: "InvalidArgument", path: "to a" }
  ],
  ["a file below another new file", [to("new", null, "A"), to("new/x", null, "B")], { _tag: "InvalidArgument" }]
]

for (const [name, ground] of Object.entries(grounds)) {
  describe(`changes of several files in ${name}`, () => {
    for (const [claim, changes, becomes] of made) {
      it.live(`have this effect: ${claim}`, () =>
        Effect.gen(function* () {
          const fs = yield* ground(files)
          const changed = yield* applyChanges(fs, changes)
          assert.deepStrictEqual(yield* capture(fs.port), picture(becomes))
          assert.deepStrictEqual(
            changed,
            changes.map(({ after, path }) => ({ path, version: after === null ? null : versionOf(after) }))
          )
        })
      )
    }

    for (const [claim, changes, error] of refused) {
      it.live(`fail and change nothing for ${claim}`, () =>
        Effect.gen(function* () {
          const fs = yield* ground(files)
          const failed = yield* Effect.flip(applyChanges(fs, changes, { operation: "edit_file" }))
          assert.deepInclude({ ...failed }, { ...error, operation: "edit_file" })
          assert.deepStrictEqual(yield* capture(fs.port), picture(files))
        })
      )
    }

    it.live("keep permissions, also of a file that is moved", () =>
      Effect.gen(function* () {
        const fs = yield* ground(files)
        yield* fs.setAttributes("a.txt", { mode: 0o755 })
        yield* fs.setAttributes("lone", { mode: 0o700 })
        yield* applyChanges(fs, [to("a.txt", "a\n", "A\n"), moved("lone", "d/lone", "lone", "more"), to("plain", null, "x")])
        assert.strictEqual((yield* fs.stat("a.txt")).mode! & 0o777, 0o755)
        assert.strictEqual((yield* fs.stat("d/lone")).mode! & 0o777, 0o700)
        assert.strictEqual((yield* fs.stat("plain")).mode! & 0o111, 0)
      })
    )
  })
}

describe("changes of several files", () => {
  const both = [to("a.txt", "a\n", "A\n"), to("d/new", null, "n")]

  it.live("need permission to write, and permission to delete only if a file is removed or moved", () =>
    Effect.gen(function* () {
      const permitted = yield* host(files, { allowDelete: false })
      yield* applyChanges(permitted, both)
      assert.deepStrictEqual(yield* capture(permitted.port), picture({ ...files, "a.txt": "A\n", "d/new": "n" }))
      for (const changes of [[to("lone", "lone", null), to("d/m", null, "m")], [moved("lone", "d/lone", "lone", "x")]]) {
        const failed = yield* Effect.flip(applyChanges(permitted, changes))
        assert.deepInclude({ ...failed }, { _tag: "AccessDenied", why: "readOnly", path: "lone" })
      }
      for (const options of [{ readOnly: true }, { allowWrite: false }]) {
        const fs = yield* host(files, options)
        assert.deepInclude({ ...(yield* Effect.flip(applyChanges(fs, both))) }, { _tag: "AccessDenied", why: "readOnly" })
        assert.deepStrictEqual(yield* capture(fs.port), picture(files))
      }
    })
  )

  it.live("refuse a link that leads out of the root, and change nothing", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "secret"), "secret")
      Fs.mkdirSync(join(root, "in"))
      Fs.writeFileSync(join(root, "in/a.txt"), "a\n")
      Fs.symlinkSync("../secret", join(root, "in/out"))
      const fs = make(yield* PosixHost.make({ root: join(root, "in") }))
      const failed = yield* Effect.flip(applyChanges(fs, [to("a.txt", "a\n", "A"), to("out", "secret", "gone")]))
      assert.deepInclude({ ...failed }, { _tag: "AccessDenied", why: "escape", path: "out" })
      assert.strictEqual(Fs.readFileSync(join(root, "secret"), "utf8"), "secret")
      assert.strictEqual(Fs.readFileSync(join(root, "in/a.txt"), "utf8"), "a\n")
    })
  )

  it.live("keep the case of existing names on a case-insensitive filesystem", () =>
    Effect.gen(function* () {
      const fs = make(yield* InMemory.make({ caseInsensitive: true, tree: { Docs: { "Read.me": "r" }, "A.txt": "a" } }))
      const twice = yield* Effect.flip(applyChanges(fs, [to("a.txt", "a", "b"), to("A.TXT", "a", "c")]))
      assert.strictEqual(twice._tag, "InvalidArgument")
      yield* applyChanges(fs, [
        to("docs/READ.ME", "r", "R"),
        to("a.TXT", "a", null),
        to("docs/New", null, "n"),
        to("X/one", null, "1"),
        to("x/two", null, "2")
      ])
      assert.deepStrictEqual(
        yield* capture(fs.port),
        picture({ "Docs/Read.me": "R", "Docs/New": "n", "X/one": "1", "X/two": "2" })
      )
    })
  )

  it.live("create nothing behind a link whose target exceeds the limit on names", () =>
    Effect.gen(function* () {
      const long = { ...files, far: link("x".repeat(81)) }
      const fs = yield* memory(long)
      const changes = applyChanges(fs, [to("a.txt", "a\n", "A"), to("far", null, "x")])
      const failed = yield* Effect.flip(Effect.provideService(changes, Limits.Limits, Limits.agent))
      assert.deepInclude({ ...failed }, { _tag: "PathTooLong", path: "far" })
      assert.deepStrictEqual(yield* capture(fs.port), picture(long))
    })
  )

  it.live("create nothing behind a link whose target contains a missing directory and then `..`", () =>
    Effect.gen(function* () {
      const lost = { ...files, lost: link("no/../x") }
      const fs = yield* memory(lost)
      const failed = yield* Effect.flip(applyChanges(fs, [to("a.txt", "a\n", "A"), to("lost", null, "x")]))
      assert.deepInclude({ ...failed }, { _tag: "NotFound", path: "lost" })
      assert.deepStrictEqual(yield* capture(fs.port), picture(lost))
    })
  )

  it.live("keep the inode of a file whose content stays the same", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "same"), "same")
      Fs.writeFileSync(join(root, "other"), "other")
      const { ino } = Fs.statSync(join(root, "same"))
      const fs = make(yield* PosixHost.make({ root }))
      yield* applyChanges(fs, [to("same", "same", "same"), to("other", "other", "changed")])
      assert.strictEqual(Fs.statSync(join(root, "same")).ino, ino)
      assert.strictEqual(Fs.readFileSync(join(root, "other"), "utf8"), "changed")
    })
  )

  it.live("are serialized, so that no update is lost", () =>
    Effect.gen(function* () {
      // The adversarial filesystem performs every operation in small steps.
      const fs = adversarial(yield* memory({ a: "0", b: "0" }))
      const increment: Effect.Effect<void> = Effect.suspend(() =>
        Effect.gen(function* () {
          const now = yield* fs.readString("a")
          const next = String(Number(now) + 1)
          yield* applyChanges(fs, [to("a", now, next), to("b", now, next)])
        }).pipe(
          Effect.catchTag("Conflict", () => increment),
          Effect.orDie
        )
      )
      yield* Effect.forEach(Array.from({ length: 20 }), () => increment, { concurrency: 5, discard: true })
      assert.deepStrictEqual(yield* capture(fs.port), picture({ a: "20", b: "20" }))
    })
  )
})
