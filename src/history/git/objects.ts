/** What git keeps is known by the SHA-1 of its kind, its size and its bytes: 40 hexadecimal digits in lower case. */
import { Buffer } from "../../runtime/buffer.ts"
import { createHash, hash } from "../../runtime/node.ts"

export type ObjectKind = "blob" | "tree" | "commit"

const id = /^[0-9a-f]{40}$/

export const isId = (text: string): boolean => id.test(text)

/** Bodies of at most so many bytes are put behind their header and hashed in one call, which is what costs with small ones. */
const small = 32 * 1024

/** Where they are put; hashing never waits, so one is enough. */
const scratch = Buffer.allocUnsafeSlow(small + 32)

export const idOf = (kind: ObjectKind, body: Uint8Array): string => {
  if (body.length > small) return hasherOf(kind, body.length).update(body).digest("hex")
  const start = scratch.write(`${kind} ${body.length}\0`, 0, "latin1")
  scratch.set(body, start)
  return hash("sha1", scratch.subarray(0, start + body.length))
}

/** For a body of `size` bytes that comes in parts. */
export const hasherOf = (kind: ObjectKind, size: number) => createHash("sha1").update(`${kind} ${size}\0`)
