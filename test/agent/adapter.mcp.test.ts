import { afterAll, assert, describe, it } from "@effect/vitest"
import type * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpTest from "effect/ai/McpTest"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import { log } from "../../src/agent/ToolEvents.ts"
import { extras, four, seven, snapshotTools } from "../../src/agent/tools.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { IoError } from "../../src/model/FsError.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { checkpointOf, done, makeSession, Notes, section, tool, Value } from "./adapting.ts"
import { memory } from "./changing.ts"
import { overHttp, overPipe } from "./mcpClients.ts"
import { call, ground, scripts } from "./mcpSessions.ts"
import * as Queue from "effect/Queue"
import { planPrompt } from "../../src/agent/mcp/server.ts"
import { makeFlow } from "../../src/agent/mcp/stdio.ts"
import * as InMemory from "../../src/backends/InMemory.ts"

const promptOf = (sections: ReadonlyArray<Section.Section>, more: Partial<Prompt.Options> = {}) =>
  Prompt.make({ ns: "tests", key: "served", sections, ...more })

const connect = (sections: ReadonlyArray<Section.Section>, options: Partial<Adapter.McpOptions> = {}) =>
  Effect.gen(function* () {
    const session = options.session ?? (yield* makeSession)
    const { registrations } = Adapter.mcp(yield* promptOf(sections), { session, ...options })
    const client = yield* McpTest.makeClient(registrations as Layer.Layer<never, never, never>, {
      protocols: [McpProtocol.v2025_11_25]
    })
    return { client, session }
  })

const text = (result: { readonly content: ReadonlyArray<unknown> }): string =>
  (result.content[0] as { readonly text: string }).text

describe("a prompt that is served to the client of the official SDK", () => {
  const { remove, root } = ground()
  afterAll(remove)

  /** A section over a directory on disk, with snapshots of it. */
  const onDisk = Effect.gen(function* () {
    const fs = make(yield* PosixHost.make({ root }))
    const services = yield* Layer.build(Snapshots.layer.pipe(Layer.provide(Layer.succeed(Filesystem, fs))))
    return section("files", {
      filesystem: Effect.succeed(fs),
      tools: [...seven, ...extras, ...snapshotTools],
      services: Effect.succeed(services as Context.Context<never>)
    })
  })

  it.live("has the name, the text and the working tools of the prompt, and ends when the client disconnects", () =>
    Effect.gen(function* () {
      const prompt = yield* promptOf([yield* onDisk], { name: "The Workshop" })
      const session = yield* makeSession
      const client = yield* overPipe(Adapter.mcp(prompt, { session }).runStdio.pipe(Effect.provide(Policy.mountPoint(root))))
      assert.strictEqual(client.getServerVersion()?.name, "The Workshop")
      assert.strictEqual(client.getInstructions(), (yield* Prompt.render(prompt)).text)
      for (const script of Object.values(scripts)) yield* Effect.promise(() => script(client, root))
      assert.isAbove((yield* session.all(log)).length, 20)
    }).pipe(Effect.scoped, Effect.orDie)
  )

  it.live("shares one session among all clients over HTTP", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ "a.txt": "one\n" })
      const session = yield* makeSession
      const sections = [section("files", { filesystem: Effect.succeed(fs), tools: seven })]
      const layer = Adapter.mcp(yield* promptOf(sections), { session }).layerHttp({ path: "/here" })
      const connected = yield* overHttp(layer.pipe(Layer.provide(Policy.readBeforeWrite)), "/here")
      const [first, second] = [yield* connected, yield* connected]
      const edit = { path: "a.txt", old_string: "one", new_string: "two" }
      yield* Effect.promise(async () => {
        assert.isTrue((await call(first, "edit_file", edit)).isError)
        assert.isFalse((await call(first, "read_file", { path: "a.txt" })).isError)
        assert.isFalse((await call(second, "edit_file", edit)).isError)
      })
      assert.strictEqual(yield* fs.readString("a.txt"), "two\n")
      assert.strictEqual((yield* session.all(log)).length, 3)
      yield* Effect.promise(() => Promise.all([first.close(), second.close()]))
    }).pipe(Effect.scoped, Effect.orDie)
  )
})

