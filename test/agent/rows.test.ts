/**
 * Statements of the specification about several parts: the order in which a call is checked, and the equal answers of
 * tools.
 */
import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Adapter from "../../src/agent/Adapter.ts"
import { define, refused } from "../../src/agent/definition.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Section from "../../src/agent/Section.ts"
import * as ToolContext from "../../src/agent/ToolContext.ts"
import { seven } from "../../src/agent/tools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, Filesystem, make as derive } from "../../src/filesystem/Filesystem.ts"
import { IoError } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import { isMutation } from "../../src/port/Operation.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { inMemory } from "../scratch.ts"
import { checkpointOf, done, makeSession, section, start, Value } from "./adapting.ts"
import { memory } from "./changing.ts"
import { differences, faultsOf, type Ground, run } from "./everywhereRun.ts"
import { tables } from "./everywhereTables.ts"

describe("a call that violates every check", () => {
  it.effect("is refused by the first check that fails, and later steps do not run", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ "a.txt": "one\n" })
      const session = yield* makeSession
      const { checkpoint } = yield* checkpointOf(session, fs)
      let steps: Array<string> = []
      const step = (name: string) => Effect.sync(() => void steps.push(name))
      const is = { ready: false, approved: false, room: false, able: false }

      const files = Effect.andThen(
        step("files"),
        Effect.suspend(() =>
          is.ready ? Effect.succeed(fs) : Effect.fail(new IoError({ operation: "open", path: ".", detail: "not yet" }))
        )
      )
      const work = define({
        name: "work",
        description: "Does what the test says.",
        parameters: Schema.Struct({ n: Schema.Number.annotate({ description: "A number." }) }),
        value: Value,
        does: "changes",
        idempotent: false,
        examples: [{ n: 1 }],
        touches: () => Effect.succeed([]),
        handle: (_, { filesystem }) =>
          Effect.gen(function* () {
            yield* step("handler")
            yield* filesystem.write("a.txt", "changed")
            return is.able ? done : yield* Effect.fail(refused("It did not work.", "Try another."))
          })
      })
      const full = new Session.SessionError({ operation: "take", reason: "outside", detail: "the disk is full" })
      const { run } = yield* start(
        [section("first", { filesystem: Effect.succeed(fs) }), section("files", { filesystem: files, tools: [work] })],
        {
          session,
          policies: Policy.approval(() => Effect.as(step("policies"), is.approved)),
          listener: () => step("event"),
          checkpoint: {
            ...checkpoint,
            take: (id) => Effect.andThen(step("checkpoint"), is.room ? checkpoint.take(id) : Effect.fail(full)),
            rollback: (id) => Effect.andThen(step("rollback"), checkpoint.rollback(id))
          }
        }
      )
      const late = { ...run.context, deadline: Option.some(DateTime.toUtc(DateTime.makeUnsafe(0))) }
      const poor = { ...run.context, budgetTracker: Option.some(yield* ToolContext.budget(0)) }
      const foreign = { ...late, budgetTracker: poor.budgetTracker, session: yield* makeSession }
      const latePoor = { ...late, budgetTracker: poor.budgetTracker }

      const told = Effect.fnUntraced(function* (
        said: RegExp,
        then: ReadonlyArray<string>,
        options: Adapter.CallOptions = {},
        [tool, input]: readonly [string, unknown] = ["work", { n: 1 }]
      ) {
        steps = []
        const { message, success } = yield* run.call(tool, input, options)
        assert.match(message, said)
        assert.deepStrictEqual(steps, [...then, "event"])
        assert.strictEqual(yield* fs.readString("a.txt"), success ? "changed" : "one\n")
      })
      yield* told(/no tool "wrok"/, [], { context: foreign }, ["wrok", { n: "x" }])
      yield* told(/"n" must be/, [], { context: foreign }, ["work", { n: "x" }])
      yield* told(/another session/, [], { context: foreign })
      yield* told(/time for calling tools was over/, [], { context: latePoor })
      yield* told(/budget of 0/, [], { context: poor })
      yield* told(/could not be prepared/, ["files"])
      is.ready = true
      yield* told(/not approved/, ["files", "policies"])
      is.approved = true
      yield* told(/No checkpoint could be taken.*full/, ["files", "policies", "checkpoint"])
      is.room = true
      yield* told(/It did not work/, ["files", "policies", "checkpoint", "handler", "rollback"])
      is.able = true
      yield* told(/done/, ["files", "policies", "checkpoint", "handler"])
    })
  )
})

