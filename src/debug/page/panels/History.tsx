import type { HistoryItem } from "../../model.ts"
import * as Api from "../api.ts"
import { bytes, Empty, ErrorMessage, useRequest } from "../components.tsx"
import { hrefOf, journalLast, version } from "../store.ts"
import { Outcome, Path, useNow, When } from "./parts.tsx"
import { isOnlySize, escapeLine } from "./words.ts"

const hrefTo = ({ event_index, position }: HistoryItem): string | undefined =>
  event_index !== undefined
    ? hrefOf("events", String(event_index))
    : position !== undefined
      ? hrefOf("journal", String(position))
      : undefined

const keyOf = ({ correlation_id, event_index, position, source }: HistoryItem, index: number): string =>
  `${source} ${event_index ?? position ?? correlation_id ?? index}`

const HistoryEntry = ({ item, now, path }: { readonly item: HistoryItem; readonly path: string; readonly now: number }) => {
  const href = hrefTo(item)
  const entryContent = (
    <>
      <span class="change-head">
        <Outcome isBare outcome={item.outcome} />
        <span class="change-what">{escapeLine(item.what)}</span>
        {item.tool === undefined || item.tool === item.what ? null : <span class="badge">{escapeLine(item.tool)}</span>}
        <span class="grow" />
        <span class="faint num">
          <When at={item.at} now={now} />
        </span>
      </span>
      {item.to_path === undefined ? null : (
        <span class="change-line mono">
          {item.path === path ? "→ " : "from "}
          {escapeLine(item.path === path ? item.to_path : item.path)}
        </span>
      )}
      {item.path === path || item.to_path !== undefined ? null : (
        <span class="change-line mono">
          <Path path={item.path} />
        </span>
      )}
      {item.message === undefined || item.message === "" || isOnlySize(item.message) ? null : (
        <span class={item.outcome === "failed" ? "change-line is-bad-text" : "change-line"}>{escapeLine(item.message)}</span>
      )}
      <span class="change-line faint">
        {[
          item.source === "tool" ? "call" : "journal",
          item.source === "tool" ? item.call_id : item.position === undefined ? undefined : `#${item.position}`,
          item.size_bytes === undefined ? undefined : bytes(item.size_bytes),
          item.session_id
        ]
          .filter((word) => word !== undefined)
          .map(escapeLine)
          .join(" · ")}
      </span>
    </>
  )
  return (
    <li>
      {href === undefined ? (
        <div class="change">{entryContent}</div>
      ) : (
        <a class="change" href={href}>
          {entryContent}
        </a>
      )}
    </li>
  )
}

export const History = ({ path }: { readonly path: string }) => {
  const now = useNow(10_000)
  const { askAgain, error, value } = useRequest((signal) => Api.history(path, signal), [path, version.value, journalLast.value])
  if (error !== undefined) return <ErrorMessage message={error} retry={askAgain} />
  if (value === undefined) return <div class="waiting" aria-busy="true" />
  if (value.length === 0) {
    return (
      <Empty title="No recorded changes">
        <p>
          This list shows the tool calls that touched the file, if the session has the slice <code>ToolEvents.log</code>. With{" "}
          <code>--journal FILE</code> it also shows the changes in the journal.
        </p>
      </Empty>
    )
  }
  return (
    <ol class="changes-of" aria-label={`Who changed ${escapeLine(path)}`}>
      {value.map((item, index) => (
        <HistoryEntry key={keyOf(item, index)} item={item} path={path} now={now} />
      ))}
    </ol>
  )
}
