/**
 * .gitignore and .ignore as git reads them: byte by byte, a file at every level, the deepest one that says anything deciding, and
 * within it the last rule; what lies in an ignored directory stays ignored. Any .ignore goes before any .gitignore. No rules apply
 * that are not in the tree.
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { wholeAt } from "./read.ts"
import {
  ANY,
  type CharClass,
  compileRows,
  compileTest,
  type Element,
  GLOBSTAR,
  type Positions,
  type Row,
  type Rows,
  STAR,
  type Test
} from "./segment.ts"

/** The rules of one file. */
export interface Rules {
  readonly rows: Rows
  readonly takesBack: ReadonlyArray<boolean>
}

interface Level {
  readonly rules: Rules
  readonly positions: Positions
}

/** What applies in one directory: the levels of each kind of file, the root's first. */
export interface Ignores {
  readonly git: ReadonlyArray<Level>
  readonly own: ReadonlyArray<Level>
  readonly caseSensitive: boolean
}

export const none = (caseSensitive: boolean): Ignores => ({ git: [], own: [], caseSensitive })

const lower = (unit: number): number => (unit >= 65 && unit <= 90 ? unit + 32 : unit)

/** One character for each byte of UTF-8, which is what git compares. */
const bytewise = (name: string): string => {
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) > 127) return binary(new TextEncoder().encode(name))
  return name
}

const binary = (bytes: Uint8Array): string => {
  let text = ""
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return text
}

/** git's own removal: only spaces, and not one after a backslash. */
const withoutTrailingSpaces = (line: string): string => {
  let end = line.length
  for (let at = 0, spaces = false; at < line.length; at++) {
    if (line[at] === " ") {
      if (!spaces) end = at
      spaces = true
      continue
    }
    if (line[at] === "\\" && ++at === line.length) return line
    spaces = false
    end = line.length
  }
  return line.slice(0, end)
}

const posix: Record<string, RegExp> = {
  alnum: /[A-Za-z0-9]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  cntrl: /[\0-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t\n\v\f\r]/,
  upper: /[A-Z]/,
  xdigit: /[A-Fa-f0-9]/
}

/** The set that begins at `from`, and where it ends; `undefined` where git gives the whole rule up. */
const bracket = (text: string, from: number, fold: boolean): { readonly set: CharClass; readonly next: number } | undefined => {
  let at = from + 1
  const negated = text[at] === "!" || text[at] === "^"
  if (negated) at++
  const ranges: Array<readonly [number, number]> = []
  const names: Array<RegExp> = []
  let previous = 0
  do {
    let unit = text.charCodeAt(at)
    if (at >= text.length) return undefined
    if (unit === 45 && previous !== 0 && at + 1 < text.length && text[at + 1] !== "]") {
      if (text[++at] === "\\") at++
      if (at >= text.length) return undefined
      ranges.push([previous, text.charCodeAt(at)])
      unit = 0
    } else if (unit === 91 && text[at + 1] === ":") {
      const end = text.indexOf("]", at + 2)
      if (end === -1) return undefined
      if (end > at + 2 && text[end - 1] === ":") {
        const name = posix[text.slice(at + 2, end - 1)]
        if (name === undefined) return undefined
        names.push(fold && (name === posix["upper"] || name === posix["lower"]) ? posix["alpha"]! : name)
        at = end
        unit = 0
      } else {
        ranges.push([91, 91])
      }
    } else {
      if (unit === 92) {
        if (++at >= text.length) return undefined
        unit = text.charCodeAt(at)
      }
      ranges.push([unit, unit])
    }
    previous = unit
    at++
  } while (text[at] !== "]")
  const within = (unit: number): boolean => ranges.some(([low, high]) => unit >= low && unit <= high)
  const has = (unit: number): boolean => {
    if (names.some((name) => name.test(String.fromCharCode(unit)))) return true
    return fold ? within(lower(unit)) || (lower(unit) >= 97 && lower(unit) <= 122 && within(lower(unit) - 32)) : within(unit)
  }
  return { set: { has: (unit) => has(unit) !== negated }, next: at + 1 }
}

