import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core"
import type { ComponentChildren, ComponentType } from "preact"
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks"

import { errorMessage } from "./api.ts"

export const Empty = ({ children, title }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty" role="status">
    <p class="empty-title">{title}</p>
    {children}
  </div>
)

export const ErrorMessage = ({ message, retry }: { readonly message: string; readonly retry?: (() => void) | undefined }) => (
  <div class="trouble" role="alert">
    <p>{message}</p>
    {retry === undefined ? null : (
      <button type="button" onClick={retry}>
        Try again
      </button>
    )}
  </div>
)

const units = ["bytes", "kB", "MB", "GB", "TB"]

export const bytes = (size: number): string => {
  let [value, unit] = [size, 0]
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1]
  return unit === 0 ? `${size} ${size === 1 ? "byte" : "bytes"}` : `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`
}

/** Requests a value, and requests it again whenever one of `inputs` changes. An outdated request is cancelled. */
export const useRequest = <A,>(
  request: (signal: AbortSignal) => Promise<A>,
  inputs: ReadonlyArray<unknown>
): { readonly value?: A; readonly error?: string; readonly isLoading: boolean; readonly askAgain: () => void } => {
  const [state, setState] = useState<{ value?: A; error?: string; isLoading: boolean }>({ isLoading: true })
  const [attempt, askAgain] = useReducer<number, void>((n) => n + 1, 0)
  useEffect(() => {
    const abort = new AbortController()
    setState((old) => ({ ...old, isLoading: true }))
    request(abort.signal).then(
      (value) => abort.signal.aborted || setState({ value, isLoading: false }),
      (error: unknown) => abort.signal.aborted || setState({ error: errorMessage(error), isLoading: false })
    )
    return () => abort.abort()
  }, [...inputs, attempt])
  return { ...state, askAgain: () => askAgain() }
}

/** Returns a function that copies a text to the clipboard. `outcome` is set for a short time after each attempt. */
export const useClipboard = (text: string): { readonly outcome: "done" | "refused" | undefined; readonly copy: () => void } => {
  const [outcome, setOutcome] = useState<"done" | "refused">()
  useEffect(() => {
    if (outcome === undefined) return undefined
    const timer = setTimeout(() => setOutcome(undefined), 1500)
    return () => clearTimeout(timer)
  }, [outcome])
  const write = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setOutcome("done")
    } catch {
      setOutcome("refused")
    }
  }
  return { outcome, copy: () => void write() }
}

/** Characters that are invisible or change the text direction. These characters could make one name look like another. */
const deceptiveCharacters =
  /(?:(?!(?<=\p{Extended_Pictographic}\ufe0f?)\u200d(?=\p{Extended_Pictographic}))(?![\ufe0e\ufe0f])(?:[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}))/gu

const edgeSpaces = /(?<=^ *) | (?= *$)/g

const escapeCharacter = (character: string): string => {
  const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character]
  return short ?? `\\u{${character.codePointAt(0)!.toString(16).toUpperCase()}}`
}

export const escapeName = (name: string): string => name.replace(deceptiveCharacters, escapeCharacter)

/** Renders a name with invisible characters as escapes. `marks` are the positions of matched characters. */
export const Name = ({ marks, text }: { readonly text: string; readonly marks?: ReadonlySet<number> | undefined }) => {
  const parts: Array<ComponentChildren> = []
  let plain = ""
  let isMarked = false
  const flush = () => {
    if (plain !== "") parts.push(isMarked ? <mark>{plain}</mark> : plain)
    plain = ""
  }
  const hidden = new Set([...text.matchAll(deceptiveCharacters), ...text.matchAll(edgeSpaces)].map(({ index }) => index))
  if (hidden.size === 0 && (marks === undefined || marks.size === 0)) return <bdi>{text}</bdi>
  for (let i = 0; i < text.length;) {
    const character = String.fromCodePoint(text.codePointAt(i)!)
    if (hidden.has(i)) {
      flush()
      parts.push(<span class="escaped">{escapeCharacter(character)}</span>)
    } else {
      if ((marks?.has(i) ?? false) !== isMarked) {
        flush()
        isMarked = !isMarked
      }
      plain += character
    }
    i += character.length
  }
  flush()
  return <bdi>{parts}</bdi>
}

