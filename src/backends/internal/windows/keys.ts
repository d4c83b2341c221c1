/**
 * A name on an NTFS disk is UTF-16 units, of which other systems, and Windows itself behind `\\?\`, leave some that no path of ours can
 * say: `CON`, `a.`, lone surrogates, control characters. Such a name is known by a key, its units in hexadecimal behind a NUL, so that
 * it can be listed, moved and removed, and is never taken for something else.
 *
 * Node takes and gives text for names, and loses a lone surrogate on the way. As bytes (WTF-8, in which a surrogate is written like
 * any other unit of three bytes) it keeps them; here is how to get from one to the other.
 */
import type { Kind } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, segments } from "../../../model/FsPath.ts"
import type { Child } from "../../../port/Backend.ts"
import { escaped } from "../../../runtime/escapedName.ts"
import { nameFault } from "./names.ts"

const mark = "\u0000"
const control = /[\u0000-\u001f\u007f]/

const isExpressible = (name: string): boolean => !control.test(name) && nameFault(name) === undefined

const keyOf = (name: string): string => mark + Buffer.from(name, "utf16le").toString("hex")

const unknown: Fault = { _tag: "InvalidPath", detail: "the disk does not take such a name" }

/** Neither may stand in a name, whatever wrote it: it would lead elsewhere. */
const misleading = /^\.{0,2}$|[\\/\u0000]/

/** The name that a key stands for: one that a listing has told, or could tell. */
const nameOf = (key: string): string | Fault => {
  const name = Buffer.from(key.slice(1), "hex").toString("utf16le")
  return keyOf(name) === key && !isExpressible(name) && !misleading.test(name) ? name : unknown
}

/** The path with the names on disk in the place of keys, or why Windows cannot have it. */
export const spelt = (path: FsPath): FsPath | Fault => {
  const names: Array<string> = []
  for (const segment of segments(path)) {
    const name = segment.startsWith(mark) ? nameOf(segment) : (nameFault(segment) ?? segment)
    if (typeof name !== "string") return name
    names.push(name)
  }
  return (names.length === 0 ? path : names.join("/")) as FsPath
}

/** The entry of a listing. */
export const childOf = (name: string, kind: Kind): Child =>
  isExpressible(name)
    ? { name, kind, addressable: true }
    : { name: escaped(toBytes(name)), kind, addressable: false, key: keyOf(name) }

/** WTF-8. */
export const toBytes = (text: string): Buffer => {
  if (text.isWellFormed()) return Buffer.from(text)
  const parts: Array<Buffer> = []
  for (const character of text) {
    const unit = character.charCodeAt(0)
    parts.push(
      character.length === 1 && (unit & 0xf800) === 0xd800
        ? Buffer.from([0xed, 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)])
        : Buffer.from(character)
    )
  }
  return Buffer.concat(parts)
}

/** From WTF-8. */
export const fromBytes = (bytes: Buffer): string => {
  let out = ""
  let start = 0
  for (let at = bytes.indexOf(0xed); at !== -1; at = bytes.indexOf(0xed, at + 1)) {
    if (bytes[at + 1]! < 0xa0) continue
    out += bytes.toString("utf8", start, at)
    out += String.fromCharCode(0xd000 | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f))
    start = at + 3
  }
  return out + bytes.toString("utf8", start)
}
