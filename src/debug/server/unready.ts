import { createServer, type Server } from "node:http"

/** Makes a server that answers 503 until the routes are ready, so that early clients do not wait. */
export const unreadyServer = (): Server => {
  const server = createServer((_, response) => {
    if (server.listenerCount("request") === 1) response.writeHead(503, { "Retry-After": "1" }).end()
  })
  return server
}
