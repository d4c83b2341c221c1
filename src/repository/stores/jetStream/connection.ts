/**
 * A connection to a NATS server that reconnects by itself. If the server cannot be reached, a call is retried until its
 * timeout. So each operation must be safe to repeat.
 *
 * Journals and stores use this connection, each with errors of its own, which `Errors` makes.
 */
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream"
import type { NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Signal from "../../../runtime/signal.ts"
import type { Authentication, ConnectionOptions, Secret } from "./options.ts"

/** The errors of the component that uses the connection. */
export interface Errors<E> {
  /** Makes an error. `operation` is undefined if the connection itself fails. */
  readonly make: (operation: string | undefined, reason: "unavailable" | "closed", detail: string, isNotEnabled?: boolean) => E
  /** The detail of the error of calls that are pending when the connection is closed. */
  readonly closed: string
}

// Loads the NATS clients when a connection is opened, so that only users of NATS need the packages.

/** Throws the error again. Because a handler catches the failure of the import, bundlers treat the package as optional. */
const rethrow = (cause: unknown): never => {
  throw cause
}

/** Returns the exports of a CommonJS package. Of a bundled package, some bundlers import only the default export. */
const exportsOf = <M extends object>(module: M): M => (module as { readonly default?: M }).default ?? module

export const importPackages = async () => {
  const [transport, jetstream] = await Promise.all([
    import("@nats-io/transport-node").catch(rethrow),
    import("@nats-io/jetstream").catch(rethrow)
  ])
  return { transport: exportsOf(transport), jetstream: exportsOf(jetstream) }
}

export type Packages = Awaited<ReturnType<typeof importPackages>>

const reveal = (secret: Secret): string => (typeof secret === "string" ? secret : Redacted.value(secret))

export interface Refusal {
  readonly _tag: "Refusal"
  /** The `err_code` of the JetStream API. */
  readonly code: number
  readonly message: string
}

export interface Connection<E> {
  readonly nats: NatsConnection
  readonly jetstream: JetStreamClient
  readonly manager: JetStreamManager
  readonly packages: Packages
  /** Retries the request until the server answers or the timeout has passed. Fails with a refusal, `unavailable` or `closed`. */
  readonly call: <A>(operation: string | undefined, request: () => Promise<A>) => Effect.Effect<A, E | Refusal>
  /** Retries the request as `call` does. A refusal is unexpected and becomes `unavailable`. */
  readonly ask: <A>(operation: string | undefined, request: () => Promise<A>) => Effect.Effect<A, E>
  /** Sends the request once, without a timeout. Fails with `unavailable` if the current connection is lost. */
  readonly sendOnce: <A>(operation: string | undefined, request: () => Promise<A>) => Effect.Effect<A, E | Refusal>
  /** A number that increases with every reconnection. */
  readonly epoch: () => number
  readonly endError: () => E | undefined
  readonly changes: Signal.Signal
  readonly endListeners: Set<() => void>
}

const requestTimeoutMillis = 5_000

class Unreachable {
  readonly _tag = "Absent"
  readonly detail: string
  /** True if nothing answers the requests to JetStream, because it is not enabled or has not started yet. */
  readonly isNotEnabled: boolean
  constructor(detail: string, isNotEnabled = false) {
    this.detail = detail
    this.isNotEnabled = isNotEnabled
  }
}

type Problem<E> = Refusal | E | Unreachable

const isAbsent = (problem: unknown): problem is Unreachable => problem instanceof Unreachable

export const isRefusal = (problem: unknown): problem is Refusal =>
  typeof problem === "object" && problem !== null && "_tag" in problem && problem._tag === "Refusal"

/**
 * The `err_code`s for temporary failures of a cluster. A peer is missing, has no leader, cannot be reached, or is being
 * restored.
 */
const transientCodes: ReadonlySet<number> = new Set([10_004, 10_007, 10_008, 10_009, 10_041, 10_118])

/**
 * The retry options for creating a stream. If two clients create the same stream at the same time, the server refuses one
 * client. The refused client may not find the stream immediately.
 */
export const creationRetryOptions = {
  times: 10,
  schedule: Schedule.spaced("20 millis"),
  while: isRefusal
} as const

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const authenticated = ({ transport }: Packages, authentication: Authentication | undefined): NodeConnectionOptions => {
  if (authentication === undefined) return {}
  if ("token" in authentication) return { token: reveal(authentication.token) }
  if ("user" in authentication) return { user: authentication.user, pass: reveal(authentication.password) }
  return { authenticator: transport.credsAuthenticator(new TextEncoder().encode(reveal(authentication.credentials))) }
}

/** Returns the addresses for messages, without the credentials that an address may have. */
const withoutCredentials = (servers: ConnectionOptions["servers"]): string =>
  [servers]
    .flat()
    .map((server) => server.replace(/^([a-z]+:\/\/)?.*@/is, "$1"))
    .join()

const connect = <E>(packages: Packages, options: ConnectionOptions, makeError: Errors<E>["make"]) =>
  Effect.tryPromise({
    try: () =>
      packages.transport.connect({
        servers: typeof options.servers === "string" ? options.servers : [...options.servers],
        name: `fs-algebra ${options.name}`,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 200,
        reconnectJitter: 50,
        pingInterval: 10_000,
        timeout: requestTimeoutMillis,
        noAsyncTraces: true,
        ...(options.tls === undefined || options.tls === false ? {} : { tls: options.tls === true ? {} : options.tls }),
        ...authenticated(packages, options.authentication)
      }),
    catch: (cause) =>
      makeError(undefined, "unavailable", `cannot connect to ${withoutCredentials(options.servers)}: ${messageOf(cause)}`)
  })

export const make = <E>(
  packages: Packages,
  options: ConnectionOptions,
  { closed, make: makeError }: Errors<E>
): Effect.Effect<Connection<E>, E, Scope.Scope> =>
  Effect.gen(function* () {
    const { errors } = packages.transport
    const { JetStreamApiError, jetstream, jetstreamManager } = packages.jetstream
    const transient = [
      JetStreamApiError,
      errors.TimeoutError,
      errors.RequestError,
      errors.NoRespondersError,
      errors.ConnectionError
    ]
    const servers = withoutCredentials(options.servers)
    const timeout = Duration.fromInputUnsafe(options.timeout ?? "30 seconds")
    const changes = Signal.make()
    const connectedLatch = Latch.makeUnsafe(true)
    const lossListeners = new Set<() => void>()
    const endListeners = new Set<() => void>()
    let epoch = 1
    let endError: E | undefined

    const end = (error: E): void => {
      endError ??= error
      for (const onLoss of lossListeners) onLoss()
      connectedLatch.openUnsafe()
      changes.wake()
      for (const onEnd of endListeners) onEnd()
    }
    const nats = yield* Effect.acquireRelease(connect(packages, options, makeError), (nats) =>
      Effect.suspend(() => {
        end(makeError(undefined, "closed", closed))
        return Effect.ignore(Effect.tryPromise(() => nats.close()))
      })
    )
    const followStatus = async (): Promise<void> => {
      for await (const { type } of nats.status()) {
        if (type === "disconnect") {
          connectedLatch.closeUnsafe()
          for (const onLoss of lossListeners) onLoss()
        } else if (type === "reconnect") {
          epoch++
          connectedLatch.openUnsafe()
          changes.wake()
        }
      }
    }
    void followStatus()
    void nats
      .closed()
      .then((error) =>
        end(makeError(undefined, "unavailable", `the connection to the NATS server has ended: ${messageOf(error ?? "closed")}`))
      )

    const classifyError = (operation: string | undefined, cause: unknown): Problem<E> => {
      if (cause instanceof JetStreamApiError && !transientCodes.has(cause.code)) {
        return { _tag: "Refusal", code: cause.code, message: cause.message }
      }
      // The client does not export this error. The error means that JetStream is not enabled on the server, or has not started
      // yet.
      const isNotEnabled = cause instanceof Error && cause.name === "JetStreamNotEnabled"
      const isPassing = isNotEnabled || transient.some((kind) => cause instanceof kind)
      return isPassing ? new Unreachable(messageOf(cause), isNotEnabled) : makeError(operation, "unavailable", messageOf(cause))
    }

    /** Sends the request once. Ends when the connection ends, even if the client still waits. */
    const attempt = <A>(operation: string | undefined, request: () => Promise<A>): Effect.Effect<A, Problem<E>> =>
      Effect.callback((resume) => {
        if (endError !== undefined) return resume(Effect.fail(endError))
        const settle = (effect: Effect.Effect<A, Problem<E>>): void => {
          lossListeners.delete(onLoss)
          resume(effect)
        }
        const onLoss = (): void => settle(Effect.fail(endError ?? new Unreachable("the connection is lost")))
        lossListeners.add(onLoss)
        request().then(
          (value) => settle(Effect.succeed(value)),
          (cause: unknown) => settle(Effect.fail(endError ?? classifyError(operation, cause)))
        )
        return Effect.sync(() => void lossListeners.delete(onLoss))
      })

    const call: Connection<E>["call"] = (operation, request) =>
      Effect.suspend(() => {
        let last = new Unreachable("the connection is lost")
        return connectedLatch.whenOpen(attempt(operation, request)).pipe(
          Effect.tapError((problem) =>
            Effect.sync(() => {
              if (isAbsent(problem)) last = problem
            })
          ),
          Effect.retry({ while: isAbsent, schedule: Schedule.spaced("50 millis") }),
          Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(last) }),
          Effect.mapError((problem) =>
            isAbsent(problem)
              ? makeError(
                  operation,
                  "unavailable",
                  `no answer from ${servers} within ${Duration.format(timeout)}: ${problem.detail}`,
                  problem.isNotEnabled
                )
              : problem
          )
        )
      })
    const ask: Connection<E>["ask"] = (operation, request) =>
      Effect.mapError(call(operation, request), (error) =>
        isRefusal(error) ? makeError(operation, "unavailable", error.message) : error
      )

    const sendOnce: Connection<E>["sendOnce"] = (operation, request) =>
      Effect.suspend(() =>
        connectedLatch.isOpen()
          ? attempt(operation, request)
          : Effect.fail(new Unreachable("the client is not connected to the server"))
      ).pipe(Effect.mapError((problem) => (isAbsent(problem) ? makeError(operation, "unavailable", problem.detail) : problem)))

    // Retry, because the server may accept connections before JetStream has started.
    const manager = yield* ask(undefined, () => jetstreamManager(nats, { timeout: requestTimeoutMillis }))
    return {
      nats,
      jetstream: jetstream(nats, { timeout: requestTimeoutMillis }),
      manager,
      packages,
      call,
      ask,
      sendOnce,
      epoch: () => epoch,
      endError: () => endError,
      changes,
      endListeners
    }
  })
