import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { define } from "../../src/agent/definition.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tools from "../../src/agent/tools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import type { FsError } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { capture, type Files, link } from "../../src/testing/Files.ts"
import { type Ground, grounds, host, memory } from "./changing.ts"
import { session, snapshotsOf } from "./policing.ts"

const secret = "the sunken treasure"

const files: Files = {
  "README.md": "hello\n",
  "src/main.ts": "main\n",
  "src/.env": secret,
  "src/keys/id": secret,
  "keys/other": secret,
  "docs/a.md": "docs\n",
  "docs/guide/b.md": "guide\n",
  way: link("src/keys/id"),
  lane: link("src/keys"),
  fine: link("docs")
}

const hidden = Policy.access({ deny: { read: [".env", "keys"] } })

const sides: Readonly<Record<string, Ground>> = {
  memory,
  "a host": host,
  "an overlay": grounds["an overlay"]!
}

const attempts: ReadonlyArray<readonly [tool: string, params: object]> = [
  ["read_file", { path: "src/.env" }],
  ["read_file", { path: "src/keys/id" }],
  ["read_file", { path: "./docs/../src//.env" }],
  ["read_file", { path: "way" }],
  ["read_file", { path: "lane/id" }],
  ["read_file", { path: "src/.env", encoding: "base64" }],
  ["stat", { path: "src/.env" }],
  ["stat", { path: "way" }],
  ["ls", { path: "lane" }],
  ["ls", { path: "src/keys" }],
  ["tree", { path: "keys" }],
  ["grep", { pattern: "treasure", path: "src/.env" }],
  ["grep", { pattern: "treasure", path: "way" }],
  ["glob", { pattern: "*", path: "src/keys" }],
  ["write_file", { path: "src/.env", content: "x", mode: "overwrite" }],
  ["write_file", { path: "src/.env", content: "x" }],
  ["write_file", { path: "way", content: "x", mode: "append" }],
  ["write_file", { path: "lane/new", content: "x" }],
  ["edit_file", { path: "src/.env", old_string: "sunken", new_string: "x" }],
  [
    "edit_file",
    {
      edits: [
        { path: "README.md", old_string: "hello", new_string: "x" },
        { path: "way", old_string: "sunken", new_string: "x" }
      ]
    }
  ],
  ["rm", { path: "src/.env" }],
  ["rm", { path: "src" }],
  ["rm", { path: "keys" }],
  ["move", { from: "src/.env", to: "plain.txt" }],
  ["move", { from: "src", to: "elsewhere" }],
  ["move", { from: "keys", to: "docs/open" }],
  ["move", { from: "docs", to: "src/keys/docs" }],
  ["copy", { from: "src/.env", to: "plain.txt" }],
  ["copy", { from: "lane/id", to: "plain.txt" }],
  ["copy", { from: "docs", to: "keys/docs" }],
  ["copy", { from: "way", to: "docs/way" }],
  ["mkdir", { path: "keys/more" }],
  ["apply_patch", { patch: "*** Begin Patch\n*** Update File: src/.env\n-the sunken treasure\n+x\n*** End Patch" }],
  [
    "apply_patch",
    { patch: "*** Begin Patch\n*** Delete File: src/keys/id\n*** Update File: README.md\n-hello\n+x\n*** End Patch" }
  ],
  [
    "apply_patch",
    { patch: "*** Begin Patch\n*** Update File: src/.env\n*** Move to: plain.txt\n-the sunken treasure\n+x\n*** End Patch" }
  ]
]

