import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { capture, type Files, link } from "../../src/testing/Files.ts"
import { type Ground, grounds, host, memory } from "./changing.ts"
import { session, snapshotsOf } from "./policing.ts"

const files: Files = {
  "a.txt": "one\n",
  ".git/HEAD": "ref: refs/heads/main\n",
  ".git/objects/aa/bb": "blob",
  "d/c.txt": "one\n",
  "d/e/f.txt": "two\n",
  "d/to-a": link("../a.txt"),
  "to-d": link("d")
}

/** A user's tool that declares no paths. */
const purge = Tool.make({
  name: "purge",
  description: "Remove a tree.",
  parameters: Schema.Struct({ path: Schema.String }),
  value: Schema.Null,
  examples: [{ path: "d" }],
  handle: ({ path }, { filesystem }) =>
    Effect.as(filesystem.delete(path, { recursive: true }), { message: `removed ${path}`, value: null })
})

const taking: ReadonlyArray<readonly [tool: string, params: object]> = [
  ["rm", { path: "d" }],
  ["rm", { path: "./d/" }],
  ["move", { from: "d", to: "z" }],
  ["move", { from: "d", to: "z/y", overwrite: true }]
]

for (const [name, ground] of Object.entries(grounds).filter(([name]) => name !== "an overlay")) {
  describe(`Policy.readBeforeWrite on directories in ${name}`, () => {
    for (const [tool, params] of taking) {
      it.effect(`refuses ${tool} ${JSON.stringify(params)} until every file in the directory is read`, () =>
        Effect.gen(function* () {
          const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
          const before = yield* capture(fs.port)
          const none = yield* call(tool, params)
          assert.isFalse(none.success)
          assert.include(none.message, '"d/c.txt" and "d/e/f.txt"')
          yield* call("read_file", { path: "d/c.txt" })
          const one = yield* call(tool, params)
          assert.isFalse(one.success)
          assert.include(one.message, '"d/e/f.txt"')
          assert.notInclude(one.message, "d/c.txt")
          assert.deepStrictEqual(yield* capture(fs.port), before)
          yield* call("read_file", { path: "d/e/f.txt" })
          const done = yield* call(tool, params)
          assert.isTrue(done.success, done.message)
          assert.isFalse(yield* fs.exists("d/c.txt"))
        }).pipe(Effect.orDie)
      )
    }

    it.effect("keeps the directory if a file in it changed after it was read", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        yield* call("read_file", { path: "d/c.txt" })
        yield* call("read_file", { path: "d/e/f.txt" })
        yield* fs.write("d/e/f.txt", "theirs\n")
        const { message, success } = yield* call("rm", { path: "d" })
        assert.isFalse(success)
        assert.include(message, '"d/e/f.txt"')
        assert.notInclude(message, "d/c.txt")
        assert.strictEqual(yield* fs.readString("d/e/f.txt"), "theirs\n")
      }).pipe(Effect.orDie)
    )

    it.effect("refuses to remove .git, whose files have not been read", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        assert.include((yield* call("rm", { path: ".git" })).message, '".git/HEAD" and ".git/objects/aa/bb"')
        assert.isTrue(yield* fs.exists(".git/HEAD"))
      }).pipe(Effect.orDie)
    )

    it.effect("refuses the removal by a user's tool that declares no paths", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        assert.include((yield* call(purge, { path: "d" })).message, "policy")
        assert.isTrue(yield* fs.exists("d/c.txt"))
        yield* call("read_file", { path: "d/c.txt" })
        yield* call("read_file", { path: "d/e/f.txt" })
        const done = yield* call(purge, { path: "d" })
        assert.isTrue(done.success, done.message)
      }).pipe(Effect.orDie)
    )

    it.effect("allows the removal of a link to a directory, an empty directory and a directory of links", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        yield* fs.mkdir("empty/inner")
        yield* fs.mkdir("links")
        yield* fs.symlink("links/to-a", "../a.txt")
        for (const path of ["to-d", "empty", "links"]) {
          const { message, success } = yield* call("rm", { path })
          assert.isTrue(success, message)
        }
        assert.isTrue(yield* fs.exists("d/c.txt"))
      }).pipe(Effect.orDie)
    )

    it.effect("checks the files of a directory that is reached through a link", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        assert.include((yield* call("rm", { path: "to-d/e" })).message, '"to-d/e/f.txt"')
        yield* call("read_file", { path: "d/e/f.txt" })
        const done = yield* call("rm", { path: "to-d/e" })
        assert.isTrue(done.success, done.message)
        assert.isFalse(yield* fs.exists("d/e"))
      }).pipe(Effect.orDie)
    )

    it.effect("keeps files marked as read when their directory is moved", () =>
      Effect.gen(function* () {
        const { call } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        yield* call("read_file", { path: "d/c.txt" })
        yield* call("read_file", { path: "d/e/f.txt" })
        yield* call("move", { from: "d", to: "moved" })
        const edited = yield* call("edit_file", { path: "moved/e/f.txt", old_string: "two", new_string: "three" })
        assert.isTrue(edited.success, edited.message)
        const done = yield* call("rm", { path: "moved" })
        assert.isTrue(done.success, done.message)
      })
    )
  })
}

