/** The contents that concurrentWriter.ts writes in place, and the states that such a file has between two of its versions. */

const digits = 8
const size = 222_222 * (digits + 1)

/** Returns the content of a version of a file that is overwritten in place, from its first byte to its last. */
export const overwritten = (version: number): Buffer => Buffer.alloc(size, `${String(version).padStart(digits, "0")}\n`)

/** Tests whether the file had this content at some moment: the begin of one version, and the rest of the version before it. */
export const isOverwritten = (bytes: Buffer): boolean => {
  if (bytes.length !== size) return false
  // The two versions meet in at most one line.
  const [first, last] = [bytes.toString("latin1", 0, digits), bytes.toString("latin1", size - digits - 1)].map(Number)
  return [first!, last! + 1].some((version) => {
    const later = overwritten(version)
    const end = bytes.findIndex((byte, at) => byte !== later[at])
    return end < 0 || bytes.subarray(end).equals(overwritten(version - 1).subarray(end))
  })
}
