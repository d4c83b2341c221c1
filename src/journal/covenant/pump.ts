/**
 * Runs one route. Appends to the consuming journals, in order, the entries made from each source entry. The ids of made entries
 * derive from the source entry. A restarted route collects the ids in the target journals, and skips these until it has passed
 * the source entries that existed at its start.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { JournalError } from "../errors.ts"
import type { Recorded } from "../Journal.ts"
import type { Declared, DeclaredBranch, DeclaredRoute, Routable } from "./declared.ts"

/**
 * A route that cannot continue. Earlier entries have been routed; this entry and later ones have not. A restarted covenant begins with this
 * entry.
 *
 * @since 0.1.0
 */
export class RouteError extends Schema.TaggedError<RouteError>("fs-algebra/RouteError")("RouteError", {
  route: Schema.String,
  /** The position of the entry in the journal of the producing branch. */
  position: Schema.Int,
  detail: Schema.String
}) {
  override get message(): string {
    return `the route ${JSON.stringify(this.route)} stopped at entry ${this.position}: ${this.detail}`
  }
}

/** The settled position of each journal, by the name of its branch. The pump does not read entries up to there. */
export type Settled = Readonly<Record<string, number>>

const settledPosition = (after: Settled, branch: DeclaredBranch): number =>
  Object.hasOwn(after, branch.name) ? after[branch.name]! : 0

const messageOf = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message : typeof error === "string" ? error : JSON.stringify(error)

const idsIn = (branch: DeclaredBranch, types: ReadonlySet<string>, after: Settled) =>
  Stream.runFold(
    branch.journal.stored(settledPosition(after, branch)),
    () => new Set<string>(),
    (ids, { entry }) => (types.has(entry._tag) ? ids.add(entry.correlationId) : ids)
  )

const group = (entries: ReadonlyArray<Routable>, takes: ReadonlyMap<string, DeclaredBranch>) => {
  const groups = new Map<DeclaredBranch, Array<Routable>>()
  for (const entry of entries) {
    const branch = takes.get(entry._tag)!
    const group = groups.get(branch)
    if (group === undefined) groups.set(branch, [entry])
    else group.push(entry)
  }
  return groups
}

export const runRoute = <E, R>(
  { branches }: Declared<E, R>,
  { from, name, to, via }: DeclaredRoute<E, R>,
  after: Settled
): Effect.Effect<void, RouteError | JournalError, R> => {
  const sources: ReadonlySet<string> = new Set(from)
  const targets: ReadonlySet<string> = new Set(to)
  const source = branches.find(({ produces }) => produces.some((type) => sources.has(type)))!
  const takes = new Map(to.map((type) => [type, branches.find(({ consumes }) => consumes.includes(type))!]))

  const makeEntries = (recorded: Recorded<Routable>) => {
    const routeError = (detail: string) => new RouteError({ route: name, position: recorded.position, detail })
    return Effect.flatMap(
      Effect.mapError(
        Effect.suspend(() => via(recorded)),
        (error) => routeError(messageOf(error))
      ),
      (entries) => {
        const undeclaredEntry = entries.find(({ _tag }) => !targets.has(_tag))
        return undeclaredEntry === undefined
          ? Effect.succeed(entries)
          : Effect.fail(routeError(`it made ${undeclaredEntry._tag}, which it is not declared to make`))
      }
    )
  }

  return Effect.gen(function* () {
    const knownIds = new Map<DeclaredBranch, ReadonlySet<string>>()
    for (const branch of new Set(takes.values())) knownIds.set(branch, yield* idsIn(branch, targets, after))
    // The known ids belong to source entries up to this position.
    const lastAtStart = yield* source.journal.last

    const route = Effect.fnUntraced(function* (recorded: Recorded<Routable>) {
      const isFromBeforeStart = recorded.position <= lastAtStart
      if (!isFromBeforeStart && knownIds.size > 0) knownIds.clear()
      for (const [branch, entries] of group(yield* makeEntries(recorded), takes)) {
        const ids = knownIds.get(branch)
        const newEntries = ids === undefined ? entries : entries.filter(({ correlationId }) => !ids.has(correlationId))
        if (newEntries.length > 0) yield* branch.journal.appendAll(newEntries)
      }
    })

    yield* Stream.runForEachArray(
      source.journal.tail(settledPosition(after, source)),
      Effect.fnUntraced(function* (page) {
        for (const recorded of page) if (sources.has(recorded.entry._tag)) yield* route(recorded)
      })
    )
  })
}
