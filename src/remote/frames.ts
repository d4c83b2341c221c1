/**
 * Encodes messages as bytes: a control message in JSON, and the bytes of its `Uint8Array`s as they are.
 *
 * A frame is:
 *
 * - 4 bytes: `fs`, the version of the protocol, and a line feed. So each side recognizes a different version by the first
 *   bytes that it receives. A server of version 1 reads lines of JSON, and refuses this line immediately.
 * - 4 bytes, big-endian: the length of the JSON in bytes.
 * - 4 bytes, big-endian: the length of the content in bytes.
 * - The JSON. Each `Uint8Array` is replaced with `{"$bytes":LENGTH}`.
 * - The content: the bytes of all `Uint8Array`s, in their order.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as Socket from "effect/socket/Socket"
import { concatenate } from "../runtime/buffer.ts"
import { maxDepth, toJson } from "./bytes.ts"
import { codecFor } from "./exits.ts"
import { version } from "./protocol.ts"

const headerBytes = 12
const lineFeed = 0x0a
const openingBrace = 0x7b

/** The bytes with which each frame begins. */
const magic = new TextEncoder().encode(`fs${version}\n`)

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** The maximum size of a frame in bytes. The characters of the longest match may have three bytes each. */
export const maxFrameBytes = 48 * 1024 * 1024

/** The maximum number of bytes that a parser reserves for each received byte. So a forged length cannot reserve much memory. */
const reservedPerByte = 16
const minReserved = 4096

/** The maximum size of content in bytes that is copied, instead of being kept as a view or sent separately. */
const maxCopied = 64 * 1024

/** The error for a message that is not a frame. The bytes after the message have no meaning. */
class FrameError extends Error {
  override readonly name: string = "FrameError"
}

/** The error that ends a connection without an answer, because effect/rpc closes the socket if a parser fails with this tag. */
class Broken extends FrameError {
  readonly _tag = "MaxBufferSizeExceeded"
}

const otherVersion = (theirs: string): FrameError =>
  new FrameError(
    `the peer speaks version ${theirs} of the protocol, and this program speaks version ${version}; ` +
      "use the same version of fs-algebra on both sides"
  )

/** Returns the error for bytes that cannot begin a frame. */
const refusalOf = (bytes: Uint8Array): FrameError | undefined => {
  const length = Math.min(bytes.length, magic.length)
  for (let at = 0; at < length; at++) {
    if (bytes[at] === magic[at]) continue
    if (at === 0 && bytes[0] === openingBrace) return otherVersion("1")
    if (at === 2 && bytes[3] === lineFeed) return otherVersion(String.fromCharCode(bytes[2]!))
    return new FrameError("the peer does not speak the protocol of fs-algebra")
  }
  return undefined
}

/** The content of frames that are written in two parts. The key is the first part: the header and the JSON. */
const contents = new WeakMap<Uint8Array, ReadonlyArray<Uint8Array>>()

const encodeFrame = (message: unknown, separatesContent: boolean): Uint8Array => {
  const { content, json, size } = toJson(message)
  const text = encoder.encode(json)
  const isSeparate = separatesContent && size > maxCopied
  const frame = new Uint8Array(headerBytes + text.length + (isSeparate ? 0 : size))
  frame.set(magic)
  const view = new DataView(frame.buffer)
  view.setUint32(4, text.length)
  view.setUint32(8, size)
  frame.set(text, headerBytes)
  if (isSeparate) {
    contents.set(frame, content)
    return frame
  }
  let at = headerBytes + text.length
  for (const bytes of content) {
    frame.set(bytes, at)
    at += bytes.length
  }
  return frame
}

/** Returns a socket that writes the first part of a frame and then its content. So the content is not copied. */
export const withContents = (socket: Socket.Socket): Socket.Socket => ({
  ...socket,
  writer: Effect.map(socket.writer, (writer) => ({
    ...writer,
    write: (chunk) => {
      const content = chunk instanceof Uint8Array ? contents.get(chunk) : undefined
      return content === undefined ? writer.write(chunk) : writer.writeAll([chunk as Uint8Array, ...content])
    }
  }))
})

/**
 * Returns a socket that writes one message at a time. Each write that waits for a full socket adds listeners, and Node
 * prints a warning above ten.
 */
const oneAtATime = (socket: Socket.Socket): Socket.Socket => {
  let semaphore = Semaphore.makeUnsafe(1)
  // A write that begins after a connection was lost may never end. Such a write must not block the writes to the next connection.
  const renew = Effect.sync(() => void (semaphore = Semaphore.makeUnsafe(1)))
  return {
    ...socket,
    reader: Effect.andThen(
      Effect.addFinalizer(() => renew),
      socket.reader
    ),
    writer: Effect.map(socket.writer, (writer) => ({
      ...writer,
      write: (chunk) => Effect.suspend(() => semaphore.withPermit(writer.write(chunk))),
      writeAll: (chunks) => Effect.suspend(() => semaphore.withPermit(writer.writeAll(chunks)))
    }))
  }
}

