/**
 * One SFTP session over a pair of byte streams, with pipelined requests. The session ends if the server violates the protocol
 * or stops answering.
 *
 * This module implements the protocol itself. The SFTP client of the package `ssh2` decodes names as UTF-8, which changes some
 * names, and accepts packets of any size.
 */
import * as Effect from "effect/Effect"
import type { Readable, Writable } from "node:stream"
import { unavailable } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { type Field, makePacket, Malformed, protocolFault, protocolVersion, Reader, StatusCode, Type } from "./wire.ts"

/** The byte streams of a session. `close` ends the connection below them. */
export interface Transport {
  readonly input: Readable
  readonly output: Writable
  readonly close: () => void
}

export interface Request {
  readonly type: number
  readonly fields: ReadonlyArray<Field>
  /** A string after the fields that is sent without a copy. The caller must not change the string before the answer. */
  readonly content?: Uint8Array
  /** True for a change that another program can see. Its outcome is unknown if the connection is lost before the answer. */
  readonly isChange?: boolean
  /** The expected size of a large answer, in bytes. A slow network needs more time for it. */
  readonly answerBytes?: number
  /** Receives the answer even if the fiber that sent the request has been interrupted. */
  readonly onAnswer?: (answer: Answer) => void
  /**
   * Returns the array for the content of an answer that is data of this many bytes, or `undefined` if there are too many. The
   * content is then copied once, from what the connection has received. The answer has no body.
   */
  readonly takeContent?: (length: number) => Uint8Array | undefined
}

export interface Answer {
  readonly type: number
  readonly body: Reader
  /** The number of bytes of content that the array of the request has received. */
  readonly contentBytes?: number
}

/** The failure of a request whose connection was lost. */
export class Lost {
  readonly _tag = "Lost"
  readonly fault: Fault
  /** True if the server may have made a change. */
  readonly isUnsure: boolean
  constructor(fault: Fault, isUnsure: boolean) {
    this.fault = fault
    this.isUnsure = isUnsure
  }
}

/** The failure of a request that the server refused. */
export class Refused {
  readonly _tag = "Refused"
  readonly code: number
  readonly message: string
  constructor(code: number, message: string) {
    this.code = code
    this.message = message
  }
}

