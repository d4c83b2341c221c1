/** The rows of the tool tables that apply to a Windows directory: Wine has no links, and names ignore case. */
import type { Row } from "../agent/everywhereRun.ts"
import { tables } from "../agent/everywhereTables.ts"

const hasLinks = ({ tree }: Row): boolean => Object.values(tree).some((entry) => typeof entry === "object" && "link" in entry)

export const toolRows: ReadonlyArray<{ readonly name: string; readonly row: Row }> = Object.entries(tables).flatMap(
  ([table, rows]) =>
    rows.filter((row) => row.cases !== true && !hasLinks(row)).map((row) => ({ name: `${table}: ${row.name}`, row }))
)
