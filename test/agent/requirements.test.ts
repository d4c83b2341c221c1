/** The services that tools need: they appear in the types of runs, sections and prompts, and a call can use them. */
import { assert, describe, it } from "@effect/vitest"
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as McpServer from "../../src/agent/McpServer.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { Sandbox } from "../../src/filesystem/Sandbox.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import { makeSession } from "./adapting.ts"
import { memory } from "./changing.ts"
import { overHttp, overPipe } from "./mcpClients.ts"

class Weather extends Context.Service<Weather, string>()("test/Weather") {}
class Tide extends Context.Service<Tide, string>()("test/Tide") {}

const Value = Schema.Struct({})

/** Builds a tool that returns the value of its service. */
const asking = <const Name extends string, I>(name: Name, service: Context.Key<I, string>) =>
  Tool.make({
    name,
    description: "Says what its service says.",
    value: Value,
    does: "reads",
    handle: () => Effect.map(service, (message) => ({ message, value: {} }))
  })

const weather = asking("weather", Weather)
const tide = asking("tide", Tide)
const sun = Effect.provideService(Weather, "sun")
const free = Tool.make({
  name: "free",
  description: "Needs nothing.",
  value: Value,
  handle: () => Effect.succeed({ message: "free", value: {} })
})

const named = { ns: "tests", key: "needing" }
const text = { title: "Outside", template: "" }
const adapter = Adapter.make("test")

/** Accepts only an effect that needs no services except a scope. The next functions do the same for other types. */
const scoped = (_: Effect.Effect<unknown, unknown, Scope.Scope>) => undefined
const piped = (_: Effect.Effect<void, unknown, Stdio.Stdio>) => undefined
const routed = (_: Layer.Layer<never, unknown, HttpRouter.HttpRouter>) => undefined
const overFiles = (_: Effect.Effect<void, unknown, Stdio.Stdio | Filesystem>) => undefined
const bare = (_: Section.Section) => undefined

/**
 * Checks types only: `npm run types` compiles it, and nothing calls it. The line after each directive compiles only when a requirement is lost.
 */
