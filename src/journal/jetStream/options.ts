/** What a journal on a server is told, and what of it is refused before anything is asked of the server. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { JournalError } from "../errors.ts"

type Secret = string | Redacted.Redacted<string>

/**
 * Who this program is to the server.
 *
 * @since 0.1.0
 */
export type Authentication =
  | { readonly token: Secret }
  | { readonly user: string; readonly password: Secret }
  /** What a `.creds` file holds. */
  | { readonly credentials: Secret }

/**
 * Which server and stream hold the journal, and how they are reached.
 *
 * @since 0.1.0
 */
export interface Options {
  /** `host`, `host:port` or `nats://host:port`; several of one cluster, for one that is gone. */
  readonly servers: string | ReadonlyArray<string>
  /** Of the journal: letters, digits, "-" and "_". The stream is called so, its subject `fs-algebra.<name>`, its object store the same. */
  readonly name: string
  readonly authentication?: Authentication | undefined
  /** `true`: encrypted, trusting who the machine trusts. Otherwise PEM texts. @default as the server asks */
  readonly tls?: boolean | { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
  /** Servers of the cluster that hold a copy, 1 to 5. Counts when the stream is made. @default 1 */
  readonly replicas?: number | undefined
  /** Where the server keeps it. Counts when the stream is made. @default "file" */
  readonly storage?: "file" | "memory" | undefined
  /** Bytes, after which appends fail with `tooLarge`; nothing old is ever dropped. Counts when the stream is made. @default no bound */
  readonly maxBytes?: number | undefined
  /**
   * How long a call waits for a server that is gone, before it fails with `unavailable`; a tail that still reads what is stored fails so
   * too. One that has come to the end waits for the server as long as it takes. @default "30 seconds"
   */
  readonly timeout?: Duration.Input | undefined
}

const refuse = (detail: string): Effect.Effect<never, JournalError> =>
  Effect.fail(new JournalError({ operation: "JetStream.open", reason: "invalid", detail }))

/** Fails where the options make no sense. */
export const check = ({ maxBytes, name, replicas = 1, servers }: Options): Effect.Effect<void, JournalError> => {
  if (!/^[\w-]{1,200}$/.test(name)) return refuse(`the name ${JSON.stringify(name)} is not of letters, digits, "-" and "_"`)
  if (servers.length === 0) return refuse("no server is named")
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 5) return refuse(`replicas are 1 to 5, not ${replicas}`)
  if (maxBytes !== undefined && !(Number.isSafeInteger(maxBytes) && maxBytes > 0)) return refuse(`maxBytes is ${maxBytes}`)
  return Effect.void
}

export const reveal = (secret: Secret): string => (typeof secret === "string" ? secret : Redacted.value(secret))
