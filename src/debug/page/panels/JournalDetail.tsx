import type { JournalItem } from "../../model.ts"
import * as Api from "../api.ts"
import { bytes, ErrorMessage, useRequest } from "../components.tsx"
import { hrefOf, journalLast, place } from "../store.ts"
import { Content } from "./Content.tsx"
import { Json } from "./Json.tsx"
import { Copy, Fact, Facts, Path, useNow, When } from "./parts.tsx"
import { formatAbsolute, briefOf, detailOf, formatDuration, millisOf, escapeLine, escapeText } from "./words.ts"

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
    <section class="exchange" aria-label="The exchange">
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
      {steps.length === 1 && steps[0]!.direction === "request" ? <p class="faint">It has not been answered.</p> : null}
    </section>
  )
}

export const JournalDetail = ({ position }: { readonly position: number }) => {
  const now = useNow(5000)
  const { askAgain: again, error, value } = useRequest((signal) => Api.entry(position, signal), [position])
  if (error !== undefined) return <ErrorMessage message={error} retry={again} />
  if (value === undefined) return <div class="waiting" aria-busy="true" />
  const { content, entry, item } = value
  const millis = millisOf(item.at)
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
        {millis === undefined ? null : (
          <Fact name="When">
            <span class="num">{formatAbsolute(millis)}</span>{" "}
            <span class="faint">
              <When at={item.at} now={now} />
            </span>
          </Fact>
        )}
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
