/** Shows the requests to a filesystem and their answers, live and latest first. A line connects a request and its answers. */
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks"
import type { HistoryItem, JournalItem, JournalPage } from "../../model.ts"
import * as Api from "../api.ts"
import { bytes, Empty, ErrorMessage, useRequest, VirtualList } from "../components.tsx"
import { useKeys } from "../shell/keys.ts"
import { go, hereWith, hrefOf, journalLast, meta, place, version } from "../store.ts"
import { Content } from "./FileDiff.tsx"
import { Json } from "./Json.tsx"
import {
  Choice,
  Copy,
  Fact,
  Facts,
  FilterChip,
  Path,
  Search,
  Split,
  useFocus,
  useListKeys,
  useNarrow,
  useNow,
  When,
  WhenFact
} from "./parts.tsx"
import { briefOf, detailOf, escapeLine, escapeText, formatCount, formatDuration, millisOf } from "./words.ts"

// Holds the loaded part of the journal, latest first. While the list is scrolled to the top, new entries are added
// immediately. At other times, new entries wait until the user shows them, so that the list does not move.

const pageSize = 200
const maxPageEntries = 1000

interface JournalQuery {
  readonly path?: string
  readonly correlation?: string
}

class LoadedJournal {
  items: ReadonlyArray<JournalItem> = []
  waiting: ReadonlyArray<JournalItem> = []
  /** The value of `before` that loads the next older entries; `null` if there are none. */
  next: number | null = null
  last = 0
  isBegun = false
  isAsking = false
  error: string | undefined
}

const latestFirst = (items: ReadonlyArray<JournalItem>): ReadonlyArray<JournalItem> => {
  const sorted = [...items].sort((a, b) => b.position - a.position)
  return sorted.filter(({ position }, index) => position !== sorted[index - 1]?.position)
}

/** Loads the journal. When new entries arrive, `isAtTop` must return whether the list is scrolled to the top. */
const useJournal = (journalQuery: JournalQuery, isAtTop: () => boolean) => {
  const [attempt, again] = useReducer<number, void>((n) => n + 1, 0)
  const [, render] = useReducer<number, void>((n) => n + 1, 0)
  const ref = useRef(new LoadedJournal())
  const { correlation, path } = journalQuery
  const { generation, has_journal } = meta.value ?? {}

  const runRequest = async (
    loaded: LoadedJournal,
    ask: () => Promise<JournalPage>,
    take: (page: JournalPage) => void
  ): Promise<void> => {
    if (loaded.isAsking) return
    loaded.isAsking = true
    render()
    try {
      const page = await ask()
      take(page)
      loaded.error = undefined
    } catch (error) {
      loaded.error = Api.errorMessage(error)
    }
    loaded.isAsking = false
    // Do not render for a query that is no longer shown.
    if (loaded === ref.current) render()
  }

  useEffect(() => {
    if (has_journal !== true) return
    const loaded = new LoadedJournal()
    ref.current = loaded
    void runRequest(
      loaded,
      () => Api.journal({ ...journalQuery, limit: pageSize }),
      ({ items, last, next }) => {
        Object.assign(loaded, { items: latestFirst(items), last, next, isBegun: true })
      }
    )
  }, [path, correlation, generation, has_journal, attempt])

  const loaded = ref.current
  const liveLast = journalLast.value
  useEffect(() => {
    if (!loaded.isBegun || loaded.isAsking || loaded.error !== undefined || liveLast === undefined || liveLast <= loaded.last)
      return
    void runRequest(
      loaded,
      () => Api.journal({ ...journalQuery, after: loaded.last, limit: maxPageEntries }),
      ({ items, last, next }) => {
        loaded.last = Math.max(next ?? last, loaded.last)
        loaded.waiting = latestFirst([...items, ...loaded.waiting])
        if (isAtTop()) show(loaded)
      }
    )
  })

  const show = (loaded: LoadedJournal): void => {
    loaded.items = latestFirst([...loaded.waiting, ...loaded.items])
    loaded.waiting = []
  }
  const loadOlder = (): void => {
    const before = loaded.next
    if (before === null || loaded.error !== undefined) return
    void runRequest(
      loaded,
      () => Api.journal({ ...journalQuery, before, limit: maxPageEntries }),
      ({ items, next }) => {
        loaded.items = latestFirst([...loaded.items, ...items])
        loaded.next = items.length === 0 ? null : next
      }
    )
  }
  return {
    ...loaded,
    again: () => again(),
    more: loadOlder,
    show: () => {
      show(loaded)
      render()
    }
  }
}

