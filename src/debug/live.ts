/**
 * The streams of live events. All listeners share one run of each source. The run stops with the last listener. Sources
 * without events are polled, by default once a second.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FileJournal } from "./journal.ts"
import type { LiveEvent } from "./model.ts"

const pollInterval = "1 second"

const groupingInterval = "100 millis"

const [maxGroupedEvents, maxNamedPaths] = [10_000, 500]

/** The number of events to keep for a slow listener. Older events are dropped, so that no listener delays another. */
const listenerCapacity = 256

/**
 * Shares streams with all listeners. A transient event is sent only to the current listeners. The latest state is sent to new
 * listeners too.
 */
export const shareWithListeners = ({
  transientEvents = [],
  statefulEvents = []
}: {
  readonly transientEvents?: ReadonlyArray<Stream.Stream<LiveEvent>>
  readonly statefulEvents?: ReadonlyArray<Stream.Stream<LiveEvent>>
}): Effect.Effect<Stream.Stream<LiveEvent>, never, Scope.Scope> =>
  Effect.map(
    Effect.all([
      Effect.forEach(transientEvents, Stream.share({ capacity: listenerCapacity, strategy: "sliding" })),
      Effect.forEach(statefulEvents, Stream.share({ capacity: listenerCapacity, strategy: "sliding", replay: 1 }))
    ]),
    (shared) => Stream.mergeAll(shared.flat(), { concurrency: "unbounded" })
  )

const pollChanges = <A>(observe: Effect.Effect<A>, interval: Duration.Input = pollInterval): Stream.Stream<A> =>
  Stream.changes(Stream.fromEffectSchedule(observe, Schedule.spaced(interval)))

export const emitOnChange = (
  observe: Effect.Effect<string>,
  event: LiveEvent,
  interval?: Duration.Input
): Stream.Stream<LiveEvent> => Stream.map(Stream.drop(pollChanges(observe, interval), 1), () => event)

/** Emits the current count, and then the count after each change. */
export const emitCounts = (observe: Effect.Effect<number>, event: (count: number) => LiveEvent): Stream.Stream<LiveEvent> =>
  Stream.map(pollChanges(observe), event)

export interface Watch {
  readonly events: ReadonlyArray<Stream.Stream<LiveEvent>>
  /** Returns the reason why no file events are sent, or `undefined` if they are sent. */
  readonly problem: () => string | undefined
}

/** Watches a filesystem. If watching fails, sends one last event, and requests still return the current state. */
export const watchFiles = (fs: Algebra): Watch => {
  if (fs.port.watch === undefined) return { events: [], problem: () => `${fs.name} cannot be watched` }
  let problem: string | undefined
  const events = Stream.suspend(() => {
    problem = undefined
    return fs.watch(".")
  }).pipe(
    Stream.groupedWithin(maxGroupedEvents, groupingInterval),
    Stream.map((events): LiveEvent => {
      const paths = [...new Set<string>(events.map(({ path }) => path))]
      return { type: "files", paths: paths.length > maxNamedPaths ? null : paths }
    }),
    Stream.catch(({ message }) => {
      problem = message
      // Clients send new requests after this event, and the response contains the problem. The stream must not end, because an
      // ended shared stream would not restart.
      return Stream.concat(Stream.make<[LiveEvent]>({ type: "files", paths: null }), Stream.never)
    })
  )
  return { events: [events], problem: () => problem }
}

/**
 * Emits the last position of the journal, and the new last position whenever the journal grows. If the journal cannot be read,
 * requests report the error, and the stream tries again.
 */
export const followJournal = (journal: FileJournal | undefined): ReadonlyArray<Stream.Stream<LiveEvent>> =>
  journal === undefined
    ? []
    : [
        Stream.unwrap(
          Effect.map(journal.last, (last) =>
            Stream.concat(
              Stream.make(last),
              Stream.map(
                Stream.groupedWithin(journal.tail(last), maxGroupedEvents, groupingInterval),
                (entries) => entries.at(-1)!.position
              )
            )
          )
        ).pipe(
          Stream.map((last): LiveEvent => ({ type: "journal", last })),
          Stream.retry(Schedule.spaced(pollInterval)),
          Stream.orDie
        )
      ]