/** Replaces the placeholders of a message with the bytes of its content, in order. */
class Places {
  readonly #content: Uint8Array
  #used = 0
  constructor(content: Uint8Array) {
    this.#content = content
  }
  fill(value: object, depth = 0): object {
    if ("$bytes" in value) return this.#take(value.$bytes)
    if (depth === maxDepth) return value
    const record = value as Record<string, unknown>
    for (const key of Object.keys(record)) {
      const child = record[key]
      if (typeof child === "object" && child !== null) record[key] = this.fill(child, depth + 1)
    }
    return value
  }
  /** Takes the next bytes. Each byte is taken once, so a message cannot use more bytes than it has sent. */
  #take(length: unknown): Uint8Array {
    const end = this.#used + (length as number)
    if (!Number.isSafeInteger(length) || (length as number) < 0 || end > this.#content.length) {
      throw new FrameError("a message refers to bytes that it does not contain")
    }
    const bytes = this.#content.subarray(this.#used, end)
    this.#used = end
    return bytes
  }
}

const decodeFrame = (frame: Uint8Array, jsonBytes: number): unknown => {
  const contentAt = headerBytes + jsonBytes
  const message: unknown = JSON.parse(decoder.decode(frame.subarray(headerBytes, contentAt)))
  if (typeof message !== "object" || message === null) throw new FrameError("a message is not an object")
  if (contentAt === frame.length) return message
  // Copy the content unless the frame is long and fills its buffer: a view would keep the other messages of the buffer in
  // memory. `slice` of Node's Buffer is a view too.
  const isLong = frame.length === frame.buffer.byteLength && frame.length > maxCopied
  const content = frame.subarray(contentAt)
  return new Places(isLong ? content : new Uint8Array(content)).fill(message)
}

/** The bytes of a frame that is not complete. */
class Incomplete {
  #bytes = new Uint8Array(0)
  #used = 0
  get length(): number {
    return this.#used
  }
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#used)
  }
  /** Adds bytes of a frame, whose length is known as soon as its header is complete. */
  add(bytes: Uint8Array, frameBytes: number): void {
    const used = this.#used + bytes.length
    if (used > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(used, Math.min(frameBytes, Math.max(minReserved, reservedPerByte * used))))
      grown.set(this.bytes)
      this.#bytes = grown
    }
    this.#bytes.set(bytes, this.#used)
    this.#used = used
  }
  clear(): void {
    this.#bytes = new Uint8Array(0)
    this.#used = 0
  }
}

/** The minimum size of received bytes that are released at once, instead of by the next garbage collection. */
const minReleased = 16 * 1024

/**
 * Releases received bytes whose content has been copied. V8 counts their memory like its own heap, and would otherwise collect
 * the whole heap often while a stream arrives.
 */
