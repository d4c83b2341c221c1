/** What an archive of version 1 says of itself, in an entry of its own. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { Buffer } from "../../runtime/buffer.ts"
import { refuse } from "./names.ts"

/** What an archive says it holds. */
export interface Manifest {
  readonly createdAt: DateTime.Utc
  /** Files and links. */
  readonly fileCount: number
  /** Bytes of the files, and of the links' texts. */
  readonly totalBytes: number
  /** The entries that are carried verbatim, and are in neither count. */
  readonly verbatim?: Verbatim | undefined
}

/** Entries that only the filesystem that they came from can take back. */
export interface Verbatim {
  /** The kind of that filesystem. */
  readonly backend: string
  /** Files, links and directories. */
  readonly entries: number
  /** Files and links. */
  readonly fileCount: number
  readonly totalBytes: number
}

export const manifestName = "manifest.json"
export const filesPrefix = "files/"

const version = "1"

/** Of the form in which entries are carried verbatim. */
const verbatimVersion = 1

/** With an offset that every reader of ISO 8601 takes. */
export const write = ({ createdAt, fileCount, totalBytes, verbatim }: Manifest): Uint8Array =>
  Buffer.from(
    `${JSON.stringify(
      {
        version,
        created_at: DateTime.formatIso(createdAt).replace("Z", "+00:00"),
        file_count: fileCount,
        total_bytes: totalBytes,
        ...(verbatim && {
          verbatim: {
            version: verbatimVersion,
            backend: verbatim.backend,
            entries: verbatim.entries,
            file_count: verbatim.fileCount,
            total_bytes: verbatim.totalBytes
          }
        })
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

const verbatimIn = (value: unknown): Verbatim | undefined => {
  if (value === undefined) return undefined
  const fields = (typeof value === "object" && value !== null ? value : {}) as { readonly [name: string]: unknown }
  const { backend, version } = fields
  if (version !== verbatimVersion) throw refuse("version", "it holds verbatim entries of another version", manifestName)
  if (typeof backend !== "string") throw refuse("corrupt", "the manifest's backend is no text", manifestName)
  return {
    backend,
    entries: counted(fields["entries"], "entries"),
    fileCount: counted(fields["file_count"], "file_count"),
    totalBytes: counted(fields["total_bytes"], "total_bytes")
  }
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
  const verbatim = verbatimIn(fields["verbatim"])
  return { createdAt: DateTime.toUtc(createdAt.value), fileCount, totalBytes, ...(verbatim && { verbatim }) }
}
