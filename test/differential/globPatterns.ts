/** Random globs that are likely to match: paths of a tree with some parts replaced by wildcards. */
import { pick } from "./trees.ts"

/** The syntax of a glob: all of picomatch, or the part that ripgrep or git reads in the same way. */
export type Dialect = "picomatch" | "ripgrep" | "git"

type Next = () => number

const escape = (text: string): string => text.replace(/[\\*?[\]{}()!+@|]/g, "\\$&")

const at = (next: Next, text: string): number => Math.floor(next() * text.length)

const put = (name: string, index: number, sign: string): string =>
  escape(name.slice(0, index)) + sign + escape(name.slice(index + 1))

const isPlain = (sign: string): boolean => /[A-Za-z0-9]/.test(sign)

/** Returns a pattern with syntax that only picomatch has. */
const rare = (next: Next, name: string, other: string): string => {
  const [one, two] = [escape(name), escape(other)]
  return pick(next, [
    `@(${one}|${two})`,
    `!(${two})`,
    `!(${one})`,
    `!(${two})*`,
    `*!(${two})`,
    `+(${one})`,
    `?(${two})${one}`,
    `*(${one}|${two})`,
    `+(?|${two})*`,
    `{${one},}`,
    `{,${one}}*`,
    `{${one},{${two},*${one}}}`,
    put(name, at(next, name), "[!q]"),
    put(name, at(next, name), "[^a-c]"),
    put(name, at(next, name), "[[:alpha:]]"),
    `${one}**`,
    `**${one}`,
    `{1..3}*`,
    `(${one}|${two})`,
    one.replace(/^./, (sign) => (isPlain(sign) ? `[${sign}-${sign}]` : sign))
  ])
}

const segmentOf = (next: Next, name: string, other: string, dialect: Dialect): string => {
  const index = at(next, name)
  const sign = name[index]!
  const kind = Math.floor(next() * (dialect === "picomatch" ? 18 : dialect === "ripgrep" ? 13 : 12))
  if (kind < 4) return escape(name)
  if (kind === 4) return "*"
  if (kind === 5) return `${escape(name.slice(0, index))}*`
  if (kind === 6) return `*${escape(name.slice(index))}`
  if (kind === 7) return put(name, index, "?")
  if (kind === 8) return isPlain(sign) ? put(name, index, `[${sign}xy]`) : "*"
  if (kind === 9) return isPlain(sign) ? put(name, index, pick(next, ["[a-z]", "[a-zA-Z0-9]", "[A-Z]"])) : "?*"
  if (kind === 10) return `*${escape(name.slice(index, index + 2))}*`
  if (kind === 11) return `${escape(name.slice(0, 1))}*${escape(name.slice(-1))}`
  if (kind === 12) return `{${escape(name)},${escape(other)}}`
  return rare(next, name, other)
}

/** Returns a random glob. Each `**` is a segment of its own; other wildcards stay within one segment. */
export const globOf = (next: Next, paths: ReadonlyArray<string>, dialect: Dialect): string => {
  const names = pick(next, paths).split("/")
  const others = pick(next, paths).split("/")
  const segments = names.map((name) => segmentOf(next, name, pick(next, others), dialect))
  const shape = next()
  if (shape < 0.3) return segments.at(-1)!
  if (shape < 0.6) segments.splice(at(next, names.join("")) % segments.length, Math.floor(next() * 3), "**")
  else if (shape < 0.75) segments.splice(0, Math.floor(next() * segments.length), "**")
  else if (shape < 0.85) segments.splice(1 + Math.floor(next() * segments.length), segments.length, "**")
  else if (dialect === "ripgrep" && next() < 0.3) return `{${escape(names.join("/"))},${escape(others.join("/"))}}`
  const lead = next() < 0.2 ? "/" : dialect === "picomatch" && next() < 0.1 ? "./" : ""
  return `${lead}${segments.join("/")}${dialect === "picomatch" && next() < 0.08 ? "/" : ""}`
}
