/**
 * Compiles patterns to JavaScript regular expressions. An expression is matched against one line at a time or, with the option
 * `multiline`, against the whole text. Only LF and CRLF end a line.
 *
 * Named groups as in Python, `\A`, `\Z` and leading flags such as `(?i)` are translated.
 */
import type { Fault } from "../model/FsError.ts"
import { codePoints } from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import { isRegExp } from "../model/realms.ts"

// Needles are texts such that every match of an expression contains at least one of them. So a search can reject a file
// without needles, and need not run the expression on the file.
//
// A part whose text is unknown counts as a part that may match any text. With unsupported syntax, an expression has no
// needles.

interface Needles {
  /** The needles: 1 to 16 texts of 1 to 64 bytes in UTF-8. No text contains another. */
  readonly texts: ReadonlyArray<string>
  /** True if letters of the texts match in either case, which requires pure ASCII texts. */
  readonly fold: boolean
}

type Texts = ReadonlyArray<string>

const maxTexts = 16
const maxNeedleBytes = 64
const maxJoinedLength = 64
const maxClassMembers = 4
const maxDepth = 200
const maxSourceLength = 10_000

interface Mode {
  readonly fold: boolean
  readonly unicode: boolean
  readonly sets: boolean
}

type Node =
  | { readonly _tag: "Text"; readonly texts: Texts }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "All"; readonly parts: ReadonlyArray<Node> }
  | { readonly _tag: "Some"; readonly parts: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly part: Node; readonly min: number; readonly max: number }

const unknown: Node = { _tag: "Unknown" }
/** The node of an assertion. An assertion matches the empty text, so the parts before and after it are adjacent. */
const emptyText: Node = { _tag: "Text", texts: [""] }

const unique = (texts: Texts): Texts => [...new Set(texts)]

const bytesOf = (text: string): number => {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    // A surrogate pair has four bytes in UTF-8, so each half counts as two bytes.
    if (unit >= 0x80) bytes += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
  }
  return bytes
}

/**
 * The characters that no needle may contain.
 *
 * A line contains neither its line feed nor a carriage return before the line feed. U+FEFF may have been removed from
 * the start of a text, and U+FFFD may stand for invalid bytes. A lone surrogate is in no text.
 */
const unusable = /[\r\n\uFEFF\uFFFD]|\p{Cs}/u
/** The characters that no case-insensitive needle may contain. Letters outside ASCII have special case rules. */
const unusableFolded = /[\r\n]|[^\0-\x7F]/u
/**
 * The characters that no case-insensitive needle may contain under the flags `u` and `v`. With these flags, the Kelvin sign
 * also matches k, and the long s matches s.
 */
const unusableFoldedUnicode = /[\r\nkKsS]|[^\0-\x7F]/u

const textOf = (texts: Texts, { fold }: Mode): Node => ({
  _tag: "Text",
  texts: unique(fold ? texts.map((text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())) : texts)
})

const truncateNeedle = (text: string): string => {
  if (text.length * 3 <= maxNeedleBytes) return text
  let kept = ""
  let bytes = 0
  for (const character of text) {
    bytes += bytesOf(character)
    if (bytes > maxNeedleBytes) break
    kept += character
  }
  return kept
}

const longest = (texts: Texts): string =>
  texts.reduce((best, text) => (text.length * 3 > best.length && bytesOf(text) > bytesOf(best) ? text : best), "")

const needlesOf = (texts: Texts, mode: Mode): Texts | undefined => {
  const unusableCharacters = !mode.fold ? unusable : mode.unicode ? unusableFoldedUnicode : unusableFolded
  const pieces = unique(texts.map((text) => truncateNeedle(longest(text.split(unusableCharacters)))))
  if (pieces.includes("") || pieces.length > maxTexts ** 2) return undefined
  const needed = pieces.filter((text) => !pieces.some((other) => other !== text && text.includes(other)))
  return needed.length > maxTexts ? undefined : needed
}

/**
 * Rates needles. Longer needles are better, because they are rarer. More needles are worse, because each costs another
 * search.
 */
const rateNeedles = (texts: Texts): number => Math.min(16, ...texts.map(bytesOf)) - (texts.length - 1) / 2

const best = (all: ReadonlyArray<Texts | undefined>): Texts | undefined => {
  let chosen: Texts | undefined
  for (const texts of all) {
    if (texts !== undefined && (chosen === undefined || rateNeedles(texts) > rateNeedles(chosen))) chosen = texts
  }
  return chosen
}

