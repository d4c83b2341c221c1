import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import { capture, type Files, link } from "../../src/testing/Files.ts"
import { type Ground, host, memory, versionOf } from "./changing.ts"
import { session, snapshotsOf } from "./policing.ts"

const files: Files = {
  "a.txt": "one\ntwo\nthree\n",
  "b.txt": "one\n",
  "d/c.txt": "one\n",
  "to-a": link("a.txt")
}

const patch = (body: string) => ({ patch: `*** Begin Patch\n${body}\n*** End Patch` })

/** Calls that change `a.txt` or replace it. */
const changing: ReadonlyArray<readonly [tool: string, params: object]> = [
  ["write_file", { path: "a.txt", content: "x", mode: "overwrite" }],
  ["write_file", { path: "a.txt", content: "x", mode: "replace" }],
  ["write_file", { path: "./a.txt", content: "x", mode: "append" }],
  ["edit_file", { path: "a.txt", old_string: "two", new_string: "x" }],
  ["edit_file", { path: "/a.txt", old_string: "two", new_string: "x" }],
  [
    "edit_file",
    {
      edits: [
        { path: "a.txt", old_string: "two", new_string: "x" },
        { path: "new.txt", old_string: "", new_string: "x" }
      ].slice(0, 1)
    }
  ],
  ["rm", { path: "a.txt" }],
  ["move", { from: "a.txt", to: "z.txt" }],
  ["copy", { from: "d/c.txt", to: "a.txt", overwrite: true }],
  ["apply_patch", patch("*** Update File: a.txt\n-two\n+x")],
  ["apply_patch", patch("*** Delete File: a.txt")],
  ["apply_patch", patch("*** Update File: a.txt\n*** Move to: z.txt\n-two\n+x")]
]

for (const [name, ground] of [
  ["memory", memory],
  ["a host", host]
] as ReadonlyArray<readonly [string, Ground]>) {
  describe(`Policy.readBeforeWrite in ${name}`, () => {
    for (const [tool, params] of changing) {
      const what = `${tool} ${JSON.stringify(params).slice(0, 70)}`

      it.effect(`refuses ${what} until the file has been read`, () =>
        Effect.gen(function* () {
          const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
          const before = yield* capture(fs.port)
          const refused = yield* call(tool, params)
          assert.isFalse(refused.success)
          assert.match(refused.message, /"a\.txt" has not been read .* Read it with read_file, then call/)
          assert.deepStrictEqual(yield* capture(fs.port), before)
          yield* call("read_file", { path: "a.txt", limit: 1 })
          const done = yield* call(tool, params)
          assert.isTrue(done.success, done.message)
          assert.notDeepEqual(yield* capture(fs.port), before)
        })
      )

      it.effect(`refuses ${what} again if another writer has changed the file after the read`, () =>
        Effect.gen(function* () {
          const { call, fs } = yield* session(yield* ground(files), Policy.readBeforeWrite)
          yield* call("read_file", { path: "a.txt" })
          const theirs = "one\nTWO\nthree\n"
          yield* fs.write("a.txt", theirs)
          const { message, success } = yield* call(tool, params)
          assert.isFalse(success)
          assert.include(message, "has changed since it was read")
          assert.include(message, versionOf(theirs))
          assert.include(message, "line 2 changed")
          assert.strictEqual(yield* fs.readString("a.txt"), theirs)
        }).pipe(Effect.orDie)
      )
    }

    it.effect("allows new files, and counts files that the session has written as read", () =>
      Effect.gen(function* () {
        const { call } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        const steps: ReadonlyArray<readonly [string, object]> = [
          ["write_file", { path: "new.txt", content: "one\n", mode: "overwrite" }],
          ["edit_file", { path: "new.txt", old_string: "one", new_string: "two" }],
          ["edit_file", { edits: [{ path: "new.txt", old_string: "two", new_string: "three" }] }],
          ["write_file", { path: "new.txt", content: "four\n", mode: "append" }],
          ["apply_patch", patch("*** Update File: new.txt\n-three\n+x\n*** Add File: other.txt\n+y")],
          ["edit_file", { path: "other.txt", old_string: "y", new_string: "z" }],
          ["move", { from: "new.txt", to: "moved.txt" }],
          ["write_file", { path: "moved.txt", content: "five\n", mode: "overwrite" }],
          ["rm", { path: "moved.txt" }],
          ["write_file", { path: "moved.txt", content: "six\n" }],
          ["rm", { path: "to-a" }]
        ]
        for (const [tool, params] of steps) {
          const { message, success } = yield* call(tool, params)
          assert.isTrue(success, `${tool}: ${message}`)
        }
      })
    )

    it.effect("does not count a failed read, nor a read by another session", () =>
      Effect.gen(function* () {
        const fs = yield* ground(files)
        const one = yield* session(fs, Policy.readBeforeWrite)
        const two = yield* session(fs, Policy.readBeforeWrite)
        yield* two.call("read_file", { path: "a.txt" })
        yield* one.call("read_file", { path: "a.tx" })
        const { success } = yield* one.call("edit_file", { path: "a.txt", old_string: "two", new_string: "x" })
        assert.isFalse(success)
      })
    )

    it.effect("names all unread files in one refusal", () =>
      Effect.gen(function* () {
        const { call } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        const { message } = yield* call("edit_file", {
          edits: [
            { path: "a.txt", old_string: "two", new_string: "x" },
            { path: "b.txt", old_string: "one", new_string: "x" }
          ]
        })
        assert.include(message, '"a.txt" and "b.txt" have not been read')
      })
    )

    it.effect("keeps the usual message for the creation of a file that exists", () =>
      Effect.gen(function* () {
        const { call } = yield* session(yield* ground(files), Policy.readBeforeWrite)
        assert.include((yield* call("write_file", { path: "a.txt", content: "x" })).message, "edit_file")
        yield* call("read_file", { path: "d/c.txt" })
        assert.include((yield* call("move", { from: "d", to: "a.txt" })).message, "overwrite")
      })
    )
  })
}

