/** Connects to an SSH server and starts its SFTP subsystem. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Ssh2 from "ssh2"
import { unavailable } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { codeOf } from "../../model/realms.ts"
import { fsPromises } from "../../runtime/node.ts"
import { algorithmsFor, type KnownHosts, parseKnownHosts, refusal } from "./hostKeys.ts"
import type { Dial, DialFailure, Timings } from "./link.ts"
import type { Transport } from "./session.ts"

export interface Server {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly privateKey?: Redacted.Redacted | undefined
  readonly password?: Redacted.Redacted | undefined
  readonly agent?: string | undefined
  readonly hostKeys: ReadonlyArray<string> | { readonly knownHosts: string }
}

const final = (detail: string): DialFailure => ({ fault: unavailable(detail), isFinal: true })
const passing = (fault: Fault): DialFailure => ({ fault, isFinal: false })

const rethrow = (cause: unknown): never => {
  throw cause
}

export const loadSsh2 = Effect.tryPromise({
  try: async () => {
    const loaded = (await import("ssh2").catch(rethrow)) as typeof Ssh2 & { readonly default?: typeof Ssh2 }
    return loaded.default ?? loaded
  },
  catch: (): Fault => unavailable("the package ssh2, which connects to the server, cannot be loaded; install ssh2")
})

type Known = { readonly fingerprints: ReadonlyArray<string> } | { readonly hosts: KnownHosts; readonly file: string }

/** The maximum size of a known_hosts file, in bytes. */
const maxKnownHostsBytes = 16 * 1024 * 1024

const readKnown = ({ host, hostKeys, port }: Server): Effect.Effect<Known, DialFailure> => {
  if (!("knownHosts" in hostKeys)) return Effect.succeed({ fingerprints: hostKeys })
  const file = hostKeys.knownHosts
  return Effect.tryPromise({
    try: async (): Promise<Known> => {
      const { size } = await fsPromises().stat(file)
      if (size > maxKnownHostsBytes) throw new RangeError("too large")
      return { hosts: parseKnownHosts(await fsPromises().readFile(file, "utf8"), host, port), file }
    },
    catch: (error) =>
      final(`the known_hosts file ${file} cannot be read (${codeOf(error) ?? "too large"}); check its path and its permissions`)
  })
}

/** Converts an error of ssh2 to a failure. The failure is final if another attempt would fail in the same way. */
const failureOf = (error: Error & { readonly level?: string }, { host, port, username }: Server): DialFailure => {
  const at = `${host}:${port}`
  if (error.level === "client-authentication") {
    return final(`${at} refuses the user "${username}"; check the username, and the key, password or agent`)
  }
  if (error.level === "agent") return final("the SSH agent does not answer; check its socket, and that it has a key")
  if (error.level === "handshake") {
    return final(
      `${at} and this program have no common algorithm or key (${error.message.slice(0, 120)}); check which algorithms and keys the server offers`
    )
  }
  const why = error.level === "client-timeout" ? "no answer in time" : (codeOf(error) ?? "the connection was closed")
  return passing(unavailable(`the server ${at} cannot be reached (${why}); check the address and the network`))
}

export const dialWith = (ssh2: typeof Ssh2, server: Server, { connectMillis, keepAliveMillis }: Timings): Dial =>
  Effect.flatMap(readKnown(server), (known) =>
    Effect.callback<Transport, DialFailure>((resume) => {
      const { agent, host, password, port, privateKey, username } = server
      const client = new ssh2.Client()
      let refused: DialFailure | undefined
      let isDone = false
      const finish = (result: Effect.Effect<Transport, DialFailure>): void => {
        if (isDone) return
        isDone = true
        clearTimeout(timeout)
        resume(result)
      }
      const fail = (failure: DialFailure): void => {
        finish(Effect.fail(refused ?? failure))
        client.destroy()
      }
      const timeout = setTimeout(
        () => fail(passing(unavailable(`the server ${host}:${port} did not start SFTP in time; try again later`))),
        connectMillis
      )
      client.on("error", (error) => fail(failureOf(error, server)))
      client.on("close", () =>
        fail(passing(unavailable(`the server ${host}:${port} closed the connection before SFTP started`)))
      )
      client.on("ready", () => {
        // Without this option, each request may wait 40 ms for the acknowledgement of the previous one.
        client.setNoDelay(true)
        client.subsys("sftp", (error, channel) => {
          if (error !== undefined) return fail(final(`the server ${host}:${port} does not offer SFTP to "${username}"`))
          channel.stderr.resume()
          finish(
            Effect.succeed({
              input: channel,
              output: channel,
              close: () => {
                client.end()
                // Destroy the connection later, because the server may no longer answer.
                setTimeout(() => client.destroy(), 1000).unref()
              }
            })
          )
          if (isDone) client.on("close", () => channel.emit("close"))
        })
      })
      try {
        client.connect({
          host,
          port,
          username,
          readyTimeout: connectMillis,
          keepaliveInterval: keepAliveMillis,
          keepaliveCountMax: 3,
          ...(privateKey === undefined ? {} : { privateKey: Redacted.value(privateKey) }),
          ...(password === undefined ? {} : { password: Redacted.value(password) }),
          ...(agent === undefined ? {} : { agent }),
          algorithms: {
            serverHostKey: algorithmsFor("hosts" in known ? known.hosts.keys : []) as Array<Ssh2.ServerHostKeyAlgorithm>
          },
          hostVerifier: (key: Buffer) => {
            const reason = refusal(key, host, port, known)
            if (reason !== undefined) refused = final(reason)
            return reason === undefined
          }
        })
      } catch (error) {
        // The message of ssh2 does not contain the key.
        fail(final(`the credentials cannot be used: ${(error as Error).message.slice(0, 200)}`))
      }
      return Effect.sync(() => {
        isDone = true
        clearTimeout(timeout)
        client.destroy()
      })
    })
  )
