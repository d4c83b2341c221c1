import * as Effect from "effect/Effect"
import { connect, createServer, type Server, type Socket } from "node:net"

/** Returns the path of a Unix socket from its address. */
export const pathOf = (address: string): string => address.slice("unix:".length)

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
