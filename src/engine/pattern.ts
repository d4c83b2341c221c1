/**
 * Compiles patterns to JavaScript regular expressions, matched against one line at a time. Only LF and CRLF end a line.
 *
 * The syntax of other dialects is translated, so that a pattern from Python or ripgrep keeps its meaning.
 */
import { isRegExp } from "../model/bytes.ts"
import type { Fault } from "../model/FsError.ts"
import { codePoints } from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"

export interface Pattern {
  readonly source: string
  readonly flags: string
  readonly literal: string | undefined
  readonly multiline: boolean
  /** Returns an upper bound of the steps on a line of `length` characters; Infinity if unknown. */
  readonly steps: (length: number) => number
}

export interface PatternOptions {
  readonly literal?: boolean | undefined
  readonly ignoreCase?: boolean | undefined
  readonly wholeWord?: boolean | undefined
  readonly multiline?: boolean | undefined
}

const invalid = (detail: string): Fault => ({ _tag: "InvalidArgument", argument: "pattern", detail })

const escapeText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

const piecePattern =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|[^])|\[(?:\\[^]|[^\]\\])*\]|\(\?P<|\(\?P=[A-Za-z_]\w*\)|\(\?<[=!]|\(\?[=!:]|\(\?<|[^]/g

const anchors = {
  line: { "^": "^", $: "$", "\\A": "^", "\\Z": "$", ".": "." },
  // The `m` flag would also treat a lone CR and U+2028 as line ends.
  text: { "^": "(?<![^\\n])", $: "(?=\\r?\\n|(?![^]))", "\\A": "(?<![^])", "\\Z": "(?![^])", ".": "(?:[^\\r\\n]|\\r(?!\\n))" }
} as const

const translate = (source: string, multiline: boolean, dotAll: boolean): string => {
  const table: Record<string, string> = multiline ? (dotAll ? { ...anchors.text, ".": "[^]" } : anchors.text) : anchors.line
  return source.replace(piecePattern, (part) => {
    const anchor = table[part]
    if (anchor !== undefined) return anchor
    if (part === "(?P<") return "(?<"
    return part.startsWith("(?P=") ? `\\k<${part.slice(4, -1)}>` : part
  })
}

const needsUnicode = (source: string): boolean => /(?:^|[^\\])(?:\\\\)*\\(?:[pP]\{|u\{)/.test(source)

const inlineFlags = /^\(\?([ims]+)\)/

interface ParsedPattern {
  readonly source: string
  readonly ignoreCase: boolean
  readonly dotAll: boolean
  readonly unicode: "" | "u" | "v"
}

const readString = (pattern: string, options: PatternOptions): ParsedPattern => {
  if (options.literal === true) {
    return { source: escapeText(pattern), ignoreCase: options.ignoreCase === true, dotAll: false, unicode: "" }
  }
  const inline = inlineFlags.exec(pattern)
  const flags = inline?.[1] ?? ""
  const source = inline === null ? pattern : pattern.slice(inline[0].length)
  return {
    source,
    ignoreCase: options.ignoreCase === true || flags.includes("i"),
    dotAll: flags.includes("s"),
    unicode: needsUnicode(source) ? "u" : ""
  }
}

const readRegExp = ({ flags, source }: RegExp, options: PatternOptions): ParsedPattern => ({
  source: source === "(?:)" ? "" : source,
  ignoreCase: options.ignoreCase === true || flags.includes("i"),
  dotAll: flags.includes("s"),
  unicode: flags.includes("v") ? "v" : flags.includes("u") ? "u" : needsUnicode(source) ? "u" : ""
})

const checkPattern = (pattern: string | RegExp, options: PatternOptions, limits: LimitsShape): Fault | undefined => {
  const isText = typeof pattern === "string"
  if (!isText && !isRegExp(pattern)) return invalid("it must be a string or a RegExp")
  if (!isText && options.literal === true) return invalid("a RegExp cannot be taken literally; give the text as a string")
  const source = isText ? pattern : pattern.source
  if (isText && (pattern === "" || (options.literal !== true && pattern.trim() === ""))) {
    return invalid("it is blank; to look for white space say so, as in [ ] or \\s, or set literal")
  }
  if (!source.isWellFormed()) return invalid("it holds a lone surrogate, which no text can")
  return source.length > limits.maxPatternLength && codePoints(source) > limits.maxPatternLength
    ? invalid(`it has ${codePoints(source)} characters where ${limits.maxPatternLength} are allowed`)
    : undefined
}

const itemPattern =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|[^])|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?|[*+?]\??|\{\d+(?:,\d*)?\}\??|[^]/g

/**
 * Limits adjacent optional items before required ones.
 *
 * Each two more of them double the compile time of V8. For `a?` forty times and then `a` forty times, compilation takes
 * minutes and cannot be interrupted.
 */
const maxOptional = 24

const countOptionalRow = (source: string): number => {
  let longestRow = 0
  /**
   * The state of the current alternative. `row` counts the optional items directly before this place. `isEmpty` is true
   * if this alternative may match nothing, `isAnyEmpty` if an earlier one may.
   */
  let alternative = { row: 0, isEmpty: true, isAnyEmpty: false }
  const enclosing: Array<typeof alternative> = []
  let last: { row: number; isOptional: boolean } | undefined
  const closeItem = (): void => {
    if (last === undefined) return
    alternative.row = last.isOptional ? alternative.row + last.row : 0
    if (!last.isOptional) alternative.isEmpty = false
    longestRow = Math.max(longestRow, alternative.row)
    last = undefined
  }
  for (const part of source.match(itemPattern) ?? []) {
    // An unbounded repetition compiles to a loop, which ends the row.
    if (/^(?:\?|\{0,\d)/.test(part)) {
      if (last !== undefined) last.isOptional = true
    } else if (part.startsWith("(")) {
      closeItem()
      enclosing.push(alternative)
      alternative = { row: 0, isEmpty: true, isAnyEmpty: false }
    } else if (part === ")" && enclosing.length > 0) {
      closeItem()
      last = { row: Math.max(1, alternative.row), isOptional: alternative.isEmpty || alternative.isAnyEmpty }
      alternative = enclosing.pop()!
    } else if (part === "|") {
      closeItem()
      alternative = { row: alternative.row, isEmpty: true, isAnyEmpty: alternative.isAnyEmpty || alternative.isEmpty }
    } else if (!/^(?:[*+]|\{\d)/.test(part)) {
      closeItem()
      last = { row: 1, isOptional: false }
    }
  }
  closeItem()
  return longestRow
}

export const compile = (pattern: string | RegExp, options: PatternOptions, limits: LimitsShape): Pattern | Fault => {
  const fault = checkPattern(pattern, options, limits)
  if (fault !== undefined) return fault
  const { dotAll, ignoreCase, source, unicode } =
    typeof pattern === "string" ? readString(pattern, options) : readRegExp(pattern, options)
  const multiline = options.multiline === true
  const body = options.literal === true ? source : translate(source, multiline, dotAll)
  // A line contains no line ending, so "." may match every character in it.
  const flags = `${ignoreCase ? "i" : ""}${multiline && !dotAll ? "" : "s"}${unicode}`
  const whole = options.wholeWord === true ? `(?<![A-Za-z0-9_])(?:${body})(?![A-Za-z0-9_])` : body
  if (options.literal !== true && countOptionalRow(body) > maxOptional) {
    return invalid(`more than ${maxOptional} parts in a row may be left out, which the engine could take hours to prepare`)
  }
  try {
    // Compile the body alone first, so that a stray parenthesis cannot pair with an added one.
    void new RegExp(body, flags)
    void new RegExp(whole, flags)
  } catch (error) {
    return invalid(
      error instanceof Error ? error.message.replace(/^Invalid regular expression: /, "") : "it cannot be compiled"
    )
  }
  return {
    source: whole,
    flags,
    literal: options.wholeWord === true || ignoreCase ? undefined : literalOf(source, options),
    multiline,
    steps: stepsOf(body, multiline)
  }
}

const literalOf = (source: string, options: PatternOptions): string | undefined => {
  if (options.literal === true) return source.replace(/\\([^])/g, "$1")
  return /[\\^$.*+?()[\]{}|]/.test(source) ? undefined : source
}

/**
 * Returns an upper bound for the cost of an expression on one line.
 *
 * Adjacent quantifiers can share a run of characters in `length ** count` ways. The bound is Infinity for nested
 * quantifiers, alternatives in groups and backreferences.
 */
const stepsOf = (source: string, multiline: boolean): ((length: number) => number) => {
  const unboundedSteps = () => Number.POSITIVE_INFINITY
  if (multiline) return unboundedSteps
  let power = 1
  let alternatives = 1
  let depth = 0
  for (const part of source.match(piecePattern) ?? []) {
    if (/^\\(?:[1-9]|k<)/.test(part) || part.startsWith("(?<") || part === "(?=" || part === "(?!") return unboundedSteps
    if (part.startsWith("(")) depth++
    else if (part === ")") depth--
    else if (part === "|") {
      if (depth > 0) return unboundedSteps
      alternatives++
    } else if (part === "*" || part === "+" || part === "?" || part === "{") {
      if (depth > 0) return unboundedSteps
      power++
    }
  }
  // A quantifier after a group repeats everything that the group matches.
  if (/\)[*+?{]/.test(source)) return unboundedSteps
  return (length) => alternatives * source.length * (length + 1) ** power
}
