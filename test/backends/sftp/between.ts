/** A relay between the library and a server. Tests change, delay and drop packets there. */
import * as Effect from "effect/Effect"
import { PassThrough, Writable } from "node:stream"
import type { Dial } from "../../../src/backends/sftp/link.ts"
import { Reader } from "../../../src/backends/sftp/wire.ts"

export interface Packet {
  readonly type: number
  readonly id: number
  /** The packet without its length. */
  readonly bytes: Buffer
}

/** The fate of a packet: it passes, another packet takes its place, or the connection is cut. */
export type Fate = "pass" | "cut" | Buffer

export interface Between {
  onRequest: (packet: Packet) => Fate
  /** A promise holds the answer, and all answers after it, until it is resolved. */
  onAnswer: (packet: Packet) => Fate | Promise<Fate>
}

const splitter = (take: (packet: Packet) => void): ((chunk: Buffer) => void) => {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
      const end = 4 + rest.readUInt32BE(0)
      const bytes = rest.subarray(4, end)
      rest = rest.subarray(end)
      const reader = new Reader(bytes)
      take({ type: reader.u8(), id: reader.u32(), bytes })
    }
  }
}

const framed = (bytes: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Makes a status that answers a request. */
export const statusOf = (id: number, code: number): Buffer => {
  const out = Buffer.alloc(17)
  out.writeUInt8(101, 0)
  out.writeUInt32BE(id, 1)
  out.writeUInt32BE(code, 5)
  return out
}

/** Returns a connection of `dial` whose packets pass through `between`. */
export const through = (dial: Dial, between: Between): Dial =>
  Effect.map(dial, ({ close, input, output }) => {
    const answers = new PassThrough()
    const cut = (): void => {
      close()
      answers.end()
    }
    let isCut = false
    const settle = (fate: Fate, packet: Packet, to: Writable): void => {
      if (isCut) return
      if (fate === "cut") {
        isCut = true
        return cut()
      }
      to.write(framed(fate === "pass" ? packet.bytes : fate))
    }
    let queue = Promise.resolve()
    const requests = splitter((packet) => settle(packet.type === 1 ? "pass" : between.onRequest(packet), packet, output))
    const onAnswer = splitter((packet) => {
      queue = queue.then(async () => settle(await between.onAnswer(packet), packet, answers))
    })
    input.on("data", onAnswer).on("end", () => void (queue = queue.then(() => void answers.end())))
    output.on("error", () => answers.end())
    return {
      input: answers,
      output: new Writable({
        write: (chunk: Buffer, _, done) => {
          requests(chunk)
          done()
        }
      }),
      close: cut
    }
  })

/** Passes all packets unchanged. */
export const passing = (): Between => ({ onRequest: () => "pass", onAnswer: () => "pass" })

/** Removes extensions from the first answer of the server. */
export const without = (names: ReadonlyArray<string> | "all"): Between => ({
  onRequest: () => "pass",
  onAnswer: ({ bytes, type }) => {
    if (type !== 2) return "pass"
    const reader = new Reader(bytes.subarray(5))
    const kept: Array<Buffer> = [bytes.subarray(0, 5)]
    while (!reader.isAtEnd) {
      const [name, value] = [reader.bytes(), reader.bytes()]
      if (names === "all" || names.includes(name.toString())) continue
      kept.push(framed(name), framed(value))
    }
    return Buffer.concat(kept)
  }
})
