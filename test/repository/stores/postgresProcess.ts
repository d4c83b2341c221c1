/**
 * A Postgres server as a process, on a free port of the loopback address. The server ends with its parent process, even if the
 * parent is killed.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"

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
  /** The directory of the server's files, which belongs to the user `postgres`. */
  readonly directory: string
  /** Ends all processes of the server at once, so that its next start recovers as after a crash. */
  readonly crash: () => Promise<void>
  /** Starts the server again with its files; ends when it answers. */
  readonly start: () => Promise<void>
  /** Stops all processes of the server, which then accept connections but answer nothing, until `resume`. */
  readonly pause: () => void
  readonly resume: () => void
}

/** The command that runs the server, and kills it when the pipe from this process closes. */
const guarded =
  '"$1/postgres" -D "$2" >>"$2/log" 2>&1 & server=$!; echo started; cat >/dev/null; kill -QUIT $server; wait $server'

/** Settings that keep committed data in the system's cache only. A server that is killed loses nothing. */
const withoutSync = { fsync: "off", full_page_writes: "off", wal_level: "minimal", max_wal_senders: 0 }

/**
 * Starts a server whose files are in a new directory below `parent`. With `isDurable`, each commit is on the disk before it is
 * confirmed, as by default.
 */
export const startProcess = async (parent: string, { isDurable = false } = {}): Promise<Server> => {
  const bin = programs()!
  const directory = Fs.mkdtempSync(join(parent, "postgres-"))
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
    shared_buffers: "32MB",
    max_connections: 60,
    jit: "off",
    ...(isDurable ? {} : withoutSync)
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
  const signalAll = (signal: NodeJS.Signals): void => {
    const main = Number(Fs.readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0])
    process.kill(main, signal)
    for (const pid of Fs.readFileSync(`/proc/${main}/task/${main}/children`, "utf8").trim().split(" ")) {
      try {
        process.kill(Number(pid), signal)
      } catch (error) {
        // The child has ended meanwhile.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
      }
    }
  }
  await start()
  return { url, directory, crash, start, pause: () => signalAll("SIGSTOP"), resume: () => signalAll("SIGCONT") }
}
