import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { bringBackBytesOf, importTarOf, keepBytesOf } from "../../history/Archive.ts"
import type { ArchiveError } from "../../history/errors.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import type { FsError } from "../../model/FsError.ts"
import type { SessionError } from "../../model/sessionError.ts"
import { make as makeSlice, replaceLatest, type Slice } from "../../model/Slice.ts"
import type { Operations as Session } from "../Session.ts"

/** @since 0.1.0 */
export interface ExternalFsSnapshot {
  /**
   * A ZIP archive as `Archive.exportBytes` creates it. A tar archive, optionally gzipped, is accepted too. The array must not be changed.
   */
  readonly data: Uint8Array
}

export const slice: Slice<ExternalFsSnapshot> = makeSlice(
  "ExternalFsSnapshot",
  Schema.Struct({ data: Schema.Uint8ArrayFromBase64 }),
  { reduce: replaceLatest }
)

export const capture = (
  session: Pick<Session, "set">,
  fs: Algebra
): Effect.Effect<void, ArchiveError | FsError | SessionError> =>
  Effect.flatMap(withExclusiveLock(fs.port, keepBytesOf(fs)), (data) => session.set(slice, { data }))

const isZip = (bytes: Uint8Array): boolean => bytes[0] === 0x50 && bytes[1] === 0x4b

export const restore = (session: Pick<Session, "latest">, fs: Algebra): Effect.Effect<boolean, ArchiveError | FsError> =>
  Effect.flatMap(session.latest(slice), (latest) => {
    if (Option.isNone(latest)) return Effect.succeed(false)
    // Copy the bytes, because they are checked as a whole before they are used.
    const bytes = latest.value.data.slice()
    return Effect.as(isZip(bytes) ? bringBackBytesOf(fs, bytes) : importTarOf(fs, Stream.succeed(bytes)), true)
  })
