/**
 * Signed requests to an S3-compatible store: retries, timeouts, and the faults of refused requests.
 *
 * A request whose answer was lost may have been applied. The answer of the next attempt then has `isRepeated`. The caller must
 * check whether an earlier attempt was applied.
 */
import type * as Aws4fetch from "aws4fetch"
import * as Channel from "effect/Channel"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Xml from "effect/encoding/Xml"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { accessDenied, diskFull, ioError, notFound, pathTooLong, unavailable, type Fault } from "../../model/Fault.ts"
import { concatenate } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"

export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  readonly sessionToken?: Redacted.Redacted | undefined
}

/** The retries and timeouts of a client. */
export interface Timings {
  /** The maximum number of attempts for a request. A repetition after a correction of the clock does not count. */
  readonly attempts: number
  /** The timeout of one attempt, including its answer. Each 128 KiB of a request's body add one second. */
  readonly requestMillis: number
  /**
   * The pause before the second attempt. Each further pause is twice as long, up to 10 seconds. Each pause is shortened at
   * random, by at most a half.
   */
  readonly pauseMillis: number
}

export const defaultTimings: Timings = { attempts: 6, requestMillis: 30_000, pauseMillis: 100 }

export interface Target {
  readonly bucket: string
  readonly endpoint: string
  readonly region: string
  readonly credentials: Credentials | undefined
  readonly timings: Timings
}

export interface Call {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE"
  /** @default the bucket itself */
  readonly key?: string | undefined
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: Uint8Array | undefined
  /** The maximum size of an answer's body, in bytes. @default 16 MiB */
  readonly maxBytes?: number | undefined
  /** The number of bytes that the store itself processes. The timeout grows with them as with the bytes of a body. */
  readonly workBytes?: number | undefined
  /** True for slow requests. The store may then answer with the status 200, and report a failure in the body. */
  readonly answersLate?: boolean | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  /** True if an earlier attempt may have been applied: its answer was lost, or was a server error other than 503. */
  readonly isRepeated: boolean
}

export interface Client {
  /**
   * Sends a request, at most `attempts` times, until the store answers with a status that is not transient (see `isTransient`).
   * Fails if no attempt gets such an answer.
   */
  readonly send: (call: Call) => Effect.Effect<Answer, Fault>
  /** Fails with the fault for an answer that the caller does not expect. */
  readonly refused: (answer: Answer) => Effect.Effect<never, Fault>
  /** Returns the fault for the refusal of a part of a request, such as one deletion of a batch. */
  readonly faultOf: (refusal: Pick<Refusal, "code" | "message" | "status">) => Fault
  /** The maximum number of attempts for a request, or for a part of it that the store has temporarily refused. */
  readonly attempts: number
  /** Waits for at most 10 seconds before the next attempt. `done` is the number of attempts so far. */
  readonly pause: (done: number) => Effect.Effect<void>
  /** Returns the name of an object for the header `x-amz-copy-source`. */
  readonly sourceOf: (key: string) => string
}

/** Throws the error again. Because a handler catches the failure of the import, bundlers treat the package as optional. */
const rethrow = (cause: unknown): never => {
  throw cause
}

const loadSigner = Effect.tryPromise({
  try: () => import("aws4fetch").catch(rethrow) as Promise<typeof Aws4fetch>,
  catch: (): Fault =>
    unavailable("the package aws4fetch, which signs the requests to a bucket, cannot be loaded; install aws4fetch")
})

const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)

const encodeKey = (key: string): string => `/${key.split("/").map(encode).join("/")}`

const urlOf = ({ bucket, endpoint }: Target, { key, query }: Call): string => {
  const path = key === undefined ? "" : encodeKey(key)
  const pairs = Object.entries(query ?? {}).map(([name, value]) => `${encode(name)}=${encode(value)}`)
  return `${endpoint}/${encode(bucket)}${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`
}

/**
 * The control characters that XML forbids, and references to any control character. radosgw returns the prefix of a listing
 * unchanged, even with such characters.
 */
const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]|&#x0*1?[0-9a-f];|&#0*(?:[12]?[0-9]|3[01]);/gi

/** The replacement of a forbidden character. No path contains this character, so a damaged key never means another object. */
const replacement = "\u007f"

