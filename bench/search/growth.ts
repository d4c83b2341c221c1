/** Asks the same questions on trees of three sizes, to show what grows with the tree. */
import { writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { draw } from "./chart.ts"
import { isOurs } from "./peer.ts"
import type { Result, Row } from "./result.ts"
import * as Tables from "./tables.ts"

const sizes = [10_000, 100_000, 300_000]
const asked = new Set(["walk-all", "glob-ts", "grep-rare", "grep-import"])

/** Three times as many files may take this many times as long. */
const linear = 3.3
/** The MiB by which a stream's memory may differ between the smallest and the largest tree. */
const flat = 100

/** Runs a table with all of its peers, or only some. */
export type Run = (
  table: Tables.Table,
  files: number,
  tree: "flat" | "real",
  ...ids: ReadonlyArray<string>
) => Result | undefined

const per = (value: number | undefined, other: number | undefined): string =>
  value === undefined || other === undefined ? "–" : (value / other).toFixed(2)

const cell = (value: number | undefined): string => value?.toFixed(0) ?? "–"

const verdict = (held: boolean | undefined): string => (held === undefined ? "not measured" : held ? "held" : "**MISSED**")

const grew = (id: string, rows: ReadonlyArray<Row | undefined>): string => {
  const [small, middle, big] = rows.map((row) => row?.timing?.median)
  const memory = rows.map((row) => row?.memory)
  const time = middle === undefined || big === undefined ? undefined : big / middle <= linear
  const mine = isOurs({ id })
  const [least, largest] = [memory[0], memory[2]]
  const stays = least === undefined || largest === undefined ? undefined : largest - least <= flat
  const cells = [
    ...[small, middle, big].map(cell),
    per(middle, small),
    per(big, middle),
    mine ? verdict(time) : "",
    ...memory.map(cell)
  ]
  return `| ${rows.find((row) => row !== undefined)?.name} | ${cells.join(" | ")} | ${id === "ours-stream" ? verdict(stays) : ""} |`
}

const head = [
  `| | 10 k ms | 100 k ms | 300 k ms | 100 k ÷ 10 k | 300 k ÷ 100 k | ≤ ${linear} | 10 k MB | 100 k MB | 300 k MB | ≤ ${flat} MB more |`,
  "|---|--:|--:|--:|--:|--:|---|--:|--:|--:|---|"
]

export const grown = (run: Run, progress: (text: string) => void, report: string): string => {
  const tables = Tables.all(false).filter(({ id }) => asked.has(id))
  const sections = tables.map((table) => {
    const results = sizes.map((files) => {
      progress(`${table.id}, ${files} files`)
      return run(table, files, "flat", Tables.baseline, "ours", "ours-stream")
    })
    const ids = [...new Set(results.flatMap((result) => result?.rows.map(({ id }) => id) ?? []))]
    const rowsOf = (id: string) => results.map((result) => result?.rows.find((row) => row.id === id))
    const bars = ids.flatMap((id) =>
      rowsOf(id).flatMap((row, index) =>
        row?.timing === undefined
          ? []
          : [
              {
                name: `${row.name}: ${sizes[index]! / 1000} k`,
                ms: row.timing.median,
                min: row.timing.min,
                max: row.timing.max,
                ratio: `${((row.timing.median * 1000) / sizes[index]!).toFixed(1)} µs a file`,
                kind: isOurs({ id }) ? ("ours" as const) : ("other" as const)
              }
            ]
      )
    )
    const picture = `${basename(report, ".md")}-${table.id}.svg`
    writeFileSync(
      join(dirname(report), picture),
      draw(`${table.title.replaceAll(/[`\\]/g, "")} as the tree grows`, bars, Number.POSITIVE_INFINITY)
    )
    const wrong = results
      .flatMap((result) => result?.rows.flatMap((row) => row.wrong) ?? [])
      .map((text) => `- **differs:** ${text}`)
    return [
      `## ${table.title}`,
      "",
      ...wrong,
      `![${table.id}](${picture})`,
      "",
      ...head,
      ...ids.map((id) => grew(id, rowsOf(id))),
      ""
    ].join("\n")
  })
  return sections.join("\n")
}
