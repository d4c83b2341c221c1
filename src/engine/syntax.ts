/**
 * Parses a glob as picomatch does, and expresses it as rows of segments where possible.
 *
 * Rows cover stars, question marks, globstars, classes and braces in their usual places. Everything else (extglobs,
 * quotes, a globstar within braces, picomatch's special cases) is `wide`: its meaning is the expression that picomatch
 * generates.
 *
 * Where picomatch would silently treat an unclosed sign as text, the user has made a typing error. So an open `[`, `{`,
 * `(` or quotation mark and a final backslash are refused, and the message shows how to write them as text. A closing
 * sign without an opening one is text. A reversed range is refused.
 *
 * The input never contains the forms that `braces.ts` rewrites: ranges, named classes and braces with a globstar.
 */
import { MalformedGlob, maxDepth, maxExpansions, nestedTooDeepDetail, tooManyPatternsDetail } from "./braces.ts"
import { ANY, type CharClass, charClass, type Element, STAR } from "./segment.ts"

const DOT = 46
const SLASH = -3
const GLOBSTAR = -4
/** A star that is not at the start of its segment, where picomatch does not require a character. */
const LOOSE_STAR = -5

type Token = Element | Choice

interface Choice {
  readonly options: ReadonlyArray<ReadonlyArray<Token>>
  /** True for a bracket set that may also match its own text, false for braces. */
  readonly set: boolean
}

export type Segments = ReadonlyArray<ReadonlyArray<Element> | undefined>

export interface Glob {
  readonly rows: ReadonlyArray<Segments> | undefined
  /** The leading literal segments. A wide pattern can match only below them. */
  readonly prefix: ReadonlyArray<string>
  /** True if a path that equals the pattern literally must also match, as in picomatch. */
  readonly matchesItself: boolean
}

const isChoice = (token: Token | undefined): token is Choice => typeof token === "object" && "options" in token

const countAlternatives = (tokens: ReadonlyArray<Token>, sets: boolean): number => {
  let product = 1
  for (const token of tokens) {
    if (isChoice(token) && (sets || !token.set)) {
      product *= token.options.reduce((sum, option) => sum + countAlternatives(option, sets), 0)
    }
  }
  return product
}

const withoutSets = (tokens: ReadonlyArray<Token>): ReadonlyArray<Token> =>
  tokens.map((token) =>
    !isChoice(token) ? token : token.set ? token.options[0]![0]! : { ...token, options: token.options.map(withoutSets) }
  )

const expand = (tokens: ReadonlyArray<Token>): ReadonlyArray<ReadonlyArray<Element>> => {
  let out: Array<Array<Element>> = [[]]
  for (const token of tokens) {
    if (isChoice(token)) {
      const options = token.options.flatMap(expand)
      out = out.flatMap((head) => options.map((option) => head.concat(option)))
    } else {
      for (const head of out) head.push(token)
    }
  }
  return out
}

const split = (elements: ReadonlyArray<Element>): Array<Array<Element>> => {
  const out: Array<Array<Element>> = [[]]
  for (const element of elements) {
    if (element === SLASH) out.push([])
    else out.at(-1)!.push(element)
  }
  return out
}

const isParent = (segment: ReadonlyArray<Element>): boolean => segment.length === 2 && segment[0] === DOT && segment[1] === DOT

/** Tests for a segment of loose stars or without elements, where picomatch lets a preceding globstar absorb the "/". */
const mayBeEmpty = (segment: ReadonlyArray<Element>): boolean => segment.every((element) => element === LOOSE_STAR)

const strictElement = (element: Element): Element => (element === LOOSE_STAR ? STAR : element)

export const unitsOf = (text: string): Array<number> =>
  Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))

const endsWithGlobstar = (tokens: ReadonlyArray<Token>): boolean => {
  const last = tokens.at(-1)
  return last === GLOBSTAR || (isChoice(last) && last.options.some(endsWithGlobstar))
}

interface ParsedGlob {
  readonly tokens: ReadonlyArray<Token>
  readonly isWide: boolean
  /** True for a "|" outside parentheses, which picomatch treats as an alternative of the whole pattern. */
  readonly hasTopLevelBar: boolean
}

