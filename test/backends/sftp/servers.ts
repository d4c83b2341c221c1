/**
 * SFTP servers for tests: Debian's sshd on a free port of the loopback address, and its sftp-server over a pipe, which is the
 * same code without encryption. Both end with the tests, even if the tests are killed.
 */
import { afterAll, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { connect, createServer } from "node:net"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "ssh2"
import { fingerprintOf } from "../../../src/backends/sftp/hostKeys.ts"
import type { Dial } from "../../../src/backends/sftp/link.ts"
import { open, openOver, type SftpOptions, type Tuning } from "../../../src/backends/sftp/open.ts"
import { layer } from "../../../src/filesystem/Filesystem.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import { Bench } from "../../../src/testing/Law.ts"
import { directory, onDisk } from "../../conformance/filesystems.ts"
import { inMemory } from "../../scratch.ts"

export const sftpServer = "/usr/lib/openssh/sftp-server"

export const lacking: string | undefined =
  Fs.existsSync("/usr/sbin/sshd") && Fs.existsSync(sftpServer)
    ? undefined
    : "sshd is not installed: apt-get install openssh-server openssh-sftp-server"

/** Runs `describe` if the servers can run; fails if no test may be skipped. */
export const describeSftp = (name: string, body: () => void): void => {
  if (lacking === undefined) return void describe(name, body)
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(lacking)
  describe.skip(`${name} (${lacking})`)
}

const here = dirname(fileURLToPath(import.meta.url))

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      server.close(() => resolve(port))
    })
  })

const guards = new Set<ChildProcess>()

const ended = (guard: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (guard.exitCode !== null) return resolve()
    guard.once("exit", () => resolve())
    guard.stdin!.end()
  })

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false))
    socket.once("connect", () => socket.destroy())
  })

export interface Sshd {
  readonly directory: string
  readonly port: number
  readonly fingerprint: string
  readonly login: Pick<SftpOptions, "host" | "port" | "username" | "privateKey" | "hostKeys">
  /** Ends the server and the processes of its connections with SIGKILL. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
}

export const startSshd = async (): Promise<Sshd> => {
  const place = Fs.mkdtempSync(join(inMemory(), "sshd-"))
  Fs.chmodSync(place, 0o700)
  const port = await freePort()
  let guard: ChildProcess | undefined
  const start = async (): Promise<void> => {
    const started = spawn("bash", [join(here, "sshd.sh"), place, String(port)], { stdio: ["pipe", "ignore", "ignore"] })
    guards.add(started)
    guard = started
    while (!(await listens(port))) {
      if (started.exitCode !== null) throw new Error(`sshd.sh ended with ${started.exitCode}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  await start()
  const [, key] = Fs.readFileSync(join(place, "hostkey.pub"), "utf8").split(" ")
  const fingerprint = fingerprintOf(Buffer.from(key!, "base64"))
  return {
    directory: place,
    port,
    fingerprint,
    login: {
      host: "127.0.0.1",
      port,
      username: process.env["USER"] ?? "root",
      privateKey: Redacted.make(Fs.readFileSync(join(place, "userkey"), "utf8")),
      hostKeys: [fingerprint]
    },
    kill: async () => {
      if (guard === undefined) return
      guards.delete(guard)
      await ended(guard)
      guard = undefined
    },
    start
  }
}

let shared: Promise<Sshd> | undefined

/** The server that tests share. They must not kill it. */
export const sshd = (): Promise<Sshd> => (shared ??= startSshd())

afterAll(async () => {
  await Promise.all([...guards].map(ended))
  guards.clear()
})

/** The timings of tests, with quick reconnections. */
export const timings = { pauseMillis: 20 }

/** The process of a server behind a pipe. */
export interface Piped {
  readonly child: ChildProcess
}

/** Connects to a new sftp-server over a pipe. */
export const pipe = (onStart?: (piped: Piped) => void): Dial =>
  Effect.sync(() => {
    const child = spawn(sftpServer, ["-e"], { stdio: ["pipe", "pipe", "ignore"] })
    onStart?.({ child })
    return { input: child.stdout!, output: child.stdin!, close: () => void child.kill("SIGKILL") }
  })

export type PortOptions = Omit<SftpOptions, "host" | "port" | "username" | "root" | "privateKey" | "hostKeys">

/** Opens a directory over a pipe. */
export const openPiped = (root: string, options: PortOptions = {}, tuning: Tuning = {}, dial: Dial = pipe()) =>
  openOver(dial, { root, ...options }, (root) => root, { ...tuning, timings: { ...timings, ...tuning.timings } })

let sharedClient: Promise<Client> | undefined

const connected = async (): Promise<Client> => {
  const { login } = await sshd()
  return new Promise((resolve, reject) => {
    const client = new Client()
    client
      .once("error", reject)
      .once("ready", () => resolve(client.setNoDelay(true)))
      .connect({ ...login, port: login.port!, privateKey: Redacted.value(login.privateKey!) })
  })
}

afterAll(async () => (await sharedClient)?.destroy())

/** Opens an SFTP session of its own on one shared connection to sshd, because a connection takes a third of a second. */
export const channel: Dial = Effect.callback((resume) => {
  sharedClient ??= connected()
  void sharedClient.then((client) =>
    client.subsys("sftp", (error, channel) =>
      error === undefined
        ? resume(Effect.succeed({ input: channel, output: channel, close: () => channel.destroy() }))
        : resume(Effect.die(error))
    )
  )
})

/** Opens a directory through sshd. The root is shown as the server has it, so that the laws can make absolute links. */
export const openSshd = (root: string, options: PortOptions = {}, tuning: Tuning = {}) =>
  Effect.gen(function* () {
    const { login } = yield* Effect.promise(sshd)
    const port = yield* open({ ...login, root, ...options }, { ...tuning, timings: { ...timings, ...tuning.timings } })
    return { ...port, info: { ...port.info, root } }
  })

type Open = (root: string) => Effect.Effect<Backend, unknown, Scope.Scope>

/** A layer on a fresh directory. The bench works on the directory itself. */
export const freshOn = (open: Open) =>
  Layer.unwrap(
    Effect.map(directory, (root) =>
      Layer.merge(layer(open(root)), Layer.succeed(Bench, { ...onDisk(root), wholeSeconds: true }))
    )
  )
