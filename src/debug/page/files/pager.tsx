import { useState } from "preact/hooks"
import type { FileContent } from "../../model.ts"
import { partOfLine } from "../../partOfLine.ts"
import { go, hereWith, place } from "../store.ts"

type Part = NonNullable<FileContent["part"]>

/** Returns the part that the address names: `part`, or the part with `line`. If they differ, `line` wins. */
export const partAsked = (part: Part | undefined): number | undefined => {
  const { line, part: asked } = place.value.params
  if (part !== undefined && line !== undefined) return partOfLine(part.first_lines, Number(line))
  return asked === undefined ? undefined : Number(asked)
}

const shown = (number: number): string => number.toLocaleString("en")

const GoToLine = ({ last }: { readonly last: number }) => {
  const [text, setText] = useState("")
  return (
    <form
      class="part-line"
      onSubmit={(event) => {
        event.preventDefault()
        const line = Math.min(last, Math.max(1, Math.trunc(Number(text))))
        if (Number.isFinite(line)) go(hereWith({ line: `${line}`, part: undefined }))
      }}
    >
      <label>
        Line{" "}
        <input type="number" min={1} max={last} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
      </label>
      <button type="submit">Go</button>
    </form>
  )
}

export const Pager = ({ part }: { readonly part: Part }) => {
  const { first_lines: first, number, total_lines: total } = part
  const last = first.length - 1
  const end = number === last ? total : Math.max(first[number]!, first[number + 1]! - 1)
  const link = (label: string, to: number) => (
    <button
      type="button"
      disabled={to === number || to < 0 || to > last}
      onClick={() => go(hereWith({ part: to === 0 ? undefined : `${to}`, line: undefined }))}
    >
      {label}
    </button>
  )
  return (
    <nav class="notice-line part-pager" aria-label="Parts of the file">
      <span role="status">
        Lines {shown(first[number]!)} to {shown(end)} of {shown(total)}
      </span>
      <span class="part-links">
        {link("First", 0)}
        {link("Previous", number - 1)}
        {link("Next", number + 1)}
        {link("Last", last)}
      </span>
      <GoToLine last={total} />
    </nav>
  )
}
