/**
 * The options of a journal on a server. This file imports no optional package, because TypeScript also checks it for
 * users who have not installed these packages.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Authentication } from "../../repository/stores/jetStream/options.ts"
import { JournalError } from "../errors.ts"
import type { ContentStore } from "../model.ts"

export type { Authentication } from "../../repository/stores/jetStream/options.ts"

/**
 * The server, the stream and the connection of a journal.
 *
 * @since 0.1.0
 */
export interface Options {
  /**
   * The address of the server: `host`, `host:port` or `nats://host:port`. Several addresses of one cluster provide failover.
   */
  readonly servers: string | ReadonlyArray<string>
  /**
   * The journal's name: at most 200 letters, digits, "-" and "_". The stream and the object store have the same name. The subject
   * is `fs-algebra.<name>`.
   */
  readonly name: string
  readonly authentication?: Authentication | undefined
  /**
   * The TLS options. `true` trusts the machine's certificate authorities. An object contains PEM texts instead.
   * @default the server decides
   */
  readonly tls?: boolean | { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
  /** The number of servers in the cluster with a copy of the stream, 1 to 5. Applies when the stream is created. @default 1 */
  readonly replicas?: number | undefined
  /** The server's storage. Applies when the stream is created. @default "file" */
  readonly storage?: "file" | "memory" | undefined
  /**
   * The size in bytes at which appends fail with `tooLarge`. Old entries are never dropped. Applies when the stream is created.
   * @default no bound
   */
  readonly maxBytes?: number | undefined
  /**
   * The longest wait for an unreachable server, after which a call fails with `unavailable`. A tail that still reads stored
   * entries fails too. A tail that has reached the end waits without a limit.
   * @default "30 seconds"
   */
  readonly timeout?: Duration.Input | undefined
  /** The store of the contents larger than 4 KiB, the same in all processes. @default the object store of the server */
  readonly contents?: ContentStore | undefined
}

const invalidOption = (detail: string): Effect.Effect<never, JournalError> =>
  Effect.fail(new JournalError({ operation: "JetStream.open", reason: "invalid", detail }))

export const checkOptions = ({ maxBytes, name, replicas = 1, servers }: Options): Effect.Effect<void, JournalError> => {
  if (!/^[\w-]{1,200}$/.test(name))
    return invalidOption(`the journal name ${JSON.stringify(name)} must have 1 to 200 letters, digits, "-" and "_"`)
  if (servers.length === 0) return invalidOption("the option `servers` is empty; give the address of a NATS server")
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 5)
    return invalidOption(`replicas must be 1 to 5, but is ${replicas}`)
  if (maxBytes !== undefined && !(Number.isSafeInteger(maxBytes) && maxBytes > 0))
    return invalidOption(`maxBytes must be a whole number of at least 1, but is ${maxBytes}`)
  return Effect.void
}
