import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Content, isAfferent, isEfferent } from "../journal/FileSystemEntry.ts"
import { Entry, type Recorded, type Scrivener } from "../journal/Journal.ts"
import { type Change, changes, type Filter } from "../journal/Replay.ts"
import { contentsOf, describeEntry } from "../journal/entries/describe.ts"
import { sizeOf } from "../journal/entries/values.ts"
import { entriesOf } from "../journal/replay/filter.ts"
import * as FsPath from "../model/FsPath.ts"
import { isBytes } from "../model/realms.ts"
import { sha256 } from "../runtime/hash.ts"
import { describeBytes, describeTooLarge, maxBinaryBytes } from "./content.ts"
import { type DebugError, makeDebugError, toUnreadableError } from "./errors.ts"
import type { Event, FileContent, HistoryItem, JournalChanges, JournalEntry, JournalItem, JournalPage } from "./model.ts"

export type FileJournal = Scrivener<Entry>

const isoOf = (millis: number): string =>
  Option.match(DateTime.make(millis), { onNone: () => String(millis), onSome: DateTime.formatIso })

const contentSizeOf = (entry: Entry): number | undefined => {
  if ("bytesWritten" in entry) return entry.bytesWritten
  const [content] = entry._tag === "FileDeleted" || entry._tag === "FileMoved" ? [] : contentsOf(entry)
  return content === undefined ? undefined : sizeOf(content[1])
}

const itemOf = ({ at, entry, position }: Recorded<Entry>): JournalItem => {
  const [subject, detail] = describeEntry(entry)
  const size = contentSizeOf(entry)
  return {
    position,
    at: isoOf(at),
    kind: entry._tag,
    direction: isEfferent(entry) ? "request" : isAfferent(entry) ? "answer" : "other",
    ...("path" in entry && entry.path !== undefined && { path: entry.path }),
    ...("to" in entry && { to_path: entry.to }),
    ...("correlationId" in entry && { correlation_id: entry.correlationId }),
    summary: [subject, detail].filter((text) => text !== "").join(": "),
    ...(entry._tag === "FileFault" && { fault: entry.faultKind }),
    ...(size !== undefined && { size_bytes: size })
  }
}

interface PageRequest {
  readonly after?: number | undefined
  readonly before?: number | undefined
  readonly limit: number
  readonly path?: string | undefined
  readonly correlation?: string | undefined
}

/**
 * Reads a page of entries. With `after`, the page contains the entries after the position `after`, oldest first; otherwise the
 * latest entry comes first.
 */
export const page =
  ({ after, before, correlation, limit, path }: PageRequest) =>
  (journal: FileJournal): Effect.Effect<JournalPage, DebugError> =>
    Effect.gen(function* () {
      const filter: Filter = {
        paths: path === undefined ? undefined : [path],
        correlationIds: correlation === undefined ? undefined : [correlation]
      }
      const last = yield* journal.last
      const reverse = after === undefined
      // Read one entry more than the page needs, to find out whether there is another page.
      const window = { after, before, max: limit + 1, reverse }
      const found = yield* Stream.runCollect(entriesOf(journal, filter, window))
      const shown = found.slice(0, limit)
      return { last, items: shown.map(itemOf), next: found.length > limit ? (shown.at(-1)?.position ?? null) : null }
    }).pipe(Effect.mapError(toUnreadableError))

const changeNames = {
  FileWrite: "write",
  FileEdit: "edit",
  FileDelete: "delete",
  FileMove: "move",
  FileMakeDirectory: "mkdir",
  FileMakeLink: "link",
  FileSetAttributes: "attributes"
} as const

const itemOfChange = ({
  at,
  bytes,
  correlationId,
  kind,
  message,
  outcome,
  path,
  position,
  to,
  version
}: Change): HistoryItem => ({
  source: "journal",
  at: isoOf(at),
  path,
  ...(to !== undefined && { to_path: to }),
  what: changeNames[kind],
  outcome,
  ...(message !== undefined && { message }),
  ...(bytes !== undefined && { size_bytes: bytes }),
  position,
  correlation_id: correlationId,
  ...(version !== undefined && { version })
})