/** Reads a document. Returns `undefined` for bytes that are not XML. */
export const parseXml = (bytes: Uint8Array): Effect.Effect<Xml.Element | undefined> =>
  bytes.length === 0
    ? Effect.succeed(undefined)
    : Stream.make(new TextDecoder().decode(bytes).replace(forbidden, replacement)).pipe(
        Stream.pipeThroughChannel(Channel.pipeTo(Xml.decodeString({ maxDepth: 16 }), Xml.elements(["*"]))),
        Stream.runHead,
        Effect.match({
          onFailure: () => undefined,
          onSuccess: (root) => (root._tag === "Some" ? root.value : undefined)
        })
      )

/** Returns the child elements with the name. */
export const childrenOf = (element: Xml.Element | undefined, name: string): ReadonlyArray<Xml.Element> =>
  (element?.children ?? []).filter((child): child is Xml.Element => typeof child !== "string" && child.name === name)

/** Returns the text of the first child element with the name, or "". */
export const textOf = (element: Xml.Element | undefined, name: string): string =>
  (childrenOf(element, name)[0]?.children ?? []).filter((child) => typeof child === "string").join("")

interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly region: string | undefined
}

const refusalOf = ({ body, headers, status }: Answer): Effect.Effect<Refusal> =>
  Effect.map(parseXml(body), (root) => ({
    status,
    code: textOf(root, "Code"),
    message: textOf(root, "Message"),
    region: headers["x-amz-bucket-region"] ?? (textOf(root, "Region") || undefined)
  }))

/** The maximum length of a store's own message in a fault. */
const maxMessage = 200

const faultOf = (
  { bucket, credentials, endpoint, region }: Target,
  refusal: Omit<Refusal, "region"> & Partial<Refusal>
): Fault => {
  const { code, message, status } = refusal
  const said = `the store answered ${status}${code === "" ? "" : ` ${code.slice(0, 60)}`}`
  const why = message === "" ? said : `${said} (${message.slice(0, maxMessage)})`
  if (
    [301, 302, 307, 308].includes(status) ||
    code === "AuthorizationHeaderMalformed" ||
    code === "IllegalLocationConstraintException"
  ) {
    const advice = refusal.region === undefined ? "give the region of the bucket" : `give region: "${refusal.region}"`
    return unavailable(`${said}, because the bucket "${bucket}" is not in the region "${region}"; ${advice}`)
  }
  switch (code) {
    case "NoSuchBucket":
      return unavailable(`the bucket "${bucket}" does not exist at ${endpoint}; create it, or correct the name`)
    case "KeyTooLongError":
      return pathTooLong("the object key is longer than the 1,024 bytes that the store permits")
    case "RequestTimeTooSkewed":
      return unavailable(`${said}: the clocks of this machine and of the store differ; set the clock of this machine`)
    case "InvalidAccessKeyId":
    case "SignatureDoesNotMatch":
    case "InvalidToken":
      return unavailable(`${why}; check the credentials and the region`)
    case "ExpiredToken":
    case "TokenRefreshRequired":
      return unavailable(`${why}; get new credentials`)
    case "EntityTooLarge":
      return ioError(`${said}: the object is too large for the store`, "EFBIG")
    case "QuotaExceeded":
    case "XMinioStorageFull":
      return diskFull
    case "InvalidObjectState":
      return ioError(`${said}: the object is archived; restore it in the store first`, "EAGAIN")
  }
  switch (status) {
    case 401:
    case 403:
      return accessDenied(
        "permission",
        `${why}; ${credentials === undefined ? "give credentials" : "give the credentials a policy that permits the request"}`
      )
    case 404:
      return notFound
    case 405:
    case 501:
      return ioError(`${why}: the store does not offer this request`, "ENOTSUP")
    case 409:
    case 412:
      return accessDenied("busy", said)
    case 413:
      return ioError(`${said}: the object is too large for the store`, "EFBIG")
    case 429:
    case 503:
      return unavailable(`${said} to each attempt; the store is overloaded, try again later`)
    case 507:
      return diskFull
  }
  return status >= 500 ? unavailable(`${why} to each attempt; try again later`) : ioError(why, `HTTP${status}`)
}

