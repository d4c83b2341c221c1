/**
 * A NATS server with JetStream for tests, on a free port. The server and its store are removed after the tests, even if
 * the tests are killed.
 */
import { afterAll, describe } from "@effect/vitest"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import { inMemory } from "../scratch.ts"

/** The reason why no server can run here, or `undefined`. */
export const lacking: string | undefined =
  spawnSync("nats-server", ["--version"]).status === 0 ? undefined : "nats-server is not installed: apt-get install nats-server"

/** Runs `describe` if a server can run; fails if no test may be skipped. */
export const describeNats = (name: string, body: () => void): void => {
  if (lacking === undefined) return void describe(name, body)
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(lacking)
  describe.skip(`${name} (${lacking})`)
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      server.close(() => resolve(port))
    })
  })

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("error", () => resolve(false)).once("data", () => (socket.destroy(), resolve(true)))
  })

export interface Server {
  readonly port: number
  readonly url: string
  /** Kills the server by SIGKILL. */
  readonly kill: () => Promise<void>
  /** Starts the server again with its store; ends when it answers. */
  readonly start: () => Promise<void>
}

export interface ServerOptions {
  /** Additional lines of the configuration. */
  readonly more?: string
  /** True for a server without JetStream. @default false */
  readonly isPlain?: boolean
}

/** Starts this many servers as one cluster. */
export const startCluster = async (size: number): Promise<ReadonlyArray<Server>> => {
  const ports = await Promise.all(Array.from({ length: size }, freePort))
  const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ")
  return Promise.all(
    ports.map((port, index) =>
      startServer({
        more: `server_name: "server-${index}"\ncluster { name: "tests", listen: "127.0.0.1:${port}", routes: [${routes}] }`
      })
    )
  )
}

/** The command that runs the server, and kills it when the pipe from this process closes. */
const guarded = 'nats-server -c "$1" & server=$!; echo $server; cat >/dev/null; kill -9 $server'

export const startServer = async ({ isPlain = false, more = "" }: ServerOptions = {}): Promise<Server> => {
  const directory = Fs.mkdtempSync(join(inMemory(), "nats-"))
  const port = await freePort()
  const configuration = join(directory, "nats.conf")
  Fs.writeFileSync(
    configuration,
    `listen: "127.0.0.1:${port}"\n${isPlain ? "" : `jetstream { store_dir: "${directory}", max_file_store: 4GB, max_memory_store: 256MB }`}\n${more}\n`
  )
  let guard: ChildProcess | undefined
  let pid = 0
  const kill = async (): Promise<void> => {
    if (guard === undefined) return
    const ended = new Promise((resolve) => guard!.once("exit", resolve))
    process.kill(pid, "SIGKILL")
    guard.stdin!.end()
    await ended
    guard = undefined
  }
  const start = async (): Promise<void> => {
    guard = spawn("sh", ["-c", guarded, "sh", configuration], { stdio: ["pipe", "pipe", "ignore"] })
    pid = await new Promise<number>((resolve) => guard!.stdout!.once("data", (text) => resolve(Number(text))))
    while (!(await answers(port))) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await start()
  servers.push(kill)
  return { port, url: `127.0.0.1:${port}`, kill, start }
}

/** A connection to a server that can fail. */
export interface Way {
  readonly url: string
  /** Drops the data from the server from now on, but not the data to the server. */
  readonly silence: () => void
  /** Ends all connections; new ones work. */
  readonly cut: () => void
  readonly close: () => void
}

export const wayTo = async (server: Server): Promise<Way> => {
  let isSilent = false
  const sockets = new Set<Socket>()
  const gate = createServer((client) => {
    const beyond = connect(server.port, "127.0.0.1")
    for (const socket of [client, beyond]) {
      sockets.add(socket)
      socket.on("error", () => undefined).on("close", () => (sockets.delete(socket), client.destroy(), beyond.destroy()))
    }
    client.pipe(beyond)
    beyond.on("data", (bytes) => void (isSilent || client.write(bytes)))
  })
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve))
  const { port } = gate.address() as { readonly port: number }
  const cut = (): void => {
    isSilent = false
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `127.0.0.1:${port}`,
    silence: () => (isSilent = true),
    cut,
    close: () => {
      gate.close()
      cut()
    }
  }
}

const servers: Array<() => Promise<void>> = []

afterAll(async () => {
  await Promise.all(servers.splice(0).map((kill) => kill()))
})
