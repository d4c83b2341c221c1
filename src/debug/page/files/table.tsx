import Papa from "papaparse"
import { useMemo } from "preact/hooks"
import { Empty, escapeName, VirtualList } from "../components.tsx"

const measuredRows = 200
/** The smallest and largest width of a column, in characters. */
const [minColumnCharacters, maxColumnCharacters] = [4, 48] as const
/** The largest number of columns to render. Each visible row renders all its columns, so a wider table would be slow. */
const maxColumns = 200
const rowHeight = 28

const parseRows = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  Papa.parse<Array<string>>(text, { skipEmptyLines: true }).data

const widthsOf = (rows: ReadonlyArray<ReadonlyArray<string>>, columns: number): string =>
  Array.from({ length: columns }, (_, column) => {
    const longest = rows
      .slice(0, measuredRows)
      .reduce<number>((most, row) => Math.max(most, row[column]?.length ?? 0), minColumnCharacters)
    return `${Math.min(maxColumnCharacters, longest) + 2}ch`
  }).join(" ")

const isNumber = (text: string): boolean => /^[-+]?[\d.,]+(?:e[-+]?\d+)?%?$/i.test(text.trim())

export const Table = ({ label, text }: { readonly label: string; readonly text: string }) => {
  const rows = useMemo(() => parseRows(text), [text])
  const columnCount = useMemo(() => rows.reduce((most, row) => Math.max(most, row.length), 0), [rows])
  const columns = Math.min(columnCount, maxColumns)
  const widths = useMemo(() => widthsOf(rows, columns), [rows, columns])
  if (rows.length === 0) return <Empty title="This table has no rows" />
  const cells = Array.from({ length: columns }, (_, column) => column)
  const line = (index: number) => {
    const row = rows[index]!
    return (
      <div
        class={`table-row ${index === 0 ? "table-head" : ""}`}
        role="row"
        aria-rowindex={index + 1}
        style={{ gridTemplateColumns: `8ch ${widths}` }}
      >
        <span class="table-number num faint" role="rowheader">
          {index === 0 ? "" : index}
        </span>
        {cells.map((column) => {
          const cell = row[column] ?? ""
          return (
            <span
              key={column}
              class={`ellipsis ${index > 0 && isNumber(cell) ? "num" : ""}`}
              role={index === 0 ? "columnheader" : "gridcell"}
              title={cell.length > maxColumnCharacters ? escapeName(cell) : undefined}
            >
              {escapeName(cell)}
            </span>
          )
        })}
      </div>
    )
  }
  return (
    <div class="data-table">
      {columnCount > columns ? (
        <p class="dim table-more">
          The first {columns} of {columnCount.toLocaleString("en")} columns are shown.
        </p>
      ) : null}
      <VirtualList
        label={label}
        role="grid"
        class="table-rows mono"
        count={rows.length}
        rowHeight={rowHeight}
        tabIndex={0}
        row={line}
      />
    </div>
  )
}