describe("the access policy", () => {
  for (const [name, ground] of Object.entries(sides)) {
    describe(`on ${name}:`, () => {
      for (const [tool, params] of attempts) {
        it.effect(`${tool} ${JSON.stringify(params).slice(0, 90)} fails and changes nothing`, () =>
          Effect.gen(function* () {
            const { call, fs } = yield* session(yield* ground(files), hidden)
            const before = yield* capture(fs.port)
            const { message, success } = yield* call(tool, params)
            assert.isFalse(success, message)
            assert.notInclude(message, "treasure")
            assert.deepStrictEqual(yield* capture(fs.port), before)
          })
        )
      }

      it.effect("hidden files appear in no listing, search or suggestion", () =>
        Effect.gen(function* () {
          const { call } = yield* session(yield* ground(files), hidden)
          const looks: ReadonlyArray<readonly [string, object]> = [
            ["ls", {}],
            ["ls", { path: "src" }],
            ["tree", {}],
            ["glob", { pattern: "**" }],
            ["glob", { pattern: "i*" }],
            ["grep", { pattern: "the|hello" }],
            ["grep", { pattern: "e", mode: "files" }],
            ["grep", { pattern: "e", mode: "count" }],
            ["read_file", { path: "other" }],
            ["read_file", { path: "src/id" }],
            ["read_file", { path: "src/env" }]
          ]
          for (const [tool, params] of looks) {
            const result = yield* call(tool, params)
            const shown = JSON.stringify(result).replaceAll(JSON.stringify(params).slice(1, -1), "")
            assert.notMatch(shown, /\.env|keys|treasure|keys\/other|"id"/, `${tool} ${JSON.stringify(params)}`)
          }
        })
      )

      it.effect("other files can be read and changed, even beside hidden files", () =>
        Effect.gen(function* () {
          const { call, fs } = yield* session(yield* ground(files), hidden)
          const works: ReadonlyArray<readonly [string, object]> = [
            ["read_file", { path: "fine/a.md" }],
            ["edit_file", { path: "src/main.ts", old_string: "main", new_string: "other" }],
            ["write_file", { path: "src/new/deep.ts", content: "x" }],
            [
              "edit_file",
              {
                edits: [
                  { path: "README.md", old_string: "hello", new_string: "x" },
                  { path: "docs/a.md", old_string: "docs", new_string: "x" }
                ]
              }
            ],
            [
              "apply_patch",
              { patch: "*** Begin Patch\n*** Delete File: docs/a.md\n*** Update File: README.md\n-x\n+y\n*** End Patch" }
            ],
            ["copy", { from: "src", to: "backup" }],
            ["move", { from: "docs", to: "papers" }],
            ["rm", { path: "papers" }],
            ["grep", { pattern: "other" }]
          ]
          for (const [tool, params] of works) {
            const { message, success } = yield* call(tool, params)
            assert.isTrue(success, `${tool}: ${message}`)
          }
          const left = yield* capture(fs.port)
          assert.deepStrictEqual(
            Object.keys(left).filter((path) => path.startsWith("backup")),
            ["backup", "backup/main.ts", "backup/new", "backup/new/deep.ts"].filter((path) => path in left)
          )
          assert.isTrue(Object.keys(left).includes("src/.env"))
        })
      )
    })
  }

  it.effect("gives the same answer for a hidden file and for a missing file", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory(files), Policy.access({ deny: { read: "src/keys/**" } }))
      for (const [tool, rest] of [
        ["read_file", {}],
        ["stat", {}],
        ["rm", {}],
        ["write_file", { content: "x" }]
      ] as const) {
        const there = yield* call(tool, { path: "src/keys/id", ...rest })
        const not = yield* call(tool, { path: "src/keys/no", ...rest })
        assert.strictEqual(there.message.replaceAll("keys/id", "keys/no"), not.message)
      }
    })
  )

  it.effect("shows only allowed files, and the directories that lead to them", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory(files), Policy.access({ allow: { read: "docs/**/*.md" } }))
      assert.deepStrictEqual(
        (yield* call("ls", {})).value.entries.map(({ name }: { name: string }) => name),
        ["docs"]
      )
      assert.isTrue((yield* call("read_file", { path: "docs/guide/b.md" })).success)
      for (const path of ["README.md", "src/main.ts", "way"]) {
        const { message, success } = yield* call("read_file", { path })
        assert.isFalse(success)
        assert.include(message, "policy")
      }
      // Writing follows the rule for reading when no rule for writing is given.
      assert.isTrue((yield* call("write_file", { path: "docs/new/c.md", content: "c" })).success)
      assert.isFalse((yield* call("write_file", { path: "docs/new/c.txt", content: "c" })).success)
    })
  )

  it.effect("denies a path that is both denied and allowed", () =>
    Effect.gen(function* () {
      const { call } = yield* session(
        yield* memory(files),
        Policy.access({ allow: { read: "**" }, deny: { read: "docs/guide" } })
      )
      assert.isTrue((yield* call("read_file", { path: "docs/a.md" })).success)
      assert.isFalse((yield* call("read_file", { path: "docs/guide/b.md" })).success)
    })
  )

  it.effect("applies the globs of each operation separately", () =>
    Effect.gen(function* () {
      const { call } = yield* session(
        yield* memory(files),
        Policy.access({ allow: { write: "src" }, deny: { delete: "main.ts" } })
      )
      assert.isTrue((yield* call("read_file", { path: "docs/a.md" })).success)
      assert.isFalse((yield* call("edit_file", { path: "docs/a.md", old_string: "docs", new_string: "x" })).success)
      assert.isTrue((yield* call("edit_file", { path: "src/main.ts", old_string: "main", new_string: "x" })).success)
      assert.isFalse((yield* call("rm", { path: "src/main.ts" })).success)
      assert.isFalse((yield* call("rm", { path: "src" })).success)
      assert.isFalse((yield* call("move", { from: "src/main.ts", to: "src/other.ts" })).success)
      assert.isFalse(
        (yield* call("apply_patch", {
          patch: "*** Begin Patch\n*** Delete File: src/main.ts\n*** Delete File: docs/a.md\n*** End Patch"
        })).success
      )
      assert.isTrue((yield* call("rm", { path: "docs" })).success)
    })
  )

  it.effect("lets a failed copy remove the directories that it made, even if deleting is denied", () =>
    Effect.gen(function* () {
      const { call, fs } = yield* session(yield* memory(files), Policy.access({ deny: { delete: "**" } }))
      const before = yield* capture(fs.port)
      assert.isFalse((yield* call("copy", { from: "nothing", to: "new/deep/x" })).success)
      assert.deepStrictEqual(yield* capture(fs.port), before)
      assert.isTrue((yield* call("copy", { from: "docs", to: "new/deep/x" })).success)
    })
  )

  it.effect("denies every combination of upper and lower case on a case-insensitive filesystem", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ caseInsensitive: true, tree: { Secrets: { "K\u00e9y.pem": secret } } })
      const { call } = yield* session(make(port), Policy.access({ deny: { read: ["secrets", "k\u00e9y.pem"] } }))
      for (const path of ["Secrets/K\u00e9y.pem", "SECRETS/k\u00e9y.PEM", "secrets/k\u00c9y.pem"]) {
        const { message } = yield* call("read_file", { path })
        assert.include(message, "policy", path)
      }
      assert.notInclude(JSON.stringify(yield* call("ls", {})), "Secrets")
      assert.isFalse((yield* call("move", { from: "SECRETS", to: "open" })).success)
    }).pipe(Effect.orDie)
  )

  it.effect("denies a name that equals a denied name after case folding or Unicode normalization", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ caseInsensitive: true, tree: { "\u212Aeys": secret, "cafe\u0301": secret } })
      const { call } = yield* session(make(port), Policy.access({ deny: { read: ["keys", "caf\u00e9"] } }))
      for (const path of ["\u212Aeys", "keys", "cafe\u0301", "CAFE\u0301"]) {
        assert.include((yield* call("read_file", { path })).message, "policy", path)
      }
    }).pipe(Effect.orDie)
  )

  it.effect("applies to a tool that declares no paths", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ ...files, through: link("lane/id") })
      const silent = (run: (fs: Algebra) => Effect.Effect<unknown, FsError>) =>
        define({
          name: "silent",
          description: "Tells nothing of what it touches.",
          parameters: Schema.Struct({}),
          value: Schema.Struct({}),
          does: "changes",
          idempotent: false,
          examples: [{}],
          touches: () => Effect.succeed([]),
          handle: (_, { filesystem }) =>
            Effect.map(run(filesystem), (found) => ({ message: `found ${JSON.stringify(found)}`, value: {} }))
        })
      const { call } = yield* session(fs, hidden)
      const before = yield* capture(fs.port)
      const p = "src/.env" as FsPath
      const ways: ReadonlyArray<(fs: Algebra) => Effect.Effect<unknown, FsError>> = [
        (fs) => fs.readString(p),
        (fs) => fs.readBytes("way"),
        (fs) => Stream.runCollect(fs.stream(p)),
        (fs) => Stream.runCollect(fs.lines("lane/id")),
        (fs) => fs.version(p),
        (fs) => fs.stat(p),
        (fs) => fs.readLink("way"),
        (fs) => fs.readLink("lane"),
        (fs) => fs.readLink("through"),
        (fs) => fs.symlink("new", "src/.env"),
        (fs) => fs.write(p, "x"),
        (fs) => fs.writeBytes(p, new Uint8Array(1), { mode: "append" }),
        (fs) => fs.edit(p, { oldText: "sunken", newText: "x" }),
        (fs) => fs.delete(p),
        (fs) => fs.delete("src", { recursive: true }),
        (fs) => fs.copy(p, "new"),
        (fs) => fs.move(p, "new"),
        (fs) => fs.move("keys", "new"),
        (fs) => fs.setAttributes(p, { mode: 0o600 }),
        (fs) =>
          Effect.scoped(Effect.orElseSucceed(fs.port.open(p), () => undefined)).pipe(
            Effect.flatMap((handle) => (handle === undefined ? fs.stat(p) : Effect.void))
          )
      ]
      for (const [index, way] of ways.entries()) {
        const { message, success } = yield* call(silent(way), {})
        assert.isFalse(success, `${index}: ${message}`)
        assert.include(message, "policy", String(index))
        assert.deepStrictEqual(yield* capture(fs.port), before, String(index))
      }
      for (const way of [(fs: Algebra) => fs.exists(p), (fs: Algebra) => fs.exists("way")]) {
        assert.strictEqual((yield* call(silent(way), {})).message, "found false")
      }
    })
  )

  it.effect("refuses the tools that run programs, because it cannot confine a program", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory(files), hidden)
      for (const tool of Tools.sandboxTools) {
        const { message, success } = yield* call(tool, tool.examples[0])
        assert.isFalse(success)
        assert.include(message, "policy")
      }
    })
  )

  it.effect("hides files in diffs and snapshots, and makes restore leave these files unchanged", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const services = yield* snapshotsOf(fs)
      const { call } = yield* session(fs, hidden, services)
      const snapshots = Context.getUnsafe(services, Snapshots)
      yield* snapshots.snapshot({ tag: "start" })
      yield* fs.write("src/.env", "changed since")
      yield* fs.write("src/keys/new", "new secret")
      yield* fs.write("README.md", "bye\n")
      for (const [tool, params] of [
        ["diff", { snapshot_id: "start" }],
        ["restore", { snapshot_id: "start", dry_run: true }],
        ["snapshots", {}]
      ] as const) {
        const result = yield* call(tool, params)
        assert.isTrue(result.success, result.message)
        assert.notMatch(JSON.stringify(result), /\.env|keys|treasure|secret/)
      }
      const restored = yield* call("restore", { snapshot_id: "start" })
      assert.isTrue(restored.success, restored.message)
      assert.strictEqual(yield* fs.readString("README.md"), "hello\n")
      assert.strictEqual(yield* fs.readString("src/.env"), "changed since")
      assert.strictEqual(yield* fs.readString("src/keys/new"), "new secret")
      assert.isFalse((yield* call("restore", { snapshot_id: "start", paths: ["src/.env"] })).success)
    }).pipe(Effect.orDie)
  )

  it.effect("applies all policies that are provided together", () =>
    Effect.gen(function* () {
      const one = Policy.access({ deny: { read: ".env" } })
      const two = Policy.access({ deny: { read: "keys" } })
      const both = [Layer.merge(one, two), two.pipe(Layer.provideMerge(one)), one.pipe(Layer.provideMerge(two))]
      for (const layer of both) {
        const { call } = yield* session(yield* memory(files), layer)
        assert.isFalse((yield* call("read_file", { path: "src/.env" })).success)
        assert.isFalse((yield* call("read_file", { path: "src/keys/id" })).success)
        assert.isTrue((yield* call("read_file", { path: "src/main.ts" })).success)
      }
    })
  )

  it.effect("applies `**` in braces at every depth, including the root", () =>
    Effect.gen(function* () {
      for (const read of ["{**/.env*,**/keys/**}", "{**/.env*,keys}", "@(**/.env|**/keys/**)"]) {
        const { call } = yield* session(
          yield* memory({ ".env": secret, "keys/a": secret, "src/.env.local": secret, "src/keys/b": secret, "src/a": "a" }),
          Policy.access({ deny: { read } })
        )
        for (const path of [".env", "keys/a", "src/.env.local", "src/keys/b"]) {
          const isDenied = !(yield* call("read_file", { path })).success
          assert.strictEqual(isDenied, !(read.startsWith("@") && path.endsWith(".local")), `${read} on ${path}`)
        }
        assert.isTrue((yield* call("read_file", { path: "src/a" })).success)
      }
    })
  )

  it("throws for an invalid or misleading glob", () => {
    for (const glob of ["", "a/../b", "\0", ".env,*.pem", "src\\gen", "{.env}", "[[:constructor:]]", "!.env", "a//b", "{**/a"])
      assert.throws(() => Policy.access({ deny: { read: glob } }), RangeError)
  })
})

