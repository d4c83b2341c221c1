import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { type Fault, unavailable } from "../../model/Fault.ts"
import { type BackendError, InvalidArgument, promote } from "../../model/FsError.ts"
import type { Backend } from "../../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../../port/Rules.ts"
import * as Client from "./client.ts"
import { normalizePrefix } from "./keys.ts"
import * as Objects from "./objects.ts"
import * as Port from "./port.ts"
import { probe, type Support, unconditional } from "./probe.ts"

/**
 * The options of a filesystem on a bucket.
 *
 * @category models
 * @since 0.1.0
 */
export interface BucketOptions extends CommonOptions {
  readonly bucket: string
  /** The prefix of the keys of all files. Leading slashes are removed, and a missing slash at the end is added. @default "" */
  readonly prefix?: string | undefined
  /** The address of the store, such as `http://127.0.0.1:9000`. @default AWS S3 in the region */
  readonly endpoint?: string | undefined
  /** @default "us-east-1" */
  readonly region?: string | undefined
  /**
   * The keys that sign the requests. Without keys, requests are not signed.
   * @default the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the configuration
   */
  readonly credentials?:
    | {
        readonly accessKeyId: string
        readonly secretAccessKey: Redacted.Redacted
        readonly sessionToken?: Redacted.Redacted | undefined
      }
    | undefined
  /**
   * If true, permission bits, times and symlinks are stored as metadata of the objects. A listing then reads the metadata of
   * each object of 1,067 bytes, because symlinks have this size. @default false
   */
  readonly metadata?: boolean | undefined
  /**
   * If true, a store that ignores write conditions is refused. If false, writes have no conditions. Versions are then compared
   * before a write, and a change that another program makes in between is overwritten.
   * @default true
   */
  readonly conditional?: boolean | undefined
}

/** The settings that only tests change. */
export interface Tuning {
  readonly timings?: Partial<Client.Timings>
  readonly sizes?: Partial<Port.Sizes>
}

const operation = "Bucket.make"

const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: "", argument, detail })

const endpointOf = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { hash, password, pathname, protocol, search, username } = new URL(text)
  const isPlain =
    (protocol === "http:" || protocol === "https:") && username === "" && password === "" && search === "" && hash === ""
  return isPlain ? `${new URL(text).origin}${pathname.replace(/\/+$/, "")}` : undefined
}

const checkOptions = ({ bucket, metadata, prefix }: BucketOptions): InvalidArgument | undefined => {
  if (typeof bucket !== "string" || !/^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/.test(bucket)) {
    return invalid(
      "bucket",
      "it must be the name of a bucket: 3 to 255 letters, digits, dots, dashes and underscores, with a letter or digit at both ends"
    )
  }
  if (metadata !== undefined && typeof metadata !== "boolean") return invalid("metadata", "it must be true or false")
  if (prefix !== undefined && (typeof prefix !== "string" || !prefix.isWellFormed() || /[\0-\x1f\x7f]/.test(prefix))) {
    return invalid("prefix", "it must be a text without control characters")
  }
  return (prefix ?? "").split("/").some((segment) => segment === "." || segment === "..")
    ? invalid("prefix", 'it must have no segment "." or ".."')
    : undefined
}

const configured = Config.all({
  accessKeyId: Config.option(Config.NonEmptyString("AWS_ACCESS_KEY_ID")),
  secretAccessKey: Config.option(Config.Redacted("AWS_SECRET_ACCESS_KEY")),
  sessionToken: Config.option(Config.Redacted("AWS_SESSION_TOKEN"))
})

const credentialsFromConfig: Effect.Effect<Client.Credentials | undefined, Fault> = Effect.matchEffect(configured, {
  onFailure: () => Effect.fail(unavailable("the variables AWS_… of the configuration cannot be read; give credentials")),
  onSuccess: ({ accessKeyId, secretAccessKey, sessionToken }) =>
    Effect.succeed(
      Option.isSome(accessKeyId) && Option.isSome(secretAccessKey)
        ? {
            accessKeyId: accessKeyId.value,
            secretAccessKey: secretAccessKey.value,
            sessionToken: Option.getOrUndefined(sessionToken)
          }
        : undefined
    )
})

