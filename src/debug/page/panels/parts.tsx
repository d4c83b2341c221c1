import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks"
import { useClipboard } from "../components.tsx"
import { useKeys } from "../shell/keys.ts"
import { formatAbsolute, formatAgo, millisOf, partsOf, escapeLine } from "./words.ts"

const isOutsideList = (target: EventTarget | null): boolean =>
  target instanceof Element && target !== document.body && target.closest(".panel-keys") === null

/**
 * Binds the keys of a list: next, previous, first and last. Letters always work. Arrow keys work only if the list has the focus
 * or no element has the focus.
 */
export const useListKeys = (what: string, length: number, chosen: number, choose: (index: number) => void): void => {
  const to = (index: number): void => {
    if (length === 0) return
    const list = document.activeElement?.closest(".panel-keys")
    choose(Math.max(0, Math.min(length - 1, index)))
    if (list === undefined || list === null) return
    // Move the focus when the row exists, unless the focus has left the list by then.
    const follow = (): void => {
      const { activeElement, body } = document
      if (activeElement !== body && !list.contains(activeElement)) return
      list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus({ preventScroll: true })
    }
    requestAnimationFrame(() => requestAnimationFrame(follow))
  }
  const next = (): void => to(chosen + 1)
  const previous = (): void => to(chosen < 0 ? 0 : chosen - 1)
  useKeys([
    { key: "j", does: `Next ${what}`, run: next },
    { key: "k", does: `Previous ${what}`, run: previous }
  ])
  const arrows: Readonly<Record<string, () => void>> = {
    ArrowDown: next,
    ArrowUp: previous,
    Home: () => to(0),
    End: () => to(length - 1)
  }
  const current = useRef(arrows)
  current.current = arrows
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
      const act = current.current[event.key]
      if (act === undefined || isOutsideList(event.target)) return
      event.preventDefault()
      act()
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [])
}

/**
 * Returns the row to scroll to after another row was chosen. Returns `undefined` at other times, so that new rows do not scroll
 * the list.
 */
export const useFocus = (chosen: string | number | undefined, position: number): number | undefined => {
  const seen = useRef<string | number | undefined>(undefined)
  const isNew = chosen !== undefined && position >= 0 && seen.current !== chosen
  useEffect(() => {
    if (isNew || chosen === undefined) seen.current = chosen
  })
  return isNew ? position : undefined
}

const narrowScreen = matchMedia("(max-width: 720px)")

export const useNarrow = (): boolean => {
  const [isNarrow, set] = useState(narrowScreen.matches)
  useEffect(() => {
    const onChange = (): void => set(narrowScreen.matches)
    narrowScreen.addEventListener("change", onChange)
    return () => narrowScreen.removeEventListener("change", onChange)
  }, [])
  return isNarrow
}

/**
 * Renders a list and the detail of its chosen row side by side. On a narrow screen, the detail covers the list and has a link
 * back.
 */
export const Split = ({
  back,
  backLabel,
  children,
  detail,
  isOpen,
  label
}: {
  readonly label: string
  readonly children: ComponentChildren
  readonly detail: ComponentChildren
  readonly isOpen: boolean
  readonly back: string
  readonly backLabel: string
}) => (
  <div class={isOpen ? "split is-open" : "split"}>
    <section class="split-list" aria-label={label}>
      {children}
    </section>
    <section class="split-detail" aria-label="Details">
      {isOpen ? (
        <a class="split-back" href={back}>
          <span aria-hidden="true">‹</span> {backLabel}
        </a>
      ) : null}
      {detail}
    </section>
  </div>
)

export const useNow = (everyMillis: number): number => {
  const [, tick] = useReducer<number, void>((n) => n + 1, 0)
  useEffect(() => {
    const timer = setInterval(() => tick(), everyMillis)
    return () => clearInterval(timer)
  }, [everyMillis])
  return Date.now()
}

export const When = ({ at, now }: { readonly at: string | null | undefined; readonly now: number }) => {
  const millis = millisOf(at)
  return millis === undefined ? (
    <span class="faint" title="The time is unknown.">
      —
    </span>
  ) : (
    <time dateTime={at!} title={formatAbsolute(millis)}>
      {formatAgo(millis, now)}
    </time>
  )
}

export const Path = ({ path }: { readonly path: string }) => {
  const [directory, name] = partsOf(path)
  return (
    <span class="way" title={escapeLine(path)}>
      {directory === "" ? null : (
        <span class="way-directory">
          <bdi>{escapeLine(directory)}</bdi>
        </span>
      )}
      <bdi class="way-name">{escapeLine(name)}</bdi>
    </span>
  )
}

export const Copy = ({ label = "Copy", text }: { readonly text: string; readonly label?: string }) => {
  const { copy, outcome } = useClipboard(text)
  return (
    <button type="button" class="mini" onClick={copy} title={label}>
      <span aria-live="polite">{outcome === "done" ? "Copied" : "Copy"}</span>
    </button>
  )
}

export const Facts = ({ children }: { readonly children: ComponentChildren }) => <dl class="about">{children}</dl>

export const Fact = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div class="about-one">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

export const WhenFact = ({ at, now }: { readonly at: string | null | undefined; readonly now: number }) => {
  const millis = millisOf(at)
  return millis === undefined ? null : (
    <Fact name="When">
      <span class="num">{formatAbsolute(millis)}</span>{" "}
      <span class="faint">
        <When at={at} now={now} />
      </span>
    </Fact>
  )
}

export const FilterChip = ({
  children,
  onRemove,
  title
}: {
  readonly title: string
  readonly onRemove: () => void
  readonly children: ComponentChildren
}) => (
  <button type="button" class="chip" onClick={onRemove} title={title}>
    {children} <span aria-hidden="true">×</span>
  </button>
)

/** Renders a search field. Escape clears the field, or removes the focus if the field is empty. */
export const Search = ({
  label,
  onText,
  text
}: {
  readonly label: string
  readonly text: string
  readonly onText: (text: string) => void
}) => (
  <input
    class="input panel-search"
    type="search"
    placeholder={label}
    aria-label={label}
    spellcheck={false}
    autocomplete="off"
    value={text}
    onInput={({ currentTarget }) => onText(currentTarget.value)}
    onKeyDown={(event) => {
      if (event.key !== "Escape") return
      event.stopPropagation()
      if (text === "") event.currentTarget.blur()
      else onText("")
    }}
  />
)

export const Choice = ({
  label,
  of,
  onValue,
  value
}: {
  readonly label: string
  readonly value: string
  readonly of: ReadonlyArray<readonly [value: string, text: string]>
  readonly onValue: (value: string) => void
}) => (
  <select
    class="panel-select"
    aria-label={label}
    title={label}
    value={value}
    onChange={({ currentTarget }) => onValue(currentTarget.value)}
  >
    {of.map(([one, text]) => (
      <option key={one} value={one}>
        {text}
      </option>
    ))}
  </select>
)

const outcomes = {
  done: ["good", "done"],
  failed: ["bad", "failed"],
  unanswered: ["warn", "unanswered"]
} as const

export const Outcome = ({
  isBare = false,
  outcome
}: {
  readonly outcome: keyof typeof outcomes
  readonly isBare?: boolean
}) => {
  const [name, text] = outcomes[outcome]
  return isBare ? (
    <span class={`dot ${name}`} role="img" aria-label={text} title={text} />
  ) : (
    <span class={`badge ${name}`}>{text}</span>
  )
}
