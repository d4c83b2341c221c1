/**
 * Sends requests to the server, and sends them again after the connection was lost.
 *
 * A request that changes files has an id, with which the server recognizes a repetition. If a caller is interrupted, the server
 * interrupts the change too. The caller waits until the change has ended, so the change is not made later. If the server does
 * not answer, the caller waits only for the timeout.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as RpcClient from "effect/rpc/RpcClient"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import type * as RpcGroup from "effect/rpc/RpcGroup"
import { ioError, unavailable } from "../model/Fault.ts"
import { type BackendError, type Fault, type FsError, promote, toFault, Unavailable } from "../model/FsError.ts"
import { elapsedMillis } from "../runtime/elapsed.ts"
import { randomUUID } from "../runtime/node.ts"
import { instanceHeader, lineageHeader, workspaceHeader } from "./choice.ts"
import { FilesystemRpcs, type Info, rememberedMillis, version } from "./protocol.ts"

export type Client = RpcClient.RpcClient.Flat<RpcGroup.Rpcs<typeof FilesystemRpcs>, RpcClientError>

export interface Options {
  readonly timeout?: Duration.Input | undefined
  readonly token?: Redacted.Redacted | undefined
  /** The workspace of a server that serves several. */
  readonly workspace?: string | undefined
  /**
   * With `true`, every instance of the server recognizes a repeated change, so a change is sent again to a new instance too. The
   * default is `false`: only the instance that received a change first recognizes it.
   */
  readonly isShared?: boolean | undefined
}

export interface Connection {
  readonly send: Client
  readonly nextId: () => string
  /** Asks the server what it serves. */
  readonly hello: Effect.Effect<Info, Fault>
  /** Sends a request that changes nothing. If the connection is lost, sends it again until the timeout has passed. */
  readonly ask: <A>(path: string, request: Effect.Effect<A, FsError | RpcClientError>) => Effect.Effect<A, Fault>
  /** Sends a request once. */
  readonly once: <A>(path: string, request: Effect.Effect<A, FsError | RpcClientError>) => Effect.Effect<A, Fault>
  /**
   * Sends a request that changes files. If the connection is lost, sends it again with the same id, until the timeout has passed.
   */
  readonly change: <A>(
    path: string,
    request: (id: string) => Effect.Effect<A, FsError | RpcClientError>
  ) => Effect.Effect<A, Fault>
  readonly stream: <A>(path: string, values: Stream.Stream<A, FsError | RpcClientError>) => Stream.Stream<A, Fault>
  /** Returns the first value of a stream. The request stays open until the scope closes. */
  readonly hold: <A>(path: string, values: Stream.Stream<A, FsError | RpcClientError>) => Effect.Effect<A, Fault, Scope.Scope>
}

/** The wait between two attempts, in milliseconds. */
const pauseMillis = 100

/** Returns the fault of a failed transport. Only this module uses the flag `isLost`. */
const lost = (detail: string): Fault => ({ ...unavailable(detail), isLost: true })

const restarted: Fault = unavailable(
  "the server was restarted and does not know whether it made the change; read the file to see the result"
)

const forgotten: Fault = unavailable(
  "the connection was lost for minutes, so the server may no longer know whether it made the change; read the file to see the result"
)

/**
 * The time, in milliseconds, after which the server may have forgotten the answer of a change. This time is shorter than the
 * time of the server, because the repetition takes time too.
 */
const repeatableMillis = rememberedMillis - 60_000

const isLost = (fault: Fault): boolean => fault["isLost"] === true

const plain = (fault: Fault): Fault => {
  if (!isLost(fault)) return fault
  const { isLost: _, ...rest } = fault
  return rest as Fault
}

const isClientError = (error: FsError | RpcClientError): error is RpcClientError => !("operation" in error)

/** The maximum number of nested causes of an error that are examined. */
const maxCauses = 10

