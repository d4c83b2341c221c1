/**
 * Lists the changes of a path: calls of tools that name it, and changes in a journal. A journal change is attributed to a call
 * only if its correlation id is the id of the call. Changes at the same time may be unrelated.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { changes } from "../journal/Replay.ts"
import * as FsPath from "../model/FsPath.ts"
import { type DebugError, toUnreadableError } from "./errors.ts"
import { type FileJournal, itemOfChange } from "./journal.ts"
import type { Event, HistoryItem } from "./model.ts"

/** The tools of this library that change nothing. Any other tool may change something. */
export const readOnlyTools: ReadonlySet<string> = new Set([
  "ls",
  "tree",
  "stat",
  "glob",
  "grep",
  "read_file",
  "list_directory",
  "snapshots",
  "diff",
  "snapshot"
])

/** The parameters that are paths, or that contain paths. */
const pathParameters = ["path", "file_path", "from", "to", "source", "destination", "paths", "edits", "files"]

const parsePath = (text: string): FsPath.FsPath | undefined => {
  const path = FsPath.parse(text.trim().replace(/^\/+/, ""))
  return typeof path === "string" ? path : undefined
}

const textsIn = (value: unknown, depth = 0): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (depth > 3 || typeof value !== "object" || value === null) return []
  if (Array.isArray(value)) return value.flatMap((item) => textsIn(item, depth + 1))
  const fields = value as Readonly<Record<string, unknown>>
  return pathParameters.flatMap((name) => (Object.hasOwn(fields, name) ? textsIn(fields[name], depth + 1) : []))
}

const paramsOf = ({ item }: Event): unknown =>
  typeof item === "object" && item !== null && "params" in item ? item.params : undefined

export const pathsOfCall = (event: Event): ReadonlyArray<string> => [
  ...(event.path === undefined ? [] : [event.path]),
  ...(event.call_id === undefined ? [] : textsIn(paramsOf(event)))
]

/** The tools that affect everything below a directory too. */
const takesAll: ReadonlySet<string> = new Set(["rm", "delete_file", "move", "copy"])

const isConcerned = (askedPath: FsPath.FsPath, path: FsPath.FsPath, withAll: boolean): boolean =>
  FsPath.isWithin(askedPath, path) || (withAll && path !== FsPath.root && FsPath.isWithin(path, askedPath))

const toPathOf = (event: Event): string | undefined => {
  const params = paramsOf(event)
  return typeof params === "object" && params !== null && "to" in params && typeof params.to === "string"
    ? parsePath(params.to)
    : undefined
}

const itemOfEvent = (event: Event, askedPath: FsPath.FsPath): HistoryItem | undefined => {
  if (event.call_id === undefined || readOnlyTools.has(event.name)) return undefined
  const paths = pathsOfCall(event).flatMap((text) => parsePath(text) ?? [])
  const path = paths.find((path) => isConcerned(askedPath, path, takesAll.has(event.name)))
  if (path === undefined) return undefined
  const to = toPathOf(event)
  const { at, call_id, message, name, session_id, size_bytes } = event
  return {
    source: "tool",
    at,
    path: to === undefined ? path : (paths[0] ?? path),
    ...(to !== undefined && { to_path: to }),
    what: name,
    outcome: event.success === false ? "failed" : "done",
    ...(message !== undefined && { message }),
    ...(size_bytes !== undefined && { size_bytes }),
    tool: name,
    call_id,
    session_id,
    event_index: event.index
  }
}

const itemsOfJournal = Effect.fnUntraced(function* (
  journal: FileJournal,
  askedPath: FsPath.FsPath,
  events: ReadonlyArray<Event>
) {
  const calls = new Map<string, Event>()
  for (const event of events) if (event.call_id !== undefined) calls.set(event.call_id, event)
  const items: Array<HistoryItem> = []
  yield* Stream.runForEach(changes(journal), (change) =>
    Effect.sync(() => {
      const { correlationId, kind, path, to } = change
      const takesAll = kind === "FileDelete" || kind === "FileMove"
      if (![path, ...(to === undefined ? [] : [to])].some((path) => isConcerned(askedPath, path, takesAll))) return
      const call = calls.get(correlationId)
      items.push({
        ...itemOfChange(change),
        ...(call !== undefined && {
          tool: call.name,
          call_id: correlationId,
          session_id: call.session_id,
          event_index: call.index
        })
      })
    })
  )
  return items
})

/** Returns the history of a path, latest first; items without a time come last. */
export const historyOf = (
  givenPath: string,
  events: ReadonlyArray<Event>,
  journal: FileJournal | undefined
): Effect.Effect<ReadonlyArray<HistoryItem>, DebugError> =>
  Effect.gen(function* () {
    const askedPath = parsePath(givenPath)
    if (askedPath === undefined) return []
    const ofTools = events.flatMap((event) => itemOfEvent(event, askedPath) ?? [])
    const journalItems =
      journal === undefined ? [] : yield* Effect.mapError(itemsOfJournal(journal, askedPath, events), toUnreadableError)
    const at = (item: HistoryItem): string => item.at ?? ""
    return [...ofTools.toReversed(), ...journalItems.toReversed()].sort((a, b) =>
      at(a) === at(b) ? 0 : at(a) < at(b) ? 1 : -1
    )
  })
