/** A proxy in front of an S3 server that loses, delays and cuts answers. */
import * as Effect from "effect/Effect"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"

/**
 * The fate of a request. `busy`: 503, without reaching the server. `refuse`: the connection ends before the server is
 * reached. `lose`: the server does the work, and the answer is lost. `cut`: the answer ends after half of its body.
 * `hang`: no answer. `strip`: the request loses its conditions. `unknown`: 501. `failed`: 412. `half CODE`: the server
 * deletes the first half of a batch, and the answer names the others with this code. `forget`: the answer says that a
 * batch was deleted, and it was not. `headless`: the answer ends within its head. `short`: the answer has only half of
 * its body, and says that this is all. `stall`: the answer stops in the middle. `trickle`: the answer arrives in small
 * pieces. `late CODE`: 200, with an error in the body. `gone`: the object does not exist. `wide`: a listing ignores the
 * last directory of its prefix.
 */
export type Fate =
  | "pass"
  | "busy"
  | "refuse"
  | "lose"
  | "cut"
  | "hang"
  | "strip"
  | "unknown"
  | "failed"
  | "forget"
  | "gone"
  | "wide"
  | "headless"
  | "short"
  | "stall"
  | "trickle"
  | `late ${string}`
  | `half ${string}`

export interface Request {
  readonly method: string
  readonly url: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body?: string
}

/**
 * Stops a request until `opens` is called. `request`: when half of it is sent, of which the rest never arrives. `work`: before
 * it is sent. `answer`: when the server has answered, and the answer is lost.
 */
export interface Gate {
  readonly stage: "request" | "work" | "answer"
  readonly opens: () => Promise<void>
}

export interface Proxy {
  readonly endpoint: string
  /** Decides about each request, in order of arrival. */
  fate: (request: Request) => Fate
  gate: (request: Request) => Gate | undefined
  readonly close: () => Promise<void>
}

