import * as Schema from "effect/Schema"
import type { FsError } from "../model/FsError.ts"

/**
 * Something that cannot be shown.
 *
 * @since 0.1.0
 */
export class DebugError extends Schema.TaggedError<DebugError>("fs-algebra/DebugError")("DebugError", {
  /**
   * The kind of the error. `missing`: there is nothing of that name. `unreadable`: it exists but is damaged, too new or
   * inaccessible. `invalid`: the request cannot be valid. `forbidden`: it lies outside the served directory.
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
