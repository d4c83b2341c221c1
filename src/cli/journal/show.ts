import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { decode } from "../../engine/text.ts"
import type { Content } from "../../journal/FileSystemEntry.ts"
import { Entry, type Recorded, type Scrivener } from "../../journal/Journal.ts"
import * as Replay from "../../journal/Replay.ts"
import { contentsOf, describeEntry, loadContents } from "../../journal/entries/describe.ts"
import { sizeOf } from "../../journal/entries/values.ts"
import type { JournalError } from "../../journal/errors.ts"
import { isBytes } from "../../model/realms.ts"
import { listLines } from "../answer.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
import { Settings } from "../settings.ts"
import { checkPosition, openForReading } from "./file.ts"
import { entriesOf, filterOf, type FilterOptions, positionBeforeLatest, streamAfter, type Window } from "./filters.ts"

const tagColumns = "FileMakeDirectory".length

const position = (look: TextStyle, position: number): string => look.yellow(`${position}`.padStart(6))

/** Formats a time as `2026-01-31 23:59:00.123`, in UTC. A number that is not a valid date is printed as a number. */
const formatTime = (at: number): string => {
  try {
    return DateTime.formatIso(DateTime.makeUnsafe(at)).replace("T", " ").replace("Z", "")
  } catch {
    return `${at}`
  }
}

const formatRow = (look: TextStyle, at: number, millis: number, cells: ReadonlyArray<string>): string =>
  `${[position(look, at), look.dim(formatTime(millis)), ...cells].join("  ").trimEnd()}\n`

const isFault = (entry: Entry): boolean =>
  entry._tag === "FileFault" || (entry._tag === "DaemonChanged" && entry.failure !== undefined)

const formatEntry = (look: TextStyle, { at, entry, position }: Recorded<Entry>): string => {
  const [subject, detail] = describeEntry(entry)
  const applyColour = isFault(entry) ? look.red : look.cyan
  const id = "correlationId" in entry ? look.dim(look.name(entry.correlationId)) : ""
  const cells = [applyColour(entry._tag.padEnd(tagColumns)), look.name(subject), look.name(detail), id]
  return formatRow(
    look,
    position,
    at,
    cells.filter((cell) => cell !== "")
  )
}

/** The JSON form of an entry, as in the journal's file but without the fields of the hash chain. */
const Shown = Schema.Struct({ position: Schema.Int, at: Schema.Finite, entry: Entry })

const readFirstChunk = (journal: Scrivener<Entry>, content: Content): Effect.Effect<Uint8Array, JournalError> =>
  isBytes(content)
    ? Effect.succeed(content)
    : Effect.map(
        Stream.runHead(journal.contents.stream(content)),
        Option.getOrElse(() => new Uint8Array())
      )

const decodeCutText = (bytes: Uint8Array): string | undefined => {
  for (let end = bytes.length; end >= Math.max(0, bytes.length - 3); end--) {
    const text = decode(bytes.subarray(0, end))
    if (typeof text === "string") return text.includes("\0") ? undefined : text
  }
  return undefined
}

const indent = " ".repeat(8)

const formatContent = (look: TextStyle, contentName: string, content: Content, bytes: Uint8Array): string => {
  const size = sizeOf(content)
  const name = look.dim(`${indent}${look.name(contentName)}, ${humanise.bytes(size)}`)
  const text = decodeCutText(bytes)
  if (text === undefined) return `${name}${look.dim(", not text")}\n`
  const lines = look.lines(text).split("\n")
  if (lines.at(-1) === "") lines.pop()
  const rest = size > bytes.length ? look.dim(`${indent}... and ${humanise.bytes(size - bytes.length)} more\n`) : ""
  return `${name}\n${lines.map((line) => `${indent}${line}\n`).join("")}${rest}`
}

interface EntryWithContents {
  readonly recorded: Recorded<Entry>
  readonly contents: ReadonlyArray<readonly [called: string, content: Content, bytes: Uint8Array]>
}

const withContents = (journal: Scrivener<Entry>) => (recorded: Recorded<Entry>) =>
  Effect.map(
    Effect.forEach(contentsOf(recorded.entry), ([contentName, content]) =>
      Effect.map(readFirstChunk(journal, content), (bytes) => [contentName, content, bytes] as const)
    ),
    (contents): EntryWithContents => ({ recorded, contents })
  )

