/**
 * Converts between names on disk, which are bytes, and segments of paths, which are text.
 *
 * A name that no path can express (not UTF-8, or with control characters) gets a key: NUL followed by the bytes in
 * hexadecimal. No caller's path and no name on disk contains NUL. So the port can list, move and remove every entry,
 * and never confuses two.
 */
import { isUtf8 } from "../../runtime/node.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Child } from "../../port/Backend.ts"
import { escapeName } from "../../runtime/escapedName.ts"

export type HostPath = string | Buffer

const keyPrefix = "\u0000"
const control = /[\u0000-\u001f\u007f]/

/** Tests for the replacement character, with which text may be a lossy decoding. */
export const mayBeLossy = (name: string): boolean => name.includes("\ufffd")

export const keyOf = (name: Buffer): string => keyPrefix + name.toString("hex")

/**
 * Returns the name on disk of a segment.
 *
 * An invalid key keeps its NUL, and an invalid name becomes NUL. The system then refuses the name before it touches
 * anything.
 */
const diskNameOf = (segment: string): HostPath => {
  if (segment === "" || segment === "." || segment === "..") return keyPrefix
  if (!segment.startsWith(keyPrefix)) return segment
  const name = Buffer.from(segment.slice(1), "hex")
  return keyOf(name) === segment && isInexpressible(name) ? fromBytes(name) : segment
}

const isInexpressible = (name: Buffer): boolean =>
  !name.includes(0) && !name.includes("/") && (!isUtf8(name) || control.test(name.toString()))

export const below = (directory: HostPath, segment: string): HostPath => {
  const name = diskNameOf(segment)
  const isTop = directory.length === 1
  return typeof directory === "string" && typeof name === "string"
    ? isTop
      ? directory + name
      : `${directory}/${name}`
    : Buffer.concat([Buffer.from(directory), Buffer.from(isTop ? "" : "/"), Buffer.from(name)])
}

export const fromBytes = (path: Buffer): HostPath => (isUtf8(path) ? path.toString() : path)

export const isSamePath = (self: HostPath, that: HostPath): boolean =>
  typeof self === "string" || typeof that === "string" ? self === that : self.equals(that)

export const isPlainText = (name: string): boolean => !control.test(name)

export const childOf = (name: HostPath, kind: Kind): Child => {
  if (typeof name === "string" && isPlainText(name)) return { name, kind, addressable: true }
  const bytes = Buffer.from(name)
  return { name: escapeName(bytes), kind, addressable: false, key: keyOf(bytes) }
}
