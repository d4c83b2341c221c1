/**
 * Matches globs with the meaning of picomatch, on the path relative to the base.
 *
 * Common patterns run on rows of segments (`segment.ts`). For all other patterns, an automaton runs the regular
 * expression that picomatch generates. Both take bounded time for every pattern and name.
 *
 * A matcher follows the walk: for each directory it knows whether anything below can match.
 *
 * Two things differ from picomatch. `**` also matches names with U+2028 and U+2029, which picomatch treats as line
 * ends. In a list, patterns form a union and `!` does not negate; `exclude` serves that purpose.
 */
import { invalidArgument } from "../model/Fault.ts"
import picomatch from "picomatch"
import type { Fault } from "../model/FsError.ts"
import { codePoints } from "../model/unicode.ts"
import { type PlanContext } from "./options.ts"
import {
  ANY,
  charClass,
  compileRows,
  compileTest,
  type Element,
  foldCase,
  GLOBSTAR,
  makeExactTest,
  type Positions,
  type Row,
  STAR,
  type Test
} from "./segment.ts"
import { expandGlob, MalformedGlob, parse, unitsOf } from "./syntax.ts"

// An automaton runs the regular expressions that picomatch generates for extglobs and other rare globs, in bounded time.
//
// The automaton follows all paths through the expression at the same time, and evaluates each lookahead once per position.
// The automaton tests only whole texts, so the order of alternatives and the capture groups do not matter.
//
// A pattern with syntax that picomatch does not generate (backreferences, lookbehind) is not a glob.

type Node =
  | { readonly _tag: "Unit"; readonly has: (unit: number) => boolean }
  | { readonly _tag: "Start" | "End" }
  | { readonly _tag: "Sequence" | "Choice"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly node: Node; readonly min: number; readonly max: number }
  | { readonly _tag: "Look"; readonly node: Node; readonly negative: boolean }

class NotAGlob extends Error {}

