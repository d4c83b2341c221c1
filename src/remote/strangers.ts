/** Limits the number of bytes that a client may send over a WebSocket before it has sent the token. */
import type * as NodeHttp from "node:http"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as Socket from "effect/socket/Socket"
import * as Frames from "./frames.ts"

/** Tests the header `authorization` of a request. */
export type IsAuthorized = (authorization: string | undefined) => boolean

/** The maximum number of bytes that a client without the token may send over a connection. */
export const maxStrangerBytes = 64 * 1024

/** The time that a client has to send the token, in milliseconds. */
const maxStrangerMillis = 10_000

/** The time, in milliseconds, in which the server reads a message that has already arrived. */
const readingMillis = 50

/** Tests whether a message of a client contains the token. The message can have any form. */
const hasToken = (message: unknown, isAuthorized: IsAuthorized): boolean => {
  const headers = (message as { readonly headers?: unknown } | null)?.headers
  return (
    Array.isArray(headers) &&
    headers.some(
      (pair: unknown) =>
        Array.isArray(pair) && pair[0] === "authorization" && typeof pair[1] === "string" && isAuthorized(pair[1])
    )
  )
}

const guardReader = (reader: Socket.Reader, connection: NodeHttp.IncomingMessage["socket"], isAuthorized: IsAuthorized) => {
  const start = connection.bytesRead
  const parser = Frames.make({ acceptsLines: true }).makeUnsafe()
  let isStranger = true
  const end = () => void connection.destroy()
  const timer = setTimeout(end, maxStrangerMillis)
  let reading: NodeJS.Timeout | undefined
  const stop = () => {
    isStranger = false
    clearTimeout(timer)
    clearTimeout(reading)
    connection.off("data", watch)
    if (reading !== undefined) connection.resume()
  }
  const watch = () => {
    if (reading !== undefined || connection.bytesRead - start <= maxStrangerBytes) return
    // A message with the token may have arrived already.
    connection.pause()
    reading = setTimeout(end, readingMillis)
  }
  connection.on("data", watch).once("close", stop)
  const inspect = (frames: ReadonlyArray<Uint8Array | string>): void => {
    try {
      for (const frame of frames) {
        const messages = isStranger ? parser.decode(frame) : []
        if (messages.some((message) => hasToken(message, isAuthorized))) stop()
      }
    } catch {
      // Ignore a message that cannot be parsed. The server refuses such a message.
    }
  }
  return {
    ...reader,
    pull: Effect.tap(reader.pull, (frames) => Effect.sync(() => void (isStranger && inspect(frames))))
  }
}

/** Returns the request with its WebSocket replaced by the result of `wrap`. */
export const withSocket = (
  request: HttpServerRequest.HttpServerRequest,
  wrap: (socket: Socket.Socket, connection: NodeHttp.IncomingMessage["socket"]) => Socket.Socket
): HttpServerRequest.HttpServerRequest => {
  const { socket: connection } = request.source as NodeHttp.IncomingMessage
  const upgrade = Effect.map(
    Effect.suspend(() => request.upgrade),
    (socket) => wrap(socket, connection)
  )
  return new Proxy(request, {
    get: (target, key) => {
      if (key === "upgrade") return upgrade
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === "function" ? value.bind(target) : value
    }
  })
}

/** Returns the request with a WebSocket that is closed if its client sends too many bytes before the token. */
export const guarded = (
  request: HttpServerRequest.HttpServerRequest,
  isAuthorized: IsAuthorized
): HttpServerRequest.HttpServerRequest =>
  withSocket(request, (socket, connection) => ({
    ...socket,
    reader: Effect.map(socket.reader, (reader) => guardReader(reader, connection, isAuthorized))
  }))
