/**
 * Paths: root-relative strings in one normal form.
 *
 * `parse` turns the string of a caller into an `FsPath`, and all code below the service takes only values of this type. So
 * no other module has to check a path for control characters, repeated slashes or `..` above the root.
 *
 * @since 0.1.0
 */
import { invalidPath, pathTooLong } from "./Fault.ts"
import * as Order_ from "effect/Order"
import * as Schema from "effect/Schema"
import type { Fault } from "./FsError.ts"
import type { LimitsShape } from "./Limits.ts"
import * as Unicode from "./unicode.ts"

/**
 * A path relative to the root, "/"-separated, normalised. The root itself is ".".
 *
 * @category models
 * @since 0.1.0
 */
export type FsPath = string & { readonly "~fs-algebra/FsPath": "FsPath" }

/**
 * The dialect in which `parse` reads a string: `standard` is the default, `vfs` and `branch` are stricter.
 *
 * - `standard`: inner `..` is resolved lexically, `.` and repeated slashes are dropped
 * - `vfs`: ASCII only, `.` and `..` are refused (`.` alone is the root), repeated slashes are dropped
 * - `branch`: `..` and empty segments are refused, `.` is dropped
 *
 * @since 0.1.0
 */
export type PathPolicy = "standard" | "vfs" | "branch"

/**
 * The root of a filesystem, which always exists and is always a directory.
 *
 * @since 0.1.0
 */
export const root: FsPath = "." as FsPath

const SLASH = 47
const DOT = 46

/**
 * Returns 0 for a path in normal form, 1 for a path that may need to be normalised, and 2 for text that no path may
 * contain. Most paths need only this one pass over their UTF-16 code units.
 */
const classify = (input: string): 0 | 1 | 2 => {
  let previous = SLASH
  let normalForm: 0 | 1 = 0
  let hasSurrogates = false
  for (let i = 0; i < input.length; i++) {
    const unit = input.charCodeAt(i)
    if (unit < 32 || unit === 127) return 2
    if (previous === SLASH && (unit === SLASH || unit === DOT)) normalForm = 1
    if ((unit & 0xf800) === 0xd800) hasSurrogates = true
    previous = unit
  }
  if (hasSurrogates && !input.isWellFormed()) return 2
  return previous === SLASH ? 1 : normalForm
}

const invalidTextFault = (input: string): Fault =>
  input.isWellFormed()
    ? invalidPath("it contains a control character")
    : invalidPath("it contains a lone surrogate, which no file name can hold")

const isAscii = (input: string): boolean => {
  for (let i = 0; i < input.length; i++) if (input.charCodeAt(i) > 127) return false
  return true
}

const reservedName = invalidPath("names of this form are reserved for temporary files; choose another")

const temporaryNamePattern = /^\.~fsa-[^/]*\.tmp$/i

/**
 * Tests whether a name has the form of this library's temporary files. Callers must not create such a name.
 *
 * A file with such a name may still belong to another program.
 *
 * @since 0.1.0
 */
export const isTemporaryName = (name: string): boolean =>
  name.charCodeAt(0) === DOT && name.charCodeAt(1) === 126 && temporaryNamePattern.test(name)

/**
 * Returns the number of Unicode code points of a text.
 *
 * @since 0.1.0
 */
export const codePoints: (text: string) => number = Unicode.codePoints

/**
 * Checks a path in normal form against three limits: characters in total, segments, characters per segment. Returns a
 * fault, or `undefined` for a path within the limits.
 *
 * @since 0.1.0
 */
export const checkLimits = (
  path: FsPath,
  limits: Pick<LimitsShape, "maxPathLength" | "maxPathDepth" | "maxSegmentLength">
): Fault | undefined => {
  const { length } = path
  // A path this short cannot exceed any of the three limits.
  if (length <= limits.maxSegmentLength && length <= limits.maxPathLength && length < 2 * limits.maxPathDepth) return undefined
  if (length > limits.maxPathLength && codePoints(path) > limits.maxPathLength) {
    return pathTooLong(`it has ${codePoints(path)} characters, but at most ${limits.maxPathLength} are allowed`)
  }
  let depth = 1
  let start = 0
  for (;;) {
    const slash = path.indexOf("/", start)
    const end = slash === -1 ? path.length : slash
    if (end - start > limits.maxSegmentLength && codePoints(path.slice(start, end)) > limits.maxSegmentLength) {
      return pathTooLong(`a name in it has more than ${limits.maxSegmentLength} characters`)
    }
    if (slash === -1) break
    start = slash + 1
    depth++
  }
  return depth > limits.maxPathDepth
    ? pathTooLong(`it has ${depth} segments, but at most ${limits.maxPathDepth} are allowed`)
    : undefined
}