/** Renders the visible rows, and a few more, of a list with rows of equal height. Scrolls to the row `focus`. */
export const VirtualList = ({
  active,
  class: name,
  count,
  focus,
  keyOf,
  id,
  label,
  onKeyDown,
  role = "list",
  row,
  rowHeight,
  tabIndex = -1
}: {
  /** The id of the active row's element, if the list element handles the keys of all rows. */
  readonly active?: string | undefined
  readonly id?: string
  readonly onKeyDown?: (event: KeyboardEvent) => void
  readonly tabIndex?: number
  readonly class?: string
  readonly count: number
  readonly rowHeight: number
  readonly row: (index: number) => ComponentChildren
  readonly keyOf?: (index: number) => string | number
  readonly focus?: number | undefined
  readonly role?: "list" | "tree" | "grid" | "listbox"
  readonly label: string
}) => {
  const element = useRef<HTMLDivElement>(null)
  const [, render] = useReducer<number, void>((n) => n + 1, 0)
  const virtualizer = useMemo(
    () =>
      new Virtualizer<HTMLDivElement, Element>({
        count,
        getScrollElement: () => element.current,
        estimateSize: () => rowHeight,
        overscan: 12,
        scrollPaddingStart: 2 * rowHeight,
        scrollPaddingEnd: 2 * rowHeight,
        scrollToFn: elementScroll,
        observeElementOffset,
        observeElementRect,
        onChange: () => render()
      }),
    []
  )
  virtualizer.setOptions({ ...virtualizer.options, count, estimateSize: () => rowHeight })
  useLayoutEffect(() => virtualizer._didMount(), [])
  useLayoutEffect(() => virtualizer._willUpdate())
  useLayoutEffect(() => {
    if (focus !== undefined && focus >= 0 && focus < count) virtualizer.scrollToIndex(focus, { align: "auto" })
  }, [focus, count])
  return (
    <div
      class={`scroll ${name ?? ""}`}
      ref={element}
      id={id}
      role={role}
      aria-label={label}
      aria-activedescendant={active}
      tabIndex={tabIndex}
      onKeyDown={onKeyDown}
    >
      <div class="scroll-inner" role="presentation" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map(({ index, start }) => (
          <div
            key={keyOf?.(index) ?? index}
            class="scroll-row"
            role={role === "list" ? "listitem" : "presentation"}
            style={{ transform: `translateY(${start}px)`, height: `${rowHeight}px` }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  )
}

const short = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" })
const long = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" })

/** Renders a time, with the full time as a tooltip. An invalid time is shown unchanged. */
export const Time = ({ at }: { readonly at: string }) => {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return <span>{escapeName(at)}</span>
  return (
    <time dateTime={at} title={long.format(date)}>
      {short.format(date)}
    </time>
  )
}

const loadedComponents = new Map<() => Promise<unknown>, unknown>()

export const LazyComponent = <Props extends object>({
  load,
  with: props
}: {
  /** The function that loads the component. The caller must pass the same function at each render. */
  readonly load: () => Promise<ComponentType<Props>>
  readonly with: NoInfer<Props>
}) => {
  const [loaded, setLoaded] = useState<{ readonly component?: ComponentType<Props>; readonly error?: string }>(() =>
    loadedComponents.has(load) ? { component: loadedComponents.get(load) as ComponentType<Props> } : {}
  )
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    if (loadedComponents.has(load)) return undefined
    let isUnmounted = false
    load().then(
      (component) => {
        loadedComponents.set(load, component)
        if (!isUnmounted) setLoaded({ component })
      },
      (error: unknown) => isUnmounted || setLoaded({ error: errorMessage(error) })
    )
    return () => {
      isUnmounted = true
    }
  }, [attempt])
  const { component: Component, error } = loaded
  if (error !== undefined)
    return <ErrorMessage message={`A part of the page could not be loaded: ${error}`} retry={() => setAttempt(attempt + 1)} />
  return Component === undefined ? null : <Component {...props} />
}
