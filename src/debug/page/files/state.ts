import { computed, effect, signal } from "@preact/signals"
import type { FilesystemMeta } from "../../model.ts"
import * as Api from "../api.ts"
import { at, fileHref, go, meta, place, version } from "../store.ts"
import { Filter, type Node, openAtFirst, rowsOf, type Tree, treeOf } from "./tree.ts"

export interface Shown {
  readonly tree: Tree
  readonly filesystem: FilesystemMeta | undefined
  readonly at: string | undefined
}

export const shown = signal<Shown | undefined>(undefined)
export const treeProblem = signal<string | undefined>(undefined)
const retries = signal(0)
export const retryTree = (): void => {
  retries.value++
}

let asking: { readonly at: string | undefined; readonly abort: AbortController; isOutdated: boolean } | undefined

const ask = (looked: string | undefined): void => {
  const mine = { at: looked, abort: new AbortController(), isOutdated: false }
  asking = mine
  const { signal } = mine.abort
  void Promise.all([Api.tree(looked, signal), Api.filesystem(looked).catch(() => undefined)])
    .then(
      ([files, filesystem]) => {
        if (signal.aborted) return
        shown.value = { tree: treeOf(files), filesystem, at: looked }
        treeProblem.value = undefined
      },
      (error: unknown) => {
        if (!signal.aborted) treeProblem.value = error instanceof Error ? error.message : String(error)
      }
    )
    .finally(() => {
      if (asking !== mine) return
      asking = undefined
      if (mine.isOutdated) ask(looked)
    })
}

effect(() => {
  const [looked, known, turn] = [at.value, version.value, retries.value]
  if (known === 0 && turn === 0) return
  // Do not cancel the request for a newer one: if files change all the time, no answer would ever arrive.
  if (asking?.at === looked && asking !== undefined) asking.isOutdated = true
  else {
    asking?.abort.abort()
    ask(looked)
  }
})

/** The open directories. They survive live changes and reloads of the page. */
const opened = signal<ReadonlySet<string> | undefined>(undefined)
const keyOf = (): string => `fs-algebra.open:${meta.value?.kind}:${meta.value?.path}`
let keptKey = ""

const kept = (): ReadonlySet<string> | undefined => {
  try {
    const text = sessionStorage.getItem(keyOf())
    return text === null ? undefined : new Set(JSON.parse(text) as ReadonlyArray<string>)
  } catch {
    return undefined
  }
}

const keep = (open: ReadonlySet<string>): void => {
  opened.value = open
  try {
    sessionStorage.setItem(keyOf(), JSON.stringify([...open]))
  } catch {
    // The storage is full or unavailable.
  }
}

effect(() => {
  const now = shown.value
  if (now === undefined) return
  const key = keyOf()
  if (key === keptKey) return
  keptKey = key
  opened.value = kept() ?? openAtFirst(now.tree)
})

const none: ReadonlySet<string> = new Set()
export const open = computed(() => opened.value ?? none)

/** Opens or closes a directory; with `all` also every directory below it. */
export const toggle = (node: Node, isOpen = !open.value.has(node.path), all = false): void => {
  const next = new Set(open.value)
  const set = (each: Node): void => {
    if (isOpen) next.add(each.path)
    else next.delete(each.path)
    if (all) for (const child of each.children) if (child.kind === "directory") set(child)
  }
  set(node)
  keep(next)
}

export const closeAll = (): void => keep(none)

export const reveal = (path: string): void => {
  const next = new Set(open.value)
  for (let node = shown.value?.tree.nodes.get(path)?.parent; node !== undefined && node.path !== ""; node = node.parent) {
    next.add(node.path)
  }
  if (next.size !== open.value.size) keep(next)
}

export const rows = computed(() => (shown.value === undefined ? [] : rowsOf(shown.value.tree, open.value)))

export const query = signal("")
const filter = computed(() => (shown.value === undefined ? undefined : new Filter(shown.value.tree)))
export const found = computed(() => (query.value.trim() === "" ? undefined : filter.value?.find(query.value)))
/** Builds the index of the filter early, so that the first letter is not delayed. */
export const prepareFilter = (): void => {
  void filter.value
}
export const marksOf = (node: Node): ReadonlySet<number> => filter.value?.marks(node) ?? new Set()

const everywhere = { has: () => true }
const inOrder = computed(() => (shown.value === undefined ? [] : rowsOf(shown.value.tree, everywhere)))

/** Opens the next or previous file in the whole tree, or in the matches of the filter. */
export const step = (by: 1 | -1): void => {
  const list = (found.value ?? inOrder.value).filter(({ kind }) => kind !== "directory")
  const now = list.findIndex(({ path }) => path === place.value.path)
  const next = list[now < 0 ? (by > 0 ? 0 : list.length - 1) : now + by]
  if (next !== undefined) go(fileHref(next.path))
}