/**
 * Parses a caller's string. Returns the normal form, or the fault `InvalidPath` with the reason.
 *
 * A string is invalid if it holds control characters or lone surrogates, climbs above the root or breaks the policy. A
 * value that is not a string is invalid too. `parse` does not check limits; see `checkLimits`.
 *
 * @example
 * ```ts
 * FsPath.parse("./src/lib/../main.ts") // => "src/main.ts"
 * const fault = FsPath.parse("../secret")
 * typeof fault === "string" ? fault : fault._tag // => "InvalidPath"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const parse = (input: string, policy: PathPolicy = "standard"): FsPath | Fault => {
  if (typeof input !== "string") return invalidPath("it is not a string")
  const shape = classify(input)
  if (shape === 2) return invalidTextFault(input)
  if (policy === "vfs" && !isAscii(input))
    return invalidPath("it has characters outside ASCII, which this workspace does not allow")
  if (input === "" || input === "." || input === "/") return root
  if (shape === 0) return input as FsPath
  const out: Array<string> = []
  const segments = (input.charCodeAt(0) === SLASH ? input.slice(1) : input).split("/")
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i]!
    if (segment === "") {
      if (policy === "branch") return invalidPath("it has an empty segment")
    } else if (segment === ".") {
      if (policy === "vfs") return invalidPath('it has a "." segment')
    } else if (segment === "..") {
      if (policy !== "standard") return invalidPath('it has a ".." segment')
      if (out.length === 0) return invalidPath("it climbs above the root")
      out.pop()
    } else {
      out.push(segment)
    }
  }
  return out.length === 0 ? root : (out.join("/") as FsPath)
}

/**
 * Returns a fault if the path contains a name reserved for temporary files, else `undefined`. Callers must not create
 * such a path.
 *
 * @since 0.1.0
 */
export const uncreatable = (path: string): Fault | undefined =>
  path.includes(".~") && path.split("/").some(isTemporaryName) ? reservedName : undefined

/**
 * Returns a fault if a symlink target contains control characters or lone surrogates, else `undefined`.
 *
 * @since 0.1.0
 */
export const unfit = (target: string): Fault | undefined => (classify(target) === 2 ? invalidTextFault(target) : undefined)

/**
 * Returns the path of a name in a directory. The name is not checked.
 *
 * @category constructors
 * @since 0.1.0
 */
export const join = (parent: FsPath, name: string): FsPath => (parent === root ? name : `${parent}/${name}`) as FsPath

/**
 * Joins two paths: `below("a", "b/c")` is `a/b/c`. If one path is the root, returns the other path.
 *
 * @since 0.1.0
 */
export const below = (base: FsPath, path: FsPath): FsPath => (path === root ? base : join(base, path))

/**
 * Returns the part of `path` below `base`, which must contain it: `relative("a", "a/b/c")` is `b/c`.
 *
 * @since 0.1.0
 */
export const relative = (base: FsPath, path: FsPath): FsPath =>
  base === root ? path : path === base ? root : (path.slice(base.length + 1) as FsPath)

/**
 * Returns the parent directory; the parent of the root is the root.
 *
 * @since 0.1.0
 */
export const parent = (path: FsPath): FsPath => {
  const at = path.lastIndexOf("/")
  return (at === -1 ? "." : path.slice(0, at)) as FsPath
}

/**
 * Returns the last segment; "" for the root.
 *
 * @since 0.1.0
 */
export const name = (path: FsPath): string => (path === root ? "" : path.slice(path.lastIndexOf("/") + 1))

/**
 * Returns the segments of a path; the root has none.
 *
 * @since 0.1.0
 */
export const segments = (path: FsPath): ReadonlyArray<string> => (path === root ? [] : path.split("/"))

/**
 * Returns the path with these segments; an empty list gives the root.
 *
 * @since 0.1.0
 */
export const fromSegments = (segments: ReadonlyArray<string>): FsPath =>
  (segments.length === 0 ? "." : segments.join("/")) as FsPath

/**
 * Tests whether `path` is `base` or lies below it.
 *
 * @category guards
 * @since 0.1.0
 */
export const isWithin = (base: FsPath, path: FsPath): boolean =>
  base === root ||
  path === base ||
  (path.length > base.length && path.charCodeAt(base.length) === SLASH && path.startsWith(base))

/**
 * Returns the lower-case form of a path, for comparisons that ignore case.
 *
 * @since 0.1.0
 */
export const fold = <Text extends string>(path: Text): Text => path.toLowerCase() as Text

/**
 * Compares two strings by code point. The operator `<` compares UTF-16 code units, which orders characters above U+FFFF
 * differently.
 *
 * @since 0.1.0
 */
export const compare: (self: string, that: string) => -1 | 0 | 1 = Unicode.compare

/**
 * The order by code point, in which listings, walks and searches of a case-sensitive filesystem return their results.
 *
 * @category ordering
 * @since 0.1.0
 */
export const Order: Order_.Order<string> = Order_.make(compare)

/**
 * A schema that decodes only strings in normal form.
 *
 * @category models
 * @since 0.1.0
 */
export const FsPath: Schema.Codec<FsPath, string> = Schema.String.check(
  Schema.makeFilter((path: string) => parse(path) === path || "must be a root-relative path in normal form")
) as unknown as Schema.Codec<FsPath, string>