const changesPerPage = 500

const outcomes = { done: "", failed: "failed", unanswered: "no answer" } as const

const ChangeRow = ({ item, now }: { readonly item: HistoryItem; readonly now: number }) => (
  <a class="item entry" href={hrefOf("journal", String(item.position ?? ""), {})}>
    <span class="entry-position num">{item.position}</span>
    <span class="entry-kind mono ellipsis">{escapeLine(item.what)}</span>
    <span class="entry-what ellipsis">
      {item.outcome === "done" ? null : <span class="badge bad">{outcomes[item.outcome]}</span>}
      <Path path={item.path} />
      {item.to_path === undefined ? null : (
        <>
          <span class="faint">→</span>
          <Path path={item.to_path} />
        </>
      )}
      {item.message === undefined ? null : <span class="event-said">{escapeLine(item.message)}</span>}
    </span>
    <span class="entry-size num">{item.size_bytes === undefined ? "" : bytes(item.size_bytes)}</span>
    <span class="entry-time num faint">{item.at === null ? "" : <When at={item.at} now={now} />}</span>
  </a>
)

/** The loaded changes, latest first, and the value of `before` that loads older changes. */
interface LoadedChanges {
  readonly items: ReadonlyArray<HistoryItem>
  readonly next: number | null
}

const positionOf = ({ position }: HistoryItem): number => position ?? 0

const latestChangesFirst = (items: ReadonlyArray<HistoryItem>): ReadonlyArray<HistoryItem> =>
  [...new Map(items.map((item) => [positionOf(item), item])).values()].sort((a, b) => positionOf(b) - positionOf(a))

/**
 * Adds the latest page to the loaded changes. If changes between the page and the loaded changes may be missing, the loaded
 * changes are dropped.
 */
const addLatestPage = (loadedChanges: LoadedChanges | undefined, page: LoadedChanges): LoadedChanges => {
  const newest = loadedChanges?.items[0]
  const lowest = page.items.at(-1)
  const isGap = newest !== undefined && lowest !== undefined && positionOf(lowest) > positionOf(newest)
  if (loadedChanges === undefined || newest === undefined || (page.next !== null && isGap)) return page
  return { items: latestChangesFirst([...loadedChanges.items, ...page.items]), next: loadedChanges.next }
}

const useChanges = (path: string | undefined) => {
  const [loadedChanges, setLoadedChanges] = useState<LoadedChanges>()
  const [error, setError] = useState<string>()
  const requestPage = (signal?: AbortSignal, before?: number) =>
    Api.journalChanges(
      { limit: changesPerPage, ...(path !== undefined && { path }), ...(before !== undefined && { before }) },
      signal
    )
  useEffect(() => setLoadedChanges(undefined), [path, version.value])
  const request = useRequest((signal) => requestPage(signal), [path, version.value, journalLast.value])
  useEffect(() => {
    const page = request.value
    if (page !== undefined && !request.isLoading) setLoadedChanges((loadedChanges) => addLatestPage(loadedChanges, page))
  }, [request.value, request.isLoading])
  const loadOlder = (before: number): void => {
    requestPage(undefined, before).then(
      ({ items, next }) =>
        setLoadedChanges((loadedChanges) => ({
          items: latestChangesFirst([...(loadedChanges?.items ?? []), ...items]),
          next
        })),
      (error: unknown) => setError(Api.errorMessage(error))
    )
  }
  return { known: loadedChanges, error: request.error ?? error, again: request.askAgain, older: loadOlder }
}

