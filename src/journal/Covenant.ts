/**
 * Covenants: what becomes of an entry. Each branch says which types of entry come out of it and which it takes; each route says what is made
 * of some types; and what comes out and goes nowhere has to be said to end there. All of it is checked before anything runs, so that no
 * entry is lost because nobody thought of its type:
 *
 * - a type that is produced has exactly one route, or is terminal
 * - a type that is consumed is made by a route
 *
 * A covenant runs as a daemon for each route, which reads the journal of the branch that produces, in order, and appends to the journals
 * of those that consume. Where a route fails its daemon does, and nothing after that entry is routed by it.
 *
 * What a route makes must carry correlation ids that follow from the entry it is made of. By them a covenant that is started again routes
 * nothing twice, and what was missing is made up for. Only one covenant at a time routes between the same journals.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Check from "./covenant/check.ts"
import type { Declared, DeclaredBranch, DeclaredRoute, Routable } from "./covenant/declared.ts"
import { pump, type Settled } from "./covenant/pump.ts"
import * as Daemon from "./Daemon.ts"
import type { Journal, Recorded, Scrivener } from "./Journal.ts"

export {
  /** @since 0.1.0 */
  RouteError
} from "./covenant/pump.ts"
export type {
  /** @since 0.1.0 */
  Problem
} from "./covenant/check.ts"
export type {
  /** @since 0.1.0 */
  Routable
} from "./covenant/declared.ts"

/**
 * The declaration makes no sense. Everything that is wrong with it is told at once.
 *
 * @since 0.1.0
 */
export class CovenantError extends Schema.TaggedError<CovenantError>("fs-algebra/CovenantError")("CovenantError", {
  problems: Schema.Array(Check.Problem)
}) {
  override get message(): string {
    return `the covenant cannot be kept: ${this.problems.map(({ detail }) => detail).join("; ")}`
  }
}

/**
 * A class of entries, as `Schema.TaggedClass` makes it.
 *
 * @since 0.1.0
 */
export interface EntryClass<E extends Routable = Routable> {
  readonly Type: E
  readonly fields: { readonly _tag: { readonly schema: { readonly literal: E["_tag"] } } }
}

const tagOf = (entry: EntryClass): string => entry.fields._tag.schema.literal

/**
 * A journal, with the types of entry that take part.
 *
 * @since 0.1.0
 */
export interface Branch {
  readonly "~fs-algebra/Covenant/Branch": DeclaredBranch
}

/**
 * A journal, what is appended to it and by whom.
 *
 * @since 0.1.0
 */
export interface BranchOptions<E> {
  /** For errors, and for `after`. */
  readonly name: string
  readonly journal: Scrivener<E>
  /** What whoever stands behind it appends. */
  readonly produces: ReadonlyArray<EntryClass<Extract<E, Routable>>>
  /** What is appended for it. */
  readonly consumes: ReadonlyArray<EntryClass<Extract<E, Routable>>>
}

/**
 * A branch of a covenant: a journal, with what it consumes and what it produces.
 *
 * @since 0.1.0
 */
export const branch = <E>({ consumes, journal, name, produces }: BranchOptions<E>): Branch => ({
  "~fs-algebra/Covenant/Branch": {
    name,
    // It is given only what it consumes, and of what is in it only what it produces is looked at.
    journal: journal as unknown as Scrivener<Routable>,
    produces: produces.map(tagOf),
    consumes: consumes.map(tagOf)
  }
})

/**
 * What is made of the entries of some types.
 *
 * @since 0.1.0
 */
export interface Route<out E = never, out R = never> {
  readonly "~fs-algebra/Covenant/Route": DeclaredRoute<E, R>
}

/**
 * Which entries a route takes, and what it makes of them.
 *
 * @since 0.1.0
 */
