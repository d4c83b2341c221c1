/** Implements the requests that change a port in one step, with the primitive operations of the port. */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { type Fault, type FsError, located, toFault } from "../../src/model/FsError.ts"
import { Limits, unlimited } from "../../src/model/Limits.ts"
import { hunksOf } from "../../src/engine/diff.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Request from "../../src/port/Request.ts"

type Way = "Write" | "Edit" | "Remove" | "MakeDirectory" | "Move"

export type Changes = { readonly [K in Way]: NonNullable<Request.Handlers[K]> }

const faulted = <A>(effect: Effect.Effect<A, FsError>): Effect.Effect<Option.Option<A>, Fault> =>
  Effect.asSome(Effect.mapError(effect, toFault))

const joined = <E, R>(content: Uint8Array | Stream.Stream<Uint8Array, E, R>): Effect.Effect<Uint8Array, E, R> =>
  content instanceof Uint8Array
    ? Effect.succeed(content)
    : Effect.map(Stream.runCollect(content), (chunks) => new Uint8Array(Buffer.concat(chunks)))

export const changesOf = (port: Backend): Changes => {
  const fs: Algebra = make({ ...port, locks: undefined, perform: undefined, explore: undefined })
  const Write: Changes["Write"] = ({ bytes: content, how, path, plan: { createParents, ifMatch, mode, version } }) =>
    Effect.flatMap(joined(content), (bytes) => {
      const written = Effect.provideService(
        faulted(fs.writeBytes(path, bytes, { createParents, mode, version, ...(ifMatch !== undefined && { ifMatch }) })),
        Limits,
        unlimited
      )
      return how?.commit === undefined ? written : how.commit(written)
    })
  return {
    Write,
    Edit: ({ edits, path, plan: { ifMatch, version } }) =>
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
    Remove: ({ path, plan: { ifMatch, ...plan } }) =>
      faulted(fs.delete(path, { ...plan, ...(ifMatch !== undefined && { ifMatch }) })),
    MakeDirectory: ({ path, plan }) => faulted(fs.mkdir(path, plan)),
    Move: ({ path: from, plan: { createParents, overwrite }, to }) =>
      Effect.andThen(
        createParents ? Effect.void : Effect.mapError(fs.stat(`${to}/..`), (error) => located(toFault(error), to)),
        Effect.asSome(Effect.mapError(fs.move(from, to, { overwrite }), (error) => located(toFault(error), error.path)))
      )
  }
}

/** Returns the port with handlers for these requests. `change` may replace some of the handlers. */
export const wholly = (port: Backend, change: (right: Changes) => Request.Handlers = () => ({})): Backend => {
  const right = changesOf(port)
  return { ...port, perform: Request.extend(port.perform, { ...right, ...change(right) }) }
}