export interface OpenObjects {
  readonly objects: Objects.Objects
  readonly support: Support
  readonly prefix: string
}

const openObjects = (
  options: BucketOptions,
  endpoint: string,
  tuning: Tuning,
  isProbed: boolean
): Effect.Effect<OpenObjects, Fault> =>
  Effect.gen(function* () {
    const prefix = normalizePrefix(options.prefix ?? "")
    const client = yield* Client.make({
      bucket: options.bucket,
      endpoint,
      region: options.region ?? "us-east-1",
      credentials: options.credentials ?? (yield* credentialsFromConfig),
      timings: { ...Client.defaultTimings, ...tuning.timings }
    })
    const objects = Objects.make(client)
    yield* objects.list({ prefix, limit: 1 })
    return { objects, support: isProbed ? yield* probe(objects, prefix) : unconditional, prefix }
  })

const openPort = (options: BucketOptions, endpoint: string, tuning: Tuning): Effect.Effect<Backend, Fault> =>
  Effect.gen(function* () {
    const rules = fromOptions(options)
    const isProbed = options.conditional !== false && !isReadOnly(rules)
    const { objects, prefix, support } = yield* openObjects(options, endpoint, tuning, isProbed)
    const bestEffort = [
      ...(support.put || isReadOnly(rules) ? [] : ["preconditions and creation: writes are sent without conditions"]),
      ...(support.remove ? [] : ["preconditions of deletions"]),
      ...(support.complete ? [] : ["preconditions and creation by streams of more than one part"]),
      ...(options.metadata === true ? ["modes and times that several programs change at once"] : [])
    ]
    return enforce(
      Port.makePort({
        objects,
        support,
        prefix,
        place: `${endpoint}/${options.bucket}`,
        shownRoot: `s3://${options.bucket}/${prefix}`,
        rules,
        sizes: { ...Port.defaultSizes, ...tuning.sizes },
        bestEffort,
        metadata: options.metadata === true
      })
    )
  })

const toError = (fault: Fault): BackendError | InvalidArgument => {
  // The options name no entry, so a refused request means that the bucket cannot be used.
  const { detail } = fault as { readonly detail?: string }
  return promote(
    fault._tag === "AccessDenied" || fault._tag === "NotFound" ? unavailable(detail ?? "the bucket was not found") : fault,
    operation,
    ""
  ) as BackendError
}

const withEndpoint = <A>(
  options: BucketOptions,
  use: (endpoint: string) => Effect.Effect<A, Fault>
): Effect.Effect<A, BackendError | InvalidArgument> =>
  Effect.suspend(() => {
    const fault = checkOptions(options)
    if (fault !== undefined) return Effect.fail(fault)
    const endpoint = endpointOf(options.endpoint ?? `https://s3.${options.region ?? "us-east-1"}.amazonaws.com`)
    if (endpoint === undefined) {
      return Effect.fail(invalid("endpoint", "it must be an http or https address without user, query and fragment"))
    }
    return Effect.mapError(use(endpoint), toError)
  })

export const open = (options: BucketOptions, tuning: Tuning = {}): Effect.Effect<Backend, BackendError | InvalidArgument> =>
  withEndpoint(options, (endpoint) => openPort(options, endpoint, tuning))

/** Opens a bucket for other uses than a filesystem. Fails with Unavailable if the store ignores write conditions. */
export const openConditional = (
  options: BucketOptions,
  tuning: Tuning = {}
): Effect.Effect<OpenObjects, BackendError | InvalidArgument> =>
  withEndpoint(options, (endpoint) => openObjects(options, endpoint, tuning, true))
