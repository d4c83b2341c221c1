/**
 * A connection to a NATS server that reconnects by itself. If the server cannot be reached, a call is retried until its
 * timeout. So each operation must be safe to repeat.
 */
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream"
import type { NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { JournalError } from "../errors.ts"
import * as Signal from "../store/signal.ts"
import type { Authentication, Options, Secret } from "./options.ts"

// Loads the NATS clients when a journal is opened, so that only users of this journal need the packages.

const packageNames = "@nats-io/transport-node, @nats-io/jetstream and @nats-io/obj"

/** Throws the error again. Bundlers treat a package as optional if a handler catches the failure of its import. */
const rethrow = (cause: unknown): never => {
  throw cause
}

export const loadPackages = Effect.tryPromise({
  try: async () => {
    const [transport, jetstream, obj] = await Promise.all([
      import("@nats-io/transport-node").catch(rethrow),
      import("@nats-io/jetstream").catch(rethrow),
      import("@nats-io/obj").catch(rethrow)
    ])
    return { transport, jetstream, obj }
  },
  catch: (cause) =>
    new JournalError({
      operation: "JetStream.open",
      reason: "unavailable",
      detail: `cannot load the packages of a JetStream journal; install ${packageNames}: ${String(cause)}`
    })
})

type Packages = Effect.Success<typeof loadPackages>

const reveal = (secret: Secret): string => (typeof secret === "string" ? secret : Redacted.value(secret))

export interface Refusal {
  readonly _tag: "Refusal"
  /** The `err_code` of the JetStream API. */
  readonly code: number
  readonly message: string
}

export interface Connection {
  readonly nats: NatsConnection
  readonly jetstream: JetStreamClient
  readonly manager: JetStreamManager
  readonly packages: Packages
  /** Retries the request until the server answers. Fails with a refusal, `unavailable` or `closed`. */
  readonly call: <A>(operation: string, request: () => Promise<A>) => Effect.Effect<A, JournalError | Refusal>
  /** Retries the request until the server answers. A refusal is unexpected and becomes `unavailable`. */
  readonly ask: <A>(operation: string, request: () => Promise<A>) => Effect.Effect<A, JournalError>
  /** Sends the request once, without a timeout. Fails with `unavailable` if the current connection is lost. */
  readonly sendOnce: <A>(operation: string, request: () => Promise<A>) => Effect.Effect<A, JournalError | Refusal>
  /** A number that increases with every reconnection. */
  readonly epoch: () => number
  readonly endError: () => JournalError | undefined
  readonly changes: Signal.Signal
  readonly endListeners: Set<() => void>
}

const requestTimeoutMillis = 5_000

class Unreachable {
  readonly _tag = "Absent"
  readonly detail: string
  constructor(detail: string) {
    this.detail = detail
  }
}

type Problem = Refusal | JournalError | Unreachable

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
  while: (error: JournalError | Refusal) => error._tag === "Refusal"
} as const

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const failure = (operation: string, reason: "unavailable" | "closed", detail: string): JournalError =>
  new JournalError({ operation, reason, detail })

const authenticated = ({ transport }: Packages, authentication: Authentication | undefined): NodeConnectionOptions => {
  if (authentication === undefined) return {}
  if ("token" in authentication) return { token: reveal(authentication.token) }
  if ("user" in authentication) return { user: authentication.user, pass: reveal(authentication.password) }
  return { authenticator: transport.credsAuthenticator(new TextEncoder().encode(reveal(authentication.credentials))) }
}

const connect = (packages: Packages, options: Options) =>
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
      failure("JetStream.open", "unavailable", `cannot connect to ${String(options.servers)}: ${messageOf(cause)}`)
  })

export const make = (packages: Packages, options: Options): Effect.Effect<Connection, JournalError, Scope.Scope> =>
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
    const servers = String(options.servers)
    const timeout = Duration.fromInputUnsafe(options.timeout ?? "30 seconds")
    const changes = Signal.make()
    const connectedLatch = Latch.makeUnsafe(true)
    const lossListeners = new Set<() => void>()
    const endListeners = new Set<() => void>()
    let epoch = 1
    let endError: JournalError | undefined

    const end = (error: JournalError): void => {
      endError ??= error
      for (const onLoss of lossListeners) onLoss()
      connectedLatch.openUnsafe()
      changes.wake()
      for (const onEnd of endListeners) onEnd()
    }
    const nats = yield* Effect.acquireRelease(connect(packages, options), (nats) =>
      Effect.suspend(() => {
        end(failure("JetStream", "closed", "the journal is closed"))
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
        end(failure("JetStream", "unavailable", `the connection to the NATS server has ended: ${messageOf(error ?? "closed")}`))
      )

    const classifyError = (cause: unknown): Problem => {
      if (cause instanceof JetStreamApiError && !transientCodes.has(cause.code)) {
        return { _tag: "Refusal", code: cause.code, message: cause.message }
      }
      // The client does not export this error. The error means that JetStream is not enabled on the server, or has not started
      // yet.
      const isNotEnabled = cause instanceof Error && cause.name === "JetStreamNotEnabled"
      const isPassing = isNotEnabled || transient.some((kind) => cause instanceof kind)
      return isPassing ? new Unreachable(messageOf(cause)) : failure("JetStream", "unavailable", messageOf(cause))
    }

    /** Sends the request once. Ends when the connection ends, even if the client still waits. */
    const attempt = <A>(request: () => Promise<A>): Effect.Effect<A, Problem> =>
      Effect.callback((resume) => {
        if (endError !== undefined) return resume(Effect.fail(endError))
        const settle = (effect: Effect.Effect<A, Problem>): void => {
          lossListeners.delete(onLoss)
          resume(effect)
        }
        const onLoss = (): void => settle(Effect.fail(endError ?? new Unreachable("the connection is lost")))
        lossListeners.add(onLoss)
        request().then(
          (value) => settle(Effect.succeed(value)),
          (cause: unknown) => settle(Effect.fail(endError ?? classifyError(cause)))
        )
        return Effect.sync(() => void lossListeners.delete(onLoss))
      })

    const call: Connection["call"] = (operation, request) =>
      Effect.suspend(() => {
        let lastDetail = "the connection is lost"
        return connectedLatch.whenOpen(attempt(request)).pipe(
          Effect.tapError((problem) =>
            Effect.sync(() => {
              if (problem._tag === "Absent") lastDetail = problem.detail
            })
          ),
          Effect.retry({ while: (problem) => problem._tag === "Absent", schedule: Schedule.spaced("50 millis") }),
          Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(new Unreachable(lastDetail)) }),
          Effect.mapError((problem) =>
            problem._tag === "Absent"
              ? failure(
                  operation,
                  "unavailable",
                  `no answer from ${servers} within ${Duration.format(timeout)}: ${problem.detail}`
                )
              : problem
          )
        )
      })
    const ask: Connection["ask"] = (operation, request) =>
      Effect.mapError(call(operation, request), (error) =>
        error._tag === "Refusal" ? failure(operation, "unavailable", error.message) : error
      )

    const sendOnce: Connection["sendOnce"] = (operation, request) =>
      Effect.suspend(() =>
        connectedLatch.isOpen() ? attempt(request) : Effect.fail(new Unreachable("the client is not connected to the server"))
      ).pipe(
        Effect.mapError((problem) => (problem._tag === "Absent" ? failure(operation, "unavailable", problem.detail) : problem))
      )

    // Retry, because the server may accept connections before JetStream has started.
    const manager = yield* ask("JetStream.open", () => jetstreamManager(nats, { timeout: requestTimeoutMillis }))
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
