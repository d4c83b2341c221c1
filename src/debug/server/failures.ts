import * as Schema from "effect/Schema"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Model from "../model.ts"

const failure = <const Error extends string>(status: number, error: Error, description: string) =>
  Schema.Struct({ ...Model.Failure.fields, error: Schema.Literal(error) })
    .annotate({ identifier: `${error}Failure`, description })
    .pipe(HttpApiSchema.status(status))

export const BadRequest = failure(400, "BadRequest", "What was asked for can be nothing; the message says why.")
export const Forbidden = failure(
  403,
  "Forbidden",
  "It does not lie in the directory that is shown, or this program may not ask."
)
export const NotFound = failure(404, "NotFound", "There is nothing of that name.")
export const Unreadable = failure(422, "Unreadable", "It is there, and cannot be read; the message says why.")

export const failures = [NotFound, Forbidden, BadRequest, Unreadable] as const

/** A middleware that reports input outside a route's schemas like any other failure. */
export class Checked extends HttpApiMiddleware.Service<Checked>()("fs-algebra/debug/Checked", { error: BadRequest }) {}

/** The number of items of a page without a `limit`. */
export const defaultLimit = 100
