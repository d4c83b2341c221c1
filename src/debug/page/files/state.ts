import { computed, effect, signal } from "@preact/signals"
import type { FilesystemMeta } from "../../model.ts"
import * as Api from "../api.ts"
import { at, fileHref, go, meta, place, readStored, store, version } from "../store.ts"
import { Filter, type Node, initiallyOpen, rowsOf, type Tree, treeOf } from "./tree.ts"

interface ShownTree {
  readonly tree: Tree
  readonly filesystem: FilesystemMeta | undefined
  readonly at: string | undefined
}

export const shownTree = signal<ShownTree | undefined>(undefined)
export const treeProblem = signal<string | undefined>(undefined)
const retries = signal(0)
export const retryTree = (): void => {
  retries.value++
}

let currentRequest: { readonly at: string | undefined; readonly abort: AbortController; isOutdated: boolean } | undefined

const ask = (requestedAt: string | undefined): void => {
  const ownRequest = { at: requestedAt, abort: new AbortController(), isOutdated: false }
  currentRequest = ownRequest
  const { signal } = ownRequest.abort
  void Promise.all([Api.tree(requestedAt, signal), Api.filesystem(requestedAt).catch(() => undefined)])
    .then(
      ([files, filesystem]) => {
        if (signal.aborted) return
        shownTree.value = { tree: treeOf(files), filesystem, at: requestedAt }
        treeProblem.value = undefined
      },
      (error: unknown) => {
        if (!signal.aborted) treeProblem.value = Api.errorMessage(error)
      }
    )
    .finally(() => {
      if (currentRequest !== ownRequest) return
      currentRequest = undefined
      if (ownRequest.isOutdated) ask(requestedAt)
    })
}

effect(() => {
  const [requestedAt, known, turn] = [at.value, version.value, retries.value]
  if (known === 0 && turn === 0) return
  // Do not cancel a request for the same tree. Otherwise no response would ever arrive while files change all the time.
  if (currentRequest?.at === requestedAt && currentRequest !== undefined) currentRequest.isOutdated = true
  else {
    currentRequest?.abort.abort()
    ask(requestedAt)
  }
})

/** The open directories. Directories remain open after live changes and reloads of the page. */
const storedOpenDirectories = signal<ReadonlySet<string> | undefined>(undefined)
const keyOf = (): string => `fs-algebra.open:${meta.value?.kind}:${meta.value?.path}`
let keptKey = ""

const readStoredDirectories = (): ReadonlySet<string> | undefined => {
  const text = readStored("sessionStorage", keyOf())
  try {
    return text === null ? undefined : new Set(JSON.parse(text) as ReadonlyArray<string>)
  } catch {
    return undefined
  }
}

const storeOpen = (openDirectories: ReadonlySet<string>): void => {
  storedOpenDirectories.value = openDirectories
  store("sessionStorage", keyOf(), JSON.stringify([...openDirectories]))
}

effect(() => {
  const now = shownTree.value
  if (now === undefined) return
  const key = keyOf()
  if (key === keptKey) return
  keptKey = key
  storedOpenDirectories.value = readStoredDirectories() ?? initiallyOpen(now.tree)
})

const noDirectories: ReadonlySet<string> = new Set()
export const openDirectories = computed(() => storedOpenDirectories.value ?? noDirectories)

/** Opens or closes a directory and, with `all`, every directory below it. */
export const toggle = (node: Node, isOpen = !openDirectories.value.has(node.path), all = false): void => {
  const next = new Set(openDirectories.value)
  const set = (each: Node): void => {
    if (isOpen) next.add(each.path)
    else next.delete(each.path)
    if (all) for (const child of each.children) if (child.kind === "directory") set(child)
  }
  set(node)
  storeOpen(next)
}

export const closeAll = (): void => storeOpen(noDirectories)

export const reveal = (path: string): void => {
  const next = new Set(openDirectories.value)
  for (let node = shownTree.value?.tree.nodes.get(path)?.parent; node !== undefined && node.path !== ""; node = node.parent) {
    next.add(node.path)
  }
  if (next.size !== openDirectories.value.size) storeOpen(next)
}

export const rows = computed(() => (shownTree.value === undefined ? [] : rowsOf(shownTree.value.tree, openDirectories.value)))

export const query = signal("")
const filter = computed(() => (shownTree.value === undefined ? undefined : new Filter(shownTree.value.tree)))
export const filterMatches = computed(() => (query.value.trim() === "" ? undefined : filter.value?.find(query.value)))
/** Builds the index of the filter early, so that the first typed letter is not delayed. */
export const prepareFilter = (): void => {
  void filter.value
}
export const marksOf = (node: Node): ReadonlySet<number> => filter.value?.marks(node) ?? new Set()

const allOpen = { has: () => true }
const inOrder = computed(() => (shownTree.value === undefined ? [] : rowsOf(shownTree.value.tree, allOpen)))

export const stepFile = (by: 1 | -1): void => {
  const list = (filterMatches.value ?? inOrder.value).filter(({ kind }) => kind !== "directory")
  const now = list.findIndex(({ path }) => path === place.value.path)
  const next = list[now < 0 ? (by > 0 ? 0 : list.length - 1) : now + by]
  if (next !== undefined) go(fileHref(next.path))
}
