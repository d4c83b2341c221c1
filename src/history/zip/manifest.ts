import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { Buffer } from "../../runtime/buffer.ts"
import { refuse } from "./names.ts"

/** The description of an archive's contents. */
export interface Manifest {
  readonly createdAt: DateTime.Utc
  /** The number of files and symlinks. */
  readonly fileCount: number
  /** The bytes of all files and symlink targets. */
  readonly totalBytes: number
  /** The entries that are carried verbatim; neither count includes them. */
  readonly verbatim?: Verbatim | undefined
}

/** The counts of entries that only their original filesystem can restore. */
export interface Verbatim {
  readonly backend: string
  /** The number of files, symlinks and directories. */
  readonly entries: number
  /** The number of files and symlinks. */
  readonly fileCount: number
  readonly totalBytes: number
}

export const manifestName = "manifest.json"
export const filesPrefix = "files/"

const version = "1"

const verbatimVersion = 1

/** Encodes a manifest. The time has a numeric offset, which every ISO 8601 reader accepts. */
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

/** The archive comment that marks a plain layout whose entries look like a manifest layout. */
export const plainComment = "fs-algebra: plain"

export const maxManifestBytes = 1024 * 1024

/**
 * Tests whether bytes are a manifest of this library, of any version. Other files named `manifest.json` lack these two
 * fields.
 */
export const isManifest = (bytes: Uint8Array): boolean => {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    if (typeof value !== "object" || value === null) return false
    return Object.hasOwn(value, "file_count") && Object.hasOwn(value, "total_bytes")
  } catch {
    return false
  }
}

const parseJson = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    throw refuse("corrupt", "the manifest is not JSON", manifestName)
  }
}

const parseCount = (value: unknown, name: string): number => {
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
    entries: parseCount(fields["entries"], "entries"),
    fileCount: parseCount(fields["file_count"], "file_count"),
    totalBytes: parseCount(fields["total_bytes"], "total_bytes")
  }
}

export const read = (bytes: Uint8Array): Manifest => {
  const value = parseJson(bytes)
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse("corrupt", "the manifest is not an object", manifestName)
  }
  const fields = value as { readonly [name: string]: unknown }
  if (fields["version"] !== version) {
    const said = JSON.stringify(fields["version"] ?? null).slice(0, 40)
    throw refuse("version", `the archive is of version ${said}, and only ${JSON.stringify(version)} can be read`, manifestName)
  }
  const fileCount = parseCount(fields["file_count"], "file_count")
  const totalBytes = parseCount(fields["total_bytes"], "total_bytes")
  const at = fields["created_at"]
  const createdAt = typeof at === "string" ? DateTime.make(at) : Option.none()
  if (Option.isNone(createdAt)) throw refuse("corrupt", "the manifest's created_at is not a time", manifestName)
  const verbatim = verbatimIn(fields["verbatim"])
  return { createdAt: DateTime.toUtc(createdAt.value), fileCount, totalBytes, ...(verbatim && { verbatim }) }
}
