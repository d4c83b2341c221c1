import * as Effect from "effect/Effect"
import { isSystemError } from "../model/systemError.ts"
import { Complaint, systemErrorCode } from "./exit.ts"

export const packageName = "@effect/platform-node"

export const isPackageMissing = (cause: unknown): boolean =>
  isSystemError(cause) && cause.code === "ERR_MODULE_NOT_FOUND" && cause.message.includes(packageName)

export const loadModule = <A>(what: string, load: () => Promise<A>): Effect.Effect<A, Complaint> =>
  Effect.catch(Effect.tryPromise({ try: load, catch: (cause) => cause }), (cause) =>
    isPackageMissing(cause)
      ? Effect.fail(
          new Complaint({
            error: { _tag: "PackageMissing", package: packageName },
            message: `${what} needs the package ${packageName}, which is not installed`,
            hint: `Install it beside fs-algebra: npm install ${packageName}`,
            code: systemErrorCode
          })
        )
      : Effect.die(cause)
  )
