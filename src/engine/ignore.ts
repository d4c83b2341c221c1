// INTERIM by the lead; the search engineer's file overwrites this one.
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Child } from "../port/Backend.ts"
export interface Rules { readonly interim: true }
export const atBase = (_port: Backend, _at: FsPath): Effect.Effect<Rules, Fault> => Effect.succeed({ interim: true })
export const enter = (rules: Rules, _port: Backend, _at: FsPath, _children: ReadonlyArray<Child>): Effect.Effect<Rules, Fault> => Effect.succeed(rules)
export const below = (rules: Rules, _name: string): Rules => rules
export const ignores = (_rules: Rules, _name: string, _directory: boolean): boolean => false
