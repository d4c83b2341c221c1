/** The official client of the Model Context Protocol, connected to servers of this process. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as HttpRouter from "effect/http/HttpRouter"

/** Connects over a pipe. Hanging up ends the server. */
export const overPipe = (server: Effect.Effect<void, unknown, Stdio.Stdio>): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.gen(function* () {
    const input = yield* Queue.unbounded<Uint8Array, Cause.Done>()
    const encoder = new TextEncoder()
    const transport: Transport = {
      start: () => Promise.resolve(),
      send: (message) => {
        Queue.offerUnsafe(input, encoder.encode(`${JSON.stringify(message)}\n`))
        return Promise.resolve()
      },
      close: () => {
        Queue.endUnsafe(input)
        return Promise.resolve()
      }
    }
    const stdio = Stdio.make({
      args: Effect.succeed([]),
      stdin: Stream.fromQueue(input),
      stdout: () => Sink.forEach((line) => Effect.sync(() => transport.onmessage?.(JSON.parse(String(line)) as never))),
      stderr: () => Sink.drain
    })
    const fiber = yield* Effect.forkChild(Effect.provideService(server, Stdio.Stdio, stdio))
    const client = new Client({ name: "test", version: "1" })
    yield* Effect.promise(() => client.connect(transport))
    yield* Effect.addFinalizer(() =>
      Effect.andThen(
        Effect.promise(() => client.close()),
        Effect.exit(Fiber.join(fiber))
      )
    )
    return client
  })

/** Serves over HTTP without a socket; each run of the returned effect connects another client. */
export const overHttp = <E>(
  server: Layer.Layer<never, E, HttpRouter.HttpRouter>,
  path: string
): Effect.Effect<Effect.Effect<Client>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { dispose, handler } = HttpRouter.toWebHandler(server.pipe(Layer.provideMerge(HttpRouter.layer)) as never, {
      disableLogger: true
    })
    yield* Effect.addFinalizer(() => Effect.promise(() => dispose()))
    return Effect.promise(async () => {
      const client = new Client({ name: "test", version: "1" })
      const fetch = (url: string | URL, init?: RequestInit) =>
        (handler as (request: Request) => Promise<Response>)(new Request(url, init))
      const transport = new StreamableHTTPClientTransport(new URL(`http://localhost${path}`), { fetch })
      await client.connect(transport as Transport)
      return client
    })
  })
