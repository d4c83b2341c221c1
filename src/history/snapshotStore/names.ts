/** A snapshot is a file whose name is its id, so an id is what can stand in the name of a file and lead nowhere. */

const suffix = ".fs.zip"

/** Bytes that every disk takes for one name. */
const longestName = 255
const longestId = longestName - suffix.length

const separators = /[/\\]/
const controls = /\p{Cc}/u
const onlyDots = /^\.+$/

/** `undefined` where it can be one. */
export const whyUnfit = (id: string): string | undefined => {
  if (typeof id !== "string") return "it is no text"
  if (id === "") return "it is empty"
  if (separators.test(id)) return "it has a slash or a backslash, which separate names"
  if (controls.test(id)) return "it has a control character"
  if (!id.isWellFormed()) return "it has a lone surrogate, which no file name can hold"
  if (onlyDots.test(id)) return "it has nothing but dots"
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
