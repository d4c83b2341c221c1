/**
 * Parses a glob as picomatch does, and expresses it as rows of segments where possible.
 *
 * Rows express stars, question marks, globstars, classes and braces in their usual positions. All other patterns
 * (extglobs, quotes, a globstar within braces, picomatch's special cases) are `wide`: their meaning is the expression
 * that picomatch generates.
 *
 * picomatch silently treats an unclosed bracket as text, but this is usually a typing error. So an unclosed `[`, `{`,
 * `(` or quotation mark and a final backslash are refused. The message shows how to write the character as text.
 *
 * A closing bracket without an opening bracket is text. A reversed range is refused.
 *
 * The parser expects the output of `expandGlob`, so its input contains no ranges, named classes or braces with a
 * globstar.
 */
import { ANY, type CharClass, charClass, type Element, STAR } from "./segment.ts"

// `expandGlob` rewrites a glob for picomatch.
//
// Braces that contain `**` expand to one pattern per alternative. So `**` matches zero or more segments in braces too,
// where picomatch requires at least one segment.
//
// Ranges such as `{1..12}` become alternatives, and classes such as `[[:space:]]` become character ranges. A backslash
// before a letter or digit is removed, because picomatch would pass the escape to the regular expression.

const maxExpansions = 1024

/**
 * The maximum depth of nested groups. Patterns of the standard length are less deep, and this depth is far from a stack
 * overflow.
 */
const maxDepth = 500

const nestedTooDeepDetail = `it is nested more than ${maxDepth} deep`

const tooManyPatternsDetail = `its braces expand to more than ${maxExpansions} patterns`

export class MalformedGlob extends Error {}

interface ExpandedGlob {
  readonly patterns: ReadonlyArray<string>
  /** The reason why the glob may not mean what it looks like. A search accepts such a glob; a policy refuses it. */
  readonly doubt: string | undefined
}

type Piece = string | Group

interface Group {
  readonly opening: string
  readonly options: ReadonlyArray<ReadonlyArray<Piece>>
  /** True if the group matches one of its alternatives: braces with a comma, `@(…)`, `?(…)` and `(…)`. */
  readonly isAlternative: boolean
  readonly holdsGlobstar: boolean
}

interface Level {
  readonly closing: "}" | ")"
  holdsGlobstar: boolean
}

/**
 * The ASCII ranges of the named classes, without "/", which no class matches in a path. Each range is valid anywhere
 * within brackets.
 */
const rangesByClass: ReadonlyMap<string, string> = new Map([
  ["alnum", "a-zA-Z0-9"],
  ["alpha", "a-zA-Z"],
  ["ascii", "\x01-.0-\x7f"],
  ["blank", " - \t"],
  ["cntrl", "\x01-\x1f\x7f"],
  ["digit", "0-9"],
  ["graph", "0-~!-."],
  ["lower", "a-z"],
  ["print", " -.0-~"],
  ["punct", "{-~:-@[-`!-."],
  ["space", "\t-\r "],
  ["upper", "A-Z"],
  ["word", "a-zA-Z0-9_"],
  ["xdigit", "0-9A-Fa-f"]
])

const range = /\{(?:(-?\d{1,15})\.\.(-?\d{1,15})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,15}))?\}/y

/** Expands a numeric range as bash does: ignores the sign of the step, and pads with zeros if one end is padded. */
const expandNumbers = (from: string, to: string, step: number): ReadonlyArray<string> => {
  const width = [from, to].some((end) => /^-?0\d/.test(end)) ? Math.max(from.length, to.length) : 0
  const [first, last] = [Number(from), Number(to)]
  const count = Math.floor(Math.abs(last - first) / step) + 1
  if (count > maxExpansions)
    throw new MalformedGlob(`the range {${from}..${to}} expands to more than ${maxExpansions} patterns`)
  return Array.from({ length: count }, (_, index) => {
    const value = first + (last < first ? -index : index) * step
    const sign = value < 0 ? "-" : ""
    return sign + String(Math.abs(value)).padStart(width - sign.length, "0")
  })
}

