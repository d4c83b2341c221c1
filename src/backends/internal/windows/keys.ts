/**
 * Converts names on an NTFS disk that no path can express.
 *
 * Other systems, and Windows itself with `\\?\`, can create names such as `CON`, `a.`, lone surrogates and control
 * characters. Such a name gets a key: NUL followed by its UTF-16 units in hexadecimal. So it can be listed, moved and
 * removed, and is never confused with another.
 *
 * Node uses text for names, which loses lone surrogates. Bytes in WTF-8 (which encodes a surrogate like any other unit
 * of three bytes) preserve them.
 */
import type { Kind } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, segments } from "../../../model/FsPath.ts"
import type { Child } from "../../../port/Backend.ts"
import { escapeName } from "../../../runtime/escapedName.ts"
import { nameFault } from "./names.ts"

const mark = "\u0000"
const control = /[\u0000-\u001f\u007f]/

const isExpressible = (name: string): boolean => !control.test(name) && nameFault(name) === undefined

const keyOf = (name: string): string => mark + Buffer.from(name, "utf16le").toString("hex")

const unknownKey: Fault = { _tag: "InvalidPath", detail: "the disk does not take such a name" }

/** Names that would lead to another place, whoever has created them. */
const misleadingNames = /^\.{0,2}$|[\\/\u0000]/

const nameOf = (key: string): string | Fault => {
  const name = Buffer.from(key.slice(1), "hex").toString("utf16le")
  return keyOf(name) === key && !isExpressible(name) && !misleadingNames.test(name) ? name : unknownKey
}

/** Returns the path with the names of its keys, or the reason why Windows cannot have it. */
export const diskPathOf = (path: FsPath): FsPath | Fault => {
  const names: Array<string> = []
  for (const segment of segments(path)) {
    const name = segment.startsWith(mark) ? nameOf(segment) : (nameFault(segment) ?? segment)
    if (typeof name !== "string") return name
    names.push(name)
  }
  return (names.length === 0 ? path : names.join("/")) as FsPath
}

export const childOf = (name: string, kind: Kind): Child =>
  isExpressible(name)
    ? { name, kind, addressable: true }
    : { name: escapeName(toBytes(name)), kind, addressable: false, key: keyOf(name) }

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