const parseTokens = (text: string, ignoreCase: boolean): ParsedGlob => {
  // picomatch has a shortcut for patterns like these, in which doubled signs have another meaning.
  const usesShortcut = !/^[*!]|[/()[\]{}"]/.test(text)
  let at = 0
  let isWide = false
  let hasTopLevelBar = false
  let braces = 0
  let parentheses = 0

  const escape = (out: Array<Token>): void => {
    const next = text[at + 1]
    if (next === undefined) throw new MalformedGlob('it ends with a backslash; write "\\\\" for the sign itself')
    // picomatch never terminates for these.
    if (text.startsWith("\\\\\\\\", at)) throw new MalformedGlob("it has more than three backslashes in a row")
    at += 2
    if (next === "\\" || next === "/") isWide = true
    checkDoubled(next)
    out.push(next === "/" ? SLASH : next.charCodeAt(0))
  }
  const checkDoubled = (sign: string): void => {
    if (usesShortcut && /[+$^]/.test(sign) && text[at] === sign) isWide = true
  }
  const readStars = (out: Array<Token>): void => {
    const from = at
    while (text[at] === "*") at++
    const next = text[at]
    const starts = out.at(-1) === SLASH || (out.length === 0 && braces === 0)
    const ends = braces === 0 ? next === undefined || next === "/" : next === "," || next === "}"
    const globstar = at - from === 2 && starts && ends
    if (at - from > 2 || (at - from === 2 && !globstar && (braces > 0 || (starts && next === "{")))) isWide = true
    if (braces > 0 && out.at(-1) === DOT) isWide = true
    out.push(globstar ? GLOBSTAR : starts ? STAR : LOOSE_STAR)
  }
  const readBrackets = (out: Array<Token>): void => {
    const opening = at++
    const negated = text[at] === "!" || text[at] === "^"
    if (negated) at++
    const first = at
    if (text[at] === "]") at++
    let isPlain = true
    while (at < text.length && text[at] !== "]") {
      const named = text.startsWith("[:", at) ? text.indexOf(":]", at + 2) : -1
      if (named !== -1 || text[at] === "\\" || text[at] === "/") isPlain = false
      at = named !== -1 ? named + 2 : at + (text[at] === "\\" ? 2 : 1)
    }
    if (at >= text.length) throw new MalformedGlob('"[" is not closed; write "\\[" for the sign itself')
    const content = text.slice(first, at++)
    if (!isPlain) {
      isWide = true
      return
    }
    const body = content.replace(/\[/g, "\\[").replace(/^\]/, "\\]").replace(/-$/, "\\-")
    let set: CharClass
    try {
      set = charClass(negated ? `[^${body}/]` : `[${body}]`, ignoreCase)
    } catch {
      throw new MalformedGlob(`the range in "${text.slice(opening, at)}" runs backwards`)
    }
    if (set.has(47)) isWide = true
    // Unless a sign makes the brackets a set for certain, picomatch also matches them as text.
    const isCertainSet = negated || /[-*+?.^${}(|)[\]]/.test(content)
    out.push(isCertainSet ? set : { options: [[set], unitsOf(text.slice(opening, at))], set: true })
  }
  const readBraces = (out: Array<Token>): void => {
    if (++braces > maxDepth) throw new MalformedGlob(nestedTooDeepDetail)
    const options: Array<ReadonlyArray<Token>> = []
    do {
      at++
      options.push(sequence())
    } while (text[at] === ",")
    if (text[at++] !== "}") throw new MalformedGlob('"{" is not closed; write "\\{" for the sign itself')
    braces--
    const ends = at === text.length || (braces > 0 && (text[at] === "," || text[at] === "}"))
    if (options.some(endsWithGlobstar) && (options.length === 1 || !ends)) isWide = true
    if (options.length > 1) out.push({ options, set: false })
    else out.push(123, ...options[0]!, 125)
  }
  const readOther = (sign: string, out: Array<Token>): void => {
    at++
    switch (sign) {
      case "/":
        out.push(SLASH)
        return
      case "?":
        out.push(ANY)
        return
      case '"':
        isWide = true
        return
      case "(":
        if (++parentheses > maxDepth) throw new MalformedGlob(nestedTooDeepDetail)
        isWide = true
        break
      case ")":
        if (parentheses > 0) parentheses--
        isWide = true
        break
      case "|":
        if (parentheses === 0) hasTopLevelBar = true
        isWide = true
        break
      default:
        checkDoubled(sign)
    }
    out.push(sign.charCodeAt(0))
  }
  const sequence = (): ReadonlyArray<Token> => {
    const out: Array<Token> = []
    while (at < text.length) {
      const sign = text[at]!
      if (braces > 0 && (sign === "," || sign === "}")) break
      if (sign === "\\") escape(out)
      else if (sign === "*") readStars(out)
      else if (sign === "[") readBrackets(out)
      else if (sign === "{") readBraces(out)
      else readOther(sign, out)
    }
    return out
  }

  const tokens = sequence()
  if (parentheses > 0) throw new MalformedGlob('"(" is not closed; write "\\(" for the sign itself')
  return { tokens, isWide, hasTopLevelBar }
}

const plainPrefix = (text: string): ReadonlyArray<string> => {
  const segments = text.split("/").slice(0, -1)
  const end = segments.findIndex((segment) => !/^[^\\*?[\]{}()|"!+@$^]+$/.test(segment))
  return end === -1 ? segments : segments.slice(0, end)
}

const parentSegmentDetail = 'it has a ".." segment'

/**
 * Parses a pattern without leading "/" or "./" and without trailing "/". An `anchored` one is matched with the whole
 * path.
 *
 * Returns the reason for an invalid pattern.
 */
export const parse = (text: string, anchored: boolean, ignoreCase: boolean): Glob | string => {
  let found: ParsedGlob
  try {
    // Only here does picomatch require a character after the dot.
    found = parseTokens(text.replace(/^(\*\*\/)?\*\.\*$/, "$1*.?*"), ignoreCase)
  } catch (error) {
    if (error instanceof MalformedGlob) return error.message
    throw error
  }
  if (countAlternatives(found.tokens, false) > maxExpansions) return tooManyPatternsDetail
  const hasTooManyRows = countAlternatives(found.tokens, true) > maxExpansions
  // Only in patterns like `**.js` does picomatch let `**` match "/".
  let isWide = found.isWide || hasTooManyRows || (anchored && /^\*\*(?:\.\w+)+$/.test(text))
  if (isWide && /(?:^|[/({|,])\.\.(?:$|[/)}|,])/.test(text.replace(/["\\]/g, ""))) return parentSegmentDetail
  const rows: Array<Segments> = []
  for (const elements of expand(hasTooManyRows ? withoutSets(found.tokens) : found.tokens)) {
    const segments = split(elements)
    if (segments.some(isParent)) return parentSegmentDetail
    if (segments.some(mayBeEmpty) && elements.includes(GLOBSTAR)) isWide = true
    if (segments.some((segment) => segment.length === 0)) continue
    rows.push(segments.map((segment) => (segment[0] === GLOBSTAR ? undefined : segment.map(strictElement))))
  }
  return {
    rows: isWide ? undefined : rows,
    prefix: found.hasTopLevelBar ? [] : plainPrefix(text),
    matchesItself: isWide || /[[{\\]/.test(text)
  }
}
