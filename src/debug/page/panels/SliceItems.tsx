/** Shows the items of a slice in pages: a state latest first, a log in its own order. */
import { useMemo } from "preact/hooks"
import type { SliceInfo } from "../../model.ts"
import * as Api from "../api.ts"
import { Empty, ErrorMessage, useRequest } from "../components.tsx"
import { go, hrefOf, place, version } from "../store.ts"
import { useEvents } from "./allEvents.ts"
import { Json } from "./Json.tsx"
import { Timeline } from "./Timeline.tsx"
import { formatCount, millisOf, escapeLine } from "./words.ts"

const pageSize = 50

/** The length from which an item is folded at first, in characters of JSON. */
const foldedCharacters = 1200

const lengthOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0

const OverTime = ({ slice }: { readonly slice: SliceInfo }) => {
  const { items } = useEvents()
  const sliceEvents = useMemo(
    () => items.filter((event) => event.slice === slice.name && event.session_id === slice.session_id),
    [items, slice]
  )
  const marks = useMemo(
    () =>
      sliceEvents.flatMap((event) => {
        const millis = millisOf(event.at)
        return millis === undefined ? [] : [{ millis, isFault: event.success === false, index: event.index }]
      }),
    [sliceEvents]
  )
  if (marks.length < 2) return null
  return (
    <Timeline
      label={`${slice.name} over time`}
      marks={marks}
      onPoint={(millis) => {
        const nearest = marks.reduce((a, b) => (Math.abs(b.millis - millis) < Math.abs(a.millis - millis) ? b : a))
        go(hrefOf("events", String(nearest.index)))
      }}
    />
  )
}

const Pager = ({
  label,
  page,
  pages,
  hrefTo
}: {
  readonly label: string
  readonly page: number
  readonly pages: number
  readonly hrefTo: (page: number) => string
}) =>
  pages < 2 ? null : (
    <nav class="pager" aria-label={label}>
      <button type="button" class="button" disabled={page === 0} onClick={() => go(hrefTo(page - 1))}>
        ‹ Previous
      </button>
      <span class="num">
        {page + 1} of {pages.toLocaleString("en")}
      </span>
      <button type="button" class="button" disabled={page >= pages - 1} onClick={() => go(hrefTo(page + 1))}>
        Next ›
      </button>
    </nav>
  )

export const SliceItems = ({ slice }: { readonly slice: SliceInfo }) => {
  const { items: total, name, policy, session_id: session } = slice
  const pages = Math.max(1, Math.ceil(total / pageSize))
  const page = Math.min(pages - 1, Math.max(0, Math.floor(Number(place.value.params["page"] ?? 1)) - 1 || 0))
  const isLatestFirst = policy === "state"
  const end = isLatestFirst ? total - page * pageSize : Math.min(total, (page + 1) * pageSize)
  const begin = isLatestFirst ? Math.max(0, end - pageSize) : page * pageSize
  const {
    askAgain: again,
    error,
    isLoading: isWaiting,
    value
  } = useRequest(
    (signal) => Api.slice(name, { session, offset: begin, limit: Math.max(1, end - begin) }, signal),
    [name, session, begin, end, version.value]
  )
  const hrefTo = (page: number): string => hrefOf("slices", name, { session, page: page === 0 ? undefined : String(page + 1) })
  const rows = useMemo(() => {
    const numbered = (value?.items ?? []).map((item, index) => [(value?.offset ?? 0) + index, item] as const)
    return isLatestFirst ? numbered.reverse() : numbered
  }, [value, isLatestFirst])
  return (
    <article class="detail" aria-label={`Slice ${escapeLine(name)}`} aria-busy={isWaiting}>
      <header class="detail-head">
        <h2 class="detail-title mono">{escapeLine(name)}</h2>
        <span class="badge">{policy}</span>
        <span class="faint">{formatCount(total, "item")}</span>
        <span class="grow" />
        <Pager label="Pages" page={page} pages={pages} hrefTo={hrefTo} />
      </header>
      <p class="detail-under faint">
        of session{" "}
        <a class="mono" href={hrefOf("events", "", { session })} title="Its events">
          {escapeLine(session)}
        </a>
        {isLatestFirst ? " · the latest first" : ""}
      </p>
      {policy === "log" ? <OverTime slice={slice} /> : null}
      {error === undefined ? null : <ErrorMessage message={error} retry={again} />}
      {value !== undefined && rows.length === 0 ? <Empty title="It holds nothing" /> : null}
      {rows.map(([index, item], place) => (
        <Json
          key={index}
          label={isLatestFirst && place === 0 && page === 0 ? `#${index} · the latest` : `#${index}`}
          value={item}
          open={lengthOf(item) > foldedCharacters ? 1 : 4}
        />
      ))}
      {rows.length > 4 ? <Pager label="Pages, below the items" page={page} pages={pages} hrefTo={hrefTo} /> : null}
    </article>
  )
}