describe("the changes of a tool", () => {
  it.live("pass through the port, so that a recorder of operations sees each path", () =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      const recorded = Effect.map(InMemory.make(), (port) =>
        derive(
          around(port, (operation, next) => {
            if (isMutation(operation)) seen.add("to" in operation ? operation.to : operation.path)
            return next
          })
        )
      )
      const files = yield* Section.FilesystemSection({
        key: "files",
        title: "Files",
        template: "",
        layer: Layer.effect(Filesystem, recorded),
        tools: seven
      })
      const { run } = yield* start([files])
      const after = Effect.fnUntraced(function* (tool: string, input: object) {
        seen.clear()
        const { message, success } = yield* run.call(tool, input)
        assert.isTrue(success, message)
        return [...seen].sort()
      })
      assert.include(yield* after("write_file", { path: "d/a.txt", content: "one\n" }), "d/a.txt")
      assert.include(yield* after("edit_file", { path: "d/a.txt", old_string: "one", new_string: "two" }), "d/a.txt")
      for (const [tool, input] of [
        ["ls", {}],
        ["read_file", { path: "d/a.txt" }],
        ["glob", { pattern: "**" }],
        ["grep", { pattern: "two" }]
      ] as const) {
        assert.deepStrictEqual(yield* after(tool, input), [], tool)
      }
      assert.include(yield* after("rm", { path: "d/a.txt" }), "d/a.txt")
    }).pipe(Effect.scoped)
  )
})

const memoryOf: Ground["make"] = (files) => memory(files)

/** Files that a session keeps in memory, compared with the table of all filesystems. */
const inMemoryOfSession: Ground = {
  name: "memory in a session",
  make: (files) =>
    Effect.gen(function* () {
      const port = yield* InMemory.makeSession(yield* Session.make())
      yield* plant(port, files)
      return derive(port) as Algebra
    }).pipe(Effect.orDie)
}

describe(`the tools on ${inMemoryOfSession.name}`, () => {
  for (const [name, rows] of Object.entries(tables)) {
    it.live(`give the expected answers: ${name}`, () =>
      Effect.forEach(
        rows,
        (row) =>
          Effect.map(run(row, inMemoryOfSession), (outcome) => assert.deepStrictEqual(faultsOf(row, outcome), [], row.name)),
        { discard: true }
      )
    )
  }
})

/**
 * A directory of a session. It has no links, so it is compared with memory on trees without links, and only its owner
 * may read its root.
 */
const inDirectoryOfSession: Ground = {
  name: "a directory of a session",
  modeless: true,
  make: (files) =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const { filesystem } = yield* VfsState.make({ session, directory: inMemory(), policy: "standard" })
      yield* plant(filesystem.port, files)
      return filesystem
    }).pipe(Effect.orDie)
}

const withoutLinks = (files: Files): Files =>
  Object.fromEntries(Object.entries(files).filter(([, entry]) => !(typeof entry === "object" && "link" in entry)))

/** Rows whose calls leave directories empty, which this filesystem removes. */
const leavesEmpty: ReadonlySet<string> = new Set([
  "a mount point stands for the root, at a segment boundary only",
  "a unified diff changes, makes and removes files"
])

describe(`the tools on ${inDirectoryOfSession.name}`, () => {
  for (const [name, rows] of Object.entries(tables)) {
    it.live(`answer as in memory: ${name}`, () =>
      Effect.gen(function* () {
        for (const { cases: _, ...row } of rows) {
          if (leavesEmpty.has(row.name)) continue
          const plain = { ...row, tree: withoutLinks(row.tree) }
          const [there, here] = [yield* run(plain, { name: "memory", make: memoryOf }), yield* run(plain, inDirectoryOfSession)]
          assert.deepStrictEqual(differences(here, there, inDirectoryOfSession), [], row.name)
          assert.deepStrictEqual(here.left, there.left, row.name)
        }
      })
    )
  }
})
