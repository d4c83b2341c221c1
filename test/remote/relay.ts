import * as Effect from "effect/Effect"
import { connect, createServer, type Server, type Socket } from "node:net"
import { unixAddress } from "./transports.ts"

/** Returns the path of a Unix socket from its address. */
export const pathOf = (address: string): string => address.slice("unix:".length)

/** A server that passes each connection to `handle`. Returns its address. */
export const impostor = (handle: (socket: Socket) => void) =>
  Effect.gen(function* () {
    const address = yield* unixAddress
    const open = new Set<Socket>()
    yield* Effect.acquireRelease(
      Effect.promise(
        () =>
          new Promise<Server>((resolve) => {
            const server = createServer((socket) => {
              open.add(socket.on("error", () => {}))
              handle(socket)
            })
            server.listen(pathOf(address), () => resolve(server))
          })
      ),
      (server) =>
        Effect.promise(() => {
          for (const socket of open) socket.destroy()
          return new Promise((resolve) => server.close(resolve))
        })
    )
    return address
  })

/** A relay in front of a server, whose connections a test can cut. */
export const relay = (to: string | (() => string), at: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const open = new Set<Socket>()
      let refusals = 0
      let refused = (): void => undefined
      const server: Server = createServer((inner) => {
        if (refusals > 0) {
          refusals--
          return void inner
            .on("error", () => undefined)
            .once("data", () => {
              refused()
              inner.destroy()
            })
        }
        const outer = connect({ path: typeof to === "string" ? to : to() })
        for (const [socket, other] of [
          [inner, outer],
          [outer, inner]
        ] as const) {
          open.add(socket)
          socket.on("data", (bytes) => other.write(bytes))
          socket.on("error", () => other.destroy())
          socket.on("close", () => {
            open.delete(socket)
            other.destroy()
          })
        }
      })
      await new Promise<void>((resolve) => server.listen(at, resolve))
      const forEach = (run: (socket: Socket) => void) => Effect.sync(() => [...open].forEach(run))
      return {
        server,
        /** Ends each of the next connections when the client sends its first bytes. */
        refuse: (count: number, onRefused: () => void) =>
          Effect.sync(() => {
            refusals = count
            refused = onRefused
          }),
        cut: forEach((socket) => socket.destroy()),
        hold: forEach((socket) => socket.pause()),
        goOn: forEach((socket) => socket.resume())
      }
    }),
    ({ cut, server }) =>
      Effect.andThen(
        cut,
        Effect.promise(() => new Promise((resolve) => server.close(resolve)))
      )
  )
