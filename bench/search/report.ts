/** The parts of a report in Markdown: a table with its picture, and the list of all targets. */
import type { Bar } from "./chart.ts"
import { draw } from "./chart.ts"
import { isOurs } from "./peer.ts"
import type { Result, Row, Verdict } from "./result.ts"
import { medianOf, verdicts } from "./result.ts"
import type { Table } from "./tables.ts"
import { baseline } from "./tables.ts"

export interface Written {
  readonly markdown: string
  readonly picture: string
}

/** Returns the peer to which the ratios refer: the baseline, or the first one with a time. */
const baseOf = ({ rows }: Result): string | undefined =>
  (rows.find(({ id, timing }) => id === baseline && timing !== undefined) ?? rows.find(({ timing }) => timing !== undefined))
    ?.id

const time = (ms: number): string => (ms < 10 ? ms.toFixed(1) : ms.toFixed(0))

const cell = (value: number | undefined, digits = 0): string => (value === undefined ? "" : value.toFixed(digits))

const row = (result: Result, { id, memory, name, timing, wrong }: Row): string => {
  if (timing === undefined) return `| ${name} | ${wrong.length > 0 ? "wrong, not timed" : "–"} | | | | | | |`
  const base = medianOf(result, baseOf(result)!)!
  const bold = isOurs({ id }) ? "**" : ""
  const count = `${timing.samples}${timing.disturbed > 0 ? ` (${timing.disturbed} disturbed)` : ""}`
  const times = `${bold}${time(timing.median)}${bold} | ${time(timing.min)}–${time(timing.max)}`
  const rest = [(timing.median / base).toFixed(2), time(timing.cpuMs), cell(memory), cell(timing.firstMs, 1), count]
  return `| ${bold}${name}${bold} | ${times} | ${rest.join(" | ")} |`
}

const number = (value: number): string => value.toLocaleString("en")

const waits = ({ idle, rows }: Result): ReadonlyArray<string> => {
  const ours = rows.flatMap(({ delay, name }) =>
    delay === undefined ? [] : [`${name} ${delay.p99.toFixed(1)} / ${delay.max.toFixed(1)}`]
  )
  return ours.length === 0
    ? []
    : ["", `Event loop, p99 / longest in ms: idle ${idle.p99.toFixed(1)} / ${idle.max.toFixed(1)}, ${ours.join(", ")}.`]
}

const errors = ({ rows }: Result): ReadonlyArray<string> =>
  rows.flatMap(({ name, wrong }) => wrong.map((text) => `- **${name} answers something else:** ${text.replaceAll("\n", " ")}`))

const bars = (result: Result): ReadonlyArray<Bar> => {
  const base = baseOf(result)
  return result.rows.flatMap(({ id, name, timing }) =>
    timing === undefined
      ? []
      : [
          {
            name,
            ms: timing.median,
            min: timing.min,
            max: timing.max,
            ratio: `${(timing.median / medianOf(result, base!)!).toFixed(2)}×`,
            kind: isOurs({ id }) ? "ours" : id === base ? "baseline" : "other"
          }
        ]
  )
}

const size = ({ left, results, size: { bytes, directories, files } }: Result): string => {
  const tree = `${number(files)} files, ${number(directories)} directories, ${number(Math.round(bytes / 1e6))} MB`
  return `${tree}; ${number(results)} results${left > 0 ? ` (compared without ${left} files that are not text)` : ""}.`
}

export const section = (table: Table, result: Result, picture: string): Written => ({
  markdown: [
    `### ${table.title}`,
    "",
    size(result),
    "",
    ...(errors(result).length === 0 ? [] : [...errors(result), ""]),
    `![${table.id}](${picture})`,
    "",
    "| | median ms | min–max | × base | CPU ms | MB | first ms | samples |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
    ...result.rows.map((one) => row(result, one)),
    ...waits(result),
    ""
  ].join("\n"),
  picture: draw(`${table.title.replaceAll(/[`\\]/g, "")}: ${number(result.size.files)} files`, bars(result))
})

export interface Judged extends Verdict {
  readonly table: string
}

export const judged = (table: Table, result: Result): ReadonlyArray<Judged> =>
  verdicts(result, table).map((verdict) => ({ ...verdict, table: table.id }))

export const targets = (all: ReadonlyArray<Judged>): string =>
  [
    "| table | target | bound | measured | |",
    "|---|---|--:|--:|---|",
    ...all.map(
      ({ bound, held, measured, table, what }) =>
        `| ${table} | ${what} | ${bound} | ${measured} | ${held ? "held" : "**MISSED**"} |`
    ),
    "",
    `${all.filter(({ held }) => held).length} of ${all.length} held.`,
    ""
  ].join("\n")
