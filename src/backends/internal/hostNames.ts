/**
 * A name on disk is bytes, a segment of a path is text. Names that no path can express (not UTF-8, or with control characters) are
 * known by a key instead, the bytes in hexadecimal behind a NUL, which neither a caller's path nor a name on disk can hold. So
 * everything on the disk can be listed, moved and removed through the port, and nothing is ever taken for something else.
 */
import { isUtf8 } from "../../runtime/node.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Child } from "../../port/Backend.ts"
import { escaped } from "../../runtime/escapedName.ts"

/** Text wherever that says it exactly. */
export type HostPath = string | Buffer

const mark = "\u0000"
const control = /[\u0000-\u001f\u007f]/

/** Where text may stand for bytes that are none: what decoders put in the place of those. */
export const isDoubtful = (name: string): boolean => name.includes("\ufffd")

export const keyOf = (name: Buffer): string => mark + name.toString("hex")

/**
 * The name that a segment stands for. What is no key of ours keeps its NUL, and what is no name at all gets one: the system then
 * refuses it, before it looks at anything.
 */
const onDisk = (segment: string): HostPath => {
  if (segment === "" || segment === "." || segment === "..") return mark
  if (!segment.startsWith(mark)) return segment
  const name = Buffer.from(segment.slice(1), "hex")
  return keyOf(name) === segment && isInexpressible(name) ? fromBytes(name) : segment
}

const isInexpressible = (name: Buffer): boolean =>
  !name.includes(0) && !name.includes("/") && (!isUtf8(name) || control.test(name.toString()))

export const below = (directory: HostPath, segment: string): HostPath => {
  const name = onDisk(segment)
  const isTop = directory.length === 1
  return typeof directory === "string" && typeof name === "string"
    ? isTop
      ? directory + name
      : `${directory}/${name}`
    : Buffer.concat([Buffer.from(directory), Buffer.from(isTop ? "" : "/"), Buffer.from(name)])
}

/** Text where that says it exactly, else the bytes. */
export const fromBytes = (path: Buffer): HostPath => (isUtf8(path) ? path.toString() : path)

export const isSamePath = (self: HostPath, that: HostPath): boolean =>
  typeof self === "string" || typeof that === "string" ? self === that : self.equals(that)

/** Whether a path can express a name that is text. */
export const isText = (name: string): boolean => !control.test(name)

/** The entry of a listing. `name` is exact. */
export const childOf = (name: HostPath, kind: Kind): Child => {
  if (typeof name === "string" && isText(name)) return { name, kind, addressable: true }
  const bytes = Buffer.from(name)
  return { name: escaped(bytes), kind, addressable: false, key: keyOf(bytes) }
}
