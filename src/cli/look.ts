/** Formats text for a terminal: adds colours, and escapes control characters in names. Piped output is bare data. */
import type { Kind } from "../model/Entry.ts"
import { printableName, printableText } from "./printable.ts"
import type { ScreenShape } from "./screen.ts"

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
  /** Formats a name in the colour of its kind; a directory ends in a slash. */
  readonly entry: (name: string, kind: Kind) => string
}

const unchanged = (text: string): string => text

const ansi =
  (colors: boolean) =>
  (open: string, close: string) =>
  (text: string): string =>
    !colors || text === "" ? text : `\u001b[${open}m${text}\u001b[${close}m`

/** Returns the marks after names. In piped output only the slash is used, because it can be part of the path. */
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

/** Returns the look for standard error, which people read even if it is redirected. */
export const errorStyle = (screen: ScreenShape): TextStyle => makeStyle(screen.errorColors, true)
