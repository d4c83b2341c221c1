/** The laws in the chapters of the guide laws.md. */
import { laws } from "../../src/testing/Laws.ts"
import { rowsOf, sectionsOf } from "../documentation/markdown.ts"

export interface Check {
  readonly name: string
  /** The ids of the rules, separated by commas. */
  readonly ref: string
}

export interface Chapter {
  readonly title: string
  readonly checks: ReadonlyArray<Check>
}

/** The last check: random programs, compared with the model of the kit. */
export const randomPrograms = { name: "100 random programs agree with the model", ref: "model", runs: 100 }

const idsOf = (text: string): ReadonlySet<string> => new Set(rowsOf(text).map(([id]) => id!))

/** The chapters with their laws. A law belongs to the chapter of its first id. */
export const chapters: ReadonlyArray<Chapter> = [
  ...sectionsOf("src/guides/laws.md").flatMap(({ text, title }) => {
    const ids = idsOf(text)
    const checks = laws.filter(({ ref }) => ids.has(ref.split(", ")[0]!))
    return checks.length === 0 ? [] : [{ title, checks }]
  }),
  { title: "Random programs", checks: [randomPrograms] }
]

export const checks: ReadonlyArray<Check> = chapters.flatMap(({ checks }) => checks)
