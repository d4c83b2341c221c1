/**
 * Standard streams as transports. The server uses the streams of its process. The client starts a program such as ssh, and uses
 * the streams of the program.
 */
import type * as NodeChildProcess from "node:child_process"
import type * as NodeStream from "node:stream"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as NetAddress from "effect/net/NetAddress"
import * as RpcServer from "effect/rpc/RpcServer"
import type * as Socket from "effect/socket/Socket"
import * as SocketServer from "effect/socket/SocketServer"
import { builtin } from "../runtime/node.ts"
import * as Frames from "./frames.ts"

const streams = (): typeof NodeStream => builtin<typeof NodeStream>("node:stream")

/** Returns the standard streams of this process as one stream. */
export const ownStreams = (): NodeStream.Duplex => streams().Duplex.from({ readable: process.stdin, writable: process.stdout })

/** Makes the server protocol of one connection. `ended` completes when the connection has ended. */
export const connectionProtocol = (socket: Socket.Socket, ended: Deferred.Deferred<void>): Layer.Layer<RpcServer.Protocol> =>
  RpcServer.layerProtocolSocketServer.pipe(
    Layer.provide([
      Layer.succeed(SocketServer.SocketServer, {
        address: NetAddress.unixPathAddress("stdio"),
        run: (handler) =>
          Effect.andThen(Effect.ensuring(Effect.ignoreCause(handler(socket)), Deferred.succeed(ended, undefined)), Effect.never)
      }),
      Frames.layerServer(true)
    ])
  )

/** The maximum number of characters of a program's last messages in an error. */
const maxShownCharacters = 500

/** The time that a program has to end after its streams were closed, in milliseconds. */
const maxEndMillis = 2000

const startProgram = ([program, ...args]: readonly [string, ...ReadonlyArray<string>]) => {
  const child = builtin<typeof NodeChildProcess>("node:child_process").spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true
  })
  let messages = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    messages = (messages + text).slice(-maxShownCharacters)
  })
  // The stream does not end with the output of the program. The stream ends when the program ends, with an error that has the
  // exit code and the last messages.
  const duplex = new (streams().Duplex)({
    read: () => void child.stdout.resume(),
    // A program that stops reading is about to end. The error at its end says more than this error.
    write: (chunk, _, done) => void child.stdin.write(chunk, (error) => (error ? undefined : done())),
    final: (done) => void child.stdin.end(done)
  })
  child.stdout.on("data", (chunk: Uint8Array) => {
    if (!duplex.push(chunk)) child.stdout.pause()
  })
  // An error without a listener would end the process. The socket has its own listener while it reads.
  for (const stream of [duplex, child.stdin, child.stdout, child.stderr]) stream.on("error", () => {})
  const fail = (what: string): void => {
    const detail = messages.trim().replace(/\s*[\r\n]+\s*/g, "; ")
    duplex.destroy(new Error(`${program} ${what}${detail === "" ? "" : `: ${detail}`}`))
  }
  child.on("error", (error: NodeJS.ErrnoException) => fail(`cannot be started (${error.code ?? error.message})`))
  child.on("close", (code, signal) => fail(`has ended with ${signal ?? `code ${String(code)}`}`))
  return { child, duplex }
}

const endProgram = ({ child, duplex }: ReturnType<typeof startProgram>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    duplex.destroy()
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    const timer = setTimeout(() => child.kill("SIGKILL"), maxEndMillis)
    child.once("exit", () => {
      clearTimeout(timer)
      resume(Effect.void)
    })
    child.kill("SIGTERM")
  })

/** Starts a program, and returns its standard streams as one stream. The scope ends the program. */
export const programStreams = (
  command: readonly [string, ...ReadonlyArray<string>]
): Effect.Effect<NodeStream.Duplex, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => startProgram(command)),
      endProgram
    ),
    ({ duplex }) => duplex
  )

/** Quotes a text for the shell of the other machine. */
const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/**
 * Returns the command that serves the directory of an address `ssh://USER@HOST:PORT/PATH`. `/~/PATH` is relative to the home
 * directory. Returns `undefined` for an invalid address. A host or user that ssh could take for an option is invalid.
 */
export const sshCommand = (address: string): readonly [string, ...ReadonlyArray<string>] | undefined => {
  const parts = /^ssh:\/\/(?:([\w.][\w.-]*)@)?(\[[\da-f:.]+\]|[\w.][\w.-]*)(?::(\d{1,5}))?(\/.*)$/i.exec(address)
  if (parts === null) return undefined
  const [, user, host, port, encoded] = parts
  let path: string
  try {
    path = decodeURIComponent(encoded!)
  } catch {
    return undefined
  }
  if (path.includes("\0")) return undefined
  const home = /^\/~(?:\/|$)/.exec(path)
  const root = home === null ? quote(path) : `~/${quote(path.slice(home[0].length))}`
  const target = `${user === undefined ? "" : `${user}@`}${host!.replace(/^\[(.*)\]$/, "$1")}`
  return [
    "ssh",
    "-T",
    ...(port === undefined ? [] : ["-p", port]),
    "--",
    target,
    `exec fs-algebra serve --listen stdio --root ${root}`
  ]
}
