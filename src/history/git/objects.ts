/** Object ids of git. An id is the SHA-1 of the kind, the size and the bytes, as 40 lower-case hexadecimal digits. */
import { Buffer } from "../../runtime/buffer.ts"
import { createHash, hash } from "../../runtime/node.ts"

export type ObjectKind = "blob" | "tree" | "commit"

const idPattern = /^[0-9a-f]{40}$/

export const isId = (text: string): boolean => idPattern.test(text)

/**
 * The largest body, in bytes, that is copied after its header and hashed in one call. For small bodies the number of calls
 * determines the time.
 */
const maxSingleHashBytes = 32 * 1024

/** The buffer for a header and a body. Hashing is synchronous, so all calls can share one buffer. */
const hashBuffer = Buffer.allocUnsafeSlow(maxSingleHashBytes + 32)

export const idOf = (kind: ObjectKind, body: Uint8Array): string => {
  if (body.length > maxSingleHashBytes) return hasherOf(kind, body.length).update(body).digest("hex")
  const start = hashBuffer.write(`${kind} ${body.length}\0`, 0, "latin1")
  hashBuffer.set(body, start)
  return hash("sha1", hashBuffer.subarray(0, start + body.length))
}

export const hasherOf = (kind: ObjectKind, size: number) => createHash("sha1").update(`${kind} ${size}\0`)
