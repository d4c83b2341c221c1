import { useMemo } from "preact/hooks"
import type { Event } from "../../model.ts"
import { bytes, Empty, ErrorMessage, VirtualList } from "../components.tsx"
import { go, hereWith, hrefOf, meta, place, snapshots } from "../store.ts"
import { Json } from "./Json.tsx"
import { marksOf, nearestMark, type Span, Timeline, useEvents } from "./Timeline.tsx"
import {
  Choice,
  Copy,
  Fact,
  Facts,
  FilterChip,
  Outcome,
  Path,
  Search,
  Split,
  useFocus,
  useListKeys,
  useNarrow,
  useNow,
  WhenFact
} from "./parts.tsx"
import { escapeLine, escapeText, formatAbsolute, formatCount, formatDuration, formatSince, millisOf } from "./words.ts"

const fieldOf = (item: unknown, name: string): unknown =>
  typeof item === "object" && item !== null && name in item ? (item as Readonly<Record<string, unknown>>)[name] : undefined

/** Links to the comparison of the snapshots before and after this call. */
const ChangedLink = ({ callId }: { readonly callId: string }) => {
  const all = snapshots.value
  const place = all.findIndex(({ call_id }) => call_id === callId)
  if (place < 0) return null
  return (
    <Fact name="Changed">
      <a href={hrefOf("changes", "", { with: all[place]!.id, at: all[place - 1]?.id })}>differences after this call</a>
    </Fact>
  )
}

const EventDetail = ({ event }: { readonly event: Event }) => {
  const now = useNow(10_000)
  const params = fieldOf(event.item, "params")
  return (
    <article class="detail" aria-label={`Event ${event.index}: ${escapeLine(event.name)}`}>
      <header class="detail-head">
        <h2 class="detail-title mono">{escapeLine(event.name)}</h2>
        {event.success === undefined ? null : <Outcome outcome={event.success ? "done" : "failed"} />}
        <span class="detail-number">#{event.index}</span>
      </header>
      {event.message === undefined || event.message === "" ? null : (
        <p class={event.success === false ? "said is-bad" : "said"}>{escapeText(event.message)}</p>
      )}
      <Facts>
        {event.path === undefined ? null : (
          <Fact name="Path">
            <a class="mono" href={hrefOf("files", event.path)}>
              <Path path={event.path} />
            </a>
          </Fact>
        )}
        <WhenFact at={event.at} now={now} />
        {event.duration_millis === undefined ? null : <Fact name="Took">{formatDuration(event.duration_millis)}</Fact>}
        {event.size_bytes === undefined ? null : <Fact name="Content">{bytes(event.size_bytes)}</Fact>}
        {event.mode === undefined ? null : <Fact name="Mode">{escapeLine(event.mode)}</Fact>}
        {event.call_id === undefined ? null : (
          <Fact name="Call">
            <code class="wrap">{escapeLine(event.call_id)}</code> <Copy text={event.call_id} label="Copy the id of the call" />
          </Fact>
        )}
        {event.call_id === undefined ? null : <ChangedLink callId={event.call_id} />}
        <Fact name="Recorded in">
          <a href={hrefOf("slices", event.slice, { session: event.session_id })}>{escapeLine(event.slice)}</a>{" "}
          <span class="faint">of session</span>{" "}
          <a href={hrefOf("events", "", { session: event.session_id })} title="Show only the events of this session">
            {escapeLine(event.session_id)}
          </a>
        </Fact>
      </Facts>
      {params === undefined ? null : <Json label="Parameters" value={params} open={4} />}
      <Json label="The whole item" value={event.item} open={params === undefined ? 4 : 0} />
    </article>
  )
}

const outcomeOf = ({ success }: Event): "done" | "failed" | undefined =>
  success === undefined ? undefined : success ? "done" : "failed"

const textOf = ({ call_id, message, mode, name, path }: Event): string =>
  [name, path, message, mode, call_id].filter(Boolean).join("\n").toLowerCase()

