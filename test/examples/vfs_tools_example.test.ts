/** The example program: its results, its output, and its run as a process. */
import { assert, describe, it } from "@effect/vitest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { fileURLToPath } from "node:url"
import { main } from "./vfs_tools_example.ts"

const tells = (text: string, ...parts: ReadonlyArray<string>): void => {
  for (const part of parts) assert.include(text, part)
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

describe("the example program of an agent with files and a plan", () => {
  const lines: Array<string> = []
  const listening = Effect.provideService(main, Console.Console, {
    ...globalThis.console,
    log: (...args: ReadonlyArray<unknown>) => void lines.push(args.join(" "))
  })

  it.live("plans, writes, rolls back, edits by version, and resumes in another filesystem", () =>
    Effect.gen(function* () {
      const { answers, astray, back, events, names, plan, resumed } = yield* listening
      assert.deepStrictEqual(astray, { hasGuide: false, steps: 3 })
      assert.deepStrictEqual(back, { hasGuide: true, summary: "# Summary\n\nWrite first.\n" })

      const summary = "# Summary\n\nLook first, then write.\n"
      assert.deepStrictEqual(
        answers.map(({ success }) => success),
        [true, true, false, true, true, true, false]
      )
      // The stale write gets the current version, and the unknown step gets advice.
      tells(answers[2]!.message, sha256(summary))
      tells(answers[6]!.message, "no step 3", "add_step")

      assert.deepStrictEqual(plan, [
        { number: 1, text: "Read the guide", isDone: true },
        { number: 2, text: "Summarise it", isDone: true }
      ])
      assert.strictEqual(events.length, 7 + 3 + 7)
      assert.deepStrictEqual(
        events.flatMap(({ tool, success }, i) => (success ? [] : [[i, tool]])),
        [
          [12, "write_file"],
          [16, "finish_step"]
        ]
      )

      assert.deepStrictEqual(names, ["writer.fs.zip", "writer.jsonl"])
      assert.deepStrictEqual(resumed, { plan, calls: 17, summary: `${summary}\nSee docs/guide.md.\n`, docs: ["guide.md"] })

      const printed = lines.join("\n")
      tells(printed, "## Virtual Filesystem Tools", "add_step, finish_step, list_directory", "[x] 2. Summarise it")
      tells(printed, "The same session, in PosixHost", "+ list_directory", "- write_file")
    })
  )

  it("runs as a program", () => {
    const program = fileURLToPath(new URL("vfs_tools_example.ts", import.meta.url))
    const { status, stderr, stdout } = spawnSync(process.execPath, [program], { encoding: "utf8" })
    assert.strictEqual(status, 0, stderr)
    tells(stdout, "=== What the model is told", "=== Dumped, and resumed on files of another kind", "See docs/guide.md.")
  })
})
