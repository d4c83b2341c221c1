/**
 * Rewrites arguments to the form `--flag=value`, so that effect/cli parses the arguments as users expect. Users write `-C2` for
 * `-C 2`, expect `--old -x` to take `-x` as its value, and expect `-i 1` to search for 1. In effect/cli a boolean flag may take
 * the next word as its value, and no flag takes a word that begins with a dash. This module also replaces flags of similar
 * tools.
 */
import type { CommandDescriptor, FlagDescriptor } from "effect/cli/Completions"

// Replaces or drops flags that users know from other tools, even within a cluster of letters. If the Unix command of the same
// name gives `-v` or `-h` another meaning, the letter does not print the version or the help. Otherwise a pipe could receive
// the help in place of a result.

/** The flags of other tools, by command. Each value is the name of our flag, or `""` if the flag describes the default. */
export const foreignFlags: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ls: { a: "", all: "", A: "", "almost-all": "", h: "", "human-readable": "", "1": "" },
  tree: { a: "", h: "" },
  grep: {
    n: "",
    "line-number": "",
    r: "",
    R: "",
    recursive: "",
    E: "",
    "extended-regexp": "",
    P: "",
    "perl-regexp": "",
    H: "",
    "with-filename": "",
    I: "",
    include: "glob",
    "exclude-dir": "exclude",
    "fixed-strings": "literal",
    "word-regexp": "word",
    "files-with-matches": "files",
    "max-count": "max",
    // This grep has neither of these two flags. The error message names their long forms.
    v: "invert-match",
    h: "no-filename"
  },
  mkdir: { v: "", verbose: "" },
  cp: { r: "", R: "", recursive: "", force: "overwrite", v: "", verbose: "" },
  mv: { force: "overwrite", v: "", verbose: "" },
  rm: { R: "recursive", force: "missing-ok", v: "", verbose: "" }
}

export const sharedForeignFlags: Readonly<Record<string, string>> = { "no-color": "color=never" }

export const foreignCommands: ReadonlyMap<string, string> = new Map([
  ["dir", "ls"],
  ["ll", "ls --long"],
  ["less", "cat FILE"],
  ["more", "cat FILE"],
  ["head", "cat --lines :10 FILE"],
  ["tail", "cat FILE | tail"],
  ["find", "glob '*.ts'"],
  ["fd", "glob '*.ts'"],
  ["rg", "grep PATTERN"],
  ["touch", "write FILE --mode append --text ''"],
  ["sed", "edit FILE --old TEXT --new TEXT"],
  ["rename", "mv FROM TO"],
  ["rmdir", "rm DIR"],
  ["undo", "restore"]
])

const booleanLiterals: ReadonlySet<string> = new Set(["true", "1", "y", "yes", "on", "false", "0", "n", "no", "off"])

const isBoolean = (flag: FlagDescriptor): boolean => flag.type._tag === "Boolean"

interface Flags {
  readonly long: ReadonlyMap<string, FlagDescriptor>
  readonly short: ReadonlyMap<string, FlagDescriptor>
  readonly negations: ReadonlyMap<string, FlagDescriptor>
  readonly other: ReadonlyMap<string, string>
}

const flagsOf = (command: CommandDescriptor): Flags => ({
  long: new Map(command.flags.map((flag) => [flag.name, flag])),
  short: new Map(command.flags.flatMap((flag) => flag.aliases.map((alias) => [alias.replace(/^-+/, ""), flag] as const))),
  negations: new Map(
    command.flags.filter(isBoolean).flatMap((flag) => {
      const { name, negation } = flag
      return [`no-${name}`, ...(typeof negation === "string" ? [negation] : [])].map((no) => [no, flag] as const)
    })
  ),
  other: new Map([...Object.entries(sharedForeignFlags), ...Object.entries(foreignFlags[command.name] ?? {})])
})

const isKnown = (flags: Flags, word: string): boolean =>
  word === "--" || (word.startsWith("--") ? flags.long.has(word.slice(2).split("=")[0]!) : flags.short.has(word.slice(1, 2)))

