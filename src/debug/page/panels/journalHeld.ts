/**
 * Holds the loaded part of the journal, latest first. New entries are added at once while the list is scrolled to the top.
 * Otherwise they wait, so that the list does not move.
 */
import { useEffect, useReducer, useRef } from "preact/hooks"
import type { JournalItem, JournalPage } from "../../model.ts"
import * as Api from "../api.ts"
import { journalLast, meta } from "../store.ts"

const pageSize = 200
const most = 1000

export interface Sought {
  readonly path?: string
  readonly correlation?: string
}

class Held {
  items: ReadonlyArray<JournalItem> = []
  waiting: ReadonlyArray<JournalItem> = []
  /** The position where older entries begin; `null` if there are none. */
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

/** Loads the journal. `isAtTop` is called when entries arrive. */
export const useJournal = (sought: Sought, isAtTop: () => boolean) => {
  const [turn, again] = useReducer<number, void>((n) => n + 1, 0)
  const [, render] = useReducer<number, void>((n) => n + 1, 0)
  const ref = useRef(new Held())
  const { correlation, path } = sought
  const { generation, has_journal } = meta.value ?? {}

  const asking = async (held: Held, ask: () => Promise<JournalPage>, take: (page: JournalPage) => void): Promise<void> => {
    if (held.isAsking) return
    held.isAsking = true
    render()
    try {
      const page = await ask()
      take(page)
      held.error = undefined
    } catch (error) {
      held.error = error instanceof Error ? error.message : String(error)
    }
    held.isAsking = false
    // Do not render for a query that is no longer shown.
    if (held === ref.current) render()
  }

  useEffect(() => {
    if (has_journal !== true) return
    const held = new Held()
    ref.current = held
    void asking(
      held,
      () => Api.journal({ ...sought, limit: pageSize }),
      ({ items, last, next }) => {
        Object.assign(held, { items: latestFirst(items), last, next, isBegun: true })
      }
    )
  }, [path, correlation, generation, has_journal, turn])

  const held = ref.current
  const told = journalLast.value
  useEffect(() => {
    if (!held.isBegun || held.isAsking || held.error !== undefined || told === undefined || told <= held.last) return
    void asking(
      held,
      () => Api.journal({ ...sought, after: held.last, limit: most }),
      ({ items, last, next }) => {
        held.last = Math.max(next ?? last, held.last)
        held.waiting = latestFirst([...items, ...held.waiting])
        if (isAtTop()) show(held)
      }
    )
  })

  const show = (held: Held): void => {
    held.items = latestFirst([...held.waiting, ...held.items])
    held.waiting = []
  }
  const more = (): void => {
    const before = held.next
    if (before === null || held.error !== undefined) return
    void asking(
      held,
      () => Api.journal({ ...sought, before, limit: most }),
      ({ items, next }) => {
        held.items = latestFirst([...held.items, ...items])
        held.next = items.length === 0 ? null : next
      }
    )
  }
  return {
    ...held,
    again: () => again(),
    more,
    show: () => {
      show(held)
      render()
    }
  }
}
