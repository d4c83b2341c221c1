/**
 * The options of stores on a NATS server. This file imports no optional package, because users without these packages check its
 * types too.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { StoreError } from "../../errors.ts"

export type Secret = string | Redacted.Redacted<string>

/**
 * The credentials of the client.
 *
 * @since 0.1.0
 */
export type Authentication =
  | { readonly token: Secret }
  | { readonly user: string; readonly password: Secret }
  /** The text of a `.creds` file. */
  | { readonly credentials: Secret }

/** The options of a connection to NATS. */
export interface ConnectionOptions {
  readonly servers: string | ReadonlyArray<string>
  /** The name of the journal or of the stores, which the server shows beside the connection. */
  readonly name: string
  readonly authentication?: Authentication | undefined
  readonly tls?: boolean | { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
  readonly timeout?: Duration.Input | undefined
}

export interface JetStreamOptions {
  /** The addresses of the servers of one cluster: `host`, `host:port` or `nats://host:port`. */
  readonly servers: ReadonlyArray<string>
  /**
   * The name of the stores: at most 200 letters, digits, "-" and "_". The object store is `NAME-blobs`, and the key-value bucket is
   * `NAME-heads`.
   */
  readonly name: string
  /** @default none */
  readonly authentication?: Authentication | undefined
  /**
   * The TLS options. `true` trusts the machine's certificate authorities. An object contains PEM texts instead.
   * @default the server decides
   */
  readonly tls?: boolean | { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
  /** The number of servers with a copy, 1 to 5. Applies when the buckets are created. @default 1 */
  readonly replicas?: number | undefined
  /** True to fail with `missing` if the buckets do not exist, instead of creating them. @default false */
  readonly mustExist?: boolean | undefined
  /** The longest wait for a server that cannot be reached. @default "30 seconds" */
  readonly timeout?: Duration.Input | undefined
}

const namePattern = /^[\w-]{1,200}$/

const invalid = (detail: string): Effect.Effect<never, StoreError> => Effect.fail(new StoreError({ reason: "invalid", detail }))

const nameRule = 'must be 1 to 200 letters, digits, "-" and "_"'

export const checkOptions = ({ name, replicas = 1, servers }: JetStreamOptions): Effect.Effect<void, StoreError> => {
  if (!namePattern.test(name)) return invalid(`the name ${JSON.stringify(name.slice(0, 80))} of the stores ${nameRule}`)
  if (servers.length === 0 || servers.includes("")) return invalid("the option `servers` has no address of a NATS server")
  return Number.isInteger(replicas) && replicas >= 1 && replicas <= 5
    ? Effect.void
    : invalid(`the option \`replicas\` must be 1 to 5, but is ${replicas}`)
}

const urlPattern = /^(nats|tls):\/\/(?:([^@/]*)@)?([^@/?#]+)\/([^/?#]*)$/

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns the credentials in a URL: `user:password`, or a token. */
const credentialsOf = (text: string): Authentication | undefined => {
  const [first = "", ...rest] = text.split(":").map(decoded)
  const [second] = rest
  if (rest.length > 1 || first === "" || [first, ...rest].includes(undefined)) return undefined
  return second === undefined ? { token: Redacted.make(first) } : { user: first, password: Redacted.make(second) }
}

/**
 * Reads the options from one text: `nats://HOST:PORT/NAME`. Several hosts of one cluster are separated by commas. Credentials
 * precede the hosts: `nats://USER:PASSWORD@HOST:PORT/NAME` or `nats://TOKEN@HOST:PORT/NAME`. With `tls://`, the connection must
 * be encrypted. Error messages do not contain the text, because the text may contain a password.
 */
export const optionsOfUrl = (url: string): Effect.Effect<JetStreamOptions, StoreError> =>
  Effect.suspend(() => {
    const form = "nats://HOST:PORT/NAME"
    const [, scheme, credentials, hosts = "", name = ""] = urlPattern.exec(url) ?? []
    if (scheme === undefined) return invalid(`the URL of the stores does not have the form ${form}`)
    const authentication = credentials === undefined ? undefined : credentialsOf(credentials)
    if (credentials !== undefined && authentication === undefined) {
      return invalid(
        `the credentials in the URL of the stores are not USER:PASSWORD or TOKEN; write "@", ":" and "/" in them as %40, %3A and %2F`
      )
    }
    const options: JetStreamOptions = {
      servers: hosts.split(","),
      name,
      ...(authentication !== undefined && { authentication }),
      ...(scheme === "tls" && { tls: true })
    }
    return Effect.as(checkOptions(options), options)
  })
