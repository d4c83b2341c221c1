import type { MsgHdrs } from "@nats-io/transport-node"
import type { StreamConfig } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { JournalError } from "../errors.ts"
import { type Connection, type Refusal, creationRetryOptions } from "./connection.ts"
import * as Messages from "./messages.ts"
import type { Options } from "./options.ts"

export interface Log {
  readonly name: string
  readonly subject: string
  /** Reads a message from the leader of the stream, which has every confirmed message. */
  readonly get: (sequence: number) => Effect.Effect<Messages.Message | undefined, JournalError>
  readonly last: Effect.Effect<Messages.Message | undefined, JournalError>
  /** The last position; 0 if there is none. Some positions up to it may still lack their messages. */
  readonly end: Effect.Effect<number, JournalError>
  /**
   * Returns the message that carries the entry at this message's position: the message itself, or the first of its group. A foreign message
   * at a reserved place counts as the place keeper.
   */
  readonly owner: (message: Messages.Message) => Effect.Effect<Messages.Message, JournalError>
}

const streamNotFound = 10_059

const problem = (reason: "corrupt" | "unavailable", detail: string): JournalError =>
  new JournalError({ operation: "JetStream.open", reason, detail })

const configuration = (
  subject: string,
  { maxBytes, name, replicas = 1, storage = "file" }: Options
): Partial<StreamConfig> => ({
  name,
  subjects: [subject],
  description: "journal of fs-algebra",
  storage,
  num_replicas: replicas,
  max_bytes: maxBytes ?? -1,
  retention: "limits",
  discard: "new",
  deny_delete: true,
  deny_purge: true
})

const unfitReason = (subject: string, config: StreamConfig): string | undefined => {
  if (config.subjects?.length !== 1 || config.subjects[0] !== subject) return `its subjects are ${String(config.subjects)}`
  if (config.retention !== "limits") return `its retention is ${config.retention}`
  if (config.discard !== "new") return `it discards the oldest`
  if (config.max_age > 0) return "its messages expire"
  if (config.max_msgs > 0 || config.max_msgs_per_subject > 0) return "the number of its messages is limited"
  return config.deny_delete && config.deny_purge ? undefined : "its messages may be deleted"
}

const createStream = (connection: Connection, subject: string, options: Options): Effect.Effect<void, JournalError> => {
  const { streams } = connection.manager
  const info = connection.call("JetStream.open", () => streams.info(options.name))
  const add = connection.call("JetStream.open", () =>
    streams.add(configuration(subject, options) as Parameters<typeof streams.add>[0])
  )
  const isMissing = (error: JournalError | Refusal): boolean => error._tag === "Refusal" && error.code === streamNotFound
  return Effect.catchIf(info, isMissing, () => add).pipe(
    Effect.retry(creationRetryOptions),
    Effect.mapError((error) => (error._tag === "Refusal" ? problem("unavailable", error.message) : error)),
    Effect.flatMap(({ config }) => {
      const reason = unfitReason(subject, config)
      return reason === undefined
        ? Effect.void
        : Effect.fail(problem("corrupt", `the stream ${options.name} is no journal: ${reason}`))
    })
  )
}

export const open = (connection: Connection, options: Options): Effect.Effect<Log, JournalError> => {
  const { name } = options
  const subject = `fs-algebra.${name}`
  const { streams } = connection.manager
  const find = (query: { readonly seq: number } | { readonly last_by_subj: string }) =>
    Effect.map(
      connection.ask("JetStream.read", () => streams.getMessage(name, query)),
      (found) => (found === null ? undefined : Messages.make(found.seq, found.data, found.header as MsgHdrs | undefined))
    )
  const get = (sequence: number) => find({ seq: sequence })
  const last = find({ last_by_subj: subject })
  const findOwnerBefore = (message: Messages.Message): Effect.Effect<Messages.Message, JournalError> =>
    message.sequence === 1
      ? Effect.succeed(message)
      : Effect.flatMap(get(message.sequence - 1), (before) =>
          before === undefined
            ? Effect.succeed(message)
            : Effect.map(owner(before), (owner) => (Messages.endOf(owner) >= message.sequence ? owner : message))
        )
  const owner: Log["owner"] = (message) => {
    if (message.id !== "") return Effect.succeed(message)
    const { place, sequence } = message
    if (place === undefined || place.first >= sequence) return findOwnerBefore(message)
    return Effect.flatMap(get(place.first), (first) =>
      first?.count === place.count && Messages.endOf(first) >= sequence ? Effect.succeed(first) : findOwnerBefore(message)
    )
  }
  const end = Effect.flatMap(last, (message) =>
    message === undefined ? Effect.succeed(0) : Effect.map(owner(message), Messages.endOf)
  )
  return Effect.as(createStream(connection, subject, options), { name, subject, get, last, end, owner })
}