/** Tests whether the same request may succeed later. */
export const isTransient = (status: number): boolean => status === 429 || (status >= 500 && status !== 501 && status !== 507)

/** The statuses of failures that a store reports in the body of an answer with the status 200. */
const statusOfCode: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  ConditionalRequestConflict: 409,
  InternalError: 500,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  OperationAborted: 503,
  PreconditionFailed: 412,
  RequestTimeout: 503,
  ServiceUnavailable: 503,
  SlowDown: 503
}

/** Returns the status for an error code that a store reports in a body. An unknown code counts as 400. */
export const statusOf = (code: string): number => statusOfCode[code] ?? 400

/** Tests whether the status proves that the request was not applied. */
const isRejected = (status: number): boolean => status === 429 || status === 503

/** `skewMillis` is the correction of the clock with which the request was signed. */
type Attempt =
  | { readonly _tag: "Answered"; readonly answer: Answer; readonly skewMillis: number }
  | { readonly _tag: "Lost"; readonly fault: Fault }

const lost = (fault: Fault): Attempt => ({ _tag: "Lost", fault })

const causeOf = (error: unknown): string => {
  for (let at = error, depth = 0; depth < 8 && typeof at === "object" && at !== null; depth++) {
    if ("code" in at && typeof at.code === "string") return at.code
    at = "reason" in at ? at.reason : "cause" in at ? at.cause : undefined
  }
  return "no answer"
}

const tooLarge = (maxBytes: number): Fault =>
  ioError(`the store's answer has more than the permitted ${maxBytes} bytes`, "EPROTO")

/** The header with the SHA-256 of the body. The header is signed, and the store compares it with the body. */
export const hashHeader = "x-amz-content-sha256"

const defaultMaxBytes = 16 * 1024 * 1024

/** The least difference of two clocks, in milliseconds, that counts as the reason of a refusal. S3 permits 15 minutes. */
const leastSkewMillis = 60_000