const unknown = '<?xml version="1.0"?><Error><Code>NotImplemented</Code><Message>Not implemented.</Message></Error>'
const errorOf = (code: string) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`
const nothing = '<?xml version="1.0"?><DeleteResult></DeleteResult>'

/** Splits the body of a batch into the half that the server gets, and the answer about the other half. */
const halved = (body: string, code: string): readonly [request: string, answer: string] => {
  const all = body.match(/<Object>.*?<\/Object>/gs) ?? []
  const kept = all.slice(0, Math.ceil(all.length / 2))
  const errors = all
    .slice(kept.length)
    .map((object) => `<Error>${/<Key>.*<\/Key>/s.exec(object)![0]}<Code>${code}</Code><Message>no</Message></Error>`)
  return [body.replace(all.join(""), kept.join("")), `<DeleteResult>${errors.join("")}</DeleteResult>`]
}

const busy = '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>'

const trickle = async (response: Http.ServerResponse, bytes: Buffer): Promise<void> => {
  response.flushHeaders()
  const size = Math.max(1, bytes.length >> 5)
  for (let at = 0; at < bytes.length; at += size) {
    response.write(bytes.subarray(at, at + size))
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

const start = async (endpoint: string): Promise<Proxy> => {
  const target = new URL(endpoint)
  const proxy: Pick<Proxy, "fate" | "gate"> = { fate: () => "pass", gate: () => undefined }
  const server = Http.createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const { method = "", url = "" } = request
      const sent = Buffer.concat(parts)
      const seen = { method, url, headers: request.headers, body: sent.toString() }
      const fate = proxy.fate(seen)
      const gate = proxy.gate(seen)
      if (fate === "busy") return void response.writeHead(503, { "content-type": "application/xml" }).end(busy)
      if (fate === "unknown") return void response.writeHead(501, { "content-type": "application/xml" }).end(unknown)
      if (fate === "failed") return void response.writeHead(412).end()
      if (fate === "forget") return void response.writeHead(200, { "content-type": "application/xml" }).end(nothing)
      if (fate === "gone") return void response.writeHead(404, { "content-type": "application/xml" }).end(errorOf("NoSuchKey"))
      if (fate.startsWith("late ")) {
        return void response.writeHead(200, { "content-type": "application/xml" }).end(errorOf(fate.slice("late ".length)))
      }
      const half = fate.startsWith("half ") ? halved(sent.toString(), fate.slice("half ".length)) : undefined
      if (fate === "refuse") return void request.socket.destroy()
      if (fate === "hang") return
      const headers = { ...request.headers }
      if (fate === "strip") for (const name of ["if-match", "if-none-match"]) delete headers[name]
      if (half !== undefined) {
        delete headers["content-md5"]
        headers["content-length"] = String(Buffer.byteLength(half[0]))
      }
      const path = fate === "wide" ? url.replace(/([?&]prefix=(?:[^&]*?%2F)?)[^&%]+%2F(?=&|$)/, "$1") : url
      // Without connections that are kept: a request on one that the server has just closed would be lost.
      const to = { host: target.hostname, port: target.port, method, path, headers, agent: false as const }
      const beyond = Http.request(to, (answer) => {
        const body: Array<Buffer> = []
        answer.on("error", () => request.socket.destroy())
        answer.on("data", (part: Buffer) => body.push(part))
        answer.on("end", () => {
          if (fate === "lose") return void request.socket.destroy()
          if (gate?.stage === "answer") return void gate.opens().then(() => request.socket.destroy())
          if (half !== undefined) return void response.writeHead(200, { "content-type": "application/xml" }).end(half[1])
          const bytes = Buffer.concat(body)
          if (fate === "headless" || (fate === "stall" && bytes.length < 2)) {
            request.socket.write(`HTTP/1.1 ${answer.statusCode} OK\r\netag: "`)
            return void (fate === "headless" && request.socket.end())
          }
          if (fate === "short" && method !== "HEAD") {
            const kept = bytes.subarray(0, bytes.length >> 1)
            response.writeHead(answer.statusCode!, { ...answer.headers, "content-length": String(kept.length) })
            return void response.end(kept)
          }
          response.writeHead(answer.statusCode!, answer.headers)
          if (fate === "stall") return void response.write(bytes.subarray(0, bytes.length >> 1))
          if (fate === "trickle") return void trickle(response, bytes)
          if (fate !== "cut" || bytes.length < 2) return void response.end(bytes)
          response.write(bytes.subarray(0, bytes.length >> 1), () => request.socket.destroy())
        })
      })
      beyond.on("error", () => request.socket.destroy())
      if (gate?.stage === "request") {
        beyond.flushHeaders()
        if (sent.length > 0) beyond.write(sent.subarray(0, sent.length >> 1))
        return void gate.opens().then(() => {
          beyond.destroy()
          request.socket.destroy()
        })
      }
      if (gate?.stage === "work") return void gate.opens().then(() => beyond.end(sent))
      beyond.end(half === undefined ? sent : half[0])
    })
    request.on("error", () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return Object.assign(proxy, {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  })
}

/** A server that gives one answer to every request. */
export const answering = async (
  answer: (request: Request) => { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
): Promise<Pick<Proxy, "endpoint" | "close"> & { readonly requests: Array<Request> }> => {
  const requests: Array<Request> = []
  const server = Http.createServer((request, response) => {
    request.resume()
    request.on("end", () => {
      const seen = { method: request.method!, url: request.url!, headers: request.headers }
      requests.push(seen)
      const { body = "", headers = {}, status } = answer(seen)
      response.writeHead(status, headers).end(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}

/** A proxy to the server at `endpoint` that ends with the scope. */
export const proxyTo = (endpoint: string) =>
  Effect.acquireRelease(
    Effect.promise(() => start(endpoint)),
    (proxy) => Effect.promise(proxy.close)
  )
