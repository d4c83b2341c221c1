/** File names of snapshots. The name contains the id, so an id must be valid in a file name. */
import { Buffer } from "../../runtime/buffer.ts"
import { whyInvalidFileName } from "../../model/fileName.ts"

const suffix = ".fs.zip"

/** The longest name, in bytes, that every disk accepts. */
const maxNameBytes = 255
const maxIdBytes = maxNameBytes - suffix.length

export const whyInvalidId = (id: string): string | undefined => {
  const why = whyInvalidFileName(id)
  if (why !== undefined) return why
  const length = Buffer.byteLength(id)
  return length > maxIdBytes ? `it has ${length} bytes where ${maxIdBytes} are allowed` : undefined
}

export const nameOf = (id: string): string => id + suffix

export const idOf = (name: string): string | undefined => {
  if (!name.endsWith(suffix)) return undefined
  const id = name.slice(0, -suffix.length)
  return whyInvalidId(id) === undefined ? id : undefined
}
