/**
 * Commands that we suggest are meant to be copied, so their arguments are quoted as a shell reads them.
 */
import { printableName } from "./printable.ts"

const plain = /^[\w@%+=:,./-]+$/

export const quote = (argument: string): string => {
  const shown = printableName(argument)
  return plain.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`
}

/** Makes `fs-algebra stat 'a file'` of the words after the program's name. */
export interface CommandLine {
  (...words: ReadonlyArray<string>): string
}

/** Command lines for the same program and the same root as this one. */
export const commandLine =
  (program: string, root: string): CommandLine =>
  (...words) =>
    [program, ...[...words, ...(root === "." ? [] : ["--root", root])].map(quote)].join(" ")
