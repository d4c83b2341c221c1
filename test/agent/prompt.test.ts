import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Adapter from "../../src/agent/Adapter.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import * as ToolContext from "../../src/agent/ToolContext.ts"
import { InvalidArgument, NotFound } from "../../src/model/FsError.ts"
import { counted, session } from "./sectioning.ts"

const tool = (name: string) =>
  Tool.make({
    name,
    description: `Does ${name}.`,
    value: Schema.String,
    handle: () => Effect.succeed({ message: name, value: name })
  })

const section = (key: string, options: Partial<Section.Options> = {}): Section.Section =>
  Section.make({ key, title: `Title of ${key}`, template: `Text of ${key}.`, ...options })

const base = { ns: "agents/coder", key: "edit-files" }

const refused = (options: Prompt.Options) => Effect.flip(Prompt.make(options))

describe("Prompt.make", () => {
  it.effect("returns a frozen prompt with namespace, key, name, sections, overrides and deadline", () =>
    Effect.gen(function* () {
      const deadline = DateTime.makeUnsafe(1000)
      const sections = [section("one")]
      const prompt = yield* Prompt.make({ ...base, name: "Editor", sections, deadline })
      assert.deepStrictEqual(
        [prompt.ns, prompt.key, prompt.name, prompt.overrides],
        ["agents/coder", "edit-files", "Editor", {}]
      )
      assert.strictEqual(prompt.sections[0], sections[0])
      assert.deepStrictEqual(prompt.deadline, Option.some(deadline))
      sections.push(section("two"))
      assert.lengthOf(prompt.sections, 1)
      for (const part of [prompt, prompt.sections, prompt.overrides]) assert.isTrue(Object.isFrozen(part))
    })
  )

  it.effect("accepts a template that Prompt.template has checked", () =>
    Effect.gen(function* () {
      const template = yield* Prompt.template({ ...base, sections: [section("one")] })
      const prompt = yield* Prompt.make({ ...template, deadline: Option.none() })
      assert.deepStrictEqual(prompt.sections, template.sections)
      assert.isTrue(Option.isNone(prompt.deadline))
      assert.strictEqual(
        (yield* Effect.flip(Prompt.template({ ...base, sections: [section("one"), section("one")] }))).reason,
        "duplicateKey"
      )
    })
  )

  const good = ["a", "a.b", "a-b_c.9", "a".repeat(64)]
  const bad: ReadonlyArray<unknown> = ["", " ", "A", "1a", "-a", ".a", "a b", "a\n", "a/b", "ä", "a".repeat(65), undefined, 7]

  for (const key of good) {
    it.effect(`accepts the key ${JSON.stringify(key.slice(0, 10))}`, () =>
      Prompt.make({ ns: key, key, sections: [section(key, { children: [section(key)] })] })
    )
  }

  for (const key of bad as ReadonlyArray<string>) {
    it.effect(`refuses the key ${JSON.stringify(String(key).slice(0, 10))}`, () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* refused({ ...base, key, sections: [] })).reason, "invalid")
        if (key !== "a/b") assert.strictEqual((yield* refused({ ...base, ns: key, sections: [] })).reason, "invalid")
        assert.strictEqual((yield* refused({ ...base, sections: [section(key)] })).reason, "invalid")
        const below = section("above", { children: [section(key)] })
        assert.strictEqual((yield* refused({ ...base, sections: [below] })).reason, "invalid")
      })
    )
  }

  for (const ns of ["agents//coder", "/agents", "agents/", "agents/../coder", "a/".repeat(200) + "a"]) {
    it.effect(`refuses the namespace ${JSON.stringify(ns.slice(0, 20))}`, () =>
      Effect.map(refused({ ...base, ns, sections: [] }), ({ reason }) => assert.strictEqual(reason, "invalid"))
    )
  }

  const titles: ReadonlyArray<unknown> = [
    "",
    "  ",
    "a\nb",
    "a\r\nb",
    "a\u2028b",
    "a\u0085b",
    "a\0b",
    "\ud800",
    "a".repeat(201),
    null
  ]

  for (const title of titles as ReadonlyArray<string>) {
    it.effect(`refuses the title and the name ${JSON.stringify(String(title).slice(0, 10))}`, () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* refused({ ...base, sections: [section("one", { title })] })).reason, "invalid")
        assert.strictEqual((yield* refused({ ...base, name: title, sections: [] })).reason, "invalid")
      })
    )
  }

  it.effect("refuses equal keys of sibling sections, and accepts equal keys elsewhere", () =>
    Effect.gen(function* () {
      const error = yield* refused({ ...base, sections: [section("one"), section("two"), section("one")] })
      assert.strictEqual(error.reason, "duplicateKey")
      assert.include(error.message, '"one"')
      const below = section("above", { children: [section("one"), section("one")] })
      assert.strictEqual((yield* refused({ ...base, sections: [below] })).reason, "duplicateKey")
      yield* Prompt.make({ ...base, sections: [section("one", { children: [section("one")] }), section("two")] })
    })
  )

  it.effect("refuses two tools with the same name, and says their name and their sections", () =>
    Effect.gen(function* () {
      const deep = section("deep", { tools: [tool("same")] })
      const first = section("first", { tools: [tool("other"), tool("same")] })
      const error = yield* refused({ ...base, sections: [first, section("second", { children: [deep] })] })
      assert.strictEqual(error.reason, "duplicateTool")
      for (const part of ['"same"', '"first"', '"deep"']) assert.include(error.message, part)
      const twice = section("twice", { tools: [tool("same"), tool("same")] })
      assert.strictEqual((yield* refused({ ...base, sections: [twice] })).reason, "duplicateTool")
    })
  )

  it.effect("refuses a section that contains itself", () =>
    Effect.gen(function* () {
      const children: Array<Section.Section> = []
      const loop: Section.Section = { ...section("loop"), children }
      children.push({ ...section("middle"), children: [loop] })
      assert.strictEqual((yield* refused({ ...base, sections: [loop] })).reason, "invalid")
    })
  )
})