export const types = Effect.fnUntraced(function* () {
  const session = yield* makeSession
  const options = { session }
  const outside = Section.make({ key: "outside", ...text, tools: [weather, free, tide] })

  // @ts-expect-error a table of tools without services
  const table: ReadonlyArray<Tool.AnyDefinition> = [free, weather]
  const needing: ReadonlyArray<Tool.AnyDefinition<Weather>> = [free, weather]
  // @ts-expect-error Weather and Tide
  bare(outside)
  // @ts-expect-error Weather
  bare(Section.make({ key: "above", ...text, children: [Section.make({ key: "below", ...text, tools: needing })] }))
  // @ts-expect-error Weather
  bare(Section.MarkdownSection({ ...text, tools: [weather] }))
  // @ts-expect-error a hand-written section whose tool needs Weather
  bare({ key: "own", ...text, tools: [weather], children: [], acceptsOverrides: false })

  // @ts-expect-error Tide
  const partly: Prompt.Prompt<Weather> = yield* Prompt.make({ ...named, sections: [outside] })
  const prompt: Prompt.Prompt<Weather | Tide> = yield* Prompt.make({ ...named, sections: [outside] })
  const template: Prompt.Template<Weather | Tide> = yield* Prompt.template({ ...named, sections: [outside] })
  const again: Prompt.Prompt<Weather | Tide> = yield* Prompt.make({ ...template, overrides: {} })
  // @ts-expect-error Weather and Tide
  const copy: Prompt.Prompt = yield* Prompt.clone(prompt, session)

  // @ts-expect-error Weather and Tide
  scoped(Adapter.run(adapter, prompt, options))
  // @ts-expect-error Tide
  scoped(Adapter.run(adapter, prompt, options).pipe(sun))
  scoped(Adapter.run(adapter, prompt, options).pipe(sun, Effect.provideService(Tide, "low")))
  // @ts-expect-error Weather and Tide
  scoped(Adapter.scripted([]).run(prompt, options))
  // @ts-expect-error Weather and Tide
  piped(Adapter.mcp(prompt, options).runStdio)
  piped(Adapter.mcp(prompt, options).runStdio.pipe(sun, Effect.provideService(Tide, "low")))
  // @ts-expect-error Weather and Tide
  routed(Adapter.mcp(prompt, options).layerHttp())
  // @ts-expect-error Weather and Tide
  const server: Adapter.Mcp = Adapter.mcp(prompt, options)

  // @ts-expect-error Weather
  overFiles(McpServer.runStdio({ extra: [free, weather] }))
  overFiles(McpServer.runStdio({ extra: [free, weather] }).pipe(sun))
  overFiles(McpServer.runStdio({ extra: [free] }))
  overFiles(McpServer.runStdio())
  // @ts-expect-error Weather
  routed(McpServer.layerHttp({ extra: [weather] }).pipe(Layer.provide(InMemory.layer())))
  // @ts-expect-error Weather
  const layer: Layer.Layer<never, never, Filesystem | Stdio.Stdio> = McpServer.layerStdio({ extra: [weather] })

  for (const make of [Section.VfsSection, Section.VfsToolsSection, Section.WorkspaceSection]) {
    bare(yield* make())
    bare(yield* make({ tools: [free] }))
    // @ts-expect-error Weather
    bare(yield* make({ tools: [free, weather] }))
    // @ts-expect-error Weather
    bare(yield* make({ children: [Section.make({ key: "below", ...text, tools: [weather] })] }))
  }
  bare(yield* Section.WorkspaceSection({ tools: "none" }))

  // The section provides these services, so they are no requirement of the section.
  const own = asking("own", Context.Service<Snapshots, string>(Snapshots.key))
  bare(yield* Section.VfsSection({ tools: [own] }))
  const services = Effect.succeed(Context.make(Weather, "rain"))
  bare(Section.make({ key: "rain", ...text, tools: [weather], services }))
  // @ts-expect-error Tide
  bare(Section.make({ key: "rain", ...text, tools: [weather, tide], services }))
  // @ts-expect-error its services are for its own tools
  bare(Section.make({ key: "rain", ...text, services, children: [Section.make({ key: "below", ...text, tools: [weather] })] }))
  const files = InMemory.layer()
  const both = Layer.merge(files, Layer.succeed(Weather, "snow"))
  bare(yield* Section.FilesystemSection({ key: "files", ...text, layer: both, tools: [weather] }))
  // @ts-expect-error Weather
  bare(yield* Section.FilesystemSection({ key: "files", ...text, layer: files, tools: [weather] }))
  const contained = asking("contained", Context.Service<Sandbox, string>(Sandbox.key))
  const podman = { image: "busybox" }
  bare(yield* Section.PodmanSection({ ...podman, tools: [contained] }))
  // @ts-expect-error Sandbox
  bare(yield* Section.WorkspaceSection({ tools: [contained] }))
  // @ts-expect-error Weather
  bare(yield* Section.PodmanSandboxSection({ ...podman, tools: [weather] }))

  // Every call of a tool in a prompt has these services.
  const given = Tool.make({
    name: "given",
    description: "Looks around.",
    value: Value,
    handle: () => Effect.as(Effect.all([Filesystem, ToolContext]), { message: "", value: {} })
  })
  bare(Section.make({ key: "given", ...text, tools: [given] }))
  const looking = { key: "looking", ...text, tools: [given], children: [], acceptsOverrides: false }
  scoped(Effect.flatMap(Prompt.make({ ...named, sections: [looking] }), (prompt) => Adapter.run(adapter, prompt, options)))
  // @ts-expect-error there is no prompt
  overFiles(McpServer.runStdio({ extra: [given] }))
  return { table, partly, again, copy, server, layer }
})

const called = (client: Client, name: string) =>
  Effect.map(
    Effect.promise(() => client.callTool({ name, arguments: {} })),
    ({ content, isError }) => ({ isError, text: (content as ReadonlyArray<{ readonly text: string }>)[0]?.text })
  )

