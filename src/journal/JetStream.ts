/**
 * A journal on a NATS server, for callers and leaves on different machines: entries in a stream of JetStream, contents in its object store.
 *
 * Positions are the sequence numbers of the stream. Nothing is ever dropped from it. An append is there, whole, for whoever reads when it is
 * answered, and is stored once also where an answer is lost and it is sent again, since every message names the place that it shall have.
 * With `appendAll` and with appends that come together the first message carries all entries and the others keep their places, so that
 * all appear at once.
 *
 * What fails with `unavailable` after its time is over may have been appended all the same; the error says so. Asking again with the same
 * correlation id is safe: a leaf carries out an id once, and `Requests.waitFor` finds what it has answered. One message is on its way at a
 * time in each process, and calls that come meanwhile go together with the next; where several processes append at once, each tries again
 * until it is its turn, in no order among them.
 *
 * Needs the packages `@nats-io/transport-node`, `@nats-io/jetstream` and `@nats-io/obj`, and a server of 2.9 or later with JetStream.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { JournalError } from "./errors.ts"
import type { Options } from "./jetStream/options.ts"
import * as JetStreamStore from "./jetStream/store.ts"
import * as Journal from "./Journal.ts"

export type {
  /** @since 0.1.0 */
  Authentication,
  /** @since 0.1.0 */
  Options
} from "./jetStream/options.ts"

/**
 * A store of entries of any kind. The stream and the object store are made where they are not there. Fails with `unavailable` where the
 * server cannot be reached or refuses, with `corrupt` where the stream of this name is none of a journal, and with `invalid` for options
 * that make no sense. The connection is closed
 * with the scope; what still waits then fails with `closed`.
 *
 * @since 0.1.0
 */
export const makeStore: <E, Encoded>(
  schema: Schema.Codec<E, Encoded>,
  options: Options
) => Effect.Effect<Journal.Store<E>, JournalError, Scope.Scope> = JetStreamStore.make

/**
 * A journal of entries of any kind, as `makeStore`.
 *
 * @since 0.1.0
 */
export const make = <E, Encoded>(
  schema: Schema.Codec<E, Encoded>,
  options: Options
): Effect.Effect<Journal.Scrivener<E>, JournalError, Scope.Scope> => Effect.map(makeStore(schema, options), Journal.make)

/**
 * The journal of file operations on a server.
 *
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Journal.Journal, JournalError> =>
  Layer.effect(Journal.Journal, make(Journal.Entry, options))
