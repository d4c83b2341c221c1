/** The state of the page. The address contains the current place, so that back, forward, reload and a copied address work. */
import { batch, computed, effect, signal } from "@preact/signals"
import type { DumpFile, LiveEvent, Meta, SnapshotInfo } from "../model.ts"
import * as Api from "./api.ts"

export const views = ["files", "changes", "events", "slices", "journal"] as const
export type View = (typeof views)[number]

/** A place in the page, such as `#/files/src/a.ts?at=…`: a view, an object in the view, and parameters. */
export interface Place {
  readonly view: View
  /** A path, the name of a slice, the index of an event or the position of a journal entry; "" for none. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const placeOf = (hash: string): Place => {
  const [routePath = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2) as [string?, string?]
  const [first = "", ...rest] = routePath.split("/")
  const view = views.find((view) => view === first) ?? "files"
  return { view, path: rest.map(decoded).join("/"), params: Object.fromEntries(new URLSearchParams(query)) }
}

export const hrefOf = (view: View, path = "", params: Readonly<Record<string, string | undefined>> = {}): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== "") query.set(name, value)
  const text = query.toString()
  const routePath = path === "" ? view : `${view}/${path.split("/").map(encodeURIComponent).join("/")}`
  return `#/${routePath}${text === "" ? "" : `?${text}`}`
}

let hash = location.hash
export const place = signal<Place>(placeOf(hash))
const applyAddress = (): void => {
  if (location.hash === hash) return
  hash = location.hash
  place.value = placeOf(hash)
}
addEventListener("hashchange", applyAddress)
// Apply the address of a clicked link before the next key or click, even if `hashchange` is late.
for (const input of ["keydown", "click"]) addEventListener(input, applyAddress, { capture: true })

/**
 * Goes to a place, and adds a history entry unless `replace` is true. Applies the address immediately, because the next key
 * press may come before the `hashchange` event.
 */
export const go = (href: string, { replace = false }: { readonly replace?: boolean } = {}): void => {
  if (replace) history.replaceState(null, "", href)
  else location.hash = href
  applyAddress()
}

export const meta = signal<Meta | undefined>(undefined)
export const problem = signal<string | undefined>(undefined)
export const snapshots = signal<ReadonlyArray<SnapshotInfo>>([])
export const at = computed(() => place.value.params["at"])
/** A number that grows whenever the views must load their data again. */
export const version = signal(0)
/** The last known position of the journal; `undefined` until the server has sent a position. */
export const journalLast = signal<number | undefined>(undefined)
/** True while the connection for live events is open; `undefined` before the first attempt to connect has ended. */
export const isConnected = signal<boolean | undefined>(undefined)

/** The dumps of the served directory, newest first. A workspace has none. */
export const dumps = signal<ReadonlyArray<DumpFile>>([])
/** True if the shown dump was written again after it was loaded, or if the list of dumps has changed. */
export const isStale = signal(false)

export const readStored = (storage: "localStorage" | "sessionStorage", key: string): string | null => {
  try {
    return window[storage].getItem(key)
  } catch {
    return null
  }
}

/** Stores a text. If the storage is full or unavailable, the text is not remembered. */
export const store = (storage: "localStorage" | "sessionStorage", key: string, text: string): void => {
  try {
    window[storage].setItem(key, text)
  } catch {}
}

export const makeStoredSetting = <A extends string>(key: string, values: ReadonlyArray<A>, otherwise: A) => {
  const stored = readStored("localStorage", key)
  const storedValue = signal<A>(values.find((value) => value === stored) ?? otherwise)
  const set = (value: A): void => {
    storedValue.value = value
    store("localStorage", key, value)
  }
  return { storedValue: computed(() => storedValue.value), set }
}

const themeKept = makeStoredSetting("fs-algebra.theme", ["system", "light", "dark"], "system")
export const theme = themeKept.storedValue
const systemIsDark = matchMedia("(prefers-color-scheme: dark)")
effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = theme.value
})
/** Switches between light and dark. A choice that equals the system theme is stored as "system". */
export const switchTheme = (): void => {
  const isDark = theme.value === "system" ? systemIsDark.matches : theme.value === "dark"
  themeKept.set(isDark === systemIsDark.matches ? (isDark ? "light" : "dark") : "system")
}