/** Returns the message of the innermost cause of a failed transport, such as `connect ECONNREFUSED 127.0.0.1:9`. */
const messageOf = (error: RpcClientError): string => {
  let message = error.message
  let at: unknown = error
  for (let depth = 0; depth < maxCauses && typeof at === "object" && at !== null; depth++) {
    if (at instanceof Error && at.message !== "") message = at.message
    const { cause, reason } = at as { readonly cause?: unknown; readonly reason?: unknown }
    at = cause ?? reason
  }
  return message
}

const toPlainFault =
  (path: string) =>
  (error: FsError | RpcClientError): Fault => {
    if (isClientError(error)) return lost(`the connection to the server failed: ${messageOf(error)}`)
    const fault = toFault(error)
    return error.path === path || error.path === "" ? fault : { ...fault, path: error.path }
  }

const defectFault = (defect: unknown): Fault =>
  ioError(`the server could not answer: ${defect instanceof Error ? defect.message : String(defect)}`)

interface Watch {
  /** Runs a request, and fails if the server stops answering meanwhile. */
  readonly race: <A>(request: Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
  /** Fails when the server stops answering. */
  readonly silence: Effect.Effect<never, Fault>
}

interface Waiting {
  since: number
  readonly fail: (fault: Fault) => void
}

/** The maximum delay of a timer, in milliseconds. */
const maxDelay = 2 ** 31 - 1

/** Asks the server whether it is alive when a request has waited for `millis`. One timer serves all requests. */
const makeWatch = (millis: number, context: Context.Context<never>, question: Effect.Effect<unknown, Fault>): Watch => {
  /** The waiting requests, the oldest first. */
  const waiting = new Set<Waiting>()
  let isArmed = false

  const arm = (delay: number): void => {
    isArmed = true
    const timer: number | { readonly unref?: () => void } = setTimeout(check, Math.min(delay, maxDelay))
    // The timer must not keep the process alive. The request does that, and may end before the timer.
    if (typeof timer === "object") timer.unref?.()
  }
  const rearm = (): void => {
    isArmed = false
    for (const { since } of waiting) return arm(Math.max(0, since + millis - performance.now()))
  }
  const check = (): void => {
    const now = performance.now()
    const asked = [...waiting].filter(({ since }) => since + millis <= now)
    if (asked.length === 0) return rearm()
    Effect.runForkWith(context)(question).addObserver((exit) => {
      const answeredAt = performance.now()
      const fault = Exit.isSuccess(exit) ? Option.none() : Cause.findErrorOption(exit.cause)
      for (const request of asked) {
        if (!waiting.delete(request)) continue
        if (Option.isSome(fault)) {
          request.fail(fault.value)
          continue
        }
        request.since = answeredAt
        waiting.add(request)
      }
      rearm()
    })
  }
  const add = (fail: (fault: Fault) => void): Waiting => {
    const request: Waiting = { since: performance.now(), fail }
    waiting.add(request)
    if (!isArmed) arm(millis)
    return request
  }

  return {
    race: (request) =>
      Effect.callback((resume) => {
        const fiber = Effect.runForkWith(Fiber.getCurrent()!.context)(request)
        let failure: Fault | undefined
        const entry = add((fault) => {
          failure = fault
          fiber.interruptUnsafe()
        })
        fiber.addObserver((exit) => {
          waiting.delete(entry)
          resume(failure === undefined ? exit : Effect.fail(failure))
        })
        return Fiber.interrupt(fiber)
      }),
    silence: Effect.callback((resume) => {
      const entry = add((fault) => resume(Effect.fail(fault)))
      return Effect.sync(() => void waiting.delete(entry))
    })
  }
}

/**
 * Keeps receiving messages while the consumer of one stream is slow. A server sends the next part of a stream only after the
 * client has acknowledged the previous part. So at most one part of each stream waits.
 */
const withoutBlocking = (protocol: RpcClient.Protocol["Service"]): RpcClient.Protocol["Service"] => ({
  ...protocol,
  run: (clientId, receive) => {
    const waiting = new Map<unknown, Fiber.Fiber<void>>()
    return protocol.run(clientId, (message) => {
      if (message._tag !== "Chunk" && message._tag !== "Exit") return receive(message)
      const { requestId } = message
      const earlier = waiting.get(requestId)
      if (earlier !== undefined) return Effect.andThen(Fiber.await(earlier), receive(message))
      if (message._tag === "Exit") return receive(message)
      return Effect.withFiber((reader) => {
        const fiber = Effect.runForkWith(reader.context)(receive(message))
        if (fiber.pollUnsafe() !== undefined) return Effect.void
        waiting.set(requestId, fiber)
        fiber.addObserver(() => waiting.delete(requestId))
        return Effect.void
      })
    })
  }
})

export const make = (options: Options) =>
  Effect.flatMap(RpcClient.Protocol, (protocol) =>
    Effect.flatMap(
      Effect.provideService(
        RpcClient.make(FilesystemRpcs, { flatten: true, disableTracing: true }),
        RpcClient.Protocol,
        protocol.supportsAck ? withoutBlocking(protocol) : protocol
      ),
      (client) => over(client, options)
    )
  )

/**
 * Asks the server what it serves. Fails with Unavailable if the server refuses the client, or speaks another version. `peer` is
 * the word for the server in messages.
 */
export const greet = (
  { hello }: Connection,
  operation: string,
  peer: string,
  hint?: string
): Effect.Effect<Info, BackendError> => {
  const refuse = (detail: string, hint?: string) =>
    new Unavailable({ operation, path: "", detail, ...(hint !== undefined && { hint }) })
  const toBackendError = (fault: Fault): BackendError => {
    const error = promote(fault, operation, "")
    return error._tag === "IoError" || error._tag === "Timeout" || error._tag === "Unavailable"
      ? error
      : refuse(`the ${peer} refused the client: ${String(fault["detail"] ?? error.message)}`, hint)
  }
  return Effect.filterOrFail(
    Effect.mapError(hello, toBackendError),
    (info) => info.version === version,
    (info) =>
      refuse(
        `the ${peer} speaks version ${info.version} of the protocol, and this client speaks version ${version}; use the same version of fs-algebra on both sides`
      )
  )
}

/** Makes a connection that sends its requests with an existing client. */
export const over = Effect.fnUntraced(function* (client: Client, options: Options) {
  const timeoutMillis = Duration.toMillis(options.timeout ?? "10 seconds")
  const { isShared = false, token, workspace } = options
  let headers: Record<string, string> | undefined =
    token === undefined && workspace === undefined
      ? undefined
      : {
          ...(token !== undefined && { authorization: `Bearer ${Redacted.value(token)}` }),
          ...(workspace !== undefined && { [workspaceHeader]: encodeURIComponent(workspace) })
        }
  const send: Client = ((tag: never, payload: never, callOptions: object | undefined) =>
    client(tag, payload, headers === undefined ? callOptions! : { ...callOptions, headers })) as unknown as Client
  const prefix = randomUUID()
  let number = 0
  const nextId = (): string => `${prefix}-${number++}`

  const silent = lost(`the server has not answered for ${timeoutMillis} ms`)
  const bounded = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | Fault> =>
    Effect.timeoutOrElse(effect, { duration: timeoutMillis, orElse: () => Effect.fail(silent) })

  /** The last time when the server answered a question about running requests. */
  let aliveAt = -Infinity
  const heard = Effect.map(elapsedMillis, (now) => void (aliveAt = now))
  const watch = makeWatch(
    timeoutMillis,
    yield* Effect.context<never>(),
    bounded(
      Effect.tap(
        Effect.suspend(() => Effect.mapError(send("port.info", {}), toPlainFault(""))),
        heard
      )
    )
  )

  const attempt = <A>(path: string, request: Effect.Effect<A, FsError | RpcClientError>): Effect.Effect<A, Fault> =>
    watch.race(Effect.catchDefect(Effect.mapError(request, toPlainFault(path)), (defect) => Effect.fail(defectFault(defect))))

  const once: Connection["once"] = (path, request) => Effect.mapError(attempt(path, request), plain)

  const repeatable = <A>(
    path: string,
    request: Effect.Effect<A, FsError | RpcClientError>,
    repetition: Effect.Effect<A, Fault>
  ): Effect.Effect<A, Fault> =>
    Effect.catch(attempt(path, request), (fault) =>
      isLost(fault)
        ? Effect.flatMap(elapsedMillis, (start) => {
            const again: Effect.Effect<Effect.Success<typeof request>, Fault> = Effect.catch(
              Effect.andThen(Effect.sleep(pauseMillis), repetition),
              (fault) =>
                Effect.flatMap(elapsedMillis, (now) =>
                  isLost(fault) && now - start < timeoutMillis ? again : Effect.fail(plain(fault))
                )
            )
            return again
          })
        : Effect.fail(fault)
    )

  const ask: Connection["ask"] = (path, request) => repeatable(path, request, attempt(path, request))

  let instance: string | undefined
  /** Fails if the server was restarted after the change began. A restarted server would make the change a second time. */
  const checkInstance = (begun: string | undefined): Effect.Effect<void, Fault> =>
    Effect.flatMap(
      Effect.suspend(() => attempt("", send("port.info", {}))),
      (info) => {
        instance = info.instance
        return isShared || begun === undefined || begun === instance ? Effect.void : Effect.fail(restarted)
      }
    )

  /** Fails if the server may have forgotten a change, which it would then make a second time. */
  const checkMemory = (sentAt: number): Effect.Effect<void, Fault> =>
    Effect.flatMap(elapsedMillis, (now) =>
      isShared || now - Math.max(sentAt, aliveAt) < repeatableMillis ? Effect.void : Effect.fail(forgotten)
    )

  const change: Connection["change"] = (path, request) =>
    Effect.flatMap(elapsedMillis, (sentAt) => {
      const id = nextId()
      const begun = instance
      const repeated = begun === undefined ? request(id) : RpcClient.withHeaders(request(id), { [instanceHeader]: begun })
      const repetition = Effect.andThen(
        checkMemory(sentAt),
        Effect.andThen(checkInstance(begun), Effect.andThen(checkMemory(sentAt), attempt(path, repeated)))
      )
      return Effect.onInterrupt(repeatable(path, request(id), repetition), () =>
        Effect.ignore(bounded(send("port.cancel", { id })))
      )
    })

  const stream: Connection["stream"] = (path, values) => {
    const received = Stream.catchCause(Stream.mapError(values, toPlainFault(path)), (cause) =>
      Cause.hasDies(cause) ? Stream.fail(defectFault(Cause.squash(cause))) : Stream.failCause(cause)
    )
    return Stream.mapError(Stream.interruptWhen(received, watch.silence), plain)
  }

  const hold: Connection["hold"] = (path, values) =>
    Effect.flatMap(Stream.toPull(values), (pull) =>
      Effect.map(
        Effect.mapError(
          attempt(
            path,
            Effect.catch(pull, (error) =>
              Cause.isDone(error) ? Effect.die(new Error("the request ended early")) : Effect.fail(error)
            )
          ),
          plain
        ),
        ([first]) => first
      )
    )

  const hello = Effect.tap(once("", send("port.info", {})), (info) =>
    Effect.sync(() => {
      instance = info.instance
      if (info.lineage !== undefined) headers = { ...headers, [lineageHeader]: info.lineage }
    })
  )

  return { hello, send, nextId, ask, once, change, stream, hold } satisfies Connection as Connection
})
