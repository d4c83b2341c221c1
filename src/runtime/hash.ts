import { createHash, hash } from "./node.ts"

export const sha256 = (bytes: Uint8Array): string => hash("sha256", bytes)

export interface Hasher {
  readonly update: (bytes: Uint8Array) => void
  /** Returns the hash of all bytes so far, in hex. More bytes may follow. */
  readonly digest: () => string
}

export const hasher = (): Hasher => {
  const hash = createHash("sha256")
  return {
    update: (bytes) => void hash.update(bytes),
    digest: () => hash.copy().digest("hex")
  }
}