describe("an entry that may not be deleted", () => {
  const deny = Policy.access({ deny: { delete: "dir/**" } })
  const patch = (...lines: ReadonlyArray<string>) => ({
    patch: ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n")
  })
  const linked = (ground: typeof memory) =>
    Effect.gen(function* () {
      const fs = yield* ground({ "dir/keep.txt": "keep\n" })
      yield* Effect.orDie(fs.port.links!.make("lnk" as never, "dir"))
      return { fs, agent: yield* session(fs, deny) }
    })

  for (const [where, ground] of Object.entries({ memory, host })) {
    it.live(`is not deleted by a patch that reaches it through a link, on ${where}`, () =>
      Effect.gen(function* () {
        const { agent, fs } = yield* linked(ground)
        yield* agent.call("apply_patch", patch("*** Delete File: lnk/keep.txt", "*** Add File: new.txt", "+x"))
        assert.isTrue(yield* fs.exists("dir/keep.txt"))
      })
    )

    it.live(`is not moved by a patch that reaches it through a link, on ${where}`, () =>
      Effect.gen(function* () {
        const { agent, fs } = yield* linked(ground)
        yield* agent.call(
          "apply_patch",
          patch("*** Update File: lnk/keep.txt", "*** Move to: taken.txt", "@@", "-keep", "+kept")
        )
        assert.isTrue(yield* fs.exists("dir/keep.txt"))
      })
    )
  }

  it.live("is not deleted by rm if it is an empty directory that is reached through a link", () =>
    Effect.gen(function* () {
      const { agent, fs } = yield* linked(host)
      yield* fs.mkdir("dir/empty")
      const { message, success } = yield* agent.call("rm", { path: "lnk/empty" })
      assert.isTrue(yield* fs.exists("dir/empty"), message)
      assert.isFalse(success)
    })
  )
})