export interface RouteOptions<From extends ReadonlyArray<EntryClass>, To extends ReadonlyArray<EntryClass>, E, R> {
  /** For errors, and of its daemon. */
  readonly name: string
  readonly from: From
  readonly to: To
  /**
   * Each goes to the branch that consumes its type, and those for one branch are appended as one; none at all is an answer too. Entries
   * come one after another. It may be asked again about an entry that it was asked about before, and has to give the same ids then.
   */
  readonly via: (recorded: Recorded<From[number]["Type"]>) => Effect.Effect<ReadonlyArray<To[number]["Type"]>, E, R>
}

/**
 * A route of a covenant: from entries of some types to entries of others.
 *
 * @since 0.1.0
 */
export const route = <
  const From extends ReadonlyArray<EntryClass>,
  const To extends ReadonlyArray<EntryClass>,
  E = never,
  R = never
>(
  options: RouteOptions<From, To, E, R>
): Route<E, R> => ({
  "~fs-algebra/Covenant/Route": {
    name: options.name,
    from: options.from.map(tagOf),
    to: options.to.map(tagOf),
    // It is asked about entries of `from` alone.
    via: options.via as unknown as DeclaredRoute<E, R>["via"]
  }
})

/**
 * Branches, the routes between them, and the types that go nowhere.
 *
 * @since 0.1.0
 */
export interface CovenantOptions<E = never, R = never> {
  readonly branches: ReadonlyArray<Branch>
  readonly routes: ReadonlyArray<Route<E, R>>
  /** Types that are produced and have no route. @default none */
  readonly terminal?: ReadonlyArray<EntryClass> | undefined
}

/**
 * A declaration that has been checked.
 *
 * @since 0.1.0
 */
export interface Covenant<out E = never, out R = never> {
  readonly "~fs-algebra/Covenant": Declared<E, R>
}

/**
 * Checks branches and routes against each other. Fails with CovenantError, which names every problem.
 *
 * @since 0.1.0
 */
export const make = <E = never, R = never>({
  branches,
  routes,
  terminal = []
}: CovenantOptions<E, R>): Effect.Effect<Covenant<E, R>, CovenantError> =>
  Effect.suspend(() => {
    const declared: Declared<E, R> = {
      branches: branches.map((branch) => branch["~fs-algebra/Covenant/Branch"]),
      routes: routes.map((route) => route["~fs-algebra/Covenant/Route"]),
      terminal: terminal.map(tagOf)
    }
    const problems = Check.problemsOf(declared)
    return problems.length === 0
      ? Effect.succeed({ "~fs-algebra/Covenant": declared })
      : Effect.fail(new CovenantError({ problems }))
  })

/**
 * How the daemons of a covenant are called, and where they begin.
 *
 * @since 0.1.0
 */
export interface RunOptions {
  /** What its daemons are called, before the name of the route. @default "covenant" */
  readonly name?: string | undefined
  /**
   * Up to where a journal is settled, by the name of the branch: nothing at or before that position is routed any more, nor looked for to
   * see what has been routed. @default 0 of each, which reads all of them once at the start
   */
  readonly after?: Settled | undefined
}

/**
 * A daemon for each route, in order, not started. They end with the scope.
 *
 * @since 0.1.0
 */
export const daemons = <E, R>(
  covenant: Covenant<E, R>,
  { after = {}, name = "covenant" }: RunOptions = {}
): Effect.Effect<Daemon.Group, never, Journal | Scope.Scope | R> => {
  const declared = covenant["~fs-algebra/Covenant"]
  return Effect.map(
    Effect.forEach(declared.routes, (route) =>
      Daemon.make({ name: `${name}/${route.name}`, run: () => pump(declared, route, after) })
    ),
    Daemon.all
  )
}

/**
 * A covenant that is kept for as long as the layer is there.
 *
 * @since 0.1.0
 */
export const layer = <E = never, R = never>(
  options: CovenantOptions<E, R> & RunOptions
): Layer.Layer<never, CovenantError | Daemon.DaemonError, Journal | Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(
    Effect.flatMap(make(options), (covenant) => Effect.flatMap(daemons(covenant, options), ({ start }) => start))
  )