const JournalChanges = ({ path, sought }: { readonly path: string | undefined; readonly sought: string }) => {
  const isNarrow = useNarrow()
  const now = useNow(5000)
  const { again, error, known: loadedChanges, older: loadOlder } = useChanges(path)
  if (error !== undefined) return <ErrorMessage message={error} retry={again} />
  if (loadedChanges === undefined) return null
  const { items, next } = loadedChanges
  const matchesText = ({ path, to_path, what }: HistoryItem): boolean =>
    `${what}\n${path}\n${to_path ?? ""}`.toLowerCase().includes(sought)
  const rows = sought === "" ? items : items.filter(matchesText)
  return (
    <div class="rows">
      <p class="bar-count" role="status">
        {formatCount(rows.length, "change")}
        {next === null ? null : (
          <button type="button" class="mini" onClick={() => loadOlder(next)}>
            older changes
          </button>
        )}
      </p>
      {rows.length === 0 ? (
        <Empty title="No change is recorded" />
      ) : (
        <VirtualList
          label="Changes, the latest first"
          class="entries changes-only"
          count={rows.length}
          rowHeight={isNarrow ? 52 : 32}
          keyOf={(index) => rows[index]?.position ?? index}
          row={(index) => {
            const item = rows[index]
            return item === undefined ? null : <ChangeRow item={item} now={now} />
          }}
        />
      )}
    </div>
  )
}

const File = ({ path }: { readonly path: string }) => (
  <>
    <a class="mono" href={hrefOf("files", path)}>
      <Path path={path} />
    </a>{" "}
    <a class="mini" href={hrefOf("journal", "", { path })} title="Only entries of this path">
      only this
    </a>
  </>
)

const Exchange = ({ id, position }: { readonly id: string; readonly position: number }) => {
  const { value } = useRequest((signal) => Api.journal({ correlation: id, limit: 100 }, signal), [id, journalLast.value])
  const steps = [...(value?.items ?? [])].sort((a, b) => a.position - b.position)
  if (steps.length === 0) return null
  const begun = millisOf(steps[0]!.at)
  const after = ({ at }: JournalItem): string => {
    const millis = millisOf(at)
    return millis === undefined || begun === undefined ? "" : `+${formatDuration(millis - begun)}`
  }
  return (
    <section class="exchange" aria-label="Request and answers">
      <h3 class="small-head">Exchange</h3>
      <ol>
        {steps.map((step, index) => (
          <li key={step.position}>
            <a
              class={step.position === position ? "step is-here" : "step"}
              aria-current={step.position === position ? "true" : undefined}
              href={hrefOf("journal", String(step.position), place.value.params)}
            >
              <span class="num faint">{step.position}</span>
              <span class={step.fault === undefined ? "mono" : "mono is-bad-text"}>{escapeLine(step.kind)}</span>
              <span class="grow ellipsis faint">{escapeLine(detailOf(step))}</span>
              <span class="num faint">{index === 0 ? "" : after(step)}</span>
            </a>
          </li>
        ))}
      </ol>
      {steps.length === 1 && steps[0]!.direction === "request" ? <p class="faint">There is no answer yet.</p> : null}
    </section>
  )
}

