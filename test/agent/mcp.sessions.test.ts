/** Sessions of the HTTP server are limited in number and end when they are idle. The test controls the clock. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as McpServer from "../../src/agent/McpServer.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { memory } from "./changing.ts"

const initialize = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
}

const serving = Effect.fnUntraced(function* (options: McpServer.HttpOptions = {}) {
  const layer = McpServer.layerHttp(options).pipe(Layer.provide(Layer.succeed(Filesystem, yield* memory({}))))
  const app = yield* HttpRouter.toHttpEffect(layer)
  const answer = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
    yield* Effect.context<never>()
  )(app)
  const send = (method: string, body?: object, session?: string) =>
    Effect.promise(() =>
      answer(
        new Request("http://localhost/mcp", {
          method,
          headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            ...(session !== undefined && { "mcp-session-id": session })
          },
          ...(body !== undefined && { body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }) })
        })
      )
    )
  return {
    /** Begins a session and returns its id. */
    begin: Effect.map(send("POST", initialize), ({ headers, status }) => {
      assert.strictEqual(status, 200)
      return headers.get("mcp-session-id")!
    }),
    refused: Effect.map(send("POST", initialize), ({ status }) => status),
    ping: (session: string) => Effect.map(send("POST", { method: "ping" }, session), ({ status }) => status),
    end: (session: string) => Effect.map(send("DELETE", undefined, session), ({ status }) => status),
    call: (session: string, name: string) => send("POST", { method: "tools/call", params: { name, arguments: {} } }, session)
  }
})

describe("sessions over HTTP", () => {
  it.effect("are limited in number, and a new session ends the session that was idle for longest", () =>
    Effect.gen(function* () {
      const { begin, ping } = yield* serving({ maxSessions: 3 })
      const ids: Array<string> = []
      for (let i = 0; i < 50; i++) ids.push(yield* begin)
      const alive: Array<string> = []
      for (const id of ids) if ((yield* ping(id)) === 200) alive.push(id)
      assert.deepStrictEqual(alive, ids.slice(-3))
      assert.strictEqual(yield* ping(ids[0]!), 404)
    })
  )

  it.effect("end in the order of their last use, not of their creation", () =>
    Effect.gen(function* () {
      const { begin, ping } = yield* serving({ maxSessions: 2 })
      const [one, two] = [yield* begin, yield* begin]
      assert.strictEqual(yield* ping(one), 200)
      const three = yield* begin
      assert.deepStrictEqual([yield* ping(one), yield* ping(two), yield* ping(three)], [200, 404, 200])
    })
  )

  it.effect("end after the idle timeout without a request", () =>
    Effect.gen(function* () {
      const { begin, ping } = yield* serving({ sessionIdleTimeout: "1 hour" })
      const [idle, used] = [yield* begin, yield* begin]
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual(yield* ping(used), 200)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* ping(idle), yield* ping(used)], [404, 200])
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* ping(used), 404)
    })
  )

  it.effect("make room for new sessions when clients end them", () =>
    Effect.gen(function* () {
      const { begin, end, ping } = yield* serving({ maxSessions: 2 })
      const [one, two] = [yield* begin, yield* begin]
      assert.strictEqual(yield* end(two), 204)
      const three = yield* begin
      assert.deepStrictEqual([yield* ping(one), yield* ping(two), yield* ping(three)], [200, 404, 200])
    })
  )

  it.effect("do not end during a request, so a new session is refused with 503 if all are busy", () =>
    Effect.gen(function* () {
      const [started, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = Tool.make({
        name: "slow",
        description: "Waits.",
        value: Schema.Null,
        handle: () =>
          Effect.as(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(gate)), {
            message: "done",
            value: null
          })
      })
      const { begin, call, ping, refused } = yield* serving({
        maxSessions: 1,
        sessionIdleTimeout: "1 hour",
        extra: [slow]
      })
      const busy = yield* begin
      const running = yield* Effect.forkChild(call(busy, "slow"))
      yield* Deferred.await(started)
      yield* TestClock.adjust("2 hours")
      assert.strictEqual(yield* refused, 503)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(running)).status, 200)
      assert.strictEqual(yield* ping(busy), 200)
      const next = yield* begin
      assert.deepStrictEqual([yield* ping(busy), yield* ping(next)], [404, 200])
    })
  )
})

describe("clients without a session over HTTP", () => {
  const version = "2026-07-28"

  /** Serves clients that all have the same name and no session. */
  const serving = Effect.fnUntraced(function* (policy: Layer.Layer<never>) {
    const fs = yield* memory({ "a.txt": "one\n", "d/b.txt": "one\n" })
    const services = Layer.merge(Layer.succeed(Filesystem, fs), policy)
    const app = yield* HttpRouter.toHttpEffect(McpServer.layerHttp().pipe(Layer.provide(services)))
    const answer = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
      yield* Effect.context<never>()
    )(app)
    return (name: string, args: object) =>
      Effect.promise(async () => {
        const meta = {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {}
        }
        const headers = {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": version,
          "mcp-method": "tools/call",
          "mcp-name": name
        }
        const params = { name, arguments: args, _meta: meta }
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })
        const response = await answer(new Request("http://localhost/mcp", { method: "POST", headers, body }))
        return ((await response.json()) as { result: { isError: boolean; content: [{ text: string }] } }).result
      })
  })

  it.effect("never count as having read a file, because another client may have read it", () =>
    Effect.gen(function* () {
      const call = yield* serving(Policy.readBeforeWrite)
      for (const path of ["a.txt", "d/b.txt"]) assert.isFalse((yield* call("read_file", { path })).isError)
      for (const [tool, params] of [
        ["edit_file", { path: "a.txt", old_string: "one", new_string: "two" }],
        ["rm", { path: "d" }]
      ] as const) {
        const { content, isError } = yield* call(tool, params)
        assert.isTrue(isError, tool)
        assert.include(content[0].text, "This client has no session")
        assert.notInclude(content[0].text, "first")
      }
      assert.isFalse((yield* call("write_file", { path: "new.txt", content: "x" })).isError)
    })
  )

  it.effect("are treated as one client by the order policy if they have the same name", () =>
    Effect.gen(function* () {
      const call = yield* serving(Policy.order({ edit_file: ["read_file"] }))
      const edit = call("edit_file", { path: "a.txt", old_string: "one", new_string: "two" })
      assert.isTrue((yield* edit).isError)
      yield* call("read_file", { path: "a.txt" })
      assert.isFalse((yield* edit).isError)
    })
  )
})
