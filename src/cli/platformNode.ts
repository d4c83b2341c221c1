import * as Effect from "effect/Effect"
import { isSystemError } from "../model/systemError.ts"
import { Complaint, systemFailed } from "./exit.ts"

export const name = "@effect/platform-node"

export const isMissing = (cause: unknown): boolean =>
  isSystemError(cause) && cause.code === "ERR_MODULE_NOT_FOUND" && cause.message.includes(name)

export const loading = <A>(what: string, load: () => Promise<A>): Effect.Effect<A, Complaint> =>
  Effect.catch(Effect.tryPromise({ try: load, catch: (cause) => cause }), (cause) =>
    isMissing(cause)
      ? Effect.fail(
          new Complaint({
            error: { _tag: "PackageMissing", package: name },
            message: `${what} needs the package ${name}, which is not installed`,
            hint: `Install it beside fs-algebra: npm install ${name}`,
            code: systemFailed
          })
        )
      : Effect.die(cause)
  )