interface Known {
  /** All texts that can match, if they are known. */
  readonly exact?: Texts | undefined
  readonly starts?: Texts | undefined
  readonly ends?: Texts | undefined
  /** Texts such that every match contains at least one of them. Absent if `exact` implies these texts. */
  readonly needles?: Texts | undefined
}

const needlesOfKnown = ({ exact, needles }: Known, mode: Mode): Texts | undefined =>
  needles ?? (exact === undefined ? undefined : needlesOf(exact, mode))

const concatenate = (first: Texts, second: Texts, limit: number): Texts | undefined => {
  if (first.length * second.length > limit) return undefined
  const texts = unique(first.flatMap((one) => second.map((other) => one + other)))
  return texts.every((text) => text.length <= maxJoinedLength) ? texts : undefined
}

const runsOf = (
  parts: ReadonlyArray<Known>,
  limit: number
): { readonly runs: ReadonlyArray<Texts>; readonly whole: boolean } => {
  const runs: Array<Texts> = []
  let run: Texts = [""]
  let whole = true
  const end = (next: Texts = [""]): void => {
    runs.push(run)
    run = next
    whole = false
  }
  const add = (texts: Texts): void => {
    const longer = concatenate(run, texts, limit)
    if (longer === undefined) end(texts)
    else run = longer
  }
  for (const { ends, exact, starts } of parts) {
    if (exact !== undefined) add(exact)
    else {
      if (starts !== undefined) add(starts)
      end(ends)
    }
  }
  return { runs: [...runs, run], whole }
}

const knownOfAll = (parts: ReadonlyArray<Known>, mode: Mode): Known => {
  const { runs, whole } = runsOf(parts, maxTexts)
  const isSimple = parts.every(({ exact, starts }) => (exact ?? starts ?? []).length <= 1)
  if (whole && isSimple) return { exact: runs[0] }
  // If a character class is next to a text, the text alone may be the better needle.
  const single = isSimple ? [] : runsOf(parts, 1).runs
  const all = [...runs, ...single].filter(([first]) => first !== "").map((texts) => needlesOf(texts, mode))
  return { exact: whole ? runs[0] : undefined, needles: best([...all, ...parts.map((part) => part.needles)]) }
}

const knownOfSome = (parts: ReadonlyArray<Known>, mode: Mode): Known => {
  const exact = unique(parts.flatMap((part) => part.exact ?? []))
  if (exact.length <= maxTexts && parts.every((part) => part.exact !== undefined)) return { exact }
  const needles: Array<string> = []
  for (const part of parts) {
    const texts = needlesOfKnown(part, mode)
    if (texts === undefined) return {}
    needles.push(...texts)
  }
  return { needles: needlesOf(needles, mode) }
}

const knownOfRepeat = (part: Known, min: number, max: number, mode: Mode): Known => {
  if (max === 0) return { exact: [""] }
  if (min === 0) return {}
  const { exact } = part
  if (exact === undefined) return max === 1 ? part : { needles: part.needles }
  let texts = exact
  let times = 1
  for (; times < Math.min(min, maxJoinedLength); times++) {
    const more = concatenate(texts, exact, maxTexts)
    if (more === undefined) break
    texts = more
  }
  return times === min && times === max ? { exact: texts } : { starts: texts, ends: texts, needles: needlesOf(texts, mode) }
}

const knownOf = (node: Node, mode: Mode): Known => {
  switch (node._tag) {
    case "Text":
      return { exact: node.texts }
    case "Unknown":
      return {}
    case "All":
      return knownOfAll(
        node.parts.map((part) => knownOf(part, mode)),
        mode
      )
    case "Some":
      return knownOfSome(
        node.parts.map((part) => knownOf(part, mode)),
        mode
      )
    case "Repeat":
      return knownOfRepeat(knownOf(node.part, mode), node.min, node.max, mode)
  }
}

const fromHex = (digits: string): string => String.fromCodePoint(Number.parseInt(digits, 16))

const controls: Record<string, string> = { t: "\t", n: "\n", v: "\v", f: "\f", r: "\r" }

interface Escape {
  readonly token: RegExp
  /** Returns the character that the escape matches. Absent if the escape does not match exactly one character. */
  readonly character?: (match: RegExpExecArray) => string
}

