/** A snapshot is a file whose name is its id, so an id is what can stand in the name of a file and lead nowhere. */
import { Buffer } from "../../runtime/buffer.ts"
import { whyNoName } from "../../model/fileName.ts"

const suffix = ".fs.zip"

/** Bytes that every disk takes for one name. */
const longestName = 255
const longestId = longestName - suffix.length

/** `undefined` where it can be one. */
export const whyUnfit = (id: string): string | undefined => {
  const why = whyNoName(id)
  if (why !== undefined) return why
  const length = Buffer.byteLength(id)
  return length > longestId ? `it has ${length} bytes where ${longestId} are allowed` : undefined
}

export const nameOf = (id: string): string => id + suffix

/** `undefined` for the names of files that are no snapshots. */
export const idOf = (name: string): string | undefined => {
  if (!name.endsWith(suffix)) return undefined
  const id = name.slice(0, -suffix.length)
  return whyUnfit(id) === undefined ? id : undefined
}