/** Turns a range between single characters into a bracket set, which needs no expansion, and another range into braces. */
const globOfRange = ([, from, to, first, last, by]: RegExpExecArray): string => {
  const step = Math.abs(Number(by ?? 1)) || 1
  const [low, high] = [first ?? from!, last ?? to!].sort() as [string, string]
  if (step === 1 && low.length === 1 && high.length === 1) return `[${low}-${high}]`
  const names =
    first === undefined
      ? expandNumbers(from!, to!, step)
      : expandNumbers(String(first.charCodeAt(0)), String(last!.charCodeAt(0)), step).map((code) => {
          const letter = String.fromCharCode(Number(code))
          return /\w/.test(letter) ? letter : `\\${letter}`
        })
  return names.length === 1 ? names[0]! : `{${names.join(",")}}`
}

class GlobReader {
  readonly #text: string
  #at = 0
  #depth = 0
  #doubt: string | undefined

  constructor(text: string) {
    this.#text = text
  }

  get doubt(): string | undefined {
    return this.#doubt
  }

  noteDoubt(reason: string): void {
    this.#doubt ??= reason
  }

  sequence(level: Level | undefined): ReadonlyArray<Piece> {
    const out: Array<Piece> = []
    const push = (text: string): void => {
      const last = out.length - 1
      if (typeof out[last] === "string") out[last] += text
      else out.push(text)
    }
    let dots = 0
    let extglob = ""
    while (this.#at < this.#text.length) {
      const sign = this.#text[this.#at]!
      if (level !== undefined && (sign === level.closing || sign === (level.closing === "}" ? "," : "|"))) break
      if (sign === "{" || sign === "(") {
        const group = sign === "{" ? this.#braces() : this.#parentheses(extglob)
        if (typeof group === "string") push(group)
        else {
          if (sign === "(" && extglob !== "") out[out.length - 1] = (out.at(-1) as string).slice(0, -1)
          out.push(group)
          if (level !== undefined && group.holdsGlobstar) level.holdsGlobstar = true
        }
        dots = 0
        extglob = ""
        continue
      }
      const part = this.#part(sign, level)
      if (part.startsWith("**") && level !== undefined) level.holdsGlobstar = true
      dots = part === "." || part === "\\." ? dots + 1 : 0
      if (dots === 2 && level?.closing === "}") {
        throw new MalformedGlob(
          '".." in braces must be a range between two whole numbers or two letters; write out any other list'
        )
      }
      extglob = /^(?:[@?!+]|\*+)$/.test(part) ? part.at(-1)! : ""
      push(part)
    }
    return out
  }

  #part(sign: string, level: Level | undefined): string {
    const text = this.#text
    const from = this.#at
    if (sign === "\\") return this.#escape()
    if (sign === "[") return this.#brackets()
    if (sign === '"') return this.#quotation()
    if (sign === "*") {
      while (text[this.#at] === "*") this.#at++
      return text.slice(from, this.#at)
    }
    this.#at++
    if (sign === "]" || sign === "}" || sign === ")") {
      this.noteDoubt(`"${sign}" closes nothing; write "\\${sign}" for the character itself`)
    } else if (sign === "|" && level?.closing !== ")") {
      this.noteDoubt('"|" stands outside parentheses; give each pattern by itself, or write "\\|" for the character itself')
    } else if (sign === "," && level?.closing !== "}") {
      this.noteDoubt('"," stands outside braces; give each pattern by itself, or write "\\," for the character itself')
    }
    return sign
  }

  #escape(): string {
    const next = this.#text[this.#at + 1] ?? ""
    this.#at += 2
    if (!/[A-Za-z0-9]/.test(next)) return `\\${next}`
    this.noteDoubt(`"\\${next}" means the character "${next}"; directories are separated by "/"`)
    return next
  }

  #quotation(): string {
    let out = '"'
    for (this.#at++; this.#at < this.#text.length;) {
      const sign = this.#text[this.#at]!
      if (sign !== "\\") this.#at++
      out += sign === "\\" ? this.#escape() : sign
      if (sign === '"') return out
    }
    throw new MalformedGlob('a quotation mark is not closed; write "\\"" for the character itself')
  }

