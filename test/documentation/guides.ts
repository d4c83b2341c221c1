/** The guides as data: programs, which are files of this repository or compiled by their test, and rows of tables. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export const guide = (name: string): string => join(root, "src", "guides", `${name}.md`)

export const readGuide = (name: string): string => readFileSync(guide(name), "utf8")

export const writeGuide = (name: string, text: string): void => writeFileSync(guide(name), text)

/** Returns the TypeScript programs of a guide, in order. */
export const programs = (markdown: string): ReadonlyArray<string> =>
  [...markdown.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, body]) => body!)

/** Returns a file of this repository as a user of the package would write it. */
export const published = (file: string): string =>
  readFileSync(join(root, file), "utf8")
    .replaceAll(/"(?:\.\.\/)+src\/index\.ts"/g, '"fs-algebra"')
    .replaceAll(/"(?:\.\.\/)+src\/testing\/index\.ts"/g, '"fs-algebra/testing"')

/** Returns the rows of the table whose head begins with `first`, without the head. */
export const table = (markdown: string, first: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = markdown.split("\n")
  const at = lines.findIndex((line) => line.startsWith(`| ${first} |`))
  const body = at === -1 ? [] : lines.slice(at + 2)
  const end = body.findIndex((line) => !line.startsWith("|"))
  return body.slice(0, end === -1 ? undefined : end).map((line) =>
    line
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim())
  )
}
