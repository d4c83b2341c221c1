import type { Event } from "../../model.ts"
import { bytes } from "../components.tsx"
import { hrefOf, snapshots } from "../store.ts"
import { Json } from "./Json.tsx"
import { Copy, Fact, Facts, Outcome, Path, useNow, When } from "./parts.tsx"
import { formatAbsolute, formatDuration, millisOf, escapeLine, escapeText } from "./words.ts"

const fieldOf = (item: unknown, name: string): unknown =>
  typeof item === "object" && item !== null && name in item ? (item as Readonly<Record<string, unknown>>)[name] : undefined

/** Links to the difference between the snapshot before this call and the one after it. */
const ChangedLink = ({ callId }: { readonly callId: string }) => {
  const all = snapshots.value
  const place = all.findIndex(({ call_id }) => call_id === callId)
  if (place < 0) return null
  return (
    <Fact name="Changed">
      <a href={hrefOf("changes", "", { with: all[place]!.id, at: all[place - 1]?.id })}>what is different after it</a>
    </Fact>
  )
}

export const EventDetail = ({ event }: { readonly event: Event }) => {
  const now = useNow(10_000)
  const millis = millisOf(event.at)
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
        {millis === undefined ? null : (
          <Fact name="When">
            <span class="num">{formatAbsolute(millis)}</span>{" "}
            <span class="faint">
              <When at={event.at} now={now} />
            </span>
          </Fact>
        )}
        {event.duration_millis === undefined ? null : <Fact name="Took">{formatDuration(event.duration_millis)}</Fact>}
        {event.size_bytes === undefined ? null : <Fact name="Content">{bytes(event.size_bytes)}</Fact>}
        {event.mode === undefined ? null : <Fact name="Mode">{escapeLine(event.mode)}</Fact>}
        {event.call_id === undefined ? null : (
          <Fact name="Call">
            <code class="wrap">{escapeLine(event.call_id)}</code> <Copy text={event.call_id} label="Copy the id of the call" />
          </Fact>
        )}
        {event.call_id === undefined ? null : <ChangedLink callId={event.call_id} />}
        <Fact name="Kept in">
          <a href={hrefOf("slices", event.slice, { session: event.session_id })}>{escapeLine(event.slice)}</a>{" "}
          <span class="faint">of session</span>{" "}
          <a href={hrefOf("events", "", { session: event.session_id })} title="Events of this session alone">
            {escapeLine(event.session_id)}
          </a>
        </Fact>
      </Facts>
      {params === undefined ? null : <Json label="Parameters" value={params} open={4} />}
      <Json label="All of the item" value={event.item} open={params === undefined ? 4 : 0} />
    </article>
  )
}
