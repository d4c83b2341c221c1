/**
 * What happens, as it happens: each a stream that runs once while anybody listens, for all who do, and looks once a second where nobody
 * tells.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Files } from "./journal.ts"
import type { LiveEvent } from "./model.ts"

const interval = "1 second"

/** Within which what comes is told as one. */
const lull = "100 millis"

/** Events that are read at once, and paths that are named. */
const [most, namable] = [10_000, 500]

/** Events that are kept for who reads slowly; of more the oldest are gone, so that nobody waits for another. */
const kept = 256

/** `happenings` are told to who listens then; of `states` the latest is told to everybody at first. */
export const toAll = ({
  happenings = [],
  states = []
}: {
  readonly happenings?: ReadonlyArray<Stream.Stream<LiveEvent>>
  readonly states?: ReadonlyArray<Stream.Stream<LiveEvent>>
}): Effect.Effect<Stream.Stream<LiveEvent>, never, Scope.Scope> =>
  Effect.map(
    Effect.all([
      Effect.forEach(happenings, Stream.share({ capacity: kept, strategy: "sliding" })),
      Effect.forEach(states, Stream.share({ capacity: kept, strategy: "sliding", replay: 1 }))
    ]),
    (shared) => Stream.mergeAll(shared.flat(), { concurrency: "unbounded" })
  )

const looking = <A>(look: Effect.Effect<A>): Stream.Stream<A> =>
  Stream.changes(Stream.fromEffectSchedule(look, Schedule.spaced(interval)))

/** The event, whenever what is looked at has become another. */
export const changing = (look: Effect.Effect<string>, event: LiveEvent): Stream.Stream<LiveEvent> =>
  Stream.map(Stream.drop(looking(look), 1), () => event)

/** How many there are, at first and whenever there are others: who begins to listen has missed nothing. */
export const counting = (look: Effect.Effect<number>, event: (count: number) => LiveEvent): Stream.Stream<LiveEvent> =>
  Stream.map(looking(look), event)

export interface Watch {
  readonly events: ReadonlyArray<Stream.Stream<LiveEvent>>
  /** Why nothing is told of the files, though it is listened to. */
  readonly problem: () => string | undefined
}

/** Of a filesystem that tells; of any other nothing. Whoever cannot watch still shows what is there when it is asked. */
export const ofFiles = (fs: Algebra): Watch => {
  if (fs.port.watch === undefined) return { events: [], problem: () => `${fs.name} does not watch` }
  let problem: string | undefined
  const events = Stream.suspend(() => {
    problem = undefined
    return fs.watch(".")
  }).pipe(
    Stream.groupedWithin(most, lull),
    Stream.map((events): LiveEvent => {
      const paths = [...new Set<string>(events.map(({ path }) => path))]
      return { type: "files", paths: paths.length > namable ? null : paths }
    }),
    Stream.catch(({ message }) => {
      problem = message
      // Who listens asks again, and is told why. A stream that ended would not begin anew for the next who listens.
      return Stream.concat(Stream.make<[LiveEvent]>({ type: "files", paths: null }), Stream.never)
    })
  )
  return { events: [events], problem: () => problem }
}

/** Where it ends, at first and whenever it has grown. While it cannot be read, which who asks about it is told, it is tried again. */
export const ofJournal = (journal: Files | undefined): ReadonlyArray<Stream.Stream<LiveEvent>> =>
  journal === undefined
    ? []
    : [
        Stream.unwrap(
          Effect.map(journal.last, (last) =>
            Stream.concat(
              Stream.make(last),
              Stream.map(Stream.groupedWithin(journal.tail(last), most, lull), (entries) => entries.at(-1)!.position)
            )
          )
        ).pipe(
          Stream.map((last): LiveEvent => ({ type: "journal", last })),
          Stream.retry(Schedule.spaced(interval)),
          Stream.orDie
        )
      ]
