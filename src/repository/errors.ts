/**
 * The error of the stores behind a repository.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * The failure of a store of blobs or heads.
 *
 * - `unavailable`: the store cannot be used now, for example because it does not answer. Whether a change was made may be unknown;
 *   the same call can be repeated.
 * - `missing`: a blob, a workspace or the store does not exist.
 * - `corrupt`: stored bytes do not have the expected hash or encoding.
 * - `full`: the store has no space left.
 * - `invalid`: an argument or a setting is invalid.
 *
 * @category errors
 * @since 0.1.0
 */
export class StoreError extends Schema.TaggedError<StoreError>("fs-algebra/StoreError")("StoreError", {
  reason: Schema.Literals(["unavailable", "missing", "corrupt", "full", "invalid"]),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export const missingWorkspace = (workspace: string): StoreError =>
  new StoreError({ reason: "missing", detail: `there is no workspace ${JSON.stringify(workspace)}` })
