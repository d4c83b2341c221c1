/**
 * Another program moves, restores or replaces a directory before every primitive call of a tool that changes files. The tool
 * must succeed or report its failure, and a failure must not change files outside of that directory.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { applyChanges, type FileChange } from "../../src/agent/changes.ts"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { applyPatch } from "../../src/agent/tools/applyPatch.ts"
import { copy, mkdir, move } from "../../src/agent/tools/transfer.ts"
import { editFile } from "../../src/agent/tools/editFile.ts"
import { rm } from "../../src/agent/tools/rm.ts"
import { writeFile } from "../../src/agent/tools/writeFile.ts"
import * as Decorator from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { capture, type Files } from "../../src/testing/Files.ts"
import { bytesOf, host, memory, p, versionOf } from "../agent/changing.ts"
import { v4a } from "../agent/patching.ts"
import { type Act, away, backTo, disturbed, instead } from "./moves.ts"

type Work = readonly [tool: AnyDefinition, input: unknown]

const files: Files = { "d/b.txt": "b\n", "d/c.txt": "c\n", "d/e/f.txt": "f\n", "z.txt": "z\n" }
const updates = ["*** Update File: d/b.txt", "@@", "-b", "+B", "*** Update File: d/e/f.txt", "@@", "-f", "+F"]
const z = ["*** Update File: z.txt", "@@", "-z", "+Z"]

const works: Readonly<Record<string, Work>> = {
  "apply_patch of several files": [
    applyPatch,
    {
      patch: v4a(...updates, "*** Add File: d/n.txt", "+n", "*** Delete File: d/c.txt", ...z)
    }
  ],
  "apply_patch that writes the present content": [
    applyPatch,
    { patch: v4a("*** Update File: d/b.txt", "@@", "-b", "+b", ...z) }
  ],
  "edit_file of several files": [
    editFile,
    {
      edits: [
        { path: "d/b.txt", old_string: "b", new_string: "B" },
        { path: "z.txt", old_string: "z", new_string: "Z" }
      ]
    }
  ],
  write_file: [writeFile, { path: "d/b.txt", content: "B", mode: "overwrite" }],
  "move of a directory": [move, { from: "d", to: "g" }],
  "copy of a directory": [copy, { from: "d", to: "g" }],
  mkdir: [mkdir, { path: "d/x/y" }],
  "rm of a directory": [rm, { path: "d" }]
}

const invoke = (fs: Algebra, [tool, input]: Work): Effect.Effect<ToolResult<unknown>> =>
  invokeUnknown(tool, input, { memory: Memory.make() }).pipe(Effect.provideService(Filesystem, fs)) as Effect.Effect<
    ToolResult<unknown>
  >

const inside: typeof memory = (all) =>
  memory(Object.fromEntries(Object.entries(all).map(([path, file]) => [`in/${path}`, file])))

interface Ground {
  readonly make: typeof memory
  readonly path: string
  readonly top: string
  readonly view: (fs: Algebra) => Algebra | Effect.Effect<Algebra, unknown>
  readonly distances: ReadonlyArray<number>
}

const grounds: Readonly<Record<string, Ground>> = {
  "in memory": { make: memory, path: "d", top: "", view: (fs) => fs, distances: [1] },
  "on a host": { make: host, path: "d", top: "", view: (fs) => fs, distances: [] },
  "through a subdirectory": {
    make: inside,
    path: "in",
    top: "in/",
    view: Decorator.subdirectory("in"),
    distances: [1]
  }
}

const run = ({ make, view }: Ground, work: Work, acts: ReadonlyMap<number, Act>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const whole = yield* make(files)
      const { begin, calls, fs } = disturbed(whole, acts)
      const viewed = view(fs)
      const seen = Effect.isEffect(viewed) ? yield* Effect.orDie(viewed) : viewed
      begin()
      const exit = yield* Effect.exit(invoke(seen, work))
      return { exit, calls: calls(), becomes: yield* Effect.orDie(capture(whole.port)) }
    })
  )

describe("a directory that another program moves during a change", () => {
  for (const [where, ground] of Object.entries(grounds)) {
    const { distances, path, top } = ground
    for (const [name, work] of Object.entries(works)) {
      it.effect(`causes no defect in ${name} ${where}`, () =>
        Effect.gen(function* () {
          const { calls } = yield* run(ground, work, new Map())
          assert.isAbove(calls, 0)
          for (let nth = 1; nth <= calls; nth++) {
            const plans: Array<ReadonlyArray<readonly [number, Act]>> = [[[nth, away(path)]]]
            for (const distance of distances)
              for (const then of [backTo(path), instead(path, "b.txt", "theirs\n")])
                plans.push([
                  [nth, away(path)],
                  [nth + distance, then]
                ])
            for (const plan of plans) {
              const { becomes, exit } = yield* run(ground, work, new Map(plan))
              if (Exit.isFailure(exit)) return assert.fail(`before call ${nth}: ${String(exit.cause)}`)
              const { message, success } = exit.value
              const outside = becomes[`${top}z.txt`]
              if (!success && !message.includes("halfway") && outside !== undefined)
                assert.strictEqual(outside, 'file "z\\n"', `before call ${nth}: ${message}`)
            }
          }
        })
      )
    }
  }

  it.effect("causes no defect for a file whose content stays the same, also when the directory comes back", () =>
    Effect.gen(function* () {
      const same: FileChange = { path: p("d/b.txt"), before: versionOf("b\n"), after: bytesOf("b\n") }
      const other: FileChange = { path: p("z.txt"), before: versionOf("z\n"), after: bytesOf("Z\n") }
      const changed = (acts: ReadonlyMap<number, Act>) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { begin, calls, fs } = disturbed(yield* memory(files), acts)
            begin()
            return { exit: yield* Effect.exit(applyChanges(fs, [same, other])), calls: calls() }
          })
        )
      const { calls, exit } = yield* changed(new Map())
      assert.isTrue(Exit.isSuccess(exit))
      let failures = 0
      for (let first = 1; first < calls; first++)
        for (let back = first + 1; back < Math.min(calls, first + 12); back++) {
          const { exit } = yield* changed(
            new Map([
              [first, away("d")],
              [back, backTo("d")],
              [back + 1, away("d")]
            ])
          )
          if (Exit.isSuccess(exit)) continue
          failures++
          assert.isFalse(Cause.hasDies(exit.cause), `${first}, ${back}: ${String(exit.cause)}`)
        }
      assert.isAbove(failures, 0)
    })
  )
})
