/** Counts system calls on the disk, and makes chosen calls fail. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { systemError } from "../backends/posixFailures.ts"

type Call = (...args: ReadonlyArray<any>) => any

const names = [
  "copyFile",
  "openSync",
  "mkdirSync",
  "chmodSync",
  "utimesSync",
  "symlinkSync",
  "readlinkSync",
  "readdir",
  "realpathSync"
] as const

/** Calls `before` with the number of each call, from 1. The call fails if `before` returns true. */
export const watching = (before: (nth: number, name: string) => boolean): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        let count = 0
        const originals = names.map((name) => [name, (fs as any)[name] as Call] as const)
        for (const [name, original] of originals) {
          const replaced = (...args: ReadonlyArray<any>): any => {
            if (!before(++count, name)) return original(...args)
            const error = systemError("EIO", -5, name)
            if (name !== "copyFile" && name !== "readdir") throw error
            return void setImmediate(args.at(-1) as Call, error)
          }
          ;(fs as any)[name] = Object.assign(replaced, original)
        }
        syncBuiltinESMExports()
        return originals
      }),
      (originals) =>
        Effect.sync(() => {
          for (const [name, original] of originals) (fs as any)[name] = original
          syncBuiltinESMExports()
        })
    )
  )
