/** Implements the one-step changes of a port with the port's own primitive calls. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { type Fault, type FsError, located, toFault } from "../../src/model/FsError.ts"
import { Limits, unlimited } from "../../src/model/Limits.ts"
import { hunksOf } from "../../src/engine/diff.ts"
import type { Accelerations, Backend, WritePlan } from "../../src/port/Backend.ts"

type Way = "write" | "edit" | "remove" | "makeDirectory" | "move"

export type Changes = { readonly [K in Way]: NonNullable<Accelerations[K]> }

const faulted = <A>(effect: Effect.Effect<A, FsError>): Effect.Effect<A, Fault> => Effect.mapError(effect, toFault)

const joined = <E, R>(content: Uint8Array | Stream.Stream<Uint8Array, E, R>): Effect.Effect<Uint8Array, E, R> =>
  content instanceof Uint8Array
    ? Effect.succeed(content)
    : Effect.map(Stream.runCollect(content), (chunks) => new Uint8Array(Buffer.concat(chunks)))

export const changesOf = (port: Backend): Changes => {
  const fs: Algebra = make({ ...port, locks: undefined, accelerations: undefined })
  const write: Changes["write"] = (path, content, { createParents, ifMatch, mode, version }: WritePlan, how) =>
    Effect.flatMap(joined(content), (bytes) => {
      const written = Effect.provideService(
        faulted(fs.writeBytes(path, bytes, { createParents, mode, version, ...(ifMatch !== undefined && { ifMatch }) })),
        Limits,
        unlimited
      )
      return how?.commit === undefined ? written : how.commit(written)
    })
  return {
    write,
    edit: (path, edits, { ifMatch, version }) =>
      faulted(
        Effect.map(
          fs.edit(path, edits, { version, ...(ifMatch !== undefined && { ifMatch }) }),
          ({ bytesWritten, diff, replacements, version }) => ({
            bytesWritten,
            replacements,
            hunks: hunksOf(diff),
            version
          })
        )
      ),
    remove: (path, { ifMatch, ...plan }) => faulted(fs.delete(path, { ...plan, ...(ifMatch !== undefined && { ifMatch }) })),
    makeDirectory: (path, plan) => faulted(Effect.as(fs.mkdir(path, plan), true as const)),
    move: (from, to, { createParents, overwrite }) =>
      Effect.andThen(
        createParents ? Effect.void : Effect.mapError(fs.stat(`${to}/..`), (error) => located(toFault(error), to)),
        Effect.mapError(fs.move(from, to, { overwrite }), (error) => located(toFault(error), error.path))
      )
  }
}

/** Returns the port with these one-step changes, of which `change` may replace some. */
export const wholly = (port: Backend, change: (right: Changes) => Partial<Accelerations> = () => ({})): Backend => {
  const right = changesOf(port)
  return { ...port, accelerations: { ...port.accelerations, ...right, ...change(right) } }
}
