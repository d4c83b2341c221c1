import { printableName } from "./printable.ts"

const unquotedArgument = /^[\w@%+=:,./-]+$/

export const quote = (argument: string): string => {
  const shown = printableName(argument)
  return unquotedArgument.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`
}

/** Formats the words after the program's name, such as `fs-algebra stat 'a file'`. */
export interface CommandLine {
  (...words: ReadonlyArray<string>): string
}

export const commandLine =
  (program: string, root: string): CommandLine =>
  (...words) =>
    [program, ...[...words, ...(root === "." ? [] : ["--root", root])].map(quote)].join(" ")
