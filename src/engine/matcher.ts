/**
 * Matches globs with the meaning of picomatch, on the path relative to the base.
 *
 * Common patterns run on rows of segments (`segment.ts`). The rest run on the regular expression that picomatch
 * generates, executed by `automaton.ts`. Both take bounded time for every pattern and name.
 *
 * A matcher follows the walk: for each directory it knows whether anything below can match.
 *
 * Two things differ from picomatch. `**` also matches names with U+2028 and U+2029, which picomatch treats as line
 * ends. In a list, patterns form a union and `!` does not negate; `exclude` serves that purpose.
 */
import picomatch from "picomatch"
import type { Fault } from "../model/FsError.ts"
import { codePoints } from "../model/FsPath.ts"
import { compileExpression, NotAGlob } from "./automaton.ts"
import { expandGlob, MalformedGlob } from "./braces.ts"
import { invalidArgument, type PlanContext } from "./options.ts"
import {
  ANY,
  charClass,
  compileRows,
  compileTest,
  type Element,
  makeExactTest,
  foldCase,
  GLOBSTAR,
  type Positions,
  type Row,
  STAR,
  type Test
} from "./segment.ts"
import { parse, unitsOf } from "./syntax.ts"

export interface State {
  readonly rows: Positions
  readonly reach: Positions
  readonly path: string
}

export interface Matcher {
  readonly start: State
  readonly below: (state: State, name: string) => State | undefined
  readonly matches: (state: State, name: string, directory: boolean) => boolean
  readonly cost: (state: State, length: number) => number
}

/** A pattern without rows. It is tested with the whole path, or with the name alone if not anchored. */
interface WholePathPattern {
  readonly pattern: number
  readonly directory: boolean
  readonly anchored: boolean
  readonly test: Test
}

interface Compiled {
  readonly rows: Array<Row>
  readonly wide: Array<WholePathPattern>
  /** The rows of the directories below which a wide pattern can match. */
  readonly reach: Array<Row>
}

const options = { dot: true, posix: true, regex: false, nonegate: true, strictSlashes: true } as const

interface TrimmedPattern {
  readonly text: string
  readonly anchored: boolean
  readonly directory: boolean
}