type Segment = Array<Element> | typeof GLOBSTAR

/** The rows of one rule, none for a rule that can match nothing. */
const rowsOf = (text: string, anchored: boolean, fold: boolean): ReadonlyArray<ReadonlyArray<Segment>> => {
  const first = text.search(/[*?[\\]/)
  const segments: Array<Segment> = [[]]
  const last = (): Array<Element> => segments.at(-1)!
  for (let at = 0; at < text.length;) {
    const sign = text[at]!
    if (sign === "\\") {
      if (at + 1 === text.length) return []
      if (text[at + 1] === "/") segments.push([])
      else last().push(text.charCodeAt(at + 1))
      at += 2
    } else if (sign === "/") {
      segments.push([])
      at++
    } else if (sign === "?") {
      last().push(ANY)
      at++
    } else if (sign === "[") {
      const found = bracket(text, at, fold)
      if (found === undefined) return []
      last().push(found.set)
      at = found.next
    } else if (sign === "*") {
      const from = at
      while (text[at] === "*") at++
      const rest = text.slice(at)
      const opens = anchored && (from === first || text[from - 1] === "/")
      if (at - from === 1 || !opens || !(rest === "" || rest.startsWith("/") || rest.startsWith("\\/"))) {
        last().push(STAR)
        continue
      }
      if (last().length > 0) return afterLiteral(segments, rest, anchored, fold)
      segments.pop()
      // Before an escaped slash something must stand.
      if (rest.startsWith("\\")) segments.push([STAR])
      segments.push(GLOBSTAR)
      if (rest === "") return [segments]
      segments.push([])
      at += rest.startsWith("\\") ? 2 : 1
    } else {
      last().push(text.charCodeAt(at++))
    }
  }
  return segments.some((segment) => segment?.length === 0) ? [] : [segments]
}

/**
 * git compares what stands before the first special sign by itself, so `**` that comes right after takes itself for the beginning:
 * `foo**` followed by `/bar` is `foobar`, and whatever begins with `foo` and ends with `/bar`.
 */
const afterLiteral = (
  head: ReadonlyArray<Segment>,
  rest: string,
  anchored: boolean,
  fold: boolean
): ReadonlyArray<ReadonlyArray<Segment>> => {
  const above = head.slice(0, -1)
  const stem = head.at(-1)!
  const open = [...above, [...stem, STAR]]
  if (rest === "") return [open, [...open, GLOBSTAR]]
  const tails = rowsOf(rest.slice(rest.startsWith("\\") ? 2 : 1), anchored, fold)
  const through = tails.map((tail) => [...open, GLOBSTAR, ...tail])
  if (rest.startsWith("\\")) return through
  const joined = tails.map(([next, ...tail]) =>
    next === GLOBSTAR ? [...open, GLOBSTAR, ...tail] : [...above, [...stem, ...next!], ...tail]
  )
  return [...through, ...joined]
}

/** The rules in a file's bytes. */
export const parse = (bytes: Uint8Array, caseSensitive: boolean): Rules => {
  const rows: Array<Row> = []
  const takesBack: Array<boolean> = []
  const lines = binary(bytes)
    .replace(/^\xef\xbb\xbf/, "")
    .split("\n")
  for (const line of lines) {
    if (line.startsWith("#")) continue
    let text = withoutTrailingSpaces(line.replace(/\r$/, ""))
    const negated = text.startsWith("!")
    if (negated) text = text.slice(1)
    const directory = text.endsWith("/")
    if (directory) text = text.slice(0, -1)
    const anchored = text.includes("/")
    if (text.startsWith("/")) text = text.slice(1)
    const pattern = takesBack.push(negated) - 1
    for (const segments of rowsOf(text, anchored, !caseSensitive)) {
      const tests = segments.map((segment): Test | typeof GLOBSTAR =>
        segment === GLOBSTAR ? GLOBSTAR : compileTest(segment, caseSensitive ? undefined : lower)
      )
      rows.push({ pattern, directory, segments: anchored ? tests : [GLOBSTAR, ...tests] })
    }
  }
  return { rows: compileRows(rows), takesBack }
}

const decide = (levels: ReadonlyArray<Level>, name: string, directory: boolean): boolean | undefined => {
  for (let i = levels.length - 1; i >= 0; i--) {
    const { positions, rules } = levels[i]!
    const found = rules.rows.decide(positions, name, directory)
    if (found !== -1) return !rules.takesBack[found]!
  }
  return undefined
}

/** Whether this child of the directory is ignored. */
export const isIgnored = (self: Ignores, name: string, directory: boolean): boolean => {
  if (name === ".git" || (!self.caseSensitive && FsPath.fold(name) === ".git")) return true
  if (self.git.length === 0 && self.own.length === 0) return false
  const bytes = bytewise(name)
  return decide(self.own, bytes, directory) ?? decide(self.git, bytes, directory) ?? false
}

/** What still applies below this child, before its own files are read. */
export const below = (self: Ignores, name: string): Ignores => {
  if (self.git.length === 0 && self.own.length === 0) return self
  const bytes = bytewise(name)
  const down = (levels: ReadonlyArray<Level>): ReadonlyArray<Level> =>
    levels
      .map(({ positions, rules }): Level => ({ rules, positions: rules.rows.below(positions, bytes) }))
      .filter(({ positions }) => positions.length > 0)
  return { ...self, git: down(self.git), own: down(self.own) }
}

/** The names of the files that hold rules. */
export const files = [".gitignore", ".ignore"] as const

const maxBytes = 4 * 1024 * 1024

/** With the rules of those of the files that are there in the directory `at`. */
export const withFiles = Effect.fnUntraced(function* (
  self: Ignores,
  port: Backend,
  at: FsPath.FsPath,
  present: ReadonlyArray<(typeof files)[number]>,
  onUnreadable: (name: string, fault: Fault) => Effect.Effect<void, Fault>
): Effect.fn.Return<Ignores, Fault> {
  let { git, own } = self
  for (const name of present) {
    const whole = yield* Effect.catch(
      Effect.suspend(() => wholeAt(port, FsPath.join(at, name), maxBytes)),
      (fault) => Effect.as(fault._tag === "NotFound" ? Effect.void : onUnreadable(name, fault), undefined)
    )
    if (whole === undefined) continue
    const rules = parse(whole.bytes, self.caseSensitive)
    const level: Level = { rules, positions: rules.rows.start }
    if (level.positions.length === 0) continue
    if (name === ".gitignore") git = [...git, level]
    else own = [...own, level]
  }
  return { ...self, git, own }
})

/**
 * What applies in the directory `at`, its own files not yet read, from the workspace root down; `undefined` when it, or a directory
 * above it, is ignored.
 */
export const above = Effect.fnUntraced(function* (
  port: Backend,
  at: FsPath.FsPath,
  onUnreadable: (path: FsPath.FsPath, fault: Fault) => Effect.Effect<void, Fault>
): Effect.fn.Return<Ignores | undefined, Fault> {
  let here = FsPath.root
  let ignores = none(port.info.caseSensitive)
  for (const name of FsPath.segments(at)) {
    const present: Array<(typeof files)[number]> = []
    for (const file of files) {
      const stat = yield* port.stat(FsPath.join(here, file))
      if (stat?.kind === "file") present.push(file)
    }
    ignores = yield* withFiles(ignores, port, here, present, (file, fault) => onUnreadable(FsPath.join(here, file), fault))
    if (isIgnored(ignores, name, true)) return undefined
    ignores = below(ignores, name)
    here = FsPath.join(here, name)
  }
  return ignores
})
