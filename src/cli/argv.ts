/**
 * Fingers know how arguments are read: `-C2` is `-C 2`, `--old -x` takes what follows, and `-i 1` looks for 1. effect/cli reads
 * these otherwise (a flag may take the word after it for its yes or no, and never takes one with a dash), so they are written out in
 * the one form that both read alike, `--flag=value`, before it sees them.
 */
import type { CommandDescriptor, FlagDescriptor } from "effect/cli/Completions"

const literals: ReadonlySet<string> = new Set(["true", "1", "y", "yes", "on", "false", "0", "n", "no", "off"])

const isBoolean = (flag: FlagDescriptor): boolean => flag.type._tag === "Boolean"

interface Flags {
  readonly long: ReadonlyMap<string, FlagDescriptor>
  readonly short: ReadonlyMap<string, FlagDescriptor>
}

const flagsOf = (command: CommandDescriptor): Flags => ({
  long: new Map(command.flags.map((flag) => [flag.name, flag])),
  short: new Map(command.flags.flatMap((flag) => flag.aliases.map((alias) => [alias.replace(/^-+/, ""), flag] as const)))
})

const isKnown = (flags: Flags, word: string): boolean =>
  word === "--" || (word.startsWith("--") ? flags.long.has(word.slice(2).split("=")[0]!) : flags.short.has(word.slice(1, 2)))

/** `-inC2` is `-inC=2`; answers the last flag of the word, too, when that still waits for a value. */
const cluster = (word: string, flags: Flags): readonly [word: string, last: FlagDescriptor | undefined] => {
  for (let i = 1; i < word.length; i++) {
    const flag = flags.short.get(word[i]!)
    if (flag === undefined || word[i + 1] === "=") return [word, undefined]
    if (i === word.length - 1) return [word, flag]
    if (!isBoolean(flag)) return [`${word.slice(0, i + 1)}=${word.slice(i + 1)}`, undefined]
  }
  return [word, undefined]
}

const isNumber = /^-[\d.]/

/** The words of one flag, which stands at `index`, and how many of `args` they are. */
const written = (
  flags: Flags,
  args: ReadonlyArray<string>,
  index: number
): readonly [words: ReadonlyArray<string>, taken: number] => {
  const arg = args[index]!
  const next = args[index + 1]
  const negated = arg.startsWith("--no-") ? flags.long.get(arg.slice(5)) : undefined
  if (negated !== undefined && isBoolean(negated)) return [[`--${negated.name}=false`], 1]
  const [word, flag] = arg.startsWith("--") ? ([arg, flags.long.get(arg.slice(2))] as const) : cluster(arg, flags)
  if (flag === undefined || next === undefined) return [[word], 1]
  if (isBoolean(flag)) return [[literals.has(next.toLowerCase()) ? `${word}=true` : word], 1]
  if (next.startsWith("-") && next !== "-") return isKnown(flags, next) ? [[word], 1] : [[`${word}=${next}`], 2]
  return [[word, next], 2]
}

export const normalise = (program: CommandDescriptor, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const out: Array<string> = []
  let command = program
  let flags = flagsOf(program)
  for (let index = 0; index < args.length;) {
    const arg = args[index]!
    if (arg === "--") return [...out, ...args.slice(index)]
    if (arg.startsWith("-") && arg !== "-" && !isNumber.test(arg)) {
      const [words, taken] = written(flags, args, index)
      out.push(...words)
      index += taken
      continue
    }
    const sub = command.subcommands.find(({ name }) => name === arg)
    if (sub !== undefined) {
      command = sub
      flags = flagsOf(sub)
    }
    out.push(arg)
    index++
  }
  return out
}
