/** What the page knows and shows. Where one is stands in the address, so that back, forward, reload and a copied address work. */
import { batch, computed, effect, signal } from "@preact/signals"
import type { DumpFile, LiveEvent, Meta, SnapshotInfo } from "../model.ts"
import * as Api from "./api.ts"

export const views = ["files", "changes", "events", "slices", "journal"] as const
export type View = (typeof views)[number]

/** `#/files/src/a.ts?at=…`: a view, what in it, and how. */
export interface Place {
  readonly view: View
  /** A path, the name of a slice; "" for none. */
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
  const [way = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2) as [string?, string?]
  const [first = "", ...rest] = way.split("/")
  const view = views.find((view) => view === first) ?? "files"
  return { view, path: rest.map(decoded).join("/"), params: Object.fromEntries(new URLSearchParams(query)) }
}

export const hrefOf = (view: View, path = "", params: Readonly<Record<string, string | undefined>> = {}): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== "") query.set(name, value)
  const text = query.toString()
  const way = path === "" ? view : `${view}/${path.split("/").map(encodeURIComponent).join("/")}`
  return `#/${way}${text === "" ? "" : `?${text}`}`
}

let hash = location.hash
export const place = signal<Place>(placeOf(hash))
const arrive = (): void => {
  if (location.hash === hash) return
  hash = location.hash
  place.value = placeOf(hash)
}
addEventListener("hashchange", arrive)
// Where a link leads that was clicked, the next key or click finds one already.
for (const input of ["keydown", "click"]) addEventListener(input, arrive, { capture: true })

/** A step that "back" takes back, unless `replace`. One is there at once: the event comes later, and the next key may come before it. */
export const go = (href: string, { replace = false }: { readonly replace?: boolean } = {}): void => {
  if (replace) history.replaceState(null, "", href)
  else location.hash = href
  arrive()
}

export const meta = signal<Meta | undefined>(undefined)
export const problem = signal<string | undefined>(undefined)
export const snapshots = signal<ReadonlyArray<SnapshotInfo>>([])
/** The snapshot that is looked at; `undefined` for what is shown by itself. */
export const at = computed(() => place.value.params["at"])
/** Grows whenever what is shown should be asked for again. */
export const version = signal(0)
/** The same for each kind of live event. */
export const journalLast = signal<number | undefined>(undefined)
/** Whether the server can be heard; `undefined` where nothing is told live. */
export const isHeard = signal<boolean | undefined>(undefined)

/** The dumps of the served directory, the newest first; none for a workspace. */
export const dumps = signal<ReadonlyArray<DumpFile>>([])
/** The dump that is shown was written again since it was read, or another came. */
export const isStale = signal(false)

const remember = <A extends string>(key: string, values: ReadonlyArray<A>, otherwise: A) => {
  const read = (): string | null => {
    try {
      return localStorage.getItem(key)
    } catch {
      return null
    }
  }
  const held = signal<A>(values.find((value) => value === read()) ?? otherwise)
  const set = (value: A): void => {
    held.value = value
    try {
      localStorage.setItem(key, value)
    } catch {
      // A browser that keeps nothing.
    }
  }
  return { held: computed(() => held.value), set }
}

const themeKept = remember("fs-algebra.theme", ["system", "light", "dark"], "system")
export const theme = themeKept.held
const systemIsDark = matchMedia("(prefers-color-scheme: dark)")
effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = theme.value
})
/** To the other one than is seen; back to the system's where that is the same. */
export const switchTheme = (): void => {
  const isDark = theme.value === "system" ? systemIsDark.matches : theme.value === "dark"
  themeKept.set(isDark === systemIsDark.matches ? (isDark ? "light" : "dark") : "system")
}

const wrapKept = remember("fs-algebra.wrap", ["no", "yes"], "no")
/** Whether long lines are wrapped. */
export const isWrapping = computed(() => wrapKept.held.value === "yes")
export const switchWrapping = (): void => wrapKept.set(isWrapping.value ? "no" : "yes")

const historyKept = remember("fs-algebra.history", ["no", "yes"], "no")
/** Whether a file is shown with who changed it. */
export const isHistoryShown = computed(() => historyKept.held.value === "yes")
export const switchHistory = (): void => historyKept.set(isHistoryShown.value ? "no" : "yes")

/** The address of a file as of the snapshot that is looked at. */
export const fileHref = (path: string, params: Readonly<Record<string, string | undefined>> = {}): string =>
  hrefOf("files", path, { at: at.value, ...params })

/** The same place with other parameters; `undefined` takes one away. */
export const hereWith = (params: Readonly<Record<string, string | undefined>>): string =>
  hrefOf(place.value.view, place.value.path, { ...place.value.params, ...params })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Only the latest question counts: an answer that comes late must not undo a newer one. */
let turn = 0

const knows = async (asked: Promise<Meta>): Promise<boolean> => {
  const mine = ++turn
  try {
    const known = await asked
    const [named, listed] = await Promise.all([
      known.snapshots === 0 ? [] : Api.snapshots(),
      known.kind === "dump" ? Api.dumps().catch(() => []) : []
    ])
    if (mine !== turn) return true
    batch(() => {
      meta.value = known
      snapshots.value = named
      dumps.value = listed
      problem.value = undefined
      version.value++
    })
    return true
  } catch (error) {
    // What is there stays to be read while the server is away.
    if (mine === turn && meta.value === undefined) problem.value = messageOf(error)
    return false
  }
}

/** What was asked for by hand and did not work, until it is put away. */
export const failure = signal<string | undefined>(undefined)

const byHand = async (asked: Promise<Meta>): Promise<boolean> => {
  failure.value = undefined
  // What is told of from now on is newer than what is asked for.
  const wasStale = isStale.value
  isStale.value = false
  const known = asked.catch((error: unknown) => {
    failure.value = messageOf(error)
    isStale.value ||= wasStale
    throw error
  })
  return knows(known)
}

export const load = (): Promise<boolean> => knows(Api.meta())
export const reload = async (): Promise<void> => {
  await byHand(Api.reload())
}
/** What is looked at in one dump need not be in the other: one begins with its files. */
export const switchTo = async (path: string): Promise<void> => {
  if (await byHand(Api.switchTo(path))) go(hrefOf("files"))
}

/** Many changes that come at once are asked for once, and not before the last answer is there. */
let isComing = false
let isWanted = false
const soon = (): void => {
  isWanted = true
  if (isComing) return
  isComing = true
  setTimeout(() => {
    isWanted = false
    void load().then(() => {
      isComing = false
      if (isWanted) soon()
    })
  }, 250)
}

const hear = (event: LiveEvent): void => {
  switch (event.type) {
    case "files":
    case "snapshots":
      soon()
      break
    case "journal":
      journalLast.value = event.last
      break
    case "dumps":
      isStale.value = true
      break
  }
}

/** What happened before the server could be heard, and while it could not, is asked for when it can. */
export const listen = (): (() => void) => {
  return Api.listen(hear, (isOpen) => {
    if (isOpen && (isHeard.value === false || meta.value?.kind === "workspace")) soon()
    isHeard.value = isOpen
  })
}
