/**
 * Shows a value as JSON, with a colour for each type. Objects and arrays can be folded. Long parts are shortened until the user
 * requests more.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { Copy } from "./parts.tsx"
import { formatCount, escapeLine, escapeText } from "./words.ts"

const maxTextCharacters = 400
const maxShownEntries = 100

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

const entriesOf = (value: object): ReadonlyArray<readonly [name: string | undefined, value: unknown]> =>
  Array.isArray(value) ? value.map((one) => [undefined, one] as const) : Object.entries(value)

const quoted = (text: string): string => escapeLine(JSON.stringify(text))

const Text = ({ tail, text }: { readonly text: string; readonly tail: ComponentChildren }) => {
  const [isWhole, setWhole] = useState(false)
  const [isPlain, setPlain] = useState(false)
  const part = isWhole || text.length <= maxTextCharacters ? text : text.slice(0, maxTextCharacters)
  const rest = text.length - part.length
  return (
    <>
      {isPlain ? <pre class="json-plain">{escapeText(part)}</pre> : <span class="json-string">{quoted(part)}</span>}
      {tail}
      {rest > 0 ? (
        <button type="button" class="mini" onClick={() => setWhole(true)}>
          {formatCount(rest, "more character")}
        </button>
      ) : null}
      {text.includes("\n") ? (
        <button type="button" class="mini" aria-pressed={isPlain} onClick={() => setPlain(!isPlain)}>
          {isPlain ? "as JSON" : "as text"}
        </button>
      ) : null}
    </>
  )
}

const ScalarValue = ({ tail, value }: { readonly value: unknown; readonly tail?: ComponentChildren }) =>
  typeof value === "string" ? (
    <Text text={value} tail={tail} />
  ) : (
    <>
      <span class={typeof value === "number" ? "json-number" : "json-word"}>{String(value)}</span>
      {tail}
    </>
  )

const isShort = (value: object): value is ReadonlyArray<unknown> =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= 40 &&
  !value.some((one) => isObject(one) || (typeof one === "string" && one.length > 40)) &&
  JSON.stringify(value).length <= 100

const Key = ({ name }: { readonly name: string | undefined }) =>
  name === undefined ? null : (
    <>
      <span class="json-key">{quoted(name)}</span>
      <span class="json-mark">: </span>
    </>
  )

const Node = ({
  comma,
  depth,
  name,
  open,
  value
}: {
  readonly value: unknown
  readonly name?: string | undefined
  readonly depth: number
  readonly open: number
  readonly comma: boolean
}) => {
  const [isOpen, setOpen] = useState(depth < open)
  const [shownCount, setShown] = useState(maxShownEntries)
  const indent = { paddingLeft: `${depth * 16 + 16}px` }
  const tail = comma ? <span class="json-mark">,</span> : null
  if (!isObject(value)) {
    return (
      <div class="json-line" style={indent}>
        <Key name={name} />
        <ScalarValue value={value} tail={tail} />
      </div>
    )
  }
  if (isShort(value)) {
    return (
      <div class="json-line" style={indent}>
        <Key name={name} />
        <span class="json-mark">[</span>
        {value.map((one, index) => (
          <ScalarValue key={index} value={one} tail={index < value.length - 1 ? <span class="json-mark">, </span> : null} />
        ))}
        <span class="json-mark">]</span>
        {tail}
      </div>
    )
  }
  const all = entriesOf(value)
  const [begin, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"]
  if (all.length === 0) {
    return (
      <div class="json-line" style={indent}>
        <Key name={name} />
        <span class="json-mark">
          {begin}
          {end}
        </span>
        {tail}
      </div>
    )
  }
  return (
    <div>
      <div class="json-line" style={indent}>
        <button
          type="button"
          class="json-fold"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Fold" : "Unfold"} ${name === undefined ? "this" : escapeLine(name)}`}
          style={{ left: `${depth * 16}px` }}
          onClick={() => setOpen(!isOpen)}
        />
        <Key name={name} />
        <span class="json-mark">{begin}</span>
        {isOpen ? null : (
          <>
            <button type="button" class="mini" onClick={() => setOpen(true)}>
              {formatCount(all.length, Array.isArray(value) ? "item" : "field")}
            </button>
            <span class="json-mark">{end}</span>
            {tail}
          </>
        )}
      </div>
      {isOpen ? (
        <>
          {all.slice(0, shownCount).map(([name, one], index) => (
            <Node key={name ?? index} name={name} value={one} depth={depth + 1} open={open} comma={index < all.length - 1} />
          ))}
          {all.length > shownCount ? (
            <div class="json-line" style={{ paddingLeft: `${depth * 16 + 32}px` }}>
              <button type="button" class="mini" onClick={() => setShown(shownCount + maxShownEntries * 10)}>
                {formatCount(all.length - shownCount, "more")}
              </button>
            </div>
          ) : null}
          <div class="json-line" style={indent}>
            <span class="json-mark">{end}</span>
            {tail}
          </div>
        </>
      ) : null}
    </div>
  )
}

export const Json = ({
  label,
  open = 3,
  value
}: {
  readonly value: unknown
  readonly label: string
  readonly open?: number
}) => (
  <figure class="json" aria-label={label}>
    <figcaption class="json-head">
      <span>{label}</span>
      <Copy text={JSON.stringify(value, null, 2) ?? ""} label={`Copy ${label} as JSON`} />
    </figcaption>
    <div class="json-body">
      <Node value={value} depth={0} open={open} comma={false} />
    </div>
  </figure>
)
