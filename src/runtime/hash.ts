/**
 * Content versions are SHA-256, by the machine's own implementation. It is asked for at the first hash and not imported: loading it
 * costs more than everything else a program that never asks for a version does with files.
 */
import type * as Crypto from "node:crypto"

const crypto = (): typeof Crypto => process.getBuiltinModule("node:crypto")

/** The SHA-256 of the bytes, as 64 hexadecimal digits in lower case. */
export const sha256 = (bytes: Uint8Array): string => crypto().hash("sha256", bytes, "hex")

/** A SHA-256 that grows. */
export interface Hasher {
  readonly update: (bytes: Uint8Array) => void
  /** Of all bytes so far, in hex. More may follow. */
  readonly digest: () => string
}

export const hasher = (): Hasher => {
  const hash = crypto().createHash("sha256")
  return {
    update: (bytes) => void hash.update(bytes),
    digest: () => hash.copy().digest("hex")
  }
}
