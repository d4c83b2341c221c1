/**
 * Every name that a port knows an entry by has one name in a git tree, which git and the disks that git writes to take for nothing else.
 * What they could refuse or misread is kept behind a mark; all other names stay as they are, so that people find them.
 */
import { isUtf8 } from "../../runtime/node.ts"

const mark = "%fs-algebra%"

/** Of the entry that holds the modes which git does not carry. No name of the tree's own is stored like that. */
export const modesName = `${mark}modes`

/** In front of the bytes in hexadecimal: how ports know a name that is no text. */
const keyMark = "\u0000"

/** What nearly all names are, and what needs no closer look. */
const plain = /^[\w+,=@#()[\]-][\w .+,=@#()[\]-]*$/

const control = /[\u0000-\u001f\u007f]/

/** What HFS+ passes over when it compares names. */
const invisible = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

/** Where a name ends for git when it thinks of HFS+: these are no characters. */
const end = /[\ufffe\uffff][^]*/

/**
 * `.git` and the files that git obeys, as NTFS sees them: in either case, with dots and spaces behind, with a stream, by a short name.
 * Of short names more are kept back than git knows.
 */
const special = /^(?:\.git|\.gitmodules|\.gitattributes|\.mailmap|(?:[gm][^~]{0,5})?~\d+)[ .]*(?::|$)/i

const isMisread = (name: string): boolean => name.startsWith(mark) || special.test(name.replace(invisible, "").replace(end, ""))

/** For git with NTFS in mind a backslash divides a path, also behind the mark, so that such a name is kept in hexadecimal. */
const isDivided = (name: string): boolean => name.includes("\\")

const isText = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && !name.includes("/") && !control.test(name) && name.isWellFormed()

const isKeyed = (name: Buffer): boolean =>
  !name.includes(0) && !name.includes("/") && (!isUtf8(name) || control.test(name.toString()))

const hexadecimal = /^(?:[0-9a-f]{2})+$/

/** The segment of an entry whose name has these bytes, if that is kept in hexadecimal. */
const ofHexadecimal = (digits: string): string | undefined => {
  if (!hexadecimal.test(digits)) return undefined
  const bytes = Buffer.from(digits, "hex")
  if (isKeyed(bytes)) return keyMark + digits
  const name = bytes.toString()
  return isText(name) && isDivided(name) ? name : undefined
}

const hexadecimalOf = (segment: string): string | undefined => {
  const digits = segment.startsWith(keyMark) ? segment.slice(1) : isDivided(segment) ? Buffer.from(segment).toString("hex") : ""
  return ofHexadecimal(digits) === segment ? digits : undefined
}

/** The name in a git tree of an entry with this segment: bytes, one character each. Throws for what is no segment of any port. */
export const storedName = (segment: string): string => {
  if (plain.test(segment)) return segment
  const digits = hexadecimalOf(segment)
  if (digits !== undefined) return `${mark}~${digits}`
  if (!isText(segment)) throw new RangeError(`${JSON.stringify(segment)} is no segment of a path`)
  return Buffer.from(isMisread(segment) ? `${mark}=${segment}` : segment).toString("latin1")
}

/** The name in a git tree of an entry with this segment. Throws for what is no segment of any port. */
export const encodeName = (segment: string): Buffer => Buffer.from(storedName(segment), "latin1")

/** The segment of an entry with this name in a git tree; `undefined` for what `encodeName` answers to nothing. */
export const decodeName = (stored: Buffer): string | undefined => {
  const bytes = stored.toString("latin1")
  if (plain.test(bytes)) return bytes
  if (!isUtf8(stored)) return undefined
  const name = stored.toString()
  if (!isText(name) || isDivided(name)) return undefined
  if (!name.startsWith(mark)) return isMisread(name) ? undefined : name
  const rest = name.slice(mark.length + 1)
  if (name[mark.length] === "~") return ofHexadecimal(rest)
  return name[mark.length] === "=" && isText(rest) && isMisread(rest) ? rest : undefined
}