describe("a served prompt", () => {
  const withFiles = Effect.map(memory({ "a.txt": "one\n" }), (fs) => ({
    fs,
    files: section("files", { filesystem: Effect.succeed(fs), tools: seven, template: "Mind the gap." })
  }))

  it.effect("serves its text as a prompt, and lists the tools of all sections with their overridden descriptions", () =>
    Effect.gen(function* () {
      const { files } = yield* withFiles
      const idle = tool("idle", () => Effect.succeed(done), { does: "reads" })
      const sections = [files, section("more", { tools: [idle], acceptsOverrides: true, template: "And the step." })]
      const prompt = yield* promptOf(sections, { overrides: { idle: "Waits for nothing." } })
      const { text: rendered } = yield* Prompt.render(prompt)
      const { registrations } = Adapter.mcp(prompt, { session: yield* makeSession })
      const client = yield* McpTest.makeClient(registrations as Layer.Layer<never>, { protocols: [McpProtocol.v2025_11_25] })
      const { tools } = yield* client.listTools()
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        [...seven.map(({ name }) => name), "idle"]
      )
      const served = tools.at(-1)!
      assert.strictEqual(served.description, "Waits for nothing.")
      assert.isTrue(served.annotations?.readOnlyHint)
      const { messages } = yield* client.getPrompt({ name: "workspace-guide" })
      assert.deepInclude(messages[0]!.content, { text: rendered })
      assert.include(rendered, "Mind the gap.")
      assert.include(rendered, "And the step.")
    })
  )

  it.effect("runs its tools in the session, with a checkpoint and a deadline", () =>
    Effect.gen(function* () {
      const { files, fs } = yield* withFiles
      const session = yield* makeSession
      const { checkpoint } = yield* checkpointOf(session, fs)
      const noting = tool("noting", () =>
        Effect.gen(function* () {
          const context = yield* ToolContext
          yield* Effect.orDie(context.session.dispatch(Notes, context.adapter.name))
          return done
        })
      )
      const { client } = yield* connect([{ ...files, tools: [...seven, noting] }], {
        session,
        checkpoint,
        deadline: DateTime.makeUnsafe(1000)
      })
      assert.isFalse((yield* client.callTool({ name: "noting", arguments: {} })).isError)
      assert.deepStrictEqual(yield* session.all(Notes), ["mcp"])
      const id = (yield* checkpoint.list).map(({ id }) => id).join()
      assert.isTrue(id.startsWith("pre:noting:"))
      const { callId } = (yield* session.all(log))[0]!
      assert.strictEqual(id, `pre:noting:${callId}`)
      const { TestClock } = yield* Effect.promise(() => import("effect/testing"))
      yield* TestClock.adjust(1000)
      const late = yield* client.callTool({ name: "ls", arguments: {} })
      assert.isTrue(late.isError)
      assert.include(text(late), "passed")
      const uri = "workspace:///a.txt"
      assert.include(JSON.stringify(yield* Effect.flip(client.readResource({ uri }))), "passed")
    }).pipe(Effect.orDie)
  )

  it.effect("serves the files of its workspace as resources, as far as the policies permit", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ "a.txt": "one\n", ".env": "secret" })
      const sections = [section("text"), section("files", { filesystem: Effect.succeed(fs), tools: four })]
      const { client, session } = yield* connect(sections)
      const { contents } = yield* client.readResource({ uri: "workspace:///a.txt" })
      assert.deepInclude(contents[0], { text: "one\n" })
      const root = yield* client.readResource({ uri: "workspace:///" })
      assert.notInclude(JSON.stringify(root), "secret")
      assert.notInclude(JSON.stringify(root), ".env")
      const ref = { type: "ref/resource", uri: "workspace:///{+path}" } as const
      const { completion } = yield* client.complete({ ref, argument: { name: "path", value: "a" } })
      assert.deepStrictEqual(completion.values, ["a.txt"])
      assert.deepStrictEqual(
        (yield* session.all(log)).map(({ tool }) => tool),
        ["read_resource", "read_resource", "complete_path"]
      )
    }).pipe(Effect.provide(Policy.access({ deny: { read: ".env" } })))
  )

  it.effect("has no resources without a filesystem, although tools that need no filesystem work", () =>
    Effect.gen(function* () {
      const free = tool("free", () => Effect.succeed(done), { needsFilesystem: false })
      const clock = Tool.make({
        name: "clock",
        description: "Tells the time.",
        value: Value,
        handle: () => Effect.succeed(done)
      })
      const { client } = yield* connect([section("text", { tools: [free, clock, ...four] })])
      assert.deepStrictEqual((yield* client.listTools()).tools.map(({ name }) => name)[0], "free")
      assert.isFalse((yield* client.callTool({ name: "free", arguments: {} })).isError)
      assert.isFalse((yield* client.callTool({ name: "clock", arguments: {} })).isError)
      const listed = yield* client.callTool({ name: "list_directory", arguments: {} })
      assert.isTrue(listed.isError)
      assert.include(text(listed), "No filesystem available")
      const resources = yield* Effect.exit(client.listResources())
      assert.notInclude(JSON.stringify(resources), "workspace:///")
    })
  )

  it.effect("lists no tool that a policy hides", () =>
    Effect.gen(function* () {
      const { files } = yield* withFiles
      const { client } = yield* connect([files])
      const { tools } = yield* client.listTools()
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["ls", "read_file", "glob", "grep"]
      )
      const written = yield* Effect.flip(client.callTool({ name: "write_file", arguments: { path: "a", content: "" } }))
      assert.strictEqual(written.code, -32_602)
    }).pipe(Effect.provide(Policy.readOnly))
  )

  it.effect("fails with the error of the section that cannot be rendered", () =>
    Effect.gen(function* () {
      const error = new IoError({ operation: "open", path: "", detail: "broken", code: "EIO" })
      const prompt = yield* promptOf([section("files", { filesystem: Effect.fail(error), tools: seven })])
      const { runStdio } = Adapter.mcp(prompt, { session: yield* makeSession })
      const stdio = Stdio.make({
        args: Effect.succeed([]),
        stdin: Stream.never,
        stdout: () => Sink.drain,
        stderr: () => Sink.drain
      })
      assert.strictEqual(yield* Effect.flip(Effect.provideService(runStdio, Stdio.Stdio, stdio)), error)
    })
  )

  it.live("interrupts the running call of a client that hangs up, and rolls it back", () =>
    Effect.gen(function* () {
      const { files, fs } = yield* withFiles
      const session = yield* makeSession
      const { checkpoint } = yield* checkpointOf(session, fs)
      const reached = yield* Deferred.make<void>()
      const stuck = tool("stuck", ({ filesystem }) =>
        Effect.andThen(Effect.andThen(filesystem.write("a.txt", "changed"), Deferred.succeed(reached, undefined)), Effect.never)
      )
      const prompt = yield* promptOf([{ ...files, tools: [stuck] }])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* overPipe(Adapter.mcp(prompt, { session, checkpoint }).runStdio)
          client.callTool({ name: "stuck", arguments: {} }).catch(() => {})
          yield* Deferred.await(reached)
        })
      )
      assert.strictEqual(yield* fs.readString("a.txt"), "one\n")
      assert.deepStrictEqual(
        (yield* session.all(log)).map(({ success, tool }) => [tool, success]),
        [["stuck", false]]
      )
    }).pipe(Effect.orDie)
  )
})

