/**
 * Random trees with many ignore files whose rules match names in the tree. The trees are so large that workers read most of
 * them.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pick } from "./trees.ts"

export type Next = () => number

const vocabulary = ["a", "b", "ab", "foo", "foobar", "bar", ".x", "é", "漢字", "a b", "A", "lib", "src", "d1", "d-2", "x.c"]
/** Names that rules must escape. */
const awkward = ["#a", "!b", "a*", "[a]", "a ", "b\\", "q?", "{a,b}"]
const endings = [".c", ".js", ".log", "", "", " ~"]

const escape = (text: string): string => text.replace(/[\\*?[\]#! ]/g, "\\$&")

const classes = ["[ab]", "[a-f]", "[!a]", "[^b]", "[]a]", "[a-]", "[\\]a]", "[abé]"]
const gitClasses = [...classes, "[[:alpha:]]", "[[:upper:][:digit:]]", "[z-a]", "[+-9]", "[[:foo:]]", "[", "[a"]
/** Character classes that git and ripgrep read alike, at the beginning of a segment, where none can match a slash. */
const sharedClasses = ["[ab]", "[a-f]", "[!a]", "[^b]", "[a-]"]

/** The rules of an ignore file: all of git's syntax, or the part that ripgrep reads in the same way. */
export type Dialect = "git" | "shared"

const segmentOf = (next: Next, dialect: Dialect): string => {
  const name = pick(next, vocabulary)
  const kind = Math.floor(next() * (dialect === "git" ? 14 : 10))
  if (kind < 3) return name
  if (kind === 3) return `${name}${pick(next, endings).trim()}`
  if (kind === 4) return `*${pick(next, endings).trim()}`
  if (kind === 5) return `${name.slice(0, 1)}*`
  if (kind === 6) return `${name.slice(0, 1)}?${name.slice(2)}`
  if (kind === 7) return `${pick(next, dialect === "git" ? classes : sharedClasses)}${name.slice(1)}${next() < 0.5 ? "*" : ""}`
  if (kind === 8) return `*${name.slice(-1)}*`
  if (kind === 9) return escape(pick(next, [...vocabulary, "#a", "!b", "a*"]))
  if (kind === 10) return escape(pick(next, awkward))
  if (kind === 11) return pick(next, awkward)
  if (kind === 12) return `${name.slice(0, 1)}${pick(next, gitClasses)}${name.slice(2)}`
  return pick(next, ["a**", "**b", "foo**", "***", "\\a", "\\", "a\\/b", "***"])
}

/** Rules that match everything. They must be rare, or too few paths are left to compare. */
const everything = ["*", "**", "/*", "*/", "/**", "**/*"]

const ruleOf = (next: Next, dialect: Dialect): string => {
  if (next() < 0.04) return pick(next, everything)
  const segments: Array<string> = []
  for (let left = pick(next, [1, 1, 1, 2, 2, 3]); left > 0; left--) segments.push(segmentOf(next, dialect))
  const where = next()
  if (where < 0.15) segments.unshift("**")
  else if (where < 0.25) segments.push("**")
  else if (where < 0.35 && segments.length > 1) segments.splice(1, 0, "**")
  return `${next() < 0.3 ? "/" : ""}${segments.join("/")}${next() < 0.2 ? "/" : ""}`
}

const lineOf = (next: Next, dialect: Dialect): string => {
  const kind = next()
  if (kind < 0.05) return ""
  if (kind < 0.1) return pick(next, ["# a comment", "#*", "#"])
  const rule = ruleOf(next, dialect)
  const after = next()
  const isEscaped = rule.endsWith("\\ ") || rule.endsWith("\\")
  const end = after < 0.1 && !(dialect === "shared" && isEscaped) ? pick(next, [" ", "   "]) : ""
  const strange = dialect === "git" && next() < 0.05 ? pick(next, ["\t", " \r", "//", "\\ ", "\\"]) : ""
  return `${next() < 0.35 ? "!" : ""}${rule}${end}${strange}`
}

export const rulesOf = (next: Next, dialect: Dialect, lines: number): string => {
  const mark = dialect === "git" && next() < 0.1 ? "\ufeff" : ""
  const end = next() < 0.25 ? "\r\n" : "\n"
  const all = Array.from({ length: lines }, () => lineOf(next, dialect))
  return mark + all.join(end) + (next() < 0.7 ? end : "")
}

/** The paths of a tree, relative to its root and unordered. */
export interface Tree {
  readonly directories: ReadonlyArray<string>
  readonly files: ReadonlyArray<string>
}

const under = (directory: string, name: string): string => (directory === "" ? name : `${directory}/${name}`)

/** Makes a random tree below an existing directory. `ignoring` is the list of possible names of its ignore files. */
export const growIgnoring = (
  root: string,
  next: Next,
  dialect: Dialect,
  ignoring: ReadonlyArray<string>,
  size = { directories: 900, files: 2500 }
): Tree => {
  const names = dialect === "git" ? [...vocabulary, ...awkward] : [...vocabulary, "#a", "!b", "a*"]
  const directories = [""]
  const taken = new Set<string>()
  while (directories.length < size.directories) {
    const path = under(pick(next, directories), `${pick(next, names)}${next() < 0.15 ? directories.length : ""}`)
    if (taken.has(path)) continue
    taken.add(path)
    directories.push(path)
    mkdirSync(join(root, path))
  }
  const files: Array<string> = []
  const write = (path: string, text: string): void => {
    if (taken.has(path)) return
    taken.add(path)
    files.push(path)
    writeFileSync(join(root, path), text)
  }
  for (let i = 0; i < size.files; i++) write(under(pick(next, directories), `${pick(next, names)}${pick(next, endings)}`), "")
  for (const [index, directory] of directories.entries()) {
    if (index > 0 && next() > 0.12) continue
    for (const name of ignoring) {
      if (next() < 0.8) write(under(directory, name), rulesOf(next, dialect, 1 + Math.floor(next() * 5)))
    }
  }
  return { directories: directories.slice(1), files }
}
