/** The lines of the corpora, similar enough to source code and logs that a search has as much work as on real ones. */
import type { Random } from "./random.ts"

const words = "alpha beta cache delta entry field graph handler index job key layer module node option parser query".split(" ")
const longer =
  "resolveModuleName createDefaultHandler normalizeAbsolutePath collectTransitiveEntries invalidateCachedResult".split(" ")
const services = ["auth", "billing", "gateway", "search", "storage"]

/** Occurs in one of `rare` files, or in one line of a large one. */
export const needle = "ZQX_needle"
const rare = 10_000

const statement = (random: Random): string => {
  const [a, b, c] = [random.pick(words), random.pick(words), random.pick(longer)]
  const number = random.below(1000)
  const forms = [
    `  const ${a}${number} = ${b}.${c}(${number})`,
    `  if (${a} !== undefined && ${b}.length > ${number}) {`,
    `    ${a}.set("${b}", ${c}(${a}, ${b}))`,
    "  }",
    `export function ${a}${c[0]!.toUpperCase()}${c.slice(1)}(${a}: string, ${b}: number) {`,
    "}",
    "",
    `  // the ${a} of a ${b} is kept until its ${random.pick(words)} is gone`,
    `  for (const ${a} of ${b}s) ${c}(${a}, ${number})`,
    `  ${a}: { ${b}: "${c}", count: ${number} },`
  ]
  if (random.oneIn(12)) return `  return ${a}.${c}(${b})`
  if (random.oneIn(300)) return `  // TODO: ${b} when ${a} has changed`
  if (random.oneIn(450)) return `  // ${random.pick(["FIXME", "fixme", "Fixme"])} ${c} forgets its ${a}`
  if (random.oneIn(600)) return `  throw new ${a[0]!.toUpperCase()}${a.slice(1)}LoError("${b}")`
  return random.pick(forms)
}

const logLine = (random: Random): string => {
  const [hour, minute, second] = [random.below(24), random.below(60), random.below(60)].map((n) => `${n}`.padStart(2, "0"))
  const head = `2026-03-14T${hour}:${minute}:${second}.${random.below(1000)}Z`
  const from = `[${random.pick(services)}-${random.below(32)}]`
  const request = `request=${random.below(1e9).toString(36)} path=/api/${random.pick(words)}/${random.below(1e6)}`
  if (random.oneIn(400)) return `${head} ERROR ${from} ${request} upstream timeout after ${random.below(60_000)}ms`
  if (random.oneIn(100)) return `${head} ERROR ${from} ${request} connection refused`
  return `${head} INFO ${from} ${request} status=200 duration=${random.below(900)}ms bytes=${random.below(90_000)}`
}

const many = (random: Random, count: number, line: (random: Random) => string): ReadonlyArray<string> =>
  Array.from({ length: count }, () => line(random))

/** Generates texts like source code of 1 to 8 KB, from lines that are made once. */
export const sources = (random: Random): ((index: number) => string) => {
  const lines = many(random, 8192, statement)
  const header = (): string => {
    let text = ""
    if (random.oneIn(4)) return text
    for (let i = 1 + random.below(8); i > 0; i--) text += `import { ${random.pick(words)} } from "./${random.pick(words)}"\n`
    return text
  }
  return (index) => {
    let text = header()
    const size = 1024 + random.below(6600)
    while (text.length < size) text += `${random.pick(lines)}\n`
    return index % rare === rare / 2 ? `${text}// ${needle} ${index}\n` : text
  }
}

const foreign = ["naïve café, déjà vu", "漢字とかな", "Grüße aus Köln", "🦀 and 🧵 in one line", "Ελληνικά", "русский текст"]

/** Generates texts like source code, with a fifth of the lines not in ASCII. */
export const unicodeSources = (random: Random): ((index: number) => string) => {
  const plain = sources(random)
  return (index) =>
    plain(index)
      .split("\n")
      .map((line) => (random.oneIn(5) ? `${line} // ${random.pick(foreign)}` : line))
      .join("\n")
}

/** Generates blocks of a log of about a MiB each, from lines that are made once. */
export const logs = (random: Random): (() => string) => {
  const stock = many(random, 30_000, logLine)
  return () => {
    const lines: Array<string> = []
    for (let length = 0; length < 1024 * 1024; length += lines.at(-1)!.length + 1) lines.push(random.pick(stock))
    return `${lines.join("\n")}\n`
  }
}
