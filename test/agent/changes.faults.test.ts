import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { isDeepStrictEqual } from "node:util"
import { applyChanges, type FileChange } from "../../src/agent/changes.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { removeDirectory } from "../../src/agent/tools/rm.ts"
import { editFile } from "../../src/agent/tools/editFile.ts"
import { removeTree } from "../../src/engine/remove.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import { faulty, type Planned } from "../../src/testing/Faults.ts"
import { capture, type Files, type Picture, picture } from "../../src/testing/Files.ts"
import { any, bytesOf, every, type Ground, host, interruptible, memory, p, versionOf } from "./changing.ts"
import * as Request from "../../src/port/Request.ts"

const files: Files = { "a.txt": "a\n", "d/b.txt": "b\n", lone: "lone", old: "old" }

const changes: ReadonlyArray<FileChange> = [
  { path: p("a.txt"), before: versionOf("a\n"), after: bytesOf("A\n") },
  { path: p("d/b.txt"), before: versionOf("b\n"), after: bytesOf("B\n") },
  { path: p("new/deep/n"), before: null, after: bytesOf("n") },
  { path: p("lone"), before: versionOf("lone"), after: null },
  { path: p("d/moved"), before: null, after: bytesOf("moved"), from: { path: p("old"), version: versionOf("old") } }
]

const after: Files = { "a.txt": "A\n", "d/b.txt": "B\n", "new/deep/n": "n", "d/moved": "moved" }

const edits = {
  edits: [
    { path: "a.txt", old_string: "a", new_string: "A" },
    { path: "d/b.txt", old_string: "b", new_string: "B" }
  ]
}

const edited: Files = { ...files, "a.txt": "A\n", "d/b.txt": "B\n" }

/** Edits two files, and fails if the tool returns a failure. */
const editing = (fs: Algebra): Effect.Effect<unknown, unknown> =>
  Effect.gen(function* () {
    const result = (yield* invokeUnknown(editFile, edits, { memory: Memory.make() })) as { readonly success: boolean }
    return result.success ? result : yield* Effect.fail(result)
  }).pipe(Effect.provideService(Filesystem, fs)) as Effect.Effect<unknown, unknown>

interface Work {
  readonly run: (fs: Algebra) => Effect.Effect<unknown, unknown>
  readonly becomes: Picture
}

/** Removes a directory with a native removal of trees, as a host does. */
const removing = ({ port }: Algebra): Effect.Effect<unknown, unknown> => {
  const perform = Request.extend(port.perform, { RemoveTree: ({ path }) => Effect.asSome(removeTree(port, path)) })
  return removeDirectory(make({ ...port, perform }), p("d"), "fail")
}

const everywhere: Record<string, Work> = {
  "a change of several files": { run: (fs) => applyChanges(fs, changes), becomes: picture(after) },
  "an edit of several files": { run: editing, becomes: picture(edited) }
}

/** The changes under test. In memory, the removal of a directory has no steps that could fail midway. */
const works: Readonly<Record<string, Readonly<Record<string, Work>>>> = {
  "in memory": everywhere,
  "on a host": {
    ...everywhere,
    "the removal of a directory": { run: removing, becomes: picture({ "a.txt": "a\n", lone: "lone", old: "old" }) }
  }
}

const count = (ground: Ground, { run }: Work, path: RegExp): Effect.Effect<number> =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = faulty([])(yield* ground(files))
      yield* Effect.orDie(run(fs) as Effect.Effect<unknown, never>)
      return fs.happened.filter((step) => path.test(step.path)).length
    })
  )

interface Outcome {
  readonly isNew: boolean
  readonly isWhole: boolean
}

