import * as Schema from "effect/Schema"
import type { FsError } from "../model/FsError.ts"

/**
 * An error of a request to the debug view, or of a function that reads dumps.
 *
 * @since 0.1.0
 */
export class DebugError extends Schema.TaggedError<DebugError>("fs-algebra/DebugError")("DebugError", {
  /**
   * The kind of the error. `missing`: the requested item does not exist. `unreadable`: the item is damaged, too new or
   * inaccessible. `invalid`: the request is malformed. `forbidden`: the path lies outside the served directory.
   */
  reason: Schema.Literals(["missing", "unreadable", "invalid", "forbidden"]),
  detail: Schema.String,
  path: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.detail
  }
}

export const makeDebugError = (reason: DebugError["reason"], detail: string, path?: string): DebugError =>
  new DebugError({ reason, detail, ...(path === undefined ? undefined : { path }) })

const missingTags: ReadonlySet<FsError["_tag"]> = new Set([
  "NotFound",
  "InvalidPath",
  "PathTooLong",
  "NotADirectory",
  "NotAFile"
])

export const toFileError =
  (path: string) =>
  (error: FsError): DebugError =>
    makeDebugError(missingTags.has(error._tag) ? "missing" : "unreadable", error.message, path)

export const toUnreadableError = ({ message }: { readonly message: string }): DebugError =>
  makeDebugError("unreadable", message)