const JournalDetail = ({ position }: { readonly position: number }) => {
  const now = useNow(5000)
  const { askAgain, error, value } = useRequest((signal) => Api.entry(position, signal), [position])
  if (error !== undefined) return <ErrorMessage message={error} retry={askAgain} />
  if (value === undefined) return <div class="waiting" aria-busy="true" />
  const { content, entry, item } = value
  const detail = briefOf(item)
  return (
    <article class="detail" aria-label={`Entry ${item.position}: ${escapeLine(item.kind)}`}>
      <header class="detail-head">
        <h2 class="detail-title mono">{escapeLine(item.kind)}</h2>
        {item.fault === undefined ? null : <span class="badge bad">{escapeLine(item.fault)}</span>}
        <span class="badge">{item.direction}</span>
        <span class="detail-number">#{item.position}</span>
      </header>
      {detail === "" ? null : <p class={item.fault === undefined ? "said" : "said is-bad"}>{escapeText(detail)}</p>}
      <Facts>
        {item.path === undefined ? null : (
          <Fact name="Path">
            <File path={item.path} />
          </Fact>
        )}
        {item.to_path === undefined ? null : (
          <Fact name="To">
            <File path={item.to_path} />
          </Fact>
        )}
        <WhenFact at={item.at} now={now} />
        {item.size_bytes === undefined ? null : <Fact name="Content">{bytes(item.size_bytes)}</Fact>}
        {item.correlation_id === undefined ? null : (
          <Fact name="Exchange">
            <code class="wrap">{escapeLine(item.correlation_id)}</code> <Copy text={item.correlation_id} label="Copy the id" />{" "}
            <a class="mini" href={hrefOf("journal", String(position), { correlation: item.correlation_id })}>
              only this
            </a>
          </Fact>
        )}
      </Facts>
      {item.correlation_id === undefined ? null : <Exchange id={item.correlation_id} position={position} />}
      {content === undefined ? null : <Content file={content} />}
      <Json label="Entry" value={entry} open={3} />
    </article>
  )
}

const kinds: ReadonlyArray<readonly [value: string, text: string]> = [
  ["", "All kinds"],
  ["requests", "Requests"],
  ["answers", "Answers"],
  ["faults", "Faults"]
]

const isKind = ({ direction, fault, kind }: JournalItem, kindFilter: string): boolean => {
  if (kindFilter === "requests") return direction === "request"
  if (kindFilter === "answers") return direction === "answer"
  if (kindFilter === "faults") return fault !== undefined
  return kindFilter === "" || kind === kindFilter
}

const matchesText = ({ correlation_id, kind, path, summary, to_path }: JournalItem, searchText: string): boolean =>
  `${kind}\n${path ?? ""}\n${to_path ?? ""}\n${summary}\n${correlation_id ?? ""}`.toLowerCase().includes(searchText)

/** The number of entries that are loaded automatically to fill a filtered list. */
const maxAutomaticEntries = 20_000

const signs = { request: "→", answer: "←", other: "·" } as const

/** The position of a row in a group of adjacent rows: a request and its answers. */
type RequestTie = "alone" | "first" | "between" | "last"

const tieOf = (rows: ReadonlyArray<JournalItem>, index: number): RequestTie => {
  const id = rows[index]?.correlation_id
  if (id === undefined) return "alone"
  const [above, below] = [rows[index - 1]?.correlation_id === id, rows[index + 1]?.correlation_id === id]
  return above ? (below ? "between" : "last") : below ? "first" : "alone"
}

const Row = ({
  about,
  href,
  isChosen,
  isStop,
  isPartner,
  item,
  now,
  onHover,
  tie
}: {
  readonly item: JournalItem
  /** The path of the request, to show for an answer without a path. */
  readonly about: string | undefined
  readonly href: string
  readonly isChosen: boolean
  readonly isStop: boolean
  /** True if the row belongs to the same request as the hovered or chosen row. */
  readonly isPartner: boolean
  readonly tie: RequestTie
  readonly now: number
  readonly onHover: (id: string | undefined) => void
}) => {
  const detail = briefOf(item)
  return (
    <a
      class={`item entry ${item.direction}${isPartner ? " is-partner" : ""}${item.fault === undefined ? "" : " is-fault"}`}
      role="option"
      aria-selected={isChosen}
      tabIndex={isStop ? 0 : -1}
      href={href}
      data-position={item.position}
      onPointerEnter={() => onHover(item.correlation_id)}
      onPointerLeave={() => onHover(undefined)}
    >
      <span class={`tie ${tie}`} aria-hidden="true" />
      <span class="entry-position num">{item.position}</span>
      <span class="entry-sign" role="img" aria-label={item.direction}>
        {signs[item.direction]}
      </span>
      <span class="entry-kind mono ellipsis">{escapeLine(item.kind)}</span>
      <span class="entry-what ellipsis">
        {item.fault === undefined ? null : <span class="badge bad">{escapeLine(item.fault)}</span>}
        {item.path !== undefined ? (
          <Path path={item.path} />
        ) : about !== undefined ? (
          <span class="entry-about">
            <Path path={about} />
          </span>
        ) : null}
        {item.to_path === undefined ? null : (
          <>
            <span class="faint">→</span>
            <Path path={item.to_path} />
          </>
        )}
        {detail === "" ? null : <span class="event-said">{escapeLine(detail)}</span>}
      </span>
      <span class="entry-size num">{item.size_bytes === undefined ? "" : bytes(item.size_bytes)}</span>
      <span class="entry-time num faint">
        <When at={item.at} now={now} />
      </span>
    </a>
  )
}

