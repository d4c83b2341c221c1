/** `npm run bench -- search` runs the tables, each in its own process, and writes the report. */
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus, loadavg, totalmem } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import * as Corpus from "./corpus.ts"
import * as Growth from "./growth.ts"
import type { Judged } from "./report.ts"
import { judged, section, targets } from "./report.ts"
import type { Result } from "./result.ts"
import * as Tables from "./tables.ts"

const sizes: Readonly<Record<string, number>> = { "10k": 10_000, "30k": 30_000, "100k": 100_000, "300k": 300_000, real: 0 }

const usage = `npm run bench -- search [--size ${Object.keys(sizes).join("|")}] [--only ${Tables.groups.join("|")}|TABLE]... [--report FILE]
npm run bench -- search --growth [--report FILE]
npm run bench -- search --clean`

const one = fileURLToPath(new URL("one.ts", import.meta.url))

/** Returns the last line of our own process, or nothing if it failed and printed the reason itself. */
const answered = (options: ReadonlyArray<string>, ...args: ReadonlyArray<string>): unknown => {
  const child = spawnSync(process.execPath, ["--expose-gc", ...options, one, ...args], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 3_600_000
  })
  return child.status === 0 ? JSON.parse(child.stdout.trim().split("\n").pop()!) : undefined
}

/** Runs one process for the times, then one for the memory of each correct peer that works in its own process. */
const run: Growth.Run = (table, files, tree, ...ids) => {
  const result = answered(["--max-old-space-size=12288"], table.id, `${files}`, tree, "time", ...ids) as Result | undefined
  if (result === undefined) return undefined
  const inside = (id: string) => !/^(npm-)?rg1?$/.test(id)
  const rows = result.rows.map((row) => {
    const memory =
      row.timing !== undefined && inside(row.id) ? answered([], table.id, `${files}`, tree, "memory", row.id) : undefined
    return typeof memory === "number" ? { ...row, memory } : row
  })
  return { ...result, rows }
}

const progress = (text: string): void => void process.stderr.write(`${text}\n`)

const heading = (title: string): string => {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "?"}, ${Math.round(totalmem() / 1e9)} GB`
  const load = `load ${loadavg()[0]!.toFixed(1)} at the start`
  return [
    `# ${title}`,
    "",
    `Node ${process.version} on ${process.platform}, ${machine}, ${load}; ${new Date().toISOString().slice(0, 16)}Z.`,
    "Medians of interleaved samples with a warm cache; how to read the columns is in bench/README.md. Compare only within a run.",
    ""
  ].join("\n")
}

const publish = (report: string, markdown: string): void => {
  writeFileSync(report, markdown)
  console.log(markdown)
  progress(`written to ${report}`)
}

const measured = (size: string, only: ReadonlyArray<string>, report: string): boolean => {
  const tree = size === "real" ? "real" : "flat"
  const tables = Tables.all(tree === "real").filter(
    ({ group, id }) => only.length === 0 || only.includes(group) || only.includes(id)
  )
  const start = heading(`Searches, ${tree === "real" ? "the project's own node_modules" : `${size} files`}`)
  const sections: Array<string> = []
  const all: Array<Judged> = []
  let right = true
  for (const table of tables) {
    progress(`${table.id}: ${table.title}`)
    const result = run(table, sizes[size]!, tree)
    const picture = `${basename(report, ".md")}-${table.id}.svg`
    right &&= result !== undefined && result.rows.every(({ wrong }) => wrong.length === 0)
    if (result === undefined) {
      sections.push(`### ${table.title}\n\n**failed; see the output of the run**\n`)
      continue
    }
    const written = section(table, result, picture)
    writeFileSync(join(dirname(report), picture), written.picture)
    sections.push(written.markdown)
    all.push(...judged(table, result))
  }
  publish(report, [start, "## Tables", "", ...sections, "## Targets", "", targets(all)].join("\n"))
  return right && all.every(({ held }) => held)
}

export const search = (args: ReadonlyArray<string>): number => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      size: { type: "string", default: "30k" },
      only: { type: "string", multiple: true, default: [] },
      report: { type: "string" },
      growth: { type: "boolean", default: false },
      clean: { type: "boolean", default: false }
    }
  })
  if (sizes[values.size] === undefined) {
    progress(usage)
    return 2
  }
  if (values.clean) {
    Corpus.clean()
    return 0
  }
  const name = values.growth ? "growth" : values.size
  const report = values.report ?? fileURLToPath(new URL(`../report/search-${name}.md`, import.meta.url))
  mkdirSync(dirname(report), { recursive: true })
  if (values.growth) {
    publish(report, heading("Searches as trees grow") + Growth.grown(run, progress, report))
    return 0
  }
  return measured(values.size, values.only, report) ? 0 : 1
}
