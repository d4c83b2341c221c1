import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { holds } from "./everywhere.ts"
import { type Answer, tools } from "./everywhereRun.ts"
import { tables } from "./everywhereTables.ts"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { directory } from "./changing.ts"
import { call } from "./looking.ts"

for (const [name, rows] of Object.entries(tables)) {
  describe(`every filesystem gives the same results: ${name}`, () => {
    rows.forEach((row, index) => {
      it.live(row.name, () => holds(row, index))
    })
  })
}

describe("without a filesystem:", () => {
  const call = (tool: string, input: unknown) =>
    invokeUnknown(tools[tool]!, input, { memory: Memory.make() }) as Effect.Effect<Answer>

  const refuses = Effect.fnUntraced(function* (tool: string, input: unknown, message: string | RegExp) {
    const answer = yield* call(tool, input)
    assert.isFalse(answer.success)
    assert.notProperty(answer, "value")
    if (typeof message === "string") assert.include(answer.message, message)
    else assert.match(answer.message, message)
  })

  for (const [name, tool] of Object.entries(tools)) {
    const parameters = Object.keys(tool.parameters.fields as object)

    it.effect(`${name} reports that no filesystem is available`, () =>
      Effect.forEach(tool.examples, (example) => refuses(name, example, "No filesystem available."), { discard: true })
    )

    it.effect(`${name} refuses unknown parameters, and arguments that are not an object`, () =>
      Effect.gen(function* () {
        yield* refuses(name, "{}", `The arguments of ${tool.name} were sent as a string`)
        yield* refuses(name, "x", `The arguments of ${tool.name} were sent as a string`)
        yield* refuses(name, [], `The arguments of ${tool.name} must be an object, and were a list.`)
        yield* refuses(name, 7, `The arguments of ${tool.name} must be an object, and were a number.`)
        yield* refuses(name, true, `The arguments of ${tool.name} must be an object, and were a boolean.`)
        yield* refuses(name, { ...tool.examples[0], "no such": 1 }, /"no such" is not a parameter/)
      })
    )

    if (parameters.length > 0) {
      it.effect(`${name} names each argument of a wrong type, and shows a valid call`, () =>
        Effect.forEach(
          parameters,
          (parameter) =>
            Effect.gen(function* () {
              for (const wrong of [{ a: 1 }, [{ a: 1 }, 2], Number.NaN]) {
                yield* refuses(name, { ...tool.examples[0], [parameter]: wrong }, `${tool.name} cannot take these arguments: `)
                yield* refuses(name, { ...tool.examples[0], [parameter]: wrong }, new RegExp(`"${parameter}[^"]*" must be `))
                yield* refuses(name, { ...tool.examples[0], [parameter]: wrong }, JSON.stringify(tool.examples[0]))
              }
            }),
          { discard: true }
        )
      )
    }
  }
})

describe("the advice of read_file for an entry that is neither a file nor a directory", () => {
  it.live("is to ignore the entry", () =>
    Effect.gen(function* () {
      const root = yield* directory
      execFileSync("mkfifo", [join(root, "pipe")])
      const { message } = yield* Effect.provide(call(tools["read_file"]!, { path: "pipe" }), PosixHost.layer({ root }))
      assert.include(message, "Leave this entry alone")
      assert.notInclude(message, "List")
    })
  )
})
