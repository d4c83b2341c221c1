/**
 * Shows the requests to a filesystem and their answers, latest first and live. A request and its answers are visually
 * connected.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import type { JournalItem } from "../../model.ts"
import { bytes, Empty, ErrorMessage, VirtualList } from "../components.tsx"
import { useKeys } from "../shell/keys.ts"
import { go, hrefOf, meta, place } from "../store.ts"
import { JournalChanges } from "./JournalChanges.tsx"
import { JournalDetail } from "./JournalDetail.tsx"
import { useJournal } from "./journalHeld.ts"
import { Choice, Path, Search, Split, useFocus, useListKeys, useNarrow, useNow, When } from "./parts.tsx"
import { briefOf, formatCount, escapeLine } from "./words.ts"

const kinds: ReadonlyArray<readonly [value: string, text: string]> = [
  ["", "All kinds"],
  ["requests", "Requests"],
  ["answers", "Answers"],
  ["faults", "Faults"]
]

const isKind = ({ direction, fault, kind }: JournalItem, asked: string): boolean => {
  if (asked === "requests") return direction === "request"
  if (asked === "answers") return direction === "answer"
  if (asked === "faults") return fault !== undefined
  return asked === "" || kind === asked
}

const matchesText = ({ correlation_id, kind, path, summary, to_path }: JournalItem, searchText: string): boolean =>
  `${kind}\n${path ?? ""}\n${to_path ?? ""}\n${summary}\n${correlation_id ?? ""}`.toLowerCase().includes(searchText)

/** The number of entries that are loaded automatically to fill a filtered list. */
const maxAutomaticEntries = 20_000

const signs = { request: "→", answer: "←", other: "·" } as const

/** The position of a row among adjacent rows of one request and its answer. */
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
  /** The path of the request, for an answer that names none. */
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
    <p>What is asked of the filesystem, and what it answers, would be here as it happens.</p>
    <p>
      A filesystem under <code>Journal.record</code>, or the command with <code>--journal FILE</code>, keeps one;{" "}
      <code>fs-algebra debug --journal FILE</code> shows it.
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

const ChangesOnly = () => {
  const { path, q = "" } = place.value.params
  const set = (changed: Readonly<Record<string, string | undefined>>): void =>
    go(hrefOf("journal", "", { ...place.value.params, ...changed }), { replace: true })
  return (
    <div class="panel">
      <div class="bar">
        <ViewSwitch isChanges />
        <Search label="Filter by path and kind" text={q} onText={(q) => set({ q })} />
        {path === undefined ? null : <PathChip path={path} onRemove={() => set({ path: undefined })} />}
      </div>
      <JournalChanges path={path} sought={q.trim().toLowerCase()} />
    </div>
  )
}

const PathChip = ({ onRemove, path }: { readonly path: string; readonly onRemove: () => void }) => (
  <button type="button" class="chip" onClick={onRemove} title="Show all paths">
    {escapeLine(path)} <span aria-hidden="true">×</span>
  </button>
)

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
  const set = (changed: Readonly<Record<string, string | undefined>>): void =>
    go(hrefOf("journal", chosenPath, { ...params, ...changed }), { replace: true })
  const showNew = (): void => {
    show()
    scroller()?.scrollTo({ top: 0 })
  }
  const focus = useFocus(chosen, position)
  useListKeys("entry", rows.length, position, (index) => go(hrefTo(rows[index]?.position), { replace: true }))
  useKeys([{ key: ".", does: "Show new entries", run: showNew }])
  // Load older entries until the chosen one is reached.
  const isChosenOlder = chosen !== undefined && chosen < (items.at(-1)?.position ?? 0)
  // A filter that matches little loads more, until the list is full or the journal is exhausted.
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
        {path === undefined ? null : <PathChip path={path} onRemove={() => set({ path: undefined })} />}
        {correlation === undefined ? null : (
          <button type="button" class="chip" onClick={() => set({ correlation: undefined })} title="Show all exchanges">
            exchange {escapeLine(correlation)} <span aria-hidden="true">×</span>
          </button>
        )}
        <span class="bar-count" role="status">
          {formatCount(rows.length, "entry", "entries")}
          {next === null ? "" : " so far"}
          {next !== null && isFiltered && items.length >= maxAutomaticEntries && !isAsking ? (
            <button type="button" class="mini" onClick={more}>
              look further back
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
              <p>What it asked or answered, and the contents it carried, are shown here.</p>
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
                  : "No entry is such"
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