interface EventFilter {
  readonly tool: string
  readonly outcome: string
  readonly text: string
  readonly session: string
  readonly span: Span | undefined
}

const filterOf = (params: Readonly<Record<string, string>>): EventFilter => {
  const [from, to] = [Number(params["from"]), Number(params["to"])]
  return {
    tool: params["tool"] ?? "",
    outcome: params["outcome"] ?? "",
    text: params["q"] ?? "",
    session: params["session"] ?? "",
    span: from > 0 && to >= from ? [from, to] : undefined
  }
}

const isWithin = (event: Event, [from, to]: Span): boolean => {
  const millis = millisOf(event.at)
  return millis !== undefined && millis >= from && millis <= to
}

/** Filters the events by everything except the selected span, because the time line also shows the events outside the span. */
const filtered = (events: ReadonlyArray<Event>, { outcome, session, text, tool }: EventFilter): ReadonlyArray<Event> => {
  const searchText = text.trim().toLowerCase()
  return events.filter(
    (event) =>
      (tool === "" || event.name === tool) &&
      (session === "" || event.session_id === session) &&
      (outcome === "" || outcomeOf(event) === outcome) &&
      (searchText === "" || textOf(event).includes(searchText))
  )
}

const Row = ({
  startMillis,
  event,
  href,
  isChosen,
  isStop
}: {
  readonly event: Event
  readonly href: string
  readonly isChosen: boolean
  readonly isStop: boolean
  readonly startMillis: number | undefined
}) => {
  const millis = millisOf(event.at)
  const outcome = outcomeOf(event)
  return (
    <a
      class="item event"
      role="option"
      aria-selected={isChosen}
      tabIndex={isStop ? 0 : -1}
      href={href}
      data-index={event.index}
    >
      <span class="event-outcome">{outcome === undefined ? <span class="dot" /> : <Outcome isBare outcome={outcome} />}</span>
      <span class="event-name ellipsis">{escapeLine(event.name)}</span>
      <span class="event-what ellipsis">
        {event.path === undefined ? null : <Path path={event.path} />}
        {event.message === undefined || event.message === "" ? null : (
          <span class="event-said">{escapeLine(event.message)}</span>
        )}
      </span>
      <span class="event-size num">{event.size_bytes === undefined ? "" : bytes(event.size_bytes)}</span>
      <span class="event-took num">{event.duration_millis === undefined ? "" : formatDuration(event.duration_millis)}</span>
      {millis === undefined || startMillis === undefined ? (
        <span class="event-time num faint">—</span>
      ) : (
        <time class="event-time num" dateTime={event.at!} title={formatAbsolute(millis)}>
          {formatSince(millis - startMillis)}
        </time>
      )}
    </a>
  )
}

const NoEvents = () => (
  <Empty title="No events">
    <p>This view shows the tool calls of a session: the tool, the path, the outcome and the duration.</p>
    <p>
      To record tool calls, add the slice <code>ToolEvents.log</code> to the session. <code>Session.dumpSessionTree</code>{" "}
      writes the session to a dump, and <code>fs-algebra debug DUMP</code> shows the dump.
    </p>
  </Empty>
)

