import type * as Effect from "effect/Effect"
import type { Recorded, Scrivener } from "../Journal.ts"

/** An entry that a covenant can route. */
export interface Routable {
  readonly _tag: string
  readonly correlationId: string
}

export interface DeclaredBranch {
  readonly name: string
  /** The journal. It may hold entries of other types, which the covenant ignores. */
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
