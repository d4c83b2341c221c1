/** Object ids of git: the SHA-1 of kind, size and bytes, as 40 lower-case hexadecimal digits. */
import { Buffer } from "../../runtime/buffer.ts"
import { createHash, hash } from "../../runtime/node.ts"
import type { ObjectKind } from "./encoder.ts"

export type { ObjectKind }

const idPattern = /^[0-9a-f]{40}$/

export const isId = (text: string): boolean => idPattern.test(text)

/**
 * The largest body, in bytes, that is copied behind its header and hashed in one call. For small bodies the calls
 * dominate the cost.
 */
const maxSingleHashBytes = 32 * 1024

/** The buffer for header and body. Hashing is synchronous, so one buffer is enough. */
const hashBuffer = Buffer.allocUnsafeSlow(maxSingleHashBytes + 32)

export const idOf = (kind: ObjectKind, body: Uint8Array): string => {
  if (body.length > maxSingleHashBytes) return hasherOf(kind, body.length).update(body).digest("hex")
  const start = hashBuffer.write(`${kind} ${body.length}\0`, 0, "latin1")
  hashBuffer.set(body, start)
  return hash("sha1", hashBuffer.subarray(0, start + body.length))
}

export const hasherOf = (kind: ObjectKind, size: number) => createHash("sha1").update(`${kind} ${size}\0`)