/** The escapes in order of precedence: the first escape that matches applies. */
const escapes: ReadonlyArray<Escape> = [
  { token: /\\[dDwWsS]/y },
  { token: /\\([tnvfr])/y, character: (match) => controls[match[1]!]! },
  { token: /\\0(?!\d)/y, character: () => "\0" },
  // Backreferences, or octal numbers if there are fewer groups. The token contains all digits, so that it covers both
  // meanings.
  { token: /\\\d+/y },
  { token: /\\c([A-Za-z])/y, character: (match) => String.fromCharCode(match[1]!.charCodeAt(0) & 31) },
  { token: /\\c/y },
  { token: /\\k<[\w$]+>/y },
  { token: /\\x([0-9A-Fa-f]{2})/y, character: (match) => fromHex(match[1]!) }
]
const unicodeEscapes: ReadonlyArray<Escape> = [
  { token: /\\[pP]\{[^}]*\}/y },
  { token: /\\u\{([0-9A-Fa-f]+)\}/y, character: (match) => fromHex(match[1]!) },
  {
    token: /\\u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})/y,
    character: (match) => fromHex(match[1]!) + fromHex(match[2]!)
  }
]
const lastEscapes = (unicode: boolean): ReadonlyArray<Escape> => [
  { token: /\\u([0-9A-Fa-f]{4})/y, character: (match) => fromHex(match[1]!) },
  { token: unicode ? /\\([^])/uy : /\\([^])/y, character: (match) => match[1]! }
]
const escapesOf = (unicode: boolean): ReadonlyArray<Escape> => [
  ...escapes,
  ...(unicode ? unicodeEscapes : []),
  ...lastEscapes(unicode)
]
const escapesByUnit = escapesOf(false)
const escapesByPoint = escapesOf(true)

const parse = (source: string, mode: Mode): Node | undefined => {
  if (source.length > maxSourceLength) return undefined
  let at = 0
  let hasGivenUp = false
  const take = (token: RegExp): RegExpExecArray | undefined => {
    token.lastIndex = at
    const match = token.exec(source)
    if (match === null) return undefined
    at += match[0].length
    return match
  }
  const giveUp = (): Node => {
    hasGivenUp = true
    at = source.length
    return unknown
  }
  /**
   * Takes one character. Without the flags `u` and `v`, takes one code unit, because a quantifier then applies to half a
   * surrogate pair.
   */
  const character = (): string => take(mode.unicode ? /[^]/uy : /[^]/y)![0]
  const text = (texts: Texts): Node => textOf(texts, mode)

  const escape = (): string | undefined => {
    if (source.startsWith("\\k<", at) && !/^\\k<[\w$]+>/.test(source.slice(at, at + 1000))) {
      giveUp()
      return undefined
    }
    for (const { character, token } of mode.unicode ? escapesByPoint : escapesByUnit) {
      const match = take(token)
      if (match !== undefined) return character?.(match)
    }
    giveUp()
    return undefined
  }

  /** Parses a character class under the flag `v`. Knows the members only of a class of one to four plain characters. */
  const setOfClasses = (): Node => {
    const plain = take(/\[([\w .,:;=]{1,4})\]/y)
    if (plain !== undefined) return text([...plain[1]!])
    for (let depth = 0; at < source.length;) {
      const [token] = take(/\\[^]|[^]/y)!
      if (token === "[") depth++
      else if (token === "]" && --depth === 0) break
    }
    return unknown
  }

  const classOf = (): Node => {
    if (mode.sets) return setOfClasses()
    let isCertain = take(/\[\^/y) === undefined && take(/\[/y) !== undefined
    const members: Array<string> = []
    while (at < source.length && take(/\]/y) === undefined) {
      const isRange = members.length > 0 && /^-(?!\])/.test(source.slice(at, at + 2))
      const backspace = take(/\\b/y) === undefined ? undefined : "\b"
      const member = backspace ?? (source[at] === "\\" ? escape() : character())
      if (isRange || member === undefined) isCertain = false
      members.push(member ?? "")
    }
    return isCertain && members.length > 0 && members.length <= maxClassMembers ? text(members) : unknown
  }

  const group = (depth: number): Node => {
    const isAssertion = take(/\(\?<?[=!]/y) !== undefined
    // Other groups that begin with "(?" change the meaning of their content.
    if (!isAssertion && take(/\((?:\?:|\?<[^>]*>|(?!\?))/y) === undefined) return giveUp()
    const inner = disjunction(depth + 1)
    take(/\)/y)
    return isAssertion ? emptyText : inner
  }

  const atom = (depth: number): Node => {
    if (take(/[\^$]|\\[bB]/y) !== undefined) return emptyText
    if (take(/\./y) !== undefined) return unknown
    const next = source[at]
    if (next === "(") return group(depth)
    if (next === "[") return classOf()
    const one = next === "\\" ? escape() : character()
    return one === undefined ? unknown : text([one])
  }

  const quantified = (part: Node): Node => {
    const sign = take(/([*+?])\??/y)?.[1]
    if (sign !== undefined) return { _tag: "Repeat", part, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity }
    const counts = take(/\{(\d+)(,?)(\d*)\}\??/y)
    if (counts === undefined) return part
    const min = Number(counts[1])
    const max = counts[2] === "" ? min : counts[3] === "" ? Infinity : Number(counts[3])
    return { _tag: "Repeat", part, min, max }
  }

  const sequence = (depth: number): Node => {
    const parts: Array<Node> = []
    while (at < source.length && source[at] !== "|" && source[at] !== ")") {
      const part = quantified(atom(depth))
      if (part._tag === "All") parts.push(...part.parts)
      else parts.push(part)
    }
    return { _tag: "All", parts }
  }

  const disjunction = (depth: number): Node => {
    if (depth > maxDepth) return giveUp()
    const parts = [sequence(depth)]
    while (take(/\|/y) !== undefined) parts.push(sequence(depth))
    return parts.length === 1 ? parts[0]! : { _tag: "Some", parts }
  }

  const node = disjunction(0)
  return hasGivenUp ? undefined : node
}

/**
 * Returns needles: texts such that every match of the expression contains at least one of them.
 *
 * Returns `undefined` if there are no needles, or only single letters, digits or spaces, which occur in nearly every
 * line. `literal` is the plain text if the expression is the escape of a plain text.
 */
export const findNeedles = (source: string, flags: string, literal: string | undefined): Needles | undefined => {
  const sets = flags.includes("v")
  const mode: Mode = { fold: flags.includes("i"), unicode: sets || flags.includes("u"), sets }
  const node: Node | undefined = literal === undefined ? parse(source, mode) : textOf([literal], mode)
  const texts = node === undefined ? undefined : needlesOfKnown(knownOf(node, mode), mode)
  if (texts === undefined || texts.every((text) => /^[A-Za-z0-9 ]$/.test(text))) return undefined
  return { texts, fold: mode.fold }
}

export interface Pattern {
  readonly source: string
  readonly flags: string
  readonly literal: string | undefined
  readonly multiline: boolean
  /**
   * Returns an upper bound for the number of steps on a line of `length` characters, or Infinity if there is no known
   * bound.
   */
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
    return invalid("it is blank; to search for white space, write [ ] or \\s, or set literal")
  }
  if (!source.isWellFormed()) return invalid("it contains a lone surrogate, which no text can contain")
  return source.length > limits.maxPatternLength && codePoints(source) > limits.maxPatternLength
    ? invalid(`it has ${codePoints(source)} characters, but at most ${limits.maxPatternLength} are allowed`)
    : undefined
}

