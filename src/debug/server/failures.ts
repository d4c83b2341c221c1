import * as Schema from "effect/Schema"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Model from "../model.ts"

const failure = <const Error extends string>(status: number, error: Error, description: string) =>
  Schema.Struct({ ...Model.Failure.fields, error: Schema.Literal(error) })
    .annotate({ identifier: `${error}Failure`, description })
    .pipe(HttpApiSchema.status(status))

export const BadRequest = failure(400, "BadRequest", "The request is invalid. The message says why.")
export const Forbidden = failure(403, "Forbidden", "The path is outside of the served directory, or the client has no access.")
export const NotFound = failure(404, "NotFound", "The requested item does not exist.")
export const Unreadable = failure(422, "Unreadable", "The item exists but cannot be read. The message says why.")

export const failures = [NotFound, Forbidden, BadRequest, Unreadable] as const

/** A middleware that fails with `BadRequest` if the input does not match the schemas of the route. */
export class Checked extends HttpApiMiddleware.Service<Checked>()("fs-algebra/debug/Checked", { error: BadRequest }) {}

export const defaultLimit = 100