const NoJournal = () => (
  <Empty title="No journal">
    <p>This view shows the requests to the filesystem and the answers, live.</p>
    <p>
      To record a journal, use <code>Journal.record</code> in a program, or <code>--journal FILE</code> with a command.{" "}
      <code>fs-algebra debug --journal FILE</code> shows the journal.
    </p>
  </Empty>
)

const ViewSwitch = ({ isChanges }: { readonly isChanges: boolean }) => {
  const show = (as: string | undefined): void => go(hrefOf("journal", "", { ...place.value.params, as }), { replace: true })
  useKeys([{ key: "v", does: "Entries or changes", run: () => show(isChanges ? undefined : "changes") }])
  return (
    <div class="segments" role="group" aria-label="What the journal shows">
      <button type="button" aria-pressed={!isChanges} onClick={() => show(undefined)}>
        Entries
      </button>
      <button type="button" aria-pressed={isChanges} onClick={() => show("changes")}>
        Changes
      </button>
    </div>
  )
}

const set = (changed: Readonly<Record<string, string | undefined>>): void => go(hereWith(changed), { replace: true })

const ChangesOnly = () => {
  const { path, q = "" } = place.value.params
  return (
    <div class="panel">
      <div class="bar">
        <ViewSwitch isChanges />
        <Search label="Filter by path and kind" text={q} onText={(q) => set({ q })} />
        {path === undefined ? null : (
          <FilterChip title="Show all paths" onRemove={() => set({ path: undefined })}>
            {escapeLine(path)}
          </FilterChip>
        )}
      </div>
      <JournalChanges path={path} sought={q.trim().toLowerCase()} />
    </div>
  )
}

export const Journal = () => {
  if (meta.value === undefined) return null
  if (!meta.value.has_journal) return <NoJournal />
  return place.value.params["as"] === "changes" && place.value.path === "" ? <ChangesOnly /> : <Entries />
}