const print = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  entries: Stream.Stream<Recorded<Entry>, JournalError>,
  contents: boolean
) {
  const { json } = yield* Settings
  if (json) {
    const shown = contents ? Stream.mapEffect(entries, loadContents(journal)) : entries
    return yield* listLines(Shown, shown, () => "")
  }
  const entriesWithContents: Stream.Stream<EntryWithContents, JournalError> = contents
    ? Stream.mapEffect(entries, withContents(journal))
    : Stream.map(entries, (recorded) => ({ recorded, contents: [] }))
  return yield* listLines<EntryWithContents, JournalError, never>(
    Schema.Any,
    entriesWithContents,
    (look, { contents, recorded }) =>
      formatEntry(look, recorded) + contents.map((content) => formatContent(look, ...content)).join("")
  )
})

const verbs: Readonly<Record<Replay.Change["kind"], string>> = {
  FileWrite: "write",
  FileDelete: "delete",
  FileMakeDirectory: "mkdir",
  FileMove: "move",
  FileEdit: "edit",
  FileMakeLink: "link",
  FileSetAttributes: "set"
}

const Change = Schema.Struct({
  position: Schema.Int,
  answered: Schema.optionalKey(Schema.Int),
  at: Schema.Finite,
  correlationId: Schema.String,
  kind: Schema.Literals(Object.keys(verbs) as ReadonlyArray<Replay.Change["kind"]>),
  path: Schema.String,
  to: Schema.optionalKey(Schema.String),
  outcome: Schema.Literals(["done", "failed", "unanswered"]),
  fault: Schema.optionalKey(Schema.String),
  message: Schema.optionalKey(Schema.String),
  bytes: Schema.optionalKey(Schema.Int),
  version: Schema.optionalKey(Schema.String)
})

const changeLine = (look: TextStyle, change: typeof Change.Type): string => {
  const { at, bytes, fault, kind, outcome, path, position, to, version } = change
  const subject = to === undefined ? look.name(path) : `${look.name(path)} -> ${look.name(to)}`
  const outcomeText =
    outcome === "done"
      ? [
          ...(bytes === undefined ? [] : [humanise.bytes(bytes)]),
          ...(version === undefined ? [] : [look.dim(`version ${version.slice(0, 12)}`)])
        ].join(", ")
      : look.red(outcome === "failed" ? (fault ?? "failed") : "never answered")
  const verb = verbs[kind].padEnd(6)
  return formatRow(look, position, at, [outcome === "done" ? look.green(verb) : look.red(verb), subject, outcomeText])
}

const printChanges = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  filter: Replay.Filter,
  { after = 0, before = Infinity, max = Number.MAX_SAFE_INTEGER, reverse }: Window
) {
  const matchingChanges = Replay.changes(journal, filter).pipe(
    Stream.filter((change) => change.position > after && change.position < before)
  )
  const shown = reverse
    ? Stream.unwrap(
        Effect.map(Stream.runCollect(Stream.takeRight(matchingChanges, max)), (all) => Stream.fromIterable(all.toReversed()))
      )
    : Stream.take(matchingChanges, max)
  return yield* listLines(Change, shown, changeLine)
})

export interface ShowOptions extends FilterOptions, Window {
  readonly file: string
  readonly changes: boolean
  readonly contents: boolean
}

export const show = Effect.fnUntraced(function* (options: ShowOptions) {
  const { changes, contents, file } = options
  const filter = yield* filterOf(options)
  const journal = yield* openForReading(file)
  yield* changes ? printChanges(journal, filter, options) : print(journal, entriesOf(journal, filter, options), contents)
}, Effect.scoped)

export interface TailOptions extends FilterOptions {
  readonly file: string
  readonly after: number | undefined
  readonly max: number | undefined
  readonly contents: boolean
}

const defaultTailEntries = 10

export const tail = Effect.fnUntraced(function* ({ after, contents, file, max = defaultTailEntries, ...chosen }: TailOptions) {
  const filter = yield* filterOf(chosen)
  const journal = yield* openForReading(file)
  yield* checkPosition(journal, after ?? 0)
  const from = after ?? (yield* positionBeforeLatest(journal, filter, max))
  yield* print(journal, streamAfter(journal, filter, from), contents)
}, Effect.scoped)