const inside = Section.make({ key: "inside", ...text, tools: [tide], acceptsOverrides: true })
const nested = Section.make({ key: "nested", ...text, tools: [weather, free], children: [inside] })

const promptOf = Prompt.make({ ...named, sections: [nested], overrides: { tide: "Tells the tide." } })

const low = Effect.provideService(Tide, "low")

describe("a tool that needs a service", () => {
  it.effect(
    "gets the service from the context of its run, in sections at any depth, and if the prompt overrides its description",
    () =>
      Effect.gen(function* () {
        const run = yield* Adapter.run(adapter, yield* promptOf, { session: yield* makeSession }).pipe(sun, low)
        assert.deepStrictEqual(
          run.tools.map(({ definition }) => definition.description),
          ["Says what its service says.", "Needs nothing.", "Tells the tide."]
        )
        assert.strictEqual((yield* run.call("weather", {})).message, "sun")
        assert.strictEqual((yield* run.call("tide", {})).message, "low")
        const kit = yield* Adapter.toolkit(run)
        const answers = yield* Stream.runCollect(yield* kit.handle("weather", {}))
        assert.deepStrictEqual(
          answers.map(({ result }) => result),
          [{ message: "sun", success: true, value: {} }]
        )
      })
  )

  it.effect("gets the service in a clone of the prompt and in a scripted run", () =>
    Effect.gen(function* () {
      const session = yield* makeSession
      const clone = yield* Prompt.clone(yield* promptOf, session)
      const script = [
        { tool: "weather", input: {} },
        { tool: "tide", input: {} }
      ]
      const turns = yield* Adapter.scripted(script).run(clone, { session }).pipe(sun, low)
      assert.deepStrictEqual(
        turns.map(({ result }) => result.message),
        ["sun", "low"]
      )
    })
  )

  it.effect("gets the service from its own section rather than from the run", () =>
    Effect.gen(function* () {
      const layer = Layer.merge(InMemory.layer(), Layer.succeed(Weather, "snow"))
      const files = yield* Section.FilesystemSection({ key: "files", ...text, layer, tools: [weather] })
      const session = yield* makeSession
      const prompt = yield* Prompt.make({ ...named, sections: [files] })
      const run = yield* Adapter.run(adapter, prompt, { session }).pipe(sun)
      assert.strictEqual((yield* run.call("weather", {})).message, "snow")
    })
  )

  it.live("gets the service in a prompt that is served over stdio and over HTTP", () =>
    Effect.gen(function* () {
      const server = Adapter.mcp(yield* promptOf, { session: yield* makeSession })
      const piped = yield* overPipe(server.runStdio.pipe(sun, low))
      const http = server
        .layerHttp()
        .pipe(Layer.provide(Layer.succeed(Weather, "sun")), Layer.provide(Layer.succeed(Tide, "low")))
      const routed = yield* yield* overHttp(http, "/mcp")
      for (const client of [piped, routed]) {
        assert.deepStrictEqual(yield* called(client, "weather"), { isError: false, text: "sun" })
        assert.deepStrictEqual(yield* called(client, "tide"), { isError: false, text: "low" })
      }
    }).pipe(Effect.scoped)
  )

  it.live("gets the service as an extra tool of a server over stdio and over HTTP", () =>
    Effect.gen(function* () {
      const fs = Layer.succeed(Filesystem, yield* memory({}))
      const services = Layer.merge(fs, Layer.succeed(Weather, "sun"))
      const options = { extra: [weather, free] }
      const piped = yield* overPipe(McpServer.runStdio(options).pipe(Effect.provide(services)))
      const routed = yield* yield* overHttp(McpServer.layerHttp(options).pipe(Layer.provide(services)), "/mcp")
      for (const client of [piped, routed]) {
        assert.deepStrictEqual(yield* called(client, "weather"), { isError: false, text: "sun" })
      }
    }).pipe(Effect.scoped)
  )
})