const Entries = () => {
  const { params, path: chosenPath } = place.value
  const { correlation, kind = "", path, q = "" } = params
  const chosen = chosenPath === "" ? undefined : Number(chosenPath)
  const isNarrow = useNarrow()
  const now = useNow(5000)
  const [hovered, setHovered] = useState<string | undefined>(undefined)
  const frame = useRef<HTMLDivElement>(null)
  const scroller = (): Element | null => frame.current?.querySelector(".scroll") ?? null
  const { again, error, isAsking, isBegun, items, more, next, show, waiting } = useJournal(
    { ...(path === undefined ? {} : { path }), ...(correlation === undefined ? {} : { correlation }) },
    () => (scroller()?.scrollTop ?? 0) < 8
  )
  const searchText = q.trim().toLowerCase()
  const matchesFilter = (item: JournalItem): boolean =>
    isKind(item, kind) && (searchText === "" || matchesText(item, searchText))
  const isFiltered = kind !== "" || searchText !== ""
  const rows = useMemo(() => (isFiltered ? items.filter(matchesFilter) : items), [items, kind, searchText])
  const pathByCorrelation = useMemo(
    () => new Map(items.flatMap(({ correlation_id, path }) => (path === undefined ? [] : [[correlation_id, path]]))),
    [items]
  )
  const knownKinds = useMemo(() => [...new Set(items.map(({ kind }) => kind))].sort(), [items])
  const position = chosen === undefined ? -1 : rows.findIndex((item) => item.position === chosen)
  const chosenId = rows[position]?.correlation_id
  const highlightedId = hovered ?? chosenId
  const hrefTo = (position: number | undefined): string =>
    hrefOf("journal", position === undefined ? "" : String(position), params)
  const showNew = (): void => {
    show()
    scroller()?.scrollTo({ top: 0 })
  }
  const focus = useFocus(chosen, position)
  useListKeys("entry", rows.length, position, (index) => go(hrefTo(rows[index]?.position), { replace: true }))
  useKeys([{ key: ".", does: "Show new entries", run: showNew }])
  // Load older entries until the chosen entry is loaded.
  const isChosenOlder = chosen !== undefined && chosen < (items.at(-1)?.position ?? 0)
  // If the filter matches few entries, load older entries until the list is full or the journal ends.
  useEffect(() => {
    if (isBegun && !isAsking && next !== null && (rows.length < 60 || isChosenOlder) && items.length < maxAutomaticEntries)
      more()
  })

  if (error !== undefined && items.length === 0) return <ErrorMessage message={error} retry={again} />
  const newEntryCount = waiting.filter(matchesFilter).length
  return (
    <div class="panel">
      <div class="bar">
        <ViewSwitch isChanges={false} />
        <Search label="Filter by path, text, id" text={q} onText={(q) => set({ q })} />
        <Choice
          label="Kind"
          value={kind}
          onValue={(kind) => set({ kind })}
          of={[
            ...kinds,
            ...[...new Set([...knownKinds, ...(kinds.some(([one]) => one === kind) ? [] : [kind])])].map(
              (kind) => [kind, escapeLine(kind)] as const
            )
          ]}
        />
        {path === undefined ? null : (
          <FilterChip title="Show all paths" onRemove={() => set({ path: undefined })}>
            {escapeLine(path)}
          </FilterChip>
        )}
        {correlation === undefined ? null : (
          <FilterChip title="Show all requests" onRemove={() => set({ correlation: undefined })}>
            exchange {escapeLine(correlation)}
          </FilterChip>
        )}
        <span class="bar-count" role="status">
          {formatCount(rows.length, "entry", "entries")}
          {next === null ? "" : " so far"}
          {next !== null && isFiltered && items.length >= maxAutomaticEntries && !isAsking ? (
            <button type="button" class="mini" onClick={more}>
              load older entries
            </button>
          ) : null}
        </span>
      </div>
      <Split
        label="Journal"
        isOpen={chosen !== undefined}
        back={hrefTo(undefined)}
        backLabel="All entries"
        detail={
          chosen === undefined ? (
            <Empty title="Choose an entry">
              <p>Its request or answer and its content appear here.</p>
            </Empty>
          ) : (
            <JournalDetail key={chosen} position={chosen} />
          )
        }
      >
        <div class="rows panel-keys" ref={frame}>
          {newEntryCount > 0 ? (
            <button type="button" class="fresh" onClick={showNew}>
              {formatCount(newEntryCount, "new entry", "new entries")} <kbd>.</kbd>
            </button>
          ) : null}
          {rows.length === 0 && isBegun && !isAsking ? (
            <Empty
              title={
                items.length === 0 && path === undefined && correlation === undefined
                  ? "The journal is empty so far"
                  : "No entry matches"
              }
            />
          ) : (
            <VirtualList
              label="Journal, the latest first"
              role="listbox"
              class="entries"
              count={rows.length}
              rowHeight={isNarrow ? 52 : 32}
              focus={focus}
              keyOf={(index) => rows[index]?.position ?? index}
              row={(index) => {
                const item = rows[index]
                if (item === undefined) return null
                if (index > rows.length - 40 && next !== null && !isAsking) queueMicrotask(more)
                return (
                  <Row
                    item={item}
                    about={pathByCorrelation.get(item.correlation_id)}
                    now={now}
                    href={hrefTo(item.position)}
                    isChosen={item.position === chosen}
                    isStop={item.position === chosen || (position < 0 && index === 0)}
                    isPartner={highlightedId !== undefined && item.correlation_id === highlightedId}
                    tie={tieOf(rows, index)}
                    onHover={setHovered}
                  />
                )
              }}
            />
          )}
        </div>
      </Split>
    </div>
  )
}