/** The rewritten words, and the last flag if the next word may be its value. */
type RewrittenWords = readonly [words: ReadonlyArray<string>, last?: FlagDescriptor | undefined]

/** Rewrites a cluster of short flags: `-inC2` of grep becomes `-iC=2`, because `-n` describes the default. */
const rewriteCluster = (word: string, flags: Flags): RewrittenWords => {
  const words: Array<string> = []
  let keptLetters = "-"
  let last: FlagDescriptor | undefined
  const all = (end: string): ReadonlyArray<string> => [...words, ...(keptLetters + end === "-" ? [] : [keptLetters + end])]
  for (let i = 1; i < word.length; i++) {
    const letter = word[i]!
    const other = flags.other.get(letter)
    if (other === "") continue
    const flag = flags.short.get(letter) ?? flags.long.get(other ?? "")
    if (flag === undefined && other !== undefined) {
      words.push(`--${other}`)
      continue
    }
    if (flag === undefined || word[i + 1] === "=") return [all(word.slice(i))]
    if (!isBoolean(flag) && i < word.length - 1) return [all(`${letter}=${word.slice(i + 1)}`)]
    keptLetters += other === undefined ? letter : flag.aliases[0]!
    last = flag
  }
  return [all(""), last]
}

const long = (arg: string, flags: Flags): RewrittenWords => {
  const [name, ...value] = arg.slice(2).split("=")
  const other = flags.other.get(name!)
  if (other === "") return [[]]
  const word = other === undefined ? arg : [`--${other}`, ...value].join("=")
  const negated = flags.negations.get(word.slice(2))
  return negated === undefined ? [[word], flags.long.get(word.slice(2))] : [[`--${negated.name}=false`]]
}

const isNumber = /^-[\d.]/

const isFlag = (arg: string, flags: Flags): boolean =>
  arg.startsWith("-") && arg !== "-" && (!isNumber.test(arg) || flags.other.has(arg[1]!))

const rewriteFlag = (
  flags: Flags,
  args: ReadonlyArray<string>,
  index: number
): readonly [words: ReadonlyArray<string>, taken: number, open?: FlagDescriptor | undefined] => {
  const arg = args[index]!
  const next = args[index + 1]
  const [words, flag] = arg.startsWith("--") ? long(arg, flags) : rewriteCluster(arg, flags)
  if (flag === undefined || isBoolean(flag) || next === undefined) return [words, 1, flag]
  const attached = [...words.slice(0, -1), `${words.at(-1)}=${next}`]
  if (flag.optionalValue === true) {
    const isValue = flag.type._tag === "Choice" && flag.type.values.includes(next)
    return isValue ? [attached, 2] : [words, 1]
  }
  if (next.startsWith("-") && next !== "-") return isKnown(flags, next) ? [words, 1] : [attached, 2]
  return [[...words, next], 2]
}

export const normaliseArguments = (program: CommandDescriptor, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const out: Array<string> = []
  const help: Array<string> = []
  let command = program
  let flags = flagsOf(program)
  let isSwitchOpen = false
  for (let index = 0; index < args.length;) {
    const arg = args[index]!
    if (arg === "--") return [...out, ...help, ...args.slice(index)]
    if (isFlag(arg, flags)) {
      const [words, consumedCount, open] = rewriteFlag(flags, args, index)
      out.push(...words)
      if (words.length > 0) isSwitchOpen = open !== undefined && isBoolean(open)
      index += consumedCount
      continue
    }
    index++
    const sub = command.subcommands.find(({ name }) => name === arg)
    if (sub !== undefined) {
      command = sub
      flags = flagsOf(sub)
    } else if (arg === "help" && command.subcommands.length > 0) {
      help.push("--help")
      continue
    }
    if (isSwitchOpen && booleanLiterals.has(arg.toLowerCase())) out.push(`${out.pop()}=true`)
    isSwitchOpen = false
    out.push(arg)
  }
  return [...out, ...help]
}
