/**
 * Applies .gitignore and .ignore files with git's semantics.
 *
 * Names are compared bytewise. The deepest ignore file with a matching rule decides. Within a file, the last matching
 * rule decides. Entries of an ignored directory stay ignored.
 *
 * Every .ignore has priority over every .gitignore. Only rules inside the tree apply. `.git` is always ignored.
 */
import type { Steps } from "../runtime/units.ts"
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

export interface File {
  readonly rows: Rows
  readonly isReinclusion: ReadonlyArray<boolean>
  readonly bytes: Uint8Array
}

/**
 * The rules of one ignore file, in the current directory or above it. `depth` is the depth of the file's directory; the
 * root has 0.
 */
export interface Level {
  readonly file: File
  readonly positions: Positions
  readonly depth: number
}

export interface Rules {
  readonly git: ReadonlyArray<Level>
  readonly own: ReadonlyArray<Level>
  readonly ignoresEverything: boolean
  readonly caseSensitive: boolean
}

const lower = (unit: number): number => (unit >= 65 && unit <= 90 ? unit + 32 : unit)

/** Converts a name to one character per UTF-8 byte, because git compares bytes. */
const bytewise = (name: string): string => {
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) > 127) return binary(new TextEncoder().encode(name))
  return name
}

const binary = (bytes: Uint8Array): string => {
  let text = ""
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return text
}

/** Removes trailing spaces like git. Keeps other white space, and a space after a backslash. */
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

