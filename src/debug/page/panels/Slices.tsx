import { useMemo } from "preact/hooks"
import type { SessionInfo, SliceInfo } from "../../model.ts"
import * as Api from "../api.ts"
import { Empty, ErrorMessage, useRequest } from "../components.tsx"
import { go, hrefOf, meta, place, version } from "../store.ts"
import { Json } from "./Json.tsx"
import { marksOf, nearestMark, Timeline, useEvents } from "./Timeline.tsx"
import { Split, useListKeys, useNow, When } from "./parts.tsx"
import { escapeLine, formatCount } from "./words.ts"

const pageSize = 50

/** The maximum length, in characters, of an item's JSON that is unfolded at first. */
const foldedCharacters = 1200

const lengthOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0

const OverTime = ({ slice }: { readonly slice: SliceInfo }) => {
  const { items } = useEvents()
  const marks = useMemo(
    () => marksOf(items.filter((event) => event.slice === slice.name && event.session_id === slice.session_id)),
    [items, slice]
  )
  if (marks.length < 2) return null
  return (
    <Timeline
      label={`${slice.name} over time`}
      marks={marks}
      onPoint={(millis) => go(hrefOf("events", String(nearestMark(marks, millis).index)))}
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

const SliceItems = ({ slice }: { readonly slice: SliceInfo }) => {
  const { items: total, name, policy, session_id: session } = slice
  const pages = Math.max(1, Math.ceil(total / pageSize))
  const page = Math.min(pages - 1, Math.max(0, Math.floor(Number(place.value.params["page"] ?? 1)) - 1 || 0))
  const isLatestFirst = policy === "state"
  const end = isLatestFirst ? total - page * pageSize : Math.min(total, (page + 1) * pageSize)
  const begin = isLatestFirst ? Math.max(0, end - pageSize) : page * pageSize
  const { askAgain, error, isLoading, value } = useRequest(
    (signal) => Api.slice(name, { session, offset: begin, limit: Math.max(1, end - begin) }, signal),
    [name, session, begin, end, version.value]
  )
  const hrefTo = (page: number): string => hrefOf("slices", name, { session, page: page === 0 ? undefined : String(page + 1) })
  const rows = useMemo(() => {
    const numbered = (value?.items ?? []).map((item, index) => [(value?.offset ?? 0) + index, item] as const)
    return isLatestFirst ? numbered.reverse() : numbered
  }, [value, isLatestFirst])
  return (
    <article class="detail" aria-label={`Slice ${escapeLine(name)}`} aria-busy={isLoading}>
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
      {error === undefined ? null : <ErrorMessage message={error} retry={askAgain} />}
      {value !== undefined && rows.length === 0 ? <Empty title="This slice is empty" /> : null}
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

interface Line {
  readonly depth: number
  readonly session: SessionInfo
  readonly slice?: SliceInfo
}

/** Lists each session below its parent, followed by its slices. A session in a cycle of parents is listed as a root. */
const linesOf = (sessions: ReadonlyArray<SessionInfo>, slices: ReadonlyArray<SliceInfo>): ReadonlyArray<Line> => {
  const ids = new Set(sessions.map(({ session_id }) => session_id))
  const byParent = Map.groupBy(sessions, ({ parent_id }) => (parent_id !== null && ids.has(parent_id) ? parent_id : null))
  const bySession = Map.groupBy(slices, ({ session_id }) => session_id)
  const lines: Array<Line> = []
  const seen = new Set<string>()
  const visit = (session: SessionInfo, depth: number): void => {
    if (seen.has(session.session_id)) return
    seen.add(session.session_id)
    lines.push({ depth, session })
    for (const slice of bySession.get(session.session_id) ?? []) lines.push({ depth: depth + 1, session, slice })
    for (const child of byParent.get(session.session_id) ?? []) visit(child, depth + 1)
  }
  for (const root of byParent.get(null) ?? []) visit(root, 0)
  for (const session of sessions) visit(session, 0)
  return lines
}

const Session = ({ depth, now, session }: { readonly session: SessionInfo; readonly depth: number; readonly now: number }) => (
  <div
    class="session"
    role="treeitem"
    aria-level={depth + 1}
    aria-expanded="true"
    style={{ paddingLeft: `${12 + depth * 16}px` }}
  >
    <div class="session-head">
      <span class="session-id mono ellipsis" title={escapeLine(session.session_id)}>
        {escapeLine(session.session_id)}
      </span>
      <span class="faint num">
        <When at={session.created_at} now={now} />
      </span>
    </div>
    {Object.keys(session.tags).length === 0 ? null : (
      <div class="tags">
        {Object.entries(session.tags).map(([name, value]) => (
          <span key={name} class="tag">
            <span class="tag-name">{escapeLine(name)}</span>
            {escapeLine(value)}
          </span>
        ))}
      </div>
    )}
    {session.slices === 0 ? <div class="faint">no slices</div> : null}
  </div>
)

const Slice = ({
  depth,
  isChosen,
  isStop,
  slice
}: {
  readonly slice: SliceInfo
  readonly depth: number
  readonly isChosen: boolean
  readonly isStop: boolean
}) => (
  <a
    class="item slice"
    role="treeitem"
    aria-level={depth + 1}
    aria-selected={isChosen}
    tabIndex={isStop ? 0 : -1}
    href={hrefOf("slices", slice.name, { session: slice.session_id })}
    style={{ paddingLeft: `${12 + depth * 16}px` }}
  >
    <span class={`slice-policy ${slice.policy}`} aria-hidden="true">
      {slice.policy === "log" ? "≡" : "◆"}
    </span>
    <span class="grow ellipsis">{escapeLine(slice.name)}</span>
    <span class="faint">{slice.policy}</span>
    <span class="badge">{slice.items.toLocaleString("en")}</span>
  </a>
)

export const Slices = () => {
  const now = useNow(30_000)
  const { askAgain, error, value } = useRequest(() => Promise.all([Api.sessions(), Api.slices()]), [version.value])
  const { params, path } = place.value
  const lines = useMemo(() => linesOf(...(value ?? [[], []])), [value])
  const slices = useMemo(() => lines.flatMap(({ slice }) => slice ?? []), [lines])
  const isChosenSlice = ({ name, session_id }: SliceInfo): boolean =>
    name === path && (params["session"] === undefined || session_id === params["session"])
  const position = path === "" ? -1 : slices.findIndex(isChosenSlice)
  const chosen = slices[position]
  useListKeys("slice", slices.length, position, (index) => {
    const { name, session_id } = slices[index]!
    go(hrefOf("slices", name, { session: session_id }), { replace: true })
  })

  if (error !== undefined) return <ErrorMessage message={error} retry={askAgain} />
  if (value === undefined) return <div class="waiting" aria-busy="true" />
  if (lines.length === 0) {
    return (
      <Empty title="No sessions">
        <p>This view shows the slices of the sessions of a run, item by item.</p>
        <p>
          {meta.value?.kind === "workspace" ? "A workspace has no sessions. " : ""}
          <code>Session.dumpSessionTree</code> writes sessions to a dump; <code>fs-algebra debug DUMP</code> shows the dump.
        </p>
      </Empty>
    )
  }
  return (
    <div class="panel">
      <Split
        label="Sessions and slices"
        isOpen={chosen !== undefined}
        back={hrefOf("slices")}
        backLabel="All slices"
        detail={
          chosen === undefined ? (
            <Empty title={path === "" ? "Choose a slice" : "There is no such slice"}>
              <p>
                A <em>state</em> slice has only the current items; a <em>log</em> slice keeps all items.
              </p>
            </Empty>
          ) : (
            <SliceItems key={`${chosen.session_id} ${chosen.name}`} slice={chosen} />
          )
        }
      >
        <div class="bar">
          <span class="faint num">
            {formatCount(value[0].length, "session")} · {formatCount(value[1].length, "slice")}
          </span>
        </div>
        <div class="rows rows-scroll panel-keys" role="tree" aria-label="Sessions and slices">
          {lines.map(({ depth, session, slice }) =>
            slice === undefined ? (
              <Session key={session.session_id} session={session} depth={depth} now={now} />
            ) : (
              <Slice
                key={`${session.session_id} ${slice.name}`}
                slice={slice}
                depth={depth}
                isChosen={slice === chosen}
                isStop={slice === (chosen ?? slices[0])}
              />
            )
          )}
        </div>
      </Split>
    </div>
  )
}