/** Changes the file right after a call opens it for the first time, that is, between the check and the write. */
const interfering = (fs: Algebra, theirs: string): { readonly fs: Algebra; readonly arm: () => void } => {
  let left = 0
  const port = around(fs.port, (operation, next) =>
    operation._tag === "Open" && operation.path === "a.txt" && left > 0 && --left === 0
      ? Effect.tap(next, () => Effect.ignore(fs.write("a.txt", theirs)))
      : next
  )
  return { fs: make({ ...port, locks: undefined }), arm: () => void (left = 1) }
}

describe("a change between the check and the write", () => {
  for (const [tool, params] of changing) {
    it.effect(`survives ${tool} ${JSON.stringify(params).slice(0, 70)}`, () =>
      Effect.gen(function* () {
        const base = yield* memory(files)
        const { arm, fs } = interfering(base, "theirs: two\n")
        const { call } = yield* session(fs, Policy.readBeforeWrite)
        yield* call("read_file", { path: "a.txt" })
        arm()
        const { message, success } = yield* call(tool, params)
        assert.isFalse(success, message)
        assert.strictEqual(yield* base.readString("a.txt"), "theirs: two\n")
      }).pipe(Effect.orDie)
    )
  }
})

describe("Policy.readBeforeWrite beside other policies", () => {
  it.effect("does not suggest reading a file that may not be read", () =>
    Effect.gen(function* () {
      for (const policies of [
        Layer.merge(Policy.readBeforeWrite, Policy.access({ deny: { read: "a.txt" } })),
        Layer.merge(Policy.access({ deny: { read: "a.txt" } }), Policy.readBeforeWrite)
      ]) {
        const { call } = yield* session(yield* memory(files), policies)
        const params = { content: "x", mode: "overwrite" }
        assert.include((yield* call("write_file", { path: "a.txt", ...params })).message, "policy")
        assert.include((yield* call("write_file", { path: "b.txt", ...params })).message, "read_file")
      }
    })
  )

  it.effect("requires another read of restored files", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const { call } = yield* session(fs, Policy.readBeforeWrite, yield* snapshotsOf(fs))
      yield* call("snapshot", { tag: "start" })
      yield* call("read_file", { path: "a.txt" })
      yield* call("edit_file", { path: "a.txt", old_string: "two", new_string: "x" })
      const restored = yield* call("restore", { snapshot_id: "start" })
      assert.isTrue(restored.success, restored.message)
      assert.isFalse((yield* call("edit_file", { path: "a.txt", old_string: "two", new_string: "x" })).success)
    })
  )
})

describe("an unread file", () => {
  it.live("is not changed by a patch, even if it appeared during approval", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ "other.txt": "x\n" })
      const other = Effect.orDie(fs.write("late.txt", "of somebody else\n"))
      const agent = yield* session(
        fs,
        Layer.merge(
          Policy.readBeforeWrite,
          Policy.approval(() => Effect.as(other, true))
        )
      )
      const { success } = yield* agent.call("apply_patch", {
        patch: "*** Begin Patch\n*** Update File: late.txt\n@@\n-of somebody else\n+mine\n*** End Patch\n"
      })
      assert.isFalse(success)
      assert.strictEqual(yield* fs.readString("late.txt"), "of somebody else\n")
    })
  )

  /** Builds a user's tool that declares no paths. */
  const undeclared = (change: (fs: Algebra) => Effect.Effect<unknown, FsError>) =>
    Tool.make({
      name: "undeclared",
      description: "Change a file.",
      value: Schema.Null,
      examples: [{}],
      handle: (_, { filesystem }) => Effect.as(change(filesystem), { message: "done", value: null })
    })

  for (const [what, change] of [
    ["an edit", (fs) => fs.edit("to-a", { oldText: "two", newText: "x" })],
    ["a write", (fs) => fs.write("to-a", "x", { mode: "overwrite" })]
  ] as ReadonlyArray<readonly [string, (fs: Algebra) => Effect.Effect<unknown, FsError>]>) {
    it.effect(`is not changed through a link by ${what} of a user's tool until the file is read through the link`, () =>
      Effect.gen(function* () {
        const { call, fs } = yield* session(yield* memory(files), Policy.readBeforeWrite)
        assert.isFalse((yield* call(undeclared(change), {})).success)
        assert.strictEqual(yield* fs.readString("a.txt"), "one\ntwo\nthree\n")
        yield* call("read_file", { path: "to-a" })
        const done = yield* call(undeclared(change), {})
        assert.isTrue(done.success, done.message)
        assert.include(yield* fs.readString("a.txt"), "x")
      }).pipe(Effect.orDie)
    )
  }

  it.effect("stays unchanged if a user's tool replaces a link to the file", () =>
    Effect.gen(function* () {
      for (const operation of ["copy", "move"] as const) {
        const { call, fs } = yield* session(yield* memory(files), Policy.readBeforeWrite)
        yield* call("read_file", { path: "b.txt" })
        const replace = undeclared((guarded) => guarded[operation]("b.txt", "to-a", { overwrite: true }))
        const done = yield* call(replace, {})
        assert.isTrue(done.success, done.message)
        assert.strictEqual(yield* fs.readString("a.txt"), "one\ntwo\nthree\n")
        assert.strictEqual(yield* fs.readString("to-a"), "one\n")
      }
    }).pipe(Effect.orDie)
  )
})