describe("a served prompt", () => {
  it.live("reveals neither the names nor the changes of files that the policies of its section hide", () =>
    Effect.gen(function* () {
      const files = yield* Section.FilesystemSection({
        key: "files",
        title: "Files",
        template: "",
        tools: seven,
        layer: Layer.merge(InMemory.layer(), Policy.access({ deny: { read: "*.env" } }))
      })
      const prompt = yield* Prompt.make({ ns: "tests", key: "served", sections: [files] })
      const options = { session: yield* makeSession }
      const plan = yield* planPrompt(Adapter.mcp(prompt, options), prompt, options)(makeFlow())
      const both = Layer.merge(plan.registrations, plan.changes(Effect.void)) as Layer.Layer<never>
      const client = yield* McpTest.makeClient(both, { protocols: [McpProtocol.v2025_11_25] })
      for (const name of ["secret.env", "a.txt"]) yield* client.subscribe({ uri: `workspace:///${name}` })
      const fs = yield* files.filesystem
      const told: Array<unknown> = []
      for (let i = 0; told.length === 0 && i < 1000; i++) {
        for (const name of ["secret.env", "a.txt"]) yield* fs.write(name, `${i}`, { mode: "overwrite" })
        yield* client.ping
        const notices = yield* Queue.clear(client.notifications)
        told.push(...notices.filter(({ method }) => method === "notifications/resources/updated").map(({ payload }) => payload))
      }
      assert.deepStrictEqual(told[0], { uri: "workspace:///a.txt" })
      assert.notInclude(JSON.stringify(told), "secret")
      assert.notInclude(JSON.stringify(yield* client.readResource({ uri: "workspace:///" })), "secret")
    }).pipe(Effect.scoped, Effect.orDie)
  )
})
