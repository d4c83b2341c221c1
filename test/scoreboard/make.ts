/**
 * `npm run scoreboard` runs every law on every filesystem and writes the guide scoreboard.md. `npm run scoreboard -- NAME...` prints
 * the broken laws of these filesystems with their reasons, and writes nothing.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { guide, root } from "../documentation/markdown.ts"
import { checks } from "./chapters.ts"
import { page, type Row } from "./page.ts"
import { score } from "./score.ts"
import { subjects } from "./subjects.ts"

const wanted = process.argv.slice(2)
const unknown = wanted.find((name) => subjects.every((subject) => subject.name !== name))
if (unknown !== undefined) {
  console.error(`There is no filesystem ${unknown}. There are ${subjects.map(({ name }) => name).join(", ")}.`)
  process.exit(2)
}

const module = new URL("./subjects.ts", import.meta.url)
const rows: Array<Row> = []
for (const subject of subjects.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  const outcomes = await score(subject.name, { module, checks, timeoutSeconds: 30 })
  const row = { subject, outcomes: new Map(checks.map(({ name }, index) => [name, outcomes[index]!])) }
  rows.push(row)
  const broken = checks.filter(({ name }) => row.outcomes.get(name)?._tag === "Broken")
  console.log(`${subject.name} ${subject.version}: ${broken.length} broken`)
  if (wanted.length === 0 && subject.isOurs !== true) continue
  for (const { name } of broken) {
    const outcome = row.outcomes.get(name)!
    if (outcome._tag === "Broken") console.log(`\n${outcome.why}`)
  }
}

if (wanted.length === 0) {
  if (
    rows.some(
      ({ outcomes, subject }) => subject.isOurs === true && [...outcomes.values()].some(({ _tag }) => _tag === "Broken")
    )
  ) {
    console.error("A filesystem of this library breaks a law, so the guide stays as it was.")
    process.exitCode = 1
  } else writeFileSync(join(root, guide("scoreboard")), page(rows, new Date().toISOString().slice(0, 10)))
}
