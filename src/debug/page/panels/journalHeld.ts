/**
 * Holds the loaded part of the journal, latest first. New entries are added at once while the list is scrolled to the top.
 * Otherwise they wait, so that the list does not move.
 */
import { useEffect, useReducer, useRef } from "preact/hooks"
import type { JournalItem, JournalPage } from "../../model.ts"
import * as Api from "../api.ts"
import { journalLast, meta } from "../store.ts"

const pageSize = 200
const maxPageEntries = 1000

export interface JournalQuery {
  readonly path?: string
  readonly correlation?: string
}

class LoadedJournal {
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
export const useJournal = (journalQuery: JournalQuery, isAtTop: () => boolean) => {
  const [attempt, again] = useReducer<number, void>((n) => n + 1, 0)
  const [, render] = useReducer<number, void>((n) => n + 1, 0)
  const ref = useRef(new LoadedJournal())
  const { correlation, path } = journalQuery
  const { generation, has_journal } = meta.value ?? {}

  const runRequest = async (
    held: LoadedJournal,
    ask: () => Promise<JournalPage>,
    take: (page: JournalPage) => void
  ): Promise<void> => {
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
    const held = new LoadedJournal()
    ref.current = held
    void runRequest(
      held,
      () => Api.journal({ ...journalQuery, limit: pageSize }),
      ({ items, last, next }) => {
        Object.assign(held, { items: latestFirst(items), last, next, isBegun: true })
      }
    )
  }, [path, correlation, generation, has_journal, attempt])

  const held = ref.current
  const liveLast = journalLast.value
  useEffect(() => {
    if (!held.isBegun || held.isAsking || held.error !== undefined || liveLast === undefined || liveLast <= held.last) return
    void runRequest(
      held,
      () => Api.journal({ ...journalQuery, after: held.last, limit: maxPageEntries }),
      ({ items, last, next }) => {
        held.last = Math.max(next ?? last, held.last)
        held.waiting = latestFirst([...items, ...held.waiting])
        if (isAtTop()) show(held)
      }
    )
  })

  const show = (held: LoadedJournal): void => {
    held.items = latestFirst([...held.waiting, ...held.items])
    held.waiting = []
  }
  const loadOlder = (): void => {
    const before = held.next
    if (before === null || held.error !== undefined) return
    void runRequest(
      held,
      () => Api.journal({ ...journalQuery, before, limit: maxPageEntries }),
      ({ items, next }) => {
        held.items = latestFirst([...held.items, ...items])
        held.next = items.length === 0 ? null : next
      }
    )
  }
  return {
    ...held,
    again: () => again(),
    more: loadOlder,
    show: () => {
      show(held)
      render()
    }
  }
}
