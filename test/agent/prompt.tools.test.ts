/** Warnings for prompts with files that no tool can reach, and the tools that reach such files. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Session from "../../src/workspace/Session.ts"
import { done } from "./adapting.ts"
import { Value } from "./adapting.ts"

const look = (name = "look") =>
  Tool.make({
    name,
    description: "Looks.",
    value: Schema.Void,
    does: "reads",
    handle: () => Effect.succeed({ message: "seen", value: undefined })
  })

type Options = Partial<Section.FilesystemOptions<never>>

const files = (key: string, options: Options = {}) =>
  Section.FilesystemSection({ key, title: key, template: "", layer: InMemory.layer({ tree: { "a.txt": "one" } }), ...options })

const text = (key: string, options: Partial<Section.Options> = {}) =>
  Section.make({ key, title: key, template: "", ...options })

/** Returns the warnings that the effect logs. */
const warnings = Effect.fnUntraced(function* <E, R>(effect: Effect.Effect<unknown, E, R>) {
  const found: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") found.push([message].flat().map(String).join(" "))
  })
  yield* Effect.provide(effect, Logger.layer([logger]))
  return found
})

type Made = Effect.Effect<ReadonlyArray<Section.Section>, Section.SectionError, Scope.Scope>

const prompt = (sections: Made) =>
  Effect.flatMap(sections, (sections) => Prompt.make({ ns: "agents", key: "writer", sections }))

describe("Prompt.make", () => {
  it.effect("warns of a section whose filesystem no tool uses, with the names of prompt and section", () =>
    Effect.gen(function* () {
      const found = yield* warnings(prompt(Effect.all([files("notes")])))
      assert.lengthOf(found, 1)
      assert.include(found[0], 'the prompt "writer"')
      assert.include(found[0], 'the section "notes"')
      assert.include(found[0], "Section.sevenTools")
    }).pipe(Effect.scoped)
  )

  it.effect("warns of each section whose filesystem no tool uses, at any depth", () =>
    Effect.gen(function* () {
      const deep = Effect.gen(function* () {
        const inner = yield* files("inner")
        return [yield* files("outer"), text("above", { children: [inner] }), yield* files("fine", { tools: [look()] })]
      })
      const found = yield* warnings(prompt(deep))
      assert.lengthOf(found, 2)
      assert.include(found[0], '"outer"')
      assert.include(found[1], '"inner"')
    }).pipe(Effect.scoped)
  )

  it.effect("warns of a second filesystem, because tools of other sections use only the first", () =>
    Effect.gen(function* () {
      const both = Effect.all([files("first"), files("second"), Effect.succeed(text("task", { tools: [look()] }))])
      const found = yield* warnings(prompt(both))
      assert.lengthOf(found, 1)
      assert.include(found[0], '"second"')
    }).pipe(Effect.scoped)
  )

  const silent: Readonly<Record<string, Made>> = {
    "has no files": Effect.succeed([text("task")]),
    "has tools in the section of the files": Effect.all([files("notes", { tools: Section.sevenTools })]),
    "has tools in a section without files": Effect.all([files("notes"), Effect.succeed(text("task", { tools: [look()] }))]),
    "has a section with tools of its own": Effect.all([Section.VfsSection()]),
    "switches the tools of its section off": Effect.all([Section.WorkspaceSection({ tools: "none" })]),
    "declares that its tools are elsewhere": Effect.all([files("notes", { toolsElsewhere: true })])
  }

  for (const [what, sections] of Object.entries(silent)) {
    it.effect(`does not warn of a prompt that ${what}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* warnings(prompt(sections)), [])
      }).pipe(Effect.scoped)
    )
  }

  it.effect("warns once, and not again for a clone, a rendering or a run", () =>
    Effect.gen(function* () {
      const found = yield* warnings(
        Effect.gen(function* () {
          const made = yield* prompt(Effect.all([files("notes")]))
          const session = yield* Session.make()
          const other = yield* Prompt.clone(made, session)
          yield* Prompt.render(other)
          yield* Adapter.run(Adapter.make("test"), other, { session })
        })
      )
      assert.lengthOf(found, 1)
    }).pipe(Effect.scoped)
  )
})

describe("Section.sevenTools and Section.fourTools", () => {
  const names = (tools: ReadonlyArray<Tool.AnyDefinition<unknown>>) => tools.map(({ name }) => name)

  it.effect("are the default tools of two sections, and work on the filesystem of any section", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(names(Section.sevenTools), names((yield* Section.VfsSection()).tools))
      assert.deepStrictEqual(names(Section.fourTools), names((yield* Section.VfsToolsSection()).tools))
      assert.deepStrictEqual(names(Section.sandboxTools), ["shell", "eval"])
      for (const tools of [Section.sevenTools, Section.fourTools]) {
        const made = yield* prompt(Effect.all([files("notes", { tools })]))
        const { call } = yield* Adapter.run(Adapter.make("test"), made, { session: yield* Session.make() })
        assert.include((yield* call("read_file", { path: "a.txt" })).message, "one")
      }
    }).pipe(Effect.scoped)
  )
})

describe("messages for programmer errors", () => {
  it("show the invalid example, its tool and the remedy", () => {
    const parameters = Schema.Struct({ url: Schema.String })
    const made = () =>
      Tool.make({ name: "fetch", description: "d", parameters, value: Value, handle: () => Effect.succeed(done) })
    assert.throws(made, /fetch.*example \{\}.*"url".*give examples/)
  })

  it.effect("contain the title from which no key can be derived", () =>
    Effect.gen(function* () {
      const sections = [Section.MarkdownSection({ title: "任務", template: "" })]
      const { message, reason } = yield* Effect.flip(Prompt.make({ ns: "a", key: "b", sections }))
      assert.strictEqual(reason, "invalid")
      assert.include(message, '"任務"')
    })
  )
})