const parseAutomaton = (source: string, ignoreCase: boolean): Node => {
  let at = 0
  const single = (part: string): Node => ({ _tag: "Unit", has: charClass(part, ignoreCase).has })
  const choice = (): Node => {
    const nodes: Array<Node> = [sequence()]
    while (source[at] === "|") {
      at++
      nodes.push(sequence())
    }
    return nodes.length === 1 ? nodes[0]! : { _tag: "Choice", nodes }
  }
  const sequence = (): Node => {
    const nodes: Array<Node> = []
    while (at < source.length && source[at] !== "|" && source[at] !== ")") nodes.push(quantified(atom()))
    return { _tag: "Sequence", nodes }
  }
  const quantified = (node: Node): Node => {
    const found = /^(?:([*+?])|\{(\d+),(\d+)\})\??/.exec(source.slice(at, at + 16))
    if (found === null) return node
    if (node._tag === "Look") throw new NotAGlob("it repeats a lookahead, which no glob does")
    at += found[0].length
    const [, sign, min, max] = found
    return {
      _tag: "Repeat",
      node,
      min: sign === undefined ? Number(min) : sign === "+" ? 1 : 0,
      max: sign === undefined ? Number(max) : sign === "?" ? 1 : Number.POSITIVE_INFINITY
    }
  }
  const group = (): Node => {
    const opening = /^\((?:\?[:=!])?/.exec(source.slice(at, at + 3))![0]
    at += opening.length
    if (source[at] === "?") throw new NotAGlob("it contains a group that globs do not have")
    const node = choice()
    if (source[at++] !== ")") throw new NotAGlob("a parenthesis is not closed")
    return opening === "(?=" || opening === "(?!" ? { _tag: "Look", node, negative: opening === "(?!" } : node
  }
  const atom = (): Node => {
    const sign = source[at]!
    if (sign === "(") return group()
    if (sign === "[") {
      let end = at + 1
      while (end < source.length && source[end] !== "]") end += source[end] === "\\" ? 2 : 1
      const body = source.slice(at, end + 1)
      at = end + 1
      return single(body)
    }
    at++
    if (sign === "^") return { _tag: "Start" }
    if (sign === "$") return { _tag: "End" }
    if (sign === ".") return { _tag: "Unit", has: () => true }
    if (/[*+?{]/.test(sign)) throw new NotAGlob(`"${sign}" has nothing to repeat`)
    if (sign !== "\\") return single(sign)
    const escaped = source[at++] ?? ""
    if (/[dDwWsSbBnrtvfcxuk0-9]/.test(escaped)) throw new NotAGlob(`"\\${escaped}" means nothing in a glob`)
    return single(`\\${escaped}`)
  }
  const node = choice()
  if (at < source.length) throw new NotAGlob("a parenthesis is not opened")
  return node
}

type Step =
  | { readonly _tag: "Unit"; readonly has: (unit: number) => boolean }
  | { readonly _tag: "Start" | "End" | "Done" }
  | { readonly _tag: "Go"; readonly to: ReadonlyArray<number> }
  | { readonly _tag: "Look"; readonly end: number; readonly negative: boolean }

/** The maximum number of steps per character of a text. A step takes about ten nanoseconds. */
const maxSteps = 8192

interface Program {
  readonly steps: ReadonlyArray<Step>
  /** The number of steps per position of a text. A step inside lookaheads counts once more for each of them. */
  readonly weight: number
}

const assembleAutomaton = (root: Node): Program => {
  const steps: Array<Step> = []
  let weight = 0
  let depth = 0
  const addStep = (step: Step): number => {
    weight += 1 + depth
    if (weight > maxSteps) throw new NotAGlob("it is too complex")
    return steps.push(step) - 1
  }
  const compileNode = (node: Node): void => {
    switch (node._tag) {
      case "Sequence":
        for (const part of node.nodes) compileNode(part)
        return
      case "Choice": {
        const to: Array<number> = []
        const exits: Array<Array<number>> = []
        addStep({ _tag: "Go", to })
        for (const part of node.nodes) {
          to.push(steps.length)
          compileNode(part)
          const exit: Array<number> = []
          addStep({ _tag: "Go", to: exit })
          exits.push(exit)
        }
        for (const exit of exits) exit.push(steps.length)
        return
      }
      case "Repeat": {
        for (let i = 0; i < node.min; i++) compileNode(node.node)
        if (node.max === Number.POSITIVE_INFINITY) {
          const to: Array<number> = []
          const again = addStep({ _tag: "Go", to })
          to.push(again + 1)
          compileNode(node.node)
          addStep({ _tag: "Go", to: [again] })
          to.push(steps.length)
          return
        }
        for (let i = node.min; i < node.max; i++) {
          const to: Array<number> = [steps.length + 1]
          addStep({ _tag: "Go", to })
          compileNode(node.node)
          to.push(steps.length)
        }
        return
      }
      case "Look": {
        const at = addStep({ _tag: "Start" })
        depth++
        compileNode(node.node)
        const end = addStep({ _tag: "Done" })
        depth--
        steps[at] = { _tag: "Look", end, negative: node.negative }
        return
      }
      default:
        addStep(node)
    }
  }
  compileNode(root)
  addStep({ _tag: "Done" })
  return { steps, weight }
}

/** Evaluates a lookahead at every position, from the end backwards, so that each part of the text is read once. */
const evaluateLookahead = (
  steps: ReadonlyArray<Step>,
  predecessors: ReadonlyArray<ReadonlyArray<number>>,
  look: number,
  text: string,
  holdsAt: (look: number, position: number) => boolean
): Uint8Array => {
  const { end } = steps[look] as { readonly end: number }
  const holds = new Uint8Array(text.length + 1)
  let now = new Uint8Array(end + 1)
  let next = new Uint8Array(end + 1)
  const passes = (at: number, position: number): boolean => {
    const step = steps[at]!
    return (
      step._tag === "Go" ||
      (step._tag === "Start" && position === 0) ||
      (step._tag === "End" && position === text.length) ||
      (step._tag === "Look" && holdsAt(at, position))
    )
  }
  for (let position = text.length; position >= 0; position--) {
    now.fill(0)
    const unit = text.charCodeAt(position)
    const pending = [end]
    for (let at = look + 1; at < end; at++) {
      const step = steps[at]!
      if (step._tag === "Unit" && next[at + 1] === 1 && step.has(unit)) pending.push(at)
    }
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (now[at] === 1) continue
      now[at] = 1
      for (const from of predecessors[at]!) if (from > look && passes(from, position)) pending.push(from)
    }
    holds[position] = now[look + 1]!
    ;[now, next] = [next, now]
  }
  return holds
}

const compileExpression = (source: string, ignoreCase: boolean): Test => {
  const { steps, weight } = assembleAutomaton(parseAutomaton(source, ignoreCase))
  const predecessors: Array<Array<number>> = steps.map(() => [])
  steps.forEach((step, at) => {
    if (step._tag === "Go") for (const to of step.to) predecessors[to]!.push(at)
    else if (step._tag === "Look") predecessors[step.end + 1]!.push(at)
    else if (step._tag === "Start" || step._tag === "End") predecessors[at + 1]!.push(at)
  })

  const test = (text: string): boolean => {
    const surveys = new Map<number, Uint8Array>()
    const holdsAt = (look: number, position: number): boolean => {
      let holds = surveys.get(look)
      if (holds === undefined) surveys.set(look, (holds = evaluateLookahead(steps, predecessors, look, text, holdsAt)))
      return (holds[position] === 1) !== (steps[look] as { readonly negative: boolean }).negative
    }
    const seen = new Int32Array(steps.length).fill(-1)
    const addReachable = (out: Array<number>, entry: number, position: number): boolean => {
      const pending = [entry]
      for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
        if (seen[at] === position) continue
        seen[at] = position
        const step = steps[at]!
        if (step._tag === "Done") return true
        if (step._tag === "Unit") out.push(at)
        else if (step._tag === "Go") pending.push(...step.to)
        else if (step._tag === "Start" ? position === 0 : step._tag === "End" && position === text.length) pending.push(at + 1)
        else if (step._tag === "Look" && holdsAt(at, position)) pending.push(step.end + 1)
      }
      return false
    }
    let now: Array<number> = []
    let next: Array<number> = []
    if (addReachable(now, 0, 0)) return true
    for (let position = 0; position < text.length && now.length > 0; position++) {
      const unit = text.charCodeAt(position)
      for (const at of now) {
        if ((steps[at] as { readonly has: (unit: number) => boolean }).has(unit) && addReachable(next, at + 1, position + 1))
          return true
      }
      ;[now, next] = [next, now]
      next.length = 0
    }
    return false
  }
  return Object.assign(test, { weight })
}