const wrapKept = makeStoredSetting("fs-algebra.wrap", ["no", "yes"], "no")
export const isWrapping = computed(() => wrapKept.storedValue.value === "yes")
export const switchWrapping = (): void => wrapKept.set(isWrapping.value ? "no" : "yes")

const historyKept = makeStoredSetting("fs-algebra.history", ["no", "yes"], "no")
export const isHistoryShown = computed(() => historyKept.storedValue.value === "yes")
export const switchHistory = (): void => historyKept.set(isHistoryShown.value ? "no" : "yes")

export const fileHref = (path: string, params: Readonly<Record<string, string | undefined>> = {}): string =>
  hrefOf("files", path, { at: at.value, ...params })

export const hereWith = (params: Readonly<Record<string, string | undefined>>): string =>
  hrefOf(place.value.view, place.value.path, { ...place.value.params, ...params })

/** The number of the latest request. A late response to an older request is ignored. */
let latestRequest = 0

const applyMeta = async (response: Promise<Meta>): Promise<boolean> => {
  const requestNumber = ++latestRequest
  try {
    const known = await response
    const [named, listed] = await Promise.all([
      known.snapshots === 0 ? [] : Api.snapshots(),
      known.kind === "dump" ? Api.dumps().catch(() => []) : []
    ])
    if (requestNumber !== latestRequest) return true
    batch(() => {
      meta.value = known
      snapshots.value = named
      dumps.value = listed
      problem.value = undefined
      version.value++
    })
    return true
  } catch (error) {
    // Continue to show the loaded data while the server does not answer.
    if (requestNumber === latestRequest && meta.value === undefined) problem.value = Api.errorMessage(error)
    return false
  }
}

export const failure = signal<string | undefined>(undefined)

const runUserAction = async (response: Promise<Meta>): Promise<boolean> => {
  failure.value = undefined
  // Events that arrive from now on are newer than this request.
  const wasStale = isStale.value
  isStale.value = false
  const known = response.catch((error: unknown) => {
    failure.value = Api.errorMessage(error)
    isStale.value ||= wasStale
    throw error
  })
  return applyMeta(known)
}

export const load = (): Promise<boolean> => applyMeta(Api.meta())
export const reload = async (): Promise<void> => {
  await runUserAction(Api.reload())
}
/** Switches to another dump and to the files view, because the other dump may lack the current object. */
export const switchTo = async (path: string): Promise<void> => {
  if (await runUserAction(Api.switchTo(path))) go(hrefOf("files"))
}

/**
 * True while a load is scheduled or running. Several changes in quick succession cause only one load, which starts after the
 * response to the previous load.
 */
let isLoadScheduled = false
let isLoadWanted = false
const loadSoon = (): void => {
  isLoadWanted = true
  if (isLoadScheduled) return
  isLoadScheduled = true
  setTimeout(() => {
    isLoadWanted = false
    void load().then(() => {
      isLoadScheduled = false
      if (isLoadWanted) loadSoon()
    })
  }, 250)
}

const applyLiveEvent = (event: LiveEvent): void => {
  switch (event.type) {
    case "files":
    case "snapshots":
      loadSoon()
      break
    case "journal":
      journalLast.value = event.last
      break
    case "dumps":
      isStale.value = true
      break
  }
}

/** Listens for live events. Loads the state again after a reconnection, because events may have been missed. */
export const listen = (): (() => void) => {
  return Api.listen(applyLiveEvent, (isOpen) => {
    if (isOpen && (isConnected.value === false || meta.value?.kind === "workspace")) loadSoon()
    isConnected.value = isOpen
  })
}
