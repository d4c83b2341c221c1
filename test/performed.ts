import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Fault } from "../src/model/FsError.ts"
import type { Backend } from "../src/port/Backend.ts"
import type { AnswerOf, Plain } from "../src/port/Request.ts"

/** Performs a request in one step. Returns `undefined` if the backend declines it. */
export const performed = <R extends Plain>(
  port: Pick<Backend, "perform">,
  request: R
): Effect.Effect<AnswerOf<R> | undefined, Fault> => Effect.map(port.perform!(request), Option.getOrUndefined)
