/** A small Markdown reader for tests: fences, headings with their anchors, and tables. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

/** The documents, relative to the project. */
export const documents: ReadonlyArray<string> = [
  "README.md",
  ".github/AGENTS.md",
  ".github/CHANGELOG.md",
  ...readdirSync(join(root, "src/guides"), { encoding: "utf8", recursive: true })
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => `src/guides/${name}`)
]

export const textOf = (document: string): string => readFileSync(join(root, document), "utf8")

export interface Fence {
  readonly document: string
  /** The number of the first line of the body, counted from 1. */
  readonly line: number
  readonly language: string
  readonly body: string
}

export const fencesOf = (document: string): ReadonlyArray<Fence> => {
  const text = textOf(document)
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(({ 1: language, 2: body, index }) => ({
    document,
    line: text.slice(0, index).split("\n").length + 1,
    language: language!,
    body: body!
  }))
}

/** Returns the document without fences, which hold no headings, links or rows. */
export const proseOf = (document: string): string => textOf(document).replaceAll(/^```[^]*?^```$/gm, "")

export interface Section {
  readonly title: string
  readonly depth: number
  /** The text up to the next heading of any depth. */
  readonly text: string
}

export const sectionsOf = (document: string): ReadonlyArray<Section> => {
  const parts = proseOf(document).split(/^(#{1,6}) (.+)$/m)
  const sections: Array<Section> = []
  for (let at = 1; at < parts.length; at += 3) {
    sections.push({ title: parts[at + 1]!.trim(), depth: parts[at]!.length, text: parts[at + 2]! })
  }
  return sections
}

/**
 * Returns anchors as GitHub makes them: letters, digits, "_" and "-" stay, blanks become "-", repeated titles are
 * numbered.
 */
export const anchorsOf = (document: string): ReadonlySet<string> => {
  const counts = new Map<string, number>()
  return new Set(
    sectionsOf(document).map(({ title }) => {
      const anchor = title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "")
        .replaceAll(" ", "-")
      const seen = counts.get(anchor) ?? 0
      counts.set(anchor, seen + 1)
      return seen === 0 ? anchor : `${anchor}-${seen}`
    })
  )
}

const rule = /^\|[\s:|-]+\|$/

/** Returns the cells of each row, without the heads of the tables. */
export const rowsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = text.split("\n")
  return lines
    .filter((line, i) => line.startsWith("|") && !rule.test(line) && !rule.test(lines[i + 1] ?? ""))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim())
    )
}

/** Returns the texts in backticks. */
export const codeIn = (text: string): ReadonlyArray<string> => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!)

/** Returns the path of a guide, relative to the project. */
export const guide = (name: string): string => `src/guides/${name}.md`

/** Returns the rows of the table whose head begins with `first`, without the head. */
export const table = (markdown: string, first: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = markdown.split("\n")
  const head = lines.findIndex((line) => line.startsWith(`| ${first} |`))
  const end = head === -1 ? head : lines.findIndex((line, i) => i > head && !line.startsWith("|"))
  return rowsOf(lines.slice(Math.max(0, head), end === -1 ? undefined : end).join("\n"))
}
