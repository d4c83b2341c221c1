/** A relay to a NATS server. A test sees each message of the client, and can cut the connection at any message. */
import { connect, createServer, type Socket } from "node:net"
import type { Server } from "../../journal/nats.ts"

export interface Gate {
  readonly url: string
  /** The subjects that the client has published to, in order, since the last call of `watch`. */
  readonly watch: () => Array<string>
  /**
   * Acts at the nth message that the client publishes from now on. `before` runs instead of the message, which is lost. `after` runs
   * when the message has been sent, and no answer reaches the client any more. Then the connection is cut.
   */
  readonly interfere: (nth: number, when: "before" | "after", act: () => Promise<void>) => void
  /** Drops what the server sends from now on. */
  readonly silence: () => void
  /** Ends the connections. New ones work. */
  readonly cut: () => void
  readonly close: () => void
}

/** Splits what a client sends into messages: a line, and for PUB and HPUB the payload after it. */
const splitter = () => {
  let rest = Buffer.alloc(0)
  return (bytes: Buffer): ReadonlyArray<{ readonly bytes: Buffer; readonly subject: string | undefined }> => {
    rest = Buffer.concat([rest, bytes])
    const found = []
    for (;;) {
      const end = rest.indexOf("\r\n")
      if (end === -1) return found
      const words = rest.toString("latin1", 0, end).split(" ")
      const isPublish = words[0] === "PUB" || words[0] === "HPUB"
      const length = end + 2 + (isPublish ? Number(words.at(-1)) + 2 : 0)
      if (rest.length < length) return found
      found.push({ bytes: rest.subarray(0, length), subject: isPublish ? words[1]! : undefined })
      rest = rest.subarray(length)
    }
  }
}

export const gateTo = async (server: Server): Promise<Gate> => {
  let seen: Array<string> = []
  let plan: { left: number; readonly when: "before" | "after"; readonly act: () => Promise<void> } | undefined
  let isSilent = false
  const sockets = new Set<Socket>()
  const cut = (): void => {
    isSilent = false
    for (const socket of sockets) socket.destroy()
  }
  const gate = createServer((client) => {
    const beyond = connect(server.port, "127.0.0.1")
    let isCut = false
    for (const socket of [client, beyond]) {
      sockets.add(socket)
      socket.on("error", () => undefined).on("close", () => (sockets.delete(socket), client.destroy(), beyond.destroy()))
    }
    beyond.on("data", (bytes) => void (isSilent || isCut || client.write(bytes)))
    const split = splitter()
    client.on("data", (bytes) => {
      for (const message of split(bytes)) {
        if (isCut) return
        const isAwaited = message.subject !== undefined && plan !== undefined && --plan.left === 0
        if (message.subject !== undefined) seen.push(message.subject)
        if (!isAwaited) {
          beyond.write(message.bytes)
          continue
        }
        isCut = true
        const { act, when } = plan!
        plan = undefined
        if (when === "before") {
          void act().then(cut)
          return
        }
        // The server has stored the message when it answers a ping that follows it.
        beyond.once("data", () => setTimeout(() => void act().then(cut), 5))
        beyond.write(Buffer.concat([message.bytes, Buffer.from("PING\r\n")]))
      }
    })
  })
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve))
  const { port } = gate.address() as { readonly port: number }
  return {
    url: `127.0.0.1:${port}`,
    watch: () => (seen = []),
    interfere: (nth, when, act) => {
      plan = { left: nth, when, act }
    },
    silence: () => (isSilent = true),
    cut,
    close: () => {
      gate.close()
      cut()
    }
  }
}
