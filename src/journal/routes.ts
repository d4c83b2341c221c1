/**
 * Checks the declaration of a covenant, and runs its routes. A route appends the target entries of each source entry to the
 * consuming journals, in order. A restarted route collects the correlation ids in the target journals. For source entries from
 * before the start, the route skips target entries with these ids.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Recorded, Scrivener } from "./model.ts"
import type { JournalError } from "./errors.ts"

/** An entry that a covenant can route. */
export interface Routable {
  readonly _tag: string
  readonly correlationId: string
}

export interface DeclaredBranch {
  readonly name: string
  /** The journal. The journal may contain entries of other types, which the covenant ignores. */
  readonly journal: Scrivener<Routable>
  readonly produces: ReadonlyArray<string>
  readonly consumes: ReadonlyArray<string>
}

export interface DeclaredRoute<E, R> {
  readonly name: string
  readonly from: ReadonlyArray<string>
  readonly to: ReadonlyArray<string>
  readonly via: (recorded: Recorded<Routable>) => Effect.Effect<ReadonlyArray<Routable>, E, R>
}

export interface Declared<E, R> {
  readonly branches: ReadonlyArray<DeclaredBranch>
  readonly routes: ReadonlyArray<DeclaredRoute<E, R>>
  readonly terminal: ReadonlyArray<string>
}

export const Problem = Schema.Struct({
  reason: Schema.Literals([
    "duplicateName",
    "ambiguousType",
    "emptyRoute",
    "scatteredRoute",
    "unknownSource",
    "unknownTarget",
    "unknownTerminal",
    "routedTwice",
    "terminalRouted",
    "unrouted",
    "unproduced"
  ]),
  type: Schema.optionalKey(Schema.String),
  names: Schema.Array(Schema.String),
  detail: Schema.String
})

/**
 * One problem of a declaration.
 *
 * - `duplicateName`: two branches, or two routes, have the same name
 * - `ambiguousType`: two branches produce or consume the same type
 * - `emptyRoute`: a route has no sources or no targets
 * - `scatteredRoute`: the sources of a route come from several branches, but entries of different journals have no order
 * - `unknownSource`, `unknownTerminal`: no branch produces the type
 * - `unknownTarget`: no branch consumes the type
 * - `routedTwice`: two routes have the type as a source
 * - `terminalRouted`: the type is declared terminal, but has a route
 * - `unrouted`: the type is produced, but is neither routed nor terminal
 * - `unproduced`: the type is consumed, but is not the target of a route
 *
 * @since 0.1.0
 */
export type Problem = typeof Problem.Type

type Reason = Problem["reason"]

const makeProblem = (reason: Reason, detail: string, names: ReadonlyArray<string>, type?: string): Problem => ({
  reason,
  names,
  detail,
  ...(type !== undefined && { type })
})

const namesByType = <A extends { readonly name: string }>(
  all: ReadonlyArray<A>,
  types: (each: A) => ReadonlyArray<string>
): ReadonlyMap<string, ReadonlyArray<string>> => {
  const found = new Map<string, Array<string>>()
  for (const each of all) {
    for (const type of new Set(types(each))) {
      const names = found.get(type)
      if (names === undefined) found.set(type, [each.name])
      else names.push(each.name)
    }
  }
  return found
}

const quoted = (names: ReadonlyArray<string>): string => names.map((name) => JSON.stringify(name)).join(" and ")

const duplicates = (noun: string, all: ReadonlyArray<{ readonly name: string }>): ReadonlyArray<Problem> => {
  const names = all.map(({ name }) => name)
  const repeatedNames = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [...repeatedNames].map((name) =>
    makeProblem("duplicateName", `two ${noun} have the name ${JSON.stringify(name)}`, [name])
  )
}

export const problemsOf = <E, R>({ branches, routes, terminal }: Declared<E, R>): ReadonlyArray<Problem> => {
  const producers = namesByType(branches, ({ produces }) => produces)
  const consumers = namesByType(branches, ({ consumes }) => consumes)
  const sources = namesByType(routes, ({ from }) => from)
  const targets = namesByType(routes, ({ to }) => to)
  const out = [...duplicates("branches", branches), ...duplicates("routes", routes)]
  const add = (reason: Reason, type: string, names: ReadonlyArray<string>, detail: string): void =>
    void out.push(makeProblem(reason, detail, names, type))

  for (const [type, names] of producers) {
    if (names.length > 1) add("ambiguousType", type, names, `${type} is produced by ${quoted(names)}`)
  }
  for (const [type, names] of consumers) {
    if (names.length > 1) add("ambiguousType", type, names, `${type} is consumed by ${quoted(names)}`)
  }
  for (const { from, name, to } of routes) {
    if (from.length === 0) out.push(makeProblem("emptyRoute", `the route ${JSON.stringify(name)} has no sources`, [name]))
    if (to.length === 0) out.push(makeProblem("emptyRoute", `the route ${JSON.stringify(name)} has no targets`, [name]))
    const origins = new Set(from.flatMap((type) => producers.get(type)?.slice(0, 1) ?? []))
    if (origins.size > 1) {
      const detail = `the sources of the route ${JSON.stringify(name)} come from ${quoted([...origins])}`
      out.push(makeProblem("scatteredRoute", detail, [name]))
    }
  }
  for (const [type, names] of sources) {
    if (names.length > 1) add("routedTwice", type, names, `${type} is routed by ${quoted(names)}`)
    if (!producers.has(type))
      add("unknownSource", type, names, `${type} is a source of ${quoted(names)}, but no branch produces ${type}`)
  }
  for (const [type, names] of targets) {
    if (!consumers.has(type))
      add("unknownTarget", type, names, `${type} is a target of ${quoted(names)}, but no branch consumes ${type}`)
  }
  for (const type of new Set(terminal)) {
    const routed = sources.get(type)
    if (!producers.has(type)) add("unknownTerminal", type, [], `${type} is declared terminal, but no branch produces ${type}`)
    if (routed !== undefined)
      add("terminalRouted", type, routed, `${type} is declared terminal, but is routed by ${quoted(routed)}`)
  }
  for (const [type, names] of producers) {
    if (!sources.has(type) && !terminal.includes(type)) {
      add("unrouted", type, names, `${type}, which ${quoted(names)} produces, has no route and is not terminal`)
    }
  }
  for (const [type, names] of consumers) {
    if (!targets.has(type))
      add("unproduced", type, names, `${type}, which ${quoted(names)} consumes, is not the target of a route`)
  }
  return out
}

/**
 * The failure of a route at an entry. Earlier entries have been routed; this entry and later entries have not. A restarted
 * covenant routes this entry again.
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

/** The settled position of each journal, by the name of its branch. A route does not read the entries up to this position. */
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
          : Effect.fail(routeError(`\`via\` returned a ${undeclaredEntry._tag}, which is not a declared target of the route`))
      }
    )
  }

  return Effect.gen(function* () {
    const knownIds = new Map<DeclaredBranch, ReadonlySet<string>>()
    for (const branch of new Set(takes.values())) knownIds.set(branch, yield* idsIn(branch, targets, after))
    // All ids in the target journals derive from source entries up to this position.
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
