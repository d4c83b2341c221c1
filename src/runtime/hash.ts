/** Content versions are SHA-256, by the machine's own implementation where there is Node. */
import { createHash, hash } from "./node.ts"

/** Returns the SHA-256 of the bytes, as 64 hexadecimal digits in lower case. */
export const sha256 = (bytes: Uint8Array): string => hash("sha256", bytes)

/** A SHA-256 that grows. */
export interface Hasher {
  readonly update: (bytes: Uint8Array) => void
  /** Of all bytes so far, in hex. More may follow. */
  readonly digest: () => string
}

export const hasher = (): Hasher => {
  const hash = createHash("sha256")
  return {
    update: (bytes) => void hash.update(bytes),
    digest: () => hash.copy().digest("hex")
  }
}
