/** The rows of the tools' table that a Windows directory without links can be given: Wine has none, and case does not distinguish. */
import type { Row } from "../agent/everywhereRun.ts"
import { tables } from "../agent/everywhereTables.ts"

const hasLinks = ({ tree }: Row): boolean => Object.values(tree).some((entry) => typeof entry === "object" && "link" in entry)

export const toolRows: ReadonlyArray<{ readonly name: string; readonly row: Row }> = Object.entries(tables).flatMap(
  ([table, rows]) =>
    rows.filter((row) => row.cases !== true && !hasLinks(row)).map((row) => ({ name: `${table}: ${row.name}`, row }))
)
