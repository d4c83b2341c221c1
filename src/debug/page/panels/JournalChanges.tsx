import { useEffect, useState } from "preact/hooks"
import type { HistoryItem } from "../../model.ts"
import * as Api from "../api.ts"
import { bytes, Empty, ErrorMessage, useRequest, VirtualList } from "../components.tsx"
import { hrefOf, journalLast, version } from "../store.ts"
import { Path, useNarrow, useNow, When } from "./parts.tsx"
import { formatCount, escapeLine } from "./words.ts"

const pageSize = 500

const outcomes = { done: "", failed: "failed", unanswered: "no answer" } as const

const Row = ({ item, now }: { readonly item: HistoryItem; readonly now: number }) => (
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

/** The changes loaded so far, latest first, and the position where older ones begin. */
interface LoadedChanges {
  readonly items: ReadonlyArray<HistoryItem>
  readonly next: number | null
}

const positionOf = ({ position }: HistoryItem): number => position ?? 0

const latestFirst = (items: ReadonlyArray<HistoryItem>): ReadonlyArray<HistoryItem> =>
  [...new Map(items.map((item) => [positionOf(item), item])).values()].sort((a, b) => positionOf(b) - positionOf(a))

/** Adds the latest page. The known changes are dropped if there may be a gap before the page. */
const addLatestPage = (loadedChanges: LoadedChanges | undefined, page: LoadedChanges): LoadedChanges => {
  const newest = loadedChanges?.items[0]
  const lowest = page.items.at(-1)
  const isGap = newest !== undefined && lowest !== undefined && positionOf(lowest) > positionOf(newest)
  if (loadedChanges === undefined || newest === undefined || (page.next !== null && isGap)) return page
  return { items: latestFirst([...loadedChanges.items, ...page.items]), next: loadedChanges.next }
}

const useChanges = (path: string | undefined) => {
  const [loadedChanges, setLoadedChanges] = useState<LoadedChanges>()
  const [error, setError] = useState<string>()
  const requestPage = (signal?: AbortSignal, before?: number) =>
    Api.journalChanges(
      { limit: pageSize, ...(path !== undefined && { path }), ...(before !== undefined && { before }) },
      signal
    )
  useEffect(() => setLoadedChanges(undefined), [path, version.value])
  const asked = useRequest((signal) => requestPage(signal), [path, version.value, journalLast.value])
  useEffect(() => {
    const page = asked.value
    if (page !== undefined && !asked.isLoading) setLoadedChanges((loadedChanges) => addLatestPage(loadedChanges, page))
  }, [asked.value, asked.isLoading])
  const loadOlder = (before: number): void => {
    requestPage(undefined, before).then(
      ({ items, next }) =>
        setLoadedChanges((loadedChanges) => ({ items: latestFirst([...(loadedChanges?.items ?? []), ...items]), next })),
      (error: unknown) => setError(error instanceof Error ? error.message : String(error))
    )
  }
  return { known: loadedChanges, error: asked.error ?? error, again: asked.askAgain, older: loadOlder }
}

export const JournalChanges = ({ path, sought }: { readonly path: string | undefined; readonly sought: string }) => {
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
            return item === undefined ? null : <Row item={item} now={now} />
          }}
        />
      )}
    </div>
  )
}