describe("overrides of descriptions", () => {
  const open = section("open", { tools: [tool("one"), tool("two")], acceptsOverrides: true })
  const closed = section("closed", { tools: [tool("three")] })
  const sections = [section("top", { children: [open] }), closed]

  it.effect("change the rendered tools they name, and no other tool", () =>
    Effect.gen(function* () {
      const prompt = yield* Prompt.make({ ...base, sections, overrides: { two: "Does it better." } })
      const { tools } = yield* Prompt.render(prompt)
      assert.deepStrictEqual(
        tools.map(({ definition }) => [definition.name, definition.description]),
        [
          ["one", "Does one."],
          ["two", "Does it better."],
          ["three", "Does three."]
        ]
      )
      assert.strictEqual(open.tools[1]!.description, "Does two.")
    })
  )

  const bad: ReadonlyArray<readonly [claim: string, overrides: Readonly<Record<string, string>>]> = [
    ["of a missing tool", { four: "Is not there." }],
    ["of a name that every JavaScript object has", { toString: "Is not there." }],
    ["of a section that accepts no overrides", { three: "Does it better." }],
    ["that are empty", { one: "" }],
    ["of two lines", { one: "a\nb" }],
    ["of 201 characters", { one: "a".repeat(201) }],
    ["that are not strings", { one: 7 as unknown as string }]
  ]

  for (const [claim, overrides] of bad) {
    it.effect(`${claim} are refused`, () =>
      Effect.map(refused({ ...base, sections, overrides }), ({ reason }) => assert.strictEqual(reason, "invalid"))
    )
  }
})

