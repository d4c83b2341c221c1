/** Tests the socket of a client whose connection is lost. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
import * as NodeSocket from "@effect/platform-node-shared/NodeSocket"
import { connect, createServer, type Socket as Connection } from "node:net"
import { layerSocketClient } from "../../src/remote/frames.ts"

const turns = Effect.promise(async () => {
  for (let nth = 0; nth < 50; nth++) await new Promise((resolve) => setImmediate(resolve))
})

describe("the socket of a client", () => {
  it.live("writes to a new connection, although a write to the lost connection never ended", () =>
    Effect.gen(function* () {
      const peers: Array<Connection> = []
      const received: Array<string> = []
      const server = createServer((peer) => {
        peers.push(peer)
        peer.on("error", () => {}).on("data", (bytes: Buffer) => received.push(bytes.toString()))
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve())))
      const { port } = server.address() as { readonly port: number }
      const open = Effect.promise(
        () =>
          new Promise<Connection>((resolve) => {
            const connection = connect(port, "127.0.0.1", () => resolve(connection))
            connection.on("error", () => {})
          })
      )
      const layer = layerSocketClient(Layer.effect(Socket.Socket, NodeSocket.fromDuplex(open)))
      const socket = Context.get(yield* Layer.build(layer), Socket.Socket)
      const writer = yield* socket.writer
      const first = yield* Scope.make()
      yield* Scope.provide(socket.reader, first)
      yield* turns
      peers[0]!.resetAndDestroy()
      yield* turns
      // Node reports the end of a connection once, so this write waits forever.
      const lost = yield* Effect.forkChild(writer.write("lost"), { startImmediately: true })
      yield* turns
      yield* Scope.close(first, Exit.void)
      const second = yield* Scope.make()
      yield* Scope.provide(socket.reader, second)
      const next = yield* Effect.forkChild(writer.write("next"), { startImmediately: true })
      yield* turns
      assert.deepStrictEqual(received, ["next"])
      yield* Fiber.join(next)
      yield* Fiber.interrupt(lost)
      yield* Scope.close(second, Exit.void)
      server.close()
    }).pipe(Effect.scoped)
  )
})