  #brackets(): string {
    const text = this.#text
    let at = this.#at + 1
    if (text[at] === "!" || text[at] === "^") at++
    if (text[at] === "]") at++
    let out = text.slice(this.#at, at)
    while (at < text.length && text[at] !== "]") {
      const end = /\[[:.=]/.test(text.slice(at, at + 2)) ? text.indexOf(`${text[at + 1]}]`, at + 2) : -1
      const body = end !== -1 && text[at + 1] === ":" ? rangesByClass.get(text.slice(at + 2, end)) : undefined
      if (end !== -1 && body === undefined) this.noteDoubt(`there is no class ${JSON.stringify(text.slice(at, end + 2))}`)
      if (body !== undefined) {
        // A class cannot be the end of a range, so escape the dash before it.
        out = out.replace(/([^[!^\\])-$/, "$1\\-") + body
        at = end + 2
        if (text[at] === "-" && text[at + 1] !== "]") out += `\\${text[at++]}`
      } else if (end !== -1 && text[at + 1] === ":") {
        out += text.slice(at, end + 2)
        at = end + 2
      } else {
        const part = text.slice(at, at + (text[at] === "\\" ? 2 : 1))
        out += /^\\[A-Za-z0-9]$/.test(part) ? part[1] : part
        at += part.length
      }
    }
    this.#at = Math.min(at + 1, text.length)
    return at < text.length ? `${out}]` : out
  }

  #braces(): Group | string {
    range.lastIndex = this.#at
    const found = range.exec(this.#text)
    if (found === null) return this.#group("{", "}", '"{" is not closed; write "\\{" for the character itself')
    this.#at += found[0].length
    const text = globOfRange(found)
    return text.startsWith("{")
      ? {
          opening: "{",
          options: text
            .slice(1, -1)
            .split(",")
            .map((name) => [name]),
          isAlternative: true,
          holdsGlobstar: false
        }
      : text
  }

  #parentheses(sign: string): Group {
    return this.#group(`${sign}(`, ")", '"(" is not closed; write "\\(" for the character itself')
  }

  #group(opening: string, closing: "}" | ")", unclosed: string): Group {
    if (++this.#depth > maxDepth) throw new MalformedGlob(nestedTooDeepDetail)
    this.#at++
    if (opening === "(" && /^\?[=!<:]/.test(this.#text.slice(this.#at, this.#at + 2))) {
      throw new MalformedGlob("it contains a group that globs do not have")
    }
    const level: Level = { closing, holdsGlobstar: false }
    const options: Array<ReadonlyArray<Piece>> = [this.sequence(level)]
    while (this.#at < this.#text.length && this.#text[this.#at] !== closing) {
      this.#at++
      options.push(this.sequence(level))
    }
    if (this.#at >= this.#text.length) throw new MalformedGlob(unclosed)
    this.#at++
    this.#depth--
    const isAlternative = closing === "}" ? options.length > 1 : /^[@?]?\($/.test(opening)
    if (closing === "}" && !isAlternative)
      this.noteDoubt('braces without a comma are text; write "\\{" for the character itself')
    if (!isAlternative && level.holdsGlobstar)
      this.noteDoubt('"**" stands in an extglob, where it requires at least one directory')
    return {
      opening,
      options: opening === "?(" ? [[], ...options] : options,
      isAlternative,
      holdsGlobstar: level.holdsGlobstar
    }
  }
}

const isGroup = (piece: Piece): piece is Group => typeof piece !== "string"

const textOf = (pieces: ReadonlyArray<Piece>): string =>
  pieces
    .map((piece) => {
      if (!isGroup(piece)) return piece
      const isBrace = piece.opening === "{"
      const options = piece.opening === "?(" ? piece.options.slice(1) : piece.options
      return piece.opening + options.map(textOf).join(isBrace ? "," : "|") + (isBrace ? "}" : ")")
    })
    .join("")

const width = (pieces: ReadonlyArray<Piece>): number =>
  pieces.reduce((product, piece) => {
    if (!isGroup(piece)) return product
    const isSum = piece.isAlternative && (piece.opening === "{" || piece.holdsGlobstar)
    return product * piece.options.reduce((all, option) => (isSum ? all + width(option) : all * width(option)), isSum ? 0 : 1)
  }, 1)

const expandPieces = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> => {
  let out: ReadonlyArray<string> = [""]
  for (const piece of pieces) {
    const options =
      isGroup(piece) && piece.isAlternative && piece.holdsGlobstar ? piece.options.flatMap(expandPieces) : [textOf([piece])]
    out = out.flatMap((head) => options.map((option) => head + option))
  }
  return out
}

const slashUse = (pieces: ReadonlyArray<Piece>): "all" | "some" | "none" => {
  const each = new Set(
    pieces.map((piece) => {
      if (!isGroup(piece)) return piece.includes("/") ? "all" : "none"
      const options = new Set(piece.options.map(slashUse))
      return options.size === 1 ? [...options][0] : "some"
    })
  )
  return each.has("all") ? "all" : each.has("some") ? "some" : "none"
}

/**
 * Returns the patterns whose union equals the glob. Throws MalformedGlob for an invalid glob.
 *
 * If braces contain `**`, each alternative becomes a separate pattern with its own slashes. Other braces are kept, and
 * a slash in one alternative anchors all alternatives.
 */
export const expandGlob = (text: string): ExpandedGlob => {
  const reading = new GlobReader(text)
  const pieces = reading.sequence(undefined)
  if (width(pieces) > maxExpansions) throw new MalformedGlob(tooManyPatternsDetail)
  const patterns = expandPieces(pieces)
  if (patterns.length === 1 && slashUse(pieces) === "some") {
    reading.noteDoubt("a slash in one alternative anchors them all; give each pattern by itself")
  }
  return { patterns, doubt: reading.doubt }
}

const DOT = 46
const SLASH = -3
const GLOBSTAR = -4
/** A star that is not at the start of its segment. picomatch lets such a star match the empty text. */
const LOOSE_STAR = -5

type Token = Element | Choice

interface Choice {
  readonly options: ReadonlyArray<ReadonlyArray<Token>>
  /** True for a bracket set that may also match its own text literally. False for braces. */
  readonly set: boolean
}

type Segments = ReadonlyArray<ReadonlyArray<Element> | undefined>

interface Glob {
  readonly rows: ReadonlyArray<Segments> | undefined
  /** The leading literal segments. A wide pattern can match only below these segments. */
  readonly prefix: ReadonlyArray<string>
  /** True if, as in picomatch, a path that is literally equal to the pattern must also match. */
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

/**
 * Tests whether a segment has no elements except loose stars. Before this kind of segment, picomatch lets a globstar
 * match the "/" too.
 */
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
  // picomatch has a shortcut for simple patterns, in which doubled characters have another meaning.
  const usesShortcut = !/^[*!]|[/()[\]{}"]/.test(text)
  let at = 0
  let isWide = false
  let hasTopLevelBar = false
  let braces = 0
  let parentheses = 0

  const escape = (out: Array<Token>): void => {
    const next = text[at + 1]
    if (next === undefined) throw new MalformedGlob('it ends with a backslash; write "\\\\" for the character itself')
    // picomatch does not terminate for a pattern with four consecutive backslashes.
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
    if (at >= text.length) throw new MalformedGlob('"[" is not closed; write "\\[" for the character itself')
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
    // If no special character shows that the brackets are a set, picomatch also matches them as text.
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
    if (text[at++] !== "}") throw new MalformedGlob('"{" is not closed; write "\\{" for the character itself')
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
  if (parentheses > 0) throw new MalformedGlob('"(" is not closed; write "\\(" for the character itself')
  return { tokens, isWide, hasTopLevelBar }
}

const plainPrefix = (text: string): ReadonlyArray<string> => {
  const segments = text.split("/").slice(0, -1)
  const end = segments.findIndex((segment) => !/^[^\\*?[\]{}()|"!+@$^]+$/.test(segment))
  return end === -1 ? segments : segments.slice(0, end)
}

const parentSegmentDetail = 'it has a ".." segment'

/**
 * Parses a pattern without leading "/" or "./" and without trailing "/". An `anchored` pattern is matched against the
 * whole path.
 *
 * If the pattern is invalid, returns the reason.
 */
export const parse = (text: string, anchored: boolean, ignoreCase: boolean): Glob | string => {
  let found: ParsedGlob
  try {
    // picomatch requires a character after the dot only in the patterns `*.*` and `**/*.*`.
    found = parseTokens(text.replace(/^(\*\*\/)?\*\.\*$/, "$1*.?*"), ignoreCase)
  } catch (error) {
    if (error instanceof MalformedGlob) return error.message
    throw error
  }
  if (countAlternatives(found.tokens, false) > maxExpansions) return tooManyPatternsDetail
  const hasTooManyRows = countAlternatives(found.tokens, true) > maxExpansions
  // In patterns like `**.js`, picomatch lets `**` match "/" although it is not a whole segment.
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
