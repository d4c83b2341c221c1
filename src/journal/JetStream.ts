/**
 * A journal on a NATS server, for callers and leaves on different machines. The entries are in a JetStream stream, and the
 * contents are in its object store.
 *
 * Positions are the sequence numbers of the stream. No message is ever dropped from the stream. After an append completes,
 * all readers see it as a whole. Every message names its expected position. So an append is stored once, even if it is sent
 * again after a lost reply. If several entries are appended together, the first message carries all entries, and the other
 * messages reserve the positions. So all entries appear together.
 *
 * An append that fails with `unavailable` after its timeout may have been stored, and the error says so. A retry with the
 * same correlation id is safe, because a leaf carries out only one request with this id, and `Requests.waitFor` finds the
 * answer. Each open journal has one message in flight. Appends that arrive meanwhile are sent together in the next message. If
 * several processes append at the same time, each retries until it succeeds, in no particular order.
 *
 * Requires the packages `@nats-io/transport-node` and `@nats-io/jetstream`, and a NATS server of 2.9 or later with JetStream.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Journal from "./Journal.ts"
import type { Store } from "./model.ts"
import { JournalError } from "./errors.ts"
import * as Connection from "./jetStream/connection.ts"
import { checkOptions, type Options } from "./jetStream/options.ts"
import * as Contents from "./jetStream/contents.ts"
import * as Log from "./jetStream/log.ts"
import * as Following from "./jetStream/reading.ts"
import * as Writing from "./jetStream/writing.ts"

const invalid = (detail: string): JournalError => new JournalError({ operation: "JetStream.append", reason: "invalid", detail })

const makeJetStream = <E, Encoded>(
  schema: Schema.Codec<E, Encoded>,
  options: Options
): Effect.Effect<Store<E>, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* checkOptions(options)
    const connection = yield* Connection.make(options)
    const log = yield* Log.open(connection, options)
    const contents = options.contents ?? (yield* Contents.open(connection, options))
    const codec = Log.codec(schema)
    const following = yield* Following.makeFollowing(connection, log, yield* log.end)
    const write = yield* Writing.make(connection, log, contents)
    const { read, readBackward } = Following.make(log, following, contents, codec)
    return {
      append: (entries, at) =>
        Effect.flatMap(
          Effect.try({ try: () => entries.map((entry) => codec.encode(entry, at)), catch: (cause) => invalid(String(cause)) }),
          write
        ),
      read,
      readBackward,
      last: log.end,
      changed: following.changed,
      contents
    }
  })

export type { Authentication, Options } from "./jetStream/options.ts"

/**
 * Opens a store of entries of any kind. Creates the stream and the object store if they do not exist. Fails with `unavailable`
 * if the server cannot be reached or refuses the request. Fails with `corrupt` if the stream of this name is not a journal.
 * Fails with `invalid` for invalid options. The connection closes with the scope, and pending operations then fail with
 * `closed`.
 *
 * @since 0.1.0
 */
export const makeStore: <E, Encoded>(
  schema: Schema.Codec<E, Encoded>,
  options: Options
) => Effect.Effect<Journal.Store<E>, JournalError, Scope.Scope> = makeJetStream

/**
 * Opens a journal of entries of any kind. Fails with the errors of `makeStore`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E, Encoded>(
  schema: Schema.Codec<E, Encoded>,
  options: Options
): Effect.Effect<Journal.Scrivener<E>, JournalError, Scope.Scope> => Effect.map(makeStore(schema, options), Journal.make)

/**
 * Provides the journal of file operations on a server.
 *
 * @example
 * ```ts
 * const journal = JetStream.layer({ servers: ["nats-1:4222", "nats-2:4222"], name: "project" })
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("README.md"))
 * yield* Effect.provide(read, Branch.layer({ extended: true }).pipe(Layer.provide(journal)))
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Journal.Journal, JournalError> =>
  Layer.effect(Journal.Journal, make(Journal.Entry, options))
