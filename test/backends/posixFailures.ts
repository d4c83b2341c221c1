/**
 * Failures of the system that cannot be brought about at will: one function of `node:fs` fails, for one scope, as the system's would.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"

export const systemError = (code: string, errno: number, syscall: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: simulated, ${syscall} '/host/path'`), { code, errno, syscall })

type Name =
  | "fsync"
  | "closeSync"
  | "lstatSync"
  | "renameSync"
  | "chmodSync"
  | "linkSync"
  | "writeSync"
  | "write"
  | "openSync"
  | "readdirSync"
  | "fchownSync"
  | "mkdirSync"
  | "readSync"
  | "unlinkSync"
  | "statSync"
  | "statfsSync"
  | "watch"

type Call = (...args: ReadonlyArray<any>) => any

/** Another function in the place of the original, for one scope. */
export const replacing = (name: Name, make: (original: Call) => Call): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        const original = fs[name] as Call
        ;(fs as any)[name] = make(original)
        syncBuiltinESMExports()
        return original
      }),
      (original) =>
        Effect.sync(() => {
          ;(fs as any)[name] = original
          syncBuiltinESMExports()
        })
    )
  )

/** The calls for which `when` answers an error fail with it; others, and all after the scope, are as they were. */
export const failing = (
  name: Name,
  when: (...args: ReadonlyArray<any>) => Error | undefined
): Effect.Effect<{ readonly calls: () => number }, never, Scope.Scope> => {
  let calls = 0
  return Effect.as(
    replacing(name, (original) => (...args) => {
      const error = when(...args)
      if (error === undefined) return original(...args)
      calls++
      if (name.endsWith("Sync") || name === "watch") throw error
      setImmediate(args.at(-1), error)
    }),
    { calls: () => calls }
  )
}

/** The error the first `times` times. */
export const first = (times: number, error: Error) => {
  let left = times
  return () => (left-- > 0 ? error : undefined)
}
