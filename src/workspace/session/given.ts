import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { WithFilesystem } from "../Session.ts"

export type FilesystemSource<E> = Algebra | WithFilesystem<E>

const isAlgebra = <E>(source: FilesystemSource<E>): source is Algebra => "port" in source

export const algebraOf = <E>(source: FilesystemSource<E> | undefined): Effect.Effect<Algebra | undefined, E> => {
  if (source === undefined) return Effect.succeed(undefined)
  return isAlgebra(source) ? Effect.succeed(source) : (source.filesystem ?? Effect.succeed(undefined))
}
