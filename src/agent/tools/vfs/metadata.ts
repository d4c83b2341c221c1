import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import type { FileStat } from "../../../model/Entry.ts"
import { size } from "../../text/words.ts"
import { Encoding } from "./content.ts"

export const File = Schema.Struct({
  path: Schema.String,
  encoding: Encoding,
  size_bytes: Schema.Int,
  version: Schema.String,
  /** The time in UTC, with milliseconds; absent if the backend has none. */
  created_at: Schema.optionalKey(Schema.String),
  updated_at: Schema.optionalKey(Schema.String)
})

const time = (at: DateTime.Utc): string => DateTime.formatIso(at)

export const timesOf = ({ createdAt, modifiedAt }: FileStat): Pick<typeof File.Type, "created_at" | "updated_at"> => ({
  ...(createdAt !== undefined && { created_at: time(createdAt) }),
  ...(modifiedAt !== undefined && { updated_at: time(modifiedAt) })
})

const shortVersionLength = 12

/** Shortens a version to a prefix that identifies it; `if_version` accepts the prefix. */
export const shortVersion = (version: string): string => version.slice(0, shortVersionLength)

export const isShortVersion = (version: string): boolean =>
  version.length >= shortVersionLength && version.length < 64 && /^[0-9a-f]+$/.test(version)

/** Formats the facts as `12 bytes, version 3fa91c02aa10, created 2026-…, updated 2026-…`. */
export const formatFacts = (stat: FileStat, version: string | undefined): string => {
  const { created_at: created, updated_at: updated } = timesOf(stat)
  return [
    size(stat.sizeBytes),
    ...(version === undefined ? [] : [`version ${shortVersion(version)}`]),
    ...(created === undefined ? [] : [`created ${created}`]),
    ...(updated === undefined ? [] : [`updated ${updated}`])
  ].join(", ")
}
