/**
 * Draws the number of events over time as columns. The upper part of each column shows the failed events. The user can select a
 * span of time. The chosen event is marked.
 */
import { signal } from "@preact/signals"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import type { Event } from "../../model.ts"
import * as Api from "../api.ts"
import { meta } from "../store.ts"
import { formatAbsolute, formatClock, formatCount, formatDuration, millisOf } from "./words.ts"

// Loads all events in pages of a thousand. The first page is shown as soon as it is loaded. Events are kept until the source is
// read again.

interface EventsState {
  readonly items: ReadonlyArray<Event>
  readonly total: number
  readonly isWaiting: boolean
  readonly error?: string
}

const noEvents: EventsState = { items: [], total: 0, isWaiting: true }
const eventsState = signal(noEvents)
let loadedKey: string | undefined

const loadAll = async (key: string): Promise<void> => {
  loadedKey = key
  const items: Array<Event> = []
  eventsState.value = noEvents
  try {
    for (;;) {
      const page = await Api.events({ offset: items.length, limit: 1000 })
      if (loadedKey !== key) return
      items.push(...page.items)
      const isWaiting = page.items.length > 0 && items.length < page.total
      eventsState.value = { items: items.slice(), total: page.total, isWaiting }
      if (!isWaiting) return
    }
  } catch (error) {
    if (loadedKey !== key) return
    loadedKey = undefined
    eventsState.value = {
      ...eventsState.value,
      isWaiting: false,
      error: Api.errorMessage(error)
    }
  }
}

export const useEvents = (): EventsState & { readonly again: () => void } => {
  const { generation, path } = meta.value ?? {}
  const key = meta.value === undefined ? undefined : `${generation} ${path}`
  useEffect(() => {
    if (key !== undefined && key !== loadedKey) void loadAll(key)
  }, [key])
  return { ...eventsState.value, again: () => void (key === undefined ? undefined : loadAll(key)) }
}

export interface Mark {
  readonly millis: number
  readonly isFault: boolean
  readonly index: number
}

export const marksOf = (events: ReadonlyArray<Event>): ReadonlyArray<Mark> =>
  events.flatMap(({ at, index, success }) => {
    const millis = millisOf(at)
    return millis === undefined ? [] : [{ millis, isFault: success === false, index }]
  })

/** Returns the mark nearest to a time. `marks` must not be empty. */
export const nearestMark = (marks: ReadonlyArray<Mark>, millis: number): Mark =>
  marks.reduce((a, b) => (Math.abs(b.millis - millis) < Math.abs(a.millis - millis) ? b : a))

export type Span = readonly [from: number, to: number]

const height = 56
const axisHeight = 18
const columnWidth = 5
const barWidth = 3

const tickSteps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
  1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000, 1_209_600_000,
  2_592_000_000, 7_776_000_000, 31_536_000_000
]

/** Returns round times for the axis. The distance between two times is at least the width of a label. */
const ticksOf = ([from, to]: Span, width: number): ReadonlyArray<number> => {
  const least = ((to - from) / width) * 96
  const step = tickSteps.find((step) => step >= least) ?? tickSteps.at(-1)!
  const zone = new Date(from).getTimezoneOffset() * 60_000
  const ticks: Array<number> = []
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to && ticks.length < 50; at += step) ticks.push(at)
  return ticks
}

const extentOf = (marks: ReadonlyArray<Mark>): Span => {
  let [from, to] = [Infinity, -Infinity]
  for (const { millis } of marks) [from, to] = [Math.min(from, millis), Math.max(to, millis)]
  const margin = Math.max((to - from) * 0.01, 5)
  return [from - margin, to + margin]
}

const barsOf = (
  marks: ReadonlyArray<Mark>,
  [from, to]: Span,
  width: number
): { readonly good: string; readonly bad: string } => {
  const columns = Math.max(1, Math.floor(width / columnWidth))
  const successCounts = new Uint32Array(columns)
  const failureCounts = new Uint32Array(columns)
  for (const { isFault, millis } of marks) {
    const index = Math.min(columns - 1, Math.max(0, Math.floor(((millis - from) / (to - from)) * columns)))
    if (isFault) failureCounts[index]!++
    else successCounts[index]!++
  }
  let highest = 1
  for (let i = 0; i < columns; i++) highest = Math.max(highest, successCounts[i]! + failureCounts[i]!)
  const room = height - axisHeight - 8
  // Scale by the square root, so that a column of 1 is visible beside a column of 100.
  const barHeightOf = (n: number): number => (n === 0 ? 0 : Math.max(8, (Math.sqrt(n) / Math.sqrt(highest)) * room))
  let [good, bad] = ["", ""]
  for (let i = 0; i < columns; i++) {
    const [g, b] = [successCounts[i]!, failureCounts[i]!]
    if (g + b === 0) continue
    const all = barHeightOf(g + b)
    const part = b === 0 ? 0 : Math.max(5, all * (b / (g + b)))
    const x = i * columnWidth + 1
    const base = height - axisHeight
    if (g > 0) good += `M${x} ${base}v${-Math.max(all - part, 3)}h${barWidth}v${Math.max(all - part, 3)}z`
    if (b > 0) bad += `M${x} ${base - (g > 0 ? Math.max(all - part, 3) + 1 : 0)}v${-part}h${barWidth}v${part}z`
  }
  return { good, bad }
}