const posixClasses: ReadonlyMap<string, RegExp> = new Map([
  ["alnum", /[A-Za-z0-9]/],
  ["alpha", /[A-Za-z]/],
  ["blank", /[ \t]/],
  ["cntrl", /[\0-\x1f\x7f]/],
  ["digit", /[0-9]/],
  ["graph", /[!-~]/],
  ["lower", /[a-z]/],
  ["print", /[ -~]/],
  ["punct", /[!-/:-@[-`{-~]/],
  ["space", /[ \t\n\v\f\r]/],
  ["upper", /[A-Z]/],
  ["xdigit", /[A-Fa-f0-9]/]
])

/** Parses the character set at `from`. Returns `undefined` if git discards the rule. */
const parseBracket = (
  text: string,
  from: number,
  fold: boolean
): { readonly set: CharClass; readonly next: number } | undefined => {
  let at = from + 1
  const negated = text[at] === "!" || text[at] === "^"
  if (negated) at++
  const listed = new Uint8Array(256)
  const names = new Set<RegExp>()
  let previous = 0
  do {
    let unit = text.charCodeAt(at)
    if (at >= text.length) return undefined
    if (unit === 45 && previous !== 0 && at + 1 < text.length && text[at + 1] !== "]") {
      if (text[++at] === "\\") at++
      if (at >= text.length) return undefined
      listed.fill(1, previous, text.charCodeAt(at) + 1)
      unit = 0
    } else if (unit === 91 && text[at + 1] === ":") {
      const end = text.indexOf("]", at + 2)
      if (end === -1) return undefined
      if (end > at + 2 && text[end - 1] === ":") {
        const name = posixClasses.get(text.slice(at + 2, end - 1))
        if (name === undefined) return undefined
        names.add(
          fold && (name === posixClasses.get("upper") || name === posixClasses.get("lower")) ? posixClasses.get("alpha")! : name
        )
        at = end
        unit = 0
      } else {
        listed[91] = 1
      }
    } else {
      if (unit === 92) {
        if (++at >= text.length) return undefined
        unit = text.charCodeAt(at)
      }
      listed[unit] = 1
    }
    previous = unit
    at++
  } while (text[at] !== "]")
  const isListed = (unit: number): boolean => listed[unit] === 1
  const has = (unit: number): boolean => {
    for (const name of names) if (name.test(String.fromCharCode(unit))) return true
    return fold
      ? isListed(lower(unit)) || (lower(unit) >= 97 && lower(unit) <= 122 && isListed(lower(unit) - 32))
      : isListed(unit)
  }
  return { set: { has: (unit) => has(unit) !== negated }, next: at + 1 }
}

type Segment = Array<Element> | typeof GLOBSTAR

/**
 * Returns the rows of one rule, or no rows for a rule that cannot match. A globstar at the index `first` counts as if it
 * were at the start of the rule.
 */
const rowsOf = (
  text: string,
  anchored: boolean,
  fold: boolean,
  first = text.search(/[*?[\\]/)
): ReadonlyArray<Array<Segment>> => {
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
      const found = parseBracket(text, at, fold)
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
 * Handles `**` directly after the literal head of a rule.
 *
 * git compares the text before the first special character separately, so a `**` directly after this text counts as the
 * start of the rule. A rule of `foo**` followed by `/bar` matches `foobar`, and every path that begins with `foo` and
 * ends with `/bar`.
 *
 * Only the first `**` of a rule is treated like this. A later `**` directly after text means `*`.
 */
const afterLiteral = (head: Array<Segment>, rest: string, anchored: boolean, fold: boolean): ReadonlyArray<Array<Segment>> => {
  const above = head.slice(0, -1)
  const stem = head.at(-1) ?? []
  const open = above.concat([stem.concat([STAR])])
  if (rest === "") return [open, open.concat([GLOBSTAR])]
  if (rest === "/") return [head]
  const tails = rowsOf(rest.slice(rest.startsWith("\\") ? 2 : 1), anchored, fold, 0)
  const through = tails.map((tail) => open.concat([GLOBSTAR], tail))
  if (rest.startsWith("\\")) return through
  const again = /^\/\*\*+(?=\\?\/|$)/.exec(rest)
  if (again !== null) return through.concat(afterLiteral(head, rest.slice(again[0].length), anchored, fold))
  return through.concat(tails.map(([next, ...tail]) => above.concat([stem.concat(next ?? [])], tail)))
}

const maxRuleLength = 4096

const charactersPerPause = 2 ** 12
const unitsPerCharacter = 8

export const parseSteps = function* (bytes: Uint8Array, caseSensitive: boolean): Steps<File> {
  const rows: Array<Row> = []
  const isReinclusion: Array<boolean> = []
  const lines = binary(bytes)
    .replace(/^\xef\xbb\xbf/, "")
    .split("\n")
  let read = 0
  for (const line of lines) {
    if (line.startsWith("#") || line.length > maxRuleLength) continue
    read += line.length + 1
    if (read > charactersPerPause) {
      yield read * unitsPerCharacter
      read = 0
    }
    let text = withoutTrailingSpaces(line.replace(/\r$/, ""))
    const negated = text.startsWith("!")
    if (negated) text = text.slice(1)
    const directory = text.endsWith("/")
    if (directory) text = text.slice(0, -1)
    const anchored = text.includes("/")
    text = text.replace(/^\//, "").replace(/(^|\/)\*\*+(?:\/\*\*+)+(?=\/|$)/g, "$1**")
    const pattern = isReinclusion.push(negated) - 1
    for (const segments of rowsOf(text, anchored, !caseSensitive)) {
      const tests = segments.map((segment): Test | typeof GLOBSTAR =>
        segment === GLOBSTAR ? GLOBSTAR : compileTest(segment, caseSensitive ? undefined : lower)
      )
      rows.push({ pattern, directory, segments: anchored ? tests : [GLOBSTAR, ...tests] })
    }
  }
  return { rows: compileRows(rows), isReinclusion, bytes }
}

const decide = (levels: ReadonlyArray<Level>, name: string, directory: boolean): boolean | undefined => {
  for (let i = levels.length - 1; i >= 0; i--) {
    const { file, positions } = levels[i]!
    const found = file.rows.decide(positions, name, directory)
    if (found !== -1) return !file.isReinclusion[found]!
  }
  return undefined
}

const hasNoRules = ({ git, own }: Rules): boolean => git.length === 0 && own.length === 0

const isGit = ({ caseSensitive }: Rules, name: string): boolean =>
  name === ".git" || (!caseSensitive && name.toLowerCase() === ".git")

export const ignores = (self: Rules, name: string, directory: boolean): boolean => {
  if (self.ignoresEverything || isGit(self, name)) return true
  if (hasNoRules(self)) return false
  const bytes = bytewise(name)
  return decide(self.own, bytes, directory) ?? decide(self.git, bytes, directory) ?? false
}

const decideLevels = function* (levels: ReadonlyArray<Level>, name: string, directory: boolean): Steps<boolean | undefined> {
  for (const { file, positions } of levels.toReversed()) {
    const found = yield* file.rows.decideSteps(positions, name, directory)
    if (found !== -1) return !file.isReinclusion[found]!
  }
  return undefined
}

const levelsBelow = function* (levels: ReadonlyArray<Level>, name: string): Steps<ReadonlyArray<Level>> {
  const out: Array<Level> = []
  for (const level of levels) {
    const next = yield* level.file.rows.belowSteps(level.positions, name)
    if (next.length > 0) out.push({ ...level, positions: next })
  }
  return out
}

export interface Verdict {
  readonly ignored: boolean
  readonly below: Rules
}

export const judgeSteps = function* (self: Rules, name: string, directory: boolean): Steps<Verdict> {
  if (self.ignoresEverything || hasNoRules(self)) return { ignored: ignores(self, name, directory), below: self }
  const bytes = bytewise(name)
  const ignored =
    isGit(self, name) ||
    ((yield* decideLevels(self.own, bytes, directory)) ?? (yield* decideLevels(self.git, bytes, directory)) ?? false)
  if (ignored || !directory) return { ignored, below: self }
  const git = yield* levelsBelow(self.git, bytes)
  return { ignored, below: { ...self, git, own: yield* levelsBelow(self.own, bytes) } }
}

export const maxSteps = ({ ignoresEverything, git, own }: Rules, length: number): number => {
  let sum = 0
  if (!ignoresEverything) for (const { file, positions } of own.concat(git)) sum += file.rows.cost(positions, length)
  return sum
}

export const below = (self: Rules, name: string): Rules => {
  if (hasNoRules(self)) return self
  const bytes = bytewise(name)
  const down = (levels: ReadonlyArray<Level>): ReadonlyArray<Level> =>
    levels
      .map((level): Level => ({ ...level, positions: level.file.rows.below(level.positions, bytes) }))
      .filter(({ positions }) => positions.length > 0)
  return { ...self, git: down(self.git), own: down(self.own) }
}

/** The size limit of an ignore file in bytes. A larger file has no rules. */
export const maxFileBytes = 1024 * 1024
