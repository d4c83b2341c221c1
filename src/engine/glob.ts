// INTERIM by the lead; the search engineer's file overwrites this one.
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GlobMatch, GlobResult } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import type { GlobOptions } from "./options.ts"
export interface GlobPlan { readonly interim: true }
export const plan = (_pattern: string | ReadonlyArray<string>, _options: GlobOptions, _context: unknown): GlobPlan | Fault => ({ _tag: "Unsupported", feature: "search, in the interim" })
export const stream = (_port: Backend, _base: unknown, _plan: GlobPlan): Stream.Stream<GlobMatch, Fault> => Stream.empty
export const collect = (_port: Backend, _base: unknown, _plan: GlobPlan): Effect.Effect<GlobResult, Fault> => Effect.fail({ _tag: "Unsupported", feature: "search" })
