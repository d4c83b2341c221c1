/** What can go wrong when something is looked at: told to people, and to programs by its reason. */
import * as Schema from "effect/Schema"
import type { FsError } from "../model/FsError.ts"

/**
 * Something cannot be shown.
 *
 * @since 0.1.0
 */
export class DebugError extends Schema.TaggedError<DebugError>("fs-algebra/DebugError")("DebugError", {
  /**
   * `missing`: there is nothing of that name. `unreadable`: it is there, and damaged, too new, or nothing that may be read. `invalid`: what
   * was asked for can be nothing. `forbidden`: it lies where this may not look.
   */
  reason: Schema.Literals(["missing", "unreadable", "invalid", "forbidden"]),
  detail: Schema.String,
  /** Of a file that is shown, or of the dump. */
  path: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.detail
  }
}

export const refuse = (reason: DebugError["reason"], detail: string, path?: string): DebugError =>
  new DebugError({ reason, detail, ...(path === undefined ? undefined : { path }) })

const missing: ReadonlySet<FsError["_tag"]> = new Set(["NotFound", "InvalidPath", "PathTooLong", "NotADirectory", "NotAFile"])

/** Of a file that was asked for by its path. */
export const ofFile =
  (path: string) =>
  (error: FsError): DebugError =>
    refuse(missing.has(error._tag) ? "missing" : "unreadable", error.message, path)

/** Of whatever else was asked of something that ought to be there. */
export const unreadable = ({ message }: { readonly message: string }): DebugError => refuse("unreadable", message)