const byPosition = (a: Change, b: Change): number => a.position - b.position

/** Reads a page of changes, latest first. Reads the journal from the beginning, but keeps at most about two pages in memory. */
export const changesPage =
  ({ before, limit, path }: Pick<PageRequest, "before" | "limit" | "path">) =>
  (journal: FileJournal): Effect.Effect<JournalChanges, DebugError> =>
    Effect.gen(function* () {
      const last = yield* journal.last
      const filter: Filter = path === undefined ? {} : { paths: [path] }
      const kept: Array<Change> = []
      yield* Stream.runForEach(changes(journal, filter), (change) =>
        Effect.sync(() => {
          if (before !== undefined && change.position >= before) return
          kept.push(change)
          if (kept.length > 2 * limit + 2) kept.sort(byPosition).splice(0, kept.length - limit - 1)
        })
      )
      const found = kept
        .toSorted(byPosition)
        .reverse()
        .slice(0, limit + 1)
      const shown = found.slice(0, limit)
      return { last, items: shown.map(itemOfChange), next: found.length > limit ? (shown.at(-1)?.position ?? null) : null }
    }).pipe(Effect.mapError(toUnreadableError))

const contentReference = (content: Content): { readonly sha256: string; readonly size: number } =>
  isBytes(content) ? { sha256: sha256(content), size: content.length } : { sha256: content.sha256, size: content.size }

/** Replaces the contents in a nested value by their hashes and sizes, which the encoder of entries also accepts. */
const withoutContents = (value: unknown): unknown => {
  if (isBytes(value)) return contentReference(value)
  if (Array.isArray(value)) return value.map(withoutContents)
  if (typeof value !== "object" || value === null || DateTime.isDateTime(value)) return value
  const fields = Object.entries(value).map(([name, field]) => [name, withoutContents(field)])
  return Object.assign(Object.create(Object.getPrototypeOf(value) as object), Object.fromEntries(fields))
}

const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(Entry))

const describeContent = Effect.fnUntraced(function* (journal: FileJournal, entry: Entry) {
  const [firstContent] = contentsOf(entry)
  if (firstContent === undefined) return undefined
  const [name, content] = firstContent
  const path = "path" in entry && entry.path !== undefined ? entry.path : name
  if (sizeOf(content) > maxBinaryBytes) return describeTooLarge(path, sizeOf(content))
  return describeBytes(path, yield* journal.bytes(content))
})

/** Reads one entry and its content. If the content cannot be read, the entry is returned without content. */
export const entryAt =
  (position: number) =>
  (journal: FileJournal): Effect.Effect<JournalEntry, DebugError> =>
    Effect.gen(function* () {
      const [recorded] = yield* Stream.runCollect(Stream.take(journal.readBackward(position + 1), 1))
      if (recorded?.position !== position) {
        return yield* makeDebugError("missing", `there is no position ${position} in the journal`)
      }
      const content: FileContent | undefined = yield* Effect.catch(describeContent(journal, recorded.entry), () =>
        Effect.succeed(undefined)
      )
      return {
        item: itemOf(recorded),
        entry: yield* encode(withoutContents(recorded.entry)),
        ...(content !== undefined && { content })
      }
    }).pipe(Effect.mapError((error) => (error._tag === "DebugError" ? error : toUnreadableError(error))))

// Lists the changes of a path: calls of tools that name the path, and changes in a journal. A change in a journal is attributed
// to a call only if its correlation id is the id of the call, because simultaneous changes may be unrelated.

/** The tools of this library that never change a file. Any other tool may change files. */
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

/** The tools that change a directory together with everything below it. */
const treeTools: ReadonlySet<string> = new Set(["rm", "delete_file", "move", "copy"])

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
  const path = paths.find((path) => isConcerned(askedPath, path, treeTools.has(event.name)))
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
      const withAll = kind === "FileDelete" || kind === "FileMove"
      if (![path, ...(to === undefined ? [] : [to])].some((path) => isConcerned(askedPath, path, withAll))) return
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

/** Returns the history of a path, latest first. Items without a time come last. */
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
