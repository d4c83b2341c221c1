/**
 * A NATS server with JetStream for tests, on a free port. The server and its store are removed after the tests, even if
 * the tests are killed.
 */
import { afterAll, describe } from "@effect/vitest"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { randomBytes, randomInt } from "node:crypto"
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

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/**
 * Returns a free port that the system gives to nobody, because it is below the ports for connections. So no other program gets the
 * port while the server is down.
 */
const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(18_000, 32_000)
    if (await isFree(port)) return port
  }
}

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Tests whether a process runs. A process that has ended stays a zombie until its parent asks for its end. */
const isAlive = (pid: number): boolean => {
  try {
    return !Fs.readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")
  } catch {
    return false
  }
}

/** Tests whether the server of a process answers on a port, and not another program that has taken the port meanwhile. */
const answers = (port: number, name: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1").setTimeout(1_000)
    const end = (isThere: boolean) => (socket.destroy(), resolve(isThere))
    socket
      .once("error", () => end(false))
      .once("close", () => end(false))
      .once("timeout", () => end(false))
      .once("data", (text) => end(String(text).includes(name)))
  })

/** The longest wait for a server, in milliseconds. A start takes less than a second on a quiet machine. */
const timeoutMillis = 20_000

export interface Server {
  readonly port: number
  readonly url: string
  /** Kills the server by SIGKILL. */
  readonly kill: () => Promise<void>
  /** Starts the server again with its store; ends when it answers, and fails if it does not for 20 seconds. */
  readonly start: () => Promise<void>
}

export interface ServerOptions {
  /** Additional lines of the configuration. */
  readonly more?: string
  /** True for a server without JetStream. @default false */
  readonly isPlain?: boolean
  /** The name by which the server is recognised. @default a random name */
  readonly identity?: string
}

/** Starts this many servers as one cluster. */
export const startCluster = async (size: number): Promise<ReadonlyArray<Server>> => {
  const ports = await Promise.all(Array.from({ length: size }, freePort))
  const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ")
  return Promise.all(
    ports.map((port, index) =>
      startServer({
        identity: `server-${index}-${randomBytes(8).toString("hex")}`,
        more: `cluster { name: "tests", listen: "127.0.0.1:${port}", routes: [${routes}] }`
      })
    )
  )
}

/** The command that runs the server, and kills it when the pipe from this process closes. */
const guarded = 'nats-server -c "$1" & server=$!; echo $server; cat >/dev/null; kill -9 $server'

export const startServer = async ({
  identity = `server-${randomBytes(8).toString("hex")}`,
  isPlain = false,
  more = ""
}: ServerOptions = {}): Promise<Server> => {
  const directory = Fs.mkdtempSync(join(inMemory(), "nats-"))
  const port = await freePort()
  const [configuration, log] = [join(directory, "nats.conf"), join(directory, "nats.log")]
  Fs.writeFileSync(
    configuration,
    `listen: "127.0.0.1:${port}"\nserver_name: "${identity}"\nlog_file: "${log}"\n${isPlain ? "" : `jetstream { store_dir: "${directory}", max_file_store: 4GB, max_memory_store: 256MB }`}\n${more}\n`
  )
  let guard: ChildProcess | undefined
  let pid = 0
  const kill = async (): Promise<void> => {
    if (guard === undefined) return
    const ended = guard.exitCode === null ? new Promise((resolve) => guard!.once("exit", resolve)) : undefined
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // It has ended by itself.
    }
    guard.stdin!.end()
    await ended
    guard = undefined
  }
  /** Starts the server, and returns whether it answers. Only a server that ends, as on a port in use, can be started again. */
  const startOnce = async (until: number): Promise<boolean> => {
    guard = spawn("sh", ["-c", guarded, "sh", configuration], { stdio: ["pipe", "pipe", "ignore"] })
    pid = await new Promise<number>((resolve) => guard!.stdout!.once("data", (text) => resolve(Number(text))))
    while (performance.now() < until) {
      if (await answers(port, identity)) return true
      if (!isAlive(pid)) break
      await sleep(10)
    }
    await kill()
    return false
  }
  const start = async (): Promise<void> => {
    const until = performance.now() + timeoutMillis
    while (performance.now() < until) {
      if (await startOnce(until)) return
      await sleep(100)
    }
    const said = Fs.existsSync(log) ? Fs.readFileSync(log, "utf8").split("\n").slice(-20).join("\n") : "nothing"
    throw new Error(`nats-server has not answered on port ${port} for ${timeoutMillis / 1000} seconds. It said:\n${said}`)
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
