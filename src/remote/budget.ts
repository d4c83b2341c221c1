/**
 * Limits the answers that a server keeps in memory for one client. A client that sends requests and reads no answers would
 * otherwise fill the memory of the server.
 */
import type * as NodeStream from "node:stream"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Socket from "effect/socket/Socket"
import { withContents } from "./frames.ts"
import { maxContentBytes, maxPartLength } from "./protocol.ts"

/** The maximum number of bytes that `read`, `readString` and `readBytes` return in one message. */
export const maxReadBytes = 8 * 1024 * 1024

/** The maximum total size, in bytes, of unsent answers to one client. Further requests of `sizes` wait. */
const maxAnswers = 16 * 1024 * 1024

/** The maximum size of an answer, for each request that can have a large answer. */
const sizes: Readonly<Record<string, number>> = {
  read: maxReadBytes,
  readString: maxReadBytes,
  readBytes: maxReadBytes,
  list: maxPartLength,
  glob: 4 * maxPartLength,
  grep: 4 * maxPartLength,
  "port.list": maxPartLength,
  "port.listAll": maxPartLength,
  "port.read": maxContentBytes,
  "port.readMany": maxContentBytes,
  "port.readAt": maxContentBytes
}

type Handle = (payload: object, options?: { readonly client: object }) => Effect.Effect<unknown, unknown, unknown>

/**
 * Delays a request of `sizes` while its answer and the unsent answers to the same client may have more than `maxAnswers` bytes.
 * An answer releases its share of the budget when it has been sent.
 */
export const withBudgets = <Handlers extends object>(handlers: Handlers): Handlers => {
  const budgets = new WeakMap<object, Semaphore.Semaphore>()
  const budgetOf = (client: object): Semaphore.Semaphore => {
    let budget = budgets.get(client)
    if (budget === undefined) budgets.set(client, (budget = Semaphore.makeUnsafe(maxAnswers)))
    return budget
  }
  const bounded =
    (handle: Handle, size: number): Handle =>
    (payload, options) => {
      if (options === undefined) return handle(payload)
      const taken = budgetOf(options.client).takeScoped(size)
      const answer: unknown = handle(payload, options)
      return Stream.isStream(answer)
        ? (Stream.unwrap(Effect.as(taken, answer)) as never)
        : Effect.andThen(taken, answer as Effect.Effect<unknown, unknown, unknown>)
    }
  return Object.fromEntries(
    Object.entries(handlers as Record<string, Handle>).map(([tag, handle]) => [
      tag,
      sizes[tag] === undefined ? handle : bounded(handle, sizes[tag])
    ])
  ) as Handlers
}

/** The number of unsent bytes of a connection above which the server reads no more requests from it. */
const maxUnread = 1024 * 1024

/** Returns a socket that stops reading requests and finishing answers while the client does not read earlier answers. */
export const paced = (socket: Socket.Socket, connection: NodeStream.Writable): Socket.Socket => {
  const inner = withContents(socket)
  // Each waiting answer adds its own listeners.
  connection.setMaxListeners(0)
  const drained = Effect.callback<void>((resume) => {
    const events = ["drain", "close", "error"]
    const stop = (): void => {
      for (const event of events) connection.off(event, end)
    }
    const end = (): void => {
      stop()
      resume(Effect.void)
    }
    for (const event of events) connection.on(event, end)
    return Effect.sync(stop)
  })
  const isFull = (): boolean => connection.writableLength > maxUnread && !connection.destroyed
  const whenRead = Effect.suspend(() => (isFull() ? drained : Effect.void))
  return {
    ...inner,
    reader: Effect.map(inner.reader, (reader) => ({
      ...reader,
      pull: Effect.suspend(() => (isFull() ? Effect.andThen(drained, reader.pull) : reader.pull))
    })),
    writer: Effect.map(inner.writer, (writer) => ({
      ...writer,
      write: (chunk) => Effect.andThen(writer.write(chunk), whenRead)
    }))
  }
}
