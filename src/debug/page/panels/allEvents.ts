/** Loads all events in pages of a thousand, the first page at once. They are kept until the source is read again. */
import { signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Event } from "../../model.ts"
import * as Api from "../api.ts"
import { meta } from "../store.ts"

interface EventsState {
  readonly items: ReadonlyArray<Event>
  readonly total: number
  readonly isWaiting: boolean
  readonly error?: string
}

const noEvents: EventsState = { items: [], total: 0, isWaiting: true }
const eventsState = signal(noEvents)
let kept: string | undefined

const loadAll = async (key: string): Promise<void> => {
  kept = key
  const items: Array<Event> = []
  eventsState.value = noEvents
  try {
    for (;;) {
      const page = await Api.events({ offset: items.length, limit: 1000 })
      if (kept !== key) return
      items.push(...page.items)
      const isWaiting = page.items.length > 0 && items.length < page.total
      eventsState.value = { items: items.slice(), total: page.total, isWaiting }
      if (!isWaiting) return
    }
  } catch (error) {
    if (kept !== key) return
    kept = undefined
    eventsState.value = {
      ...eventsState.value,
      isWaiting: false,
      error: error instanceof Error ? error.message : String(error)
    }
  }
}

export const useEvents = (): EventsState & { readonly again: () => void } => {
  const { generation, path } = meta.value ?? {}
  const key = meta.value === undefined ? undefined : `${generation} ${path}`
  useEffect(() => {
    if (key !== undefined && key !== kept) void loadAll(key)
  }, [key])
  return { ...eventsState.value, again: () => void (key === undefined ? undefined : loadAll(key)) }
}
