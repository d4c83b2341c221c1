/** Formats text for a terminal: adds colours, and escapes control characters in names and contents. A pipe gets plain data. */
import * as Schema from "effect/Schema"
import type { Kind } from "../model/Entry.ts"
import * as humanise from "./humanise.ts"
import type { ScreenShape } from "./screen.ts"
import { rootWords } from "./workspaceRoot.ts"

// Escapes the control characters in file names and contents. In a terminal, these characters could move the cursor, change the
// title or reverse the text direction.

/** The unsafe characters: C0 except tab and line feed, DEL, C1, line and paragraph separators, and direction marks. */
const unsafeCharacters = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const unsafeInName = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escaped = (character: string): string => {
  const code = character.charCodeAt(0)
  if (code === 9) return "\\t"
  if (code === 10) return "\\n"
  if (code === 13) return "\\r"
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`
}

export const printableText = (text: string): string => text.replace(unsafeCharacters, escaped)

export const printableName = (name: string): string => name.replace(unsafeInName, escaped)

/**
 * Escapes the text of a file chunk by chunk. A CR at the end of a chunk is kept for the next chunk, which may begin with LF.
 */
export const printableLines = (): ((text: string, isLast: boolean) => string) => {
  let heldReturn = ""
  return (text, isLast) => {
    const all = heldReturn + text
    heldReturn = !isLast && all.endsWith("\r") ? "\r" : ""
    return printableText((heldReturn === "" ? all : all.slice(0, -1)).replaceAll("\r\n", "\n"))
  }
}

const unquotedArgument = /^[\w@%+=:,./-]+$/

export const quote = (argument: string): string => {
  const shown = printableName(argument)
  return unquotedArgument.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`
}

/**
 * A function that formats a command line, such as `fs-algebra stat 'a file'`. Its arguments are the words after the program's
 * name.
 */
export interface CommandLine {
  (...words: ReadonlyArray<string>): string
}

export const commandLine =
  (program: string, root: string): CommandLine =>
  (...words) =>
    [program, ...[...words, ...rootWords(root)].map(quote)].join(" ")

const inHunk = (look: TextStyle, line: string): string => {
  if (line.startsWith("@@")) return look.cyan(line)
  if (line.startsWith("+")) return look.green(line)
  return line.startsWith("-") ? look.red(line) : line
}

/** Colours a diff. Header lines are recognized by their position, because `--- x` in a hunk is the removed line `-- x`. */
export const paintDiff = (look: TextStyle, diff: string): string => {
  let isHead = true
  return look
    .lines(diff)
    .split("\n")
    .map((line) => {
      isHead &&= !line.startsWith("@@")
      return isHead ? look.bold(line) : inHunk(look, line)
    })
    .join("\n")
}

export const Change = Schema.Struct({
  _tag: Schema.Literals(["Added", "Modified", "Removed"]),
  path: Schema.String
})

export type Change = typeof Change.Type

const letters = { Added: "A", Modified: "M", Removed: "D" } as const

const colors = { Added: "green", Modified: "yellow", Removed: "red" } as const

/** Formats a path. The bytes of a name that is not valid text are in `path` as a NUL with hexadecimal digits. */
export const formatPath = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? name.slice(1).replace(/../g, String.raw`\x$&`) : name))
    .join("/")

export const formatChange = (look: TextStyle, { _tag, path }: Change): string =>
  `${look[colors[_tag]](letters[_tag])}\t${look.name(formatPath(path))}\n`

const maxShownChanges = 20

export const formatSomeChanges = (look: TextStyle, changes: ReadonlyArray<Change>, all: boolean): string => {
  const some = all || changes.length <= maxShownChanges + 1 ? changes : changes.slice(0, maxShownChanges)
  const rest = changes.length - some.length
  return (
    some.map((change) => formatChange(look, change)).join("") +
    (rest > 0 ? look.dim(`... and ${humanise.whole(rest)} more`) + "\n" : "")
  )
}

export const formatChangeCounts = (changes: ReadonlyArray<Change>): string => {
  const count = (tag: Change["_tag"]): number => changes.filter(({ _tag }) => _tag === tag).length
  return [
    [count("Added"), "added"],
    [count("Modified"), "changed"],
    [count("Removed"), "removed"]
  ]
    .filter(([number]) => number !== 0)
    .map(([number, what]) => `${humanise.whole(number as number)} ${what}`)
    .join(", ")
}

export interface TextStyle {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly cyan: (text: string) => string
  readonly magenta: (text: string) => string
  readonly name: (name: string) => string
  readonly text: (text: string) => string
  readonly lines: (text: string) => string
  readonly entry: (name: string, kind: Kind) => string
}

const unchanged = (text: string): string => text

const ansi =
  (colors: boolean) =>
  (open: string, close: string) =>
  (text: string): string =>
    !colors || text === "" ? text : `\u001b[${open}m${text}\u001b[${close}m`

/**
 * Returns the mark to print after a name, by kind of entry. In piped output only directories have a mark, a slash, because a
 * path may end with a slash.
 */
const kindMarks = (isTerminal: boolean): Readonly<Record<Kind, string>> => ({
  file: "",
  directory: "/",
  symlink: isTerminal ? "@" : "",
  other: isTerminal ? "=" : ""
})

const makeStyle = (colors: boolean, isTerminal: boolean): TextStyle => {
  const paint = ansi(colors)
  const name = isTerminal ? printableName : unchanged
  const mark = kindMarks(isTerminal)
  const paints: Readonly<Record<Kind, (text: string) => string>> = {
    file: unchanged,
    directory: paint("1;34", "22;39"),
    symlink: paint("36", "39"),
    other: paint("33", "39")
  }
  return {
    bold: paint("1", "22"),
    dim: paint("2", "22"),
    red: paint("31", "39"),
    green: paint("32", "39"),
    yellow: paint("33", "39"),
    cyan: paint("36", "39"),
    magenta: paint("35", "39"),
    name,
    text: isTerminal ? printableText : unchanged,
    lines: isTerminal ? (text) => printableText(text.replaceAll("\r\n", "\n")) : unchanged,
    entry: (text, kind) => paints[kind](name(text)) + mark[kind]
  }
}

export const styleFor = (screen: ScreenShape): TextStyle => makeStyle(screen.colors, screen.isTerminal)

/** Returns the style for standard error. Text on standard error is for people, even if the stream is redirected. */
export const errorStyle = (screen: ScreenShape): TextStyle => makeStyle(screen.errorColors, true)
