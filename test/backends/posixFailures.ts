/** Simulates failures of the system: one function of `node:fs` fails, for one scope, as the system call would. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"

export const systemError = (code: string, errno: number, syscall: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: simulated, ${syscall} '/host/path'`), { code, errno, syscall })

type Name =
  | "fsync"
  | "fsyncSync"
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

/** Makes a call fail with the error that `when` returns for it. Other calls reach the original. */
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

export const first = (times: number, error: Error) => {
  let left = times
  return () => (left-- > 0 ? error : undefined)
}