export interface State {
  readonly rows: Positions
  readonly reach: Positions
  readonly path: string
}

export interface Matcher {
  /** The patterns, from which another process compiles the same matcher. */
  readonly patterns: ReadonlyArray<string>
  readonly dialect: "path" | "fnmatch" | undefined
  readonly start: State
  readonly below: (state: State, name: string) => State | undefined
  readonly matches: (state: State, name: string, directory: boolean) => boolean
  readonly cost: (state: State, length: number) => number
}

/**
 * A pattern without rows, which is tested against the whole path, or only against the name if the pattern is not
 * anchored.
 */
interface WholePathPattern {
  readonly pattern: number
  readonly directory: boolean
  readonly anchored: boolean
  readonly test: Test
}

interface Compiled {
  readonly rows: Array<Row>
  readonly wide: Array<WholePathPattern>
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
    // picomatch generates the source `$^`, which matches nothing, if its own translation is not a valid regular
    // expression.
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
      if (/[\0-\x1f\x7f]/.test(whole))
        return "it contains a control character, which no path can contain; pass each pattern separately"
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

/**
 * Returns the reason why a pattern matches nothing, or does not match what it seems to match. The pattern has no
 * globstars in braces.
 */
const doubtOf = (text: string): string | undefined => {
  if (text.trim() === "") return "one of its alternatives is blank"
  const segments = text.split("/")
  if (segments.includes("")) return "it has an empty segment, which no path can have"
  if (segments.includes(".")) return 'it has a "." segment, which no path can have'
  // Without a slash, a pattern with `**` next to other characters matches at any depth, as expected.
  if (segments.length > 1 && segments.some((segment) => /[^*]\*\*|\*\*./s.test(segment.replaceAll(/\\./gs, "-")))) {
    return '"**" next to other characters stays in one directory; write "**/*" for any depth'
  }
  if (segments[0] === "~") return '"~" does not mean the home directory here; patterns are relative to the root'
  if (/^'.*'$/s.test(text)) return "it is in quotation marks; remove them"
  return undefined
}

const literal = (text: string, caseSensitive: boolean): Test => compileTest(unitsOf(text), caseSensitive ? undefined : foldCase)

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
      if (end === -1) return '"[" is not closed; write "[[]" for the character itself'
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
  /** True to apply the patterns like the rules of an ignore file: the last match decides, and `!` re-includes. */
  readonly rules?: boolean | undefined
  /**
   * True to refuse patterns that may not mean what they look like. Policies set this option, because a pattern that
   * matches nothing would protect nothing.
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
    // `!(` opens an extglob, as in picomatch.
    const negated = rules && input[0] === "!" && input[1] !== "("
    const whole = negated ? input.slice(1) : input
    const { directory, text } = trim(whole)
    if (text.trim() === "") return invalidArgument(argument, "it is blank")
    if (strict && !rules && /^!(?!\()/.test(whole)) {
      return invalidArgument(
        argument,
        `${JSON.stringify(input)}: "!" cannot re-include paths here; write "\\!" for a literal "!"`
      )
    }
    const refused =
      dialect === "fnmatch"
        ? addFnmatch(text, { pattern, directory }, caseSensitive, out)
        : addPath(whole, pattern, { caseSensitive, strict }, out)
    if (refused !== undefined) return invalidArgument(argument, `${JSON.stringify(input)}: ${refused}`)
    isReinclusion.push(negated)
  }
  return { ...assemble(out, isReinclusion), patterns, dialect }
}

const assemble = (
  { reach: reaches, rows: patterns, wide }: Compiled,
  isReinclusion: ReadonlyArray<boolean>
): Omit<Matcher, "patterns" | "dialect"> => {
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
