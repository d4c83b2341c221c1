/**
 * `npm run bench [-- MODULE...]` runs each case in a new process and prints a table. `npm run bench -- search`,
 * `-- snapshots` and `-- mcp` are benches of their own.
 */
import { readdirSync } from "node:fs"
import { cpus } from "node:os"
import type { Case } from "./harness.ts"
import { isolated } from "./harness.ts"
import { mcp } from "./mcp/main.ts"
import { search } from "./search/main.ts"
import { snapshots } from "./snapshots/main.ts"

if (process.argv[2] === "search") process.exit(search(process.argv.slice(3)))
if (process.argv[2] === "mcp") process.exit(await mcp(process.argv.slice(3)))
if (process.argv[2] === "snapshots") process.exit(await snapshots(process.argv.slice(3)))

const all = readdirSync(new URL("cases", import.meta.url)).map((file) => file.replace(/\.ts$/, ""))
const wanted = process.argv.slice(2)
const modules = wanted.length === 0 ? all : all.filter((name) => wanted.includes(name))

console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "?"}\n`)
console.log("| case | ours µs (min–max) | baseline µs | figure | target | |")
console.log("|---|--:|--:|--:|---|---|")
let missed = 0
for (const module of modules.sort()) {
  const { cases } = (await import(`./cases/${module}.ts`)) as { readonly cases: ReadonlyArray<Case> }
  for (const index of cases.keys()) {
    const report = isolated(module, index)
    if (!report.held) missed++
    const ours = `${report.ours.toFixed(2)} (${report.spread[0].toFixed(2)}–${report.spread[1].toFixed(2)})`
    console.log(
      `| ${report.name} | ${ours} | ${report.baseline.toFixed(2)} | ${report.figure.toFixed(2)} ${report.unit} | ${report.target} | ${report.held ? "held" : "MISSED"} |`
    )
  }
}
console.log(missed === 0 ? "\nAll targets held." : `\n${missed} missed.`)