describe("Policy.readBeforeWrite on directories", () => {
  it.effect("names five files in the refusal and counts the others", () =>
    Effect.gen(function* () {
      const many = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`d/${String(i).padStart(2, "0")}`, "x"]))
      const { call } = yield* session(yield* memory(many), Policy.readBeforeWrite)
      const { message } = yield* call("rm", { path: "d" })
      assert.include(message, '"d/00", "d/01", "d/02", "d/03", "d/04" and 7 others')
    })
  )

  it.effect("refuses the removal of a directory with more than 10,000 entries", () =>
    Effect.gen(function* () {
      const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`d/${i}`, "x"]))
      const { call, fs } = yield* session(yield* memory(many), Policy.readBeforeWrite)
      const { message, success } = yield* call("rm", { path: "d" })
      assert.isFalse(success)
      assert.include(message, '"d" has more than 10,000 entries')
      assert.isTrue(yield* fs.exists("d/0"))
    }).pipe(Effect.orDie)
  )

  it.effect("refuses the removal of a directory of unread files before it reads any content", () =>
    Effect.gen(function* () {
      const base = yield* memory(files)
      let opened = 0
      const port = around(base.port, (operation, next) => (operation._tag === "Open" && opened++, next))
      const { call } = yield* session(make({ ...port, perform: undefined, explore: undefined }), Policy.readBeforeWrite)
      assert.isFalse((yield* call("rm", { path: "d" })).success)
      assert.strictEqual(opened, 0)
    })
  )

  it.effect("keeps the directory of a hidden file, and does not name the file", () =>
    Effect.gen(function* () {
      for (const policies of [
        Layer.merge(Policy.readBeforeWrite, Policy.access({ deny: { read: "f.txt" } })),
        Layer.merge(Policy.access({ deny: { read: "f.txt" } }), Policy.readBeforeWrite)
      ]) {
        const { call, fs } = yield* session(yield* memory(files), policies)
        yield* call("read_file", { path: "d/c.txt" })
        for (const [tool, params] of taking) {
          const { message, success } = yield* call(tool, params)
          assert.isFalse(success)
          assert.notInclude(message, "f.txt")
        }
        assert.isTrue(yield* fs.exists("d/e/f.txt"))
      }
    }).pipe(Effect.orDie)
  )

  it.effect.skipIf(process.platform === "win32" || process.platform === "darwin")(
    "keeps a directory that contains a name that is not valid Unicode",
    () =>
      Effect.gen(function* () {
        const fs = yield* host({ "d/c.txt": "one\n" })
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${fs.root}/d/`), Buffer.from([0xff, 0xfe])]), "secret")
        const { call } = yield* session(fs, Policy.readBeforeWrite)
        yield* call("read_file", { path: "d/c.txt" })
        const { message, success } = yield* call("rm", { path: "d" })
        assert.isFalse(success)
        assert.include(message, "1 that cannot be shown")
        assert.strictEqual(Fs.readdirSync(`${fs.root}/d`).length, 2)
      })
  )

  it.effect("keeps a directory with a subdirectory that cannot be listed", () =>
    Effect.gen(function* () {
      const base = yield* memory(files)
      const port = around(base.port, (operation, next) =>
        operation._tag === "List" && operation.path === "d/e" ? Effect.fail({ _tag: "AccessDenied" }) : next
      )
      const { call } = yield* session(make({ ...port, perform: undefined, explore: undefined }), Policy.readBeforeWrite)
      yield* call("read_file", { path: "d/c.txt" })
      yield* call("read_file", { path: "d/e/f.txt" })
      const { message, success } = yield* call("move", { from: "d", to: "z" })
      assert.isFalse(success)
      assert.include(message, '"d/e"')
    })
  )

  it.effect("allows restore to remove directories that were not read", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const { call } = yield* session(fs, Policy.readBeforeWrite, yield* snapshotsOf(fs))
      yield* call("snapshot", { tag: "start" })
      yield* fs.write("new/x.txt", "x")
      const restored = yield* call("restore", { snapshot_id: "start" })
      assert.isTrue(restored.success, restored.message)
      assert.isFalse(yield* fs.exists("new"))
    }).pipe(Effect.orDie)
  )

  it.effect("keeps the usual messages for a missing path, the root, and a copy onto a directory", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory(files), Policy.readBeforeWrite)
      assert.include((yield* call("rm", { path: "nothing" })).message, "nothing")
      assert.isFalse((yield* call("rm", { path: "." })).success)
      assert.include((yield* call("copy", { from: "a.txt", to: "d", overwrite: true })).message, "is a directory")
    })
  )
})

describe("a write into a directory between the check of a call and the call", () => {
  const places: ReadonlyArray<readonly [string, Ground]> = [
    ["memory", memory],
    ["a host", host]
  ]
  for (const [name, ground] of places) {
    for (const [tool, params] of taking) {
      it.effect(`prevents ${tool} ${JSON.stringify(params)} if it happens during approval, in ${name}`, () =>
        Effect.gen(function* () {
          const fs = yield* ground(files)
          const approving = Policy.approval(() =>
            Effect.as(Effect.orDie(fs.write("d/new.txt", "theirs", { mode: "create" })), true)
          )
          const { call } = yield* session(fs, Layer.merge(Policy.readBeforeWrite, approving))
          // Approval of a read creates the file too, so remove it again.
          for (const path of ["d/c.txt", "d/e/f.txt"]) {
            yield* call("read_file", { path })
            yield* fs.delete("d/new.txt")
          }
          const { message, success } = yield* call(tool, params)
          assert.isFalse(success)
          assert.include(message, '"d/new.txt"')
          assert.strictEqual(yield* fs.readString("d/new.txt"), "theirs")
          assert.strictEqual(yield* fs.readString("d/c.txt"), "one\n")
        }).pipe(Effect.orDie)
      )
    }
  }
})
