/** File names of snapshots. The name contains the id, so an id must be valid in a file name. */
import { Buffer } from "../../runtime/buffer.ts"
import { whyNoName } from "../../model/fileName.ts"

const suffix = ".fs.zip"

/** The longest name, in bytes, that every disk accepts. */
const longestName = 255
const longestId = longestName - suffix.length

export const whyUnfit = (id: string): string | undefined => {
  const why = whyNoName(id)
  if (why !== undefined) return why
  const length = Buffer.byteLength(id)
  return length > longestId ? `it has ${length} bytes where ${longestId} are allowed` : undefined
}

export const nameOf = (id: string): string => id + suffix

export const idOf = (name: string): string | undefined => {
  if (!name.endsWith(suffix)) return undefined
  const id = name.slice(0, -suffix.length)
  return whyUnfit(id) === undefined ? id : undefined
}
