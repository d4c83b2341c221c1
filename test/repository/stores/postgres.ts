/**
 * A Postgres server for tests, on a free port of the loopback address. The server and its files are removed after the tests, even
 * if the tests are killed.
 */
import { afterAll, describe } from "@effect/vitest"
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { inMemory } from "../../scratch.ts"

const programs = (): string | undefined => {
  const top = "/usr/lib/postgresql"
  const newest = Fs.existsSync(top)
    ? Fs.readdirSync(top)
        .sort((a, b) => Number(a) - Number(b))
        .at(-1)
    : undefined
  return newest === undefined ? undefined : join(top, newest, "bin")
}

/** The reason why no server can run here, or `undefined`. Postgres refuses to run as root, so root becomes `postgres`. */
export const lacking: string | undefined =
  programs() === undefined || spawnSync("id", ["postgres"]).status !== 0
    ? "Postgres is not installed: apt-get install postgresql-15"
    : process.getuid?.() === 0
      ? undefined
      : "the tests run Postgres as the user postgres, which needs root"

/** Runs `describe` if a server can run; fails if no test may be skipped. */
export const describePostgres = (name: string, body: () => void): void => {
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

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("error", () => resolve(false)).once("connect", () => (socket.destroy(), resolve(true)))
  })

export interface Server {
  readonly url: string
  /** Ends all processes of the server at once, so that its next start recovers as after a crash. */
  readonly crash: () => Promise<void>
  /** Starts the server again with its files; ends when it answers. */
  readonly start: () => Promise<void>
}

/** The command that runs the server, and kills it when the pipe from this process closes. */
const guarded =
  '"$1/postgres" -D "$2" >>"$2/log" 2>&1 & server=$!; echo started; cat >/dev/null; kill -QUIT $server; wait $server'

/** Starts a server without fsync. Its committed data is in the system's cache, so a server that is killed loses nothing. */
export const startServer = async (): Promise<Server> => {
  const bin = programs()!
  const directory = Fs.mkdtempSync(join(inMemory(), "postgres-"))
  const data = join(directory, "data")
  execFileSync("chown", ["postgres", directory])
  const as = [
    "--reuid=postgres",
    "--regid=postgres",
    "--clear-groups",
    "env",
    "-i",
    `PATH=${bin}:/usr/bin:/bin`,
    "LC_ALL=C.UTF-8"
  ]
  const options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "--no-instructions"]
  execFileSync("setpriv", [...as, join(bin, "initdb"), "-D", data, ...options], { stdio: "ignore", cwd: directory })
  const port = await freePort()
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: directory,
    fsync: "off",
    full_page_writes: "off",
    shared_buffers: "32MB",
    max_connections: 60,
    wal_level: "minimal",
    max_wal_senders: 0,
    jit: "off"
  }
  Fs.appendFileSync(
    join(data, "postgresql.conf"),
    Object.entries(settings)
      .map(([name, value]) => `${name} = '${value}'\n`)
      .join("")
  )
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  let guard: ChildProcess | undefined
  const isReady = (): boolean =>
    spawnSync(join(bin, "psql"), [url, "-tAc", "select 1"], { encoding: "utf8" }).stdout?.trim() === "1"

  const start = async (): Promise<void> => {
    guard = spawn("setpriv", [...as, "sh", "-c", guarded, "sh", bin, data], {
      cwd: directory,
      stdio: ["pipe", "pipe", "ignore"]
    })
    await new Promise((resolve) => guard!.stdout!.once("data", resolve))
    while (!(await accepts(port)) || !isReady()) {
      if (guard.exitCode !== null) throw new Error(`Postgres ended: ${Fs.readFileSync(join(data, "log"), "utf8").slice(-1000)}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const crash = async (): Promise<void> => {
    if (guard === undefined) return
    const ended = new Promise((resolve) => guard!.once("close", resolve))
    guard.stdin!.end()
    await ended
    guard = undefined
  }
  await start()
  afterAll(crash)
  return { url, crash, start }
}

let shared: Promise<Server> | undefined
/** Returns the server that the tests of a file share. */
export const server = (): Promise<Server> => (shared ??= startServer())
