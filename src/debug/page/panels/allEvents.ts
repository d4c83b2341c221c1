/** Loads all events in pages of a thousand, the first page at once. They are kept until the source is read again. */
import { signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Event } from "../../model.ts"
import * as Api from "../api.ts"
import { meta } from "../store.ts"

interface Held {
  readonly items: ReadonlyArray<Event>
  readonly total: number
  readonly isWaiting: boolean
  readonly error?: string
}

const none: Held = { items: [], total: 0, isWaiting: true }
const held = signal(none)
let kept: string | undefined

const fill = async (key: string): Promise<void> => {
  kept = key
  const items: Array<Event> = []
  held.value = none
  try {
    for (;;) {
      const page = await Api.events({ offset: items.length, limit: 1000 })
      if (kept !== key) return
      items.push(...page.items)
      const isWaiting = page.items.length > 0 && items.length < page.total
      held.value = { items: items.slice(), total: page.total, isWaiting }
      if (!isWaiting) return
    }
  } catch (error) {
    if (kept !== key) return
    kept = undefined
    held.value = { ...held.value, isWaiting: false, error: error instanceof Error ? error.message : String(error) }
  }
}

export const useEvents = (): Held & { readonly again: () => void } => {
  const { generation, path } = meta.value ?? {}
  const key = meta.value === undefined ? undefined : `${generation} ${path}`
  useEffect(() => {
    if (key !== undefined && key !== kept) void fill(key)
  }, [key])
  return { ...held.value, again: () => void (key === undefined ? undefined : fill(key)) }
}