const release = (bytes: Uint8Array): void => {
  const { buffer } = bytes
  if (bytes.length === buffer.byteLength && bytes.length >= minReleased && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

type Lengths = { readonly jsonBytes: number; readonly frameBytes: number }

const makeParser = ({
  acceptsLines = false,
  separatesContent = false,
  maxBytes = maxFrameBytes,
  onBroken,
  ownsInput = false
}: Options): RpcSerialization.Parser => {
  const incomplete = new Incomplete()
  let broken: FrameError | undefined
  /** The parser of JSON lines, if the peer began with such a line. */
  let lines: RpcSerialization.Parser | undefined

  /** Returns the lengths in a header, or `undefined` if the header is not complete. */
  const lengthsOf = (bytes: Uint8Array): Lengths | undefined => {
    const refusal = refusalOf(bytes)
    if (refusal !== undefined) throw refusal
    if (bytes.length < headerBytes) return undefined
    const view = new DataView(bytes.buffer, bytes.byteOffset, headerBytes)
    const jsonBytes = view.getUint32(4)
    const frameBytes = headerBytes + jsonBytes + view.getUint32(8)
    if (frameBytes > maxBytes) {
      throw new Broken(`the peer announces a message of ${frameBytes} bytes; at most ${maxBytes} are allowed`)
    }
    return { jsonBytes, frameBytes }
  }

  const decode = (data: Uint8Array): ReadonlyArray<unknown> => {
    const messages: Array<unknown> = []
    let at = 0
    if (incomplete.length > 0) {
      // Complete the header first, because it contains the length of the frame.
      if (incomplete.length < headerBytes) {
        at = Math.min(headerBytes - incomplete.length, data.length)
        incomplete.add(data.subarray(0, at), headerBytes)
      }
      const lengths = lengthsOf(incomplete.bytes)
      if (lengths === undefined) return messages
      const end = at + Math.min(lengths.frameBytes - incomplete.length, data.length - at)
      incomplete.add(data.subarray(at, end), lengths.frameBytes)
      if (incomplete.length < lengths.frameBytes) return messages
      messages.push(decodeFrame(incomplete.bytes, lengths.jsonBytes))
      incomplete.clear()
      at = end
    }
    while (at < data.length) {
      const rest = data.subarray(at)
      const lengths = lengthsOf(rest)
      if (lengths === undefined || lengths.frameBytes > rest.length) {
        incomplete.add(rest, lengths?.frameBytes ?? headerBytes)
        return messages
      }
      messages.push(decodeFrame(rest.subarray(0, lengths.frameBytes), lengths.jsonBytes))
      at += lengths.frameBytes
    }
    return messages
  }

  let isFirst = true
  return {
    decode: (data) => {
      if (broken !== undefined) throw new Broken(broken.message)
      const bytes = typeof data === "string" ? encoder.encode(data) : data
      if (bytes.length === 0) return []
      if (isFirst && acceptsLines && bytes[0] === openingBrace)
        lines = RpcSerialization.makeNdjson({ maxBufferSize: maxBytes }).makeUnsafe()
      isFirst = false
      if (lines !== undefined) return lines.decode(bytes)
      try {
        const wasIncomplete = incomplete.length > 0
        const messages = decode(bytes)
        // A message may view its bytes only if they are exactly one frame.
        if (ownsInput && (wasIncomplete || incomplete.length > 0)) release(bytes)
        return messages
      } catch (error) {
        incomplete.clear()
        broken = error instanceof FrameError ? error : new FrameError(`a message cannot be read: ${String(error)}`)
        onBroken?.(broken)
        throw broken
      }
    },
    encode: (message) => {
      if (lines !== undefined) return lines.encode(message)
      if (!Array.isArray(message)) return encodeFrame(message, separatesContent)
      return message.length === 0 ? undefined : concatenate(message.map((each) => encodeFrame(each, false)))
    }
  }
}

export interface Options {
  /** The maximum size of a frame or line in bytes. */
  readonly maxBytes?: number
  /** True if the peer may begin with a line of JSON. The messages are then lines of JSON in both directions. */
  readonly acceptsLines?: boolean
  /** True if the frames are written to a socket that `withContents` returned. */
  readonly separatesContent?: boolean
  /** True if nobody else uses the received bytes. The parser then releases them as soon as it has copied them. */
  readonly ownsInput?: boolean
  /** Receives the error when the peer sends a message that is not a frame. */
  readonly onBroken?: (error: Error) => void
}

/** Returns the serialization for a transport of bytes. */
export const make = (options: Options): RpcSerialization.RpcSerialization["Service"] =>
  RpcSerialization.RpcSerialization.of({
    contentType: "application/x-fs-algebra-rpc",
    includesFraming: true,
    codecFor,
    makeUnsafe: () => makeParser(options)
  })

const layer = (options: Options): Layer.Layer<RpcSerialization.RpcSerialization> =>
  Layer.sync(RpcSerialization.RpcSerialization, () => make(options))

/** Provides the serialization of a client over HTTP. */
export const layerHttpClient = layer({})

/**
 * Provides the serialization of a client, and its socket. The socket fails after a message that is not a frame, because the
 * bytes after it have no meaning. The client then reconnects.
 */
export const layerSocketClient = <E>(
  layerSocket: Layer.Layer<Socket.Socket, E>
): Layer.Layer<RpcSerialization.RpcSerialization | Socket.Socket, E> =>
  Layer.suspend(() => {
    let broken: Error | undefined
    const onBroken = (error: Error): void => {
      broken = error
    }
    const serialization = {
      ...make({}),
      // Each connection has its own parser.
      makeUnsafe: () => {
        broken = undefined
        return makeParser({ separatesContent: true, onBroken, ownsInput: true })
      }
    }
    const failing = (socket: Socket.Socket): Socket.Socket => ({
      ...socket,
      reader: Effect.map(socket.reader, (reader) => ({
        ...reader,
        pull: Effect.suspend(() =>
          broken === undefined
            ? reader.pull
            : Effect.fail(new Socket.SocketError({ reason: new Socket.SocketReadError({ cause: broken }) }))
        )
      }))
    })
    return Layer.merge(
      Layer.succeed(RpcSerialization.RpcSerialization, serialization),
      Layer.provide(
        Layer.effect(
          Socket.Socket,
          Effect.map(Socket.Socket, (socket) => failing(oneAtATime(withContents(socket))))
        ),
        layerSocket
      )
    )
  })

/**
 * Provides the serialization of a server. The server also answers clients that send lines of JSON, such as curl and the clients
 * of effect/rpc. `separatesContent` is true if the socket comes from `withContents`.
 */
export const layerServer = (
  separatesContent: boolean,
  maxBytes = maxFrameBytes
): Layer.Layer<RpcSerialization.RpcSerialization> =>
  layer({ acceptsLines: true, separatesContent, maxBytes, ownsInput: separatesContent })