const broken = (ground: Ground, { becomes, run }: Work, planned: Planned): Effect.Effect<Outcome> =>
  Effect.scoped(
    Effect.gen(function* () {
      const sound = yield* ground(files)
      const fs = faulty([planned])(sound)
      const fiber = yield* Effect.forkChild(run(fs))
      if (planned.fault === "hang") {
        yield* Effect.race(fs.hung, Effect.asVoid(Fiber.await(fiber)))
        yield* Fiber.interrupt(fiber)
      }
      const exit = yield* Fiber.await(fiber)
      const found = yield* Effect.orDie(capture(sound.port) as Effect.Effect<Picture, never>)
      // An interruption that arrives after the last step still interrupts the caller.
      const isNew = Exit.isSuccess(exit) || (planned.fault === "hang" && isDeepStrictEqual(found, becomes))
      return { isNew, isWhole: isDeepStrictEqual(found, isNew ? becomes : picture(files)) }
    })
  )

const ways: ReadonlyArray<readonly [claim: string, planned: Pick<Planned, "fault" | "when">]> = [
  ["fails with IoError", { fault: { _tag: "IoError", code: "EIO", detail: "planned" } }],
  ["succeeds but reports IoError", { fault: { _tag: "IoError", code: "EIO", detail: "planned" }, when: "after" }],
  ["fails with DiskFull", { fault: { _tag: "DiskFull" } }],
  ["is interrupted", { fault: "hang" }],
  ["succeeds and is then interrupted", { fault: "hang", when: "after" }]
]

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined

for (const [place, ground, stride] of [
  ["in memory", memory, 1],
  ["on a host", host, soak ? 1 : 7]
] as const) {
  for (const [name, work] of Object.entries(works[place]!)) {
    describe(`${name} ${place}`, () => {
      for (const [claim, planned] of ways) {
        it.live(`is done completely or not at all, without leftovers, if one step ${claim}`, () =>
          Effect.gen(function* () {
            const path = planned.fault === "hang" ? interruptible : any
            const steps = yield* count(ground, work, path)
            const complaints: Array<string> = []
            let taken = 0
            for (let nth = 1; nth <= steps; nth += stride) {
              const { isNew, isWhole } = yield* broken(ground, work, { operation: every, path, nth, ...planned })
              if (!isNew) taken++
              if (!isWhole) complaints.push(`step ${nth} of ${steps}, ${isNew ? "done" : "failed"}`)
            }
            assert.deepStrictEqual(complaints, [])
            assert.isAbove(taken, steps / stride / 3)
          })
        )
      }
    })
  }
}

describe("changes of several files", () => {
  const denied: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "policy" })

  it.live("change nothing if a policy forbids one of the paths", () =>
    Effect.gen(function* () {
      const sound = yield* host(files)
      // The guard knows only paths, as decorators of the port do.
      const guarded = (path: string) =>
        make(
          around(sound.port, (operation, next) => {
            const paths: ReadonlyArray<string> = [operation.path, ...("to" in operation ? [operation.to] : [])]
            const changes = !["Stat", "List", "Open", "ReadLink", "Watch"].includes(operation._tag)
            return changes && paths.includes(path) ? denied : next
          })
        )
      for (const path of ["a.txt", "d/b.txt", "lone", "old", "d/moved"]) {
        const failed = yield* Effect.flip(applyChanges(guarded(path), changes))
        assert.deepInclude({ ...failed }, { _tag: "AccessDenied", why: "policy", path })
        assert.deepStrictEqual(yield* capture(sound.port), picture(files))
      }
    })
  )

  it.live("fail and restore the files if another process removes a file after the check", () =>
    Effect.gen(function* () {
      const sound = yield* host(files)
      let isDone = false
      // Another process, which ignores the locks, removes a file while the contents are being staged.
      const port = around(sound.port, (operation, next) =>
        operation._tag === "Write" && operation.path.includes("/new/") && !isDone
          ? Effect.andThen(
              Effect.suspend(() => {
                isDone = true
                return sound.port.remove(p("lone"))
              }),
              next
            )
          : next
      )
      const exit = yield* Effect.exit(applyChanges(make(port), changes))
      assert.isTrue(isDone && Exit.isFailure(exit))
      const { lone: _, ...others } = files
      assert.deepStrictEqual(yield* capture(sound.port), picture(others))
    })
  )
})