const itemPattern =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|[^])|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?|[*+?]\??|\{\d+(?:,\d*)?\}\??|[^]/g

/**
 * The maximum number of adjacent optional items. Every two more optional items double the compile time of V8. For `a?`
 * forty times and then `a` forty times, compilation takes minutes and cannot be interrupted.
 */
const maxOptional = 24

const countOptionalRow = (source: string): number => {
  let longestRow = 0
  /**
   * The state of the current alternative. `row` is the number of optional items directly before the current position.
   * `isEmpty` is true if this alternative may match the empty text, and `isAnyEmpty` if an earlier alternative may.
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
  // A searched line does not contain its line ending, so "." may match every character of the line.
  const flags = `${ignoreCase ? "i" : ""}${multiline && !dotAll ? "" : "s"}${unicode}`
  const whole = options.wholeWord === true ? `(?<![A-Za-z0-9_])(?:${body})(?![A-Za-z0-9_])` : body
  if (options.literal !== true && countOptionalRow(body) > maxOptional) {
    return invalid(`more than ${maxOptional} optional parts follow each other, which could take hours to compile`)
  }
  try {
    // Compile the body alone first, so that an unbalanced parenthesis cannot pair with a parenthesis that `wholeWord`
    // adds.
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
 * Returns a function that gives an upper bound for the cost of an expression on one line.
 *
 * Adjacent quantifiers can divide a run of characters among themselves in `length ** count` ways. The bound is Infinity
 * with `multiline`, and for backreferences, lookarounds, named groups, repeated groups, and quantifiers or alternatives in
 * groups.
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