export interface Session {
  readonly extensions: ReadonlySet<string>
  /** The maximum number of bytes that one request reads. `maxWrite` is the same for writes. */
  readonly maxRead: number
  readonly maxWrite: number
  /** Sends requests without waiting between them, and returns their answers in the same order. */
  readonly askAll: (requests: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Answer>, Lost>
  /** Sends a request and ignores its answer. `onLost` runs if the connection is lost before the answer. */
  readonly post: (request: Request, onLost?: () => void) => void
  readonly isOpen: () => boolean
  readonly close: () => void
}

/** The maximum number of requests that wait for an answer. Further requests wait in a queue. */
const maxInFlight = 64
/** The maximum number of bytes in requests that wait for an answer. A single request may be larger. */
const maxBytesInFlight = 4 * 1024 * 1024
/** The maximum size of a packet from the server, in bytes. OpenSSH sends at most 256 KiB. */
const maxPacketBytes = 1024 * 1024
/** The number of bytes that every server can read or write in one request. */
const commonBytes = 32 * 1024
/**
 * The minimum number of bytes that a server must permit in one request. With fewer bytes, a file would need too many requests.
 */
const leastBytes = 4 * 1024
/** The maximum number of bytes of a read or write, even if the server permits more. */
const largestBytes = 255 * 1024
/** The speed of the slowest supported network, in bytes per second. */
const bytesPerSecond = 64 * 1024

/** The number of ticks in the timeout of an answer. */
const ticksPerAnswer = 16

/** The bytes of an answer with data before its content: its length, its type, its id, and the length of the content. */
const dataHeaderBytes = 13

const noBody = new Reader(Buffer.alloc(0))

interface Waiting {
  readonly request: Request
  readonly settle: (answer: Answer | Lost) => void
  id: number
  bytes: number
  /** The tick after which the answer has timed out. */
  deadline: number
}

const closedFault = unavailable("the connection to the server was closed")

export const start = (transport: Transport, answerMillis: number): Effect.Effect<Session, Fault> =>
  Effect.suspend(() => {
    const { input, output } = transport
    let queue: Array<Waiting> = []
    /**
     * The number of requests at the start of the queue that have been sent. Sent requests are removed in groups, because
     * removing each one would take too long.
     */
    let sent = 0
    let isFlushing = false
    /**
     * The requests that wait for an answer, at their ids modulo the length. A Map would replace its table every few requests,
     * and old tables keep answered requests in memory until the next full garbage collection.
     */
    const inFlight: Array<Waiting | undefined> = Array.from({ length: maxInFlight }, () => undefined)
    let inFlightCount = 0
    let bytesInFlight = 0
    let answerBytesInFlight = 0
    let nextId = 0
    let ended: Fault | undefined
    let received: Array<Buffer> = []
    let receivedBytes = 0
    /** The content that is being received, with the answer that it belongs to. */
    let content: { readonly id: number; readonly into: Uint8Array; at: number } | undefined
    let onVersion: ((version: Fault | Reader) => void) | undefined
    // The timer counts ticks, so that the server still has time to answer after this machine was suspended.
    const tickMillis = Math.max(5, answerMillis / ticksPerAnswer)
    let tick = 0

    const end = (fault: Fault): void => {
      if (ended !== undefined) return
      ended = fault
      clearInterval(timer)
      received = []
      content = undefined
      onVersion?.(fault)
      const started = inFlight.filter((waiting) => waiting !== undefined)
      inFlight.fill(undefined)
      inFlightCount = 0
      const unsent = queue.slice(sent)
      queue = []
      sent = 0
      for (const { request, settle } of started) settle(new Lost(fault, request.isChange === true))
      for (const { settle } of unsent) settle(new Lost(fault, false))
      transport.close()
    }

    const send = (waiting: Waiting, into: Array<Uint8Array>): void => {
      while (inFlight[nextId % maxInFlight] !== undefined) nextId = (nextId + 1) >>> 0
      const id = nextId
      nextId = (nextId + 1) >>> 0
      const { answerBytes = 0, content, fields, type } = waiting.request
      const packet = makePacket(type, id, fields, content)
      waiting.bytes = packet.length + (content?.length ?? 0)
      bytesInFlight += waiting.bytes
      answerBytesInFlight += answerBytes
      const slowMillis = ((bytesInFlight + answerBytesInFlight) / bytesPerSecond) * 1000
      waiting.deadline = tick + ticksPerAnswer + Math.ceil(slowMillis / tickMillis)
      waiting.id = id
      inFlight[id % maxInFlight] = waiting
      inFlightCount++
      into.push(packet)
      if (content === undefined) return
      writeTogether(into.splice(0))
      output.write(content)
    }

    // ssh2 encrypts and sends each array alone, so many small requests are much slower than one array.
    const writeTogether = (packets: ReadonlyArray<Uint8Array>): void => {
      if (packets.length > 0) output.write(packets.length === 1 ? packets[0]! : Buffer.concat(packets))
    }

    const mayBeSent = (): boolean =>
      sent < queue.length && inFlightCount < maxInFlight && (inFlightCount === 0 || bytesInFlight < maxBytesInFlight)

    const flush = (): void => {
      isFlushing = false
      if (!mayBeSent()) return
      const packets: Array<Uint8Array> = []
      output.cork()
      try {
        while (mayBeSent()) {
          send(queue[sent]!, packets)
          sent++
          if (sent < 1024 && sent < queue.length) continue
          queue = queue.slice(sent)
          sent = 0
        }
        writeTogether(packets)
      } catch (error) {
        // This code runs in no fiber, so an exception would end the program.
        end(unavailable(`a request to the server cannot be sent: ${String(error)}`))
      }
      output.uncork()
    }

    /** Sends the requests of all fibers together that run before the next turn of the event loop. */
    const pump = (): void => {
      if (isFlushing || !mayBeSent()) return
      isFlushing = true
      queueMicrotask(flush)
    }

    const accept = (packet: Buffer): void => {
      const body = new Reader(packet)
      const type = body.u8()
      if (onVersion !== undefined) {
        if (type !== Type.version) throw new Malformed("its first packet is not the version")
        onVersion(body)
        onVersion = undefined
        return
      }
      answerTo(body.u32(), { type, body })
    }

    const waitingFor = (id: number): Waiting | undefined => {
      const waiting = inFlight[id % maxInFlight]
      return waiting?.id === id ? waiting : undefined
    }

    const answerTo = (id: number, answer: Answer): void => {
      const waiting = waitingFor(id)
      if (waiting === undefined) throw new Malformed("it answers a request that was not sent")
      inFlight[id % maxInFlight] = undefined
      inFlightCount--
      bytesInFlight -= waiting.bytes
      answerBytesInFlight -= waiting.request.answerBytes ?? 0
      waiting.settle(answer)
      pump()
    }

    /** Begins to receive content, if the packet has data and its request has an array for it. */
    const beginContent = (header: Buffer, length: number): boolean => {
      const contentBytes = header.readUInt32BE(9)
      if (header[4] !== Type.data || 4 + length !== dataHeaderBytes + contentBytes) return false
      const id = header.readUInt32BE(5)
      const into = waitingFor(id)?.request.takeContent?.(contentBytes)
      if (into !== undefined) content = { id, into, at: 0 }
      return into !== undefined
    }

    /** Copies a chunk into the content. Returns the rest of the chunk. */
    const addContent = ({ at, id, into }: NonNullable<typeof content>, chunk: Buffer): Buffer => {
      const length = Math.min(into.length - at, chunk.length)
      chunk.copy(into, at, 0, length)
      content!.at += length
      if (at + length === into.length) {
        content = undefined
        answerTo(id, { type: Type.data, body: noBody, contentBytes: into.length })
      }
      return chunk.subarray(length)
    }

    const onData = (chunk: Buffer): void => {
      if (ended !== undefined) return
      try {
        const rest = content === undefined ? chunk : addContent(content, chunk)
        if (rest.length === 0 || ended !== undefined) return
        received.push(rest)
        receivedBytes += rest.length
        while (receivedBytes >= 4) {
          if (received[0]!.length < Math.min(dataHeaderBytes, receivedBytes)) received = [Buffer.concat(received)]
          const length = received[0]!.readUInt32BE(0)
          if (length === 0 || length > maxPacketBytes) throw new Malformed(`it sends a packet of ${length} bytes`)
          if (received[0]!.length >= dataHeaderBytes && beginContent(received[0]!, length)) {
            const rest = addContent(content!, received[0]!.subarray(dataHeaderBytes))
            received = rest.length === 0 ? [] : [rest]
            receivedBytes = rest.length
            if (ended !== undefined) return
            continue
          }
          if (receivedBytes < 4 + length) return
          const all = received.length === 1 ? received[0]! : Buffer.concat(received)
          receivedBytes -= 4 + length
          received = receivedBytes === 0 ? [] : [all.subarray(4 + length)]
          accept(all.subarray(4, 4 + length))
          if (ended !== undefined) return
        }
      } catch (error) {
        if (!(error instanceof Malformed)) throw error
        end(protocolFault(error.message))
      }
    }

    /** Returns the number of ids that were given since a request was sent. */
    const ageOf = ({ id }: Waiting): number => (nextId - id) >>> 0

    const timer = setInterval(() => {
      tick++
      let oldest: Waiting | undefined
      for (const waiting of inFlight) {
        if (waiting !== undefined && (oldest === undefined || ageOf(waiting) > ageOf(oldest))) oldest = waiting
      }
      if (oldest !== undefined && oldest.deadline < tick) end(silent(answerMillis))
    }, tickMillis)
    // The timer must not keep the process alive while the connection is idle.
    timer.unref()

    const lost = (): void => end(unavailable("the connection to the server was lost"))
    input.on("data", onData).on("end", lost).on("close", lost).on("error", lost)
    output.on("error", lost).on("close", lost)

    const askAll: Session["askAll"] = (requests) =>
      requests.length === 0
        ? Effect.succeed([])
        : Effect.callback<ReadonlyArray<Answer>, Lost>((resume) => {
            if (ended !== undefined) return resume(Effect.fail(new Lost(ended, false)))
            const answers: Array<Answer> = []
            let left = requests.length
            let isUnsure = false
            let failure: Lost | undefined
            const own = requests.map((request, index): Waiting => ({
              request,
              id: 0,
              bytes: 0,
              deadline: 0,
              settle: (answer) => {
                if (answer instanceof Lost) {
                  failure = answer
                  isUnsure ||= answer.isUnsure
                } else {
                  request.onAnswer?.(answer)
                  isUnsure ||= request.isChange === true
                  answers[index] = answer
                }
                if (--left > 0) return
                resume(failure === undefined ? Effect.succeed(answers) : Effect.fail(new Lost(failure.fault, isUnsure)))
              }
            }))
            for (const waiting of own) queue.push(waiting)
            pump()
            return Effect.sync(() => {
              const mine = new Set(own)
              // A handle that is not closed would stay open on the server.
              queue = queue.slice(sent).filter((waiting) => !mine.has(waiting) || waiting.request.type === Type.close)
              sent = 0
            })
          })

    const post: Session["post"] = (request, onLost) => {
      if (ended !== undefined) return onLost?.()
      queue.push({
        request,
        id: 0,
        bytes: 0,
        deadline: 0,
        settle: (answer) => (answer instanceof Lost ? onLost?.() : request.onAnswer?.(answer))
      })
      pump()
    }

    const version = Effect.callback<ReadonlySet<string>, Fault>((resume) => {
      const timeout = setTimeout(() => end(silent(answerMillis)), answerMillis)
      const fail = (fault: Fault) => {
        clearTimeout(timeout)
        resume(Effect.fail(fault))
      }
      if (ended !== undefined) return fail(ended)
      onVersion = (answer) => {
        if (!(answer instanceof Reader)) return fail(answer)
        clearTimeout(timeout)
        const number = answer.u32()
        if (number !== protocolVersion) {
          return fail(unavailable(`the server speaks version ${number} of SFTP instead of ${protocolVersion}`))
        }
        const extensions = new Set<string>()
        while (!answer.isAtEnd) {
          extensions.add(answer.bytes().toString())
          answer.bytes()
        }
        resume(Effect.succeed(extensions))
      }
      output.write(makePacket(Type.init, protocolVersion, []))
      return Effect.sync(() => clearTimeout(timeout))
    })

    const bound = (permitted: number): number => {
      if (permitted === 0) return commonBytes
      if (permitted < leastBytes) throw new Malformed(`it permits only ${permitted} bytes in a request`)
      return Math.min(permitted, largestBytes)
    }

    const limits = (extensions: ReadonlySet<string>) =>
      !extensions.has("limits@openssh.com")
        ? Effect.succeed({ maxRead: commonBytes, maxWrite: commonBytes })
        : Effect.matchEffect(askAll([{ type: Type.extended, fields: ["limits@openssh.com"] }]), {
            onFailure: ({ fault }) => Effect.fail(fault),
            onSuccess: ([answer]) =>
              readAnswer(() => {
                if (answer!.type !== Type.extendedReply) return { maxRead: commonBytes, maxWrite: commonBytes }
                answer!.body.u64()
                return { maxRead: bound(answer!.body.u64()), maxWrite: bound(answer!.body.u64()) }
              })
          })

    return Effect.gen(function* () {
      const extensions = yield* version
      const { maxRead, maxWrite } = yield* limits(extensions)
      return {
        extensions,
        maxRead,
        maxWrite,
        askAll,
        post,
        isOpen: () => ended === undefined,
        close: () => {
          // Requests without a reader of their answers, such as the removal of temporary files, are still sent.
          flush()
          end(closedFault)
        }
      }
    }).pipe(Effect.onError(() => Effect.sync(() => end(closedFault))))
  })

const silent = (millis: number): Fault => ({
  _tag: "Unavailable",
  detail: `the server did not answer within ${Math.ceil(millis / 1000)} s; try again later`
})

/** Runs a function that reads an answer. Fails with IoError `EPROTO` if the answer is malformed. */
export const readAnswer = <A>(read: () => A | Fault): Effect.Effect<A, Fault> =>
  Effect.suspend(() => {
    try {
      const value = read()
      return isProtocolFault(value) ? Effect.fail(value) : Effect.succeed(value as A)
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      return Effect.fail(protocolFault(error.message))
    }
  })

const isProtocolFault = (value: unknown): value is Fault =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "IoError"

/** Reads a status. Returns `undefined` for success. */
export const refusalOf = ({ body, type }: Answer): Refused | undefined => {
  if (type !== Type.status) throw new Malformed(`it answers with a packet of type ${type}`)
  const code = body.u32()
  // Servers with an older protocol version send no message.
  return code === StatusCode.ok ? undefined : new Refused(code, body.isAtEnd ? "" : body.bytes().toString())
}
