/** What an archive of version 1 says of itself, in an entry of its own. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { refuse } from "./names.ts"

/** What an archive says it holds. */
export interface Manifest {
  readonly createdAt: DateTime.Utc
  /** Files and links. */
  readonly fileCount: number
  /** Bytes of the files, and of the links' texts. */
  readonly totalBytes: number
}

export const manifestName = "manifest.json"
export const filesPrefix = "files/"

const version = "1"

/** With an offset that every reader of ISO 8601 takes. */
export const write = ({ createdAt, fileCount, totalBytes }: Manifest): Uint8Array =>
  Buffer.from(
    `${JSON.stringify(
      {
        version,
        created_at: DateTime.formatIso(createdAt).replace("Z", "+00:00"),
        file_count: fileCount,
        total_bytes: totalBytes
      },
      undefined,
      2
    )}\n`
  )

/** The comment of an archive that holds a tree at its top level, where its content alone would not tell. */
export const plainComment = "fs-algebra: plain"

/** Bytes. */
export const largestManifest = 1024 * 1024

/** Whether bytes are a manifest of ours, of whatever version: a `manifest.json` of others tells of no files and bytes. */
export const isOurs = (bytes: Uint8Array): boolean => {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    if (typeof value !== "object" || value === null) return false
    return Object.hasOwn(value, "file_count") && Object.hasOwn(value, "total_bytes")
  } catch {
    return false
  }
}

const parsed = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    throw refuse("corrupt", "the manifest is not JSON", manifestName)
  }
}

const counted = (value: unknown, name: string): number => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw refuse("corrupt", `the manifest's ${name} is not a count`, manifestName)
}

export const read = (bytes: Uint8Array): Manifest => {
  const value = parsed(bytes)
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse("corrupt", "the manifest is not an object", manifestName)
  }
  const fields = value as { readonly [name: string]: unknown }
  if (fields["version"] !== version) {
    const said = JSON.stringify(fields["version"] ?? null).slice(0, 40)
    throw refuse("version", `the archive is of version ${said}, and only ${JSON.stringify(version)} can be read`, manifestName)
  }
  const fileCount = counted(fields["file_count"], "file_count")
  const totalBytes = counted(fields["total_bytes"], "total_bytes")
  const at = fields["created_at"]
  const createdAt = typeof at === "string" ? DateTime.make(at) : Option.none()
  if (Option.isNone(createdAt)) throw refuse("corrupt", "the manifest's created_at is not a time", manifestName)
  return { createdAt: DateTime.toUtc(createdAt.value), fileCount, totalBytes }
}
