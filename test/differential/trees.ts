/**
 * Random trees on disk with content that is hard to search. The same seed gives the same tree. The trees are so large that
 * workers take part.
 */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Returns a generator of numbers from 0 to below 1 (mulberry32). */
export const random = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296
  }
}

export const pick = <A>(next: () => number, all: ReadonlyArray<A>): A => all[Math.floor(next() * all.length)]!

const directoryNames = [
  "src",
  "lib",
  "test",
  "a",
  "a-b",
  "A",
  "é",
  "漢字",
  "with space",
  "-dash",
  ".hidden",
  "node_modules",
  "x.ts",
  "\u{1F600}",
  "\uff5e"
]
const fileNames = ["index", "main", "a", "Z", "é", "漢", "\u{1F600}", "\uff5e", "with space", ".rc", "-v", "README"]
const endings = [".ts", ".js", ".tsx", ".json", ".md", "", ".TS"]

const words = [
  "return",
  "TODO",
  "Todo",
  "FIXME",
  "fixme",
  "Import",
  "import",
  "from",
  "foo",
  "foobar",
  "café",
  "naïve",
  "漢字",
  "\u{1F600}",
  "\u2028",
  "K",
  "\u212a",
  "ſ",
  "aaaa",
  "x1",
  "_y",
  "\t",
  "\r",
  "..",
  "a.b"
]

const line = (next: () => number): string => {
  let text = ""
  for (let left = Math.floor(next() * 7); left > 0; left--) text += `${pick(next, words)}${next() < 0.8 ? " " : ""}`
  return text
}

const textOf = (next: () => number): string => {
  const end = pick(next, ["\n", "\n", "\r\n"])
  let text = next() < 0.1 ? "\ufeff" : ""
  for (let left = Math.floor(next() * 12); left > 0; left--) text += line(next) + (next() < 0.95 ? end : "\n")
  return text + (next() < 0.5 ? line(next) : "")
}

/** Returns text, or rarely bytes that are not UTF-8, a NUL near the beginning or late, or a large content. */
const contentOf = (next: () => number): Buffer => {
  const kind = next()
  const text = Buffer.from(textOf(next))
  if (kind < 0.03) return Buffer.concat([text, Buffer.from([0xff, 0xfe, 0x0a]), text])
  if (kind < 0.05) return Buffer.concat([text, Buffer.from([0]), text])
  if (kind < 0.052) return Buffer.concat([Buffer.alloc(8192, "n"), Buffer.from("\nfoo \0 foo\n")])
  if (kind < 0.054)
    return Buffer.concat(Array.from({ length: 40 }, () => Buffer.concat([text, Buffer.alloc(30_000, "long line "), text])))
  return text
}

const rules = ["*.js", "!index.js", "/lib", "node_modules/", "a*", "**/test", "!/src/**", "# none", "é", "[A-Z]*"]

export interface Shape {
  readonly directories: number
  readonly files: number
  /** True to include links, and names that are not valid paths. */
  readonly strange: boolean
}

export const grow = (root: string, seed: number, { directories, files, strange }: Shape): void => {
  const next = random(seed)
  const all: Array<string> = [root]
  for (let i = 1; i < directories; i++) {
    const at = join(pick(next, all), `${pick(next, directoryNames)}${next() < 0.7 ? i : ""}`)
    mkdirSync(at, { recursive: true })
    all.push(at)
  }
  for (let i = 0; i < files; i++) {
    const name = `${pick(next, fileNames)}${next() < 0.8 ? i : ""}${pick(next, endings)}`
    const at = join(pick(next, all), name)
    if (!all.includes(at)) writeFileSync(at, contentOf(next))
  }
  for (let i = 0; i < directories / 20; i++) {
    const at = pick(next, all)
    const text = Array.from({ length: 3 }, () => pick(next, rules)).join("\n")
    writeFileSync(join(at, next() < 0.7 ? ".gitignore" : ".ignore"), text)
  }
  if (!strange) return
  for (let i = 0; i < 20; i++) {
    const at = pick(next, all)
    writeFileSync(Buffer.concat([Buffer.from(`${at}/foo${i}`), Buffer.from([0xff, 0x41])]), "foo")
    writeFileSync(join(at, `con\ntrol${i}`), "foo")
    symlinkSync(next() < 0.5 ? root : "/etc/passwd", join(at, `link${i}`))
    mkdirSync(Buffer.concat([Buffer.from(`${at}/d${i}`), Buffer.from([0xc3])]), { recursive: true })
    writeFileSync(Buffer.concat([Buffer.from(`${at}/d${i}`), Buffer.from([0xc3]), Buffer.from("/inside")]), "foo")
  }
}
