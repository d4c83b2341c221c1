import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as PosixHost from "../../../src/backends/PosixHost.ts"
import * as Filesystem from "../../../src/filesystem/Filesystem.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import * as Naive from "./naive.ts"
import type { Subject } from "./operations.ts"

export interface Opened {
  readonly subject: Subject
  readonly close: () => Promise<void>
}

const of = (port: Backend, close: () => Promise<void> = () => Promise.resolve()): Opened => ({
  subject: { port, fs: Filesystem.make(port) },
  close
})

/** Opens PosixHost. Fails on a machine that is not race-free. */
export const posixHost = async (root: string): Promise<Opened> => {
  const scope = Effect.runSync(Scope.make())
  const made = PosixHost.make({ root, requireConfinement: "race-free" })
  const port = await Effect.runPromise(Effect.provideService(made, Scope.Scope, scope))
  return of(port, () => Effect.runPromise(Scope.close(scope, Exit.void)))
}

export const prefix = (root: string): Promise<Opened> => Promise.resolve(of(Naive.prefix(root)))
export const realpath = (root: string): Promise<Opened> => Promise.resolve(of(Naive.realpath(root)))

export const cached = (root: string): Promise<Opened> => {
  const { backend, close } = Naive.cached(root)
  return Promise.resolve(of(backend, () => Promise.resolve(close())))
}
