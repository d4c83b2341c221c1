import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { WithFilesystem } from "../Session.ts"

export type Given<E> = Algebra | WithFilesystem<E>

const isAlgebra = <E>(given: Given<E>): given is Algebra => "port" in given

export const algebraOf = <E>(given: Given<E> | undefined): Effect.Effect<Algebra | undefined, E> => {
  if (given === undefined) return Effect.succeed(undefined)
  return isAlgebra(given) ? Effect.succeed(given) : (given.filesystem ?? Effect.succeed(undefined))
}