const trim = (pattern: string): TrimmedPattern => {
  const text = pattern.replace(/^(?:\.?\/)+/, "").replace(/\/$/, "")
  return { text, anchored: text.includes("/") || /^\.?\//.test(pattern), directory: pattern.endsWith("/") }
}

const literalSegments = ({ anchored, text }: TrimmedPattern): Row["segments"] => {
  const names = text.split("/").map(makeExactTest)
  return anchored ? names : [GLOBSTAR, ...names]
}

const addPattern = (trimmed: TrimmedPattern, pattern: number, caseSensitive: boolean, out: Compiled): string | undefined => {
  const { anchored, directory, text } = trimmed
  const shape = { pattern, directory }
  const glob = parse(text, anchored, !caseSensitive)
  if (typeof glob === "string") return glob
  const fold = caseSensitive ? undefined : foldCase
  const anywhere = anchored ? [] : [GLOBSTAR]
  if (glob.matchesItself) out.rows.push({ ...shape, segments: literalSegments(trimmed) })
  if (glob.rows !== undefined) {
    for (const segments of glob.rows) {
      const tests = segments.map((segment) => (segment === undefined ? GLOBSTAR : compileTest(segment, fold)))
      out.rows.push({ ...shape, segments: [...anywhere, ...tests] })
    }
    return undefined
  }
  try {
    const { source } = picomatch.makeRe(text, { ...options, nocase: !caseSensitive })
    // picomatch generates this source when its own translation is not a valid regular expression.
    if (source !== "$^") out.wide.push({ ...shape, anchored, test: compileExpression(source, !caseSensitive) })
  } catch (error) {
    if (error instanceof NotAGlob || error instanceof SyntaxError) return error.message
    throw error
  }
  out.reach.push({ ...shape, segments: [...glob.prefix.map((name) => literal(name, caseSensitive)), GLOBSTAR] })
  return undefined
}

const addPath = (
  whole: string,
  pattern: number,
  { caseSensitive, strict }: { readonly caseSensitive: boolean; readonly strict: boolean },
  out: Compiled
): string | undefined => {
  try {
    const { doubt, patterns } = expandGlob(whole)
    if (strict) {
      if (/[\0-\x1f\x7f]/.test(whole)) return "it holds a control character, which no path has; give each pattern by itself"
      const doubts = patterns.map((each) => expandGlob(each).doubt ?? doubtOf(trim(each).text))
      const wrong = doubt ?? doubts.find((each) => each !== undefined)
      if (wrong !== undefined) return wrong
    }
    for (const each of patterns) {
      const trimmed = trim(each)
      if (patterns.length > 1 && trimmed.text.trim() === "") continue
      const wrong = addPattern(trimmed, pattern, caseSensitive, out)
      if (wrong !== undefined) return wrong
    }
    const given = trim(whole)
    if (patterns[0] !== whole) out.rows.push({ pattern, directory: given.directory, segments: literalSegments(given) })
    return undefined
  } catch (error) {
    if (error instanceof MalformedGlob) return error.message
    throw error
  }
}

/** Returns the reason why a pattern without globstars in braces matches nothing, or not what it seems to match. */
const doubtOf = (text: string): string | undefined => {
  if (text.trim() === "") return "one of its alternatives is blank"
  const segments = text.split("/")
  if (segments.includes("")) return "it has an empty segment, which no path has"
  if (segments.includes(".")) return 'it has a "." segment, which no path has'
  // Without a slash, such a pattern matches at any depth, as expected.
  if (segments.length > 1 && segments.some((segment) => /[^*]\*\*|\*\*./s.test(segment.replaceAll(/\\./gs, "-")))) {
    return '"**" beside other signs stays in one directory; write "**/*" for any depth'
  }
  if (segments[0] === "~") return '"~" is no home directory here; patterns are relative to the root'
  if (/^'.*'$/s.test(text)) return "it stands in quotation marks; leave them out"
  return undefined
}

const literal = (text: string, caseSensitive: boolean): Test => compileTest(unitsOf(text), caseSensitive ? undefined : foldCase)

/** Adds a pattern with the meaning of Python's fnmatch: the path is one text, without braces and escapes. */
const addFnmatch = (text: string, shape: Omit<Row, "segments">, caseSensitive: boolean, out: Compiled): string | undefined => {
  if (text.split("/").includes("..")) return 'it has a ".." segment'
  const elements: Array<Element> = []
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!
    if (sign === "*") elements.push(STAR)
    else if (sign === "?") elements.push(ANY)
    else if (sign !== "[") elements.push(text.charCodeAt(at))
    else {
      const negated = text[at + 1] === "!"
      const first = at + (negated ? 2 : 1)
      const end = text.indexOf("]", first + 1)
      if (end === -1) return '"[" is not closed; write "[[]" for the sign itself'
      const body = text.slice(first, end).replace(/[\\\]^[]/g, "\\$&")
      try {
        elements.push(charClass(`[${negated ? "^" : ""}${body}]`, !caseSensitive))
      } catch {
        return `the range in "${text.slice(at, end + 1)}" runs backwards`
      }
      at = end
    }
  }
  const prefix = text.split(/[*?[]/, 1)[0]!.split("/").slice(0, -1)
  const test = compileTest(elements, caseSensitive ? undefined : foldCase)
  out.wide.push({ ...shape, anchored: true, test })
  out.reach.push({ ...shape, segments: [...prefix.map((name) => literal(name, caseSensitive)), GLOBSTAR] })
  return undefined
}

const invalidReason = (pattern: unknown, maxLength: number): string | undefined => {
  if (typeof pattern !== "string") return "it is not a string"
  if (pattern.trim() === "") return "it is blank"
  if (pattern.length > maxLength && codePoints(pattern) > maxLength) return `it has more than ${maxLength} characters`
  if (pattern.includes("\0")) return "it contains a NUL"
  return pattern.isWellFormed() ? undefined : "it contains a lone surrogate"
}

export interface CompileOptions {
  readonly argument: string
  readonly dialect?: "path" | "fnmatch" | undefined
  /** Set for the rules of ignore files: the last match decides, and `!` re-includes. */
  readonly rules?: boolean | undefined
  /**
   * Set to refuse patterns that may not mean what they look like. A policy must never be ineffective without notice.
   */
  readonly strict?: boolean | undefined
}

export const compile = (
  patterns: ReadonlyArray<string>,
  { argument, dialect, rules = false, strict = false }: CompileOptions,
  { caseSensitive, limits }: PlanContext
): Matcher | Fault => {
  const out: Compiled = { rows: [], wide: [], reach: [] }
  const isReinclusion: Array<boolean> = []
  for (let pattern = 0; pattern < patterns.length; pattern++) {
    const input = patterns[pattern]!
    const wrong = invalidReason(input, limits.maxPatternLength)
    if (wrong !== undefined) return invalidArgument(argument, wrong)
    // `!(` opens an extglob, like in picomatch.
    const negated = rules && input[0] === "!" && input[1] !== "("
    const whole = negated ? input.slice(1) : input
    const { directory, text } = trim(whole)
    if (text.trim() === "") return invalidArgument(argument, "it is blank")
    if (strict && !rules && /^!(?!\()/.test(whole)) {
      return invalidArgument(argument, `${JSON.stringify(input)}: "!" takes nothing back here; write "\\!" for the sign itself`)
    }
    const refused =
      dialect === "fnmatch"
        ? addFnmatch(text, { pattern, directory }, caseSensitive, out)
        : addPath(whole, pattern, { caseSensitive, strict }, out)
    if (refused !== undefined) return invalidArgument(argument, `${JSON.stringify(input)}: ${refused}`)
    isReinclusion.push(negated)
  }
  return assemble(out, isReinclusion)
}

const assemble = ({ reach: reaches, rows: patterns, wide }: Compiled, isReinclusion: ReadonlyArray<boolean>): Matcher => {
  const rows = compileRows(patterns)
  const reach = compileRows(reaches)
  const hasWholePathPatterns = wide.length > 0
  const weight = wide.reduce((sum, { test }) => sum + (test.weight ?? 1), 0)
  return {
    start: { rows: rows.start, reach: reach.start, path: "" },
    below: (state, name) => {
      const next = rows.below(state.rows, name)
      if (!hasWholePathPatterns) {
        return next.length === 0 ? undefined : next === state.rows ? state : { rows: next, reach: state.reach, path: "" }
      }
      const reachBelow = reach.below(state.reach, name)
      return next.length === 0 && reachBelow.length === 0
        ? undefined
        : { rows: next, reach: reachBelow, path: state.path === "" ? name : `${state.path}/${name}` }
    },
    matches: (state, name, directory) => {
      let found = rows.decide(state.rows, name, directory)
      for (let i = wide.length - 1; i >= 0; i--) {
        const { anchored, directory: only, pattern, test } = wide[i]!
        if (pattern <= found || (only && !directory)) continue
        if (test(anchored && state.path !== "" ? `${state.path}/${name}` : name)) found = pattern
      }
      return found !== -1 && !isReinclusion[found]!
    },
    cost: (state, length) =>
      rows.cost(state.rows, length) + reach.cost(state.reach, length) + weight * (state.path.length + length + 1)
  }
}

export const test = (matcher: Matcher, path: string, directory = false): boolean => {
  const names = path.split("/")
  const last = names.pop()!
  let state: State | undefined = matcher.start
  for (const name of names) {
    state = matcher.below(state, name)
    if (state === undefined) return false
  }
  return matcher.matches(state, last, directory)
}
