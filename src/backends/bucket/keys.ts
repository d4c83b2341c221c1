/** The keys of the objects that hold the entries of a filesystem, and the names of the entries. */
import { parse, type FsPath, root } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { escapeName } from "../../runtime/escapedName.ts"

/**
 * The first character of a segment for a name that no path can express. Callers cannot send such a segment, because paths
 * contain no control characters.
 */
const mark = "\u0000"

/** Returns the prefix without leading slashes. Unless the prefix is empty, the result ends in a slash. */
export const normalizePrefix = (prefix: string): string => {
  const trimmed = prefix.replace(/^\/+/, "")
  return trimmed === "" || trimmed.endsWith("/") ? trimmed : `${trimmed}/`
}

const rawOf = (segment: string): string => (segment.startsWith(mark) ? segment.slice(2) : segment)

const pathToKey = (path: FsPath): string => path.split("/").map(rawOf).join("/")

/** Returns the key of a file, or `undefined` if the path can only be a directory. */
export const fileKey = (prefix: string, path: FsPath): string | undefined =>
  path === root || path.slice(path.lastIndexOf("/") + 1).startsWith(`${mark}d`) ? undefined : prefix + pathToKey(path)

/** Returns the key of a directory's marker. The keys of all its entries begin with this key. */
export const directoryKey = (prefix: string, path: FsPath): string => (path === root ? prefix : `${prefix + pathToKey(path)}/`)

/** Tests whether no request can reach the object. HTTP clients remove the segments "." and ".." from URLs. */
export const isUnreachable = (key: string): boolean => key.split("/").some((segment) => segment === "." || segment === "..")

const isPlain = (name: string): boolean => name !== "" && !name.includes("/") && parse(name) === name && name !== root

/** Returns the entry of a listing. `isShadowed` is true for a directory with the name of a file, which hides the directory. */
export const childOf = (
  name: string,
  kind: "file" | "directory" | "symlink",
  isShadowed: boolean,
  sizeBytes?: number
): Child => {
  const size = sizeBytes === undefined ? {} : { sizeBytes }
  if (!isShadowed && isPlain(name)) return { name, kind, addressable: true, ...size }
  const escaped = escapeName(Buffer.from(name, "utf8"))
  return {
    name: isShadowed ? `${escaped}\\x2f` : escaped === "" ? "\\x2f" : escaped,
    kind,
    addressable: false,
    // A key that ends in an empty name would be the marker of the directory above. So an entry with an empty name is always a
    // directory.
    key: `${mark}${isShadowed || name === "" ? "d" : "r"}${name}`,
    ...size
  }
}