export const Events = () => {
  const { error, again, isWaiting, items, total } = useEvents()
  const { params, path } = place.value
  const eventFilter = filterOf(params)
  const isNarrow = useNarrow()
  const { outcome, session, span, text, tool } = eventFilter

  const tools = useMemo(() => [...new Set(items.map(({ name }) => name))].sort(), [items])
  const found = useMemo(() => filtered(items, eventFilter), [items, tool, outcome, text, session])
  const rows = useMemo(
    () => (span === undefined ? found : found.filter((event) => isWithin(event, span))),
    [found, span?.[0], span?.[1]]
  )
  const marks = useMemo(() => marksOf(found), [found])
  const startMillis = useMemo(() => items.map(({ at }) => millisOf(at)).find((millis) => millis !== undefined), [items])

  const chosen = path === "" ? undefined : items[Number(path)]
  const position = chosen === undefined ? -1 : rows.indexOf(chosen)
  const hrefTo = (event: Event | undefined): string => hrefOf("events", event === undefined ? "" : String(event.index), params)
  const set = (changed: Readonly<Record<string, string | undefined>>): void => go(hereWith(changed), { replace: true })
  const focus = useFocus(chosen?.index, position)
  useListKeys("event", rows.length, position, (index) => go(hrefTo(rows[index]), { replace: true }))

  if (error !== undefined && items.length === 0) return <ErrorMessage message={error} retry={again} />
  if (!isWaiting && items.length === 0) return meta.value === undefined ? null : <NoEvents />

  const isFiltered = [tool, outcome, text, session].some((one) => one !== "") || span !== undefined
  const failures = found.filter(({ success }) => success === false).length

  return (
    <div class="panel">
      <div class="bar">
        <Search label="Filter by path, message, call" text={text} onText={(q) => set({ q })} />
        <Choice
          label="Tool"
          value={tool}
          onValue={(tool) => set({ tool })}
          of={[["", "All tools"], ...tools.map((name) => [name, escapeLine(name)] as const)]}
        />
        <Choice
          label="Outcome"
          value={outcome}
          onValue={(outcome) => set({ outcome })}
          of={[
            ["", "Any outcome"],
            ["done", "Done"],
            ["failed", "Failed"]
          ]}
        />
        {session === "" ? null : (
          <FilterChip title="Show all sessions" onRemove={() => set({ session: undefined })}>
            session {escapeLine(session)}
          </FilterChip>
        )}
        {span === undefined ? null : (
          <FilterChip title="Show the whole time span" onRemove={() => set({ from: undefined, to: undefined })}>
            {formatDuration(span[1] - span[0])}
          </FilterChip>
        )}
        <span class="bar-count" role="status">
          {isFiltered
            ? `${rows.length.toLocaleString("en")} of ${formatCount(items.length, "event")}`
            : formatCount(total, "event")}
          {failures > 0 ? <span class="is-bad-text"> · {failures.toLocaleString("en")} failed</span> : null}
          {isWaiting && items.length > 0 ? ` · ${items.length.toLocaleString("en")} read…` : null}
        </span>
      </div>
      {marks.length > 1 ? (
        <Timeline
          label="Events over time"
          marks={marks}
          chosen={millisOf(chosen?.at)}
          span={span}
          onPoint={(millis) => go(hrefTo(items[nearestMark(marks, millis).index]))}
          onSpan={(span) => set({ from: span && String(span[0]), to: span && String(span[1]) })}
        />
      ) : null}
      <Split
        label="Events"
        isOpen={path !== ""}
        back={hrefTo(undefined)}
        backLabel="All events"
        detail={
          chosen === undefined ? (
            path !== "" && isWaiting ? (
              <div class="waiting" aria-busy="true" />
            ) : (
              <Empty title={path === "" ? "Choose an event" : "There is no such event"}>
                <p>Its parameters, its message and its file appear here.</p>
              </Empty>
            )
          ) : (
            <EventDetail key={chosen.index} event={chosen} />
          )
        }
      >
        {rows.length === 0 && !isWaiting ? (
          <Empty title="No event matches">
            <button type="button" class="button" onClick={() => go(hrefOf("events", path))}>
              Clear the filter
            </button>
          </Empty>
        ) : (
          <div class="rows panel-keys">
            <VirtualList
              label="Events"
              role="listbox"
              class="events"
              count={rows.length}
              rowHeight={isNarrow ? 52 : 32}
              focus={focus}
              keyOf={(index) => rows[index]?.index ?? index}
              row={(index) => {
                const event = rows[index]
                return event === undefined ? null : (
                  <Row
                    event={event}
                    href={hrefTo(event)}
                    isChosen={event === chosen}
                    isStop={event === chosen || (position < 0 && index === 0)}
                    startMillis={startMillis}
                  />
                )
              }}
            />
          </div>
        )}
      </Split>
    </div>
  )
}