/** Makes a client. Fails with Unavailable if there are credentials, and the package aws4fetch cannot be loaded. */
export const make = (target: Target): Effect.Effect<Client, Fault> =>
  Effect.gen(function* () {
    const { credentials, timings, region } = target
    const signer = credentials === undefined ? undefined : yield* loadSigner
    const http = yield* Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
    /** The signing keys that are derived from the secret, one for each day. */
    const cache = new Map<string, ArrayBuffer>()
    /** The time of the store minus the time of this machine. */
    let skewMillis = 0

    const sign = (call: Call, url: string, now: number) => {
      const headers: Record<string, string> = { ...call.headers }
      if (signer === undefined || credentials === undefined) return Effect.succeed(headers)
      headers[hashHeader] ??= sha256(call.body ?? new Uint8Array())
      return Effect.promise(async () => {
        const signed = await new signer.AwsV4Signer({
          method: call.method,
          url,
          headers,
          accessKeyId: credentials.accessKeyId,
          secretAccessKey: Redacted.value(credentials.secretAccessKey),
          ...(credentials.sessionToken === undefined ? {} : { sessionToken: Redacted.value(credentials.sessionToken) }),
          service: "s3",
          region,
          cache,
          datetime: DateTime.formatIso(DateTime.makeUnsafe(now)).replace(/[:-]|\.\d{3}/g, "")
        }).sign()
        return Object.fromEntries(signed.headers.entries())
      })
    }

    const collect = (stream: Stream.Stream<Uint8Array, HttpClientError>, maxBytes: number) =>
      Effect.gen(function* () {
        const parts: Array<Uint8Array> = []
        let length = 0
        yield* Stream.runForEach(stream, (part) => {
          length += part.length
          parts.push(part)
          return length > maxBytes ? Effect.fail(tooLarge(maxBytes)) : Effect.void
        }).pipe(
          Effect.catchIf(
            (error) => error._tag === "HttpClientError" && error.reason._tag === "EmptyBodyError",
            () => Effect.void
          )
        )
        return parts.length === 1 ? parts[0]! : concatenate(parts)
      })

    const attempt = (call: Call, isRepeated: boolean): Effect.Effect<Attempt, Fault> =>
      Effect.gen(function* () {
        const url = urlOf(target, call)
        const signedSkew = skewMillis
        const headers = yield* sign(call, url, (yield* Clock.currentTimeMillis) + signedSkew)
        const request = HttpClientRequest.make(call.method)(url, {
          headers,
          ...(call.body === undefined
            ? {}
            : { body: HttpBody.uint8Array(call.body, headers["content-type"] ?? "application/octet-stream") })
        })
        const response = yield* http.execute(request)
        const body =
          call.method === "HEAD" ? new Uint8Array() : yield* collect(response.stream, call.maxBytes ?? defaultMaxBytes)
        const error = call.answersLate === true && response.status === 200 ? yield* parseXml(body) : undefined
        const status = error?.name === "Error" ? statusOf(textOf(error, "Code")) : response.status
        return {
          _tag: "Answered",
          answer: { status, headers: response.headers, body, isRepeated },
          skewMillis: signedSkew
        } as const
      }).pipe(
        Effect.provideService(HttpClient.TracerPropagationEnabled, false),
        // A redirect would send the request and its content to a server that the options do not name.
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.catch((error): Effect.Effect<Attempt, Fault> => {
          if ("_tag" in (error as object) && (error as Fault)._tag === "IoError") return Effect.fail(error as Fault)
          return Effect.succeed(
            lost(
              unavailable(
                `the store at ${target.endpoint} does not answer (${causeOf(error)}); check the endpoint and the network`
              )
            )
          )
        }),
        Effect.timeoutOrElse({
          duration: timings.requestMillis + Math.floor((call.workBytes ?? call.body?.length ?? 0) / 131_072) * 1000,
          orElse: () =>
            Effect.succeed(
              lost({ _tag: "Timeout", detail: `the store at ${target.endpoint} did not answer in time; try again later` })
            )
        })
      )

    /** Corrects `skewMillis` if the store refuses the time of a request. Returns true if the request can be sent again. */
    const correctClock = (answer: Answer, signedSkew: number): Effect.Effect<boolean> =>
      answer.status !== 403
        ? Effect.succeed(false)
        : Effect.gen(function* () {
            const { code } = yield* refusalOf(answer)
            const skew = Date.parse(answer.headers["date"] ?? "") - (yield* Clock.currentTimeMillis)
            // The answer to HEAD has no code. The date then shows whether the time was wrong.
            const isSkewed = code === "RequestTimeTooSkewed" || (code === "" && Math.abs(skew - signedSkew) > leastSkewMillis)
            if (!isSkewed || Number.isNaN(skew)) return false
            skewMillis = skew
            return true
          })

    const pause = (done: number): Effect.Effect<void> =>
      Effect.flatMap(Random.nextBetween(0.5, 1), (part) =>
        Effect.sleep(Math.min(10_000, timings.pauseMillis * 2 ** (done - 1)) * part)
      )

    const refused = (answer: Answer): Effect.Effect<never, Fault> =>
      Effect.flatMap(refusalOf(answer), (refusal) => Effect.fail(faultOf(target, refusal)))

    const send = (call: Call, done = 0, isRepeated = false, isCorrected = false): Effect.Effect<Answer, Fault> =>
      Effect.flatMap(attempt(call, isRepeated), (result): Effect.Effect<Answer, Fault> => {
        const isLast = done + 1 >= timings.attempts
        if (result._tag === "Lost") {
          return isLast ? Effect.fail(result.fault) : Effect.andThen(pause(done + 1), send(call, done + 1, true, isCorrected))
        }
        const { answer } = result
        if (isTransient(answer.status)) {
          if (isLast) return refused(answer)
          return Effect.andThen(pause(done + 1), send(call, done + 1, isRepeated || !isRejected(answer.status), isCorrected))
        }
        if (isCorrected) return Effect.succeed(answer)
        return Effect.flatMap(correctClock(answer, result.skewMillis), (again) =>
          again ? send(call, done, isRepeated, true) : Effect.succeed(answer)
        )
      })

    return {
      send: (call) => send(call),
      refused,
      faultOf: (refusal) => faultOf(target, refusal),
      attempts: timings.attempts,
      pause,
      sourceOf: (key) => `/${encode(target.bucket)}${encodeKey(key)}`
    }
  })
