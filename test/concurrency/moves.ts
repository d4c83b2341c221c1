/** A filesystem that another program changes before chosen primitive calls. */
import * as Effect from "effect/Effect"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around, type Backend } from "../../src/port/Backend.ts"
import { p } from "../agent/changing.ts"

export type Act = (port: Backend) => Effect.Effect<unknown, Fault>

const aside = p("aside")

export const away =
  (path: string): Act =>
  (port) =>
    port.rename(p(path), aside, { replace: false })

export const backTo =
  (path: string): Act =>
  (port) =>
    port.rename(aside, p(path), { replace: false })

export const instead =
  (path: string, file: string, content: string): Act =>
  (port) =>
    Effect.andThen(
      port.makeDirectory(p(path)),
      port.write<never, never>(p(`${path}/${file}`), new TextEncoder().encode(content), "create")
    )

/** Runs each act before the primitive call of its number, counted from 1 after `begin`. Failures of acts are ignored. */
export const disturbed = (
  self: Algebra,
  acts: ReadonlyMap<number, Act>
): { readonly fs: Algebra; readonly calls: () => number; readonly begin: () => void } => {
  let calls = Number.NEGATIVE_INFINITY
  const port = around(self.port, (_, work) =>
    Effect.suspend(() => {
      const act = acts.get(++calls)
      return act === undefined ? work : Effect.andThen(Effect.ignore(act(self.port)), work)
    })
  )
  return { fs: make(port), calls: () => calls, begin: () => void (calls = 0) }
}
