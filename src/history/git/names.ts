/**
 * Maps every entry name of a port to one name in a git tree.
 *
 * Names that git or a disk could reject or misread are stored behind a mark. All other names stay as they are, so that
 * people recognise them.
 */
import { isUtf8 } from "../../runtime/node.ts"

const namePrefix = "%fs-algebra%"

/**
 * The name of the entry with the modes that git cannot store. No entry of the tree itself is stored under this name.
 */
export const modesName = `${namePrefix}modes`

/** The prefix of a name that is not text; the bytes follow in hexadecimal. All ports use it. */
const keyPrefix = "\u0000"

const plainNamePattern = /^[\w+,=@#()[\]-][\w .+,=@#()[\]-]*$/

const controlPattern = /[\u0000-\u001f\u007f]/

/** The characters that HFS+ ignores when it compares names. */
const ignorableCharacters = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

/** The noncharacters at which git's check for HFS+ ends a name, and everything after them. */
const noncharacterTail = /[\ufffe\uffff][^]*/

/**
 * `.git` and the files that git obeys, in every NTFS spelling: any case, trailing dots and spaces, a stream, a short
 * name.
 *
 * The pattern covers more short names than git's own check.
 */
const specialNamePattern = /^(?:\.git|\.gitmodules|\.gitattributes|\.mailmap|(?:[gm][^~]{0,5})?~\d+)[ .]*(?::|$)/i

const needsPrefix = (name: string): boolean =>
  name.startsWith(namePrefix) || specialNamePattern.test(name.replace(ignorableCharacters, "").replace(noncharacterTail, ""))

/**
 * Tests for a backslash. Git's check for NTFS splits paths at it, even behind the mark, so such a name is stored in
 * hexadecimal.
 */
const hasBackslash = (name: string): boolean => name.includes("\\")

const isText = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && !name.includes("/") && !controlPattern.test(name) && name.isWellFormed()

const needsKey = (name: Buffer): boolean =>
  !name.includes(0) && !name.includes("/") && (!isUtf8(name) || controlPattern.test(name.toString()))

const hexadecimalPattern = /^(?:[0-9a-f]{2})+$/

/** Returns the segment for these hexadecimal digits, or `undefined` if its name would not be stored in hexadecimal. */
const fromHexadecimal = (digits: string): string | undefined => {
  if (!hexadecimalPattern.test(digits)) return undefined
  const bytes = Buffer.from(digits, "hex")
  if (needsKey(bytes)) return keyPrefix + digits
  const name = bytes.toString()
  return isText(name) && hasBackslash(name) ? name : undefined
}

const hexadecimalOf = (segment: string): string | undefined => {
  const digits = segment.startsWith(keyPrefix)
    ? segment.slice(1)
    : hasBackslash(segment)
      ? Buffer.from(segment).toString("hex")
      : ""
  return fromHexadecimal(digits) === segment ? digits : undefined
}

/** Returns the name of a segment in a git tree, one character per byte. Throws if no port can have this segment. */
export const storedName = (segment: string): string => {
  if (plainNamePattern.test(segment)) return segment
  const digits = hexadecimalOf(segment)
  if (digits !== undefined) return `${namePrefix}~${digits}`
  if (!isText(segment)) throw new RangeError(`${JSON.stringify(segment)} is no segment of a path`)
  return Buffer.from(needsPrefix(segment) ? `${namePrefix}=${segment}` : segment).toString("latin1")
}

export const encodeName = (segment: string): Buffer => Buffer.from(storedName(segment), "latin1")

/** Returns the segment of a stored name, or `undefined` for a name that `encodeName` never returns. */
export const decodeName = (stored: Buffer): string | undefined => {
  const bytes = stored.toString("latin1")
  if (plainNamePattern.test(bytes)) return bytes
  if (!isUtf8(stored)) return undefined
  const name = stored.toString()
  if (!isText(name) || hasBackslash(name)) return undefined
  if (!name.startsWith(namePrefix)) return needsPrefix(name) ? undefined : name
  const rest = name.slice(namePrefix.length + 1)
  if (name[namePrefix.length] === "~") return fromHexadecimal(rest)
  return name[namePrefix.length] === "=" && isText(rest) && needsPrefix(rest) ? rest : undefined
}