export const Timeline = ({
  chosen,
  label,
  marks,
  onPoint,
  onSpan,
  span
}: {
  readonly label: string
  readonly marks: ReadonlyArray<Mark>
  readonly chosen?: number | undefined
  readonly span?: Span | undefined
  readonly onSpan?: ((span: Span | undefined) => void) | undefined
  readonly onPoint?: ((millis: number) => void) | undefined
}) => {
  const element = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  const [drawnSpan, setDrawnSpan] = useState<Span | undefined>(undefined)
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    observer.observe(element.current!)
    setWidth(Math.floor(element.current!.clientWidth))
    return () => observer.disconnect()
  }, [])
  const extent = useMemo(() => extentOf(marks), [marks])
  const { bad, good } = useMemo(
    () => (width > 0 ? barsOf(marks, extent, width) : { good: "", bad: "" }),
    [marks, extent, width]
  )
  const [from, to] = extent
  const xOf = (millis: number): number => ((millis - from) / (to - from)) * width
  const millisAt = (event: PointerEvent): number => {
    const box = element.current!.getBoundingClientRect()
    return from + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (to - from)
  }
  const faults = useMemo(() => marks.filter(({ isFault }) => isFault).length, [marks])
  const summaryText = `${label}: ${formatCount(marks.length, "mark")} in ${formatDuration(to - from)}, ${formatCount(faults, "of them failed", "of them failed")}`
  const shownSpan = drawnSpan ?? span
  return (
    <div
      class="timeline"
      ref={element}
      role="img"
      aria-label={summaryText}
      title={onSpan === undefined ? undefined : "Drag over the columns to select a span of time"}
      onPointerDown={(event) => {
        if (event.button !== 0 || onSpan === undefined) return
        event.currentTarget.setPointerCapture(event.pointerId)
        const at = millisAt(event)
        setDrawnSpan([at, at])
      }}
      onPointerMove={(event) => {
        if (drawnSpan !== undefined) setDrawnSpan([drawnSpan[0], millisAt(event)])
      }}
      onPointerCancel={() => setDrawnSpan(undefined)}
      onPointerUp={() => {
        if (drawnSpan === undefined) return
        const [a, b] = drawnSpan
        setDrawnSpan(undefined)
        if (Math.abs(xOf(a) - xOf(b)) < 4) onPoint?.(a)
        else onSpan?.([Math.floor(Math.min(a, b)), Math.ceil(Math.max(a, b))])
      }}
    >
      {width === 0 ? null : (
        <svg width={width} height={height} aria-hidden="true">
          {ticksOf(extent, width).map((at) => (
            <g key={at}>
              <line class="timeline-tick" x1={xOf(at)} x2={xOf(at)} y1={0} y2={height - axisHeight + 4} />
              {xOf(at) > width - 64 ? null : (
                <text class="timeline-text" x={xOf(at) + 4} y={height - 4}>
                  {formatClock(at, to - from)}
                </text>
              )}
            </g>
          ))}
          <line class="timeline-base" x1={0} x2={width} y1={height - axisHeight + 0.5} y2={height - axisHeight + 0.5} />
          <path class="timeline-good" d={good} />
          <path class="timeline-bad" d={bad} />
          {shownSpan === undefined ? null : (
            <rect
              class="timeline-span"
              x={Math.min(xOf(shownSpan[0]), xOf(shownSpan[1]))}
              y={0}
              width={Math.max(1, Math.abs(xOf(shownSpan[1]) - xOf(shownSpan[0])))}
              height={height - axisHeight}
            />
          )}
          {chosen === undefined ? null : (
            <path
              class="timeline-chosen"
              d={`M${xOf(chosen)} ${height - axisHeight + 5}l-4 6h8zM${xOf(chosen) - 0.5} 0h1v${height - axisHeight}h-1z`}
            >
              <title>{formatAbsolute(chosen)}</title>
            </path>
          )}
        </svg>
      )}
    </div>
  )
}
