import * as Schema from "effect/Schema"
import type { Declared } from "./declared.ts"

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
 * `duplicateName`: two branches, or two routes, have the same name. `ambiguousType`: two branches produce or consume the same type.
 * `emptyRoute`: a route has no sources or no targets. `scatteredRoute`: a route's sources come from several branches, and there is no order
 * between their journals. `unknownSource`, `unknownTerminal`: no branch produces the type. `unknownTarget`: no branch consumes the type.
 * `routedTwice`: two routes have the type as a source. `terminalRouted`: the type is declared terminal, but has a route. `unrouted`: the
 * type is produced, but is neither routed nor terminal. `unproduced`: the type is consumed, but no route makes it.
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
    makeProblem("duplicateName", `two ${noun} are called ${JSON.stringify(name)}`, [name])
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
    if (!producers.has(type)) add("unknownSource", type, names, `${quoted(names)} takes ${type}, which no branch produces`)
  }
  for (const [type, names] of targets) {
    if (!consumers.has(type)) add("unknownTarget", type, names, `${quoted(names)} makes ${type}, which no branch consumes`)
  }
  for (const type of new Set(terminal)) {
    const routed = sources.get(type)
    if (!producers.has(type)) add("unknownTerminal", type, [], `${type} is terminal, and no branch produces it`)
    if (routed !== undefined) add("terminalRouted", type, routed, `${type} is terminal, and routed by ${quoted(routed)}`)
  }
  for (const [type, names] of producers) {
    if (!sources.has(type) && !terminal.includes(type)) {
      add("unrouted", type, names, `${type}, which ${quoted(names)} produces, has no route and is not terminal`)
    }
  }
  for (const [type, names] of consumers) {
    if (!targets.has(type)) add("unproduced", type, names, `${type}, which ${quoted(names)} consumes, is made by no route`)
  }
  return out
}
