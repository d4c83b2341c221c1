/** The streams of the stores, their settings, and the reading of all messages of a subject. */
import type { ConsumerConfig, JsMsg, StreamConfig } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { StoreError } from "../../errors.ts"
import { type Connection, creationRetryOptions, isRefusal, type Refusal } from "./connection.ts"
import type { JetStreamOptions } from "./options.ts"

export type StoreConnection = Connection<StoreError>

/** The `err_code`s for exceeded limits of a stream, of the account, or of the server. */
const fullCodes: ReadonlySet<number> = new Set([10_002, 10_023, 10_028, 10_047, 10_077])
const tooLarge = 10_054
const streamNotFound = 10_059
export const wrongLastSequence = 10_071

const errorOf = (what: string, error: StoreError | Refusal): StoreError => {
  if (!isRefusal(error)) return error
  if (fullCodes.has(error.code)) {
    const detail = `${what}: the server has no space left for the store (${error.message}); raise the limits of the account or of the stream`
    return new StoreError({ reason: "full", detail })
  }
  return new StoreError({
    reason: error.code === tooLarge ? "invalid" : "unavailable",
    detail: `${what}: the server refused the request (${error.message})`
  })
}

export const refusedAs = (what: string) => Effect.mapError((error: StoreError | Refusal) => errorOf(what, error))

export interface Bucket {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  /** The description of the streams that stores have made. `undefined` permits all streams with fitting settings. */
  readonly description: string | undefined
  /** The storage of a new stream. A stream of a store with a description must be in files. @default "file" */
  readonly storage?: "file" | "memory" | undefined
  /** The number of messages that are kept for each subject. */
  readonly history?: number
}

const unfitReason = ({ description, subjects }: Bucket, config: StreamConfig): string | undefined => {
  const isOwn = description !== undefined
  if (isOwn && config.description !== description) return `it was not made for stores (its description is not "${description}")`
  if ([...(config.subjects ?? [])].sort().join() !== [...subjects].sort().join()) {
    return `it has the subjects ${String(config.subjects)} instead of ${subjects.join()}`
  }
  if (config.mirror !== undefined || (config.sources ?? []).length > 0) return "it copies another stream"
  if (isOwn && config.storage !== "file") return "it is kept in the memory of the server"
  if (config.retention !== "limits") return `it has the retention ${config.retention}`
  if (config.discard !== "new") return "the server deletes its oldest messages when it is full"
  if (config.max_age > 0) return "its messages expire"
  if (config.max_msgs > 0) return "the number of its messages is limited"
  if (config.sealed) return "it is sealed"
  if (!config.allow_rollup_hdrs) return "it does not allow roll-ups"
  return config.deny_purge ? "its messages cannot be deleted" : undefined
}

/** Opens a stream, and creates it if it is missing and need not exist. Fails with `invalid` if its settings do not fit. */
export const openBucket = (
  connection: StoreConnection,
  bucket: Bucket,
  { mustExist = false, replicas = 1 }: Pick<JetStreamOptions, "mustExist" | "replicas">
): Effect.Effect<void, StoreError> => {
  const { streams } = connection.manager
  const { description, history = -1, storage = "file", stream, subjects } = bucket
  const what = `opening the stream ${stream}`
  const configuration: Partial<StreamConfig> = {
    name: stream,
    subjects: [...subjects],
    ...(description !== undefined && { description }),
    storage,
    retention: "limits",
    discard: "new",
    num_replicas: replicas,
    max_msgs_per_subject: history,
    allow_rollup_hdrs: true,
    allow_direct: true
  }
  return connection
    .call(what, () => streams.info(stream))
    .pipe(
      Effect.catchIf(
        (error) => isRefusal(error) && error.code === streamNotFound,
        () =>
          mustExist
            ? Effect.fail(
                new StoreError({ reason: "missing", detail: `the server has no stream ${stream}, so there is no store` })
              )
            : connection.call(what, () => streams.add(configuration as Parameters<typeof streams.add>[0]))
      ),
      Effect.retry(creationRetryOptions),
      refusedAs(what),
      Effect.flatMap(({ config }) => {
        const reason = unfitReason(bucket, config)
        const detail = `the stream ${stream} cannot hold the store: ${reason}; choose another name, or delete the stream if nobody needs it`
        return reason === undefined ? Effect.void : Effect.fail(new StoreError({ reason: "invalid", detail }))
      })
    )
}

const pageMessages = 500
const pageMillis = 5_000

/**
 * Reads a page of messages after a sequence number. Each page has a consumer of its own, so a restart of the server does no
 * harm.
 */
const readPage = async (
  { jetstream, manager }: StoreConnection,
  stream: string,
  filter: string,
  after: number,
  isWithoutBody: boolean
) => {
  const found = await manager.consumers.add(stream, {
    filter_subject: filter,
    deliver_policy: "by_start_sequence",
    opt_start_seq: after + 1,
    ack_policy: "none",
    inactive_threshold: 2 * pageMillis * 1_000_000,
    mem_storage: true,
    num_replicas: 1,
    headers_only: isWithoutBody
  } as Partial<ConsumerConfig>)
  const messages: Array<JsMsg> = []
  let isLast = found.num_pending === 0
  if (!isLast) {
    const consumer = jetstream.consumers.getConsumerFromInfo(found)
    const fetched = await consumer.fetch({ max_messages: Math.min(pageMessages, found.num_pending), expires: pageMillis })
    for await (const message of fetched) {
      messages.push(message)
      isLast = message.info.pending === 0
      if (isLast) break
    }
  }
  await manager.consumers.delete(stream, found.name).catch(() => undefined)
  return { messages, isLast }
}

/** Returns all messages of a subject in order, also messages that arrive before the stream ends. */
export const messagesOf = (
  connection: StoreConnection,
  what: string,
  { filter, isWithoutBody, stream }: { readonly stream: string; readonly filter: string; readonly isWithoutBody: boolean }
): Stream.Stream<JsMsg, StoreError> =>
  Stream.paginate(0, (after) =>
    connection
      .call(what, async () => {
        const page = await readPage(connection, stream, filter, after, isWithoutBody)
        // The server has lost the consumer, or the messages were deleted meanwhile. The next request has a new consumer.
        if (!page.isLast && page.messages.length === 0) {
          throw new connection.packages.transport.errors.RequestError("the server delivered no message")
        }
        return page
      })
      .pipe(
        refusedAs(what),
        Effect.map(
          ({ isLast, messages }) => [messages, isLast ? Option.none<number>() : Option.some(messages.at(-1)!.seq)] as const
        )
      )
  )
