/**
 * Covenants: the declared routes of entries between journals. Each branch declares the entry types that it produces and
 * consumes. Each route turns source entries into target entries of other types. A type that has no route must be declared
 * terminal. The declaration is checked before the covenant runs, so that no entry type is forgotten:
 *
 * - a type that is produced has exactly one route, or is terminal
 * - a type that is consumed is the target of a route
 *
 * Each route of a covenant runs as a daemon. The daemon reads the journal of the producing branch in order, and appends to the
 * journals of the consuming branches. If a route fails, its daemon fails, and the route processes no later entry.
 *
 * A route must derive the correlation ids of its target entries from the source entry. So a restarted covenant routes no entry
 * twice, and also routes the entries that were appended meanwhile. Only one covenant may run between the same journals at a
 * time.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Check from "./routes.ts"
import { type Declared, type DeclaredBranch, type DeclaredRoute, type Routable, runRoute, type Settled } from "./routes.ts"
import * as Daemon from "./Daemon.ts"
import type { Journal, Recorded, Scrivener } from "./model.ts"

export { RouteError } from "./routes.ts"
export type { Problem } from "./routes.ts"
export type {
  /** @since 0.1.0 */
  Routable
} from "./routes.ts"

/**
 * The failure of a declaration, with all its problems.
 *
 * @category errors
 * @since 0.1.0
 */
export class CovenantError extends Schema.TaggedError<CovenantError>("fs-algebra/CovenantError")("CovenantError", {
  problems: Schema.Array(Check.Problem)
}) {
  override get message(): string {
    return `the covenant is invalid: ${this.problems.map(({ detail }) => detail).join("; ")}`
  }
}

/**
 * A class of entries, made by `Schema.TaggedClass`.
 *
 * @since 0.1.0
 */
export interface EntryClass<E extends Routable = Routable> {
  readonly Type: E
  readonly fields: { readonly _tag: { readonly schema: { readonly literal: E["_tag"] } } }
}

const tagOf = (entry: EntryClass): string => entry.fields._tag.schema.literal

/**
 * A journal together with the entry types that it produces and consumes.
 *
 * @since 0.1.0
 */
export interface Branch {
  readonly "~fs-algebra/Covenant/Branch": DeclaredBranch
}

/**
 * The options of a branch.
 *
 * @since 0.1.0
 */
export interface BranchOptions<E> {
  /** The branch's name, used in errors and in `after`. */
  readonly name: string
  readonly journal: Scrivener<E>
  /** The entry types that this branch appends by itself. */
  readonly produces: ReadonlyArray<EntryClass<Extract<E, Routable>>>
  /** The entry types that the covenant's routes append to this branch. */
  readonly consumes: ReadonlyArray<EntryClass<Extract<E, Routable>>>
}

/**
 * Declares a branch of a covenant.
 *
 * @category constructors
 * @since 0.1.0
 */
export const branch = <E>({ consumes, journal, name, produces }: BranchOptions<E>): Branch => ({
  "~fs-algebra/Covenant/Branch": {
    name,
    // The cast is safe because the covenant appends only entries of consumed types, and reads only entries of produced types.
    journal: journal as unknown as Scrivener<Routable>,
    produces: produces.map(tagOf),
    consumes: consumes.map(tagOf)
  }
})

/**
 * A rule that turns source entries into target entries.
 *
 * @since 0.1.0
 */
export interface Route<out E = never, out R = never> {
  readonly "~fs-algebra/Covenant/Route": DeclaredRoute<E, R>
}

/**
 * The options of a route.
 *
 * @since 0.1.0
 */
export interface RouteOptions<From extends ReadonlyArray<EntryClass>, To extends ReadonlyArray<EntryClass>, E, R> {
  /** The route's name, used in errors and in the name of its daemon. */
  readonly name: string
  readonly from: From
  readonly to: To
  /**
   * Maps one source entry to target entries. The result may be empty. Each target entry goes to the branch that consumes
   * its type, and entries for the same branch are appended together. Source entries arrive one at a time. After a restart,
   * a source entry may arrive again, and its target entries must have the same ids as before.
   */
  readonly via: (recorded: Recorded<From[number]["Type"]>) => Effect.Effect<ReadonlyArray<To[number]["Type"]>, E, R>
}

/**
 * Declares a route from source types to target types.
 *
 * @category constructors
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
    // The cast is safe because a route receives only entries of the types in `from`.
    via: options.via as unknown as DeclaredRoute<E, R>["via"]
  }
})

/**
 * The options of a covenant.
 *
 * @since 0.1.0
 */
export interface CovenantOptions<E = never, R = never> {
  readonly branches: ReadonlyArray<Branch>
  readonly routes: ReadonlyArray<Route<E, R>>
  /** The entry types that a branch produces and no route reads. @default none */
  readonly terminal?: ReadonlyArray<EntryClass> | undefined
}

/**
 * A covenant whose declaration has been checked.
 *
 * @since 0.1.0
 */
export interface Covenant<out E = never, out R = never> {
  readonly "~fs-algebra/Covenant": Declared<E, R>
}

/**
 * Checks branches and routes against each other. Fails with CovenantError, which lists every problem.
 *
 * @example
 * ```ts
 * class Order extends Schema.TaggedClass<Order>("shop/Order")("Order", { correlationId: Schema.String }) {}
 * const journal = yield* Journal.makeMemory<Order>()
 * const shop = Covenant.branch({ name: "shop", journal, produces: [Order], consumes: [] })
 * const error = yield* Effect.flip(Covenant.make({ branches: [shop], routes: [] }))
 * error.problems.length // => 1
 * ```
 * @category constructors
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
 * The options of the daemons of a covenant.
 *
 * @since 0.1.0
 */
export interface RunOptions {
  /** The prefix of the daemons' names, before the name of the route. @default "covenant" */
  readonly name?: string | undefined
  /**
   * The settled position of each journal, by the name of its branch. All entries up to the settled position have been routed,
   * so the covenant does not read them.
   * @default 0 for each journal, so that each journal is read from its beginning
   */
  readonly after?: Settled | undefined
}

/**
 * Returns one daemon for each route, in order. The caller must start the daemons. The daemons shut down when the scope closes.
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
      Daemon.make({ name: `${name}/${route.name}`, run: () => runRoute(declared, route, after) })
    ),
    Daemon.all
  )
}

/**
 * Runs a covenant for the lifetime of the layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E = never, R = never>(
  options: CovenantOptions<E, R> & RunOptions
): Layer.Layer<never, CovenantError | Daemon.DaemonError, Journal | Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(
    Effect.flatMap(make(options), (covenant) => Effect.flatMap(daemons(covenant, options), ({ start }) => start))
  )
