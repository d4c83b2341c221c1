// INTERIM by the lead; the search engineer's file overwrites this one.
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GrepMatch, GrepResult } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import type { GrepOptions } from "./options.ts"
export interface GrepPlan { readonly interim: true }
export const plan = (_pattern: string | RegExp, _options: GrepOptions, _context: unknown): GrepPlan | Fault => ({ _tag: "Unsupported", feature: "search, in the interim" })
export const stream = (_port: Backend, _base: unknown, _plan: GrepPlan): Stream.Stream<GrepMatch, Fault> => Stream.empty
export const collect = (_port: Backend, _base: unknown, _plan: GrepPlan): Effect.Effect<GrepResult, Fault> => Effect.fail({ _tag: "Unsupported", feature: "search" })
