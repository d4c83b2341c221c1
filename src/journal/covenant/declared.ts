/** A covenant as it was declared: data without types, of which the declarations in Covenant.ts have taken care. */
import type * as Effect from "effect/Effect"
import type { Recorded, Scrivener } from "../Journal.ts"

/** What can be routed. */
export interface Routable {
  readonly _tag: string
  readonly correlationId: string
}

export interface DeclaredBranch {
  readonly name: string
  /** It may hold other entries too, which are let alone. */
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
