/** Writes the guide scoreboard.md from the outcomes. */
import { type Chapter, chapters, randomPrograms } from "./chapters.ts"
import type { Outcome } from "./score.ts"
import type { Subject } from "./subjects.ts"

export interface Row {
  readonly subject: Pick<Subject, "documented" | "how" | "isOurs" | "name" | "short" | "version">
  /** The outcomes by the name of the law. */
  readonly outcomes: ReadonlyMap<string, Outcome>
}

const words = { Held: "held", Broken: "**broken**", NotApplicable: "-" } as const

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("")

/** Escapes the marks of Markdown in a text for a cell, so that patterns such as `**` stay readable. */
const cell = (text: string): string => text.replaceAll(/[*_<\\|]+/g, (marks) => [...marks].map((mark) => `\\${mark}`).join(""))

const count = ({ outcomes }: Row, { checks }: Pick<Chapter, "checks">, tag: Outcome["_tag"]): number =>
  checks.filter(({ name }) => outcomes.get(name)?._tag === tag).length

const everything = { checks: chapters.flatMap(({ checks }) => checks) }

const summary = (rows: ReadonlyArray<Row>): string =>
  table(
    ["filesystem", "version", "held", "broken", "not applicable", "how it is made"],
    rows.map((row) => [
      row.subject.isOurs === true ? row.subject.name : `\`${row.subject.name}\``,
      row.subject.version,
      ...(["Held", "Broken", "NotApplicable"] as const).map((tag) => String(count(row, everything, tag))),
      row.subject.how
    ])
  )

const byChapter = (rows: ReadonlyArray<Row>): string =>
  table(
    ["chapter", ...rows.map(({ subject }) => subject.short)],
    chapters.map((chapter) => [
      `[${chapter.title}](#${chapter.title
        .toLowerCase()
        .replaceAll(/[^a-z -]/g, "")
        .replaceAll(" ", "-")})`,
      ...rows.map((row) => {
        const broken = count(row, chapter, "Broken")
        return `${count(row, chapter, "Held")}${broken === 0 ? "" : `, **${broken} broken**`}`
      })
    ])
  )

const chapterTable = ({ checks, title }: Chapter, rows: ReadonlyArray<Row>): string =>
  `## ${title}\n\n${table(
    ["law", "ids", ...rows.map(({ subject }) => subject.short)],
    checks.map(({ name, ref }) => [cell(name), cell(ref), ...rows.map(({ outcomes }) => words[outcomes.get(name)!._tag])])
  )}`

export const page = (rows: ReadonlyArray<Row>, date: string): string => {
  const documented = rows.flatMap(({ subject }) =>
    subject.documented === undefined ? [] : [`- \`${subject.name}\`: ${subject.documented}\n`]
  )
  return `# The scoreboard

This page shows which [laws](laws.md) of this library hold on filesystems of other packages. \`npm run scoreboard\` writes this page; the last
run was on ${date}.

${summary(rows)}
Every other package is connected in the same way. An object with the interface of \`node:fs\` becomes effect's FileSystem, call by call.
\`Platform.fromFileSystem\` makes a filesystem of this FileSystem. This backend writes a file under another name and then renames it, holds locks, and checks each
component of a path for links. So a law is broken by the calls of the package, and not because the package lacks a call. A law also counts as broken
if it does not end within 30 s. If a filesystem lacks an ability that a law needs, the law is not applicable, and does not count as held. The laws about
the options of a backend are not run, because the options would be those of \`Platform.fromFileSystem\`.

A broken law is not always a mistake of the package: other packages do not make the promises of this library. These
packages document a meaning that differs from the laws:

${documented.join("")}
To see why a law is broken, run \`npm run scoreboard -- memfs\`. It prints the expected and the actual result of each broken law, with the calls
before it. To run the laws on a filesystem of your own, see [testing.md](testing.md#the-laws).

${byChapter(rows)}
${chapters.map((chapter) => chapterTable(chapter, rows)).join("\n")}
The random programs are the first ${randomPrograms.runs} of one seed. They write, edit, delete, move, copy, link and list. Their results and final trees must equal
those of a small model.
`
}
