/**
 * Parses file names in unified diffs: quoted as git and GNU diff quote them, with prefixes that are no directories, and
 * followed by times.
 */

export interface Name {
  /** The name without quotes; `undefined` for /dev/null. */
  readonly path: string | undefined
  /** True if this side has no file: its time is the epoch, or its name is /dev/null. */
  readonly isAbsent: boolean
}

const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 }

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** Decodes a quoted name. Octal escapes are bytes of UTF-8. */
const unquoteName = (quoted: string): string => {
  const bytes: Array<number> = []
  for (const [part, escape] of quoted.matchAll(/\\([0-7]{3}|.)|[^\\]+/gs)) {
    if (escape === undefined) for (const byte of encoder.encode(part)) bytes.push(byte)
    else bytes.push(escape.length === 3 ? Number.parseInt(escape, 8) & 0xff : (escapes[escape] ?? escape.charCodeAt(0)))
  }
  return decoder.decode(new Uint8Array(bytes))
}

const quoted = /^"((?:[^"\\]|\\.)*)"/s

export const parseName = (text: string): string => {
  const found = quoted.exec(text)
  return found === null ? text.trim() : unquoteName(found[1]!)
}

export const parseSideName = (rest: string): Name => {
  const found = quoted.exec(rest)
  const tab = found === null ? rest.indexOf("\t") : found[0].length
  const path = parseName(tab === -1 ? rest : rest.slice(0, tab))
  const time = tab === -1 ? "" : rest.slice(tab).trim()
  const isNull = path === "/dev/null"
  return { path: isNull ? undefined : path, isAbsent: isNull || /^(?:1970-01-01|1969-12-31)[ T]/.test(time) }
}

const prefix = /^([abciow])\//

const withoutPrefix = (path: string): string => path.replace(prefix, "")
const withoutFirstSegment = (path: string): string => path.slice(path.indexOf("/") + 1)

type Pair = readonly [from: string | undefined, to: string | undefined]

const commonPair = (from: string, to: string): Pair => {
  if (from === to) return [from, to]
  const [one, other] = [prefix.exec(from)?.[1], prefix.exec(to)?.[1]]
  if (one !== undefined && other !== undefined && one !== other) return [withoutPrefix(from), withoutPrefix(to)]
  if (from.includes("/") && to.includes("/") && withoutFirstSegment(from) === withoutFirstSegment(to))
    return [withoutFirstSegment(from), withoutFirstSegment(to)]
  return /^(?:\.orig|\.bak|\.old|~)$/.test(from.startsWith(to) ? from.slice(to.length) : "") ? [to, to] : [from, to]
}

/** Returns both names without git's prefixes, which differ between the sides. GNU diff has two directories in their place. */
export const namePair = (oldName: Name, newName: Name): Pair => {
  if (oldName.path === undefined || newName.path === undefined) {
    return [oldName.path?.replace(/^a\//, ""), newName.path?.replace(/^b\//, "")]
  }
  const [from, to] = commonPair(oldName.path, newName.path)
  return [oldName.isAbsent ? undefined : from, newName.isAbsent ? undefined : to]
}

export const commonName = (rest: string): string | undefined => {
  const first = quoted.exec(rest)
  if (first !== null) return withoutPrefix(unquoteName(first[1]!))
  // The name may contain spaces, and both sides have the same length, so split at the middle.
  const middle = (rest.length - 1) / 2
  if (!Number.isInteger(middle) || rest[middle] !== " ") return undefined
  const [one, other] = [rest.slice(0, middle), rest.slice(middle + 1)]
  return one === other
    ? one
    : prefix.test(one) && prefix.test(other) && withoutPrefix(one) === withoutPrefix(other)
      ? withoutPrefix(one)
      : undefined
}
