/** A typed client of the server. Every failure, except a cancelled request, is an `ApiError` with a sentence for people. */
import type * as Model from "../model.ts"

export class ApiError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = "ApiError"
    this.status = status
  }
}

export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

type Params = Readonly<Record<string, string | number | boolean | undefined>>

const urlOf = (path: string, params: Params): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, String(value))
  const text = query.toString()
  return text === "" ? path : `${path}?${text}`
}

const messageOf = (body: unknown, status: number): string =>
  typeof body === "object" && body !== null && "message" in body && typeof body.message === "string"
    ? body.message
    : `The server answered ${status}.`

const sendRequest = async <A>(path: string, params: Params, init: RequestInit): Promise<A> => {
  const failWith =
    (message: string) =>
    (cause: unknown): never => {
      throw init.signal?.aborted === true ? cause : new ApiError(0, message)
    }
  const response = await fetch(urlOf(path, params), { cache: "no-store", ...init }).catch(
    failWith("The server does not answer. It was stopped, or it is busy.")
  )
  if (response.ok) return (await response.json().catch(failWith("The answer of the server is not complete. Try again."))) as A
  const body: unknown = await response.json().catch(() => undefined)
  throw new ApiError(response.status, messageOf(body, response.status))
}

type Signal = AbortSignal | undefined

const get = <A>(path: string, params: Params = {}, signal?: Signal): Promise<A> =>
  sendRequest(path, params, signal === undefined ? {} : { signal })

const post = <A>(path: string, body: unknown): Promise<A> =>
  sendRequest(path, {}, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })

export const meta = () => get<Model.Meta>("api/meta")
export const sessions = () => get<ReadonlyArray<Model.SessionInfo>>("api/sessions")
export const slices = () => get<ReadonlyArray<Model.SliceInfo>>("api/slices")
export const slice = (name: string, params: { session?: string; offset?: number; limit?: number }, signal?: Signal) =>
  get<Model.SlicePage>(`api/slices/${encodeURIComponent(name)}`, params, signal)
export const events = (
  params: { session?: string; tool?: string; path?: string; offset?: number; limit?: number },
  signal?: Signal
) => get<Model.EventPage>("api/events", params, signal)
export const dumps = () => get<ReadonlyArray<Model.DumpFile>>("api/files")
export const reload = () => post<Model.Meta>("api/reload", {})
export const switchTo = (path: string) => post<Model.Meta>("api/switch", { path })
export const snapshots = () => get<ReadonlyArray<Model.SnapshotInfo>>("api/snapshots")
export const filesystem = (at?: string) => get<Model.FilesystemMeta>("api/filesystem/meta", { at })
export const tree = (at?: string, signal?: Signal) => get<ReadonlyArray<Model.TreeFile>>("api/filesystem/tree", { at }, signal)
/** Requests one file. Fails with status 404 if the file does not exist. */
export const file = (
  path: string,
  at?: string,
  signal?: Signal,
  of: { readonly part?: number | undefined; readonly line?: number | undefined } = {}
) => get<Model.FileContent>("api/filesystem/file", { path, at, ...of }, signal)
export const diff = (params: { with?: string; at?: string }, signal?: Signal) =>
  get<Model.Diff>("api/filesystem/diff", params, signal)
export const history = (path: string, signal?: Signal) =>
  get<ReadonlyArray<Model.HistoryItem>>("api/filesystem/history", { path }, signal)
export const journal = (
  params: { after?: number; before?: number; limit?: number; path?: string; correlation?: string },
  signal?: Signal
) => get<Model.JournalPage>("api/journal", params, signal)
export const journalChanges = (params: { before?: number; limit?: number; path?: string }, signal?: Signal) =>
  get<Model.JournalChanges>("api/journal/changes", params, signal)
export const entry = (position: number, signal?: Signal) => get<Model.JournalEntry>(`api/journal/${position}`, {}, signal)

/**
 * Listens until the returned function is called. `onState` reports whether the connection is open. A browser reconnects after a
 * connection breaks. If the server refuses a connection, only this function reconnects.
 */
export const listen = (onEvent: (event: Model.LiveEvent) => void, onState: (isOpen: boolean) => void): (() => void) => {
  let source: EventSource
  let timer: ReturnType<typeof setTimeout> | undefined
  const open = (): void => {
    source = new EventSource("api/live")
    source.addEventListener("open", () => onState(true))
    source.addEventListener("error", () => {
      onState(false)
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 2000)
    })
    source.addEventListener("message", ({ data }) => onEvent(JSON.parse(data) as Model.LiveEvent))
  }
  open()
  return () => {
    clearTimeout(timer)
    source.close()
  }
}