describe("the text of a prompt", () => {
  it.effect("has a heading for each section, whose level is the section's depth, and the unchanged templates", () =>
    Effect.gen(function* () {
      const third = section("third", { title: " Third ", template: "  indented *as it is*\n\n```\n# no heading\n```" })
      const second = section("second", { children: [third] })
      const prompt = yield* Prompt.make({ ...base, sections: [section("first", { children: [second] }), section("last")] })
      assert.strictEqual(
        (yield* Prompt.render(prompt)).text,
        [
          "## Title of first",
          "Text of first.",
          "### Title of second",
          "Text of second.",
          "#### Third",
          "  indented *as it is*\n\n```\n# no heading\n```",
          "## Title of last",
          "Text of last."
        ].join("\n\n")
      )
    })
  )

  it.effect("has no heading below the sixth level, and no text for an empty template", () =>
    Effect.gen(function* () {
      const deep = Array.from({ length: 8 }, (_, i) => `s${i}`).reduceRight<ReadonlyArray<Section.Section>>(
        (children, key) => [section(key, { template: "", children })],
        []
      )
      const { text } = yield* Prompt.render(yield* Prompt.make({ ...base, sections: deep }))
      const levels = text.split("\n\n").map((line) => /^#+/.exec(line)![0].length)
      assert.deepStrictEqual(levels, [2, 3, 4, 5, 6, 6, 6, 6])
    })
  )

  it.effect("is rendered with or without params", () =>
    Effect.gen(function* () {
      const greeting = section("greeting", {
        template: (params) => Effect.succeed(`Hello ${params["name"] === undefined ? "you" : String(params["name"])}`)
      })
      const prompt = yield* Prompt.make({ ...base, sections: [greeting] })
      assert.include((yield* Prompt.render(prompt)).text, "Hello you")
      assert.include((yield* Prompt.render(prompt, { name: "Ada" })).text, "Hello Ada")
    })
  )

  it.effect("fails with the error of a section that cannot be rendered", () =>
    Effect.gen(function* () {
      const error = new NotFound({ operation: "template", path: "a" })
      const prompt = yield* Prompt.make({ ...base, sections: [section("one", { template: () => Effect.fail(error) })] })
      assert.strictEqual(yield* Effect.flip(Prompt.render(prompt)), error)
    })
  )

  it.effect("fails if a section has become invalid since the prompt was made", () =>
    Effect.gen(function* () {
      const tools: Array<Tool.AnyDefinition> = [tool("one")]
      const changing: Section.Section = { ...section("changing"), tools }
      const prompt = yield* Prompt.make({ ...base, sections: [changing] })
      assert.lengthOf((yield* Prompt.render(prompt)).tools, 1)
      tools.push(tool("one"))
      assert.strictEqual((yield* Effect.flip(Prompt.render(prompt)))._tag, "PromptError")
    })
  )

  it.effect("is returned with the prompt, its deadline, and all tools with their sections", () =>
    Effect.gen(function* () {
      const inner = section("inner", { tools: [tool("two")] })
      const outer = section("outer", { tools: [tool("one")], children: [inner] })
      const deadline = DateTime.makeUnsafe(5000)
      const prompt = yield* Prompt.make({ ...base, sections: [outer], deadline })
      const rendered = yield* Prompt.render(prompt)
      assert.strictEqual(rendered.prompt, prompt)
      assert.deepStrictEqual(rendered.deadline, Option.some(deadline))
      assert.deepStrictEqual(
        rendered.tools.map(({ definition, section }) => [definition.name, section]),
        [
          ["one", outer],
          ["two", inner]
        ] as Array<[string, Section.Section]>
      )
      assert.isTrue(Object.isFrozen(rendered) && Object.isFrozen(rendered.tools))
    })
  )
})

describe("the workspace of a prompt", () => {
  it.effect("is the first section with a filesystem, in preorder", () =>
    Effect.gen(function* () {
      const files = (key: string) =>
        Effect.map(Section.FilesystemSection({ key, title: key, template: "", layer: counted().layer }), (made) => made)
      const [inner, later] = [yield* files("inner"), yield* files("later")]
      const outer = section("outer", { children: [section("deep", { children: [inner] })] })
      const prompt = yield* Prompt.make({ ...base, sections: [section("text"), outer, later] })
      assert.strictEqual(Option.getOrThrow(Prompt.workspace(prompt)), inner)
      const found = Option.getOrThrow(yield* Prompt.filesystem(prompt))
      assert.strictEqual(found, yield* inner.filesystem)
      assert.notStrictEqual(found, yield* later.filesystem)
    }).pipe(Effect.scoped)
  )

  it.effect("may be any object with the shape of a section with a filesystem", () =>
    Effect.gen(function* () {
      const made = yield* Effect.flatMap(
        Section.FilesystemSection({ key: "a", title: "A", template: "", layer: counted().layer }),
        ({ filesystem }) => filesystem
      )
      class Own {
        readonly key = "own"
        readonly title = "Own"
        readonly tools = []
        readonly children = []
        readonly acceptsOverrides = false
        readonly #text = "of my own"
        get filesystem() {
          return Effect.succeed(made)
        }
        template() {
          return Effect.succeed(this.#text)
        }
      }
      const prompt = yield* Prompt.make({ ...base, sections: [new Own()] })
      assert.strictEqual(Option.getOrThrow(yield* Prompt.filesystem(prompt)), made)
      assert.include((yield* Prompt.render(prompt)).text, "of my own")
    }).pipe(Effect.scoped)
  )

  it.effect("is missing if no section has a filesystem, and fails with the error of a section's filesystem", () =>
    Effect.gen(function* () {
      const plain = yield* Prompt.make({ ...base, sections: [section("one", { children: [section("two")] })] })
      assert.isTrue(Option.isNone(Prompt.workspace(plain)))
      assert.isTrue(Option.isNone(yield* Prompt.filesystem(plain)))
      const error = new NotFound({ operation: "open", path: "." })
      const broken = yield* Prompt.make({ ...base, sections: [section("one", { filesystem: Effect.fail(error) })] })
      assert.strictEqual(yield* Effect.flip(Prompt.filesystem(broken)), error)
      // Rendering does not need the filesystem.
      assert.include((yield* Prompt.render(broken)).text, "Text of one.")
    })
  )
})

describe("Prompt.sectionOf", () => {
  it.effect("finds the section of a tool at any depth, and none for a missing tool", () =>
    Effect.gen(function* () {
      const inner = section("inner", { tools: [tool("two")] })
      const prompt = yield* Prompt.make({ ...base, sections: [section("outer", { tools: [tool("one")], children: [inner] })] })
      assert.strictEqual(Option.getOrThrow(Prompt.sectionOf(prompt, "two")), inner)
      assert.strictEqual(Option.getOrThrow(Prompt.sectionOf(prompt, "one")).key, "outer")
      assert.isTrue(Option.isNone(Prompt.sectionOf(prompt, "three")))
    })
  )
})

describe("a clone of a prompt for another session", () => {
  it.effect("has clones of the sections that can be cloned, at any depth, and the same other sections", () =>
    Effect.gen(function* () {
      const other = yield* session()
      const plain = section("plain")
      const own = section("own", { clone: (session) => Effect.succeed(section("own", { session, template: "cloned" })) })
      const deadline = DateTime.makeUnsafe(9000)
      const holding = section("holding", { tools: [tool("one")], acceptsOverrides: true, children: [plain, own] })
      const prompt = yield* Prompt.make({ ...base, sections: [holding, plain], overrides: { one: "Other." }, deadline })
      const clone = yield* Prompt.clone(prompt, other)
      assert.deepStrictEqual(
        [clone.ns, clone.key, clone.overrides, clone.deadline],
        [prompt.ns, prompt.key, prompt.overrides, prompt.deadline]
      )
      assert.strictEqual(clone.sections[1], plain)
      assert.strictEqual(clone.sections[0]!.children[0], plain)
      assert.strictEqual(clone.sections[0]!.children[1]!.session, other)
      assert.strictEqual(clone.sections[0]!.tools, holding.tools)
      assert.include((yield* Prompt.render(clone)).text, "cloned")
      assert.isUndefined(prompt.sections[0]!.children[1]!.session)
    }).pipe(Effect.scoped)
  )

  it.effect("is not made if one section cannot be cloned, and releases the sections that are already cloned", () =>
    Effect.gen(function* () {
      const ended: Array<string> = []
      const first = section("first", {
        clone: () =>
          Effect.as(
            Effect.addFinalizer(() => Effect.sync(() => void ended.push("first"))),
            section("first")
          )
      })
      const error = new NotFound({ operation: "clone", path: "." })
      const prompt = yield* Prompt.make({ ...base, sections: [first, section("second", { clone: () => Effect.fail(error) })] })
      assert.strictEqual(yield* Effect.flip(Prompt.clone(prompt, yield* session())), error)
      assert.deepStrictEqual(ended, ["first"])
    }).pipe(Effect.scoped)
  )
})

describe("the context of a tool", () => {
  const adapter: Adapter.Adapter = { name: "test" }

  it.effect("is frozen, and its optional parts default to none", () =>
    Effect.gen(function* () {
      const prompt = yield* Prompt.make({ ...base, sections: [] })
      const own = yield* session()
      const context = ToolContext.make({ prompt, adapter, session: own })
      assert.isTrue(Object.isFrozen(context))
      assert.deepStrictEqual([context.prompt, context.adapter, context.session], [prompt, adapter, own] as const)
      const none: ReadonlyArray<Option.Option<unknown>> = [
        context.renderedPrompt,
        context.deadline,
        context.budgetTracker,
        context.filesystem
      ]
      assert.isTrue(none.every((one) => Option.isNone(one)))
      const rendered = yield* Prompt.render(prompt)
      const full = ToolContext.make({ ...context, renderedPrompt: Option.some(rendered) })
      assert.deepStrictEqual(full.renderedPrompt, Option.some(rendered))
    })
  )

  it.effect.prop(
    "has a budget that only decreases, never below zero",
    [Schema.Natural, Schema.Array(Schema.Int)],
    ([limit, amounts]) =>
      Effect.gen(function* () {
        const tracker = yield* ToolContext.budget(limit)
        let expected = limit
        for (const amount of amounts) {
          yield* tracker.spend(amount)
          expected = Math.max(0, expected - Math.max(0, amount))
          assert.strictEqual(yield* tracker.left, expected)
        }
        assert.strictEqual(tracker.limit, limit)
      })
  )

  it.effect("may have an unlimited budget, and no negative or NaN budget", () =>
    Effect.gen(function* () {
      const endless = yield* ToolContext.budget(Infinity)
      yield* endless.spend(1e9)
      assert.strictEqual(yield* endless.left, Infinity)
      yield* endless.spend(Number.NaN)
      assert.strictEqual(yield* endless.left, Infinity)
      for (const limit of [-1, Number.NaN, "7" as unknown as number]) {
        assert.instanceOf(yield* Effect.flip(ToolContext.budget(limit)), InvalidArgument)
      }
    })
  )
})

describe("Tool.make", () => {
  it.effect("assumes that a tool changes files and is not idempotent unless it says otherwise", () =>
    Effect.gen(function* () {
      const made = tool("ping")
      assert.deepStrictEqual([made.does, made.idempotent, made.examples], ["changes", false, [{}]])
      assert.deepStrictEqual(Object.keys(made.parameters.fields), [])
      assert.deepStrictEqual(yield* made.touches({}, undefined as never), [])
    })
  )

  it("keeps the given options", () => {
    const made = Tool.make({
      name: "greet",
      description: "Greets.",
      parameters: Schema.Struct({ name: Schema.String }),
      value: Schema.String,
      does: "reads",
      idempotent: true,
      examples: [{ name: "Ada" }],
      touches: ({ name }) => Effect.succeed([{ access: "read", path: name as never }]),
      handle: ({ name }) => Effect.succeed({ message: `Hello ${name}`, value: name })
    })
    assert.deepStrictEqual([made.does, made.idempotent, made.examples], ["reads", true, [{ name: "Ada" }]])
  })

  it("throws for an invalid name, an empty description and missing examples", () => {
    const parts = { description: "Does it.", value: Schema.String, handle: () => Effect.succeed({ message: "", value: "" }) }
    assert.throws(() => Tool.make({ ...parts, name: "Not a name" }))
    assert.throws(() => Tool.make({ ...parts, name: "named", description: "" }))
    // A tool without examples must work without parameters.
    assert.throws(() => Tool.make({ ...parts, name: "named", parameters: Schema.Struct({ needed: Schema.String }) }))
  })
})
